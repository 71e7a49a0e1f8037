//! The values of a field with the most traffic or sessions.

use core::cmp::Reverse;
use core::slice::from_ref;
use std::collections::BTreeMap;
use std::sync::Arc;

use format::session_row::SessionRow;
use query::{Atlas, Field, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Timestamp;
use wire::Address;

use crate::event::Found;

/// Distinct values that are counted; those that come later are only summed.
const VALUES_MAX: usize = 4 << 20;

/// By what values are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Weight {
    /// Bytes on the wire.
    #[default]
    Bytes,
    /// Sum of packets.
    Packets,
    /// Number of sessions.
    Sessions,
}

impl Weight {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Packets, Self::Sessions];

    /// As requests have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Sessions => "sessions",
        }
    }
}

/// A value of a field.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TopValue {
    /// A number.
    Number(u64),
    /// A time.
    Time(Timestamp),
    /// A text.
    Text(String),
    /// An address.
    Address(Address),
    /// Yes or no.
    Flag(bool),
}

/// What sessions sum up to. Fields are keys in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Measure {
    /// Number of sessions.
    pub sessions: u64,
    /// Packets, both ways.
    pub packets: u64,
    /// Bytes on the wire, both ways.
    pub bytes: u64,
}

impl Measure {
    /// The number by which values are ordered.
    pub fn weight(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Bytes => self.bytes,
            Weight::Packets => self.packets,
            Weight::Sessions => self.sessions,
        }
    }

    /// Those of one session.
    pub fn of(found: &Found) -> Self {
        Self::of_row(&found.session)
    }

    /// Those of one row.
    pub fn of_row(row: &SessionRow) -> Self {
        let (orig, resp) = (&row.orig, &row.resp);
        Self {
            sessions: 1,
            packets: orig.packets.saturating_add(resp.packets),
            bytes: orig.frame_bytes.saturating_add(resp.frame_bytes),
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        // An index may say anything.
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A value with the sessions that have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopRow {
    /// Value of the field.
    pub value: TopValue,
    /// Sessions, packets and bytes with this value.
    pub measure: Measure,
}

/// Counts the values of a field over sessions.
#[derive(Clone, Debug)]
pub struct Top {
    field: &'static Field,
    values: BTreeMap<TopValue, Measure>,
    /// Sums over all sessions.
    pub total: Measure,
    /// Those in which the field is absent.
    pub absent: Measure,
    /// Values beyond as many as are counted one by one.
    pub uncounted: Measure,
    atlas: Option<Arc<Atlas>>,
}

impl Top {
    /// Counts the values of this field.
    pub fn new(field: &'static Field) -> Self {
        let none = Measure::default();
        let values = BTreeMap::new();
        Self { field, values, total: none, absent: none, uncounted: none, atlas: None }
    }

    /// The same, with what an atlas knows about addresses.
    #[must_use]
    pub fn with_atlas(self, atlas: Arc<Atlas>) -> Self {
        Self { atlas: Some(atlas), ..self }
    }

    /// The columns that it looks at.
    pub fn columns(&self) -> Vec<&'static str> {
        let counters = ["orig_packets", "resp_packets", "orig_frame_bytes", "resp_frame_bytes"];
        [self.field.columns(), &counters].concat()
    }

    /// Counts a session under each of its values.
    pub fn add(&mut self, found: &Found) {
        let measure = Measure::of(found);
        let mut own: Vec<TopValue> = Vec::new();
        let row = (&found.session, from_ref(&found.id));
        self.field.each(row, self.atlas.as_deref(), |reading| own.push(TopValue::of(reading)));
        // Both ends may be the same host.
        own.sort_unstable();
        own.dedup();
        self.total.add(&measure);
        if own.is_empty() {
            self.absent.add(&measure);
        }
        for value in own {
            if let Some(sum) = self.values.get_mut(&value) {
                sum.add(&measure);
            } else if self.values.len() < VALUES_MAX {
                self.values.insert(value, measure);
            } else {
                self.uncounted.add(&measure);
            }
        }
    }

    /// How many values there are.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    /// Those with the most first, at most `limit`; of two that are alike the smaller value.
    pub fn rows(self, weight: Weight, limit: usize) -> Vec<TopRow> {
        let mut rows: Vec<TopRow> =
            self.values.into_iter().map(|(value, measure)| TopRow { value, measure }).collect();
        rows.sort_by_key(|row| Reverse(row.measure.weight(weight)));
        rows.truncate(limit);
        rows
    }
}

impl TopValue {
    /// The value as a field has it.
    pub fn reading(&self) -> Reading<'_> {
        match self {
            Self::Number(number) => Reading::Number(*number),
            Self::Time(time) => Reading::Time(*time),
            Self::Text(text) => Reading::Text(text),
            Self::Address(address) => Reading::Address(*address),
            Self::Flag(flag) => Reading::Flag(*flag),
        }
    }

    /// What a field has, as it is written.
    pub fn as_written(reading: Reading<'_>) -> Self {
        match reading {
            Reading::Name(text) => Self::Text(text.to_owned()),
            reading => Self::of(reading),
        }
    }

    /// What a field has; names in lower case, for a name is the same however it is written.
    pub fn of(reading: Reading<'_>) -> Self {
        match reading {
            Reading::Number(number) => Self::Number(number),
            Reading::Time(time) => Self::Time(time),
            Reading::Name(text) => Self::Text(text.to_ascii_lowercase()),
            Reading::Text(text) => Self::Text(text.to_owned()),
            Reading::Address(address) => Self::Address(address),
            Reading::Flag(flag) => Self::Flag(flag),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wire::{FiveTuple, Protocol};

    use super::*;
    use crate::event::Held;

    /// A row of TCP from 10.0.0.1 to 10.0.0.2 without packets.
    pub(crate) fn blank_row() -> SessionRow {
        let address = |last| Address::V4([10, 0, 0, last].into());
        let tuple = FiveTuple {
            orig: address(1),
            resp: address(2),
            orig_port: 1000,
            resp_port: 443,
            proto: Protocol::TCP,
        };
        SessionRow::new(tuple, Timestamp(0))
    }

    fn found(sni: Option<&str>, port: u16, bytes: u64) -> Found {
        let mut session = blank_row();
        session.tuple.orig_port = port;
        (session.orig.packets, session.orig.frame_bytes) = (1, bytes);
        session.names.sni = sni.map(str::to_owned);
        Found {
            id: "1.0-0".to_owned(),
            rows: Vec::new(),
            session,
            community_id: None,
            packets: Held::Held,
            is_provisional: false,
        }
    }

    #[test]
    fn values_are_ranked_by_what_is_asked_for() {
        let mut top = Top::new(Field::find("sni").unwrap());
        for (sni, bytes) in [(Some("b.example"), 10), (Some("A.example"), 3), (None, 100)] {
            top.add(&found(sni, 1000, bytes));
        }
        top.add(&found(Some("a.example"), 1000, 3));
        assert_eq!((top.total.sessions, top.absent.bytes, top.values()), (4, 100, 2));
        let text = |rows: Vec<TopRow>| rows.into_iter().map(|row| row.value).collect::<Vec<_>>();
        let [a, b] = ["a.example", "b.example"].map(|name| TopValue::Text(name.to_owned()));
        assert_eq!(text(top.clone().rows(Weight::Bytes, 9)), [b.clone(), a.clone()]);
        assert_eq!(text(top.clone().rows(Weight::Sessions, 9)), [a, b.clone()]);
        assert_eq!(text(top.rows(Weight::Bytes, 1)), [b]);
    }

    #[test]
    fn a_session_counts_under_each_of_its_values_once() {
        let mut top = Top::new(Field::find("port").unwrap());
        top.add(&found(None, 1000, 5));
        top.add(&found(None, 443, 5));
        let rows = top.rows(Weight::Sessions, 9);
        let counts: Vec<(TopValue, u64)> =
            rows.into_iter().map(|row| (row.value, row.measure.sessions)).collect();
        assert_eq!(counts, [(TopValue::Number(443), 2), (TopValue::Number(1000), 1)]);
    }
}
