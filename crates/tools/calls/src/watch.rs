//! Listens for a while.

use core::cmp::Reverse;
use core::ops::ControlFlow;
use std::collections::BTreeSet;

use observe::budgets::Budget;
use units::{NANOS_PER_SECOND, Sleep};

use crate::follow::{Follower, Wanted};
use crate::machine::Machine;
use crate::seen::{CallWatch, Quota};
use crate::shape::Work;
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
    let quotas = machine.quotas();
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
    watch.quotas = held_back(machine, quotas);
    name_filesystems(machine, &mut watch);
    watch
}

/// Groups that used up their quota in the periods of the watch.
fn held_back(machine: &mut dyn Machine, before: Vec<(Budget, BTreeSet<u32>)>) -> Vec<Quota> {
    let after = machine.quotas();
    // A program that we start is in our own group.
    let own = machine.started().map(|_| machine.own());
    let of = |(before, early): (Budget, BTreeSet<u32>)| {
        let (after, late) = after.iter().find(|(it, _)| it.folder == before.folder)?;
        let (was, is) = before.processors.zip(after.processors)?;
        let throttled = is.throttled.saturating_sub(was.throttled);
        let members: BTreeSet<u32> = early.into_iter().chain(late.iter().copied()).collect();
        let has_all = own.is_some_and(|own| members.contains(&own));
        (throttled > 0).then(|| Quota {
            group: before.name,
            file: before.folder.join(is.file),
            unlimited: is.unlimited,
            quota_us: is.quota_us,
            period_us: is.period_us,
            periods: is.periods.saturating_sub(was.periods),
            throttled,
            members: (!has_all).then_some(members),
        })
    };
    before.into_iter().filter_map(of).collect()
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
    let writes = watch.uses_for(Work::Write);
    let mut writes: Vec<_> = writes.iter().filter(|of| of.all.file_ns > 0).collect();
    writes.sort_by_key(|of| Reverse(of.all.file_ns));
    for of in writes.into_iter().take(FILES_ASKED) {
        if let Some((place, Target::File(path))) = of.target.zip(of.target(watch))
            && machine.writes_durably(of.process, path)
        {
            watch.durable.insert(place);
        }
    }
}
