//! What is wrong with sockets and with what their packets go through: each file one kind of
//! finding, those of connections over the same groups of connections that should be alike.
//!
//! Each states the mechanism that it relies on and what would refute it.

mod attempts;
mod ends;
mod explain;
mod flow;
mod group;
mod machine;
mod net;
mod not_closed;
mod ports;
mod queue;
mod resent;

use super::watch::{Key, Watch};
use findings::Found;
use machine::Machine;

/// All findings, in no order.
pub(super) fn all(watch: &Watch) -> Vec<Found> {
    let machine = &Machine::new(watch);
    let groups = group::of(watch);
    let mut found = queue::findings(machine);
    found.extend(net::findings(machine));
    found.extend(attempts::findings(machine));
    found.extend(ports::findings(machine));
    found.extend(not_closed::findings(machine));
    found.extend(resent::findings(machine, &flow::in_black_holes(machine, &groups)));
    let told = group::came_here(&groups);
    found.extend(groups.iter().flat_map(|group| flow::findings(machine, group, &told)));
    explain::explained(machine, found)
}

/// Of connections that should be alike and are not, a slow one and a fast one.
pub(super) fn contrasts(watch: &Watch) -> Vec<(Key, Key)> {
    let machine = &Machine::new(watch);
    let groups = group::of(watch);
    groups.iter().flat_map(|group| flow::contrasts(machine, group)).collect()
}
