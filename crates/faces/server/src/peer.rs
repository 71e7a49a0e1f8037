//! Who is at the other end of a connection.

use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) has_tls: bool,
    /// Common name of its certificate, which the CA has vouched for.
    pub(crate) certificate: Option<String>,
}
