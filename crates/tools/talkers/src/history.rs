//! What happened in each second of the packets' time, as far back as there is space.

use std::collections::VecDeque;

use units::{NANOS_PER_SECOND, Timestamp};

use crate::exchange::Exchange;

/// Lengths of the windows that rates are given for, in seconds: those of iftop.
pub const WINDOWS: [i64; 3] = [2, 10, 40];

/// A second of the packets' time: what is asked about is the windows that end with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(pub i64);

impl Moment {
    /// The second that a time lies in.
    pub fn of(time: Timestamp) -> Self {
        Self(time.unix_seconds())
    }

    /// Time at which the second ends.
    pub fn end(self) -> Timestamp {
        Timestamp(self.0.saturating_add(1).saturating_mul(NANOS_PER_SECOND))
    }

    /// So many seconds later.
    #[must_use]
    pub fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

const _: () = assert!(size_of::<Entry>() == 32, "a line, as `Limits` says");

/// What a session had in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Its place among the known ones.
    pub(crate) session: u32,
    /// Of the originator and of the responder.
    pub(crate) packets: [u32; 2],
    pub(crate) bytes: [u64; 2],
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    pub(crate) number: i64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) exchanges: Vec<Exchange>,
    /// Bytes of all entries.
    pub(crate) bytes: u64,
}

impl Second {
    /// In lines: an entry is one, an exchange as many as its bytes make.
    fn weight(&self) -> usize {
        let bytes: usize = self.exchanges.iter().map(Exchange::memory_bytes).sum();
        self.entries.len() + bytes.div_ceil(size_of::<Entry>()) + 1
    }
}

/// Seconds in which something happened, ascending.
#[derive(Debug)]
pub(crate) struct History {
    seconds: VecDeque<Second>,
    weight: usize,
    weight_max: usize,
}

impl History {
    /// Space for so many lines of 32 bytes.
    pub(crate) fn new(weight_max: usize) -> Self {
        Self { seconds: VecDeque::new(), weight: 0, weight_max }
    }

    /// Adds a second, which is later than all others; `forget` gets those that go for it.
    pub(crate) fn push(&mut self, second: Second, mut forget: impl FnMut(&Second)) {
        assert!(self.newest().is_none_or(|newest| newest.0 < second.number), "seconds ascend");
        self.weight += second.weight();
        self.seconds.push_back(second);
        while self.weight > self.weight_max && self.seconds.len() > 1 {
            self.forget_oldest(&mut forget);
        }
    }

    /// Removes the oldest second; false when there is none.
    pub(crate) fn forget_oldest(&mut self, mut forget: impl FnMut(&Second)) -> bool {
        let Some(oldest) = self.seconds.pop_front() else { return false };
        self.weight -= oldest.weight();
        forget(&oldest);
        true
    }

    pub(crate) fn oldest(&self) -> Option<Moment> {
        self.seconds.front().map(|second| Moment(second.number))
    }

    pub(crate) fn newest(&self) -> Option<Moment> {
        self.seconds.back().map(|second| Moment(second.number))
    }

    /// The seconds of the longest window that ends at a moment, each with how many of
    /// [`WINDOWS`], from the longest on, it is in: 1 to 3.
    pub(crate) fn window(&self, at: Moment) -> impl Iterator<Item = (usize, &Second)> {
        let longest = WINDOWS.into_iter().max().unwrap_or(0);
        self.since(at, longest).map(move |second| {
            let age = at.0 - second.number;
            (WINDOWS.iter().filter(|&&window| age < window).count(), second)
        })
    }

    /// The last so many seconds up to a moment.
    pub(crate) fn since(&self, at: Moment, seconds: i64) -> impl Iterator<Item = &Second> {
        let begin = self.seconds.partition_point(|second| second.number <= at.0 - seconds);
        let end = self.seconds.partition_point(|second| second.number <= at.0);
        self.seconds.range(begin..end.max(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: i64, entries: usize) -> Second {
        let entry = Entry { session: 0, packets: [1, 0], bytes: [60, 0] };
        Second { number, entries: vec![entry; entries], ..Second::default() }
    }

    #[test]
    fn a_window_has_the_seconds_that_end_with_its_moment() {
        let mut history = History::new(1000);
        for number in [10, 48, 49, 50, 51] {
            history.push(second(number, 1), |_| {});
        }
        let window = |at| -> Vec<(usize, i64)> {
            history.window(Moment(at)).map(|(count, second)| (count, second.number)).collect()
        };
        assert_eq!(window(50), [(2, 48), (3, 49), (3, 50)]);
        assert_eq!(window(49), [(1, 10), (3, 48), (3, 49)]);
        assert_eq!(window(9), []);
    }

    #[test]
    fn the_oldest_seconds_go_when_there_is_no_room() {
        let mut history = History::new(10);
        let mut gone = Vec::new();
        for number in 0..5 {
            history.push(second(number, 3), |second| gone.push(second.number));
        }
        assert_eq!((gone, history.oldest()), (vec![0, 1, 2], Some(Moment(3))));
        history.push(second(9, 100), |_| {});
        assert_eq!(history.oldest(), Some(Moment(9)), "the newest one stays, however large");
    }
}
