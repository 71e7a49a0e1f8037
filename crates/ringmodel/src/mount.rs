//! The read-write mount: the rules of recovery, in the order they are applied.
//!
//! Positions are (sequence, sub). Up to the watermark everything was acknowledged or decided by an
//! earlier mount: it is never judged and never written. Above it every slot is brought to an end.
//! In brackets stands what happens without the rule.
//!
//! 0. Flush first: what a killed process left in a cache must not be judged. [Kept, then gone.]
//! 1. Superblock: the newest valid of four copies. Quorum: `assemble`.
//! 2. Newest sequence H: bisection over laps. An unreadable probe takes the nearest readable slot
//!    beside it, else it counts as older; the window of 2W slots to both sides of the boundary must
//!    hold H at most W to its right, and not below the joined epoch's start, else the first rows of
//!    all slots are read. [Head below an acknowledged stripe.] In the window all rows count, not
//!    only the first: the second sub of a slot may land without the first. [H one too low, its
//!    sequence used again, and the old epoch's sub continues the new slot where rows and the lax
//!    epoch check of 5 fit.]
//! 3. PREPARE: a new epoch, above every epoch seen, durable before anything is written.
//!    Copy 0, flush, copy 2, flush, copies 1 and 3, flush. [All four torn.]
//! 4. Watermark: the highest in any head of slots H - 2W ..= H of epochs up to the newest settled
//!    one, and at least (its start, 0). [The EPOCH head rots: decided stripes are judged again.]
//! 5. For each sequence from the watermark's to H, at least H - 2W: walk the subs. Each continues
//!    with the same sequence and epoch, the next sub, in the expected row; only a VOID may be of a
//!    later epoch. Whole ones are completed on every member that will take part; the first that is
//!    not whole is replaced by a VOID that fills the slot to its end in one request. [Head and
//!    trailer alone leave later subs of the same sequence, shown as acknowledged once that VOID
//!    head rots.] A VOID that is there but lacks its trailer, or has such subs behind it, gets the
//!    rows behind its head rewritten; the head is left alone. A damaged stripe up to the watermark
//!    is stepped over by searching the next head; if its end cannot be told, the VOID goes to the
//!    first head above the watermark, or, where there is none, nowhere.
//! 6. Flush. EPOCH at (H + 1, 0) over a whole slot, watermark (H, all subs). Flush.
//!    [Shown, then voided by a mount with other members.]
//! 7. JOIN: epoch, start = H + 1, members and what each lacks, in the order of 3. Only then is
//!    anything shown or acknowledged. The next stripe goes to (H + 2, 0).

use crate::assemble::Assembly;
use crate::device::{Head, Kind, Position, Row};
use crate::epoch::Parts;
use crate::model::{Sim, Stop};
use crate::mutants::Mutant;
use crate::read::End;
use crate::search::Reads;
use crate::superblock::each;

impl Sim<'_> {
    /// Opens the volume on the members at hand; those of `blank` take the place of absent ones.
    pub(crate) fn mount(&mut self, blank: usize) -> Result<(), Stop> {
        self.stats.mounts += 1;
        let flushes = self.mutant != Mutant::NoFlushBeforeJudging;
        if flushes {
            self.flush_present(self.at_hand());
        }
        self.point()?;

        let Assembly { present, trusted, known, settled } = self.assemble()?;
        (self.known, self.settled) = (known, settled);
        let relied = match self.mutant {
            Mutant::TornJoinFinal => known.newest(),
            _ => settled,
        };
        let mut reads = Reads::default();
        let view = self.view(trusted);
        let head = view.newest(&mut reads).unwrap_or(0).max(relied.start);
        let epoch_seen = view.newest_epoch(head);
        let start = Position::new(relied.start, 0);
        let mut watermark = view.watermark(head, relied.epoch);
        self.stats.probes_max = self.stats.probes_max.max(reads.probes);
        self.stats.full_scans += reads.full_scans;
        self.truth.excuse_behind_rot(watermark.max(start));
        if self.mutant != Mutant::NoStartAsWatermark {
            watermark = watermark.max(start);
        }
        let (returning, shape) = (present & !trusted, known.shape());
        let gone = self.gone & !blank;
        let judged_from = watermark.sequence;
        let parts = Parts { trusted, returning, blank, gone, shape, judged_from };
        self.stats.returned += u64::from(returning.count_ones());
        self.prepare(&parts, epoch_seen)?;
        self.acknowledged = watermark;
        // Everybody who takes part: a quorum of the new epoch holds what this mount keeps.
        let judged =
            if self.mutant == Mutant::JudgedOnCurrentAlone { trusted } else { parts.all() };
        self.judge(head, watermark, (present, judged))?;
        self.settle_writes(parts.all(), flushes)?;

        self.begin_epoch(head, watermark, &parts)?;
        self.check_mounted(head, watermark)
    }

    /// Every stripe above the watermark becomes whole or void.
    fn judge(
        &mut self,
        head: usize,
        watermark: Position,
        (present, judged): (usize, usize),
    ) -> Result<(), Stop> {
        let first = head.saturating_sub(2 * self.geometry.window).max(1);
        let over = self.mutant == Mutant::VoidOverAcknowledged;
        let floor = if over { Position::default() } else { watermark };
        for sequence in first.max(floor.sequence)..=head {
            let walk = self.view(present).walk(sequence, floor);
            for stripe in walk.stripes.iter().filter(|stripe| stripe.head.at > floor) {
                self.roll_forward(&stripe.head, judged);
            }
            if let End::Missing { row, sub } = walk.end
                && ![Mutant::NoVoid, Mutant::LaterSubAfterMissing].contains(&self.mutant)
            {
                self.void(Position::new(sequence, sub), row, judged);
            }
            self.land_some();
            self.point()?;
        }
        Ok(())
    }

    /// Completes a stripe on every member of a set; rows that are right are left alone.
    fn roll_forward(&mut self, head: &Head, present: usize) {
        let content = head.content();
        let present = present & self.known.seats_at(head.at.sequence);
        let slot = head.at.sequence % self.geometry.slots;
        let first = slot * self.geometry.rows + head.row;
        for index in each(present) {
            let member = &self.members[index];
            let exact = if head.kind.closes() {
                self.view(present).closing_is_exact((index, member), head)
            } else {
                member.visible[first..first + content.len()] == content[..]
            };
            if !exact {
                self.stats.rewritten += 1;
                let keep = usize::from(member.visible[first] == Row::Head(*head));
                let rows = content[keep..].to_vec();
                self.submit_rows(index, head.at, head.row + keep, rows);
            }
        }
    }

    /// Closes a slot: head, nothing behind it, and the trailing length.
    pub(crate) fn void(&mut self, at: Position, row: usize, present: usize) {
        self.stats.voids += 1;
        let head = self.new_head(Kind::Void, at, row, self.geometry.rows - row - 1);
        let content = head.content();
        for index in each(present) {
            if self.mutant == Mutant::VoidLeavesRest && content.len() > 1 {
                let last = self.geometry.rows - 1;
                self.submit_rows(index, at, row, vec![content[0]]);
                self.submit_rows(index, at, last, vec![content[content.len() - 1]]);
            } else {
                self.submit_rows(index, at, row, content.clone());
            }
        }
    }

    fn land_some(&mut self) {
        for member in &mut self.members {
            if !member.in_flight.is_empty() && self.rng.percent(50) {
                let write = member.in_flight.remove(0);
                member.land(&write, &mut self.rng);
            }
        }
    }

    pub(crate) fn settle_writes(&mut self, present: usize, flushes: bool) -> Result<(), Stop> {
        for index in each(present) {
            self.members[index].land_all(&mut self.rng);
            if flushes {
                self.members[index].flush(&mut self.rng);
            }
            self.point()?;
        }
        Ok(())
    }
}
