//! Traffic over time by the values of a field.

use core::slice::from_ref;

use found::{Found, TopValue, Traffic, Weight};
use query::Field;

/// Traffic over time by some values of a field, behind which stand two series more: of what is
/// without the field, and of all other values.
#[derive(Clone, Debug)]
pub(crate) struct TrafficByValue {
    field: &'static Field,
    values: Vec<TopValue>,
    weight: Weight,
    traffic: Traffic,
}

impl TrafficByValue {
    /// For these values, each with its name.
    pub(crate) fn new(
        field: &'static Field,
        values: Vec<(TopValue, String)>,
        weight: Weight,
    ) -> Self {
        let (values, mut series): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        series.extend([format!("without {}", field.name), "others".to_owned()]);
        Self { field, values, weight, traffic: Traffic::of_series(series) }
    }

    /// Adds a session to the first of the values that it has, so that the series add up to all.
    pub(crate) fn add(&mut self, found: &Found) {
        let (mut named, mut has_value) = (None, false);
        let row = (&found.session, from_ref(&found.id));
        self.field.each(row, None, |reading| {
            let value = TopValue::of(reading);
            has_value = true;
            let place = self.values.iter().position(|one| *one == value);
            named = [named, place].into_iter().flatten().min();
        });
        let rest = self.values.len() + usize::from(has_value);
        self.traffic.add_to(named.unwrap_or(rest), &found.session, self.weight);
    }

    /// What was added.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn found(sni: Option<&str>, start: i64, packets: u64) -> Found {
        let mut found = crate::session::tests::found("/");
        let session = &mut found.session;
        (session.start, session.end) = (Timestamp(start), Timestamp(start + 10 * SECOND));
        (session.orig.packets, session.resp.packets) = (packets, 0);
        (session.orig.frame_bytes, session.resp.frame_bytes) = (100, 0);
        session.names.sni = sni.map(str::to_owned);
        found
    }

    #[test]
    fn series_of_a_field_add_up_to_all_and_sessions_count_where_they_start() {
        let field = Field::find("sni").unwrap();
        let sessions = [(Some("a"), 0, 3), (Some("b"), 5, 4), (Some("c"), 9, 5), (None, 2, 6)];
        let sums = |weight| {
            let named = vec![(TopValue::Text("a".to_owned()), "a".to_owned())];
            let mut by_value = TrafficByValue::new(field, named, weight);
            for (sni, start, packets) in sessions {
                by_value.add(&found(sni, start * SECOND, packets));
            }
            let traffic = by_value.traffic().clone();
            assert_eq!(traffic.series(), ["a", "without sni", "others"]);
            let of = |series: usize| {
                let counts = traffic.buckets().filter_map(|(_, counts)| counts.get(series));
                counts.sum::<u64>()
            };
            ([of(0), of(1), of(2)], traffic)
        };
        assert_eq!(sums(Weight::Packets).0, [3, 6, 9]);
        assert_eq!(sums(Weight::Bytes).0, [100, 100, 200]);
        let (counts, traffic) = sums(Weight::Sessions);
        assert_eq!(counts, [1, 1, 2]);
        let starts: Vec<i64> = traffic.buckets().map(|(at, _)| at.0 / SECOND).collect();
        assert_eq!(starts, [0, 2, 5, 9]);
    }
}
