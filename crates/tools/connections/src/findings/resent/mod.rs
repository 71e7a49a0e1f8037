//! What is sent again: some segments to a host, or the same ones until nothing moves any more.

mod loss;
pub(super) mod stalled;

use std::collections::BTreeSet;

use super::explain::Found;
use super::machine::Machine;
use crate::watch::Key;

/// Both, but for connections that have a finding of their own.
pub(super) fn findings(machine: &Machine<'_>, told: &BTreeSet<Key>) -> Vec<Found> {
    let mut found = loss::findings(machine);
    found.extend(stalled::findings(machine, told));
    found
}
