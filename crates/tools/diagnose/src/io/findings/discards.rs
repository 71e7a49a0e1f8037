//! Discards: blocks that a disk is to forget.
//!
//! A file system with the option discard asks for them when files are removed, in threads of the
//! kernel as a rule. Programs ask for them, too: fstrim for what is free of a file system,
//! blkdiscard and others for parts of a device. Who asked is known of each, and tells these apart;
//! where a program asked on a disk that has such a file system, both are possible.

use blockdev::placement::Filesystem;
use host::DeviceNumber;
use observe::tracepoints::Operation;
use units::ByteSize;

use super::super::tally::DiskSeen;
use super::super::watch::IoWatch;
use super::subjects;
use findings::words::{some, time};
use findings::{Finding, Remedy, Severity};

const ENOUGH: u64 = 20;
/// Hundredths of the watch that the disk is busy with them at least.
const SPENT: u64 = 5;

/// Why a disk gets discards.
enum Asks<'w> {
    /// File systems that are mounted with discard.
    Option(Vec<&'w Filesystem>),
    /// The program of this name trims file systems.
    Trim(String),
    /// A program, of this name, for whatever it knows.
    Program(String),
    /// A program on a disk with file systems that are mounted with discard: it may remove files.
    Either(String, Vec<&'w Filesystem>),
    /// The kernel, for another reason than a mounted file system.
    Kernel,
}

pub(super) fn finding(watch: &IoWatch, disk: DeviceNumber, seen: &DiskSeen) -> Option<Finding> {
    let of = seen.operations.get(&Operation::Discard)?;
    let spent_ns = of.device.quantile_ns(500).saturating_mul(of.all.count);
    if of.all.count < ENOUGH || !watch.is_share(spent_ns, SPENT) {
        return None;
    }
    let name = watch.device_name(disk);
    let asks = Asks::of(watch, disk, seen);
    let mut evidence = vec![
        format!(
            "{} in all; half of the discards take {} or longer",
            ByteSize(of.all.bytes),
            time(of.device.quantile_ns(500)),
        ),
        format!("asked for by: {}", subjects::askers(watch, seen, |part| part.discards)),
    ];
    if let Asks::Option(systems) | Asks::Either(_, systems) = &asks {
        let places = systems.iter().map(|system| system.mount_point.display().to_string());
        evidence.push(format!("of {name} mounted with discard: {}", some(places)));
    }
    Some(Finding {
        kind: "io.discards",
        severity: Severity::Warning,
        reach: usize::try_from(of.all.count).unwrap_or(usize::MAX),
        what: format!("{name} is busy with {} discards: it is to forget blocks", of.all.count),
        evidence,
        cause: asks.cause(),
        remedies: asks.remedies(),
    })
}

impl<'w> Asks<'w> {
    fn of(watch: &'w IoWatch, disk: DeviceNumber, seen: &DiskSeen) -> Self {
        let is_kernel =
            |process: u32| watch.processes.get(&process).is_some_and(|seen| seen.is_kernel);
        let all: u64 = seen.by.values().map(|part| part.discards).sum();
        let programs = seen.by.iter().filter(|(process, _)| !is_kernel(**process));
        let by_programs: u64 = programs.clone().map(|(_, part)| part.discards).sum();
        let most = programs.max_by_key(|(_, part)| part.discards);
        let is_online = |system: &&Filesystem| {
            let mut options = system.options.split(',');
            options.any(|option| option == "discard" || option.starts_with("discard="))
        };
        let online: Vec<_> = subjects::systems_on(watch, disk).filter(is_online).collect();
        let most = most.filter(|_| by_programs.saturating_mul(2) > all);
        let Some((process, _)) = most else {
            return if online.is_empty() { Self::Kernel } else { Self::Option(online) };
        };
        // One that lives for a moment has gone before its name is asked for; others of its kind
        // have one.
        let is_trim = |process: &u32| {
            let is_it = watch.processes.get(process).is_some_and(|seen| seen.name == "fstrim");
            is_it && seen.by.get(process).is_some_and(|part| part.discards > 0)
        };
        let trims = seen.by.keys().find(|process| is_trim(process));
        match (trims, online.is_empty()) {
            (Some(process), _) => Self::Trim(watch.process_label(*process)),
            (None, true) => Self::Program(watch.process_label(*process)),
            (None, false) => Self::Either(watch.process_label(*process), online),
        }
    }

    fn cause(&self) -> String {
        match self {
            Self::Option(_) => "With the option discard each file that is removed has the disk \
                                forget its blocks at once, and many disks do nothing else \
                                meanwhile."
                .to_owned(),
            Self::Trim(who) => format!(
                "{who} has the disk forget all that is free in a file system, and many disks do \
                 nothing else meanwhile."
            ),
            Self::Program(who) => format!(
                "{who} asks for them itself (blkdiscard, or a program that uses the device). Many \
                 disks do nothing else meanwhile."
            ),
            Self::Either(who, _) => format!(
                "{who} asks for them itself, or removes files on a file system that is mounted \
                 with discard: the records do not tell these apart. Many disks do nothing else \
                 meanwhile."
            ),
            Self::Kernel => "The kernel asks for them, and no file system on the disk is mounted \
                             with discard: a swap area (swapon --discard), or a device that is \
                             built on the disk, may. Many disks do nothing else meanwhile."
                .to_owned(),
        }
    }

    fn remedies(&self) -> Vec<Remedy> {
        let without_option = |systems: &[&Filesystem]| Remedy {
            what: "no discard at once, and all that is free once a week".to_owned(),
            now: systems
                .iter()
                .map(|it| format!("mount -o remount,nodiscard {}", it.mount_point.display()))
                .collect(),
            for_good: vec![
                "take discard out of /etc/fstab".to_owned(),
                "systemctl enable --now fstrim.timer".to_owned(),
            ],
        };
        match self {
            Self::Option(systems) => vec![without_option(systems)],
            Self::Trim(who) => vec![Remedy::by_hand(format!(
                "run it less often, when little else is to do: once a week is enough \
                 (fstrim.timer); see who starts {who}"
            ))],
            Self::Program(who) => vec![Remedy::by_hand(format!(
                "see what {who} discards, and why so often; fewer and larger discards, when \
                 little else is to do"
            ))],
            Self::Either(who, systems) => vec![
                Remedy::by_hand(format!("see whether {who} removes files, or discards by itself")),
                without_option(systems),
            ],
            Self::Kernel => vec![Remedy::by_hand(
                "see what uses the disk: cat /proc/swaps, lsblk; lsblk -D shows which devices \
                 pass discards on",
            )],
        }
    }
}
