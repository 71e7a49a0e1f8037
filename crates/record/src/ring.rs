//! The ring writer's thread: filled columns in, sealed stripes out, acknowledged in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use core::time::Duration;

use device::{Buffer, Pool, Shared};
use format::directory::Gap;
use format::head::{HEAD_BYTES, Kind, StripeId, Totals};
use format::piece::{Contents, InterfaceUse, PieceBuilder, Statistics};
use units::{Clock, Timestamp};
use volume::{Filled, Writer, WriterCounters};

/// A cut piece is split only if this many rows of it fit the current slot: a head costs one.
const SPLIT_ROWS_MIN: u16 = 4;
/// A sign of life while nothing arrives.
const HEARTBEAT_NS: i64 = 60_000_000_000;
/// How soon after the last stripe the watermark is put on the disk when nothing follows.
const PUBLISH_NS: i64 = 200_000_000;
/// How often packets expire: the superblocks are written each time.
const EXPIRE_NS: i64 = 30_000_000_000;
/// How long the thread sleeps at most while writes are on their way.
const POLL: Duration = Duration::from_millis(2);
/// How long it sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_millis(50);

/// How long it waits at once for a column where there is none.
const BUFFER_WAIT: Duration = Duration::from_millis(2);

/// What the ring writer is asked to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Packets.
    Packets(FilledColumn),
    /// Parts of a segment's index: at most one for each data column, and columns of padding behind
    /// them, all of `rows` rows. `answer` hears their stripe.
    IndexParts { columns: Vec<Buffer>, rows: u16, answer: SyncSender<StripeId> },
    /// All parts are placed: heads that follow point to the first one.
    IndexComplete { first_part: StripeId },
    /// No packets will follow; indexes may.
    EndOfPackets,
}

/// A column of packets whose body is not yet ended.
#[derive(Debug)]
pub(crate) struct FilledColumn {
    pub(crate) column: Buffer,
    pub(crate) builder: PieceBuilder,
    /// Cut by time rather than full: it may be split to use up a slot.
    pub(crate) cut: bool,
    pub(crate) statistics: Vec<Statistics>,
    pub(crate) gaps: Vec<Gap>,
    /// Losses since the column before.
    pub(crate) losses: Totals,
    /// When its first packet came.
    pub(crate) opened_ns: i64,
}

/// A sealed data stripe on its way to the indexer.
#[derive(Debug)]
pub(crate) struct SealedStripe {
    pub(crate) stripe: StripeId,
    pub(crate) columns: Vec<Shared>,
    /// Where the packets of each begin.
    pub(crate) starts: Vec<Vec<u32>>,
    /// Bytes of head and body of each.
    pub(crate) len: usize,
    pub(crate) packets: u64,
}

/// What other threads may know of the writer at any moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) acknowledged: StripeId,
    pub(crate) tail: u64,
    pub(crate) counters: WriterCounters,
    /// Packets in acknowledged stripes, by interface.
    pub(crate) stored: Vec<u64>,
    pub(crate) unindexed: u64,
    /// Members that the recording went on without, one line each.
    pub(crate) expelled: Vec<String>,
}

pub(crate) type Board = Arc<Mutex<Shown>>;

/// Reads the board; a poisoned lock only means that another thread is going down.
pub(crate) fn look(board: &Board) -> Shown {
    board.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What the thread is made of, besides the writer.
pub(crate) struct RingParts<'a> {
    pub(crate) pool: Pool,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) board: Board,
    pub(crate) indexer: SyncSender<SealedStripe>,
    /// How long a column may wait for others.
    pub(crate) cut_after_ns: i64,
    /// Packets older than this expire; 0: none.
    pub(crate) max_age_ns: i64,
}

/// The state of the thread.
pub(crate) struct RingWriter<'a> {
    writer: Writer,
    pool: Pool,
    clock: &'a dyn Clock,
    board: Board,
    /// To the indexer, until the packets end.
    indexer: Option<SyncSender<SealedStripe>>,
    waiting: VecDeque<(StripeId, Vec<InterfaceUse>)>,
    /// Columns that wait for enough others to make a stripe.
    pending: Vec<FilledColumn>,
    /// How long the oldest of them may wait.
    cut_after_ns: i64,
    /// Packets older than this expire; 0: none.
    max_age_ns: i64,
    /// When that was last seen to.
    expired_at_ns: Option<i64>,
    /// Newest stripe with packets or index, and the newest one that a head on the disk covers.
    newest: StripeId,
    published: StripeId,
    last_append_ns: i64,
}

impl<'a> RingWriter<'a> {
    pub(crate) fn new(writer: Writer, parts: RingParts<'a>) -> Self {
        let RingParts { pool, clock, board, indexer, cut_after_ns, max_age_ns } = parts;
        Self {
            published: writer.acknowledged(),
            newest: writer.acknowledged(),
            writer,
            pool,
            clock,
            board,
            indexer: Some(indexer),
            waiting: VecDeque::new(),
            pending: Vec::new(),
            cut_after_ns,
            max_age_ns,
            expired_at_ns: None,
            last_append_ns: clock.boottime_ns(),
        }
    }
}

impl RingWriter<'_> {
    /// Runs until every sender is gone, then acknowledges everything and closes the volume.
    pub(crate) fn run(mut self, tasks: &Receiver<Task>) -> Result<WriterCounters, volume::Error> {
        loop {
            let wait = match (self.writer.in_flight(), self.writer.unacknowledged()) {
                (0, 0) => IDLE,
                (0, _) => POLL,
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
                        self.writer.drain(self.clock)?;
                    }
                }
                Ok(Task::EndOfPackets) => {
                    self.cut_pending(true)?;
                    self.indexer = None;
                }
                Err(RecvTimeoutError::Timeout) => self.idle()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.cut_pending(false)?;
            self.expire(false)?;
            self.note();
        }
        self.cut_pending(true)?;
        self.writer.drain(self.clock)?;
        self.note();
        self.expire(true)?;
        self.writer.close(self.clock)
    }

    fn packets(&mut self, filled: FilledColumn) -> Result<(), volume::Error> {
        let cut = filled.cut;
        self.pending.push(filled);
        let data_columns = usize::from(self.writer.geometry().data_columns);
        if self.pending.len() < data_columns {
            return if cut { self.cut_pending(true) } else { Ok(()) };
        }
        let columns = core::mem::take(&mut self.pending);
        if data_columns > 1 {
            return self.append_packets(columns);
        }
        columns.into_iter().try_for_each(|column| self.lone_column(column))
    }

    /// One column is a stripe. Cut by time, it is split to use up the slot.
    fn lone_column(&mut self, mut filled: FilledColumn) -> Result<(), volume::Error> {
        let needed = filled.builder.rows();
        let room = self.writer.plan(needed).room;
        let splittable = filled.cut && needed > room && room >= SPLIT_ROWS_MIN;
        if let Some(mut other) = splittable.then(|| self.pool.take()).flatten()
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
            };
            self.append_packets(vec![filled])?;
            return self.append_packets(vec![rest]);
        }
        self.append_packets(vec![filled])
    }

    /// Makes a stripe of columns that have waited long enough, or of all that there are: their
    /// packets are spread over as many columns as a stripe has, so that few rows are lost.
    fn cut_pending(&mut self, now: bool) -> Result<(), volume::Error> {
        let Some(oldest_ns) = self.pending.iter().map(|column| column.opened_ns).min() else {
            return Ok(());
        };
        if !now && self.clock.boottime_ns().saturating_sub(oldest_ns) < self.cut_after_ns {
            return Ok(());
        }
        let data_columns = usize::from(self.writer.geometry().data_columns);
        let mut others = Vec::new();
        while others.len() < data_columns {
            match self.pool.take_timeout(if now { BUFFER_WAIT } else { Duration::ZERO }) {
                Some(buffer) => others.push(buffer),
                // Without memory the packets that hold it make up full columns soon enough.
                None if !now => return Ok(()),
                None => self.writer.poll(Some(POLL), self.clock)?,
            }
        }
        let columns = core::mem::take(&mut self.pending);
        self.append_packets(spread(columns, others))
    }

    fn append_packets(&mut self, mut columns: Vec<FilledColumn>) -> Result<(), volume::Error> {
        let needed = columns.iter().map(|filled| filled.builder.rows()).max();
        let rows = self.writer.plan(needed.expect("at least one column")).rows;
        let mut totals = Totals::default();
        let (mut time_min, mut time_max) = (Timestamp::MAX, Timestamp::MIN);
        let mut interfaces = Vec::new();
        let (mut bodies, mut starts) = (Vec::new(), Vec::new());
        for filled in &mut columns {
            let FilledColumn { column, builder, statistics, gaps, losses, .. } = filled;
            let ended = builder.finish(column, statistics, gaps, rows);
            assert_eq!(ended, rows, "every column of a stripe has the same rows");
            let contents = builder.contents();
            totals = add(totals, contents, losses);
            time_min = time_min.min(contents.time_min);
            time_max = time_max.max(contents.time_max);
            interfaces.extend_from_slice(builder.interfaces());
        }
        for FilledColumn { column, builder, .. } in columns {
            bodies
                .push(volume::FilledColumn { buffer: column, packets: builder.contents().packets });
            starts.push(builder.into_starts());
        }
        let packets = totals.packets;
        let filled = Filled { columns: bodies, kind: Kind::Data, rows, totals, time_min, time_max };
        let appended = self.append(filled)?;
        self.waiting.push_back((appended.stripe, interfaces));
        let volume::Appended { stripe, columns, len } = appended;
        self.hand_to_indexer(SealedStripe { stripe, columns, starts, len, packets });
        Ok(())
    }

    /// Recording outranks indexing: a stripe that finds the queue full stays unindexed.
    fn hand_to_indexer(&mut self, sealed: SealedStripe) {
        let Some(indexer) = &self.indexer else { return };
        let packets = sealed.packets;
        if indexer.try_send(sealed).is_err() {
            self.board.lock().unwrap_or_else(PoisonError::into_inner).unindexed += packets;
        }
    }

    fn append(&mut self, filled: Filled) -> Result<volume::Appended, volume::Error> {
        let counts = filled.kind != Kind::Heartbeat;
        self.published = self.writer.acknowledged();
        let appended = self.writer.append(filled, self.clock)?;
        self.last_append_ns = self.clock.boottime_ns();
        if counts {
            self.newest = appended.stripe;
        }
        Ok(appended)
    }

    /// Nothing to append: completions, and signs of life.
    fn idle(&mut self) -> Result<(), volume::Error> {
        if self.writer.unacknowledged() > 0 {
            return self.writer.poll(Some(POLL), self.clock);
        }
        let silence = self.clock.boottime_ns().saturating_sub(self.last_append_ns);
        let unpublished = self.newest > self.published && silence >= PUBLISH_NS;
        if unpublished || silence >= HEARTBEAT_NS {
            self.append(Filled::heartbeat())?;
        }
        Ok(())
    }

    /// Declares expired what is older than the maximum age: when recording begins, twice a minute
    /// and in the end.
    fn expire(&mut self, at_once: bool) -> Result<(), volume::Error> {
        let now_ns = self.clock.boottime_ns();
        let is_due = |last: i64| now_ns.saturating_sub(last) >= EXPIRE_NS;
        if !at_once && !self.expired_at_ns.is_none_or(is_due) {
            return Ok(());
        }
        self.expired_at_ns = Some(now_ns);
        let known = self.writer.superblock();
        let through = match self.max_age_ns {
            0 => Timestamp::MIN,
            age_ns => Timestamp(self.clock.realtime().0.saturating_sub(age_ns)),
        };
        if self.max_age_ns == known.max_age_ns && through <= known.expired_through {
            return Ok(());
        }
        self.writer.set_retention(self.max_age_ns, through, self.clock)
    }

    /// Puts on the board what has become durable.
    fn note(&mut self) {
        let acknowledged = self.writer.acknowledged();
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((_, interfaces)) =
            self.waiting.pop_front_if(|(stripe, _)| *stripe <= acknowledged)
        {
            for used in interfaces {
                let place = usize::try_from(used.id).expect("few interfaces");
                if board.stored.len() <= place {
                    board.stored.resize(place + 1, 0);
                }
                let stored = board.stored.get_mut(place).expect("just resized");
                *stored += u64::from(used.packets);
            }
        }
        board.acknowledged = acknowledged;
        board.tail = self.writer.tail();
        board.counters = self.writer.counters();
        let members = &self.writer.superblock().members;
        let news = self.writer.expelled().get(board.expelled.len()..).unwrap_or_default();
        let lines = news.iter().map(|gone| {
            let path = members.get(usize::from(gone.member)).map_or("", |entry| &entry.path);
            format!("recording went on without member {} ({path}): {}", gone.member, gone.reason)
        });
        board.expelled.extend(lines);
    }
}

fn add(totals: Totals, contents: Contents, losses: &Totals) -> Totals {
    Totals {
        packets: totals.packets + u64::from(contents.packets),
        captured_bytes: totals.captured_bytes + contents.captured_bytes,
        interface_drops: totals.interface_drops + losses.interface_drops,
        kernel_drops: totals.kernel_drops + losses.kernel_drops,
        writer_drops: totals.writer_drops + losses.writer_drops,
    }
}

/// The packets of `columns` over as many columns as there are `others`; what the columns carry
/// besides goes along. Where the packets do not spread the columns stay as they are, with empty
/// ones behind them.
fn spread(columns: Vec<FilledColumn>, mut others: Vec<Buffer>) -> Vec<FilledColumn> {
    let statistics = columns.last().map(|last| last.statistics.clone()).unwrap_or_default();
    let opened_ns = columns.iter().map(|column| column.opened_ns).min().unwrap_or_default();
    let column_of = |(column, builder): (Buffer, PieceBuilder)| FilledColumn {
        column,
        builder,
        cut: true,
        statistics: statistics.clone(),
        gaps: Vec::new(),
        losses: Totals::default(),
        opened_ns,
    };
    let sources: Vec<_> =
        columns.iter().map(|filled| (&filled.builder, &filled.column[..])).collect();
    let mut places: Vec<&mut [u8]> = others.iter_mut().map(|column| &mut column[..]).collect();
    let Some(builders) = format::piece::repack(&sources, &mut places) else {
        let empty = others.drain(columns.len()..).map(|column| {
            let builder = PieceBuilder::new(column.len());
            column_of((column, builder))
        });
        let empty: Vec<_> = empty.collect();
        return columns.into_iter().chain(empty).collect();
    };
    let mut spread: Vec<_> = others.into_iter().zip(builders).map(column_of).collect();
    // Gaps are told in the statistics of an interface, so a column needs one to hold them.
    let holders = spread.iter_mut().filter(|column| !column.builder.interfaces().is_empty());
    for (holder, source) in holders.zip(columns) {
        holder.gaps = source.gaps;
        holder.losses = source.losses;
    }
    spread
}

/// Puts one block into a column and pads it to whole rows, at least `rows`; returns the body rows.
///
/// # Panics
/// When the block and a padding block do not fit.
pub(crate) fn fill_with_block(column: &mut Buffer, block: &[u8], rows: u16) -> u16 {
    let end = HEAD_BYTES + block.len();
    column.get_mut(HEAD_BYTES..end).expect("parts are cut to fit").copy_from_slice(block);
    let needed = (end + format::local::LOCAL_FRAME_BYTES).next_multiple_of(HEAD_BYTES);
    let rows_end = needed.max(HEAD_BYTES * (1 + usize::from(rows)));
    format::local::fill_with_padding(column.get_mut(end..rows_end).expect("parts leave room"));
    u16::try_from(rows_end / HEAD_BYTES - 1).expect("a piece has at most 511 body rows")
}
