//! Payloads of any length that are made to be slow to read: of each parser what repeats most, what
//! is almost a match, and what leads back.

use format::session_row::PieceId;
use session::PacketView;
use units::{InterfaceId, Sequence, Timestamp};
use wire::LinkType;

/// A protocol number, a port of the responder, and who sends.
#[derive(Clone, Copy)]
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) proto: u8,
    pub(crate) port: u16,
    pub(crate) is_resp: bool,
    /// Of about this length.
    pub(crate) payload: fn(usize) -> Vec<u8>,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

const fn tcp(name: &'static str, port: u16, payload: fn(usize) -> Vec<u8>) -> Hostile {
    Hostile { name, proto: TCP, port, is_resp: false, payload }
}

const fn answer(name: &'static str, port: u16, payload: fn(usize) -> Vec<u8>) -> Hostile {
    Hostile { name, proto: TCP, port, is_resp: true, payload }
}

const fn udp(name: &'static str, port: u16, payload: fn(usize) -> Vec<u8>) -> Hostile {
    Hostile { name, proto: UDP, port, is_resp: true, payload }
}

pub(crate) const HOSTILE: &[Hostile] = &[
    udp("dns: questions that point to one long name", 53, dns_questions),
    udp("dns: answers that point to one long name", 53, dns_answers),
    udp("dns: pointers to pointers", 53, dns_chain),
    udp("dns: pointers on a port of its own", 4000, dns_questions),
    tcp("dns over tcp", 53, |len| vector16(&dns_questions(len))),
    udp("dhcp: options of one kind", 67, dhcp),
    udp("quic: packets in a datagram", 443, quic),
    udp("ssdp: fields", 1900, |len| repeat(b"NOTIFY * HTTP/1.1\r\n", b"host:\xff\n", len)),
    udp("dhcpv6: options", 547, |len| repeat(&[1, 0, 0, 1], &[0, 1, 0, 0], len)),
    udp("radius: attributes", 1812, |len| repeat(&[1; 20], &[1, 2], len)),
    udp("netbios: name", 137, dns_questions),
    tcp("http: fields of one name", 80, |len| repeat(b"GET / HTTP/1.1\n", b"host:\xff\n", len)),
    tcp("http: empty fields", 80, |len| repeat(b"GET / HTTP/1.1\n", b":\n", len)),
    tcp("http: blanks", 80, |len| repeat(b"GET / HTTP/1.1\n", b" ", len)),
    tcp("http: messages", 80, |len| repeat(b"", b"GET / HTTP/1.1\n\n", len)),
    tcp("http: long messages", 80, |len| {
        repeat(b"", b"GET /\xff\xff\xff\xff HTTP/1.1\nhost:\xfe\n\n", len)
    }),
    tcp("http: a line without an end", 80, |len| repeat(b"GET ", b"a ", len)),
    tcp("http: a rare method", 80, |len| repeat(b"BREW ", b"a HTTP/1", len)),
    tcp("http: a rare method in small letters", 80, |len| repeat(b"brew /", b"a HTTP/1", len)),
    tcp("http: requests without a version", 80, |len| repeat(b"", b"GET /a\n", len)),
    tcp("http: a request without a version", 80, |len| repeat(b"GET /a\n", b"\n", len)),
    tcp("http: text that ends no line", 80, |len| repeat(b"OPTIONS ", b"\xc2\x80", len)),
    tcp("tls: cipher suites", 443, tls_ciphers),
    tcp("tls: protocols", 443, tls_protocols),
    tcp("tls: extensions", 443, tls_extensions),
    tcp("tls: server names", 443, tls_server_names),
    tcp("tls: records of one byte", 443, |len| {
        repeat(&[22, 3, 1, 0, 1, 1], &[22, 3, 1, 0, 1, 0], len)
    }),
    tcp("tls: empty records", 443, |len| repeat(&[22, 3, 1, 0, 1, 1], &[22, 3, 1, 0, 0], len)),
    tcp("tls: hellos", 443, |len| repeat(b"", &client_hello(&[]), len)),
    answer("tls: server hellos", 443, |len| repeat(b"", &server_hello(), len)),
    answer("tls: a certificate's names", 443, |len| certificate(len, &[0x55, 4, 3])),
    answer("tls: a certificate's numbers", 443, |len| certificate(len, &[0xff; 60])),
    answer("tls: warnings", 443, |len| repeat(b"", &[21, 3, 3, 0, 2, 1, 0], len)),
    tcp("ssh: an offer", 22, ssh),
    tcp("ssh: lines", 22, |len| repeat(b"", b"SSH-2.0-\xff\n", len)),
    tcp("smb: almost a logon", 445, |len| smb(len, b"NTLMSSP\0\x03\0\0")),
    tcp("smb: messages", 445, |len| repeat(b"", b"\0\0\0\x04\xfeSMB", len)),
    tcp("smb: a share", 445, smb_share),
    tcp("modbus: messages", 502, |len| repeat(b"", &[0, 1, 0, 0, 0, 2, 1, 3], len)),
    answer("ftp: greetings", 21, |len| repeat(b"220-", b"SMTSMTFTFT\n220-", len)),
    answer("ftp: a long greeting", 21, |len| repeat(b"220-", b"SMTFT", len)),
    answer("smtp: errors", 25, |len| repeat(b"220 SMTP\n", b"550 a\n", len)),
    answer("smtp: empty lines", 25, |len| repeat(b"220 SMTP\n", b"\n", len)),
    tcp("rdp: a cookie", 3389, rdp),
    tcp("text that is almost a protocol's", 40_000, |len| {
        repeat(b"220 ", b"SMTSMTFTPASSIVPASSIVENNTNEW", len)
    }),
    tcp("xml that is almost a protocol's", 5222, |len| {
        repeat(b"<?xml ", b"<stream:streaxmlns='jabber", len)
    }),
    udp("xml that is almost a protocol's, in datagrams", 3702, |len| {
        repeat(b"<", b"soasoadiscoverEnvelop", len)
    }),
    udp("json that is almost a protocol's", 17500, |len| {
        repeat(b"{", b"\"host_int\"\"namespaces", len)
    }),
    tcp("telnet", 23, |len| repeat(b"", &[0xff, 0xfb, 1], len)),
    tcp("zeros", 40_000, |len| vec![0; len]),
    udp("zeros in datagrams", 40_000, |len| vec![0; len]),
    tcp("capitals", 40_000, |len| vec![b'A'; len]),
];

fn repeat(start: &[u8], part: &[u8], len: usize) -> Vec<u8> {
    let count = len.saturating_sub(start.len()).div_ceil(part.len());
    [start, &part.repeat(count)].concat()
}

fn vector16(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn dns_header(is_response: bool, questions: usize, answers: usize) -> Vec<u8> {
    let number = |count: usize| u16::try_from(count).unwrap().to_be_bytes();
    let flags = if is_response { [0x81, 0x80] } else { [1, 0] };
    [&[0x12, 0x34], &flags[..], &number(questions), &number(answers), &[0; 4]].concat()
}

/// A name of 250 bytes, then as many as there is space for that begin otherwise and point into it.
fn dns_questions(len: usize) -> Vec<u8> {
    let count = (len.saturating_sub(280) / 8).clamp(1, 63);
    let first = [&b"\x01a".repeat(124)[..], b"\0\0\x01\0\x01"].concat();
    let other = b"\x01b\xc0\x0e\0\x01\0\x01".repeat(count);
    let mut message = [dns_header(false, 1 + count, 0), first, other].concat();
    message.resize(len.max(message.len()), 0);
    message
}

fn dns_answers(len: usize) -> Vec<u8> {
    let count = (len.saturating_sub(280) / 18).clamp(1, 64);
    let first = [&b"\x01a".repeat(124)[..], b"\0\0\x01\0\x01"].concat();
    let other = b"\xc0\x0c\0\x05\0\x01\0\0\0\x01\0\x04\x01c\xc0\x0e".repeat(count);
    [dns_header(true, 1, count), first, other].concat()
}

fn dns_chain(len: usize) -> Vec<u8> {
    let mut message = [&dns_header(true, 1, 1)[..], b"\x01a\0\0\x01\0\x01"].concat();
    let mut target = 12_u16;
    while message.len() < len.max(60) - 20 && message.len() < 16_000 {
        let at = u16::try_from(message.len()).unwrap();
        message.extend((0xc000 | target).to_be_bytes());
        target = at;
    }
    message.extend((0xc000 | target).to_be_bytes());
    message
}

fn dhcp(len: usize) -> Vec<u8> {
    let mut start = vec![1; 236];
    start.extend([99, 130, 83, 99]);
    repeat(&start, &[12, 1, 0xff], len)
}

fn quic(len: usize) -> Vec<u8> {
    let packet =
        [&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x40, 22][..], &[7; 22]].concat();
    repeat(b"", &packet, len)
}

fn record(message: &[u8]) -> Vec<u8> {
    let parts = message.chunks(16_000);
    parts.flat_map(|part| [&[22, 3, 3][..], &vector16(part)].concat()).collect()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(body.len()).unwrap().to_be_bytes();
    record(&[&[kind, a, b, c][..], body].concat())
}

fn hello_of(ciphers: &[u8], extensions: &[u8]) -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0], &vector16(ciphers), &[1, 0], &vector16(extensions)];
    message(1, &body.concat())
}

fn client_hello(extensions: &[u8]) -> Vec<u8> {
    hello_of(&[0x13, 1], extensions)
}

fn server_hello() -> Vec<u8> {
    message(2, &[&[3, 3][..], &[7; 32], &[0, 0x13, 1, 0, 0, 0]].concat())
}

fn tls_ciphers(len: usize) -> Vec<u8> {
    let ciphers = 0..len.saturating_sub(60).min(60_000) / 2;
    let ciphers: Vec<u8> = ciphers
        .flat_map(|number| u16::try_from(number * 7 % 60_000).unwrap().to_be_bytes())
        .collect();
    hello_of(&ciphers, &[])
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &vector16(body)[..]].concat()
}

fn tls_protocols(len: usize) -> Vec<u8> {
    let list = repeat(b"", b"\x01\xff", len.saturating_sub(80).min(60_000));
    client_hello(&extension(16, &vector16(&list)))
}

fn tls_server_names(len: usize) -> Vec<u8> {
    let list = repeat(b"", &[1, 0, 0], len.saturating_sub(80).min(60_000));
    client_hello(&extension(0, &vector16(&list)))
}

fn tls_extensions(len: usize) -> Vec<u8> {
    let one = extension(16, &[0, 3, 2, 0xff, 0xff]);
    client_hello(&repeat(b"", &one, len.saturating_sub(60).min(60_000)))
}

fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    [&[tag, 0x82][..], &vector16(contents)].concat()
}

fn certificate(len: usize, oid: &[u8]) -> Vec<u8> {
    let attribute = der(0x31, &der(0x30, &[der(6, oid), der(0x0c, b"a")].concat()));
    let name = der(0x30, &repeat(b"", &attribute, (len / 2).min(1000)));
    let times = [der(0x17, b"250102030405Z"), der(0x17, b"260102030405Z")].concat();
    let start = [der(2, &[7]), der(0x30, &[6, 1, 42])].concat();
    let fields = [start, name.clone(), der(0x30, &times), name].concat();
    let rest = vec![0x30; len.saturating_sub(fields.len()).min(15_000)];
    let leaf = der(0x30, &der(0x30, &[fields, rest].concat()));
    let len24 = |len: usize| u32::try_from(len).unwrap().to_be_bytes()[1..].to_vec();
    let body = [len24(leaf.len() + 3), len24(leaf.len()), leaf].concat();
    [server_hello(), message(11, &body)].concat()
}

fn ssh(len: usize) -> Vec<u8> {
    let list = vec![b'a'; len.saturating_sub(120) / 8];
    let list = [&u32::try_from(list.len()).unwrap().to_be_bytes(), &list[..]].concat();
    let body = [&[4, 20][..], &[7; 16], &list.repeat(8), &[0; 4]].concat();
    [&b"SSH-2.0-x\r\n"[..], &u32::try_from(body.len()).unwrap().to_be_bytes(), &body].concat()
}

fn smb(len: usize, part: &[u8]) -> Vec<u8> {
    let body = repeat(
        &[&b"\xfeSMB\x40\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"[..], &[0; 44]].concat(),
        part,
        len,
    );
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), &body[..]].concat()
}

fn smb_share(len: usize) -> Vec<u8> {
    let path_len = len.saturating_sub(80).min(60_000);
    let head = [&b"\xfeSMB\x40\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"[..], &[0; 44]].concat();
    let request =
        [&[9, 0, 0, 0, 72, 0][..], &u16::try_from(path_len).unwrap().to_le_bytes()].concat();
    let body = [head, request, vec![0xd8; path_len]].concat();
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), &body[..]].concat()
}

fn rdp(len: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(len.min(500)).unwrap().to_be_bytes();
    repeat(
        &[&[3, 0, high, low, 0x27, 0xe0, 0, 0, 0, 0, 0][..], b"Cookie: mstshash="].concat(),
        b"\xff",
        len,
    )
}

/// A frame of IPv4.
pub(crate) fn frame(hostile: &Hostile, host: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let [_, b, c, d] = host.to_be_bytes();
    let mut ends = [[10, b, c, d], [11, 0, 0, 1]];
    let mut ports = [40_000, hostile.port].map(u16::to_be_bytes);
    if hostile.is_resp {
        ends.swap(0, 1);
        ports.swap(0, 1);
    }
    let mut transport = ports.concat();
    if hostile.proto == 6 {
        transport.extend(sequence.to_be_bytes());
        transport.extend([0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    } else {
        transport.extend(u16::try_from(payload.len() + 8).unwrap().to_be_bytes());
        transport.extend([0, 0]);
    }
    let [high, low] = u16::try_from(20 + transport.len() + payload.len()).unwrap().to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, hostile.proto, 0, 0];
    [&header[..], &ends.concat(), &transport, payload].concat()
}

pub(crate) fn view(data: &[u8], number: u32) -> PacketView<'_> {
    PacketView {
        timestamp: Timestamp(i64::from(number)),
        interface: InterfaceId(0),
        link_type: LinkType::RAW,
        original_len: u32::try_from(data.len()).unwrap(),
        data,
        piece: PieceId { sequence: Sequence(1), sub: 0, column: 0 },
        begin: number,
        end: number + 1,
    }
}

/// The payload in segments of so many bytes, in order or the other way round.
pub(crate) fn segments(
    hostile: &Hostile,
    len: usize,
    size: usize,
    is_reversed: bool,
) -> Vec<Vec<u8>> {
    let payload = (hostile.payload)(len);
    let parts = payload.chunks(size).zip((1_u32..).step_by(size));
    let mut frames: Vec<_> =
        parts.map(|(part, sequence)| frame(hostile, 1, sequence, part)).collect();
    if is_reversed {
        // The first one says where the stream begins.
        frames.get_mut(1..).unwrap_or_default().reverse();
    }
    frames
}
