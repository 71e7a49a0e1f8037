//! Packets made by hand, with one conversation in all of them.

use wire::{LinkType, TunnelKind};

pub(crate) const SOURCE: [u8; 4] = [10, 0, 0, 1];
pub(crate) const DESTINATION: [u8; 4] = [10, 0, 0, 2];
pub(crate) const STATIONS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub(crate) fn len16(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("test packets are short").to_be_bytes()
}

pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&STATIONS, &kind.to_be_bytes(), payload])
}

pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_fragment(protocol, [0, 0], payload)
}

pub(crate) fn ipv4_fragment(protocol: u8, field: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let len = len16(20 + payload.len());
    let [f0, f1] = field;
    let head = [0x45, 0, len[0], len[1], 0xab, 0xcd, f0, f1, 64, protocol, 0, 0];
    join(&[&head, &SOURCE, &DESTINATION, payload])
}

pub(crate) fn ipv6_address(last: u8) -> [u8; 16] {
    [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let head = [&[0x60, 0, 0, 0], &len16(payload.len())[..], &[next, 64]].concat();
    join(&[&head, &ipv6_address(1), &ipv6_address(2), payload])
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    join(&[&ports, &len16(8 + payload.len()), &[0, 0], payload])
}

/// 1000 to 80, sequence 1, acknowledgement 2, window 3.
pub(crate) fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4), "options fill words");
    let words = u8::try_from(5 + options.len() / 4).expect("options are short");
    let head = [3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, words << 4, flags, 0, 3, 0, 0, 0, 0];
    join(&[&head, options, payload])
}

/// The conversation: five bytes over TCP.
pub(crate) fn inner() -> Vec<u8> {
    ipv4(6, &tcp(0x18, &[], b"hello"))
}

pub(crate) fn outer_udp(port: u16, header: &[u8], inner: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(17, &udp(40000, port, &join(&[header, inner]))))
}

pub(crate) fn outer_gre(header: &[u8], inner: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(47, &join(&[header, inner])))
}

/// A name, a link type, and a packet of it.
pub(crate) type Case = (&'static str, LinkType, Vec<u8>);

/// LLC and SNAP before IPv4.
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// Wrappings without a tunnel.
pub(crate) fn links() -> Vec<Case> {
    [ethernet_links(), host_links(), wireless_links(), line_links()].concat()
}

fn ethernet_links() -> Vec<Case> {
    let ip = inner();
    let entry = [0, 0, 16, 64];
    let last = [0, 1, 1, 64];
    vec![
        ("ethernet", LinkType::ETHERNET, ethernet(0x0800, &ip)),
        ("802.3 with SNAP", LinkType::ETHERNET, ethernet(60, &join(&[&SNAP, &ip]))),
        ("802.3 with LLC", LinkType::ETHERNET, ethernet(60, &join(&[&[6, 6, 3], &ip]))),
        ("VN-tag", LinkType::ETHERNET, ethernet(0x8926, &join(&[&[0, 0, 0, 0, 8, 0], &ip]))),
        (
            "MACsec in the clear",
            LinkType::ETHERNET,
            ethernet(0x88e5, &join(&[&[0x20; 14], &[8, 0], &ip])),
        ),
        (
            "backbone bridging",
            LinkType::ETHERNET,
            ethernet(0x88e7, &join(&[&[0; 4], &ethernet(0x0800, &ip)])),
        ),
        ("MPLS", LinkType::ETHERNET, ethernet(0x8847, &join(&[&entry, &last, &ip]))),
        (
            "pseudowire with control word",
            LinkType::ETHERNET,
            ethernet(0x8848, &join(&[&last, &[0; 4], &ethernet(0x0800, &ip)])),
        ),
        ("pseudowire without control word", LinkType::MPLS, join(&[&last, &ethernet(0x0800, &ip)])),
    ]
}

fn host_links() -> Vec<Case> {
    let ip = inner();
    let sll = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let sll2 = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let netlink = [0, 4, 3, 0x38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12];
    let queued = [0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 44];
    vec![
        ("BSD loopback, little-endian", LinkType::NULL, join(&[&[2, 0, 0, 0], &ip])),
        ("BSD loopback, big-endian", LinkType::NULL, join(&[&[0, 0, 0, 2], &ip])),
        ("OpenBSD loopback", LinkType::LOOP, join(&[&[0, 0, 0, 2], &ip])),
        ("raw", LinkType::RAW, ip.clone()),
        ("raw, BSD", LinkType::RAW_BSD, ip.clone()),
        ("raw, OpenBSD", LinkType::RAW_OPENBSD, ip.clone()),
        ("raw IPv4", LinkType::IPV4, ip.clone()),
        ("cooked", LinkType::LINUX_SLL, join(&[&sll, &ip])),
        ("cooked 2", LinkType::LINUX_SLL2, join(&[&sll2, &ip])),
        ("netfilter queue", LinkType::NETLINK, join(&[&netlink, &queued, &[49, 0, 10, 0], &ip])),
        (
            "netfilter log of a bridge",
            LinkType::NFLOG,
            join(&[&[7, 0, 0, 0, 8, 0, 1, 0, 8, 0, 3, 0, 49, 0, 9, 0], &ip]),
        ),
    ]
}

fn wireless_links() -> Vec<Case> {
    let ip = inner();
    let data = |flags: u8| join(&[&[0x08, flags, 0, 0], &STATIONS, &STATIONS[..6], &[0, 0]]);
    let qos = join(&[&[0x88, 1, 0, 0], &STATIONS, &STATIONS[..6], &[0, 0, 0, 0]]);
    let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
    vec![
        ("802.11", LinkType::IEEE802_11, join(&[&data(1), &SNAP, &ip])),
        ("802.11 to a station", LinkType::IEEE802_11, join(&[&data(2), &SNAP, &ip])),
        ("802.11 relayed", LinkType::IEEE802_11, join(&[&data(3), &[0; 6], &SNAP, &ip])),
        (
            "802.11 QoS behind radiotap, padded",
            LinkType::IEEE802_11_RADIO,
            join(&[&radiotap, &qos, &[0, 0], &SNAP, &ip]),
        ),
        (
            "802.11 behind Prism",
            LinkType::PRISM_HEADER,
            join(&[&[0, 0, 0, 0x44, 16, 0, 0, 0], &[0; 8], &data(0), &SNAP, &ip]),
        ),
        (
            "802.11 behind PPI",
            LinkType::PPI,
            join(&[&[0, 0, 8, 0, 105, 0, 0, 0], &data(0), &SNAP, &ip]),
        ),
    ]
}

fn line_links() -> Vec<Case> {
    let ip = inner();
    vec![
        ("PPP", LinkType::PPP, join(&[&[0xff, 3, 0, 0x21], &ip])),
        ("PPP, compressed protocol", LinkType::PPP_HDLC, join(&[&[0x21], &ip])),
        ("PPP with direction", LinkType::PPP_WITH_DIRECTION, join(&[&[0, 0xff, 3, 0, 0x21], &ip])),
        ("Cisco HDLC", LinkType::C_HDLC, join(&[&[0x0f, 0, 8, 0], &ip])),
        ("Cisco HDLC as PPP", LinkType::PPP_HDLC, join(&[&[0x8f, 0, 8, 0], &ip])),
        ("Frame Relay", LinkType::FRELAY, join(&[&[4, 1, 3, 0xcc], &ip])),
        ("Frame Relay with SNAP", LinkType::FRELAY, join(&[&[4, 1, 3, 0, 0x80], &SNAP[3..], &ip])),
        ("Frame Relay, Cisco", LinkType::FRELAY, join(&[&[4, 1, 8, 0], &ip])),
        ("SLIP", LinkType::SLIP, join(&[&[0; 16], &ip])),
        ("FDDI", LinkType::FDDI, join(&[&[0x50], &STATIONS, &SNAP, &ip])),
        ("Token Ring", LinkType::IEEE802_5, join(&[&[0x10, 0x40], &STATIONS, &SNAP, &ip])),
        ("ARCNET", LinkType::ARCNET, join(&[&[1, 2, 212, 0, 0, 1], &ip])),
        ("ARCNET of Linux, RFC 1051", LinkType::ARCNET_LINUX, join(&[&[1, 2, 0, 0, 240], &ip])),
        ("ATM", LinkType::ATM_RFC1483, join(&[&SNAP, &ip])),
        ("ATM, routed", LinkType::ATM_RFC1483, join(&[&[0xfe, 0xfe, 3, 0xcc], &ip])),
        (
            "ATM, bridged",
            LinkType::SUNATM,
            join(&[
                &[2, 0, 0, 32, 0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0],
                &ethernet(0x0800, &ip),
            ]),
        ),
        ("Broadcom tag", LinkType::DSA_TAG_BRCM, join(&[&STATIONS, &[0; 4], &[8, 0], &ip])),
        (
            "Broadcom tag in front",
            LinkType::DSA_TAG_BRCM_PREPEND,
            join(&[&[0; 4], &ethernet(0x0800, &ip)]),
        ),
        (
            "Marvell tag behind a type",
            LinkType::DSA_TAG_EDSA,
            join(&[&STATIONS, &[0xda, 0xda, 0, 0, 0x40, 0, 0, 0, 8, 0], &ip]),
        ),
    ]
}

/// Wrappings in a tunnel, with its kind and id.
pub(crate) fn tunnels() -> Vec<(TunnelKind, u32, Vec<u8>)> {
    use TunnelKind as Kind;
    let ip = inner();
    let frame = ethernet(0x0800, &ip);
    let teid = [0, 0, 0, 9];
    let erspan_3 = join(&[&[0x20, 0, 0, 9], &[0; 4], &[0, 0, 0, 1], &[0; 8]]);
    vec![
        (Kind::Gre, 0, outer_gre(&[0, 0, 8, 0], &ip)),
        (Kind::Gre, 9, outer_gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &ip)),
        (Kind::Gre, 9, outer_gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &frame)),
        (
            Kind::Gre,
            9,
            outer_gre(&[0x30, 0x81, 0x88, 0x0b, 0, 49, 0, 9], &join(&[&[0; 8], &[0x21], &ip])),
        ),
        (Kind::Gre, 0, outer_udp(4754, &[0, 0, 8, 0], &ip)),
        (Kind::Erspan, 0, outer_gre(&[0, 0, 0x88, 0xbe], &frame)),
        (
            Kind::Erspan,
            9,
            outer_gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 9, 0, 0, 0, 0], &frame),
        ),
        (
            Kind::Erspan,
            9,
            outer_gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &join(&[&erspan_3, &frame])),
        ),
        (Kind::Ipv4InIp, 0, ethernet(0x0800, &ipv4(4, &ip))),
        (Kind::Ipv4InIp, 0, ethernet(0x86dd, &ipv6(4, &ip))),
        (Kind::EtherIp, 0, ethernet(0x0800, &ipv4(97, &join(&[&[0x30, 0], &frame])))),
        (Kind::MplsInIp, 16, ethernet(0x0800, &ipv4(137, &join(&[&[0, 1, 1, 64], &ip])))),
        (Kind::MplsInIp, 16, outer_udp(6635, &[0, 1, 1, 64], &ip)),
        (Kind::Vxlan, 9, outer_udp(4789, &[8, 0, 0, 0, 0, 0, 9, 0], &frame)),
        (Kind::Vxlan, 9, outer_udp(8472, &[8, 0, 0, 0, 0, 0, 9, 0], &frame)),
        (Kind::VxlanGpe, 9, outer_udp(4790, &[0x0c, 0, 0, 1, 0, 0, 9, 0], &ip)),
        (
            Kind::VxlanGpe,
            9,
            outer_udp(
                4790,
                &[0x0c, 0, 0, 4, 0, 0, 9, 0],
                &join(&[&[0, 2, 1, 1, 0, 0, 7, 255], &ip]),
            ),
        ),
        (Kind::Geneve, 9, outer_udp(6081, &[1, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0, 0], &ip)),
        (Kind::Geneve, 9, outer_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 9, 0], &frame)),
        (Kind::GtpU, 9, outer_udp(2152, &join(&[&[0x30, 255, 0, 45], &teid]), &ip)),
        (
            Kind::GtpU,
            9,
            outer_udp(
                2152,
                &join(&[&[0x34, 255, 0, 53], &teid, &[0, 0, 0, 0x85, 1, 0, 9, 0]]),
                &ip,
            ),
        ),
        (Kind::Pppoe, 9, ethernet(0x8864, &join(&[&[0x11, 0, 0, 9, 0, 47, 0, 0x21], &ip]))),
        (
            Kind::L2tp,
            0x0001_0009,
            outer_udp(1701, &[0x40, 2, 0, 55, 0, 1, 0, 9, 0xff, 3, 0, 0x21], &ip),
        ),
        (Kind::Lisp, 0, outer_udp(4341, &[0x80, 0, 0, 0, 0, 0, 0, 1], &ip)),
        (Kind::Lisp, 0, outer_udp(4342, &[0x80, 0, 0, 0], &ip)),
        (Kind::Capwap, 0, outer_udp(5247, &[0, 0x10, 2, 0, 0, 0, 0, 0], &frame)),
        (Kind::Tzsp, 0, outer_udp(37008, &[1, 0, 0, 1, 10, 1, 0, 0, 1], &frame)),
        (Kind::Nsh, 7, ethernet(0x894f, &join(&[&[0, 6, 1, 1, 0, 0, 7, 255], &[0; 16], &ip]))),
    ]
}
