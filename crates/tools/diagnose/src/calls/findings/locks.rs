//! Locks: of memory and of files.

use ::calls::{CallWatch, LockSeen, Reason, Target, Use, UseKey};

use super::measure::{is_share, long, reach, slowest, waited, wakers};
use findings::words::plural;
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(watch: &CallWatch) -> Vec<Finding> {
    let memory = watch.locks.iter().filter_map(|(key, seen)| of_memory(watch, *key, seen));
    let files = watch.uses.iter().filter_map(|(key, seen)| of_file(watch, key, seen));
    memory.chain(files).collect()
}

/// A word of memory counts as a lock by its value, or because those who wait there let others on.
fn of_memory(
    watch: &CallWatch,
    (process, address): (u32, u64),
    seen: &LockSeen,
) -> Option<Finding> {
    let life_ns = watch.life_ns(process);
    // Several threads that wait may wait for longer than the process lives.
    let each_ns = seen.waited_ns / u64::try_from(seen.waiters.len()).unwrap_or(1).max(1);
    if !seen.is_lock() || !is_share(each_ns, life_ns, 20) {
        return None;
    }
    let how = if seen.is_mutex {
        "its value marks a mutex that others wait for"
    } else {
        "threads that wait there let others on later, as with a lock"
    };
    let mut evidence = vec![
        format!(
            "{} by {}, {} each in the mean",
            plural(usize::try_from(seen.waits).unwrap_or(usize::MAX), "wait"),
            plural(seen.waiters.len(), "thread"),
            long(seen.waited_ns / seen.waits.max(1))
        ),
        format!("the word at {address:#x}: {how}"),
    ];
    evidence.extend(wakers(&seen.woken_by));
    Some(Finding {
        kind: "calls.lock",
        severity: Severity::Warning,
        reach: reach(seen.waited_ns),
        what: format!(
            "threads of {} waited {} for a lock of theirs, in {}",
            watch.process_label(process),
            long(seen.waited_ns),
            long(life_ns)
        ),
        evidence,
        cause: "One thread holds the lock while it does something long, and the others do nothing \
                meanwhile."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(
                "hold it for less: no input and output, and no other waits, while it is held",
            ),
            Remedy::by_hand("several locks, each for a part of the data"),
            Remedy::by_hand("wirespool top, tab cpu, shows in which functions its holder works"),
        ],
    })
}

/// Who has a lock of a file, as far as those who ended the waits say it.
fn holder(process: u32, seen: &Use) -> &'static str {
    let is_own = |woken: &::calls::Woken| woken.process == process;
    match (seen.woken_by.iter().any(is_own), seen.woken_by.iter().all(is_own)) {
        (true, true) => {
            "Another thread of the same program has locked the file: it opened the file once more, \
             and locks by flock belong to what was opened. Who waits is let on when that one \
             unlocks or closes it."
        }
        (true, false) => {
            "Other threads of the same program, and other processes, have locked the file; who \
             waits is let on when they unlock or close it."
        }
        _ => {
            "Another process has locked the file; who waits is let on when that one unlocks or \
             closes it."
        }
    }
}

fn of_file(watch: &CallWatch, key: &UseKey, seen: &Use) -> Option<Finding> {
    let name = *watch.names.get(&key.number)?;
    let life_ns = watch.life_ns(key.process);
    let is_lock = matches!(name, "flock" | "fcntl");
    if !is_lock || !is_share(seen.waited_ns, life_ns, 20) {
        return None;
    }
    let target = watch.target(key).map_or_else(|| "a file".to_owned(), Target::to_string);
    let mut evidence = vec![format!(
        "{} of {name}, {} waiting in all",
        plural(usize::try_from(seen.count).unwrap_or(usize::MAX), "call"),
        long(seen.waited_ns)
    )];
    let is_it = |call: &::calls::SlowCall| {
        call.process == key.process
            && call.call == name
            && call.reasons.contains_key(&Reason::FileLock)
    };
    evidence.extend(slowest(watch, is_it));
    evidence.extend(wakers(&seen.woken_by));
    Some(Finding {
        kind: "calls.file_lock",
        severity: Severity::Warning,
        reach: reach(seen.waited_ns),
        what: format!(
            "{} for the lock of {target}",
            waited(watch, key.process, (seen.waited_ns, seen.threads.len()))
        ),
        evidence,
        cause: holder(key.process, seen).to_owned(),
        remedies: vec![
            Remedy {
                what: "see who has it".to_owned(),
                now: vec!["lslocks".to_owned()],
                for_good: Vec::new(),
            },
            Remedy::by_hand("hold it for less, or lock parts of the file (fcntl ranges)"),
        ],
    })
}
