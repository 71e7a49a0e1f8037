//! Ethernet (IEEE 802.3), LLC and SNAP (IEEE 802.2), tags (IEEE 802.1Q), MPLS (RFC 3032), PPP (RFC
//! 1661) and `PPPoE`.

use crate::decoded::{ArpHeader, TunnelKind};
use crate::ether_type::{ARP, IPV4, IPV6, MPLS, NSH};
use crate::walk::{Short, Walk, Walked, skip, take};
use crate::{ip, tunnel};

const RARP: u16 = 0x8035;
const BRIDGED: u16 = 0x6558;
const PPP: u16 = 0x880b;
const MPLS_UPSTREAM: u16 = 0x8848;
const VLAN: u16 = 0x8100;
const PROVIDER_VLAN: u16 = 0x88a8;
const OLD_PROVIDER_VLAN: u16 = 0x9100;
const PROVIDER_BACKBONE: u16 = 0x88e7;
const MACSEC: u16 = 0x88e5;
const VN_TAG: u16 = 0x8926;
const PPPOE_SESSION: u16 = 0x8864;

/// Up to here the field after the addresses is the length of an LLC frame.
const LENGTH_MAX: u16 = 1500;

const LLC_SNAP: u8 = 0xaa;
const LLC_IP: u8 = 0x06;
const UNNUMBERED: u8 = 0x03;

#[inline]
pub(crate) fn ethernet<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    stations(walk, &mut bytes)?;
    let kind = u16::from_be_bytes(take(&mut bytes)?);
    length_or_type(walk, kind, bytes)
}

/// Destination and source, as every IEEE 802 frame begins.
#[inline]
pub(crate) fn stations(walk: &mut Walk<'_, '_>, bytes: &mut &[u8]) -> Walked {
    let destination = take(bytes)?;
    let source = take(bytes)?;
    walk.stations(source, destination);
    Ok(())
}

#[inline]
pub(crate) fn length_or_type<'a>(walk: &mut Walk<'a, '_>, kind: u16, bytes: &'a [u8]) -> Walked {
    if kind <= LENGTH_MAX { llc(walk, bytes) } else { ether_type(walk, kind, bytes) }
}

/// What stands behind an `EtherType`.
#[inline]
pub(crate) fn ether_type<'a>(walk: &mut Walk<'a, '_>, kind: u16, bytes: &'a [u8]) -> Walked {
    walk.ether_type(kind);
    match kind {
        IPV4 => ip::ipv4(walk, bytes),
        IPV6 => ip::ipv6(walk, bytes),
        _ => other_ether_type(walk, kind, bytes),
    }
}

fn other_ether_type<'a>(walk: &mut Walk<'a, '_>, kind: u16, mut bytes: &'a [u8]) -> Walked {
    if !walk.enter() {
        return Ok(());
    }
    match kind {
        VLAN | PROVIDER_VLAN | OLD_PROVIDER_VLAN => {
            walk.vlan(u16::from_be_bytes(take(&mut bytes)?));
            let kind = u16::from_be_bytes(take(&mut bytes)?);
            length_or_type(walk, kind, bytes)
        }
        VN_TAG => {
            skip(&mut bytes, 4)?;
            let kind = u16::from_be_bytes(take(&mut bytes)?);
            length_or_type(walk, kind, bytes)
        }
        MACSEC => macsec(walk, bytes),
        PROVIDER_BACKBONE => {
            skip(&mut bytes, 4)?;
            ethernet(walk, bytes)
        }
        BRIDGED => ethernet(walk, bytes),
        MPLS | MPLS_UPSTREAM => mpls(walk, bytes),
        PPPOE_SESSION => pppoe(walk, bytes),
        PPP => ppp(walk, bytes),
        NSH => tunnel::nsh(walk, bytes),
        ARP | RARP => arp(walk, bytes),
        _ => Ok(()),
    }
}

/// ARP (RFC 826) and RARP (RFC 903), for IPv4 over stations of any length.
fn arp(walk: &mut Walk<'_, '_>, mut bytes: &[u8]) -> Walked {
    let [_, _, p0, p1, station_bytes, address_bytes, _, _] = take(&mut bytes)?;
    if u16::from_be_bytes([p0, p1]) != IPV4 || address_bytes != 4 {
        return Ok(());
    }
    skip(&mut bytes, usize::from(station_bytes))?;
    let sender = take::<4>(&mut bytes)?.into();
    skip(&mut bytes, usize::from(station_bytes))?;
    let target = take::<4>(&mut bytes)?.into();
    walk.arp(ArpHeader { sender, target });
    Ok(())
}

/// `MACsec` (IEEE 802.1AE): open where only the integrity is protected.
fn macsec<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    const SECURE_CHANNEL: u8 = 0x20;
    const ENCRYPTED: u8 = 0x0c;

    let [control, _, _, _, _, _] = take(&mut bytes)?;
    if control & ENCRYPTED != 0 {
        return Ok(());
    }
    skip(&mut bytes, if control & SECURE_CHANNEL == 0 { 0 } else { 8 })?;
    let kind = u16::from_be_bytes(take(&mut bytes)?);
    length_or_type(walk, kind, bytes)
}

/// LLC. Frames of other service access points than these stay with their stations.
pub(crate) fn llc<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    match take(&mut bytes)? {
        [LLC_SNAP, LLC_SNAP, UNNUMBERED] => snap(walk, bytes),
        [LLC_IP, LLC_IP, UNNUMBERED] => ip::ip(walk, bytes),
        _ => Ok(()),
    }
}

/// SNAP: the organisation says what the type means (RFC 1042; 802.1H; RFC 2427, section 4.2 for
/// bridged frames).
pub(crate) fn snap<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [o0, o1, o2, t0, t1] = take(&mut bytes)?;
    let kind = u16::from_be_bytes([t0, t1]);
    match ([o0, o1, o2], kind) {
        ([0, 0, 0 | 0xf8], _) => ether_type(walk, kind, bytes),
        ([0x00, 0x80, 0xc2], 0x0001 | 0x0007) => other_ether_type(walk, BRIDGED, bytes),
        _ => {
            walk.ether_type(kind);
            Ok(())
        }
    }
}

/// A label stack. Nothing says what it carries: the first nibble decides (RFC 4928), and a
/// pseudowire with or without control word (RFC 4448) is taken only where the frame in it looks
/// like one.
pub(crate) fn mpls<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    loop {
        let entry = u32::from_be_bytes(take(&mut bytes)?);
        walk.mpls(entry >> 12);
        if entry & 0x100 != 0 {
            break;
        }
    }
    if ip::is_plausible(walk, bytes) {
        return ip::ip(walk, bytes);
    }
    let frame = match bytes {
        [0x00..=0x0f, _, _, _, frame @ ..] if is_ethernet(frame) => frame,
        _ => bytes,
    };
    if is_ethernet(frame) { ethernet(walk, frame) } else { ip::ip(walk, frame) }
}

/// Whether an Ethernet header of a usual type stands here.
fn is_ethernet(bytes: &[u8]) -> bool {
    let Some([t0, t1, first]) = bytes.get(12..).and_then(|rest| rest.first_chunk::<3>()) else {
        return false;
    };
    match u16::from_be_bytes([*t0, *t1]) {
        IPV4 => first >> 4 == 4,
        IPV6 => first >> 4 == 6,
        ARP | VLAN | PROVIDER_VLAN | MPLS | PPPOE_SESSION => true,
        _ => false,
    }
}

/// PPP over Ethernet, session stage (RFC 2516, section 4).
pub(crate) fn pppoe<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [version, code, s0, s1, _, _] = take(&mut bytes)?;
    if (version, code) != (0x11, 0) {
        return Ok(());
    }
    walk.tunnel(TunnelKind::Pppoe, u32::from(u16::from_be_bytes([s0, s1])));
    ppp(walk, bytes)
}

/// PPP, with or without its HDLC address and control bytes (RFC 1662) and with either form of the
/// protocol field.
pub(crate) fn ppp<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let protocol = match take(&mut bytes)? {
        [short] if short & 1 != 0 => u16::from(short),
        [high] => u16::from_be_bytes([high, take::<1>(&mut bytes)?[0]]),
    };
    match protocol {
        0x0021 => ip::ipv4(walk, bytes),
        0x0057 => ip::ipv6(walk, bytes),
        0x0281 | 0x0283 => mpls(walk, bytes),
        _ => Ok(()),
    }
}

/// Cisco HDLC: address, control, `EtherType`; PPP where the address is PPP's.
pub(crate) fn cisco_hdlc<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    if bytes.starts_with(&[0xff, 0x03]) {
        return ppp(walk, bytes);
    }
    let [_, _, t0, t1] = take(&mut bytes)?;
    ether_type(walk, u16::from_be_bytes([t0, t1]), bytes)
}

/// Frame Relay: Q.922 address, then multiprotocol encapsulation (RFC 2427) or Cisco's `EtherType`.
pub(crate) fn frame_relay<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    // The lowest bit of the address's last byte is set.
    while take::<1>(&mut bytes)?[0] & 1 == 0 {}
    let Some(mut bytes) = bytes.strip_prefix(&[UNNUMBERED]) else {
        let kind = u16::from_be_bytes(take(&mut bytes)?);
        return ether_type(walk, kind, bytes);
    };
    if let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    network_layer(walk, bytes)
}

/// A network layer protocol identifier (ISO/IEC TR 9577) and what it names.
pub(crate) fn network_layer<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    match bytes.split_first().ok_or(Short)? {
        (0xcc, rest) => ip::ipv4(walk, rest),
        (0x8e, rest) => ip::ipv6(walk, rest),
        (0x80, rest) => snap(walk, rest),
        _ => Ok(()),
    }
}
