//! What is wrong with connections that should be alike: each file one kind of finding over a group.

mod app_limited;
mod bloat;
mod limits;
mod modes;
mod options;
mod segments;
mod unread;
mod window;

pub(super) use segments::in_black_holes;

use crate::findings::explain::Found;
use crate::findings::group::{Group, Told};
use crate::findings::machine::Machine;
use crate::watch::Key;

/// All of a group, in no order.
pub(super) fn findings(machine: &Machine<'_>, group: &Group<'_>, told: &Told) -> Vec<Found> {
    let mut found = Vec::new();
    found.extend(options::finding(machine, group, told));
    found.extend(window::finding(machine, group));
    found.extend(modes::finding(machine, group));
    found.extend(limits::findings(machine, group));
    found.extend(unread::findings(machine, group));
    found.extend(segments::findings(machine, group));
    found.extend(bloat::finding(machine, group));
    found.extend(app_limited::finding(machine, group));
    found
}

/// A slow and a fast one, where a group has both.
pub(super) fn contrasts(machine: &Machine<'_>, group: &Group<'_>) -> Vec<(Key, Key)> {
    let pairs = [modes::pair(machine, group), window::pair(machine, group)];
    pairs.into_iter().flatten().collect()
}
