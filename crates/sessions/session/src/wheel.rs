//! When to look at which session again: a timer wheel over slot numbers.
//!
//! A session is placed once, at the time when it would expire if no packet came, and is not touched
//! by its packets. When its tick has passed it is handed out; the table then expires it or places
//! it again. Every operation is O(1), and time may jump in either direction: whatever its tick, a
//! session is handed out within one turn of the wheel.

use units::Timestamp;

/// Log2 of the tick: 2^30 ns is 1.07 s.
const TICK_SHIFT: u32 = 30;

/// Ticks in a turn: 549 s, more than the longest default timeout.
const BUCKET_COUNT: usize = 512;
const TURN: i64 = 512;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    /// The tick it waits for; `None` while it is not on the wheel.
    tick: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Wheel {
    heads: [u32; BUCKET_COUNT],
    occupied: [u64; BUCKET_COUNT / 64],
    links: Vec<Link>,
    /// The bucket being emptied; all earlier ones of this turn are done.
    hand: i64,
    /// The tick of the present. Only sessions of earlier ticks are handed out.
    now: i64,
}

fn tick_of(time: Timestamp) -> i64 {
    time.0 >> TICK_SHIFT
}

fn bucket_of(tick: i64) -> usize {
    usize::try_from(tick.rem_euclid(TURN)).expect("a remainder of 512 fits")
}

impl Wheel {
    /// Bytes for each session.
    pub(crate) const SESSION_BYTES: usize = size_of::<Link>();

    pub(crate) fn new() -> Self {
        let (heads, occupied) = ([NIL; BUCKET_COUNT], [0; BUCKET_COUNT / 64]);
        Self { heads, occupied, links: Vec::new(), hand: 0, now: 0 }
    }

    /// Moves the present to `time`: forward at any distance, backward only by more than a turn, so
    /// that packets slightly out of order do not matter and a clock that was set back does not stop
    /// expiry.
    pub(crate) fn advance(&mut self, time: Timestamp) {
        let tick = tick_of(time);
        if tick > self.now {
            self.now = tick;
            self.hand = self.hand.max(tick - TURN);
        } else if tick < self.now - TURN {
            self.now = tick;
            self.hand = tick;
        }
    }

    /// The present, to a tick.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now << TICK_SHIFT)
    }

    /// Places `index` where it is handed out once `deadline` has passed.
    pub(crate) fn place(&mut self, index: u32, deadline: Timestamp) {
        self.remove(index);
        let tick = tick_of(deadline).clamp(self.hand + 1, self.hand + TURN - 1);
        let bucket = bucket_of(tick);
        let head = self.heads.get_mut(bucket).expect("a bucket is below 512");
        let next = core::mem::replace(head, index);
        self.mark(bucket, true);
        if let Some(neighbour) = self.link(next) {
            neighbour.previous = index;
        }
        let slot = usize::try_from(index).expect("32 bits fit");
        if slot >= self.links.len() {
            self.links.resize(slot + 1, Link { previous: NIL, next: NIL, tick: None });
        }
        *self.link(index).expect("it was just made") =
            Link { previous: NIL, next, tick: Some(tick) };
    }

    /// Places `index` as far ahead as the wheel reaches: for sessions that never expire.
    pub(crate) fn place_last(&mut self, index: u32) {
        self.place(index, Timestamp::MAX);
    }

    /// Takes `index` off the wheel, if it is on it.
    pub(crate) fn remove(&mut self, index: u32) {
        let Some(&mut Link { previous, next, tick: Some(tick) }) = self.link(index) else {
            return;
        };
        self.link(index).expect("it was just read").tick = None;
        if let Some(neighbour) = self.link(next) {
            neighbour.previous = previous;
        }
        if let Some(neighbour) = self.link(previous) {
            neighbour.next = next;
        } else {
            let bucket = bucket_of(tick);
            *self.heads.get_mut(bucket).expect("a bucket is below 512") = next;
            self.mark(bucket, next != NIL);
        }
    }

    /// One session whose tick has passed. It stays on the wheel until it is removed or placed
    /// again.
    pub(crate) fn due(&mut self) -> Option<u32> {
        if self.hand >= self.now {
            return None;
        }
        match self.next_occupied(self.hand) {
            Some(tick) if tick < self.now => {
                self.hand = tick;
                self.heads.get(bucket_of(tick)).copied()
            }
            _ => {
                self.hand = self.now;
                None
            }
        }
    }

    /// The session that waits for the earliest tick.
    pub(crate) fn earliest(&self) -> Option<u32> {
        self.next_occupied(self.hand).and_then(|tick| self.heads.get(bucket_of(tick)).copied())
    }

    /// Whether `deadline` lies in a later tick than the one `index` waits for.
    pub(crate) fn waits_too_early(&self, index: u32, deadline: Timestamp) -> bool {
        let slot = usize::try_from(index).expect("32 bits fit");
        let tick = self.links.get(slot).and_then(|link| link.tick);
        tick.is_some_and(|tick| tick_of(deadline).min(self.hand + TURN - 1) > tick)
    }

    /// The first tick from `from` on, within one turn, whose bucket is not empty.
    fn next_occupied(&self, from: i64) -> Option<i64> {
        let mut tick = from;
        while tick < from + TURN {
            let bucket = bucket_of(tick);
            let word = self.occupied.get(bucket / 64).expect("a bucket is below 512");
            let skipped = bucket % 64;
            let ahead = word >> skipped;
            if ahead != 0 {
                return Some(tick + i64::from(ahead.trailing_zeros())).filter(|&t| t < from + TURN);
            }
            tick += i64::try_from(64 - skipped).expect("at most 64");
        }
        None
    }

    fn mark(&mut self, bucket: usize, occupied: bool) {
        let word = self.occupied.get_mut(bucket / 64).expect("a bucket is below 512");
        let bit = 1 << (bucket % 64);
        *word = if occupied { *word | bit } else { *word & !bit };
    }

    fn link(&mut self, index: u32) -> Option<&mut Link> {
        // NIL lies beyond every slab, so it has no link.
        self.links.get_mut(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp(seconds * units::NANOS_PER_SECOND)
    }

    fn drain(wheel: &mut Wheel) -> Vec<u32> {
        let mut out = Vec::new();
        while let Some(index) = wheel.due() {
            wheel.remove(index);
            out.push(index);
        }
        out
    }

    #[test]
    fn sessions_come_out_in_the_order_of_their_ticks() {
        let mut wheel = Wheel::new();
        wheel.advance(seconds(1000));
        drain(&mut wheel);
        for (index, at) in [(0, 1300), (1, 1060), (2, 1100), (3, 1061)] {
            wheel.place(index, seconds(at));
        }
        wheel.remove(3);
        wheel.advance(seconds(1050));
        assert!(drain(&mut wheel).is_empty());
        wheel.advance(seconds(1102));
        assert_eq!(drain(&mut wheel), [1, 2]);
        wheel.advance(seconds(2000));
        assert_eq!(drain(&mut wheel), [0]);
        assert_eq!(wheel.earliest(), None);
    }

    #[test]
    fn every_session_comes_out_within_a_turn_whatever_the_clock_does() {
        let mut wheel = Wheel::new();
        wheel.advance(seconds(1 << 32));
        for index in 0..100 {
            wheel.place(index, seconds((1 << 32) + i64::from(index) * 1000));
        }
        wheel.advance(seconds(5));
        assert!(drain(&mut wheel).is_empty(), "nothing has passed yet");
        wheel.advance(seconds(5 + 560));
        assert_eq!(drain(&mut wheel).len(), 100);
        wheel.place(7, Timestamp::MIN);
        wheel.place(8, Timestamp::MAX);
        wheel.advance(Timestamp::MAX);
        assert_eq!(drain(&mut wheel).len(), 2);
        wheel.advance(Timestamp::MIN);
        assert!(drain(&mut wheel).is_empty());
    }
}
