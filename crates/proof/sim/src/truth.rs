//! The reference model: what was handed to the writer, what became of it, and what was done to it
//! since. It knows nothing of heads, epochs in superblocks, or how a mount judges.

use core::ops::Range;
use std::collections::BTreeMap;

use format::geometry::Geometry;
use format::head::{Kind, StripeId};
use units::Sequence;

/// What became of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Handed over, not acknowledged: a crash may take it or leave it.
    InFlight,
    /// Acknowledged by the writer, or shown by a mount: it must stay.
    Kept,
    /// Gone when a mount had ended: it must never come back.
    Dead,
}

/// A stripe that was handed to the writer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fact {
    pub(crate) kind: Kind,
    pub(crate) rows: u16,
    /// What its bodies were made from.
    pub(crate) mark: u64,
    pub(crate) fate: Fate,
    /// Members that hold it for certain; bit m stands for member m.
    pub(crate) holders: u32,
    /// Row of its head in the slot, once seen.
    pub(crate) first_row: Option<u16>,
    /// Members whose head of it was damaged.
    pub(crate) bad_heads: u32,
    /// By body row: members on which it was damaged.
    pub(crate) bad_rows: Vec<u32>,
}

/// A stripe that is being handed over while a crash may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pending {
    pub(crate) kind: Kind,
    pub(crate) rows: u16,
    pub(crate) mark: u64,
    pub(crate) holders: u32,
}

impl Pending {
    pub(crate) fn into_fact(self) -> Fact {
        let Self { kind, rows, mark, holders } = self;
        let bad_rows = vec![0; usize::from(rows)];
        let fate = Fate::InFlight;
        Fact { kind, rows, mark, fate, holders, first_row: None, bad_heads: 0, bad_rows }
    }
}

/// Of one row of a stripe: the columns on certain members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Columns {
    /// Good for certain.
    pub(crate) good: u32,
    /// Bad for certain.
    pub(crate) bad: u32,
}

impl Fact {
    /// What the members in `readable` have of body row `row`; of those in `doubtful` nothing is
    /// certain. Without a row: of the heads.
    pub(crate) fn columns(
        &self,
        geometry: &Geometry,
        (sequence, row): (Sequence, Option<u16>),
        readable: u32,
        doubtful: u32,
    ) -> Columns {
        // Without its head a body is believed only as a whole, by the manifest of the others.
        let in_any_row = self.bad_rows.iter().fold(0, |bits, members| bits | members);
        let row = row.map(|row| self.bad_rows.get(usize::from(row)).copied().unwrap_or(0));
        let damaged = row.map_or(self.bad_heads, |row| row | (self.bad_heads & in_any_row));
        let mut columns = Columns::default();
        for column in 0..geometry.columns() {
            let member = geometry.member_of(sequence, column).bit();
            if readable & member == 0 {
                columns.bad |= 1 << column;
            } else if doubtful & member == 0 && self.holders & member != 0 {
                let state =
                    if damaged & member == 0 { &mut columns.good } else { &mut columns.bad };
                *state |= 1 << column;
            }
        }
        columns
    }

    /// Most members on which one row, with its head, is damaged.
    pub(crate) fn damaged_columns(&self) -> u32 {
        let rows = self.bad_rows.iter().map(|members| (members | self.bad_heads).count_ones());
        rows.max().unwrap_or(0).max(self.bad_heads.count_ones())
    }
}

/// What the volume is held to.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) facts: BTreeMap<StripeId, Fact>,
    /// Highest watermark that a writer or a finished mount has shown.
    pub(crate) acknowledged: StripeId,
    /// Newest stripe that must stay, closing ones included.
    pub(crate) tail: Sequence,
    /// A stripe that may be on the disks under an unknown number.
    pub(crate) pending: Option<Pending>,
    /// An epoch may have begun since the last mount that ended: what it decided may show.
    pub(crate) epoch_unseen: bool,
    /// What an orderly stop may have acknowledged: the VOID that closes its slot.
    pub(crate) stop: StripeId,
    /// Members that were there whenever a writer may have decided what stays, since the last
    /// finished mount.
    pub(crate) deciders: u32,
    /// Members of the newest epoch that was seen to begin. What another holds of stripes of that
    /// epoch counts only together with theirs.
    pub(crate) joined: u32,
    /// By member: sequences of which it may hold nothing that counts.
    pub(crate) gaps: BTreeMap<u8, Range<Sequence>>,
    /// What lies before this sequence was given up for certain ...
    pub(crate) given_up: Sequence,
    /// ... and what lies before this one perhaps.
    pub(crate) giving_up: Sequence,
    /// By sequence: members of which rows outside of all stripes here were damaged.
    pub(crate) closing_damage: BTreeMap<Sequence, u32>,
}

impl Default for Truth {
    fn default() -> Self {
        Self {
            facts: BTreeMap::new(),
            acknowledged: StripeId::default(),
            tail: Sequence(0),
            pending: None,
            epoch_unseen: false,
            stop: StripeId::default(),
            deciders: u32::MAX,
            joined: u32::MAX,
            gaps: BTreeMap::new(),
            given_up: Sequence(0),
            giving_up: Sequence(0),
            closing_damage: BTreeMap::new(),
        }
    }
}

impl Truth {
    /// The writer says that everything up to `watermark` is durable; how many stripes that adds.
    pub(crate) fn acknowledge(&mut self, watermark: StripeId) -> u64 {
        let before = self.acknowledged;
        self.acknowledged = watermark.max(before);
        let mut count = 0;
        for fact in self.facts.range_mut(before..=self.acknowledged).map(|(_, fact)| fact) {
            if fact.fate == Fate::InFlight {
                fact.fate = Fate::Kept;
                count += 1;
            }
        }
        count
    }

    /// An epoch may have begun on the members in `present` alone, and was not seen to.
    pub(crate) fn decided_unseen(&mut self, present: u32) {
        self.epoch_unseen = true;
        self.deciders &= present;
    }

    /// An epoch may begin without `member`: it is not known whether it holds what is not
    /// acknowledged, and what it holds from `sequence` on counts for nothing by itself. What it
    /// missed is one range: a second gap reaches back to the first.
    pub(crate) fn doubt(&mut self, member: u8, sequence: Sequence) {
        let before = self.gaps.get(&member).map_or(sequence, |gap| gap.start);
        let gap = sequence.min(before)..Sequence::MAX;
        for (id, fact) in &mut self.facts {
            if fact.fate == Fate::InFlight || gap.contains(&id.sequence) {
                fact.holders &= !(1 << member);
            }
        }
        self.gaps.insert(member, gap);
    }

    /// Members that missed something, or perhaps did.
    pub(crate) fn behind(&self) -> u32 {
        self.gaps.keys().fold(!self.deciders, |bits, member| bits | 1 << member)
    }

    /// What was damaged on these members, from a stripe on, may be repaired by now, wholly or in
    /// part.
    pub(crate) fn doubt_damaged(&mut self, from: StripeId, members: u32) {
        for (_, fact) in self.facts.range_mut(from..) {
            let damaged = fact.bad_rows.iter().fold(fact.bad_heads, |bits, row| bits | row);
            fact.holders &= !(damaged & members);
        }
    }

    /// What `member` holds in a slot is not certain.
    pub(crate) fn doubt_slot(&mut self, sequence: Sequence, member: u8) {
        let slot = StripeId { sequence, sub: 0 }..=StripeId { sequence, sub: u16::MAX };
        for (_, fact) in self.facts.range_mut(slot) {
            fact.holders &= !(1 << member);
        }
    }

    /// The members in `present` take part from `sequence` on; gaps that the ring has passed are
    /// none.
    pub(crate) fn take_part(&mut self, present: u32, sequence: Sequence) {
        for (member, gap) in &mut self.gaps {
            if present & (1 << member) != 0 {
                gap.end = gap.end.min(sequence);
            }
        }
        let tail = self.tail;
        self.gaps.retain(|_, gap| gap.end > tail);
    }

    /// The ring has passed everything below `tail`.
    pub(crate) fn forget_below(&mut self, tail: Sequence) {
        self.tail = tail;
        self.facts = self.facts.split_off(&StripeId { sequence: tail, sub: 0 });
        self.closing_damage = self.closing_damage.split_off(&tail);
    }
}
