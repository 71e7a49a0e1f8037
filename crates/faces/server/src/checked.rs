//! What is wrong with a query, before a process is started for it.

use query::{Field, Query};
use units::Timestamp;

use crate::problem::Problem;

/// A longer query is none that anybody wrote.
pub(crate) const QUERY_BYTES_MAX: usize = 32 << 10;

/// The query of a request; what is wrong with it costs no process.
pub(crate) fn checked(text: &str, now_ns: i64) -> Result<(), Problem> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(Problem::too_long("a query has at most 32 KiB"));
    }
    let query = Query::parse(text, Timestamp(now_ns))
        .map_err(|error| Problem::wrong_query(&error, text))?;
    match query.needs_atlas() {
        Some(field) => Err(needs_atlas(field)),
        None => Ok(()),
    }
}

/// It cannot be asked of a service.
pub(crate) fn needs_atlas(field: &Field) -> Problem {
    Problem::wrong_parameter(format!(
        "{} needs a database of addresses, or tags: there is none here",
        field.name
    ))
}
