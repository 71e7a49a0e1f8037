//! Private networks and proxies.

use super::payload::{Carrier, Payload, is_random};

/// A first packet of `WireGuard` (Protocol and Cryptography 5.4.2): the second MAC is zero until a
/// cookie was given, and keys have few zeros.
pub(super) fn wireguard_first(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_zero(132, 16) && is_random(payload.from(8).get(..108)?))
}

/// Its answer.
pub(super) fn wireguard_answer(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_zero(76, 16) && is_random(payload.from(12).get(..48)?))
}

pub(super) fn wireguard_data(payload: &Payload<'_>) -> bool {
    payload.len.is_multiple_of(16) && payload.is_zero(13, 3)
}

/// Where the message begins: over TCP after its length.
fn openvpn_start(payload: &Payload<'_>) -> Option<usize> {
    match payload.carrier {
        Carrier::Udp => Some(0),
        Carrier::Tcp => payload.reaches_end(payload.u16(0)?, 2).then_some(2),
    }
}

/// Bytes of the checks that may stand between session id and packet number (`--tls-auth`): none,
/// or MD5 to SHA-512 with packet number and time.
const OPENVPN_CHECKS: [usize; 6] = [0, 16 + 8, 20 + 8, 28 + 8, 32 + 8, 64 + 8];

/// A client's first packet: no acknowledgement and packet number 0 after the session id.
pub(super) fn openvpn_client(payload: &Payload<'_>) -> Option<bool> {
    let start = openvpn_start(payload)?;
    let opcode = payload.u8(start)?;
    let is_plain = OPENVPN_CHECKS.iter().any(|&check| {
        let at = start + 9 + check;
        payload.len == at + 5 && payload.is_zero(at, 5) && !payload.is_zero(start + 1, 8)
    });
    Some(matches!(opcode, 0x38 | 0x50) && is_plain)
}

/// A server's first packet: one acknowledgement, of packet 0, and the client's session id.
pub(super) fn openvpn_server(payload: &Payload<'_>) -> Option<bool> {
    let start = openvpn_start(payload)?;
    let is_plain = OPENVPN_CHECKS.iter().any(|&check| {
        let at = start + 9 + check;
        payload.len == at + 17
            && payload.has(at, &[1, 0, 0, 0, 0])
            && payload.is_zero(at + 13, 4)
            && !payload.is_zero(start + 1, 8)
    });
    Some(payload.u8(start)? == 0x40 && is_plain)
}

/// A header of IKE (RFC 7296 3.1, RFC 2408 3.1) at a place: version, exchange, length.
fn ike_at(payload: &Payload<'_>, at: usize) -> Option<bool> {
    let [next, version, exchange, flags] = payload.array(at + 16)?;
    let is_version = match version {
        0x10 => matches!(exchange, 1..=6 | 32 | 33) && flags & !0x07 == 0,
        0x20 => matches!(exchange, 34..=38 | 43..=44) && flags & !0x38 == 0,
        _ => false,
    };
    Some(
        is_version
            && next <= 54
            && !payload.is_zero(at, 8)
            && payload.is_len(payload.u32(at + 24)?, at),
    )
}

pub(super) fn ike(payload: &Payload<'_>) -> Option<bool> {
    ike_at(payload, 0)
}

/// The same between four zeros that distinguish it from ESP (RFC 3948 2.2).
pub(super) fn ike_behind_nat(payload: &Payload<'_>) -> Option<bool> {
    ike_at(payload, 4)
}

/// L2TP control (RFC 2661 3.1): flags, version and length.
pub(super) fn l2tp(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_len(payload.u16(2)?, 0))
}

/// The greeting of SOCKS 5 (RFC 1928 3): as many methods as it says.
pub(super) fn socks5(payload: &Payload<'_>) -> Option<bool> {
    let count = payload.u8(1)?;
    let methods = payload.from(2).get(..usize::from(count))?;
    let is_known = methods.iter().all(|&method| method <= 9 || method >= 0x80);
    Some((1..=16).contains(&count) && payload.is_len(count, 2) && is_known)
}

pub(super) fn socks5_answer(payload: &Payload<'_>) -> Option<bool> {
    Some(matches!(payload.u8(1)?, 0..=9 | 0xff))
}

/// A wish of SOCKS 4: port, address, and a name that ends the payload.
pub(super) fn socks4(payload: &Payload<'_>) -> Option<bool> {
    let rest = payload.from(8);
    let name_len = rest.iter().position(|&byte| byte == 0)?;
    let is_name = rest.get(..name_len)?.iter().all(u8::is_ascii_graphic);
    Some(is_name && payload.u16(2)? != 0 && rest.last() == Some(&0))
}

/// Its answer.
pub(super) fn socks4_answer(payload: &Payload<'_>) -> Option<bool> {
    Some((90..=93).contains(&payload.u8(1)?))
}

/// GTP version 1 (TS 29.060 6), GTP' (TS 32.295 6.1.1) or version 0: length behind a header of 8, 6
/// or 20 bytes.
pub(super) fn gtp1(payload: &Payload<'_>) -> Option<bool> {
    let (flags, len) = (payload.u8(0)?, payload.u16(2)?);
    Some(match (flags >> 5, flags & 0x10 != 0) {
        // Where one of three flags is set, four more bytes belong to the length.
        (1, true) => payload.is_len(len, 8) && (flags.trailing_zeros() >= 3 || len >= 4),
        (0 | 1, false) => payload.is_len(len, 6) || payload.is_len(len, 20),
        _ => payload.is_len(len, 20),
    })
}

/// GTP version 2 (TS 29.274 5.1).
pub(super) fn gtp2(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_len(payload.u16(2)?, 4))
}
