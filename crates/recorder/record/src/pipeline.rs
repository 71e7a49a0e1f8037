//! The threads of a recording, and the loop that feeds them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use core::time::Duration;

use device::Pool;
use format::geometry::Geometry;
use format::piece::Frame;
use format::superblock::Superblock;
use host::CachedVolume;
use index::{Catalog, Files, IndexKeys, MemoryFiles};
use indexer::{Owner, Setup};
use stage::{Joining, Receiver, Scope, Sender, channel};
use units::Clock;
use volume::{Reader, Retention, Writer, WriterCounters};

use crate::account::Account;
use crate::columns::{self, Columns};
use crate::control::Questions;
use crate::covered::Covered;
use crate::error::Error;
use crate::events::{EventKind, Events, Speaker};
use crate::expiry::Expiry;
use crate::index_queue::{self, FromRing};
use crate::indexer::{Indexer, IndexerReport, Run};
use crate::job::{Base, Input, MaxAge, Opened, Options, Report};
use crate::late::{Late, Skips};
use crate::ledger::Ledger;
use crate::links::Links;
use crate::members::{self, Changes, Notifier};
use crate::patrol::{self, Patrolled, Patroller};
use crate::progress::{ProgressReporter, Progressing};
use crate::queues::{Fed, Feeding, Sources};
use crate::reach::ReachBack;
use crate::read_back::ReadBack;
use crate::resilver;
use crate::ring::{RingParts, RingWriter, SharedStatus, Task, WriterStatus, status_of};
use crate::segment::SegmentLimits;
use crate::spares::{self, Opening, SparesEnd};
use crate::steps::ClockSteps;
use crate::storage::Storage;
use crate::watch::Watching;
use crate::watchdog::{self, Waits};

/// Runs one recording on an opened volume.
pub(crate) fn run(
    options: &Options,
    clock: &dyn Clock,
    Base { storage, files, log, sources }: Base,
    opened: Opened,
    progress: Progressing<'_>,
) -> Result<Report, Error> {
    let (files, note) = index_directory(files, options, &opened, clock);
    let failed = AtomicBool::new(false);
    let (status, epoch) = (new_status(&opened, clock.boottime_ns()), opened.writer.epoch());
    let opening = opening_of(options, &opened, &storage);
    let (recovery, pool) = (opened.recovery.clone(), opened.pool.clone());
    let (may_wait, keyring) = (matches!(options.input, Input::Files(_)), opened.keyring.clone());
    let (index_pool, readable) = index_pools(opened.writer.geometry())?;
    let owner = owner_of(options, &opened, &readable)?;
    let open_reader = || Some(storage.reader().ok()?.unlocked(keyring.as_ref()));

    let (ledger, is_stopping) = (Ledger::new(1 + sources.further.len()), AtomicBool::new(false));
    let (waits, events) = (Waits::default(), Events::default());
    let seen = ((&status, &ledger, &pool), Notifier::new(options, log));
    let mut progress =
        new_reporter(options, (&opened, &sources.advice, note), seen, (clock, progress), &events);

    stage::scope(|scope| {
        let said = (&waits, &events);
        let _watched = spawn_watchdog(scope, said, (&status, clock), (log, &options.volume))?;
        let (tasks, task_queue) = channel(pool.count());
        let (sealed, sealed_queue) = index_queue::queue(pool.count(), may_wait);
        let skips = Skips::default();
        let shared: Shared<'_> = (&status, tasks.clone(), index_pool, files.as_ref());
        let earlier = (Late::new(Arc::clone(&skips)), ReadBack::new(&open_reader, readable));
        let indexer = indexer_of((options, clock), (&opened, said), (shared, owner, earlier))?;
        let (spares, spares_end) = spares::start(opening.clone(), tasks.clone());
        let ring = RingParts {
            columns: Columns::new(pool.clone(), opened.writer.geometry())?,
            clock,
            status: Arc::clone(&status),
            ledger: &ledger,
            indexer: sealed,
            skips,
            cut_after_ns: units::nanos(options.cut_after),
            expiry: expiry_of(options, opened.writer.superblock(), &storage)?,
            spares,
            questions: Questions::new(options.control.clone(), 1 + sources.further.len()),
            covered: covered_of(options, &sources, &opened.writer, clock),
            waits: waits.clone(),
        };
        let ring = RingWriter::new(opened.writer, ring);
        let ring = spawn_ring(scope, ring, task_queue, &failed)?;
        let parts = ((&status, &waits), tasks.clone(), &pool);
        let patrol = spawn_patrol(scope, (options, &storage), parts, (files.as_ref(), clock))?;
        let shared = (Arc::clone(&status), tasks.clone(), pool.clone());
        let resilverer = resilver::start(opening, shared, waits.clone()).map_err(Error::Thread)?;
        let index = spawn_indexer(scope, indexer, sealed_queue, opened.reader)?;
        let feeding = Feeding {
            ledger: &ledger,
            pool: pool.clone(),
            frame: if keyring.is_some() { Frame::Encrypted } else { Frame::Plain },
            tasks,
            clock,
            may_wait,
            cut_after: options.cut_after,
            writer_failed: &failed,
            is_stopping: &is_stopping,
            crash: recovery.gap(clock.realtime()),
            cpus: &options.cpus,
            control: options.control.clone(),
            waits: waits.clone(),
            events: events.clone(),
        };
        let fed = feeding.all(scope, sources, &mut || progress.tell())?;
        drop::<resilver::Working>(resilverer);
        let retire = |it| retire(it, &status, clock, files.as_ref());
        let mut report = Threads { ring, patrol, index, spares_end }.end(clock, retire)?;
        assert!(!fed.is_writer_gone, "a writer that is gone has said why");
        (report.recovery, report.epoch) = (recovery, epoch);
        report.take_fed(fed, progress);
        Ok(report)
    })
}

/// What goes on when the last packet was taken, until nothing more is to be written.
struct Threads<'scope> {
    ring: Joining<'scope, Result<WriterCounters, volume::Error>>,
    patrol: Option<Patrol<'scope>>,
    index: Joining<'scope, Indexed>,
    spares_end: SparesEnd,
}

impl Threads<'_> {
    fn end(
        self,
        clock: &dyn Clock,
        retire: impl FnOnce((IndexerReport, Catalog)) -> Result<IndexerReport, index::Error>,
    ) -> Result<Report, Error> {
        let scrubbed = self.patrol.map(Patrol::end).unwrap_or_default();
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
            Ok(IndexerReport {
                rows,
                segments,
                index_bytes,
                unread,
                gave_way,
                deaths,
                cpu,
                notes,
            }) => {
                self.cpu = cpu;
                (self.rows, self.segments, self.index_bytes) = (rows, segments, index_bytes);
                (self.unread, self.gave_way, self.indexer_deaths) = (unread, gave_way, deaths);
                self.notes.extend(notes);
            }
            Err(error) => self.notes.push(format!("indexing stopped: {error}; packets are stored")),
        }
    }

    fn take_fed(&mut self, fed: Fed, mut progress: ProgressReporter<'_>) {
        self.disks = progress.look_at_disks();
        let shown = status_of(progress.status);
        let untold = progress.notifier.tell(&shown.changes, &progress.events);
        self.interfaces = progress.ledger.accounts(&shown.stored);
        progress.look_at_links(&self.interfaces);
        self.news = progress.last_news();
        let ProgressReporter { ledger, pool, notes, notifier, .. } = progress;
        self.notes.extend(notes);
        self.notes.extend(fed.notes);
        self.notes.extend(untold);
        self.notes.extend(notifier.finish());
        self.broken_off = fed.broken_off;
        self.losses = ledger.losses();
        self.total = Account::sum(&self.interfaces);
        self.pool_columns = (pool.count(), pool.count() - pool.least_free_count());
        (self.unindexed, self.indexed_late) = (shown.unindexed, shown.indexed_late);
        self.left_out = shown.left_out;
        if shown.unerased > 0 {
            let slots = shown.unerased;
            self.notes.push(format!(
                "{slots} expired slots are given out no more but not yet erased: the next \
                 recording goes on with them, or `wirespool erase`"
            ));
        }
        self.notes.extend(shown.withheld.note());
        self.clock_doubt = shown.clock_doubt;
        self.notes.extend(shown.clock_doubt.map(|doubt| doubt.to_string()));
        self.acknowledged = shown.acknowledged;
        self.notes.extend(shown.changes.note());
        self.changes = shown.changes.into_kept();
    }
}

/// What heads say of the recording that begins.
fn covered_of(options: &Options, sources: &Sources, writer: &Writer, clock: &dyn Clock) -> Covered {
    let queues = (1 + sources.further.len(), sources.clock);
    Covered::new(&options.input, queues, (writer.acknowledged(), clock.realtime()))
}

/// How long packets are kept from now on.
fn retention(options: &Options, before: &Superblock) -> Result<Retention, Error> {
    let max_age_ns = match options.max_age {
        MaxAge::Unchanged => before.max_age_ns,
        MaxAge::Off => 0,
        MaxAge::Age(age) => units::nanos(age),
    };
    if options.erase == Some(true) && max_age_ns == 0 {
        return Err(Error::EraseWithoutAge);
    }
    Ok(Retention { max_age_ns, erases: options.erase.unwrap_or(before.erases) })
}

fn expiry_of(
    options: &Options,
    before: &Superblock,
    storage: &Arc<dyn Storage>,
) -> Result<Expiry, Error> {
    let retention = retention(options, before)?;
    Expiry::new((retention, options.clock_is_right), Arc::clone(storage))
}

/// What the threads show of themselves.
type Seen<'a> = (&'a SharedStatus, &'a Ledger, &'a Pool);

fn new_reporter<'a>(
    options: &Options,
    (opened, advice, note): (&Opened, &[String], Option<String>),
    ((status, ledger, pool), notifier): (Seen<'a>, Notifier),
    (clock, progress): (&'a dyn Clock, Progressing<'a>),
    events: &Events,
) -> ProgressReporter<'a> {
    let first = [recording_line(options)];
    for line in first.iter().chain(&opened.setup).chain(advice) {
        events.say(EventKind::Setup, "", line.clone());
    }
    let geometry = opened.writer.geometry();
    ProgressReporter {
        progress,
        status,
        ledger,
        pool,
        clock,
        start_ns: clock.boottime_ns(),
        reach: reach_back(options, geometry),
        slots: geometry.slots - u64::from(opened.writer.superblock().window),
        notes: advice.iter().chain(opened.writer.notes()).cloned().chain(note).collect(),
        notifier,
        events: events.clone(),
        speaker: Speaker::default(),
        links: Links::default(),
        steps: ClockSteps::default(),
        has_told_doubt: false,
        has_told_age: false,
        watching: Watching::new(
            opened.watches.clone(),
            opened.writer.superblock(),
            matches!(options.input, Input::Interfaces(_)),
        ),
    }
}

/// What is recorded, and where it goes.
fn recording_line(options: &Options) -> String {
    let input = match &options.input {
        Input::Interfaces(names) => names.join(", "),
        Input::Files(paths) => match &paths[..] {
            [one] if one.as_os_str() == "-" => "standard input".to_owned(),
            [one] => one.display().to_string(),
            more => format!("{} inputs", more.len()),
        },
    };
    format!("recording {input} into {}", options.volume.display())
}

/// Packets of a file come as fast as they are read: their rate predicts nothing.
fn reach_back(options: &Options, geometry: &Geometry) -> Option<ReachBack> {
    let slot_bytes = u64::from(geometry.piece_bytes) * u64::from(geometry.columns());
    let is_live = matches!(options.input, Input::Interfaces(_));
    is_live.then(|| ReachBack::new(geometry.slots * slot_bytes))
}

/// Threads that begin before the ring writer first notes anything find what was mounted.
fn new_status(opened: &Opened, now_ns: i64) -> SharedStatus {
    let writer = &opened.writer;
    Arc::new(Mutex::new(WriterStatus {
        acknowledged: writer.acknowledged(),
        tail: writer.tail(),
        repairable_from: writer.repairable().start,
        durable_below: writer.durable_below(),
        changes: Changes::new(members::at_start(writer.membership(), &opened.recovery)),
        epoch: writer.epoch(),
        now_ns,
        ..WriterStatus::default()
    }))
}

/// The index directory; one in memory, and a note why, where none is given and none can be opened.
fn index_directory(
    given: Option<Box<dyn Files + Send + Sync>>,
    options: &Options,
    opened: &Opened,
    clock: &dyn Clock,
) -> (Box<dyn Files + Send + Sync>, Option<String>) {
    let (path, keeps_sessions) = (&*options.volume, options.keep_sessions.is_some());
    let id = &opened.writer.superblock().volume_id.to_string();
    let volume = CachedVolume { id, path, keeps_sessions };
    let mut note = None;
    let files = given.unwrap_or_else(|| {
        match host::open_index(options.index_dir.as_deref(), &volume, clock.realtime()) {
            Ok(directory) => Box::new(directory),
            Err(error) => {
                let text = "queries read the index from the volume";
                note = Some(format!("no index cache ({error}); {text}"));
                Box::new(MemoryFiles::default())
            }
        }
    });
    (IndexKeys::new(opened.keyring.clone()).over(files, &[patrol::FILE]), note)
}

/// How devices are opened that join this recording.
fn opening_of(options: &Options, opened: &Opened, storage: &Arc<dyn Storage>) -> Opening {
    Opening {
        storage: Arc::clone(storage),
        watches: opened.watches.clone(),
        discard: options.discard,
        run_bytes: opened.writer.discard_bytes(),
    }
}

/// Status, way to the ring writer, columns for it, index directory.
type Shared<'a> = (&'a SharedStatus, Sender<Task>, Pool, &'a (dyn Files + Sync));

fn indexer_of<'a>(
    (options, clock): (&Options, &'a dyn Clock),
    (opened, (waits, events)): (&Opened, (&Waits, &Events)),
    (shared, owner, (late, read_back)): (Shared<'a>, Owner, (Late, ReadBack<'a>)),
) -> Result<Indexer<'a>, Error> {
    let (status, tasks, pool, files) = shared;
    // Rows do not outlive packets that are erased because of their age.
    let kept = retention(options, opened.writer.superblock())?;
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
    Ok(Indexer {
        owner,
        has_sessions: options.sessions.is_some(),
        may_wait: matches!(options.input, Input::Files(_)),
        limits: SegmentLimits::for_ring(geometry.slots, geometry.piece_bytes),
        epoch: opened.writer.epoch(),
        recording: options.name.clone(),
        keys: IndexKeys::new(opened.keyring.clone()),
        catalog,
        files,
        tasks,
        pool,
        data_columns: usize::from(geometry.data_columns),
        clock,
        status: Arc::clone(status),
        waits: waits.clone(),
        events: events.clone(),
        late,
        read_back,
    })
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

/// Columns for the parts of an index, which wait for the members only, and memory for two
/// stripes that are read back.
fn index_pools(geometry: &Geometry) -> Result<(Pool, Pool), Error> {
    let piece_bytes = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
    let read_back = 2 * usize::from(geometry.data_columns);
    let aside = columns::count_aside(geometry);
    Ok((Pool::new(aside, piece_bytes)?, Pool::shared(read_back, piece_bytes)?))
}

/// The indexer, which sees the packets in the pool and what is read back.
fn owner_of(options: &Options, opened: &Opened, readable: &Pool) -> Result<Owner, Error> {
    Ok(Owner::new(Setup {
        volume: opened.writer.superblock().volume_id,
        hash_seed: u64::from_le_bytes(host::random_bytes()?),
        sessions: options.sessions,
        memories: vec![opened.pool.clone(), readable.clone()],
        workers: options.workers.clone(),
    }))
}

type Indexed = Result<(IndexerReport, Catalog), index::Error>;

/// The last slots are given up when the indexer has ended.
fn retire(
    (indexed, mut catalog): (IndexerReport, Catalog),
    status: &SharedStatus,
    clock: &dyn Clock,
    files: &dyn Files,
) -> Result<IndexerReport, index::Error> {
    catalog.retire(status_of(status).tail, clock.realtime(), files)?;
    Ok(indexed)
}

fn spawn_indexer<'scope>(
    scope: &Scope<'scope, '_>,
    parts: Indexer<'scope>,
    sealed: FromRing,
    earlier: Reader,
) -> Result<Joining<'scope, Indexed>, Error> {
    let body = move || Run::new(parts).run(&sealed, earlier);
    scope.spawn("index", body).map_err(Error::Thread)
}

/// Says which wait is too long, until what this gives is dropped.
fn spawn_watchdog<'scope>(
    scope: &Scope<'scope, '_>,
    (waits, events): (&Waits, &Events),
    (status, clock): (&SharedStatus, &'scope dyn Clock),
    (log, volume): (fn(&str), &std::path::Path),
) -> Result<Sender<()>, Error> {
    let (goes_on, ended) = channel(1);
    let (waits, status, events) = (waits.clone(), Arc::clone(status), events.clone());
    let volume = volume.display().to_string();
    let body = move || {
        let log = |line: &str| log(&format!("{volume}: {line}"));
        watchdog::run(&waits, (&status, clock), (&log, &events), &ended);
    };
    scope.spawn("watchdog", body).map_err(Error::Thread)?;
    Ok(goes_on)
}

/// The thread that scrubs, and what ends it by being dropped.
struct Patrol<'scope> {
    thread: Joining<'scope, Patrolled>,
    goes_on: Sender<()>,
}

impl Patrol<'_> {
    fn end(self) -> Patrolled {
        drop(self.goes_on);
        self.thread.join().expect("a panic aborts")
    }
}

fn spawn_patrol<'scope>(
    scope: &Scope<'scope, '_>,
    (options, storage): (&Options, &Arc<dyn Storage>),
    ((status, waits), tasks, pool): ((&SharedStatus, &Waits), Sender<Task>, &Pool),
    (files, clock): (&'scope (dyn Files + Sync), &'scope dyn Clock),
) -> Result<Option<Patrol<'scope>>, Error> {
    let Some(every) = options.scrub_every else { return Ok(None) };
    let patroller = Patroller {
        storage: Arc::clone(storage),
        files,
        clock,
        status: Arc::clone(status),
        pool: pool.clone(),
        tasks,
        waits: waits.clone(),
    };
    let (goes_on, ended) = channel(1);
    let body = move || patroller.run(every, &ended);
    let thread = scope.spawn("scrub", body).map_err(Error::Thread)?;
    Ok(Some(Patrol { thread, goes_on }))
}
