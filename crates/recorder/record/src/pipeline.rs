//! The threads of a recording, and the loop that feeds them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use events::Events;
use format::piece::Frame;
use format::recorded::RecordedClock;
use index::{Catalog, Files};
use stage::{Joining, Receiver, Scope, channel};
use units::{Clock, Timestamp};
use volume::Retention;
use writer::WriterCounters;

use crate::columns::{self, Columns};
use crate::control::Questions;
use crate::covered::Covered;
use crate::error::Error;
use crate::expiry::{self, Expiry};
use crate::index_queue::{self, ToIndexer};
use crate::late::{Late, Skips};
use crate::ledger::Ledger;
use crate::members::Notifier;
use crate::opening::Opened;
use crate::options::{Input, Options};
use crate::patrol::{self, PatrolThread};
use crate::progress::{ProgressReporter, Progressing};
use crate::queues::{Feeding, Sources};
use crate::read_back::ReadBack;
use crate::report::Report;
use crate::ring::{RingParts, RingWriter};
use crate::spares::{self, Opening, Spares, SparesEnd};
use crate::status::{IndexerReport, SharedStatus, WriterStatus};
use crate::storage::Storage;
use crate::task::Task;
use crate::watchdog::{self, Waits};
use crate::{index_directory, indexing, resilver};

/// What a recording stands on.
pub(crate) struct Base {
    pub(crate) storage: Arc<dyn Storage>,
    /// `None`: as the options say.
    pub(crate) files: Option<Box<dyn Files + Send + Sync>>,
    /// Where changes of members are reported.
    pub(crate) log: fn(&str),
    pub(crate) sources: Sources,
}

/// Runs one recording on an opened volume.
pub(crate) fn run(
    options: &Options,
    clock: &dyn Clock,
    Base { storage, files, log, sources }: Base,
    opened: Opened,
    progress: Progressing<'_>,
) -> Result<Report, Error> {
    let queues = 1 + sources.further.len();
    let (files, note) = index_directory::open(files, options, &opened, clock);
    let failed = AtomicBool::new(false);
    let status = WriterStatus::new(&opened.writer, &opened.recovery, clock.boottime_ns());
    let (status, epoch) = (Arc::new(Mutex::new(status)), opened.writer.epoch());
    let retention = expiry::retention(options, opened.writer.superblock())?;
    let opening = Opening::new(options, &opened, &storage);
    let (recovery, pool) = (opened.recovery.clone(), opened.pool.clone());
    let (may_wait, keyring) = (matches!(options.input, Input::Files(_)), opened.keyring.clone());
    let (index_pool, readable) = columns::index_pools(opened.writer.geometry())?;
    let owner = indexing::owner(options, &opened, &readable)?;
    let open_reader = || Some(storage.reader().ok()?.unlocked(keyring.as_ref()));

    let (ledger, is_stopping) = (Ledger::new(queues), AtomicBool::new(false));
    let (waits, events) = (Waits::default(), Events::default());
    let known = (&opened, &*sources.advice, note);
    let shown = ((&status, &ledger, &pool), Notifier::new(options, log));
    let mut progress = ProgressReporter::new(options, known, shown, (clock, progress), &events);

    stage::scope(|scope| {
        let (skips, said) = (Skips::default(), (&waits, &events));
        let _watched = watchdog::start(scope, said, (&status, clock), (log, &options.volume))?;
        let (tasks, task_queue) = channel(pool.count());
        let (sealed, sealed_queue) = index_queue::queue(pool.count(), may_wait);
        let shared: indexing::Shared<'_> = (&status, tasks.clone(), index_pool, files.as_ref());
        let earlier = (Late::new(Arc::clone(&skips)), ReadBack::new(&open_reader, readable));
        let chosen = (options, retention, clock);
        let indexer = indexing::indexer(chosen, (&opened, said), (shared, owner, earlier));
        let (spares, spares_end) = spares::start(opening.clone(), tasks.clone());
        let decides = (options, retention, (queues, sources.clock, sources.from));
        let shared = (Arc::clone(&status), &ledger, waits.clone());
        let ring =
            ring_parts(decides, (&opened, &storage, clock), shared, (sealed, skips, spares))?;
        let ring = spawn_ring(scope, RingWriter::new(opened.writer, ring), task_queue, &failed)?;
        let parts = ((&status, &waits), tasks.clone(), &pool);
        let patrol = patrol::start(scope, (options, &storage), parts, (files.as_ref(), clock))?;
        let shared = (Arc::clone(&status), tasks.clone(), pool.clone());
        let resilverer = resilver::start(opening, shared, waits.clone()).map_err(Error::Thread)?;
        let index = indexing::start(scope, indexer, sealed_queue, opened.reader)?;
        let feeding = Feeding {
            options,
            ledger: &ledger,
            pool: pool.clone(),
            frame: if keyring.is_some() { Frame::Encrypted } else { Frame::Plain },
            tasks,
            clock,
            may_wait,
            writer_failed: &failed,
            is_stopping: &is_stopping,
            from: sources.from.unwrap_or(Timestamp::MIN),
            crash: recovery.gap(clock.realtime()),
            waits: waits.clone(),
            events: events.clone(),
        };
        let fed = feeding.all(scope, sources, &mut || progress.tell())?;
        drop::<resilver::Working>(resilverer);
        let retire = |it| indexing::retire(it, &status, clock, files.as_ref());
        let mut report = Threads { ring, patrol, index, spares_end }.end(clock, retire)?;
        assert!(!fed.is_writer_gone, "a writer that is gone has said why");
        (report.recovery, report.epoch) = (recovery, epoch);
        progress.finish((fed.notes, fed.broken_off), &mut report);
        Ok(report)
    })
}

/// Options, ages, and how many queues there are, whose clock they go by, and from when on.
type Decides<'a> = (&'a Options, Retention, (usize, RecordedClock, Option<Timestamp>));

/// What the ring writer decides by, and whom it hands things to.
fn ring_parts<'a>(
    (options, retention, (queues, stamps, from)): Decides<'_>,
    (opened, storage, clock): (&Opened, &Arc<dyn Storage>, &'a dyn Clock),
    (status, ledger, waits): (SharedStatus, &'a Ledger, Waits),
    (indexer, skips, spares): (ToIndexer, Skips, Spares),
) -> Result<RingParts<'a>, Error> {
    let writer = &opened.writer;
    let begins = (writer.acknowledged(), from.unwrap_or_else(|| clock.realtime()));
    Ok(RingParts {
        columns: Columns::new(opened.pool.clone(), writer.geometry())?,
        clock,
        status,
        ledger,
        indexer,
        skips,
        cut_after_ns: units::nanos(options.cut_after),
        expiry: Expiry::new((retention, options.clock_is_right), Arc::clone(storage))?,
        spares,
        questions: Questions::new(options.control.clone(), queues),
        covered: Covered::new(
            &options.input,
            (queues, stamps),
            begins,
            opened.reader.recorded_until(),
        ),
        waits,
    })
}

/// What goes on when the last packet was taken, until nothing more is to be written.
struct Threads<'scope> {
    ring: Joining<'scope, Result<WriterCounters, volume::Error>>,
    patrol: Option<PatrolThread<'scope>>,
    index: Joining<'scope, indexing::Indexed>,
    spares_end: SparesEnd,
}

impl Threads<'_> {
    fn end(
        self,
        clock: &dyn Clock,
        retire: impl FnOnce((IndexerReport, Catalog)) -> Result<IndexerReport, index::Error>,
    ) -> Result<Report, Error> {
        let scrubbed = self.patrol.map(PatrolThread::end).unwrap_or_default();
        let ended_ns = clock.boottime_ns();
        let indexed = self.index.join().expect("a panic aborts");
        drop(self.spares_end);
        let writer = self.ring.join().expect("a panic aborts")?;
        let closing_ns = clock.boottime_ns() - ended_ns;
        let mut report = Report { writer, closing_ns, ..Report::default() };
        report.take_index(indexed.and_then(retire));
        report.notes.extend(scrubbed.notes());
        Ok(report)
    }
}

impl Report {
    /// An index that failed costs no packet: what it does not cover is indexed when asked for.
    fn take_index(&mut self, indexed: Result<IndexerReport, index::Error>) {
        match indexed {
            Ok(index) => {
                (self.cpu, self.unreadable) = (index.cpu, index.unreadable);
                (self.rows, self.segments) = (index.rows, index.segments);
                (self.index_bytes, self.indexer_deaths) = (index.index_bytes, index.deaths);
                (self.unread, self.gave_way) = (index.unread, index.gave_way);
                self.notes.extend(index.notes);
            }
            Err(error) => self.notes.push(format!("indexing stopped: {error}; packets are stored")),
        }
    }
}

fn spawn_ring<'scope>(
    scope: &Scope<'scope, '_>,
    ring: RingWriter<'scope>,
    tasks: Receiver<Task>,
    failed: &'scope AtomicBool,
) -> Result<Joining<'scope, Result<WriterCounters, volume::Error>>, Error> {
    let body = move || {
        let result = ring.run(&tasks);
        failed.store(result.is_err(), Ordering::Relaxed);
        result
    };
    scope.spawn("ring", body).map_err(Error::Thread)
}
