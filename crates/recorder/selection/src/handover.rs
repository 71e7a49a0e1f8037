//! A recorder hands its interfaces over to another process, at a time: of the packets that both see
//! those before it are stored by the one, and those from it on by the other.
//!
//! The kernel stamps a packet once, and gives it with that time to every packet socket. So who has
//! its sockets open before the time, and who still reads a while behind it, see the same packets
//! with the same times, and none is stored twice or by nobody. That is not so where the adapter
//! stamps packets, whose clock is another one, nor with `AF_XDP`: one process alone gets them.
//!
//! The new recorder opens its sockets and asks ([`TakeOver`]); the old one chooses the time, reads
//! on for a while, closes the volume, and keeps its sockets, with what they give from the time on,
//! until the new one has stored something. If that ends before, the old one goes on with what it
//! kept. Until the volume is open again, packets wait in the kernel rings: what does not fit there
//! is a kernel drop, and counted as that.
//!
//! A clock that is set meanwhile gives packets of both sides of the time the same times. The old
//! one notices a step before it lets go, goes on, and is asked again. One that comes later is seen
//! by the new one: on each interface packets come in their order, and behind one that is later than
//! the time by more than their order is inexact, all are its own.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use units::{Clock, Timestamp};

/// A packet of before the time may lie in a kernel ring for so long, with some margin for a queue
/// that has much to do: a block that is not full is given after 50 ms.
const BEHIND: Duration = Duration::from_millis(300);
/// Packets of one interface are in their order but for this: processors that take some at the same
/// time differ by microseconds, and a clock that is set back by less is read for longer.
pub const ORDER_NS: i64 = 50_000_000;
/// A queue that gets no later packet ends all the same.
const LONGEST_NS: i64 = 1_000_000_000;

/// How a recorder that runs was asked to hand over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// None runs.
    Nobody,
    /// Packets from this time on are to be stored; the volume is free.
    From(Timestamp),
    /// The clock was set: the one that runs goes on, and is to be asked once more, with sockets
    /// that were opened since.
    ClockWasSet,
}

/// Called once the interfaces are open, and before the volume is: has the recorder that has it
/// hand over, and waits until it has let go.
#[derive(Clone)]
pub struct TakeOver(Arc<Ask>);

type Ask = dyn Fn() -> Result<Taken, String> + Send + Sync;

impl TakeOver {
    /// `ask` says how it was answered, or why the recorder that runs goes on.
    pub fn new(ask: impl Fn() -> Result<Taken, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// Asks.
    ///
    /// # Errors
    /// Why the recorder that runs goes on.
    pub fn ask(&self) -> Result<Taken, String> {
        (self.0)()
    }
}

impl fmt::Debug for TakeOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakeOver")
    }
}

// A step by less changes the order of packets no more than their way through the kernel does.
const _: () = assert!(units::CLOCK_STEP_NS == ORDER_NS);

/// Packets of before a hand-over lie in the kernel rings of the new recorder for so long at most,
/// once it takes some: behind that, an early time is one of a clock that was set back.
const DRAINED_NS: i64 = 10_000_000_000;

/// Which packets this process stores, and which another one. The clock may be set meanwhile, so how
/// long a bound holds is measured in time since boot, and by the order of packets.
#[derive(Clone, Debug)]
pub struct Division {
    /// Earlier packets are those of the recorder before; [`Timestamp::MIN`]: there are none.
    from: Timestamp,
    /// No packet of before that comes with an earlier time, unless the clock was set back.
    opened: Timestamp,
    /// By interface: a packet has come that is later than `from`, and all behind it are.
    are_past: Vec<bool>,
    /// By interface: packets that come once more.
    again: Vec<u64>,
    /// When `from` ends to hold.
    from_ends_ns: Option<i64>,
    /// When this process has read on for long enough.
    ends_ns: Option<i64>,
}

impl Division {
    /// Nobody has recorded before.
    pub fn whole() -> Self {
        Self::since(Timestamp::MIN, Timestamp::MIN)
    }

    /// Packets from a time on are stored here, of sockets that were opened at another one.
    pub fn since(from: Timestamp, opened: Timestamp) -> Self {
        let (are_past, again) = Default::default();
        Self { from, opened, are_past, again, from_ends_ns: None, ends_ns: None }
    }

    /// This recorder goes on, and gets some of what it had once more: so many packets of each
    /// interface, of which it has stored those of before `until`. What came since is another one's
    /// before `from`.
    pub fn again(until: Timestamp, from: Timestamp, packets: Vec<u64>) -> Self {
        Self { again: packets, ..Self::since(from.max(until), until) }
    }

    /// Whether every packet is stored here that is not another one's because it is too late.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.from == Timestamp::MIN
    }

    /// Whether the packet of an interface, of this time, is not one of the recorder before. To be
    /// called for each, in their order.
    pub fn has(&mut self, interface: usize, at: Timestamp) -> bool {
        if let Some(left @ 1..) = self.again.get_mut(interface) {
            *left -= 1;
            if at < self.opened {
                return false;
            }
        }
        if self.are_past.len() <= interface {
            self.are_past.resize(interface + 1, false);
        }
        let Some(is_past) = self.are_past.get_mut(interface) else { return true };
        let is_own = self.from <= at || *is_past || at < self.opened;
        *is_past |= self.from.plus_nanos(ORDER_NS) <= at;
        is_own
    }

    /// Called with each batch of packets, or when the kernel rings are empty: then no packet is
    /// left of before the hand-over. The clock is asked only while that matters.
    pub fn look(&mut self, clock: &dyn Clock, is_empty: bool) {
        if self.has_begun() || self.again.iter().any(|left| *left > 0) {
            return;
        }
        let now_ns = clock.boottime_ns();
        let ends_ns = *self.from_ends_ns.get_or_insert(now_ns.saturating_add(DRAINED_NS));
        if is_empty || now_ns >= ends_ns {
            self.from = Timestamp::MIN;
        }
    }

    /// Whether it has read on for long enough behind `until`, and `is_past` it; `now` is the time,
    /// and that since boot.
    pub fn is_over(
        &mut self,
        (until, is_past): (Timestamp, bool),
        (now, now_ns): (Timestamp, i64),
    ) -> bool {
        let behind = units::nanos(BEHIND);
        let left = until.since(now).clamp(0, behind);
        let ends_ns = now_ns.saturating_add(left).saturating_add(behind);
        let ends_ns = *self.ends_ns.get_or_insert(ends_ns);
        now_ns >= ends_ns && (is_past || now_ns >= ends_ns.saturating_add(LONGEST_NS))
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
            let mut division = Division::since(from, from.plus_nanos(-SECOND));
            let clock = ManualClock::new(Timestamp(5 * SECOND));
            division.look(&clock, false);
            assert!(!division.has(0, Timestamp(from.0 - 1)), "what the old one stores");
            clock.advance_nanos(if is_empty { 1 } else { 10 } * SECOND);
            division.look(&clock, is_empty);
            assert!(division.has_begun(), "{is_empty}");
        }
    }

    /// The step comes while packets wait for the volume to be opened.
    #[test]
    fn packets_behind_a_step_back_are_those_of_the_new_recorder() {
        let (from, opened) = (Timestamp(100 * SECOND), Timestamp(99 * SECOND));
        let mut division = Division::since(from, opened);
        let at = |ms: i64| from.plus_nanos(ms * 1_000_000);
        // The clock falls back by half a second, or by an hour where nothing had come.
        let had = [-500, -1, 0, 10, -1, 60, -440, -430].map(|ms| division.has(0, at(ms)));
        assert_eq!(had, [false, false, true, true, false, true, true, true]);
        assert!(division.has(1, at(-3_600_000)) && !division.has(1, at(-1)));
    }

    #[test]
    fn who_goes_on_stores_what_it_had_left_and_all_that_is_new() {
        let mut division = Division::again(Timestamp(100), Timestamp::MIN, vec![3, 0]);
        let clock = ManualClock::new(Timestamp(5));
        division.look(&clock, true);
        let had = [99, 100, 98].map(|at| division.has(0, Timestamp(at)));
        assert_eq!(had, [false, true, false]);
        // Whatever the clock says since.
        assert!(division.has(0, Timestamp(1)) && division.has(1, Timestamp(1)));
        division.look(&clock, true);
        assert!(division.has_begun());
    }

    /// The other one had stored up to a time behind what was read here.
    #[test]
    fn who_goes_on_leaves_what_the_other_one_had_stored() {
        let mut division = Division::again(Timestamp(100), Timestamp(105), vec![2]);
        let had = [99, 104, 104, 105, 106].map(|at| division.has(0, Timestamp(at)));
        assert_eq!(had, [false, false, false, true, true]);
    }

    #[test]
    fn a_clock_that_is_set_meanwhile_neither_hurries_nor_delays_the_end() {
        let until = Timestamp(1_000 * SECOND);
        let asked = (until.plus_nanos(-SECOND / 10), 50 * SECOND);
        let end_ns = SECOND / 10 + units::nanos(BEHIND);
        for set_by in [-3_600 * SECOND, 0, 3_600 * SECOND] {
            let mut division = Division::whole();
            assert!(!division.is_over((until, true), asked));
            let later = |ns: i64| (asked.0.plus_nanos(ns + set_by), asked.1 + ns);
            assert!(!division.is_over((until, true), later(end_ns - 1)));
            assert!(!division.is_over((until, false), later(end_ns)), "there are earlier ones");
            assert!(division.is_over((until, true), later(end_ns)));
            assert!(division.is_over((until, false), later(end_ns + LONGEST_NS)));
        }
        // Set before it is heard of.
        let mut division = Division::whole();
        let set_back = (until.plus_nanos(-3_600 * SECOND), 50 * SECOND);
        assert!(!division.is_over((until, true), set_back));
        assert!(division.is_over((until, true), (set_back.0, 51 * SECOND)));
    }
}
