//! What a recorder has of the one before it: its own packets, and those that wait of the others.

use units::{Clock, Timestamp};

use crate::handover::Division;

/// What a recorder has of the one before it.
#[derive(Clone, Debug)]
pub struct Before {
    /// Packets from this time on are stored here.
    pub from: Timestamp,
    /// When that was, in time since boot.
    pub from_ns: i64,
    /// Packets from this time on are in the kernel rings, as far as there was room.
    pub held_from: Timestamp,
    /// Where this recorder was the one before: the packets that come once more, by queue and
    /// interface.
    pub again: Option<Vec<Vec<u64>>>,
}

impl Before {
    /// What of the packets of each queue is stored here, and from when on. A recorder that did not
    /// stop in order has `stored` packets up to a time, and no more.
    pub fn divide(&mut self, stored: Option<Timestamp>, queues: usize) -> Vec<Division> {
        let until = self.from;
        self.from = stored.map_or(until, |through| through.plus_nanos(1));
        let of_queue = |queue: usize| match &self.again {
            Some(again) => {
                let packets = again.get(queue).cloned().unwrap_or_default();
                Division::again(until, self.from, packets)
            }
            None => Division::since(self.from, self.held_from),
        };
        (0..queues).map(of_queue).collect()
    }

    /// What the user is told of it; `why` this recorder goes on, where it does.
    pub fn line(&self, why: Option<&str>, clock: &dyn Clock) -> String {
        let from = self.from;
        let waited_ms = clock.boottime_ns().saturating_sub(self.from_ns).max(0) / 1_000_000;
        match why {
            Some(why) => format!(
                "not handed over, because {why}: this recorder goes on, without a gap: packets \
                 from {from} on, which waited in the kernel rings for {waited_ms} ms"
            ),
            None => format!(
                "taken over from the recorder before, without a gap: packets from {from} on, \
                 which waited in the kernel rings for {waited_ms} ms"
            ),
        }
    }
}
