//! What the segments of a connection show: that full ones do not pass, that short ones wait, or
//! that all are tiny.

mod black_hole;
mod clamped;
mod corked;
mod delayed_ack;

use std::collections::BTreeSet;

use crate::findings::explain::Found;
use crate::findings::group::Group;
use crate::findings::machine::Machine;
use crate::watch::Key;

/// All of a group, in no order.
pub(super) fn findings(machine: &Machine<'_>, group: &Group<'_>) -> Vec<Found> {
    let all = [
        black_hole::finding(machine, group),
        clamped::finding(machine, group),
        corked::finding(machine, group),
        delayed_ack::finding(machine, group),
    ];
    all.into_iter().flatten().collect()
}

/// Connections that stand still because their full segments do not pass.
pub(in super::super) fn in_black_holes(
    machine: &Machine<'_>,
    groups: &[Group<'_>],
) -> BTreeSet<Key> {
    let of = |group| black_hole::stalled(machine, group).unwrap_or_default();
    groups.iter().flat_map(of).map(|member| member.key).collect()
}
