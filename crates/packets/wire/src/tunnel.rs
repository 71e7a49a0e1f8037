//! Tunnels over IP: GRE and what rides on it, and those that a UDP port names.
//!
//! A port proves nothing. So every tunnel's own header is checked where it can be, what stands in
//! it must be an IP packet to count, and where nothing but the port speaks for it, the lengths of
//! that packet must fit.
//!
//! What a tunnel carries is not decoded here: it is left to [`crate::decode`], so that headers do
//! not call each other in a circle.

use crate::decoded::TunnelKind;
use crate::ether_type;
use crate::walk::{Layer, Short, Walk, Walked, skip, take};

const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const WCCP: u16 = 0x883e;

/// Generic Routing Encapsulation; version 1 is PPTP's.
pub(crate) fn gre<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGEMENT: u8 = 0x80;

    let [flags, version, t0, t1] = take(&mut bytes)?;
    let kind = u16::from_be_bytes([t0, t1]);
    if version & 7 > 1 || flags & ROUTING != 0 {
        return Ok(());
    }
    if flags & CHECKSUM != 0 {
        skip(&mut bytes, 4)?;
    }
    let mut key = if flags & KEY == 0 { 0 } else { u32::from_be_bytes(take(&mut bytes)?) };
    if flags & SEQUENCE != 0 {
        skip(&mut bytes, 4)?;
    }
    if version & 7 == 1 {
        // The upper half of the key is the payload's length.
        key &= 0xffff;
        skip(&mut bytes, if version & ACKNOWLEDGEMENT == 0 { 0 } else { 4 })?;
    }
    match kind {
        // Type I has no header, and GRE without sequence numbers.
        ERSPAN_II if flags & SEQUENCE == 0 => {
            walk.tunnel(TunnelKind::Erspan, 0);
            walk.then(Layer::Ethernet, bytes)
        }
        ERSPAN_II | ERSPAN_III => erspan(walk, bytes),
        WCCP => {
            walk.tunnel(TunnelKind::Gre, key);
            // Version 2 puts a redirect header before the packet.
            if !matches!(bytes, [0x40..=0x4f, ..]) {
                skip(&mut bytes, 4)?;
            }
            walk.then(Layer::Ipv4, bytes)
        }
        _ => {
            walk.tunnel(TunnelKind::Gre, key);
            walk.then(Layer::EtherType(kind), bytes)
        }
    }
}

/// ERSPAN types II and III (draft-foschiano-erspan).
fn erspan<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [version, _, s0, s1, _, _, _, _] = take(&mut bytes)?;
    walk.tunnel(TunnelKind::Erspan, u32::from(u16::from_be_bytes([s0 & 0x03, s1])));
    match version >> 4 {
        1 => walk.then(Layer::Ethernet, bytes),
        2 => {
            let [_, _, frame_type, flags] = take(&mut bytes)?;
            let platform_header = flags & 1 != 0;
            skip(&mut bytes, if platform_header { 8 } else { 0 })?;
            match (frame_type >> 2) & 0x1f {
                2 => walk.then(Layer::Ip, bytes),
                _ => walk.then(Layer::Ethernet, bytes),
            }
        }
        _ => Ok(()),
    }
}

pub(crate) fn ether_ip<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    if take(&mut bytes)? != [0x30, 0] {
        return Ok(());
    }
    walk.tunnel(TunnelKind::EtherIp, 0);
    walk.then(Layer::Ethernet, bytes)
}

pub(crate) fn mpls_in_ip<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut label = bytes;
    walk.tunnel(TunnelKind::MplsInIp, u32::from_be_bytes(take(&mut label)?) >> 12);
    walk.then(Layer::Mpls, bytes)
}

/// Network Service Header, whose next protocol numbers are also VXLAN-GPE's.
pub(crate) fn nsh<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut rest = bytes;
    let [_, len, _, next] = take(&mut rest)?;
    let [p0, p1, p2, _] = take(&mut rest)?;
    walk.tunnel(TunnelKind::Nsh, u32::from_be_bytes([0, p0, p1, p2]));
    let mut bytes = bytes;
    skip(&mut bytes, usize::from(len & 0x3f) * 4)?;
    next_protocol(walk, next, bytes)
}

fn next_protocol<'a>(walk: &mut Walk<'a, '_>, next: u8, bytes: &'a [u8]) -> Walked {
    match next {
        1 => walk.then(Layer::Ipv4, bytes),
        2 => walk.then(Layer::Ipv6, bytes),
        3 => walk.then(Layer::Ethernet, bytes),
        4 => walk.then(Layer::EtherType(ether_type::NSH), bytes),
        5 => walk.then(Layer::EtherType(ether_type::MPLS), bytes),
        _ => Ok(()),
    }
}

/// Walks into the tunnel that one of the ports names, the destination's first.
#[inline]
pub(crate) fn in_udp<'a>(
    walk: &mut Walk<'a, '_>,
    source: u16,
    destination: u16,
    bytes: &'a [u8],
) -> Walked {
    match by_port(destination).or_else(|| by_port(source)) {
        Some(layer) => layer(walk, bytes),
        None => Ok(()),
    }
}

type InUdp = for<'a> fn(&mut Walk<'a, '_>, &'a [u8]) -> Walked;

#[inline]
fn by_port(port: u16) -> Option<InUdp> {
    // In one comparison for nearly all ports of servers.
    if port < 1701 {
        return None;
    }
    Some(match port {
        1701 => l2tp,
        2152 => gtp_u,
        3544 => teredo,
        4341 => lisp,
        4342 => lisp_control,
        4754 => gre,
        4789 | 8472 => vxlan,
        4790 => vxlan_gpe,
        5072 => ayiya,
        5247 => capwap,
        6081 => geneve,
        6635 => mpls_in_ip,
        37008 => tzsp,
        _ => return None,
    })
}

fn vxlan<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [flags, _, _, _, v0, v1, v2, _] = take(&mut bytes)?;
    if flags & 0x08 == 0 {
        return Ok(());
    }
    walk.tunnel(TunnelKind::Vxlan, u32::from_be_bytes([0, v0, v1, v2]));
    walk.then(Layer::Ethernet, bytes)
}

fn vxlan_gpe<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [flags, _, _, next, v0, v1, v2, _] = take(&mut bytes)?;
    if flags & 0x08 == 0 {
        return Ok(());
    }
    walk.tunnel(TunnelKind::VxlanGpe, u32::from_be_bytes([0, v0, v1, v2]));
    let has_next = flags & 0x04 != 0;
    next_protocol(walk, if has_next { next } else { 3 }, bytes)
}

fn geneve<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [version, _, t0, t1, v0, v1, v2, _] = take(&mut bytes)?;
    if version >> 6 != 0 {
        return Ok(());
    }
    skip(&mut bytes, usize::from(version & 0x3f) * 4)?;
    walk.tunnel(TunnelKind::Geneve, u32::from_be_bytes([0, v0, v1, v2]));
    walk.then(Layer::EtherType(u16::from_be_bytes([t0, t1])), bytes)
}

fn gtp_u<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const VERSION_1: u8 = 0x30;
    const USER_PACKET: u8 = 255;

    let [flags, message, _, _, t0, t1, t2, t3] = take(&mut bytes)?;
    if flags & 0xf0 != VERSION_1 || message != USER_PACKET {
        return Ok(());
    }
    if flags & 0x07 != 0 {
        let [_, _, _, mut next] = take(&mut bytes)?;
        while flags & 0x04 != 0 && next != 0 {
            // An extension's length is in words and counts itself; its last byte names the next
            // one.
            let words = usize::from(*bytes.first().ok_or(Short)?).max(1);
            let (extension, rest) = bytes.split_at_checked(words * 4).ok_or(Short)?;
            next = *extension.last().ok_or(Short)?;
            bytes = rest;
        }
    }
    walk.tunnel(TunnelKind::GtpU, u32::from_be_bytes([t0, t1, t2, t3]));
    walk.then(Layer::GuessedIp, bytes)
}

/// Teredo: an IPv6 packet, perhaps behind an authentication and an origin indication.
fn teredo<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    if let [0, 1, client_len, authentication_len, ..] = bytes {
        skip(&mut bytes, 13 + usize::from(*client_len) + usize::from(*authentication_len))?;
    }
    if bytes.starts_with(&[0, 0]) {
        skip(&mut bytes, 8)?;
    }
    walk.tunnel(TunnelKind::Teredo, 0);
    if matches!(bytes, [0x60..=0x6f, ..]) { walk.then(Layer::GuessedIp, bytes) } else { Ok(()) }
}

fn ayiya<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const FORWARD: u8 = 1;

    let [identity, signature, operation, _, _, _, _, _] = take(&mut bytes)?;
    if operation & 0x0f != FORWARD {
        return Ok(());
    }
    skip(&mut bytes, (1 << (identity >> 4)) + usize::from(signature >> 4) * 4)?;
    walk.tunnel(TunnelKind::Ayiya, 0);
    walk.then(Layer::GuessedIp, bytes)
}

fn lisp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [flags, _, _, _, i0, i1, i2, _] = take(&mut bytes)?;
    let has_instance = flags & 0x08 != 0;
    let instance = if has_instance { u32::from_be_bytes([0, i0, i1, i2]) } else { 0 };
    walk.tunnel(TunnelKind::Lisp, instance);
    walk.then(Layer::GuessedIp, bytes)
}

/// LISP control (RFC 9301): a message encapsulated with its own IP header.
fn lisp_control<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const ENCAPSULATED: u8 = 8;

    let [kind, _, _, _] = take(&mut bytes)?;
    if kind >> 4 != ENCAPSULATED {
        return Ok(());
    }
    walk.tunnel(TunnelKind::Lisp, 0);
    walk.then(Layer::GuessedIp, bytes)
}

/// CAPWAP data: an 802.3 or 802.11 frame. Fragments and encrypted packets stay closed.
fn capwap<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    const FRAGMENT: u8 = 0x80;
    const NATIVE: u8 = 0x01;

    let mut rest = bytes;
    let [preamble, len, flags, more_flags] = take(&mut rest)?;
    if preamble != 0 || more_flags & FRAGMENT != 0 {
        return Ok(());
    }
    let mut bytes = bytes;
    skip(&mut bytes, usize::from(len >> 3) * 4)?;
    walk.tunnel(TunnelKind::Capwap, 0);
    if flags & NATIVE == 0 {
        walk.then(Layer::Ethernet, bytes)
    } else {
        walk.then(Layer::Wireless, bytes)
    }
}

/// Layer 2 Tunnelling Protocol, version 2, data messages.
fn l2tp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const CONTROL: u8 = 0x80;
    const LENGTH: u8 = 0x40;
    const SEQUENCE: u8 = 0x08;
    const OFFSET: u8 = 0x02;

    let [flags, version] = take(&mut bytes)?;
    if flags & CONTROL != 0 || version & 0x0f != 2 {
        return Ok(());
    }
    skip(&mut bytes, if flags & LENGTH == 0 { 0 } else { 2 })?;
    walk.tunnel(TunnelKind::L2tp, u32::from_be_bytes(take(&mut bytes)?));
    skip(&mut bytes, if flags & SEQUENCE == 0 { 0 } else { 4 })?;
    if flags & OFFSET != 0 {
        let padding = u16::from_be_bytes(take(&mut bytes)?);
        skip(&mut bytes, usize::from(padding))?;
    }
    walk.then(Layer::Ppp, bytes)
}

/// `TaZmen` Sniffer Protocol: tags, then a frame.
fn tzsp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    const ETHERNET: u16 = 1;
    const IEEE_802_11: u16 = 18;

    let [version, kind, p0, p1] = take(&mut bytes)?;
    if version != 1 || kind > 1 {
        return Ok(());
    }
    loop {
        match take(&mut bytes)? {
            [PADDING] => {}
            [END] => break,
            _ => {
                let [len] = take(&mut bytes)?;
                skip(&mut bytes, usize::from(len))?;
            }
        }
    }
    walk.tunnel(TunnelKind::Tzsp, 0);
    match u16::from_be_bytes([p0, p1]) {
        ETHERNET => walk.then(Layer::Ethernet, bytes),
        IEEE_802_11 => walk.then(Layer::Wireless, bytes),
        _ => Ok(()),
    }
}
