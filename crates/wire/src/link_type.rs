//! Link types: the meaning of a packet's first byte.

use core::fmt;

/// A value of the LINKTYPE_ registry (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the writer.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
