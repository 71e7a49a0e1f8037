//! The columns of a segment: those of the stored fields, in their order.

pub(crate) use format::stored_field::{
    Access, Layout, Presence, STORED_FIELDS as COLUMNS, StoredField as Column, Width,
};

use format::session_row::{PieceId, PieceSpan, SessionRow};
use units::{Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol};

/// The columns by which hosts are looked for.
pub(crate) const ADDRESS_COLUMNS: [&str; 2] = ["orig_ip", "resp_ip"];

/// Those by which ports are.
pub(crate) const PORT_COLUMNS: [&str; 2] = ["orig_port", "resp_port"];

/// Those that tell whether a session has other rows: how long before a row it began, and whether it
/// went on behind it.
pub(crate) const PART_COLUMNS: [&str; 2] = ["session_age_ns", "continues"];

/// The columns that every reading needs: other times are differences to the first.
pub(crate) const TIME_COLUMNS: [&str; 2] = ["start_ns", "duration_ns"];

/// A piece before its columns are read.
pub(crate) const NO_SPAN: PieceSpan =
    PieceSpan { piece: PieceId { sequence: Sequence(0), sub: 0, column: 0 }, begin: 0, end: 0 };

/// A slice before its columns are read.
pub(crate) fn blank() -> SessionRow {
    let tuple = FiveTuple {
        orig: Address::None,
        resp: Address::None,
        orig_port: 0,
        resp_port: 0,
        proto: Protocol(0),
    };
    SessionRow::new(tuple, Timestamp::default())
}

/// Whether a column holds what was found in payload.
pub fn is_name(column: &str) -> bool {
    Column::find(column).is_some_and(|column| column.is_of_payload)
}
