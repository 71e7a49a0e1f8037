//! What is used up: space and files of file systems, descriptors of processes.

use observe::space::Space;
use observe::tasks::OpenCount;
use units::ByteSize;

use super::seen::MachineWatch;
use findings::{Finding, Found, Remedy, Severity, Subject, words};

/// Who has no more left may be opening and closing the last of them.
const DESCRIPTORS_LEFT: u64 = 4;

pub(super) fn findings(watch: &MachineWatch) -> Vec<Found> {
    let of = |space| Some(full(space)?.about([Subject::Filesystem(space.place.clone())]));
    let full = watch.spaces.iter().filter_map(of);
    let out = watch
        .descriptors
        .iter()
        .map(|count| out_of_descriptors(count).about([Subject::Process(count.process)]));
    full.chain(out).collect()
}

/// A file system on which nothing more can be written, or no file can be made.
fn full(space: &Space) -> Option<Finding> {
    let Space { place, device, kind, .. } = space;
    // What is left for programs without privileges: less than a page for each of their files.
    let has_no_bytes = space.available_bytes < 4096;
    let has_no_inodes = space.inodes > 0 && space.available_inodes == 0;
    if !has_no_bytes && !has_no_inodes {
        return None;
    }
    let what = if has_no_bytes { "space" } else { "files" };
    let (used, command) = if has_no_bytes {
        (
            format!("{} of {} are left", ByteSize(space.available_bytes), ByteSize(space.bytes)),
            "du -x",
        )
    } else {
        let used = format!("all {} files (inodes) that it can have are there", space.inodes);
        (used, "du -x --inodes")
    };
    Some(Finding {
        kind: "host.disk_full",
        severity: Severity::Problem,
        reach: 1,
        what: format!("the file system {place} has no {what} left"),
        evidence: vec![format!("{place} ({kind} on {device}): {used}")],
        cause: "Programs that write there fail (ENOSPC), or try again and again; some stop, some \
                lose what they had to write."
            .to_owned(),
        remedies: vec![Remedy {
            what: "see what fills it, then remove or move that, or enlarge the file system"
                .to_owned(),
            now: vec![format!("{command} '{place}' | sort -n | tail")],
            for_good: Vec::new(),
        }],
    })
}

fn out_of_descriptors(count: &OpenCount) -> Finding {
    let OpenCount { process, name, open, limit } = count;
    let left = limit.saturating_sub(*open);
    let (severity, has, begin) = if left <= DESCRIPTORS_LEFT {
        (Severity::Problem, "has used up its file descriptors", "It".to_owned())
    } else {
        let has = "has used up nearly all of its file descriptors";
        (Severity::Warning, has, format!("With {left} more it"))
    };
    Finding {
        kind: "host.descriptors",
        severity,
        reach: 1,
        what: format!("{} {has}: {open} of {limit}", words::process(name, *process)),
        evidence: vec![
            format!("/proc/{process}/fd has {open} entries"),
            format!("/proc/{process}/limits: Max open files {limit}"),
        ],
        cause: format!(
            "{begin} can open no file and accept no connection any more (EMFILE): either it has \
             more to do than the limit was made for, or it forgets to close."
        ),
        remedies: vec![
            Remedy {
                what: "a higher limit".to_owned(),
                now: vec![format!("prlimit --pid {process} --nofile={}", limit.saturating_mul(16))],
                for_good: vec!["LimitNOFILE= in the unit of the service".to_owned()],
            },
            Remedy::by_hand(format!("see what it has open: ls -l /proc/{process}/fd")),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_up_is_full() {
        let space = |available_bytes, available_inodes, inodes| Space {
            place: "/data".to_owned(),
            bytes: 1 << 30,
            available_bytes,
            inodes,
            available_inodes,
            ..Space::default()
        };
        let of = |space| full(&space).map(|it| it.what);
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(of(space(0, 5, 9)), is("the file system /data has no space left"));
        assert_eq!(of(space(1 << 20, 0, 9)), is("the file system /data has no files left"));
        assert_eq!(of(space(1 << 20, 5, 9)), None);
        // btrfs and others have no limit of files.
        assert_eq!(of(space(1 << 20, 0, 0)), None);
    }
}
