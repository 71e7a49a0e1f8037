//! Sessions of a service: lines of JSON, which become what a search on this machine finds.

use ::extract::Found;
use ::remote::{Error, NDJSON};

use crate::answered::{Answered, warn_of_left_out};
use crate::progress::Progress;
use crate::remote::{There, of_remote};
use crate::stdout;

/// Which sessions are wanted, and in which order.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) limit: Option<u64>,
    /// A parameter for it; by their start without one.
    pub(super) order: Option<(&'static str, String)>,
}

/// Calls `take` with the sessions.
pub(super) fn sessions(
    there: &There,
    wanted: &Wanted,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let mut progress = Some(Progress::new("find"));
    let mut count = 0;
    let received = receive(there, wanted, &mut |found| {
        // A bar has no place among the lines of an answer.
        if stdout::is_terminal() {
            progress.take().into_iter().for_each(Progress::finish);
        }
        count += 1;
        let shown = || page::text::plural(count, "session");
        progress.as_mut().into_iter().for_each(|progress| progress.text(&shown));
        take(found)
    });
    progress.into_iter().for_each(Progress::finish);
    match received {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            Ok(Answered::stopped(count, "session"))
        }
        other => other,
    }
}

fn receive(
    there: &There,
    wanted: &Wanted,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let limit = wanted.limit.map(|limit| ("limit", limit.to_string()));
    let parameters: Vec<_> = limit.into_iter().chain(wanted.order.clone()).collect();
    let asked = there.get("/api/v1/sessions", &parameters, NDJSON);
    let mut answer = asked.map_err(of_remote)?;
    let (mut buffer, mut count) = (Vec::new(), 0_u64);
    while let Some(line) = answer.line(&mut buffer).map_err(of_remote)? {
        let found = session_view::read_session(line);
        let wrong = |why: &dyn core::fmt::Display| {
            of_remote(there.unlike(&format!("a session that is none: {why}")))
        };
        let found = found.map_err(|error| wrong(&error))?;
        if wanted.limit == Some(count) {
            return Err(of_remote(there.unlike("it sends more sessions than were asked for")));
        }
        count += 1;
        take(&found)?;
    }
    let id = answer.id().map_err(of_remote)?;
    let said = there.said(id, Some(count)).map_err(of_remote)?;
    let left_out = said.statement.as_ref().and_then(|statement| statement.left_out);
    if let Some(left_out) = left_out.filter(|count| *count > 0) {
        warn_of_left_out(left_out);
    }
    there.answered(said).map_err(of_remote)
}
