//! The process that parses packets from untrusted senders.

use std::fs;

use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Uid, geteuid, nice, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CapabilitySet, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::Notes;
use super::capabilities::{Capability, NOBODY};
use super::files::{self, Left};
use super::filter::{self, Who};
use super::threads::{drop_bounding_set, give_up};
use crate::Handed;

/// Under the recorder, whose packets do not wait.
pub(super) const NICENESS: i32 = 10;
/// Ended first when memory is short: `proc_pid_oom_score_adj(5)`.
pub(super) const ENDED_FIRST: &str = "1000";
pub(super) const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// What it is handed, and a few besides.
const DESCRIPTORS: u64 = 64;

/// What an indexer may use.
#[derive(Clone, Copy, Debug)]
pub struct IndexerLimits {
    /// Address space, with what it maps of the recorder's.
    pub memory_bytes: u64,
}

/// Confines this process to reading and answering at what it was handed.
///
/// What is left: its memory, threads, the clock, and the descriptors that are open. To be called
/// once, on the only thread, before the first byte of a packet is looked at.
pub fn confine_indexer(limits: IndexerLimits, handed: &Handed) -> Notes {
    let mut notes = Notes::new();
    let tasks = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert_eq!(tasks, 1, "an indexer is confined before it has threads");
    rustix::thread::set_name(c"indexer").unwrap_or_default();
    if !is_ended_first() {
        notes.push("the indexer is not the first to end when memory is short".to_owned());
    }
    if nice(NICENESS).is_err() {
        notes.push("the indexer has the same priority as the recorder".to_owned());
    }
    limit(limits, &mut notes);
    let ruleset = files::ruleset(&Left::default()).ok().flatten();
    // While it still may.
    drop_bounding_set(0);
    become_nobody(&mut notes);
    let given_up = give_up(CapabilitySet::empty(), ruleset.as_ref());
    given_up.note(ruleset.is_some(), "indexer", &mut notes);
    // A change of user undid it.
    if handed.end_with_parent().is_err() {
        notes.push("the indexer ends with its socket only".to_owned());
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or_default();
    if let Err(error) = filter::install(Who::Indexer) {
        notes.push(format!("the indexer may make every system call: {error}"));
    }
    notes
}

/// Says so, unless its launcher did already.
pub(super) fn is_ended_first() -> bool {
    let is_so = fs::read_to_string(OOM_SCORE).is_ok_and(|score| score.trim() == ENDED_FIRST);
    is_so || fs::write(OOM_SCORE, ENDED_FIRST).is_ok()
}

fn limit(limits: IndexerLimits, notes: &mut Notes) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let resources = [
        (Resource::As, limits.memory_bytes, "as much memory as it likes"),
        (Resource::Core, 0, "a core file with packets when it crashes"),
        (Resource::Fsize, 0, "files that grow"),
        (Resource::Nofile, DESCRIPTORS, "as many descriptors as it likes"),
    ];
    for (resource, most, what) in resources {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        if setrlimit(resource, limit).is_err() {
            notes.push(format!("the indexer may have {what}: the limit cannot be set"));
        }
    }
}

/// Root becomes `nobody`, if the process above can still end it then.
fn become_nobody(notes: &mut Notes) {
    if !geteuid().is_root() {
        return;
    }
    if !Capability::ChangeUser.is_held() || !Capability::Kill.is_held() {
        notes.push(
            "the indexer stays root without capabilities: CAP_SETUID, CAP_SETGID or CAP_KILL is \
             missing"
                .to_owned(),
        );
        return;
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    // One thread is all there is.
    let done = set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user));
    if let Err(errno) = done {
        notes.push(format!("the indexer stays root without capabilities: {errno}"));
    }
}
