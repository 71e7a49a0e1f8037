//! Disks: who reads and writes what, where, how long it takes and what it waits for, and the reads
//! that no program asked for.
//!
//! Requests come from the kernel's tracepoints where they may be listened to, else there are the
//! counters of disks and of one's own processes.

mod files;
mod findings;
mod held;
mod live;
mod requests;
mod serialize;
mod shares;
mod syncs;
mod tally;
mod touches;
mod watch;

pub use files::FileKey;
pub use held::{GroupSeen, Groups, Wait};
pub use host::DeviceNumber;
pub use live::{Live, Target};
pub use observe::cgroups::{DiskLimit, GroupLook, Limited, Unit};
pub use observe::io::{DiskCounters, ProcessCounters, Touch, TouchKind};
pub use observe::tracepoints::{Operation, Sync};
pub use requests::Request;
pub use tally::{
    Amount, Content, DiskSeen, Faults, FileSeen, OperationSeen, PartOfDisk, PauseSeen, Places,
    ProcessSeen, SyncBy, SyncKey, SyncSeen,
};
pub use touches::{TouchFilter, Toucher, Touches, Who, touches, watch_files};
pub use watch::{IoWatch, Machine, Tracing, watch};

use ::findings::Diagnosis;
use ::findings::words::plural;

/// What the watch found.
pub fn diagnose(watch: &IoWatch) -> Diagnosis {
    let findings = findings::all(watch);
    let mut unseen = findings::unseen(watch);
    unseen.sort();
    let requests: u64 = watch.counters.values().map(|(_, gained)| gained.requests()).sum();
    let traced: u64 =
        watch.disks.values().flat_map(|disk| disk.operations.values()).map(|it| it.all.count).sum();
    let looked_at = match &watch.tracing {
        Tracing::Seen { .. } => format!(
            "{} to {} in {:.1} s",
            plural(usize::try_from(traced).unwrap_or(usize::MAX), "request"),
            plural(watch.disks.len(), "disk"),
            watch.seconds(),
        ),
        Tracing::Refused(_) => format!(
            "counters of {} that did anything in {:.1} s: {}",
            plural(watch.counters.len(), "block device"),
            watch.seconds(),
            plural(usize::try_from(requests).unwrap_or(usize::MAX), "request"),
        ),
    };
    let shares = shares::of_disks(watch);
    Diagnosis { looked_at: vec![looked_at], shares, findings, unseen }.ranked()
}
