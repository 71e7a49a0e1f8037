//! Payloads on their way to the search.

use crate::side::Side;

/// A TCP payload on its way to the search.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Side that sent it.
    pub side: Side,
    /// When, in nanoseconds of any origin.
    pub time_ns: i64,
    /// Sequence number of the first payload byte.
    pub start: u32,
    /// The payload as it was captured.
    pub payload: &'a [u8],
    /// Less was captured than was on the wire.
    pub is_truncated: bool,
    /// Bytes before it are missing so far, near the beginning of the stream.
    pub is_ahead: bool,
    /// Of sender and receiver.
    pub ports: (u16, u16),
}

/// A UDP payload on its way to the search.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Side that sent it.
    pub side: Side,
    /// When, in nanoseconds of any origin.
    pub time_ns: i64,
    /// Of sender and receiver.
    pub ports: (u16, u16),
    /// The payload as it was captured.
    pub payload: &'a [u8],
}
