//! Slots from which packets are wanted, by the earliest that they may have.
//!
//! The rows that name a slot say when their first packets came, which costs nothing and may be
//! much earlier than what the slot has of them. Its heads say it better, for a read of 4 KiB.

use std::collections::{BTreeMap, BTreeSet};

use units::{Sequence, Timestamp};

use crate::ahead::earliest;
use crate::archive::Archive;

/// Slots of which the heads are read at a time, and that are in the right order then.
const LOOKED_AT: usize = 64;

/// When the earliest packet wanted of a slot may have come.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    time: Timestamp,
    /// Heads say it.
    is_of_heads: bool,
}

/// Slots that are to be read.
#[derive(Debug, Default)]
pub(crate) struct Due {
    slots: BTreeMap<Sequence, Earliest>,
    by_time: BTreeSet<(Timestamp, Sequence)>,
}

impl Due {
    /// A row that begins at `start` has packets in the slot of `sequence`.
    pub(crate) fn add(&mut self, sequence: Sequence, start: Timestamp) {
        let known = self.slots.get(&sequence).copied();
        if known.is_none_or(|known| !known.is_of_heads && start < known.time) {
            self.set(sequence, Earliest { time: start, is_of_heads: false });
        }
    }

    fn set(&mut self, sequence: Sequence, earliest: Earliest) {
        if let Some(known) = self.slots.insert(sequence, earliest) {
            self.by_time.remove(&(known.time, sequence));
        }
        self.by_time.insert((earliest.time, sequence));
    }

    /// No packet wanted is earlier.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.by_time.first().map_or(Timestamp::MAX, |(time, _)| *time)
    }

    /// Takes the slot that comes first, if it may have packets before `time`.
    pub(crate) fn take_before(&mut self, time: Timestamp) -> Option<(Timestamp, Sequence)> {
        let first = self.by_time.first().copied().filter(|(earliest, _)| *earliest < time)?;
        self.by_time.remove(&first);
        self.slots.remove(&first.1);
        Some(first)
    }

    /// Reads heads until they say of the first slots, up to `time`, when their packets came.
    pub(crate) fn look(&mut self, archive: &Archive, time: Timestamp) {
        loop {
            let first = self.by_time.iter().take(LOOKED_AT).take_while(|(at, _)| *at < time);
            let is_open = |sequence: &Sequence| {
                self.slots.get(sequence).is_some_and(|earliest| !earliest.is_of_heads)
            };
            let mut open: Vec<Sequence> =
                first.map(|(_, sequence)| *sequence).filter(is_open).collect();
            if open.is_empty() {
                return;
            }
            open.sort_unstable();
            let heads = archive.reader.first_heads(&open);
            for (sequence, head) in open.into_iter().zip(heads) {
                let time = earliest(archive, sequence, head.as_ref());
                self.set(sequence, Earliest { time, is_of_heads: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_by_the_earliest_row_that_names_them() {
        let mut due = Due::default();
        for (sequence, start) in [(7, 30), (5, 20), (7, 10), (7, 40), (6, 20), (9, 50)] {
            due.add(Sequence(sequence), Timestamp(start));
        }
        assert_eq!(due.earliest(), Timestamp(10));
        let mut taken = Vec::new();
        while let Some((Timestamp(time), sequence)) = due.take_before(Timestamp(50)) {
            taken.push((time, sequence.get()));
        }
        assert_eq!(taken, [(10, 7), (20, 5), (20, 6)]);
        assert_eq!(due.earliest(), Timestamp(50));
    }
}
