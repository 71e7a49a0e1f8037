//! Looking at the threads of a recorder that runs.

use core::cmp::Reverse;
use core::ops::ControlFlow;
use std::collections::BTreeMap;

use units::Sleep;

use super::{Functions, Thread, functions};
use findings::Unseen;
use findings::nap;
use vitals::profile::Profiler;

/// Processor time so far by number of the thread, with its name.
type Times = BTreeMap<u32, (String, u64)>;

/// Samples a second. A prime: what happens a hundred times a second is not always missed or always
/// met.
const HZ: u32 = 997;

/// The threads of a process while it is looked at, the busiest first, and the functions that they
/// work in: for so long, or until `go_on` says no, which is asked ten times a second.
pub fn watch(
    process: u32,
    clock: &dyn Sleep,
    duration_ns: i64,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> (Vec<Thread>, Functions) {
    let mut profiler = Profiler::open_for(HZ, process, clock);
    let before = observe::thread_times(process);
    let elapsed_ns = nap(clock, duration_ns, &mut || {
        if let Ok(profiler) = &mut profiler {
            profiler.look(clock);
        }
        go_on()
    });
    let threads = threads(&before, observe::thread_times(process), elapsed_ns);
    let functions = match &mut profiler {
        Ok(profiler) => {
            profiler.look(clock);
            functions::of_profiler(profiler)
        }
        Err(error) => {
            let (what, needs) = ("in which functions it works".to_owned(), error.to_string());
            Functions { unseen: vec![Unseen { what, needs }], ..Functions::default() }
        }
    };
    (threads, functions)
}

/// Those that were there the whole time.
fn threads(before: &Times, after: Times, elapsed_ns: u64) -> Vec<Thread> {
    let thread = |(number, (name, ran_ns)): (u32, (String, u64))| {
        let (_, ran_before) = before.get(&number)?;
        let busy = ran_ns.saturating_sub(*ran_before).saturating_mul(1000) / elapsed_ns.max(1);
        Some(Thread { name, busy })
    };
    let mut threads: Vec<Thread> = after.into_iter().filter_map(thread).collect();
    threads.sort_by_key(|thread| Reverse(thread.busy));
    threads
}

#[cfg(test)]
mod tests {
    use units::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn the_busiest_thread_is_first_and_new_ones_are_not_told() {
        let times = |entries: &[(u32, &str, u64)]| -> Times {
            entries.iter().map(|(number, name, ns)| (*number, ((*name).to_owned(), *ns))).collect()
        };
        let before = times(&[(1, "main", 500), (2, "ring", 100), (3, "ended", 7)]);
        let after = times(&[(1, "main", 600), (2, "ring", 1000), (4, "new", 900)]);
        let found = threads(&before, after.clone(), 1000);
        let thread = |name: &str, busy| Thread { name: name.to_owned(), busy };
        assert_eq!(found, [thread("ring", 900), thread("main", 100)]);
        assert_eq!(threads(&after, before, 0).len(), 2, "no time at all is no failure");
    }

    #[test]
    fn our_own_threads_are_seen() {
        let clock = ManualClock::new(Timestamp(0));
        let mut asked = 0;
        let (found, _) = watch(std::process::id(), &clock, 300_000_000, &mut || {
            asked += 1;
            ControlFlow::Continue(())
        });
        assert!(asked == 3 && !found.is_empty(), "{asked}: {found:?}");
    }
}
