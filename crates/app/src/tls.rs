//! TLS hellos (RFC 8446 4.1): server name, ALPN, version. A hello may span records and segments.

use wire::Names;

use crate::Step;
use crate::reader::Reader;
use crate::values::{keep_text, text};

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const SERVER_NAME: u16 = 0;
const APPLICATION_LAYER_PROTOCOLS: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// A record's payload: 2^14, and what old versions allowed on top.
const RECORD_LEN_MAX: u16 = (1 << 14) + 2048;

/// Whether these bytes begin a handshake record, as far as they go.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    match bytes {
        [HANDSHAKE, 3, minor, high, low, kind, ..] => {
            *minor <= 4
                && (1..=RECORD_LEN_MAX).contains(&u16::from_be_bytes([*high, *low]))
                && (*kind == CLIENT_HELLO || *kind == SERVER_HELLO)
        }
        [HANDSHAKE] | [HANDSHAKE, 3, ..] => true,
        _ => false,
    }
}

/// Reads the hello at the start of `bytes`.
pub(crate) fn read(bytes: &[u8], last: bool, names: &mut Names) -> Step {
    let mut message = Vec::new();
    let mut rest = bytes;
    while let Some((&[kind, major, _, high, low], body)) = rest.split_first_chunk() {
        if kind != HANDSHAKE || major != 3 {
            break;
        }
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (fragment, after) = body.split_at(len.min(body.len()));
        message.extend_from_slice(fragment);
        if let Some((&[kind, a, b, c], hello)) = message.split_first_chunk() {
            if kind != CLIENT_HELLO && kind != SERVER_HELLO {
                return Step::Foreign;
            }
            let needed = u32::from_be_bytes([0, a, b, c]);
            let hello = usize::try_from(needed).ok().and_then(|needed| hello.get(..needed));
            if let Some(hello) = hello {
                read_hello(kind, hello, names);
                return Step::Done(bytes.len() - after.len());
            }
        }
        rest = after;
        if fragment.len() < len {
            break;
        }
    }
    if !last {
        return if begins(bytes) { Step::More } else { Step::Foreign };
    }
    match message.split_first_chunk::<4>() {
        Some(([kind @ (CLIENT_HELLO | SERVER_HELLO), ..], hello)) => {
            read_hello(*kind, hello, names);
            Step::Done(bytes.len())
        }
        _ => Step::Foreign,
    }
}

/// Keeps what a hello says, as far as it goes: a cut one is read up to the cut.
fn read_hello(kind: u8, hello: &[u8], names: &mut Names) {
    let is_client = kind == CLIENT_HELLO;
    let mut reader = Reader::new(hello);
    let mut version = reader.u16();
    let mut extensions = || {
        reader.take(32)?; // Random.
        reader.vector8()?; // Session id.
        if is_client {
            reader.vector16()?; // Cipher suites.
            reader.vector8()?; // Compression methods.
        } else {
            reader.take(3)?; // Cipher suite and compression method.
        }
        reader.u16()?;
        Some(reader.rest())
    };
    let mut extensions = Reader::new(extensions().unwrap_or_default());
    while let (Some(kind), Some(len)) = (extensions.u16(), extensions.u16()) {
        let body = Reader::new(extensions.take_up_to(len.into()));
        match kind {
            SERVER_NAME if is_client => read_server_name(body, names),
            APPLICATION_LAYER_PROTOCOLS if is_client => read_alpn(body, names),
            SUPPORTED_VERSIONS => version = supported_version(body, is_client).or(version),
            _ => {}
        }
    }
    // The server's answer stands whichever hello is seen first.
    if is_client {
        names.tls_version = names.tls_version.or(version);
    } else {
        names.tls_version = version.or(names.tls_version);
    }
}

/// RFC 6066 3: a list of names, of which type 0 is a host name.
fn read_server_name(mut body: Reader<'_>, names: &mut Names) {
    body.u16();
    while let (Some(kind), Some(name)) = (body.u8(), body.vector16()) {
        if kind == 0 && !name.is_empty() {
            names.sni.get_or_insert_with(|| text(name));
        }
    }
}

/// RFC 7301 3.1.
fn read_alpn(mut body: Reader<'_>, names: &mut Names) {
    body.u16();
    while let Some(protocol) = body.vector8() {
        keep_text(&mut names.alpn, protocol);
    }
}

/// RFC 8446 4.2.1: the client's best offer, or the server's choice. Reserved values (RFC 8701) are
/// no offers.
fn supported_version(mut body: Reader<'_>, is_client: bool) -> Option<u16> {
    if !is_client {
        return body.u16();
    }
    body.u8();
    let mut best = None;
    while let Some(version) = body.u16() {
        if version & 0x0f0f != 0x0a0a {
            best = best.max(Some(version));
        }
    }
    best
}
