//! Which sessions a query of `top` selects. Of a volume they are whole, as everywhere else: what
//! the packets that are shown do not tell of a session, its rows do.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use ::extract::{Sought, find_columns};
use format::session_row::SessionRow;
use found::Event;
use host::SystemClock;
use query::Query;
use talkers::Moment;
use units::Clock;
use wire::FiveTuple;

use super::saved::in_windows;
use crate::failure::{line, of_extract};

/// Of a question that was asked of a volume, the ends of the sessions that it selects, or why that
/// is not known.
type Ends = Result<BTreeSet<FiveTuple>, String>;

/// The question that was asked last, and its answer.
#[derive(Default)]
pub(super) struct Selected {
    question: String,
    ends: Option<Ends>,
}

impl Selected {
    /// Asks a volume for the sessions of a query that are alive in the windows that end at a
    /// moment, unless it was asked before, or each packet answers for its session.
    pub(super) fn ask(
        &mut self,
        options: &::extract::Options,
        (query, text): (&Query, &str),
        at: Moment,
    ) {
        let question = in_windows(text, at);
        if query.is_of_rows(false) {
            self.ends = None;
        } else if self.ends.is_none() || self.question != question {
            self.ends = Some(ends(options, &question).map_err(|error| line(&error)));
        }
        self.question = question;
    }

    /// Whether a session is selected, by what is seen of it or by what the volume says.
    pub(super) fn has(&self, query: &Query, session: &SessionRow) -> bool {
        match &self.ends {
            Some(Ok(ends)) => ends.contains(&session.tuple.canonical().0),
            _ => query.matches(session, &[]),
        }
    }

    /// That sessions are judged by what is seen of them, and why.
    pub(super) fn note(&self) -> Option<String> {
        let Some(Err(why)) = &self.ends else { return None };
        Some(format!("the query is asked of what is seen here of sessions, not of all: {why}"))
    }
}

fn ends(options: &::extract::Options, question: &str) -> anyhow::Result<BTreeSet<FiveTuple>> {
    let query = Query::parse(question, SystemClock.realtime())?;
    let sought = Sought { columns: Some(&[]), ..Sought::new(&query) };
    let mut ends = BTreeSet::new();
    let found = find_columns(options, &sought, &SystemClock, &mut |event| {
        if let Event::Found(found) = event {
            ends.insert(found.session.tuple.canonical().0);
        }
        ControlFlow::Continue(())
    });
    found.map_err(|error| of_extract(&options.volume, error))?;
    Ok(ends)
}
