//! The members' disks, and the instant at which everything stops.
//!
//! The volume gets each disk through a thin device that counts what is asked of all of them. When
//! the count of an armed crash is reached, the disks as that crash leaves them are put aside, and
//! the ones in use vanish: the volume, deep inside whatever it does, can change nothing any more.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use device::{
    Completion, Crash, Device, Error, Modelled, ReadAt, Rule, Shared, Timeline, Timing, Work,
};
use units::Timestamp;

use crate::random::Random;

/// More operations than any single call of the volume needs on disks this small.
const OPERATIONS_MAX: u64 = 3_000_000;

/// What all devices share.
#[derive(Debug, Default)]
struct Trigger {
    /// Writes and flushes until the crash; `None`: not armed.
    left: Option<u64>,
    crashes: Vec<Crash>,
    disks: Vec<Modelled>,
    /// The disks as the crash left them.
    images: Option<Vec<Modelled>>,
    /// Operations of any kind since the last look.
    operations: u64,
}

/// All members' disks by number.
#[derive(Debug)]
pub(crate) struct Disks {
    members: Vec<Modelled>,
    timeline: Timeline,
    trigger: Arc<Mutex<Trigger>>,
}

impl Disks {
    pub(crate) fn new(sizes: &[u64], takes_time: bool, random: &mut Random) -> Self {
        let timeline = Timeline::new(Timestamp(1_700_000_000_000_000_000));
        let members = sizes.iter().map(|&size| {
            let timing = if takes_time { Timing::flash(size) } else { Timing::instant() };
            Modelled::new(size, timing, &timeline, random.next())
        });
        let members = members.collect();
        let mut all = Self { members, timeline, trigger: Arc::default() };
        all.reorder(random);
        all
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn get(&self, member: u8) -> &Modelled {
        self.members.get(usize::from(member)).expect("a disk for every member")
    }

    /// The members in `members`, bit m for member m, for writing, in any order.
    pub(crate) fn devices(&self, members: u32, random: &mut Random) -> Vec<Box<dyn Device>> {
        let mut devices = Vec::new();
        for (_, disk) in self.among(members) {
            let tapped = Tapped { disk: disk.clone(), trigger: Arc::clone(&self.trigger) };
            let device: Box<dyn Device> = Box::new(tapped);
            devices.insert(random.index(devices.len() + 1), device);
        }
        devices
    }

    /// All members by number.
    pub(crate) fn in_order(&self) -> Vec<Box<dyn Device>> {
        let device = |disk: &Modelled| -> Box<dyn Device> { Box::new(disk.clone()) };
        self.members.iter().map(device).collect()
    }

    /// Some for reading.
    pub(crate) fn readers(&self, members: u32) -> Vec<Box<dyn ReadAt>> {
        let reader = |disk: &Modelled| -> Box<dyn ReadAt> { Box::new(disk.clone()) };
        self.among(members).map(|(_, disk)| reader(disk)).collect()
    }

    pub(crate) fn among(&self, members: u32) -> impl Iterator<Item = (u8, &Modelled)> {
        (0..).zip(&self.members).filter(move |(member, _)| members & (1 << member) != 0)
    }

    /// Everything crashes before the write or flush after the next `after`.
    pub(crate) fn arm(&self, after: u64, crashes: Vec<Crash>) {
        let mut trigger = self.lock();
        trigger.disks.clone_from(&self.members);
        (trigger.left, trigger.crashes, trigger.images) = (Some(after), crashes, None);
    }

    /// Whether the armed crash has come.
    pub(crate) fn has_crashed(&self) -> bool {
        let mut trigger = self.lock();
        trigger.operations = 0;
        trigger.images.is_some()
    }

    /// Takes the crash back; the disks go on as they were left when it has come.
    pub(crate) fn settle(&mut self, random: &mut Random) -> bool {
        let images = core::mem::take(&mut *self.lock()).images;
        let has_crashed = images.is_some();
        if let Some(images) = images {
            self.members = images;
            self.reorder(random);
        }
        has_crashed
    }

    /// Everything crashes now.
    pub(crate) fn crash(&mut self, crashes: &[Crash], random: &mut Random) {
        core::mem::take(&mut *self.lock());
        let images = self.members.iter().zip(crashes).map(|(disk, crash)| disk.crash(*crash));
        self.members = images.collect();
        self.reorder(random);
    }

    pub(crate) fn add_rule(&self, member: u8, rule: Rule) {
        self.get(member).add_rule(rule);
    }

    pub(crate) fn clear_rules(&self) {
        self.members.iter().for_each(Modelled::clear_rules);
    }

    /// What was asked of each disk so far.
    pub(crate) fn work(&self) -> Vec<Work> {
        self.members.iter().map(Modelled::work).collect()
    }

    fn reorder(&mut self, random: &mut Random) {
        let disks = core::mem::take(&mut self.members).into_iter();
        self.members = disks.map(|disk| disk.with_reordering(random.next())).collect();
    }

    fn lock(&self) -> MutexGuard<'_, Trigger> {
        self.trigger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk as the volume sees it.
#[derive(Debug)]
struct Tapped {
    disk: Modelled,
    trigger: Arc<Mutex<Trigger>>,
}

impl Tapped {
    /// Before a write or flush: the crash comes when it is due.
    fn strike(&self) {
        let mut trigger = self.count();
        match trigger.left {
            Some(0) => {
                trigger.left = None;
                let Trigger { disks, crashes, .. } = &mut *trigger;
                let images = disks.iter().zip(crashes).map(|(disk, crash)| disk.crash(*crash));
                trigger.images = Some(images.collect());
                trigger.disks.drain(..).for_each(|disk| disk.vanish(Crash::LoseAll));
            }
            Some(left) => trigger.left = Some(left - 1),
            None => {}
        }
    }

    fn count(&self) -> MutexGuard<'_, Trigger> {
        let mut trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        trigger.operations += 1;
        assert!(trigger.operations < OPERATIONS_MAX, "a call of the volume comes to no end");
        trigger
    }
}

impl Device for Tapped {
    fn size_bytes(&self) -> u64 {
        Device::size_bytes(&self.disk)
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        self.strike();
        self.disk.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        self.strike();
        self.disk.submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.strike();
        self.disk.submit_discard(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        drop(self.count());
        self.disk.reap(wait, out);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Device::read_at(&self.disk, offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.strike();
        self.disk.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.strike();
        self.disk.flush()
    }

    fn notes(&self) -> &[String] {
        self.disk.notes()
    }
}
