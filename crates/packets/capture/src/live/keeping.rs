//! What a queue counts of the packets that it keeps in the kernel ring while another process is to
//! store them: what was handed out of blocks that are kept may come once more, and what found no
//! room meanwhile is no loss unless it does.

use units::Timestamp;

use crate::Counters;
use crate::source::Record;

/// What is kept of one ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keeping {
    from: Option<Timestamp>,
    /// A packet of that time has come.
    has_begun: bool,
    /// Packets handed out of the blocks that are kept, and of the one under way.
    pub(super) in_hand: u64,
    lost: Lost,
}

/// What the kernel had no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lost {
    pub(super) packets: u64,
    pub(super) freezes: u64,
}

impl Keeping {
    pub(super) fn keep_from(&mut self, at: Timestamp) {
        self.from = Some(at);
    }

    /// Whether the block under way is kept, and those behind it.
    pub(super) fn keeps(&self) -> bool {
        self.has_begun
    }

    /// Whether the first packet that is to be kept is one of these.
    pub(super) fn is_first(&self, records: &[Record]) -> bool {
        let Some(from) = self.from.filter(|_| !self.has_begun) else { return false };
        records.iter().any(|record| record.timestamp >= from)
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Adds what was lost since the last time.
    pub(super) fn lose(&mut self, counters: &mut Counters, new: Lost) {
        if self.has_begun {
            self.lost.packets += new.packets;
            self.lost.freezes += new.freezes;
        } else {
            counters.kernel_drops += new.packets;
            counters.ring_freezes += new.freezes;
        }
    }

    /// What is said of a queue: while it keeps packets, what waits in the ring is another's.
    pub(super) fn shown(&self, counters: Counters) -> Counters {
        let received = match self.from {
            Some(_) => counters.delivered + counters.kernel_drops,
            None => counters.received,
        };
        Counters { received, ..counters }
    }

    /// Nothing is kept any more, and nothing comes once more.
    pub(super) fn count_all(self, counters: &mut Counters) {
        counters.kernel_drops += self.lost.packets;
        counters.ring_freezes += self.lost.freezes;
    }

    /// Counters of this moment become those of a queue that begins anew with what it keeps; gives
    /// how many packets come once more.
    pub(super) fn rewind(self, counters: &mut Counters) -> u64 {
        let gone = counters.kernel_drops + counters.delivered - self.in_hand;
        *counters = Counters {
            received: counters.received.saturating_sub(gone),
            kernel_drops: self.lost.packets,
            ring_freezes: self.lost.freezes,
            interface_drops: counters.interface_drops.map(|_| 0),
            is_away: counters.is_away,
            ..Counters::default()
        };
        self.in_hand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_counted_once_by_whoever_stores_it() {
        let mut counters = Counters { received: 100, delivered: 60, ..Counters::default() };
        let mut keeping = Keeping::default();
        keeping.keep_from(Timestamp(7));
        keeping.lose(&mut counters, Lost { packets: 5, freezes: 1 });
        keeping.begin();
        // The block under way had 10 packets before.
        keeping.in_hand = 10;
        counters.delivered += 20;
        keeping.in_hand += 20;
        counters.received += 30;
        keeping.lose(&mut counters, Lost { packets: 8, freezes: 1 });
        let shown = keeping.shown(counters);
        assert_eq!((shown.received, shown.delivered, shown.kernel_drops), (85, 80, 5));
        let mut all = counters;
        keeping.count_all(&mut all);
        assert_eq!((all.received, all.delivered, all.kernel_drops), (130, 80, 13));
        assert_eq!(keeping.rewind(&mut counters), 30);
        let Counters { received, delivered, kernel_drops, .. } = counters;
        // 30 once more, 37 that wait, and 8 that found no room.
        assert_eq!((received, delivered, kernel_drops), (75, 0, 8));
    }
}
