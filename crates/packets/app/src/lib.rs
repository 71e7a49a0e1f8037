//! Application payload to metadata: what a session says of itself before, or without, encryption.
//!
//! The caller gives payload with its direction, its time, its place in the stream, and whether some
//! of it was cut away ([`segment`], [`datagram`]); it gets [`wire::Names`]. Payload is never
//! trusted: every read is checked, every list, value and buffer is bounded, and the space that all
//! sessions together take for messages in parts is one [`Budget`]. There is no I/O and no clock
//! here.

mod application;
mod arp;
mod budget;
mod certificate;
mod client_random;
mod datagram;
mod dhcp;
mod dialog;
mod dns;
mod findings;
mod fingerprint;
mod head;
mod hello;
mod http;
mod icmp;
mod memo;
mod modbus;
mod ntp;
mod payload;
mod quic;
mod rdp;
mod reader;
mod reorder;
mod search;
mod segment;
mod side;
pub mod signature;
mod smb;
mod ssh;
mod tls;
mod values;

pub use arp::arp;
pub use budget::{Budget, Room};
pub use client_random::client_random;
pub use datagram::datagram;
pub use dns::{DnsMessage, dns_message};
pub use findings::{AtRest, Findings};
pub use icmp::icmp;
pub use payload::{Datagram, Segment};
pub use search::{Interest, SEARCH_BYTES_MAX, Search};
pub use segment::segment;
pub use side::Side;

/// How a message is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Who sent it.
    side: Side,
    /// When its last segment came, in nanoseconds.
    time_ns: i64,
    /// No more of it will come: what it shows is taken.
    is_last: bool,
}

/// What a parser says about the bytes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A message ended after so many bytes.
    Done(usize),
    /// Not complete yet.
    More,
    /// Not this protocol.
    Foreign,
}
