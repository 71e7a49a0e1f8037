//! TLS records (RFC 8446 5.1), SSL 2 hellos (RFC 5246 E.2), DTLS (RFC 9147 4) and QUIC (RFC 9000
//! 17.2).

use super::payload::{Carrier, Payload};

/// 2^14 and what old versions allowed on top.
const RECORD_LEN_MAX: u16 = (1 << 14) + 2048;

const HANDSHAKE: u8 = 22;

struct Record {
    kind: u8,
    len: u16,
}

fn record(payload: &Payload<'_>, at: usize) -> Option<Record> {
    let [kind, major, minor, high, low] = payload.array(at)?;
    let len = u16::from_be_bytes([high, low]);
    let is_one = (20..=24).contains(&kind)
        && major == 3
        && minor <= 4
        && (1..=RECORD_LEN_MAX).contains(&len);
    is_one.then_some(Record { kind, len })
}

/// A hello, or any other message of a handshake that has its length.
pub(super) fn handshake(payload: &Payload<'_>) -> Option<bool> {
    let first = record(payload, 0)?;
    let (kind, len) = (payload.u8(5)?, payload.u24(6)?);
    let is_version = payload.has(9, &[3]) && payload.u8(10)? <= 4;
    Some(first.kind == HANDSHAKE && matches!(kind, 1 | 2) && len < 1 << 17 && is_version)
}

/// Records one after the other to the very end.
pub(super) fn records(payload: &Payload<'_>) -> Option<bool> {
    let mut at = 0;
    while at < payload.len {
        at += 5 + usize::from(record(payload, at)?.len);
    }
    Some(at == payload.len)
}

/// The beginning of a record that goes on in the next segment.
pub(super) fn part_of_record(payload: &Payload<'_>) -> Option<bool> {
    let first = record(payload, 0)?;
    Some(5 + usize::from(first.len) > payload.len && payload.len > 100)
}

/// A version 2 hello, which offers version 3 or later, too, or a version 2 server's.
pub(super) fn version_2_hello(payload: &Payload<'_>) -> Option<bool> {
    let len = payload.u16(0)? & 0x7fff;
    let kind = payload.u8(2)?;
    let version = payload.u16(3)?;
    let (specs, session, challenge) = (payload.u16(5)?, payload.u16(7)?, payload.u16(9)?);
    let is_sum = usize::from(specs) + usize::from(session) + usize::from(challenge) + 9;
    Some(
        kind == 1
            && (version == 2 || (0x0300..=0x0303).contains(&version))
            && payload.is_len(len, 2)
            && payload.is_len(is_sum, 2)
            && specs > 0
            && specs % 3 == 0,
    )
}

/// One or more DTLS records to the very end.
pub(super) fn dtls(payload: &Payload<'_>) -> Option<bool> {
    let mut at = 0;
    while at < payload.len {
        let [kind, major, minor] = payload.array(at)?;
        let is_version = matches!((major, minor), (0xfe, 0xff | 0xfd | 0xfc) | (1, 0));
        let epoch = payload.u16(at + 3)?;
        let len = payload.u16(at + 11)?;
        if !(20..=26).contains(&kind) || !is_version || epoch > 64 || len == 0 {
            return Some(false);
        }
        // Handshakes have their own length.
        if kind == HANDSHAKE && epoch == 0 && payload.u24(at + 22)? > u32::from(len) {
            return Some(false);
        }
        at += 13 + usize::from(len);
    }
    Some(at == payload.len && payload.carrier == Carrier::Udp)
}

/// A long header of a version that is known.
pub(super) fn quic(payload: &Payload<'_>) -> Option<bool> {
    let version = payload.u32(1)?;
    // Versions 1 and 2, drafts, Facebook's; Google's from Q046 on, Q0nn and T05n.
    let is_known = matches!(
        version,
        1 | 0x6b33_43cf
            | 0x709a_50c4
            | 0xff00_0000..=0xff00_0022
            | 0xface_b000..=0xface_b00f
            | 0x5130_3436..=0x5130_3539
            | 0x5430_3530..=0x5430_3531
    );
    let destination = usize::from(payload.u8(5)?);
    if matches!(version, 0x5130_3436..=0x5130_3439) {
        return Some(is_known); // Both lengths in a byte.
    }
    let source = usize::from(payload.u8(6 + destination)?);
    Some(is_known && destination <= 20 && source <= 20)
}

/// A first packet of an unknown version, as it is sent to provoke negotiation (RFC 9000
/// 15): its length is that of the datagram.
pub(super) fn quic_unknown(payload: &Payload<'_>) -> Option<bool> {
    let version = payload.u32(1)?;
    let destination = usize::from(payload.u8(5)?);
    let source = usize::from(payload.u8(6 + destination)?);
    let at = 7 + destination + source;
    // A token may be there, and the length takes two bytes (RFC 9000 16).
    let at = at + 1 + usize::from(payload.u8(at)? & 0x3f);
    let len = payload.u16(at)? & 0x3fff;
    Some(
        version & 0x0f0f_0f0f == 0x0a0a_0a0a
            && destination <= 20
            && source <= 20
            && payload.u8(at)? >> 6 == 1
            && payload.is_len(len, at + 2),
    )
}

/// Version negotiation: as many versions as fill the packet.
pub(super) fn quic_negotiation(payload: &Payload<'_>) -> Option<bool> {
    let destination = usize::from(payload.u8(5)?);
    let source = usize::from(payload.u8(6 + destination)?);
    let versions = payload.len.checked_sub(7 + destination + source)?;
    let first = payload.u32(7 + destination + source)?;
    let is_plausible = first == 1
        || first & 0x0f0f_0f0f == 0x0a0a_0a0a
        || first >> 16 == 0xff00
        || first >> 24 == 0x51;
    Some(destination <= 20 && source <= 20 && versions % 4 == 0 && is_plausible)
}

/// Google's versions up to Q043: flags, connection id, version, packet number.
pub(super) fn gquic(payload: &Payload<'_>) -> Option<bool> {
    let [q, digits @ ..] = payload.array::<4>(9)?;
    Some(q == b'Q' && digits.iter().all(u8::is_ascii_digit) && digits.first() == Some(&b'0'))
}

/// A server's answer in Google's versions, in the clear, whose tags are in order.
pub(super) fn gquic_rejection(payload: &Payload<'_>) -> Option<bool> {
    let start = payload.from(0).get(..64)?;
    let tag = start.windows(4).position(|window| window == b"REJ\0")?;
    Some(start.get(tag + 8..)?.starts_with(b"STK\0"))
}
