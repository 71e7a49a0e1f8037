//! What disks are asked for and when they answer, whose pages are changed and touched: the
//! kernel's tracepoints by `perf_event_open(2)`.
//!
//! Each processor has a ring for requests and a smaller one for pages, so that a storm of changed
//! pages takes no space from requests; rings are bounded, and what did not fit is counted. Devices
//! are chosen by a filter in the kernel. Needs `CAP_PERFMON` and a tracefs that can be read; no
//! program is loaded into the kernel but by [`calls`], and nothing stays behind when the value is
//! dropped.

#![expect(unsafe_code, reason = "perf_event_open(2) and fsopen(2) have no wrappers here")]

mod attempts;
pub mod calls;
mod event;
mod format;
mod mounted;
mod not_traced;
mod openers;
mod place;
mod senders;
mod set;
mod sockets;

use std::path::Path;

pub use attempts::{AttemptEnd, ConnectAttempts, FailedAttempt, NoRoute};
pub use event::{BlockRequest, FilePage, Happened, Operation, Purpose, Sync, TraceEvent};
use event::{Decoder, Kind, Set};
use format::Format;
use host::DeviceNumber;
pub use not_traced::NotTraced;
pub use openers::{Opened, Openers};
use place::{format_of, tracefs};
pub use senders::{Senders, Sent, realtime_ahead_ns};
pub use set::Traced;
use set::up_to;

pub use crate::perf::{monotonic_ns, processors};
use crate::perf::{ring_size, settled_ns};
use crate::symbols::address_of;

/// Of the rings for requests: at 50 000 a second on one processor, 300 bytes each, 0.14 s.
const REQUEST_RING: usize = 2 << 20;
const PAGE_RING: usize = 512 << 10;
/// A group is served ten times a second or so.
const RELEASE_RING: usize = 32 << 10;

/// The tracepoints that are listened to.
#[derive(Debug)]
pub struct Tracer {
    requests: Set,
    pages: Option<Set>,
    folios: Option<Set>,
    /// What limits of groups have held back, when it is sent off.
    releases: Option<Set>,
    /// Read, and not yet handed out.
    waiting: Vec<TraceEvent>,
}

impl Tracer {
    /// Listens to requests to these disks, or to all where there is none; with `has_pages` also to
    /// pages of files and to journals.
    pub fn open(disks: &[DeviceNumber], has_pages: bool) -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let filter: Vec<String> =
            disks.iter().map(|disk| format!("dev == {}", disk.to_kernel())).collect();
        let filter = filter.join(" || ");
        let queued = queued(&place)?;
        let wanted = [
            queued,
            (Kind::Issued, "block/block_rq_issue"),
            (Kind::Requeued, "block/block_rq_requeue"),
            (Kind::Completed, "block/block_rq_complete"),
        ];
        let decoders = decoders(&place, &wanted)?;
        let requests = Set::open(decoders, &filter, ring_size(REQUEST_RING))?;
        let wanted = [
            (Kind::Dirtied, "writeback/writeback_dirty_folio"),
            (Kind::Faulted, "filemap/mm_filemap_fault"),
            (Kind::Mapped, "filemap/mm_filemap_map_pages"),
            (Kind::SyncBegun, "syscalls/sys_enter_fsync"),
            (Kind::SyncEnded, "syscalls/sys_exit_fsync"),
            (Kind::SyncBegun, "syscalls/sys_enter_fdatasync"),
            (Kind::SyncEnded, "syscalls/sys_exit_fdatasync"),
            (Kind::FilesystemSyncBegun, "syscalls/sys_enter_syncfs"),
            (Kind::SyncEnded, "syscalls/sys_exit_syncfs"),
            (Kind::MappingSyncBegun, "syscalls/sys_enter_msync"),
            (Kind::SyncEnded, "syscalls/sys_exit_msync"),
            (Kind::EverythingSyncBegun, "syscalls/sys_enter_sync"),
            (Kind::SyncEnded, "syscalls/sys_exit_sync"),
            (Kind::FileSyncBegun, "ext4/ext4_sync_file_enter"),
            (Kind::FileSyncEnded, "ext4/ext4_sync_file_exit"),
            (Kind::Committed, "jbd2/jbd2_run_stats"),
            (Kind::Paused, "writeback/balance_dirty_pages"),
        ];
        // Kernels without one of them still have the others.
        let some = wanted.iter().filter_map(|one| decoder_of(&place, one).ok()).collect();
        let pages = has_pages.then(|| Set::open(some, "", ring_size(PAGE_RING))).transpose()?;
        // Single pages come by the hundred thousand a second. Old kernels do not say the size.
        let large = decoder_of(&place, &(Kind::Cached, "filemap/mm_filemap_add_to_page_cache"));
        let large = large.ok().filter(|_| has_pages);
        let folios = large
            .and_then(|decoder| Set::open(vec![decoder], "order > 0", ring_size(PAGE_RING)).ok());
        let releases = releases(&place);
        Ok(Self { requests, pages, folios, releases, waiting: Vec::new() })
    }

    /// What happened until a few milliseconds ago, in the order of time.
    pub fn read(&mut self, into: &mut Vec<TraceEvent>) {
        self.take(settled_ns(), into);
    }

    /// Ends it: everything that has been read or waits in the rings, and what is missing is
    /// counted.
    pub fn finish(&mut self, into: &mut Vec<TraceEvent>) {
        self.sets().for_each(|set| set.stop());
        self.take(u64::MAX, into);
        self.sets().for_each(Set::count_missing);
    }

    fn sets(&mut self) -> impl Iterator<Item = &mut Set> {
        let further = self.pages.iter_mut().chain(&mut self.folios).chain(&mut self.releases);
        core::iter::once(&mut self.requests).chain(further)
    }

    fn take(&mut self, until_ns: u64, into: &mut Vec<TraceEvent>) {
        let Self { requests, pages, folios, releases, waiting } = self;
        let further = pages.iter_mut().chain(folios).chain(releases);
        core::iter::once(requests).chain(further).for_each(|set| set.read(waiting));
        into.extend(up_to(&mut self.waiting, until_ns));
    }

    /// Records of requests that did not come; before the end those that did not fit.
    pub fn lost_requests(&self) -> u64 {
        self.requests.lost()
    }

    /// The same of pages and journals.
    pub fn lost_pages(&self) -> u64 {
        self.pages.iter().chain(&self.folios).map(Set::lost).sum()
    }
}

/// Requests that a group of processes may not make yet are made later by a worker of the kernel
/// (`block/blk-throttle.c`), in a function that workers run for nothing else. `None` where its
/// address is not told, or the kernel has none.
fn releases(place: &Path) -> Option<Set> {
    const FUNCTION: &str = "blk_throtl_dispatch_work_fn";
    let address = address_of(FUNCTION)?;
    let wanted = [
        (Kind::ReleaseBegun, "workqueue/workqueue_execute_start"),
        (Kind::ReleaseEnded, "workqueue/workqueue_execute_end"),
    ];
    let decoders = decoders(place, &wanted).ok()?;
    Set::open(decoders, &format!("function == {address:#x}"), ring_size(RELEASE_RING)).ok()
}

/// The tracepoint at which a process makes a request: since Linux 6.5 one of its own.
fn queued(place: &Path) -> Result<(Kind, &'static str), NotTraced> {
    const NAMES: [&str; 2] = ["block/block_io_start", "block/block_getrq"];
    let found = NAMES.into_iter().find(|name| place.join("events").join(name).is_dir());
    found.map(|name| (Kind::Queued, name)).ok_or(NotTraced::NoTracepoint("block_getrq"))
}

fn decoders(place: &Path, wanted: &[(Kind, &'static str)]) -> Result<Vec<Decoder>, NotTraced> {
    wanted.iter().map(|one| decoder_of(place, one)).collect()
}

fn decoder_of(place: &Path, (kind, name): &(Kind, &'static str)) -> Result<Decoder, NotTraced> {
    let decoder = Decoder::new(*kind, &format_of(place, name)?);
    decoder.ok_or(NotTraced::NoTracepoint(name))
}

/// For tests that give any bytes: the layout of a tracepoint, and records of it.
pub(crate) fn read_any_records(layout: &str, records: &[u8]) -> Vec<TraceEvent> {
    let kinds = [
        Kind::Queued,
        Kind::Issued,
        Kind::Requeued,
        Kind::Completed,
        Kind::Dirtied,
        Kind::Faulted,
        Kind::Mapped,
        Kind::Cached,
        Kind::SyncBegun,
        Kind::FilesystemSyncBegun,
        Kind::MappingSyncBegun,
        Kind::EverythingSyncBegun,
        Kind::SyncEnded,
        Kind::FileSyncBegun,
        Kind::FileSyncEnded,
        Kind::Paused,
        Kind::ReleaseBegun,
        Kind::ReleaseEnded,
        Kind::Handed,
        Kind::Ended,
        Kind::Committed,
    ];
    let Some(format) = Format::parse(layout) else { return Vec::new() };
    let mut events = Vec::new();
    for kind in kinds {
        let decoders: Vec<_> = Decoder::new(kind, &format).into_iter().collect();
        set::take(&decoders, (0, records), &mut events);
    }
    calls::read_any_records(&format, records);
    events
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// What is missing of a write of a megabyte, while the whole machine is listened to; `None`
    /// where it cannot be looked for.
    fn missing_of_a_write() -> Option<Vec<&'static str>> {
        let not_run = |reason: String| println!("not run: {reason}");
        let opened = Tracer::open(&[], true);
        let mut tracer = opened.map_err(|error| not_run(format!("tracing takes {error}"))).ok()?;
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.as_file().write_all_at(b"more", 4 << 20).unwrap();
        file.as_file().sync_all().unwrap();
        let mut events = Vec::new();
        tracer.finish(&mut events);
        assert!(events.is_sorted_by_key(|event| event.time_ns));
        let bytes = |of: fn(&Happened) -> Option<&BlockRequest>| -> u64 {
            let all = events.iter().filter_map(|event| of(&event.happened));
            let writes = all.filter(|request| request.purpose.operation == Operation::Write);
            writes.map(BlockRequest::bytes).sum()
        };
        let issued = bytes(|happened| match happened {
            Happened::Issued(request) => Some(request),
            _ => None,
        });
        let completed = bytes(|happened| match happened {
            Happened::Completed(request) => Some(request),
            _ => None,
        });
        if issued == 0 {
            not_run("temporary files are on no disk".to_owned());
            return None;
        }
        let own = std::process::id();
        let is_ours = |of: fn(&Happened) -> bool| {
            events.iter().any(|event| event.process == own && of(&event.happened))
        };
        let expected = [
            (issued >= 1 << 20, "the requests that were issued"),
            // Kernels that keep such records back are counted: perf(1) does not get them either.
            (
                completed >= 1 << 20 || tracer.lost_requests() > 0,
                "the requests that were completed",
            ),
            (is_ours(|what| matches!(what, Happened::Queued(_))), "the process that asked"),
            (is_ours(|what| matches!(what, Happened::Dirtied(_))), "whose pages were changed"),
        ];
        if completed < 1 << 20 {
            not_run(format!("the kernel kept {} records back", tracer.lost_requests()));
        }
        Some(expected.iter().filter(|(is_met, _)| !is_met).map(|(_, what)| *what).collect())
    }

    #[test]
    fn a_write_of_ours_is_queued_issued_and_completed() {
        // The kernel may write for us, or take no record, where others write at the same time.
        let mut missing = Vec::new();
        for _ in 0..8 {
            let Some(lack) = missing_of_a_write() else { return };
            if lack.is_empty() {
                return;
            }
            missing.push(lack);
        }
        panic!("missing in each of 8 attempts: {missing:?}");
    }
}
