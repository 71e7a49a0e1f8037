//! Packets are dropped by strict reverse path filtering.
//!
//! Mechanism: with `rp_filter` 1 a packet is dropped unless the way to its sender leaves by the
//! interface that it came in by (RFC 3704, 2.2); where ways are not the same in both directions
//! that drops answers. Packets with false senders are dropped so as well, which is its purpose: by
//! itself it is a note, and the cause of what gets no answer where as many were dropped.

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::NamespaceHistory;
use findings::{Finding, Remedy, Severity};

const COUNTER: &str = "TcpExtIPReversePathFilter";
/// Fewer are no finding.
const DROPS_MIN: u64 = 3;

/// Packets that were dropped so in a namespace while we looked; 0 where there were few.
pub(in super::super) fn dropped(machine: &Machine<'_>, inode: u64) -> u64 {
    let history = machine.watch.namespaces.get(&inode);
    let dropped = history.map_or(0, |history| history.gained(COUNTER));
    if dropped < DROPS_MIN { 0 } else { dropped }
}

pub(in super::super) fn remedies(machine: &Machine<'_>, inode: u64) -> Vec<Remedy> {
    let history = machine.watch.namespaces.get(&inode);
    let enter = history.map_or("", |history| &*history.place.enter);
    let what = "accept packets from any sender that some interface leads to (loose filtering)";
    let see = Remedy {
        what: "see which: each is logged with its sender and interface".to_owned(),
        now: vec!["sysctl -w net.ipv4.conf.all.log_martians=1".to_owned()],
        for_good: Vec::new(),
    };
    vec![
        Remedy::by_hand(
            "have answers come by the interface that questions leave by: compare ip route get \
             ADDRESS at both sides",
        ),
        // The larger one of `all` and the interface's own counts.
        Remedy::sysctl(what, "net.ipv4.conf.all.rp_filter", "2").entered_by(enter),
        see.entered_by(enter),
    ]
}

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let of = |(inode, history): (&u64, &NamespaceHistory)| {
        let dropped = dropped(machine, *inode);
        let finding = Finding {
            kind: "net.reverse_path",
            severity: Severity::Note,
            reach: usize::try_from(dropped).unwrap_or(usize::MAX),
            what: format!("reverse path filtering drops packets{}", machine.inside(*inode)),
            evidence: vec![format!(
                "{COUNTER}: {dropped} meanwhile, {} since {} began",
                history.total(COUNTER),
                history.place.name
            )],
            cause: "They came in by an interface that the way to their sender does not leave by. \
                    Either their sender is false, and dropping them is right, or ways are not the \
                    same in both directions, and answers are lost."
                .to_owned(),
            remedies: remedies(machine, *inode),
        };
        let path = Path { namespaces: [*inode].into(), ..Path::default() };
        (dropped > 0).then(|| Found::new(finding, path))
    };
    machine.watch.namespaces.iter().filter_map(of).collect()
}
