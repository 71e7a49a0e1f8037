//! What an atlas knows of the ends of a session.

use wire::Address;

use super::reading::{Found, Reading, Row, number};

pub(super) fn ends(row: &Row<'_>) -> impl Iterator<Item = Address> {
    [row.slice.tuple.orig, row.slice.tuple.resp].into_iter()
}

pub(super) fn country(row: &Row<'_>, address: Address, found: &mut Found<'_>) -> bool {
    row.atlas.and_then(|atlas| atlas.country(address)).is_some_and(|it| found(Reading::Name(it)))
}

pub(super) fn as_number(row: &Row<'_>, address: Address, found: &mut Found<'_>) -> bool {
    number(row.atlas.and_then(|atlas| atlas.as_number(address)), found)
}

pub(super) fn as_name(row: &Row<'_>, address: Address, found: &mut Found<'_>) -> bool {
    row.atlas.and_then(|atlas| atlas.as_name(address)).is_some_and(|it| found(Reading::Name(it)))
}
