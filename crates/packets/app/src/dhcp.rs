//! DHCP for IPv4 (RFC 2131): message types, the client's name, addresses asked for and given.

use core::net::Ipv4Addr;

use wire::Names;

use crate::reader::Reader;
use crate::values::{detail, detail_text};

/// The fixed fields before the cookie.
const FIXED_LEN: usize = 236;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Options of a message that are kept; a message repeats only what did not fit one.
const KEPT_COUNT_MAX: usize = 8;

const PAD: u8 = 0;
const HOST_NAME: u8 = 12;
const REQUESTED_ADDRESS: u8 = 50;
const MESSAGE_TYPE: u8 = 53;
const VENDOR_CLASS: u8 = 60;
const END: u8 = 255;

const KEPT: [u8; 4] = [HOST_NAME, REQUESTED_ADDRESS, MESSAGE_TYPE, VENDOR_CLASS];

const TYPES: [&str; 8] =
    ["discover", "offer", "request", "decline", "ack", "nak", "release", "inform"];

pub(crate) fn begins(payload: &[u8]) -> bool {
    payload.get(FIXED_LEN..FIXED_LEN + 4) == Some(&COOKIE[..])
        && matches!(payload.first(), Some(1 | 2))
}

/// Keeps what a message says, as far as it goes.
pub(crate) fn read(payload: &[u8], names: &mut Names) {
    if let Some(&[a, b, c, d]) = payload.get(16..).and_then(|given| given.first_chunk())
        && [a, b, c, d] != [0; 4]
    {
        detail_text(names, "dhcp.assigned", &Ipv4Addr::from([a, b, c, d]).to_string());
    }
    let mut reader = Reader::new(payload.get(FIXED_LEN + 4..).unwrap_or_default());
    let mut kept = 0;
    while let Some(kind) = reader.u8() {
        if kind == PAD {
            continue;
        }
        kept += usize::from(KEPT.contains(&kind));
        if kept > KEPT_COUNT_MAX {
            return;
        }
        let Some(value) = reader.vector8().filter(|_| kind != END) else {
            return;
        };
        match (kind, value) {
            (MESSAGE_TYPE, &[number]) => {
                let name = usize::from(number).checked_sub(1).and_then(|at| TYPES.get(at));
                if let Some(name) = name {
                    detail_text(names, "dhcp.type", name);
                }
            }
            (HOST_NAME, name) => detail(names, "dhcp.hostname", name),
            (REQUESTED_ADDRESS, &[a, b, c, d]) => {
                detail_text(names, "dhcp.requested", &Ipv4Addr::new(a, b, c, d).to_string());
            }
            (VENDOR_CLASS, class) => detail(names, "dhcp.vendor", class),
            _ => {}
        }
    }
}
