//! Headers, from the transport outwards.

use std::net::{IpAddr, Ipv4Addr};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const GRE: u8 = 47;
pub(crate) const ICMPV6: u8 = 58;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Bytes of an IPv6 header.
const IPV6_LEN: usize = 40;
const VXLAN_PORT: u16 = 4789;
/// Frames on the wire are no shorter, without their check sequence.
const ETHERNET_LEN_MIN: usize = 60;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The sender of the first packet.
    A,
    B,
}

/// The innermost addresses, ports and protocol of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) a: (IpAddr, u16),
    pub(crate) b: (IpAddr, u16),
    pub(crate) proto: u8,
}

impl Ends {
    pub(crate) fn new(proto: u8, a: (&str, u16), b: (&str, u16)) -> Self {
        let ip = |text: &str| text.parse().expect("an address");
        Self { a: (ip(a.0), a.1), b: (ip(b.0), b.1), proto }
    }

    /// Sender and receiver.
    pub(crate) fn from(&self, side: Side) -> [(IpAddr, u16); 2] {
        match side {
            Side::A => [self.a, self.b],
            Side::B => [self.b, self.a],
        }
    }
}

/// What lies around a session's packets, outermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layer {
    Vlan(u16),
    /// The outer tag of two (802.1ad).
    ServiceVlan(u16),
    Mpls(u32),
    Pppoe(u16),
    Gre(Ipv4Addr, Ipv4Addr),
    Vxlan(Ipv4Addr, Ipv4Addr, u32),
    /// IPv4 or IPv6 directly in IPv4.
    IpIp(Ipv4Addr, Ipv4Addr),
}

/// Link types by their number in captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Null = 0,
    Ethernet = 1,
    Ppp = 9,
    Raw = 101,
    Loop = 108,
    Cooked = 113,
    Cooked2 = 276,
}

impl Link {
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::Ppp => 9,
            Self::Raw => 101,
            Self::Loop => 108,
            Self::Cooked => 113,
            Self::Cooked2 => 276,
        }
    }
}

pub(crate) fn low16(number: usize) -> u16 {
    u16::try_from(number).expect("a length in 16 bits")
}

/// The internet checksum (RFC 1071) of parts, each of which begins at an even place.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words
        .map(|word| match *word {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            [high] => u64::from(u16::from_be_bytes([high, 0])),
            _ => 0,
        })
        .sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    let folded = (folded >> 16) + (folded & 0xffff);
    !u16::try_from(folded).expect("folded to 16 bits")
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Writes the checksum over pseudo-header and segment into its place.
pub(crate) fn with_checksum(
    mut segment: Vec<u8>,
    at: usize,
    ends: [IpAddr; 2],
    proto: u8,
) -> Vec<u8> {
    let [source, target] = ends.map(octets);
    let len = u32::from(low16(segment.len())).to_be_bytes();
    let sum = checksum(&[&source, &target, &len, &[0, 0, 0, proto], &segment]);
    // Zero means that there is none, to UDP.
    let sum = if sum == 0 { 0xffff } else { sum };
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    segment
}

pub(crate) fn icmp_checksum(mut message: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Part {
    pub(crate) ident: u16,
    pub(crate) offset: usize,
    pub(crate) has_more: bool,
}

/// An IP packet.
pub(crate) fn ip(ends: [IpAddr; 2], proto: u8, part: Part, payload: &[u8]) -> Vec<u8> {
    match ends {
        [IpAddr::V4(source), IpAddr::V4(target)] => ipv4([source, target], proto, part, payload),
        _ => ipv6(ends, proto, payload),
    }
}

fn ipv4(ends: [Ipv4Addr; 2], proto: u8, part: Part, payload: &[u8]) -> Vec<u8> {
    let flags = (low16(part.offset) / 8) | (u16::from(part.has_more) << 13);
    let mut header = vec![0x45, 0];
    header.extend(low16(20 + payload.len()).to_be_bytes());
    header.extend(part.ident.to_be_bytes());
    header.extend(flags.to_be_bytes());
    header.extend([64, proto, 0, 0]);
    header.extend(ends[0].octets());
    header.extend(ends[1].octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, payload].concat()
}

fn ipv6(ends: [IpAddr; 2], next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(low16(payload.len()).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(octets(ends[0]));
    packet.extend(octets(ends[1]));
    assert_eq!(packet.len(), IPV6_LEN);
    packet.extend(payload);
    packet
}

/// Hop-by-hop and destination options around a payload: the first header's number, and the bytes.
pub(crate) fn extension_headers(proto: u8, payload: &[u8]) -> (u8, Vec<u8>) {
    const HOP_BY_HOP: u8 = 0;
    const DESTINATION: u8 = 60;
    // Eight bytes each: the next header, a length of 0, and four bytes of padding (PadN).
    let headers = [DESTINATION, 0, 1, 4, 0, 0, 0, 0, proto, 0, 1, 4, 0, 0, 0, 0];
    (HOP_BY_HOP, [&headers, payload].concat())
}

/// A fragment header (RFC 8200 4.5) and its part of the payload.
pub(crate) fn fragment_header(proto: u8, part: Part, payload: &[u8]) -> (u8, Vec<u8>) {
    const FRAGMENT: u8 = 44;
    let offset = low16(part.offset) | u16::from(part.has_more);
    let mut header = vec![proto, 0];
    header.extend(offset.to_be_bytes());
    header.extend(u32::from(part.ident).to_be_bytes());
    (FRAGMENT, [&header, payload].concat())
}

pub(crate) fn udp(ends: [(IpAddr, u16); 2], payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    for port in [ends[0].1, ends[1].1, low16(8 + payload.len()), 0] {
        segment.extend(port.to_be_bytes());
    }
    segment.extend(payload);
    with_checksum(segment, 6, ends.map(|end| end.0), UDP)
}

/// What a TCP header says besides ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpFields {
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
}

pub(crate) fn tcp(ends: [(IpAddr, u16); 2], fields: TcpFields, payload: &[u8]) -> Vec<u8> {
    const SYN: u8 = 2;
    // A maximum segment size, and a window scale behind a filler.
    let options: &[u8] = if fields.flags & SYN == 0 { &[] } else { &[2, 4, 5, 0xb4, 1, 3, 3, 7] };
    let mut segment = Vec::new();
    segment.extend(ends[0].1.to_be_bytes());
    segment.extend(ends[1].1.to_be_bytes());
    segment.extend(fields.sequence.to_be_bytes());
    segment.extend(fields.acknowledged.to_be_bytes());
    let words = u8::try_from((20 + options.len()) / 4).expect("a short header");
    segment.extend([words << 4, fields.flags]);
    segment.extend(fields.window.to_be_bytes());
    segment.extend([0; 4]);
    segment.extend(options);
    segment.extend(payload);
    with_checksum(segment, 16, ends.map(|end| end.0), TCP)
}

/// A frame of a link type: an IP packet in its layers.
pub(crate) fn frame(link: Link, side: Side, layers: &[Layer], packet: &[u8]) -> Vec<u8> {
    let is_six = packet.first().is_some_and(|first| first >> 4 == 6);
    let mut inner = (if is_six { IPV6 } else { IPV4 }, packet.to_vec());
    for layer in layers.iter().rev() {
        inner = wrap(*layer, side, inner);
    }
    on_link(link, side, inner.0, &inner.1)
}

/// A layer around what has an ether type.
fn wrap(layer: Layer, side: Side, (kind, inner): (u16, Vec<u8>)) -> (u16, Vec<u8>) {
    const MPLS: u16 = 0x8847;
    let tunnel = |near, far, proto, inner: &[u8]| {
        let ends = if side == Side::A { [near, far] } else { [far, near] };
        (IPV4, ipv4(ends, proto, Part::default(), inner))
    };
    match layer {
        Layer::Vlan(id) => (0x8100, [&id.to_be_bytes(), &kind.to_be_bytes(), &inner[..]].concat()),
        Layer::ServiceVlan(id) => {
            (0x88a8, [&id.to_be_bytes(), &kind.to_be_bytes(), &inner[..]].concat())
        }
        Layer::Mpls(label) => {
            let is_last = u32::from(kind != MPLS);
            let entry = label << 12 | is_last << 8 | 64;
            (MPLS, [&entry.to_be_bytes(), &inner[..]].concat())
        }
        Layer::Pppoe(session) => {
            let proto: u16 = if kind == IPV6 { 0x57 } else { 0x21 };
            let len = low16(2 + inner.len()).to_be_bytes();
            let header = [&[0x11, 0], &session.to_be_bytes()[..], &len, &proto.to_be_bytes()];
            (0x8864, [&header.concat(), &inner[..]].concat())
        }
        Layer::Gre(near, far) => {
            tunnel(near, far, GRE, &[&[0, 0], &kind.to_be_bytes(), &inner[..]].concat())
        }
        Layer::Vxlan(near, far, vni) => {
            let header = [0x0800_0000_u32.to_be_bytes(), (vni << 8).to_be_bytes()].concat();
            let inner = [&header[..], &ethernet(side, kind, &inner)].concat();
            let [from, to] = if side == Side::A { [near, far] } else { [far, near] };
            let ports = [(from.into(), 50_000), (to.into(), VXLAN_PORT)];
            tunnel(near, far, UDP, &udp(ports, &inner))
        }
        Layer::IpIp(near, far) => tunnel(near, far, if kind == IPV6 { 41 } else { 4 }, &inner),
    }
}

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0xa], [2, 0, 0, 0, 0, 0xb]];

fn mac(side: Side) -> [u8; 6] {
    MACS[usize::from(side == Side::B)]
}

/// Without padding.
fn ethernet(side: Side, kind: u16, payload: &[u8]) -> Vec<u8> {
    let other = if side == Side::A { Side::B } else { Side::A };
    [&mac(other), &mac(side)[..], &kind.to_be_bytes(), payload].concat()
}

fn on_link(link: Link, side: Side, kind: u16, payload: &[u8]) -> Vec<u8> {
    const ARPHRD_ETHER: u16 = 1;
    let header = match link {
        Link::Ethernet => {
            let mut frame = ethernet(side, kind, payload);
            frame.resize(frame.len().max(ETHERNET_LEN_MIN), 0);
            return frame;
        }
        Link::Raw => Vec::new(),
        // Numbers of address families, of 4.4BSD: in the order of the machine, and of the network.
        Link::Null => u32::from(if kind == IPV6 { 24_u8 } else { 2 }).to_le_bytes().to_vec(),
        Link::Loop => u32::from(if kind == IPV6 { 24_u8 } else { 2 }).to_be_bytes().to_vec(),
        Link::Ppp => vec![0xff, 3, 0, if kind == IPV6 { 0x57 } else { 0x21 }],
        Link::Cooked => {
            let direction = if side == Side::A { 4_u16 } else { 0 };
            let [direction, hardware, len, kind] =
                [direction, ARPHRD_ETHER, 6, kind].map(u16::to_be_bytes);
            [&direction, &hardware, &len, &mac(side)[..], &[0, 0], &kind].concat()
        }
        Link::Cooked2 => {
            let direction = if side == Side::A { 4 } else { 0 };
            let head = [kind, 0, 0, 7, ARPHRD_ETHER].map(u16::to_be_bytes).concat();
            [&head[..], &[direction, 6], &mac(side), &[0, 0]].concat()
        }
    };
    [&header, payload].concat()
}

/// An ARP question or its answer, as a whole frame.
pub(crate) fn arp(side: Side, ends: [Ipv4Addr; 2]) -> Vec<u8> {
    let [own, other] = if side == Side::A { ends } else { [ends[1], ends[0]] };
    let (operation, known) = if side == Side::A { (1, [0; 6]) } else { (2, mac(Side::A)) };
    let head = [0, 1, 8, 0, 6, 4, 0, operation];
    let message = [&head, &mac(side)[..], &own.octets(), &known, &other.octets()].concat();
    on_link(Link::Ethernet, side, 0x0806, &message)
}
