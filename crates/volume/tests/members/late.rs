//! A disk that does first what came last: nothing may be taken for done because something later is.

use core::ops::Range;
use core::time::Duration;

use device::{Completion, Crash, Device, Error, Fault, MUTATIONS, Modelled, ReadAt, Rule, Shared};
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, copy_offset};
use volume::{Opener, mount};

use crate::ring::{Ring, boxed};

/// Where slots begin.
const RING_BEGIN: u64 = 2 << 20;

/// A disk that keeps a write back.
#[derive(Debug)]
struct Late {
    disk: Modelled,
    /// Writes that begin here are kept back, one at a time ...
    places: Range<u64>,
    /// ... for so many operations.
    others: usize,
    kept_back: Option<(u64, u64, Shared, usize)>,
    /// Such writes until one is kept back, and then operations until it is done.
    left: usize,
    /// Only the first.
    is_once: bool,
}

impl Late {
    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0
            && let Some((token, offset, data, len)) = self.kept_back.take()
        {
            self.disk.submit_write(token, offset, data, len);
            self.left = if self.is_once { usize::MAX } else { 1 };
        }
    }
}

impl Device for Late {
    fn size_bytes(&self) -> u64 {
        Device::size_bytes(&self.disk)
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        let is_meant = self.places.contains(&offset);
        if self.kept_back.is_none() && is_meant && self.left <= 1 {
            self.kept_back = Some((token, offset, data, len));
            self.left = self.others;
            return;
        }
        if self.kept_back.is_some() || is_meant {
            self.count();
        }
        self.disk.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        if self.kept_back.is_some() {
            self.count();
        }
        self.disk.submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.disk.submit_discard(token, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.disk.submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let before = out.len();
        self.disk.reap(wait, out);
        // Nothing else is to come.
        if out.len() == before && self.disk.in_flight() == 0 && self.kept_back.is_some() {
            self.left = self.left.min(1);
            self.count();
        }
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + usize::from(self.kept_back.is_some())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Device::read_at(&self.disk, offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.disk.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.disk.flush()
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

#[test]
fn what_is_in_flight_is_durable_before_the_epoch_that_acknowledges_it() {
    for first in 1..24 {
        let mut ring = Ring::new(2, 1);
        let disks = ring.disks.clone();
        let mut devices = boxed(&disks);
        let (disk, places) = (disks[2].clone(), RING_BEGIN..u64::MAX);
        let (kept_back, others) = (None, 40);
        let late = Late { disk, places, others, kept_back, left: first, is_once: true };
        devices[2] = Box::new(late);
        let (mut writer, _) = mount(devices, &Opener::alone(&ring.timeline)).unwrap();
        ring.append(&mut writer, 3).unwrap();
        disks[1].add_rule(Rule::new(Fault::Error, MUTATIONS));
        ring.append(&mut writer, 12).unwrap();
        while writer.expelled().is_empty() {
            writer.poll(Some(Duration::from_millis(1)), &ring.timeline).unwrap();
        }
        // The new epoch says that all before it is there; then the power fails.
        let acknowledged = writer.acknowledged();
        let crashed: Vec<Modelled> = disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
        let left = [crashed[0].clone(), crashed[2].clone()];
        drop(mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap());
        ring.check(&left, acknowledged);
    }
}

/// What the newest superblock copy of a disk says.
fn superblock_on(disk: &Modelled) -> Superblock {
    let copies = (0..SUPERBLOCK_COPIES).filter_map(|copy| {
        let (at, mut page) = (copy_offset(copy, ReadAt::size_bytes(disk)), [0; SUPERBLOCK_BYTES]);
        ReadAt::read_at(disk, at, &mut page).unwrap();
        Superblock::decode(&page, copy).ok()
    });
    copies.max_by_key(|copy| copy.generation).unwrap()
}

#[test]
fn stripes_go_on_beside_superblocks_and_no_further_than_those_say() {
    for others in [1, 20, 60, 100, 1000] {
        let mut ring = Ring::new(2, 1);
        let disks = ring.disks.clone();
        let mut devices = boxed(&disks);
        let (disk, places) = (disks[1].clone(), 0..1);
        let late = Late { disk, places, others, kept_back: None, left: 1, is_once: false };
        devices[1] = Box::new(late);
        let (mut writer, _) = mount(devices, &Opener::alone(&ring.timeline)).unwrap();
        let slots = writer.geometry().slots;
        let mut lead_max = 0;
        for _ in 0..3 * slots {
            ring.append(&mut writer, 1).unwrap();
            let newest = ring.appended.last().unwrap().0.sequence;
            for disk in &disks {
                let superblock = superblock_on(&disk.crash(Crash::LoseAll));
                assert!(newest < superblock.mark.until, "{newest}: {:?}", superblock.mark);
                let reached = superblock.mark.acknowledged.sequence.max(superblock.joined_start);
                lead_max = lead_max.max(newest - reached);
            }
        }
        let interval = slots / 4;
        println!("{others} others, W {}: {lead_max} of {slots}", superblock_on(&disks[0]).window);
        if others == 60 {
            let waited = interval + u64::from(superblock_on(&disks[0]).window);
            assert!(lead_max > waited + 2, "{lead_max}: they were waited for");
        }
        writer.close(&ring.timeline).unwrap();
    }
}
