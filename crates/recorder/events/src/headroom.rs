//! Traffic beside what the members were found to guarantee.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use units::NANOS_PER_SECOND;

/// What counts as now: shorter stretches are the pool's business.
const SPAN_NS: i64 = 10 * NANOS_PER_SECOND;
/// Between two looks that are kept.
const STEP_NS: i64 = NANOS_PER_SECOND / 2;
/// Percent of the guaranteed rate from which on traffic is near it, and below which it is not any
/// more; and the same for above it. They lie apart, so that traffic at a limit is reported once.
const NEAR: (u64, u64) = (85, 75);
const ABOVE: (u64, u64) = (100, 95);

/// How traffic stands to what is guaranteed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Well below.
    #[default]
    Calm,
    /// Traffic comes near the guarantee.
    Near,
    /// Above: the pool bridges it, or packets are lost.
    Above,
}

/// Traffic beside what is guaranteed, in bytes a second on all members. Fields are keys in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Headroom {
    /// What was found to be guaranteed.
    pub guaranteed_bytes_per_s: u64,
    /// What came in the last ten seconds, what was lost included.
    pub offered_bytes_per_s: u64,
    /// The most of any ten seconds.
    pub offered_bytes_per_s_max: u64,
    /// How near the traffic is to the guarantee. Not read again.
    #[serde(skip_deserializing)]
    pub level: Level,
    /// How often traffic came near, and how often above.
    pub warnings: u64,
    /// Times and bytes, the oldest first.
    #[serde(skip)]
    seen: VecDeque<(i64, u64)>,
}

impl Headroom {
    pub(crate) fn new(guaranteed_bytes_per_s: u64) -> Self {
        Self {
            guaranteed_bytes_per_s,
            offered_bytes_per_s: 0,
            offered_bytes_per_s_max: 0,
            level: Level::Calm,
            warnings: 0,
            seen: VecDeque::with_capacity(32),
        }
    }

    /// Hears what was offered so far; gives the level when it has changed.
    pub(crate) fn note(&mut self, now_ns: i64, bytes: u64) -> Option<Level> {
        if self.seen.back().is_some_and(|&(last_ns, _)| now_ns - last_ns < STEP_NS) {
            return None;
        }
        self.seen.push_back((now_ns, bytes));
        while self.seen.pop_front_if(|&mut (then_ns, _)| now_ns - then_ns > SPAN_NS).is_some() {}
        let &(then_ns, before) = self.seen.front()?;
        // A rate is that of the whole span.
        if now_ns - then_ns < SPAN_NS - STEP_NS {
            return None;
        }
        let bytes = i128::from(bytes.saturating_sub(before)) * i128::from(NANOS_PER_SECOND);
        let rate = bytes / i128::from(now_ns - then_ns);
        self.offered_bytes_per_s = u64::try_from(rate).unwrap_or(u64::MAX);
        self.offered_bytes_per_s_max = self.offered_bytes_per_s_max.max(self.offered_bytes_per_s);
        let level = self.level_now();
        if level == self.level {
            return None;
        }
        self.warnings += u64::from(level > self.level);
        self.level = level;
        Some(level)
    }

    fn level_now(&self) -> Level {
        let percent = u128::from(self.offered_bytes_per_s) * 100
            / u128::from(self.guaranteed_bytes_per_s.max(1));
        let is_in = |(from, to): (u64, u64), level: Level| {
            percent >= u128::from(if self.level >= level { to } else { from })
        };
        match (is_in(ABOVE, Level::Above), is_in(NEAR, Level::Near)) {
            (true, _) => Level::Above,
            (_, true) => Level::Near,
            _ => Level::Calm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds at a rate, of 100 guaranteed: what was said.
    fn said(load: &[(i64, u64)]) -> (Vec<Level>, Headroom) {
        let mut headroom = Headroom::new(100);
        let (mut now, mut bytes, mut said) = (0, 0, Vec::new());
        for &(seconds, rate) in load {
            for _ in 0..seconds {
                (now, bytes) = (now + NANOS_PER_SECOND, bytes + rate);
                said.extend(headroom.note(now, bytes));
            }
        }
        (said, headroom)
    }

    #[test]
    fn each_state_is_told_of_once_and_left_only_well_below_its_limit() {
        let (levels, headroom) = said(&[(60, 50), (60, 90), (60, 80), (60, 88), (60, 50)]);
        assert_eq!(levels, [Level::Near, Level::Calm]);
        assert_eq!((headroom.warnings, headroom.offered_bytes_per_s_max), (1, 90));
        let (levels, headroom) = said(&[(60, 90), (60, 120), (60, 97), (60, 90), (60, 20)]);
        assert_eq!(levels, [Level::Near, Level::Above, Level::Near, Level::Calm]);
        assert_eq!((headroom.warnings, headroom.offered_bytes_per_s), (2, 20));
    }

    #[test]
    fn a_peak_that_the_pool_bridges_and_a_beginning_are_nothing() {
        let (levels, _) = said(&[(5, 100), (60, 10), (2, 300), (60, 10)]);
        assert_eq!(levels, []);
    }
}
