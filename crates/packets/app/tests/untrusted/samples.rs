//! Short sessions of each protocol: payloads, each with whether the responder sends it.

type Session = Vec<(bool, Vec<u8>)>;

/// Sessions of the protocol of a target, with names.
pub(crate) fn of(target: &str) -> Vec<(&'static str, Session)> {
    match target {
        "app_tls" => tls(),
        "app_http" => http(),
        "app_dns_tcp" => dns().map(|(name, session)| (name, framed(session))).into(),
        "app_dns_udp" => dns().into(),
        "app_ssh" => ssh(),
        "app_smb" => smb(),
        "app_rdp" => rdp(),
        "app_modbus" => modbus(),
        "app_ftp" => ftp(),
        "app_smtp" => smtp(),
        "app_dhcp" => dhcp(),
        "app_ntp" => ntp(),
        _ => panic!("{target} has no samples"),
    }
}

/// Other protocols that are recognised: name, 1 for TCP, port, payloads.
pub(crate) fn foreign() -> Vec<(&'static str, u8, u16, Session)> {
    let rtp = |number| [&[0x80, 0, 0, number, 0, 0, 0, 160, 0, 0, 0, 7][..], &[0xd5; 40]].concat();
    let ber = b"\x30\x18\x02\x01\x01\x04\x06public\xa0\x0b\x02\x01\x01\x02\x01\0\x02\x01\0\x30\0";
    vec![
        ("mqtt", 1, 1883, vec![(false, b"\x10\x10\0\x04MQTT\x04\x02\0<\0\x04abcd".to_vec())]),
        ("snmp", 0, 161, vec![(false, ber.to_vec())]),
        ("rtp", 0, 40_000, vec![(false, rtp(1)), (false, rtp(2))]),
        ("sip", 0, 5060, vec![(false, b"INVITE sip:b@example.com SIP/2.0\r\n".to_vec())]),
        ("http2", 1, 80, vec![(false, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0".to_vec())]),
    ]
}

fn asked(request: &[u8], answer: &[u8]) -> Session {
    vec![(false, request.to_vec()), (true, answer.to_vec())]
}

fn vector16(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// Messages behind their lengths.
fn framed(session: Session) -> Session {
    session.into_iter().map(|(is_resp, message)| (is_resp, vector16(&message))).collect()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &vector16(body)[..]].concat()
}

/// A message of a TLS handshake.
fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, a, b, c], body].concat()
}

fn record(message: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &vector16(message)].concat()
}

fn client_hello() -> Vec<u8> {
    let extensions = [
        extension(0, &vector16(&[&[0][..], &vector16(b"www.example.com")].concat())),
        extension(10, &[0, 4, 0, 29, 0, 23]),
        extension(16, &vector16(b"\x02h2\x08http/1.1")),
        extension(43, &[4, 3, 4, 3, 3]),
    ];
    let ciphers = vector16(&[0x13, 1, 0xc0, 0x2f]);
    let body = [&[3, 3][..], &[7; 32], &[0], &ciphers, &[1, 0], &vector16(&extensions.concat())];
    handshake(1, &body.concat())
}

fn server_hello() -> Vec<u8> {
    let extensions = vector16(&extension(43, &[3, 4]));
    handshake(2, &[&[3, 3][..], &[8; 32], &[0, 0x13, 1, 0], &extensions].concat())
}

fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    [&[tag, 0x82][..], &vector16(contents)].concat()
}

/// A list with one certificate, whose subject and issuer are one name.
fn certificate() -> Vec<u8> {
    let attribute = |last, value: &[u8]| {
        let value = [der(6, &[0x55, 4, last]), der(0x0c, value)].concat();
        der(0x31, &der(0x30, &value))
    };
    let name = der(0x30, &[attribute(6, b"XX"), attribute(3, b"example.com")].concat());
    let algorithm = der(0x30, &der(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
    let times = [der(0x17, b"250102030405Z"), der(0x17, b"350102030405Z")].concat();
    let key = der(0x30, &[algorithm.clone(), der(3, &[0, 4, 1, 2])].concat());
    let serial = [der(0xa0, &der(2, &[2])), der(2, &[7])].concat();
    let fields = [serial, algorithm.clone(), name.clone(), der(0x30, &times), name, key].concat();
    let leaf = der(0x30, &[der(0x30, &fields), algorithm, der(3, &[0, 1])].concat());
    let len24 = |len: usize| u32::try_from(len).unwrap().to_be_bytes()[1..].to_vec();
    handshake(11, &[len24(leaf.len() + 3), len24(leaf.len()), leaf].concat())
}

fn tls() -> Vec<(&'static str, Session)> {
    let hello = record(&client_hello());
    let both = asked(&hello, &record(&server_hello()));
    let (start, end) = hello.split_at(50);
    let parts = vec![(false, start.to_vec()), (false, end.to_vec())];
    let older = handshake(2, &[&[3, 3][..], &[8; 32], &[0, 0xc0, 0x2f, 0]].concat());
    let answer = [record(&older), record(&certificate())].concat();
    let alert = asked(&hello, &[21, 3, 3, 0, 2, 2, 40]);
    vec![
        ("tls-hellos", both),
        ("parts", parts),
        ("certificate", asked(&hello, &answer)),
        ("alert", alert),
    ]
}

fn http() -> Vec<(&'static str, Session)> {
    let request = b"GET /a?b=c HTTP/1.1\r\nHost: one.example\r\nUser-Agent: curl/8\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok";
    let pipelined = [&request[..], b"HEAD /d HTTP/1.1\nhost:two.example\n\n"].concat();
    vec![
        ("request", asked(request, answer)),
        ("pipelined", asked(&pipelined, b"HTTP/1.0 304 Not Modified\r\nX: y\r\n\r\n")),
        ("preface", vec![(false, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04".to_vec())]),
    ]
}

/// A question and an answer; the answer with pointers; a question with an option.
fn dns() -> [(&'static str, Session); 3] {
    let question = |flags: &[u8], name: &[u8], kind: u8| {
        [&[0x12, 0x34], flags, &[0, 0], name, &[0, kind, 0, 1]].concat()
    };
    let name = b"\x03www\x07example\x03com\0";
    let ask = question(&[1, 0, 0, 1, 0, 0, 0, 0], name, 1);
    let address = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
    let answer = [question(&[0x81, 0x80, 0, 1, 0, 1, 0, 0], name, 1), address.to_vec()].concat();
    let alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03cdn\xc0\x10";
    let pointers = [
        question(&[0x81, 0x80, 0, 1, 0, 2, 0, 0], name, 28),
        alias.to_vec(),
        b"\xc0\x2d\0\x10\0\x01\0\0\0\x3c\0\x04\x03txt".to_vec(),
    ];
    let refused = question(&[0x81, 0x83, 0, 1, 0, 0, 0, 0], b"\x04none\0", 33);
    let twice = [&name[..], b"\0\x01\0\x01\x01b\xc0\x10"].concat();
    let two = question(&[1, 0, 0, 2, 0, 0, 0, 0], &twice, 28);
    [
        ("address", asked(&ask, &answer)),
        ("pointers", asked(&ask, &pointers.concat())),
        ("refused", asked(&two, &refused)),
    ]
}

fn ssh() -> Vec<(&'static str, Session)> {
    let mut body = [&[4, 20][..], &[7; 16]].concat();
    for list in ["kex", "key", "to-server", "to-client", "mac-up", "mac-down", "zip", "none"] {
        body.extend(u32::try_from(list.len()).unwrap().to_be_bytes());
        body.extend(list.as_bytes());
    }
    body.extend([0; 13]);
    let offer = [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat();
    let client = [b"SSH-2.0-OpenSSH_9.9\r\n", &offer[..]].concat();
    let server = [b"SSH-2.0-Go\r\n", &offer[..]].concat();
    let parts = client.chunks(30).map(|part| (false, part.to_vec())).collect();
    vec![("offers", asked(&client, &server)), ("parts", parts)]
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn smb2(command: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut header = [0; 64];
    header[..4].copy_from_slice(b"\xfeSMB");
    (header[12], header[16]) = (command, flags);
    [&u32::try_from(64 + body.len()).unwrap().to_be_bytes(), &header[..], body].concat()
}

fn smb() -> Vec<(&'static str, Session)> {
    let mut logon = vec![0; 64];
    logon[..12].copy_from_slice(b"NTLMSSP\0\x03\0\0\0");
    for (place, len, at) in [(28, 4, 64), (36, 6, 68), (44, 4, 74)] {
        (logon[place], logon[place + 4]) = (len, at);
    }
    logon[60] = 1;
    logon.extend([utf16("WG"), utf16("joe"), utf16("PC")].concat());
    let path = utf16(r"\\files\data");
    let tree = [&[9, 0, 0, 0, 72, 0, 24, 0][..], &path].concat();
    let negotiated = smb2(0, 1, &[65, 0, 1, 0, 0x11, 3, 0, 0]);
    let mut first = [&b"\xffSMBu"[..], &[0; 27], &[4, 0xff, 0, 0, 0, 0, 0, 1, 0, 20, 0]].concat();
    first.extend(b"\0\\\\FILES\\DATA\0?????\0");
    let first = [&u32::try_from(first.len()).unwrap().to_be_bytes(), &first[..]].concat();
    vec![
        ("logon", vec![(true, negotiated.clone()), (false, smb2(1, 0, &logon))]),
        ("tree", vec![(true, negotiated), (false, smb2(3, 0, &tree))]),
        ("version-1", vec![(false, first)]),
    ]
}

fn rdp() -> Vec<(&'static str, Session)> {
    let cookie = b"Cookie: mstshash=admin\r\n\x01\0\x08\0\x0b\0\0\0";
    let len = u8::try_from(11 + cookie.len()).unwrap();
    let request = [&[3, 0, 0, len, len - 5, 0xe0, 0, 0, 0, 0, 0], &cookie[..]].concat();
    let confirm = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0";
    let (start, end) = request.split_at(20);
    let parts = vec![(false, start.to_vec()), (false, end.to_vec())];
    vec![("cookie", asked(&request, confirm)), ("parts", parts)]
}

fn modbus() -> Vec<(&'static str, Session)> {
    let read = [0, 1, 0, 0, 0, 6, 0x11, 3, 0, 0x6b, 0, 3];
    let write = [0, 2, 0, 0, 0, 6, 1, 16, 0, 0, 0, 1];
    let exception = [0, 1, 0, 0, 0, 3, 0x11, 0x83, 2];
    let largest = [&[0, 3, 0, 0, 0, 254, 255, 43][..], &[0xff; 252]].concat();
    let both = [read, write].concat();
    vec![("exception", asked(&both, &exception)), ("largest", asked(&largest, &read))]
}

fn ftp() -> Vec<(&'static str, Session)> {
    let mut logon = vec![(true, b"220 files.example FTP server ready\r\n".to_vec())];
    logon.extend(asked(b"USER joe\r\n", b"331 Password, please\r\n"));
    logon.extend(asked(b"PASS secret\r\nRETR /a b.txt\r\n", b"550 no such file\r\n"));
    let mut lines = vec![(true, b"220-one\r\n two\r\n220 three\r\n".to_vec())];
    lines.extend(asked(b"FEAT\r\n", b"211-a\r\n UTF8\r\n211 b\r\n"));
    vec![("logon", logon), ("lines", lines)]
}

fn smtp() -> Vec<(&'static str, Session)> {
    let mut mail = vec![(true, b"220 mx.example\r\n".to_vec())];
    mail.extend(asked(b"EHLO client.example\r\nMAIL FROM:<a@b.example> SIZE=9\r\n", b"250 a\r\n"));
    mail.push((false, b"RCPT TO:<c@d.example>\r\nDATA\r\n".to_vec()));
    mail.push((false, b"RCPT TO:<quoted@mail.example>\r\n.\r\n".to_vec()));
    let mut refused = vec![(true, b"220 mx.example ESMTP\r\n".to_vec())];
    refused.extend(asked(b"HELO a\r\n", b"550 no\r\n"));
    vec![("mail", mail), ("refused", refused)]
}

fn dhcp() -> Vec<(&'static str, Session)> {
    let message = |kind: u8, given: [u8; 4], options: &[u8]| {
        let mut message = vec![0; 240];
        message[0] = kind;
        message[16..20].copy_from_slice(&given);
        message[236..240].copy_from_slice(&[99, 130, 83, 99]);
        [&message[..], options].concat()
    };
    let request = b"\x35\x01\x03\0\x0c\x04host\x32\x04\xc0\0\x02\x09\x3c\x04MSFT\xff";
    let request = message(1, [0; 4], request);
    let ack = message(2, [192, 0, 2, 7], b"\x35\x01\x05\x33\x04\0\0\x0e\x10\xff");
    vec![("request", asked(&request, &ack)), ("no-end", vec![(false, message(1, [0; 4], &[53]))])]
}

fn ntp() -> Vec<(&'static str, Session)> {
    let message = |first, stratum| [&[first, stratum][..], &[0; 46]].concat();
    vec![
        ("question", asked(&message(0x23, 0), &message(0x24, 2))),
        ("symmetric", vec![(false, message(0x19, 16))]),
    ]
}

/// A CRYPTO frame of a hello's bytes from one place to another (RFC 9000 19.6).
fn crypto(from: usize, to: usize) -> Vec<u8> {
    let place = |number: usize| (u16::try_from(number).unwrap() | 0x4000).to_be_bytes();
    let hello = client_hello();
    [&[6], &place(from)[..], &place(to - from), &hello[from..to]].concat()
}

/// Frames of Initial packets.
pub(crate) fn quic() -> Vec<(&'static str, Session)> {
    let end = client_hello().len();
    let ack = [2, 0x40, 9, 0, 1, 0, 3, 4];
    let one = [crypto(0, end), vec![0; 20]].concat();
    let overlapping = [&crypto(60, end)[..], &ack, &crypto(0, 70)].concat();
    vec![
        ("hello", vec![(false, one)]),
        ("overlapping", vec![(false, overlapping)]),
        ("packets", vec![(false, crypto(40, end)), (false, crypto(0, 40))]),
        ("close", vec![(false, [&[0x1c, 0, 0, 2][..], b"no"].concat())]),
    ]
}
