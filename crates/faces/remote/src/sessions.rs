//! Sessions of a service: lines of JSON, which become what a search on this machine finds.

use found::Found;

use crate::documents::Said;
use crate::there::There;
use crate::{Error, NDJSON};

/// Which sessions are wanted, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most so many.
    pub limit: Option<u64>,
    /// A parameter for it; by their start without one.
    pub order: Option<(&'static str, String)>,
    /// Where an answer before this one was cut.
    pub cursor: Option<String>,
    /// A session is no longer in bytes, where many services are asked at once.
    pub line_bytes_max: Option<usize>,
}

/// Why not all sessions were taken.
#[derive(Debug)]
pub enum Ended<E> {
    /// The service, or the way to it.
    Service(Error),
    /// Who takes them.
    Taker(E),
}

impl<E> From<Error> for Ended<E> {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

/// Calls `take` with the sessions of a volume that match its query; gives what is missing.
///
/// # Errors
/// When the answer ends early, is none, or `take` refuses.
pub fn sessions<E>(
    there: &There,
    wanted: &Wanted,
    take: &mut dyn FnMut(Found) -> Result<(), E>,
) -> Result<Said, Ended<E>> {
    let limit = wanted.limit.map(|limit| ("limit", limit.to_string()));
    let cursor = wanted.cursor.clone().map(|cursor| ("cursor", cursor));
    let parameters: Vec<_> = limit.into_iter().chain(wanted.order.clone()).chain(cursor).collect();
    let mut answer = there.get("/api/v1/sessions", &parameters, NDJSON)?;
    answer.bound_lines(wanted.line_bytes_max);
    let (mut buffer, mut count) = (Vec::new(), 0_u64);
    while let Some(line) = answer.line(&mut buffer)? {
        let wrong = |why| there.unlike(&format!("a session that is none: {why}"));
        let found = session_view::read_session(line).map_err(wrong)?;
        if wanted.limit == Some(count) {
            return Err(there.unlike("it sends more sessions than were asked for").into());
        }
        count += 1;
        take(found).map_err(Ended::Taker)?;
    }
    Ok(there.said(answer.id()?, Some(count))?)
}
