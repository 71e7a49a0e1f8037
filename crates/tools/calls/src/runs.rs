//! Who had each processor lately.

use std::collections::{BTreeMap, VecDeque};

use observe::tracepoints::calls::Scheduled;

/// Runs that are kept of a processor: who queues for longer than these is charged to them alone.
const RUNS_MAX: usize = 512;

/// One thread on a processor, idle or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    who: Scheduled,
    begun_ns: u64,
    ended_ns: u64,
}

/// Runs by processor.
#[derive(Debug, Default)]
pub(crate) struct Runs(BTreeMap<usize, VecDeque<Run>>);

impl Runs {
    /// A thread has lost its processor.
    pub(crate) fn ended(&mut self, processor: usize, who: Scheduled, now_ns: u64) {
        let runs = self.0.entry(processor).or_default();
        let begun_ns = runs.back().map_or(now_ns, |last| last.ended_ns);
        if runs.len() >= RUNS_MAX {
            runs.pop_front();
        }
        runs.push_back(Run { who, begun_ns, ended_ns: now_ns });
    }

    /// Who had a processor since then, and for how long, the last first.
    pub(crate) fn since(
        &self,
        processor: usize,
        since_ns: u64,
    ) -> impl Iterator<Item = (Scheduled, u64)> + '_ {
        let runs = self.0.get(&processor).into_iter().flatten().rev();
        let recent = runs.take_while(move |run| run.ended_ns > since_ns);
        recent.map(move |run| (run.who, run.ended_ns - run.begun_ns.max(since_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_divides_among_those_who_ran_in_it() {
        let who = |thread| Scheduled { thread, name: [0; 16] };
        let mut runs = Runs::default();
        for (thread, ended_ns) in [(1, 100), (2, 150), (0, 180), (1, 200)] {
            runs.ended(3, who(thread), ended_ns);
        }
        let since = |since_ns| {
            let found = runs.since(3, since_ns).map(|(who, ns)| (who.thread, ns));
            found.collect::<Vec<_>>()
        };
        assert_eq!(since(120), [(1, 20), (0, 30), (2, 30)]);
        assert_eq!((since(200), runs.since(4, 0).count()), (vec![], 0));
    }
}
