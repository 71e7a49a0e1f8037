//! Who has the processors, and who waits for one.

use super::seen::MachineWatch;
use super::seen::TaskUse;
use findings::words::{percent, process, some};
use findings::{Share, Subject, Subjects};

/// Names that are shown.
const SHOWN: usize = 3;
/// Hundredths of one processor: less is not worth a name.
const SHARE: u64 = 5;
/// Hundredths of the watch that a process waits at least.
const WAITS: u64 = 10;

/// Hundredths of the processors' time in which they are busy at least.
const BUSY: u64 = 10;

/// Who has the processors, and who waits for them, where processors have something to do.
pub(super) fn of_busy(watch: &MachineWatch) -> Vec<Share> {
    let is_busy = super::processors::idle(watch).is_some_and(|idle| idle <= 100 - BUSY);
    if is_busy { of_processors(watch) } else { Vec::new() }
}

/// Who has the processors, and who waits for them.
pub(super) fn of_processors(watch: &MachineWatch) -> Vec<Share> {
    let share = |of, verb: &str, (names, about): (Vec<String>, Subjects)| {
        let what = format!("{verb} {}", some(names.into_iter()));
        (!what.ends_with(' ')).then_some(Share { of, what, finding: None, about })
    };
    let mut have = most(watch, SHARE, |seen| seen.ran_ns);
    have.0
        .extend(gone(watch).map(|share| format!("programs that lived less than a second {share}")));
    let wait = most(watch, WAITS, |seen| seen.queued_ns);
    let parts = [
        share("processors", "the processors have", have),
        share("processor waits", "for them wait", wait),
    ];
    parts.into_iter().flatten().collect()
}

/// Those that have most, each with its share of one processor or of the watch.
fn most(watch: &MachineWatch, least: u64, of: fn(&TaskUse) -> u64) -> (Vec<String>, Subjects) {
    let is_enough =
        |seen: &TaskUse| of(seen).saturating_mul(100) >= watch.ns.max(1).saturating_mul(least);
    let mut found: Vec<_> = watch.tasks.iter().filter(|(_, seen)| is_enough(seen)).collect();
    found.sort_by_key(|(_, seen)| core::cmp::Reverse(of(seen)));
    let more = found.len().saturating_sub(SHOWN);
    let mut names: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|(number, seen)| {
            format!("{} {}", process(&seen.name, **number), percent(of(seen), watch.ns))
        })
        .collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let shown = found.iter().take(SHOWN).map(|(number, _)| Subject::Process(**number));
    (names, shown.collect())
}

/// What processors did for processes that no look has seen, as a share of one of them.
fn gone(watch: &MachineWatch) -> Option<String> {
    let (before, after) = watch.processors.as_ref()?;
    let times = after.all.since(&before.all);
    let busy_ns = times.busy_ns().saturating_sub(times.irq_ns + times.softirq_ns);
    let seen = watch.tasks.values().map(|seen| seen.ran_ns).fold(0, u64::saturating_add);
    let unseen_ns = busy_ns.saturating_sub(seen);
    // Ticks are coarse: what is less than a quarter of a processor may be rounding.
    (unseen_ns.saturating_mul(4) >= watch.ns).then(|| percent(unseen_ns, watch.ns))
}
