//! Messages in the form of DNS (RFC 1035 4.1): DNS, mDNS (RFC 6762), LLMNR (RFC 4795) and `NetBIOS`
//! names (RFC 1002 4.2).

use super::payload::Payload;

const HEADER_LEN: usize = 12;

/// Records of a section, beyond which a message is none.
const RECORD_COUNT_MAX: u16 = 512;

/// Labels of a name: each has at least two bytes of 255.
const LABEL_COUNT_MAX: usize = 127;

/// Ports of messages of the same form and another meaning.
const OTHERS: &[u16] = &[137, 5353, 5355];

/// The end of the name at an offset, and whether all its bytes are those of host names.
fn name(payload: &Payload<'_>, begin: usize) -> Option<(usize, bool)> {
    let mut at = begin;
    let mut is_plain = true;
    for _ in 0..LABEL_COUNT_MAX {
        let len = payload.u8(at)?;
        match len {
            0 => return Some((at + 1, is_plain)),
            1..=63 => {
                let label = payload.from(at + 1).get(..usize::from(len))?;
                is_plain &=
                    label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
                at += 1 + label.len();
            }
            0xc0.. => {
                // A pointer goes back (RFC 1035 4.1.4).
                let target = usize::from(payload.u16(at)? & 0x3fff);
                return (target >= HEADER_LEN && target < at).then_some((at + 2, is_plain));
            }
            _ => return None,
        }
    }
    None
}

/// Where the message's questions end, if its header and they are sound; and whether the names are
/// plain.
fn questions(payload: &Payload<'_>) -> Option<(usize, bool)> {
    let flags = payload.u16(2)?;
    let [questions, answers, authorities, others] =
        [payload.u16(4)?, payload.u16(6)?, payload.u16(8)?, payload.u16(10)?];
    let is_response = flags & 0x8000 != 0;
    let opcode = flags >> 11 & 15;
    let is_sound = matches!(opcode, 0 | 2 | 4 | 5 | 6)
        && questions <= 32
        && answers.max(authorities).max(others) <= RECORD_COUNT_MAX
        && (is_response || questions > 0 || answers > 0 || authorities > 0)
        && (questions > 0 || answers > 0 || is_response);
    if !is_sound {
        return None;
    }
    let mut at = HEADER_LEN;
    let mut is_plain = true;
    for _ in 0..questions {
        let (after, plain) = name(payload, at)?;
        let class = payload.u16(after + 2)? & 0x7fff;
        if !matches!(class, 1 | 3 | 4 | 254 | 255) || payload.u16(after)? == 0 {
            return None;
        }
        is_plain &= plain;
        at = after + 4;
    }
    Some((at, is_plain))
}

/// A message, on a port that says so.
pub(super) fn on_port(payload: &Payload<'_>) -> Option<bool> {
    let (end, _) = questions(payload)?;
    let records = u32::from(payload.u16(6)?) + u32::from(payload.u16(8)?);
    // Without records nothing may follow the questions, but padding or an OPT record.
    let is_whole = records > 0 || payload.u16(10)? > 0 || payload.len == end;
    Some(is_whole && payload.len >= end)
}

/// A message on any other port: one plain question, and records only where the counts say so.
pub(super) fn anywhere(payload: &Payload<'_>) -> Option<bool> {
    let flags = payload.u16(2)?;
    let is_response = flags & 0x8000 != 0;
    let (end, is_plain) = questions(payload)?;
    let answers = payload.u16(6)?;
    let others = payload.u16(8)?.saturating_add(payload.u16(10)?);
    let kind = payload.u16(end.checked_sub(4)?)?;
    let is_first_sound = answers == 0 || record(payload, end)?;
    let is_alone = answers == 0 && others == 0;
    Some(
        payload.u16(4)? == 1
            && flags & 0x7840 == 0
            && is_plain
            && end > HEADER_LEN + 5
            && answers <= 64
            && (is_response || answers == 0 && flags.trailing_zeros() >= 4)
            && (1..=260).contains(&kind)
            && is_alone == (payload.len == end)
            && is_first_sound
            && !payload.is_on(OTHERS),
    )
}

/// Whether a record stands at an offset.
fn record(payload: &Payload<'_>, at: usize) -> Option<bool> {
    let (after, _) = name(payload, at)?;
    let len = usize::from(payload.u16(after + 8)?);
    Some(payload.u16(after + 2)? & 0x7fff == 1 && after + 10 + len <= payload.len)
}

/// A message after its length (RFC 1035 4.2.2), whole or, where segments cut it, its beginning.
pub(super) fn over_tcp(payload: &Payload<'_>) -> Option<bool> {
    let len = payload.u16(0)?;
    let message =
        Payload { bytes: payload.bytes.get(2..)?, len: payload.len.checked_sub(2)?, ..*payload };
    let is_sound = if payload.is_on(&[53, 5355]) { on_port(&message) } else { anywhere(&message) };
    Some(is_sound? && payload.reaches_end(len, 2))
}

/// A name of 16 bytes, each in two letters (RFC 1001 14.1), asked for or answered.
pub(super) fn netbios(payload: &Payload<'_>) -> Option<bool> {
    let encoded = payload.from(13).get(..32)?;
    let is_name = encoded.iter().all(|byte| (b'A'..=b'P').contains(byte));
    let (after, _) = name(payload, HEADER_LEN)?;
    let is_kind = matches!(payload.u16(after)?, 0x20 | 0x21 | 0x0a);
    Some(is_name && payload.u8(12)? == 32 && is_kind && payload.u16(after + 2)? == 1)
}

/// A datagram of the `NetBIOS` datagram service (RFC 1002 4.4).
pub(super) fn netbios_datagram(payload: &Payload<'_>) -> Option<bool> {
    let len = payload.u16(10)?;
    let encoded = payload.from(15).get(..32)?;
    let is_name = encoded.iter().all(|byte| (b'A'..=b'P').contains(byte));
    Some(payload.is_len(len, 14) && payload.u8(14)? == 32 && is_name)
}
