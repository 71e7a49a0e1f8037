//! IPv4 (RFC 791), IPv6 (RFC 8200) and the headers between them and the transport.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::decoded::{Fragment, TunnelKind};
use crate::walk::{Short, Walk, Walked, skip, take};
use crate::{Address, transport, tunnel};

const HOP_BY_HOP: u8 = 0;
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const AUTHENTICATION: u8 = 51;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION: u8 = 60;
const ETHER_IP: u8 = 97;
const MOBILITY: u8 = 135;
const MPLS: u8 = 137;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Extension headers that are walked, 1 KiB of the shortest: RFC 8200 has no bound, so fewer would
/// let a sender hide a transport behind them.
const EXTENSIONS_MAX: usize = 128;

/// An IP packet of the version its first nibble says.
pub(crate) fn ip<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    match bytes.first().ok_or(Short)? >> 4 {
        4 => ipv4(walk, bytes),
        6 => ipv6(walk, bytes),
        _ => Ok(()),
    }
}

/// An IP packet where nothing but its place says that it is one: walked into only if its lengths
/// fit.
pub(crate) fn guessed_ip<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    if is_plausible(walk, bytes) { ip(walk, bytes) } else { Ok(()) }
}

/// Whether an IP header stands here that keeps to the bytes there are.
pub(crate) fn is_plausible(walk: &Walk<'_, '_>, bytes: &[u8]) -> bool {
    let room = walk.on_wire(bytes);
    match bytes {
        [version @ 0x45..=0x4f, _, l0, l1, _, _, _, _, ttl, ..] => {
            let len = u16::from_be_bytes([*l0, *l1]);
            *ttl > 0 && u32::from(len) <= room && len >= u16::from(version & 0x0f) * 4
        }
        [0x60..=0x6f, _, _, _, l0, l1, ..] => {
            u32::from(u16::from_be_bytes([*l0, *l1])) + 40 <= room
        }
        _ => false,
    }
}

#[inline]
pub(crate) fn ipv4<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut rest = bytes;
    let [version, _, l0, l1, id0, id1, f0, f1, _, protocol, _, _] = take(&mut rest)?;
    let source = Ipv4Addr::from(take::<4>(&mut rest)?);
    let destination = Ipv4Addr::from(take::<4>(&mut rest)?);
    let header_len = u16::from(version & 0x0f) * 4;
    let len = match u16::from_be_bytes([l0, l1]) {
        // Segmentation offload: the packet is longer than the field can say, or not yet measured.
        0 => walk.on_wire(bytes),
        len if len < header_len => return Ok(()),
        len => u32::from(len),
    };
    if version >> 4 != 4 || header_len < 20 || !walk.enter() {
        return Ok(());
    }
    walk.ip(Address::V4(source), Address::V4(destination), len);
    let bytes = walk.limit(bytes, len);
    let behind = walk.behind(bytes, usize::from(header_len));
    walk.protocol(protocol, behind.as_ref().copied().unwrap_or_default());
    let payload = behind?;

    let offset_words = u16::from_be_bytes([f0 & 0x1f, f1]);
    let more = f0 & 0x20 != 0;
    if more || offset_words > 0 {
        let id = u32::from(u16::from_be_bytes([id0, id1]));
        // 13 bits times 8 stay below 2^16.
        let offset = offset_words * 8;
        walk.fragment(Fragment { id, offset, more }, protocol, payload);
        if offset > 0 {
            return Ok(());
        }
    }
    payload_of(walk, protocol, payload)
}

#[inline]
pub(crate) fn ipv6<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut rest = bytes;
    let [version, _, _, _, l0, l1, next, _] = take(&mut rest)?;
    let source = Ipv6Addr::from(take::<16>(&mut rest)?);
    let destination = Ipv6Addr::from(take::<16>(&mut rest)?);
    if version >> 4 != 6 || !walk.enter() {
        return Ok(());
    }
    let len = match u16::from_be_bytes([l0, l1]) {
        // A jumbogram (RFC 2675) or segmentation offload, also behind extension headers.
        0 if is_offloaded(next) => walk.on_wire(rest),
        len => u32::from(len),
    };
    walk.ip(Address::V6(source), Address::V6(destination), len.saturating_add(40));
    let payload = walk.limit(rest, len);
    walk.protocol(next, payload);
    extensions(walk, next, payload)
}

/// Whether an IPv6 packet that begins with this header, and says it has no payload, may have one.
#[inline]
fn is_offloaded(next: u8) -> bool {
    matches!(next, transport::TCP | transport::UDP | HOP_BY_HOP | ROUTING | DESTINATION)
        || next == AUTHENTICATION
}

/// Walks the extension headers of IPv6.
fn extensions<'a>(walk: &mut Walk<'a, '_>, first: u8, bytes: &'a [u8]) -> Walked {
    let (mut next, mut rest) = (first, bytes);
    for _ in 0..EXTENSIONS_MAX {
        let here = next;
        match here {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 => {
                let mut after = rest;
                let [following, words] = take(&mut after)?;
                if matches!(here, MOBILITY | HIP | SHIM6) && following == NO_NEXT_HEADER {
                    // These are the message itself, not something before it.
                    return Ok(());
                }
                skip(&mut after, usize::from(words) * 8 + 6)?;
                (next, rest) = (following, after);
            }
            FRAGMENT => {
                let [following, _, o0, o1, i0, i1, i2, i3] = take(&mut rest)?;
                next = following;
                let field = u16::from_be_bytes([o0, o1]);
                let (offset, more) = (field & !7, field & 1 != 0);
                // An atomic fragment (RFC 6946) is a whole packet.
                if offset > 0 || more {
                    let id = u32::from_be_bytes([i0, i1, i2, i3]);
                    walk.fragment(Fragment { id, offset, more }, next, rest);
                }
                if offset > 0 {
                    walk.protocol(next, rest);
                    return Ok(());
                }
            }
            _ => return payload_of(walk, next, rest),
        }
        walk.protocol(next, rest);
    }
    Ok(())
}

/// The payload of an IP packet between these ends.
pub(crate) fn datagram<'a>(
    walk: &mut Walk<'a, '_>,
    ends: (Address, Address),
    protocol: u8,
    payload: &'a [u8],
) -> Walked {
    walk.ip(ends.0, ends.1, 0);
    walk.protocol(protocol, payload);
    match ends.0 {
        Address::V6(_) => extensions(walk, protocol, payload),
        _ => payload_of(walk, protocol, payload),
    }
}

/// What an IP packet carries: a transport, or another packet.
#[inline]
fn payload_of<'a>(walk: &mut Walk<'a, '_>, protocol: u8, payload: &'a [u8]) -> Walked {
    match protocol {
        transport::TCP => transport::tcp(walk, payload),
        transport::UDP => transport::udp(walk, payload),
        transport::ICMP | transport::ICMPV6 => transport::icmp(walk, payload),
        transport::SCTP => transport::sctp(walk, payload),
        AUTHENTICATION => authentication(walk, payload),
        _ if walk.is_fragment() => Ok(()),
        IPV4 => {
            walk.tunnel(TunnelKind::Ipv4InIp, 0);
            ipv4(walk, payload)
        }
        IPV6 => {
            walk.tunnel(TunnelKind::Ipv6InIp, 0);
            ipv6(walk, payload)
        }
        GRE => tunnel::gre(walk, payload),
        ETHER_IP => tunnel::ether_ip(walk, payload),
        MPLS => tunnel::mpls_in_ip(walk, payload),
        _ => Ok(()),
    }
}

/// Authentication Header (RFC 4302): the packet behind it is in the clear.
fn authentication<'a>(walk: &mut Walk<'a, '_>, mut payload: &'a [u8]) -> Walked {
    let [next, words, ..] = take::<12>(&mut payload)?;
    skip(&mut payload, (usize::from(words) * 4 + 8).saturating_sub(12))?;
    walk.protocol(next, payload);
    if walk.enter() { extensions(walk, next, payload) } else { Ok(()) }
}
