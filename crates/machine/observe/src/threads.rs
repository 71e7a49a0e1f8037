//! What the threads of another process do.

use std::collections::BTreeMap;

use host::processes::{Scheduled, name, threads};

/// Nanoseconds of processor time by thread number, with its name; empty of a process that has
/// ended.
pub fn thread_times(process: u32) -> BTreeMap<u32, (String, u64)> {
    // Threads that end meanwhile are not there.
    let thread = |number| Some((number, (name(number)?, Scheduled::of(number)?.ran_ns)));
    threads(process).into_iter().filter_map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_more_time_than_before() {
        let process = std::process::id();
        let own = || {
            let times = thread_times(process);
            let number = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            times.get(&number).map(|(_, ns)| *ns).unwrap()
        };
        let before = own();
        let sum = (0..20_000_000_u64).fold(0, |sum: u64, one| core::hint::black_box(sum ^ one));
        core::hint::black_box(sum);
        assert!(own() > before);
        assert!(thread_times(u32::MAX).is_empty());
    }
}
