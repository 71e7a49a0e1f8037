//! How much processor time and memory groups of processes may have, and how many threads, and how
//! often they met that limit: `cpu`, `memory` and `pids` of cgroups, version 1
//! (Documentation/admin-guide/cgroup-v1/memory.rst, Documentation/scheduler/sched-bwc.rst) and
//! version 2 (Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroups::{GROUPS_MAX, groups_in, name_of, roots};

/// The controllers of version 1.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// A limit of version 1 that is none is the largest number of pages.
const NO_LIMIT: u64 = 1 << 62;

/// Processor time that a group may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorBudget {
    /// The file of the group that the quota stands in.
    pub file: &'static str,
    /// What is written there to be without it.
    pub unlimited: &'static str,
    /// So much in each period.
    pub quota_us: u64,
    /// Length of a period.
    pub period_us: u64,
    /// Periods in which the group ran, since it is there.
    pub periods: u64,
    /// Of these, those in which it had used up its quota and was stopped.
    pub throttled: u64,
    /// How long its run queues were stopped, added up over the processors.
    pub throttled_us: u64,
}

/// Memory that a group may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryBudget {
    /// So many bytes.
    pub limit: u64,
    /// What it has.
    pub used: u64,
    /// How often it was at the limit, since it is there.
    pub hits: u64,
    /// Pages that it had lost and needed again soon.
    pub refaults: u64,
    /// Processes that the kernel killed for it.
    pub kills: u64,
}

/// Processes and threads that a group may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskBudget {
    /// So many.
    pub limit: u64,
    /// What it has.
    pub used: u64,
    /// How often one more was refused, since it is there.
    pub refused: u64,
}

/// A group with a limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name within the hierarchy, such as `/system.slice/backup.service`.
    pub name: String,
    /// Of processors.
    pub processors: Option<ProcessorBudget>,
    /// Of memory.
    pub memory: Option<MemoryBudget>,
    /// Of processes and threads.
    pub tasks: Option<TaskBudget>,
}

/// The groups of this machine that have a limit of any of these, in the order of their names.
pub fn budgets() -> Vec<Budget> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut budgets = Vec::new();
    for (root, is_two) in roots(&mounts, &CONTROLLERS) {
        for folder in groups_in(vec![root.clone()]).take(GROUPS_MAX) {
            let (processors, memory) = if is_two { of_two(&folder) } else { of_one(&folder) };
            let tasks = tasks_of(&folder);
            if processors.is_some() || memory.is_some() || tasks.is_some() {
                let name = name_of(&root, &folder);
                budgets.push(Budget { folder, name, processors, memory, tasks });
            }
        }
    }
    budgets.sort_by(|one, other| one.folder.cmp(&other.folder));
    budgets
}

type Limits = (Option<ProcessorBudget>, Option<MemoryBudget>);

/// A file of a group; nothing where it has none.
fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_default()
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    read(folder, file).trim().parse().ok()
}

fn of_one(folder: &Path) -> Limits {
    let processors = number(folder, "cpu.cfs_quota_us").map(|quota_us| {
        let counts = read(folder, "cpu.stat");
        ProcessorBudget {
            file: "cpu.cfs_quota_us",
            unlimited: "-1",
            quota_us,
            period_us: number(folder, "cpu.cfs_period_us").unwrap_or(0),
            periods: field(&counts, "nr_periods"),
            throttled: field(&counts, "nr_throttled"),
            // Nanoseconds in version 1.
            throttled_us: field(&counts, "throttled_time") / 1000,
        }
    });
    let memory =
        number(folder, "memory.limit_in_bytes").filter(|limit| *limit < NO_LIMIT).map(|limit| {
            let counts = read(folder, "memory.stat");
            MemoryBudget {
                limit,
                used: number(folder, "memory.usage_in_bytes").unwrap_or(0),
                hits: number(folder, "memory.failcnt").unwrap_or(0),
                refaults: refaults(&counts),
                // Counted by the group of the process alone, also where the limit is above it.
                kills: groups_in(vec![folder.to_owned()])
                    .take(GROUPS_MAX)
                    .map(|group| field(&read(&group, "memory.oom_control"), "oom_kill"))
                    .fold(0, u64::saturating_add),
            }
        });
    (processors, memory)
}

fn of_two(folder: &Path) -> Limits {
    let most = read(folder, "cpu.max");
    // `max` is none.
    let processors = most.split_once(' ').and_then(|(quota, period)| {
        let counts = read(folder, "cpu.stat");
        Some(ProcessorBudget {
            file: "cpu.max",
            unlimited: "max",
            quota_us: quota.parse().ok()?,
            period_us: period.trim().parse().ok()?,
            periods: field(&counts, "nr_periods"),
            throttled: field(&counts, "nr_throttled"),
            throttled_us: field(&counts, "throttled_usec"),
        })
    });
    let limit =
        [number(folder, "memory.max"), number(folder, "memory.high")].into_iter().flatten().min();
    let memory = limit.map(|limit| {
        let (counts, events) = (read(folder, "memory.stat"), read(folder, "memory.events"));
        MemoryBudget {
            limit,
            used: number(folder, "memory.current").unwrap_or(0),
            hits: field(&events, "max").saturating_add(field(&events, "high")),
            refaults: refaults(&counts),
            kills: field(&events, "oom_kill"),
        }
    });
    (processors, memory)
}

/// The same in both versions; `max` is no limit.
fn tasks_of(folder: &Path) -> Option<TaskBudget> {
    let limit = number(folder, "pids.max")?;
    let used = number(folder, "pids.current").unwrap_or(0);
    Some(TaskBudget { limit, used, refused: field(&read(folder, "pids.events"), "max") })
}

/// Pages that came back soon after they had been given up, of the group and those below: version 1
/// has these sums by names of their own, beside the counts of the group alone.
fn refaults(counts: &str) -> u64 {
    const KINDS: [&str; 3] =
        ["workingset_refault_file", "workingset_refault_anon", "workingset_refault"];
    let sum = |head: &str| {
        let all = KINDS.iter().map(|kind| field(counts, &format!("{head}{kind}")));
        all.fold(0, u64::saturating_add)
    };
    sum("total_").max(sum(""))
}

/// `nr_throttled 12`: a line for each count; what is not there is 0.
fn field(text: &str, name: &str) -> u64 {
    let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let mounts = "31 24 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            37 24 0:33 / /sys/fs/cgroup/blkio rw shared:15 - cgroup cgroup rw,blkio\n\
            38 24 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            40 24 0:36 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found: Vec<_> =
            roots(mounts, &CONTROLLERS).into_iter().map(|(_, is_two)| is_two).collect();
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    fn version_1_has_a_file_for_each_number_and_minus_one_is_no_quota() {
        let one = group(&[
            ("cpu.cfs_quota_us", "20000\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpu.stat", "nr_periods 50\nnr_throttled 49\nthrottled_time 3900000000\n"),
        ]);
        let (processors, memory) = of_one(one.path());
        let expected = ProcessorBudget {
            file: "cpu.cfs_quota_us",
            unlimited: "-1",
            quota_us: 20_000,
            period_us: 100_000,
            periods: 50,
            throttled: 49,
            throttled_us: 3_900_000,
        };
        assert_eq!((processors, memory), (Some(expected), None));
        let free = group(&[
            ("cpu.cfs_quota_us", "-1\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(of_one(free.path()), (None, None));
        let small = group(&[
            ("memory.limit_in_bytes", "67108864\n"),
            ("memory.usage_in_bytes", "67104768\n"),
            ("memory.failcnt", "900\n"),
            ("memory.stat", "cache 5\nworkingset_refault_anon 1\nworkingset_refault_file 20\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ]);
        let expected =
            MemoryBudget { limit: 64 << 20, used: 67_104_768, hits: 900, refaults: 21, kills: 2 };
        assert_eq!(of_one(small.path()), (None, Some(expected)));
        // Its processes are in a group below, as those of a pod are.
        let counts = "workingset_refault_file 0\ntotal_workingset_refault_file 900\n";
        fs::write(small.path().join("memory.stat"), counts).unwrap();
        let below = small.path().join("container");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("memory.oom_control"), "oom_kill 5\n").unwrap();
        let expected = MemoryBudget { refaults: 900, kills: 7, ..expected };
        assert_eq!(of_one(small.path()).1, Some(expected));
    }

    #[test]
    fn threads_that_a_group_may_have_are_counted_with_those_it_was_refused() {
        let few =
            group(&[("pids.max", "20\n"), ("pids.current", "20\n"), ("pids.events", "max 150\n")]);
        let expected = TaskBudget { limit: 20, used: 20, refused: 150 };
        assert_eq!(tasks_of(few.path()), Some(expected));
        assert_eq!(tasks_of(group(&[("pids.max", "max\n")]).path()), None);
    }

    #[test]
    fn version_2_has_words_and_max_is_none() {
        let two = group(&[
            ("cpu.max", "50000 100000\n"),
            ("cpu.stat", "usage_usec 7\nnr_periods 4\nnr_throttled 3\nthrottled_usec 200\n"),
            ("memory.max", "max\n"),
            ("memory.high", "1048576\n"),
            ("memory.current", "1000000\n"),
            ("memory.events", "low 0\nhigh 7\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n"),
            ("memory.stat", "workingset_refault_file 3\n"),
        ]);
        let (processors, memory) = of_two(two.path());
        assert_eq!(processors.map(|it| (it.quota_us, it.throttled_us)), Some((50_000, 200)));
        let expected =
            MemoryBudget { limit: 1 << 20, used: 1_000_000, hits: 7, refaults: 3, kills: 1 };
        assert_eq!(memory, Some(expected));
        let free = group(&[("cpu.max", "max 100000\n"), ("memory.max", "max\n")]);
        assert_eq!(of_two(free.path()), (None, None));
    }

    #[test]
    fn the_groups_of_this_machine_can_be_listed() {
        assert!(budgets().iter().all(|budget| budget.folder.is_dir()));
    }
}
