//! What a body has around its blocks, so that it can be encrypted where it lies.
//!
//! Encryption puts tags over the first bytes of a body, and the end of a block over the last ones.
//! So the body of a column that will be encrypted has padding there, always the same: a block of
//! [`LEAD_BYTES`] in front, and at the end one that only is a frame. Who decrypts puts back what it
//! knows ([`restore_frame`]).

use crate::field::put;
use crate::local::{LOCAL_FRAME_BYTES, fill_with_padding};

/// Bytes in front of the first block of a body that is to be encrypted.
pub const LEAD_BYTES: usize = 512;
/// Of the trailing length of a body's last block.
const LENGTH_BYTES: usize = 4;

/// Whether a body is going to be encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Frame {
    /// It lies on the disk as it is.
    #[default]
    Plain,
    /// It is encrypted: blocks lie between two paddings.
    Encrypted,
}

impl Frame {
    pub(super) fn lead_bytes(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Encrypted => LEAD_BYTES,
        }
    }

    pub(super) fn tail_bytes(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Encrypted => LOCAL_FRAME_BYTES,
        }
    }

    /// Puts what comes first into a body, and says how long that is.
    pub(super) fn put_lead(self, body: &mut [u8]) -> usize {
        let lead = body.get_mut(..self.lead_bytes()).expect("a body has a row");
        if !lead.is_empty() {
            fill_with_padding(lead);
        }
        self.lead_bytes()
    }

    /// Fills the last bytes of a body.
    pub(super) fn put_tail(tail: &mut [u8]) {
        if !tail.is_empty() {
            fill_with_padding(tail);
        }
    }
}

/// Puts back what encryption wrote over, into a body whose other bytes were decrypted. Of a body
/// that is not there to its end only the front is put back: `is_whole` says so.
///
/// # Panics
/// When the body has not a whole row.
pub fn restore_frame(body: &mut [u8], is_whole: bool) {
    Frame::Encrypted.put_lead(body);
    if is_whole {
        let length = u32::try_from(LOCAL_FRAME_BYTES).expect("12 fits").to_le_bytes();
        let end = body.len() - LENGTH_BYTES;
        put(body, end, &length);
    }
}
