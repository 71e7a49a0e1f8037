//! Protocols of plants and buildings.

use super::payload::Payload;

/// Modbus/TCP (Messaging on TCP/IP Implementation Guide 3.1): one or more messages to the end.
pub(super) fn modbus(payload: &Payload<'_>) -> Option<bool> {
    let mut at = 0;
    while at < payload.len {
        let (protocol, len) = (payload.u16(at + 2)?, usize::from(payload.u16(at + 4)?));
        if protocol != 0 || !modbus_unit(payload, at + 7, len.checked_sub(1)?)? {
            return Some(false);
        }
        at += 6 + len;
    }
    Some(at == payload.len)
}

/// A function and as many bytes as it takes or gives (Application Protocol Specification 6); `len`
/// is that of both.
fn modbus_unit(payload: &Payload<'_>, at: usize, len: usize) -> Option<bool> {
    let function = payload.u8(at)?;
    let counted = |at: usize, around: usize| {
        payload.u8(at).is_some_and(|count| len == usize::from(count) + around)
    };
    Some(match function {
        1..=4 => len == 5 || counted(at + 1, 2),
        5 | 6 | 8 => len == 5,
        7 => len <= 2,
        11 => len == 1 || len == 5,
        15 | 16 => len == 5 || counted(at + 5, 6),
        12 | 17 | 20 | 21 => len == 1 || counted(at + 1, 2),
        22 => len == 7,
        23 => counted(at + 1, 2) || counted(at + 9, 10),
        24 => len == 3 || payload.u16(at + 1).is_some_and(|count| len == usize::from(count) + 3),
        43 => payload.u8(at + 1)? == 14 && len >= 4,
        90 | 100 => len >= 2 && payload.is_on(&[502]),
        0x81..=0xff => len == 2 && payload.u8(at + 1)? <= 11,
        _ => false,
    })
}

/// CRC of DNP3's link layer (IEEE 1815): polynomial 0x3d65, reflected, inverted.
fn dnp3_checksum(bytes: &[u8]) -> u16 {
    let all =
        bytes.iter().fold(0_u16, |crc, &byte| {
            (0..8).fold(crc ^ u16::from(byte), |crc, _| {
                if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xa6bc }
            })
        });
    !all
}

pub(super) fn dnp3(payload: &Payload<'_>) -> Option<bool> {
    let header = payload.array::<8>(0)?;
    Some(payload.u8(2)? >= 5 && payload.u16_le(8)? == dnp3_checksum(&header))
}

/// TPKT (RFC 1006 6): version 3 and its length.
pub(super) fn tpkt(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.reaches_end(payload.u16(2)?, 0) && payload.u16(2)? >= 7)
}

/// A COTP request or answer of a session (X.224 13.3) that has RDP's negotiation in it (MS-RDPBCGR
/// 2.2.1.1), or the cookie.
pub(super) fn rdp(payload: &Payload<'_>) -> Option<bool> {
    let is_connect = matches!(payload.u8(5)?, 0xe0 | 0xd0);
    let variable = payload.from(11);
    let has_cookie = variable.starts_with(b"Cookie: ");
    let end = usize::from(payload.u16(2)?);
    let negotiation = payload.from(end.checked_sub(8)?);
    let has_negotiation = matches!(negotiation, [1..=3, _, 8, 0, _, 0, 0, 0, ..]) && end >= 19;
    Some(is_connect && tpkt(payload)? && (has_cookie || has_negotiation))
}

/// A COTP request or answer without parameters, as old RDP clients send it.
pub(super) fn cotp_bare(payload: &Payload<'_>) -> Option<bool> {
    Some(tpkt(payload)? && payload.len == 11 && matches!(payload.u8(5)?, 0xe0 | 0xd0))
}

/// S7 within a data unit of COTP: its mark, and the kind of message; or S7-plus and its version.
pub(super) fn s7comm(payload: &Payload<'_>) -> Option<bool> {
    let is_message = matches!(payload.array(7)?, [0x32, 1 | 2 | 3 | 7] | [0x72, 1..=3]);
    Some(tpkt(payload)? && is_message)
}

/// A COTP request or answer with the parameters that name transport selectors, on S7's port.
pub(super) fn cotp_selectors(payload: &Payload<'_>) -> Option<bool> {
    let is_connect = matches!(payload.u8(5)?, 0xe0 | 0xd0);
    Some(is_connect && tpkt(payload)? && matches!(payload.u8(11)?, 0xc0..=0xc2))
}

/// Call signalling of H.225.0 in a Q.931 message: call reference of two bytes, and a message kind.
pub(super) fn h323(payload: &Payload<'_>) -> Option<bool> {
    let kind = payload.u8(8)?;
    Some(tpkt(payload)? && payload.u8(5)? == 2 && matches!(kind, 1..=7 | 0x45 | 0x4d | 0x5a..=0x7d))
}

/// A frame of IEC 60870-5-104: without information it has four bytes of control.
pub(super) fn iec104(payload: &Payload<'_>) -> Option<bool> {
    let control = payload.array::<4>(2)?;
    Some(matches!(control, [0x07 | 0x0b | 0x13 | 0x23 | 0x43 | 0x83, 0, 0, 0]))
}

/// Frames of the same, of any kind, to the end.
pub(super) fn iec104_frames(payload: &Payload<'_>) -> Option<bool> {
    let mut at = 0;
    while at < payload.len {
        let len = payload.u8(at + 1)?;
        if payload.u8(at)? != 0x68 || !(4..=253).contains(&len) {
            return Some(false);
        }
        at += 2 + usize::from(len);
    }
    Some(at == payload.len)
}

/// The encapsulation header of EtherNet/IP: a known command, length, no status, no options.
pub(super) fn enip(payload: &Payload<'_>) -> Option<bool> {
    let command = payload.u16_le(0)?;
    let is_known = matches!(command, 0x04 | 0x63..=0x66 | 0x6f | 0x70);
    let is_plain = payload.is_zero(8, 4) && payload.is_zero(20, 4);
    Some(is_known && is_plain && payload.is_len(payload.u16_le(2)?, 24))
}

/// `BACnet` virtual link control (ASHRAE 135, Annex J.2): function and length.
pub(super) fn bacnet(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u8(1)? <= 0x0c && payload.is_len(payload.u16(2)?, 0))
}

/// A message of OPC UA: its length after three letters and how it goes on.
pub(super) fn opcua(payload: &Payload<'_>) -> Option<bool> {
    const KINDS: [&[u8; 3]; 6] = [b"HEL", b"ACK", b"OPN", b"MSG", b"CLO", b"ERR"];
    let kind = payload.array::<3>(0)?;
    let len = payload.u32_le(4)?;
    Some(
        KINDS.contains(&&kind)
            && matches!(payload.u8(3)?, b'F' | b'C' | b'A')
            && payload.reaches_end(len, 0),
    )
}

/// SOME/IP: length, protocol version 1, message kind and return code.
pub(super) fn someip(payload: &Payload<'_>) -> Option<bool> {
    let [version, _, kind, code] = payload.array(12)?;
    let is_kind = matches!(kind, 0 | 1 | 2 | 0x80 | 0x81);
    Some(payload.is_len(payload.u32(4)?, 8) && version == 1 && is_kind && code <= 0x0f)
}
