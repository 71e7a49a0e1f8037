//! What is wrong with how disks are used.

mod discards;
mod disks;
mod limits;
mod neighbours;
mod pauses;
mod phantom;
mod readahead;
mod subjects;
mod syncs;
mod systems;

use super::watch::{IoWatch, Tracing};
use findings::{Found, Unseen};

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
