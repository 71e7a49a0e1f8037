//! The read-write mount: the rules of recovery, in the order they are applied.
//!
//! Positions are (sequence, sub). Up to the watermark everything was acknowledged or decided by an
//! earlier mount: it is never judged and never written. Above it every slot is brought to an end.
//! In brackets stands what happens without the rule.
//!
//! 0. Flush first: what a killed process left in a cache must not be judged. [Kept, then gone.]
//! 1. Superblock: the newest valid of four copies. Quorum: max(K, M / 2 + 1, n - K + 1) of the M
//!    members of the newest joined epoch. [n - K + 1: in 2+2 two members stay away while the other
//!    two void a stripe, come back, and are enough to show it.]
//! 2. Newest sequence H: bisection over laps. An unreadable probe takes the nearest readable slot
//!    beside it, else it counts as older; the window of 2W slots to both sides of the boundary must
//!    hold H at most W to its right, else the first rows of all slots are read. [Head below an
//!    acknowledged stripe.] In the window all rows count, not only the first: the second sub of a
//!    slot may land without the first. [H one too low, its sequence used again,
//!    and the old epoch's sub continues the new slot where rows and the lax epoch check of 5 fit.]
//!    H is at least the joined epoch's start.
//! 3. PREPARE: a new epoch, above every epoch seen, durable before anything is written.
//!    Copy 0, flush, copy 2, flush, copies 1 and 3, flush. [All four torn.]
//! 4. Watermark: the highest in any head of slots H - 2W ..= H, and at least (start, 0). [The EPOCH
//!    head rots: decided stripes are judged again.]
//! 5. For each sequence from the watermark's to H, at least H - 2W: walk the subs. Each continues
//!    with the same sequence and epoch, the next sub, in the expected row; only a VOID may be of a
//!    later epoch. Whole ones are completed on every member; the first that is not whole is
//!    replaced by a VOID that fills the slot to its end in one request. [Head and trailer alone
//!    leave later subs of the same sequence, shown as acknowledged once that VOID head rots.]
//!    A VOID that is there but lacks its trailer, or has such subs behind it, gets the rows behind
//!    its head rewritten; the head is left alone. A damaged stripe up to the watermark is stepped
//!    over by searching the next head; if its end cannot be told, the VOID goes to the first head
//!    above the watermark, or, where there is none, nowhere.
//! 6. Flush. EPOCH at (H + 1, 0) over a whole slot, watermark (H, all subs). Flush.
//!    [Shown, then voided by a mount with other members.]
//! 7. JOIN: epoch, start = H + 1 and members, in the order of 3. Only then is anything shown or
//!    acknowledged. The next stripe goes to (H + 2, 0).

use crate::device::{COPIES, Head, Kind, Member, Position, Row, Superblock};
use crate::model::{Next, Scenario, Sim, Stop};
use crate::mutants::Mutant;
use crate::read::{End, Reads};

/// Which members a mount may work with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembly {
    /// Bit set: present, with a superblock.
    pub(crate) present: usize,
    /// Bit set: those whose heads say where the log ends.
    pub(crate) trusted: usize,
    pub(crate) prepared: usize,
    pub(crate) joined: usize,
    pub(crate) start: usize,
}

fn size(set: usize) -> usize {
    usize::try_from(set.count_ones()).expect("a bit count fits")
}

impl Sim<'_> {
    fn point(&mut self) -> Result<(), Stop> {
        let Some(left) = self.points_left.as_mut() else { return Ok(()) };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return Ok(());
        }
        self.points_left = None;
        self.stats.crashes_in_mount += 1;
        Err(Stop::Crashed)
    }

    fn each(set: usize) -> impl Iterator<Item = usize> {
        (0..usize::try_from(usize::BITS).expect("a bit count fits"))
            .filter(move |index| set >> index & 1 == 1)
    }

    /// Quorum: enough members of the newest joined epoch, or every member there is.
    pub(crate) fn assemble(&self) -> Result<Assembly, Stop> {
        let mut present = 0;
        let mut newest: Option<Superblock> = None;
        let mut prepared = 0;
        for (index, member) in self.members.iter().enumerate().filter(|(_, m)| m.present) {
            let Some(superblock) = member.superblock() else {
                return Err(Stop::Violation(format!("no superblock on member {index}")));
            };
            present |= 1 << index;
            prepared = prepared.max(superblock.prepared).max(superblock.joined);
            if newest.is_none_or(|newest| superblock.joined > newest.joined) {
                newest = Some(superblock);
            }
        }
        let Some(newest) = newest else { return Err(Stop::Refused) };
        let (joined, start) = (newest.joined, newest.start);
        let all = present == self.geometry.all();
        let entitled = present & newest.members;
        // Fewer than K members outside: they must not bring back what this mount voids.
        let inside = self.geometry.members() - self.geometry.data + 1;
        let quorum = self.geometry.data.max(size(newest.members) / 2 + 1).max(inside);
        let exempt = [Mutant::NoQuorum, Mutant::NoEpochNumber].contains(&self.mutant);
        if size(entitled) < quorum && !all && !exempt {
            return Err(Stop::Refused);
        }
        let fresh = Self::each(present)
            .filter(|&i| self.members[i].superblock().is_some_and(|s| s.joined == joined))
            .fold(0, |set, i| set | 1 << i);
        let mut trusted = fresh;
        if size(fresh) < quorum && !exempt {
            if self.epoch_used(fresh, joined, start) {
                if !all {
                    return Err(Stop::Refused);
                }
            } else {
                trusted = if size(entitled) < quorum { present } else { entitled };
            }
        }
        if [Mutant::StaleMembersTrusted, Mutant::NoEpochNumber].contains(&self.mutant) {
            trusted = present;
        }
        Ok(Assembly { present, trusted, prepared, joined, start })
    }

    /// A stripe of the joined epoch lies behind its EPOCH stripe: the JOIN was complete.
    fn epoch_used(&self, set: usize, joined: usize, start: usize) -> bool {
        let view = self.view(set);
        (start + 1..=start + self.geometry.window + 1).any(|sequence| {
            (0..self.geometry.rows).any(|row| {
                view.heads(sequence % self.geometry.slots, row)
                    .any(|head| head.epoch == joined && head.at.sequence > start)
            })
        })
    }

    pub(crate) fn mount(&mut self) -> Result<(), Stop> {
        self.stats.mounts += 1;
        let flushes = self.mutant != Mutant::NoFlushBeforeJudging;
        let here = Self::each(self.geometry.all()).filter(|&i| self.members[i].present);
        let here = here.fold(0, |set, i| set | 1 << i);
        if flushes {
            self.flush_present(here);
        }
        self.point()?;

        let assembly = self.assemble()?;
        let mut reads = Reads::default();
        let trusted = self.view(assembly.trusted);
        let head = trusted.newest(assembly.joined, &mut reads).unwrap_or(0).max(assembly.start);
        let epoch_seen = trusted.newest_epoch(head);
        self.stats.probes_max = self.stats.probes_max.max(reads.probes);
        self.stats.full_scans += reads.full_scans;

        if self.mutant != Mutant::NoEpochNumber {
            self.epoch = assembly.prepared.max(epoch_seen) + 1;
            self.write_superblocks(&assembly, |old, epoch| Superblock { prepared: epoch, ..old })?;
        }
        let mut watermark = self.view(assembly.trusted).watermark(head, usize::MAX);
        let start = Position::new(assembly.start, 0);
        self.truth.excuse_behind_rot(watermark.max(start));
        if self.mutant != Mutant::NoStartAsWatermark {
            watermark = watermark.max(start);
        }
        self.acknowledged = watermark;
        self.judge(head, watermark, &assembly)?;
        self.settle_writes(assembly.present, flushes)?;

        self.begin_epoch(head, watermark, &assembly)?;
        self.check_mounted(head, watermark, &assembly)
    }

    /// Every stripe above the watermark becomes whole or void.
    fn judge(&mut self, head: usize, watermark: Position, assembly: &Assembly) -> Result<(), Stop> {
        let first = head.saturating_sub(2 * self.geometry.window).max(1);
        let over = self.mutant == Mutant::VoidOverAcknowledged;
        let floor = if over { Position::default() } else { watermark };
        for sequence in first.max(floor.sequence)..=head {
            let walk = self.view(assembly.present).walk(sequence, floor);
            for stripe in walk.stripes.iter().filter(|stripe| stripe.head.at > floor) {
                self.roll_forward(&stripe.head, assembly.present);
            }
            if let End::Missing { row, sub } = walk.end
                && ![Mutant::NoVoid, Mutant::LaterSubAfterMissing].contains(&self.mutant)
            {
                self.void(Position::new(sequence, sub), row, assembly.present);
            }
            self.land_some();
            self.point()?;
        }
        Ok(())
    }

    /// Completes a stripe on every present member; rows that are right are left alone.
    fn roll_forward(&mut self, head: &Head, present: usize) {
        let content = head.content();
        let slot = head.at.sequence % self.geometry.slots;
        let first = slot * self.geometry.rows + head.row;
        for index in Self::each(present) {
            let member = &self.members[index];
            let exact = if head.kind.closes() {
                self.view(present).closing_is_exact(member, head)
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
    fn void(&mut self, at: Position, row: usize, present: usize) {
        self.stats.voids += 1;
        let head = self.new_head(Kind::Void, at, row, self.geometry.rows - row - 1);
        let content = head.content();
        for index in Self::each(present) {
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

    fn settle_writes(&mut self, present: usize, flushes: bool) -> Result<(), Stop> {
        for index in Self::each(present) {
            self.members[index].land_all(&mut self.rng);
            if flushes {
                self.members[index].flush(&mut self.rng);
            }
            self.point()?;
        }
        Ok(())
    }

    /// EPOCH in a fresh slot, JOIN, and only then the mount is up.
    fn begin_epoch(
        &mut self,
        head: usize,
        watermark: Position,
        assembly: &Assembly,
    ) -> Result<(), Stop> {
        let fence = self.mutant != Mutant::NoEpochStripe;
        let start = head + usize::from(fence);
        if fence {
            self.acknowledged = Position::all_of(head);
            let epoch =
                self.new_head(Kind::Epoch, Position::new(start, 0), 0, self.geometry.rows - 1);
            let content = epoch.content();
            self.truth.clear(start, self.geometry.slots);
            for index in Self::each(assembly.present) {
                self.submit_rows(index, epoch.at, 0, content.clone());
            }
            self.point()?;
        }
        let skips = [Mutant::NoFlushBeforeJudging, Mutant::JoinBeforeEpochFlush];
        self.settle_writes(assembly.present, !skips.contains(&self.mutant))?;
        self.truth_settle(head, watermark, assembly.present);
        if self.mutant != Mutant::NoEpochNumber {
            let members = assembly.present;
            let join =
                |old: Superblock, epoch: usize| Superblock { joined: epoch, start, members, ..old };
            self.write_superblocks(assembly, join)?;
        }
        let sequence = match self.mutant {
            Mutant::SequenceReused => self.truth.newest_kept().sequence + 1,
            _ => start + 1,
        };
        self.next = Next { at: Position::new(sequence, 0), row: 0 };
        self.acknowledged = Position::new(sequence - 1, 0);
        Ok(())
    }

    /// Copy 0, flush, copy 2, flush, copies 1 and 3, flush: at any instant a copy is valid.
    fn write_superblocks(
        &mut self,
        assembly: &Assembly,
        change: impl Fn(Superblock, usize) -> Superblock,
    ) -> Result<(), Stop> {
        let rounds: &[&[usize]] = match self.mutant {
            Mutant::SuperblockAtOnce => &[&[0, 1, 2, 3]],
            _ => &[&[0], &[2], &[1, 3]],
        };
        assert_eq!(rounds.iter().map(|round| round.len()).sum::<usize>(), COPIES);
        for index in Self::each(assembly.present) {
            let old = self.members[index].superblock().expect("assembled with a superblock");
            let changed = change(old, self.epoch);
            let new = Superblock { generation: old.generation + 1, ..changed };
            let lost = self.members[index].bad && self.rng.percent(10);
            for round in rounds.iter().filter(|_| !lost) {
                for &copy in *round {
                    self.members[index].write_superblock(copy, new);
                }
                self.point()?;
                if self.mutant != Mutant::NoFlushBeforeJudging {
                    self.members[index].flush(&mut self.rng);
                }
                self.point()?;
            }
        }
        Ok(())
    }

    /// Repair outside the ring's own means: every member gets what the members hold together.
    pub(crate) fn resilver(&mut self) {
        let (all, rows) = (self.geometry.all(), self.geometry.rows);
        let start = self.next.at.sequence - 1;
        for slot in 0..self.geometry.slots {
            let Some(sequence) = self.view(all).probe_rows(slot) else { continue };
            let walk = self.view(all).walk(sequence, Position::all_of(start));
            let mut content = vec![Row::Nothing; rows];
            for stripe in walk.stripes.iter().filter(|stripe| stripe.whole) {
                for (row, found) in (stripe.head.row..).zip(stripe.head.content()) {
                    content[row] = found;
                }
            }
            for index in Self::each(all) {
                self.submit_rows(index, Position::new(slot, 0), 0, content.clone());
            }
        }
        for member in &mut self.members {
            member.bad = false;
            member.present = true;
            let old = member.superblock().expect("a member keeps a superblock");
            let new = Superblock {
                generation: old.generation + 1,
                prepared: self.epoch,
                joined: self.epoch,
                start,
                members: all,
            };
            (0..COPIES).for_each(|copy| member.write_superblock(copy, new));
            Member::land_all(member, &mut self.rng);
            member.flush(&mut self.rng);
        }
        if self.scenario == Scenario::Faulty {
            self.choose_bad();
        }
    }

    pub(crate) fn choose_bad(&mut self) {
        for _ in 0..self.geometry.parity {
            if self.rng.percent(70) {
                let index = self.rng.below(self.members.len());
                self.members[index].bad = true;
            }
        }
    }
}
