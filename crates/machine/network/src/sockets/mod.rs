//! TCP as this machine's kernel tells it: every socket of every network namespace that we may
//! enter, the counters and settings of each, and whose the sockets are.
//!
//! Sockets by `sock_diag(7)`; no privilege is needed for those of one's own namespace.

mod dump;
mod info;
mod namespaces;
mod owners;
mod tables;
mod tree;

use std::net::SocketAddr;

pub use info::{SynOptions, TcpInfo};
pub use namespaces::{Namespace, Namespaces};
pub use owners::{Owner, Owners};
pub use tables::{Counters, Settings};
pub use tree::family;

/// State of a socket (`include/net/tcp_states.h`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TcpState {
    /// Both ways are open.
    Established,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received; the socket waits for the end of the handshake.
    SynReceived,
    /// Waits for connections.
    Listen,
    /// It is over, or about to be.
    Closing,
}

/// A TCP socket.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSocket {
    /// Its state.
    pub state: TcpState,
    /// Its own end; link-local addresses carry their scope.
    pub local: SocketAddr,
    /// The other end; of a listener port 0.
    pub remote: SocketAddr,
    /// Number in the file system of sockets; 0 where no process has accepted it yet.
    pub inode: u32,
    /// What the kernel knows it by as long as it lives.
    pub cookie: u64,
    /// User that made it.
    pub uid: u32,
    /// Number of its control group's directory (cgroup v2), where the kernel tells it.
    pub cgroup: Option<u64>,
    /// Bytes that wait to be read; of a listener the connections that wait to be accepted.
    pub receive_queue: u32,
    /// Bytes not yet acknowledged; of a listener its backlog.
    pub send_queue: u32,
    /// Name of its congestion control.
    pub congestion: Option<String>,
    /// What TCP itself says; `None` of those that have no such state (SYN received, time wait).
    pub info: Option<TcpInfo>,
}

impl TcpSocket {
    /// One of which nothing is known but its state and its ends, its own first.
    pub fn new(state: TcpState, [local, remote]: [SocketAddr; 2]) -> Self {
        Self {
            state,
            local,
            remote,
            inode: 0,
            cookie: 0,
            uid: 0,
            cgroup: None,
            receive_queue: 0,
            send_queue: 0,
            congestion: None,
            info: None,
        }
    }
}

/// Where a socket of TCP or UDP ends, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Protocol number of IP.
    pub protocol: u8,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; unspecified, with port 0, where it is connected to nobody.
    pub remote: SocketAddr,
    /// Number in the file system of sockets; 0 where no process has it (yet).
    pub inode: u32,
}

/// Those of the namespace that this thread is in.
pub fn endpoints() -> Result<Vec<Endpoint>, crate::Error> {
    dump::endpoints().map_err(|error| crate::Error::system("list the sockets", error))
}

/// What one namespace had at one moment.
#[derive(Clone, Debug, Default)]
pub struct NamespaceLook {
    /// Its sockets, in no order.
    pub sockets: Vec<TcpSocket>,
    /// Its counters, by the names of nstat(8).
    pub counters: Counters,
    /// Its settings.
    pub settings: Settings,
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
