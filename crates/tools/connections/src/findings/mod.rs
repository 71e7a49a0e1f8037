//! What is wrong with sockets and with what their packets go through: each file one kind of
//! finding, those of connections over the same groups of connections that should be alike.
//!
//! Each states the mechanism that it relies on and what would refute it.

mod app_limited;
mod attempts;
mod black_hole;
mod bloat;
mod delayed_ack;
mod explain;
mod group;
mod limits;
mod loss;
mod machine;
mod modes;
mod net;
mod options;
mod ports;
mod queue;
mod window;

use super::watch::{Key, Watch};
use findings::Finding;
use machine::Machine;

/// All findings, in no order.
pub(super) fn all(watch: &Watch) -> Vec<Finding> {
    let machine = &Machine::new(watch);
    let groups = group::of(watch);
    let mut found = queue::findings(machine);
    found.extend(net::findings(machine));
    found.extend(attempts::findings(machine));
    found.extend(ports::findings(machine));
    found.extend(loss::findings(machine));
    let told = group::came_here(&groups);
    for group in &groups {
        found.extend(options::finding(machine, group, &told));
        found.extend(window::finding(machine, group));
        found.extend(modes::finding(machine, group));
        found.extend(limits::findings(machine, group));
        found.extend(black_hole::finding(machine, group));
        found.extend(delayed_ack::finding(machine, group));
        found.extend(bloat::finding(machine, group));
        found.extend(app_limited::finding(machine, group));
    }
    explain::explained(machine, found)
}

/// Of connections that should be alike and are not, a slow one and a fast one.
pub(super) fn contrasts(watch: &Watch) -> Vec<(Key, Key)> {
    let machine = &Machine::new(watch);
    let groups = group::of(watch);
    let pairs =
        groups.iter().flat_map(|group| [modes::pair(machine, group), window::pair(machine, group)]);
    pairs.flatten().collect()
}
