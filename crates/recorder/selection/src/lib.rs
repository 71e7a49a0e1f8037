//! What of the packets is stored on purpose: of each packet a recorder stores all, its first bytes
//! or nothing, by its traffic class, and leaves out copies that a mirror port gives twice.
//! And from when on, and up to when, where recorders follow each other.

mod before;
mod classes;
mod duplicates;
mod handover;
mod selection;

pub use before::Before;
pub use classes::{Class, ClassError, Keep, memory_bytes_max};
pub use handover::{Division, ORDER_NS, TakeOver, Taken};
pub use selection::{Selected, Selection};

#[cfg(test)]
mod tests {
    use capture::Packet;
    use units::Timestamp;

    /// A packet as tests of what is selected need it.
    pub(crate) fn packet(bytes: &[u8], time_ns: i64) -> Packet<'_> {
        Packet {
            timestamp: Timestamp(time_ns),
            interface: 0,
            original_len: u32::try_from(bytes.len()).unwrap(),
            outbound: None,
            head: bytes,
            tag: None,
            tail: &[],
            options: &[],
        }
    }
}
