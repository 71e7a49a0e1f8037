//! Traffic over time, from session rows, by protocol or by series of the caller's: a histogram that
//! widens as it grows.
//!
//! A row's bytes and packets are spread evenly from its first to its last packet: of a row of the
//! index that is at most the length of a slice, of a session that is joined its whole life. A
//! session itself counts where it starts.

use std::collections::BTreeMap;

use format::session_row::SessionRow;
use units::Timestamp;

use crate::top::{Measure, Weight};

/// Buckets kept; when the rows span more, two become one.
const BUCKETS_MAX: i64 = 4096;
/// The first width of a bucket.
const BUCKET_NS: i64 = 1_000_000;

/// What [`Traffic::add`] looks at of a row.
pub const SERIES_COLUMNS: &[&str] =
    &["proto", "app", "orig_frame_bytes", "resp_frame_bytes", "orig_ip"];

/// Bytes, packets or sessions by time and series.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    width_ns: i64,
    /// By the number of the bucket, its time over its width; a count for each series.
    buckets: BTreeMap<i64, Vec<u64>>,
    series: Vec<String>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self { width_ns: BUCKET_NS, buckets: BTreeMap::new(), series: Vec::new() }
    }
}

impl Traffic {
    /// With these series, in this order.
    pub fn of_series(series: Vec<String>) -> Self {
        Self { series, ..Self::default() }
    }

    /// Adds the bytes of a row to its protocol.
    pub fn add(&mut self, row: &SessionRow) {
        self.add_by_protocol(row, Weight::Bytes);
    }

    /// Adds a row to its protocol: its bytes or packets, or itself.
    pub fn add_by_protocol(&mut self, row: &SessionRow, weight: Weight) {
        let app = row.app.map(|known| known.app.name());
        let name = app.or_else(|| row.tuple.proto.name()).unwrap_or("other");
        let series = self.series_of(name);
        self.add_to(series, row, weight);
    }

    /// Adds a row to one of the series.
    pub fn add_to(&mut self, series: usize, row: &SessionRow, weight: Weight) {
        let amount = Measure::of_row(row).weight(weight);
        let end = if weight == Weight::Sessions { row.start } else { row.end };
        let (start, end) = (row.start.0, end.0.max(row.start.0));
        self.widen(start, end);
        let behind = i128::from(end) + 1;
        // Times lie up to 2^64 nanoseconds apart, which times 2^64 bytes is just below 2^128.
        let length = (behind - i128::from(start)).unsigned_abs();
        let mut given = 0;
        for number in self.number(start)..=self.number(end) {
            // The share up to the bucket's end, less what was given: shares add up exactly.
            let bucket_end = (i128::from(number) + 1) * i128::from(self.width_ns);
            let until = (bucket_end.min(behind) - i128::from(start)).unsigned_abs();
            let share = u128::from(amount) * until / length;
            let share = u64::try_from(share).expect("a share is no more than the whole");
            let counts = self.buckets.entry(number).or_default();
            if counts.len() <= series {
                counts.resize(series + 1, 0);
            }
            let count = counts.get_mut(series).expect("just resized");
            *count = count.saturating_add(share - given);
            given = share;
        }
    }

    /// Names of the series, in the order of the counts.
    pub fn series(&self) -> &[String] {
        &self.series
    }

    /// Width of a bucket.
    pub fn width_ns(&self) -> i64 {
        self.width_ns
    }

    /// Buckets with traffic: where each begins, and its counts by series; series that are not there
    /// have none.
    pub fn buckets(&self) -> impl Iterator<Item = (Timestamp, &[u64])> {
        let buckets = self.buckets.iter();
        buckets.map(|(number, counts)| {
            // The first bucket may begin before all times.
            (Timestamp(number.saturating_mul(self.width_ns)), counts.as_slice())
        })
    }

    fn series_of(&mut self, name: &str) -> usize {
        let known = self.series.iter().position(|series| series == name);
        known.unwrap_or_else(|| {
            self.series.push(name.to_owned());
            self.series.len() - 1
        })
    }

    fn number(&self, time: i64) -> i64 {
        time.div_euclid(self.width_ns)
    }

    /// Doubles the width until these times and all before fit.
    fn widen(&mut self, start: i64, end: i64) {
        loop {
            let first = self.buckets.keys().next().copied().unwrap_or(i64::MAX);
            let last = self.buckets.keys().next_back().copied().unwrap_or(i64::MIN);
            let (first, last) = (first.min(self.number(start)), last.max(self.number(end)));
            if last.saturating_sub(first) < BUCKETS_MAX {
                return;
            }
            self.width_ns = self.width_ns.saturating_mul(2);
            for (number, counts) in core::mem::take(&mut self.buckets) {
                let sums = self.buckets.entry(number.div_euclid(2)).or_default();
                if sums.len() < counts.len() {
                    sums.resize(counts.len(), 0);
                }
                sums.iter_mut().zip(counts).for_each(|(sum, count)| {
                    *sum = sum.saturating_add(count);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::{App, AppBy, Recognised};

    use super::*;

    fn row(start: i64, end: i64, bytes: u64, app: Option<App>) -> SessionRow {
        let mut row = crate::top::tests::blank_row();
        (row.start, row.end) = (Timestamp(start), Timestamp(end));
        row.orig.frame_bytes = bytes;
        row.app = app.map(|app| Recognised { app, by: AppBy::Content });
        row
    }

    #[test]
    fn bytes_are_spread_evenly_and_none_is_lost() {
        let mut traffic = Traffic::default();
        traffic.add(&row(0, 3 * BUCKET_NS - 1, 300, Some(App::Tls)));
        traffic.add(&row(BUCKET_NS, BUCKET_NS, 7, None));
        assert_eq!(traffic.series(), ["tls", "tcp"]);
        let buckets: Vec<(Timestamp, &[u64])> = traffic.buckets().collect();
        let expected: [(Timestamp, &[u64]); 3] = [
            (Timestamp(0), &[100]),
            (Timestamp(BUCKET_NS), &[100, 7]),
            (Timestamp(2 * BUCKET_NS), &[100]),
        ];
        assert_eq!(buckets, expected);
    }

    #[test]
    fn times_may_be_the_earliest_and_the_latest_and_bytes_the_most() {
        for times in [
            &[(i64::MIN, i64::MIN), (i64::MAX, i64::MAX)][..],
            &[(i64::MIN, i64::MAX)],
            &[(0, i64::MAX), (i64::MIN, 0), (i64::MAX, i64::MIN)],
        ] {
            let mut traffic = Traffic::default();
            for &(start, end) in times {
                traffic.add(&row(start, end, 1000, None));
            }
            let sum: u64 = traffic.buckets().flat_map(|(_, counts)| counts).sum();
            assert_eq!(sum, 1000 * u64::try_from(times.len()).unwrap(), "{times:?}");
            traffic.add(&row(i64::MIN, i64::MAX, u64::MAX, None));
            traffic.add(&row(i64::MIN, i64::MAX, u64::MAX, None));
            assert!(traffic.buckets().count() <= 4096);
            assert!(traffic.buckets().map(|(begin, _)| begin).is_sorted());
        }
    }

    #[test]
    fn buckets_widen_and_keep_their_sum() {
        let mut traffic = Traffic::default();
        for second in 0..1000 {
            traffic.add(&row(second * 1_000_000_000, second * 1_000_000_000 + 999, 1001, None));
        }
        traffic.add(&row(-86_400_000_000_000, 1_000_000_000_000, 12_345, None));
        let sum: u64 = traffic.buckets().flat_map(|(_, counts)| counts).sum();
        assert_eq!(sum, 1_001_000 + 12_345);
        assert!(traffic.buckets().count() <= 4096 && traffic.width_ns() > BUCKET_NS);
        assert!(traffic.buckets().next().unwrap().0 <= Timestamp(-86_400_000_000_000));
    }
}
