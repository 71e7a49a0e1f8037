//! Voice, video, and how their ends find each other.

use super::payload::{Carrier, Payload, is_random};

pub(super) const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

const STUN_HEADER_LEN: usize = 20;

/// STUN with its cookie (RFC 8489 5); over TCP other messages may follow, and a length may come
/// before (RFC 4571).
pub(super) fn stun(payload: &Payload<'_>) -> Option<bool> {
    let framed = payload.carrier == Carrier::Tcp && payload.has(6, &STUN_COOKIE);
    let at = if framed { 2 } else { 0 };
    let (kind, len) = (payload.u16(at)?, payload.u16(at + 2)?);
    let is_whole = payload.is_len(len, at + STUN_HEADER_LEN) || payload.carrier == Carrier::Tcp;
    Some(kind & 0xc000 == 0 && is_whole && payload.has(at + 4, &STUN_COOKIE))
}

/// STUN without its cookie (RFC 3489 11.1): binding and shared secret, attributes to the end.
pub(super) fn stun_classic(payload: &Payload<'_>) -> Option<bool> {
    let kind = payload.u16(0)?;
    if !matches!(kind, 0x0001 | 0x0101 | 0x0111 | 0x0002 | 0x0102 | 0x0112)
        || !payload.is_len(payload.u16(2)?, STUN_HEADER_LEN)
        || payload.is_zero(4, 16)
    {
        return Some(false);
    }
    let mut at = STUN_HEADER_LEN;
    while at < payload.len {
        let (attribute, len) = (payload.u16(at)?, payload.u16(at + 2)?);
        if !matches!(attribute, 1..=0x1ff | 0x8000..=0xc1ff) {
            return Some(false);
        }
        at += 4 + usize::from(len).next_multiple_of(4);
    }
    Some(at == payload.len)
}

/// The place of an RTP packet (RFC 3550 5.1) in its series: source, and sequence number.
pub(super) fn rtp(payload: &Payload<'_>) -> Option<u64> {
    let [first, second] = payload.array(0)?;
    let sources = usize::from(first & 15);
    // Types 72 to 76 are RTCP's (RFC 5761 4).
    let is_sound =
        !(72..=76).contains(&(second & 0x7f)) && payload.len >= 12 + 4 * sources && sources <= 4;
    let (sequence, source) = (payload.u16(2)?, payload.u32(8)?);
    let is_source = source != 0 && source != u32::MAX;
    (is_sound && is_source).then(|| u64::from(source) << 16 | u64::from(sequence))
}

/// A compound of RTCP (RFC 3550 6.1): a report first, and packets to the end.
pub(super) fn rtcp(payload: &Payload<'_>) -> Option<bool> {
    let (reports, kind) = (payload.u8(0)? & 31, payload.u8(1)?);
    let words = u32::from(payload.u16(2)?);
    let least = if kind == 200 { 6 } else { 1 } + 6 * u32::from(reports);
    if words < least {
        return Some(false);
    }
    let mut at = 0;
    while at < payload.len {
        let head = payload.array::<4>(at)?;
        let [first, kind, high, low] = head;
        // Encrypted and signed, a tag of up to 14 bytes follows (RFC 3711 3.4).
        if first & 0xc0 != 0x80 || !(192..=213).contains(&kind) {
            return Some(at > 0 && payload.len - at <= 20);
        }
        at += 4 + 4 * usize::from(u16::from_be_bytes([high, low]));
    }
    Some(at == payload.len)
}

/// Packets of a transport stream, each with its mark (ISO 13818-1 2.4.3.2).
pub(super) fn mpegts(payload: &Payload<'_>) -> bool {
    let is_marked = |number: usize| payload.u8(188 * number) == Some(0x47);
    payload.len >= 376
        && payload.len.is_multiple_of(188)
        && (0..payload.len.min(940) / 188).all(is_marked)
}

/// The first message of RTMP (5.2.2): version 3, a time, zeros, and random bytes.
pub(super) fn rtmp(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_zero(5, 4) && is_random(payload.from(9).get(..512)?))
}
