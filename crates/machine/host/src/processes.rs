//! Processes as the kernel shows them below `/proc` (`proc(5)`).

use std::fs;
use std::path::{Path, PathBuf};

/// A tick of the files below `/proc`: `USER_HZ` is 100 wherever this builds.
pub const TICK_NS: u64 = 10_000_000;

/// Where the kernel tells of a process; a thread has such a place, too, which is not listed.
pub fn place(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}"))
}

/// Numbers of the processes that are there, lowest first.
pub fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Numbers of the threads of a process, lowest first; none when it has ended.
pub fn threads(process: u32) -> Vec<u32> {
    numbers(&place(process).join("task"))
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Whether a process is there, be it one that has ended and was not waited for.
pub fn has_process(process: u32) -> bool {
    place(process).exists()
}

/// The name of a process or thread, as the kernel has it; `None` when it has ended.
pub fn name(process: u32) -> Option<String> {
    let name = fs::read_to_string(place(process).join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The network namespace that a process is in: a file that identifies it, and by which it can be
/// entered (`namespaces(7)`).
pub fn network_of(process: u32) -> PathBuf {
    place(process).join("ns/net")
}

/// What `proc_pid_stat(5)` says of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own in that line")]
pub struct Stat {
    /// As the kernel has it.
    pub name: String,
    /// It has not ended. One that has is there until it is waited for.
    pub is_alive: bool,
    /// It sleeps, and no signal wakes it: it waits for a disk, mostly.
    pub is_waiting: bool,
    /// A signal has stopped it (SIGSTOP, or Ctrl-Z at a terminal), or a debugger has.
    pub is_stopped: bool,
    /// Who started it, or took it over.
    pub parent: u32,
    /// It is a thread of the kernel.
    pub is_kernel: bool,
    /// Processor time of all its threads, those that have ended among them, in steps of 10 ms.
    pub ran_ns: u64,
    /// How many threads it has.
    pub threads: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
    /// The processor that it was on last.
    pub processor: u32,
}

impl Stat {
    /// Of a process or thread; `None` when it is gone.
    pub fn of(process: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(place(process).join("stat")).ok()?)
    }

    /// The name is in parentheses, and may hold blanks and parentheses.
    pub fn parse(line: &str) -> Option<Self> {
        /// `PF_KTHREAD` of `include/linux/sched.h`.
        const KERNEL_THREAD: u64 = 0x20_0000;
        let (head, rest) = line.rsplit_once(") ")?;
        let (_, name) = head.split_once(" (")?;
        // Fields 3, 4, 9, 14, 15, 20, 22 and 39 of all.
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let in_user: u64 = fields.nth(4)?.parse().ok()?;
        let in_kernel: u64 = fields.next()?.parse().ok()?;
        let threads = fields.nth(4)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        let processor = fields.nth(16)?.parse().ok()?;
        Some(Self {
            name: name.to_owned(),
            is_alive: !matches!(state, "Z" | "X"),
            is_waiting: state == "D",
            is_stopped: matches!(state, "T" | "t"),
            parent,
            is_kernel: flags & KERNEL_THREAD != 0,
            ran_ns: in_user.saturating_add(in_kernel).saturating_mul(TICK_NS),
            threads,
            started,
            processor,
        })
    }
}

/// How the scheduler served a thread since it is there (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// It had a processor.
    pub ran_ns: u64,
    /// It could have run, and others had the processors.
    pub queued_ns: u64,
}

impl Scheduled {
    /// Of a thread, or of the first one of a process; `None` when it is gone, or the kernel does
    /// not count that.
    pub fn of(thread: u32) -> Option<Self> {
        let text = fs::read_to_string(place(thread).join("schedstat")).ok()?;
        let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse().ok());
        Some(Self { ran_ns: numbers.next()?, queued_ns: numbers.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_the_rest_of_the_line() {
        let zeros = |count: usize| "0 ".repeat(count);
        let rest = |state, flags| {
            let counts = format!("{}20 30 {}6 0 9", zeros(4), zeros(4));
            format!("{state} 5 0 0 0 -1 {flags} {counts} {}17 3 0 0", zeros(15))
        };
        let parse = |head: &str, rest: String| Stat::parse(&format!("{head} {rest}"));
        let expected = Stat {
            name: "a (b) S 2 c".to_owned(),
            is_alive: true,
            is_waiting: false,
            is_stopped: false,
            parent: 5,
            is_kernel: true,
            ran_ns: 500_000_000,
            threads: 6,
            started: 9,
            processor: 3,
        };
        assert_eq!(parse("77 (a (b) S 2 c)", rest("S", 2_129_984)), Some(expected.clone()));
        let ended = Stat { is_alive: false, is_kernel: false, ..expected };
        assert_eq!(parse("77 (a (b) S 2 c)", rest("Z", 4)), Some(ended));
        let waits = Stat::parse(&format!("77 (a) {}", rest("D", 4))).unwrap();
        assert!(waits.is_waiting && waits.is_alive && !waits.is_kernel);
        assert_eq!(Stat::parse("77 (a"), None);
        assert_eq!(Stat::parse("77 (a) S 5 0 0"), None);
    }

    #[test]
    fn this_process_is_there_with_its_threads() {
        let us = std::process::id();
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert!(processes().contains(&us) && threads(us).contains(&own) && has_process(us));
        assert!(processes().is_sorted());
        let stat = Stat::of(us).unwrap();
        assert!(stat.is_alive && !stat.is_kernel, "{stat:?}");
        assert_eq!(Some(stat.name), name(us));
        assert_eq!((threads(u32::MAX), name(u32::MAX), Stat::of(u32::MAX)), (vec![], None, None));
        assert!(!has_process(u32::MAX) && Scheduled::of(u32::MAX).is_none());
    }
}
