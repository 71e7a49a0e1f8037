//! What is known of one packet: from the link layer to the innermost transport header.

use core::net::Ipv4Addr;

use crate::{Address, FiveTuple, Protocol};

/// One packet, read as far as its headers could be trusted. Borrows the packet's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// Innermost addresses and ports, the packet's sender as `orig`; a link-level pair where there
    /// is no parsable IP.
    pub tuple: FiveTuple,
    /// The innermost transport header.
    pub transport: Transport,
    /// Length of the innermost IP packet by its own header (IPv6: 40 + payload length); 0 without
    /// IP.
    pub ip_len: u32,
    /// Captured part of the innermost transport payload.
    pub payload: &'a [u8],
    /// Transport payload bytes that were on the wire, by the headers (not by what was captured); 0
    /// where the transport's header was cut, and all of the IP payload where the protocol is
    /// none of [`Transport`]'s.
    pub payload_len: u32,
    /// Present when the innermost IP packet is a fragment.
    pub fragment: Option<Fragment>,
    /// VLAN ids (12 bits), outermost first; the first two are kept.
    pub vlan: [Option<u16>; 2],
    /// Outermost MPLS label, 20 bits.
    pub mpls: Option<u32>,
    /// The outermost tunnel.
    pub tunnel: Option<Tunnel>,
    /// The capture ended inside a header that was needed.
    pub cut: bool,
}

/// The innermost transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// UDP.
    Udp,
    /// ICMP or `ICMPv6`.
    Icmp(IcmpHeader),
    /// SCTP.
    Sctp,
    /// ARP or RARP for IPv4.
    Arp(ArpHeader),
    /// Anything else, a later fragment, or a header that was cut.
    Other,
}

/// Who ARP is about (RFC 826): the protocol addresses, where these are IPv4's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpHeader {
    /// Address of the station that sends; 0.0.0.0 where it probes for one (RFC 5227).
    pub sender: Ipv4Addr,
    /// Address that is asked for, or told about.
    pub target: Ipv4Addr,
}

/// What sessions need of a TCP header (RFC 9293).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader {
    /// Sequence number.
    pub tcp_seq: u32,
    /// Acknowledgement number; meaningful when the ACK bit is set.
    pub tcp_ack: u32,
    /// Flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Window field as sent, not scaled.
    pub window: u16,
    /// Options, from SYNs only (else the default).
    pub options: TcpOptions,
}

/// The options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamps offered.
    pub timestamps: bool,
}

/// Type and code of an ICMP or `ICMPv6` message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpHeader {
    /// Message type.
    pub kind: u8,
    /// Message code.
    pub code: u8,
}

/// Where in its datagram a fragment belongs. Reassembly state is the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Identification field (16 bits in IPv4, 32 in IPv6).
    pub id: u32,
    /// Offset in bytes.
    pub offset: u16,
    /// More fragments follow.
    pub more: bool,
}

/// The outermost tunnel around the innermost packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// What kind.
    pub kind: TunnelKind,
    /// VNI, TEID, GRE key, ERSPAN session or `PPPoE` session; 0 where there is none.
    pub id: u32,
    /// Outer source address.
    pub src: Address,
    /// Outer destination address.
    pub dst: Address,
}

/// The kinds of tunnel that are walked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TunnelKind {
    /// Generic Routing Encapsulation (RFC 2784, 2890; version 1: RFC 2637).
    Gre,
    /// Encapsulated Remote SPAN, types I to III.
    Erspan,
    /// IPv4 in IPv4 or IPv6 (protocol 4).
    Ipv4InIp,
    /// IPv6 in IPv4 or IPv6 (protocol 41).
    Ipv6InIp,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
    VxlanGpe,
    /// GENEVE (RFC 8926).
    Geneve,
    /// GTP-U version 1 (3GPP TS 29.281).
    GtpU,
    /// PPP over Ethernet (RFC 2516); the outer addresses are stations.
    Pppoe,
    /// L2TP version 2 data (RFC 2661); the id is the tunnel's and the session's, 16 bits each.
    L2tp,
    /// Teredo (RFC 4380).
    Teredo,
    /// AYIYA (draft-massar-v6ops-ayiya).
    Ayiya,
    /// LISP data (RFC 9300) and encapsulated control messages (RFC 9301).
    Lisp,
    /// CAPWAP data (RFC 5415).
    Capwap,
    /// TZSP.
    Tzsp,
    /// MPLS in IP or UDP (RFC 4023, 7510); the id is the outermost label.
    MplsInIp,
    /// Ethernet in IP (RFC 3378).
    EtherIp,
    /// Network Service Header (RFC 8300); the id is the service path's.
    Nsh,
}

impl TunnelKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Gre,
        Self::Erspan,
        Self::Ipv4InIp,
        Self::Ipv6InIp,
        Self::Vxlan,
        Self::VxlanGpe,
        Self::Geneve,
        Self::GtpU,
        Self::Pppoe,
        Self::L2tp,
        Self::Teredo,
        Self::Ayiya,
        Self::Lisp,
        Self::Capwap,
        Self::Tzsp,
        Self::MplsInIp,
        Self::EtherIp,
        Self::Nsh,
    ];

    /// The kind as written in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::Ipv4InIp => "ipv4-in-ip",
            Self::Ipv6InIp => "ipv6-in-ip",
            Self::Vxlan => "vxlan",
            Self::VxlanGpe => "vxlan-gpe",
            Self::Geneve => "geneve",
            Self::GtpU => "gtp-u",
            Self::Pppoe => "pppoe",
            Self::L2tp => "l2tp",
            Self::Teredo => "teredo",
            Self::Ayiya => "ayiya",
            Self::Lisp => "lisp",
            Self::Capwap => "capwap",
            Self::Tzsp => "tzsp",
            Self::MplsInIp => "mpls-in-ip",
            Self::EtherIp => "etherip",
            Self::Nsh => "nsh",
        }
    }
}

impl Default for Decoded<'_> {
    /// A packet of which nothing is known.
    #[inline]
    fn default() -> Self {
        let tuple = FiveTuple {
            orig: Address::None,
            resp: Address::None,
            orig_port: 0,
            resp_port: 0,
            proto: Protocol::UNPARSED,
        };
        Self {
            tuple,
            transport: Transport::Other,
            ip_len: 0,
            payload: &[],
            payload_len: 0,
            fragment: None,
            vlan: [None; 2],
            mpls: None,
            tunnel: None,
            cut: false,
        }
    }
}
