//! The disks of a recorder, members and spares, under names that may change when it starts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use blockdev::disk::Disk;
use device::{Crash, Device, Modelled, ReadAt, Rule, Timeline, Timing};
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Spare, Superblock, copy_offset};
use record::{OpenedDevice, Storage};
use units::{MemberId, Sleep};
use volume::{MemberAt, NewPlace, Reader};
use writer::{Opener, RandomKey};

use crate::disks::Disks;
use crate::history::{bits, numbers, opener};
use crate::keys::random_key;
use crate::random::Random;

/// Handle on the disks; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Rack(Arc<Mutex<Shelves>>);

#[derive(Debug)]
struct Shelves {
    disks: Disks,
    /// By place: the disk that lies there.
    places: Vec<u8>,
    /// Disks that are plugged in; bit d stands for disk d.
    present: u32,
    random: Random,
    is_flash: bool,
    timing: Timing,
}

/// The name of a place.
pub(crate) fn place(number: usize) -> String {
    format!("/rack/{number}")
}

impl Rack {
    pub(crate) fn new(sizes: &[u64], timing: impl Fn(u64) -> Timing, mut random: Random) -> Self {
        let is_flash = random.percent(50);
        let disks = Disks::with_timing(sizes, &timing, &mut random);
        let places = (0..).take(sizes.len()).collect();
        let present = (1 << sizes.len()) - 1;
        let timing = timing(sizes.first().copied().unwrap_or(0));
        Self(Arc::new(Mutex::new(Shelves { disks, places, present, random, is_flash, timing })))
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        stage::lock(&self.0)
    }

    pub(crate) fn timeline(&self) -> Timeline {
        self.lock().disks.timeline().clone()
    }

    pub(crate) fn count(&self) -> u8 {
        u8::try_from(self.lock().places.len()).expect("few disks")
    }

    pub(crate) fn disk_handle(&self, disk: u8) -> Modelled {
        self.lock().disks.get(disk).clone()
    }

    /// For writing, whatever is plugged in.
    pub(crate) fn devices(&self, disks: u32) -> Vec<Box<dyn Device>> {
        let mut shelves = self.lock();
        let Shelves { disks: all, random, .. } = &mut *shelves;
        numbers(disks).flat_map(|disk| all.devices(1 << disk, random)).collect()
    }

    /// For reading, whatever is plugged in.
    pub(crate) fn readers(&self, disks: u32) -> Vec<Box<dyn ReadAt>> {
        self.lock().disks.readers(disks)
    }

    pub(crate) fn plug_in(&self, present: u32) {
        self.lock().present = present;
    }

    /// Buys a disk and plugs it in; its number.
    pub(crate) fn add_disk(&self) -> u8 {
        let mut shelves = self.lock();
        let Shelves { disks, places, present, random, timing, .. } = &mut *shelves;
        disks.add_like_first(timing.clone(), random);
        let number = u8::try_from(places.len()).expect("few disks");
        places.push(number);
        *present |= 1 << number;
        number
    }

    /// For writing, on another machine.
    pub(crate) fn devices_elsewhere(&self, disks: u32) -> Vec<Box<dyn Device>> {
        let mut shelves = self.lock();
        let Shelves { disks: all, random, .. } = &mut *shelves;
        all.devices_elsewhere(disks, random)
    }

    pub(crate) fn swap_places(&self) {
        let mut shelves = self.lock();
        let count = shelves.places.len();
        let (one, other) = (shelves.random.index(count), shelves.random.index(count));
        shelves.places.swap(one, other);
    }

    pub(crate) fn arm(&self, after: u64, crashes: Vec<Crash>) {
        self.lock().disks.arm(after, crashes);
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.lock().disks.has_crashed()
    }

    /// After the end of a recording: the disks are as the crash left them, or nothing has come.
    pub(crate) fn settle(&self) -> bool {
        let mut shelves = self.lock();
        let Shelves { disks, random, .. } = &mut *shelves;
        disks.settle(random)
    }

    /// The power goes: what only caches had is gone.
    pub(crate) fn crash(&self, crashes: &[Crash]) {
        let mut shelves = self.lock();
        let Shelves { disks, random, .. } = &mut *shelves;
        disks.crash(crashes, random);
    }

    /// What those that have ended left on its way arrives, before anybody else opens the disks.
    pub(crate) fn arrive(&self) {
        self.lock().disks.arrive();
    }

    /// Operations that have not ended, of all disks.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().disks.in_flight()
    }

    /// What was written to each disk so far.
    pub(crate) fn writes(&self) -> Vec<u64> {
        self.lock().disks.work().iter().map(|work| work.writes).collect()
    }

    pub(crate) fn heal_all(&self) {
        let shelves = self.lock();
        shelves.disks.clear_rules();
        for disk in numbers((1 << shelves.places.len()) - 1) {
            let disk = shelves.disks.get(disk);
            disk.come_back();
            shelves.disks.timeline().advance_to(disk.answers_from_ns());
        }
    }

    pub(crate) fn add_rule(&self, disk: u8, rule: Rule) {
        self.lock().disks.add_rule(disk, rule);
    }

    /// The disk is pulled out: its device is gone for good for who has it open.
    pub(crate) fn pull(&self, disk: u8, crash: Crash) {
        let mut shelves = self.lock();
        shelves.present &= !(1 << disk);
        let handle = shelves.disks.get(disk).clone();
        drop(shelves);
        handle.vanish(crash);
    }

    pub(crate) fn put_back(&self, disk: u8) {
        let mut shelves = self.lock();
        shelves.present |= 1 << disk;
        shelves.disks.get(disk).come_back();
        shelves.disks.get(disk).clear_rules();
    }

    /// The newest superblock of each disk that is plugged in and shows one.
    pub(crate) fn superblocks(&self) -> Vec<(u8, Superblock)> {
        let shelves = self.lock();
        let disks: Vec<(u8, Modelled)> =
            shelves.disks.among(shelves.present).map(|(disk, it)| (disk, it.clone())).collect();
        drop(shelves);
        disks.into_iter().filter_map(|(disk, it)| Some((disk, superblock_of(&it)?))).collect()
    }

    /// Which disk has the seat of a member, by the newest superblock.
    pub(crate) fn seats(&self) -> Vec<(MemberId, u8)> {
        let all = self.superblocks();
        let newest = all.iter().max_by_key(|(_, own)| own.newness()).map(|(_, own)| own.clone());
        let Some(newest) = newest else { return Vec::new() };
        let seat = |(disk, own): &(u8, Superblock)| {
            let entry = newest.members.get(own.member.place())?;
            (entry.uuid == own.own_uuid()).then_some((own.member, *disk))
        };
        let mut seats: Vec<(MemberId, u8)> = all.iter().filter_map(seat).collect();
        seats.sort_unstable();
        seats
    }

    fn at(&self, path: &Path) -> Option<u8> {
        let shelves = self.lock();
        let found = (0..shelves.places.len()).find(|&number| Path::new(&place(number)) == path)?;
        let disk = *shelves.places.get(found)?;
        (shelves.present & 1 << disk != 0).then_some(disk)
    }

    fn path_of(&self, disk: u8) -> PathBuf {
        let shelves = self.lock();
        let number = shelves.places.iter().position(|&other| other == disk);
        PathBuf::from(place(number.expect("every disk has its place")))
    }

    fn no_such_file(path: &Path) -> device::Error {
        device::Error::NotFound { path: path.to_path_buf() }
    }
}

fn superblock_of(disk: &Modelled) -> Option<Superblock> {
    let size_bytes = ReadAt::size_bytes(disk);
    let copies = (0..SUPERBLOCK_COPIES).filter_map(|copy| {
        let mut page = [0; SUPERBLOCK_BYTES];
        ReadAt::read_at(disk, copy_offset(copy, size_bytes), &mut page).ok()?;
        Superblock::decode(&page, copy).ok()
    });
    copies.max_by_key(|own| own.generation)
}

impl Storage for Rack {
    fn find(&self) -> Result<(Vec<MemberAt>, Reader), volume::Error> {
        let seats = self.seats();
        let devices = self.readers(bits(seats.iter().map(|(_, disk)| *disk)));
        let at = |(member, disk): (MemberId, u8)| MemberAt { member, path: self.path_of(disk) };
        Ok((seats.into_iter().map(at).collect(), Reader::of_members(devices)?))
    }

    fn find_any(&self) -> Result<Vec<MemberAt>, volume::Error> {
        let at = |(member, disk): (MemberId, u8)| MemberAt { member, path: self.path_of(disk) };
        Ok(self.seats().into_iter().map(at).collect())
    }

    fn open_members(&self, members: &[MemberAt]) -> Result<Vec<Box<dyn ReadAt>>, volume::Error> {
        let disks = members.iter().filter_map(|found| self.at(&found.path));
        Ok(self.readers(bits(disks)))
    }

    fn open(&self, path: &Path) -> OpenedDevice {
        let disk = self.at(path).ok_or_else(|| Self::no_such_file(path))?;
        Ok(self.devices(1 << disk).remove(0))
    }

    fn opener<'a>(
        &'a self,
        _: &[MemberAt],
        clock: &'a dyn Sleep,
    ) -> Result<Opener<'a>, host::Error> {
        Ok(opener(&mut self.lock().random, clock))
    }

    fn random_key(&self) -> RandomKey {
        random_key(self.lock().random.next())
    }

    fn why_absent(&self, _: &Superblock, _: MemberId) -> Option<volume::Error> {
        None
    }

    fn place_of(&self, spare: &Spare) -> Option<PathBuf> {
        let path = PathBuf::from(&spare.path);
        let found = superblock_of(&self.disk_handle(self.at(&path)?))?;
        (found.own_uuid() == spare.uuid).then_some(path)
    }

    fn new_place(&self, path: &Path, uuid: [u8; 16], recorded: &str) -> Option<NewPlace> {
        let path = path.to_str().expect("places have plain names").to_owned();
        (path != recorded).then_some(NewPlace { uuid, path })
    }

    fn disk(&self, _: &Path) -> Option<Disk> {
        let is_flash = self.lock().is_flash;
        Some(Disk { is_rotational: !is_flash, discard_granularity: is_flash.then_some(4096) })
    }
}
