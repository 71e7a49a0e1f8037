//! Which rows may be of sessions that match, where one row alone does not decide it.
//!
//! Most sessions have one row, and that decides. Of the others a first look finds those whose rows
//! lie elsewhere than the query looks, by rows that each of them must have: where it asks for a
//! name, the last row, which knows all names; where it asks for what comes after a time, one close
//! to that time.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use format::slice::Slice;
use query::{Part, Query, Required};
use units::Timestamp;

use crate::find::JOIN_IDLE_NS;
use crate::known::Known;
use crate::scan::{Identity, RowId};

/// Where a row stands among those of its session, as far as it tells.
pub(crate) fn part_of(row: &Slice) -> Part {
    Part { is_first: row.start <= row.session_start, is_last: !row.continues }
}

/// The ids that a row is asked about.
fn ids_of(id: RowId, by_id: bool) -> Vec<String> {
    if by_id { vec![id.to_string()] } else { Vec::new() }
}

/// What the first look is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'q> {
    /// Sessions of several rows that began before this time and may be alive then.
    AliveAt(&'q Query, Timestamp),
    /// Rows that have what only sessions that match have.
    Telling(&'q Query),
}

impl<'q> Look<'q> {
    /// The look that a query needs, and the times of rows that it goes over.
    pub(crate) fn needed_by(query: &'q Query) -> Option<(Self, RangeInclusive<Timestamp>)> {
        let (from, _) = query.time_range();
        if asks_for_rare(query) {
            return Some((Self::Telling(query), from..=Timestamp::MAX));
        }
        // A session is over when it has no row for so long.
        let times = from.plus_nanos(-JOIN_IDLE_NS)..=from;
        (from > Timestamp::MIN).then_some((Self::AliveAt(query, from), times))
    }

    pub(crate) fn query(&self) -> &'q Query {
        match self {
            Self::AliveAt(query, _) | Self::Telling(query) => query,
        }
    }

    /// Rows are ruled out by what the query asks for, not only by what all rows of a session have.
    pub(crate) fn is_by_rare(&self) -> bool {
        matches!(self, Self::Telling(_))
    }

    pub(crate) fn accepts(&self, id: RowId, row: &Slice, by_id: bool) -> bool {
        let (part, ids) = (part_of(row), ids_of(id, by_id));
        match *self {
            Self::AliveAt(query, from) => {
                part != Part::WHOLE
                    && row.session_start < from
                    && query.may_match(row, &ids, Some(part))
            }
            Self::Telling(query) if part == Part::WHOLE => query.matches(row, &ids),
            Self::Telling(query) => {
                begins_in(query, row)
                    && match named_by(query) {
                        Some(named) => named == id && query.may_match(row, &ids, Some(part)),
                        // If it is not the last, that one tells as much.
                        None => query.may_match(row, &ids, Some(Part { is_last: true, ..part })),
                    }
            }
        }
    }
}

/// The query asks for what an index rules most segments out by, and not every row of a session has.
fn asks_for_rare(query: &Query) -> bool {
    is_by_id(query) || query.required().iter().any(|it| matches!(it, Required::Name(_)))
}

fn begins_in(query: &Query, row: &Slice) -> bool {
    row.session_start <= query.time_range().1
}

/// The rows of sessions that may match, and what a look has found out about them.
#[derive(Debug)]
pub(crate) struct Candidates<'q> {
    pub(crate) query: &'q Query,
    /// Sessions of several rows that a look has found.
    pub(crate) known: Known,
    /// No others of several rows match.
    knows_all: bool,
    is_by_id: bool,
}

impl<'q> Candidates<'q> {
    pub(crate) fn new(query: &'q Query, found: Lives) -> Self {
        let is_by_id = is_by_id(query);
        Self { query, known: Known::new(found.0), knows_all: asks_for_rare(query), is_by_id }
    }

    /// Times of rows that the query is asked about.
    pub(crate) fn times(&self) -> RangeInclusive<Timestamp> {
        let (from, to) = self.query.time_range();
        from.min(*self.known.times().start())..=to
    }

    /// In these times others than the known ones matter.
    pub(crate) fn wants_others(&self, times: &RangeInclusive<Timestamp>) -> bool {
        let is_named = self.is_by_id && self.known.len() > 0;
        !is_named && *times.end() >= self.query.time_range().0
    }

    /// No others than the known ones matter, and so many sessions are over.
    pub(crate) fn are_over(&self, ended: usize) -> bool {
        self.is_by_id && ended >= self.known.len()
    }

    /// What the query asks for rules rows out, but for those of known sessions.
    pub(crate) fn is_by_rare(&self) -> bool {
        self.knows_all
    }

    /// The answer is the same for all rows of a session of several.
    pub(crate) fn accepts(&self, id: RowId, row: &Slice, by_id: bool) -> bool {
        if part_of(row) == Part::WHOLE {
            return self.query.matches(row, &ids_of(id, by_id));
        }
        if self.knows_all || row.session_start < self.query.time_range().0 {
            return self.known.contains(&Identity::of(row));
        }
        begins_in(self.query, row) && self.query.may_match(row, &[], None)
    }
}

/// Sessions of several rows that a look meets, and until when each has rows.
#[derive(Debug, Default)]
pub(crate) struct Lives(BTreeMap<Identity, Timestamp>);

impl Lives {
    /// A row that was found for this query.
    pub(crate) fn add(&mut self, query: &Query, row: &Slice) {
        if part_of(row) != Part::WHOLE {
            // Names are in all later rows; an id is in one.
            let end = if is_by_id(query) { Timestamp::MAX } else { row.end };
            let known = self.0.entry(Identity::of(row)).or_insert(end);
            *known = end.max(*known);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_by_id(query: &Query) -> bool {
    named_by(query).is_some()
}

/// The row whose session the query asks for.
fn named_by(query: &Query) -> Option<RowId> {
    query.required().into_iter().find_map(|required| match required {
        Required::SessionId(id) => RowId::parse(&id),
        _ => None,
    })
}
