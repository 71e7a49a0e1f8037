//! Packets that a mirror port gives twice, found by their bytes.
//!
//! The same frame within a short time is taken for a copy. Frames are compared by a keyed hash of
//! 128 bits: without the key no sender can make two that are taken for one.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};

use capture::Packet;
use units::Timestamp;

/// Packets remembered at most.
const PACKETS_MAX: usize = 64 << 10;

/// The packets of the last moments.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    window_ns: i64,
    keys: [RandomState; 2],
    order: VecDeque<(Timestamp, [u64; 2])>,
    known: HashSet<[u64; 2]>,
}

impl Duplicates {
    /// Copies come within so many nanoseconds.
    pub(crate) fn new(window_ns: i64) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        Self { window_ns, keys, order: VecDeque::new(), known: HashSet::new() }
    }

    /// Whether the same bytes came just before.
    pub(crate) fn is_copy(&mut self, packet: &Packet<'_>) -> bool {
        let oldest = packet.timestamp.plus_nanos(-self.window_ns);
        while let Some(&(time, hash)) = self.order.front()
            && (time < oldest || self.order.len() >= PACKETS_MAX)
        {
            self.order.pop_front();
            self.known.remove(&hash);
        }
        let hash = self.keys.each_ref().map(|key| {
            let mut hasher = key.build_hasher();
            hasher.write_u32(packet.original_len);
            packet.parts().iter().for_each(|part| hasher.write(part));
            hasher.finish()
        });
        let is_new = self.known.insert(hash);
        if is_new {
            self.order.push_back((packet.timestamp, hash));
        }
        !is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::packet;

    #[test]
    fn a_copy_within_the_window_is_one_and_later_it_is_not() {
        let mut duplicates = Duplicates::new(1000);
        assert!(!duplicates.is_copy(&packet(b"first", 0)));
        assert!(!duplicates.is_copy(&packet(b"other", 10)));
        assert!(duplicates.is_copy(&packet(b"first", 1000)));
        assert!(!duplicates.is_copy(&packet(b"first", 1001)));
        assert!(duplicates.is_copy(&packet(b"first", 2001)));
    }

    #[test]
    fn a_tag_that_was_taken_out_makes_the_same_frame() {
        let mut duplicates = Duplicates::new(1000);
        let whole = packet(b"0123456789ab\x81\0\0\x07tail", 0);
        let parts =
            Packet { head: b"0123456789ab", tag: Some([0x81, 0, 0, 7]), tail: b"tail", ..whole };
        assert!(!duplicates.is_copy(&whole));
        assert!(duplicates.is_copy(&Packet { timestamp: Timestamp(5), ..parts }));
        // Captured shorter, it is another.
        assert!(!duplicates.is_copy(&Packet { original_len: 2000, ..parts }));
    }

    #[test]
    fn memory_is_bounded() {
        let mut duplicates = Duplicates::new(i64::MAX);
        for number in 0..2 * PACKETS_MAX {
            assert!(!duplicates.is_copy(&packet(&number.to_le_bytes(), 0)));
        }
        assert!(duplicates.order.len() <= PACKETS_MAX && duplicates.known.len() <= PACKETS_MAX);
        assert!(duplicates.is_copy(&packet(&(2 * PACKETS_MAX - 1).to_le_bytes(), 0)));
    }
}
