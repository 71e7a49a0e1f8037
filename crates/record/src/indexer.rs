//! The session indexer's thread: sealed pieces in, segments of session rows out.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;

use core::num::NonZero;
use core::time::Duration;

use device::{Buffer, Pool};
use format::directory::{SegmentEntry, split};
use format::head::{HEAD_BYTES, Kind, StripeId, VolumeId};
use format::local::LOCAL_FRAME_BYTES;
use format::piece::{Packets, packets};
use index::{Catalog, Encoded, Files, Identity};
use session::Table;
use units::Clock;
use volume::{Reader, StripeInSlot};

use crate::encoder::Encoder;
use crate::hurry::{FromRing, Queued};
use crate::late::{Late, Step};
use crate::ring::{Board, Task, fill_with_block, look};
use crate::segment::{OpenSegment, SegmentLimits};

/// How often due segments and durable indexes are looked for while nothing arrives.
const TICK: Duration = Duration::from_millis(100);
/// Room in every part for the directory and the frame of the block.
const PART_BYTES_MIN: usize = 128 << 10;
/// Longest wait for the write of an index part: a member that takes longer is given up by its own
/// error.
const COLUMN_WAIT: Duration = Duration::from_mins(2);
/// How long the end of a recording goes on indexing what there was no time for.
const LATE_NS: i64 = 2_000_000_000;
/// How long the end of a recording waits for its last index before it leaves the cache without it.
const AWAIT_NS: i64 = 5_000_000_000;
/// A stretch that was left without an index (by a crash, or on purpose) is indexed when the volume
/// is opened, unless it is longer than this: then it stays to be indexed when asked for.
const CATCH_UP_BYTES_MAX: u64 = 4 << 30;

/// What the indexer did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexerReport {
    pub(crate) rows: u64,
    pub(crate) segments: u64,
    pub(crate) index_bytes: u64,
    /// Packets whose payload was not looked at for names.
    pub(crate) unread: u64,
}

/// An index on its way to being durable: only then may the cache know it.
struct Pending {
    last_part: StripeId,
    entry: SegmentEntry,
    identity: Option<Identity>,
    parquet: Vec<u8>,
}

/// What the indexer is made of.
pub(crate) struct Indexer<'a> {
    /// Without it segments are written all the same, with no rows: they carry the recording's
    /// name, its bounds and its gaps.
    pub(crate) table: Option<Table>,
    pub(crate) new_table: &'a (dyn Fn() -> Table + Sync),
    pub(crate) volume: VolumeId,
    pub(crate) limits: SegmentLimits,
    pub(crate) encoder: Encoder,
    pub(crate) epoch: u32,
    pub(crate) recording: Option<String>,
    pub(crate) catalog: Catalog,
    pub(crate) files: &'a (dyn Files + Sync),
    pub(crate) tasks: SyncSender<Task>,
    /// Columns for the parts of an index, two for each data column.
    pub(crate) pool: Pool,
    pub(crate) data_columns: usize,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) board: Board,
    /// What there was no time for.
    pub(crate) late: Late<'a>,
}

/// The state of the thread.
pub(crate) struct Run<'a> {
    parts: Indexer<'a>,
    segment: Option<OpenSegment>,
    /// Which stripes the segments cover that the encoder has, in their order.
    closed: VecDeque<Option<Identity>>,
    pending: Vec<Pending>,
    /// Files of what lies before are gone.
    given_up_before: u64,
    report: IndexerReport,
}

/// The ring writer is gone.
struct WriterGone;

/// What becomes of the sessions at the end of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    /// They go on into the next one.
    GoesOn,
    /// They end with it.
    Last,
}

impl<'a> Run<'a> {
    pub(crate) fn new(parts: Indexer<'a>) -> Self {
        Self {
            parts,
            segment: None,
            closed: VecDeque::new(),
            pending: Vec::new(),
            given_up_before: 0,
            report: IndexerReport::default(),
        }
    }

    /// Indexes what an earlier recording left without, then the sealed pieces until they end. Gives
    /// what the index directory is known to hold.
    pub(crate) fn run(
        mut self,
        sealed: &FromRing,
        earlier: Reader,
    ) -> Result<(IndexerReport, Catalog), index::Error> {
        self.catch_up(&earlier)?;
        // A disk that is pulled keeps its name while anybody has it open, and comes back by
        // another.
        drop(earlier);
        loop {
            match self.receive(sealed) {
                Ok(queued) => self.stripe(&queued),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.close_if_due()?;
            self.write_encoded(false)?;
            self.cache_durable()?;
        }
        self.index_rest();
        self.parts.encoder.hire(thread::available_parallelism().map_or(1, NonZero::get));
        self.close(Rest::Last)?;
        self.parts.encoder.complete();
        self.write_encoded(true)?;
        // Tens of MB, and the disk takes its time.
        self.parts.table = None;
        self.await_durable()?;
        Ok((self.report, self.parts.catalog))
    }

    /// The next stripe. While none comes, one of those is indexed for which there was no time.
    fn receive(&mut self, sealed: &FromRing) -> Result<Queued, RecvTimeoutError> {
        match sealed.try_next() {
            Ok(queued) => Ok(queued),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) if self.index_skipped() => Err(RecvTimeoutError::Timeout),
            Err(TryRecvError::Empty) => sealed.next(TICK),
        }
    }

    /// Indexes a stripe that was skipped; false when there is none that can be had now.
    fn index_skipped(&mut self) -> bool {
        let Some(first) = self.parts.late.first() else { return false };
        let shown = look(&self.parts.board);
        // A member that hangs would hold up whoever reads from it.
        if self.parts.table.is_none() || !shown.away.is_empty() {
            return false;
        }
        let (epoch, now) = (self.parts.epoch, self.parts.clock.boottime_ns());
        let segment = self.segment.get_or_insert_with(|| OpenSegment::new(first, epoch, now));
        match self.parts.late.next(shown.acknowledged, segment, self.parts.new_table) {
            Step::Indexed(packets) => {
                let mut board = self.parts.board.lock().unwrap_or_else(PoisonError::into_inner);
                board.unindexed -= packets;
                board.indexed_late += packets;
                true
            }
            Step::Unreadable => true,
            Step::NotNow => false,
        }
    }

    /// The same at the end of a recording, for a while.
    fn index_rest(&mut self) {
        let give_up_ns = self.parts.clock.boottime_ns().saturating_add(LATE_NS);
        while self.parts.late.first().is_some() && self.parts.clock.boottime_ns() < give_up_ns {
            if !self.index_skipped() {
                thread::park_timeout(Duration::from_millis(2));
            }
        }
    }

    fn stripe(&mut self, Queued { stripe: sealed, is_in_a_hurry }: &Queued) {
        if let Some(table) = &mut self.parts.table {
            table.find_names(!is_in_a_hurry);
        }
        for ((number, column), starts) in (0..).zip(&sealed.columns).zip(&sealed.starts) {
            let body = column.get(HEAD_BYTES..sealed.len).expect("a piece is a head and a body");
            self.take((sealed.stripe, number), self.parts.epoch, packets(body).with_starts(starts));
        }
        self.note_slot(sealed.stripe, Some(sealed.slot_cid));
    }

    fn take(&mut self, piece: (StripeId, u8), epoch: u32, body: Packets<'_>) {
        let now = self.parts.clock.boottime_ns();
        let skipped = self.parts.late.first();
        let first = skipped.map_or(piece.0, |skipped| skipped.min(piece.0));
        let segment = self.segment.get_or_insert_with(|| OpenSegment::new(first, epoch, now));
        segment.take(self.parts.table.as_mut(), piece, body);
    }

    fn note_slot(&mut self, stripe: StripeId, slot_cid: Option<[u8; 32]>) {
        if let Some(segment) = &mut self.segment {
            segment.ends_in_slot_of(stripe, slot_cid);
        }
    }

    fn close_if_due(&mut self) -> Result<(), index::Error> {
        let now = self.parts.clock.boottime_ns();
        let limits = &self.parts.limits;
        if self.segment.as_ref().is_some_and(|segment| segment.is_due(limits, now)) {
            self.close(Rest::GoesOn)?;
        }
        Ok(())
    }

    /// Hands the rows of the segment to the encoder, as the table makes them.
    fn close(&mut self, rest: Rest) -> Result<(), index::Error> {
        let Some(mut segment) = self.segment.take() else { return Ok(()) };
        let missed_packets = self.parts.late.end_segment(segment.last(), &mut segment);
        let Indexer { encoder, table, volume, recording, .. } = &mut self.parts;
        self.report.unread += segment.unread();
        let mut rows = encoder.begin(core::mem::take(&mut segment.rows))?;
        match (table, rest) {
            (Some(table), Rest::GoesOn) => table.cut(&mut rows),
            (Some(table), Rest::Last) => table.finish(&mut rows),
            (None, _) => {}
        }
        rows.finish(segment.meta(*volume, missed_packets, recording.clone()));
        self.closed.push_back(segment.identity());
        self.write_encoded(false)
    }

    /// Writes the indexes that the encoder has ready into the ring, or all that are under way.
    fn write_encoded(&mut self, wait: bool) -> Result<(), index::Error> {
        while let Some(encoded) = self.parts.encoder.next(wait)? {
            let identity = self.closed.pop_front().expect("a file for every segment, in order");
            // Without a writer there is no ring to put it into; the packets can be indexed again.
            if let Ok(places) = self.write_parts(&encoded) {
                self.note_written(encoded, identity, &places);
            }
        }
        Ok(())
    }

    fn note_written(&mut self, encoded: Encoded, identity: Option<Identity>, places: &[StripeId]) {
        let (Some(&first_part), Some(&last_part)) = (places.first(), places.last()) else { return };
        let parts = u16::try_from(places.len()).expect("parts are numbered with 16 bits");
        // The next index lists this one even before it is durable: acknowledgements come in order.
        let entry = encoded.entry(Some((first_part, parts)));
        self.parts.catalog.add(&[entry]);
        self.report.rows += entry.summary.sessions;
        self.report.segments += 1;
        self.report.index_bytes += entry.bytes;
        self.pending.push(Pending { last_part, entry, identity, parquet: encoded.parquet });
    }

    /// Cuts the file into parts, as many in a stripe as it has data columns.
    fn write_parts(&self, encoded: &Encoded) -> Result<Vec<StripeId>, WriterGone> {
        let Indexer { catalog, pool, tasks, data_columns, .. } = &self.parts;
        let older = catalog.directory();
        let largest = pool.buffer_size() - HEAD_BYTES - LOCAL_FRAME_BYTES;
        // Columns of a stripe have the same rows, so parts of about the same size waste least.
        let share = encoded.parquet.len() / data_columns + PART_BYTES_MIN.min(largest);
        let capacity = if *data_columns == 1 { largest } else { largest.min(share) };
        let blocks = split(&encoded.parquet, &encoded.summary, &older, capacity);
        let mut places = Vec::new();
        for blocks in blocks.chunks(*data_columns) {
            let longest = blocks.iter().map(Vec::len).max().unwrap_or(0);
            let rows = (longest + LOCAL_FRAME_BYTES).div_ceil(HEAD_BYTES);
            let rows = u16::try_from(rows).expect("parts fit a piece");
            let mut columns = Vec::new();
            for number in 0..*data_columns {
                let mut column = self.column()?;
                let block = blocks.get(number).map_or(&[][..], Vec::as_slice);
                let filled = fill_with_block(&mut column, block, rows);
                assert_eq!(filled, rows, "every column of a stripe has the same rows");
                columns.push(column);
            }
            let (answer, place) = sync_channel(1);
            let task = Task::IndexParts { columns, rows, answer };
            tasks.send(task).map_err(|_| WriterGone)?;
            let place = place.recv().map_err(|_| WriterGone)?;
            places.extend(blocks.iter().map(|_| place));
        }
        if let Some(&first_part) = places.first() {
            tasks.send(Task::IndexComplete { first_part }).map_err(|_| WriterGone)?;
        }
        Ok(places)
    }

    /// A column of the index's own pool: waiting for one of the packets' could wait for ourselves.
    fn column(&self) -> Result<Buffer, WriterGone> {
        // It comes back when its write completes, or never when the member has failed.
        self.parts.pool.take_timeout(COLUMN_WAIT).ok_or(WriterGone)
    }

    /// Stores the files of indexes that have become durable, and drops those of segments that
    /// retired or were given up.
    fn cache_durable(&mut self) -> Result<(), index::Error> {
        let shown = look(&self.parts.board);
        if shown.given_up_before > self.given_up_before {
            self.given_up_before = shown.given_up_before;
            let now = self.parts.clock.realtime();
            self.parts.catalog.retire(shown.tail, now, self.parts.files)?;
            self.parts.catalog.drop_groups(self.parts.files)?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let durable = |pending: &mut Pending| pending.last_part <= shown.acknowledged;
        for ready in self.pending.extract_if(.., durable) {
            let catalog = &mut self.parts.catalog;
            catalog.confirm(ready.entry.summary.first, ready.identity, self.parts.files);
            catalog.store(ready.entry, &ready.parquet, self.parts.files);
            catalog.retire(shown.tail, self.parts.clock.realtime(), self.parts.files)?;
        }
        Ok(())
    }

    /// At the end of a recording: the last index becomes durable within a flush or two.
    fn await_durable(&mut self) -> Result<(), index::Error> {
        let give_up_ns = self.parts.clock.boottime_ns().saturating_add(AWAIT_NS);
        while !self.pending.is_empty() && self.parts.clock.boottime_ns() < give_up_ns {
            thread::park_timeout(Duration::from_millis(2));
            self.cache_durable()?;
        }
        Ok(())
    }

    /// Indexes the data stripes behind the newest segment, with a table of their own: their
    /// sessions ended with the recording that wrote them.
    fn catch_up(&mut self, reader: &Reader) -> Result<(), index::Error> {
        let Some(span) = reader.span() else { return Ok(()) };
        let indexed = self.parts.catalog.directory().first().map(|newest| newest.summary.last);
        let first = indexed.map_or(span.tail, |last| last.sequence).max(span.tail);
        let piece = u64::from(reader.geometry().piece_bytes);
        if span.acknowledged.sequence.saturating_sub(first) * piece > CATCH_UP_BYTES_MAX {
            return Ok(());
        }
        if self.parts.table.is_none() {
            return Ok(());
        }
        let live = self.parts.table.replace((self.parts.new_table)());
        let recording = self.parts.recording.take();
        let mut buffers = vec![vec![0; reader.piece_bytes()]; self.parts.data_columns];
        for sequence in first..=span.acknowledged.sequence {
            // Before it grew the volume had fewer.
            let data_columns = reader.membership().geometry_at(sequence).data_columns;
            let columns = (0..data_columns).zip(&mut buffers);
            let slots = columns.filter_map(|(column, buffer)| {
                Some((reader.slot(sequence, column, buffer).ok()?, &*buffer))
            });
            let slots: Vec<_> = slots.collect();
            let mut pieces: Vec<(&StripeInSlot, &Vec<u8>)> = slots
                .iter()
                .flat_map(|(slot, buffer)| slot.stripes.iter().map(move |piece| (piece, *buffer)))
                .collect();
            pieces.sort_by_key(|(piece, _)| (piece.head.stripe.stripe, piece.head.piece.column));
            let slot_cid = pieces.first().map(|(piece, _)| &piece.head);
            let slot_cid = slot_cid.filter(|head| head.stripe.stripe.sub == 0).map(|head| head.cid);
            for (stripe, buffer) in pieces {
                let head = &stripe.head.stripe;
                let wanted = head.kind == Kind::Data
                    && indexed.is_none_or(|indexed| head.stripe > indexed)
                    && stripe.bad_rows.is_empty();
                if !wanted {
                    continue;
                }
                let other_epoch =
                    self.segment.as_ref().is_some_and(|open| open.epoch() != head.epoch);
                if other_epoch {
                    self.close(Rest::Last)?;
                }
                let column = stripe.head.piece.column;
                if column == 0 {
                    // A segment ends with a stripe, never inside one.
                    self.close_if_due()?;
                }
                let body = Reader::body(&stripe.head, buffer);
                self.take((head.stripe, column), head.epoch, packets(body));
                self.note_slot(head.stripe, slot_cid);
            }
        }
        self.close(Rest::Last)?;
        self.parts.table = live;
        self.parts.recording = recording;
        Ok(())
    }
}
