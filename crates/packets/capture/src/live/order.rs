//! Packets of several rings in the order of their times.
//!
//! A ring hands over blocks: one that is closed may hold packets later than those in a block of
//! another ring that is still open. So a packet waits until no other ring can give an earlier one:
//! each has given a later one, or has had the time to hand over what it held. That time counts from
//! the moment at which the packet was seen, by the monotonic clock. A ring without packets holds
//! up the others no longer, and clocks of interfaces that disagree cost order, never more time.
//!
//! What is handed out are runs: as many packets of one ring as are earlier than those of the
//! others. So the cost is one choice for each run, and one comparison for each packet.

use core::ops::Range;
use core::time::Duration;

use units::Timestamp;

use crate::source::Record;

/// How long a packet waits for the rings that show nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Longest from the arrival of a packet until its ring shows it.
    pub(super) handover: Duration,
    /// The same where the ring says that it holds nothing back: from the packet's time stamp into
    /// the ring.
    pub(super) passing: Duration,
}

/// The packets of one ring that were found and not handed out.
#[derive(Debug, Default)]
pub(super) struct Lane {
    records: Vec<Record>,
    next: usize,
    /// When they were seen at first, by the monotonic clock; all of them had come by then.
    pub(super) seen_ns: i64,
    /// The ring is so full that its packets go before order.
    pub(super) is_full: bool,
    /// The ring holds nothing back. Counts while there are no packets here.
    pub(super) is_quiet: bool,
}

/// Packets of one lane that follow each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) lane: usize,
    pub(super) records: Range<usize>,
}

/// What can be handed out.
#[derive(Debug)]
pub(super) struct Order {
    patience: Patience,
    /// In the order of time.
    pub(super) parts: Vec<Part>,
    /// When the packets that wait have waited long enough, if any do.
    pub(super) again_ns: Option<i64>,
}

impl Lane {
    /// All packets were handed out.
    pub(super) fn is_used_up(&self) -> bool {
        self.next == self.records.len()
    }

    /// Forgets the packets that were handed out, and gives the place for new ones.
    pub(super) fn refill(&mut self) -> &mut Vec<Record> {
        assert!(self.is_used_up(), "packets are handed out before others are taken");
        self.next = 0;
        self.records.clear();
        &mut self.records
    }

    /// Forgets all packets: they are found again.
    pub(super) fn forget(&mut self) {
        self.next = 0;
        self.records.clear();
    }

    /// The packets of a part.
    pub(super) fn records(&self, part: &Part) -> &[Record] {
        self.records.get(part.records.clone()).expect("a part lies in its lane")
    }

    fn first(&self) -> Option<Timestamp> {
        self.records.get(self.next).map(|record| record.timestamp)
    }

    /// Takes the first packet, and those behind it that are not later than `until`.
    fn take(&mut self, until: Timestamp) -> Range<usize> {
        let from = self.next;
        let rest = self.records.get(from..).unwrap_or_default();
        let further = rest.iter().skip(1).take_while(|record| record.timestamp <= until);
        self.next = from + 1 + further.count();
        from..self.next
    }
}

impl Order {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, parts: Vec::new(), again_ns: None }
    }

    /// Finds what can be handed out, up to the last packet of a lane: what its ring gives next is
    /// not known before the packets in front were used. `now_ns` was read before the rings were
    /// looked at.
    pub(super) fn merge(&mut self, lanes: &mut [Lane], now_ns: i64) {
        self.parts.clear();
        self.again_ns = None;
        let only_full = lanes.iter().any(|lane| lane.is_full && !lane.is_used_up());
        let is_eligible = |lane: &Lane| !lane.is_used_up() && (!only_full || lane.is_full);
        let (handover_ns, wait_ns) = (units::nanos(self.patience.handover), self.wait_ns(lanes));
        let wait_ns = if only_full { 0 } else { wait_ns };
        let oldest = lanes.iter().filter(|lane| is_eligible(lane)).map(|lane| lane.seen_ns).min();
        let Some(oldest) = oldest else { return };
        // What was seen later than that came after what was seen first, whatever its time says.
        let horizon_ns = oldest.saturating_add(handover_ns);
        let takes_part = |lane: &Lane| is_eligible(lane) && lane.seen_ns <= horizon_ns;
        while let Some((at, until)) = front(lanes, takes_part) {
            let lane = lanes.get_mut(at).expect("the position is that of a lane");
            let due_ns = lane.seen_ns.saturating_add(wait_ns);
            if due_ns > now_ns {
                self.again_ns = Some(due_ns);
                return;
            }
            self.parts.push(Part { lane: at, records: lane.take(until) });
            if lane.is_used_up() {
                return;
            }
        }
    }

    /// The time, or less where packets will have waited long enough before.
    pub(super) fn wait_at_most(&self, time: Duration, now_ns: i64) -> Duration {
        let rest = self.again_ns.map(|again_ns| again_ns.saturating_sub(now_ns));
        let rest = rest.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or(0)));
        rest.map_or(time, |rest| rest.min(time))
    }

    /// How long packets wait for the lanes that have none.
    fn wait_ns(&self, lanes: &[Lane]) -> i64 {
        let Patience { handover, passing } = self.patience;
        let empty = lanes.iter().filter(|lane| lane.is_used_up());
        let wait = empty.map(|lane| if lane.is_quiet { passing } else { handover }).max();
        wait.map_or(0, units::nanos)
    }
}

/// The lane with the earliest packet, and the time up to which no other has one.
fn front(lanes: &[Lane], takes_part: impl Fn(&Lane) -> bool) -> Option<(usize, Timestamp)> {
    let (mut front, mut until) = (None, Timestamp::MAX);
    for (at, lane) in lanes.iter().enumerate().filter(|(_, lane)| takes_part(lane)) {
        let Some(first) = lane.first() else { continue };
        match front {
            Some((_, earliest)) if first >= earliest => until = until.min(first),
            _ => {
                until = front.map_or(Timestamp::MAX, |(_, earliest)| earliest);
                front = Some((at, first));
            }
        }
    }
    front.map(|(at, _)| (at, until))
}

#[cfg(test)]
mod tests;
