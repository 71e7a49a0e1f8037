//! What an answer came to: of a volume of this machine, or of a service, which says the same.

use ::completeness::{Completeness, State};
use ::extract::{Explain, FindReport};
use ::found::SORT_BYTES_MAX;
use ::remote::Statement;
use page::text::plural;
use query::Query;
use units::ByteSize;

use crate::failure::warn;
use crate::progress::say;

/// An answer that has ended.
#[derive(Debug)]
pub struct Answered {
    /// What it has and what is missing from it, in words.
    pub said: String,
    /// Nothing is missing from it.
    pub is_whole: bool,
    /// Whether it is complete.
    pub state: State,
    /// The same where reaching a limit is no verdict.
    pub state_within_limit: State,
    /// There is nothing that matches.
    pub is_empty: bool,
    /// Of an empty one: which names the volume does not know.
    pub hint: Option<String>,
    /// What it cost; a service does not say.
    pub explain: Option<Explain>,
}

impl Answered {
    /// Of so many of something.
    pub fn new(count: u64, of: &str, missing: &Completeness) -> Self {
        Self {
            said: format!("{}, {missing}", plural(count, of)),
            is_empty: count == 0,
            is_whole: missing.is_complete(),
            state: missing.state(),
            state_within_limit: missing.within_limit().state(),
            hint: None,
            explain: None,
        }
    }

    /// Of a search on this machine; `of` says what was counted.
    pub fn of_find(report: &FindReport, of: &str, query: &Query) -> Self {
        let is_empty = report.sessions == 0;
        Self {
            hint: is_empty.then(|| session_view::unmet_names(query, &report.met)).flatten(),
            explain: Some(report.explain),
            ..Self::new(report.sessions, of, &report.completeness)
        }
    }

    /// Of one that the user has ended.
    pub fn stopped(count: u64, of: &str) -> Self {
        Self::new(count, of, &Completeness { stopped: true, ..Completeness::default() })
    }

    /// Of a service's; says what the service notes. `None` where its state is none.
    pub fn of_statement(statement: Statement) -> Option<Self> {
        let state = State::named(&statement.state)?;
        let within = statement.state_within_limit.as_deref();
        for note in &statement.notes {
            say(note);
        }
        Some(Self {
            is_whole: state == State::Complete && !statement.is_erased(),
            state,
            state_within_limit: within.map_or(Some(state), State::named)?,
            is_empty: statement.text.starts_with("0 "),
            said: statement.text,
            hint: statement.hint,
            explain: None,
        })
    }
}

/// Sessions at the end of an order that did not fit.
pub fn warn_of_left_out(count: u64) {
    let held = ByteSize(u64::try_from(SORT_BYTES_MAX).unwrap_or(u64::MAX));
    warn(&format!(
        "{} at the end of the order left out: sorting holds at most {held} of sessions; \
         --limit N shows the first N",
        plural(count, "session")
    ));
}
