//! The ring writer's thread: filled columns in, sealed stripes out, acknowledged in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use core::time::Duration;

use device::{Buffer, Pool, Shared};
use format::directory::Gap;
use format::head::{HEAD_BYTES, Kind, StripeId, Totals};
use format::piece::{InterfaceUse, PieceBuilder, Statistics};
use units::Clock;
use volume::{Filled, Writer, WriterCounters};

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

/// What the ring writer is asked to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Packets.
    Packets(FilledColumn),
    /// A part of a segment's index: a column whose body is complete. `answer` hears its place.
    IndexPart { column: Buffer, rows: u16, answer: SyncSender<StripeId> },
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
}

/// A sealed data piece on its way to the indexer.
#[derive(Debug)]
pub(crate) struct SealedPiece {
    pub(crate) stripe: StripeId,
    pub(crate) column: Shared,
    pub(crate) len: usize,
    pub(crate) packets: u32,
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
}

pub(crate) type Board = Arc<Mutex<Shown>>;

/// Reads the board; a poisoned lock only means that another thread is going down.
pub(crate) fn look(board: &Board) -> Shown {
    board.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The state of the thread.
pub(crate) struct RingWriter<'a> {
    pub(crate) writer: Writer,
    pub(crate) pool: Pool,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) board: Board,
    /// To the indexer, until the packets end.
    pub(crate) indexer: Option<SyncSender<SealedPiece>>,
    pub(crate) waiting: VecDeque<(StripeId, Vec<InterfaceUse>)>,
    /// Newest stripe with packets or index, and the newest one that a head on the disk covers.
    pub(crate) newest: StripeId,
    pub(crate) published: StripeId,
    pub(crate) last_append_ns: i64,
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
                Ok(Task::IndexPart { column, rows, answer }) => {
                    let filled = Filled::without_packets(column, Kind::Index, rows);
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
                Ok(Task::EndOfPackets) => self.indexer = None,
                Err(RecvTimeoutError::Timeout) => self.idle()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.note();
        }
        self.writer.drain(self.clock)?;
        self.note();
        self.writer.close(self.clock)
    }

    fn packets(&mut self, mut filled: FilledColumn) -> Result<(), volume::Error> {
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
            };
            self.append_packets(filled)?;
            return self.append_packets(rest);
        }
        self.append_packets(filled)
    }

    fn append_packets(&mut self, filled: FilledColumn) -> Result<(), volume::Error> {
        let FilledColumn { mut column, mut builder, statistics, mut gaps, losses, .. } = filled;
        let plan = self.writer.plan(builder.rows());
        let rows = builder.finish(&mut column, &statistics, &mut gaps, plan.rows);
        let contents = builder.contents();
        let totals = Totals {
            packets: u64::from(contents.packets),
            captured_bytes: contents.captured_bytes,
            ..losses
        };
        let (time_min, time_max) = (contents.time_min, contents.time_max);
        let filled = Filled { column, kind: Kind::Data, rows, totals, time_min, time_max };
        let appended = self.append(filled)?;
        self.waiting.push_back((appended.stripe, builder.interfaces().to_vec()));
        let sealed = SealedPiece {
            stripe: appended.stripe,
            column: appended.column,
            len: appended.len,
            packets: contents.packets,
        };
        self.hand_to_indexer(sealed);
        Ok(())
    }

    /// Recording outranks indexing: a piece that finds the queue full stays unindexed.
    fn hand_to_indexer(&mut self, sealed: SealedPiece) {
        let Some(indexer) = &self.indexer else { return };
        let packets = u64::from(sealed.packets);
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
        if (unpublished || silence >= HEARTBEAT_NS)
            && let Some(column) = self.pool.take()
        {
            self.append(Filled::without_packets(column, Kind::Heartbeat, 0))?;
        }
        Ok(())
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
    }
}

/// Puts one block into a column and pads it to whole rows; returns the body rows.
///
/// # Panics
/// When the block and a padding block do not fit.
pub(crate) fn fill_with_block(column: &mut Buffer, block: &[u8]) -> u16 {
    let end = HEAD_BYTES + block.len();
    column.get_mut(HEAD_BYTES..end).expect("parts are cut to fit").copy_from_slice(block);
    let rows_end = (end + format::local::LOCAL_FRAME_BYTES).next_multiple_of(HEAD_BYTES);
    format::local::fill_with_padding(column.get_mut(end..rows_end).expect("parts leave room"));
    u16::try_from(rows_end / HEAD_BYTES - 1).expect("a piece has at most 511 body rows")
}
