//! Resilver beside the writer: what one member lacks is computed from the others, slot by slot
//! downward from the end of its gap, and the end moves down behind it.
//!
//! The end may move only over slots that are durable: a crash then costs the work since. Of each
//! slot what differs is written, even where its stripes cannot be had: then as nothing. [What the
//! member wrote there in an abandoned past would count again.] What is right is left alone: a write
//! may be torn. [Others are gone for good, and what lies inside a gap is needed.] The slot under
//! way is held: the writer does not take it, and the resilver takes none that the writer may want
//! soon. The gap ends where it began, or when every slot has been written anew; not where the
//! resilver stops because the writer comes near. [Slots between are readable and were not done.]

use std::ops::Range;

use crate::device::{Row, Write};
use crate::model::{Sim, Stop};
use crate::mutants::Mutant;
use crate::read::End;
use crate::superblock::{NEVER, each};

/// The member being resilvered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resilver {
    pub(crate) seat: usize,
    /// Everything of the gap from here on has been written.
    pub(crate) cursor: usize,
    /// The sequence whose slot is being written.
    pub(crate) under_way: Option<usize>,
    /// Its requests that have not landed.
    requests: usize,
}

impl Sim<'_> {
    /// The slot is being resilvered: nobody else may write it.
    pub(crate) fn resilver_holds(&self, slot: usize) -> bool {
        let held = self.resilver.and_then(|resilver| resilver.under_way);
        self.mutant != Mutant::NoSlotLock
            && held.is_some_and(|sequence| sequence % self.geometry.slots == slot)
    }

    pub(crate) fn resilver_landed(&mut self, seat: usize) {
        if let Some(resilver) = self.resilver.as_mut().filter(|resilver| resilver.seat == seat)
            && let Some(sequence) = resilver.under_way
        {
            resilver.requests -= 1;
            if resilver.requests == 0 {
                (resilver.cursor, resilver.under_way) = (sequence, None);
            }
        }
    }

    /// One slot, if there is one to do.
    pub(crate) fn resilver_step(&mut self) {
        let Some(resilver) = self.resilver.or_else(|| self.next_to_resilver()) else { return };
        self.resilver = Some(resilver);
        let Resilver { seat, cursor, under_way, .. } = resilver;
        let lowest = self.lowest_to_resilver(seat);
        if under_way.is_some() || cursor <= lowest {
            if under_way.is_none() && self.known.entries[seat].clean_from == cursor {
                self.resilver = None;
            }
            return;
        }
        let sequence = cursor - 1;
        let Some(content) = self.resilvered(sequence) else { return };
        let lacks_piece = self.known.seats_at(sequence) >> seat & 1 == 0;
        let left =
            self.mutant == Mutant::LostSlotLeft && content.iter().all(|row| *row == Row::Nothing);
        let runs = self.runs_to_write(seat, sequence, &content);
        if lacks_piece || left || runs.is_empty() {
            self.resilver = Some(Resilver { cursor: sequence, ..resilver });
            return;
        }
        self.stats.resilvered += 1;
        let first = sequence % self.geometry.slots * self.geometry.rows;
        let requests = runs.len();
        for run in runs {
            let rows = content[run.clone()].to_vec();
            self.members[seat].submit(Write { first: first + run.start, rows, owner: None });
        }
        self.resilver = Some(Resilver { under_way: Some(sequence), requests, ..resilver });
    }

    /// The runs of rows that are not as they should be, or hold something else of the sequence.
    fn runs_to_write(&self, seat: usize, sequence: usize, content: &[Row]) -> Vec<Range<usize>> {
        let first = sequence % self.geometry.slots * self.geometry.rows;
        let found = &self.members[seat].visible[first..first + self.geometry.rows];
        let is_right = |row: usize| match (&found[row], &content[row]) {
            (Row::Head(head), Row::Nothing) => head.at.sequence != sequence,
            (_, Row::Nothing) => true,
            (found, right) => found == right,
        };
        let rows = match self.mutant {
            Mutant::ResilverLeavesRest => {
                let used = content.iter().rposition(|row| *row != Row::Nothing);
                used.map_or(0, |last| last + 1)
            }
            _ => content.len(),
        };
        let wrong: Vec<usize> = (0..rows).filter(|&row| !is_right(row)).collect();
        if self.mutant == Mutant::ResilverWritesRight && !wrong.is_empty() {
            return vec![0..content.len(); 1];
        }
        let runs = wrong.chunk_by(|row, next| row + 1 == *next);
        runs.map(|run| run[0]..run[0] + run.len()).collect()
    }

    fn next_to_resilver(&mut self) -> Option<Resilver> {
        let seat = self.rng.below(self.members.len());
        let entry = self.known.entries[seat];
        let stale = self.part >> seat & 1 == 1 && !entry.is_whole() && entry.clean_from != NEVER;
        let cursor = entry.clean_from;
        stale.then_some(Resilver { seat, cursor, under_way: None, requests: 0 })
    }

    /// Slots that the writer may want soon are left to it.
    fn lowest_to_resilver(&self, seat: usize) -> usize {
        let near = [Mutant::NoMargin, Mutant::NoSlotLock].contains(&self.mutant);
        let margin = if near { 0 } else { 2 * self.geometry.window };
        let tail = (self.next.at.sequence + 1 + margin).saturating_sub(self.geometry.slots);
        self.known.entries[seat].stale_from.max(tail).max(1)
    }

    /// What belongs into the slot; `None` while a member is away that may have what is missing.
    fn resilvered(&self, sequence: usize) -> Option<Vec<Row>> {
        let walk = self.view(self.part).walk(sequence, self.acknowledged);
        let complete = matches!(walk.end, End::Full | End::Closed) && !walk.damaged;
        let away = each(self.known.seats_at(sequence) & !self.part)
            .any(|seat| self.known.entries[seat].uuid != 0);
        if !complete && away && self.mutant != Mutant::ResilverNeverWaits {
            return None;
        }
        Some(self.slot_content(sequence, self.part, self.acknowledged))
    }

    /// What was resilvered is made durable, and everybody learns of it.
    pub(crate) fn resilver_cursor(&mut self) -> Result<(), Stop> {
        let Some(Resilver { seat, cursor, .. }) = self.resilver else { return Ok(()) };
        let entry = self.known.entries[seat];
        let at_end = cursor <= self.lowest_to_resilver(seat);
        let cursor = match self.mutant {
            Mutant::GapEndsAtTail if at_end => entry.stale_from,
            _ => cursor,
        };
        if cursor >= entry.clean_from {
            return Ok(());
        }
        if self.mutant != Mutant::CursorBeforeFlush {
            self.flush_member(seat);
        }
        self.points_left = self.rng.percent(20).then(|| 1 + self.rng.below(30));
        let mut known = self.known;
        known.entries[seat].clean_from = cursor;
        self.write_superblocks(self.part, |old| known.after(old))?;
        self.known = known;
        self.points_left = None;
        Ok(())
    }
}
