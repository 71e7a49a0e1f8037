//! Reading and writing the four superblock copies of every member.

use core::time::Duration;
use std::collections::BTreeMap;

use device::{Completion, Device, Pool, ReadAt};
use format::superblock::{
    MEMBER_BYTES_MIN, SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, SuperblockError, copy_offset,
};

use crate::Error;
use crate::steps::Step;

/// How a member is read: offset, buffer.
type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<(), device::Error>;

/// The newest valid copy on a member opened for reading.
pub(crate) fn load_from(device: &dyn ReadAt) -> Result<Superblock, Error> {
    let size_bytes = device.size_bytes();
    if size_bytes < MEMBER_BYTES_MIN {
        return Err(Error::NoSuperblock(SuperblockError::Magic));
    }
    let offsets: Vec<u64> =
        (0..SUPERBLOCK_COPIES).map(|copy| copy_offset(copy, size_bytes)).collect();
    let mut pages = vec![vec![0; SUPERBLOCK_BYTES]; offsets.len()];
    let into = offsets.iter().zip(&mut pages);
    let mut reads: Vec<_> = into.map(|(&at, page)| device::Read::new(at, page)).collect();
    device.read_many(&mut reads);
    let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
    pick(&offsets.into_iter().zip(results.into_iter().zip(pages)).collect(), size_bytes)
}

/// How long reads are waited for before the device is asked in a way that says what ails it.
const WAIT: Duration = Duration::from_secs(1);

/// The newest valid copies on devices opened for writing, all of which read at the same time; what
/// a killed writer left in their caches is flushed before: it must not be judged and then be gone.
pub(crate) fn load_all(devices: &mut [&mut dyn Device]) -> Vec<Result<Superblock, Error>> {
    let begun: Vec<Result<(), Error>> = devices.iter_mut().map(|it| begin(&mut **it)).collect();
    begun
        .into_iter()
        .zip(devices)
        .map(|(begun, device)| begun.and_then(|()| end(&mut **device)))
        .collect()
}

fn begin(device: &mut dyn Device) -> Result<(), Error> {
    device.flush()?;
    let size_bytes = device.size_bytes();
    if size_bytes >= MEMBER_BYTES_MIN {
        for copy in 0..SUPERBLOCK_COPIES {
            let at = copy_offset(copy, size_bytes);
            // A place is a name that no other read has.
            device.submit_read(at, at, SUPERBLOCK_BYTES);
        }
    }
    Ok(())
}

fn end(device: &mut dyn Device) -> Result<Superblock, Error> {
    let (size_bytes, mut done) = (device.size_bytes(), Vec::new());
    while device.in_flight() > 0 {
        let before = done.len();
        device.reap(Some(WAIT), &mut done);
        if done.len() == before {
            device.read_at(0, &mut [0; SUPERBLOCK_BYTES])?;
        }
    }
    let of = |done: Completion| Some((done.token, (done.result, done.read?)));
    pick(&done.into_iter().filter_map(of).collect(), size_bytes)
}

/// The newest valid copy among these pages, by their offset.
fn pick(
    pages: &BTreeMap<u64, (Result<(), device::Error>, Vec<u8>)>,
    size_bytes: u64,
) -> Result<Superblock, Error> {
    let read = |offset: u64, into: &mut [u8]| {
        let (result, page) = pages.get(&offset).expect("every copy was read");
        into.copy_from_slice(page);
        result.clone()
    };
    load(&read, size_bytes)
}

/// The newest valid copy. Copies that cannot be read count as invalid, and so does one that most
/// others contradict: it was meant for another member.
pub(crate) fn load(read: Read<'_>, size_bytes: u64) -> Result<Superblock, Error> {
    if size_bytes < MEMBER_BYTES_MIN {
        return Err(Error::NoSuperblock(SuperblockError::Magic));
    }
    let mut copies = Vec::new();
    let mut failure = Error::NoSuperblock(SuperblockError::Magic);
    for copy in 0..SUPERBLOCK_COPIES {
        let mut page = [0; SUPERBLOCK_BYTES];
        let read = read(copy_offset(copy, size_bytes), &mut page).map_err(Error::Device);
        let decoded =
            read.and_then(|()| Superblock::decode(&page, copy).map_err(Error::NoSuperblock));
        match (decoded, &failure) {
            (Ok(superblock), _) => copies.push(superblock),
            // A damaged superblock says more than a copy that has no magic.
            (Err(error), Error::NoSuperblock(SuperblockError::Magic)) => failure = error,
            (Err(_), _) => {}
        }
    }
    let superblock = newest(copies).ok_or(failure)?;
    let geometry = &superblock.geometry;
    let ring_end = geometry.slot0_offset + geometry.slots * u64::from(geometry.piece_bytes);
    if ring_end > size_bytes {
        return Err(Error::Shrunk { actual: size_bytes, expected: ring_end });
    }
    Ok(superblock)
}

fn newest(copies: Vec<Superblock>) -> Option<Superblock> {
    let whose = |superblock: &Superblock| (superblock.volume_id, superblock.member);
    let all: Vec<_> = copies.iter().map(whose).collect();
    let votes =
        |superblock: &Superblock| all.iter().filter(|other| **other == whose(superblock)).count();
    copies.into_iter().max_by_key(|superblock| (votes(superblock), superblock.generation))
}

/// The order in which copies are written, those between two flushes together. At every instant at
/// least one whole set lies on the device: a copy at the front and one at the end are flushed one
/// after the other before the second ones are touched.
const ORDER: [&[u8]; 3] = [&[0], &[2], &[1, 3]];

/// Writing all copies of a member durably. There is a page for each in `pages`.
pub(crate) fn steps(superblock: &Superblock, size_bytes: u64, pages: &Pool) -> Vec<Step> {
    let page = |&copy: &u8| {
        let mut page = pages.take().expect("a page for every copy");
        page.copy_from_slice(&superblock.encode(copy));
        Step::Write { offset: copy_offset(copy, size_bytes), data: page.freeze() }
    };
    ORDER.into_iter().flat_map(|copies| copies.iter().map(page).chain([Step::Flush])).collect()
}

/// The same for a device that belongs to no open volume.
pub(crate) fn store(device: &mut dyn Device, superblock: &Superblock) -> Result<(), Error> {
    let size_bytes = device.size_bytes();
    for copies in ORDER {
        for &copy in copies {
            device.write_at(copy_offset(copy, size_bytes), &superblock.encode(copy))?;
        }
        device.flush()?;
    }
    Ok(())
}

/// Copies that are not what `superblock`, the newest of its member, says, and whether each is only
/// older: [`store`] was cut short.
pub(crate) fn other_copies(
    read: Read<'_>,
    size_bytes: u64,
    superblock: &Superblock,
) -> impl Iterator<Item = (u8, bool)> {
    (0..SUPERBLOCK_COPIES).filter_map(move |copy| {
        let mut page = [0; SUPERBLOCK_BYTES];
        let is_read = read(copy_offset(copy, size_bytes), &mut page).is_ok();
        if is_read && page == superblock.encode(copy) {
            return None;
        }
        let own = (superblock.volume_id, superblock.member);
        let is_older = |found: Superblock| {
            (found.volume_id, found.member) == own && found.generation < superblock.generation
        };
        Some((copy, is_read && Superblock::decode(&page, copy).is_ok_and(is_older)))
    })
}

/// Writes one copy anew, durably, and reads it back. Another whole one stays where it is.
pub(crate) fn rewrite(
    device: &mut dyn Device,
    superblock: &Superblock,
    copy: u8,
) -> Result<(), Error> {
    let offset = copy_offset(copy, device.size_bytes());
    let page = superblock.encode(copy);
    device.write_at(offset, &page)?;
    device.flush()?;
    let mut on_disk = [0; SUPERBLOCK_BYTES];
    device.read_at(offset, &mut on_disk)?;
    let member = superblock.member;
    if on_disk == page { Ok(()) } else { Err(Error::NotTaken { member, offset }) }
}

#[cfg(test)]
mod tests {
    use device::Modelled;
    use format::head::{HeadKey, VolumeId};
    use format::superblock::MemberEntry;
    use units::Timestamp;

    use super::*;
    use crate::{CreateOptions, Identity, create};

    /// A member with copies of these generations, as stores that were cut short leave them.
    fn with_copies(generations: [u64; 4], foreign: Option<u8>) -> u64 {
        let mut disk = Modelled::instant(8 << 20);
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: vec![MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let piece_bytes = format::geometry::PIECE_BYTES_MIN;
        let options = CreateOptions { piece_bytes, ..CreateOptions::default() };
        create(&mut [Box::new(disk.clone())], &options, &identity).unwrap();
        let made = load_from(&disk).unwrap();
        for (copy, generation) in (0..).zip(generations) {
            let volume_id = VolumeId([if foreign == Some(copy) { 9 } else { 1 }; 16]);
            let own = Superblock { generation, volume_id, ..made.clone() };
            let offset = copy_offset(copy, ReadAt::size_bytes(&disk));
            disk.write_at(offset, &own.encode(copy)).unwrap();
        }
        load_from(&disk).unwrap().generation
    }

    #[test]
    fn the_newest_copy_counts_wherever_a_store_was_cut_short() {
        assert_eq!(with_copies([7, 6, 6, 6], None), 7);
        assert_eq!(with_copies([7, 6, 7, 6], None), 7);
        assert_eq!(with_copies([7, 7, 7, 6], None), 7);
        assert_eq!(with_copies([6, 6, 6, 7], None), 7);
    }

    #[test]
    fn a_copy_that_was_meant_for_another_member_does_not_count() {
        assert_eq!(with_copies([99, 6, 7, 6], Some(0)), 7);
    }
}
