//! A socket: what the kernel tells of it, whoever asked.

use std::net::SocketAddr;

use super::info::TcpInfo;

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
    /// It is over; its ports stay in use for a minute.
    TimeWait,
    /// The other side has closed it, and the program has not.
    CloseWait,
    /// It is about to be over.
    Closing,
}

/// A TCP socket.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSocket {
    /// TCP state of the socket.
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
    /// Number of its control group's directory (cgroup v2), where the kernel reports it.
    pub cgroup: Option<u64>,
    /// Bytes that wait to be read; of a listener the connections that wait to be accepted.
    pub receive_queue: u32,
    /// Bytes not yet acknowledged; of a listener its backlog.
    pub send_queue: u32,
    /// Times that what waits for its acknowledgement was sent again, without an answer since.
    pub retries: u8,
    /// Name of its congestion control.
    pub congestion: Option<String>,
    /// What its queues may hold; `None` where the kernel does not report it.
    pub memory: Option<SocketMemory>,
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
            retries: 0,
            congestion: None,
            memory: None,
            info: None,
        }
    }
}

/// What the queues of a socket may hold, and what they did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketMemory {
    /// Most bytes of memory that what waits to be read may take.
    pub receive_buffer: u32,
    /// Most bytes of memory that what waits to be acknowledged may take.
    pub send_buffer: u32,
    /// Packets that were dropped at this socket, of a listener those that asked for a connection;
    /// `None` where the kernel does not report them.
    pub drops: Option<u32>,
    /// Bytes of memory that it keeps at hand for what is received. A UDP socket has none until
    /// something was (`udp_rmem_schedule`).
    pub reserved: u32,
}

/// Where a socket of TCP or UDP ends, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Protocol number of IP.
    pub protocol: u8,
    /// Local end of the connection.
    pub local: SocketAddr,
    /// The other end; unspecified, with port 0, where it is not connected.
    pub remote: SocketAddr,
    /// Number in the file system of sockets; 0 where no process has it (yet).
    pub inode: u32,
}

/// A UDP socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatagramSocket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; unspecified, with port 0, where it is not connected.
    pub remote: SocketAddr,
    /// What the kernel knows it by as long as it lives.
    pub cookie: u64,
    /// Number in the file system of sockets.
    pub inode: u32,
    /// Bytes of memory that datagrams take that wait to be read.
    pub receive_queue: u32,
    /// Most bytes that they may take.
    pub receive_buffer: u32,
    /// Datagrams that were dropped at this socket; `None` where the kernel does not report them.
    pub drops: Option<u32>,
    /// A datagram has come for it since it is there.
    pub has_received: bool,
}
