//! This machine: how it is set up, what it is short of now, and how it differs from another one or
//! from itself on another day.

mod budgets;
mod compare;
mod disks;
mod file;
mod live;
mod pressure;
mod processors;
mod seen;
mod settings;
mod shares;
mod space;
mod tasks;

pub use compare::{Difference, compare};
pub use file::{FACTS_VERSION, FactsError, SavedFacts, parse_facts};
pub use live::watch;
pub use seen::{BudgetUse, MachineWatch, TaskUse};

use findings::{Diagnosis, Found};

/// What the watch found.
pub fn diagnose(watch: &MachineWatch) -> Diagnosis {
    let mut findings = disks::findings(watch);
    findings.extend(pressure::findings(watch));
    findings.extend(processors::findings(watch));
    findings.extend(budgets::findings(watch));
    findings.extend(space::findings(watch));
    findings.extend(settings::findings(watch).into_iter().map(Found::from));
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
