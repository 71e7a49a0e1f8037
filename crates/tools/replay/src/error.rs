//! Why a replay cannot begin.

use std::io;

use wire::LinkType;

/// A replay cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input, or the interface.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// Not one packet is an Ethernet frame.
    #[error("packets of link type {link_type} do not fit an interface of Ethernet frames")]
    LinkType {
        /// That of the first packet.
        link_type: LinkType,
    },
    /// Further loops need an input that can be read again.
    #[error(
        "the input is larger than {memory_bytes} bytes of memory and cannot be read again for \
         further loops"
    )]
    NotRepeatable {
        /// Memory for packets.
        memory_bytes: u64,
    },
    /// The system has no thread to give.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// Error of the system.
        source: io::Error,
    },
}
