//! The machine that we run on.

use core::ops::ControlFlow;

use observe::budgets::{Budget, budgets};
use observe::facts::{facts, moving_facts};
use observe::{cgroups, processor_counters, space, tasks};
use units::number::between;
use units::{NANOS_PER_SECOND, Sleep};

use super::seen::{BudgetUse, MachineWatch, TaskUse};
use super::tasks::TaskTally;
use findings::nap;

/// Between two looks at all processes.
const LOOK_NS: i64 = NANOS_PER_SECOND;
/// A look takes at most one part in so many of the time: a thousand processes take ten
/// milliseconds.
const PARTS: i64 = 50;
/// Hundredths of the watch that a process waits for a processor before it is asked which ones it
/// may have.
const WAITS: u64 = 10;

/// Looks at this machine for so long, or until `go_on` says no, which is asked ten times a second.
pub fn watch(
    clock: &dyn Sleep,
    duration_ns: i64,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> MachineWatch {
    let (facts, groups) = (facts(), budgets());
    let mut tally = TaskTally::new(tasks::tasks());
    let (before, processors) = (moving_facts(), processor_counters());
    let begun_ns = clock.boottime_ns();
    let end_ns = begun_ns.saturating_add(duration_ns);
    let (mut is_over, mut pause_ns) = (false, LOOK_NS);
    while !is_over && clock.boottime_ns() < end_ns {
        let left_ns = end_ns.saturating_sub(clock.boottime_ns());
        nap(clock, pause_ns.min(left_ns), &mut || {
            let flow = go_on();
            is_over = flow.is_break();
            flow
        });
        let look_ns = clock.boottime_ns();
        tally.take(tasks::tasks());
        let cost_ns = clock.boottime_ns().saturating_sub(look_ns);
        pause_ns = LOOK_NS.max(cost_ns.saturating_mul(PARTS));
    }
    let ns = between(begun_ns, clock.boottime_ns());
    let after = moving_facts();
    let processors = processors.zip(processor_counters());
    let mut tasks = tally.finish();
    for (number, seen) in &mut tasks {
        ask(*number, seen, ns);
    }
    MachineWatch {
        facts,
        before,
        after,
        ns,
        processors,
        tasks,
        budgets: used(groups),
        spaces: space::spaces(),
        descriptors: tasks::out_of_descriptors(),
        page_bytes: host::page_bytes(),
    }
}

/// Asks which processors a process may have, if it waits for them.
fn ask(number: u32, seen: &mut TaskUse, ns: u64) {
    if seen.queued_ns.saturating_mul(100) >= ns.saturating_mul(WAITS) {
        seen.allowed = tasks::allowed(number).unwrap_or_default();
    }
}

/// Groups that were there at the beginning and still are.
fn used(before: Vec<Budget>) -> Vec<BudgetUse> {
    let mut after = budgets();
    let use_of = |before: Budget| {
        let at = after.iter().position(|group| group.folder == before.folder)?;
        let after = after.swap_remove(at);
        let members = cgroups::processes_of(&after.folder);
        Some(BudgetUse { before, after, members })
    };
    before.into_iter().filter_map(use_of).collect()
}
