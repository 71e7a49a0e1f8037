//! A capture with hostile names wherever a capture and what is in it can have names.

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

fn ethernet(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend(from.iter().chain(&to));
    frame.extend(payload);
    frame
}

fn tcp(ports: [u16; 2], numbers: [u32; 2], flags: u8, data: &[u8]) -> Vec<u8> {
    let mut segment: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    segment.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(data);
    segment
}

/// One connection: what the client says, then what the server says; the server first where the
/// client says nothing.
fn connection(port: u16, said: [&[u8]; 2]) -> Vec<Vec<u8>> {
    let (there, back) = ([40_000 + port % 1000, port], [port, 40_000 + port % 1000]);
    let client = |numbers, flags, data: &[u8]| {
        ethernet(CLIENT, SERVER, 6, &tcp(there, numbers, flags, data))
    };
    let server =
        |numbers, flags, data: &[u8]| ethernet(SERVER, CLIENT, 6, &tcp(back, numbers, flags, data));
    let behind = 101 + u32::try_from(said[0].len()).unwrap();
    let mut frames = vec![client([100, 0], 2, &[]), server([500, 101], 0x12, &[])];
    frames.push(client([101, 501], 0x10, &[]));
    if !said[0].is_empty() {
        frames.push(client([101, 501], 0x18, said[0]));
    }
    if !said[1].is_empty() {
        frames.push(server([501, behind], 0x18, said[1]));
    }
    frames
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A `ClientHello` with the name as SNI and as the protocol of the application.
fn client_hello(name: &[u8]) -> Vec<u8> {
    let extension = |number: u16, body: &[u8]| [&number.to_be_bytes()[..], &counted(body)].concat();
    let sni = counted(&[&[0][..], &counted(name)].concat());
    let protocol = &name[..20];
    let alpn = counted(&[&[20][..], protocol].concat());
    let extensions = counted(&[extension(0, &sni), extension(16, &alpn)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let handshake = [&[1][..], &length[1..], &body].concat();
    [&[22, 3, 1][..], &counted(&handshake)].concat()
}

fn dns(name: &[u8]) -> Vec<u8> {
    let label = &name[..60];
    let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 60];
    message.extend(label);
    message.extend(b"\x07example\0\0\x01\0\x01");
    let mut datagram = vec![0xc0, 0, 0, 53];
    datagram.extend(u16::try_from(8 + message.len()).unwrap().to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(message);
    ethernet(CLIENT, SERVER, 17, &datagram)
}

fn frames(name: &[u8]) -> Vec<Vec<u8>> {
    let line = |before: &str, after: &str| {
        // A protocol of lines ends a name at its end of line.
        let name = name.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte });
        before.bytes().chain(name).chain(after.bytes()).collect::<Vec<u8>>()
    };
    let request =
        [line("GET /", " HTTP/1.1\r\n"), line("Host: ", "\r\n"), line("User-Agent: ", "\r\n\r\n")];
    let response = [
        line("HTTP/1.1 200 ", "\r\n"),
        line("Server: ", "\r\n"),
        line("Content-Type: ", "\r\nContent-Length: 0\r\n\r\n"),
    ];
    let mut frames = connection(80, [&request.concat(), &response.concat()]);
    frames.extend(connection(443, [&client_hello(name), &[]]));
    let ssh = line("SSH-2.0-", "\r\n");
    frames.extend(connection(22, [&ssh, &ssh]));
    frames.extend(connection(21, [&line("USER ", "\r\n"), &line("220 ", "\r\n")]));
    frames.extend(connection(25, [&line("EHLO ", "\r\n"), &line("220 ", " ESMTP\r\n")]));
    frames.push(dns(name));
    frames
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_le_bytes();
    [&code.to_le_bytes()[..], &length, &padded(value)].concat()
}

/// The capture as pcapng. The names of its section, its interface and its packets are hostile, too.
///
/// # Panics
/// The name has less than 60 bytes.
pub(super) fn capture(name: &[u8]) -> Vec<u8> {
    let names = |codes: &[u16]| -> Vec<u8> {
        codes.iter().flat_map(|code| option(*code, name)).chain([0; 4]).collect()
    };
    let head = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, &[head, names(&[1, 2, 3, 4])].concat());
    file.extend(block(1, &[vec![1, 0, 0, 0, 0, 0, 4, 0], names(&[1, 2, 3, 12])].concat()));
    for (number, frame) in (0..).zip(frames(name)) {
        let micros = 1_700_000_000_000_000_u64 + number * 1000;
        let (high, low) = (u32::try_from(micros >> 32).unwrap(), micros & 0xffff_ffff);
        let length = u32::try_from(frame.len()).unwrap();
        let words = [0, high, u32::try_from(low).unwrap(), length, length];
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.extend(block(6, &[head, padded(&frame), names(&[1])].concat()));
    }
    file
}
