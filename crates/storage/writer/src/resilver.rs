//! Giving a member back what it missed: its pieces of the stripes in its gap, computed from the
//! others and written by the running writer.
//!
//! The way is downward, from where the member is clean to where its gap begins or the ring ends:
//! what is newest has the longest life, and the gap stays one range. Batches of neighbouring slots
//! are read from all members at once and ascending, as disks like it. A batch is written, flushed,
//! and only then named clean; a crash costs the work since the last time that was said.
//!
//! Of a slot only the rows that differ are written: a write may be torn, and where other members
//! are gone for good, what lies inside the gap may be all there is.

use std::collections::VecDeque;

use core::ops::{ControlFlow, Range};

use device::Pool;
use format::head::{HEAD_BYTES, Head, StripeId};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Clock, EachSequence, MemberId, Sequence};
use volume::repair::rebuild;
use volume::seal::to_slot_end;
use volume::slot_view::{SlotBytes, SlotView, StripeView};
use volume::{Error, Reader, Seat, Span};

use crate::Writer;
use crate::writer::Repair;

/// Slots that are read together: 8 MiB of each member.
const BATCH_SLOTS: usize = 4;

/// Runs of a slot that are written apart; the last one reaches over what else differs.
const RUNS_MAX: usize = BATCH_SLOTS;

/// Rows that no longer can be computed: those of a piece stay lost with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LostRows {
    /// The stripe.
    pub stripe: StripeId,
    /// Its column on the member.
    pub column: u8,
    /// Body rows; none where no head of the stripe can be read.
    pub rows: Vec<u16>,
}

/// Slots of a member that follow one another.
#[derive(Debug)]
pub struct Batch {
    /// What is not as it should be, newest slots first.
    pub rows: Vec<Repair>,
    /// No further stripe follows.
    pub is_last: bool,
    /// The work cannot go on without members that are absent: what they hold may be all there is.
    pub waits: bool,
}

/// The work on one member.
#[derive(Debug)]
pub struct Resilver {
    reader: Reader,
    seat: Seat,
    /// Everything from here on is clean or rebuilt.
    next: Sequence,
    /// Where the member's gap begins.
    stale_from: Sequence,
    memory: Pool,
    slots: Vec<SlotBytes>,
    /// A slot as the member should hold it.
    image: Vec<u8>,
    lost: Vec<LostRows>,
}

impl Resilver {
    /// Members that take part and lack something that the ring still holds.
    pub fn needed(reader: &Reader) -> Vec<MemberId> {
        let membership = reader.membership();
        let tail = reader.span().map_or(Sequence(0), |span| span.tail);
        let lacks = |&member: &MemberId| {
            let gap = membership.gap(member);
            membership.is_fresh(member) && !gap.is_empty() && gap.end > tail
        };
        membership.present().filter(lacks).collect()
    }

    /// Prepares the work on one of them. The reader must have been opened after the writer joined
    /// its epoch.
    ///
    /// # Errors
    /// [`Error::Absent`] when the member takes no part.
    pub fn new(reader: Reader, member: MemberId) -> Result<Self, Error> {
        let seat = reader.membership().seat(member).ok_or(Error::Absent { member })?;
        let gap = reader.membership().gap(member);
        let memory = Pool::new(2 * BATCH_SLOTS, reader.piece_bytes())?;
        Ok(Self {
            next: gap.end,
            stale_from: gap.start,
            seat,
            memory,
            slots: Vec::new(),
            image: vec![0; reader.piece_bytes()],
            lost: Vec::new(),
            reader,
        })
    }

    /// The member that is given back what it missed.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// Everything from this sequence on is clean, once what was rebuilt is durable.
    pub fn clean_from(&self) -> Sequence {
        self.next
    }

    /// Sequences left to do, while the ring holds what it does from `tail` on.
    pub fn left(&self, tail: Sequence) -> u64 {
        self.next.since(self.stale_from.max(tail))
    }

    /// What could not be computed so far.
    pub fn lost(&self) -> &[LostRows] {
        &self.lost
    }

    /// Reads the next slots below and rebuilds those that are not as they should be. `tail` is the
    /// oldest sequence that is worth it.
    ///
    /// # Errors
    /// [`Error::Stalled`] when the member still holds the memory of earlier batches.
    pub fn next_batch(&mut self, tail: Sequence) -> Result<Batch, Error> {
        let end = self.stale_from.max(tail);
        let size = u64::try_from(BATCH_SLOTS).expect("a small number");
        let first = end.max(self.next.saturating_sub(size));
        let mut batch = Batch { rows: Vec::new(), is_last: first <= end, waits: false };
        let span = self.reader.span().filter(|_| first < self.next);
        let Some(span) = span else { return Ok(Batch { is_last: true, ..batch }) };
        let sequences: Vec<Sequence> = (first..self.next).each().collect();
        self.read(&sequences);
        let slots = core::mem::take(&mut self.slots);
        let mut image = core::mem::take(&mut self.image);
        let mut is_full = false;
        for (&sequence, bytes) in sequences.iter().zip(&slots).rev() {
            let mut lost = self.rebuild(span, sequence, bytes, &mut image);
            if !lost.is_empty() && self.is_somebody_absent() {
                (batch.waits, batch.is_last) = (true, true);
                break;
            }
            let runs = differing(&image, bytes.of(self.seat.member));
            if runs.len() > self.memory.free_count() {
                // The slot comes again when what was taken before is written.
                (is_full, batch.is_last) = (true, false);
                break;
            }
            batch.rows.extend(runs.into_iter().filter_map(|run| self.copy(sequence, run, &image)));
            self.lost.append(&mut lost);
            self.next = sequence;
        }
        (self.slots, self.image) = (slots, image);
        if is_full && batch.rows.is_empty() {
            return Err(Error::Stalled { member: self.seat.member });
        }
        Ok(batch)
    }

    /// Rows of a slot, in memory that the writer may hold.
    fn copy(&self, sequence: Sequence, run: Range<usize>, image: &[u8]) -> Option<Repair> {
        let rows = image.get(run.start * HEAD_BYTES..run.end * HEAD_BYTES)?;
        let mut data = self.memory.take()?;
        data.get_mut(..rows.len())?.copy_from_slice(rows);
        let first_row = u16::try_from(run.start).expect("a slot has at most 512 rows");
        let (seat, len, data) = (self.seat, rows.len(), data.freeze());
        Some(Repair { seat, sequence, first_row, data, len })
    }

    fn is_somebody_absent(&self) -> bool {
        self.reader.membership().absent().next().is_some()
    }

    /// The slots of `sequences` on every member at hand, each member by a thread.
    fn read(&mut self, sequences: &[Sequence]) {
        self.slots.resize_with(sequences.len(), SlotBytes::default);
        let reader = &self.reader;
        let mut shares: Vec<Vec<(Sequence, &mut Vec<u8>)>> = Vec::new();
        for (&sequence, slot) in sequences.iter().zip(&mut self.slots) {
            let buffers = slot.prepare(reader.membership());
            shares.resize_with(buffers.len().max(shares.len()), Vec::new);
            for (share, buffer) in shares.iter_mut().zip(buffers) {
                share.push((sequence, buffer));
            }
        }
        let read = |member: MemberId, share: Vec<(Sequence, &mut Vec<u8>)>| {
            reader.with_heads(|heads| {
                for (sequence, buffer) in share.into_iter().filter(|(_, it)| !it.is_empty()) {
                    heads.read_slot(member, heads.geometry().slot(sequence), buffer);
                }
            });
        };
        stage::scope(|scope| {
            for (member, share) in MemberId::all().zip(shares) {
                // Without a thread its slots stay as they are: nothing of them is readable.
                drop(scope.spawn("resilver-read", move || read(member, share)));
            }
        });
    }

    /// Makes the slot as the member should hold it; what of it cannot be had.
    fn rebuild(
        &self,
        span: Span,
        sequence: Sequence,
        bytes: &SlotBytes,
        image: &mut [u8],
    ) -> Vec<LostRows> {
        let view = self
            .reader
            .with_heads(|heads| SlotView::walk(heads, sequence, span.acknowledged, bytes));
        image.fill(0);
        let mut lost: Vec<LostRows> = Vec::new();
        for stripe in &view.stripes {
            lost.extend(stripe.behind_damage.then(|| self.all_of(stripe.stripe.stripe)));
            lost.extend(self.put(stripe, bytes, image));
        }
        // Every slot of a gap was closed: where it ends open, no member at hand knows what follows.
        if !view.closed {
            let sub = u16::try_from(view.stripes.len()).expect("as many as rows");
            lost.push(self.all_of(StripeId { sequence, sub }));
        }
        lost
    }

    /// A stripe of which no head can be read, or those before this one.
    fn all_of(&self, stripe: StripeId) -> LostRows {
        let geometry = self.reader.membership().geometry_at(stripe.sequence);
        let member = self.seat.member.min(geometry.last_member());
        let column = geometry.column_of(stripe.sequence, member);
        LostRows { stripe, column, rows: Vec::new() }
    }

    /// Puts the member's piece of a stripe into the image of its slot. A piece of which some row is
    /// lost is left out whole: the checksums of that row are lost with its head.
    fn put(&self, view: &StripeView, bytes: &SlotBytes, image: &mut [u8]) -> Option<LostRows> {
        let stripe = &view.stripe;
        if !stripe.geometry.has_member(self.seat.member) {
            return None;
        }
        let column = stripe.geometry.column_of(stripe.stripe.sequence, self.seat.member);
        let rebuilt = rebuild(self.reader.membership(), view, bytes, column);
        if !rebuilt.lost_rows.is_empty() {
            return Some(LostRows { stripe: stripe.stripe, column, rows: rebuilt.lost_rows });
        }
        let head = Head { stripe: stripe.clone(), piece: rebuilt.piece, cid: view.cid };
        let page = head.encode(&self.reader.superblock().head_key);
        let begin = usize::from(stripe.first_row) * HEAD_BYTES;
        let piece = if stripe.kind.closes_slot() {
            to_slot_end(stripe, Some(&page), stripe.first_row)
        } else {
            [&page[..], &rebuilt.body].concat()
        };
        let place = image.get_mut(begin..begin + piece.len());
        place.expect("a stripe lies inside its slot").copy_from_slice(&piece);
        None
    }
}

/// The rows that differ, in runs. What lies between is right.
fn differing(image: &[u8], found: &[u8]) -> Vec<Range<usize>> {
    let pairs = image.chunks(HEAD_BYTES).zip(found.chunks(HEAD_BYTES));
    let wrong = pairs.enumerate().filter(|(_, (right, found))| right != found);
    let wrong: Vec<usize> = wrong.map(|(row, _)| row).collect();
    let runs = wrong.chunk_by(|row, next| row + 1 == *next);
    let mut runs: Vec<Range<usize>> =
        runs.filter_map(|run| Some(*run.first()?..run.last()? + 1)).collect();
    let end = runs.last().map(|run| run.end);
    runs.truncate(RUNS_MAX);
    if let (Some(last), Some(end)) = (runs.last_mut(), end) {
        last.end = end;
    }
    runs
}

/// What was given back.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Resilvered {
    /// Bytes written.
    pub bytes: u64,
    /// Nothing is left to do.
    pub is_complete: bool,
    /// Members that are absent and without which the work cannot go on.
    pub waits_for: Vec<MemberId>,
    /// What no other member could give, either.
    pub lost: Vec<LostRows>,
    /// It was broken off.
    #[serde(skip)]
    pub is_stopped: bool,
}

/// Makes every member whole that has a gap, on a volume without a running recorder; `progress`
/// hears (bytes done, bytes in all) and may stop it.
pub fn resilver(
    writer: &mut Writer,
    open_reader: &dyn Fn(&Writer) -> Result<Reader, Error>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Resilvered, Error> {
    let mut report = Resilvered::default();
    let before = writer.counters().repaired_bytes;
    let mut needed = VecDeque::from(Resilver::needed(&open_reader(writer)?));
    while let Some(member) = needed.pop_front() {
        let work = Resilver::new(open_reader(writer)?, member)?;
        match one(writer, work, &mut report, (clock, progress)) {
            Ok(()) if report.is_stopped => break,
            Ok(()) => {}
            // Each time a member less takes part, so that this ends.
            Err(Error::MembersChanged { .. }) => {
                needed = Resilver::needed(&open_reader(writer)?).into();
            }
            Err(error) => return Err(error),
        }
    }
    report.bytes = writer.counters().repaired_bytes - before;
    report.is_complete = report.waits_for.is_empty() && !report.is_stopped;
    Ok(report)
}

fn one(
    writer: &mut Writer,
    mut work: Resilver,
    report: &mut Resilvered,
    (clock, progress): (&dyn Clock, &mut dyn FnMut(u64, u64) -> ControlFlow<()>),
) -> Result<(), Error> {
    let slot_bytes = u64::from(writer.geometry().piece_bytes);
    let total = work.left(writer.repairable().start);
    loop {
        // Where nothing is to be repaired for long, the volume is still held.
        writer.poll(None, clock)?;
        let tail = writer.repairable().start;
        let batch = work.next_batch(tail)?;
        for repair in batch.rows {
            writer.repair(repair, clock)?;
        }
        writer.drain(clock)?;
        let done = total - work.left(tail).min(total);
        report.is_stopped = progress(done * slot_bytes, total * slot_bytes).is_break();
        if batch.waits {
            report.waits_for = writer.membership().absent().collect();
        }
        if batch.is_last || report.is_stopped {
            break;
        }
    }
    writer.set_clean_from(work.seat(), work.clean_from(), clock)?;
    report.lost.extend_from_slice(work.lost());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a row.
    fn runs(right: &str, found: &str) -> Vec<Range<usize>> {
        let rows = |text: &str| text.bytes().flat_map(|row| [row; HEAD_BYTES]).collect::<Vec<u8>>();
        differing(&rows(right), &rows(found))
    }

    #[test]
    fn rows_that_are_right_are_left_alone() {
        assert_eq!(runs("abcdef", "abcdef"), []);
        assert_eq!(runs("abcdef", "xbcxxf"), [0..1, 3..5]);
        assert_eq!(runs("abcdef", "axxxxf"), vec![1..5; 1]);
    }

    #[test]
    fn the_last_run_reaches_over_what_else_differs() {
        assert_eq!(runs("abcdefghijk", "xbxdxfxhxjx"), [0..1, 2..3, 4..5, 6..11]);
    }
}
