//! Threads that wait until files are durable.
//!
//! A call says so by itself. A write to a file that is to be durable at once (`O_SYNC`, `O_DSYNC`,
//! a file system that is mounted with `sync`) is known by what its file system does then, which
//! ext4 reports; within a call that is a part of it, and says of `msync` which file it is for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use host::DeviceNumber;
use observe::tracepoints::{Sync, TraceEvent};

use super::files::FileKey;
use super::tally::{SyncBy, SyncKey, SyncSeen};

/// Files, descriptors and threads that are waited for or wait at the same time.
const SYNCS_MAX: usize = 1 << 14;

/// A wait.
#[derive(Debug)]
struct UnderWay {
    begun_ns: u64,
    process: u32,
    by: SyncBy,
    descriptor: Option<u32>,
    file: Option<FileKey>,
}

/// One that is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) process: u32,
    pub(super) by: SyncBy,
    /// What its descriptor leads to, and what that lies on.
    pub(super) opened: Option<(PathBuf, DeviceNumber)>,
    /// The file that the file system named.
    pub(super) file: Option<FileKey>,
    pub(super) ns: u64,
}

/// All waits.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    seen: BTreeMap<SyncKey, SyncSeen>,
    /// By thread.
    under_way: BTreeMap<u32, UnderWay>,
    /// Descriptors that were waited for, by process, and what they lead to.
    descriptors: BTreeMap<(u32, u32), (PathBuf, DeviceNumber)>,
}

impl Syncs {
    /// A call begins. What the descriptor leads to is asked for at once: it may be another file's
    /// soon.
    pub(super) fn begun(
        &mut self,
        event: &TraceEvent,
        sync: Sync,
        opened: impl FnOnce(u32) -> Option<(PathBuf, DeviceNumber)>,
    ) {
        if self.under_way.len() >= SYNCS_MAX {
            return;
        }
        let (by, descriptor) = match sync {
            Sync::File(descriptor) => (SyncBy::Call, Some(descriptor)),
            Sync::Filesystem(descriptor) => (SyncBy::Filesystem, Some(descriptor)),
            Sync::Mapping => (SyncBy::Mapping, None),
            Sync::Everything => (SyncBy::Everything, None),
        };
        // A process that has ended meanwhile leaves what was known of it.
        if let Some(descriptor) = descriptor
            && let Some(opened) = opened(descriptor)
            && self.descriptors.len() < SYNCS_MAX
        {
            self.descriptors.insert((event.process, descriptor), opened);
        }
        let (begun_ns, process) = (event.time_ns, event.process);
        let under_way = UnderWay { begun_ns, process, by, descriptor, file: None };
        self.under_way.insert(event.thread, under_way);
    }

    /// A file system begins to make a file durable for a thread.
    pub(super) fn file_begun(&mut self, event: &TraceEvent, file: FileKey) {
        let has_room = self.under_way.len() < SYNCS_MAX;
        match self.under_way.get_mut(&event.thread) {
            Some(call) if call.by == SyncBy::Mapping => {
                call.file.get_or_insert(file);
            }
            Some(call) if call.by != SyncBy::Write => {}
            _ if has_room => {
                let (begun_ns, process) = (event.time_ns, event.process);
                let (by, file) = (SyncBy::Write, Some(file));
                let under_way = UnderWay { begun_ns, process, by, descriptor: None, file };
                self.under_way.insert(event.thread, under_way);
            }
            _ => {}
        }
    }

    /// A call ends, or what a file system does for a thread; `None` where that was a part of a
    /// call, or what was waited for is no file.
    pub(super) fn ended(&mut self, event: &TraceEvent, is_call: bool) -> Option<Ended> {
        let is_write = self.under_way.get(&event.thread)?.by == SyncBy::Write;
        if is_write == is_call {
            return None;
        }
        let UnderWay { begun_ns, process, by, descriptor, file } =
            self.under_way.remove(&event.thread)?;
        let opened = match descriptor {
            Some(descriptor) => Some(self.descriptors.get(&(process, descriptor))?.clone()),
            None => None,
        };
        let ns = event.time_ns.saturating_sub(begun_ns);
        Some(Ended { process, by, opened, file, ns })
    }

    pub(super) fn add(&mut self, key: SyncKey, thread: u32, ns: u64) {
        if self.seen.len() < SYNCS_MAX || self.seen.contains_key(&key) {
            self.seen.entry(key).or_default().add(thread, ns);
        }
    }

    pub(super) fn finish(self) -> BTreeMap<SyncKey, SyncSeen> {
        self.seen
    }
}
