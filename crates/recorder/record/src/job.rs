//! One recording, from options to report.

use std::path::PathBuf;
use std::sync::Arc;

use core::fmt;
use core::ops::ControlFlow;
use core::time::Duration;

use capture::{Source, Timestamps};
use device::{Ahead, Pool};
use encryption::Keyring;
use format::directory::SegmentEntry;
use format::head::StripeId;
use format::superblock::Superblock;
use index::Files;
use indexer::{GaveWay, Workers};
use sandbox::Launcher;
use units::number::to_u64;
use units::{ByteSize, Sleep};
use volume::{Candidate, ClockDoubt, MemberAt, Reader, Recovery, Writer, WriterCounters};

use crate::account::{Account, Loss};
use crate::classes::Class;
use crate::control::Control;
use crate::discards::{self, Discard};
use crate::error::Error;
use crate::events::Event;
use crate::members::MemberChange;
use crate::memory::Budget;
use crate::pipeline;
use crate::queues::{Queues, Sources};
use crate::selection::Selection;
use crate::settling::Settled;
use crate::sources::{self, Way};
use crate::storage::{OpenedDevice, Paths, Storage};
use crate::watch::{Disks, SlowLimit, Watches};

/// Fewest columns of a pool: one being filled, one being written, one with an index, and some
/// slack.
const COLUMNS_MIN: u64 = 8;
/// Of each further queue: one being filled, one being written.
const COLUMNS_PER_QUEUE: u64 = 2;

/// Where packets come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Network interfaces by name.
    Interfaces(Vec<String>),
    /// Capture files, directories of them, `-` for standard input; one after the other.
    Files(Vec<PathBuf>),
}

/// For how long packets are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaxAge {
    /// As the volume has it.
    Unchanged,
    /// Until the ring takes them; what has expired stays so.
    Off,
    /// Packets expire at this age.
    Age(Duration),
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// A member of the volume.
    pub volume: PathBuf,
    /// Where further members are, besides the places that the volume knows.
    pub members: Vec<PathBuf>,
    /// Where packets come from.
    pub input: Input,
    /// Filter in the words of pcap-filter(7).
    pub filter: Option<String>,
    /// Most bytes kept of a packet; 0 keeps all.
    pub snaplen: u32,
    /// Receive packets for other hosts too.
    pub promiscuous: bool,
    /// How many threads take the packets of the interfaces.
    pub queues: Queues,
    /// Which way packets come from interfaces.
    pub way: Way,
    /// For how long an empty queue is looked at without sleeping, where the way permits it.
    pub busy_poll: Option<Duration>,
    /// Who says when a packet came.
    pub timestamps: Timestamps,
    /// Processors that those threads stay on, in turn; none leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// Memory of the kernel's ring, per interface and queue.
    pub kernel_ring_bytes: u64,
    /// Memory between capture and disk; `None`: what the volume was qualified with, if it was.
    pub pool_bytes: Option<u64>,
    /// When a write is called slow.
    pub slow: SlowLimit,
    /// The key and the timeouts of sessions; `None` records without an index.
    pub sessions: Option<session::Config>,
    /// Where index files are cached; `None` is a directory for this volume under the user's cache.
    pub index_dir: Option<PathBuf>,
    /// Rows outlive their packets in the index directory by this time.
    pub keep_sessions: Option<Duration>,
    /// Everything is read and checked this often beside recording, and repaired.
    pub scrub_every: Option<Duration>,
    /// Traffic classes, of which the first that fits decides what is kept of a packet.
    pub classes: Vec<Class>,
    /// Packets that come again with the same bytes within this time are left out.
    pub drop_duplicates: Option<Duration>,
    /// Name of the recording.
    pub name: Option<String>,
    /// Longest time that packets wait in an open column.
    pub cut_after: Duration,
    /// For how long packets are given out.
    pub max_age: MaxAge,
    /// Whether what is older is erased; `None` leaves it as it is.
    pub erase: Option<bool>,
    /// The user states that the clock is right, whatever the volume explains.
    pub clock_is_right: bool,
    /// Members that are given up for ever: not waited for, and strangers should they come back.
    pub without: Vec<u8>,
    /// A command that is run when a member's state changes.
    pub on_member_change: Option<String>,
    /// Which disks get discards ahead of the head.
    pub discard: Discard,
    /// Who may ask for more while it goes on.
    pub control: Control,
    /// Who starts the indexer.
    pub workers: Workers,
    /// Is called when everything is open.
    pub settled: Settled,
    /// Starts the command of `on_member_change`; without one this process does.
    pub launcher: Option<Arc<Launcher>>,
    /// How the member is driven.
    pub device: device::Options,
}

impl Options {
    /// Defaults for everything but the volume and the input.
    pub fn new(volume: PathBuf, input: Input) -> Self {
        Self {
            volume,
            members: Vec::new(),
            input,
            filter: None,
            snaplen: 0,
            promiscuous: true,
            queues: Queues::Auto,
            way: Way::Auto,
            busy_poll: None,
            timestamps: Timestamps::Kernel,
            cpus: Vec::new(),
            kernel_ring_bytes: 64 << 20,
            pool_bytes: None,
            slow: SlowLimit::ByVolume,
            sessions: Some(session::Config::default()),
            index_dir: None,
            keep_sessions: None,
            scrub_every: None,
            classes: Vec::new(),
            drop_duplicates: None,
            name: None,
            cut_after: Duration::from_secs(1),
            max_age: MaxAge::Unchanged,
            erase: None,
            clock_is_right: false,
            without: Vec::new(),
            on_member_change: None,
            discard: Discard::Auto,
            control: Control::default(),
            workers: Workers::default(),
            settled: Settled::default(),
            launcher: None,
            device: device::Options::default(),
        }
    }
}

/// A recording under way.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed_ns: i64,
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// Sums over all interfaces.
    pub total: Account,
    /// Bytes sent to the member.
    pub member_bytes: u64,
    /// Free columns of the pool.
    pub pool_free: usize,
    /// All columns of the pool.
    pub pool_count: usize,
    /// Packets stored for which the indexer has had no time so far.
    pub unindexed: u64,
    /// Packets that stay without an index, because they ended the indexer twice.
    pub left_out: u64,
    /// How often the indexer ended before its time, and another one was started.
    pub indexer_deaths: u64,
    /// Waits inside the recorder that are too long now: which thread, for what, how long.
    pub long_waits: Vec<String>,
    /// Oldest sequence that the ring holds for certain.
    pub tail: u64,
    /// Everything up to here is durable.
    pub acknowledged: StripeId,
    /// Slots that the ring holds for certain, once it has gone round.
    pub slots: u64,
    /// What is to be said since the last call: what was decided when it began, and what happened.
    pub news: Vec<Event>,
    /// The newest things that happened and were said.
    pub events: Vec<Event>,
    /// What became of members so far.
    pub changes: Vec<MemberChange>,
    /// What a whole ring holds at the rate of the last minute, in nanoseconds; `None` from files,
    /// whose packets do not come at their own pace.
    pub holds_ns: Option<i64>,
    /// What the members did so far, beside what they were qualified for.
    pub disks: Disks,
}

/// A recording that has ended.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// Sum over all interfaces.
    pub total: Account,
    /// What was lost, with what stood in the way; the first thousand.
    pub losses: Vec<Loss>,
    /// Packets stored without a row in the index: the indexer was too far behind.
    pub unindexed: u64,
    /// Packets for which the indexer had no time when they came, and found it later.
    pub indexed_late: u64,
    /// Packets that stay without an index, because they ended the indexer twice.
    pub left_out: u64,
    /// Packets did not expire by the clock.
    pub clock_doubt: Option<ClockDoubt>,
    /// How often the indexer ended before its time, and another one was started.
    pub indexer_deaths: u64,
    /// Packets indexed whose payload was not looked at for names, because there was no time.
    pub unread: u64,
    /// What the indexer left out for lack of memory.
    pub gave_way: GaveWay,
    /// Columns of the pool, and most of them that were in use at once.
    pub pool_columns: (usize, usize),
    /// Rows written to the index.
    pub rows: u64,
    /// Segments closed.
    pub segments: u64,
    /// Bytes of index.
    pub index_bytes: u64,
    /// What was sent to the member, and how long its slowest write took.
    pub writer: WriterCounters,
    /// Before the first packet was asked for: opening inputs and volume, memory, the mount.
    pub opening_ns: i64,
    /// From the first packet asked for to the last acknowledgement.
    pub elapsed_ns: i64,
    /// The last part of that: no packet was left to take, columns and indexes were.
    pub closing_ns: i64,
    /// CPU time of the recorder and its indexers meanwhile.
    pub cpu: Duration,
    /// What the volume looked like when it was opened.
    pub recovery: Recovery,
    /// Number of this opening.
    pub epoch: u32,
    /// Everything up to here is durable.
    pub acknowledged: StripeId,
    /// What became of members, in the order of time.
    pub changes: Vec<MemberChange>,
    /// What the members did, beside what they were qualified for.
    pub disks: Disks,
    /// Things the user should know, one line each.
    pub notes: Vec<String>,
    /// What happened and was not said before the end.
    pub news: Vec<Event>,
    /// Inputs that broke off, one line each: which, where, why.
    pub broken_off: Vec<String>,
}

/// Records until the sources end or `progress`, called about five times a second, breaks: then what
/// was accepted is stored, sealed and acknowledged.
pub fn record(
    options: &Options,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let opening_ns = clock.boottime_ns();
    // Before anything is opened: a filter that means nothing changes nothing.
    let selection = Selection::new(options)?;
    // Memory that card and processors share lies where the card is.
    let near = host::MemoryNear::interfaces(interfaces_of(&options.input));
    let mut sources = sources::open(options, selection)?;
    let storage: Arc<dyn Storage> = Arc::new(Paths::new(options));
    let mut opened = open_volume((options, &*storage), 1 + sources.further.len(), clock)?;
    opened.setup.append(&mut sources.setup);
    drop(near);
    sources.advice.extend(options.settled.call(options, opened.writer.superblock()));
    let cpu_before = host::cpu_time()?;
    let start_ns = clock.boottime_ns();
    let base = Base { storage, files: None, log: host::log_warning, sources };
    let mut report = pipeline::run(options, clock, base, opened, progress)?;
    report.opening_ns = start_ns - opening_ns;
    report.elapsed_ns = clock.boottime_ns() - start_ns;
    let cpu = host::cpu_time()?;
    // That of the indexers is there already.
    report.cpu += (cpu.user + cpu.system).saturating_sub(cpu_before.user + cpu_before.system);
    report.assert_accounted();
    Ok(report)
}

/// What a recording stands on, where that is not this machine.
pub struct Ground {
    /// Opens the disks of the members.
    pub storage: Arc<dyn Storage>,
    /// The index directory.
    pub files: Box<dyn Files + Send + Sync>,
    /// Where packets come from: one for each queue.
    pub sources: Vec<Box<dyn Source>>,
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ground").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// As [`record`], on ground that is given: what `options` say of places is not looked at.
pub fn record_on(
    ground: Ground,
    options: &Options,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let selection = Selection::new(options)?;
    let Ground { storage, files, sources } = ground;
    let opened = open_volume((options, &*storage), sources.len(), clock)?;
    let mut sources = sources.into_iter();
    let (first, further) = (sources.by_ref().take(1).collect(), sources.collect());
    let (advice, setup, stamps) = Default::default();
    let sources = Sources { first, further, advice, selection, setup, clock: stamps };
    let base = Base { storage, files: Some(files), log: |_| (), sources };
    let report = pipeline::run(options, clock, base, opened, progress)?;
    report.assert_accounted();
    Ok(report)
}

/// What a recording stands on.
pub(crate) struct Base {
    pub(crate) storage: Arc<dyn Storage>,
    /// `None`: as the options say.
    pub(crate) files: Option<Box<dyn Files + Send + Sync>>,
    /// Where changes of members are reported.
    pub(crate) log: fn(&str),
    pub(crate) sources: Sources,
}

impl Report {
    fn assert_accounted(&self) {
        for account in &self.interfaces {
            let settled = account.is_balanced() && account.in_flight == 0;
            assert!(settled, "every packet is accounted for: {account:?}");
        }
    }
}

fn interfaces_of(input: &Input) -> &[String] {
    match input {
        Input::Interfaces(names) => names,
        Input::Files(_) => &[],
    }
}

/// A volume opened for this recording.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) recovery: Recovery,
    pub(crate) pool: Pool,
    /// Finds memory for the pool until the recording has ended.
    pub(crate) _ahead: Ahead,
    /// The volume as it was when it was opened, for the index.
    pub(crate) reader: Reader,
    pub(crate) directory: Vec<SegmentEntry>,
    /// All its devices, those that come later too.
    pub(crate) watches: Watches,
    /// What this recording encrypts with: it can read nothing that was recorded before.
    pub(crate) keyring: Option<Arc<Keyring>>,
    /// What was decided, one line each.
    pub(crate) setup: Vec<String>,
}

fn open_volume(
    (options, storage): (&Options, &dyn Storage),
    queues: usize,
    clock: &dyn Sleep,
) -> Result<Opened, Error> {
    // The pool's shape is in the superblock.
    let (mut members, reader) = storage.find()?;
    members.retain(|found| !options.without.contains(&found.member));
    let piece_bytes = u64::from(reader.geometry().piece_bytes);
    let further_queues = to_u64(queues - 1);
    let needed_bytes = (COLUMNS_MIN + COLUMNS_PER_QUEUE * further_queues) * piece_bytes;
    let (pool_bytes, pool_line) = pool_bytes(options, reader.superblock());
    if pool_bytes < needed_bytes {
        return Err(Error::Pool { pool_bytes, needed_bytes });
    }
    // A stripe holds a column of every further data column while it fills, and while it is cut.
    let further = 2 * (u64::from(reader.geometry().data_columns) - 1);
    let columns = pool_bytes / piece_bytes + further;
    let columns = usize::try_from(columns).unwrap_or(usize::MAX);
    let reserve = reserve(columns, reader.superblock());
    let pool = Pool::shared_with_reserve(columns, reserve, reader.piece_bytes())?;
    // From now on, and so with the memory policy of this thread.
    let ahead = pool.touch_ahead().map_err(Error::Thread)?;
    let watches = Watches::new(options.slow, reader.superblock().qualified.as_ref());
    let candidates = members.iter().zip(storage.open_all(&members));
    let over = |(found, opened): (&MemberAt, OpenedDevice)| match opened {
        // One that is in use, say, is not lost: the user would want to know.
        Err(error) if !error.is_failure() => Err(error),
        opened => {
            let device = opened.map(|it| watches.over(it, Some(found.member), &found.path));
            Ok((found.member, device.map_err(volume::Error::from)))
        }
    };
    let mut devices = candidates.map(over).collect::<Result<Vec<_>, _>>()?;
    devices.extend(dead(storage, &reader, &options.without));
    let opener = storage.opener(&members, clock)?;
    let (mut writer, recovery) = volume::mount_members(devices, &options.without, &opener)?;
    let keyring = Arc::new(Keyring::new(writer.superblock().volume_id.0, None));
    writer.seal_with(storage.random_key(), Arc::clone(&keyring))?;
    let keyring = writer.superblock().is_encrypted.then_some(keyring);
    members.retain(|found| recovery.failed.iter().all(|failed| failed.member != found.member));
    let reader = Reader::of_mounted(storage.open_members(&members)?, &writer)?;
    let directory = reader.newest_index().and_then(|at| reader.directory(at)).unwrap_or_default();
    let mut setup = discards::begin(&mut writer, (&members, storage), options.discard);
    setup.extend(pool_line);
    let held = u64::try_from(columns + reserve).unwrap_or(u64::MAX).saturating_mul(piece_bytes);
    let budget = Budget::new(options, reader.geometry(), (queues, held, writer.sealing_bytes()));
    setup.push(budget.to_string());
    if pool.is_in_huge_pages() {
        setup.push("the pool lies in huge pages".to_owned());
    }
    let reader = reader.unlocked(keyring.as_ref());
    Ok(Opened { writer, recovery, pool, _ahead: ahead, reader, directory, watches, keyring, setup })
}

/// Columns beyond the pool, for those that disks which hang keep: as many as a window of writes
/// has, for each member that may be lost and each spare that may take its place.
fn reserve(columns: usize, volume: &Superblock) -> usize {
    let may_hang = usize::from(volume.geometry.parity_columns) + volume.spares.len();
    let window = usize::from(volume.window);
    may_hang * window.min(columns)
}

/// The size of the pool where the user chose none. A file can wait for the disk: more memory in
/// between than keeps all threads busy would only cool their caches.
const POOL_BYTES_OF_FILES: u64 = 16 << 20;
const POOL_BYTES: u64 = 256 << 20;

/// The memory between capture and disk, and why, where that is worth a line.
fn pool_bytes(options: &Options, superblock: &Superblock) -> (u64, Option<String>) {
    let default = match &options.input {
        Input::Interfaces(_) => POOL_BYTES,
        Input::Files(_) => POOL_BYTES_OF_FILES,
    };
    let qualified = match (options.pool_bytes, &superblock.qualified, &options.input) {
        (Some(bytes), ..) => return (bytes, None),
        (None, Some(qualified), Input::Interfaces(_)) => qualified,
        _ => return (default, None),
    };
    // Each member guarantees its rate with its pool, and data columns share what arrives.
    let wanted = qualified.pool_bytes.saturating_mul(u64::from(superblock.geometry.data_columns));
    let bytes = wanted.max(default);
    let most = host::memory_available_bytes().map_or(u64::MAX, |bytes| bytes / 2).max(default);
    let line = if bytes <= most {
        format!("a pool of {}, as the volume was qualified", ByteSize(bytes))
    } else {
        format!(
            "a pool of {}, half of the free memory: the volume was qualified with {}, and \
             guarantees less with this",
            ByteSize(most),
            ByteSize(bytes)
        )
    };
    (bytes.min(most), Some(line))
}

/// Members that are not there although something is in their place that cannot be read.
fn dead(storage: &dyn Storage, reader: &Reader, without: &[u8]) -> Vec<Candidate> {
    let (membership, volume) = (reader.membership(), reader.superblock());
    let absent = membership.absent().filter(|member| !without.contains(member));
    let dead = absent.filter_map(|member| match storage.why_absent(volume, member)? {
        error @ volume::Error::Device(_) => Some((member, Err(error))),
        _ => None,
    });
    dead.collect()
}
