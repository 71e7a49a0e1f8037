//! What is wrong with how disks are used.

mod discards;
mod disks;
mod limits;
mod neighbours;
mod pauses;
mod phantom;
mod readahead;
mod syncs;
mod systems;

use std::collections::BTreeSet;

use blockdev::placement::Filesystem;
use host::DeviceNumber;

use super::tally::{DiskSeen, PartOfDisk, SyncKey};
use super::watch::{IoWatch, Tracing};
use findings::words::some;
use findings::{Found, Subject, Unseen};

pub(super) fn all(watch: &IoWatch) -> Vec<Found> {
    let mut findings = phantom::findings(watch);
    findings.extend(disks::findings(watch));
    findings.extend(systems::findings(watch));
    findings.extend(syncs::findings(watch));
    findings.extend(limits::findings(watch));
    findings.extend(neighbours::findings(watch));
    findings.extend(pauses::findings(watch));
    findings.extend(readahead::findings(watch));
    findings
}

/// A disk, as what a finding is about.
fn disk(watch: &IoWatch, disk: DeviceNumber) -> [Subject; 2] {
    [Subject::Disk(watch.device_name(disk)), Subject::Disks]
}

/// A process that waits for a disk.
fn process_at(watch: &IoWatch, process: u32, at: DeviceNumber) -> [Subject; 3] {
    let [disk, disks] = disk(watch, at);
    [disk, disks, Subject::Process(process)]
}

/// A disk, and all who wait for it: for their own requests, until files of theirs are durable, or
/// because they changed too much.
fn disk_and_users(watch: &IoWatch, at: DeviceNumber) -> Vec<Subject> {
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
fn askers(watch: &IoWatch, seen: &DiskSeen, of: fn(&PartOfDisk) -> u64) -> String {
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
fn disk_of_device(watch: &IoWatch, device: DeviceNumber) -> Option<DeviceNumber> {
    let itself = || watch.disks.contains_key(&device).then_some(device);
    watch.on.get(&device).map(|disk| disk.device).or_else(itself)
}

/// File systems that lie on a disk.
fn systems_on(watch: &IoWatch, disk: DeviceNumber) -> impl Iterator<Item = &Filesystem> {
    let is_here = move |it: &&Filesystem| disk_of_device(watch, it.device) == Some(disk);
    watch.filesystems.values().filter(is_here)
}

/// What could not be seen, and what it would take.
pub(super) fn unseen(watch: &IoWatch) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    let mut add = |what: String, needs: &str| {
        unseen.push(Unseen { what, needs: needs.to_owned() });
    };
    match &watch.tracing {
        Tracing::Refused(needs) => add(
            "requests one by one: how long they take and wait, their places, files and processes"
                .to_owned(),
            needs,
        ),
        Tracing::Seen { lost_requests, lost_pages } => {
            let room = "fewer at the same time: a target that narrows it down to one disk";
            if *lost_requests > 0 {
                let what = "records of requests that the kernel did not hand out";
                add(format!("{lost_requests} {what}: counts are too low by so many"), room);
            }
            if *lost_pages > 0 {
                add(format!("{lost_pages} records of changed or mapped pages"), room);
            }
        }
    }
    if watch.unseen_processes > 0 {
        add(
            match watch.unseen_processes {
                1 => "what another process reads and writes".to_owned(),
                hidden => format!("what {hidden} other processes read and write"),
            },
            "CAP_SYS_PTRACE, which root has outside of a container",
        );
    }
    if watch.unplaced > 0 {
        add(
            format!("the files of {} requests, which were too many at once", watch.unplaced),
            "a target that narrows it down",
        );
    }
    let is_traced = matches!(watch.tracing, Tracing::Seen { .. });
    for filesystem in watch.filesystems.values().filter(|_| is_traced) {
        let name = watch.device_name(filesystem.device);
        let is_stacked = watch.facts.contains_key(&format!("block.{name}.on"));
        if filesystem.kind == "btrfs" || is_stacked {
            add(
                format!("which files of {} requests are for", filesystem.mount_point.display()),
                "a file system that lies on a disk or a partition itself, and reports where",
            );
        }
    }
    unseen
}
