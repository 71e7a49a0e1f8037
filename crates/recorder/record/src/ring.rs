//! The ring writer's thread: filled columns in, sealed stripes out, acknowledged in order.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;

use core::ops::Range;
use core::time::Duration;

use crate::columns::{Columns, Taken, Urgency};
use crate::control::{Questions, Step};
use crate::covered::Covered;
use crate::expiry::Expiry;
use crate::index_queue::{SealedStripe, ToIndexer};
use crate::late::{Skipped, Skips};
use crate::ledger::Ledger;
use crate::spares::Spares;
use crate::status::SharedStatus;
use crate::task::{FilledColumn, Task};
use crate::waits::{Wait, Waits};
use device::{Buffer, Device};
use format::head::{Kind, StripeId, Totals};
use format::piece::{InterfaceUse, PieceBuilder};
use format::superblock::Spare;
use indexer::Times;
use recording::{Change, Comeback};
use stage::Receiver;
use units::{Clock, MemberId, QueueId, Sequence, Timestamp};
use volume::{NewPlace, Seat};
use writer::{Filled, Returning, Writer, WriterCounters};

/// A cut piece is split only if this many rows of it fit the current slot: a head costs one.
const SPLIT_ROWS_MIN: u16 = 4;
/// A sign of life while nothing arrives.
const HEARTBEAT_NS: i64 = 60_000_000_000;
/// How soon after the last stripe the watermark is put on the disk when nothing follows.
const PUBLISH_NS: i64 = 200_000_000;
/// How long the thread sleeps at most while writes are on their way.
const POLL: Duration = Duration::from_millis(2);
/// How long it sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_millis(50);

/// What the thread is made of, besides the writer.
pub(crate) struct RingParts<'a> {
    pub(crate) columns: Columns,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) status: SharedStatus,
    pub(crate) ledger: &'a Ledger,
    pub(crate) indexer: ToIndexer,
    /// Stripes for which it had no time.
    pub(crate) skips: Skips,
    /// How long a column may wait for others.
    pub(crate) cut_after_ns: i64,
    pub(crate) expiry: Expiry,
    pub(crate) spares: Spares,
    pub(crate) questions: Questions,
    pub(crate) covered: Covered,
    pub(crate) waits: Waits,
}

/// The state of the thread.
pub(crate) struct RingWriter<'a> {
    writer: Writer,
    columns: Columns,
    clock: &'a dyn Clock,
    status: SharedStatus,
    ledger: &'a Ledger,
    /// To the indexer, until the packets end.
    indexer: Option<ToIndexer>,
    skips: Skips,
    waiting: VecDeque<(StripeId, Vec<InterfaceUse>)>,
    /// Columns that wait for enough others to make a stripe.
    pending: Vec<FilledColumn>,
    /// How long the oldest of them may wait.
    cut_after_ns: i64,
    expiry: Expiry,
    /// Newest stripe with packets or index, and the newest one that a head on the disk covers.
    newest: StripeId,
    published: StripeId,
    last_append_ns: i64,
    spares: Spares,
    /// Expelled members that were taken note of.
    expelled: usize,
    /// Those that failed although they were there.
    failed: Vec<MemberId>,
    /// Those whose place no spare has taken so far, and whether one may now.
    vacated: Vec<MemberId>,
    /// Devices that failed when they were to join.
    useless_spares: Vec<[u8; 16]>,
    may_replace: bool,
    questions: Questions,
    covered: Covered,
    /// The rest of a column that was split is not yet written.
    is_split: bool,
    waits: Waits,
}

impl<'a> RingWriter<'a> {
    pub(crate) fn new(writer: Writer, parts: RingParts<'a>) -> Self {
        let RingParts { columns, clock, status, indexer, skips, spares, .. } = parts;
        Self {
            published: writer.acknowledged(),
            newest: writer.acknowledged(),
            writer,
            columns,
            clock,
            status,
            ledger: parts.ledger,
            indexer: Some(indexer),
            skips,
            waiting: VecDeque::new(),
            pending: Vec::new(),
            cut_after_ns: parts.cut_after_ns,
            expiry: parts.expiry,
            last_append_ns: clock.boottime_ns(),
            spares,
            expelled: 0,
            failed: Vec::new(),
            vacated: Vec::new(),
            useless_spares: Vec::new(),
            may_replace: false,
            questions: parts.questions,
            covered: parts.covered,
            is_split: false,
            waits: parts.waits,
        }
    }
}

impl RingWriter<'_> {
    /// Runs until every sender is gone, then acknowledges everything and closes the volume.
    pub(crate) fn run(mut self, tasks: &Receiver<Task>) -> Result<WriterCounters, volume::Error> {
        self.expire()?;
        loop {
            let wait = match (self.writer.in_flight(), self.writer.is_all_durable()) {
                (0, true) => IDLE,
                (0, false) => POLL,
                _ => Duration::ZERO,
            };
            match tasks.recv_timeout(wait) {
                Ok(Task::Packets(filled)) => self.packets(filled)?,
                Ok(Task::IndexParts { columns, rows, answer }) => {
                    let filled = Filled::without_packets(columns, Kind::Index, rows);
                    let place = self.append(filled)?.stripe;
                    // An indexer that is gone need not hear it.
                    answer.send(place).unwrap_or_default();
                }
                Ok(Task::IndexComplete { first_part }) => {
                    self.writer.set_newest_index(first_part);
                    if self.indexer.is_none() {
                        // Nothing follows that could share the flush, and the indexer waits for it.
                        self.drain()?;
                    }
                }
                Ok(Task::Repair { repair, answer }) => {
                    let number = self.writer.repair(repair, self.clock);
                    // Who asked may have gone.
                    answer.send(number).unwrap_or_default();
                }
                Ok(Task::Cleaned { seat, clean_from, done }) => {
                    self.cleaned(seat, clean_from, done)?;
                }
                Ok(Task::Returned { returning, place, takes_discards }) => {
                    self.take_back((returning, place), takes_discards)?;
                }
                Ok(Task::Spare { member, spare, device, takes_discards }) => {
                    self.replace((member, spare), device, takes_discards)?;
                }
                Ok(Task::UpTo { queue, number }) => {
                    if self.questions.hear(queue, number) {
                        self.cut_pending(Urgency::Now)?;
                        self.questions.await_stripe(self.newest);
                    }
                }
                Ok(Task::EndOfPackets) => {
                    self.cut_pending(Urgency::Now)?;
                    self.indexer = None;
                }
                Err(RecvTimeoutError::Timeout) => self.idle()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.take_from_indexer();
            self.cut_pending(Urgency::None)?;
            self.expire()?;
            self.see_to_members();
            self.answer()?;
            self.note();
        }
        self.cut_pending(Urgency::Now)?;
        self.drain()?;
        let unerased = self.expiry.finish(&mut self.writer, self.clock)?;
        self.note();
        stage::lock(&self.status).unerased = unerased;
        self.say_recorded();
        let stopped = self.writer.stop(self.clock);
        self.report_expelled();
        self.questions.end();
        stopped.map(|()| self.writer.counters())
    }

    /// Waits until everything is durable.
    fn drain(&mut self) -> Result<(), volume::Error> {
        let _waiting = self.waits.begin(Wait::RingForMembers, self.clock);
        self.writer.drain(self.clock)
    }

    /// Where the recording goes on without the index, nothing waits for it.
    fn take_from_indexer(&mut self) {
        if !self.waits.is_without_index() {
            return;
        }
        let waiting = self.indexer.as_ref().map(ToIndexer::take_back).unwrap_or_default();
        for sealed in &waiting {
            self.leave_out(Skipped::of(sealed));
        }
    }

    /// A caller waits for what is under way.
    fn answer(&mut self) -> Result<(), volume::Error> {
        if !self.questions.is_pending() {
            return Ok(());
        }
        self.writer.poll_at_once(self.clock)?;
        let is_told = self.newest <= self.published && self.writer.is_all_durable();
        if self.questions.step(self.writer.acknowledged(), is_told) == Step::Tell {
            let head = self.append(Filled::heartbeat())?.stripe;
            self.questions.await_head(head);
        }
        Ok(())
    }

    fn packets(&mut self, filled: FilledColumn) -> Result<(), volume::Error> {
        let cut = filled.cut;
        let (queue, through) = filled.claim;
        self.covered.take(queue, through);
        self.pending.push(filled);
        let data_columns = usize::from(self.writer.geometry().data_columns);
        if self.pending.len() < data_columns {
            return if cut { self.cut_pending(Urgency::Now) } else { Ok(()) };
        }
        let columns = core::mem::take(&mut self.pending);
        if data_columns > 1 {
            return self.append_and_index(columns);
        }
        columns.into_iter().try_for_each(|column| self.lone_column(column))
    }

    /// One column is a stripe. Cut by time, it is split to use up the slot.
    fn lone_column(&mut self, mut filled: FilledColumn) -> Result<(), volume::Error> {
        let needed = filled.builder.rows();
        let room = self.writer.plan(needed).room;
        let splittable = filled.cut && needed > room && room >= SPLIT_ROWS_MIN;
        if let Some(mut other) = splittable.then(|| self.columns.pool().take()).flatten()
            && let Some(rest) = filled.builder.split(&filled.column, room, &mut other)
        {
            let rest = FilledColumn {
                column: other,
                builder: rest,
                cut: true,
                statistics: filled.statistics.clone(),
                gaps: Vec::new(),
                losses: Totals::default(),
                opened_ns: filled.opened_ns,
                claim: filled.claim,
            };
            self.is_split = true;
            self.append_and_index(vec![filled])?;
            self.is_split = false;
            return self.append_and_index(vec![rest]);
        }
        self.append_and_index(vec![filled])
    }

    /// Makes a stripe of columns that have waited long enough, or of all that there are: their
    /// packets are spread over as many columns as a stripe has, so that few rows are lost.
    fn cut_pending(&mut self, urgency: Urgency) -> Result<(), volume::Error> {
        let Some(oldest_ns) = self.pending.iter().map(|column| column.opened_ns).min() else {
            return Ok(());
        };
        let waited_ns = self.clock.boottime_ns().saturating_sub(oldest_ns);
        if urgency == Urgency::None && waited_ns < self.cut_after_ns {
            return Ok(());
        }
        let waiting = self.waits.begin(Wait::RingForReserve, self.clock);
        let taken = self.columns.take(urgency, &mut self.writer, self.clock)?;
        drop(waiting);
        let Some(Taken { columns: others, are_reserve }) = taken else { return Ok(()) };
        let columns = core::mem::take(&mut self.pending);
        let sealed = self.append_packets(spread(columns, others))?;
        if are_reserve {
            // The indexer would keep them.
            self.leave_out(Skipped::of(&sealed));
        } else {
            self.hand_to_indexer(sealed);
        }
        Ok(())
    }

    /// Writes a stripe; gives it for the indexer.
    fn append_packets(
        &mut self,
        mut columns: Vec<FilledColumn>,
    ) -> Result<SealedStripe, volume::Error> {
        let needed = columns.iter().map(|filled| filled.builder.rows()).max();
        let rows = self.writer.plan(needed.expect("at least one column")).rows;
        let mut totals = Totals::default();
        let (mut time_min, mut time_max) = (Timestamp::MAX, Timestamp::MIN);
        let mut extra_blocks = false;
        let mut interfaces = Vec::new();
        let (mut bodies, mut starts) = (Vec::new(), Vec::new());
        for filled in &mut columns {
            let FilledColumn { column, builder, statistics, gaps, losses, .. } = filled;
            let ended = builder.finish(column, statistics, gaps, rows);
            assert_eq!(ended, rows, "every column of a stripe has the same rows");
            let contents = builder.contents();
            totals = contents.added_to(totals, losses);
            time_min = time_min.min(contents.time_min);
            time_max = time_max.max(contents.time_max);
            extra_blocks |= contents.extra_blocks;
            interfaces.extend_from_slice(builder.interfaces());
        }
        for FilledColumn { column, builder, .. } in columns {
            bodies
                .push(writer::FilledColumn { buffer: column, packets: builder.contents().packets });
            starts.push(builder.into_starts());
        }
        let (packets, kind) = (totals.packets, Kind::Data);
        self.covered.packets(time_min..time_max);
        if totals.packets > 0 {
            self.note_age(time_min..time_max);
        }
        let filled =
            Filled { columns: bodies, kind, rows, totals, time_min, time_max, extra_blocks };
        let appended = self.append(filled)?;
        self.waiting.push_back((appended.stripe, interfaces));
        let writer::Appended { stripe, slot_cid, columns, len } = appended;
        let times = Times { min: time_min, max: time_max };
        Ok(SealedStripe { stripe, slot_cid, columns, starts, len, packets, times })
    }

    /// Packets that are too old when they are stored are never given out: a note says so.
    fn note_age(&self, times: Range<Timestamp>) {
        let through = self.writer.superblock().expired_at(self.clock.realtime());
        if times.start <= through {
            let mut status = stage::lock(&self.status);
            status.withheld.add(times.start..times.end.min(through));
        }
    }

    fn append_and_index(&mut self, columns: Vec<FilledColumn>) -> Result<(), volume::Error> {
        let sealed = self.append_packets(columns)?;
        self.hand_to_indexer(sealed);
        Ok(())
    }

    /// Recording outranks indexing: a stripe that finds the queue full is left out, until there is
    /// time for it.
    fn hand_to_indexer(&mut self, sealed: SealedStripe) {
        let Some(indexer) = &self.indexer else { return };
        let skipped = Skipped::of(&sealed);
        if self.waits.is_without_index() || !indexer.send(sealed) {
            self.leave_out(skipped);
        }
    }

    fn leave_out(&self, skipped: Skipped) {
        // Counted first: it is taken off again when it is indexed.
        let mut status = stage::lock(&self.status);
        status.unindexed += skipped.packets;
        drop(status);
        stage::lock(&self.skips).push(skipped);
    }

    fn append(&mut self, filled: Filled) -> Result<writer::Appended, volume::Error> {
        let counts = filled.kind != Kind::Heartbeat;
        self.published = self.writer.acknowledged();
        self.say_recorded();
        let waiting = self.waits.begin(Wait::RingForMembers, self.clock);
        let appended = self.writer.append(filled, self.clock)?;
        drop(waiting);
        self.last_append_ns = self.clock.boottime_ns();
        if counts {
            self.newest = appended.stripe;
            self.expiry.note(appended.stripe, self.last_append_ns);
        }
        Ok(appended)
    }

    /// The next head says up to when packets are accounted for, unless some wait for others.
    fn say_recorded(&mut self) {
        self.covered.look(self.clock);
        if self.pending.is_empty() && !self.is_split {
            let stretch = self.covered.stretch(self.ledger, self.writer.next());
            if let Some(stretch) = stretch {
                self.writer.set_recorded(stretch);
            }
        }
    }

    /// Nothing to append: completions, and signs of life.
    fn idle(&mut self) -> Result<(), volume::Error> {
        if !self.writer.is_all_durable() || self.writer.in_flight() > 0 {
            return self.writer.poll(Some(POLL), self.clock);
        }
        // That the volume is still held is said while nothing arrives, too.
        self.writer.poll(None, self.clock)?;
        let silence = self.clock.boottime_ns().saturating_sub(self.last_append_ns);
        let unpublished = self.newest > self.published && silence >= PUBLISH_NS;
        if unpublished || silence >= HEARTBEAT_NS {
            self.append(Filled::heartbeat())?;
        }
        Ok(())
    }

    /// Packets expire, and what is expired is erased while recording leaves the time.
    fn expire(&mut self) -> Result<(), volume::Error> {
        let pool = self.columns.pool();
        let is_calm = pool.free_count() * 4 >= pool.count() * 3;
        self.expiry.tick(&mut self.writer, is_calm, self.clock)
    }

    /// Puts on the status what has become durable.
    fn note(&mut self) {
        self.covered.look(self.clock);
        self.ledger.note_unfinished(self.writer.in_flight());
        let acknowledged = self.writer.acknowledged();
        // Asks the devices: not while others wait for the status.
        let has_let_go = self.writer.has_let_go();
        let mut status = stage::lock(&self.status);
        status.acknowledge(acknowledged, &mut self.waiting);
        status.now_ns = self.clock.boottime_ns();
        status.tail = self.writer.tail();
        status.given_up_before = self.writer.superblock().given_up_before;
        status.counters = self.writer.counters();
        status.clock_doubt = self.expiry.doubt;
        status.epoch = self.writer.epoch();
        status.repairable_from = self.writer.repairable().start;
        status.durable_below = self.writer.durable_below();
        let membership = self.writer.membership();
        status.away = membership.absent().collect();
        status.failed.clone_from(&self.failed);
        status.has_let_go = has_let_go;
    }

    /// A member that was expelled is reported, and a spare is looked for.
    fn see_to_members(&mut self) {
        self.report_expelled();
        if core::mem::take(&mut self.may_replace) {
            self.look_for_spares();
        }
    }

    fn report_expelled(&mut self) {
        while let Some(gone) = self.writer.expelled().get(self.expelled) {
            let (member, reason) = (gone.member, gone.reason.to_string());
            let comeback = comeback(&gone.reason);
            self.failed.retain(|other| *other != member);
            self.failed.extend((comeback == Comeback::OnceGone).then_some(member));
            self.expelled += 1;
            self.changed(member, Change::Expelled { reason, comeback });
            // A disk that hangs keeps columns, and the intake may wait for them.
            self.columns.pool().lend(self.writer.held_by_gone());
            self.vacated.retain(|other| *other != member);
            self.vacated.push(member);
            self.may_replace = true;
        }
    }

    /// Spares shall take the places of members that left. One that is still needed is left in its
    /// place until the others were given back what they lack.
    fn look_for_spares(&mut self) {
        let Self { vacated, writer, spares, useless_spares, .. } = self;
        vacated.retain(|member| writer.membership().of(*member).is_none());
        let mut offered = writer.superblock().spares.clone();
        offered.retain(|spare| !useless_spares.contains(&spare.uuid));
        for &member in vacated.iter().filter(|member| !writer.is_needed(**member)) {
            spares.look(member, offered.clone());
        }
    }

    /// A spare takes the place of a member, unless that is back or needed by now, or the spare is
    /// gone. One that fails is not asked again while this recording lasts.
    fn replace(
        &mut self,
        (member, spare): (MemberId, Spare),
        device: Box<dyn Device>,
        takes_discards: bool,
    ) -> Result<(), volume::Error> {
        let is_away = self.writer.membership().of(member).is_none();
        if !is_away || self.writer.is_needed(member) {
            return Ok(());
        }
        let mut spares = self.writer.superblock().spares.iter();
        // It may have moved.
        if !spares.any(|known| known.uuid == spare.uuid) {
            // Another member was quicker.
            self.may_replace = true;
            return Ok(());
        }
        match self.writer.replace((member, spare.clone()), device, self.clock) {
            // It was cut or failed meanwhile: the member stays away, as without it.
            Err(volume::Error::Shrunk { .. } | volume::Error::NotJoined(_)) => {
                self.useless_spares.push(spare.uuid);
                self.may_replace = true;
                return Ok(());
            }
            result => result?,
        }
        self.joined(member, takes_discards, Change::Replaced);
        Ok(())
    }

    /// A member is there again. Where it turns out not to be, the recording goes on as before.
    fn take_back(
        &mut self,
        (returning, place): (Returning, Option<NewPlace>),
        takes_discards: bool,
    ) -> Result<(), volume::Error> {
        let taken = self.writer.take_back(returning, self.clock);
        if let Err(volume::Error::Stopped | volume::Error::TakenOver { .. }) = taken {
            return taken.map(drop);
        }
        let Ok(member) = taken else { return Ok(()) };
        self.writer.remember(place.as_slice(), self.clock)?;
        self.joined(member, takes_discards, Change::Returned);
        Ok(())
    }

    /// Unless it has failed at once.
    fn joined(&mut self, member: MemberId, takes_discards: bool, how: Change) {
        if self.writer.membership().of(member).is_some() {
            self.writer.discard_ahead(member, takes_discards);
            self.changed(member, how);
        }
    }

    fn changed(&self, member: MemberId, what: Change) {
        let mut status = stage::lock(&self.status);
        status.changes.note_change(self.writer.membership(), member, what);
    }

    fn cleaned(
        &mut self,
        seat: Seat,
        clean_from: Sequence,
        done: Option<(u64, usize)>,
    ) -> Result<(), volume::Error> {
        match self.writer.set_clean_from(seat, clean_from, self.clock) {
            // The member that has the place now is looked after in the new epoch.
            Err(volume::Error::MembersChanged { .. }) => return Ok(()),
            result => result?,
        }
        // It may have failed at this very store.
        let is_theirs = self.writer.membership().seat(seat.member) == Some(seat);
        if let Some((bytes, lost)) = done.filter(|_| is_theirs) {
            self.changed(seat.member, Change::Resilvered { bytes, lost });
            self.may_replace = true;
        }
        Ok(())
    }
}

/// A member may be well although it was left: it did not answer, or was gone.
fn comeback(reason: &volume::Error) -> Comeback {
    match reason {
        volume::Error::Stalled { .. } => Comeback::ByItself,
        volume::Error::Device(error) if error.is_gone() => Comeback::ByItself,
        _ => Comeback::OnceGone,
    }
}

/// The packets of `columns` over as many columns as there are `others`; what the columns carry
/// besides goes along. Where the packets do not spread the columns stay as they are, with empty
/// ones behind them.
fn spread(columns: Vec<FilledColumn>, mut others: Vec<Buffer>) -> Vec<FilledColumn> {
    let statistics = columns.last().map(|last| last.statistics.clone()).unwrap_or_default();
    let opened_ns = columns.iter().map(|column| column.opened_ns).min().unwrap_or_default();
    // It was taken when the columns came.
    let claim = columns.last().map_or((QueueId(0), Timestamp::MIN), |last| last.claim);
    let column_of = |(column, builder): (Buffer, PieceBuilder)| FilledColumn {
        column,
        builder,
        cut: true,
        statistics: statistics.clone(),
        gaps: Vec::new(),
        losses: Totals::default(),
        opened_ns,
        claim,
    };
    let frame = columns.first().map(|first| first.builder.frame()).unwrap_or_default();
    let sources: Vec<_> =
        columns.iter().map(|filled| (&filled.builder, &filled.column[..])).collect();
    let mut places: Vec<&mut [u8]> = others.iter_mut().map(|column| &mut column[..]).collect();
    let Some(builders) = format::piece::repack(&sources, &mut places) else {
        let empty = others.drain(columns.len()..).map(|column| {
            let builder = PieceBuilder::framed(column.len(), frame);
            column_of((column, builder))
        });
        let empty: Vec<_> = empty.collect();
        return columns.into_iter().chain(empty).collect();
    };
    let mut spread: Vec<_> = others.into_iter().zip(builders).map(column_of).collect();
    // Gaps are stored in the statistics of an interface, so a column needs one to hold them.
    let holders = spread.iter_mut().filter(|column| !column.builder.interfaces().is_empty());
    for (holder, source) in holders.zip(columns) {
        holder.gaps = source.gaps;
        holder.losses = source.losses;
    }
    spread
}

#[cfg(test)]
mod tests;
