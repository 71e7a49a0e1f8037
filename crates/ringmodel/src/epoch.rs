//! Every change of who takes part is an epoch: flush, PREPARE, EPOCH stripe in a fresh slot, flush,
//! JOIN, flush; only then anything is shown or acknowledged. A mount begins one, and so does a
//! running writer that goes on without a member, takes one back or in, or grows.

use std::mem;

use crate::device::{COPIES, Head, Kind, Position};
use crate::model::{Next, Sim, Stop};
use crate::mutants::Mutant;
use crate::superblock::{Entry, NEVER, Settled, Shape, Superblock, each, size};

/// Who takes part in a new epoch, and as what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Members whose heads said where the ring ends.
    pub(crate) trusted: usize,
    /// Stale ones that are whole from here on.
    pub(crate) returning: usize,
    /// Blank ones.
    pub(crate) blank: usize,
    /// Those that are gone for good: their seats are empty from here on.
    pub(crate) gone: usize,
    /// The shape of the stripes from here on.
    pub(crate) shape: Shape,
    /// What a member that takes no part does not know begins in this slot.
    pub(crate) judged_from: usize,
}

impl Parts {
    pub(crate) fn all(&self) -> usize {
        self.trusted | self.returning | self.blank
    }
}

impl Sim<'_> {
    /// Steps of a mount or change that a crash may fall between.
    pub(crate) fn point(&mut self) -> Result<(), Stop> {
        let Some(left) = self.points_left.as_mut() else { return Ok(()) };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return Ok(());
        }
        self.points_left = None;
        self.stats.crashes_in_mount += 1;
        Err(Stop::Crashed)
    }

    /// PREPARE: a number above `seen` and all that the superblocks know, durable on everybody. A
    /// blank member learns here who it is.
    pub(crate) fn prepare(&mut self, parts: &Parts, seen: usize) -> Result<(), Stop> {
        if self.mutant == Mutant::NoEpochNumber {
            return Ok(());
        }
        let own = each(parts.all()).filter_map(|seat| self.superblock_of(seat));
        let numbers = own.map(|own| own.prepared.max(own.joined));
        self.epoch = numbers.fold(seen, usize::max) + 1;
        let (known, epoch) = (self.known, self.epoch);
        let strangers = if self.mutant == Mutant::BlankNotPrepared { parts.blank } else { 0 };
        self.write_superblocks(parts.all() & !strangers, |old| {
            let mut new = old.copied().unwrap_or_else(|| known.for_blank());
            new.prepared = epoch;
            new
        })
    }

    /// EPOCH in a fresh slot behind `last`, and JOIN.
    pub(crate) fn begin_epoch(
        &mut self,
        last: usize,
        watermark: Position,
        parts: &Parts,
    ) -> Result<(), Stop> {
        let fence = self.mutant != Mutant::NoEpochStripe;
        let start = last + usize::from(fence);
        let joined = self.joined(start, parts);
        if fence {
            self.acknowledged = Position::all_of(last);
            let rows = self.geometry.rows - 1;
            let head = self.new_head(Kind::Epoch, Position::new(start, 0), 0, rows);
            let epoch = Head { columns: parts.shape.columns(), ..head };
            self.truth.pass(start, self.geometry.slots);
            for seat in each(parts.all()) {
                self.submit_rows(seat, epoch.at, 0, epoch.content());
            }
            self.point()?;
        }
        let skips = [Mutant::NoFlushBeforeJudging, Mutant::JoinBeforeEpochFlush];
        self.settle_writes(parts.all(), !skips.contains(&self.mutant))?;
        let before = mem::replace(&mut self.known, joined);
        self.truth_offer(last, watermark, parts.all() & !parts.blank);
        self.lose_what_only_they_had(parts, watermark);
        if self.mutant == Mutant::AcknowledgeBeforeJoin {
            self.settle();
        }
        if self.mutant == Mutant::NoEpochNumber {
            self.known = before;
            self.settle();
        } else {
            self.join(parts)?;
        }
        let sequence = match self.mutant {
            Mutant::SequenceReused => self.truth.newest_kept().sequence + 1,
            _ => start + 1,
        };
        self.part = parts.all();
        self.empty_seats();
        self.next = Next { at: Position::new(sequence, 0), row: 0 };
        self.acknowledged = Position::new(sequence - 1, 0);
        Ok(())
    }

    /// JOIN: members of before first, then new ones. When so many have it that no later mount can
    /// miss it, a reader may show what it covers.
    fn join(&mut self, parts: &Parts) -> Result<(), Stop> {
        let joined = self.known;
        let mut order: Vec<usize> =
            each(parts.trusted).chain(each(parts.all() & !parts.trusted)).collect();
        if self.mutant == Mutant::NewMembersJoinFirst {
            order.reverse();
        }
        // Readers have not heard who is gone.
        let gone = if self.mutant == Mutant::GoneDoNotDoubt { self.gone } else { 0 };
        let mut missing = self.settled.members & !gone;
        let mut shown = false;
        for seat in order {
            self.write_superblocks(1 << seat, |old| joined.after(old))?;
            missing &= !(1 << seat & !joined.previous.replaced);
            if !shown && size(missing) < self.quorum(&joined.previous, gone) {
                shown = true;
                self.settle();
            }
        }
        self.settle();
        self.settled = joined.newest();
        Ok(())
    }

    /// What is kept from here on.
    fn settle(&mut self) {
        for pending in mem::take(&mut self.pending) {
            self.stats.acknowledged += 1;
            self.truth.keep(pending.at, self.geometry.slots);
        }
        self.truth.settle();
    }

    fn joined(&self, start: usize, parts: &Parts) -> Superblock {
        let mut joined = Superblock {
            prepared: self.epoch,
            joined: self.epoch,
            previous: Settled {
                replaced: self.settled.replaced | parts.blank & self.settled.members,
                ..self.settled
            },
            start,
            members: parts.all(),
            ..self.known
        };
        if parts.shape != joined.shape() {
            let [newest, older, _] = joined.shapes;
            joined.shapes = [Shape { first: start, ..parts.shape }, newest, older];
        }
        for seat in each(joined.all()) {
            joined.entries[seat] = self.entry(seat, start, parts);
        }
        joined
    }

    /// What a member lacks from the new epoch's begin on.
    fn entry(&self, seat: usize, start: usize, parts: &Parts) -> Entry {
        let entry = self.known.entries[seat];
        let takes = |set: usize| set >> seat & 1 == 1;
        if takes(parts.blank) {
            let stale_from = if self.mutant == Mutant::BlankMemberWhole { start } else { 0 };
            return Entry { uuid: self.members[seat].uuid, stale_from, clean_from: start };
        }
        if takes(parts.gone) && self.mutant != Mutant::GoneKeepSeats {
            return Entry::EMPTY;
        }
        // Once the ring has gone round, every slot was written anew.
        let renewed = entry.clean_from.saturating_add(self.geometry.slots);
        let whole = entry.is_whole() || takes(self.known.members) && renewed <= parts.judged_from;
        let stale_since = |since: usize| if whole { since } else { entry.stale_from.min(since) };
        if takes(parts.trusted) {
            let clean_from = if whole { entry.stale_from } else { entry.clean_from };
            return Entry { clean_from, ..entry };
        }
        if takes(parts.returning) {
            let begin = self.superblock_of(seat).map_or(0, |own| own.start);
            let clean_from = start;
            return match self.mutant {
                Mutant::ReturnsWhole => Entry { stale_from: 0, clean_from: 0, ..entry },
                _ => Entry { stale_from: stale_since(begin), clean_from, ..entry },
            };
        }
        let since = match self.mutant {
            Mutant::StaleFromStart => start,
            _ => parts.judged_from,
        };
        Entry { stale_from: stale_since(since), clean_from: NEVER, ..entry }
    }

    /// Copy 0, flush, copy 2, flush, copies 1 and 3, flush: at any instant a copy is valid.
    pub(crate) fn write_superblocks(
        &mut self,
        set: usize,
        change: impl Fn(Option<&Superblock>) -> Superblock,
    ) -> Result<(), Stop> {
        let rounds: &[&[usize]] = match self.mutant {
            Mutant::SuperblockAtOnce => &[&[0, 1, 2, 3]],
            _ => &[&[0], &[2], &[1, 3]],
        };
        assert_eq!(rounds.iter().map(|round| round.len()).sum::<usize>(), COPIES);
        for seat in each(set) {
            let old = self.members[seat].superblock();
            let mut new = change(old.as_ref());
            new.generation += 1;
            let lost = old.is_some() && self.members[seat].bad && self.rng.percent(10);
            for round in rounds.iter().filter(|_| !lost) {
                for &copy in *round {
                    self.members[seat].write_superblock(copy, &new);
                }
                self.point()?;
                if self.mutant != Mutant::NoFlushBeforeJudging {
                    self.members[seat].flush(&mut self.rng);
                }
                self.point()?;
            }
        }
        Ok(())
    }
}
