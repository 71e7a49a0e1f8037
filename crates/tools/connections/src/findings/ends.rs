//! Both ends of a connection, alike on both sides.

use std::net::SocketAddr;

/// Both ends of a connection.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// An end without its scope, and an IPv4-mapped address as IPv4.
pub(super) fn plain(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

/// An end as it is shown: an IPv4-mapped address as IPv4, any other one with its scope.
pub(super) fn shown(end: SocketAddr) -> SocketAddr {
    match end.ip().to_canonical() {
        address if address.is_ipv4() => SocketAddr::new(address, end.port()),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_are_ipv4_and_others_keep_their_scope() {
        let shown = |text: &str| shown(text.parse().unwrap()).to_string();
        assert_eq!(shown("[::ffff:10.9.0.1]:80"), "10.9.0.1:80");
        assert_eq!(shown("[fe80::1%3]:80"), "[fe80::1%3]:80");
        assert_eq!(shown("10.9.0.1:80"), "10.9.0.1:80");
    }
}
