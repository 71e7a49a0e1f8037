//! Who talks to whom: addresses, protocol, five-tuple.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One end of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// Nothing known: the packet has no readable address.
    None,
    /// An Ethernet-style station address, for packets that carry no parsable IP.
    Mac([u8; 6]),
    /// IPv4.
    V4(Ipv4Addr),
    /// IPv6.
    V6(Ipv6Addr),
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => Self::V6(ip),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Mac([first, rest @ ..]) => {
                write!(f, "{first:02x}")?;
                rest.iter().try_for_each(|byte| write!(f, ":{byte:02x}"))
            }
            Self::V4(ip) => ip.fmt(f),
            Self::V6(ip) => ip.fmt(f),
        }
    }
}

/// What a session speaks: 0 to 255 an IP protocol number, 256 nothing parsable, from 0x0600 an
/// `EtherType`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Protocol(pub u16);

impl Protocol {
    /// ICMP.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// `ICMPv6`.
    pub const ICMPV6: Self = Self(58);
    /// SCTP.
    pub const SCTP: Self = Self(132);
    /// A packet of which not even the link layer could be read.
    pub const UNPARSED: Self = Self(256);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// RARP.
    pub const RARP: Self = Self(0x8035);

    /// Whether the ports of a tuple say something: TCP, UDP and SCTP. In others a port of 0 only
    /// fills the tuple.
    pub fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::SCTP)
    }

    /// The name of the well-known ones, as in docs/sessions.md.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::ICMP => "icmp",
            Self(2) => "igmp",
            Self::TCP => "tcp",
            Self::UDP => "udp",
            Self(47) => "gre",
            Self(50) => "esp",
            Self(51) => "ah",
            Self::ICMPV6 => "icmp6",
            Self(89) => "ospf",
            Self::SCTP => "sctp",
            Self::UNPARSED => "unparsed",
            Self::ARP => "arp",
            Self(4) => "ipip",
            Self(33) => "dccp",
            Self(41) => "ipv6",
            Self(46) => "rsvp",
            Self(88) => "eigrp",
            Self(103) => "pim",
            Self(112) => "vrrp",
            Self(115) => "l2tp",
            Self(124) => "isis",
            Self(136) => "udplite",
            // EtherTypes (IEEE, Ethertype field values).
            Self(0x0842) => "wol",
            Self(0x22f3) => "trill",
            Self(0x4305) => "batman",
            Self::RARP => "rarp",
            Self(0x809b) => "appletalk",
            Self(0x80f3) => "aarp",
            Self(0x8137) => "ipx",
            Self(0x8809) => "slow",
            Self(0x8863) => "pppoe-discovery",
            Self(0x888e) => "eapol",
            Self(0x8892) => "profinet",
            Self(0x8899) => "realtek",
            Self(0x88a4) => "ethercat",
            Self(0x88b8) => "goose",
            Self(0x88ba) => "sv",
            Self(0x88cc) => "lldp",
            Self(0x88e1) => "homeplug",
            Self(0x88e3) => "mrp",
            Self(0x88e5) => "macsec",
            Self(0x88f7) => "ptp",
            Self(0x88fb) => "prp",
            Self(0x8902) => "cfm",
            Self(0x8906) => "fcoe",
            Self(0x8914) => "fip",
            Self(0x8915) => "roce",
            Self(0x892f) => "hsr",
            Self(0x9000) => "loop",
            _ => return None,
        })
    }
}

/// A session's key as seen in one packet (source is `orig`) or as kept in its record (sender of the
/// first packet is `orig`). Ports are 0 where the protocol has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FiveTuple {
    /// Address of the originator.
    pub orig: Address,
    /// Address of the responder.
    pub resp: Address,
    /// Port of the originator.
    pub orig_port: u16,
    /// Port of the responder.
    pub resp_port: u16,
    /// Protocol between the ends.
    pub proto: Protocol,
}

impl FiveTuple {
    /// The same pair seen from the other side.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            orig: self.resp,
            resp: self.orig,
            orig_port: self.resp_port,
            resp_port: self.orig_port,
            ..self
        }
    }

    /// The direction-free form: the end with the smaller (address, port) comes first. The flag says
    /// whether this turned the tuple round.
    pub fn canonical(self) -> (Self, bool) {
        if (self.orig, self.orig_port) <= (self.resp, self.resp_port) {
            (self, false)
        } else {
            (self.reversed(), true)
        }
    }
}
