//! How far back the ring will reach, at the rate of the last minute.

use std::collections::VecDeque;

use units::NANOS_PER_SECOND;

/// What counts as now.
const SPAN_NS: i64 = 60 * NANOS_PER_SECOND;
/// Less says nothing about a rate.
const SPAN_NS_MIN: i64 = 5 * NANOS_PER_SECOND;
/// Between two looks that are kept.
const STEP_NS: i64 = NANOS_PER_SECOND;

/// Watches the bytes that go to the members.
#[derive(Debug)]
pub struct ReachBack {
    /// Bytes of a whole ring, on all members.
    ring_bytes: u64,
    /// Times and bytes, oldest first.
    seen: VecDeque<(i64, u64)>,
}

impl ReachBack {
    /// Of a ring of so many bytes, of which nothing was seen.
    pub fn new(ring_bytes: u64) -> Self {
        Self { ring_bytes, seen: VecDeque::with_capacity(64) }
    }

    /// Hears what was sent so far; says in nanoseconds what a whole ring holds at this rate.
    pub fn note(&mut self, now_ns: i64, bytes: u64) -> Option<i64> {
        if self.seen.back().is_none_or(|&(last_ns, _)| now_ns - last_ns >= STEP_NS) {
            self.seen.push_back((now_ns, bytes));
        }
        while self.seen.len() > 1
            && self.seen.pop_front_if(|&mut (then_ns, _)| now_ns - then_ns > SPAN_NS).is_some()
        {
        }
        let &(then_ns, before) = self.seen.front()?;
        let (ns, sent) = (now_ns - then_ns, bytes.saturating_sub(before));
        if ns < SPAN_NS_MIN || sent == 0 {
            return None;
        }
        let holds = i128::from(self.ring_bytes) * i128::from(ns) / i128::from(sent);
        Some(i64::try_from(holds).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let mut reach = ReachBack::new(1_000_000);
        let mut bytes = 0;
        let mut holds = None;
        for second in 0..600_i64 {
            // First 10 bytes a second, then 100.
            bytes += if second < 300 { 10 } else { 100 };
            holds = reach.note(second * NANOS_PER_SECOND, bytes);
            match second {
                ..5 => assert_eq!(holds, None),
                5..300 => assert_eq!(holds, Some(100_000 * NANOS_PER_SECOND)),
                _ => {}
            }
        }
        assert_eq!(holds, Some(10_000 * NANOS_PER_SECOND));
        assert!(reach.seen.len() <= 62);
    }

    #[test]
    fn silence_predicts_nothing() {
        let mut reach = ReachBack::new(1_000_000);
        assert!((0..100).all(|second| reach.note(second * NANOS_PER_SECOND, 7).is_none()));
    }
}
