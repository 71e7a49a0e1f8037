//! What is wrong with a query, before a process is started for it.

use host::SystemClock;
use query::{Field, Query};
use units::{Clock as _, Timestamp};

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

/// The times that a filter lets see; `None` where there is none, and all is seen.
pub(crate) fn seen_times(filter: Option<&str>) -> Result<Option<(i64, i64)>, Problem> {
    let Some(filter) = filter else { return Ok(None) };
    let (from, until) = times(filter, SystemClock.realtime().0)?;
    Ok(Some((from.0, until.0)))
}

/// The times of a query.
pub(crate) fn times(query: &str, now_ns: i64) -> Result<(Timestamp, Timestamp), Problem> {
    let parsed = Query::parse(query, Timestamp(now_ns));
    parsed.map(|query| query.time_range()).map_err(|error| Problem::wrong_query(&error, query))
}
