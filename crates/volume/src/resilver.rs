//! Giving a member back what it missed: its pieces of the stripes in its gap, computed from the
//! others and written by the running writer.
//!
//! The way is downward, from where the member is clean to where its gap begins or the ring ends:
//! what is newest has the longest life, and the gap stays one range. Batches of neighbouring slots
//! are read from all members at once and ascending, as disks like it. A batch is written, flushed,
//! and only then named clean; a crash costs the work since the last time that was said.

use std::thread;

use core::ops::ControlFlow;

use device::{Pool, Shared};
use format::head::{HEAD_BYTES, Head, StripeId};
use units::Clock;

use crate::reader::Span;
use crate::repair::rebuild;
use crate::seal::to_slot_end;
use crate::slot_view::{SlotBytes, SlotView, StripeView};
use crate::{Error, Reader, Writer};

/// Slots that are read together: 8 MiB of each member.
const BATCH_SLOTS: usize = 4;

/// A slot as the member should hold it.
#[derive(Debug)]
pub struct RebuiltSlot {
    /// Its sequence.
    pub sequence: u64,
    /// What belongs there, from the slot's first row on.
    pub data: Shared,
    /// Bytes of it.
    pub len: usize,
}

/// Rows that no longer can be computed: those of a piece stay lost with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostRows {
    /// Stripe.
    pub stripe: StripeId,
    /// Its column on the member.
    pub column: u8,
    /// Body rows; none where no head of the stripe can be read.
    pub rows: Vec<u16>,
}

/// Slots of a member that follow one another.
#[derive(Debug)]
pub struct Batch {
    /// Those that are not as they should be, newest first.
    pub slots: Vec<RebuiltSlot>,
    /// Nothing follows.
    pub is_last: bool,
    /// The work cannot go on without members that are absent: what they hold may be all there is.
    pub waits: bool,
}

/// The work on one member.
#[derive(Debug)]
pub struct Resilver {
    reader: Reader,
    member: u8,
    /// Everything from here on is clean or rebuilt.
    next: u64,
    /// Where the member's gap begins.
    stale_from: u64,
    memory: Pool,
    slots: Vec<SlotBytes>,
    lost: Vec<LostRows>,
}

impl Resilver {
    /// Members that take part and lack something that the ring still holds.
    pub fn needed(reader: &Reader) -> Vec<u8> {
        let membership = reader.membership();
        let tail = reader.span().map_or(0, |span| span.tail);
        let lacks = |&member: &u8| {
            let gap = membership.gap(member);
            membership.is_fresh(member) && !gap.is_empty() && gap.end > tail
        };
        membership.present().filter(lacks).collect()
    }

    /// Prepares the work on one of them. The reader must have been opened after the writer joined
    /// its epoch.
    pub fn new(reader: Reader, member: u8) -> Result<Self, Error> {
        let gap = reader.membership().gap(member);
        let memory = Pool::new(2 * BATCH_SLOTS, reader.piece_bytes())?;
        Ok(Self {
            next: gap.end,
            stale_from: gap.start,
            member,
            memory,
            slots: Vec::new(),
            lost: Vec::new(),
            reader,
        })
    }

    /// The member that is given back what it missed.
    pub fn member(&self) -> u8 {
        self.member
    }

    /// Everything from this sequence on is clean, once what was rebuilt is durable.
    pub fn clean_from(&self) -> u64 {
        self.next
    }

    /// Sequences left to do, while the ring holds what it does from `tail` on.
    pub fn left(&self, tail: u64) -> u64 {
        self.next.saturating_sub(self.stale_from.max(tail))
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
    pub fn next_batch(&mut self, tail: u64) -> Result<Batch, Error> {
        let end = self.stale_from.max(tail);
        let size = u64::try_from(BATCH_SLOTS).expect("a small number");
        let first = end.max(self.next.saturating_sub(size));
        let mut batch = Batch { slots: Vec::new(), is_last: first <= end, waits: false };
        let span = self.reader.span().filter(|_| first < self.next);
        let Some(span) = span else { return Ok(Batch { is_last: true, ..batch }) };
        let sequences: Vec<u64> = (first..self.next).collect();
        self.read(&sequences);
        let slots = core::mem::take(&mut self.slots);
        for (&sequence, bytes) in sequences.iter().zip(&slots).rev() {
            let (slot, mut lost) = self.rebuild(span, sequence, bytes)?;
            if !lost.is_empty() && self.is_somebody_absent() {
                (batch.waits, batch.is_last) = (true, true);
                break;
            }
            self.lost.append(&mut lost);
            self.next = sequence;
            if *slot.data != *bytes.of(self.member) {
                batch.slots.push(slot);
            }
        }
        self.slots = slots;
        Ok(batch)
    }

    fn is_somebody_absent(&self) -> bool {
        let membership = self.reader.membership();
        membership.numbers().any(|member| membership.of(member).is_none())
    }

    /// The slots of `sequences` on every member at hand, each member by a thread.
    fn read(&mut self, sequences: &[u64]) {
        self.slots.resize_with(sequences.len(), SlotBytes::default);
        let reader = &self.reader;
        let mut shares: Vec<Vec<(u64, &mut Vec<u8>)>> = Vec::new();
        for (&sequence, slot) in sequences.iter().zip(&mut self.slots) {
            let buffers = slot.prepare(reader.membership());
            shares.resize_with(buffers.len().max(shares.len()), Vec::new);
            for (share, buffer) in shares.iter_mut().zip(buffers) {
                share.push((sequence, buffer));
            }
        }
        let read = |member: u8, share: Vec<(u64, &mut Vec<u8>)>| {
            reader.with_heads(|heads| {
                for (sequence, buffer) in share.into_iter().filter(|(_, it)| !it.is_empty()) {
                    heads.read_slot(member, heads.geometry().slot(sequence), buffer);
                }
            });
        };
        thread::scope(|scope| {
            for (member, share) in (0..).zip(shares) {
                scope.spawn(move || read(member, share));
            }
        });
    }

    /// The slot as the member should hold it, and what of it cannot be had.
    fn rebuild(
        &self,
        span: Span,
        sequence: u64,
        bytes: &SlotBytes,
    ) -> Result<(RebuiltSlot, Vec<LostRows>), Error> {
        let view = self
            .reader
            .with_heads(|heads| SlotView::walk(heads, sequence, span.acknowledged, bytes));
        let stalled = Error::Stalled { member: self.member };
        let mut data = self.memory.take().ok_or(stalled)?;
        data.fill(0);
        let mut lost: Vec<LostRows> = Vec::new();
        for stripe in &view.stripes {
            lost.extend(stripe.behind_damage.then(|| self.all_of(stripe.stripe.stripe)));
            lost.extend(self.put(stripe, bytes, &mut data));
        }
        // Every slot of a gap was closed: where it ends open, nobody at hand knows what follows.
        if !view.closed {
            let sub = u16::try_from(view.stripes.len()).expect("as many as rows");
            lost.push(self.all_of(StripeId { sequence, sub }));
        }
        Ok((RebuiltSlot { sequence, len: data.len(), data: data.freeze() }, lost))
    }

    /// A stripe of which no head can be read, or those before this one.
    fn all_of(&self, stripe: StripeId) -> LostRows {
        let geometry = self.reader.membership().geometry_at(stripe.sequence);
        let member = self.member.min(geometry.columns() - 1);
        let column = geometry.column_of(stripe.sequence, member);
        LostRows { stripe, column, rows: Vec::new() }
    }

    /// Puts the member's piece of a stripe into the image of its slot. A piece of which some row is
    /// lost is left out whole: the checksums of that row are lost with its head.
    fn put(&self, view: &StripeView, bytes: &SlotBytes, image: &mut [u8]) -> Option<LostRows> {
        let stripe = &view.stripe;
        if self.member >= stripe.geometry.columns() {
            return None;
        }
        let column = stripe.geometry.column_of(stripe.stripe.sequence, self.member);
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

/// What was given back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resilvered {
    /// Bytes written.
    pub bytes: u64,
    /// What no other member could give, either.
    pub lost: Vec<LostRows>,
    /// Members that are absent and without which the work cannot go on.
    pub waits_for: Vec<u8>,
    /// It was broken off.
    pub is_stopped: bool,
}

impl Resilvered {
    /// Nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.waits_for.is_empty() && !self.is_stopped
    }
}

/// Makes every member whole that has a gap, on a volume that nobody records into; `progress` hears
/// (bytes done, bytes in all) and may stop it.
pub fn resilver(
    writer: &mut Writer,
    open_reader: &dyn Fn(&Writer) -> Result<Reader, Error>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Resilvered, Error> {
    let mut report = Resilvered::default();
    let before = writer.counters().repaired_bytes;
    for member in Resilver::needed(&open_reader(writer)?) {
        let mut work = Resilver::new(open_reader(writer)?, member)?;
        let slot_bytes = u64::from(writer.geometry().piece_bytes);
        let total = work.left(writer.repairable().start);
        loop {
            let tail = writer.repairable().start;
            let batch = work.next_batch(tail)?;
            for slot in batch.slots {
                writer.repair(member, (slot.sequence, 0), (slot.data, slot.len), clock)?;
            }
            writer.drain(clock)?;
            let done = total - work.left(tail).min(total);
            report.is_stopped = progress(done * slot_bytes, total * slot_bytes).is_break();
            if batch.waits {
                let membership = writer.membership();
                let absent = membership.numbers().filter(|&it| membership.of(it).is_none());
                report.waits_for = absent.collect();
            }
            if batch.is_last || report.is_stopped {
                break;
            }
        }
        writer.set_clean_from(member, work.clean_from(), clock)?;
        report.lost.extend_from_slice(work.lost());
        if report.is_stopped {
            break;
        }
    }
    report.bytes = writer.counters().repaired_bytes - before;
    Ok(report)
}
