//! Listens for a while.

use core::ops::ControlFlow;
use std::collections::BTreeSet;
use std::path::Path;

use observe::tracepoints::calls::{CallEvent, NowIn};
use units::{NANOS_PER_SECOND, Sleep};

use crate::follow::{Follower, Wanted};
use crate::seen::{CallWatch, Tracing};
use crate::target::{Ends, Target};

/// What is asked of a machine.
pub trait Machine {
    /// What has happened since the last time, in order; with `is_last` all there is.
    fn events(&mut self, is_last: bool, into: &mut Vec<CallEvent>);
    /// How well calls are traced.
    fn tracing(&self) -> Tracing;
    /// Why paths and addresses are not known.
    fn no_pointers(&self) -> Option<String>;
    /// Whose calls are wanted; `None` is everybody's but our own.
    fn whom(&self) -> Option<BTreeSet<u32>>;
    /// The program that was started to be watched, which runs our own code at first.
    fn started(&self) -> Option<u32>;
    /// What wanted threads are in: process, thread, call.
    fn now_in(&mut self) -> Vec<(u32, u32, NowIn)>;
    /// What a descriptor of a process leads to, as its link below `/proc` says.
    fn link(&mut self, process: u32, descriptor: u32) -> Option<String>;
    /// The ends of a socket of IP by its number, in the namespace of a process.
    fn ends(&mut self, process: u32, inode: u32) -> Option<Ends>;
    /// The name of a process or a thread now.
    fn name(&mut self, number: u32) -> Option<String>;
    /// A process or thread has ended.
    fn forget(&mut self, number: u32);
    /// The kind of the file system that a path is on.
    fn filesystem(&mut self, path: &Path) -> Option<String>;
    /// Whether nobody is left of those whose calls were wanted in the beginning.
    fn is_over(&self) -> bool;
    /// Now, by `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;
    /// How far the time of day is ahead of that.
    fn realtime_ahead_ns(&self) -> i64;
    /// Processor time of our own process.
    fn own_ns(&self) -> u64;
    /// Our own process.
    fn own(&self) -> u32;
    /// Processors that there are.
    fn processors(&self) -> usize;
}

/// Between two looks into the rings.
const NAP_NS: i64 = NANOS_PER_SECOND / 50;
/// Looks between two questions whether anybody is left.
const ROUND: u64 = 25;
/// Files whose file systems are asked for in the end.
const FILES_ASKED: usize = 256;

/// Listens for so long, or until `go_on` says no, which is asked fifty times a second.
pub fn watch(
    machine: &mut dyn Machine,
    clock: &dyn Sleep,
    duration_ns: i64,
    go_on: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> CallWatch {
    let (begun_ns, own_begun_ns) = (machine.now_ns(), machine.own_ns());
    let deadline_ns = clock.boottime_ns().saturating_add(duration_ns);
    let wanted = match machine.whom() {
        Some(processes) => Wanted::These(processes),
        None => Wanted::AllBut(machine.own()),
    };
    let (started, now_in) = (machine.started(), machine.now_in());
    let mut follower = Follower::new(machine, wanted, begun_ns);
    match started {
        Some(process) => follower.starts(process),
        None => now_in
            .into_iter()
            .for_each(|(process, thread, now)| follower.waits((process, thread), now)),
    }
    let (mut events, mut count) = (Vec::new(), 0_u64);
    for look in 1_u64.. {
        follower.machine.events(false, &mut events);
        count += units::number::to_u64(events.len());
        events.drain(..).for_each(|event| follower.take(event));
        let is_over = look % ROUND == 0 && follower.has_nobody() && follower.machine.is_over();
        if is_over || clock.boottime_ns() >= deadline_ns || go_on(count).is_break() {
            break;
        }
        clock.sleep_until(clock.boottime_ns().saturating_add(NAP_NS).min(deadline_ns));
    }
    let end_ns = follower.machine.now_ns();
    follower.machine.events(true, &mut events);
    events.drain(..).for_each(|event| follower.take(event));
    let mut watch = follower.finish(end_ns);
    watch.tracing = machine.tracing();
    watch.no_pointers = machine.no_pointers();
    watch.processors = machine.processors();
    watch.own_ns = machine.own_ns().saturating_sub(own_begun_ns);
    name_filesystems(machine, &mut watch);
    watch
}

/// Those of the files that were waited for longest.
fn name_filesystems(machine: &mut dyn Machine, watch: &mut CallWatch) {
    let mut waited: Vec<(u64, usize)> = watch
        .uses
        .iter()
        .filter_map(|(key, seen)| Some((seen.waited_ns, key.target?)))
        .filter(|(_, place)| watch.targets.get(*place).is_some_and(Target::is_file))
        .collect();
    waited.sort_unstable_by(|one, other| other.cmp(one));
    for (_, place) in waited.into_iter().take(FILES_ASKED) {
        if let Some(Target::File(path)) = watch.targets.get(place)
            && !watch.filesystems.contains_key(&place)
            && let Some(kind) = machine.filesystem(path)
        {
            watch.filesystems.insert(place, kind);
        }
    }
}
