//! The receipt of an erasure: what was taken off a volume, when, by whom and why.

use serde::{Deserialize, Serialize};
use units::Sequence;

use crate::maker::Maker;
use crate::seal::{Seal, SealTextError, split_sealed};

/// Version of the receipts that are written.
pub const RECEIPT_VERSION: u16 = 1;

/// Receipt of a `forget` or an `erase`, before it is sealed. Fields are keys in JSON, in this
/// order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiptForm {
    /// [`RECEIPT_VERSION`].
    pub receipt_version: u16,
    /// `forget` or `erase`.
    pub action: String,
    /// When it was done, ns since 1970.
    pub made_ns: i64,
    /// Who did it, where and with what.
    pub made_by: Maker,
    /// The volume, in hex digits.
    pub volume_id: String,
    /// What was to be forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Why, in the words of who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Packets of the query that were erased; unknown where they went for their age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Other packets that were lost with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_packets: Option<u64>,
    /// Session rows of the query whose packets had been overwritten before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_rows: Option<u64>,
    /// Other such rows that were lost with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_kept_rows: Option<u64>,
    /// Slots that were overwritten on every member.
    pub slots: u64,
    /// Their sequences, where they were single ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Sequence>,
    /// Numbers of data keys that were destroyed on every member.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<u64>,
    /// Slots that are given up and still to be overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots_left: Option<u64>,
}

/// A text is no receipt that can be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// Another text: cut off, or of something else.
    #[error("it is no receipt of forget or erase")]
    Other,
    /// Of a later version.
    #[error("the receipt has version {0}, known is {RECEIPT_VERSION}")]
    Version(u16),
    /// Without a seal that can be read.
    #[error(transparent)]
    Seal(#[from] SealTextError),
}

/// Reads a receipt, with the part of it that is sealed, and the seal, which is not looked at.
///
/// # Errors
/// When it is none.
pub fn parse_receipt(text: &str) -> Result<(ReceiptForm, &str, Seal), ReceiptError> {
    let receipt: ReceiptForm = serde_json::from_str(text).map_err(|_| ReceiptError::Other)?;
    match receipt.receipt_version {
        RECEIPT_VERSION => {
            let (sealed, seal) = split_sealed(text)?;
            Ok((receipt, sealed, seal))
        }
        0 => Err(ReceiptError::Other),
        version => Err(ReceiptError::Version(version)),
    }
}
