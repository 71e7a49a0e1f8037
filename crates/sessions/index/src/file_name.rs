//! Names of the files in the index directory: which segment, which bytes, which stripes.
//!
//! The number of a stripe alone does not say which stripe it is: a volume that was put back to an
//! older image writes others under the same numbers. So a name also carries what the ring says of
//! the place where the segment ends. Layout: docs/sessions.md, Index directory.

use crc_fast::{CrcAlgorithm, Digest};
use format::head::StripeId;

/// Tells the stripes of a segment from all others that the volume ever had under their numbers.
///
/// Every stripe's `CID` covers that of the stripe before, so one near the end stands for all before
/// it. It is that of the first stripe in the slot of the last one, which can be read without
/// looking for it; behind it one epoch alone has written stripes with packets, so with the number
/// of the last one it stands for that as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Identity(u64);

impl Identity {
    /// Of a segment that ends with the stripe `last`, in a slot that begins with the stripe of
    /// this `CID`.
    pub fn new(last: StripeId, slot_cid: &[u8; 32]) -> Self {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(&last.sequence.get().to_le_bytes());
        digest.update(&last.sub.to_le_bytes());
        digest.update(slot_cid);
        Self(digest.finalize())
    }

    pub(crate) fn to_u64(self) -> u64 {
        self.0
    }

    pub(crate) fn from_u64(identity: u64) -> Self {
        Self(identity)
    }
}

/// What a file's name says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct FileName {
    /// First stripe of the segment.
    pub(crate) first: StripeId,
    /// CRC-64/NVME of the file.
    pub(crate) crc: u64,
    pub(crate) identity: Identity,
}

impl FileName {
    /// `SEQUENCE-SUB-CRC-IDENTITY.parquet`: names sort as the segments were written.
    pub(crate) fn to_text(self) -> String {
        let Self { first: StripeId { sequence, sub }, crc, identity } = self;
        format!("{sequence:020}-{sub:05}-{crc:016x}-{:016x}.parquet", identity.0)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut fields = name.strip_suffix(".parquet")?.split('-');
        let (sequence, sub) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let crc = u64::from_str_radix(fields.next()?, 16).ok()?;
        let identity = Identity(u64::from_str_radix(fields.next()?, 16).ok()?);
        let parsed = Self { first: StripeId { sequence, sub }, crc, identity };
        // Exactly our own spelling, so that every name has one meaning and every meaning one name.
        (parsed.to_text() == name).then_some(parsed)
    }

    /// Whether it is a name of versions that left the identity out.
    pub(crate) fn is_outdated(name: &str) -> bool {
        let Some(stem) = name.strip_suffix(".parquet") else { return false };
        let digits = |field: &str| field.bytes().all(|byte| byte.is_ascii_hexdigit());
        let lengths: Vec<usize> = stem.split('-').map(str::len).collect();
        lengths == [20, 5, 16] && stem.split('-').all(digits)
    }
}
