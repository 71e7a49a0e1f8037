//! Reading and writing the four superblock copies of every member.

use core::time::Duration;
use std::collections::BTreeMap;

use device::{Completion, Device, LentRead, ReadAt};
use format::superblock::{
    MEMBER_BYTES_MIN, SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, SuperblockError, copy_offset,
};

use crate::Error;

/// How a member is read: offset, buffer.
type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<(), device::Error>;

/// The newest valid copy on a member opened for reading.
pub(crate) fn load_from(device: &dyn ReadAt) -> Result<Superblock, Error> {
    load_from_all(&[device]).pop().expect("as many as there are devices")
}

/// The same of several members, which are all asked at the same time.
pub(crate) fn load_from_all(devices: &[&dyn ReadAt]) -> Vec<Result<Superblock, Error>> {
    let copies = read_copies(devices).into_iter().zip(devices);
    copies.map(|(pages, device)| pick(&pages?, device.size_bytes())).collect()
}

/// Where the copies lie on a member of so many bytes.
pub fn offsets(size_bytes: u64) -> impl Iterator<Item = u64> {
    (0..SUPERBLOCK_COPIES).map(move |copy| copy_offset(copy, size_bytes))
}

/// The pages of all copies of each member, by their offset.
fn read_copies(devices: &[&dyn ReadAt]) -> Vec<Result<Pages, Error>> {
    let copies = |device: &&'_ dyn ReadAt| -> Result<Vec<LentRead>, Error> {
        let size_bytes = device.size_bytes();
        if size_bytes < MEMBER_BYTES_MIN {
            return Err(Error::NoSuperblock(SuperblockError::Magic));
        }
        Ok(offsets(size_bytes).map(|at| LentRead::new(at, vec![0; SUPERBLOCK_BYTES])).collect())
    };
    let begun = devices.iter().map(|device| copies(device).map(|reads| device.begin(reads)));
    let begun: Vec<Result<_, Error>> = begun.collect();
    let page = |read: LentRead| (read.offset, (read.result, read.bytes));
    let ended = begun.into_iter().map(|begun| Ok(begun?.end().into_iter().map(page).collect()));
    ended.collect()
}

/// Copies of these members that are not what the newest of theirs says, and whether each is only
/// older; of a member without any valid copy all of them.
pub(crate) fn other_copies_of(devices: &[&dyn ReadAt]) -> Vec<Vec<(u8, bool)>> {
    let others = |(pages, device): (Result<Pages, Error>, &&dyn ReadAt)| {
        let size_bytes = device.size_bytes();
        let pages = pages.ok()?;
        let newest = pick(&pages, size_bytes).ok()?;
        let read = |offset: u64, into: &mut [u8]| read_page(&pages, offset, into);
        Some(other_copies(&read, size_bytes, &newest).collect())
    };
    let all = || (0..SUPERBLOCK_COPIES).map(|copy| (copy, false)).collect();
    let copies = read_copies(devices).into_iter().zip(devices);
    copies.map(|it| others(it).unwrap_or_else(all)).collect()
}

/// How long reads are waited for before the device is asked in a way that says what ails it.
const WAIT: Duration = Duration::from_secs(1);

/// The newest valid copies on devices opened for writing, all of which flush and then read at the
/// same time; what a killed writer left in their caches is flushed before: it must not be judged
/// and then be gone.
pub fn load_all(devices: &mut [&mut dyn Device]) -> Vec<Result<Superblock, Error>> {
    for device in &mut *devices {
        device.submit_flush(FLUSH_TOKEN);
    }
    let flushed: Vec<Result<(), Error>> = devices.iter_mut().map(|it| flushed(&mut **it)).collect();
    for (device, _) in devices.iter_mut().zip(&flushed).filter(|(_, flushed)| flushed.is_ok()) {
        begin(&mut **device);
    }
    flushed
        .into_iter()
        .zip(devices)
        .map(|(flushed, device)| flushed.and_then(|()| end(&mut **device)))
        .collect()
}

/// No place on a device.
const FLUSH_TOKEN: u64 = u64::MAX;

/// Waits for the flush. One that takes long is asked for again in the way that has a deadline.
fn flushed(device: &mut dyn Device) -> Result<(), Error> {
    let mut done = Vec::new();
    while done.is_empty() && device.in_flight() > 0 {
        device.reap(Some(WAIT), &mut done);
        if done.is_empty() {
            device.flush()?;
        }
    }
    Ok(done.pop().map_or(Ok(()), |done| done.result)?)
}

fn begin(device: &mut dyn Device) {
    let size_bytes = device.size_bytes();
    if size_bytes >= MEMBER_BYTES_MIN {
        for at in offsets(size_bytes) {
            // A place is a name that no other read has.
            device.submit_read(at, at, SUPERBLOCK_BYTES);
        }
    }
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

/// Superblock copies by their offset, and whether each could be read.
type Pages = BTreeMap<u64, (Result<(), device::Error>, Vec<u8>)>;

/// The newest valid copy among these pages.
fn pick(pages: &Pages, size_bytes: u64) -> Result<Superblock, Error> {
    load(&|offset, into: &mut [u8]| read_page(pages, offset, into), size_bytes)
}

fn read_page(pages: &Pages, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
    // Of a device that is too small no copy was asked for.
    let (result, page) = pages.get(&offset).ok_or(device::Error::Interrupted)?;
    result.clone()?;
    into.copy_from_slice(page);
    Ok(())
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
pub const ORDER: [&[u8]; 3] = [&[0], &[2], &[1, 3]];

/// Writes all copies of a device that belongs to no open volume, durably.
pub fn store(device: &mut dyn Device, superblock: &Superblock) -> Result<(), Error> {
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
pub fn rewrite(device: &mut dyn Device, superblock: &Superblock, copy: u8) -> Result<(), Error> {
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
