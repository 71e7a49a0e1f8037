//! What must hold: nothing acknowledged lost, nothing else shown, damage only where it was done.

use std::collections::HashSet;

use crate::assemble::Assembly;
use crate::device::{Head, Kind, Member, Position, Row};
use crate::epoch::Parts;
use crate::model::{Geometry, Scenario, Sim, Stop};
use crate::mutants::Mutant;
use crate::read::{End, View};
use crate::search::Reads;
use crate::superblock::{Superblock, each};

#[derive(Clone, Copy, Debug)]
struct Fact {
    head: Head,
    /// Acknowledged, or made visible by a finished mount.
    kept: bool,
    /// Found whole by a mount that may have finished.
    offered: bool,
    /// Lost to rot that no redundancy covers, or with members that are gone.
    rotted: bool,
}

#[derive(Clone, Debug, Default)]
struct SlotFacts {
    sequence: usize,
    facts: Vec<Fact>,
    rotted: bool,
}

/// What the writer did, known to no mount.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    slots: Vec<SlotFacts>,
    submitted: HashSet<u64>,
}

impl Truth {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: vec![SlotFacts::default(); slots], submitted: HashSet::new() }
    }

    /// An EPOCH stripe takes the slot. A stripe of the same sequence, which only members not at
    /// hand hold, may still be kept if the epoch comes to nothing.
    pub(crate) fn pass(&mut self, sequence: usize, slots: usize) {
        if self.slots[sequence % slots].sequence != sequence {
            self.clear(sequence, slots);
        }
    }

    fn clear(&mut self, sequence: usize, slots: usize) {
        self.slots[sequence % slots] = SlotFacts { sequence, ..SlotFacts::default() };
    }

    pub(crate) fn submitted(&mut self, head: Head, slots: usize) {
        let sequence = head.at.sequence;
        if self.slots[sequence % slots].sequence != sequence || head.at.sub == 0 {
            self.clear(sequence, slots);
        }
        if !head.kind.closes() {
            self.submitted.insert(head.identity);
            let fact = Fact { head, kept: false, offered: false, rotted: false };
            self.slots[sequence % slots].facts.push(fact);
        }
    }

    pub(crate) fn keep(&mut self, at: Position, slots: usize) {
        for fact in &mut self.slots[at.sequence % slots].facts {
            fact.kept |= fact.head.at == at;
        }
    }

    /// What the mount found whole is kept, all else is forgotten.
    pub(crate) fn settle(&mut self) {
        for slot in &mut self.slots {
            for fact in &mut slot.facts {
                fact.kept |= fact.offered;
            }
            slot.facts.retain(|fact| fact.kept);
        }
    }

    pub(crate) fn newest_kept(&self) -> Position {
        let kept = self.slots.iter().flat_map(|slot| &slot.facts).filter(|fact| fact.kept);
        kept.map(|fact| fact.head.at).max().unwrap_or_default()
    }

    pub(crate) fn rot(&mut self, slot: usize, row: usize) {
        let slot = &mut self.slots[slot];
        slot.rotted = true;
        for fact in &mut slot.facts {
            let first = fact.head.row;
            fact.rotted |= (first..=first + fact.head.rows).contains(&row);
        }
    }

    /// Rot in what no watermark on disk covers is indistinguishable from a torn write; the rule
    /// that a missing sub closes its slot then takes the subs behind it.
    pub(crate) fn excuse_behind_rot(&mut self, watermark: Position) {
        for slot in &mut self.slots {
            let mut behind = false;
            for fact in &mut slot.facts {
                behind |= fact.rotted && fact.head.at > watermark;
                fact.rotted |= behind;
            }
        }
    }
}

/// What a mount shows.
#[derive(Clone, Copy, Debug)]
struct Shown {
    head: usize,
    watermark: Position,
    present: usize,
    known: Superblock,
    /// Else the newest epoch is not believed yet, and less is shown.
    settled: bool,
}

impl Sim<'_> {
    /// A mount that writes nothing, at any instant.
    pub(crate) fn check_reader(&mut self) -> Result<(), Stop> {
        let Assembly { present, trusted, known, settled } = match self.assemble() {
            Ok(assembly) => assembly,
            Err(Stop::Refused) => return Ok(()),
            Err(stop) => return Err(stop),
        };
        self.stats.readers += 1;
        let trusts = self.mutant == Mutant::ReaderTrustsTornJoin;
        let relied = if trusts { known.newest() } else { settled };
        let view = self.view_by(&known, trusted);
        let head = view.newest(&mut Reads::default()).unwrap_or(0).max(relied.start);
        let unjoined = [Mutant::ReaderTrustsUnjoined, Mutant::NoEpochNumber];
        let any = unjoined.contains(&self.mutant);
        let limit = if any { usize::MAX } else { relied.epoch };
        let watermark = view.watermark(head, limit).max(Position::new(relied.start, 0));
        let settled = relied == known.newest();
        let shown = Shown { head, watermark, present, known, settled };
        if self.stopped && self.truth.newest_kept() > watermark && !self.any_rot() {
            return Err(Stop::Violation(format!("clean stop, but shown only to {watermark:?}")));
        }
        self.check_slots(&shown).map_err(|what| Stop::Violation(format!("reader: {what}")))
    }

    fn any_rot(&self) -> bool {
        self.scenario == Scenario::Rot && self.truth.slots.iter().any(|slot| slot.rotted)
    }

    /// Stripes of the crashed writer that the mount found whole: from now on they may be shown.
    pub(crate) fn truth_offer(&mut self, head: usize, watermark: Position, present: usize) {
        let mut slots = std::mem::take(&mut self.truth.slots);
        let (known, everyone) = self.in_service();
        let everyone = self.view_of(&everyone, &known, known.all());
        for slot in &mut slots {
            let walk = self.view(present).walk(slot.sequence, Position::all_of(head));
            let anywhere = everyone.walk(slot.sequence, Position::all_of(head));
            for fact in &mut slot.facts {
                // What an earlier mount decided to keep may lie on members absent from this one.
                let walk = if fact.head.at <= watermark { &anywhere } else { &walk };
                let found = walk.stripes.iter().any(|s| s.whole && s.head == fact.head);
                fact.offered = found && slot.sequence <= head;
            }
        }
        self.truth.slots = slots;
    }

    /// A finished mount shows everything kept and closes every slot it may have found open.
    pub(crate) fn check_mounted(&mut self, head: usize, watermark: Position) -> Result<(), Stop> {
        let all = Position::all_of(head);
        let (present, known) = (self.part, self.known);
        let shown = Shown { head: head + 1, watermark: all, present, known, settled: true };
        self.check_slots(&shown)
            .map_err(|what| Stop::Violation(format!("mounted (watermark {watermark:?}): {what}")))
    }

    fn check_slots(&mut self, shown: &Shown) -> Result<(), String> {
        let Geometry { slots, window, .. } = *self.geometry;
        let tail = if self.mutant == Mutant::TailWithoutWindow { 0 } else { window };
        let mut unavailable = 0;
        for slot in 0..slots {
            let behind = (shown.head % slots + slots - slot) % slots;
            let Some(sequence) = shown.head.checked_sub(behind).filter(|&s| s > 0) else {
                continue;
            };
            let facts = &self.truth.slots[slot];
            let lost = |fact: &&Fact| fact.kept && !fact.rotted;
            let promised = sequence + slots > shown.head + tail;
            if facts.sequence > sequence {
                if promised && self.scenario != Scenario::Rot {
                    return Err(format!("{sequence} promised, its slot is being overwritten"));
                }
                match facts.facts.iter().find(lost) {
                    Some(fact) => {
                        let seats = self.describe(&fact.head, &shown.known);
                        return Err(format!("{:?} above head {}; {seats}", fact.head, shown.head));
                    }
                    None => continue,
                }
            }
            if promised {
                unavailable += self.check_slot(sequence, shown)?;
            }
        }
        self.stats.unavailable += unavailable;
        Ok(())
    }

    /// Returns how many kept stripes only absent members could complete.
    fn check_slot(&self, sequence: usize, shown: &Shown) -> Result<u64, String> {
        let view = self.view_by(&shown.known, shown.present);
        let facts = &self.truth.slots[sequence % self.geometry.slots];
        let walk = view.walk(sequence, shown.watermark);
        let mut unavailable = 0;
        let mut behind_rot = false;
        for fact in facts.facts.iter().filter(|fact| fact.kept) {
            behind_rot |= fact.rotted && fact.head.at > shown.watermark;
            if fact.rotted || behind_rot {
                continue;
            }
            let found = walk.stripes.iter().any(|s| s.whole && s.head == fact.head);
            if found {
                continue;
            }
            let held_back = !shown.settled && fact.head.at > shown.watermark;
            if !held_back && !self.may_be_unavailable(&fact.head, shown) {
                let seats = self.describe(&fact.head, &shown.known);
                return Err(format!("kept {:?} not found: {walk:?}; {seats}", fact.head));
            }
            unavailable += 1;
        }
        for stripe in walk.stripes.iter().filter(|s| !s.head.kind.closes() && s.whole) {
            let identity = stripe.head.identity;
            let known = facts
                .facts
                .iter()
                .any(|fact| fact.head.identity == identity && (fact.kept || fact.offered));
            let strict = self.scenario != Scenario::Faulty && stripe.head.at <= shown.watermark;
            if strict && !known || !self.truth.submitted.contains(&identity) {
                let seats = self.describe(&stripe.head, &shown.known);
                return Err(format!(
                    "shown, never acknowledged: {:?} {shown:?}; {seats}",
                    stripe.head
                ));
            }
        }
        if self.scenario == Scenario::Honest {
            self.check_members(sequence, shown)?;
        }
        if self.members.len() == 1 && !facts.rotted {
            self.check_undamaged(view, sequence, shown)?;
        }
        Ok(unavailable)
    }

    /// A member that lacks nothing of a slot tells the truth alone.
    fn check_members(&self, sequence: usize, shown: &Shown) -> Result<(), String> {
        let known = &shown.known;
        let slot = sequence % self.geometry.slots;
        let facts = &self.truth.slots[slot].facts;
        let present = shown.present & known.seats_at(sequence);
        let believed = |&seat: &usize| {
            !known.entries[seat].lacks(sequence) || self.mutant == Mutant::GapPiecesAlone
        };
        for seat in each(present).filter(believed) {
            let view = self.view_by(known, 1 << seat);
            let (mut row, mut expected) = (0, Position::new(sequence, 0));
            while row < self.geometry.rows
                && expected <= shown.watermark
                && let Some(head) = view.heads(slot, row).find(|head| head.at == expected)
                && !head.kind.closes()
            {
                if !facts.iter().any(|fact| fact.head == head && (fact.kept || fact.offered)) {
                    let seats = self.describe(&head, known);
                    return Err(format!("seat {seat} alone shows {head:?}; {seats}"));
                }
                row += 1 + head.rows;
                expected.sub += 1;
            }
        }
        Ok(())
    }

    /// What each seat has of a stripe, for the report.
    fn describe(&self, head: &Head, known: &Superblock) -> String {
        let slot = head.at.sequence % self.geometry.slots * self.geometry.rows;
        let seats = self.members.iter().enumerate().map(|(seat, member)| {
            let rows = &member.visible[slot + head.row..slot + head.row + 1 + head.rows];
            let right = rows.iter().zip(head.content()).filter(|(a, b)| **a == *b).count();
            let entry = known.entries[seat];
            let own = member.superblock().map(|own| (own.joined, own.start));
            let part = u8::from(self.part >> seat & 1 == 1);
            let found = match rows[0] {
                Row::Head(found) => (found.at, found.epoch, found.kind),
                _ => (Position::default(), 0, Kind::Data),
            };
            format!(
                "\n      {seat}: {} part {part} bad {} right {right}/{} {found:?} \
                 joined {own:?} {entry:?} uuid {}",
                member.present,
                member.bad,
                rows.len(),
                member.uuid
            )
        });
        let seats: String = seats.collect();
        format!("joined {} start {} shapes {:?}{seats}", known.joined, known.start, known.shapes)
    }

    /// More than P members are absent or lack the stripe, and with them it is there.
    fn may_be_unavailable(&self, head: &Head, shown: &Shown) -> bool {
        let (known, sequence) = (&shown.known, head.at.sequence);
        let shape = known.shape_at(sequence);
        let holds =
            |&seat: &usize| shown.present >> seat & 1 == 1 && !known.entries[seat].lacks(sequence);
        let enough = each(known.seats_at(sequence)).filter(holds).count() >= shape.data;
        let (known, members) = self.in_service();
        let everyone = self.view_of(&members, &known, known.all());
        self.scenario == Scenario::Honest && !enough && is_shown(everyone, head)
    }

    /// What is kept and nobody else can complete is lost with those that are gone.
    pub(crate) fn lose_what_only_they_had(&mut self, parts: &Parts, watermark: Position) {
        if parts.gone == 0 {
            return;
        }
        let mut slots = std::mem::take(&mut self.truth.slots);
        let (known, mut members) = self.in_service();
        members.to_mut().iter_mut().for_each(Member::tear_cache);
        let others = self.view_of(&members, &known, known.all() & !parts.gone & !parts.blank);
        for fact in slots.iter_mut().flat_map(|slot| &mut slot.facts) {
            fact.kept |= fact.offered || fact.head.at <= watermark;
            fact.rotted |= fact.kept && !is_shown(others, &fact.head);
        }
        self.truth.slots = slots;
    }

    /// Nothing kept depends on a seat's device, as far as the others are known to be whole.
    pub(crate) fn is_dispensable(&self, seat: usize) -> bool {
        let (known, members) = self.in_service();
        let facts = self.truth.slots.iter().flat_map(|slot| &slot.facts);
        facts.filter(|fact| fact.kept && !fact.rotted).all(|fact| {
            let sequence = fact.head.at.sequence;
            let others = each(known.seats_at(sequence) & !(1 << seat));
            let others = others.filter(|&other| !known.entries[other].lacks(sequence));
            let whole = others.fold(0, |set, other| set | 1 << other);
            is_shown(self.view_of(&members, &known, whole), &fact.head)
        })
    }

    /// Without rot no slot at or below the watermark is damaged, open, or short of its trailer.
    fn check_undamaged(
        &self,
        view: View<'_>,
        sequence: usize,
        shown: &Shown,
    ) -> Result<(), String> {
        let walk = view.walk(sequence, shown.watermark);
        if walk.damaged {
            return Err(format!("undamaged slot {sequence} read as damaged: {walk:?}"));
        }
        let past = sequence < shown.watermark.sequence;
        if past && !matches!(walk.end, End::Full | End::Closed) {
            return Err(format!("past slot {sequence} not closed: {walk:?}"));
        }
        let closing = walk
            .stripes
            .last()
            .filter(|stripe| stripe.head.kind.closes() && stripe.head.at <= shown.watermark);
        if closing.is_some_and(|closing| !view.trailer_holds(&self.members[0], &closing.head)) {
            return Err(format!("slot {sequence} closed without its trailer"));
        }
        Ok(())
    }
}

fn is_shown(view: View<'_>, head: &Head) -> bool {
    let walk = view.walk(head.at.sequence, Position::all_of(head.at.sequence));
    walk.stripes.iter().any(|stripe| stripe.whole && stripe.head == *head)
}
