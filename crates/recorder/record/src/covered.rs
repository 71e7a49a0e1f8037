//! Up to when packets are accounted for: what each queue claims, and what heads say of it.
//!
//! A queue claims a time when all its packets up to there were sent to the ring writer, and what it
//! lost up to there was reported. Claims come with columns; while a queue has nothing to send it
//! leaves them in the ledger, with the number of columns sent so far, and they count once that many
//! have come. The earliest claim of all queues holds for the recording.

use core::ops::Range;

use events::ClockWatch;
use format::head::StripeId;
use format::recorded::{Earlier, Recorded, RecordedClock};
use units::{Clock, QueueId, Timestamp};

use crate::claim::Claim;
use crate::ledger::Ledger;
use crate::options::Input;

/// A clock that falls back by more than this begins another stretch: packets after it have times
/// that were claimed before.
const STEP_NS: i64 = 1_000_000_000;

/// What is recorded, and the claims so far.
#[derive(Debug)]
pub(crate) struct Covered {
    /// Interfaces; `None`: files.
    interfaces: Option<Vec<String>>,
    /// By queue: columns that have come, and the newest claim of those.
    queues: Vec<Claim>,
    stretch: Option<Recorded>,
    start: StripeId,
    /// What was recorded before, where that is known.
    earlier: Option<Earlier>,
    clock: ClockWatch,
}

impl Covered {
    /// A recording that begins behind the stripe `start`.
    pub(crate) fn new(
        input: &Input,
        (queues, clock): (usize, RecordedClock),
        (start, now): (StripeId, Timestamp),
        earlier: Option<Earlier>,
    ) -> Self {
        let interfaces = match input {
            Input::Interfaces(names) => Some(names.clone()),
            Input::Files(_) => None,
        };
        let begin = |names| Recorded { earlier, ..Recorded::new(true, start, now, names) };
        let stretch = interfaces.as_deref().map(begin);
        let clock = ClockWatch::new(clock);
        Self { interfaces, queues: vec![Claim::NONE; queues], stretch, start, earlier, clock }
    }

    /// Looks at the clock that packets have their times from, now and then.
    pub(crate) fn look(&mut self, clock: &dyn Clock) {
        if self.interfaces.is_some() {
            self.clock.look(clock);
        }
    }

    /// A column has come, with what its queue claimed then.
    pub(crate) fn take(&mut self, queue: QueueId, through: Timestamp) {
        if let Some(claim) = self.queues.get_mut(queue.place()) {
            *claim = Claim { sent: claim.sent + 1, through };
        }
    }

    /// What the next head says, when everything that has come is in front of or in its stripe.
    pub(crate) fn stretch(&mut self, ledger: &Ledger, next: StripeId) -> Option<Recorded> {
        let Some(interfaces) = &self.interfaces else { return self.stretch.clone() };
        for (queue, claim) in QueueId::first(self.queues.len()).zip(&mut self.queues) {
            let idle = ledger.claim_of(queue);
            if idle.sent == claim.sent {
                claim.through = idle.through;
            }
        }
        let through = self.queues.iter().map(|claim| claim.through).min()?;
        let stretch = self.stretch.as_mut()?;
        stretch.clock = Some(self.clock.said());
        if through == Timestamp::MIN {
            return Some(stretch.clone());
        }
        if through.plus_nanos(STEP_NS) < stretch.through {
            let next = Recorded::new(true, next, through, interfaces);
            let earlier = stretch.earlier.map(|_| stretch.until(true));
            *stretch = Recorded { goes_on: true, earlier, clock: stretch.clock, ..next };
        }
        stretch.through = stretch.through.max(through);
        Some(stretch.clone())
    }

    /// A stripe is about to be written with packets of these times: of files there is nothing else
    /// to go by.
    pub(crate) fn packets(&mut self, times: Range<Timestamp>) {
        if self.interfaces.is_some() || times.start > times.end {
            return;
        }
        let (start, earlier) = (self.start, self.earlier);
        let stretch = self.stretch.get_or_insert_with(|| Recorded {
            earlier,
            ..Recorded::new(false, start, times.start, &[])
        });
        stretch.from = stretch.from.min(times.start);
        stretch.through = stretch.through.max(times.end);
    }
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use std::path::PathBuf;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn of_queues(count: usize) -> (usize, RecordedClock) {
        (count, RecordedClock::default())
    }

    fn stripe(sequence: u64) -> StripeId {
        StripeId { sequence: Sequence(sequence), sub: 0 }
    }

    fn through(covered: &mut Covered, ledger: &Ledger) -> (u64, i64, i64) {
        let Recorded { start, from, through, .. } = covered.stretch(ledger, stripe(99)).unwrap();
        (start.sequence.get(), from.0 / S, through.0 / S)
    }

    #[test]
    fn the_latest_queue_decides_and_claims_wait_for_their_columns() {
        let ledger = Ledger::new(2);
        let input = Input::Interfaces(vec!["a".to_owned()]);
        let mut covered = Covered::new(&input, of_queues(2), (stripe(7), Timestamp(10 * S)), None);
        covered.take(QueueId(0), Timestamp(15 * S));
        assert_eq!(through(&mut covered, &ledger), (7, 10, 10), "one queue has said nothing");
        ledger.claim(QueueId(1), Claim { sent: 1, through: Timestamp(14 * S) });
        assert_eq!(through(&mut covered, &ledger), (7, 10, 10), "its column is on its way");
        covered.take(QueueId(1), Timestamp(12 * S));
        assert_eq!(through(&mut covered, &ledger), (7, 10, 14));
        ledger.claim(QueueId(0), Claim { sent: 1, through: Timestamp(30 * S) });
        ledger.claim(QueueId(1), Claim { sent: 1, through: Timestamp(29 * S) });
        assert_eq!(through(&mut covered, &ledger), (7, 10, 29));
    }

    #[test]
    fn a_clock_that_is_set_back_begins_another_stretch() {
        let ledger = Ledger::new(1);
        let input = Input::Interfaces(vec!["a".to_owned()]);
        let mut covered = Covered::new(&input, of_queues(1), (stripe(7), Timestamp(10 * S)), None);
        covered.take(QueueId(0), Timestamp(20 * S));
        assert_eq!(through(&mut covered, &ledger), (7, 10, 20));
        covered.take(QueueId(0), Timestamp(20 * S - 1));
        assert_eq!(through(&mut covered, &ledger), (7, 10, 20), "times are not that exact");
        covered.take(QueueId(0), Timestamp(5 * S));
        assert_eq!(through(&mut covered, &ledger), (99, 5, 5));
        assert!(covered.stretch(&ledger, stripe(100)).unwrap().goes_on);
    }

    #[test]
    fn files_are_known_by_their_packets() {
        let ledger = Ledger::new(1);
        let input = Input::Files(vec![PathBuf::new()]);
        let mut covered = Covered::new(&input, of_queues(1), (stripe(7), Timestamp(10 * S)), None);
        assert_eq!(covered.stretch(&ledger, stripe(8)), None);
        covered.packets(Timestamp(3 * S)..Timestamp(4 * S));
        covered.packets(Timestamp::MAX..Timestamp::MIN);
        covered.packets(Timestamp(S)..Timestamp(2 * S));
        assert_eq!(through(&mut covered, &ledger), (7, 1, 4));
    }
}
