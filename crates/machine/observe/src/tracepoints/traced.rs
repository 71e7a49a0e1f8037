//! A record of the kernel, and who reads those of one kind.

/// A record of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced<H> {
    /// Time by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The process that ran.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// What the tracepoint reports.
    pub happened: H,
}

/// Reads the records of one kind.
pub(super) trait Decode {
    /// What such a record says.
    type Happened;
    /// The number that stands first in each of them.
    fn id(&self) -> u16;
    /// Of a record behind its header, of a processor by its place among those that are online;
    /// `None` where it is not whole, or says nothing here.
    fn decode(&self, record: &[u8], processor: usize) -> Option<Self::Happened>;
}
