//! A link runs at half duplex.
//!
//! Mechanism: at half duplex only one side may send at a time. Where the other side runs at full
//! duplex it sends meanwhile, each collision costs a frame, and TCP takes that for a full network.
//! Refuted by an interface that is down or has nothing to collide with.

use network::paths::{Duplex, LinkMode};

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::{LinkHistory, NamespaceHistory};
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let all = machine.watch.namespaces.iter();
    let of = |(inode, history): (&u64, &NamespaceHistory)| -> Vec<Found> {
        let links = history.links.values().filter(|link| link.is_up());
        links.filter_map(|link| of_link(machine, (*inode, history), link)).collect()
    };
    all.flat_map(of).collect()
}

fn of_link(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    link: &LinkHistory,
) -> Option<Found> {
    let LinkMode { mbit_per_s, duplex } = link.last.mode?;
    if duplex != Some(Duplex::Half) {
        return None;
    }
    let (name, gained) = (&link.last.name, link.gained());
    let speed = mbit_per_s.map_or_else(String::new, |speed| format!(" and {speed} Mbit/s"));
    let finding = Finding {
        kind: "net.duplex",
        severity: Severity::Warning,
        reach: machine.connections(inode, link.last.ifindex),
        what: format!("{name} runs at half duplex{}", machine.inside(inode)),
        evidence: vec![
            format!("its driver reports half duplex{speed}"),
            format!(
                "{} collisions, {} of them late, {} wrong checksums meanwhile",
                gained.collisions, gained.late_collisions, gained.checksum_errors
            ),
        ],
        cause: "The two sides have not agreed on full duplex: one has autonegotiation switched \
                off, or the port, cable or card cannot do better. Only one of them can send at a \
                time, and where the other one believes in full duplex frames collide and are lost."
            .to_owned(),
        remedies: remedies(history, name),
    };
    Some(Found::new(finding, Path::of_interface(inode, link.last.ifindex)))
}

fn remedies(history: &NamespaceHistory, name: &str) -> Vec<Remedy> {
    let negotiate = Remedy {
        what: "let both sides negotiate, here and at the port of the switch".to_owned(),
        now: vec![format!("ethtool -s {name} autoneg on")],
        for_good: Vec::new(),
    };
    vec![
        negotiate.entered_by(&history.place.enter),
        Remedy::by_hand("another cable: gigabit takes all four pairs"),
    ]
}
