//! What sessions say, byte by byte as the standards have it.

use std::net::IpAddr;

use crate::layers::low16;

/// An answer's record is of these kinds.
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// A name as labels, each behind its length.
fn labels(name: &str) -> Vec<u8> {
    let parts = name.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> = parts.flat_map(|label| counted8(label.as_bytes())).collect();
    bytes.push(0);
    bytes
}

/// Bytes behind their count in one byte, and in two.
fn counted8(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).expect("short")], bytes].concat()
}

fn counted16(bytes: &[u8]) -> Vec<u8> {
    [&low16(bytes.len()).to_be_bytes(), bytes].concat()
}

fn counted24(bytes: &[u8]) -> Vec<u8> {
    [&[0], &counted16(bytes)[..]].concat()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn kind_of(address: IpAddr) -> u16 {
    if address.is_ipv4() { TYPE_A } else { TYPE_AAAA }
}

/// A question for the address of a name, of the version that the answer will have.
pub(crate) fn dns_question(id: u16, name: &str, address: IpAddr) -> Vec<u8> {
    [words(&[id, 0x0100, 1, 0, 0, 0]), labels(name), words(&[kind_of(address), 1])].concat()
}

pub(crate) fn dns_answer(id: u16, name: &str, address: IpAddr) -> Vec<u8> {
    let kind = kind_of(address);
    let data = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let question = [labels(name), words(&[kind, 1])].concat();
    // The name by a pointer to the question, and a lifetime of 300 seconds.
    let record = [words(&[0xc00c, kind, 1, 0, 300]), counted16(&data)].concat();
    [words(&[id, 0x8180, 1, 1, 0, 0]), question, record].concat()
}

/// As DNS goes over TCP.
pub(crate) fn dns_over_tcp(message: &[u8]) -> Vec<u8> {
    counted16(message)
}

pub(crate) fn http_request(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: generator/1\r\nAccept: */*\r\n\r\n")
        .into_bytes()
}

/// A page of so many bytes.
pub(crate) fn http_page(len: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: generator\r\nContent-Type: text/plain\r\n\
         Content-Length: {len}\r\n\r\n"
    );
    [head.as_bytes(), &filler(len)].concat()
}

/// Printable bytes that repeat only after 95 of them.
pub(crate) fn filler(len: usize) -> Vec<u8> {
    (b' '..=b'~').cycle().take(len).collect()
}

fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &counted16(bytes)[..]].concat()
}

fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    record(22, &[&[kind], &counted24(body)[..]].concat())
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &counted16(body)[..]].concat()
}

/// JA3 of the hello below: MD5 of `771,49195-49199-156,0-10-11-13-16,29-23,0`. The name is not part
/// of it.
pub(crate) const HELLO_JA3: &str = "39caaa1effaf38f3252dff979040bfd4";

/// JA3 of the hello in `quic_initial`, as tshark gives it.
pub(crate) const QUIC_JA3: &str = "41bc9ae914d6cb3bd0bd0a5453ab7d7f";

/// A client's greeting with the name it asks for.
pub(crate) fn tls_client_hello(server: &str) -> Vec<u8> {
    let name = counted16(&[&[0], &counted16(server.as_bytes())[..]].concat());
    let protocols = [counted8(b"h2"), counted8(b"http/1.1")].concat();
    let extensions = [
        extension(0, &name),
        extension(10, &counted16(&words(&[29, 23]))),
        extension(11, &counted8(&[0])),
        extension(13, &counted16(&words(&[0x0403, 0x0804]))),
        extension(16, &counted16(&protocols)),
    ];
    let body = [
        &[3, 3][..],
        &filler(32),
        &counted8(&[]),
        &counted16(&words(&[0xc02b, 0xc02f, 0x009c])),
        &counted8(&[0]),
        &counted16(&extensions.concat()),
    ];
    handshake(1, &body.concat())
}

/// A server's greeting in TLS 1.2, its certificate, and that it is done.
pub(crate) fn tls_server_hello(subject: &str) -> Vec<u8> {
    let extensions = [extension(11, &counted8(&[0])), extension(16, &counted16(&counted8(b"h2")))];
    let hello = [
        &[3, 3][..],
        &filler(32),
        &counted8(&[]),
        &[0xc0, 0x2b, 0],
        &counted16(&extensions.concat()),
    ];
    let certificates = counted24(&counted24(&certificate(subject)));
    [handshake(2, &hello.concat()), handshake(11, &certificates), handshake(14, &[])].concat()
}

/// What only looks encrypted.
pub(crate) fn tls_data(len: usize) -> Vec<u8> {
    record(23, &filler(len))
}

/// A DER value: its tag, its length, its contents.
fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    let len = low16(contents.len());
    let header = match u8::try_from(len) {
        Ok(short) if short < 0x80 => vec![tag, short],
        _ => [&[tag, 0x82], &len.to_be_bytes()[..]].concat(),
    };
    [&header, contents].concat()
}

/// A certificate of X.509 v3 with a key and a signature of filler.
fn certificate(subject: &str) -> Vec<u8> {
    let ecdsa_with_sha256 = der(0x30, &der(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
    let name = |name: &str| {
        let common_name = [der(6, &[0x55, 4, 3]), der(0x0c, name.as_bytes())].concat();
        der(0x30, &der(0x31, &der(0x30, &common_name)))
    };
    let validity = [der(0x17, b"230101000000Z"), der(0x17, b"330101000000Z")].concat();
    let ec_public_key = der(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]);
    let prime256v1 = der(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let algorithm = der(0x30, &[ec_public_key, prime256v1].concat());
    let key = der(3, &[&[0, 4], &filler(64)[..]].concat());
    // Subject alternative name: one DNS name.
    let names = der(4, &der(0x30, &der(0x82, subject.as_bytes())));
    let extensions = der(0x30, &der(0x30, &[der(6, &[0x55, 0x1d, 0x11]), names].concat()));
    let to_be_signed = [
        der(0xa0, &der(2, &[2])),
        der(2, &[0x17]),
        ecdsa_with_sha256.clone(),
        name("Generated Authority"),
        der(0x30, &validity),
        name(subject),
        der(0x30, &[algorithm, key].concat()),
        der(0xa3, &extensions),
    ];
    let signature = der(3, &[&[0], &filler(64)[..]].concat());
    der(0x30, &[der(0x30, &to_be_signed.concat()), ecdsa_with_sha256, signature].concat())
}

/// The client's first packet in RFC 9001, A.2: it asks for `example.com`.
pub(crate) fn quic_initial() -> Vec<u8> {
    let digits: Vec<u8> =
        include_bytes!("quic_initial.hex").iter().copied().filter(u8::is_ascii_hexdigit).collect();
    let nibble = |digit: u8| char::from(digit).to_digit(16).expect("a digit");
    let byte = |pair: &[u8]| pair.iter().fold(0, |byte, digit| byte << 4 | nibble(*digit));
    digits.chunks(2).map(|pair| u8::try_from(byte(pair)).expect("two digits")).collect()
}

pub(crate) fn ntp(mode: u8) -> Vec<u8> {
    let stratum = if mode == 4 { 2 } else { 0 };
    let mut message = vec![4 << 3 | mode, stratum, 6, 0xec];
    message.resize(40, 0);
    message.extend([0xe8, 0xe0, 0, 0, 0x12, 0x34, 0x56, 0x78]);
    message
}

/// A DHCP message of a type, from a host of a name.
pub(crate) fn dhcp(operation: u8, message_type: u8, host: &str) -> Vec<u8> {
    let mut message = vec![operation, 1, 6, 0, 0x3d, 0x1d, 0, 1];
    message.resize(28, 0);
    message.extend([2, 0, 0, 0, 0, 0xa]);
    message.resize(236, 0);
    message.extend([0x63, 0x82, 0x53, 0x63, 53, 1, message_type, 12]);
    message.extend(counted8(host.as_bytes()));
    message.push(255);
    message.resize(300, 0);
    message
}

pub(crate) fn sip(first: &str) -> Vec<u8> {
    format!(
        "{first}\r\nVia: SIP/2.0/UDP 192.0.2.10:5060;branch=z9hG4bK776asdhds\r\n\
         Max-Forwards: 70\r\nFrom: Alice <sip:alice@example.com>;tag=1928301774\r\n\
         To: Bob <sip:bob@example.org>\r\n\
         Call-ID: a84b4c76e66710@192.0.2.10\r\nCSeq: 314159 INVITE\r\n\
         Contact: <sip:alice@192.0.2.10>\r\nContent-Length: 0\r\n\r\n"
    )
    .into_bytes()
}
