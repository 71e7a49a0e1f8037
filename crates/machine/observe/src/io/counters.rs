//! Counters of disks (`/proc/diskstats`, Documentation/admin-guide/iostats.rst) and of processes
//! (`proc_pid_io(5)`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use host::DeviceNumber;
use host::processes::{self, Stat};
use serde::Serialize;

/// What a disk, a partition or a device built on others has done since it is there. Fields are keys
/// in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DiskCounters {
    /// Reads that ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time they took, each from its beginning.
    pub read_ms: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time they took.
    pub write_ms: u64,
    /// Discards that ended; 0 before Linux 4.18.
    pub discards: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Flushes that ended; 0 before Linux 5.5.
    pub flushes: u64,
    /// Time they took.
    pub flush_ms: u64,
    /// Time in which any was under way.
    pub busy_ms: u64,
    /// Time of all that were under way, added.
    pub weighted_ms: u64,
}

impl DiskCounters {
    /// What was added since an earlier look.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let Self {
            reads,
            read_bytes,
            read_ms,
            writes,
            written_bytes,
            write_ms,
            busy_ms,
            weighted_ms,
            discards,
            discarded_bytes,
            flushes,
            flush_ms,
        } = *self;
        Self {
            reads: reads.saturating_sub(before.reads),
            read_bytes: read_bytes.saturating_sub(before.read_bytes),
            read_ms: read_ms.saturating_sub(before.read_ms),
            writes: writes.saturating_sub(before.writes),
            written_bytes: written_bytes.saturating_sub(before.written_bytes),
            write_ms: write_ms.saturating_sub(before.write_ms),
            busy_ms: busy_ms.saturating_sub(before.busy_ms),
            weighted_ms: weighted_ms.saturating_sub(before.weighted_ms),
            discards: discards.saturating_sub(before.discards),
            discarded_bytes: discarded_bytes.saturating_sub(before.discarded_bytes),
            flushes: flushes.saturating_sub(before.flushes),
            flush_ms: flush_ms.saturating_sub(before.flush_ms),
        }
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        let parts = [self.reads, self.writes, self.discards, self.flushes];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// All block devices that have done something, by number, with their names.
pub fn disks() -> BTreeMap<DeviceNumber, (String, DiskCounters)> {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    text.lines().filter_map(disk).collect()
}

/// Whether a device that [`disks`] names is a whole one, not a partition.
pub fn is_whole_disk(name: &str) -> bool {
    // Slashes of names, as of `cciss/c0d0`, are exclamation marks here.
    let folder = Path::new("/sys/block").join(name.replace('/', "!"));
    folder.is_dir()
}

fn disk(line: &str) -> Option<(DeviceNumber, (String, DiskCounters))> {
    let mut words = line.split_ascii_whitespace();
    let device =
        DeviceNumber { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
    let name = words.next()?.to_owned();
    let counts: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
    let count = |at: usize| counts.get(at).copied().unwrap_or(0);
    // Sectors of 512 bytes, whatever the disk's own are.
    let bytes = |at: usize| count(at).saturating_mul(512);
    let counters = DiskCounters {
        reads: count(0),
        read_bytes: bytes(2),
        read_ms: count(3),
        writes: count(4),
        written_bytes: bytes(6),
        write_ms: count(7),
        busy_ms: count(9),
        weighted_ms: count(10),
        discards: count(11),
        discarded_bytes: bytes(13),
        flushes: count(15),
        flush_ms: count(16),
    };
    (counts.len() >= 11 && counters.requests() > 0).then_some((device, (name, counters)))
}

/// What a process has had done since it began. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ProcessCounters {
    /// Its name, as the kernel has it.
    pub name: String,
    /// Bytes that it asked for, of whatever can be read, and was given (`rchar`).
    #[serde(skip)]
    pub asked_bytes: u64,
    /// Bytes that disks read for it.
    pub read_bytes: u64,
    /// Bytes that it has changed in files, which go to a disk at some time.
    #[serde(rename = "changed_bytes")]
    pub written_bytes: u64,
    /// Of these what was taken back before: files that were cut or removed.
    pub cancelled_bytes: u64,
}

/// Processes whose counters we may see, and how many others there are.
pub fn processes() -> (BTreeMap<u32, ProcessCounters>, usize) {
    let (mut seen, mut unseen) = (BTreeMap::new(), 0);
    for number in processes::processes() {
        match fs::read_to_string(processes::place(number).join("io")) {
            Ok(text) => {
                let name = process(number).unwrap_or_default().name;
                seen.insert(number, counters(name, &text));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => unseen += 1,
            // It has ended.
            Err(_) => {}
        }
    }
    (seen, unseen)
}

/// Bytes that this process, and programs that it ran and waited for, have written to disks;
/// `None` where the kernel does not count that.
pub fn written_here() -> Option<u64> {
    let (_, written_bytes) = transferred(host::own_process())?;
    Some(written_bytes)
}

/// Bytes that disks have read for this process and those programs, and that they have written.
pub fn moved_here() -> Option<u64> {
    let (read_bytes, written_bytes) = transferred(host::own_process())?;
    Some(read_bytes.saturating_add(written_bytes))
}

/// Bytes that disks have read for a process, and that it has changed; `None` where we may not look.
pub(crate) fn transferred(process: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(processes::place(process).join("io")).ok()?;
    let ProcessCounters { read_bytes, written_bytes, .. } = counters(String::new(), &text);
    Some((read_bytes, written_bytes))
}

fn counters(name: String, text: &str) -> ProcessCounters {
    let count = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    ProcessCounters {
        name,
        asked_bytes: count("rchar"),
        read_bytes: count("read_bytes"),
        written_bytes: count("write_bytes"),
        cancelled_bytes: count("cancelled_write_bytes"),
    }
}

/// A running process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Process {
    /// Its name, as the kernel has it.
    pub name: String,
    /// It is a thread of the kernel.
    pub is_kernel: bool,
}

/// A process, or a thread of the kernel; `None` when it has ended.
pub fn process(number: u32) -> Option<Process> {
    let Stat { name, is_kernel, .. } = Stat::of(number)?;
    Some(Process { name, is_kernel })
}

/// For tests that give any text: that of the disks, and that of a process.
pub(crate) fn read_any_text(text: &str) -> usize {
    let process = counters(String::new(), text);
    text.lines().filter_map(disk).count() + usize::from(process.read_bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_disks_have_counts_that_grew_over_the_years() {
        let line = " 254  0 vda 10 2 80 30 40 5 1600 60 0 70 90 1 0 8 2 3 4";
        let (device, (name, counters)) = disk(line).unwrap();
        assert_eq!((device.to_string(), &*name), ("254:0".to_owned(), "vda"));
        assert_eq!((counters.reads, counters.read_bytes, counters.read_ms), (10, 40_960, 30));
        assert_eq!((counters.writes, counters.written_bytes), (40, 819_200));
        assert_eq!((counters.busy_ms, counters.weighted_ms), (70, 90));
        assert_eq!((counters.discards, counters.discarded_bytes), (1, 4096));
        assert_eq!((counters.flushes, counters.flush_ms, counters.requests()), (3, 4, 54));
        let (_, (_, old)) = disk("8 0 sda 10 2 80 30 40 5 1600 60 0 70 90").unwrap();
        assert_eq!((old.flushes, old.requests()), (0, 50));
        assert!(disk("7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0").is_none());
        assert_eq!(counters.since(&old).flushes, 3);
        assert!(!is_whole_disk("no-such-disk"));
    }

    #[test]
    fn this_process_is_none_of_the_kernel() {
        let own = process(std::process::id()).unwrap();
        assert!(!own.is_kernel && !own.name.is_empty(), "{own:?}");
        assert_eq!(process(u32::MAX), None);
    }

    #[test]
    fn this_process_has_counters() {
        let (seen, _) = processes();
        assert!(seen.contains_key(&std::process::id()));
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        let found = counters("x".to_owned(), text);
        assert_eq!((found.read_bytes, found.written_bytes, found.cancelled_bytes), (4096, 8192, 1));
    }
}
