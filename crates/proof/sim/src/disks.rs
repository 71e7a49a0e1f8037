//! The members' disks, and the instant at which everything stops.
//!
//! The volume gets each disk through a thin device that counts what is asked of all of them. When
//! the count of an armed crash is reached, the disks as that crash leaves them are put aside, and
//! the ones in use vanish: the volume, deep inside whatever it does, can change nothing any more.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use device::{
    Completion, Crash, Device, Error, Modelled, ReadAt, Rule, Shared, Timeline, Timing, Work,
};
use units::{MemberId, Timestamp};
use writer::Candidate;

use crate::nonces::Nonces;
use crate::random::Random;

/// The port of another machine.
const ELSEWHERE: u32 = u32::MAX;

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
    /// Names of submissions given out so far.
    submissions: u64,
    /// Completions that came while another device of the same disk reaped, by those names.
    strays: BTreeMap<u64, Completion>,
    /// Of everything that was to be written, crashes or not.
    nonces: Nonces,
}

impl Trigger {
    /// No crash is to come; gives what one that came has left. Devices may be open still, so names
    /// stay theirs, and so does what has come for them.
    fn disarm(&mut self) -> Option<Vec<Modelled>> {
        (self.left, self.operations) = (None, 0);
        self.crashes.clear();
        self.disks.clear();
        self.images.take()
    }
}

/// All members' disks by number.
#[derive(Debug)]
pub(crate) struct Disks {
    members: Vec<Modelled>,
    /// Of whom opens them next.
    port: u32,
    timeline: Timeline,
    /// Readers see writes in flight row by row.
    is_gradual: bool,
    trigger: Arc<Mutex<Trigger>>,
}

impl Disks {
    pub(crate) fn new(sizes: &[u64], takes_time: bool, random: &mut Random) -> Self {
        let timing = |size| if takes_time { Timing::flash(size) } else { Timing::instant() };
        Self::with_timing(sizes, timing, random)
    }

    /// Disks of these sizes, with a timing for each.
    pub(crate) fn with_timing(
        sizes: &[u64],
        timing: impl Fn(u64) -> Timing,
        random: &mut Random,
    ) -> Self {
        let timeline = Timeline::new(Timestamp(1_700_000_000_000_000_000));
        let disk = |&size: &u64| Modelled::new(size, timing(size), &timeline, random.next());
        let members = sizes.iter().map(disk).collect();
        let is_gradual = random.percent(50);
        let trigger = Arc::default();
        let mut all = Self { members, port: 0, timeline, is_gradual, trigger };
        all.reorder(random);
        all
    }

    /// One more, as large as the first and as quick.
    pub(crate) fn add_like_first(&mut self, timing: Timing, random: &mut Random) {
        let size_bytes = ReadAt::size_bytes(self.get(0));
        let disk = Modelled::new(size_bytes, timing, &self.timeline, random.next());
        self.members.push(disk.with_reordering(random.next()));
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn get(&self, member: u8) -> &Modelled {
        self.members.get(usize::from(member)).expect("a disk for every member")
    }

    /// A disk that had vanished or failed is well again, and opened anew.
    pub(crate) fn come_back(&mut self, member: u8) {
        let disk = self.members.get_mut(usize::from(member)).expect("a disk for every member");
        disk.come_back();
        disk.clear_rules();
        *disk = disk.clone();
    }

    /// The members in `members`, bit m for member m, for writing, in any order. Who opens a member
    /// has its pages dropped from the cache.
    pub(crate) fn devices(&self, members: u32, random: &mut Random) -> Vec<Box<dyn Device>> {
        self.among(members).for_each(|(_, disk)| disk.forget_cached());
        self.devices_at(self.port, members, random)
    }

    /// A device for each of the members, in any order.
    pub(crate) fn candidates(&self, members: u32, random: &mut Random) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (member, disk) in self.among(members) {
            disk.forget_cached();
            let tapped = Tapped::new(disk.at_port(self.port), Arc::clone(&self.trigger));
            let device: Box<dyn Device> = Box::new(tapped);
            candidates.insert(random.index(candidates.len() + 1), (MemberId(member), Ok(device)));
        }
        candidates
    }

    /// Readers may see rows of writes in flight.
    pub(crate) fn is_gradual(&self) -> bool {
        self.is_gradual
    }

    /// The same on another machine, for a while.
    pub(crate) fn devices_elsewhere(
        &self,
        members: u32,
        random: &mut Random,
    ) -> Vec<Box<dyn Device>> {
        self.devices_at(ELSEWHERE, members, random)
    }

    fn devices_at(&self, port: u32, members: u32, random: &mut Random) -> Vec<Box<dyn Device>> {
        let mut devices = Vec::new();
        for (_, disk) in self.among(members) {
            let tapped = Tapped::new(disk.at_port(port), Arc::clone(&self.trigger));
            let device: Box<dyn Device> = Box::new(tapped);
            devices.insert(random.index(devices.len() + 1), device);
        }
        devices
    }

    /// What a writer that has ended left on its way arrives, as it does before anybody else may
    /// open the disks.
    pub(crate) fn arrive(&self) {
        for (disk, port) in
            self.members.iter().flat_map(|disk| [(disk, self.port), (disk, ELSEWHERE)])
        {
            let mut disk = disk.at_port(port);
            while disk.in_flight() > 0 {
                disk.reap(Some(Duration::MAX), &mut Vec::new());
            }
        }
    }

    /// From now on the disks are opened on another machine.
    pub(crate) fn change_machine(&mut self) {
        self.port += 1;
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
        let images = self.lock().disarm();
        let has_crashed = images.is_some();
        if let Some(images) = images {
            self.members = images;
            self.reorder(random);
        }
        has_crashed
    }

    /// Everything crashes now.
    pub(crate) fn crash(&mut self, crashes: &[Crash], random: &mut Random) {
        drop(self.lock().disarm());
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

    /// Time passes until every disk answers.
    pub(crate) fn await_answers(&self) {
        for disk in &self.members {
            self.timeline.advance_to(disk.answers_from_ns());
        }
    }

    /// What was asked of each disk so far.
    pub(crate) fn work(&self) -> Vec<Work> {
        self.members.iter().map(Modelled::work).collect()
    }

    /// Bodies whose nonces were compared.
    pub(crate) fn bodies_compared(&self) -> u64 {
        self.lock().nonces.bodies()
    }

    /// Operations that have not ended, of all members.
    pub(crate) fn in_flight(&self) -> usize {
        self.members.iter().map(|disk| disk.at_port(self.port).in_flight()).sum()
    }

    fn reorder(&mut self, random: &mut Random) {
        let disks = core::mem::take(&mut self.members).into_iter();
        self.members = disks.map(|disk| disk.with_reordering(random.next())).collect();
        if self.is_gradual {
            self.members.iter().for_each(Modelled::show_gradually);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Trigger> {
        stage::lock(&self.trigger)
    }
}

/// A disk as the volume sees it.
#[derive(Debug)]
struct Tapped {
    disk: Modelled,
    trigger: Arc<Mutex<Trigger>>,
    /// Its tokens, by the names of the submissions: a disk that is opened again is another device,
    /// which hears nothing of what the one before has under way.
    own: BTreeMap<u64, u64>,
}

impl Tapped {
    fn new(disk: Modelled, trigger: Arc<Mutex<Trigger>>) -> Self {
        Self { disk, trigger, own: BTreeMap::new() }
    }

    /// A name for a submission, unlike any other.
    fn name(&mut self, token: u64) -> u64 {
        let mut trigger = stage::lock(&self.trigger);
        trigger.submissions += 1;
        let name = trigger.submissions;
        drop(trigger);
        self.own.insert(name, token);
        name
    }

    /// Keeps of what was reaped what is its own.
    fn sort(&mut self, reaped: Vec<Completion>, out: &mut Vec<Completion>) {
        let mut trigger = stage::lock(&self.trigger);
        let is_stray = |name: &&u64| trigger.strays.contains_key(*name);
        let before: Vec<u64> = self.own.keys().filter(is_stray).copied().collect();
        let before: Vec<Completion> =
            before.iter().filter_map(|name| trigger.strays.remove(name)).collect();
        for completion in before.into_iter().chain(reaped) {
            match self.own.remove(&completion.token) {
                Some(token) => out.push(Completion { token, ..completion }),
                None => drop(trigger.strays.insert(completion.token, completion)),
            }
        }
    }

    /// Before a write or flush: the crash comes when it is due.
    fn strike(&self) {
        stage::pass();
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

    fn compare_nonces(&self, data: &[u8]) {
        stage::lock(&self.trigger).nonces.take(data);
    }

    fn count(&self) -> MutexGuard<'_, Trigger> {
        let mut trigger = stage::lock(&self.trigger);
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
        self.compare_nonces(data.get(..len).unwrap_or_default());
        let name = self.name(token);
        self.disk.submit_write(name, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        self.strike();
        let name = self.name(token);
        self.disk.submit_flush(name);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.strike();
        let name = self.name(token);
        self.disk.submit_discard(name, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        drop(self.count());
        let name = self.name(token);
        self.disk.submit_read(name, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        drop(self.count());
        stage::pass();
        let mut reaped = Vec::new();
        self.disk.reap(wait, &mut reaped);
        self.sort(reaped, out);
    }

    fn in_flight(&self) -> usize {
        self.own.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Device::read_at(&self.disk, offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.strike();
        self.compare_nonces(data);
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
