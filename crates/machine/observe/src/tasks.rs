//! What processes had of the processors, how long they waited for one, and what they have used up.

use std::collections::BTreeMap;
use std::fs;

use host::processes::{self, Scheduled, Stat};

/// Processes, and threads of one, that are looked at.
const TASKS_MAX: usize = 1 << 14;
const THREADS_MAX: usize = 64;

/// A process at this moment. Times are counted since it began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Task {
    /// Its name, as the kernel has it.
    pub name: String,
    /// It is a thread of the kernel.
    pub is_kernel: bool,
    /// Time that its threads had a processor.
    pub ran_ns: u64,
    /// Time that threads which it has now could have run, while others had the processors.
    pub queued_ns: u64,
    /// It sleeps, and no signal wakes it: it waits for a disk, mostly.
    pub is_waiting: bool,
}

/// The processes that are there, by their numbers; of very many the first.
pub fn tasks() -> BTreeMap<u32, Task> {
    let numbers = processes::processes();
    numbers.into_iter().take(TASKS_MAX).filter_map(|number| Some((number, task(number)?))).collect()
}

fn task(number: u32) -> Option<Task> {
    let stat = Stat::of(number)?;
    let scheduled: Vec<Scheduled> = if stat.threads <= 1 {
        Scheduled::of(number).into_iter().collect()
    } else {
        let threads = processes::threads(number).into_iter().take(THREADS_MAX);
        threads.filter_map(Scheduled::of).collect()
    };
    let sum = |of: fn(&Scheduled) -> u64| scheduled.iter().map(of).fold(0, u64::saturating_add);
    // The ticks know threads that have ended, the scheduler knows less than a tick.
    let ran_ns = stat.ran_ns.max(sum(|it| it.ran_ns));
    Some(Task {
        ran_ns,
        queued_ns: sum(|it| it.queued_ns),
        name: stat.name,
        is_kernel: stat.is_kernel,
        is_waiting: stat.is_waiting,
    })
}

/// Processors that the threads of a process may run on, as lists such as `0-3,8`, each with how
/// many threads have it; `None` when the process has ended.
pub fn allowed(process: u32) -> Option<BTreeMap<String, usize>> {
    let mut lists = BTreeMap::new();
    for thread in processes::threads(process).into_iter().take(THREADS_MAX) {
        let text = fs::read_to_string(processes::place(thread).join("status")).unwrap_or_default();
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        if let Some(list) = list {
            *lists.entry(list.trim().to_owned()).or_insert(0) += 1;
        }
    }
    (!lists.is_empty()).then_some(lists)
}

/// A process and its open files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenCount {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// How many descriptors it has.
    pub open: u64,
    /// How many it may have (`RLIMIT_NOFILE`).
    pub limit: u64,
}

/// Processes that have used up nearly all descriptors that they may have: 95 % and more.
pub fn out_of_descriptors() -> Vec<OpenCount> {
    let numbers = processes::processes().into_iter().take(TASKS_MAX);
    numbers.filter_map(open_count).filter(OpenCount::is_used_up).collect()
}

/// Programs whose descriptors can run out may have more than the few that they begin with.
const LIMIT_MIN: u64 = 16;

impl OpenCount {
    /// Whether nearly all are open. One that has more open than it may have was given the limit
    /// afterwards, as programs do that lock themselves in: it is to open nothing more.
    fn is_used_up(&self) -> bool {
        let Self { open, limit, .. } = self;
        *limit >= LIMIT_MIN && open <= limit && open * 20 >= limit * 19
    }
}

fn open_count(process: u32) -> Option<OpenCount> {
    let place = processes::place(process);
    let limits = fs::read_to_string(place.join("limits")).ok()?;
    let limit = soft_limit(&limits)?;
    let folder = place.join("fd");
    // Since Linux 6.2 the folder's size is the number of its entries.
    let told = fs::metadata(&folder).ok()?.len();
    let open = if told > 0 {
        told
    } else {
        fs::read_dir(&folder).ok()?.fold(0_u64, |count, _| count.saturating_add(1))
    };
    Some(OpenCount { process, name: processes::name(process)?, open, limit })
}

/// `Max open files            1024                 524288               files     `.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listed;

    #[test]
    fn this_process_has_run_and_may_run_somewhere() {
        let own = host::own_process();
        let task = tasks().remove(&own).unwrap();
        assert!(!task.is_kernel && !task.name.is_empty());
        let lists = allowed(own).unwrap();
        assert!(lists.keys().all(|list| !listed(list).is_empty()), "{lists:?}");
        assert_eq!(allowed(u32::MAX), None);
    }

    #[test]
    fn lists_of_processors_have_numbers_and_ranges() {
        assert_eq!(listed("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(listed("3"), [3]);
        assert_eq!(listed("x,5-4"), Vec::<u32>::new());
        assert!(listed("0-4294967295").len() <= 1 << 15);
    }

    #[test]
    fn a_program_that_may_open_nothing_more_on_purpose_has_not_used_it_up() {
        let is_used_up = |open, limit| {
            OpenCount { process: 7, name: "sandboxed".to_owned(), open, limit }.is_used_up()
        };
        assert!(is_used_up(64, 64) && is_used_up(1000, 1024) && is_used_up(122, 128));
        // A limit of none, one below what is open, and the few that every program has.
        assert!(!is_used_up(9, 0) && !is_used_up(70, 64) && !is_used_up(3, 3));
        assert!(!is_used_up(60, 64));
    }

    #[test]
    fn limits_of_open_files_are_read() {
        let text = "Limit    Soft Limit   Hard Limit   Units\n\
                    Max open files            64                   524288               files\n";
        assert_eq!(soft_limit(text), Some(64));
        assert_eq!(soft_limit("Max open files unlimited unlimited files\n"), None);
        let own = open_count(host::own_process()).unwrap();
        assert!(own.open >= 3 && own.limit > own.open, "{own:?}");
    }
}
