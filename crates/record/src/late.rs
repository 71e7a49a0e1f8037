//! Stripes for which the indexer had no time, indexed when it has.
//!
//! They are read back from the members once they are durable, and get rows from a table of their
//! own: to the live one their packets would come too late. What is still waiting when its segment
//! ends stays without rows, and is indexed by whoever asks for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use format::head::{Head, StripeId};
use format::piece::packets;
use session::Table;
use volume::Reader;

use crate::segment::OpenSegment;

/// A stripe that was not handed to the indexer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Skipped {
    pub(crate) stripe: StripeId,
    pub(crate) packets: u64,
}

/// How the ring writer tells of them, in order.
pub(crate) type Skips = Arc<Mutex<Vec<Skipped>>>;

/// Opens the volume for reading; `None` where that does not succeed now.
pub(crate) type OpenReader<'a> = &'a (dyn Fn() -> Option<Reader> + Sync);

/// What became of a stripe that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Its packets, so many, have rows.
    Indexed(u64),
    /// It cannot be read, and stays without.
    Unreadable,
    /// None is there that could be read now.
    NotNow,
}

/// Stripes that wait, and the rows of those that do not any more.
pub(crate) struct Late<'a> {
    skips: Skips,
    waiting: VecDeque<Skipped>,
    open: OpenReader<'a>,
    /// Only while something waits: a disk that is pulled keeps its name while anybody has it open.
    reader: Option<Reader>,
    /// Of the segment under way.
    table: Option<Table>,
    /// Packets of the segment under way that stay without rows.
    left_packets: u64,
    buffers: Vec<Vec<u8>>,
}

impl<'a> Late<'a> {
    pub(crate) fn new(skips: Skips, open: OpenReader<'a>) -> Self {
        let (waiting, buffers) = (VecDeque::new(), Vec::new());
        Self { skips, waiting, open, reader: None, table: None, left_packets: 0, buffers }
    }

    /// The oldest stripe that waits.
    pub(crate) fn first(&mut self) -> Option<StripeId> {
        let mut skips = self.skips.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.extend(skips.drain(..));
        drop(skips);
        if self.waiting.is_empty() {
            self.reader = None;
        }
        self.waiting.front().map(|skipped| skipped.stripe)
    }

    /// Indexes the oldest stripe that waits, if it is durable, as part of `segment`.
    pub(crate) fn next(
        &mut self,
        acknowledged: StripeId,
        segment: &mut OpenSegment,
        new_table: &dyn Fn() -> Table,
    ) -> Step {
        let Some(&skipped) = self.waiting.front() else { return Step::NotNow };
        if skipped.stripe > acknowledged {
            return Step::NotNow;
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => match (self.open)() {
                Some(reader) => none.insert(reader),
                None => return Step::NotNow,
            },
        };
        let shows =
            |reader: &Reader| reader.span().is_some_and(|span| span.acknowledged >= skipped.stripe);
        // The watermark on the members lags behind what was flushed.
        if !shows(reader) && (reader.refresh().is_err() || !shows(reader)) {
            return Step::NotNow;
        }
        self.waiting.pop_front();
        let Some((heads, slot_cid)) = read(reader, skipped.stripe, &mut self.buffers) else {
            self.left_packets += skipped.packets;
            return Step::Unreadable;
        };
        let table = self.table.get_or_insert_with(new_table);
        for ((column, head), buffer) in (0..).zip(&heads).zip(&self.buffers) {
            let body = packets(Reader::body(head, buffer));
            segment.take(Some(table), (skipped.stripe, column), body);
        }
        segment.ends_in_slot_of(skipped.stripe, slot_cid);
        Step::Indexed(skipped.packets)
    }

    /// The segment ends with the stripe `last`: adds its rows, and gives the packets that have
    /// none. Later stripes wait for the next one.
    pub(crate) fn end_segment(&mut self, last: StripeId, segment: &mut OpenSegment) -> u64 {
        if let Some(mut table) = self.table.take() {
            table.finish(&mut segment.rows);
        }
        let mut left_packets = core::mem::take(&mut self.left_packets);
        while let Some(skipped) = self.waiting.pop_front_if(|skipped| skipped.stripe <= last) {
            left_packets += skipped.packets;
        }
        left_packets
    }
}

/// Reads the data columns of a stripe, each into a buffer; gives their heads, and the `CID` of the
/// first stripe in the slot. `None` unless all of it can be had.
fn read(
    reader: &Reader,
    stripe: StripeId,
    buffers: &mut Vec<Vec<u8>>,
) -> Option<(Vec<Head>, Option<[u8; 32]>)> {
    let columns = reader.membership().geometry_at(stripe.sequence).data_columns;
    buffers.resize_with(usize::from(columns), || vec![0; reader.piece_bytes()]);
    let mut slot_cid = None;
    let heads = (0..columns).zip(buffers).map(|(column, buffer)| {
        let slot = reader.slot(stripe.sequence, column, buffer).ok()?;
        let first = slot.stripes.first().map(|first| &first.head);
        slot_cid = first.filter(|first| first.stripe.stripe.sub == 0).map(|first| first.cid);
        let piece = slot.stripes.into_iter().find(|it| it.head.stripe.stripe == stripe)?;
        piece.bad_rows.is_empty().then_some(piece.head)
    });
    Some((heads.collect::<Option<Vec<_>>>()?, slot_cid))
}

#[cfg(test)]
mod tests;
