//! What all conditions are made of.

use crate::operator::Join;

/// Whose words are used, where engines differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Trino.
    Trino,
    /// `DuckDB`.
    DuckDb,
}

pub(super) const TRUE: &str = "TRUE";
pub(super) const FALSE: &str = "FALSE";

/// Several conditions as one.
pub(super) fn joined(join: Join, mut parts: Vec<String>) -> String {
    let (word, none) = match join {
        Join::And => (" AND ", TRUE),
        Join::Or => (" OR ", FALSE),
    };
    match parts.len() {
        0 => none.to_owned(),
        1 => parts.remove(0),
        _ => format!("({})", parts.join(word)),
    }
}
