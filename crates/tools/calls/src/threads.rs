//! A thread at a moment: the call that it is in, and since when it has no processor.

use std::collections::BTreeMap;

use observe::tracepoints::calls::{Left, Pointed, Scheduled};

use crate::reason::Reason;
use crate::seen::Taker;

/// A call under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) number: u32,
    pub(crate) arguments: [u64; 6],
    pub(crate) begun_ns: u64,
    pub(crate) pointed: Option<Pointed>,
    /// Time without a processor.
    pub(crate) reasons: BTreeMap<Reason, u64>,
    /// Who ended the last wait: process and thread.
    pub(crate) waker: Option<(u32, u32)>,
    pub(crate) takers: Vec<Taker>,
    /// The file of the request that it waited for last.
    pub(crate) requested: Option<usize>,
}

impl Call {
    pub(crate) fn new(number: u32, arguments: [u64; 6], begun_ns: u64) -> Self {
        let (reasons, takers) = (BTreeMap::new(), Vec::new());
        Self {
            number,
            arguments,
            begun_ns,
            pointed: None,
            reasons,
            waker: None,
            takers,
            requested: None,
        }
    }

    /// Time of waiting for anything but a processor.
    pub(crate) fn waited_ns(&self) -> u64 {
        let is_waiting = |reason: &Reason| !matches!(reason, Reason::Processor | Reason::WakeUp);
        self.reasons.iter().filter(|(reason, _)| is_waiting(reason)).map(|(_, ns)| ns).sum()
    }
}

/// A thread without a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Away {
    pub(crate) since_ns: u64,
    pub(crate) left: Left,
    /// Since when it could run.
    pub(crate) runnable_ns: Option<u64>,
    /// Who ended its wait: process and thread.
    pub(crate) waker: Option<(u32, u32)>,
}

/// How a time without a processor divides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divided {
    pub(crate) waited_ns: u64,
    pub(crate) queued_ns: u64,
}

impl Away {
    pub(crate) fn divided(&self, now_ns: u64) -> Divided {
        let runnable_ns =
            self.runnable_ns.unwrap_or(now_ns).clamp(self.since_ns, now_ns.max(self.since_ns));
        Divided {
            waited_ns: runnable_ns - self.since_ns,
            queued_ns: now_ns.saturating_sub(runnable_ns),
        }
    }
}

/// A thread that is followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) process: u32,
    pub(crate) call: Option<Call>,
    pub(crate) away: Option<Away>,
    /// What a pointer leads to, of a call whose own record is yet to come.
    pub(crate) pending: Option<Pointed>,
    /// A record of a call of it was seen: without a call under way it is outside of calls.
    pub(crate) is_known: bool,
    /// It is the program that we started, and runs our own code yet.
    pub(crate) is_before_exec: bool,
}

/// Threads that took a processor are kept apart, for one thread or call.
const TAKERS_MAX: usize = 8;

/// Adds up who had the processor; what there is no space for is in no one's sum.
pub(crate) fn add_taker(takers: &mut Vec<Taker>, who: &Scheduled, ns: u64) {
    if let Some(taker) = takers.iter_mut().find(|taker| taker.thread == who.thread) {
        taker.ns += ns;
    } else if takers.len() < TAKERS_MAX {
        takers.push(Taker { thread: who.thread, name: crate::names::of_bytes(&who.name), ns });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_processor_is_waiting_and_then_queueing() {
        let away =
            |runnable_ns| Away { since_ns: 100, left: Left::Sleeping, runnable_ns, waker: None };
        let divided = |away: Away, now| {
            let Divided { waited_ns, queued_ns } = away.divided(now);
            (waited_ns, queued_ns)
        };
        assert_eq!(divided(away(Some(150)), 180), (50, 30));
        assert_eq!(divided(away(None), 180), (80, 0));
        assert_eq!(divided(away(Some(50)), 180), (0, 80), "records may come out of order");
        assert_eq!(divided(away(Some(500)), 90), (0, 0));
    }
}
