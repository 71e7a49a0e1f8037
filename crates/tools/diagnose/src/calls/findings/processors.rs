//! Processors that others had.

use std::collections::BTreeMap;

use ::calls::{CallWatch, Quota, Reason, Taker, ThreadSeen};

use crate::quota::{self, UsedUp};

use super::measure::{is_share, long, reach};
use findings::words::{percent, plural, some};
use findings::{Finding, Remedy, Severity};

/// One for each process: that of its threads that queued longest.
pub(super) fn findings(watch: &CallWatch) -> Vec<Finding> {
    let mut worst: BTreeMap<u32, (u32, &ThreadSeen)> = BTreeMap::new();
    for (thread, seen) in &watch.threads {
        let entry = worst.entry(seen.process).or_insert((*thread, seen));
        let lost_ns =
            |of: &ThreadSeen| queued_ns(of) + of.reasons.get(&Reason::WakeUp).copied().unwrap_or(0);
        if lost_ns(seen) > lost_ns(entry.1) {
            *entry = (*thread, seen);
        }
    }
    // Where processors are short all have to queue: the worst are enough.
    let mut worst: Vec<_> = worst.into_iter().collect();
    worst.sort_by_key(|(_, (_, seen))| core::cmp::Reverse(queued_ns(seen)));
    let all = worst.into_iter().take(5).flat_map(|(process, of)| {
        let quota = quota(watch, process, of.1);
        let others = || [finding(watch, process, of), held_back(watch, process, of.1)];
        quota.map_or_else(others, |quota| [Some(quota), None]).into_iter().flatten()
    });
    all.collect()
}

/// Its group had used up its processor time. Neither an idle processor nor who had it says so, and
/// the group's own counter does: without periods in which it was stopped it is no quota.
fn quota(watch: &CallWatch, process: u32, seen: &ThreadSeen) -> Option<Finding> {
    let &Quota { ref group, ref file, unlimited, quota_us, period_us, periods, throttled, .. } =
        watch.quota_of(process)?;
    let quota = UsedUp { file, unlimited, quota_us, period_us, periods, stopped: throttled };
    let idle_ns = seen.reasons.get(&Reason::WakeUp).copied().unwrap_or(0);
    let ns = queued_ns(seen).saturating_add(idle_ns);
    if !quota.is_often() || !is_share(ns, seen.life_ns(), 20) {
        return None;
    }
    let ran = format!("it ran for {}", percent(seen.ran_ns, seen.life_ns()));
    Some(Finding {
        kind: "calls.held_back",
        severity: Severity::Warning,
        reach: reach(ns),
        what: format!(
            "{} could run and stood still for {} of {}: its cgroup {group} may use {} of one \
             processor",
            watch.process_label(process),
            long(ns),
            long(seen.life_ns()),
            percent(quota_us, period_us),
        ),
        evidence: quota.evidence().into_iter().chain([ran]).collect(),
        cause: format!("{}.", quota::CAUSE),
        remedies: quota.remedies(),
    })
}

/// It could run, and stood still while the processor was idle.
fn held_back(watch: &CallWatch, process: u32, seen: &ThreadSeen) -> Option<Finding> {
    let ns = seen.reasons.get(&Reason::WakeUp).copied().unwrap_or(0);
    is_share(ns, seen.life_ns(), 20).then(|| Finding {
        kind: "calls.held_back",
        severity: Severity::Warning,
        reach: reach(ns),
        what: format!(
            "{} could run and stood still for {} of {}, while its processor was idle",
            watch.process_label(process),
            long(ns),
            long(seen.life_ns())
        ),
        evidence: vec![format!("it ran for {}", percent(seen.ran_ns, seen.life_ns()))],
        cause: "The processor had to wake up first: it is virtual, and its host lets it wait; or \
                it sleeps deeply. Or a group above this machine's has used up its time, as with a \
                container's limit that is not seen from inside: no group that is seen has."
            .to_owned(),
        remedies: vec![
            Remedy {
                what: "see how deeply processors sleep, and how long they take to wake up"
                    .to_owned(),
                now: vec![
                    "grep . /sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency}".to_owned(),
                ],
                for_good: Vec::new(),
            },
            Remedy::by_hand("look at the host of this machine, or of the container"),
        ],
    })
}

fn queued_ns(seen: &ThreadSeen) -> u64 {
    seen.reasons.get(&Reason::Processor).copied().unwrap_or(0)
}

/// Named are those who had it for half of the time at least: few are counted, and the kernel may
/// have kept back whose turns there were.
fn who_had_it(takers: &[&Taker], queued_ns: u64) -> String {
    let told_ns: u64 = takers.iter().map(|taker| taker.ns).sum();
    let is_half = |ns: u64| ns >= queued_ns / 2;
    match takers.first() {
        Some(first) if is_half(first.ns) => {
            format!("{} (thread {}) had it", first.name, first.thread)
        }
        Some(first) if is_half(told_ns) => {
            format!("others had it, {} (thread {}) longest", first.name, first.thread)
        }
        _ => format!("who had it is known of {} only", long(told_ns)),
    }
}

fn finding(watch: &CallWatch, process: u32, (thread, seen): (u32, &ThreadSeen)) -> Option<Finding> {
    let queued_ns = queued_ns(seen);
    if !is_share(queued_ns, seen.life_ns(), 20) {
        return None;
    }
    let mut takers: Vec<_> = seen.takers.iter().collect();
    takers.sort_by_key(|taker| core::cmp::Reverse(taker.ns));
    let of_process = |thread: u32| watch.threads.get(&thread).map(|it| it.process);
    let words = takers.iter().map(|taker| {
        let whose = match of_process(taker.thread) {
            Some(owner) if owner == process => ", of the same process".to_owned(),
            Some(owner) if owner != taker.thread => format!(", of {}", watch.process_label(owner)),
            _ => String::new(),
        };
        format!("{} (thread {}{whose}): {}", taker.name, taker.thread, long(taker.ns))
    });
    let words: Vec<String> = words.collect();
    Some(Finding {
        kind: "calls.processor",
        severity: Severity::Warning,
        reach: reach(queued_ns),
        what: format!(
            "{} could run and had no processor for {} of {}: {}",
            watch.process_label(process),
            long(queued_ns),
            long(seen.life_ns()),
            who_had_it(&takers, queued_ns)
        ),
        evidence: vec![
            format!(
                "thread {thread} ran for {}, and queued for {}",
                percent(seen.ran_ns, seen.life_ns()),
                percent(queued_ns, seen.life_ns())
            ),
            format!("its processor was had by {}", some(words.into_iter())),
            format!("the machine has {}", plural(watch.processors, "processor")),
        ],
        cause:
            "More threads want to run than processors may run them: there are too many, or they \
                are kept to the same processors (taskset, cpusets)."
                .to_owned(),
        remedies: vec![
            Remedy {
                what: "see which processors it may use".to_owned(),
                now: vec![format!("taskset -cp {process}")],
                for_good: Vec::new(),
            },
            Remedy::by_hand(
                "move one of them to other processors, or give the other less (nice, \
                             CPUWeight= of its unit)",
            ),
            Remedy::by_hand("wirespool top, tab cpu, shows what they do with it"),
        ],
    })
}
