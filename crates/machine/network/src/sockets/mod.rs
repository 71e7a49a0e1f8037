//! TCP as this machine's kernel tells it: every socket of every network namespace that we may
//! enter, the counters and settings of each, and whose the sockets are.
//!
//! Sockets by `sock_diag(7)`; no privilege is needed for those of one's own namespace.

mod dump;
mod info;
mod namespaces;
mod owners;
mod socket;
mod tables;
mod tree;

pub(crate) use dump::DnsAsker;
pub use info::{SynOptions, TcpInfo};
pub use namespaces::{Namespace, NamespaceLook, Namespaces};
pub use owners::{Owner, Owners};
pub use socket::{DatagramSocket, Endpoint, SocketMemory, TcpSocket, TcpState};
pub use tables::{Counters, Settings, counters};
pub use tree::family;

/// Those of the namespace that this thread is in.
pub fn endpoints() -> Result<Vec<Endpoint>, crate::Error> {
    dump::endpoints().map_err(|error| crate::Error::system("list the sockets", error))
}

/// For tests that give any bytes: a datagram of `sock_diag(7)`.
pub(crate) fn read_any_datagram(datagram: &[u8]) -> Vec<TcpSocket> {
    let mut sockets = Vec::new();
    dump::take(datagram, &mut sockets).unwrap_or_default();
    sockets
}

/// For tests that give any text: a table of counters.
pub(crate) fn read_any_table(text: &str) -> Counters {
    tables::parse(text)
}
