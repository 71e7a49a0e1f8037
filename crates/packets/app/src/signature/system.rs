//! What hosts say to their surroundings: addresses, time, files, calls, routes.

use super::payload::{Carrier, Payload, contains};

/// SMB behind its length (MS-SMB2 2.1).
pub(super) fn smb(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u24(1)? >= 32 && matches!(payload.u8(4)?, 0xfc..=0xff))
}

/// A request for a `NetBIOS` session (RFC 1002 4.3.2): two names.
pub(super) fn netbios_session(payload: &Payload<'_>) -> Option<bool> {
    let called = payload.from(5).get(..32)?;
    let is_name = called.iter().all(|byte| (b'A'..=b'P').contains(byte));
    Some(payload.reaches_end(payload.u16(2)?, 4) && payload.u8(4)? == 32 && is_name)
}

/// The cookie behind the fixed part (RFC 2131 3).
pub(super) fn dhcp(payload: &Payload<'_>) -> bool {
    payload.has(236, &[0x63, 0x82, 0x53, 0x63])
}

/// BOOTP (RFC 951 3), or DHCP of which the cookie was cut away: few relays, and flags of which one
/// is in use (RFC 1542 2.2).
pub(super) fn bootp(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u8(3)? <= 16 && matches!(payload.u16(10)?, 0 | 0x8000))
}

/// `DHCPv6` (RFC 8415 8): options to the end; a relay's header is longer.
pub(super) fn dhcpv6(payload: &Payload<'_>) -> Option<bool> {
    let kind = payload.u8(0)?;
    let mut at = if matches!(kind, 12 | 13) { 34 } else { 4 };
    while at < payload.len {
        at += 4 + usize::from(payload.u16(at + 2)?);
    }
    Some((1..=36).contains(&kind) && at == payload.len)
}

/// NTP (RFC 5905 7.3): version, mode, stratum, polling interval, and a way to the reference clock
/// that is no nonsense.
pub(super) fn ntp(payload: &Payload<'_>) -> Option<bool> {
    let [first, stratum, poll] = payload.array(0)?;
    let is_sound = match first & 7 {
        1..=5 => {
            let (delay, dispersion) = (payload.u16(4)?, payload.u16(8)?);
            let is_near = !(16..=0xfff0).contains(&delay) && dispersion < 32;
            let has_len = payload.len >= 48 && payload.len.is_multiple_of(4);
            stratum <= 16 && (poll <= 17 || poll > 0xf0) && is_near && has_len
        }
        // Control messages (RFC 9327 2) have the length of their data.
        6 => 12 + usize::from(payload.u16(10)?).next_multiple_of(4) == payload.len,
        // What ntpdc and xntpd say to each other: nothing, or items of a size.
        7 => {
            let (count, size) = (payload.u16(4)? & 0x0fff, payload.u16(6)? & 0x0fff);
            poll <= 3
                && usize::from(count) * usize::from(size) + 8 <= payload.len.min(508)
                && size < 500
        }
        _ => false,
    };
    Some((1..=4).contains(&(first >> 3 & 7)) && is_sound)
}

/// RADIUS (RFC 2865 3): length, and attributes to it.
pub(super) fn radius(payload: &Payload<'_>) -> Option<bool> {
    let end = usize::from(payload.u16(2)?);
    let mut at = 20;
    while at < end {
        let len = payload.u8(at + 1)?;
        if len < 2 || payload.u8(at)? == 0 {
            return Some(false);
        }
        at += usize::from(len);
    }
    Some(at == end && end == payload.len)
}

/// Diameter (RFC 6733 3): length, flags, a command and an application of those in use.
pub(super) fn diameter(payload: &Payload<'_>) -> Option<bool> {
    let (len, flags) = (payload.u24(1)?, payload.u8(4)?);
    let (command, application) = (payload.u24(5)?, payload.u32(8)?);
    let is_command = matches!(command, 257..=330 | 8_388_600..=8_388_750);
    let is_application = application <= 16 || application >> 24 == 1 || application == u32::MAX;
    Some(
        flags.trailing_zeros() >= 4
            && len % 4 == 0
            && len >= 20
            && is_command
            && is_application
            && payload.reaches_end(len, 0),
    )
}

/// A call or reply of ONC RPC (RFC 5531 9) at a place: version 2, and a program of the assigned
/// range; a reply that is accepted or denied.
fn rpc_at(payload: &Payload<'_>, at: usize) -> Option<bool> {
    Some(match payload.u32(at + 4)? {
        0 => {
            let (version, program) = (payload.u32(at + 8)?, payload.u32(at + 12)?);
            version == 2 && (100_000..400_000).contains(&program) && payload.u32(at + 16)? <= 16
        }
        _ => false,
    })
}

pub(super) fn rpc(payload: &Payload<'_>) -> Option<bool> {
    match payload.carrier {
        Carrier::Udp => rpc_at(payload, 0),
        // The mark of a record and its length come first (RFC 5531 11).
        Carrier::Tcp => {
            Some(payload.u8(0)? & 0x80 != 0 && payload.u24(1)? >= 24 && rpc_at(payload, 4)?)
        }
    }
}

/// A reply: accepted, a verifier without flavour, success or an error.
pub(super) fn rpc_reply(payload: &Payload<'_>) -> Option<bool> {
    let at = if payload.carrier == Carrier::Tcp { 4 } else { 0 };
    let [kind, state, flavour] =
        [payload.u32(at + 4)?, payload.u32(at + 8)?, payload.u32(at + 12)?];
    Some(kind == 1 && state <= 1 && flavour <= 6)
}

/// DCE/RPC 5 over a connection (C706 12.6): kind, data representation, length of the fragment.
pub(super) fn dcerpc(payload: &Payload<'_>) -> Option<bool> {
    let representation = payload.array::<4>(4)?;
    let is_little = matches!(representation, [0x10, 0, 0, 0]);
    let len = if is_little { payload.u16_le(8)? } else { payload.u16(8)? };
    let is_kind = matches!(payload.u8(2)?, 0 | 2 | 3 | 11..=19);
    let is_sound = is_little || representation == [0; 4];
    Some(is_kind && is_sound && len >= 16 && usize::from(len) <= payload.len.max(4280))
}

/// The same over datagrams (C706 12.5): kind, flags, representation, and a length that fits.
pub(super) fn dcerpc_datagram(payload: &Payload<'_>) -> Option<bool> {
    let [_, kind, first, second, integer, float, 0, _] = payload.array(0)? else {
        return Some(false);
    };
    let len = if integer == 0x10 { payload.u16_le(74)? } else { payload.u16(74)? };
    let is_sound =
        kind <= 10 && first & 0x81 == 0 && second & 0xfd == 0 && matches!(integer, 0 | 0x10);
    Some(is_sound && float <= 3 && payload.is_len(len, 80))
}

/// A message of BGP (RFC 4271 4.1): length and kind after the marker.
pub(super) fn bgp(payload: &Payload<'_>) -> Option<bool> {
    Some((19..=4096).contains(&payload.u16(16)?) && matches!(payload.u8(18)?, 1..=5))
}

/// MQTT's first packet: the name of the protocol after the remaining length.
pub(super) fn mqtt_connect(payload: &Payload<'_>) -> Option<bool> {
    let at = 1 + remaining(payload)?.1;
    Some(payload.has(at, b"\0\x04MQTT") || payload.has(at, b"\0\x06MQIsdp"))
}

/// The remaining length (MQTT 2.2.3), and its own.
fn remaining(payload: &Payload<'_>) -> Option<(usize, usize)> {
    let mut value = 0;
    for count in 0..4 {
        let byte = payload.u8(1 + count)?;
        value |= usize::from(byte & 0x7f) << (7 * count);
        if byte & 0x80 == 0 {
            return Some((value, count + 1));
        }
    }
    None
}

/// One packet that fills the payload.
pub(super) fn mqtt(payload: &Payload<'_>) -> Option<bool> {
    let (len, own) = remaining(payload)?;
    Some(payload.is_len(len, 1 + own))
}

/// `NetFlow`: as many records as its version's header and records fill.
pub(super) fn netflow(payload: &Payload<'_>) -> Option<bool> {
    let (version, count) = (payload.u16(0)?, usize::from(payload.u16(2)?));
    let (header, record) = match version {
        1 => (16, 52),
        5 => (24, 48),
        7 => (24, 52),
        _ => return Some(false),
    };
    Some((1..=30).contains(&count) && payload.len == header + record * count)
}

/// Version 9 (RFC 3954 5): sets of records, the first one's id and length.
pub(super) fn netflow9(payload: &Payload<'_>) -> Option<bool> {
    let (set, len) = (payload.u16(20)?, usize::from(payload.u16(22)?));
    Some((set <= 1 || set >= 256) && len >= 4 && 20 + len <= payload.len)
}

/// IPFIX (RFC 7011 3.1): length, and the first set.
pub(super) fn ipfix(payload: &Payload<'_>) -> Option<bool> {
    let set = payload.u16(16)?;
    Some(payload.is_len(payload.u16(2)?, 0) && (set == 2 || set == 3 || set >= 256))
}

/// `sFlow` 5: kind of address, and as few samples as fit.
pub(super) fn sflow(payload: &Payload<'_>) -> Option<bool> {
    let at = match payload.u32(4)? {
        1 => 12,
        2 => 24,
        _ => return Some(false),
    };
    Some(payload.u32(at)? < 1 << 16 && (1..=64).contains(&payload.u32(at + 12)?))
}

/// PTP 2 (IEEE 1588 13.3): kind, length, and what is always zero.
pub(super) fn ptp(payload: &Payload<'_>) -> Option<bool> {
    let kind = payload.u8(0)? & 15;
    let len = usize::from(payload.u16(2)?);
    let is_kind = matches!(kind, 0..=3 | 8..=13);
    Some(is_kind && (34..=payload.len).contains(&len) && payload.len - len <= 16)
}

/// NAT-PMP (RFC 6886 3) and PCP (RFC 6887 7).
pub(super) fn natpmp(payload: &Payload<'_>) -> Option<bool> {
    let [version, operation] = payload.array(0)?;
    Some(match version {
        0 => matches!(operation, 0..=2 | 128..=130) && payload.len <= 16,
        2 => {
            matches!(operation & 0x7f, 0..=3) && payload.len >= 24 && payload.len.is_multiple_of(4)
        }
        _ => false,
    })
}

/// RIP (RFC 2453 4): entries of 20 bytes.
pub(super) fn rip(payload: &Payload<'_>) -> bool {
    payload.len >= 24 && payload.len % 20 == 4 && payload.is_zero(2, 2)
}

/// SLP (RFC 2608 8, RFC 2165 4): version, function, length.
pub(super) fn slp(payload: &Payload<'_>) -> Option<bool> {
    Some(match payload.u8(0)? {
        1 => payload.is_len(payload.u16(2)?, 0),
        2 => payload.is_len(payload.u24(2)?, 0),
        _ => false,
    })
}

/// CAPWAP control (RFC 5415 4): preamble, a header of a few words, and a message's length.
pub(super) fn capwap(payload: &Payload<'_>) -> Option<bool> {
    let [preamble, header] = payload.array(0)?;
    let at = 4 * usize::from(header >> 3);
    let is_dtls = preamble == 1 && payload.is_zero(1, 3);
    let len = usize::from(payload.u16(at + 5).unwrap_or_default());
    Some(is_dtls || preamble == 0 && at >= 8 && at + 8 + len <= payload.len + 8)
}

/// CoAP (RFC 7252 3): token length, a code in use, and registered options up to the payload's mark
/// or the end.
pub(super) fn coap(payload: &Payload<'_>) -> Option<bool> {
    const OPTIONS: &[u16] =
        &[1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 20, 23, 27, 28, 31, 35, 39, 60, 258];
    let [first, code] = payload.array(0)?;
    let mut at = 4 + usize::from(first & 15);
    let mut option = 0_u16;
    let is_code = matches!(code, 1..=7 | 0x41..=0x45 | 0x5f | 0x80..=0x9d | 0xa0..=0xa5);
    let is_empty = code == 0 && payload.len == 4;
    if first & 15 > 8 || !is_code {
        return Some(is_empty);
    }
    while at < payload.len {
        let head = payload.u8(at)?;
        if head == 0xff {
            return Some(at + 1 < payload.len);
        }
        at += 1;
        option = option.checked_add(coap_number(payload, &mut at, head >> 4)?)?;
        at += usize::from(coap_number(payload, &mut at, head & 15)?);
        if !OPTIONS.contains(&option) {
            return Some(false);
        }
    }
    Some(at == payload.len)
}

/// A number of four bits, or of one or two bytes that follow.
fn coap_number(payload: &Payload<'_>, at: &mut usize, short: u8) -> Option<u16> {
    match short {
        0..=12 => Some(short.into()),
        13 => {
            *at += 1;
            Some(u16::from(payload.u8(*at - 1)?) + 13)
        }
        14 => {
            *at += 2;
            payload.u16(*at - 2)?.checked_add(269)
        }
        _ => None,
    }
}

/// A message of the DHT (BEP 5): a dictionary in which its parts are named in order.
pub(super) fn dht(payload: &Payload<'_>) -> bool {
    const STARTS: [&[u8]; 6] =
        [b"d1:ad2:id20:", b"d1:rd2:id20:", b"d1:eli20", b"d2:ip6:", b"d2:ip18:", b"d1:ad"];
    let is_start = STARTS.iter().any(|start| payload.has(0, start));
    is_start && contains(payload.seen(), b"1:y1:")
}

/// The first packet of uTP (BEP 29): no difference of time yet, number 1, nothing acknowledged.
pub(super) fn utp_first(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.is_zero(8, 4) && payload.has(16, &[0, 1]) && payload.u8(1)? <= 2)
}

/// Gnutella's datagrams and those of its extension.
pub(super) fn gnutella(payload: &Payload<'_>) -> Option<bool> {
    Some(payload.u8(3)? & 0xf0 == 0 || payload.len >= 8)
}

/// A message of Gnutella or of its DHT: kind, hops or version, and its length.
pub(super) fn gnutella_message(payload: &Payload<'_>) -> Option<bool> {
    let [kind, life, hops] = payload.array(16)?;
    let is_kind = matches!(kind, 0 | 1 | 2 | 0x30..=0x32 | 0x40 | 0x44 | 0x80 | 0x81);
    Some(is_kind && life <= 16 && hops <= 16 && payload.is_len(payload.u32_le(19)?, 23))
}

pub(super) fn dropbox(payload: &Payload<'_>) -> bool {
    contains(payload.seen(), b"\"host_int\"") && contains(payload.seen(), b"\"namespaces\"")
}

/// RDP over UDP (MS-RDPEUDP 2.2.2): a SYN that acknowledges nothing and is filled up, or data with
/// few acknowledgements and a window of few packets.
pub(super) fn rdp_over_udp(payload: &Payload<'_>) -> Option<bool> {
    let (window, flags) = (payload.u16(4)?, payload.u16(6)?);
    let is_first = payload.has(0, &[0xff; 4]) && flags & 5 == 1 && payload.len > 1000;
    let is_data = flags & !0x0010 == 0x000c && window < 0x1000 && payload.u16(8)? <= 32;
    Some(is_first || is_data)
}
