//! Writes of honest members that are reported as done and do not arrive, or arrive somewhere else:
//! of each stripe no more pieces than the parity bears, each time of another member.

use device::{Fault, Operation, ROW_SIZE, Rule};
use units::Sequence;
use units::number::to_u64;

use crate::faults::Place;
use crate::history::{History, numbers};
use crate::plan::Mode;
use crate::truth::Truth;

const WRITES: &[Operation] = &[Operation::Write];

/// A write that is to go astray.
#[derive(Debug)]
pub(crate) struct Astray {
    member: u8,
    /// What had met a fault on that disk before.
    strikes: u64,
    /// It destroys something: what was known before.
    before: Option<Box<Truth>>,
}

/// The place of a piece: slot, its first row, and its rows with the head.
#[derive(Clone, Copy, Debug)]
struct Target {
    sequence: Sequence,
    first_row: u16,
    rows: u16,
}

impl History {
    /// The next stripe, of so many rows, perhaps loses its piece on one of the members in
    /// `present`; `room` rows are free in its slot.
    pub(crate) fn send_astray(
        &mut self,
        present: u32,
        (sequence, rows, room): (Sequence, u16, u16),
    ) -> Option<Astray> {
        let Mode::Rot { columns, .. } = self.plan.mode else { return None };
        let is_borne = self.plan.geometry.parity_columns > 0 && rows > 0 && rows <= room;
        let well = present & !self.troubled;
        // The epoch of an expelled member may take the place of the stripe, and meet the fault.
        if !is_borne || well == 0 || !self.random.percent(4) || self.troubled != 0 {
            return None;
        }
        let candidates: Vec<u8> = numbers(well).collect();
        let member = self.random.pick(&candidates);
        let first_row = self.plan.geometry.rows_per_slot() - 1 - room;
        let target = Target { sequence, first_row, rows: rows + 1 };
        let before = self.truth.clone();
        let distance =
            if self.random.percent(50) { self.victim((columns, member), target) } else { None };
        let fault = distance.map_or(Fault::Lost, |rows| Fault::Misdirected { rows });
        let slot = self.plan.geometry.slot_offset(sequence);
        // Not what an earlier stripe of the slot still has to write.
        let from = slot + u64::from(first_row) * to_u64(ROW_SIZE);
        let piece = from..slot + u64::from(self.plan.geometry.piece_bytes);
        let disk = self.disks.get(member);
        disk.add_rule(Rule::new(fault, WRITES).within(piece).times(1));
        let strikes = disk.strikes();
        let before = distance.map(|_| Box::new(before));
        Some(Astray { member, strikes, before })
    }

    /// How many rows further the write goes, onto what was acknowledged for long; what it destroys
    /// there is counted. `None`: the parity would not bear it.
    fn victim(&mut self, (columns, member): (u8, u8), target: Target) -> Option<u64> {
        let tail = self.truth.tail.max(self.passed_below());
        if tail >= self.settled_below {
            return None;
        }
        let sequence = tail + self.random.below(self.settled_below - tail);
        let offset = |sequence| self.plan.geometry.slot_offset(sequence);
        let bytes = offset(sequence).checked_sub(offset(target.sequence)).filter(|it| *it > 0)?;
        let before = self.truth.clone();
        for row in target.first_row..target.first_row + target.rows {
            let worst = self.account(Place { sequence, row, member });
            if worst.is_none_or(|worst| worst > u32::from(columns)) {
                self.truth = before;
                return None;
            }
        }
        // Until a flush it is not known which of them are destroyed.
        self.truth.doubt_slot(sequence, member);
        Some(bytes / to_u64(ROW_SIZE))
    }

    /// Behind the call that should have written it: the members that lack their piece.
    pub(crate) fn settle_astray(&mut self, astray: Astray) -> u32 {
        let Astray { member, strikes, before } = astray;
        let disk = self.disks.get(member);
        let has_struck = disk.strikes() > strikes;
        disk.clear_rules();
        match (has_struck, before) {
            (true, None) => self.counters.add("fault: honest member loses a write", 1),
            (true, Some(_)) => self.counters.add("fault: honest member misdirects a write", 1),
            (false, Some(before)) => self.truth = *before,
            (false, None) => {}
        }
        u32::from(has_struck) << member
    }
}
