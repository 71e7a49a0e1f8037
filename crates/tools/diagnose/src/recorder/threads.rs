//! Threads of the recorder that have no time left.

use super::seen::{Recording, Thread};
use findings::{Finding, Remedy, Severity};

/// Thousandths of its time in which a thread that is short of it runs.
const BUSY: u64 = 900;

pub(super) fn findings(recording: &Recording) -> Vec<Finding> {
    let finding = |thread: &Thread| Finding {
        kind: "recorder.busy_thread",
        severity: Severity::Warning,
        reach: 1,
        what: format!("the thread {} has no time left", thread.name),
        evidence: recording
            .threads
            .iter()
            .map(|it| format!("{}: {} % of a processor", it.name, it.busy / 10))
            .collect(),
        cause: "A thread runs on one processor at a time. What comes faster than it works waits, \
                and is dropped when the queue is full."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "more threads for what is shared out by session (record --queues), and processors of \
             their own (record --cpus)",
        )],
    };
    recording.threads.iter().filter(|thread| thread.busy >= BUSY).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Thread, diagnose};
    use super::*;

    #[test]
    fn a_busy_thread_is_named_among_the_others() {
        let thread = |name: &str, busy| Thread { name: name.to_owned(), busy };
        let threads = vec![thread("intake", 310), thread("indexer", 970)];
        let found = diagnose(&Recording { threads, ..Recording::default() });
        assert_eq!(found.findings.len(), 1);
        assert_eq!(found.findings[0].what, "the thread indexer has no time left");
        let lines = ["intake: 31 % of a processor", "indexer: 97 % of a processor"];
        assert_eq!(found.findings[0].evidence, lines);
    }
}
