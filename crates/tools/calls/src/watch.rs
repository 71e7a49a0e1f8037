//! Listens for a while.

use core::ops::ControlFlow;

use units::{NANOS_PER_SECOND, Sleep};

use crate::follow::{Follower, Wanted};
use crate::machine::Machine;
use crate::seen::CallWatch;
use crate::target::Target;

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
