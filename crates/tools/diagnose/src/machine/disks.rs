//! Disks: the scheduler that fits, write caches, arrays that are not whole, a queue that is cut.

use super::seen::MachineWatch;
use findings::{Finding, Found, Remedy, Severity, Subject};

pub(super) fn findings(watch: &MachineWatch) -> Vec<Found> {
    let of = |disk: &str| {
        let found = [scheduler(watch, disk), array(watch, disk), requests(watch, disk)];
        let found = found.into_iter().flatten().chain(misaligned(watch, disk));
        // What an array does to itself, it does to its members.
        let members = watch.fact(&format!("block.{disk}.on")).unwrap_or_default();
        let about = members.split_whitespace().chain([disk]);
        let about: Vec<Subject> = about.map(|disk| Subject::Disk(disk.to_owned())).collect();
        found.map(|finding| finding.about(about.iter().cloned())).collect::<Vec<_>>()
    };
    watch.disks().into_iter().flat_map(of).collect()
}

/// What flash and disks of today have inside, whatever they say; and a page of a file.
const PAGE: u64 = 4096;

/// Partitions that are mounted and begin where no block of the disk begins.
fn misaligned(watch: &MachineWatch, disk: &str) -> Vec<Finding> {
    let head = format!("block.{disk}.partition.");
    let number = |name: &str| watch.fact(name)?.parse::<u64>().ok();
    let physical = number(&format!("block.{disk}.queue.physical_block_size")).unwrap_or(512);
    let block = physical.max(PAGE);
    let of = |name: &str| {
        let partition = name.strip_prefix(&head)?.strip_suffix(".start")?;
        let start = number(name)?.saturating_mul(512);
        let device = format!("/dev/{partition}");
        let place = mounted(watch, &device)?;
        (!start.is_multiple_of(block)).then(|| of_misaligned(partition, start, block, &place))
    };
    let partitions = watch.facts.keys().filter_map(|name| of(name));
    partitions.chain(misplaced(watch, disk)).collect()
}

/// Where a device is mounted.
fn mounted(watch: &MachineWatch, device: &str) -> Option<String> {
    let is_on = |(name, line): (&String, &String)| {
        let place = name.strip_prefix("mount.")?;
        (line.rsplit(' ').next() == Some(device)).then(|| place.to_owned())
    };
    watch.facts.iter().find_map(is_on)
}

/// A loop device that is mounted and begins within a page of its file.
fn misplaced(watch: &MachineWatch, disk: &str) -> Option<Finding> {
    let offset: u64 = watch.fact(&format!("block.{disk}.loop.offset"))?.parse().ok()?;
    let place = mounted(watch, &format!("/dev/{disk}"))?;
    (!offset.is_multiple_of(PAGE)).then(|| Finding {
        kind: "host.misaligned",
        severity: Severity::Warning,
        reach: 1,
        what: format!("{disk} ({place}) begins within a page of its file"),
        evidence: vec![format!(
            "/sys/block/{disk}/loop/offset: byte {offset}, which is {} more than a multiple of \
             {PAGE}",
            offset % PAGE
        )],
        cause: "A block of the file system lies across two pages and blocks of the file: each \
                write changes both, and reads what it does not have of them."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "an image whose partitions begin at multiples of 1 MiB, and an offset (losetup -o) \
             that is a multiple of 4096",
        )],
    })
}

fn of_misaligned(partition: &str, start: u64, block: u64, place: &str) -> Finding {
    Finding {
        kind: "host.misaligned",
        severity: Severity::Warning,
        reach: 1,
        what: format!(
            "{partition} ({place}) begins within a block of its disk: its writes touch one more"
        ),
        evidence: vec![format!(
            "/sys/class/block/{partition}/start: byte {start}, which is {} more than a multiple of \
             {block}",
            start % block
        )],
        cause: "A block of the file system lies across two of the disk, which reads both, changes \
                them, and writes both back."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "copy what is on it elsewhere and partition the disk anew: partitions begin at a \
             multiple of 1 MiB (parted and fdisk of today do that)",
        )],
    }
}

/// The scheduler that fits, and why.
fn fitting(watch: &MachineWatch, disk: &str) -> Option<(&'static str, &'static str)> {
    let fact = |name: &str| watch.fact(&format!("block.{disk}.{name}"));
    let is_rotational = fact("queue.rotational") == Some("1");
    let driver = fact("driver").unwrap_or_default();
    // Of stacked devices the ones below decide.
    if fact("on").is_some() || disk.starts_with("loop") || disk.starts_with("ram") {
        return None;
    }
    if watch.is_guest() && (disk.starts_with("vd") || disk.starts_with("xvd")) {
        return Some(("none", "the host orders requests again, with what it knows of the disk"));
    }
    if disk.starts_with("nvme") {
        return Some(("none", "the disk orders requests itself, and deep queues pay"));
    }
    if driver == "sd" && is_rotational {
        return Some(("mq-deadline", "requests in the order of the disk save its arm ways"));
    }
    None
}

fn scheduler(watch: &MachineWatch, disk: &str) -> Option<Finding> {
    let line = watch.fact(&format!("block.{disk}.queue.scheduler"))?;
    let (wanted, why) = fitting(watch, disk)?;
    let all: Vec<&str> = line.split(' ').map(|name| name.trim_matches(['[', ']'])).collect();
    let active = line.split(' ').find(|name| name.starts_with('['))?.trim_matches(['[', ']']);
    if active == wanted {
        return None;
    }
    let rule = format!(
        "echo 'ACTION==\"add|change\", KERNEL==\"{disk}\", ATTR{{queue/scheduler}}=\"{wanted}\"' > \
         /etc/udev/rules.d/60-scheduler-{disk}.rules"
    );
    let mut now = vec![format!("echo {wanted} > /sys/block/{disk}/queue/scheduler")];
    if !all.contains(&wanted) {
        now.insert(0, format!("modprobe {wanted}"));
    }
    Some(Finding {
        kind: "host.scheduler",
        severity: Severity::Note,
        reach: 1,
        what: format!("the I/O scheduler of {disk} is {active}; `{wanted}` fits better"),
        evidence: vec![format!("/sys/block/{disk}/queue/scheduler: {line}")],
        cause: format!("With `{wanted}` {why}."),
        remedies: vec![Remedy { what: format!("scheduler `{wanted}`"), now, for_good: vec![rule] }],
    })
}

fn array(watch: &MachineWatch, disk: &str) -> Option<Finding> {
    let fact = |name: &str| watch.fact(&format!("block.{disk}.md.{name}"));
    let missing: u32 = fact("degraded")?.parse().ok()?;
    let action = fact("sync_action").unwrap_or("idle");
    if missing == 0 && action == "idle" {
        return None;
    }
    let what = if missing > 0 {
        format!("the array {disk} runs without {missing} of its disks")
    } else {
        format!("the array {disk} is busy with itself: {action}")
    };
    Some(Finding {
        kind: "host.array",
        severity: if missing > 0 { Severity::Problem } else { Severity::Warning },
        reach: 1,
        what,
        evidence: vec![
            format!("/sys/block/{disk}/md/degraded: {missing}"),
            format!("/sys/block/{disk}/md/sync_action: {action}"),
        ],
        cause: "What is missing is computed from the other disks at every read, and resyncs share \
                the disks with everything else."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("replace the disk that failed (mdadm --detail names it)"),
            Remedy::sysctl("limit the resync", "dev.raid.speed_limit_max", "50000"),
        ],
    })
}

/// Requests that the disk would take larger.
fn requests(watch: &MachineWatch, disk: &str) -> Option<Finding> {
    const ENOUGH_KIB: u64 = 512;
    let number = |name: &str| -> Option<u64> {
        watch.fact(&format!("block.{disk}.queue.{name}"))?.parse().ok()
    };
    let (now, most) = (number("max_sectors_kb")?, number("max_hw_sectors_kb")?);
    let wanted = most.min(1280);
    if now >= ENOUGH_KIB.min(most) {
        return None;
    }
    Some(Finding {
        kind: "host.request_size",
        severity: Severity::Warning,
        reach: 1,
        what: format!("requests to {disk} are cut at {now} KiB, and it takes {most} KiB"),
        evidence: vec![format!("/sys/block/{disk}/queue/max_sectors_kb: {now}")],
        cause: "The limit was lowered by hand or by a rule. Each piece of a large write costs a \
                request of its own."
            .to_owned(),
        remedies: vec![Remedy {
            what: "larger requests".to_owned(),
            now: vec![format!("echo {wanted} > /sys/block/{disk}/queue/max_sectors_kb")],
            for_good: vec![format!(
                "echo 'ACTION==\"add|change\", KERNEL==\"{disk}\", \
                 ATTR{{queue/max_sectors_kb}}=\"{wanted}\"' > \
                 /etc/udev/rules.d/60-requests-{disk}.rules"
            )],
        }],
    })
}
