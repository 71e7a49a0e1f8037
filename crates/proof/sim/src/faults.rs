//! What goes wrong besides crashes: on bad members anything, on the others only as much as the
//! parity of the volume bears, kept account of row by row.

use device::{Fault, MUTATIONS, Modelled, Operation, ROW_SIZE, ReadAt, Rule};
use format::head::StripeId;
use format::superblock::{SUPERBLOCK_COPIES, Superblock, copy_offset};
use units::number::to_u64;
use units::{Sequence, SlotNumber};

use crate::check::{Look, Scene, Verdict, Violation, broken};
use crate::history::{History, bits_of, numbers};
use crate::plan::Mode;
use crate::truth::Fate;

/// Most damaged rows between two mounts.
const DAMAGE_MAX: u64 = 12;
/// Snapshots kept of bad members.
const SNAPSHOTS_MAX: usize = 6;

const READS: &[Operation] = &[Operation::Read];

/// A row of the ring on one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) sequence: Sequence,
    pub(crate) row: u16,
    pub(crate) member: u8,
}

impl History {
    /// Damage that is there when the volume is opened next.
    pub(crate) fn damage(&mut self) {
        match self.plan.mode {
            Mode::Honest { .. } | Mode::Beyond => {}
            Mode::Faulty { .. } => self.damage_bad_members(),
            Mode::Rot { columns, .. } => {
                if self.random.percent(30) {
                    self.damage_piece(u32::from(columns));
                }
                // Without parity no reader can know that a row is as it once was.
                if self.plan.geometry.parity_columns > 0 {
                    self.keep_snapshot(self.everybody());
                }
                for _ in 0..self.random.below(DAMAGE_MAX) {
                    self.damage_row(u32::from(columns));
                }
            }
        }
        if self.random.percent(15) {
            let member = self.random.below(u64::from(self.plan.members()));
            self.damage_superblocks(u8::try_from(member).expect("a member"));
        }
    }

    /// Damages copies of one superblock, but never so many that the next rewrite could leave none:
    /// it begins with copy 0.
    fn damage_superblocks(&mut self, member: u8) {
        let disk = self.disks.get(member).clone();
        let size_bytes = ReadAt::size_bytes(&disk);
        let mut page = [0; ROW_SIZE];
        let mut valid = Vec::new();
        for copy in 0..SUPERBLOCK_COPIES {
            let read = disk_read(&disk, copy_offset(copy, size_bytes), &mut page);
            if read && Superblock::decode(&page, copy).is_ok() {
                valid.push(copy);
            }
        }
        for copy in valid.clone() {
            let others = valid.iter().filter(|other| **other != copy && **other != 0).count();
            if others > 0 && self.random.percent(40) {
                valid.retain(|other| *other != copy);
                self.strike(&disk, copy_offset(copy, size_bytes));
                self.counters.add("fault: superblock copies damaged", 1);
            }
        }
    }

    /// A bit flips, or the row becomes unreadable, or zero.
    fn strike(&mut self, disk: &Modelled, offset: u64) {
        match self.random.below(3) {
            0 => disk.rot(offset),
            1 => disk.spoil(offset),
            _ => disk.damage(offset, |row| row.fill(0)),
        }
    }

    /// Damages one row of what has been acknowledged for long, if that leaves every row with at
    /// most `columns_max` damaged columns.
    fn damage_row(&mut self, columns_max: u32) {
        let tail = self.truth.tail.max(self.passed_below());
        if tail >= self.settled_below {
            return;
        }
        let place = Place {
            sequence: tail + self.random.below(self.settled_below - tail),
            row: self.any(u64::from(self.plan.geometry.rows_per_slot())),
            member: self.any(u64::from(self.plan.members())),
        };
        let before = self.truth.clone();
        let columns = self.account(place);
        if columns.is_none_or(|columns| columns > columns_max) || !self.damage_at(place) {
            self.truth = before;
        }
    }

    /// A whole piece of what has been acknowledged for long is not what was written: the write was
    /// lost, or another one came upon it.
    fn damage_piece(&mut self, columns_max: u32) {
        let first = StripeId { sequence: self.truth.tail.max(self.passed_below()), sub: 0 };
        let end = StripeId { sequence: self.settled_below, sub: 0 };
        let settled: Vec<(StripeId, u16, u16)> = if first < end {
            let facts = self.truth.facts.range(first..end);
            let kept = facts.filter(|(_, fact)| fact.fate == Fate::Kept);
            kept.filter_map(|(id, fact)| Some((*id, fact.first_row?, fact.rows))).collect()
        } else {
            Vec::new()
        };
        if settled.is_empty() {
            return;
        }
        let (StripeId { sequence, .. }, first_row, rows) = self.random.pick(&settled);
        let member = self.any(u64::from(self.plan.members()));
        let geometry = self.plan.geometry;
        // What lay there, or what another slot was to get.
        let other = SlotNumber(self.random.below(geometry.slots));
        let is_lost = self.random.percent(50) || geometry.slot(sequence) == other;
        let before = self.truth.clone();
        let places = (first_row..=first_row + rows).map(|row| Place { sequence, row, member });
        let places: Vec<Place> = places.collect();
        for place in &places {
            if self.account(*place).is_none_or(|columns| columns > columns_max) {
                self.truth = before;
                return;
            }
        }
        let disk = self.disks.get(member).clone();
        let rows = places.iter().map(|place| u64::from(place.row) * to_u64(ROW_SIZE));
        let found = rows.map(|in_slot| {
            let (mut now, mut content) = ([0; ROW_SIZE], [0; ROW_SIZE]);
            let offset = geometry.slot_offset(sequence) + in_slot;
            if !is_lost && !disk_read(&disk, geometry.offset_of_slot(other) + in_slot, &mut content)
            {
                content.fill(0);
            }
            let is_new = !disk_read(&disk, offset, &mut now) || now != content;
            is_new.then_some((offset, content))
        });
        // What lies there may be a copy of this very piece, left by an earlier fault.
        let Some(found) = found.collect::<Option<Vec<_>>>() else {
            self.truth = before;
            return;
        };
        for (offset, content) in found {
            disk.damage(offset, |bytes| *bytes = content);
        }
        let name =
            if is_lost { "fault: a piece is lost" } else { "fault: a piece of another slot" };
        self.say(|| format!("{name}: {sequence} from row {first_row} on, of {member}"));
        self.counters.add(name, 1);
    }

    /// The ring may have gone on over the slots of the sequences below.
    pub(crate) fn passed_below(&self) -> Sequence {
        let newest = self.truth.facts.last_key_value().map_or(Sequence(0), |(id, _)| id.sequence);
        // An expelled member and a stop add a stripe each that was not handed over.
        let newest = newest.max(self.settled_below) + 3;
        (newest + u64::from(self.plan.window)).saturating_sub(self.plan.geometry.slots)
    }

    fn any<N: TryFrom<u64, Error: core::fmt::Debug>>(&mut self, bound: u64) -> N {
        N::try_from(self.random.below(bound)).expect("the bound fits")
    }

    /// Notes the damage; how many columns are now damaged in the worst row that it concerns. `None`
    /// where that is not known.
    pub(crate) fn account(&mut self, place: Place) -> Option<u32> {
        let Place { sequence, row, member } = place;
        let slot = StripeId { sequence, sub: 0 }..=StripeId { sequence, sub: u16::MAX };
        for fact in self.truth.facts.range_mut(slot).map(|(_, fact)| fact) {
            if fact.fate == Fate::Dead {
                continue;
            }
            // Only absent members may know where in the slot it lies.
            let first = fact.first_row?;
            let Some(behind) = row.checked_sub(first).filter(|behind| *behind <= fact.rows) else {
                continue;
            };
            let damaged = match behind.checked_sub(1).map(usize::from) {
                None => &mut fact.bad_heads,
                Some(body) => fact.bad_rows.get_mut(body).expect("a row of the body"),
            };
            if *damaged & 1 << member != 0 {
                // A second blow might undo the first.
                return None;
            }
            *damaged |= 1 << member;
            return Some(fact.damaged_columns());
        }
        let closing = self.truth.closing_damage.entry(sequence).or_default();
        *closing |= 1 << member;
        Some(closing.count_ones())
    }

    /// Changes the row for good; false if it was not changed.
    fn damage_at(&mut self, place: Place) -> bool {
        let Place { sequence, row, member } = place;
        let in_slot = |row: u16| u64::from(row) * to_u64(ROW_SIZE);
        let offset = self.plan.geometry.slot_offset(sequence) + in_slot(row);
        let disk = self.disks.get(member).clone();
        let (mut now, mut other) = ([0; ROW_SIZE], [0; ROW_SIZE]);
        if !disk_read(&disk, offset, &mut now) {
            return false;
        }
        let (name, found) = match self.random.below(6) {
            0 => {
                disk.rot(offset);
                return self.damaged("fault: bit rot", place);
            }
            1 => {
                disk.spoil(offset);
                return self.damaged("fault: latent sector errors", place);
            }
            2 => ("fault: rows zeroed", true),
            3 => {
                let from = self.any(u64::from(self.plan.members()));
                let from = self.disks.get(from);
                ("fault: row of another member", disk_read(from, offset, &mut other))
            }
            4 => {
                let slot = SlotNumber(self.random.below(self.plan.geometry.slots));
                let from = self.plan.geometry.offset_of_slot(slot) + in_slot(row);
                ("fault: row of another slot", disk_read(&disk, from, &mut other))
            }
            _ => {
                let old = self.snapshots.iter().find(|(whose, _)| *whose == member);
                let read = old.is_some_and(|(_, old)| disk_read(old, offset, &mut other));
                ("fault: row of an earlier time", read)
            }
        };
        if !found || now == other {
            return false;
        }
        disk.damage(offset, |row| *row = other);
        self.damaged(name, place)
    }

    fn damaged(&mut self, name: &'static str, place: Place) -> bool {
        self.say(|| format!("{name}: {place:?}"));
        self.counters.add(name, 1);
        true
    }

    fn keep_snapshot(&mut self, of: u32) {
        for member in 0..self.plan.members() {
            if of & (1 << member) != 0 && self.random.percent(20) {
                self.snapshots.push((member, self.disks.get(member).snapshot()));
                if self.snapshots.len() > SNAPSHOTS_MAX {
                    self.snapshots.remove(0);
                }
            }
        }
    }

    fn damage_bad_members(&mut self) {
        self.keep_snapshot(self.bad);
        for member in numbers(self.bad) {
            let disk = self.disks.get(member).clone();
            if self.random.percent(8) {
                let old = self.snapshots.iter().find(|(whose, _)| *whose == member);
                if let Some((_, old)) = old {
                    disk.roll_back(old);
                    self.counters.add("fault: rollback of a member", 1);
                }
            }
            for _ in 0..self.random.below(DAMAGE_MAX) {
                let rows = u64::from(self.plan.geometry.rows_per_slot());
                let row = self.random.below(rows) * to_u64(ROW_SIZE);
                let slot = SlotNumber(self.random.below(self.plan.geometry.slots));
                self.strike(&disk, self.plan.geometry.offset_of_slot(slot) + row);
                self.counters.add("fault: rows damaged on a bad member", 1);
            }
            if self.cycle > 0 && self.mounts_without_bad() && self.random.percent(1) {
                let size_bytes = ReadAt::size_bytes(&disk);
                for copy in 0..SUPERBLOCK_COPIES {
                    disk.spoil(copy_offset(copy, size_bytes));
                }
                self.counters.add("fault: all superblock copies gone", 1);
            }
        }
    }

    /// While a mount reads and writes.
    pub(crate) fn read_faults(&mut self, present: u32) {
        for member in numbers(self.bad & present) {
            if self.random.percent(15) {
                let rows = self.distance();
                let fault =
                    self.random.pick(&[Fault::Error, Fault::BitRot, Fault::Misdirected { rows }]);
                let one_in = 1 + self.random.below(20);
                self.disks.add_rule(member, Rule::new(fault, READS).one_in(one_in));
                self.counters.add("fault: bad member misreads", 1);
            }
        }
        if self.random.percent(30) {
            self.write_faults();
        }
    }

    /// While data is written.
    pub(crate) fn write_faults(&mut self) {
        for member in numbers(self.bad) {
            for _ in 0..self.random.below(3) {
                let (name, fault) = self.write_fault();
                let one_in = 1 + self.random.below(10);
                let after = self.random.below(30);
                self.disks
                    .add_rule(member, Rule::new(fault, MUTATIONS).one_in(one_in).after(after));
                self.counters.add(name, 1);
            }
        }
        self.cross_disks();
    }

    fn write_fault(&mut self) -> (&'static str, Fault) {
        let rows = self.distance();
        match self.random.below(12) {
            0..2 => ("fault: bad member loses writes", Fault::Lost),
            2..4 => ("fault: bad member tears writes", Fault::Torn),
            4..6 => ("fault: bad member misdirects writes", Fault::Misdirected { rows }),
            6 => ("fault: bad member flips bits", Fault::BitRot),
            7..10 => ("fault: bad member lies about flushes", Fault::LyingFlush),
            10 => ("fault: bad member writes to the other", Fault::OtherDisk),
            _ => {
                let rows = usize::from(self.any::<u8>(8));
                let failing = [Fault::Error, Fault::NoSpace, Fault::Short { rows }];
                ("fault: bad member fails", self.random.pick(&failing))
            }
        }
    }

    /// Two bad members may take each other's writes.
    fn cross_disks(&self) {
        let bad: Vec<u8> = numbers(self.bad).collect();
        if let [one, other] = *bad {
            let (one, other) = (self.disks.get(one), self.disks.get(other));
            if ReadAt::size_bytes(one) == ReadAt::size_bytes(other) {
                one.set_other(other);
            }
        }
    }

    /// How far a misdirected operation goes astray: often to the same place of another slot.
    fn distance(&mut self) -> u64 {
        let slot = u64::from(self.plan.geometry.rows_per_slot());
        match self.random.below(3) {
            0 => 1 + self.random.below(slot),
            1 => slot * (1 + self.random.below(4)),
            _ => slot * (1 + self.random.below(self.plan.geometry.slots)),
        }
    }

    /// More damage than parity bears, and members gone: what is left is right, the loss exact.
    pub(crate) fn break_beyond(&mut self) -> Verdict {
        let mut writer = self.mount_and_look()?.expect("honest members are a quorum");
        // Few members show an epoch only when it was used.
        let appended = self.append(&mut writer)?.and_then(|()| writer.drain(self.disks.timeline()));
        let stop = writer.next();
        let appended = appended.and_then(|()| writer.close(self.disks.timeline()));
        appended.map_err(|error| Violation(format!("the writer cannot stop: {error}")))?;
        // What a mount found gone may have had a higher place.
        let living = self.truth.facts.iter().rev().filter(|(_, fact)| fact.fate != Fate::Dead);
        let newest = living.map(|(id, _)| *id).next().unwrap_or_default();
        let newest = newest.max(self.truth.acknowledged).max(stop);
        for _ in 0..self.random.below(80) {
            self.damage_row(u32::MAX);
        }
        let all = self.everybody();
        let mut left = all;
        while left.count_ones() > 1 && self.random.percent(40) {
            left &= !(1 << self.random.below(u64::from(self.plan.members())));
        }
        self.counters.add("fault: members lost for good", u64::from((all & !left).count_ones()));
        let reader = match self.reader(left) {
            Ok(reader) => reader,
            Err(error) => return broken(format!("{left:b} cannot be read: {error}")),
        };
        let shown = reader.span().map(|span| span.acknowledged);
        if shown != Some(newest) {
            return broken(format!("{left:b} show {shown:?}, not {newest:?}"));
        }
        self.truth.acknowledge(newest);
        let here = bits_of(reader.membership().present());
        let scene = Scene { readable: here, doubtful: 0, may_revive: false, exact: true };
        let mut look =
            Look::new(&mut self.truth, (&reader, &self.disks), scene, &mut self.counters);
        look.read()?;
        look.verify()?;
        self.counters.add("readers beyond the budget", 1);
        Ok(())
    }
}

fn disk_read(disk: &Modelled, offset: u64, into: &mut [u8; ROW_SIZE]) -> bool {
    ReadAt::read_at(disk, offset, into).is_ok()
}
