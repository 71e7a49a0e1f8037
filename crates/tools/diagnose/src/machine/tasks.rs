//! What processes had of the processors during a watch.

use std::collections::BTreeMap;

use observe::tasks::Task;

use super::seen::TaskUse;

/// Processes that are remembered; of more the first.
const TASKS_MAX: usize = 1 << 15;

/// Adds up what processes had between looks: those that came and those that went, too.
#[derive(Debug, Default)]
pub(super) struct TaskTally {
    first: BTreeMap<u32, Task>,
    uses: BTreeMap<u32, TaskUse>,
}

impl TaskTally {
    /// Counts from here on.
    pub(super) fn new(first: BTreeMap<u32, Task>) -> Self {
        Self { first, uses: BTreeMap::new() }
    }

    /// Takes a look in.
    pub(super) fn take(&mut self, tasks: BTreeMap<u32, Task>) {
        for (number, task) in tasks {
            // The number may be another process's by now: what it counts begins anew.
            let before = self
                .first
                .get(&number)
                .filter(|first| first.name == task.name || first.ran_ns <= task.ran_ns)
                .map_or((0, 0), |first| (first.ran_ns, first.queued_ns));
            if !self.uses.contains_key(&number) && self.uses.len() >= TASKS_MAX {
                continue;
            }
            let seen = self.uses.entry(number).or_default();
            seen.ran_ns = task.ran_ns.saturating_sub(before.0);
            // Of threads that have ended the wait is forgotten: what was seen stays.
            seen.queued_ns = seen.queued_ns.max(task.queued_ns.saturating_sub(before.1));
            seen.waits = seen.waits.saturating_add(u32::from(task.is_waiting));
            (seen.name, seen.is_kernel) = (task.name, task.is_kernel);
        }
    }

    /// Those that ran or waited.
    pub(super) fn finish(mut self) -> BTreeMap<u32, TaskUse> {
        self.uses.retain(|_, seen| seen.ran_ns + seen.queued_ns > 0 || seen.waits > 0);
        self.uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, ran_ns: u64, queued_ns: u64) -> Task {
        Task { name: name.to_owned(), ran_ns, queued_ns, ..Task::default() }
    }

    #[test]
    fn what_was_had_before_the_watch_does_not_count_and_what_has_ended_does() {
        let mut tally = TaskTally::new(BTreeMap::from([(1, task("init", 500, 50))]));
        tally.take(BTreeMap::from([(1, task("init", 700, 60)), (9, task("short", 40, 4))]));
        tally.take(BTreeMap::from([(1, task("init", 800, 55))]));
        let found = tally.finish();
        let init = &found[&1];
        assert_eq!((init.ran_ns, init.queued_ns), (300, 10));
        assert_eq!((found[&9].ran_ns, &*found[&9].name), (40, "short"));
    }

    #[test]
    fn a_number_that_another_process_has_now_begins_anew() {
        let mut tally = TaskTally::new(BTreeMap::from([(7, task("old", 900, 90))]));
        tally.take(BTreeMap::from([(7, task("new", 30, 3))]));
        let found = tally.finish();
        assert_eq!((found[&7].ran_ns, found[&7].queued_ns), (30, 3));
    }
}
