//! This machine: how it is set up, what it is short of now, and how it differs from another one or
//! from itself on another day.

mod budgets;
mod compare;
mod disks;
mod file;
mod live;
mod pressure;
mod processors;
mod settings;
mod shares;
mod space;
mod tasks;

use std::collections::BTreeMap;

use observe::ProcessorCounters;
use observe::facts::Facts;
use observe::space::Space;
use observe::tasks::OpenCount;

pub use budgets::BudgetUse;
pub use compare::{Difference, compare};
pub use file::{FACTS_VERSION, FactsError, parse_facts};
pub use live::watch;
pub use tasks::TaskUse;

use crate::finding::{Diagnosis, Finding};

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
    fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// A number that moves, at the end.
    fn now(&self, name: &str) -> Option<u64> {
        self.after.get(name)?.parse().ok()
    }

    /// What a counter has counted during the watch.
    fn gained(&self, name: &str) -> u64 {
        let count = |facts: &Facts| facts.get(name).and_then(|text| text.parse::<u64>().ok());
        count(&self.after).unwrap_or(0).saturating_sub(count(&self.before).unwrap_or(0))
    }

    /// Whether it runs on another one.
    fn is_guest(&self) -> bool {
        self.fact("cpu.flags")
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    }

    /// Disks by the names that facts have them by.
    fn disks(&self) -> Vec<&str> {
        let of =
            |name: &str| Some(name.strip_prefix("block.")?.split_once(".queue.scheduler")?.0.len());
        let names = self.facts.keys().filter_map(|name| {
            let len = of(name)?;
            name.get("block.".len()..)?.get(..len)
        });
        names.collect()
    }
}

/// What the watch found.
pub fn diagnose(watch: &MachineWatch) -> Diagnosis {
    let mut findings: Vec<Finding> = disks::findings(watch);
    findings.extend(pressure::findings(watch));
    findings.extend(processors::findings(watch));
    findings.extend(budgets::findings(watch));
    findings.extend(space::findings(watch));
    findings.extend(settings::findings(watch));
    let looked_at = format!(
        "{} facts of this machine: Linux {}, {}, {}",
        watch.facts.len(),
        watch.fact("kernel.osrelease").unwrap_or("of no name"),
        watch.fact("cpu.model").unwrap_or("unknown processor"),
        if watch.is_guest() { "a guest" } else { "no guest" },
    );
    let shares = shares::of_busy(watch);
    Diagnosis { looked_at: vec![looked_at], shares, findings, unseen: Vec::new() }.ranked()
}
