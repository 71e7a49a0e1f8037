//! Link types: the meaning of a packet's first byte.

use core::fmt;

/// A value of the LINKTYPE_ registry (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkType(pub u16);

/// Declares the link types that are decoded, each with the name that libpcap and the tools built on
/// it show.
macro_rules! link_types {
    ($($(#[$doc:meta])* $constant:ident = $value:literal, $name:literal;)*) => {
        impl LinkType {
            $($(#[$doc])* pub const $constant: Self = Self($value);)*

            /// Every link type that [`crate::decode`] looks into.
            pub const DECODED: &'static [Self] = &[$(Self::$constant),*];

            /// The name after `DLT_` in libpcap, of the link types that are decoded.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

link_types! {
    /// BSD loopback: address family in the byte order of the writer.
    NULL = 0, "NULL";
    /// Ethernet.
    ETHERNET = 1, "EN10MB";
    /// Token Ring.
    IEEE802_5 = 6, "IEEE802";
    /// ARCNET.
    ARCNET = 7, "ARCNET";
    /// SLIP with a 16-byte header.
    SLIP = 8, "SLIP";
    /// PPP, with or without HDLC framing.
    PPP = 9, "PPP";
    /// FDDI.
    FDDI = 10, "FDDI";
    /// Raw IP as some BSD systems number it.
    RAW_BSD = 12, "RAW12";
    /// Raw IP as OpenBSD numbers it.
    RAW_OPENBSD = 14, "RAW14";
    /// PPP in HDLC framing, or Cisco HDLC.
    PPP_HDLC = 50, "PPP_SERIAL";
    /// PPP over Ethernet, without the Ethernet.
    PPP_ETHER = 51, "PPP_ETHER";
    /// Multiprotocol over ATM.
    ATM_RFC1483 = 100, "ATM_RFC1483";
    /// Raw IP, either version.
    RAW = 101, "RAW";
    /// Cisco HDLC.
    C_HDLC = 104, "C_HDLC";
    /// IEEE 802.11.
    IEEE802_11 = 105, "IEEE802_11";
    /// Classical IP over ATM.
    ATM_CLIP = 106, "ATM_CLIP";
    /// Frame Relay.
    FRELAY = 107, "FRELAY";
    /// OpenBSD loopback: address family in network byte order.
    LOOP = 108, "LOOP";
    /// Linux cooked capture.
    LINUX_SLL = 113, "LINUX_SLL";
    /// IEEE 802.11 behind a Prism header.
    PRISM_HEADER = 119, "PRISM_HEADER";
    /// ATM as Sun's devices give it.
    SUNATM = 123, "SUNATM";
    /// IEEE 802.11 behind a radiotap header.
    IEEE802_11_RADIO = 127, "IEEE802_11_RADIO";
    /// ARCNET as Linux gives it.
    ARCNET_LINUX = 129, "ARCNET_LINUX";
    /// IEEE 802.11 behind an AVS header.
    IEEE802_11_RADIO_AVS = 163, "IEEE802_11_RADIO_AVS";
    /// PPP behind a byte with the direction.
    PPP_WITH_DIRECTION = 166, "PPP_PPPD";
    /// Per-packet information.
    PPI = 192, "PPI";
    /// MPLS without a link layer.
    MPLS = 219, "MPLS";
    /// Raw IPv4.
    IPV4 = 228, "IPV4";
    /// Raw IPv6.
    IPV6 = 229, "IPV6";
    /// Netfilter's log.
    NFLOG = 239, "NFLOG";
    /// Linux netlink messages.
    NETLINK = 253, "NETLINK";
    /// Linux cooked capture, version 2.
    LINUX_SLL2 = 276, "LINUX_SLL2";
    /// Ethernet with a Broadcom switch tag.
    DSA_TAG_BRCM = 281, "DSA_TAG_BRCM";
    /// Ethernet behind a Broadcom switch tag.
    DSA_TAG_BRCM_PREPEND = 282, "DSA_TAG_BRCM_PREPEND";
    /// Ethernet with a Marvell switch tag.
    DSA_TAG_DSA = 284, "DSA_TAG_DSA";
    /// Ethernet with a Marvell switch tag behind an `EtherType`.
    DSA_TAG_EDSA = 285, "DSA_TAG_EDSA";
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{}", self.0),
        }
    }
}
