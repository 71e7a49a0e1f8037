//! Members that come and go: what an operator does, and what a running writer does.

use std::borrow::Cow;
use std::mem;

use crate::device::{COPIES, Member, Position, Row};
use crate::epoch::Parts;
use crate::model::{Scenario, Sim, Stop};
use crate::mutants::Mutant;
use crate::superblock::{SEATS, Shape, Superblock, each, size};

/// What changes while the writer runs.
#[derive(Clone, Copy, Debug)]
struct Change {
    drop: usize,
    returning: usize,
    blank: usize,
    shape: Shape,
}

impl Sim<'_> {
    /// The newest superblock of all devices, and the devices that it names.
    pub(crate) fn in_service(&self) -> (Superblock, Cow<'_, [Member]>) {
        let aside = self.aside.iter().map(|(_, member)| member);
        let superblocks = self.members.iter().chain(aside).filter_map(Member::superblock);
        let newest = superblocks.max_by_key(|own| (own.joined, own.generation));
        let known = newest.unwrap_or(self.known);
        let mut members = Cow::Borrowed(&self.members[..]);
        for seat in each(known.all()) {
            let uuid = known.entries[seat].uuid;
            if self.members[seat].uuid == uuid {
                continue;
            }
            let own = self.aside.iter().find(|(claims, own)| *claims == seat && own.uuid == uuid);
            if let Some((_, own)) = own {
                members.to_mut()[seat] = own.clone();
            } else if uuid == 0 {
                members.to_mut()[seat] = self.blank_device(0);
            }
        }
        (known, members)
    }

    /// Before a mount each seat gets the device that belongs there; new ones of a change that came
    /// to nothing go.
    pub(crate) fn reconcile(&mut self) {
        let (known, _) = self.in_service();
        self.members.truncate(known.shape().members());
        for seat in each(known.all()) {
            let uuid = known.entries[seat].uuid;
            if self.members[seat].uuid == uuid {
                continue;
            }
            let found =
                self.aside.iter().position(|(claims, own)| *claims == seat && own.uuid == uuid);
            match found {
                Some(place) => mem::swap(&mut self.members[seat], &mut self.aside[place].1),
                None if uuid == 0 => self.put_aside(seat),
                None => panic!("the device in service at seat {seat} is gone"),
            }
        }
        self.aside.retain(|(_, own)| own.superblock().is_some());
    }

    /// Somebody plugs in devices that were replaced, or called gone, where others should be.
    pub(crate) fn plug_wrong_devices(&mut self) {
        if self.aside.is_empty() || !self.rng.percent(20) {
            return;
        }
        for (seat, own) in &mut self.aside {
            if *seat < self.members.len() && self.rng.percent(60) {
                mem::swap(&mut self.members[*seat], own);
            }
        }
    }

    /// The operator gives up members that are not at hand, and is right: no device of theirs
    /// joined an epoch that those at hand have not heard of.
    pub(crate) fn say_gone(&mut self) {
        let Some((newest, _)) = self.newest_of(self.at_hand()) else { return };
        let aside = self.aside.iter().map(|(seat, own)| (*seat, own));
        let devices = self.members.iter().enumerate().chain(aside);
        let ahead = devices
            .filter(|(_, own)| own.superblock().is_some_and(|own| own.joined > newest.joined))
            .fold(0, |set, (seat, _)| set | 1 << seat);
        let gone = newest.all() & !self.at_hand() & !ahead;
        if self.known.shape().parity > 0 && self.rng.percent(25) {
            self.gone = gone;
        }
    }

    /// Devices of seats that are empty by the newest epoch go aside.
    pub(crate) fn empty_seats(&mut self) {
        for seat in each(self.known.all()) {
            if self.known.entries[seat].uuid == 0 && self.members[seat].uuid != 0 {
                self.put_aside(seat);
            }
        }
    }

    fn put_aside(&mut self, seat: usize) {
        let blank = self.blank_device(0);
        let old = mem::replace(&mut self.members[seat], blank);
        self.aside.push((seat, old));
    }

    fn blank_device(&self, uuid: u64) -> Member {
        Member::new(self.geometry.slots * self.geometry.rows, uuid, None)
    }

    /// A blank device takes a seat; the one that was there goes aside.
    pub(crate) fn insert_blank(&mut self, seat: usize) {
        self.next_uuid += 1;
        let mut device = self.blank_device(self.next_uuid);
        let restless = self.restless >> seat & 1 == 1;
        device.bad = self.scenario == Scenario::Faulty && restless && self.rng.percent(50);
        if seat == self.members.len() {
            self.members.push(device);
        } else {
            let old = mem::replace(&mut self.members[seat], device);
            self.aside.push((seat, old));
        }
    }

    /// Replaced devices are destroyed, sooner or later.
    fn destroy_some(&mut self) {
        let (known, _) = self.in_service();
        let mut aside = mem::take(&mut self.aside);
        aside.retain(|(seat, own)| known.entries[*seat].uuid == own.uuid || self.rng.percent(50));
        self.aside = aside;
    }

    fn may_come_and_go(&self, seat: usize) -> bool {
        self.scenario == Scenario::Honest || self.restless >> seat & 1 == 1
    }

    /// A seat whose device can be replaced, at hand or not, without losing what is kept.
    pub(crate) fn seat_to_replace(&mut self) -> Option<usize> {
        let seat = self.rng.below(self.members.len());
        let redundant = self.known.shape().parity > 0;
        let may = redundant && self.may_come_and_go(seat) && seat < self.known.shape().members();
        (may && self.is_dispensable(seat)).then_some(seat)
    }

    /// Something happens to the members while the writer runs.
    pub(crate) fn members_change(&mut self) -> Result<(), Stop> {
        if self.scenario == Scenario::Rot || !self.settled_in() {
            return Ok(());
        }
        let none = Change { drop: 0, returning: 0, blank: 0, shape: self.known.shape() };
        let seat = self.rng.below(self.members.len());
        let takes_part = self.part >> seat & 1 == 1;
        let change = match self.rng.below(8) {
            0..4 if takes_part && self.may_be_left(1 << seat) => {
                let spare = self.rng.percent(30) && self.is_dispensable(seat);
                let drop = self.left_at_once(seat);
                Change { drop, blank: usize::from(spare) << seat, ..none }
            }
            4 | 5 if !takes_part && self.may_return(seat) => {
                Change { returning: 1 << seat, ..none }
            }
            6 => match self.seat_to_replace() {
                Some(seat) if self.may_be_left(1 << seat) => {
                    Change { drop: 1 << seat & self.part, blank: 1 << seat, ..none }
                }
                _ => return Ok(()),
            },
            7 if self.rng.percent(30) => match self.grown() {
                Some(shape) => {
                    let all = (1 << shape.members()) - 1;
                    Change { blank: all & !self.known.all(), shape, ..none }
                }
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.points_left = self.rng.percent(30).then(|| 1 + self.rng.below(60));
        let Change { drop, returning, blank, .. } = change;
        if drop != 0 && returning | blank != 0 && self.mutant != Mutant::SpareInOneEpoch {
            // One after the other: what is in flight is on those that stay, and not on the new.
            self.change(&Change { drop, ..none })?;
            self.change(&Change { drop: 0, ..change })?;
        } else {
            self.change(&change)?;
        }
        self.points_left = None;
        Ok(())
    }

    /// No device that the volume does not know sits in a seat.
    fn settled_in(&self) -> bool {
        each(self.part).all(|seat| self.members[seat].uuid == self.known.entries[seat].uuid)
            && self.members.len() == self.known.shape().members()
    }

    /// Some members may fail at the same time.
    fn left_at_once(&mut self, seat: usize) -> usize {
        let other = 1 << self.rng.below(self.members.len()) & self.part;
        let both = 1 << seat | other;
        if self.rng.percent(30) && self.may_be_left(both) { both } else { 1 << seat }
    }

    fn may_be_left(&self, set: usize) -> bool {
        each(set).all(|seat| self.may_come_and_go(seat))
            && size(self.part & !set) >= self.known.shape().data
    }

    fn may_return(&self, seat: usize) -> bool {
        let member = &self.members[seat];
        self.may_come_and_go(seat)
            && member.superblock().is_some()
            && self.known.entries[seat].uuid == member.uuid
    }

    /// The next shape; the oldest of three must have left the ring.
    fn grown(&mut self) -> Option<Shape> {
        let [newest, older, oldest] = self.known.shapes;
        let tail = self.next.at.sequence.saturating_sub(self.geometry.slots);
        let room = older == oldest || older.first < tail;
        let Shape { data, parity, .. } = newest;
        let shape = match self.rng.below(3) {
            0 if parity < 2 => Shape { parity: parity + 1, ..newest },
            1 => Shape { data: data + 2, ..newest },
            _ => Shape { data: data + 1, ..newest },
        };
        let enough = size(self.part) + shape.members() - newest.members() >= shape.data;
        (room && enough && shape.members() < SEATS).then_some(shape)
    }

    /// The running writer begins a new epoch with other members.
    fn change(&mut self, change: &Change) -> Result<(), Stop> {
        let Change { drop, returning, blank, shape } = *change;
        self.resilver = None;
        let trusted = self.part & !drop;
        self.stats.expelled += u64::from((drop & !blank).count_ones());
        self.stats.returned += u64::from(returning.count_ones());
        self.stats.replaced += u64::from((blank & self.known.all()).count_ones());
        self.stats.grown += u64::from(shape != self.known.shape());
        if self.mutant == Mutant::ExpelWithoutEpoch && blank | returning == 0 {
            return self.forget(drop);
        }
        each(blank).for_each(|seat| self.insert_blank(seat));
        self.settle_writes(trusted, true)?;
        if self.mutant != Mutant::ReturnsWithWrites {
            self.settle_writes(returning, true)?;
        }
        let judged_from = self.acknowledged.sequence;
        let parts = Parts { trusted, returning, blank, gone: 0, shape, judged_from };
        if self.mutant == Mutant::AcknowledgeBeforeFence {
            self.part = trusted;
            self.acknowledge_all();
        }
        self.prepare(&parts, self.epoch)?;
        let next = self.next;
        let mut last = next.at.sequence - 1;
        if next.row > 0 {
            self.void(next.at, next.row, trusted);
            last = next.at.sequence;
        }
        self.begin_epoch(last, self.acknowledged, &parts)?;
        self.destroy_some();
        for seat in each(drop & !blank) {
            self.members[seat].present = self.rng.percent(50);
        }
        Ok(())
    }

    /// Everything in flight counts as acknowledged.
    fn acknowledge_all(&mut self) {
        for pending in mem::take(&mut self.pending) {
            self.acknowledged = pending.at;
            self.truth.keep(pending.at, self.geometry.slots);
        }
    }

    /// Goes on without members, and tells nobody.
    fn forget(&mut self, drop: usize) -> Result<(), Stop> {
        self.part &= !drop;
        self.settle_writes(self.part, true)?;
        self.acknowledge_all();
        Ok(())
    }

    /// Verify and repair outside the ring's own means: every member gets what they hold together.
    /// Then others may lie.
    pub(crate) fn scrub(&mut self) {
        let all = self.known.all();
        let named = |seat: usize| {
            self.known.entries[seat].uuid == self.members[seat].uuid
                && self.members[seat].superblock().is_some()
        };
        if !each(all).all(named) {
            return;
        }
        for slot in 0..self.geometry.slots {
            let Some(sequence) = self.view(all).probe_rows(slot) else { continue };
            let content = self.slot_content(sequence, all, Position::all_of(self.known.start));
            for seat in each(self.known.seats_at(sequence)) {
                self.submit_rows(seat, Position::new(slot, 0), 0, content.clone());
            }
        }
        for seat in each(all) {
            let entry = &mut self.known.entries[seat];
            entry.clean_from = entry.stale_from;
        }
        self.known.members = all;
        self.part = all;
        for member in &mut self.members {
            member.bad = false;
            member.present = true;
            self.known.generation += 1;
            (0..COPIES).for_each(|copy| member.write_superblock(copy, &self.known));
            Member::land_all(member, &mut self.rng);
            member.flush(&mut self.rng);
        }
        self.aside.clear();
        self.restless = 0;
        self.choose_restless();
    }

    /// The rows of a slot as far as a set of members holds them.
    pub(crate) fn slot_content(
        &self,
        sequence: usize,
        set: usize,
        watermark: Position,
    ) -> Vec<Row> {
        let walk = self.view(set).walk(sequence, watermark);
        let mut content = vec![Row::Nothing; self.geometry.rows];
        for stripe in walk.stripes.iter().filter(|stripe| stripe.whole) {
            for (row, found) in (stripe.head.row..).zip(stripe.head.content()) {
                content[row] = found;
            }
        }
        content
    }

    pub(crate) fn choose_restless(&mut self) {
        for _ in size(self.restless)..self.geometry.parity {
            if self.rng.percent(70) {
                let seat = self.rng.below(self.members.len());
                self.restless |= 1 << seat;
                self.members[seat].bad = self.rng.percent(70);
            }
        }
    }
}
