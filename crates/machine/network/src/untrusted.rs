//! What is handed to this process from outside and read here, for tests and fuzz targets that give
//! any bytes: they end, without a panic, and take memory that is bounded by what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::{link, paths, route, sockets};

/// A datagram of `sock_diag(7)`, of `rtnetlink(7)`.
pub fn netlink(datagram: &[u8]) -> usize {
    let sockets = sockets::read_any_datagram(datagram);
    let cells = sockets.len();
    assert!(cells <= datagram.len() / 72, "a socket takes 72 bytes at least");
    cells
        + usize::from(link::read_any_answer(datagram).is_some())
        + paths::read_any_message(datagram)
}

/// Files of `/proc`.
pub fn texts(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    usize::from(route::read_any_routes(&text))
        + sockets::read_any_table(&text).len()
        + paths::read_any_counts(&text)
}
