//! What was seen of a machine.

use std::collections::{BTreeMap, BTreeSet};

use observe::ProcessorCounters;
use observe::budgets::Budget;
use observe::facts::Facts;
use observe::space::Space;
use observe::tasks::OpenCount;

/// What a process had meanwhile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskUse {
    /// Its name.
    pub name: String,
    /// It is a thread of the kernel.
    pub is_kernel: bool,
    /// Time that its threads had a processor.
    pub ran_ns: u64,
    /// Time that they could have run, while others had the processors.
    pub queued_ns: u64,
    /// Looks at which it slept and no signal would have woken it: it waits for a disk, mostly.
    pub waits: u32,
    /// Lists of processors that its threads may run on, of those that waited for one.
    pub allowed: BTreeMap<String, usize>,
}

/// A group with a limit, during a watch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BudgetUse {
    /// As it was at the beginning.
    pub before: Budget,
    /// And at the end.
    pub after: Budget,
    /// Its processes at the end.
    pub members: BTreeSet<u32>,
}

/// What was seen of a machine.
#[derive(Clone, Debug, Default)]
pub struct MachineWatch {
    /// How it is set up.
    pub facts: Facts,
    /// What moves, when the watch began.
    pub before: Facts,
    /// And at its end.
    pub after: Facts,
    /// Length of the watch.
    pub ns: u64,
    /// What processors had done when the watch began, and at its end.
    pub processors: Option<(ProcessorCounters, ProcessorCounters)>,
    /// What each process had of the processors meanwhile.
    pub tasks: BTreeMap<u32, TaskUse>,
    /// Groups of processes with a limit of processor time or memory.
    pub budgets: Vec<BudgetUse>,
    /// Space in file systems, at the end.
    pub spaces: Vec<Space>,
    /// Processes without free descriptors, at the end.
    pub descriptors: Vec<OpenCount>,
    /// Size of a page of memory.
    pub page_bytes: u64,
}

impl MachineWatch {
    pub(super) fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// A number that moves, at the end.
    pub(super) fn now(&self, name: &str) -> Option<u64> {
        self.after.get(name)?.parse().ok()
    }

    /// What a counter has counted during the watch.
    pub(super) fn gained(&self, name: &str) -> u64 {
        let count = |facts: &Facts| facts.get(name).and_then(|text| text.parse::<u64>().ok());
        count(&self.after).unwrap_or(0).saturating_sub(count(&self.before).unwrap_or(0))
    }

    /// Whether it runs on another one.
    pub(super) fn is_guest(&self) -> bool {
        self.fact("cpu.flags")
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    }

    /// Disks by the names that facts have them by.
    pub(super) fn disks(&self) -> Vec<&str> {
        let of =
            |name: &str| Some(name.strip_prefix("block.")?.split_once(".queue.scheduler")?.0.len());
        let names = self.facts.keys().filter_map(|name| {
            let len = of(name)?;
            name.get("block.".len()..)?.get(..len)
        });
        names.collect()
    }
}
