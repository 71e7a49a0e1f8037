//! A query: the predicate, asked of sessions and of their rows.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use format::session_row::SessionRow;
use units::Timestamp;

use crate::atlas::Atlas;
use crate::error::Error;
use crate::field::{Field, Row};
use crate::parse;
use crate::required::Required;
use crate::scope::{Part, Truth};
use crate::term::{Term, Test};

/// A predicate over sessions.
#[derive(Clone, Debug)]
pub struct Query {
    /// `None` holds for every session.
    root: Option<Term>,
    /// Some test speaks of `src` or `dst`.
    is_directional: bool,
    atlas: Option<Arc<Atlas>>,
}

/// Whether they ask the same; of whom addresses are asked about is not compared.
impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Query {}

impl Query {
    /// The query that every session matches.
    pub fn all() -> Self {
        Self { root: None, is_directional: false, atlas: None }
    }

    /// Reads a query; a blank text means all. `now` is what `3h ago` counts from.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, Error> {
        let root = parse::parse(text, now)?;
        let mut query = Self { root, is_directional: false, atlas: None };
        let mut is_directional = false;
        query.for_each_test(&mut |test| is_directional |= test.is_directional());
        query.is_directional = is_directional;
        Ok(query)
    }

    /// The same, asked with what an atlas knows about addresses.
    #[must_use]
    pub fn with_atlas(self, atlas: Arc<Atlas>) -> Self {
        Self { atlas: Some(atlas), ..self }
    }

    /// The field it asks for, if any, that has values only with an atlas.
    pub fn needs_atlas(&self) -> Option<&'static Field> {
        let mut field = None;
        self.for_each_test(&mut |test| field = field.or(test.needs_atlas()));
        field
    }

    /// Every field that it asks for and that has values only with an atlas.
    pub fn all_needing_atlas(&self) -> Vec<&'static Field> {
        let mut fields = Vec::new();
        self.for_each_test(&mut |test| fields.extend(test.needs_atlas()));
        fields
    }

    /// Whether a session matches: one row, or several that were joined, of these ids. Without `ids`
    /// the field `session_id` is absent.
    pub fn matches(&self, session: &SessionRow, ids: &[String]) -> bool {
        let Some(root) = &self.root else { return true };
        let row = Row { slice: session, ids, atlas: self.atlas.as_deref() };
        if self.is_directional {
            (session.orig.packets > 0 && root.holds(&row, false))
                || (session.resp.packets > 0 && root.holds(&row, true))
        } else {
            root.holds(&row, false)
        }
    }

    /// Whether a session may match of which `row` is one: false only where no other row of it could
    /// make it match. Without a `part` all rows of a session say the same.
    pub fn may_match(&self, row: &SessionRow, ids: &[String], part: Option<Part>) -> bool {
        if part == Some(Part::WHOLE) {
            return self.matches(row, ids);
        }
        let Some(root) = &self.root else { return true };
        let row = Row { slice: row, ids, atlas: self.atlas.as_deref() };
        let may = |reversed| root.truth(&row, part, reversed) > Truth::No;
        // Another row may have packets that go the other way.
        may(false) || (self.is_directional && may(true))
    }

    /// Whether each row answers for its session: nothing is asked but what all rows of a session
    /// share. With `in_times` the rows in the query's times are meant, else it must ask for none.
    pub fn is_of_rows(&self, in_times: bool) -> bool {
        self.root.as_ref().is_none_or(|root| root.is_of_rows(in_times))
    }

    /// Bounds for pruning: a session that matches starts at or before the second time and ends at
    /// or after the first. The first may be the later one, for a session may be longer than the
    /// time between them.
    pub fn time_range(&self) -> (Timestamp, Timestamp) {
        self.bounds(Test::row_bounds)
    }

    /// First and last time of packets to extract: `before` and `after` cut the packets of matching
    /// sessions too. Under `or` the widest of the alternatives counts; under `not` nothing is cut.
    pub fn packet_time_range(&self) -> (Timestamp, Timestamp) {
        self.bounds(Test::packet_bounds)
    }

    /// What every session that matches has: what an index may rule rows out by. Empty where the
    /// query names nothing of the kind, or only as alternatives.
    pub fn required(&self) -> Vec<Required> {
        let required = self.root.as_ref().map(Term::required).unwrap_or_default();
        required.into_iter().collect()
    }

    /// Whether it asks for stations (`ether host`), which only sessions without IP have.
    pub fn asks_for_stations(&self) -> bool {
        let mut asks = false;
        self.for_each_test(&mut |test| asks |= test.is_of_stations());
        asks
    }

    /// What it asks to be equal to the field of this name, and what none of the `known` values of
    /// that field fits, as it is written in queries.
    pub fn unmet(&self, field: &str, known: &BTreeSet<String>) -> Vec<String> {
        let mut unmet = Vec::new();
        self.for_each_test(&mut |test| unmet.extend(test.unmet(field, known)));
        unmet.dedup();
        unmet
    }

    /// The columns of the session table that [`Self::matches`] looks at, sorted.
    pub fn columns(&self) -> Vec<&'static str> {
        let mut columns = BTreeSet::new();
        self.for_each_test(&mut |test| test.columns(&mut columns));
        columns.into_iter().collect()
    }

    /// What is asked; `None` holds for every session.
    pub(crate) fn root(&self) -> Option<&Term> {
        self.root.as_ref()
    }

    /// Whether some test speaks of `src` or `dst`.
    pub(crate) fn is_directional(&self) -> bool {
        self.is_directional
    }

    fn bounds(&self, of_test: fn(&Test) -> (Timestamp, Timestamp)) -> (Timestamp, Timestamp) {
        let everything = (Timestamp::MIN, Timestamp::MAX);
        self.root.as_ref().map_or(everything, |root| root.bounds(of_test))
    }

    fn for_each_test<'t>(&'t self, visit: &mut dyn FnMut(&'t Test)) {
        if let Some(root) = &self.root {
            root.for_each_test(visit);
        }
    }
}

/// The canonical form: fields by their names, times absolute, every group in parentheses. Parses to
/// an equal query.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Some(root) => write!(f, "{root:#}"),
            None => Ok(()),
        }
    }
}
