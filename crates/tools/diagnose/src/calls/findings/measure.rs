//! When a time matters, and what shows it.

use ::calls::{CallWatch, UsesOf, Woken};

use findings::words::{some, time};

/// The least time that is worth a word.
const LEAST_NS: u64 = 100_000_000;

/// Whether a time is a part of a process's or a thread's life that matters: so many hundredths.
pub(super) fn is_share(ns: u64, of_ns: u64, hundredths: u64) -> bool {
    let is_part = u128::from(ns) * 100 >= u128::from(of_ns.max(1)) * u128::from(hundredths);
    ns >= LEAST_NS && is_part
}

/// Findings are ranked by the time that they cost, in milliseconds.
pub(super) fn reach(ns: u64) -> usize {
    usize::try_from(ns / 1_000_000).unwrap_or(usize::MAX)
}

/// `3.1 s`, `120 ms`.
pub(super) fn long(ns: u64) -> String {
    match ns {
        0..1_000_000_000 => time(ns),
        ns => format!("{:.1} s", core::time::Duration::from_nanos(ns).as_secs_f64()),
    }
}

/// `reader (process 7) waited 3.1 s of 5.0 s`, and of several threads, which may wait at the same
/// time, `8 threads of pool (process 9) waited 21 s together, in 5.0 s,`.
pub(super) fn waited(watch: &CallWatch, process: u32, (ns, threads): (u64, usize)) -> String {
    let (who, life) = (watch.process_label(process), long(watch.life_ns(process)));
    if threads > 1 {
        format!("{threads} threads of {who} waited {} together, in {life},", long(ns))
    } else {
        format!("{who} waited {} of {life}", long(ns))
    }
}

/// The longest calls of this kind, in words.
pub(super) fn slowest(
    watch: &CallWatch,
    is_it: impl Fn(&::calls::SlowCall) -> bool,
) -> Option<String> {
    let call = watch.slowest.iter().find(|call| is_it(call))?;
    Some(format!("the longest: {call}, {}", long(call.ns)))
}

/// Who ended the waits, in words.
pub(super) fn wakers(woken_by: &[Woken]) -> Option<String> {
    let words = some(woken_by.iter().map(Woken::to_string));
    (!woken_by.is_empty()).then(|| format!("the waits were ended by {words}"))
}

/// The disk of what was used, in words.
pub(super) fn disk_of(watch: &CallWatch, of: &UsesOf) -> Option<String> {
    let disk = watch.disks.get(&of.target?)?.as_ref()?;
    (*disk != of.target_name(watch)).then(|| format!("it lies on {disk}"))
}

/// The kind of file system of what was used, in words.
pub(super) fn kind_of(watch: &CallWatch, of: &UsesOf) -> Option<String> {
    let kind = watch.filesystems.get(&of.target?)?;
    Some(format!("the file system is {kind}"))
}
