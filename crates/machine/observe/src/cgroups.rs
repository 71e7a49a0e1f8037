//! Groups of processes that the kernel holds back at disks: `blkio.throttle.*` of version 1
//! (Documentation/admin-guide/cgroup-v1/blkio-controller.rst) and `io.max` of version 2
//! (Documentation/admin-guide/cgroup-v2.rst).
//!
//! Only what files of the hierarchies and of `/proc` say. A limit of version 1 holds for the
//! group's own processes, one of version 2 for those of all groups below, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use host::DeviceNumber;
use host::processes::{self, Stat};

use crate::io::transferred;

/// The controller of version 1.
const DISKS: [&str; 1] = ["blkio"];
/// Version 1 has a file for each kind of limit.
const FILES_ONE: [(&str, bool, Unit); 4] = [
    ("blkio.throttle.read_bps_device", false, Unit::Bytes),
    ("blkio.throttle.write_bps_device", true, Unit::Bytes),
    ("blkio.throttle.read_iops_device", false, Unit::Requests),
    ("blkio.throttle.write_iops_device", true, Unit::Requests),
];
/// Version 2 has words in a line for each disk.
const FILE_TWO: &str = "io.max";
const WORDS_TWO: [(&str, bool, Unit); 4] = [
    ("rbps", false, Unit::Bytes),
    ("wbps", true, Unit::Bytes),
    ("riops", false, Unit::Requests),
    ("wiops", true, Unit::Requests),
];
/// Groups that are looked for limits.
pub(crate) const GROUPS_MAX: usize = 10_000;
/// Processes of a group, and threads of a process, that are looked at.
const MEMBERS_MAX: usize = 256;
const THREADS_MAX: usize = 64;
/// Where a thread is that waits for requests which it has sent off (`fs/aio.c`, `io_uring/`).
const WAITS: [&str; 3] = ["read_events", "io_cqring_wait", "io_cqring_schedule"];

/// What a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unit {
    /// Bytes a second.
    Bytes,
    /// Requests a second.
    Requests,
}

/// How much a group may do at a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskLimit {
    /// The disk.
    pub device: DeviceNumber,
    /// It limits writes; else reads.
    pub is_write: bool,
    /// What it counts.
    pub unit: Unit,
    /// So many a second.
    pub per_second: u64,
    /// The file that it stands in.
    pub file: &'static str,
    /// What is written there to be without it.
    pub unlimited: String,
}

/// A group with limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limited {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name within the hierarchy, such as `/system.slice/backup.service`.
    pub name: String,
    /// Limits of groups below it are not its own, but its limits are theirs: version 2.
    pub reaches_below: bool,
    /// Its limits.
    pub limits: Vec<DiskLimit>,
}

/// What a group has had at a disk since it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Bytes read, and written.
    pub bytes: [u64; 2],
    /// Requests to read, and to write.
    pub requests: [u64; 2],
}

/// A process of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Member {
    /// Its number.
    pub process: u32,
    /// Threads that wait for a disk now.
    pub waiting: u64,
    /// Bytes that it has asked disks to read since it began.
    pub read_bytes: u64,
    /// And to write, at some time.
    pub written_bytes: u64,
}

/// A group at this moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupLook {
    /// Its processes.
    pub members: Vec<Member>,
    /// What it has had, by disk.
    pub moved: BTreeMap<DeviceNumber, Moved>,
    /// How long all of it stood still for disks since it is there, where the kernel counts that.
    pub stalled_us: Option<u64>,
}

/// The groups of this machine that have a limit.
pub fn limited() -> Vec<Limited> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for (root, is_two) in roots(&mounts, &DISKS) {
        let groups = groups_in(vec![root.clone()]).take(GROUPS_MAX);
        found.extend(groups.filter_map(|folder| limited_at(&root, &folder, is_two)));
    }
    found
}

/// The groups whose limits hold for this process: of version 1 its own, of version 2 those above,
/// too. The nearest first.
pub fn limited_here() -> Vec<Limited> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let mut found = Vec::new();
    for Own { root, folder, is_two } in
        own_groups(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    {
        let above = folder.ancestors().take_while(|above| above.starts_with(&root));
        for group in above.take(if is_two { GROUPS_MAX } else { 1 }) {
            found.extend(limited_at(&root, group, is_two));
        }
    }
    found
}

/// A group, where it has limits.
fn limited_at(root: &Path, folder: &Path, is_two: bool) -> Option<Limited> {
    let limits = if is_two { limits_two(folder) } else { limits_one(folder) };
    let (name, folder) = (name_of(root, folder), folder.to_path_buf());
    (!limits.is_empty()).then_some(Limited { folder, name, reaches_below: is_two, limits })
}

/// Where a process is in a hierarchy that limits disks.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Own {
    root: PathBuf,
    folder: PathBuf,
    is_two: bool,
}

/// `7:blkio:/backup` and `0::/backup.service` of `/proc/self/cgroup`, by the mounts. A container
/// may have only its own part mounted: then what the mount begins with is taken off.
fn own_groups(mounts: &str, groups: &str) -> Vec<Own> {
    let place_of = |is_two: bool| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (kinds, place) = rest.split_once(':')?;
            let is_it =
                if is_two { kinds.is_empty() } else { kinds.split(',').any(|it| it == "blkio") };
            is_it.then(|| Path::new(place))
        })
    };
    let own = |(mounted, root, is_two): (PathBuf, PathBuf, bool)| {
        let place = place_of(is_two)?;
        let below = place.strip_prefix(&mounted).or_else(|_| place.strip_prefix("/")).ok()?;
        let is_climbing = below.components().any(|part| part == Component::ParentDir);
        let folder = if is_climbing { root.clone() } else { root.join(below) };
        Some(Own { root, folder, is_two })
    };
    mounted(mounts, &DISKS).into_iter().filter_map(own).collect()
}

/// How a group is now.
pub fn look(group: &Limited) -> GroupLook {
    let read = |file: &str| fs::read_to_string(group.folder.join(file)).unwrap_or_default();
    let mut numbers = if group.reaches_below {
        members_below(&group.folder, MEMBERS_MAX)
    } else {
        members(&group.folder)
    };
    numbers.truncate(MEMBERS_MAX);
    let moved = if group.reaches_below {
        moved_two(&read("io.stat"))
    } else {
        let bytes = read("blkio.throttle.io_service_bytes");
        let requests = read("blkio.throttle.io_serviced");
        moved_one(&bytes, &requests)
    };
    GroupLook {
        members: numbers.into_iter().map(member).collect(),
        moved,
        stalled_us: stalled(&read("io.pressure")),
    }
}

/// Of a group and those below; of many the first.
fn members_below(folder: &Path, most: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    for folder in groups_in(vec![folder.to_path_buf()]) {
        if numbers.len() >= most {
            break;
        }
        numbers.extend(members(&folder));
    }
    numbers
}

/// The processes of a group, by its folder, and of the groups below.
pub fn processes_of(folder: &Path) -> BTreeSet<u32> {
    const MOST: usize = 1 << 14;
    members_below(folder, MOST).into_iter().collect()
}

/// The folder of a unit of systemd, such as `ssh.service`, in the hierarchy that systemd keeps;
/// `None` where it does not run.
pub fn folder_of(unit: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let roots = roots(&mounts, &["name=systemd"]).into_iter().map(|(root, _)| root).collect();
    let is_it = |folder: &PathBuf| folder.file_name().is_some_and(|name| name == unit);
    groups_in(roots).take(GROUPS_MAX).find(is_it)
}

/// Where hierarchies of version 2 are, which is true of those, and of version 1 with one of these
/// controllers.
pub(crate) fn roots(mounts: &str, controllers: &[&str]) -> Vec<(PathBuf, bool)> {
    let mounted = mounted(mounts, controllers);
    mounted.into_iter().map(|(_, root, is_two)| (root, is_two)).collect()
}

/// The same behind the group that is mounted there.
fn mounted(mounts: &str, controllers: &[&str]) -> Vec<(PathBuf, PathBuf, bool)> {
    let root = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_two = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|it| controllers.contains(&it)) => false,
            _ => return None,
        };
        let mut words = place.split(' ').skip(3).map(PathBuf::from);
        Some((words.next()?, words.next()?, is_two))
    };
    mounts.lines().filter_map(root).collect()
}

/// These groups and all below them.
pub(crate) fn groups_in(mut folders: Vec<PathBuf>) -> impl Iterator<Item = PathBuf> {
    core::iter::from_fn(move || {
        let folder = folders.pop()?;
        folders.extend(folders_in(&folder));
        Some(folder)
    })
}

/// The name of a group within its hierarchy.
pub(crate) fn name_of(root: &Path, folder: &Path) -> String {
    format!("/{}", folder.strip_prefix(root).unwrap_or(folder).display())
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}

fn limits_one(folder: &Path) -> Vec<DiskLimit> {
    let of_file = |(file, is_write, unit): (&'static str, bool, Unit)| {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        let limit = |line: &str| {
            let (device, per_second) = line.split_once(' ')?;
            let (device, per_second) = (device.parse().ok()?, per_second.trim().parse().ok()?);
            let unlimited = format!("{device} 0");
            Some(DiskLimit { device, is_write, unit, per_second, file, unlimited })
        };
        text.lines().filter_map(limit).collect::<Vec<_>>()
    };
    FILES_ONE.into_iter().flat_map(of_file).collect()
}

fn limits_two(folder: &Path) -> Vec<DiskLimit> {
    let text = fs::read_to_string(folder.join(FILE_TWO)).unwrap_or_default();
    limits_of_max(&text)
}

/// `8:0 rbps=2097152 wbps=max riops=max wiops=120`.
fn limits_of_max(text: &str) -> Vec<DiskLimit> {
    let mut limits = Vec::new();
    for line in text.lines() {
        let Some((device, words)) = line.split_once(' ') else { continue };
        let Ok(device) = device.parse::<DeviceNumber>() else { continue };
        for (name, value) in words.split(' ').filter_map(|word| word.split_once('=')) {
            let kind = WORDS_TWO.iter().find(|(known, ..)| *known == name);
            let (Some((_, is_write, unit)), Ok(per_second)) = (kind, value.parse()) else {
                continue;
            };
            limits.push(DiskLimit {
                device,
                is_write: *is_write,
                unit: *unit,
                per_second,
                file: FILE_TWO,
                unlimited: format!("{device} {name}=max"),
            });
        }
    }
    limits
}

fn members(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn member(process: u32) -> Member {
    let threads = processes::threads(process).into_iter().take(THREADS_MAX);
    let waiting = threads.filter(|&thread| waits(thread)).fold(0, |count, _| count + 1);
    let (read_bytes, written_bytes) = transferred(process).unwrap_or_default();
    Member { process, waiting, read_bytes, written_bytes }
}

/// Whether a thread sleeps for a disk, or for the answers to requests that it has sent off.
fn waits(thread: u32) -> bool {
    let wchan = processes::place(thread).join("wchan");
    Stat::of(thread).is_some_and(|stat| stat.is_waiting)
        || fs::read_to_string(wchan).is_ok_and(|at| WAITS.contains(&at.trim()))
}

/// `8:0 Read 4096`, a line for each kind; `8:0 Sync 4096` and others count the same again.
fn moved_one(bytes: &str, requests: &str) -> BTreeMap<DeviceNumber, Moved> {
    let mut moved = BTreeMap::<DeviceNumber, Moved>::new();
    for (text, is_bytes) in [(bytes, true), (requests, false)] {
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(Ok(device)), Some(kind), Some(Ok(count))) =
                (words.next().map(str::parse), words.next(), words.next().map(str::parse))
            else {
                continue;
            };
            let of = moved.entry(device).or_default();
            let counts = if is_bytes { &mut of.bytes } else { &mut of.requests };
            let [read, written] = counts;
            match kind {
                "Read" => *read = count,
                "Write" => *written = count,
                _ => {}
            }
        }
    }
    moved
}

/// `8:0 rbytes=90 wbytes=8 rios=2 wios=1 dbytes=0 dios=0`.
fn moved_two(text: &str) -> BTreeMap<DeviceNumber, Moved> {
    let of_line = |line: &str| {
        let (device, words) = line.split_once(' ')?;
        let count = |wanted: &str| {
            let mut pairs = words.split(' ').filter_map(|word| word.split_once('='));
            let found = pairs.find(|(name, _)| *name == wanted);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        let bytes = [count("rbytes"), count("wbytes")];
        Some((device.parse().ok()?, Moved { bytes, requests: [count("rios"), count("wios")] }))
    };
    text.lines().filter_map(of_line).collect()
}

/// `full avg10=0.00 avg60=0.00 avg300=0.00 total=24917232`, microseconds.
fn stalled(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("full"))?;
    line.rsplit_once("total=")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

    #[test]
    fn hierarchies_that_limit_disks_are_told_from_others() {
        let mounts = "31 24 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
            37 24 0:33 / /sys/fs/cgroup/blkio rw shared:15 - cgroup cgroup rw,blkio\n\
            40 24 0:36 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = roots(mounts, &DISKS);
        let expected = [("/sys/fs/cgroup/blkio", false), ("/sys/fs/cgroup/unified", true)];
        assert_eq!(found, expected.map(|(place, is_two)| (PathBuf::from(place), is_two)));
    }

    #[test]
    fn a_process_is_in_a_group_of_each_hierarchy() {
        let mounts = "37 24 0:33 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
            40 24 0:36 /docker/ab /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = "9:name=systemd:/x\n7:blkio:/backup\n0::/docker/ab/a/b\n";
        let own = |root: &str, folder: &str, is_two| Own {
            root: root.into(),
            folder: folder.into(),
            is_two,
        };
        let (one, two) = ("/sys/fs/cgroup/blkio", "/sys/fs/cgroup/unified");
        let expected = [
            own(one, "/sys/fs/cgroup/blkio/backup", false),
            own(two, "/sys/fs/cgroup/unified/a/b", true),
        ];
        assert_eq!(own_groups(mounts, groups), expected);
        // Of a group that is not mounted here, what is mounted is above.
        assert_eq!(own_groups(mounts, "0::/../up\n"), [own(two, two, true)]);
        assert_eq!(own_groups(mounts, ""), []);
    }

    #[test]
    fn limits_of_version_2_are_words_and_max_is_none() {
        let limits = limits_of_max("8:0 rbps=2097152 wbps=max riops=max wiops=120\nbad\n");
        let [read, written] = &limits[..] else { panic!("{limits:?}") };
        assert_eq!((read.device, read.is_write, read.unit), (DISK, false, Unit::Bytes));
        assert_eq!((read.per_second, &*read.unlimited), (2_097_152, "8:0 rbps=max"));
        assert_eq!(
            (written.is_write, written.unit, written.per_second),
            (true, Unit::Requests, 120)
        );
    }

    #[test]
    fn counters_of_both_versions_are_read_and_written_by_disk() {
        let bytes = "8:0 Read 4096\n8:0 Write 512\n8:0 Sync 4608\n8:0 Total 4608\nTotal 4608\n";
        let requests = "8:0 Read 1\n8:0 Write 2\n8:0 Async 3\n";
        let expected = BTreeMap::from([(DISK, Moved { bytes: [4096, 512], requests: [1, 2] })]);
        assert_eq!(moved_one(bytes, requests), expected);
        let two = "8:0 rbytes=4096 wbytes=512 rios=1 wios=2 dbytes=0 dios=0\n";
        assert_eq!(moved_two(two), expected);
    }

    #[test]
    fn pressure_is_the_time_in_which_all_stood_still() {
        let some = "some avg10=41.93 avg60=13.07 avg300=3.91 total=59131361\n";
        let full = "full avg10=40.44 avg60=12.51 avg300=3.11 total=24917232\n";
        assert_eq!(stalled(&format!("{some}{full}")), Some(24_917_232));
        assert_eq!((stalled(some), stalled("")), (None, None));
    }
}
