//! Rows as columns in memory, with the names and types of the files: for engines that take tables.

use arrow_array::ArrayRef;
use arrow_schema::Schema;
use format::session_row::SessionRow;

use crate::arrays::{array, field};
use crate::columns::COLUMNS;

/// The columns of a segment's file, in their order.
pub fn schema() -> Schema {
    Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>())
}

/// The values of a column in some rows; `None` for a name that no column has.
pub fn column_of(name: &str, rows: &[&SessionRow]) -> Option<ArrayRef> {
    COLUMNS.iter().find(|column| column.name == name).map(|column| array(column, rows))
}

/// Names of all columns, in their order.
pub fn column_names() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.name)
}
