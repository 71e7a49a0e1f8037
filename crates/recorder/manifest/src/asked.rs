//! What an extract is asked for, as its manifest says it.

use evidence::{ApprovedForm, hex_digits};
use serde::{Deserialize, Serialize};

/// What an extract may have and no more. What is beyond is left out, and the answer says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Limits {
    /// Sessions, in the order of the ring.
    #[serde(rename = "limit", skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Packets, in the order of time.
    #[serde(rename = "limit_packets", skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Bytes that packets take in the output.
    #[serde(rename = "limit_bytes", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The file that leads back from the addresses of an extract, so that another one is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamedEscrow {
    /// SHA-256 of the file.
    #[serde(with = "hex_digits")]
    pub sha256: [u8; 32],
    /// Which key is in it: those with the same lead IP addresses back alike.
    #[serde(with = "hex_digits")]
    pub key_id: [u8; 16],
}

/// What an extract was asked for besides its query. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of JSON")]
pub struct Asked {
    /// All packets of the sessions, whatever their time.
    pub whole_sessions: bool,
    /// So many sessions were named by their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_named: Option<u64>,
    /// Instead of the sessions' packets all in so many nanoseconds around them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around_ns: Option<u64>,
    /// Filter that packets had to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_filter: Option<String>,
    /// What packets had to have in their payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Limits at which the extract stopped.
    #[serde(flatten)]
    pub limits: Limits,
    /// Packets have comments of ours.
    pub comments: bool,
    /// Addresses are not those of the wire.
    pub anonymised: bool,
    /// What leads back from those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escrow: Option<NamedEscrow>,
    /// What the credential sees at most that asked for it over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Who asked for it, and who approved that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedForm>,
    /// Made of a raw extract: BLAKE3 of that, in hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_blake3: Option<String>,
    /// A raw extract: packets are encrypted in it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_raw: bool,
}
