//! TLS records (RFC 8446 5.1) and the handshake messages in them, which may span records and
//! segments. The client's side is read up to its hello; the server's up to the certificate, where
//! the version still shows it.

use wire::Names;

use crate::fingerprint::Carrier;
use crate::hello;
use crate::{Step, certificate};

/// Type of a record.
pub(crate) const HANDSHAKE: u8 = 22;
/// Type of a record before a hello, and the level that does not end the connection.
pub(crate) const ALERT: u8 = 21;
const WARNING: u8 = 1;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;

const TLS_1_3: u16 = 0x0304;

/// A record's payload: 2^14, and what old versions allowed on top.
const RECORD_LEN_MAX: u16 = (1 << 14) + 2048;

/// The random of a server hello that asks for another client hello (RFC 8446 4.1.3).
pub(crate) const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The bytes behind a warning, which a server may send before its hello (RFC 6066 3).
fn after_warning(bytes: &[u8]) -> &[u8] {
    match bytes {
        [ALERT, 3, _, 0, 2, WARNING, _, rest @ ..] => rest,
        _ => bytes,
    }
}

/// Whether these bytes begin a handshake record with a hello, as far as they go.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    match after_warning(bytes) {
        [HANDSHAKE, 3, minor, high, low, kind, ..] => {
            *minor <= 4
                && (1..=RECORD_LEN_MAX).contains(&u16::from_be_bytes([*high, *low]))
                && (*kind == CLIENT_HELLO || *kind == SERVER_HELLO)
        }
        [HANDSHAKE] | [HANDSHAKE, 3, ..] => true,
        _ => false,
    }
}

/// Whether the record begins with a server hello after which both hellos come anew.
pub(crate) fn is_retry_request(bytes: &[u8]) -> bool {
    let bytes = after_warning(bytes);
    // Headers of the record (5) and the message (4), version (2).
    bytes.get(5) == Some(&SERVER_HELLO) && bytes.get(11..43) == Some(&RETRY_RANDOM[..])
}

/// The handshake messages of the records at the start of `bytes`.
struct Records {
    messages: Vec<u8>,
    /// Bytes of the records taken.
    len: usize,
    /// Something else follows, or the records are damaged: no more messages come.
    is_over: bool,
}

fn records(bytes: &[u8]) -> Records {
    let mut records = Records { messages: Vec::new(), len: 0, is_over: false };
    let mut rest = bytes;
    while let Some((&[kind, major, _, high, low], body)) = rest.split_first_chunk() {
        if kind != HANDSHAKE || major != 3 {
            records.is_over = true;
            break;
        }
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (fragment, after) = body.split_at(len.min(body.len()));
        records.messages.extend_from_slice(fragment);
        rest = after;
        if fragment.len() < len {
            break;
        }
    }
    records.len = bytes.len() - rest.len();
    records
}

/// Reads the hello at the start of `bytes`, and what follows it of the server's.
pub(crate) fn read(bytes: &[u8], last: bool, names: &mut Names) -> Step {
    if !begins(bytes) {
        return Step::Foreign;
    }
    let warned = bytes.len() - after_warning(bytes).len();
    let records = records(after_warning(bytes));
    let is_last = last || records.is_over;
    let done = Step::Done(warned + records.len);
    let mut rest = &records.messages[..];
    let mut has_hello = false;
    while let Some((&[kind, a, b, c], body)) = rest.split_first_chunk() {
        let needed = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        let whole = body.get(..needed);
        let body = whole.unwrap_or(body);
        if whole.is_none() && !is_last && kind != CERTIFICATE {
            return Step::More;
        }
        match kind {
            CLIENT_HELLO if !has_hello => {
                hello::read_client(body, whole.is_some(), Carrier::Tcp, names);
                return done;
            }
            SERVER_HELLO if !has_hello => {
                has_hello = true;
                let version = hello::read_server(body, whole.is_some(), names);
                let is_last = version.is_none_or(|version| version >= TLS_1_3);
                if is_last || is_retry_request(bytes) {
                    return done;
                }
            }
            CERTIFICATE if has_hello => {
                let is_read = certificate::read_message(body, names);
                return if is_read || whole.is_some() || is_last { done } else { Step::More };
            }
            _ => return if has_hello { done } else { Step::Foreign },
        }
        rest = rest.get(4 + needed..).unwrap_or_default();
    }
    match (has_hello, is_last) {
        (true, true) => done,
        (false, true) => Step::Foreign,
        (_, false) => Step::More,
    }
}

/// Reads the message at the start of a stream without records, as QUIC carries it; true when it was
/// there as a whole.
pub(crate) fn read_bare(bytes: &[u8], names: &mut Names) -> bool {
    let Some((&[kind, a, b, c], body)) = bytes.split_first_chunk() else {
        return false;
    };
    let needed = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
    let Some(body) = body.get(..needed) else {
        return false;
    };
    match kind {
        CLIENT_HELLO => hello::read_client(body, true, Carrier::Quic, names),
        SERVER_HELLO => {
            hello::read_server(body, true, names);
        }
        _ => {}
    }
    true
}

/// Whether the server hello in these bytes, without a record, asks for another client hello.
pub(crate) fn is_bare_retry_request(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SERVER_HELLO) && bytes.get(6..38) == Some(&RETRY_RANDOM[..])
}
