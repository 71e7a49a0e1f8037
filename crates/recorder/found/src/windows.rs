//! Stretches of time that packets are taken from.

use core::ops::RangeInclusive;
use core::time::Duration;

use units::Timestamp;

/// Stretches that do not touch, ascending. Bounds belong to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows(Vec<RangeInclusive<Timestamp>>);

impl Windows {
    /// One stretch.
    pub fn one(times: RangeInclusive<Timestamp>) -> Self {
        Self(vec![times])
    }

    /// Joins stretches, each widened on both sides by `margin`.
    pub fn around(
        stretches: impl Iterator<Item = RangeInclusive<Timestamp>>,
        margin: Duration,
    ) -> Self {
        // More than between any two times, which lie up to 2^64 apart.
        let margin = i128::try_from(margin.as_nanos()).unwrap_or(i128::MAX).min(1 << 64);
        let wide =
            stretches.map(|times| (moved(*times.start(), -margin), moved(*times.end(), margin)));
        let mut all: Vec<(Timestamp, Timestamp)> = wide.collect();
        all.sort_unstable();
        let mut joined: Vec<RangeInclusive<Timestamp>> = Vec::new();
        for (start, end) in all {
            match joined.last_mut() {
                Some(last) if start <= *last.end() => {
                    *last = *last.start()..=end.max(*last.end());
                }
                _ => joined.push(start..=end),
            }
        }
        Self(joined)
    }

    /// From the first to the last moment; an empty range where there is none.
    pub fn hull(&self) -> RangeInclusive<Timestamp> {
        let start = self.0.first().map_or(Timestamp::MAX, |times| *times.start());
        let end = self.0.last().map_or(Timestamp::MIN, |times| *times.end());
        start..=end
    }

    /// Whether it is in a stretch.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.overlaps(time, time)
    }

    /// Whether some moment from `start` to `end` is in a stretch.
    pub fn overlaps(&self, start: Timestamp, end: Timestamp) -> bool {
        let behind = self.0.partition_point(|times| *times.end() < start);
        self.0.get(behind).is_some_and(|times| *times.start() <= end)
    }
}

fn moved(time: Timestamp, by_ns: i128) -> Timestamp {
    let moved = i128::from(time.0) + by_ns;
    Timestamp(i64::try_from(moved).unwrap_or(if moved < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_widened_joined_and_asked() {
        let times = |start, end| Timestamp(start)..=Timestamp(end);
        let stretches = [times(100, 110), times(10, 20), times(28, 30)];
        let windows = Windows::around(stretches.into_iter(), Duration::from_nanos(5));
        assert_eq!(windows, Windows(vec![times(5, 35), times(95, 115)]));
        assert_eq!(windows.hull(), times(5, 115));
        for (time, is_in) in [(4, false), (5, true), (35, true), (36, false), (95, true)] {
            assert_eq!(windows.contains(Timestamp(time)), is_in, "{time}");
        }
        let ends = [times(i64::MIN, i64::MIN), times(i64::MAX, i64::MAX)];
        for margin in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
            let windows = Windows::around(ends.clone().into_iter(), margin);
            assert_eq!(windows.contains(Timestamp(0)), margin == Duration::MAX);
            assert_eq!(windows.hull(), times(i64::MIN, i64::MAX));
        }
        assert!(windows.overlaps(Timestamp(36), Timestamp(95)));
        assert!(!windows.overlaps(Timestamp(36), Timestamp(94)));
        assert!(!windows.overlaps(Timestamp(116), Timestamp::MAX));
        assert!(Windows::around([].into_iter(), Duration::ZERO).hull().is_empty());
    }
}
