//! The thread that keeps the indexer busy: sealed pieces to it, segments of session rows back from
//! it and into the ring.
//!
//! What is handed over, in this order: live stripes; those for which there was no time ([`Late`]);
//! stretches that were left without an index by a crash or by an indexer that died ([`Backlog`]).
//! Nothing that the indexer does or fails to do holds up the ring writer: its queue fills, and then
//! stripes are left out.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError};
use std::thread;

use core::mem;
use core::time::Duration;

use device::Buffer;
use format::directory::{SegmentEntry, Summary, split};
use format::head::{HEAD_BYTES, StripeId};
use format::local::LOCAL_FRAME_BYTES;
use format::piece::fill_with_block;
use index::{Catalog, Encoded, Identity};
use indexer::{Closing, Death, Event, Piece, Poison, Rest, RunKind, SegmentsBefore, Stripe};
use stage::channel;
use units::number::to_u64;
use units::{Epoch, Sequence, Timestamp};
use volume::Reader;

use crate::backlog::{self, Backlog, Stretch};
use crate::index_directory;
use crate::index_parts::{Indexer, Resumes};
use crate::index_queue::{FromRing, Queued};
use crate::late::{self, Left};
use crate::memory::PENDING_BYTES_MAX;
use crate::segment::OpenSegment;
use crate::status::{IndexerReport, WriterStatus, status_of};
use crate::task::Task;
use crate::waits::Wait;
use events::EventKind;

/// How often due segments and durable indexes are looked for while nothing arrives.
const TICK: Duration = Duration::from_millis(100);
/// The same while segments are being encoded.
const ENCODING_TICK: Duration = Duration::from_millis(5);
/// Space in every part for the directory and the frame of the block.
const PART_BYTES_MIN: usize = 128 << 10;
/// How often a thread that waits for the ring writer looks whether the index is given up.
const LISTEN: Duration = Duration::from_millis(100);
/// How long the end of a recording goes on indexing what there was no time for.
const LATE_NS: i64 = 2_000_000_000;
/// The same where packets come from files, which no sender waits for.
const LATE_OF_FILES_NS: i64 = 60_000_000_000;
/// How long the end of a recording waits for its last index before it leaves the cache without it.
const AWAIT_NS: i64 = 5_000_000_000;

/// An index on its way to being durable: only then may the cache know it.
struct Pending {
    last_part: StripeId,
    entry: SegmentEntry,
    identity: Option<Identity>,
    parquet: Vec<u8>,
}

/// A segment that is being encoded.
struct Closed {
    identity: Option<Identity>,
    /// Its packets count as unindexed so far.
    is_counted: bool,
    unread: u64,
}

/// The state of the thread.
pub(crate) struct Run<'a> {
    parts: Indexer<'a>,
    live: Option<OpenSegment>,
    past: Option<OpenSegment>,
    /// Opening of the volume that wrote what the past run has.
    past_epoch: Option<Epoch>,
    resumes: Resumes,
    backlog: Backlog,
    /// By their first stripes.
    closed: BTreeMap<StripeId, Closed>,
    pending: Vec<Pending>,
    poison: Poison,
    /// The segment written last is not in the newest directory.
    is_unlisted: bool,
    /// It was said that no indexer can be started.
    is_said: bool,
    /// Segments in a row whose rows will not outlive their packets.
    unkept: u64,
    /// Files of what lies before are gone.
    given_up_before: Sequence,
    report: IndexerReport,
}

/// An index has no place in the ring.
enum Unplaced {
    /// The ring writer is gone.
    WriterGone,
    /// The recording goes on without the index.
    GivenUp,
}

/// Whether more live stripes may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packets {
    MayCome,
    HaveEnded,
}

impl<'a> Run<'a> {
    pub(crate) fn new(parts: Indexer<'a>) -> Self {
        Self {
            live: None,
            past: None,
            past_epoch: None,
            resumes: Resumes::Past,
            backlog: Backlog::default(),
            closed: BTreeMap::new(),
            pending: Vec::new(),
            poison: Poison::of_earlier(parts.files),
            is_unlisted: false,
            is_said: false,
            unkept: 0,
            given_up_before: Sequence(0),
            report: IndexerReport::default(),
            parts,
        }
    }

    /// Indexes the sealed pieces until they end, and what was left without an index while there is
    /// time. Gives what the index directory is known to hold.
    pub(crate) fn run(
        mut self,
        sealed: &FromRing,
        earlier: Reader,
    ) -> Result<(IndexerReport, Catalog), index::Error> {
        let indexed = self.parts.catalog.directory().first().map(|newest| newest.summary.last);
        self.backlog.catch_up(&earlier, indexed, self.parts.epoch);
        // A disk that is pulled keeps its name while a process has it open, and comes back by
        // another.
        drop(earlier);
        while self.hand_over(sealed) == Packets::MayCome {
            self.hear(sealed);
            self.cache_durable()?;
            self.let_go();
        }
        self.finish();
        self.await_durable()?;
        self.report.deaths = self.parts.owner.deaths();
        self.report.notes.extend(self.parts.owner.take_notes());
        self.report.notes.extend(self.poison.notes());
        Ok((self.report, self.parts.catalog))
    }

    /// Where the recording goes on without the index, the indexer ends, and what it had in hand is
    /// indexed later. This thread is here, so it waits for no other thread: the index goes on, too.
    fn let_go(&mut self) {
        if !self.parts.waits.is_without_index() {
            return;
        }
        if let Some(death) = self.parts.owner.give_up(self.parts.clock) {
            self.died(&death);
        }
        for stripe in self.parts.owner.forget(|_| true) {
            self.take(Event::Unavailable(Box::new(stripe)));
        }
        self.parts.waits.index_is_back();
    }

    /// Hands over what the queue takes: live stripes, or else what is late, or else past.
    fn hand_over(&mut self, sealed: &FromRing) -> Packets {
        while self.has_room() {
            match sealed.try_next() {
                Ok(queued) => self.push_live(queued),
                Err(TryRecvError::Disconnected) => return Packets::HaveEnded,
                Err(TryRecvError::Empty) => {
                    self.hand_over_earlier();
                    return Packets::MayCome;
                }
            }
        }
        Packets::MayCome
    }

    /// A segment that is due ends before anything else is handed over.
    fn has_room(&mut self) -> bool {
        let is_due = self.is_due(RunKind::Live) || self.is_due(RunKind::Past);
        if is_due && self.parts.owner.in_hand() == 0 {
            self.close_if_due();
            return self.parts.owner.has_room();
        }
        !is_due && self.parts.owner.has_room()
    }

    /// Waits for the indexer, or for a stripe where it has nothing to do, and takes in what came.
    fn hear(&mut self, sealed: &FromRing) {
        self.show_unavailable();
        let owner = &mut self.parts.owner;
        let is_waiting = owner.in_hand() > 0;
        let patience = if is_waiting { TICK } else { Duration::ZERO };
        if let Some(event) = owner.poll(self.parts.clock, patience) {
            self.take(event);
            return;
        }
        if is_waiting {
            return;
        }
        let tick = if self.parts.owner.is_idle() { TICK } else { ENCODING_TICK };
        match sealed.next(tick) {
            Ok(queued) => self.push_live(queued),
            // The next look sees that they have ended.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn push_live(&mut self, Queued { stripe: sealed, without_names }: Queued) {
        if self.resumes == Resumes::LiveToo {
            self.resumes = Resumes::Past;
            self.resume(RunKind::Live, (sealed.stripe, self.parts.epoch), sealed.times.min);
        }
        let body = HEAD_BYTES..sealed.len;
        let pieces = (0..).zip(sealed.columns).zip(sealed.starts);
        let pieces = pieces.map(|((column, buffer), starts)| {
            let (memory, body) = (0, body.clone());
            Piece { memory, buffer, column, body, starts }
        });
        self.parts.owner.push(Stripe {
            run_kind: RunKind::Live,
            id: sealed.stripe,
            epoch: self.parts.epoch,
            is_late: false,
            without_names,
            packets: sealed.packets,
            times: sealed.times,
            slot_cid: Some(sealed.slot_cid),
            pieces: pieces.collect(),
        });
    }

    /// While nothing live waits: one stripe for which there was no time, or one of a stretch that
    /// was left without an index.
    fn hand_over_earlier(&mut self) {
        let is_late = self.parts.late.is_waiting();
        if !is_late && self.backlog.is_empty() {
            self.parts.read_back.rest();
            return;
        }
        if !self.parts.has_sessions || self.parts.owner.is_unavailable() {
            return;
        }
        let shown = status_of(&self.parts.status);
        // A member that hangs would hold up every reader. What an earlier recording left
        // is read by the members that were there at the beginning.
        let is_of_earlier = self.backlog.current().is_some_and(|stretch| !stretch.is_counted);
        if !shown.away.is_empty() {
            if is_of_earlier {
                self.hand_over_past(&shown);
            }
            return;
        }
        if is_late {
            match self.parts.late.next(shown.acknowledged, &mut self.parts.read_back) {
                late::Step::Read(stripe) => return self.parts.owner.push(*stripe),
                late::Step::Unreadable => return,
                late::Step::NotNow => {}
            }
        }
        self.hand_over_past(&shown);
    }

    fn hand_over_past(&mut self, shown: &WriterStatus) {
        let held = (shown.tail, shown.acknowledged);
        let step = self.backlog.next(held, &mut self.parts.read_back);
        self.note_damage();
        match step {
            backlog::Step::Stripe(stripe) => {
                if self.past_epoch.is_some_and(|epoch| epoch != stripe.epoch) {
                    // Sessions ended with the recording that wrote them.
                    self.backlog.unread(*stripe);
                    self.close_when_free(RunKind::Past, Rest::Last);
                } else {
                    if self.past_epoch.replace(stripe.epoch).is_none() {
                        self.resume(RunKind::Past, (stripe.id, stripe.epoch), stripe.times.min);
                    }
                    self.parts.owner.push(*stripe);
                }
            }
            backlog::Step::End => {
                if self.parts.owner.in_hand() == 0 {
                    // Behind what an indexer died of in this recording sessions may go on.
                    let is_of_this = self.past_epoch == Some(self.parts.epoch);
                    let rest = if is_of_this { Rest::Elsewhere } else { Rest::Last };
                    self.close(RunKind::Past, rest);
                    self.backlog.end_current();
                }
            }
            backlog::Step::GiveUp(stretch) => self.give_up(&stretch),
            backlog::Step::NotNow => {}
        }
    }

    /// Sessions of the segments before the stripe `first`, of the same opening, go on in a run that
    /// begins with it, whose packets came at `at` or later.
    fn resume(&mut self, run_kind: RunKind, (first, epoch): (StripeId, Epoch), at: Timestamp) {
        let is_away = !status_of(&self.parts.status).away.is_empty();
        if self.resumes == Resumes::Nothing || is_away || !self.parts.has_sessions {
            return;
        }
        let entries = SegmentsBefore::among(&self.parts.catalog.directory(), first, at);
        // Without the key sessions begin anew.
        let file =
            |entry: SegmentEntry| self.parts.keys.open(self.parts.read_back.index(entry.index)?);
        let files = entries.into_iter().filter_map(file).collect();
        self.parts.owner.resume(run_kind, SegmentsBefore { epoch, at, files });
    }

    fn note_damage(&mut self) {
        let unreadable = self.backlog.unreadable();
        if unreadable > self.report.unreadable {
            self.report.unreadable = unreadable;
            let text = "packets of an earlier recording cannot be read: verify lists the damage";
            self.parts.events.say(EventKind::Damage, "", text.to_owned());
        }
    }

    /// A stretch gets a segment that says that its stripes shall have no rows.
    fn give_up(&mut self, stretch: &Stretch) {
        if self.parts.owner.in_hand() > 0 {
            return;
        }
        self.backlog.end_current();
        let now = self.parts.clock.boottime_ns();
        let mut open = OpenSegment::new(stretch.first, stretch.epoch, now);
        open.leaves_out_all(stretch.last, stretch.packets, stretch.times);
        self.poison.give_up(stretch.first, stretch.packets);
        self.show_losses();
        self.past = Some(open);
        self.close(RunKind::Past, Rest::Last);
    }

    /// Takes in what came of something that was handed over.
    fn take(&mut self, event: Event) {
        match event {
            Event::Taken(stripe, taken) => {
                self.segment_of(&stripe).took(&stripe, &taken);
                self.report.gave_way.add(taken.gave_way);
                if stripe.is_late {
                    self.now_indexed(taken.packets);
                }
            }
            Event::Segment(closing, encoded) => self.write_encoded(&closing, encoded),
            Event::Failed(closing, why) => {
                self.note(format!("a segment could not be indexed: {why}"));
                self.lost(&closing, true);
            }
            Event::Died(death) => self.died(&death),
            Event::Poison(stripe) => {
                self.poison.keep(&stripe, self.parts.files);
                if stripe.run_kind == RunKind::Live && !stripe.is_late {
                    self.now_unindexed(stripe.packets);
                }
                self.segment_of(&stripe).leaves_out(&stripe);
                self.show_losses();
            }
            Event::Unavailable(stripe) => match stripe.run_kind {
                RunKind::Live => {
                    if !stripe.is_late {
                        self.now_unindexed(stripe.packets);
                    }
                    self.parts.late.skip(&stripe);
                }
                RunKind::Past => {
                    self.backlog.unread(*stripe);
                    self.past_again();
                }
            },
        }
    }

    /// Shows what was left out, and how often the indexer ended.
    fn show_losses(&self) {
        let mut status = stage::lock(&self.parts.status);
        status.left_out = self.poison.packets();
        let deaths = self.parts.owner.deaths();
        if deaths > mem::replace(&mut status.indexer_deaths, deaths) {
            let text = format!(
                "the indexer died, {deaths} times so far; packets are still stored, and the next \
                 one makes their rows"
            );
            self.parts.events.say(EventKind::IndexerEnded, "", text);
        }
    }

    /// Says once that there is no next one.
    fn show_unavailable(&mut self) {
        let why = self.parts.owner.why_unavailable();
        if self.is_said == why.is_some() {
            return;
        }
        self.is_said = why.is_some();
        if let Some(why) = why {
            let text = format!(
                "no indexer can be started ({why}): packets are stored without rows, which queries \
                 make on the way; start the recorder again"
            );
            // Apart from how often one ended, so that neither is held back for the other.
            self.parts.events.say(EventKind::IndexerEnded, "start", text);
        }
    }

    fn segment_of(&mut self, stripe: &Stripe) -> &mut OpenSegment {
        let now = self.parts.clock.boottime_ns();
        match stripe.run_kind {
            RunKind::Live => {
                let skipped = self.parts.late.first();
                let first = skipped.map_or(stripe.id, |skipped| skipped.min(stripe.id));
                let new = || OpenSegment::new(first, self.parts.epoch, now);
                self.live.get_or_insert_with(new)
            }
            RunKind::Past => {
                let new = || OpenSegment::new(stripe.id, stripe.epoch, now);
                self.past.get_or_insert_with(new)
            }
        }
    }

    /// The indexer is gone, and with it the rows of the segments under way.
    fn died(&mut self, death: &Death) {
        self.note(format!("the indexer died: {}", death.how));
        self.resumes.note(death);
        for closing in &death.closings {
            self.lost(closing, death.are_closings_to_blame);
        }
        if let Some(open) = self.live.take() {
            // Its late stripes count as unindexed again, the others do for the first time.
            self.now_unindexed(open.packets);
            // Those that wait are of it, and count already.
            self.parts.late.end_segment(open.last);
            let late = self.parts.owner.forget(|stripe| stripe.is_late);
            late.iter().filter(|it| it.id > open.last).for_each(|it| self.parts.late.skip(it));
            self.backlog.add(Stretch::of(&open));
        }
        self.past_again();
        self.show_losses();
    }

    /// What the past run has under way is done again.
    fn past_again(&mut self) {
        self.past_epoch = None;
        let in_hand = self.parts.owner.forget(|stripe| stripe.run_kind == RunKind::Past);
        let from = self.past.take().map(|open| open.first);
        let from = from.or(in_hand.first().map(|stripe| stripe.id));
        self.backlog.again(from);
    }

    /// A closed segment did not come back.
    fn lost(&mut self, closing: &Closing, is_to_blame: bool) {
        let Some(closed) = self.closed.remove(&closing.first) else { return };
        if closing.run_kind == RunKind::Live {
            self.now_unindexed(closing.packets.saturating_sub(closing.missed_packets));
        }
        self.backlog.failed(
            closing,
            is_to_blame,
            closed.is_counted || closing.run_kind == RunKind::Live,
        );
    }

    fn now_unindexed(&self, packets: u64) {
        let mut status = stage::lock(&self.parts.status);
        status.unindexed = status.unindexed.saturating_add(packets);
    }

    fn now_indexed(&self, packets: u64) {
        let mut status = stage::lock(&self.parts.status);
        status.unindexed = status.unindexed.saturating_sub(packets);
        status.indexed_late = status.indexed_late.saturating_add(packets);
    }

    /// The first few times; all are counted.
    fn note(&mut self, line: String) {
        const NOTES_MAX: usize = 16;
        if self.report.notes.len() < NOTES_MAX && !self.report.notes.contains(&line) {
            self.report.notes.push(line);
        }
    }

    fn is_due(&self, run_kind: RunKind) -> bool {
        let open = match run_kind {
            RunKind::Live => &self.live,
            RunKind::Past => &self.past,
        };
        let now = self.parts.clock.boottime_ns();
        open.as_ref().is_some_and(|open| open.is_due(&self.parts.limits, now))
    }

    fn close_if_due(&mut self) {
        for run_kind in RunKind::ALL {
            if self.is_due(run_kind) {
                self.close(run_kind, Rest::GoesOn);
            }
        }
    }

    fn close_when_free(&mut self, run_kind: RunKind, rest: Rest) {
        if self.parts.owner.in_hand() == 0 {
            self.close(run_kind, rest);
        }
    }

    /// Ends the segment of a run: nothing is in hand.
    fn close(&mut self, run_kind: RunKind, rest: Rest) {
        let open = match run_kind {
            RunKind::Live => self.live.take(),
            RunKind::Past => {
                self.past_epoch = self.past_epoch.filter(|_| rest == Rest::GoesOn);
                self.past.take()
            }
        };
        let Some(mut open) = open else { return };
        let missed = match run_kind {
            RunKind::Live => self.parts.late.end_segment(open.last),
            RunKind::Past => {
                self.backlog.closed(open.last);
                Left::NONE
            }
        };
        let closing = open.closing((run_kind, rest), missed);
        let is_counted =
            run_kind == RunKind::Past && self.backlog.current().is_some_and(|it| it.is_counted);
        let closed = Closed { identity: open.identity(), is_counted, unread: open.unread };
        self.closed.insert(closing.first, closed);
        if let Some(Event::Died(death)) = self.parts.owner.close(closing, self.parts.clock) {
            self.died(&death);
        }
    }

    /// Puts an index into the ring.
    fn write_encoded(&mut self, closing: &Closing, encoded: Encoded) {
        if !self.closed.contains_key(&closing.first) {
            return;
        }
        let Some(in_ring) = self.parts.keys.seal(&encoded.parquet) else {
            // Nothing was recorded, and so nothing is indexed that could be read.
            self.closed.remove(&closing.first);
            return;
        };
        let (bytes, placed) = (to_u64(in_ring.len()), self.write_parts(&in_ring, &encoded.summary));
        if matches!(placed, Err(Unplaced::GivenUp)) {
            return self.lost(closing, false);
        }
        let Some(closed) = self.closed.remove(&closing.first) else { return };
        // Without a writer there is no ring to put it into; the packets can be indexed again.
        if let Ok(places) = placed {
            if closed.is_counted {
                self.now_indexed(closing.packets.saturating_sub(closing.missed_packets));
            }
            self.report.unread = self.report.unread.saturating_add(closed.unread);
            drop(in_ring);
            self.note_written((encoded, bytes), closed.identity, &places);
        }
    }

    fn note_written(
        &mut self,
        (encoded, bytes): (Encoded, u64),
        identity: Option<Identity>,
        places: &[StripeId],
    ) {
        let (Some(&first_part), Some(&last_part)) = (places.first(), places.last()) else { return };
        let parts = u16::try_from(places.len()).expect("parts are numbered with 16 bits");
        // The next index lists this one even before it is durable: acknowledgements come in order.
        let entry = SegmentEntry { bytes, ..encoded.entry(Some((first_part, parts))) };
        self.parts.catalog.add(&[entry]);
        self.report.rows = self.report.rows.saturating_add(entry.summary.sessions);
        self.report.segments += 1;
        self.report.index_bytes = self.report.index_bytes.saturating_add(entry.bytes);
        let held: usize = self.pending.iter().map(|pending| pending.parquet.len()).sum();
        let fits = to_u64(held.saturating_add(encoded.parquet.len())) <= PENDING_BYTES_MAX;
        // Without its file the cache loads it from the ring when it is needed.
        if fits {
            self.pending.push(Pending { last_part, entry, identity, parquet: encoded.parquet });
        }
    }

    /// Cuts the file into parts, as many in a stripe as it has data columns.
    fn write_parts(
        &mut self,
        parquet: &[u8],
        summary: &Summary,
    ) -> Result<Vec<StripeId>, Unplaced> {
        let Indexer { catalog, pool, data_columns, .. } = &self.parts;
        let mut older = catalog.directory();
        let newest = older.first().map(|entry| entry.summary.first);
        let is_newest = newest.is_none_or(|newest| newest <= summary.first);
        older.retain(|entry| entry.summary.last < summary.first);
        let largest = pool.buffer_size() - HEAD_BYTES - LOCAL_FRAME_BYTES;
        // Columns of a stripe have the same rows, so parts of about the same size waste least.
        let share = parquet.len() / data_columns + PART_BYTES_MIN.min(largest);
        let capacity = if *data_columns == 1 { largest } else { largest.min(share) };
        let blocks = split(parquet, summary, &older, capacity);
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
            let place = self.place(columns, rows)?;
            places.extend(blocks.iter().map(|_| place));
        }
        // Heads point to the newest segment, whose directory has all others.
        if let Some(&first_part) = places.first().filter(|_| is_newest) {
            self.send(Task::IndexComplete { first_part })?;
        }
        self.is_unlisted = !is_newest;
        Ok(places)
    }

    /// A segment of the past that was written behind a newer one is in no directory: the newest
    /// one's index is written once more, with a directory that has it.
    fn list_all(&mut self) {
        let newest = self.parts.catalog.directory().first().copied();
        let Some(newest) = newest.filter(|_| self.is_unlisted) else { return };
        // Where that cannot be, queries index the stretch on the way.
        let Some(parquet) = self.parts.read_back.index(newest.index) else { return };
        if let Ok(places) = self.write_parts(&parquet, &newest.summary) {
            let encoded = Encoded { parquet, summary: newest.summary };
            let parts = u16::try_from(places.len()).expect("parts are numbered with 16 bits");
            let first_part = places.first().copied();
            self.parts.catalog.add(&[encoded.entry(first_part.map(|first| (first, parts)))]);
        }
    }

    /// A column of the index's own pool: waiting for one of the packets' could wait for ourselves.
    fn column(&self) -> Result<Buffer, Unplaced> {
        let _waiting = self.parts.waits.begin(Wait::IndexForColumn, self.parts.clock);
        loop {
            // It comes back when its write completes, or never when the member has failed.
            if let Some(column) = self.parts.pool.take_timeout(LISTEN) {
                return Ok(column);
            }
            self.goes_on()?;
        }
    }

    /// Has the ring writer append a stripe of the index, and gives its place.
    fn place(&self, columns: Vec<Buffer>, rows: u16) -> Result<StripeId, Unplaced> {
        let (answer, place) = channel(1);
        self.send(Task::IndexParts { columns, rows, answer })?;
        let _waiting = self.parts.waits.begin(Wait::IndexForPlace, self.parts.clock);
        loop {
            match place.recv_timeout(LISTEN) {
                Ok(place) => return Ok(place),
                Err(RecvTimeoutError::Disconnected) => return Err(Unplaced::WriterGone),
                Err(RecvTimeoutError::Timeout) => self.goes_on()?,
            }
        }
    }

    /// Waits for space in the ring writer's queue.
    fn send(&self, task: Task) -> Result<(), Unplaced> {
        let _waiting = self.parts.waits.begin(Wait::IndexForPlace, self.parts.clock);
        let mut task = task;
        loop {
            match self.parts.tasks.try_send(task) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(Unplaced::WriterGone),
                Err(TrySendError::Full(back)) => task = back,
            }
            self.goes_on()?;
            stage::sleep(Duration::from_millis(2));
        }
    }

    fn goes_on(&self) -> Result<(), Unplaced> {
        if self.parts.waits.is_without_index() { Err(Unplaced::GivenUp) } else { Ok(()) }
    }

    /// Stores the files of indexes that have become durable, and drops those of segments that
    /// retired or were given up.
    fn cache_durable(&mut self) -> Result<(), index::Error> {
        let shown = status_of(&self.parts.status);
        let _waiting = self.parts.waits.begin(Wait::IndexForFiles, self.parts.clock);
        if shown.given_up_before > self.given_up_before {
            self.given_up_before = shown.given_up_before;
            let now = self.parts.clock.realtime();
            self.parts.catalog.retire(shown.tail, now, self.parts.files)?;
            self.parts.catalog.drop_groups(self.parts.files)?;
            self.poison.retire(shown.tail, self.parts.files).unwrap_or_default();
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let durable = |pending: &mut Pending| pending.last_part <= shown.acknowledged;
        for ready in self.pending.extract_if(.., durable) {
            let catalog = &mut self.parts.catalog;
            catalog.confirm(ready.entry.summary.first, ready.identity, self.parts.files);
            let stored = catalog.keep(ready.entry, &ready.parquet, self.parts.files);
            if catalog.keeps_rows() {
                index_directory::show_kept(&mut self.unkept, stored, &self.parts.events);
            }
            catalog.retire(shown.tail, self.parts.clock.realtime(), self.parts.files)?;
            self.poison.retire(shown.tail, self.parts.files).unwrap_or_default();
        }
        Ok(())
    }

    /// The end of a recording: what is in hand, for a while what there was no time for, and the
    /// last segments. An indexer that dies meanwhile leaves something to be done again.
    fn finish(&mut self) {
        // Packets wait for who takes over, and that one can index what is left.
        let is_handed_over = self.parts.control.until().is_some();
        let longest = match self.parts.may_wait {
            _ if is_handed_over => 0,
            true => LATE_OF_FILES_NS,
            false => LATE_NS,
        };
        let give_up_ns = self.parts.clock.boottime_ns().saturating_add(longest);
        loop {
            let deaths = self.parts.owner.deaths();
            self.index_rest(give_up_ns);
            self.close_all();
            let has_time = self.parts.clock.boottime_ns() < give_up_ns;
            let has_died = self.parts.owner.deaths() > deaths;
            if !(has_time && has_died && self.has_rest()) {
                break;
            }
        }
        self.report.cpu = self.parts.owner.end();
        self.list_all();
    }

    /// Something is left that an indexer could be given.
    fn has_rest(&mut self) -> bool {
        let is_left = self.parts.late.is_waiting() || !self.backlog.is_empty();
        is_left && self.parts.has_sessions && !self.parts.owner.is_unavailable()
    }

    /// Until all is done, the time is over, or nothing was done for a while.
    fn index_rest(&mut self, give_up_ns: i64) {
        let mut moved_ns = self.parts.clock.boottime_ns();
        loop {
            let has_time = self.parts.clock.boottime_ns() < give_up_ns;
            let unreadable = self.report.unreadable;
            if self.has_room() && has_time {
                self.hand_over_earlier();
            }
            let now = self.parts.clock.boottime_ns();
            if let Some(event) = self.parts.owner.poll(self.parts.clock, ENCODING_TICK) {
                moved_ns = now;
                self.take(event);
            } else if self.report.unreadable > unreadable {
                moved_ns = now;
            } else if self.parts.owner.is_idle() {
                let is_stuck = now.saturating_sub(moved_ns) >= LATE_NS;
                if is_stuck || !(has_time && self.has_rest()) {
                    return;
                }
                stage::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Ends the last segments, and writes them.
    fn close_all(&mut self) {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        self.parts.owner.use_threads(threads.try_into().unwrap_or(1));
        self.close(RunKind::Past, Rest::Last);
        self.close(RunKind::Live, Rest::Last);
        while !self.parts.owner.is_idle() {
            if let Some(event) = self.parts.owner.poll(self.parts.clock, TICK) {
                self.take(event);
            }
            self.let_go();
        }
    }

    /// At the end of a recording: the last index becomes durable within a flush or two.
    fn await_durable(&mut self) -> Result<(), index::Error> {
        let give_up_ns = self.parts.clock.boottime_ns().saturating_add(AWAIT_NS);
        while !self.pending.is_empty() && self.parts.clock.boottime_ns() < give_up_ns {
            stage::sleep(Duration::from_millis(2));
            self.cache_durable()?;
        }
        Ok(())
    }
}
