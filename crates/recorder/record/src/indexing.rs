//! Sets up the thread that drives the indexer, and what it stands on.

use std::sync::Arc;

use core::time::Duration;

use device::Pool;
use index::{Catalog, Files, IndexKeys};
use indexer::{Owner, Setup};
use stage::{Joining, Scope, Sender};
use units::Clock;
use volume::{Reader, Retention};

use crate::error::Error;
use crate::index_parts::Indexer;
use crate::index_queue::FromRing;
use crate::indexer::Run;
use crate::late::Late;
use crate::opening::Opened;
use crate::options::{Input, Options};
use crate::read_back::ReadBack;
use crate::segment::SegmentLimits;
use crate::status::{IndexerReport, SharedStatus, status_of};
use crate::task::Task;
use crate::watchdog::Waits;
use events::Events;

/// Status, way to the ring writer, columns for it, index directory.
pub(crate) type Shared<'a> = (&'a SharedStatus, Sender<Task>, Pool, &'a (dyn Files + Sync));

pub(crate) fn indexer<'a>(
    (options, kept, clock): (&Options, Retention, &'a dyn Clock),
    (opened, (waits, events)): (&Opened, (&Waits, &Events)),
    (shared, owner, (late, read_back)): (Shared<'a>, Owner, (Late, ReadBack<'a>)),
) -> Indexer<'a> {
    let (status, tasks, pool, files) = shared;
    // Rows do not outlive packets that are erased because of their age.
    let max_age = Duration::from_nanos(u64::try_from(kept.max_age_ns).expect("it is checked"));
    let bound = if kept.erases && kept.max_age_ns > 0 { max_age } else { Duration::MAX };
    let keep_sessions = options.keep_sessions.map(|keep| keep.min(bound));
    let superblock = opened.writer.superblock();
    let geometry = &superblock.geometry;
    let tail = opened.writer.tail();
    let mut catalog = Catalog::new(superblock.volume_id, tail, keep_sessions);
    catalog.add(&opened.directory);
    let newest = opened.directory.first().map(|newest| newest.summary.first);
    // Where files cannot be removed they do not count either: queries ask the ring.
    drop(catalog.drop_future(newest.unwrap_or(opened.writer.acknowledged()), files));
    Indexer {
        owner,
        has_sessions: options.sessions.is_some(),
        may_wait: matches!(options.input, Input::Files(_)),
        limits: SegmentLimits::for_ring(geometry.slots, geometry.piece_bytes),
        epoch: opened.writer.epoch(),
        keys: IndexKeys::new(opened.keyring.clone()),
        catalog,
        files,
        tasks,
        pool,
        data_columns: usize::from(geometry.data_columns),
        clock,
        status: Arc::clone(status),
        waits: waits.clone(),
        control: options.control.clone(),
        events: events.clone(),
        late,
        read_back,
    }
}

/// The indexer, which sees the packets in the pool and what is read back.
pub(crate) fn owner(options: &Options, opened: &Opened, readable: &Pool) -> Result<Owner, Error> {
    Ok(Owner::new(Setup {
        volume: opened.writer.superblock().volume_id,
        hash_seed: u64::from_le_bytes(host::random_bytes()?),
        sessions: options.sessions,
        memories: vec![opened.pool.clone(), readable.clone()],
        workers: options.workers.clone(),
    }))
}

pub(crate) type Indexed = Result<(IndexerReport, Catalog), index::Error>;

/// The last slots are given up when the indexer has ended.
pub(crate) fn retire(
    (indexed, mut catalog): (IndexerReport, Catalog),
    status: &SharedStatus,
    clock: &dyn Clock,
    files: &dyn Files,
) -> Result<IndexerReport, index::Error> {
    catalog.retire(status_of(status).tail, clock.realtime(), files)?;
    Ok(indexed)
}

pub(crate) fn start<'scope>(
    scope: &Scope<'scope, '_>,
    parts: Indexer<'scope>,
    sealed: FromRing,
    earlier: Reader,
) -> Result<Joining<'scope, Indexed>, Error> {
    let body = move || Run::new(parts).run(&sealed, earlier);
    scope.spawn("index", body).map_err(Error::Thread)
}
