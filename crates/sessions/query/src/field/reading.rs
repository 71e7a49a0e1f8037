//! A row as fields look at it, and the values that they find.

use format::kind::Kind;
use format::session_row::SessionRow;
use format::stored_field::{StoredField, StoredValue};
use units::Timestamp;
use wire::Address;

use crate::atlas::Atlas;

/// A value that a field has in a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reading<'a> {
    /// A count, a size, a number with a name; a duration in nanoseconds.
    Number(u64),
    /// A point in time.
    Time(Timestamp),
    /// Text in which upper and lower case are the same.
    Name(&'a str),
    /// Text in which they are not.
    Text(&'a str),
    /// An address.
    Address(Address),
    /// Yes or no.
    Flag(bool),
}

/// A slice and what only its place in the index says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) slice: &'a SessionRow,
    /// Ids of its rows.
    pub(crate) ids: &'a [String],
    /// What is known of addresses besides.
    pub(crate) atlas: Option<&'a Atlas>,
}

/// Takes one value; returns true when it has seen enough.
pub(crate) type Found<'f> = dyn FnMut(Reading<'_>) -> bool + 'f;

/// Whether pcap-filter's `port` looks at it.
pub(crate) fn has_ports(row: &Row<'_>) -> bool {
    row.slice.tuple.proto.has_ports()
}

/// A number, where there is one.
pub(super) fn number(value: Option<impl Into<u64>>, found: &mut Found<'_>) -> bool {
    value.is_some_and(|value| found(Reading::Number(value.into())))
}

/// Whether a test holds for any value of a stored field.
pub(super) fn given(field: &StoredField, row: &Row<'_>, found: &mut Found<'_>) -> bool {
    let text = |value| match field.kind {
        Kind::Text => Reading::Text(value),
        _ => Reading::Name(value),
    };
    match field.value(row.slice) {
        StoredValue::Absent => false,
        StoredValue::Time(time) => found(Reading::Time(time)),
        StoredValue::Number(number) => found(Reading::Number(number)),
        StoredValue::Flag(flag) => found(Reading::Flag(flag)),
        StoredValue::Address(address) => found(Reading::Address(address)),
        StoredValue::Text(value) => found(text(value)),
        StoredValue::Texts(values) => values.iter().any(|value| found(text(value))),
        StoredValue::Numbers(values) => {
            values.iter().any(|value| found(Reading::Number((*value).into())))
        }
    }
}

/// An address, where there is one.
pub(super) fn address(address: Address, found: &mut Found<'_>) -> bool {
    address != Address::None && found(Reading::Address(address))
}
