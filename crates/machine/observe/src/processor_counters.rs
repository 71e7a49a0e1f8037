//! What processors and the kernel's scheduler have counted since the start of the machine
//! (`proc_stat(5)`).

use std::collections::BTreeMap;
use std::fs;

use host::processes::TICK_NS;

/// How a processor, or all together, spent the time, in steps of 10 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorTimes {
    /// Processes outside of the kernel, guests among them.
    pub user_ns: u64,
    /// The same of those of low priority.
    pub nice_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
    /// Time with nothing to do.
    pub idle_ns: u64,
    /// Nothing to do, and a process waited for a disk.
    pub io_wait_ns: u64,
    /// Time in interrupts.
    pub irq_ns: u64,
    /// What interrupts left for later.
    pub softirq_ns: u64,
    /// Time that the host of a virtual machine gave to others while there was work.
    pub stolen_ns: u64,
    /// Guests; `user_ns` has it, too.
    pub guest_ns: u64,
    /// Guests of low priority; `nice_ns` has it, too.
    pub guest_nice_ns: u64,
}

impl ProcessorTimes {
    /// The numbers of a line.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        let ns = |at: usize| ticks.get(at).copied().unwrap_or(0).saturating_mul(TICK_NS);
        // The first eight are there since Linux 2.6.11.
        (ticks.len() >= 8).then(|| Self {
            user_ns: ns(0),
            nice_ns: ns(1),
            system_ns: ns(2),
            idle_ns: ns(3),
            io_wait_ns: ns(4),
            irq_ns: ns(5),
            softirq_ns: ns(6),
            stolen_ns: ns(7),
            guest_ns: ns(8),
            guest_nice_ns: ns(9),
        })
    }

    /// Time of work, for whomever.
    pub fn busy_ns(&self) -> u64 {
        let parts = [self.user_ns, self.nice_ns, self.system_ns, self.irq_ns, self.softirq_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// What was added since an earlier look; what went back, as idle time may, is 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            nice_ns: self.nice_ns.saturating_sub(before.nice_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            io_wait_ns: self.io_wait_ns.saturating_sub(before.io_wait_ns),
            irq_ns: self.irq_ns.saturating_sub(before.irq_ns),
            softirq_ns: self.softirq_ns.saturating_sub(before.softirq_ns),
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
            guest_ns: self.guest_ns.saturating_sub(before.guest_ns),
            guest_nice_ns: self.guest_nice_ns.saturating_sub(before.guest_nice_ns),
        }
    }
}

/// All that is counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessorCounters {
    /// All processors together.
    pub all: ProcessorTimes,
    /// Each that is in use, by number.
    pub each: BTreeMap<u32, ProcessorTimes>,
    /// Interrupts that were served.
    pub interrupts: u64,
    /// Changes from one task to another.
    pub switches: u64,
    /// Processes and threads that began.
    pub forks: u64,
    /// Tasks that run or could run now, the one that asks among them.
    pub runnable: u64,
    /// Tasks that wait for a disk now.
    pub blocked: u64,
}

/// Time in which some work waited for a processor, since the start of the machine; `None` where the
/// kernel does not count it (`Documentation/accounting/psi.rst`).
pub fn waited_for_processors_ns() -> Option<u64> {
    waited(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

fn waited(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    let total_us = line.rsplit_once("total=")?.1.trim().parse::<u64>().ok()?;
    Some(total_us.saturating_mul(1000))
}

/// Counters of all processors until now; `None` where they cannot be read.
pub fn processor_counters() -> Option<ProcessorCounters> {
    counters(&fs::read_to_string("/proc/stat").ok()?)
}

pub(crate) fn counters(text: &str) -> Option<ProcessorCounters> {
    let mut found = ProcessorCounters::default();
    let mut has_all = false;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        // Of interrupts the sum stands first.
        let first = || rest.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match name {
            "cpu" => {
                found.all = ProcessorTimes::of(rest)?;
                has_all = true;
            }
            "intr" => found.interrupts = first(),
            "ctxt" => found.switches = first(),
            "processes" => found.forks = first(),
            "procs_running" => found.runnable = first(),
            "procs_blocked" => found.blocked = first(),
            _ => {
                let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
                if let Some((number, times)) = number.zip(ProcessorTimes::of(rest)) {
                    found.each.insert(number, times);
                }
            }
        }
    }
    has_all.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_and_the_scheduler_are_read() {
        let text = "cpu  10 2 3 40 5 6 7 8 4 1\n\
                    cpu0 4 1 1 20 2 3 3 4 2 0\n\
                    cpu3 6 1 2 20 3 3 4 4 2 1\n\
                    intr 900 1 2 3\nctxt 800\nbtime 1\nprocesses 70\n\
                    procs_running 5\nprocs_blocked 2\nsoftirq 1 2\n";
        let found = counters(text).unwrap();
        assert_eq!(found.each.keys().collect::<Vec<_>>(), [&0, &3]);
        assert_eq!((found.all.user_ns, found.all.guest_nice_ns), (100_000_000, 10_000_000));
        assert_eq!(found.all.busy_ns(), 280_000_000);
        assert_eq!((found.interrupts, found.switches, found.forks), (900, 800, 70));
        assert_eq!((found.runnable, found.blocked), (5, 2));
        let one = found.each.get(&0).unwrap();
        assert_eq!(found.all.since(one).idle_ns, 200_000_000);
        assert_eq!(one.since(&found.all), ProcessorTimes::default(), "nothing goes back");
        assert_eq!(counters("intr 5\n"), None);
        assert!(!processor_counters().unwrap().each.is_empty());
    }
}
