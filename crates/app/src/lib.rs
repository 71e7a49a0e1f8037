//! Application payload to metadata: what a session says of itself in TLS, HTTP/1 and DNS.
//!
//! The caller gives payload with its direction, its place in the stream, and how much of it was cut
//! away; it gets [`wire::Names`]. Payload is never trusted: every read is checked, every list,
//! value and buffer is bounded, and the room that all sessions together take for messages in parts
//! is one [`Budget`]. There is no I/O and no clock here.

mod dns;
mod head;
mod http;
mod reader;
mod search;
mod side;
pub mod signature;
mod tls;
mod values;

pub use head::Budget;
pub use search::{Interest, Search, Segment, datagram, segment};
pub use side::Side;

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
