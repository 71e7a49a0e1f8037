//! What differs between two machines, or between two days of one: what costs most by experience
//! first.

use observe::facts::Facts;
use serde::Serialize;

/// One fact that is not the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// Name of the fact.
    pub name: String,
    /// There; `None` where it is absent.
    pub theirs: Option<String>,
    /// Value on this machine.
    pub ours: Option<String>,
    /// Why it may matter; `None` of facts of which nothing is known.
    pub why: Option<&'static str>,
}

/// What is known to make two machines differ in speed, the worst first, by the beginning of names.
const SUSPECTS: [(&str, &str); 26] = [
    ("iommu.", "a strict IOMMU costs a flush with every request; fast disks lose half"),
    ("command_line.iommu", "a strict IOMMU costs a flush with every request"),
    ("command_line.intel_iommu", "a strict IOMMU costs a flush with every request"),
    ("command_line.amd_iommu", "a strict IOMMU costs a flush with every request"),
    ("configuration.CONFIG_IOMMU_DEFAULT", "whether the IOMMU is strict"),
    ("command_line.mitigations", "mitigations cost at every system call"),
    ("mitigation.", "mitigations cost at every system call and interrupt"),
    ("machine.clock_source", "a slow clock costs a system call at every look"),
    ("cpu.model", "another processor"),
    ("cpu.microcode", "microcode brings mitigations"),
    ("cpu.smt.active", "two threads share a core"),
    ("cpu.memory", "more memory caches more"),
    ("cpu0.", "how fast the processor may run"),
    ("block.", "another disk, or set up otherwise"),
    ("mount.", "how file systems are mounted"),
    ("machine.transparent_huge_pages", "huge pages"),
    ("sysctl.vm.", "when and how much is written back"),
    ("sysctl.net.core.", "queues and buffers of the network"),
    ("sysctl.net.ipv4.tcp_", "how TCP behaves"),
    ("net.", "another interface, or set up otherwise"),
    ("kernel.osrelease", "another kernel"),
    ("command_line.", "the kernel's command line"),
    ("configuration.CONFIG_HZ", "how often the kernel looks at the clock"),
    ("configuration.CONFIG_PREEMPT", "how readily the kernel is interrupted"),
    ("configuration.CONFIG_DEBUG", "checks in the kernel cost"),
    ("sysctl.kernel.", "how the kernel behaves"),
];

/// Facts that differ, the worst suspects first, then by name.
pub fn compare(theirs: &Facts, ours: &Facts) -> Vec<Difference> {
    let names: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let differing = names.into_iter().filter(|name| theirs.get(*name) != ours.get(*name));
    let mut ranked: Vec<(usize, Difference)> = differing
        .map(|name| {
            let rank = SUSPECTS.iter().position(|(prefix, _)| name.starts_with(prefix));
            let why = rank.and_then(|rank| SUSPECTS.get(rank)).map(|(_, why)| *why);
            let difference = Difference {
                name: name.clone(),
                theirs: theirs.get(name).cloned(),
                ours: ours.get(name).cloned(),
                why,
            };
            (rank.unwrap_or(SUSPECTS.len()), difference)
        })
        .collect();
    ranked.sort_by(|(one, a), (other, b)| one.cmp(other).then_with(|| a.name.cmp(&b.name)));
    ranked.into_iter().map(|(_, difference)| difference).collect()
}
