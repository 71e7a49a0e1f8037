//! Sessions in the order of a field, in bounded memory.

use core::cmp::Ordering;
use core::slice::from_ref;
use std::collections::BTreeMap;
use std::sync::Arc;

use query::{Atlas, Field};

use crate::event::Found;
use crate::top::TopValue;

/// Memory that sessions which wait for their place may take.
pub const SORT_BYTES_MAX: usize = 256 << 20;

/// By what sessions are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortBy {
    /// The field. Of several values the one that comes first in this order counts.
    pub field: &'static Field,
    /// The largest first.
    pub is_descending: bool,
}

impl SortBy {
    /// The place of a session in this order.
    pub fn key(&self, found: &Found, atlas: Option<&Atlas>) -> SortKey {
        let Self { field, is_descending } = *self;
        let mut value: Option<TopValue> = None;
        field.each((&found.session, from_ref(&found.id)), atlas, |reading| {
            let next = TopValue::of(reading);
            let is_first = value.as_ref().is_none_or(|first| (next > *first) == is_descending);
            if is_first {
                value = Some(next);
            }
        });
        SortKey { value, is_descending }
    }
}

/// The value of a session in an order; sessions without one come last. Keys of one order compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SortKey {
    value: Option<TopValue>,
    is_descending: bool,
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.value, &other.value) {
            (Some(own), Some(other)) if self.is_descending => other.cmp(own),
            (Some(own), Some(other)) => own.cmp(other),
            (own, other) => own.is_none().cmp(&other.is_none()),
        }
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The place of a session; those with the same value come in the order in which they came.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    key: SortKey,
    arrival: u64,
}

/// Takes sessions in any order and keeps the first ones of the order that is asked for.
#[derive(Debug)]
pub struct Sorted {
    by: SortBy,
    atlas: Option<Arc<Atlas>>,
    limit: u64,
    bytes_max: usize,
    held: BTreeMap<Place, Found>,
    bytes: usize,
    arrivals: u64,
    /// Sessions that were dropped because of the memory, not because of the limit.
    pub left_out: u64,
    /// There are sessions beyond the limit.
    pub is_limited: bool,
}

impl Sorted {
    /// At most `limit` sessions, within [`SORT_BYTES_MAX`].
    pub fn new(by: SortBy, limit: Option<u64>, atlas: Option<Arc<Atlas>>) -> Self {
        Self {
            by,
            atlas,
            limit: limit.unwrap_or(u64::MAX),
            bytes_max: SORT_BYTES_MAX,
            held: BTreeMap::new(),
            bytes: 0,
            arrivals: 0,
            left_out: 0,
            is_limited: false,
        }
    }

    /// Takes a session.
    pub fn push(&mut self, found: &Found) {
        let key = self.by.key(found, self.atlas.as_deref());
        self.arrivals += 1;
        let place = Place { key, arrival: self.arrivals };
        let is_full = self.count() >= self.limit;
        self.is_limited |= is_full;
        if is_full && self.held.last_key_value().is_none_or(|(last, _)| place > *last) {
            return;
        }
        self.bytes += place.bytes() + found.bytes();
        self.held.insert(place, found.clone());
        while self.count() > self.limit {
            self.drop_last();
        }
        while self.bytes > self.bytes_max && self.held.len() > 1 {
            self.left_out += 1;
            self.drop_last();
        }
    }

    fn count(&self) -> u64 {
        u64::try_from(self.held.len()).unwrap_or(u64::MAX)
    }

    fn drop_last(&mut self) {
        if let Some((place, found)) = self.held.pop_last() {
            self.bytes -= place.bytes() + found.bytes();
        }
    }

    /// Those that were kept, in order.
    pub fn finish(self) -> impl Iterator<Item = Found> {
        self.held.into_values()
    }
}

impl Place {
    /// What it takes in memory, and the session beside it, as far as their sizes are known. A
    /// tree's nodes are at least half full.
    fn bytes(&self) -> usize {
        let value = match &self.key.value {
            Some(TopValue::Text(text)) => text.capacity(),
            _ => 0,
        };
        2 * size_of::<Self>() + size_of::<Found>() + value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Held;
    use crate::top::tests::blank_row;

    fn found(sni: Option<&str>, port: u16) -> Found {
        let mut session = blank_row();
        session.tuple.orig_port = port;
        session.names.sni = sni.map(str::to_owned);
        Found {
            id: format!("1.0-{port}"),
            rows: Vec::new(),
            session,
            community_id: None,
            packets: Held::Held,
            is_provisional: false,
        }
    }

    fn order(by: &str, is_descending: bool, limit: Option<u64>) -> Vec<u16> {
        let by = SortBy { field: Field::find(by).unwrap(), is_descending };
        let mut sorted = Sorted::new(by, limit, None);
        for (sni, port) in [(Some("b"), 5), (None, 9), (Some("A"), 500), (Some("b"), 1)] {
            sorted.push(&found(sni, port));
        }
        assert_eq!(sorted.left_out, 0);
        sorted.finish().map(|found| found.session.tuple.orig_port).collect()
    }

    #[test]
    fn sessions_without_a_value_come_last_and_equal_ones_as_they_came() {
        assert_eq!(order("sni", false, None), [500, 5, 1, 9]);
        assert_eq!(order("sni", true, None), [5, 1, 500, 9]);
        assert_eq!(order("orig_port", false, None), [1, 5, 9, 500]);
        assert_eq!(order("orig_port", true, Some(2)), [500, 9]);
        assert_eq!(order("orig_port", true, Some(0)), [0; 0]);
    }

    #[test]
    fn of_several_values_the_first_of_the_order_counts() {
        // Each has port 443 at its other end.
        assert_eq!(order("port", false, None), [1, 5, 9, 500]);
        assert_eq!(order("port", true, None), [500, 5, 9, 1]);
    }

    #[test]
    fn memory_has_a_bound_and_what_it_drops_is_counted() {
        let by = SortBy { field: Field::find("orig_port").unwrap(), is_descending: true };
        let mut sorted = Sorted::new(by, None, None);
        sorted.bytes_max = 64 << 10;
        for port in 0..2000 {
            sorted.push(&found(None, port));
        }
        assert!(sorted.bytes <= sorted.bytes_max, "{}", sorted.bytes);
        let left_out = sorted.left_out;
        let kept: Vec<u16> = sorted.finish().map(|found| found.session.tuple.orig_port).collect();
        assert_eq!(u64::try_from(kept.len()).unwrap() + left_out, 2000);
        assert_eq!(kept.first(), Some(&1999));
        assert!(kept.is_sorted_by(|one, next| one > next));
    }
}
