//! Processes that wait until their files are durable: by calls, or at each write.

use core::time::Duration;

use blockdev::placement::Filesystem;
use units::ByteSize;

use super::super::tally::{Content, SyncBy, SyncKey, SyncSeen};
use super::super::watch::IoWatch;
use super::subjects;
use super::systems::place;
use findings::words::{plural, time};
use findings::{Finding, Found, Remedy, Severity, Subject};

const ENOUGH: u64 = 10;
/// Of calls for all that was changed, which take long, fewer matter.
const FEW: u64 = 3;
/// Hundredths of the watch.
const WAITS: u64 = 20;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let of = |(key, seen)| {
        let wait = Wait { watch, key, seen, system: system(watch, key) };
        wait.matters().then(|| wait.finding().about(wait.about()))
    };
    watch.syncs.iter().filter_map(of).collect()
}

/// The file system that a wait is for, where it is for one.
fn system<'w>(watch: &'w IoWatch, key: &SyncKey) -> Option<&'w Filesystem> {
    watch.filesystems.get(&key.device?)
}

/// A process that waits for its files to become durable.
struct Wait<'w> {
    watch: &'w IoWatch,
    key: &'w SyncKey,
    seen: &'w SyncSeen,
    system: Option<&'w Filesystem>,
}

impl Wait<'_> {
    fn matters(&self) -> bool {
        let is_large = matches!(self.key.by, SyncBy::Filesystem | SyncBy::Everything);
        let enough = if is_large { FEW } else { ENOUGH };
        self.seen.waits.count() >= enough && self.watch.is_share(self.seen.total_ns, WAITS)
    }

    fn about(&self) -> Vec<Subject> {
        let disk = self.key.device.and_then(|it| subjects::disk_of_device(self.watch, it));
        let disk = disk.into_iter().flat_map(|disk| subjects::disk(self.watch, disk));
        let process = Subject::Process(self.key.process);
        disk.chain(self.system.map(place)).chain([Subject::Disks, process]).collect()
    }

    /// What it waits for, in words.
    fn what(&self) -> String {
        let file = self.key.path.as_ref().map(|path| path.display().to_string());
        let of_file = |unknown: &str| file.clone().unwrap_or_else(|| unknown.to_owned());
        let mounted = |it: &Filesystem| it.mount_point.display().to_string();
        match self.key.by {
            SyncBy::Call => format!("fsync of {}", of_file("a file")),
            SyncBy::Filesystem => {
                format!(
                    "syncfs of {}",
                    self.system.map_or_else(|| of_file("a file system"), mounted)
                )
            }
            SyncBy::Everything => "sync of all file systems".to_owned(),
            SyncBy::Mapping => format!("msync of {}", of_file("a mapped file")),
            SyncBy::Write => format!("writes to {} to become durable", of_file("a file")),
        }
    }

    fn finding(&self) -> Finding {
        let Self { watch, key, seen, .. } = self;
        let who = watch.process_label(key.process);
        let threads = &seen.threads;
        // The last records come a moment after the time of the watch is taken.
        let watched_ns = u64::try_from(watch.ns).unwrap_or(0);
        let most_ns = watched_ns.saturating_mul(u64::try_from(threads.len().max(1)).unwrap_or(1));
        let waited = Duration::from_nanos(seen.total_ns.min(most_ns)).as_secs_f64();
        let what = if threads.len() > 1 {
            // Their waits are at the same time: together they may be longer than the watch.
            format!(
                "{} of {who} waited for {}: {waited:.1} s together, in {:.1} s",
                plural(threads.len(), "thread"),
                self.what(),
                watch.seconds()
            )
        } else {
            format!("{who} waited {waited:.1} s of {:.1} s for {}", watch.seconds(), self.what())
        };
        Finding {
            kind: "io.sync_waits",
            severity: Severity::Warning,
            reach: usize::try_from(seen.waits.count()).unwrap_or(usize::MAX),
            what,
            evidence: self.evidence(),
            cause: self.cause(),
            remedies: self.remedies(),
        }
    }

    fn evidence(&self) -> Vec<String> {
        let Self { watch, key, seen, system } = self;
        let count = seen.waits.count();
        let noun = if key.by == SyncBy::Write { "write" } else { "call" };
        let mut evidence = vec![format!(
            "{}: half of them take {} at most, 99 % {}, the longest {}",
            plural(usize::try_from(count).unwrap_or(usize::MAX), noun),
            time(seen.waits.quantile_ns(500)),
            time(seen.waits.quantile_ns(990)),
            time(seen.waits.max_ns()),
        )];
        let is_one = matches!(key.by, SyncBy::Call | SyncBy::Mapping | SyncBy::Write);
        let known = watch.names.iter().find(|(_, known)| key.path.as_ref() == Some(*known));
        let file = known.filter(|_| is_one);
        let file = file.and_then(|(file, _)| watch.files.get(&Content::File(*file)));
        evidence.extend(file.map(|file| {
            let each = ByteSize(file.writes.bytes / count.max(1));
            format!("{} were written to it, {each} for each {noun}", ByteSize(file.writes.bytes))
        }));
        if let Some(system) = system
            && let Some(commits) = watch.commits.get(&system.device)
        {
            evidence.push(format!(
                "the journal of {} committed {} times meanwhile, {} blocks each in the mean",
                system.mount_point.display(),
                commits.count,
                commits.bytes / commits.count.max(1),
            ));
        }
        evidence
    }

    /// Whether all writes to the file system are to be durable at once.
    fn is_mounted_so(&self) -> bool {
        self.system.is_some_and(|it| it.options.split(',').any(|option| option == "sync"))
    }

    fn cause(&self) -> String {
        match self.key.by {
            SyncBy::Call => {
                "fsync returns when the disk has the data for good; where the file has grown or \
                 its times have changed, the journal of the file system is written as well, and \
                 the disk's cache is flushed for each."
            }
            SyncBy::Filesystem | SyncBy::Everything => {
                "It returns when everything that anybody has changed there is on the disk, and \
                 not the caller's own files alone."
            }
            SyncBy::Mapping => {
                "msync returns when the disk has the changed pages for good; the journal of the \
                 file system may be written as well, and the disk's cache is flushed for each."
            }
            SyncBy::Write if self.is_mounted_so() => {
                "The file system is mounted with the option sync: each write returns when the disk \
                 has it for good, with the journal and a flush of the disk's cache."
            }
            SyncBy::Write => {
                "The file was opened with O_SYNC or O_DSYNC, or is written with RWF_SYNC or \
                 RWF_DSYNC: each write returns when the disk has it for good, with the journal, \
                 where the file has grown, and a flush of the disk's cache."
            }
        }
        .to_owned()
    }

    fn remedies(&self) -> Vec<Remedy> {
        let own = match self.key.by {
            SyncBy::Call => vec![
                Remedy::by_hand("one fsync for several records, or for several writers together"),
                Remedy::by_hand(
                    "fdatasync, on a file that has its length already (fallocate, and written \
                     once): the journal is not needed then",
                ),
            ],
            SyncBy::Filesystem | SyncBy::Everything => {
                vec![Remedy::by_hand("fsync of the files that matter, instead of everything")]
            }
            SyncBy::Mapping => vec![Remedy::by_hand(
                "one msync for several changes; MS_ASYNC where a change need not be durable yet",
            )],
            SyncBy::Write => self.of_writes(),
        };
        let disk =
            Remedy::by_hand("a disk whose cache survives a power cut: a flush costs it nothing");
        own.into_iter().chain([disk]).collect()
    }

    fn of_writes(&self) -> Vec<Remedy> {
        let larger = Remedy::by_hand(
            "larger writes: each costs the same; or no O_SYNC, and one fdatasync for several \
             records",
        );
        let mounted = self.system.filter(|_| self.is_mounted_so()).map(|system| {
            let place = system.mount_point.display();
            Remedy {
                what: "a mount without sync, where a program that needs it calls fsync".to_owned(),
                now: vec![format!("mount -o remount,async {place}")],
                for_good: vec!["take sync out of /etc/fstab".to_owned()],
            }
        });
        mounted.into_iter().chain([larger]).collect()
    }
}
