//! A file as it was written, so that it can be told from others.

use wire::LinkType;

/// A file as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputSummary {
    /// Link type of a pcap file; a pcapng file may have several.
    pub link_type: Option<LinkType>,
    /// Number of packets written.
    pub packets: u64,
    /// Number of bytes written.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// BLAKE3 of the bytes.
    pub blake3: [u8; 32],
}
