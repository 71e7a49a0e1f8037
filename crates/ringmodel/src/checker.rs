//! What must hold: nothing acknowledged lost, nothing else shown, damage only where it was done.

use std::collections::HashSet;

use crate::device::{Head, Position};
use crate::model::{Geometry, Scenario, Sim, Stop};
use crate::mount::Assembly;
use crate::mutants::Mutant;
use crate::read::{End, Reads, View};

#[derive(Clone, Copy, Debug)]
struct Fact {
    head: Head,
    /// Acknowledged, or made visible by a finished mount.
    kept: bool,
    /// Lost to rot that no redundancy covers.
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

    pub(crate) fn clear(&mut self, sequence: usize, slots: usize) {
        self.slots[sequence % slots] = SlotFacts { sequence, ..SlotFacts::default() };
    }

    pub(crate) fn submitted(&mut self, head: Head, slots: usize) {
        let sequence = head.at.sequence;
        if self.slots[sequence % slots].sequence != sequence || head.at.sub == 0 {
            self.clear(sequence, slots);
        }
        if !head.kind.closes() {
            self.submitted.insert(head.identity);
            let fact = Fact { head, kept: false, rotted: false };
            self.slots[sequence % slots].facts.push(fact);
        }
    }

    pub(crate) fn keep(&mut self, at: Position, slots: usize) {
        for fact in &mut self.slots[at.sequence % slots].facts {
            fact.kept |= fact.head.at == at;
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
}

impl Sim<'_> {
    /// A mount that writes nothing, at any instant.
    pub(crate) fn check_reader(&mut self) -> Result<(), Stop> {
        let assembly = match self.assemble() {
            Ok(assembly) => assembly,
            Err(Stop::Refused) => return Ok(()),
            Err(stop) => return Err(stop),
        };
        self.stats.readers += 1;
        let trusted = self.view(assembly.trusted);
        let head =
            trusted.newest(assembly.joined, &mut Reads::default()).unwrap_or(0).max(assembly.start);
        let unjoined = [Mutant::ReaderTrustsUnjoined, Mutant::NoEpochNumber];
        let limit = if unjoined.contains(&self.mutant) { usize::MAX } else { assembly.joined };
        let start = Position::new(assembly.start, 0);
        let watermark = trusted.watermark(head, limit).max(start);
        let shown = Shown { head, watermark, present: assembly.present };
        if self.stopped && self.truth.newest_kept() > watermark && !self.any_rot() {
            return Err(Stop::Violation(format!("clean stop, but shown only to {watermark:?}")));
        }
        self.check_slots(shown).map_err(|what| Stop::Violation(format!("reader: {what}")))
    }

    fn any_rot(&self) -> bool {
        self.scenario == Scenario::Rot && self.truth.slots.iter().any(|slot| slot.rotted)
    }

    /// Stripes of the crashed writer that the mount found whole are kept, the others forgotten.
    pub(crate) fn truth_settle(&mut self, head: usize, watermark: Position, present: usize) {
        let mut slots = std::mem::take(&mut self.truth.slots);
        for slot in &mut slots {
            let walk = self.view(present).walk(slot.sequence, Position::all_of(head));
            let everyone = self.view(self.geometry.all());
            let anywhere = everyone.walk(slot.sequence, Position::all_of(head));
            for fact in &mut slot.facts {
                // What an earlier mount decided to keep may lie on members absent from this one.
                let decided = fact.head.at <= watermark;
                let walk = if decided { &anywhere } else { &walk };
                let found = walk.stripes.iter().any(|s| s.whole && s.head == fact.head);
                fact.kept |= found && slot.sequence <= head;
            }
            slot.facts.retain(|fact| fact.kept);
        }
        self.truth.slots = slots;
    }

    /// A finished mount shows everything kept and closes every slot it may have found open.
    pub(crate) fn check_mounted(
        &mut self,
        head: usize,
        watermark: Position,
        assembly: &Assembly,
    ) -> Result<(), Stop> {
        let all = Position::all_of(head);
        let shown = Shown { head: head + 1, watermark: all, present: assembly.present };
        self.check_slots(shown)
            .map_err(|what| Stop::Violation(format!("mounted (watermark {watermark:?}): {what}")))
    }

    fn check_slots(&mut self, shown: Shown) -> Result<(), String> {
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
                    Some(fact) => return Err(format!("{:?} above head {}", fact.head, shown.head)),
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
    fn check_slot(&self, sequence: usize, shown: Shown) -> Result<u64, String> {
        let view = self.view(shown.present);
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
            let elsewhere =
                self.scenario == Scenario::Honest && shown.present != self.geometry.all();
            if !elsewhere || !self.complete_with_absent(&fact.head, shown) {
                return Err(format!("kept {:?} not found: {walk:?}", fact.head));
            }
            unavailable += 1;
        }
        for stripe in walk.stripes.iter().filter(|s| !s.head.kind.closes() && s.whole) {
            let identity = stripe.head.identity;
            let known = facts.facts.iter().any(|fact| fact.kept && fact.head.identity == identity);
            let strict = self.scenario != Scenario::Faulty && stripe.head.at <= shown.watermark;
            if strict && !known || !self.truth.submitted.contains(&identity) {
                return Err(format!("shown, never acknowledged: {:?}", stripe.head));
            }
        }
        if self.geometry.members() == 1 && !facts.rotted {
            self.check_undamaged(view, sequence, shown)?;
        }
        Ok(unavailable)
    }

    fn complete_with_absent(&self, head: &Head, shown: Shown) -> bool {
        let walk = self.view(self.geometry.all()).walk(head.at.sequence, shown.watermark);
        walk.stripes.iter().any(|stripe| stripe.whole && stripe.head == *head)
    }

    /// Without rot no slot at or below the watermark is damaged, open, or short of its trailer.
    fn check_undamaged(&self, view: View<'_>, sequence: usize, shown: Shown) -> Result<(), String> {
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
