//! The first layer of a packet, by its link type.

use crate::ether_type::{ARP, IPV4, IPV6};
use crate::walk::{Walk, Walked, skip, take};
use crate::{LinkType, ethernet, ip, wireless};

/// Values of `ARPHRD_` (`linux/if_arp.h`) that change what a cooked header means.
const ARPHRD_GRE: u16 = 778;
const ARPHRD_IEEE80211: u16 = 801;
const ARPHRD_RADIOTAP: u16 = 803;
const ARPHRD_NETLINK: u16 = 824;

/// The attribute of netfilter's log that is the packet.
const LOG_PAYLOAD: u16 = 9;

/// Starts the walk. Link types that carry neither IP nor stations are left unparsed.
#[inline]
pub(crate) fn link<'a>(walk: &mut Walk<'a, '_>, link_type: LinkType, bytes: &'a [u8]) -> Walked {
    if link_type == LinkType::ETHERNET {
        ethernet::ethernet(walk, bytes)
    } else {
        other_link(walk, link_type, bytes)
    }
}

fn other_link<'a>(walk: &mut Walk<'a, '_>, link_type: LinkType, mut bytes: &'a [u8]) -> Walked {
    match link_type {
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => ip::ip(walk, bytes),
        LinkType::IPV4 => ip::ipv4(walk, bytes),
        LinkType::IPV6 => ip::ipv6(walk, bytes),
        LinkType::NULL | LinkType::LOOP => loopback(walk, bytes),
        LinkType::LINUX_SLL | LinkType::NETLINK => linux_sll(walk, bytes),
        LinkType::LINUX_SLL2 => linux_sll2(walk, bytes),
        LinkType::IEEE802_11 => wireless::frame(walk, bytes, false),
        LinkType::IEEE802_11_RADIO => wireless::radiotap(walk, bytes),
        LinkType::PRISM_HEADER | LinkType::IEEE802_11_RADIO_AVS => wireless::prism(walk, bytes),
        LinkType::PPI => per_packet_information(walk, bytes),
        LinkType::PPP | LinkType::PPP_HDLC | LinkType::C_HDLC => hdlc(walk, link_type, bytes),
        LinkType::PPP_WITH_DIRECTION => {
            skip(&mut bytes, 1)?;
            ethernet::ppp(walk, bytes)
        }
        LinkType::PPP_ETHER => ethernet::pppoe(walk, bytes),
        LinkType::FRELAY => ethernet::frame_relay(walk, bytes),
        LinkType::MPLS => ethernet::mpls(walk, bytes),
        LinkType::NFLOG => netfilter(walk, LOG_PAYLOAD, bytes),
        LinkType::SLIP => {
            // Direction and the compressed header, 16 bytes in all.
            skip(&mut bytes, 16)?;
            ip::ip(walk, bytes)
        }
        LinkType::FDDI => fddi(walk, bytes),
        LinkType::IEEE802_5 => token_ring(walk, bytes),
        LinkType::ARCNET => arcnet(walk, bytes, 0),
        LinkType::ARCNET_LINUX => arcnet(walk, bytes, 2),
        LinkType::ATM_RFC1483 | LinkType::ATM_CLIP => atm(walk, bytes),
        LinkType::SUNATM => sun_atm(walk, bytes),
        LinkType::DSA_TAG_BRCM | LinkType::DSA_TAG_DSA | LinkType::DSA_TAG_EDSA => {
            switch_tag(walk, link_type, bytes)
        }
        LinkType::DSA_TAG_BRCM_PREPEND => {
            skip(&mut bytes, 4)?;
            ethernet::ethernet(walk, bytes)
        }
        _ => Ok(()),
    }
}

/// An address family in the byte order of the machine that wrote it; all values of it are below
/// 256.
fn loopback<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    match take(&mut bytes)? {
        [2, 0, 0, 0] | [0, 0, 0, 2] => ip::ipv4(walk, bytes),
        // AF_INET6 of Linux, NetBSD, FreeBSD and Darwin.
        [10 | 24 | 28 | 30, 0, 0, 0] | [0, 0, 0, 10 | 24 | 28 | 30] => ip::ipv6(walk, bytes),
        _ => Ok(()),
    }
}

fn hdlc<'a>(walk: &mut Walk<'a, '_>, link_type: LinkType, bytes: &'a [u8]) -> Walked {
    /// Unicast and multicast address of Cisco HDLC, both with control 0.
    const CISCO: [[u8; 2]; 2] = [[0x0f, 0], [0x8f, 0]];

    let is_cisco = CISCO.iter().any(|address| bytes.starts_with(address));
    if link_type == LinkType::C_HDLC || is_cisco {
        ethernet::cisco_hdlc(walk, bytes)
    } else {
        ethernet::ppp(walk, bytes)
    }
}

fn linux_sll<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [_, _, h0, h1, _, len] = take(&mut bytes)?;
    let [s0, s1, s2, s3, s4, s5, _, _] = take(&mut bytes)?;
    let kind = u16::from_be_bytes(take(&mut bytes)?);
    if len == 6 {
        walk.sender([s0, s1, s2, s3, s4, s5]);
    }
    cooked(walk, u16::from_be_bytes([h0, h1]), kind, bytes)
}

fn linux_sll2<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [k0, k1, _, _, _, _, _, _, h0, h1, _, len] = take(&mut bytes)?;
    let [s0, s1, s2, s3, s4, s5, _, _] = take(&mut bytes)?;
    if len == 6 {
        walk.sender([s0, s1, s2, s3, s4, s5]);
    }
    cooked(walk, u16::from_be_bytes([h0, h1]), u16::from_be_bytes([k0, k1]), bytes)
}

/// What a cooked header carries, by the device's type and the protocol.
fn cooked<'a>(walk: &mut Walk<'a, '_>, hardware: u16, kind: u16, bytes: &'a [u8]) -> Walked {
    const NOVELL_8023: u16 = 1;
    const LLC: u16 = 4;

    match (hardware, kind) {
        (ARPHRD_NETLINK, family) => netlink(walk, family, bytes),
        (_, NOVELL_8023) => Ok(()),
        (ARPHRD_IEEE80211, _) => wireless::frame(walk, bytes, false),
        (ARPHRD_RADIOTAP, _) => wireless::radiotap(walk, bytes),
        (ARPHRD_GRE, 0) => ip::ip(walk, bytes),
        (_, LLC) => ethernet::llc(walk, bytes),
        _ => ethernet::ether_type(walk, kind, bytes),
    }
}

/// PPI: a header with its length and the link type of what follows.
fn per_packet_information<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    let mut rest = bytes;
    let [_, _, l0, l1] = take(&mut rest)?;
    let inner = u32::from_le_bytes(take(&mut rest)?);
    let mut bytes = bytes;
    skip(&mut bytes, usize::from(u16::from_le_bytes([l0, l1])))?;
    match u16::try_from(inner).map(LinkType) {
        Ok(LinkType::ETHERNET) => ethernet::ethernet(walk, bytes),
        Ok(LinkType::IEEE802_11) => wireless::frame(walk, bytes, false),
        _ => Ok(()),
    }
}

/// Netlink behind a cooked header of 16 bytes: netfilter's queue and log carry packets.
fn netlink<'a>(walk: &mut Walk<'a, '_>, family: u16, mut bytes: &'a [u8]) -> Walked {
    const NETFILTER: u16 = 12;
    const QUEUE_PACKET: [u8; 2] = [0, 3];
    const LOG_PACKET: [u8; 2] = [0, 4];
    const QUEUE_PAYLOAD: u16 = 10;

    let [_, _, _, _, t0, t1, ..] = take::<16>(&mut bytes)?;
    match [t0, t1] {
        QUEUE_PACKET if family == NETFILTER => netfilter(walk, QUEUE_PAYLOAD, bytes),
        LOG_PACKET if family == NETFILTER => netfilter(walk, LOG_PAYLOAD, bytes),
        _ => Ok(()),
    }
}

/// Netfilter's attributes, one of which is the packet. They are in host byte order; all writers
/// known are little-endian. The packet begins at its network layer, whose `EtherType` is in the
/// first attribute.
fn netfilter<'a>(walk: &mut Walk<'a, '_>, payload: u16, mut bytes: &'a [u8]) -> Walked {
    const PACKET_HEADER: u16 = 1;
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;

    let [family, _, _, _] = take(&mut bytes)?;
    let mut kind = match family {
        AF_INET => IPV4,
        AF_INET6 => IPV6,
        _ => 0,
    };
    loop {
        let [l0, l1, t0, t1] = take(&mut bytes)?;
        let len = usize::from(u16::from_le_bytes([l0, l1])).saturating_sub(4);
        let attribute = u16::from_le_bytes([t0, t1]);
        if attribute == payload {
            return ethernet::ether_type(walk, kind, bytes);
        }
        if attribute == PACKET_HEADER && kind == 0 {
            // A queue's header begins with the packet's number; a log's is half as long.
            let mut header = bytes;
            skip(&mut header, if len > 4 { 4 } else { 0 })?;
            kind = u16::from_be_bytes(take(&mut header)?);
        }
        skip(&mut bytes, len.next_multiple_of(4))?;
    }
}

fn fddi<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [control] = take(&mut bytes)?;
    ethernet::stations(walk, &mut bytes)?;
    let is_llc = control & 0x70 == 0x50;
    if is_llc { ethernet::llc(walk, bytes) } else { Ok(()) }
}

/// Token Ring; the first bit of the source says that routing information follows.
fn token_ring<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [_, control] = take(&mut bytes)?;
    let destination = take::<6>(&mut bytes)?;
    let [first, s1, s2, s3, s4, s5] = take(&mut bytes)?;
    walk.stations([first & 0x7f, s1, s2, s3, s4, s5], destination);
    if first & 0x80 != 0 {
        let routing_len = usize::from(bytes.first().copied().unwrap_or(0) & 0x1f);
        skip(&mut bytes, routing_len)?;
    }
    let is_llc = control & 0xc0 == 0x40;
    if is_llc { ethernet::llc(walk, bytes) } else { Ok(()) }
}

/// ARCNET (RFC 1201, and RFC 1051 without its split header); Linux puts `offset_len` bytes before
/// the type.
fn arcnet<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8], offset_len: usize) -> Walked {
    const IPV6_1201: u8 = 196;
    const IPV4_1201: u8 = 212;
    const ARP_1201: u8 = 213;
    const IPV4_1051: u8 = 240;
    const ARP_1051: u8 = 241;
    const EXCEPTION: u8 = 0xff;

    let [source, destination] = take(&mut bytes)?;
    walk.stations([0, 0, 0, 0, 0, source], [0, 0, 0, 0, 0, destination]);
    skip(&mut bytes, offset_len)?;
    let [protocol] = take(&mut bytes)?;
    if protocol < IPV4_1051 {
        let [split] = take(&mut bytes)?;
        skip(&mut bytes, if split == EXCEPTION { 6 } else { 2 })?;
    }
    let kind = match protocol {
        IPV4_1201 | IPV4_1051 => IPV4,
        IPV6_1201 => IPV6,
        ARP_1201 | ARP_1051 => ARP,
        _ => return Ok(()),
    };
    ethernet::ether_type(walk, kind, bytes)
}

/// Multiprotocol over ATM (RFC 2684) and Classical IP (RFC 2225).
fn atm<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    match bytes {
        // Bridged frames are padded to a word here.
        [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x01 | 0x07, _, _, frame @ ..] => {
            ethernet::ethernet(walk, frame)
        }
        [0xfe, 0xfe, 0x03, routed @ ..] => ethernet::network_layer(walk, routed),
        [0xaa, ..] => ethernet::llc(walk, bytes),
        _ => ip::guessed_ip(walk, bytes),
    }
}

/// The header of `SunATM` devices.
fn sun_atm<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let [flags, _, _, _] = take(&mut bytes)?;
    match flags & 0x0f {
        1 => {
            // LAN emulation: the client's id.
            skip(&mut bytes, 2)?;
            ethernet::ethernet(walk, bytes)
        }
        2 => atm(walk, bytes),
        _ => Ok(()),
    }
}

/// Ethernet with a switch's tag between addresses and type. Marvell's replaces a VLAN tag where its
/// tagged bit says so.
fn switch_tag<'a>(walk: &mut Walk<'a, '_>, link_type: LinkType, mut bytes: &'a [u8]) -> Walked {
    const TAGGED: u8 = 0x20;

    ethernet::stations(walk, &mut bytes)?;
    if link_type == LinkType::DSA_TAG_EDSA {
        skip(&mut bytes, 4)?;
    }
    let [mode, _, v0, v1] = take(&mut bytes)?;
    if link_type != LinkType::DSA_TAG_BRCM && mode & TAGGED != 0 {
        walk.vlan(u16::from_be_bytes([v0, v1]));
    }
    let kind = u16::from_be_bytes(take(&mut bytes)?);
    ethernet::length_or_type(walk, kind, bytes)
}
