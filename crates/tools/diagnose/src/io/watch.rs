//! Listens for a while, puts requests together, and learns meanwhile which processes and files they
//! belong to: a process may be gone in a moment, and with it what it had open.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use blockdev::owners::Owner;
use blockdev::placement::{Disk, FileExtent, Filesystem};
use findings::words;
use host::DeviceNumber;
use observe::facts::Facts;
use observe::io::{DiskCounters, OpenFile, Process, ProcessCounters};
use observe::tracepoints::{FilePage, Happened, Operation, TraceEvent};
use units::number::{between, per_second};
use units::{NANOS_PER_SECOND, Sleep};

use super::files::{FileKey, Files};
use super::held::{GroupSeen, Groups, Held};
use super::requests::{Request, Requests};
use super::syncs::Syncs;
use super::tally::{
    Amount, Content, DiskSeen, Faults, FileSeen, PauseSeen, ProcessSeen, SyncKey, SyncSeen,
};

/// What is asked of a machine.
pub trait Machine: Groups {
    /// What has happened since the last time, in order; with `is_last` all there is.
    fn events(&mut self, is_last: bool, into: &mut Vec<TraceEvent>);
    /// How well it is traced.
    fn tracing(&self) -> Tracing;
    /// Counters of disks since they are there.
    fn disks(&mut self) -> BTreeMap<DeviceNumber, (String, DiskCounters)>;
    /// Counters of processes, and how many could not be seen.
    fn processes(&mut self) -> (BTreeMap<u32, ProcessCounters>, usize);
    /// A process by its number.
    fn process(&mut self, number: u32) -> Option<Process>;
    /// What a descriptor of a process leads to, and what that lies on, or is; `None` where it is no
    /// file, or not known any more.
    fn opened(&mut self, process: u32, descriptor: u32) -> Option<(PathBuf, DeviceNumber)>;
    /// Files that a process has open.
    fn files_of(&mut self, process: u32) -> Vec<OpenFile>;
    /// Files that are asked for from the beginning.
    fn files_wanted(&mut self) -> Vec<OpenFile>;
    /// Where a file lies on the device of its file system.
    fn extents_of(&mut self, file: &OpenFile) -> Option<Vec<FileExtent>>;
    /// The disk that a device is on.
    fn disk_of(&mut self, device: DeviceNumber) -> Option<Disk>;
    /// What is mounted.
    fn filesystems(&mut self) -> BTreeMap<DeviceNumber, Filesystem>;
    /// Whose a byte of a file system's device is.
    fn owner_of(&mut self, filesystem: &Filesystem, place: u64) -> Option<Owner>;
    /// How disks are set up.
    fn facts(&mut self) -> Facts;
    /// The part of a disk that is looked at; `None` is all of all.
    fn scope(&self) -> Option<Disk>;
    /// The process that looks, which is left out.
    fn own(&self) -> Option<u32>;
}

/// How well requests were seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tracing {
    /// One by one.
    Seen {
        /// Records of requests that did not come.
        lost_requests: u64,
        /// Records of pages.
        lost_pages: u64,
    },
    /// Not at all; what it would take.
    Refused(String),
}

impl Default for Tracing {
    fn default() -> Self {
        Self::Seen { lost_requests: 0, lost_pages: 0 }
    }
}

/// What a watch of disks saw.
#[derive(Clone, Debug, Default)]
pub struct IoWatch {
    /// Length of the watch.
    pub ns: i64,
    /// How completely requests were seen.
    pub tracing: Tracing,
    /// Requests by disk.
    pub disks: BTreeMap<DeviceNumber, DiskSeen>,
    /// Requests by process; 0 is all workers of the kernel.
    pub processes: BTreeMap<u32, ProcessSeen>,
    /// Reads and writes by what lies there.
    pub files: BTreeMap<Content, FileSeen>,
    /// Names of files.
    pub names: BTreeMap<FileKey, PathBuf>,
    /// What the kernel counted meanwhile, by block device: partitions and stacked devices, too.
    pub counters: BTreeMap<DeviceNumber, (String, DiskCounters)>,
    /// What the kernel counted meanwhile of the processes that we may look into.
    pub process_counters: BTreeMap<u32, ProcessCounters>,
    /// Processes that we may not look into.
    pub unseen_processes: usize,
    /// Who waited for which file to become durable.
    pub syncs: BTreeMap<SyncKey, SyncSeen>,
    /// Processes that were held back because they changed more of files than a device has taken.
    pub pauses: BTreeMap<(u32, DeviceNumber), PauseSeen>,
    /// Commits of journals, and the blocks that they wrote.
    pub commits: BTreeMap<DeviceNumber, Amount>,
    /// Groups of processes with limits at disks, of which anything waited.
    pub groups: Vec<GroupSeen>,
    /// Mounted file systems.
    pub filesystems: BTreeMap<DeviceNumber, Filesystem>,
    /// The disks that their devices are, or are a part of, where that is known.
    pub on: BTreeMap<DeviceNumber, Disk>,
    /// How disks are set up.
    pub facts: Facts,
    /// Requests whose beginning or end was not seen.
    pub unmatched: u64,
    /// Requests whose place was not looked up, because there were too many.
    pub unplaced: u64,
    /// Requests of the process that looks, which are in nothing else.
    pub own: Amount,
}

impl IoWatch {
    /// How long it took, in seconds.
    pub fn seconds(&self) -> f64 {
        core::time::Duration::from_nanos(u64::try_from(self.ns).unwrap_or(0)).as_secs_f64()
    }

    /// How many a second, of so many during the watch.
    pub fn per_second(&self, count: u64) -> u64 {
        per_second(count, between(0, self.ns))
    }

    /// Whether so many nanoseconds are at least so many hundredths of the watch.
    pub(super) fn is_share(&self, nanos: u64, hundredths: u64) -> bool {
        let all = u128::from(between(0, self.ns).max(1));
        u128::from(nanos) * 100 >= all * u128::from(hundredths)
    }

    /// How long a block device had anything to do, as the kernel counts that.
    pub(super) fn busy_ns(&self, device: DeviceNumber) -> u64 {
        let busy_ms = self.counters.get(&device).map_or(0, |(_, gained)| gained.busy_ms);
        busy_ms.saturating_mul(1_000_000)
    }

    /// Leaves out what is not below a folder, or not this file.
    pub fn keep_below(&mut self, place: &std::path::Path) {
        let is_below = |path: &PathBuf| path.starts_with(place);
        self.syncs.retain(|key, _| key.path.as_ref().is_some_and(is_below));
        let names = &self.names;
        self.files.retain(|content, _| match content {
            Content::File(file) => names.get(file).is_some_and(|name| name.starts_with(place)),
            _ => false,
        });
    }

    /// The kernel's name of a device.
    pub fn device_name(&self, device: DeviceNumber) -> String {
        let named = self.counters.get(&device).map(|(name, _)| name.clone());
        named.unwrap_or_else(|| device.to_string())
    }

    /// What lies there, in words.
    pub fn content_name(&self, content: Content) -> String {
        let of = |device| match self.filesystems.get(device) {
            Some(filesystem) => filesystem.mount_point.display().to_string(),
            None => self.device_name(*device),
        };
        match &content {
            Content::File(file) => match self.names.get(file) {
                Some(path) => path.display().to_string(),
                None => format!("file {} of {}", file.inode, of(&file.device)),
            },
            Content::Journal(device) => format!("journal of {}", of(device)),
            Content::Metadata(device) => format!("metadata of {}", of(device)),
            Content::Free(device) => format!("removed files of {}", of(device)),
            Content::Unknown(device) => format!("other files of {}", of(device)),
            Content::Raw(device) => format!("{}, no file system", self.device_name(*device)),
        }
    }

    /// `mapper (process 412)`.
    pub fn process_label(&self, process: u32) -> String {
        match self.processes.get(&process) {
            Some(seen) if process == WORKERS => seen.name.clone(),
            Some(seen) => words::process(&seen.name, process),
            None => format!("process {process}"),
        }
    }
}

/// The number that all workers of the kernel go by: each request may have another one.
pub(super) const WORKERS: u32 = 0;
const WORKERS_NAME: &str = "kernel workers";
/// Between two looks into the rings.
const NAP_NS: i64 = NANOS_PER_SECOND / 50;
/// Between two rounds in which requests are given to files.
const ROUND_NS: i64 = NANOS_PER_SECOND / 2;
/// Requests that wait for their files.
const WAITING_MAX: usize = 1 << 18;
/// Pages that a process is known to have changed.
const PAGES_MAX: usize = 1 << 18;
/// Who goes through a mapping, in either direction, touches the next page within so many: 16 around
/// a page come with it.
const NEAR_PAGES: u64 = 64;
/// Pages that are mapped with one (`fault_around_bytes`).
const AROUND_PAGES: u64 = 16;
/// Processes and disks that they wait for.
const PAUSES_MAX: usize = 1 << 14;
/// Files of which is known who touched their pages.
const TOUCHED_MAX: usize = 1 << 16;
/// Files that are looked for on their disks in a round.
const PLACED_A_ROUND: usize = 2000;
/// Places at the end of which a file system is asked: a millisecond each, of a large ext4.
const ASKED_MAX: usize = 512;
/// Reads of a part of a page are at most as long as the largest page that files are kept in.
const PARTIAL_MAX: u64 = 16 << 10;

/// A file that requests may belong to.
#[derive(Debug)]
struct Candidate {
    file: OpenFile,
    /// It may lie somewhere else than is known.
    is_stale: bool,
}

/// Who changed a file, and who touched pages of its mapping.
#[derive(Debug, Default)]
struct Touched {
    changers: BTreeMap<u32, u64>,
    faults: BTreeMap<u32, Faults>,
    /// Where each touched a page last, and whether the kernel had to look for it.
    last: BTreeMap<u32, (u64, bool)>,
}

impl Touched {
    fn fault(&mut self, process: u32, index: u64, is_in_memory: bool) {
        let last = self.last.insert(process, (index, !is_in_memory));
        // A page that was looked for is mapped with those around it: the same touch.
        if let Some((page, true)) = last.filter(|_| is_in_memory)
            && page.abs_diff(index) <= AROUND_PAGES
        {
            self.last.insert(process, (page, false));
            return;
        }
        let last = last.map(|(page, _)| page);
        let faults = self.faults.entry(process).or_default();
        *(if is_in_memory { &mut faults.in_memory } else { &mut faults.count }) += 1;
        faults.far += u64::from(last.is_some_and(|last| last.abs_diff(index) > NEAR_PAGES));
        faults.back += u64::from(last.is_some_and(|last| last > index + NEAR_PAGES));
    }
}

struct Watcher<'m> {
    machine: &'m mut dyn Machine,
    scope: Option<Disk>,
    requests: Requests,
    disks: BTreeMap<DeviceNumber, DiskSeen>,
    processes: BTreeMap<u32, ProcessSeen>,
    /// Processes that were looked up, and the number that they go by.
    known: BTreeMap<u32, u32>,
    files: Files,
    seen: BTreeMap<Content, FileSeen>,
    touched: BTreeMap<FileKey, Touched>,
    candidates: BTreeMap<FileKey, Candidate>,
    /// Requests that wait for the next round, and for the end.
    fresh: Vec<Request>,
    waiting: Vec<Request>,
    changed: BTreeSet<FilePage>,
    /// Large folios by their first page, and how many pages each has.
    folios: BTreeMap<FilePage, u64>,
    syncs: Syncs,
    pauses: BTreeMap<(u32, DeviceNumber), PauseSeen>,
    commits: BTreeMap<DeviceNumber, Amount>,
    held: Held,
    unplaced: u64,
    own: Amount,
}

/// Listens for so long, or until `go_on` says no, which is asked fifty times a second.
pub fn watch(
    machine: &mut dyn Machine,
    clock: &dyn Sleep,
    duration_ns: i64,
    go_on: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> IoWatch {
    let begun_ns = clock.boottime_ns();
    let (disks_before, (processes_before, _)) = (machine.disks(), machine.processes());
    let mut watcher = Watcher::new(machine);
    let (mut events, mut count) = (Vec::new(), 0);
    let mut round_ns = begun_ns;
    watcher.look_at_groups(begun_ns);
    loop {
        let now_ns = clock.boottime_ns();
        watcher.machine.events(false, &mut events);
        count += watcher.take_all(&mut events);
        watcher.look_at_groups(now_ns);
        if now_ns - round_ns >= ROUND_NS {
            round_ns = now_ns;
            watcher.round();
        }
        if now_ns - begun_ns >= duration_ns || go_on(count).is_break() {
            break;
        }
        clock.sleep_until(now_ns + NAP_NS);
    }
    let ns = clock.boottime_ns() - begun_ns;
    // Counted at the same moment as the last record, before anything else is asked.
    watcher.machine.events(true, &mut events);
    let (disks_after, (processes_after, unseen)) =
        (watcher.machine.disks(), watcher.machine.processes());
    watcher.take_all(&mut events);
    let mut watch = watcher.finish(ns);
    watch.counters = disks_gained(disks_after, &disks_before);
    watch.process_counters = processes_gained(processes_after, &processes_before);
    watch.unseen_processes = unseen;
    watch
}

type Disks = BTreeMap<DeviceNumber, (String, DiskCounters)>;
type Processes = BTreeMap<u32, ProcessCounters>;

/// What was added meanwhile, by those where anything was.
fn disks_gained(after: Disks, before: &Disks) -> Disks {
    let gained = after.into_iter().map(|(device, (name, after))| {
        let before = before.get(&device).map(|(_, before)| *before).unwrap_or_default();
        (device, (name, after.since(&before)))
    });
    gained.filter(|(_, (_, gained))| gained.requests() > 0).collect()
}

/// The same of processes.
fn processes_gained(mut after: Processes, before: &Processes) -> Processes {
    after.retain(|process, after| {
        let before = before.get(process).cloned().unwrap_or_default();
        after.asked_bytes = after.asked_bytes.saturating_sub(before.asked_bytes);
        after.read_bytes = after.read_bytes.saturating_sub(before.read_bytes);
        after.written_bytes = after.written_bytes.saturating_sub(before.written_bytes);
        after.cancelled_bytes = after.cancelled_bytes.saturating_sub(before.cancelled_bytes);
        after.read_bytes + after.written_bytes > 0
    });
    after
}

impl<'m> Watcher<'m> {
    fn new(machine: &'m mut dyn Machine) -> Self {
        let scope = machine.scope();
        let mut watcher = Self {
            machine,
            scope,
            requests: Requests::default(),
            disks: BTreeMap::new(),
            processes: BTreeMap::new(),
            known: BTreeMap::new(),
            files: Files::default(),
            seen: BTreeMap::new(),
            touched: BTreeMap::new(),
            candidates: BTreeMap::new(),
            fresh: Vec::new(),
            waiting: Vec::new(),
            changed: BTreeSet::new(),
            folios: BTreeMap::new(),
            syncs: Syncs::default(),
            pauses: BTreeMap::new(),
            commits: BTreeMap::new(),
            held: Held::default(),
            unplaced: 0,
            own: Amount::default(),
        };
        let wanted = watcher.machine.files_wanted();
        watcher.consider(wanted);
        watcher
    }

    /// Takes records in; how many there were.
    fn take_all(&mut self, events: &mut Vec<TraceEvent>) -> u64 {
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        for event in events.drain(..) {
            match event.happened {
                Happened::Dirtied(page) => self.changed(&event, page),
                // Every program that starts has faults: no process is looked up for them.
                Happened::Faulted(page) | Happened::Mapped(page) => {
                    let is_in_memory = matches!(event.happened, Happened::Mapped(_));
                    if let Some(touched) = self.touched(page) {
                        touched.fault(event.process, page.index, is_in_memory);
                    }
                }
                Happened::SyncBegun(sync) => {
                    let (machine, process) = (&mut *self.machine, event.process);
                    if machine.own() != Some(process) {
                        self.syncs.begun(&event, sync, |fd| machine.opened(process, fd));
                    }
                }
                Happened::FileSyncBegun { device, inode } => {
                    self.file_sync_begun(&event, FileKey { device, inode });
                }
                Happened::SyncEnded | Happened::FileSyncEnded => self.sync_ended(&event),
                Happened::Cached { first, pages } => {
                    if self.folios.len() < PAGES_MAX || self.folios.contains_key(&first) {
                        self.folios.insert(first, pages);
                    }
                }
                Happened::Paused { device, pause_ms, dirty, limit } => {
                    let seen = PauseSeen {
                        count: 1,
                        total_ns: pause_ms.saturating_mul(1_000_000),
                        dirty,
                        limit,
                    };
                    self.paused(event.process, device, seen);
                }
                Happened::Committed { device, blocks } => {
                    self.commits.entry(device).or_default().add(blocks.into());
                }
                Happened::ReleaseBegun => self.held.releasing(event.thread, true),
                Happened::ReleaseEnded => self.held.releasing(event.thread, false),
                _ => self.of_request(event),
            }
        }
        count
    }

    fn of_request(&mut self, mut event: TraceEvent) {
        if let Happened::Queued(request) = &event.happened {
            if let Some(asker) = self.held.asker(event.thread, request) {
                (event.process, event.thread) = (asker, asker);
            }
            self.held.given(event.process, request.purpose.operation, request.bytes());
        }
        if let Some(request) = self.requests.take(&event) {
            self.add(request);
        }
    }

    /// Those that wait are looked up at once: they may end before their requests do.
    fn look_at_groups(&mut self, now_ns: i64) {
        for process in self.held.look(self.machine, now_ns) {
            self.number(process);
        }
    }

    /// `None` for one more file than there is space for.
    fn touched(&mut self, page: FilePage) -> Option<&mut Touched> {
        let key = FileKey { device: page.device, inode: page.inode };
        let has_room = self.touched.len() < TOUCHED_MAX || self.touched.contains_key(&key);
        has_room.then(|| self.touched.entry(key).or_default())
    }

    /// Workers of the kernel make files durable for devices that are built on them.
    fn file_sync_begun(&mut self, event: &TraceEvent, file: FileKey) {
        let number = self.number(event.process);
        let is_kernel = self.processes.get(&number).is_some_and(|seen| seen.is_kernel);
        if !is_kernel && self.machine.own() != Some(event.process) {
            self.syncs.file_begun(event, file);
        }
    }

    fn paused(&mut self, process: u32, device: DeviceNumber, once: PauseSeen) {
        let key = (self.number(process), device);
        if once.total_ns > 0 && (self.pauses.len() < PAUSES_MAX || self.pauses.contains_key(&key)) {
            let seen = self.pauses.entry(key).or_default();
            *seen = PauseSeen {
                count: seen.count.saturating_add(1),
                total_ns: seen.total_ns.saturating_add(once.total_ns),
                ..once
            };
        }
    }

    fn sync_ended(&mut self, event: &TraceEvent) {
        let is_call = event.happened == Happened::SyncEnded;
        if let Some(ended) = self.syncs.ended(event, is_call) {
            let process = self.number(ended.process);
            let (path, device) = match (ended.file, ended.opened) {
                (Some(file), _) => (self.files.name(file).cloned(), Some(file.device)),
                (None, Some((path, device))) => (Some(path), Some(device)),
                (None, None) => (None, None),
            };
            let key = SyncKey { process, by: ended.by, path, device };
            self.syncs.add(key, event.thread, ended.ns);
        }
    }

    /// How many pages the kernel keeps as one with this one.
    fn pages_of(&self, page: FilePage) -> u64 {
        let found = self.folios.range(..=page).next_back().filter(|(first, pages)| {
            (first.device, first.inode) == (page.device, page.inode)
                && page.index - first.index < **pages
        });
        found.map_or(1, |(_, pages)| *pages)
    }

    fn changed(&mut self, event: &TraceEvent, page: FilePage) {
        let process = self.number(event.process);
        let pages = self.pages_of(page);
        if let Some(touched) = self.touched(page) {
            *touched.changers.entry(process).or_default() += pages;
        }
        let key = FileKey { device: page.device, inode: page.inode };
        if let Some(candidate) = self.candidates.get_mut(&key) {
            candidate.is_stale = true;
        }
        if self.changed.len() < PAGES_MAX {
            self.changed.insert(page);
        }
    }

    fn add(&mut self, mut request: Request) {
        let is_inside = |scope: &Disk| {
            let range = scope.begin..scope.begin.saturating_add(scope.len);
            scope.device == request.disk && (request.bytes == 0 || range.contains(&request.begin))
        };
        if self.scope.as_ref().is_some_and(|scope| !is_inside(scope)) {
            return;
        }
        if self.machine.own() == Some(request.process) {
            self.own.add(request.bytes);
            return;
        }
        request.process = self.number(request.process);
        self.disks.entry(request.disk).or_default().add(&request);
        if let Some(process) = self.processes.get_mut(&request.process) {
            process.add(&request);
        }
        if request.bytes == 0 {
            return;
        }
        if self.fresh.len() < WAITING_MAX {
            self.fresh.push(request);
        } else {
            self.unplaced += 1;
        }
    }

    /// The number that a process goes by. One that is new is looked up at once, with its files.
    fn number(&mut self, process: u32) -> u32 {
        if let Some(&number) = self.known.get(&process) {
            return number;
        }
        let found = self.machine.process(process);
        let is_worker = found.as_ref().is_some_and(|found| found.name.starts_with("kworker/"));
        let number = if is_worker || process == 0 { WORKERS } else { process };
        let found = found.unwrap_or_default();
        let is_kernel = found.is_kernel || number == WORKERS;
        let name = match (number, found.name.is_empty()) {
            (WORKERS, _) => WORKERS_NAME.to_owned(),
            (_, true) => "a process that has ended".to_owned(),
            (_, false) => found.name,
        };
        self.processes.entry(number).or_insert_with(|| ProcessSeen {
            name,
            is_kernel,
            ..ProcessSeen::default()
        });
        self.known.insert(process, number);
        if !is_kernel {
            let files = self.machine.files_of(process);
            self.consider(files);
        }
        number
    }

    fn consider(&mut self, files: Vec<OpenFile>) {
        for file in files {
            let key = FileKey { device: file.device, inode: file.inode };
            self.files.name_it(key, file.path.clone());
            self.candidates.entry(key).or_insert(Candidate { file, is_stale: true });
        }
    }

    /// Gives requests to files; those of no known file wait for the end.
    fn round(&mut self) {
        let fresh = core::mem::take(&mut self.fresh);
        let mut left = self.give(fresh);
        if !left.is_empty() {
            self.refresh(&left);
            self.place();
            left = self.give(left);
        }
        let room = WAITING_MAX.saturating_sub(self.waiting.len());
        self.unplaced += u64::try_from(left.len().saturating_sub(room)).unwrap_or(0);
        self.waiting.extend(left.into_iter().take(room));
    }

    /// Processes open files as they go, and take the name of the program that they become.
    fn refresh(&mut self, left: &[Request]) {
        let mut of: BTreeMap<u32, bool> = BTreeMap::new();
        for request in left {
            *of.entry(request.process).or_default() |=
                request.purpose.operation == Operation::Write;
        }
        for (process, is_writing) in of {
            let Some(seen) = self.processes.get_mut(&process).filter(|seen| !seen.is_kernel) else {
                continue;
            };
            if let Some(found) = self.machine.process(process) {
                seen.name = found.name;
            }
            let files = self.machine.files_of(process);
            // Around the page cache a file grows without a page of it being changed.
            for file in files.iter().filter(|_| is_writing) {
                let key = FileKey { device: file.device, inode: file.inode };
                if let Some(candidate) = self.candidates.get_mut(&key) {
                    candidate.is_stale = true;
                }
            }
            self.consider(files);
        }
    }

    /// Asks where candidates lie that may lie elsewhere than is known.
    fn place(&mut self) {
        let stale = self.candidates.iter_mut().filter(|(_, candidate)| candidate.is_stale);
        for (key, candidate) in stale.take(PLACED_A_ROUND) {
            candidate.is_stale = false;
            let Some(disk) = self.machine.disk_of(key.device) else { continue };
            if let Some(extents) = self.machine.extents_of(&candidate.file) {
                self.files.place_it(*key, disk, &extents);
            }
        }
    }

    /// Those that belong to no known file come back.
    fn give(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let mut left = Vec::new();
        for request in requests {
            match self.files.at(request.disk, request.begin) {
                Some((file, logical)) => self.give_to_file(&request, file, logical),
                None => left.push(request),
            }
        }
        left
    }

    fn give_to_file(&mut self, request: &Request, file: FileKey, logical: u64) {
        let page = FilePage { device: file.device, inode: file.inode, index: logical / 4096 };
        let is_partial = request.purpose.operation == Operation::Read
            && !request.purpose.is_readahead
            && request.bytes <= PARTIAL_MAX
            && self.changed.contains(&page);
        let is_changer = self
            .touched
            .get(&file)
            .is_some_and(|touched| touched.changers.contains_key(&request.process));
        let seen = self.seen.entry(Content::File(file)).or_default();
        seen.add(request);
        if is_partial && is_changer {
            seen.partial_pages.add(request.bytes);
        }
    }

    fn finish(mut self, ns: i64) -> IoWatch {
        self.round();
        let waiting = core::mem::take(&mut self.waiting);
        let left = if waiting.is_empty() {
            waiting
        } else {
            self.place();
            self.give(waiting)
        };
        let filesystems = self.machine.filesystems();
        let disk = |device: &DeviceNumber| Some((*device, self.machine.disk_of(*device)?));
        let on: BTreeMap<DeviceNumber, Disk> = filesystems.keys().filter_map(disk).collect();
        self.give_rest(left, &filesystems, &on);
        self.give_touches();
        self.give_later();
        let names = self.seen.keys().filter_map(|content| match content {
            Content::File(file) => Some((*file, self.files.name(*file)?.clone())),
            _ => None,
        });
        IoWatch {
            ns,
            tracing: self.machine.tracing(),
            names: names.collect(),
            disks: self.disks,
            processes: self.processes,
            files: self.seen,
            syncs: self.syncs.finish(),
            pauses: self.pauses,
            commits: self.commits,
            groups: self.held.finish(),
            filesystems,
            on,
            facts: self.machine.facts(),
            unmatched: self.requests.unmatched(),
            unplaced: self.unplaced,
            own: self.own,
            ..IoWatch::default()
        }
    }

    /// Requests of no known file: the file system is asked what lies there.
    fn give_rest(
        &mut self,
        left: Vec<Request>,
        filesystems: &BTreeMap<DeviceNumber, Filesystem>,
        on: &BTreeMap<DeviceNumber, Disk>,
    ) {
        let system = |(device, disk)| Some((disk, filesystems.get(device)?));
        let on: Vec<(&Disk, &Filesystem)> = on.iter().filter_map(system).collect();
        let mut known = BTreeMap::new();
        for request in left {
            let is_on = |disk: &Disk| {
                disk.device == request.disk
                    && (disk.begin..disk.begin.saturating_add(disk.len)).contains(&request.begin)
            };
            let content = match on.iter().find(|(disk, _)| is_on(disk)) {
                None => Content::Raw(request.disk),
                Some((_, filesystem)) if self.is_of_journal(&request) => {
                    Content::Journal(filesystem.device)
                }
                Some((disk, filesystem)) => {
                    // What is read for the file system's own use is no journal. A journal is
                    // large and in one piece: of what is written one place stands for its like.
                    let is_metadata = request.purpose.is_metadata;
                    let is_told = is_metadata && request.purpose.operation == Operation::Read;
                    let place = request.begin - disk.begin;
                    let key = (
                        filesystem.device,
                        is_metadata,
                        if is_metadata { place >> 20 } else { place },
                    );
                    let found = match known.get(&key) {
                        Some(found) => *found,
                        None if is_told || known.len() >= ASKED_MAX => None,
                        None => {
                            let found = self.machine.owner_of(filesystem, place);
                            known.insert(key, found);
                            found
                        }
                    };
                    content(filesystem.device, found, is_metadata)
                }
            };
            self.seen.entry(content).or_default().add(&request);
        }
    }

    /// What the thread of a journal writes of its own. It writes data of files besides, which are
    /// no metadata. File systems whose journal is a file of theirs do not report where it lies.
    fn is_of_journal(&self, request: &Request) -> bool {
        let by = self.processes.get(&request.process);
        request.purpose.is_metadata
            && request.purpose.operation == Operation::Write
            && by.is_some_and(|by| by.is_kernel && by.name.starts_with("jbd2/"))
    }

    /// Of most files only pages were touched that were in memory.
    fn give_touches(&mut self) {
        for (content, seen) in &mut self.seen {
            let Content::File(file) = content else { continue };
            if let Some(touched) = self.touched.remove(file) {
                (seen.changed_by, seen.mapped_by) = (touched.changers, touched.faults);
            }
        }
    }

    /// What the kernel wrote goes to those who had changed it, by the pages that they changed.
    fn give_later(&mut self) {
        for seen in self.seen.values() {
            let is_kernel = |process: &u32| {
                self.processes.get(process).is_some_and(|process| process.is_kernel)
            };
            let by_kernel = seen.by.iter().filter(|(process, _)| is_kernel(process));
            let mut later = Amount::default();
            by_kernel.for_each(|(_, [_, written])| later.add_all(*written));
            let pages: u64 = seen.changed_by.values().sum();
            let share = |count: u64, of: u64| {
                let part = u128::from(count) * u128::from(of) / u128::from(pages.max(1));
                u64::try_from(part).unwrap_or(u64::MAX)
            };
            for (process, &changed) in &seen.changed_by {
                if let Some(process) = self.processes.get_mut(process) {
                    process.later.add_all(Amount {
                        count: share(later.count, changed),
                        bytes: share(later.bytes, changed),
                    });
                }
            }
        }
    }
}

fn content(device: DeviceNumber, owner: Option<Owner>, is_metadata: bool) -> Content {
    match owner {
        Some(Owner::Inode(inode)) => Content::File(FileKey { device, inode }),
        Some(Owner::Journal) => Content::Journal(device),
        Some(Owner::Metadata) => Content::Metadata(device),
        Some(Owner::Free) => Content::Free(device),
        // Trees of extents and folders lie among files.
        _ if is_metadata => Content::Metadata(device),
        _ => Content::Unknown(device),
    }
}
