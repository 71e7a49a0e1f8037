//! A file as it was written, so that it can be told from others.

use serde::{Deserialize, Serialize};
use wire::LinkType;

use crate::form::hex_digits;

/// A file as it was written. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputSummary {
    /// Its name; none when it went to a pipe, and until who asked for it says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Link type of a pcap file; a pcapng file may have several.
    #[serde(skip)]
    pub link_type: Option<LinkType>,
    /// Number of packets written.
    pub packets: u64,
    /// Number of bytes written.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    #[serde(with = "hex_digits")]
    pub sha256: [u8; 32],
    /// BLAKE3 of the bytes.
    #[serde(with = "hex_digits")]
    pub blake3: [u8; 32],
}
