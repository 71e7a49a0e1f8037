//! The connection table of netfilter is full: packets of new connections are dropped without a
//! word (`nf_conntrack: table full, dropping packet`).
//!
//! Mechanism: `nf_conntrack_in` counts each such packet as `drop`, and each entry that had to go
//! for a new one as `early_drop`. A table that is full and drops nothing is only about to be.

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::{ConntrackHistory, NamespaceHistory};
use findings::words::percent;
use findings::{Finding, Remedy, Severity};

/// Parts of a hundred from which the table is nearly full.
const NEARLY: u64 = 90;
/// Without as many the drops have another reason than a full table.
const FULL: u64 = 80;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let of = |(inode, history): (&u64, &NamespaceHistory)| {
        let finding = finding(machine, *inode, history.conntrack.as_ref()?)?;
        let path = Path { namespaces: [*inode].into(), ..Path::default() };
        Some(Found::new(finding, path))
    };
    machine.watch.namespaces.iter().filter_map(of).collect()
}

fn finding(machine: &Machine<'_>, inode: u64, table: &ConntrackHistory) -> Option<Finding> {
    let (count, max) = (table.count_max, table.last.max);
    let is_at_least =
        |share: u64| max > 0 && count.saturating_mul(100) >= max.saturating_mul(share);
    let (drops, early) = (table.gained("drop"), table.gained("early_drop"));
    let is_dropping = drops.saturating_add(early) > 0 && is_at_least(FULL);
    if !is_dropping && !is_at_least(NEARLY) {
        return None;
    }
    let inside = machine.inside(inode);
    let severity = if is_dropping { Severity::Problem } else { Severity::Warning };
    let what = if is_dropping {
        format!("the connection table of netfilter{inside} is full and drops packets")
    } else {
        format!("the connection table of netfilter{inside} is nearly full")
    };
    Some(Finding {
        kind: "net.conntrack",
        severity,
        reach: usize::try_from(drops.saturating_add(early)).unwrap_or(usize::MAX).max(1),
        what,
        evidence: vec![
            format!(
                "{count} connections of at most {max} ({}): nf_conntrack_count, nf_conntrack_max",
                percent(count, max)
            ),
            format!("{drops} packets dropped, {early} entries thrown out for others meanwhile"),
        ],
        cause: "Each connection takes an entry until its timeout, also after its end. Where there \
                is none left, the kernel drops the packets of new connections, and their SYNs are \
                sent again after a second."
            .to_owned(),
        remedies: remedies(max),
    })
}

fn remedies(max: u64) -> Vec<Remedy> {
    let wanted = max.saturating_mul(4).max(65_536).to_string();
    // There is one for all namespaces, which cannot be set in any but the first
    // (`nf_conntrack_standalone_init_sysctl`).
    let what = "allow more entries, outside of all network namespaces";
    vec![
        Remedy::sysctl(what, "net.netfilter.nf_conntrack_max", &wanted),
        Remedy::by_hand(
            "do not track what needs no tracking (a rule `notrack`), and see who opens so many \
             connections: conntrack -L, wirespool top",
        ),
    ]
}
