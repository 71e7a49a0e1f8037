//! Sets up the thread that writes the ring.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use format::recorded::{Earlier, RecordedClock};
use stage::{Joining, Receiver, Scope};
use units::Timestamp;
use writer::{Writer, WriterCounters};

use crate::columns::Columns;
use crate::common::Common;
use crate::control::Questions;
use crate::covered::Covered;
use crate::error::Error;
use crate::expiry::Expiry;
use crate::index_queue::ToIndexer;
use crate::late::Skips;
use crate::ring::{RingParts, RingWriter};
use crate::spares::Spares;
use crate::task::Task;

/// The thread, with what it gives when it has ended.
pub(crate) type RingThread<'scope> = Joining<'scope, Result<WriterCounters, volume::Error>>;

/// What it begins with, besides the writer.
pub(crate) struct Begin {
    /// How many queues there are.
    pub(crate) queues: usize,
    /// Who says when their packets came.
    pub(crate) clock: RecordedClock,
    /// Earlier packets are those of the recorder before.
    pub(crate) from: Option<Timestamp>,
    /// Up to when the recordings before have seen everything.
    pub(crate) recorded_until: Option<Earlier>,
}

/// Starts it: `tasks` come in, and stripes go to the indexer, which may skip some.
pub(crate) fn start<'scope>(
    scope: &Scope<'scope, '_>,
    common: &'scope Common<'_>,
    (writer, begin): (Writer, Begin),
    tasks: Receiver<Task>,
    (indexer, skips, spares): (ToIndexer, Skips, Spares),
) -> Result<RingThread<'scope>, Error> {
    let Common { options, clock, .. } = *common;
    let Begin { queues, clock: stamps, from, recorded_until } = begin;
    let begins = (writer.acknowledged(), from.unwrap_or_else(|| clock.realtime()));
    let expiry = (common.retention, options.clock_is_right);
    let parts = RingParts {
        columns: Columns::new(common.pool.clone(), writer.geometry())?,
        clock,
        status: Arc::clone(&common.status),
        ledger: &common.ledger,
        indexer,
        skips,
        cut_after_ns: units::nanos(options.cut_after),
        expiry: Expiry::new(expiry, Arc::clone(&common.storage))?,
        spares,
        questions: Questions::new(options.control.clone(), queues),
        covered: Covered::new(&options.input, (queues, stamps), begins, recorded_until),
        waits: common.waits.clone(),
    };
    let ring = RingWriter::new(writer, parts);
    let body = move || {
        let result = ring.run(&tasks);
        common.has_failed.store(result.is_err(), Ordering::Relaxed);
        result
    };
    scope.spawn("ring", body).map_err(Error::Thread)
}
