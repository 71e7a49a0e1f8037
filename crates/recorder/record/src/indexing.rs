//! Sets up the thread that drives the indexer, and what it stands on.

use std::sync::Arc;

use core::time::Duration;

use device::Pool;
use index::{Catalog, IndexKeys};
use indexer::{Owner, Setup};
use stage::{Joining, Scope, Sender};
use volume::Reader;

use crate::columns;
use crate::common::Common;
use crate::error::Error;
use crate::index_parts::Indexer;
use crate::index_queue::{self, FromRing, ToIndexer};
use crate::indexer::Run;
use crate::late::{Late, Skips};
use crate::opening::Opened;
use crate::read_back::{OpenReader, ReadBack};
use crate::segment::SegmentLimits;
use crate::status::{IndexerReport, status_of};
use crate::task::Task;

/// Memory and the process, which are there before the first thread starts.
pub(crate) struct Prepared {
    owner: Owner,
    /// Columns for the parts of an index.
    pool: Pool,
    /// What is read back.
    readable: Pool,
}

/// The indexer, which sees the packets in the pool and what is read back.
pub(crate) fn prepare(common: &Common<'_>, opened: &Opened) -> Result<Prepared, Error> {
    let options = common.options;
    let (pool, readable) = columns::index_pools(opened.writer.geometry())?;
    let owner = Owner::new(Setup {
        volume: opened.writer.superblock().volume_id,
        hash_seed: u64::from_le_bytes(host::random_bytes()?),
        sessions: options.sessions,
        memories: vec![common.pool.clone(), readable.clone()],
        workers: options.workers.clone(),
    });
    Ok(Prepared { owner, pool, readable })
}

/// The way of stripes from the ring writer to the indexer, and those for which there was no time.
pub(crate) fn way(common: &Common<'_>) -> (ToIndexer, FromRing, Skips) {
    let (sealed, sealed_queue) = index_queue::queue(common.pool.count(), common.may_wait);
    (sealed, sealed_queue, Skips::default())
}

/// What the thread is made of.
pub(crate) fn indexer<'a>(
    common: &'a Common<'_>,
    opened: &Opened,
    Prepared { owner, pool, readable }: Prepared,
    (skips, tasks): (&Skips, Sender<Task>),
    open_reader: OpenReader<'a>,
) -> Indexer<'a> {
    let Common { options, clock, .. } = *common;
    let (kept, files) = (common.retention, &*common.files);
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
        may_wait: common.may_wait,
        limits: SegmentLimits::for_ring(geometry.slots, geometry.piece_bytes),
        epoch: opened.writer.epoch(),
        keys: IndexKeys::new(opened.keyring.clone()),
        catalog,
        files,
        tasks,
        pool,
        data_columns: usize::from(geometry.data_columns),
        clock,
        status: Arc::clone(&common.status),
        waits: common.waits.clone(),
        control: options.control.clone(),
        events: common.events.clone(),
        late: Late::new(Arc::clone(skips)),
        read_back: ReadBack::new(open_reader, readable),
    }
}

pub(crate) type Indexed = Result<(IndexerReport, Catalog), index::Error>;

/// The last slots are given up when the indexer has ended.
pub(crate) fn retire(
    (indexed, mut catalog): (IndexerReport, Catalog),
    Common { status, clock, files, .. }: &Common<'_>,
) -> Result<IndexerReport, index::Error> {
    catalog.retire(status_of(status).tail, clock.realtime(), files.as_ref())?;
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
