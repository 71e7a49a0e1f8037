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
use format::geometry::ROW_BYTES;
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
    /// Body rows.
    pub rows: Vec<u16>,
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
    /// Prepares the work on the first member that has a gap and takes part; `None` when there is
    /// none. The reader must have been opened after the writer joined its epoch.
    pub fn first(reader: Reader) -> Result<Option<Self>, Error> {
        let membership = reader.membership();
        let tail = reader.span().map_or(0, |span| span.tail);
        let has_work = |&member: &u8| {
            let gap = membership.gap(member);
            membership.is_fresh(member) && !gap.is_empty() && gap.end > tail
        };
        let Some(member) = membership.present().find(has_work) else { return Ok(None) };
        let gap = membership.gap(member);
        let memory = Pool::new(2 * BATCH_SLOTS, reader.piece_bytes())?;
        Ok(Some(Self {
            next: gap.end,
            stale_from: gap.start,
            member,
            memory,
            slots: Vec::new(),
            lost: Vec::new(),
            reader,
        }))
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

    /// Reads and rebuilds the next slots below, newest last; none when the work is done. `tail` is
    /// the oldest sequence that is worth it.
    ///
    /// # Errors
    /// [`Error::Stalled`] when the member still holds the memory of earlier batches.
    pub fn next_batch(&mut self, tail: u64) -> Result<Vec<RebuiltSlot>, Error> {
        let batch = u64::try_from(BATCH_SLOTS).expect("a small number");
        let first = self.stale_from.max(tail).max(self.next.saturating_sub(batch));
        if first >= self.next {
            self.next = self.next.min(self.stale_from.max(tail));
            return Ok(Vec::new());
        }
        let sequences: Vec<u64> = (first..self.next).collect();
        let Some(span) = self.reader.span() else { return Ok(Vec::new()) };
        self.read(&sequences);
        let slots = core::mem::take(&mut self.slots);
        let rebuilt = sequences
            .iter()
            .zip(&slots)
            .map(|(&sequence, bytes)| self.rebuild(span, sequence, bytes));
        let rebuilt = rebuilt.collect();
        self.slots = slots;
        self.next = first;
        rebuilt
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

    fn rebuild(
        &mut self,
        span: Span,
        sequence: u64,
        bytes: &SlotBytes,
    ) -> Result<RebuiltSlot, Error> {
        let view = self
            .reader
            .with_heads(|heads| SlotView::walk(heads, sequence, span.acknowledged, bytes));
        let mut data = self.memory.take().ok_or(Error::Stalled { member: self.member })?;
        data.fill(0);
        for stripe in &view.stripes {
            self.put(stripe, bytes, &mut data);
        }
        Ok(RebuiltSlot { sequence, len: data.len(), data: data.freeze() })
    }

    /// Puts the member's piece of a stripe into the image of its slot. A piece of which some row is
    /// lost is left out whole: the checksums of that row are lost with its head.
    fn put(&mut self, view: &StripeView, bytes: &SlotBytes, image: &mut [u8]) {
        let stripe = &view.stripe;
        if self.member >= stripe.geometry.columns() {
            return;
        }
        let column = stripe.geometry.column_of(stripe.stripe.sequence, self.member);
        let rebuilt = rebuild(self.reader.membership(), view, bytes, column);
        if !rebuilt.lost_rows.is_empty() {
            let rows = rebuilt.lost_rows;
            self.lost.push(LostRows { stripe: stripe.stripe, column, rows });
            return;
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
    }
}

/// Makes every member whole that has a gap, on a volume that nobody records into; `progress` hears
/// (bytes done, bytes in all) and may stop it. Gives what could not be computed.
pub fn resilver(
    writer: &mut Writer,
    open_reader: &dyn Fn(&Writer) -> Result<Reader, Error>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Vec<LostRows>, Error> {
    let mut lost = Vec::new();
    while let Some(mut work) = Resilver::first(open_reader(writer)?)? {
        let slot_bytes = u64::from(ROW_BYTES) * u64::from(writer.geometry().rows_per_slot());
        let total = work.left(writer.repairable().start);
        loop {
            let tail = writer.repairable().start;
            let batch = work.next_batch(tail)?;
            let is_done = batch.is_empty();
            for slot in batch {
                let place = (slot.sequence, 0);
                writer.repair(work.member(), place, (slot.data, slot.len), clock)?;
            }
            writer.drain(clock)?;
            let left = work.left(tail);
            let stopped = progress((total - left) * slot_bytes, total * slot_bytes).is_break();
            if is_done || stopped {
                writer.set_clean_from(work.member(), work.clean_from(), clock)?;
            }
            if stopped {
                lost.extend_from_slice(work.lost());
                return Ok(lost);
            }
            if is_done {
                break;
            }
        }
        lost.extend_from_slice(work.lost());
    }
    Ok(lost)
}
