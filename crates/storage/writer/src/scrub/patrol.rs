//! Scrubbing beside recording, slot by slot, in the process that writes: what is damaged is made
//! into repairs that the running writer writes.
//!
//! When to do the next slot, and how fast, is the caller's part. A slot is read again after its
//! repairs are durable; only then it is known what became of them.

use device::Pool;
use format::head::StripeId;
use parity::Codec;
use units::{Clock, Sequence};
use volume::slot_view::SlotBytes;
use volume::{Error, Newest, Reader, Span};

use super::{Checker, Finding, Mend, Outcome};
use crate::Writer;
use crate::verify::{Damage, VerifyReport};
use crate::writer::Repair;

/// Runs of rows that may be on their way to members; what finds no memory waits for the next pass.
const REPAIRS_MAX: usize = 8;

/// A damaged place, and what would repair it.
#[derive(Debug)]
pub struct Wanted {
    /// Where, and how much of it.
    pub damage: Damage,
    /// Writes that make it good; none where the others do not have it.
    pub repairs: Vec<Repair>,
    /// What becomes of it: [`Outcome::Repairable`] where there are repairs.
    pub outcome: Outcome,
}

/// The way through the ring.
#[derive(Debug)]
pub struct Patrol {
    reader: Reader,
    codec: Codec,
    memory: Pool,
    bytes: SlotBytes,
    next: Sequence,
    verified: VerifyReport,
}

impl Patrol {
    /// Begins at `next`, or at the tail if that is behind it. The reader was opened after the
    /// writer joined its epoch; when a member is expelled or comes back, a new one is needed.
    pub fn new(reader: Reader, next: Sequence) -> Result<Self, Error> {
        let memory = Pool::new(REPAIRS_MAX, reader.piece_bytes())?;
        let (bytes, verified) = (SlotBytes::default(), VerifyReport::default());
        Ok(Self { codec: Codec::new()?, reader, memory, bytes, next, verified })
    }

    /// Everything before it was checked.
    pub fn next(&self) -> Sequence {
        self.next
    }

    /// What was read so far, in numbers.
    pub fn verified(&self) -> &VerifyReport {
        &self.verified
    }

    /// Checks the next slot of what is acknowledged; `None` when there is none. `tail` and
    /// `acknowledged` are the writer's of this moment.
    pub fn step(&mut self, tail: Sequence, acknowledged: StripeId) -> Option<Vec<Wanted>> {
        let sequence = self.next.max(tail);
        // The newest slot is still being written.
        if sequence >= acknowledged.sequence {
            return None;
        }
        self.next = sequence + 1;
        self.verified.read.slots += 1;
        Some(self.look(sequence, acknowledged))
    }

    /// Checks a slot again.
    pub fn look(&mut self, sequence: Sequence, acknowledged: StripeId) -> Vec<Wanted> {
        let epoch = self.reader.superblock().joined_epoch;
        self.reader.show_through(Newest::of_writer(acknowledged, epoch));
        let Some(span) = self.reader.span() else { return Vec::new() };
        self.reader.with_heads(|heads| self.bytes.fill(heads, sequence));
        let (reader, bytes) = (&self.reader, &self.bytes);
        self.verified.read.bytes += bytes.total_len();
        let mut checker = Checker::new(reader, Some(self.codec));
        let damaged = checker.slot(span, sequence, bytes, &mut self.verified);
        let wanted = damaged.into_iter().map(|damage| {
            wanted((&checker, span, bytes), damage, |mend| {
                writes(&self.memory, reader, mend, sequence)
            })
        });
        wanted.collect()
    }
}

fn wanted(
    (checker, span, bytes): (&Checker<'_>, Span, &SlotBytes),
    damage: Damage,
    writes: impl FnOnce(&Mend) -> Vec<Repair>,
) -> Wanted {
    match checker.mend(span, &damage, bytes) {
        Err(outcome) => Wanted { damage, repairs: Vec::new(), outcome },
        Ok(mend) => {
            let repairs = writes(&mend);
            let lost_rows = mend.into_lost_rows();
            let outcome = if lost_rows.is_empty() {
                Outcome::Repairable
            } else {
                Outcome::Partly { lost_rows, repaired: false }
            };
            Wanted { damage, repairs, outcome }
        }
    }
}

/// The runs of rows in buffers of their own.
fn writes(memory: &Pool, reader: &Reader, mend: &Mend, sequence: Sequence) -> Vec<Repair> {
    let slot_offset = reader.geometry().slot_offset(sequence);
    let mut repairs = Vec::new();
    for (first_row, bytes) in mend.rows(slot_offset) {
        let seat = reader.membership().seat(mend.member());
        let Some((seat, mut buffer)) = seat.zip(memory.take()) else { break };
        let len = bytes.len();
        buffer.get_mut(..len).expect("a piece holds its rows").copy_from_slice(bytes);
        repairs.push(Repair { seat, sequence, first_row, data: buffer.freeze(), len });
    }
    repairs
}

/// Checks the next slot and repairs it by a writer that has nothing else to do; `None` when the
/// newest is reached. A recorder does the same steps without waiting.
pub fn patrol(
    patrol: &mut Patrol,
    writer: &mut Writer,
    clock: &dyn Clock,
) -> Result<Option<Vec<Finding>>, Error> {
    let Some(wanted) = patrol.step(writer.tail(), writer.acknowledged()) else { return Ok(None) };
    let mut findings = Vec::new();
    for Wanted { damage, repairs, outcome } in wanted {
        let is_wanted = !repairs.is_empty();
        for repair in repairs {
            writer.repair(repair, clock)?;
        }
        writer.drain(clock)?;
        findings.push((Finding { damage, outcome }, is_wanted));
    }
    Ok(Some(settle(patrol, writer, findings)))
}

fn settle(patrol: &mut Patrol, writer: &Writer, found: Vec<(Finding, bool)>) -> Vec<Finding> {
    let Some(sequence) = found.first().map(|(it, _)| it.damage.stripe.sequence) else {
        return Vec::new();
    };
    let left = patrol.look(sequence, writer.acknowledged());
    let settled = found.into_iter().map(|(finding, is_wanted)| {
        let Finding { damage, outcome } = finding;
        let is_left = left
            .iter()
            .any(|it| (it.damage.stripe, it.damage.member) == (damage.stripe, damage.member));
        let outcome = match outcome {
            Outcome::Repairable if is_wanted && !is_left => Outcome::Repaired,
            Outcome::Partly { lost_rows, .. } => Outcome::Partly { lost_rows, repaired: is_wanted },
            outcome => outcome,
        };
        Finding { damage, outcome }
    });
    settled.collect()
}
