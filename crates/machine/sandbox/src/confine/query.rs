//! The process that answers one question of somebody who asks over the network.
//!
//! It reads a volume, its cache and the sockets of recorders, and may start an indexer: it keeps
//! its user and its files. What it gives up is precedence, for a recorder comes first, and what it
//! could do to interfaces and the machine.

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

use super::indexer::{NICENESS, is_ended_first};
use super::{Notes, confine_service, recorder};
use crate::Handed;

/// What such a process may use.
#[derive(Clone, Copy, Debug)]
pub struct QueryLimits {
    /// Address space.
    pub memory_bytes: u64,
}

/// Puts this process behind everything that records, and bounds its memory. To be called before the
/// first byte of a volume is read.
pub fn confine_query(limits: QueryLimits, handed: &Handed) -> Notes {
    let mut notes = confine_service();
    recorder::prevent_dumps(&mut notes);
    if !is_ended_first() {
        notes.push("a query is not the first to end when memory is short".to_owned());
    }
    if nice(NICENESS).is_err() {
        notes.push("a query has the same priority as a recorder".to_owned());
    }
    // An indexer that it starts has a limit of its own, which may be higher.
    let maximum = getrlimit(Resource::As).maximum;
    let current = maximum.map_or(limits.memory_bytes, |most| most.min(limits.memory_bytes));
    if setrlimit(Resource::As, Rlimit { current: Some(current), maximum }).is_err() {
        notes.push("a query may use as much memory as it likes: no limit can be set".to_owned());
    }
    if handed.end_with_parent().is_err() {
        notes.push("a query ends with its socket only".to_owned());
    }
    notes
}
