//! What is to happen, in the order of time: of two things at the same time the one that was entered
//! first. So one seed is one history.

use std::collections::BTreeMap;

use units::NANOS_PER_SECOND;
use units::number::{real, whole};

/// Events to come, and the time of the last one that came.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    now_ns: i64,
    entered: u64,
    due: BTreeMap<(i64, u64), E>,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { now_ns: 0, entered: 0, due: BTreeMap::new() }
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Enters an event; what is due in the past happens now.
    pub(crate) fn at(&mut self, time_ns: i64, event: E) {
        self.entered += 1;
        self.due.insert((time_ns.max(self.now_ns), self.entered), event);
    }

    pub(crate) fn after(&mut self, ns: i64, event: E) {
        self.at(self.now_ns.saturating_add(ns), event);
    }

    /// The next event, whose time it is now.
    pub(crate) fn next(&mut self) -> Option<E> {
        let ((time_ns, _), event) = self.due.pop_first()?;
        self.now_ns = time_ns;
        Some(event)
    }
}

/// Nanoseconds of so many seconds.
pub(crate) fn nanos(seconds: f64) -> i64 {
    i64::try_from(whole(seconds * real(NANOS_PER_SECOND.unsigned_abs()))).unwrap_or(i64::MAX)
}

/// Seconds of so many nanoseconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    real(ns.max(0).unsigned_abs()) / real(NANOS_PER_SECOND.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_their_time_then_as_they_were_entered_and_never_in_the_past() {
        let mut agenda = Agenda::new();
        agenda.at(20, 'c');
        agenda.at(10, 'a');
        agenda.at(10, 'b');
        assert_eq!((agenda.next(), agenda.next()), (Some('a'), Some('b')));
        agenda.at(5, 'd');
        assert_eq!((agenda.next(), agenda.now_ns()), (Some('d'), 10));
        assert_eq!((agenda.next(), agenda.next()), (Some('c'), None));
        assert_eq!((nanos(1.5), seconds(nanos(2.25))), (1_500_000_000, 2.25));
    }
}
