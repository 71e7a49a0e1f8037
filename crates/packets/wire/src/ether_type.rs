//! Ether types that several layers know (IEEE 802 numbers).

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const MPLS: u16 = 0x8847;
pub(crate) const NSH: u16 = 0x894f;
