//! Why packets could not be written.

use thiserror::Error;
use units::Timestamp;

/// Why writing packets failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The output could not be opened or written.
    #[error("cannot write the output: {0}")]
    Write(std::io::Error),
    /// A pcap file has 32 bits for the seconds.
    #[error("a packet's time, {0}, is outside of what pcap can hold; write pcapng")]
    PcapTime(Timestamp),
    /// It is not known where such frames have their addresses.
    #[error(transparent)]
    Anonymise(#[from] anonymise::UnknownLinkType),
    /// The thread that hashes could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
