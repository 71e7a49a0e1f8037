//! Bodies of pieces: encrypted in place, so that a byte keeps its offset.
//!
//! The first [`LEAD_BYTES`] of a body hold the tags of its chunks, the last [`TAIL_BYTES`] the end
//! of the pcapng block that it then is. What is in between is encrypted. A chunk is the 64 KiB of
//! sixteen rows, less lead and tail. So rows can be read on their own: those of their chunk, and
//! the first one with its tag.

use core::ops::Range;

use ring::aead::NONCE_LEN;
use units::{Epoch, Sequence};

use crate::key::{Chunks, DataKey, TAG_BYTES};

/// Bytes of a chunk: sixteen rows.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Bytes at the begin of a body that are not encrypted: a tag for each chunk of the longest body.
pub const LEAD_BYTES: usize = 32 * TAG_BYTES;
/// Bytes at its end that are not: the trailing length of its block.
pub const TAIL_BYTES: usize = 4;

/// Which body it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Id of the volume.
    pub volume_id: [u8; 16],
    /// Sequence of the stripe.
    pub sequence: Sequence,
    /// Number of the stripe in its slot.
    pub sub: u16,
    /// Column of the piece.
    pub column: u8,
    /// Bytes of the body.
    pub len: usize,
}

impl Place {
    /// What the chunk with this number is of the body.
    fn range(&self, chunk: usize) -> Range<usize> {
        let begin = (chunk * CHUNK_BYTES).max(LEAD_BYTES);
        begin..((chunk + 1) * CHUNK_BYTES).min(self.len.saturating_sub(TAIL_BYTES))
    }

    fn chunks(&self) -> Range<usize> {
        0..self.len.div_ceil(CHUNK_BYTES)
    }

    fn nonce(&self, chunk: usize) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        let chunk = u8::try_from(chunk).expect("a body has at most 32 chunks");
        let (sequence, rest) = nonce.split_at_mut(8);
        let (sub, rest) = rest.split_at_mut(2);
        sequence.copy_from_slice(&self.sequence.get().to_le_bytes());
        sub.copy_from_slice(&self.sub.to_le_bytes());
        rest.copy_from_slice(&[self.column, chunk]);
        nonce
    }

    /// What is authenticated with each chunk.
    fn context(&self) -> [u8; 24] {
        let mut context = [0; 24];
        let (volume, len) = context.split_at_mut(16);
        volume.copy_from_slice(&self.volume_id);
        len.copy_from_slice(&u64::try_from(self.len).unwrap_or(u64::MAX).to_le_bytes());
        context
    }
}

/// Where the tag of a chunk lies.
fn tag_range(chunk: usize) -> Range<usize> {
    chunk * TAG_BYTES..(chunk + 1) * TAG_BYTES
}

/// Seals and opens the bodies that one opening of a volume wrote under one data key.
#[derive(Debug)]
pub struct BodyKey(Chunks);

impl DataKey {
    /// The key of bodies of one epoch: another epoch may begin a sequence anew.
    pub fn of_epoch(&self, epoch: Epoch) -> BodyKey {
        BodyKey(self.derive(*b"bodies 1", &epoch.get().to_le_bytes()))
    }
}

impl BodyKey {
    /// Seals `plain` into `sealed`: tags in front, `tail` at the end, what lies there in `plain`
    /// is left out.
    ///
    /// # Panics
    /// When the two are not both as long as `place` says, or have no room for lead and tail.
    pub fn seal(&self, place: &Place, plain: &[u8], sealed: &mut [u8], tail: [u8; TAIL_BYTES]) {
        assert!(plain.len() == place.len && sealed.len() == place.len, "a body has its length");
        let end = place.len - TAIL_BYTES;
        let encrypted = LEAD_BYTES..end;
        let from = plain.get(encrypted.clone()).expect("a body has a row");
        sealed.get_mut(encrypted).expect("as long as the other").copy_from_slice(from);
        let context = place.context();
        let mut tags = [0; LEAD_BYTES];
        for chunk in place.chunks() {
            let bytes = sealed.get_mut(place.range(chunk)).expect("chunks lie inside");
            let tag = self.0.seal(place.nonce(chunk), &context, bytes);
            tags.get_mut(tag_range(chunk)).expect("at most 32 chunks").copy_from_slice(&tag);
        }
        sealed.get_mut(..LEAD_BYTES).expect("a body has a row").copy_from_slice(&tags);
        sealed.get_mut(end..).expect("checked above").copy_from_slice(&tail);
    }

    /// Decrypts a body in place; lead and tail stay as they are. Gives the parts that are not what
    /// was sealed, in bytes of the body, which are zeros afterwards.
    pub fn open(&self, place: &Place, body: &mut [u8]) -> Vec<Range<usize>> {
        let Some(tags) = body.first_chunk::<LEAD_BYTES>().copied() else {
            return Vec::from([Range { start: 0, end: body.len() }]);
        };
        self.open_run(place, &tags, 0, body)
    }

    /// Decrypts in place the chunks that `bytes` has whole, which begin at `begin` of the body, a
    /// multiple of [`CHUNK_BYTES`]. `tags` are the first bytes of the body. Gives the parts that
    /// are not what was sealed, in bytes of the body, which are zeros afterwards.
    pub fn open_run(
        &self,
        place: &Place,
        tags: &[u8; LEAD_BYTES],
        begin: usize,
        bytes: &mut [u8],
    ) -> Vec<Range<usize>> {
        let context = place.context();
        let mut bad = Vec::new();
        for chunk in place.chunks().skip(begin / CHUNK_BYTES) {
            let range = place.range(chunk);
            let here = range.start.saturating_sub(begin)..range.end.saturating_sub(begin);
            let tag = tags.get(tag_range(chunk)).and_then(|tag| tag.try_into().ok());
            let (Some(bytes), Some(tag)) = (bytes.get_mut(here), tag) else { break };
            if !self.0.open(place.nonce(chunk), &context, (bytes, tag)) {
                bad.push(range);
            }
        }
        bad
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Random;

    use super::*;

    const ROW: usize = 4096;

    fn place(rows: usize) -> Place {
        Place { volume_id: [7; 16], sequence: Sequence(99), sub: 3, column: 1, len: rows * ROW }
    }

    fn key() -> BodyKey {
        DataKey::new([5; 32]).of_epoch(Epoch(4))
    }

    fn body(rows: usize, seed: u64) -> Vec<u8> {
        let mut plain = vec![0; rows * ROW];
        Random::new(seed).fill(&mut plain);
        plain
    }

    fn sealed(place: &Place, plain: &[u8]) -> Vec<u8> {
        let mut sealed = vec![0; plain.len()];
        key().seal(place, plain, &mut sealed, [1, 2, 3, 4]);
        sealed
    }

    fn inside(body: &[u8]) -> &[u8] {
        &body[LEAD_BYTES..body.len() - TAIL_BYTES]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn bodies_round_trip_whole_and_by_chunks(rows in 1_usize..=511, seed in any::<u64>()) {
            let (place, plain) = (place(rows), body(rows, seed));
            let mut whole = sealed(&place, &plain);
            prop_assert_ne!(inside(&whole), inside(&plain));
            prop_assert_eq!(&whole[rows * ROW - 4..], &[1, 2, 3, 4]);
            let parts = whole.clone();
            prop_assert_eq!(key().open(&place, &mut whole), vec![]);
            prop_assert_eq!(inside(&whole), inside(&plain));
            let tags = parts[..LEAD_BYTES].try_into().unwrap();
            let first = usize::try_from(seed % 32).unwrap() * CHUNK_BYTES;
            if first < parts.len() {
                let end = parts.len().min(first + CHUNK_BYTES);
                let mut run = parts[first..end].to_vec();
                prop_assert_eq!(key().open_run(&place, &tags, first, &mut run), vec![]);
                let from = first.max(LEAD_BYTES);
                let until = end.min(parts.len() - TAIL_BYTES);
                prop_assert_eq!(&run[from - first..until - first], &plain[from..until]);
            }
        }

        #[test]
        fn each_change_is_noticed(rows in 1_usize..=40, seed in any::<u64>()) {
            let (place, plain) = (place(rows), body(rows, seed));
            let mut changed = sealed(&place, &plain);
            let bits = (changed.len() - TAIL_BYTES) * 8;
            let bit = usize::try_from(seed).unwrap() % bits;
            // The tags of chunks that are not there say nothing.
            let unused = place.chunks().end * TAG_BYTES..LEAD_BYTES;
            prop_assume!(!unused.contains(&(bit / 8)));
            changed[bit / 8] ^= 1 << (bit % 8);
            let bad = key().open(&place, &mut changed);
            prop_assert_eq!(bad.len(), 1);
            prop_assert!(changed[bad[0].clone()].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_body_in_another_place_does_not_open() {
        let (here, plain) = (place(20), body(20, 1));
        let elsewhere = [
            Place { volume_id: [8; 16], ..here },
            Place { sequence: Sequence(98), ..here },
            Place { sub: 2, ..here },
            Place { column: 0, ..here },
        ];
        for place in elsewhere {
            let mut moved = sealed(&here, &plain);
            assert_eq!(key().open(&place, &mut moved).len(), 2, "{place:?}");
        }
        let other = DataKey::new([5; 32]).of_epoch(Epoch(5));
        assert_eq!(other.open(&here, &mut sealed(&here, &plain)).len(), 2);
        let mut cut = sealed(&here, &plain);
        cut.truncate(19 * ROW);
        assert_eq!(key().open(&place(19), &mut cut).len(), 2);
    }

    /// A chunk that changed places with another of the same body.
    #[test]
    fn chunks_do_not_change_places() {
        let (here, plain) = (place(48), body(48, 1));
        let mut swapped = sealed(&here, &plain);
        let (front, back) = swapped.split_at_mut(2 * CHUNK_BYTES);
        front[CHUNK_BYTES..2 * CHUNK_BYTES - TAIL_BYTES]
            .swap_with_slice(&mut back[..CHUNK_BYTES - TAIL_BYTES]);
        assert_eq!(key().open(&here, &mut swapped).len(), 2);
    }

    #[test]
    fn nonces_differ_in_each_field() {
        let here = place(300);
        let mut nonces = vec![here.nonce(0), here.nonce(18)];
        let others = [
            Place { sequence: Sequence(100), ..here },
            Place { sequence: Sequence(99 << 8), ..here },
            Place { sub: 3 << 8, ..here },
            Place { column: 2, ..here },
        ];
        nonces.extend(others.iter().map(|other| other.nonce(0)));
        let count = nonces.len();
        nonces.sort_unstable();
        nonces.dedup();
        assert_eq!(nonces.len(), count);
    }
}
