//! Disks of machines that are made up: whose requests they are, and what is found in them.

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use blockdev::owners::Owner;
use blockdev::placement::{Disk, FileExtent, Filesystem};
use diagnose::io::{Content, FileKey, Groups, IoWatch, Machine, Tracing, diagnose, watch};
use findings::{Diagnosis, Finding};
use host::DeviceNumber;
use observe::cgroups::{DiskLimit, GroupLook, Limited, Member, Moved, Unit};
use observe::facts::Facts;
use observe::io::{DiskCounters, OpenFile, Process, ProcessCounters};
use observe::tracepoints::{
    BlockRequest, FilePage, Happened, Operation, Purpose, Sync, TraceEvent,
};
use units::{ManualClock, NANOS_PER_SECOND, Timestamp};

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const OTHER: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
const PARTITION: DeviceNumber = DeviceNumber { major: 8, minor: 1 };
/// First byte of the partition, and of the file on it.
const PARTITION_BEGIN: u64 = 1 << 20;
const FILE_BEGIN: u64 = 10 << 20;
const FILE_LEN: u64 = 64 << 20;
const INODE: u64 = 12;
const RECORDER: u32 = 412;
const BACKUP: u32 = 79;
const KERNEL: u32 = 33;
const JOURNAL: u32 = 34;
const TRIM: u32 = 35;

#[derive(Default)]
struct Made {
    events: Vec<TraceEvent>,
    facts: Facts,
    counters: BTreeMap<DeviceNumber, (String, DiskCounters)>,
    looks: usize,
    options: &'static str,
    owner: Option<Owner>,
    needs: Option<String>,
    /// What processes have asked for and got, at the second look.
    asked: BTreeMap<u32, ProcessCounters>,
    looks_at_processes: usize,
    scope: Option<Disk>,
    limits: Vec<Limited>,
    looks_at_group: u64,
    /// What a group has had at its so-manieth look.
    group_at: Option<fn(u64) -> GroupLook>,
}

impl Machine for Made {
    fn events(&mut self, _: bool, into: &mut Vec<TraceEvent>) {
        into.append(&mut self.events);
    }

    fn tracing(&self) -> Tracing {
        self.needs.clone().map_or_else(Tracing::default, Tracing::Refused)
    }

    fn disks(&mut self) -> BTreeMap<DeviceNumber, (String, DiskCounters)> {
        self.looks += 1;
        if self.looks == 1 { BTreeMap::new() } else { self.counters.clone() }
    }

    fn processes(&mut self) -> (BTreeMap<u32, ProcessCounters>, usize) {
        self.looks_at_processes += 1;
        let after = if self.looks_at_processes > 1 { self.asked.clone() } else { BTreeMap::new() };
        (after, usize::from(self.needs.is_some()))
    }

    fn process(&mut self, number: u32) -> Option<Process> {
        match number {
            RECORDER => Some(Process { name: "recorder".to_owned(), is_kernel: false }),
            BACKUP => Some(Process { name: "backup".to_owned(), is_kernel: false }),
            KERNEL => Some(Process { name: "kworker/u8:2+flush-8:0".to_owned(), is_kernel: true }),
            JOURNAL => Some(Process { name: "jbd2/sda1-8".to_owned(), is_kernel: true }),
            TRIM => Some(Process { name: "fstrim".to_owned(), is_kernel: false }),
            _ => None,
        }
    }

    fn opened(&mut self, process: u32, descriptor: u32) -> Option<(PathBuf, DeviceNumber)> {
        match (process, descriptor) {
            (RECORDER, 3) => Some((PathBuf::from("/store/idx"), PARTITION)),
            // A disk without a file system.
            (RECORDER, 5) => Some((PathBuf::from("/dev/loop0"), OTHER)),
            _ => None,
        }
    }

    fn files_of(&mut self, process: u32) -> Vec<OpenFile> {
        let file = OpenFile {
            device: PARTITION,
            inode: INODE,
            path: PathBuf::from("/store/idx"),
            through: PathBuf::from("/proc/412/fd/3"),
        };
        if process == RECORDER { vec![file] } else { Vec::new() }
    }

    fn files_wanted(&mut self) -> Vec<OpenFile> {
        Vec::new()
    }

    fn extents_of(&mut self, file: &OpenFile) -> Option<Vec<FileExtent>> {
        let extent = FileExtent { logical: 0, physical: FILE_BEGIN, len: FILE_LEN };
        (file.inode == INODE).then(|| vec![extent])
    }

    fn disk_of(&mut self, device: DeviceNumber) -> Option<Disk> {
        (device == PARTITION).then_some(Disk { device: DISK, begin: PARTITION_BEGIN, len: 1 << 30 })
    }

    fn filesystems(&mut self) -> BTreeMap<DeviceNumber, Filesystem> {
        let filesystem = Filesystem {
            device: PARTITION,
            mount_point: PathBuf::from("/store"),
            kind: "ext4".to_owned(),
            options: self.options.to_owned(),
        };
        BTreeMap::from([(PARTITION, filesystem)])
    }

    fn owner_of(&mut self, _: &Filesystem, _: u64) -> Option<Owner> {
        self.owner
    }

    fn facts(&mut self) -> Facts {
        self.facts.clone()
    }

    fn scope(&self) -> Option<Disk> {
        self.scope
    }

    fn own(&self) -> Option<u32> {
        Some(1)
    }
}

impl Groups for Made {
    fn limited(&mut self) -> Vec<Limited> {
        self.limits.clone()
    }

    fn group(&mut self, _: &Limited) -> GroupLook {
        self.looks_at_group += 1;
        self.group_at.map_or_else(GroupLook::default, |at| at(self.looks_at_group))
    }
}

fn purpose(letters: &str) -> Purpose {
    let operation = match letters.as_bytes() {
        [b'R', ..] => Operation::Read,
        [b'W', ..] => Operation::Write,
        [b'D', ..] => Operation::Discard,
        _ => Operation::Flush,
    };
    let has = |letter| letters.contains(letter);
    Purpose { operation, is_readahead: has('A'), is_metadata: has('M'), is_sync: has('S') }
}

/// A request and its whole life; it begins at so many bytes of the disk.
fn request(at_us: u64, process: u32, letters: &str, (begin, len): (u64, u64)) -> Vec<TraceEvent> {
    let request = BlockRequest {
        device: DISK,
        sector: begin / 512,
        sectors: u32::try_from(len / 512).expect("a short one"),
        purpose: purpose(letters),
    };
    let moments = [
        (0, Happened::Queued(request)),
        (5, Happened::Issued(request)),
        (105, Happened::Completed(request)),
    ];
    let event = |(after_us, happened)| TraceEvent {
        time_ns: (at_us + after_us) * 1000,
        process: if after_us == 105 { 0 } else { process },
        thread: process,
        happened,
    };
    moments.map(event).to_vec()
}

fn page(at_us: u64, index: u64, of: fn(FilePage) -> Happened) -> TraceEvent {
    let page = FilePage { device: PARTITION, inode: INODE, index };
    TraceEvent { time_ns: at_us * 1000, process: RECORDER, thread: RECORDER, happened: of(page) }
}

/// Where a byte of the file is on the disk.
fn in_file(offset: u64) -> u64 {
    PARTITION_BEGIN + FILE_BEGIN + offset
}

fn seen(mut made: Made) -> IoWatch {
    made.counters.entry(DISK).or_insert_with(|| {
        ("sda".to_owned(), DiskCounters { reads: 1, ..DiskCounters::default() })
    });
    let clock = ManualClock::new(Timestamp(0));
    watch(&mut made, &clock, NANOS_PER_SECOND, &mut |_| ControlFlow::Continue(()))
}

#[track_caller]
fn is(report: &Diagnosis, kinds: &[&str]) {
    let found: Vec<&str> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(found, kinds, "{report:#?}");
}

fn file() -> Content {
    Content::File(FileKey { device: PARTITION, inode: INODE })
}

#[test]
fn stores_through_a_mapping_are_found_by_what_is_read_for_them() {
    let mut events = Vec::new();
    for store in 0..64 {
        events.push(page(store * 1000, store * 256, Happened::Faulted));
        if store % 4 == 0 {
            events.extend(request(store * 1000, RECORDER, "RA", (in_file(store << 20), 4 << 20)));
        }
        events.push(page(store * 1000 + 500, store * 256, Happened::Dirtied));
    }
    for write in 0..40 {
        events.extend(request(200_000 + write * 500, KERNEL, "W", (in_file(write << 20), 1 << 20)));
    }
    let facts = Facts::from([
        ("block.sda.queue.read_ahead_kb".to_owned(), "8192".to_owned()),
        ("block.sda.queue.scheduler".to_owned(), "[none]".to_owned()),
    ]);
    let watch = seen(Made { events, facts, ..Made::default() });
    let file = &watch.files[&file()];
    assert_eq!((file.readahead.count, file.reads.bytes), (16, 64 << 20));
    assert_eq!((file.writes.count, file.mapped_by[&RECORDER].count), (40, 64));
    // What the kernel wrote is the recorder's.
    assert_eq!(watch.processes[&RECORDER].later.bytes, 40 << 20);
    assert_eq!(watch.processes[&0].writes.bytes, 40 << 20);
    let report = diagnose(&watch);
    is(&report, &["io.phantom_readahead"]);
    let finding = &report.findings[0];
    assert_eq!(
        finding.what,
        "64.0 MiB were read ahead from /store/idx for recorder (process 412), which changes only \
         a few pages of it"
    );
    let evidence = finding.evidence.join("\n");
    assert!(evidence.contains("changed 256 KiB of it (64 pages) through a mapping"), "{evidence}");
    assert!(evidence.contains("read_ahead_kb: 8192"), "{evidence}");
    assert!(finding.remedies[0].what.starts_with("madvise(MADV_RANDOM)"));
    assert!(!report.is_clean());
}

/// 64 MiB in folios of 256 KiB, read ahead; `touched` of the pages are touched in this order.
fn folios(touched: impl Iterator<Item = u64>, is_changed: bool) -> IoWatch {
    let mut events = Vec::new();
    for folio in 0..256_u64 {
        let first = FilePage { device: PARTITION, inode: INODE, index: folio * 64 };
        events.extend(request(folio * 100, RECORDER, "RA", (in_file(folio << 18), 1 << 18)));
        let cached = Happened::Cached { first, pages: 64 };
        let (process, thread) = (RECORDER, RECORDER);
        events.push(TraceEvent { time_ns: folio * 100_000, process, thread, happened: cached });
    }
    let mut dirty = std::collections::BTreeSet::new();
    for (number, index) in (0..).zip(touched) {
        let at_us = 30_000 + number;
        let is_in_memory = !is_changed && number % 8 != 0;
        events.push(page(
            at_us,
            index,
            if is_in_memory { Happened::Mapped } else { Happened::Faulted },
        ));
        // The kernel reports a folio once.
        if is_changed && dirty.insert(index / 64) {
            events.push(page(at_us, index, Happened::Dirtied));
        }
    }
    seen(Made { events, ..Made::default() })
}

#[test]
fn who_changes_every_page_of_a_mapping_in_order_has_had_use_of_what_was_read() {
    let watch = folios(0..16_384, true);
    assert_eq!(watch.files[&file()].changed_by[&RECORDER], 16_384);
    is(&diagnose(&watch), &[]);
    // Nor one in forty, on the same way.
    is(&diagnose(&folios((0..16_384).step_by(40), true)), &[]);
}

#[test]
fn stores_here_and_there_are_found_in_large_folios_too() {
    let watch = folios((0..200).map(|it| it * 7919 % 16_384), true);
    is(&diagnose(&watch), &["io.phantom_readahead"]);
}

#[test]
fn a_page_that_is_looked_for_and_then_mapped_is_touched_once() {
    let mut events = Vec::new();
    for touch in 0..64 {
        let index = touch * 7919 % 16_384;
        events.extend(request(touch * 1000, RECORDER, "RA", (in_file(index << 12), 1 << 19)));
        events.push(page(touch * 1000, index, Happened::Faulted));
        // Reported by the first of the pages that come with it.
        events.push(page(touch * 1000 + 200, index / 16 * 16, Happened::Mapped));
        if touch % 8 == 0 {
            let near = (index + 4096) % 16_384;
            events.push(page(touch * 1000 + 500, near, Happened::Mapped));
        }
    }
    let watch = seen(Made { events, ..Made::default() });
    let faults = watch.files[&file()].mapped_by[&RECORDER];
    assert_eq!((faults.count, faults.in_memory, faults.far), (64, 8, 71));
    is(&diagnose(&watch), &["io.random_mapping"]);
}

#[test]
fn who_reads_a_mapping_here_and_there_has_no_use_of_what_is_read_ahead() {
    let report = diagnose(&folios((0..200).map(|it| it * 7919 % 16_384), false));
    is(&report, &["io.random_mapping"]);
    let finding = &report.findings[0];
    let what = "64.0 MiB were read ahead from /store/idx for recorder (process 412), which touches \
                single pages of a mapping";
    assert_eq!(finding.what, what);
    assert!(finding.remedies[0].what.contains("the program that reads the file"));
    // Here and there, until all of it was used; in order, by what is mapped around each touch.
    is(&diagnose(&folios((0..1024).map(|it| it * 7919 % 16_384), false)), &[]);
    is(&diagnose(&folios((0..16_384).step_by(16), false)), &[]);
}

/// So many calls in a second, each of so many microseconds, of a descriptor.
fn syncs(count: u64, wait_us: u64, descriptor: u32) -> IoWatch {
    let event = |at_us: u64, happened| TraceEvent {
        time_ns: at_us * 1000,
        process: RECORDER,
        thread: RECORDER,
        happened,
    };
    let mut events = Vec::new();
    for call in 0..count {
        let begun_us = call * (900_000 / count);
        events.push(event(begun_us, Happened::SyncBegun(Sync::File(descriptor))));
        events.extend(request(begun_us + 1, RECORDER, "WS", (in_file(call << 12), 4096)));
        events.push(event(begun_us + wait_us, Happened::SyncEnded));
        let committed = Happened::Committed { device: PARTITION, blocks: 3 };
        events.push(event(begun_us + wait_us, committed));
    }
    events.sort_by_key(|event| event.time_ns);
    seen(Made { events, ..Made::default() })
}

#[test]
fn who_waits_for_fsync_is_named_with_the_file_and_what_each_call_costs() {
    let report = diagnose(&syncs(300, 2000, 3));
    let finding = report.findings.iter().find(|it| it.kind == "io.sync_waits").unwrap();
    assert_eq!(
        finding.what,
        "recorder (process 412) waited 0.6 s of 1.0 s for fsync of /store/idx"
    );
    let evidence = finding.evidence.join("\n");
    for words in ["300 calls: half of them take", "4.00 KiB for each call", "/store committed 300"]
    {
        assert!(evidence.contains(words), "{words:?} in {evidence}");
    }
    let has_finding = |watch: &IoWatch| {
        diagnose(watch).findings.iter().any(|finding| finding.kind == "io.sync_waits")
    };
    assert!(!has_finding(&syncs(300, 100, 3)), "hardly a wait");
    assert!(!has_finding(&syncs(9, 90_000, 3)), "too few");
    assert!(!has_finding(&syncs(300, 2000, 4)), "a socket, or what was closed");
}

#[test]
fn writes_of_a_part_of_a_page_are_found_by_the_page_that_is_read() {
    let mut events = Vec::new();
    for write in 0..64 {
        let place = in_file(write << 20);
        events.extend(request(write * 1000, RECORDER, "R", (place, 4096)));
        events.push(page(write * 1000 + 500, write * 256, Happened::Dirtied));
        events.extend(request(200_000 + write * 500, KERNEL, "W", (place, 4096)));
    }
    let watch = seen(Made { events, ..Made::default() });
    assert_eq!(watch.files[&file()].partial_pages.count, 64);
    let report = diagnose(&watch);
    is(&report, &["io.partial_pages"]);
    let what = &report.findings[0].what;
    assert!(what.ends_with("only a part of each is written: 64 of /store/idx"), "{what}");
    assert!(report.findings[0].evidence[0].contains("4.00 KiB by recorder (process 412)"));
}

#[test]
fn whole_pages_and_reads_of_others_are_no_findings() {
    let mut events = Vec::new();
    for write in 0..64 {
        events.extend(request(write * 1000, RECORDER, "WS", (in_file(write << 20), 4096)));
    }
    // A program reads all of it, and the kernel reads ahead as it should.
    for read in 0..64 {
        events.extend(request(100_000 + read * 500, 77, "RA", (in_file(read << 20), 1 << 20)));
    }
    let watch = seen(Made { events, ..Made::default() });
    is(&diagnose(&watch), &[]);
    assert_eq!(watch.processes[&77].name, "a process that has ended");
    assert_eq!(watch.files[&file()].reads.bytes, 64 << 20);
}

#[test]
fn the_file_system_is_asked_what_lies_where_no_file_is_known() {
    let at = |owner, letters| {
        let events = request(0, KERNEL, letters, (PARTITION_BEGIN + (900 << 20), 4096));
        let watch = seen(Made { events, owner, ..Made::default() });
        let content = *watch.files.keys().next().unwrap();
        watch.content_name(content)
    };
    assert_eq!(at(Some(Owner::Journal), "WS"), "journal of /store");
    assert_eq!(at(Some(Owner::Free), "W"), "removed files of /store");
    assert_eq!(at(Some(Owner::Inode(99)), "W"), "file 99 of /store");
    assert_eq!(at(Some(Owner::Unknown), "W"), "other files of /store");
    assert_eq!(at(Some(Owner::Unknown), "RM"), "metadata of /store");
    let events = request(0, KERNEL, "W", (0, 4096));
    let watch = seen(Made { events, ..Made::default() });
    let content = *watch.files.keys().next().unwrap();
    assert_eq!(watch.content_name(content), "sda, no file system");
}

#[test]
fn a_part_of_a_disk_is_looked_at_alone() {
    let mut events = request(0, RECORDER, "R", (in_file(0), 4096));
    events.extend(request(500, RECORDER, "R", (0, 4096)));
    let scope = Some(Disk { device: DISK, begin: PARTITION_BEGIN, len: 1 << 30 });
    let mut watch = seen(Made { events, scope, ..Made::default() });
    assert_eq!(watch.disks[&DISK].operations[&Operation::Read].all.count, 1);
    watch.keep_below(&PathBuf::from("/store"));
    assert_eq!(watch.files.len(), 1);
    watch.keep_below(&PathBuf::from("/other"));
    assert!(watch.files.is_empty());
}

#[test]
fn flushes_and_discards_that_take_the_time_are_found() {
    let many = |letters, len, count: u64| {
        let begin = if len == 0 { 0 } else { in_file(0) };
        let one = |number: u64| {
            let mut events = request(number * 4000, RECORDER, letters, (begin, len));
            // Four milliseconds each.
            events[2].time_ns += 3_800_000;
            events
        };
        (0..count).flat_map(one).collect::<Vec<_>>()
    };
    let options = "rw,relatime";
    let of = |events| diagnose(&seen(Made { events, options, ..Made::default() }));
    let report = of(many("F", 0, 200));
    is(&report, &["io.flushes"]);
    assert!(report.findings[0].evidence[0].contains("recorder (process 412): 200"));
    is(&of(many("F", 0, 10)), &[]);
    is(&of(many("D", 1 << 20, 100)), &["io.discards"]);
    is(&of(many("D", 1 << 20, 5)), &[]);
}

/// A hundred discards of a mebibyte, each of which takes nearly four milliseconds.
fn discards(process: u32, disk: DeviceNumber) -> Vec<TraceEvent> {
    let one = |number: u64| {
        let mut events = request(number * 4000, process, "D", (in_file(0), 1 << 20));
        events.get_mut(2).expect("it ends").time_ns += 3_800_000;
        for event in &mut events {
            match &mut event.happened {
                Happened::Queued(request)
                | Happened::Issued(request)
                | Happened::Completed(request) => request.device = disk,
                _ => {}
            }
        }
        events
    };
    (0..100).flat_map(one).collect()
}

#[test]
fn discards_are_of_who_asks_for_them_and_of_what_is_mounted_on_that_disk() {
    let of = |process, options, disk| {
        let events = discards(process, disk);
        let report = diagnose(&seen(Made { events, options, ..Made::default() }));
        is(&report, &["io.discards"]);
        let Finding { evidence, cause, remedies, .. } = &report.findings[0].finding;
        let commands: Vec<String> =
            remedies.iter().flat_map(|it| it.now.iter().chain(&it.for_good).cloned()).collect();
        (evidence.join("\n"), cause.clone(), commands.join("\n"))
    };
    let (evidence, cause, commands) = of(KERNEL, "rw,discard", DISK);
    assert!(evidence.contains("of sda mounted with discard: /store"), "{evidence}");
    assert!(cause.contains("With the option discard"), "{cause}");
    assert!(commands.starts_with("mount -o remount,nodiscard /store"), "{commands}");
    // A program on another disk, which has no file system.
    let (evidence, cause, commands) = of(RECORDER, "rw,discard", OTHER);
    assert!(!evidence.contains("/store"), "{evidence}");
    assert!(cause.starts_with("recorder (process 412) asks for them itself"), "{cause}");
    assert_eq!(commands, "");
    let (_, cause, commands) = of(TRIM, "rw,discard", DISK);
    assert!(cause.starts_with("fstrim (process 35)"), "{cause}");
    assert_eq!(commands, "");
    let (_, cause, commands) = of(RECORDER, "rw,discard=async", DISK);
    assert!(cause.contains("do not tell these apart"), "{cause}");
    assert!(commands.contains("nodiscard /store"), "{commands}");
    let (_, cause, commands) = of(KERNEL, "rw", DISK);
    assert!(cause.contains("no file system on the disk is mounted with discard"), "{cause}");
    assert_eq!(commands, "");
}

#[test]
fn flushes_are_of_those_who_ask_for_them_on_that_disk() {
    let mut events = Vec::new();
    for number in 0..200 {
        let mut flush = request(number * 4000, RECORDER, "F", (0, 0));
        flush[2].time_ns += 3_800_000;
        events.extend(flush);
    }
    for number in 0..50 {
        events.extend(request(number * 4000 + 10, BACKUP, "D", (in_file(0), 4096)));
    }
    events.sort_by_key(|event| event.time_ns);
    let report = diagnose(&seen(Made { events, ..Made::default() }));
    is(&report, &["io.flushes"]);
    assert_eq!(report.findings[0].evidence[0], "asked for by: recorder (process 412): 200");
}

/// So many waits in a second, each of so many microseconds, as the file system tells of them.
fn durable(begin: Option<Sync>, options: &'static str, threads: u32) -> Diagnosis {
    let mut events = Vec::new();
    for call in 0..100_u64 {
        for thread in 0..threads {
            let mut add = |at_us: u64, happened| {
                let (time_ns, process, thread) = (at_us * 1000, RECORDER, RECORDER + thread);
                events.push(TraceEvent { time_ns, process, thread, happened });
            };
            let at_us = call * 9000 + u64::from(thread);
            if let Some(sync) = begin {
                add(at_us, Happened::SyncBegun(sync));
            }
            add(at_us + 10, Happened::FileSyncBegun { device: PARTITION, inode: INODE });
            add(at_us + 8000, Happened::FileSyncEnded);
            if begin.is_some() {
                add(at_us + 8010, Happened::SyncEnded);
            }
        }
    }
    events.sort_by_key(|event| event.time_ns);
    diagnose(&seen(Made { events, options, ..Made::default() }))
}

#[test]
fn writes_that_are_durable_when_they_return_are_waited_for_as_calls_are() {
    let said = |report: &Diagnosis| {
        is(report, &["io.sync_waits"]);
        let Finding { what, cause, remedies, .. } = &report.findings[0].finding;
        let now: Vec<&String> = remedies.iter().flat_map(|it| &it.now).collect();
        format!("{what}. {cause} {now:?}")
    };
    let opened = said(&durable(None, "rw,relatime", 1));
    let words = "recorder (process 412) waited 0.8 s of 1.0 s for writes to /store/idx to become";
    assert!(opened.contains(words) && opened.contains("O_SYNC or O_DSYNC"), "{opened}");
    let mounted = said(&durable(None, "rw,sync,relatime", 1));
    assert!(mounted.contains("mounted with the option sync"), "{mounted}");
    assert!(mounted.contains("mount -o remount,async /store"), "{mounted}");
    // What the file system does within a call is a part of that.
    let call = said(&durable(Some(Sync::File(3)), "rw", 1));
    assert!(call.contains("0.8 s of 1.0 s for fsync of /store/idx"), "{call}");
    let mapping = said(&durable(Some(Sync::Mapping), "rw", 1));
    assert!(mapping.contains("for msync of /store/idx"), "{mapping}");
    let all = said(&durable(Some(Sync::Filesystem(3)), "rw", 1));
    assert!(all.contains("for syncfs of /store"), "{all}");
    assert!(said(&durable(Some(Sync::Everything), "rw", 1)).contains("sync of all file systems"));
}

#[test]
fn a_wait_for_one_disk_follows_from_nothing_on_another() {
    let explains = |disk| {
        let mut events = discards(BACKUP, disk);
        for number in 0..100 {
            let (process, thread) = (RECORDER, RECORDER);
            let mut add = |at_us: u64, happened| {
                events.push(TraceEvent { time_ns: at_us * 1000, process, thread, happened });
            };
            add(number * 9000, Happened::SyncBegun(Sync::File(5)));
            add(number * 9000 + 8000, Happened::SyncEnded);
        }
        events.sort_by_key(|event| event.time_ns);
        let report = diagnose(&seen(Made { events, ..Made::default() }));
        let at = report.findings.iter().position(|it| it.kind == "io.sync_waits").unwrap();
        report.explanation(at).map(|at| report.findings[at].kind)
    };
    assert_eq!(explains(DISK), None);
    assert_eq!(explains(OTHER), Some("io.discards"));
}

#[test]
fn several_threads_wait_together() {
    let report = durable(None, "rw", 8);
    let what = &report.findings[0].what;
    assert!(what.starts_with("8 threads of recorder (process 412) waited for writes"), "{what}");
    assert!(what.ends_with("6.4 s together, in 1.0 s"), "{what}");
}

#[test]
fn a_journal_that_gets_all_data_is_found_by_the_thread_that_writes_it() {
    let mut events = Vec::new();
    for write in 0..50 {
        let place = (PARTITION_BEGIN + (900 << 20) + (write << 20), 1 << 20);
        events.extend(request(write * 1000, JOURNAL, "WSM", place));
        events.extend(request(write * 1000 + 500, KERNEL, "W", (in_file(write << 20), 1 << 20)));
    }
    let commit = Happened::Committed { device: PARTITION, blocks: 9000 };
    events.push(TraceEvent {
        time_ns: 60_000_000,
        process: JOURNAL,
        thread: JOURNAL,
        happened: commit,
    });
    events.sort_by_key(|event| event.time_ns);
    let of = |options| diagnose(&seen(Made { events: events.clone(), options, ..Made::default() }));
    let report = of("rw,data=journal");
    is(&report, &["io.journal"]);
    let found = &report.findings[0];
    assert_eq!(found.what, "50 % of what is written to /store goes to its journal");
    assert!(found.cause.contains("written twice"), "{}", found.cause);
    assert!(found.remedies.iter().all(|remedy| remedy.now.is_empty()), "{found:?}");
    // One commit a second is no habit of another file system.
    is(&of("rw,relatime"), &[]);
}

#[test]
fn a_journal_that_takes_much_of_what_is_written_is_found_with_who_changes_files() {
    let mut events = vec![page(1, 0, Happened::Dirtied)];
    for commit in 0..50 {
        let place = (PARTITION_BEGIN + (900 << 20) + commit * 65_536, 65_536);
        events.extend(request(commit * 1000, KERNEL, "WS", place));
        let happened = Happened::Committed { device: PARTITION, blocks: 15 };
        let time_ns = commit * 1_000_000 + 200_000;
        events.push(TraceEvent { time_ns, process: KERNEL, thread: KERNEL, happened });
    }
    events.extend(request(100_000, RECORDER, "W", (in_file(0), 1 << 20)));
    let watch = seen(Made { events, owner: Some(Owner::Journal), ..Made::default() });
    let report = diagnose(&watch);
    is(&report, &["io.journal"]);
    let said = report.findings[0].evidence.join("\n");
    assert!(said.contains("50 commits, 50 a second, 15 blocks each"), "{said}");
    assert!(said.contains("recorder (process 412)"), "{said}");
}

#[test]
fn a_cache_that_nobody_flushes_is_a_problem_where_there_is_one() {
    let of = |cache: &str, options| {
        let facts = Facts::from([("block.sda.queue.write_cache".to_owned(), cache.to_owned())]);
        let partition =
            (PARTITION, ("sda1".to_owned(), DiskCounters { writes: 1, ..DiskCounters::default() }));
        let counters = BTreeMap::from([partition]);
        diagnose(&seen(Made { facts, counters, options, ..Made::default() }))
    };
    is(&of("write back", "rw,nobarrier"), &["io.no_barriers"]);
    is(&of("write through", "rw,nobarrier"), &[]);
    is(&of("write back", "rw,relatime"), &[]);
}

#[test]
fn members_that_are_read_while_nobody_reads_the_array_are_found() {
    let of = |array_read: u64, action: &str| {
        let counted = |name: &str, read_bytes| {
            let counters = DiskCounters { writes: 9, read_bytes, ..DiskCounters::default() };
            (name.to_owned(), counters)
        };
        let device = |minor| DeviceNumber { major: 9, minor };
        let counters = BTreeMap::from([
            (device(0), counted("md0", array_read)),
            (device(1), counted("sdb", 8 << 20)),
            (device(2), counted("sdc", 8 << 20)),
        ]);
        let facts = [("on", "sdb sdc"), ("md.level", "raid5"), ("md.sync_action", action)];
        let facts = facts.map(|(name, value)| (format!("block.md0.{name}"), value.to_owned()));
        let report = diagnose(&seen(Made { counters, facts: facts.into(), ..Made::default() }));
        report.findings.iter().map(|finding| finding.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(0, "idle"), ["16.0 MiB of the disks of md0 are read to compute parity"]);
    assert_eq!(of(0, "check"), ["16.0 MiB of the disks of md0 are read by the array itself"]);
    assert!(of(15 << 20, "idle").is_empty());
}

#[test]
fn what_was_not_seen_is_listed_with_what_it_takes() {
    let needs = Some("CAP_PERFMON: run as root".to_owned());
    let report = diagnose(&seen(Made { needs, ..Made::default() }));
    is(&report, &[]);
    let unseen: Vec<&str> = report.unseen.iter().map(|unseen| &*unseen.needs).collect();
    assert_eq!(
        unseen,
        ["CAP_PERFMON: run as root", "CAP_SYS_PTRACE, which root has outside of a container"]
    );
    assert!(report.looked_at[0].starts_with("counters of 1 block device"), "{report:?}");
}

/// Reads of 64 KiB that a worker of the kernel makes, eight every tenth of a second, each of them
/// so long at the disk; the process has a limit of so many bytes a second.
fn limited_reads(device_us: u64, per_second: u64, needs: Option<&str>) -> IoWatch {
    let mut events = Vec::new();
    let mut add = |at_us: u64, happened| {
        let (process, thread) = (KERNEL, KERNEL);
        events.push(TraceEvent { time_ns: at_us * 1000, process, thread, happened });
    };
    for slice in 0..10_u64 {
        let at_us = slice * 100_000;
        add(at_us, Happened::ReleaseBegun);
        let place = |of: u64| (in_file((slice * 8 + of) << 16), 1 << 16);
        let reads = (0..8).map(|of| request(at_us + of, KERNEL, "R", place(of)));
        let reads: Vec<Vec<TraceEvent>> = reads.collect();
        let moment =
            |at: usize| reads.iter().filter_map(move |read| read.get(at)).map(|it| it.happened);
        moment(0).for_each(|happened| add(at_us + 10, happened));
        add(at_us + 11, Happened::ReleaseEnded);
        moment(1).for_each(|happened| add(at_us + 12, happened));
        moment(2).for_each(|happened| add(at_us + 12 + device_us, happened));
    }
    let limit = DiskLimit {
        device: DISK,
        is_write: false,
        unit: Unit::Bytes,
        per_second,
        file: "io.max",
        unlimited: "8:0 rbps=max".to_owned(),
    };
    let limited = Limited {
        folder: PathBuf::from("/sys/fs/cgroup/backup.service"),
        name: "/backup.service".to_owned(),
        reaches_below: true,
        limits: vec![limit],
    };
    // Looked at every 60 ms: 5 MiB/s.
    let at = |look: u64| {
        let moved = Moved { bytes: [look * 314_573, 0], requests: [look * 5, 0] };
        let idle = Member { process: 999, ..Member::default() };
        let member = Member { process: RECORDER, waiting: 1, read_bytes: look, written_bytes: 0 };
        GroupLook {
            members: vec![idle, member],
            moved: BTreeMap::from([(DISK, moved)]),
            stalled_us: Some(look * 60_000),
        }
    };
    if needs.is_some() {
        events.clear();
    }
    let busy_ms = 80 * device_us / 1000;
    let counters = DiskCounters { reads: 80, busy_ms, ..DiskCounters::default() };
    seen(Made {
        events,
        needs: needs.map(str::to_owned),
        limits: vec![limited],
        group_at: Some(at),
        counters: BTreeMap::from([(DISK, ("sda".to_owned(), counters))]),
        ..Made::default()
    })
}

#[test]
fn a_process_that_a_limit_holds_back_is_named_with_the_group_and_gets_its_requests() {
    let watch = limited_reads(100, 5 << 20, None);
    assert_eq!(watch.processes[&RECORDER].reads.count, 80, "{:#?}", watch.processes);
    assert!(!watch.processes.contains_key(&0), "the workers asked for nothing");
    let group = &watch.groups[0];
    assert_eq!(group.held[&DISK][0].count, 80);
    let report = diagnose(&watch);
    is(&report, &["io.cgroup_limit"]);
    let finding = &report.findings[0];
    assert_eq!(
        finding.what,
        "recorder (process 412) waits for the limit of its cgroup /backup.service: 5.00 MiB/s of \
         reads from sda"
    );
    let evidence = finding.evidence.join("\n");
    for words in ["io.max: 5242880 for sda; it had", "80 requests, 5.00 MiB, were held back"] {
        assert!(evidence.contains(words), "{evidence}");
    }
    let [lift, ..] = &finding.remedies[..] else { panic!("{finding:?}") };
    assert_eq!(lift.now, ["echo '8:0 rbps=max' > '/sys/fs/cgroup/backup.service/io.max'"]);
    assert_eq!(lift.for_good, ["systemctl set-property backup.service IOReadBandwidthMax="]);
}

#[test]
fn a_limit_is_no_cause_where_it_is_far_away_or_the_disk_takes_the_time() {
    for needs in [None, Some("a tracefs")] {
        is(&diagnose(&limited_reads(100, 50 << 20, needs)), &[]);
        is(&diagnose(&limited_reads(80_000, 5 << 20, needs)), &[]);
        is(&diagnose(&limited_reads(100, 5 << 20, needs)), &["io.cgroup_limit"]);
    }
}

/// A disk that one process keeps busy with so many requests at the same time for a second, each of
/// which takes `device_us`, while another one reads a page, which waits for `wait_us` before it
/// goes to the disk, and then the next.
fn neighbours(depth: u64, device_us: u64, wait_us: u64) -> IoWatch {
    let mut events = Vec::new();
    let life = |at_us: u64, wait_us: u64, process, place: (u64, u64)| -> Vec<TraceEvent> {
        let mut life = request(at_us, process, "R", place);
        let issued_us = at_us + wait_us;
        for (event, time_us) in life.iter_mut().zip([at_us, issued_us, issued_us + device_us]) {
            event.time_ns = time_us * 1000;
        }
        life
    };
    for slot in 0..1_000_000 / device_us {
        for number in 0..depth {
            let place = (((slot * depth + number) << 20) % (500 << 20), 1 << 20);
            events.extend(life(slot * device_us, 0, BACKUP, place));
        }
    }
    let each_us = device_us + wait_us;
    for read in 0..1_000_000 / each_us {
        let place = ((900 << 20) + (read << 12), 4096);
        events.extend(life(read * each_us, wait_us, RECORDER, place));
    }
    events.sort_by_key(|event| event.time_ns);
    let busy = DiskCounters { reads: 1, busy_ms: 990, ..DiskCounters::default() };
    let counters = BTreeMap::from([(DISK, ("sda".to_owned(), busy))]);
    seen(Made { events, counters, ..Made::default() })
}

#[test]
fn who_waits_behind_another_process_is_named_with_it() {
    let report = diagnose(&neighbours(8, 2000, 16_000));
    let found = report.findings.iter().find(|it| it.kind == "io.neighbour").unwrap();
    let what = "recorder (process 412) waits for sda, which backup (process 79) keeps busy";
    assert_eq!(found.what, what, "{report:#?}");
    assert!(report.shares.iter().any(|share| share.what.starts_with("sda is busy 99 %: backup")));
    let shares = report.shares.iter().filter(|share| share.finding == Some("io.neighbour"));
    assert_eq!(shares.count(), 2, "{:?}", report.shares);
    let is_found = |depth, device_us, wait_us| {
        let report = diagnose(&neighbours(depth, device_us, wait_us));
        report.findings.iter().any(|it| it.kind == "io.neighbour")
    };
    // The queue is in the disk: all requests take as long, and others are done meanwhile.
    assert!(is_found(8, 16_000, 0));
    // Flash, which has as many at the same time, and takes no longer for that.
    assert!(!is_found(8, 400, 0));
    // One request at a time of each: both wait for one request.
    assert!(!is_found(1, 2000, 2000), "fair");
}

#[test]
fn who_reads_behind_what_the_kernel_writes_waits_for_those_who_changed_it() {
    let mut events = Vec::new();
    let life = |at_us: u64, device_us: u64, who: (u32, &str), place| {
        let mut life = request(at_us, who.0, who.1, place);
        life[2].time_ns = (at_us + device_us) * 1000;
        life
    };
    for slot in 0..20_u64 {
        // Two requests of a megabyte at a time, 25 ms each, and one page behind them.
        for number in 0..2 {
            let begin = in_file((slot * 2 + number) << 20);
            events.extend(life(slot * 50_000, 49_000, (KERNEL, "W"), (begin, 1 << 20)));
        }
        let place = (PARTITION_BEGIN + (800 << 20) + (slot << 12), 4096);
        events.extend(life(slot * 50_000, 49_500, (RECORDER, "R"), place));
    }
    let page = FilePage { device: PARTITION, inode: INODE, index: 0 };
    let (process, thread) = (BACKUP, BACKUP);
    events.push(TraceEvent { time_ns: 1, process, thread, happened: Happened::Dirtied(page) });
    events.sort_by_key(|event| event.time_ns);
    let busy = DiskCounters { writes: 1, busy_ms: 990, ..DiskCounters::default() };
    let counters = BTreeMap::from([(DISK, ("sda".to_owned(), busy))]);
    let report = diagnose(&seen(Made { events, counters, ..Made::default() }));
    is(&report, &["io.neighbour"]);
    let found = &report.findings[0];
    assert_eq!(
        found.what,
        "recorder (process 412) waits for sda, which backup (process 79), whose changes the kernel \
         writes, keeps busy"
    );
    assert!(found.remedies.iter().all(|remedy| remedy.now.is_empty()), "{found:?}");
}

/// Reads that take so long at the disk, so many at the same time.
fn deep(depth: u64, device_us: u64, busy_ms: u64) -> Diagnosis {
    let mut events = Vec::new();
    for number in 0..2000_u64 {
        let at_us = number / depth * device_us;
        let mut life = request(at_us, BACKUP, "R", ((number * 7919) << 12, 4096));
        if let Some(done) = life.last_mut() {
            done.time_ns = (at_us + device_us) * 1000;
        }
        events.extend(life);
    }
    events.sort_by_key(|event| event.time_ns);
    let busy = DiskCounters { reads: 2000, busy_ms, ..DiskCounters::default() };
    let counters = BTreeMap::from([(DISK, ("sda".to_owned(), busy))]);
    diagnose(&seen(Made { events, counters, ..Made::default() }))
}

#[test]
fn requests_that_wait_for_each_other_in_the_disk_are_no_slow_disk() {
    // 32 at a time, one every 5 ms.
    let report = deep(32, 160_000, 10_000);
    is(&report, &["io.queue"]);
    let said = format!("{:?}", report.findings[0]);
    for words in
        ["32 requests at the same time at most", "one every 5.00 ms", "wait for each other"]
    {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    // One at a time: it is the disk.
    is(&deep(1, 160_000, 320_000), &["io.slow_disk"]);
    // Many at the same time, and none is done for long: it stands still now and then.
    is(&deep(32, 160_000, 500), &["io.slow_disk"]);
}

#[test]
fn who_writes_more_than_the_disk_takes_is_held_back() {
    let paused = |count, pause_ms| paused(count, pause_ms, 9000, &[]);
    let report = diagnose(&paused(10, 40));
    is(&report, &["io.dirty_throttled"]);
    let what = "recorder (process 412) is held back: it writes more than sda takes";
    assert_eq!(report.findings[0].what, what);
    is(&diagnose(&paused(10, 10)), &[]);
    is(&diagnose(&paused(2, 400)), &[]);
}

#[test]
fn which_limit_of_changed_data_was_met_is_told_by_how_much_was_changed() {
    let said = |dirty, facts: &[(&str, &str)]| {
        let report = diagnose(&paused(10, 40, dirty, facts));
        is(&report, &["io.dirty_throttled"]);
        format!("{:?}", report.findings[0])
    };
    assert!(said(9000, &[]).contains("vm.dirty_background_bytes"));
    let strict = [("max_ratio", "1"), ("strict_limit", "1")];
    let own = said(200, &strict);
    for words in ["bdi/max_ratio: 1", "a limit of its own", "bdi/strict_limit"] {
        assert!(own.contains(words), "{words:?} in {own}");
    }
    assert!(!own.contains("vm.dirty"), "{own}");
    let group = said(200, &[("strict_limit", "0")]);
    assert!(group.contains("memory.max") && !group.contains("vm.dirty"), "{group}");
}

/// A writer that sleeps so often, of 10 000 pages that may be changed.
fn paused(count: u64, pause_ms: u64, dirty: u64, facts: &[(&str, &str)]) -> IoWatch {
    let event = |number| TraceEvent {
        time_ns: number * 10_000_000,
        process: RECORDER,
        thread: RECORDER,
        happened: Happened::Paused { device: DISK, pause_ms, dirty, limit: 10_000 },
    };
    let fact =
        |(name, value): &(&str, &str)| (format!("block.sda.writeback.{name}"), (*value).to_owned());
    let facts = facts.iter().map(fact).collect();
    seen(Made { events: (0..count).map(event).collect(), facts, ..Made::default() })
}

/// 64 MiB are read ahead for one that asks for so many bytes.
fn ahead(asked_bytes: u64, is_mapped: bool) -> Diagnosis {
    let mut events = Vec::new();
    for read in 0..64_u64 {
        events.extend(request(read * 1000, RECORDER, "RA", (in_file(read << 20), 1 << 20)));
    }
    if is_mapped {
        events.push(page(70_000, 5, Happened::Faulted));
    }
    let counters = ProcessCounters {
        name: "recorder".to_owned(),
        asked_bytes,
        read_bytes: 64 << 20,
        ..ProcessCounters::default()
    };
    let asked = BTreeMap::from([(RECORDER, counters)]);
    diagnose(&seen(Made { events, asked, ..Made::default() }))
}

#[test]
fn more_that_is_read_than_was_asked_for_is_readahead() {
    let report = ahead(4 << 20, false);
    is(&report, &["io.readahead"]);
    let what = "64.0 MiB were read from sda for recorder (process 412), which asked for 4.00 MiB";
    assert_eq!(report.findings[0].what, what);
    is(&ahead(40 << 20, false), &[]);
    // What is touched through a mapping is asked for by no call.
    is(&ahead(0, true), &[]);
}
