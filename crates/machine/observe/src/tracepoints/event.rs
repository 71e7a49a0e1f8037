//! What the kernel's records of disks and pages say.

use host::DeviceNumber;
use serde::Serialize;

use super::format::{Field, Format};
use super::set::{self, Decode, Traced};

/// What a disk is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write,
    /// Make what it has in its cache durable.
    Flush,
    /// A discard: the disk may forget the blocks.
    Discard,
    /// Anything else: zones, commands of programs.
    Other,
}

/// How a request is meant (`blk_fill_rwbs` of `kernel/trace/blktrace.c`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Purpose {
    /// What the request does.
    pub operation: Operation,
    /// No program has asked for these bytes yet.
    pub is_readahead: bool,
    /// Of the file system's own.
    pub is_metadata: bool,
    /// A process waits for it.
    pub is_sync: bool,
}

impl Purpose {
    /// Reads the letters of `rwbs`. An F before the operation is a flush before it.
    pub(super) fn parse(letters: &[u8]) -> Self {
        let (operation, rest) = match letters {
            [b'F', b'F', rest @ ..] => (Operation::Flush, rest),
            [b'F', letter, rest @ ..] if of_letter(*letter).is_some() => {
                (of_letter(*letter).unwrap_or(Operation::Other), rest)
            }
            [b'F', rest @ ..] => (Operation::Flush, rest),
            [letter, rest @ ..] => (of_letter(*letter).unwrap_or(Operation::Other), rest),
            [] => (Operation::Other, letters),
        };
        let has = |letter: u8| rest.contains(&letter);
        Self {
            operation,
            is_readahead: operation == Operation::Read && has(b'A'),
            is_metadata: has(b'M'),
            is_sync: has(b'S'),
        }
    }
}

fn of_letter(letter: u8) -> Option<Operation> {
    match letter {
        b'R' => Some(Operation::Read),
        b'W' => Some(Operation::Write),
        b'D' => Some(Operation::Discard),
        b'N' | b'Z' => Some(Operation::Other),
        _ => None,
    }
}

/// A request to a disk, at one moment of its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRequest {
    /// The whole disk.
    pub device: DeviceNumber,
    /// Where it begins, in units of 512 bytes; of a flush without data 0.
    pub sector: u64,
    /// Its length in the same units.
    pub sectors: u32,
    /// What the request is for.
    pub purpose: Purpose,
}

impl BlockRequest {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * 512
    }
}

/// A page of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FilePage {
    /// What the file system is on.
    pub device: DeviceNumber,
    /// The file's number there.
    pub inode: u64,
    /// Pages of the file before it.
    pub index: u64,
}

/// A call that makes files durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// `fsync` or `fdatasync` of a descriptor.
    File(u32),
    /// `syncfs` of a descriptor.
    Filesystem(u32),
    /// `msync` of some memory.
    Mapping,
    /// `sync`.
    Everything,
}

/// What a tracepoint reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    /// A request was made; the process is the one that made it.
    Queued(BlockRequest),
    /// It went to the disk.
    Issued(BlockRequest),
    /// The disk could not take it; it waits again.
    Requeued(BlockRequest),
    /// The disk has done it, or a part of it.
    Completed(BlockRequest),
    /// The process changed a page of a file that was clean before.
    Dirtied(FilePage),
    /// The process touched a page of a mapped file that it had no mapping of.
    Faulted(FilePage),
    /// The process touched a page of a mapped file that was in memory: it and some around it are
    /// mapped now.
    Mapped(FilePage),
    /// Several pages of a file came into memory as one, a large folio: what is done to one of them
    /// is reported of all.
    Cached {
        /// The first of them.
        first: FilePage,
        /// How many, a power of two.
        pages: u64,
    },
    /// A thread asks that files become durable, and waits.
    SyncBegun(Sync),
    /// Its call is over.
    SyncEnded,
    /// The file system begins to make a file durable for the thread that runs (ext4): within one of
    /// those calls, or because what is written to the file is to be durable at once.
    FileSyncBegun {
        /// What the file system is on.
        device: DeviceNumber,
        /// The file's number there.
        inode: u64,
    },
    /// It has done that.
    FileSyncEnded,
    /// The process has changed more of files than disks have taken, and may not go on for a while
    /// (`balance_dirty_pages`).
    Paused {
        /// The device that it waits for.
        device: DeviceNumber,
        /// How long it sleeps.
        pause_ms: u64,
        /// Pages that are changed and not written.
        dirty: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The thread begins to send off what a limit of a group of processes has held back, for
    /// whoever asked.
    ReleaseBegun,
    /// It has sent off what may go now.
    ReleaseEnded,
    /// A network interface was handed a packet by the process that sent it.
    Handed {
        /// Its length without the header of the link.
        bytes: u32,
    },
    /// The thread has ended.
    Ended {
        /// Its name, up to a zero.
        name: [u8; 16],
    },
    /// A journal has committed.
    Committed {
        /// What the file system is on.
        device: DeviceNumber,
        /// Blocks that were written to the journal.
        blocks: u32,
    },
}

/// A record of the kernel of disks, pages, packets or processes.
pub type TraceEvent = Traced<Happened>;

/// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` of `include/linux/trace_events.h`: the process
/// that ran has nothing to do with it.
pub(super) const IN_INTERRUPT: u64 = 0x8 | 0x10;

/// Which record a tracepoint's is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Queued,
    Issued,
    Requeued,
    Completed,
    Dirtied,
    Faulted,
    Mapped,
    Cached,
    SyncBegun,
    FilesystemSyncBegun,
    MappingSyncBegun,
    EverythingSyncBegun,
    SyncEnded,
    FileSyncBegun,
    FileSyncEnded,
    Paused,
    ReleaseBegun,
    ReleaseEnded,
    Handed,
    Ended,
    Committed,
}

/// Tracepoints of disks, pages, packets and processes.
pub(super) type Set = set::Set<Decoder>;

/// Reads the records of one tracepoint.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    id: u16,
    kind: Kind,
    /// Fields in the order that the kind of record has them.
    fields: [Field; 4],
}

impl Decoder {
    /// `None` where the tracepoint lacks a field.
    pub(super) fn new(kind: Kind, format: &Format) -> Option<Self> {
        let names = match kind {
            Kind::Queued | Kind::Issued | Kind::Requeued | Kind::Completed => {
                ["dev", "sector", "nr_sector", "rwbs"]
            }
            Kind::Dirtied => ["name", "ino", "index", "index"],
            Kind::Faulted | Kind::Mapped => ["s_dev", "i_ino", "index", "index"],
            Kind::Cached => ["s_dev", "i_ino", "index", "order"],
            Kind::SyncBegun | Kind::FilesystemSyncBegun => ["fd"; 4],
            Kind::MappingSyncBegun | Kind::EverythingSyncBegun => ["__syscall_nr"; 4],
            Kind::SyncEnded | Kind::FileSyncEnded => ["ret"; 4],
            Kind::FileSyncBegun => ["dev", "ino", "dev", "dev"],
            Kind::Paused => ["bdi", "pause", "dirty", "limit"],
            Kind::ReleaseBegun | Kind::ReleaseEnded => ["function"; 4],
            Kind::Handed => ["len", "common_flags", "len", "len"],
            Kind::Ended => ["comm"; 4],
            Kind::Committed => ["dev", "blocks_logged", "dev", "dev"],
        };
        let [one, two, three, four] = names.map(|name| format.field(name));
        Some(Self { id: format.id, kind, fields: [one?, two?, three?, four?] })
    }
}

impl Decode for Decoder {
    type Happened = Happened;

    fn id(&self) -> u16 {
        self.id
    }

    fn decode(&self, record: &[u8], _processor: usize) -> Option<Happened> {
        let [one, two, three, four] = self.fields;
        let device = |field: Field| Some(DeviceNumber::of_kernel(field.short(record)?));
        let request = || {
            Some(BlockRequest {
                device: device(one)?,
                sector: two.number(record)?,
                sectors: three.short(record)?,
                purpose: Purpose::parse(four.text(record)?),
            })
        };
        let page = |device: DeviceNumber| {
            let (inode, index) = (two.number(record)?, three.number(record)?);
            Some(FilePage { device, inode, index })
        };
        Some(match self.kind {
            Kind::Queued => Happened::Queued(request()?),
            Kind::Issued => Happened::Issued(request()?),
            Kind::Requeued => Happened::Requeued(request()?),
            Kind::Completed => Happened::Completed(request()?),
            // A device of writeback is named by its number, or by something else that is no disk.
            Kind::Dirtied => {
                let name = str::from_utf8(one.text(record)?).ok()?;
                Happened::Dirtied(page(name.parse().ok()?)?)
            }
            Kind::Faulted => Happened::Faulted(page(device(one)?)?),
            Kind::Mapped => Happened::Mapped(page(device(one)?)?),
            Kind::Cached => {
                let order = four.short(record)?;
                Happened::Cached { first: page(device(one)?)?, pages: 1_u64.checked_shl(order)? }
            }
            Kind::SyncBegun => Happened::SyncBegun(Sync::File(one.short(record)?)),
            Kind::FilesystemSyncBegun => Happened::SyncBegun(Sync::Filesystem(one.short(record)?)),
            Kind::MappingSyncBegun => Happened::SyncBegun(Sync::Mapping),
            Kind::EverythingSyncBegun => Happened::SyncBegun(Sync::Everything),
            Kind::SyncEnded => Happened::SyncEnded,
            Kind::FileSyncBegun => {
                Happened::FileSyncBegun { device: device(one)?, inode: two.number(record)? }
            }
            Kind::FileSyncEnded => Happened::FileSyncEnded,
            Kind::Paused => {
                let device = str::from_utf8(one.text(record)?).ok()?.parse().ok()?;
                // Negative where it needs not sleep.
                let pause_ms = i64::try_from(two.number(record)?).ok()?.try_into().ok()?;
                let (dirty, limit) = (three.number(record)?, four.number(record)?);
                Happened::Paused { device, pause_ms, dirty, limit }
            }
            Kind::ReleaseBegun => Happened::ReleaseBegun,
            Kind::ReleaseEnded => Happened::ReleaseEnded,
            Kind::Handed if two.number(record)? & IN_INTERRUPT != 0 => return None,
            Kind::Handed => Happened::Handed { bytes: one.short(record)? },
            Kind::Ended => Happened::Ended { name: *one.bytes(record)?.first_chunk()? },
            Kind::Committed => {
                Happened::Committed { device: device(one)?, blocks: two.short(record)? }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_what_a_request_is_for() {
        let of = |letters: &str| {
            let purpose = Purpose::parse(letters.as_bytes());
            let Purpose { operation, is_readahead, is_metadata, is_sync } = purpose;
            (operation, is_readahead, is_metadata, is_sync)
        };
        assert_eq!(of("R"), (Operation::Read, false, false, false));
        assert_eq!(of("RA"), (Operation::Read, true, false, false));
        assert_eq!(of("RSM"), (Operation::Read, false, true, true));
        assert_eq!(of("WS"), (Operation::Write, false, false, true));
        assert_eq!(of("FWFSM"), (Operation::Write, false, true, true));
        assert_eq!(of("WFS"), (Operation::Write, false, false, true));
        assert_eq!(of("FF"), (Operation::Flush, false, false, false));
        assert_eq!(of("F"), (Operation::Flush, false, false, false));
        assert_eq!(of("D"), (Operation::Discard, false, false, false));
        assert_eq!(of("DE"), (Operation::Discard, false, false, false));
        assert_eq!(of("N"), (Operation::Other, false, false, false));
        assert_eq!(of(""), (Operation::Other, false, false, false));
    }
}
