//! What can go wrong on the way in, one line each.

use std::io;
use std::path::PathBuf;

use format::pcapng::BlockError;

/// A source cannot go on, or cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file starts with no capture format's magic.
    #[error("{}: not a pcap, pcapng or snoop file{hint}", path.display())]
    NotACapture {
        /// Path of the file.
        path: PathBuf,
        /// What to do about it, with its punctuation, where the first bytes show it.
        hint: &'static str,
    },
    /// The capture is damaged; every packet before that was delivered.
    #[error("{}: damaged at byte {offset}: {damage}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Where the record, block or header starts that cannot be read, from the file's start.
        offset: u64,
        /// What is wrong there.
        damage: Damage,
    },
    /// It was stopped before all was read.
    #[error("{}: stopped before its end", path.display())]
    Stopped {
        /// Path of the file, or of what was to be read next.
        path: PathBuf,
    },
    /// The filter does not compile.
    #[error(transparent)]
    Filter(#[from] filters::Error),
    /// There is no such interface.
    #[error("there is no network interface {name}; `ip link` shows which there are")]
    NoInterface {
        /// The name asked for.
        name: String,
    },
    /// This process may not capture.
    #[error(
        "not permitted to capture from {name}; run as root or give the program the capability: \
         setcap cap_net_raw+ep PROGRAM"
    )]
    Permission {
        /// Name of the interface.
        name: String,
    },
    /// This process may not capture by `AF_XDP`.
    #[error(
        "not permitted to use AF_XDP on {name}; run as root or give the program the \
         capabilities: setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM"
    )]
    XdpPermission {
        /// Name of the interface.
        name: String,
    },
    /// Another XDP program is attached.
    #[error(
        "interface {name} has another XDP program (see `ip link show {name}`); end what \
         uses it, or record with --source packet"
    )]
    XdpTaken {
        /// Name of the interface.
        name: String,
    },
    /// A receive queue has a socket already.
    #[error("receive queue {queue} of {name} has another AF_XDP socket; end what uses it")]
    XdpQueueTaken {
        /// Name of the interface.
        name: String,
        /// Number of the receive queue.
        queue: u32,
    },
    /// There are fewer transmit queues than threads; no two can share one.
    #[error("interface {name} has {queues} transmit queues, and AF_XDP needs one for each thread")]
    XdpQueues {
        /// Name of the interface.
        name: String,
        /// How many it has.
        queues: u32,
    },
    /// The card takes VLAN tags out, which `AF_XDP` does not report.
    #[error(
        "interface {name} takes VLAN tags out of frames, and AF_XDP would lose them; ethtool -K \
         {name} rxvlan off, or record with --source packet"
    )]
    XdpTags {
        /// Name of the interface.
        name: String,
    },
    /// Its packets have been through another interface, where the kernel took their tags out.
    #[error(
        "interface {name} lies on another one and has no driver for AF_XDP, which would lose VLAN \
         tags; record that one, or record with --source packet"
    )]
    XdpLayered {
        /// Name of the interface.
        name: String,
    },
    /// Frames of this MTU do not fit a chunk, and the kernel or the driver does not split them.
    #[error(
        "interface {name}: AF_XDP takes no frames of an MTU of {mtu} here; ip link set {name} mtu \
         3800, or record with --source packet"
    )]
    XdpTooLong {
        /// Name of the interface.
        name: String,
        /// MTU of the interface.
        mtu: usize,
    },
    /// This process may not send.
    #[error(
        "not permitted to send on {name}; run as root or give the program the capability: \
         setcap cap_net_raw+ep PROGRAM"
    )]
    SendPermission {
        /// Name of the interface.
        name: String,
    },
    /// The interface is down.
    #[error("interface {name} is down; bring it up: ip link set {name} up")]
    Down {
        /// Name of the interface.
        name: String,
    },
    /// The interface is up and nothing is connected to it.
    #[error(
        "interface {name} has no carrier: the cable, or the other end of the pair, is missing or \
         down"
    )]
    NoCarrier {
        /// Name of the interface.
        name: String,
    },
    /// Packets that are not Ethernet frames cannot be sent on this interface, or none at all.
    #[error("interface {name} takes no Ethernet frames (hardware type {hardware_type})")]
    NotEthernet {
        /// Name of the interface.
        name: String,
        /// `ARPHRD_` number.
        hardware_type: u16,
    },
    /// The interface's frames have a form that is not supported.
    #[error("interface {name} has hardware type {hardware_type}, which has no supported link type")]
    HardwareType {
        /// Name of the interface.
        name: String,
        /// `ARPHRD_` number.
        hardware_type: u16,
    },
    /// An interface has been removed; capture goes on with the others.
    #[error("interface {name} was removed; recording goes on with the others")]
    InterfaceRemoved {
        /// Name of the interface.
        name: String,
    },
    /// Every interface that was captured from has been removed.
    #[error("interface {name} was removed, and no other is left to capture from")]
    InterfaceGone {
        /// The last one.
        name: String,
    },
    /// A call on an interface failed.
    #[error("interface {name}: {operation} failed: {source}")]
    System {
        /// Name of the interface.
        name: String,
        /// Operation that failed.
        operation: &'static str,
        /// The reason given.
        source: io::Error,
    },
    /// After the stop, packets that the kernel had accepted did not appear in the ring.
    #[error("interface {name}: {missing} accepted packets never appeared in the kernel ring")]
    Undrained {
        /// Name of the interface.
        name: String,
        /// Number of packets.
        missing: u64,
    },
}

/// What is wrong with a capture file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// There is not a single byte.
    #[error("the file is empty")]
    Empty,
    /// The file ends inside a header, record or block.
    #[error("the file ends inside {what}: {present} of {needed} bytes are there")]
    CutShort {
        /// Part of the file that is cut short.
        what: &'static str,
        /// Bytes present.
        present: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// The record or block claims a size that no sane writer produces.
    #[error("{what} of {size} bytes is larger than the {limit} that are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Size claimed.
        size: u64,
        /// Largest size accepted.
        limit: u64,
    },
    /// The pcap file header names a version that was never defined.
    #[error("pcap version {major}.{minor} is not supported")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// A block of stenotype has packets that do not lie in it.
    #[error("the block of stenotype is not one of the kernel's ring")]
    KernelBlock,
    /// More interfaces than any capture has.
    #[error("more than {limit} interfaces are described")]
    Interfaces {
        /// So many are read.
        limit: usize,
    },
    /// A pcapng block is broken.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A packet's interface is not described before it in its section.
    #[error("the packet names interface {interface}, but the section describes {described}")]
    UnknownInterface {
        /// Interface of the packet.
        interface: u32,
        /// Interfaces described so far.
        described: usize,
    },
}
