//! Where the IP header of an Ethernet frame stands, and what it says.

use core::ops::Range;

/// Both Ethernet addresses, behind which the type stands.
const TYPE_AT: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE: u16 = 0x8864;
/// Types of PPP (RFC 1661, RFC 5072).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// More tags and labels than any packet has that is meant well.
const LAYERS_MAX: usize = 16;

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const UDP_LITE: u8 = 136;

/// The outermost IP header of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    /// Source and destination, one behind the other.
    pub(crate) addresses: Range<usize>,
    /// The header's own checksum (RFC 791).
    pub(crate) checksum: Option<usize>,
    /// The checksum of the transport, which covers the addresses in a pseudo-header.
    pub(crate) transport: Option<TransportChecksum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportChecksum {
    pub(crate) at: usize,
    /// 0 says that there is none (UDP over IPv4, RFC 768).
    pub(crate) is_optional: bool,
}

/// Finds it behind VLAN tags, MPLS labels and `PPPoE`. `None` where there is none, where it is cut,
/// and where the address that the transport's checksum covers is not the header's (source routes).
pub(crate) fn ip_header(frame: &[u8]) -> Option<IpHeader> {
    let (version, at) = network_layer(frame)?;
    if version == 4 { ipv4(frame, at) } else { ipv6(frame, at) }
}

/// The version of IP and where its header begins.
fn network_layer(frame: &[u8]) -> Option<(u8, usize)> {
    let mut at = TYPE_AT;
    for _ in 0..LAYERS_MAX {
        match number(frame, at)? {
            IPV4 => return Some((4, at + 2)),
            IPV6 => return Some((6, at + 2)),
            tag if VLAN.contains(&tag) => at += 4,
            label if MPLS.contains(&label) => return behind_labels(frame, at + 2),
            // Version, code, session and length stand before the type of PPP (RFC 2516).
            PPPOE => match number(frame, at + 8)? {
                PPP_IPV4 => return Some((4, at + 10)),
                PPP_IPV6 => return Some((6, at + 10)),
                _ => return None,
            },
            _ => return None,
        }
    }
    None
}

/// Labels of four bytes end with the one whose bottom bit is set (RFC 3032); what follows says its
/// version itself.
fn behind_labels(frame: &[u8], first: usize) -> Option<(u8, usize)> {
    let mut labels = (first..).step_by(4).take(LAYERS_MAX);
    let last = labels.find(|at| frame.get(at + 2).is_none_or(|byte| byte & 1 != 0))?;
    let version = frame.get(last + 4)? >> 4;
    matches!(version, 4 | 6).then_some((version, last + 4))
}

fn ipv4(frame: &[u8], at: usize) -> Option<IpHeader> {
    const SMALLEST: usize = 20;
    let first = *frame.get(at)?;
    let len = usize::from(first & 0x0f) * 4;
    let header = frame.get(at..at + len.max(SMALLEST))?;
    if first >> 4 != 4 || len < SMALLEST || is_source_routed(header.get(SMALLEST..)?) {
        return None;
    }
    let is_later_fragment = number(header, 6)? & 0x1fff != 0;
    let protocol = *header.get(9)?;
    let transport = (!is_later_fragment).then(|| transport_checksum(frame, protocol, at + len));
    Some(IpHeader {
        addresses: at + 12..at + 20,
        checksum: Some(at + 10),
        transport: transport
            .flatten()
            .map(|at| TransportChecksum { at, is_optional: protocol == UDP }),
    })
}

/// Whether a loose or strict source route is among the options: its last hop is the destination
/// that checksums cover.
fn is_source_routed(options: &[u8]) -> bool {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const ROUTES: [u8; 2] = [131, 137];
    let mut rest = options;
    loop {
        rest = match *rest {
            [] | [END, ..] => return false,
            [NO_OPERATION, ref after @ ..] => after,
            [kind, ..] if ROUTES.contains(&kind) => return true,
            [_, len, ..] if len >= 2 => rest.get(usize::from(len)..).unwrap_or_default(),
            _ => return false,
        };
    }
}

fn ipv6(frame: &[u8], at: usize) -> Option<IpHeader> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    let header = frame.get(at..at + 40)?;
    if header.first()? >> 4 != 6 {
        return None;
    }
    let whole = |transport: Option<usize>| {
        let transport = transport.map(|at| TransportChecksum { at, is_optional: false });
        Some(IpHeader { addresses: at + 8..at + 40, checksum: None, transport })
    };
    let (mut next, mut at) = (*header.get(6)?, at + 40);
    for _ in 0..LAYERS_MAX {
        let Some(&[following, size]) = frame.get(at..at + 2).and_then(<[u8]>::first_chunk) else {
            return whole(None);
        };
        let len = match next {
            HOP_BY_HOP | DESTINATION => usize::from(size) * 8 + 8,
            AUTHENTICATION => usize::from(size) * 4 + 8,
            // Behind the last of its stations the destination is the one that checksums cover.
            ROUTING if frame.get(at + 3) == Some(&0) => usize::from(size) * 8 + 8,
            ROUTING => return None,
            FRAGMENT if number(frame, at + 2).is_none_or(|field| field & !7 != 0) => {
                return whole(None);
            }
            FRAGMENT => 8,
            protocol => return whole(transport_checksum(frame, protocol, at)),
        };
        (next, at) = (following, at + len);
    }
    whole(None)
}

/// Where a transport that begins at `at` has its checksum, if that covers a pseudo-header.
fn transport_checksum(frame: &[u8], protocol: u8, at: usize) -> Option<usize> {
    let offset = match protocol {
        TCP => 16,
        UDP | DCCP | UDP_LITE => 6,
        ICMPV6 => 2,
        _ => return None,
    };
    frame.get(at + offset..at + offset + 2).map(|_| at + offset)
}

/// The big-endian number of two bytes at `at`.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}
