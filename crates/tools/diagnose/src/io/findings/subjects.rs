//! What findings are about: disks, who waits for them, and what lies on them.

use std::collections::BTreeSet;

use blockdev::placement::Filesystem;
use host::DeviceNumber;

use super::super::tally::{DiskSeen, PartOfDisk, SyncKey};
use super::super::watch::IoWatch;
use findings::Subject;
use findings::words::some;

/// A disk, as what a finding is about.
pub(super) fn disk(watch: &IoWatch, disk: DeviceNumber) -> [Subject; 2] {
    [Subject::Disk(watch.device_name(disk)), Subject::Disks]
}

/// A process that waits for a disk.
pub(super) fn process_at(watch: &IoWatch, process: u32, at: DeviceNumber) -> [Subject; 3] {
    let [disk, disks] = disk(watch, at);
    [disk, disks, Subject::Process(process)]
}

/// A disk, and all who wait for it: for their own requests, until files of theirs are durable, or
/// because they changed too much.
pub(super) fn disk_and_users(watch: &IoWatch, at: DeviceNumber) -> Vec<Subject> {
    let requests = watch.disks.get(&at).into_iter().flat_map(|seen| seen.by.keys().copied());
    let is_here =
        |key: &&SyncKey| key.device.is_some_and(|device| disk_of_device(watch, device) == Some(at));
    let syncs = watch.syncs.keys().filter(is_here).map(|key| key.process);
    let pauses = watch.pauses.keys().filter(|(_, device)| *device == at);
    let users: BTreeSet<u32> =
        requests.chain(syncs).chain(pauses.map(|(process, _)| *process)).collect();
    let is_kernel = |process: u32| watch.processes.get(&process).is_some_and(|it| it.is_kernel);
    let users = users.into_iter().filter(|process| !is_kernel(*process)).map(Subject::Process);
    disk(watch, at).into_iter().chain(users).collect()
}

/// Who asked a disk for something, the most often first, with how often.
pub(super) fn askers(watch: &IoWatch, seen: &DiskSeen, of: fn(&PartOfDisk) -> u64) -> String {
    let mut by: Vec<(u64, String)> = seen
        .by
        .iter()
        .filter(|(_, part)| of(part) > 0)
        .map(|(process, part)| (of(part), watch.process_label(*process)))
        .collect();
    by.sort_by(|one, other| other.cmp(one));
    some(by.into_iter().map(|(count, who)| format!("{who}: {count}")))
}

/// The disk that a file system's device is, or is a part of; a disk without one is itself.
pub(super) fn disk_of_device(watch: &IoWatch, device: DeviceNumber) -> Option<DeviceNumber> {
    let itself = || watch.disks.contains_key(&device).then_some(device);
    watch.on.get(&device).map(|disk| disk.device).or_else(itself)
}

/// File systems that lie on a disk.
pub(super) fn systems_on(watch: &IoWatch, disk: DeviceNumber) -> impl Iterator<Item = &Filesystem> {
    let is_here = move |it: &&Filesystem| disk_of_device(watch, it.device) == Some(disk);
    watch.filesystems.values().filter(is_here)
}
