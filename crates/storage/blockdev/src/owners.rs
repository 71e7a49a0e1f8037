//! What lies at a place of a file system, by `FS_IOC_GETFSMAP` (`linux/fsmap.h`): ext4 reports what
//! is free, metadata or journal; XFS with reverse mapping also the number of the file.

#![expect(unsafe_code, reason = "FS_IOC_GETFSMAP is an ioctl without a safe wrapper")]

use core::mem::size_of;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::ioctl::{Updater, ioctl, opcode};

/// Whose a place is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// Free: it belongs to no file.
    Free,
    /// The file of this number.
    Inode(u64),
    /// The journal, or log.
    Journal,
    /// The file system's tables: inodes, bitmaps, descriptors, trees.
    Metadata,
    /// The file system does not say.
    Unknown,
}

/// `struct fsmap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Mapping {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

const RECORDS: usize = 8;

/// `struct fsmap_head` with space for some records.
#[repr(C)]
struct Question {
    in_flags: u32,
    out_flags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Mapping; 2],
    records: [Mapping; RECORDS],
}

const HEAD: usize = 64 + 2 * 64;
const _: () = assert!(size_of::<Mapping>() == 64);
const _: () = assert!(size_of::<Question>() == HEAD + RECORDS * 64);
const FS_IOC_GETFSMAP: rustix::ioctl::Opcode = opcode::read_write::<[u8; HEAD]>(b'X', 59);
/// `FMR_OF_SPECIAL_OWNER`.
const SPECIAL: u32 = 0x10;
/// `FMR_OWNER(type, code)` of what both file systems have.
const FREE: u64 = 1;
const UNKNOWN: u64 = 2;
/// `XFS_FMR_OWN_LOG` and `EXT4_FMR_OWN_LOG`.
const LOG: u64 = 0x58 << 32 | 2;

/// Whose the byte at `place` of the device is that the file system at `mount_point` is on; `None`
/// where the file system cannot be asked.
pub fn owner_of(mount_point: &Path, place: u64) -> Option<Owner> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let folder = openat(CWD, mount_point, flags, Mode::empty()).ok()?;
    let low = Mapping { physical: place, ..Mapping::default() };
    let high = Mapping {
        device: u32::MAX,
        flags: u32::MAX,
        physical: place,
        owner: u64::MAX,
        offset: u64::MAX,
        ..Mapping::default()
    };
    let mut question = Question {
        in_flags: 0,
        out_flags: 0,
        count: u32::try_from(RECORDS).expect("few"),
        entries: 0,
        reserved: [0; 6],
        keys: [low, high],
        records: [Mapping::default(); RECORDS],
    };
    // SAFETY: FS_IOC_GETFSMAP reads and writes a `struct fsmap_head` and as many records as its
    // count says, for which `Question` has space.
    let ask = unsafe { Updater::<FS_IOC_GETFSMAP, _>::new(&mut question) };
    // SAFETY: the same.
    unsafe { ioctl(&folder, ask) }.ok()?;
    let entries = usize::try_from(question.entries).unwrap_or(0);
    let records = question.records.get(..entries).unwrap_or_default();
    let is_there = |record: &&Mapping| {
        (record.physical..record.physical.saturating_add(record.length)).contains(&place)
    };
    Some(records.iter().find(is_there).map_or(Owner::Unknown, owner))
}

fn owner(record: &Mapping) -> Owner {
    match record.owner {
        inode if record.flags & SPECIAL == 0 => Owner::Inode(inode),
        FREE => Owner::Free,
        UNKNOWN => Owner::Unknown,
        LOG => Owner::Journal,
        _ => Owner::Metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_file_system_is_its_own() {
        let all = crate::placement::filesystems();
        let known = all.values().find(|found| ["ext4", "xfs"].contains(&&*found.kind));
        let Some(filesystem) = known else { return println!("not run: neither ext4 nor XFS here") };
        match owner_of(&filesystem.mount_point, 0) {
            None => println!("not run: the file system cannot be asked"),
            Some(owner) => assert!([Owner::Metadata, Owner::Unknown].contains(&owner), "{owner:?}"),
        }
        assert_eq!(owner_of(Path::new("/proc"), 0), None);
    }

    #[test]
    fn owners_are_files_or_special() {
        let of = |flags, owner_number| {
            owner(&Mapping { flags, owner: owner_number, ..Mapping::default() })
        };
        assert_eq!(of(0, 7), Owner::Inode(7));
        assert_eq!(of(SPECIAL, FREE), Owner::Free);
        assert_eq!(of(SPECIAL, LOG), Owner::Journal);
        assert_eq!(of(SPECIAL, 0x66 << 32 | 3), Owner::Metadata);
        assert_eq!(of(SPECIAL, UNKNOWN), Owner::Unknown);
    }
}
