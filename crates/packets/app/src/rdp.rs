//! The first exchange of RDP (MS-RDPBCGR 2.2.1.1 and 2.2.1.2): cookie and protocol.

use wire::Names;

use crate::Step;
use crate::reader::Reader;
use crate::values::{detail, detail_text};

/// Version of TPKT (RFC 1006 6), the first byte.
pub(crate) const TPKT: u8 = 3;

const CONNECTION_REQUEST: u8 = 0xe0;
const CONNECTION_CONFIRM: u8 = 0xd0;

const COOKIE: &[u8] = b"Cookie: mstshash=";
const NEGOTIATION_REQUEST: u8 = 1;
const NEGOTIATION_RESPONSE: u8 = 2;

/// Longer requests are not sent.
const LEN_MAX: u16 = 512;

/// Whether these bytes begin a connection request or its confirmation.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    match bytes {
        [TPKT, 0, high, low, _, kind, ..] => {
            (11..=LEN_MAX).contains(&u16::from_be_bytes([*high, *low]))
                && matches!(*kind & 0xf0, CONNECTION_REQUEST | CONNECTION_CONFIRM)
        }
        _ => false,
    }
}

/// Reads a request or a confirmation; without a cookie or a negotiation it is not RDP.
pub(crate) fn read(bytes: &[u8], last: bool, names: &mut Names) -> Step {
    let mut reader = Reader::new(bytes);
    let packet = reader.u16().and_then(|_| {
        let len = reader.u16()?;
        reader.take(usize::from(len).checked_sub(4)?)
    });
    let Some((kind, mut rest)) = packet.and_then(|packet| Some((packet.get(1)?, packet.get(7..)?)))
    else {
        return if last || packet.is_some() { Step::Foreign } else { Step::More };
    };
    let mut is_rdp = false;
    if kind & 0xf0 == CONNECTION_REQUEST && rest.starts_with(b"Cookie: ") {
        let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        if let Some(user) = line.strip_prefix(COOKIE) {
            detail(names, "rdp.cookie", user.trim_ascii());
        }
        (is_rdp, rest) = (true, after);
    }
    if let Some((&[step, _, 8, 0, a, b, c, d], _)) = rest.split_first_chunk() {
        let protocols = u32::from_le_bytes([a, b, c, d]);
        match step {
            NEGOTIATION_REQUEST => detail_text(names, "rdp.offered", &offered(protocols)),
            NEGOTIATION_RESPONSE => detail(names, "rdp.protocol", chosen(protocols)),
            _ => {}
        }
        is_rdp = true;
    }
    let len = bytes.len() - reader.rest().len();
    if is_rdp { Step::Done(len) } else { Step::Foreign }
}

const PROTOCOLS: [(u32, &str); 5] =
    [(1, "tls"), (2, "credssp"), (4, "rdstls"), (8, "credssp-ex"), (16, "aad")];

fn offered(protocols: u32) -> String {
    let offered = PROTOCOLS.iter().filter(|(bit, _)| protocols & bit != 0);
    let names: Vec<&str> = core::iter::once("rdp").chain(offered.map(|(_, name)| *name)).collect();
    names.join(",")
}

fn chosen(protocol: u32) -> &'static [u8] {
    let known = PROTOCOLS.iter().find(|(bit, _)| *bit == protocol);
    known.map_or("rdp", |(_, name)| name).as_bytes()
}
