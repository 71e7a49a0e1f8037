//! Requests added up: by disk, by process, by file, over time and place. Fields are keys in JSON,
//! in this order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use host::DeviceNumber;
use observe::tracepoints::Operation;
use serde::{Serialize, Serializer};
use units::Histogram;

use super::files::FileKey;
use super::requests::Request;
use super::serialize::{serialize_sizes, serialize_times};

/// How many, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Amount {
    /// Number of requests.
    pub count: u64,
    /// Sum of their bytes.
    pub bytes: u64,
}

impl Amount {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    pub(super) fn add_all(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// One kind of requests to a disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OperationSeen {
    /// All requests.
    #[serde(flatten)]
    pub all: Amount,
    /// Those that begin where one of the last 16 of their kind ended.
    pub sequential: u64,
    /// Of all, those that no program had asked for yet.
    pub readahead: Amount,
    /// Of all, those of the file system itself.
    pub metadata: Amount,
    /// From when they were made until they went to the disk, where that was seen.
    #[serde(serialize_with = "serialize_times")]
    pub queue: Histogram,
    /// From then until the disk had done them.
    #[serde(serialize_with = "serialize_times")]
    pub device: Histogram,
    /// Latencies of both together.
    #[serde(serialize_with = "serialize_times")]
    pub total: Histogram,
    /// How many, by size: the power of two that the bytes do not exceed.
    #[serde(serialize_with = "serialize_sizes")]
    pub sizes: BTreeMap<u32, u64>,
    #[serde(skip)]
    ends: VecDeque<u64>,
}

/// Ends of requests that a next one may follow on: so many streams are distinguished.
const STREAMS: usize = 16;

impl OperationSeen {
    fn add(&mut self, request: &Request) {
        self.all.add(request.bytes);
        if request.purpose.is_readahead {
            self.readahead.add(request.bytes);
        }
        if request.purpose.is_metadata {
            self.metadata.add(request.bytes);
        }
        if let Some(queue_ns) = request.queue_ns() {
            self.queue.add(queue_ns);
        }
        self.device.add(request.device_ns());
        self.total.add(request.total_ns());
        if request.bytes == 0 {
            return;
        }
        *self.sizes.entry(request.bytes.next_power_of_two().ilog2()).or_default() += 1;
        if let Some(stream) = self.ends.iter().position(|&end| end == request.begin) {
            self.sequential += 1;
            self.ends.remove(stream);
        } else if self.ends.len() >= STREAMS {
            self.ends.pop_front();
        }
        self.ends.push_back(request.end());
    }
}

/// Processes whose parts of a disk are known.
const PROCESSES_MAX: usize = 1 << 14;

/// A disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskSeen {
    /// Most requests that it had at the same time.
    #[serde(rename = "in_flight_max")]
    pub under_way_max: u32,
    /// Time that it took for all requests, added: divided by the time of the watch it is how many
    /// it had in the mean.
    #[serde(rename = "in_flight_ns")]
    pub device_ns: u64,
    /// Statistics by kind of operation.
    #[serde(serialize_with = "serialize_operations")]
    pub operations: BTreeMap<Operation, OperationSeen>,
    /// Places of requests over time.
    pub places: Places,
    /// Whose requests they were.
    #[serde(skip)]
    pub by: BTreeMap<u32, PartOfDisk>,
}

fn serialize_operations<S: Serializer>(
    all: &BTreeMap<Operation, OperationSeen>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct OfKind<'a> {
        operation: Operation,
        #[serde(flatten)]
        seen: &'a OperationSeen,
    }
    to.collect_seq(all.iter().map(|(operation, seen)| OfKind { operation: *operation, seen }))
}

/// What one process had of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartOfDisk {
    /// Its requests.
    pub all: Amount,
    /// Time that the disk took for them, added.
    pub device_ns: u64,
    /// From when they were made until they were done, added.
    pub total_ns: u64,
    /// Those that make the disk's cache durable.
    pub flushes: u64,
    /// Those that have the disk forget blocks.
    pub discards: u64,
}

/// How a process was held back because it had changed more than disks have taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PauseSeen {
    /// How often.
    pub count: u64,
    /// How long in all, of all its threads.
    pub total_ns: u64,
    /// Pages that were changed and not written, at the last time.
    pub dirty: u64,
    /// How many there could be then.
    pub limit: u64,
}

/// A process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessSeen {
    /// Name of the process.
    pub name: String,
    /// It is a thread of the kernel, or all its workers.
    pub is_kernel: bool,
    /// Read for it, with what no program had asked for yet.
    pub reads: Amount,
    /// Of these, what no program had asked for yet.
    pub readahead: Amount,
    /// What it wrote.
    pub writes: Amount,
    /// Written by the kernel later, of what it had changed.
    #[serde(rename = "written_later")]
    pub later: Amount,
    /// Flushes and discards.
    pub others: u64,
    /// From when its requests were made until they were done.
    #[serde(serialize_with = "serialize_times")]
    pub total: Histogram,
    /// The same of all together.
    #[serde(skip)]
    pub total_ns: u64,
}

/// What is at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Content {
    /// A file's bytes.
    File(FileKey),
    /// The journal of the file system on a device.
    Journal(DeviceNumber),
    /// Tables of the file system.
    Metadata(DeviceNumber),
    /// What belongs to no file any more.
    Free(DeviceNumber),
    /// Something of a file system that does not report it, or of a file that is not known.
    Unknown(DeviceNumber),
    /// Something of a disk without a known file system.
    Raw(DeviceNumber),
}

impl Content {
    /// The device of the file system that it belongs to.
    pub(super) fn filesystem(&self) -> Option<DeviceNumber> {
        match self {
            Self::File(file) => Some(file.device),
            Self::Journal(of) | Self::Metadata(of) | Self::Free(of) | Self::Unknown(of) => {
                Some(*of)
            }
            Self::Raw(_) => None,
        }
    }
}

/// By what a process has files made durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SyncBy {
    /// `fsync` or `fdatasync`.
    Call,
    /// `syncfs`, of a whole file system.
    Filesystem,
    /// `sync`, of all file systems.
    Everything,
    /// `msync`.
    Mapping,
    /// Writes, each of which is durable when it returns.
    Write,
}

/// Who waits for which file to become durable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SyncKey {
    /// Process id.
    pub process: u32,
    /// How it asks for that.
    pub by: SyncBy,
    /// The file, or one of the file system; `None` where it is not known.
    pub path: Option<PathBuf>,
    /// What its file system is on, or the device itself.
    pub device: Option<DeviceNumber>,
}

/// What a process waited for until a file was durable.
#[derive(Clone, Debug, Default)]
pub struct SyncSeen {
    /// How long each call took.
    pub waits: Histogram,
    /// All of them together, of all its threads.
    pub total_ns: u64,
    /// Threads that waited, some of them.
    pub threads: BTreeSet<u32>,
}

/// Threads that are told apart.
const THREADS_MAX: usize = 1 << 10;

impl SyncSeen {
    pub(super) fn add(&mut self, thread: u32, ns: u64) {
        self.waits.add(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
        if self.threads.len() < THREADS_MAX {
            self.threads.insert(thread);
        }
    }
}

/// Touches of pages of a mapping that were not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Those that the kernel had to look for.
    pub count: u64,
    /// Those of pages in memory: they were mapped with some around them.
    pub in_memory: u64,
    /// Of both those far from the one before, in either direction: not on a way through the file.
    pub far: u64,
    /// Of these those before it.
    pub back: u64,
}

impl Faults {
    /// All.
    pub fn touches(self) -> u64 {
        self.count + self.in_memory
    }
}

/// What was read and written of a file, or of something else.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSeen {
    /// The disk that it lies on.
    #[serde(skip)]
    pub disk: DeviceNumber,
    /// What was read.
    pub reads: Amount,
    /// Of these, what no program had asked for yet.
    pub readahead: Amount,
    /// Of these, single pages that the reader changed at once.
    pub partial_pages: Amount,
    /// What was written.
    pub writes: Amount,
    /// From when requests were made until they were done.
    #[serde(serialize_with = "serialize_times")]
    pub total: Histogram,
    /// By whom, read and written.
    #[serde(skip)]
    pub by: BTreeMap<u32, [Amount; 2]>,
    /// Who changed it, and how many pages: all of those that the kernel keeps as one.
    #[serde(skip)]
    pub changed_by: BTreeMap<u32, u64>,
    /// Who touched pages of its mapping, and how often.
    #[serde(skip)]
    pub mapped_by: BTreeMap<u32, Faults>,
}

impl FileSeen {
    pub(super) fn add(&mut self, request: &Request) {
        self.disk = request.disk;
        let [read, written] = self.by.entry(request.process).or_default();
        match request.purpose.operation {
            Operation::Read => {
                self.reads.add(request.bytes);
                read.add(request.bytes);
                if request.purpose.is_readahead {
                    self.readahead.add(request.bytes);
                }
            }
            Operation::Write => {
                self.writes.add(request.bytes);
                written.add(request.bytes);
            }
            _ => return,
        }
        self.total.add(request.total_ns());
    }
}

impl DiskSeen {
    pub(super) fn add(&mut self, request: &Request) {
        self.operations.entry(request.purpose.operation).or_default().add(request);
        self.under_way_max = self.under_way_max.max(request.under_way);
        self.device_ns = self.device_ns.saturating_add(request.device_ns());
        self.places.add(request);
        if self.by.len() < PROCESSES_MAX || self.by.contains_key(&request.process) {
            let part = self.by.entry(request.process).or_default();
            part.all.add(request.bytes);
            part.device_ns = part.device_ns.saturating_add(request.device_ns());
            part.total_ns = part.total_ns.saturating_add(request.total_ns());
            part.flushes += u64::from(request.purpose.operation == Operation::Flush);
            part.discards += u64::from(request.purpose.operation == Operation::Discard);
        }
    }
}

impl ProcessSeen {
    pub(super) fn add(&mut self, request: &Request) {
        match request.purpose.operation {
            Operation::Read => {
                self.reads.add(request.bytes);
                if request.purpose.is_readahead {
                    self.readahead.add(request.bytes);
                }
            }
            Operation::Write => self.writes.add(request.bytes),
            _ => self.others += 1,
        }
        self.total_ns = self.total_ns.saturating_add(request.total_ns());
        self.total.add(request.total_ns());
    }
}

/// Bytes over time and place of a disk.
#[derive(Clone, Debug)]
pub struct Places {
    /// Nanoseconds of a column.
    pub column_ns: u64,
    /// Bytes of a row, a power of two.
    pub row_bytes: u64,
    /// When the first column begins.
    pub begun_ns: Option<u64>,
    /// Bytes read and written, by column and row; what has none is absent.
    pub cells: BTreeMap<(u64, u64), [u64; 2]>,
}

/// Columns are joined by twos when there are more.
const COLUMNS_MAX: u64 = 240;
const COLUMN_NS: u64 = 50_000_000;
/// A disk of 16 TiB has 16 384 rows.
const ROW_BYTES: u64 = 1 << 30;
/// Rows of the first requests, which may be all in one place.
const ROW_BYTES_LEAST: u64 = 1 << 20;
const CELLS_MAX: usize = 1 << 15;

impl Default for Places {
    fn default() -> Self {
        Self {
            column_ns: COLUMN_NS,
            row_bytes: ROW_BYTES_LEAST,
            begun_ns: None,
            cells: BTreeMap::new(),
        }
    }
}

impl Serialize for Places {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Cell {
            after_ns: u64,
            offset_bytes: u64,
            read_bytes: u64,
            written_bytes: u64,
        }
        to.collect_seq(self.cells.iter().map(|((column, row), [read, written])| Cell {
            after_ns: column * self.column_ns,
            offset_bytes: row * self.row_bytes,
            read_bytes: *read,
            written_bytes: *written,
        }))
    }
}

impl Places {
    fn add(&mut self, request: &Request) {
        let side = match request.purpose.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            _ => return,
        };
        let begun_ns = *self.begun_ns.get_or_insert(request.issued_ns);
        let after_ns = request.issued_ns.saturating_sub(begun_ns);
        while after_ns / self.column_ns >= COLUMNS_MAX {
            self.column_ns *= 2;
            self.join(|(column, row)| (column / 2, row));
        }
        while self.cells.len() >= CELLS_MAX && self.row_bytes < ROW_BYTES {
            self.row_bytes *= 2;
            self.join(|(column, row)| (column, row / 2));
        }
        let place = (after_ns / self.column_ns, request.begin / self.row_bytes);
        let cell = self.cells.entry(place).or_default();
        if let Some(bytes) = cell.get_mut(side) {
            *bytes += request.bytes;
        }
    }

    fn join(&mut self, place: impl Fn((u64, u64)) -> (u64, u64)) {
        for (old, [read, written]) in core::mem::take(&mut self.cells) {
            let [reads, writes] = self.cells.entry(place(old)).or_default();
            *reads += read;
            *writes += written;
        }
    }
}

#[cfg(test)]
mod tests {
    use observe::tracepoints::Purpose;

    use super::*;

    fn read(begin: u64, at_ns: u64) -> Request {
        let purpose = Purpose {
            operation: Operation::Read,
            is_readahead: false,
            is_metadata: false,
            is_sync: false,
        };
        let disk = DeviceNumber { major: 8, minor: 0 };
        Request {
            disk,
            begin,
            bytes: 4096,
            purpose,
            process: 1,
            thread: 1,
            queued_ns: Some(at_ns),
            issued_ns: at_ns + 10,
            done_ns: at_ns + 100,
            under_way: 1,
        }
    }

    #[test]
    fn streams_are_told_apart_and_jumps_are_none() {
        let mut disk = DiskSeen::default();
        for step in 0..10 {
            disk.add(&read(step * 4096, step));
            disk.add(&read((1 << 30) + step * 4096, step));
            disk.add(&read((step + 7) << 35, step));
        }
        let seen = &disk.operations[&Operation::Read];
        assert_eq!((seen.all.count, seen.sequential), (30, 18));
        assert_eq!((seen.queue.count(), seen.sizes[&12]), (30, 30));
        assert_eq!(disk.device_ns, 30 * 90);
    }

    #[test]
    fn places_stay_bounded_and_lose_no_byte() {
        let mut disk = DiskSeen::default();
        for step in 0..50_000_u64 {
            disk.add(&read(step << 27, step * 10_000_000));
        }
        let places = &disk.places;
        assert!(places.cells.len() <= CELLS_MAX, "{}", places.cells.len());
        assert!(places.cells.keys().all(|(column, _)| *column < COLUMNS_MAX));
        let bytes: u64 = places.cells.values().map(|[read, _]| read).sum();
        assert_eq!(bytes, 50_000 * 4096);
    }
}
