//! A recorder hands its interfaces over to another process, at a time: of the packets that both see
//! those before it are stored by the one, and those from it on by the other.
//!
//! The kernel stamps a packet once, and gives it with that time to every packet socket. So who has
//! its sockets open before the time, and who still reads a while behind it, see the same packets
//! with the same times, and none is stored twice or by nobody. That is not so where the adapter
//! stamps packets, whose clock is another one, nor with `AF_XDP`: one process alone gets them.
//!
//! The new recorder opens its sockets and asks ([`TakeOver`]); the old one chooses the time, reads
//! on for a while, and ends as it always does. Until it has closed the volume, packets wait in the
//! kernel rings of the new one: what does not fit there is a kernel drop, and counted as that.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use units::{Clock, Timestamp};

/// A packet of before the time may lie in a kernel ring for so long, with some margin for a queue
/// that has much to do: a block that is not full is given after 50 ms.
const BEHIND: Duration = Duration::from_millis(300);

/// Called once the interfaces are open, and before the volume is: has the recorder that has it
/// hand over, and waits for its end.
#[derive(Clone)]
pub struct TakeOver(Arc<Ask>);

type Ask = dyn Fn() -> Result<Option<Timestamp>, String> + Send + Sync;

impl TakeOver {
    /// `ask` gives the time from which on packets are to be stored; `None` where no recorder runs;
    /// or why the one that runs goes on.
    pub fn new(
        ask: impl Fn() -> Result<Option<Timestamp>, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(ask))
    }

    /// Asks.
    ///
    /// # Errors
    /// Why the recorder that runs goes on.
    pub fn ask(&self) -> Result<Option<Timestamp>, String> {
        (self.0)()
    }
}

impl fmt::Debug for TakeOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakeOver")
    }
}

/// From when on, and up to when, this process stores what its interfaces give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The first time.
    pub from: Timestamp,
    /// The first time behind it.
    pub until: Timestamp,
}

impl Share {
    /// No other process stores any.
    pub const ALL: Self = Self { from: Timestamp::MIN, until: Timestamp::MAX };

    /// Whether a packet of this time is stored here.
    #[inline]
    pub fn has(self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// Packets of before a hand-over lie in the kernel rings of the new recorder for so long at most,
/// once it takes some: behind that, an early time is one of a clock that was set back.
const DRAINED_NS: i64 = 10_000_000_000;

/// How this process and another one share packets. The clock may be set meanwhile, so how long a
/// bound holds is measured in time since boot.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    from: Timestamp,
    /// When `from` ends to hold.
    from_ends_ns: Option<i64>,
    /// When this process has read on for long enough.
    ends_ns: Option<i64>,
}

impl Division {
    /// Packets from this time on are stored here.
    pub fn new(from: Timestamp) -> Self {
        Self { from, from_ends_ns: None, ends_ns: None }
    }

    /// The times of which packets are stored here, where the later ones from `until` on are
    /// another one's.
    pub fn share(&self, until: Option<Timestamp>) -> Share {
        Share { from: self.from, until: until.unwrap_or(Timestamp::MAX) }
    }

    /// Called with each batch of packets, or when the kernel rings are empty: then no packet is
    /// left of before the hand-over. The clock is asked only while that matters.
    pub fn look(&mut self, clock: &dyn Clock, is_empty: bool) {
        if self.from == Timestamp::MIN {
            return;
        }
        let now_ns = clock.boottime_ns();
        let ends_ns = *self.from_ends_ns.get_or_insert(now_ns.saturating_add(DRAINED_NS));
        if is_empty || now_ns >= ends_ns {
            self.from = Timestamp::MIN;
        }
    }

    /// Whether it has read on for long enough behind `until`; `now` is the time, and that since
    /// boot.
    pub fn is_over(&mut self, until: Timestamp, (now, now_ns): (Timestamp, i64)) -> bool {
        let behind = units::nanos(BEHIND);
        let left = until.since(now).clamp(0, behind);
        let ends_ns = now_ns.saturating_add(left).saturating_add(behind);
        now_ns >= *self.ends_ns.get_or_insert(ends_ns)
    }
}

#[cfg(test)]
mod tests {
    use units::ManualClock;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// An hour after a hand-over the clock is set back by two.
    #[test]
    fn a_clock_that_is_set_back_later_makes_no_packet_anothers() {
        let from = Timestamp(7_200 * SECOND);
        for is_empty in [true, false] {
            let mut division = Division::new(from);
            let clock = ManualClock::new(Timestamp(5 * SECOND));
            division.look(&clock, false);
            assert!(!division.share(None).has(Timestamp(from.0 - 1)), "what the old one stores");
            clock.advance_nanos(if is_empty { 1 } else { 10 } * SECOND);
            division.look(&clock, is_empty);
            assert!(division.share(None).has(Timestamp(SECOND)), "{is_empty}");
        }
    }

    #[test]
    fn a_clock_that_is_set_meanwhile_neither_hurries_nor_delays_the_end() {
        let until = Timestamp(1_000 * SECOND);
        let asked = (until.plus_nanos(-SECOND / 10), 50 * SECOND);
        for set_by in [-3_600 * SECOND, 0, 3_600 * SECOND] {
            let mut division = Division::new(Timestamp::MIN);
            assert!(!division.is_over(until, asked));
            let later = |ns: i64| (asked.0.plus_nanos(ns + set_by), asked.1 + ns);
            assert!(!division.is_over(until, later(SECOND / 10 + units::nanos(BEHIND) - 1)));
            assert!(division.is_over(until, later(SECOND / 10 + units::nanos(BEHIND))));
        }
        // Set before it is heard of.
        let mut division = Division::new(Timestamp::MIN);
        let set_back = (until.plus_nanos(-3_600 * SECOND), 50 * SECOND);
        assert!(!division.is_over(until, set_back));
        assert!(division.is_over(until, (set_back.0, 51 * SECOND)));
    }

    #[test]
    fn each_time_is_of_one_of_two_shares() {
        let cut = Timestamp(1_000);
        let (old, new) = (Share { until: cut, ..Share::ALL }, Share { from: cut, ..Share::ALL });
        for at in [0, 999, 1_000, 1_001] {
            let at = Timestamp(at);
            assert!(old.has(at) != new.has(at) && Share::ALL.has(at), "{at}");
        }
    }
}
