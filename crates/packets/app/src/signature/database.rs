//! Databases and what else programs speak to each other.

use super::payload::{Payload, contains};

/// The greeting of `MySQL`'s protocol 10: length, number 0, version as text.
pub(super) fn mysql_greeting(payload: &Payload<'_>) -> Option<bool> {
    let [low, middle, high] = payload.array(0)?;
    let len = u32::from_le_bytes([low, middle, high, 0]);
    let version = payload.from(5).split(|&byte| byte == 0).next()?;
    let is_version = version.first()?.is_ascii_digit()
        && version.contains(&b'.')
        && version.len() < 64
        && version.iter().all(|&byte| byte.is_ascii_graphic() || byte == b' ');
    Some(is_version && payload.reaches_end(len, 4))
}

/// An error instead of the greeting: its code of four digits, and text.
pub(super) fn mysql_refusal(payload: &Payload<'_>) -> Option<bool> {
    let [low, middle, high] = payload.array(0)?;
    let len = u32::from_le_bytes([low, middle, high, 0]);
    let code = payload.u16_le(5)?;
    let text = payload.from(7);
    let is_text = text.len() > 5 && text.iter().all(|&byte| (b' '..0x7f).contains(&byte));
    Some((1000..5000).contains(&code) && payload.is_len(len, 4) && is_text)
}

/// What a client of `PostgreSQL` begins with (Message Formats): a wish for TLS or GSSAPI, a wish to
/// cancel, or the parameters of a session.
pub(super) fn postgresql(payload: &Payload<'_>) -> Option<bool> {
    let (len, code) = (payload.u32(0)?, payload.u32(4)?);
    Some(match code {
        80_877_103 | 80_877_104 => len == 8 && payload.len == 8,
        80_877_102 => len == 16 && payload.len == 16,
        0x0003_0000 => {
            let name = payload.from(8);
            payload.is_len(len, 0)
                && name.first().is_some_and(u8::is_ascii_lowercase)
                && (contains(name, b"user\0") || contains(name, b"database\0"))
        }
        _ => false,
    })
}

/// Messages of a server: authentication or an error, each with its length.
pub(super) fn postgresql_answer(payload: &Payload<'_>) -> Option<bool> {
    let len = payload.u32(1)?;
    Some(match payload.u8(0)? {
        b'R' => (8..=64).contains(&len) && payload.u32(5)? <= 12,
        b'E' => payload.u8(5)? == b'S' && payload.reaches_end(len, 1),
        _ => false,
    })
}

/// A packet of TDS (MS-TDS 2.2.3.1): its status, length, window 0.
fn tds(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u8(1)? <= 0x1f && payload.reaches_end(payload.u16(2)?, 0) && payload.u8(7)? == 0)
}

/// The first packet, or its answer: options with their offsets, the version first.
pub(super) fn tds_prelogin(payload: &Payload<'_>) -> Option<bool> {
    let [token, high, low, len_high, len_low] = payload.array(8)?;
    let offset = u16::from_be_bytes([high, low]);
    let is_version = token == 0 && [len_high, len_low] == [0, 6] && (6..=64).contains(&offset);
    Some(tds(payload)? && is_version && offset % 5 == 1)
}

pub(super) fn tds_packet(payload: &Payload<'_>) -> Option<bool> {
    Some(tds(payload)? && payload.u16(4)? <= 0x7fff)
}

/// A login of TDS 7: its own length and version.
pub(super) fn tds_login(payload: &Payload<'_>) -> Option<bool> {
    let version = payload.array::<4>(12)?;
    let is_version = matches!(version, [_, 0, 0, 0x70..=0x7f]) || version == [4, 0, 0, 0x74];
    Some(tds(payload)? && is_version)
}

/// Packets of Oracle's TNS: length, no checksum, kind.
pub(super) fn tns(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_len(payload.u16(0)?, 0) && payload.is_zero(2, 2) && payload.is_zero(6, 2))
}

/// One that connects, with the words that describe the service.
pub(super) fn tns_connect(payload: &Payload<'_>) -> Option<bool> {
    Some(tns(payload)? && contains(payload.seen(), b"(CONNECT_DATA="))
}

/// A message of `MongoDB`: length and a code in use.
pub(super) fn mongodb(payload: &Payload<'_>) -> Option<bool> {
    let code = payload.u32_le(12)?;
    let is_query = code == 2004 && payload.u32_le(16)? & !0xff == 0;
    let is_message = code == 2013 && payload.u32_le(16)? & !0x0001_0003 == 0;
    let is_answer = code == 1 && payload.u32_le(16)? & !0x0f == 0;
    Some((is_query || is_message || is_answer) && payload.reaches_end(payload.u32_le(0)?, 0))
}

/// A command of Redis as an array of strings (RESP).
pub(super) fn redis(payload: &Payload<'_>) -> Option<bool> {
    let mut lines = payload.seen().splitn(3, |&byte| byte == b'\n');
    let count = number(lines.next()?, b'*')?;
    let len = number(lines.next()?, b'$')?;
    let word = lines.next()?.first()?;
    Some((1..=1024).contains(&count) && (1..=64).contains(&len) && word.is_ascii_alphabetic())
}

fn number(line: &[u8], mark: u8) -> Option<u32> {
    let digits = line.strip_prefix(&[mark])?.strip_suffix(b"\r")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// What answers of Redis look like.
pub(super) fn redis_answer(payload: &Payload<'_>) -> Option<bool> {
    let line = payload.seen().split(|&byte| byte == b'\n').next()?;
    Some(match *line.first()? {
        b'+' => line == b"+OK\r" || line == b"+PONG\r" || line == b"+QUEUED\r",
        b'-' => line.starts_with(b"-ERR ") || line.starts_with(b"-NOAUTH "),
        mark @ (b':' | b'$' | b'*') => number(line, mark).is_some(),
        _ => false,
    })
}

/// A strict message of Thrift: version 1, kind, the length of a method's name and the name.
pub(super) fn thrift(payload: &Payload<'_>) -> Option<bool> {
    let at = if payload.has(0, &[0x80, 1]) { 0 } else { 4 };
    let kind = payload.array::<4>(at)?;
    let len = usize::try_from(payload.u32(at + 4)?).ok()?;
    let name = payload.from(at + 8).get(..len)?;
    let is_name = (1..=128).contains(&len)
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(byte));
    let is_framed = at == 0 || payload.reaches_end(payload.u32(0)?, 4);
    Some(matches!(kind, [0x80, 1, 0, 1..=4]) && is_name && is_framed)
}

/// A method of AMQP 0-9-1 or a performative of 1.0 comes only after the header, which is plain.
pub(super) fn amqp(payload: &Payload<'_>) -> Option<bool> {
    let version = payload.array::<4>(4)?;
    let is_version =
        matches!(version, [0, 0, 9, 1] | [0 | 2 | 3, 1, 0, 0] | [1, 1, 0, 9 | 10] | [1, 1, 8, 0]);
    Some(is_version && payload.len == 8)
}

/// A message between nodes of Elasticsearch: its length.
pub(super) fn elasticsearch(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.reaches_end(payload.u32(2)?, 6))
}

/// The header of Zabbix: flags and length.
pub(super) fn zabbix(payload: &Payload<'_>) -> Option<bool> {
    Some((1..=7).contains(&payload.u8(4)?) && payload.reaches_end(payload.u32_le(5)?, 13))
}

/// A PDU of SMPP: length, command, and a status that is 0 in requests.
pub(super) fn smpp(payload: &Payload<'_>) -> Option<bool> {
    let command = payload.u32(4)?;
    let is_known = matches!(command & 0x7fff_ffff, 0..=9 | 0x0b | 0x15 | 0x21 | 0x102 | 0x103);
    let is_request = command & 0x8000_0000 == 0 && command != 0;
    Some(
        is_known
            && payload.reaches_end(payload.u32(0)?, 0)
            && payload.u32(0)? >= 16
            && if is_request { payload.is_zero(8, 4) } else { payload.u32(8)? < 0x500 },
    )
}

/// A message of Bitcoin: the command is letters, filled up with zeros.
pub(super) fn bitcoin(payload: &Payload<'_>) -> Option<bool> {
    let command = payload.array::<12>(4)?;
    let letters = command
        .iter()
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        .count();
    Some(letters >= 2 && command.get(letters..)?.iter().all(|&byte| byte == 0))
}
