//! CRYPTO frames put together to a stream (RFC 9000 19.6).

use super::packet::integer;
use crate::Budget;
use crate::reader::Reader;

/// Bytes kept of one direction's stream: hellos with several post-quantum keys have 4 KiB.
const STREAM_LEN_MAX: usize = 16 << 10;

/// Parts that wait for those before them.
const PART_COUNT_MAX: usize = 64;

/// CRYPTO frames of one packet that are taken; browsers that shuffle their hello send about ten.
const FRAME_COUNT_MAX: usize = 64;

const PADDING: u64 = 0;
const PING: u64 = 1;
const ACK: u64 = 2;
const ACK_WITH_COUNTS: u64 = 3;
const CRYPTO: u64 = 6;

/// Calls `take` with offset and data of each CRYPTO frame, up to the first frame that an Initial
/// may not have.
pub(crate) fn each(frames: &[u8], mut take: impl FnMut(u64, &[u8])) {
    let mut reader = Reader::new(frames);
    let mut taken = 0;
    while let Some(kind) = integer(&mut reader) {
        let is_read = match kind {
            PADDING | PING => Some(()),
            ACK | ACK_WITH_COUNTS => skip_ack(&mut reader, kind == ACK_WITH_COUNTS),
            CRYPTO if taken < FRAME_COUNT_MAX => {
                taken += 1;
                data(&mut reader).map(|(offset, data)| take(offset, data))
            }
            _ => None,
        };
        if is_read.is_none() {
            return;
        }
    }
}

fn data<'a>(reader: &mut Reader<'a>) -> Option<(u64, &'a [u8])> {
    let offset = integer(reader)?;
    let len = usize::try_from(integer(reader)?).ok()?;
    Some((offset, reader.take(len)?))
}

/// RFC 9000 19.3: largest, delay, count of ranges, the first, two numbers for each further one.
fn skip_ack(reader: &mut Reader<'_>, has_counts: bool) -> Option<()> {
    integer(reader)?;
    integer(reader)?;
    let ranges = integer(reader)?;
    integer(reader)?;
    let counts = if has_counts { 3 } else { 0 };
    for _ in 0..ranges.checked_mul(2)?.checked_add(counts)? {
        integer(reader)?;
    }
    Some(())
}

/// One direction's stream from its beginning.
#[derive(Debug, Default)]
pub(crate) struct Crypto {
    bytes: Vec<u8>,
    /// Parts beyond `bytes`, by their offsets.
    early: Vec<(usize, Vec<u8>)>,
    /// What was taken from the budget.
    held: usize,
}

impl Crypto {
    pub(crate) fn in_order(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory for the places of parts that wait.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.early.capacity() * size_of::<(usize, Vec<u8>)>()
    }

    /// Adds a part; one without space is left out.
    pub(crate) fn add(&mut self, offset: u64, data: &[u8], budget: &mut Budget) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.saturating_add(data.len());
        if end <= self.bytes.len()
            || end > STREAM_LEN_MAX
            || self.early.len() == PART_COUNT_MAX
            || self.held + data.len() > 2 * STREAM_LEN_MAX
            || !budget.heads.take(data.len())
        {
            return;
        }
        self.held += data.len();
        self.early.push((offset, data.to_vec()));
        while let Some(at) = self.early.iter().position(|(start, _)| *start <= self.bytes.len()) {
            let (start, part) = self.early.swap_remove(at);
            let fresh = part.get(self.bytes.len() - start..).unwrap_or_default();
            self.bytes.reserve_exact(fresh.len());
            self.bytes.extend_from_slice(fresh);
        }
    }

    /// Gives the space back.
    pub(crate) fn free(self, budget: &mut Budget) {
        budget.heads.give(self.held);
    }
}
