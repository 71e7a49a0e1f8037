//! Which bytes of one TCP direction were seen: a range of sequence numbers with holes.

use smallvec::SmallVec;

/// A jump this far is not loss but another numbering: a window is at most 1 GiB (RFC 7323 2.3).
const JUMP_MAX: u32 = 1 << 30;

/// Longer segments are not believed: segmentation offload hands over at most 512 KiB.
pub(crate) const SEGMENT_MAX: u32 = 1 << 20;

/// Kept behind the newest byte. Four segments less than a jump, so that even one that begins a jump
/// ahead ends less than 2^31 after the oldest byte and compares with it.
const WINDOW: u32 = JUMP_MAX - 4 * SEGMENT_MAX;

/// Holes remembered a direction. What is forgotten counts as seen.
const HOLE_COUNT_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    range: Option<Range>,
    /// Disjoint, not empty, inside the range. Few packets overtake more than two others.
    holes: SmallVec<[Range; 2]>,
}

/// From `low` up to, not including, `next`, modulo 2^32.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u32,
    next: u32,
}

/// The signed distance from `origin` to `sequence` on the circle.
fn distance(sequence: u32, origin: u32) -> i64 {
    i64::from(sequence.wrapping_sub(origin).cast_signed())
}

fn size(range: Range) -> u32 {
    range.next.wrapping_sub(range.low)
}

impl Seen {
    /// Bytes of the heap that it takes at most, also while its holes move.
    pub(crate) const HEAP_BYTES_MAX: usize = 2 * HOLE_COUNT_MAX * size_of::<Range>();

    /// The number that follows the newest byte, where nothing is missing before it.
    pub(crate) fn next_in_order(&self) -> Option<u32> {
        self.range.filter(|_| self.holes.is_empty()).map(|range| range.next)
    }

    /// The first number that is missing, as far as is known.
    pub(crate) fn first_missing(&self) -> Option<u32> {
        let range = self.range?;
        let lows = self.holes.iter().map(|hole| hole.low);
        Some(lows.min_by_key(|&low| distance(low, range.low)).unwrap_or(range.next))
    }

    /// Whether a segment that starts there comes after a later one.
    pub(crate) fn is_behind(&self, start: u32) -> bool {
        self.range.is_some_and(|range| {
            let behind = distance(start, range.next);
            (-i64::from(JUMP_MAX)..0).contains(&behind)
        })
    }

    /// Adds all bytes up to `next`, at most `JUMP_MAX` of them; something was seen before.
    pub(crate) fn extend(&mut self, next: u32) {
        self.range.as_mut().expect("only what was begun goes on").next = next;
        self.trim();
    }

    /// Adds the bytes from `start` on; says how many of them had been seen before.
    pub(crate) fn add(&mut self, start: u32, len: u32) -> u32 {
        let len = len.min(SEGMENT_MAX);
        let segment = Range { low: start, next: start.wrapping_add(len) };
        let Some(range) = &mut self.range else {
            self.range = Some(segment);
            return 0;
        };
        if len == 0 {
            return 0;
        }
        if start == range.next {
            range.next = segment.next;
            self.trim();
            return 0;
        }
        if distance(start, range.next).unsigned_abs() > u64::from(JUMP_MAX) {
            self.range = Some(segment);
            self.holes.clear();
            return 0;
        }
        self.add_out_of_order(segment, len)
    }

    fn add_out_of_order(&mut self, segment: Range, len: u32) -> u32 {
        let range = self.range.as_mut().expect("the caller saw the range");
        let old = *range;
        if distance(segment.low, old.low) < 0 {
            range.low = segment.low;
        }
        if distance(segment.next, old.next) > 0 {
            range.next = segment.next;
        }
        let mut fresh = len - overlap(segment, old);
        let mut index = 0;
        while let Some(&hole) = self.holes.get(index) {
            let filled = overlap(segment, hole);
            if filled == 0 {
                index += 1;
                continue;
            }
            fresh += filled;
            self.holes.swap_remove(index);
            self.open_hole(Range { low: hole.low, next: segment.low });
            self.open_hole(Range { low: segment.next, next: hole.next });
        }
        self.open_hole(Range { low: old.next, next: segment.low });
        self.open_hole(Range { low: segment.next, next: old.low });
        self.trim();
        len - fresh
    }

    /// Only what lies behind the newest byte by less than a window compares safely.
    fn trim(&mut self) {
        if let Some(range) = &mut self.range
            && size(*range) > WINDOW
        {
            range.low = range.next.wrapping_sub(WINDOW);
            let low = range.low;
            self.holes.retain(|hole| distance(hole.low, low) >= 0);
        }
    }

    /// A FIN takes one sequence number after the data.
    pub(crate) fn add_fin(&mut self, at: u32) {
        if let Some(range) = &mut self.range
            && range.next == at
        {
            range.next = at.wrapping_add(1);
            self.trim();
        }
    }

    /// The other side has everything below `ack`; says how much of it was never seen here.
    pub(crate) fn acknowledge(&mut self, ack: u32) -> u32 {
        let Some(range) = &mut self.range else {
            return 0;
        };
        let mut missed = 0;
        let ahead = distance(ack, range.next);
        if ahead > 0 && ahead <= i64::from(JUMP_MAX) {
            missed = ack.wrapping_sub(range.next);
            range.next = ack;
        }
        self.holes.retain(|hole| {
            let is_acknowledged = distance(ack, hole.next) >= 0;
            if is_acknowledged {
                missed += size(*hole);
            }
            !is_acknowledged
        });
        self.trim();
        missed
    }

    /// Notes a hole if it is one: low before next.
    fn open_hole(&mut self, hole: Range) {
        if distance(hole.next, hole.low) > 0 && self.holes.len() < HOLE_COUNT_MAX {
            self.holes.push(hole);
        }
    }
}

/// Bytes that two ranges share. Both lie within 2^31 of each other.
fn overlap(a: Range, b: Range) -> u32 {
    let low = if distance(a.low, b.low) > 0 { a.low } else { b.low };
    let next = if distance(a.next, b.next) < 0 { a.next } else { b.next };
    u32::try_from(distance(next, low)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_filled_hole_is_no_retransmission_and_an_acknowledged_one_is_missed() {
        let mut seen = Seen::default();
        assert_eq!(seen.add(1000, 100), 0);
        assert_eq!(seen.add(1300, 100), 0, "a hole of 200 opens");
        assert_eq!(seen.add(1200, 50), 0, "inside the hole");
        assert_eq!(seen.add(1190, 30), 20, "half of it new");
        assert_eq!(seen.add(1000, 400), 260, "90 + 50 were still missing");
        assert_eq!(seen.acknowledge(1400), 0);
        assert_eq!(seen.add(1500, 10), 0);
        assert_eq!(seen.acknowledge(1510), 100);
        assert_eq!(seen.acknowledge(1600), 90, "beyond what was seen");
    }

    #[test]
    fn a_segment_a_jump_beyond_a_full_window_opens_one_hole() {
        for ahead in [JUMP_MAX - 1, JUMP_MAX] {
            let mut seen = Seen::default();
            seen.add(0, 100);
            seen.acknowledge(JUMP_MAX - 1);
            seen.add(JUMP_MAX - 1 + ahead, SEGMENT_MAX);
            assert_eq!(seen.add(JUMP_MAX + ahead, 1), 1, "seen before");
            assert_eq!(seen.add(JUMP_MAX + ahead + SEGMENT_MAX, 1), 0, "not seen before");
        }
    }

    proptest! {
        #[test]
        fn what_was_seen_equals_a_bitmap(
            origin: u32,
            segments in prop::collection::vec((0_u8..200, 1_u8..40), 1..12),
        ) {
            let mut seen = Seen::default();
            let mut bitmap = [false; 256];
            for (start, len) in segments {
                let mut expected = 0;
                for place in &mut bitmap[usize::from(start)..usize::from(start + len)] {
                    expected += u32::from(core::mem::replace(place, true));
                }
                prop_assert_eq!(seen.add(origin.wrapping_add(start.into()), len.into()), expected);
            }
            let first = bitmap.iter().position(|&was| was).unwrap();
            let last = bitmap.iter().rposition(|&was| was).unwrap();
            let missing = bitmap[first..last].iter().filter(|&&was| !was).count();
            let missed = u32::try_from(missing + 254 - last).unwrap();
            prop_assert_eq!(seen.acknowledge(origin.wrapping_add(255)), missed);
        }

        #[test]
        fn arbitrary_numbers_never_panic(
            ops in prop::collection::vec((jump(), 0_u32..=SEGMENT_MAX + 1, jump()), 1..50),
        ) {
            let (mut seen, mut end) = (Seen::default(), 0_u32);
            for (ahead, len, ack) in ops {
                let start = end.wrapping_add(ahead);
                end = start.wrapping_add(len);
                prop_assert!(seen.add(start, len) <= len);
                seen.add_fin(end);
                seen.acknowledge(end.wrapping_add(ack));
            }
        }
    }

    /// A distance of sequence numbers, often about one of those that are distinguished.
    fn jump() -> impl Strategy<Value = u32> {
        let about = |distance: u32| (distance.wrapping_sub(3)..distance + 3).boxed();
        prop_oneof![
            any::<u32>(),
            0_u32..5000,
            about(JUMP_MAX),
            about(JUMP_MAX - SEGMENT_MAX),
            about(JUMP_MAX.wrapping_neg()),
            about(1 << 31),
        ]
    }
}
