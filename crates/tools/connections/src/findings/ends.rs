//! Both ends of a connection, alike on both sides.

use std::net::SocketAddr;

/// Both ends of a connection.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// An end without its scope, and an IPv4-mapped address as IPv4.
pub(super) fn plain(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}
