//! Which rows may be of sessions that match, where one row alone does not decide it.
//!
//! Most sessions have one row, and that decides. Of the others a first look finds those whose rows
//! lie elsewhere than the query looks, by rows that each of them must have: where it asks for a
//! name, another value from payload or a community id, the last row, which knows all of these and
//! all kinds of ICMP messages;
//! where it asks for what comes after a time, one close to that time.

use core::ops::RangeInclusive;

use format::session_row::SessionRow;
use query::{Part, Query, Required};
use units::Timestamp;

use crate::identity::{Identity, RowId};
use crate::known::{JOIN_IDLE_NS, Known};

/// Where a row stands among those of its session, as far as it says.
pub(crate) fn part_of(row: &SessionRow) -> Part {
    let is_last = !row.continues;
    Part { is_first: row.start <= row.session_start, is_last, knows_names: is_last }
}

/// The ids that a row is asked about.
fn ids_of(id: RowId, by_id: bool) -> Vec<String> {
    if by_id { vec![id.to_string()] } else { Vec::new() }
}

/// A query, and what is to be known of it for every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'q> {
    pub(crate) query: &'q Query,
    /// Sessions that match end at this time or later ...
    from: Timestamp,
    /// ... and begin at this one or earlier.
    to: Timestamp,
    /// It asks for the session of this row.
    pub(crate) named: Option<RowId>,
    /// It asks for what an index rules most segments out by, and not every row of a session has.
    pub(crate) is_by_rare: bool,
}

impl<'q> Question<'q> {
    pub(crate) fn new(query: &'q Query) -> Self {
        let ((from, to), required) = (query.time_range(), query.required());
        let named = required.iter().find_map(|required| match required {
            Required::SessionId(id) => RowId::parse(id),
            _ => None,
        });
        let is_name = |it: &Required| match it {
            Required::Name(_) | Required::CommunityId(_) => true,
            Required::Value(field, _) => index::knows_values_of(field),
            _ => false,
        };
        let is_by_name = required.iter().any(is_name);
        Self { query, from, to, named, is_by_rare: named.is_some() || is_by_name }
    }

    /// Whether a look for what is rare may be given up: a search without one finds the same.
    pub(crate) fn may_be_common(&self) -> bool {
        self.is_by_rare && self.named.is_none()
    }

    /// The same without a look for what is rare, of sessions that end at `from` or later.
    pub(crate) fn common(self, from: Option<Timestamp>) -> Self {
        let from = from.map_or(self.from, |from| from.max(self.from));
        Self { from, is_by_rare: false, ..self }
    }

    /// Each session that matches has a row in these times.
    pub(crate) fn times(&self) -> RangeInclusive<Timestamp> {
        self.from..=self.to
    }

    /// Sessions that match end at this time or later.
    pub(crate) fn from(&self) -> Timestamp {
        self.from
    }

    /// Whether a row is of a session that may match, in a search without a first look.
    pub(crate) fn accepts(&self, id: RowId, row: &SessionRow, by_id: bool) -> bool {
        match part_of(row) {
            Part::WHOLE => self.query.matches(row, &ids_of(id, by_id)),
            _ => self.begins_in_time(row) && self.query.may_match(row, &[], None),
        }
    }

    /// The times of rows that a first look goes over, where one is needed.
    pub(crate) fn look_times(&self) -> Option<RangeInclusive<Timestamp>> {
        if self.is_by_rare {
            return Some(self.from..=Timestamp::MAX);
        }
        // A session is over when it has no row for so long.
        let times = self.from.plus_nanos(-JOIN_IDLE_NS)..=self.from;
        (self.from > Timestamp::MIN).then_some(times)
    }

    /// Whether a first look is for this row: it has what only sessions that match have, or is of a
    /// session that may be alive when the times begin.
    pub(crate) fn looks_for(&self, id: RowId, row: &SessionRow, by_id: bool) -> bool {
        let (part, ids) = (part_of(row), ids_of(id, by_id));
        if !self.is_by_rare {
            let is_earlier = part != Part::WHOLE && row.session_start < self.from;
            return is_earlier && self.query.may_match(row, &ids, Some(part));
        }
        if part == Part::WHOLE {
            return self.query.matches(row, &ids);
        }
        // Some row has what is rare. Where it is not the last, the counters of others are missing.
        let part = Part { knows_names: part.knows_names || self.named.is_none(), ..part };
        self.begins_in_time(row)
            && self.named.is_none_or(|named| named == id)
            && self.query.may_match(row, &ids, Some(part))
    }

    /// The session of several rows that a look has found by `row`, and until when it has any;
    /// those up to `reach` may lack what this one has.
    pub(crate) fn life_of(
        &self,
        row: &SessionRow,
        reach: Timestamp,
    ) -> Option<(Identity, Timestamp)> {
        // Names are in all rows that were made later; an id is in one.
        let end = if self.named.is_some() { Timestamp::MAX } else { row.end.max(reach) };
        (part_of(row) != Part::WHOLE).then(|| (Identity::of(row), end))
    }

    fn begins_in_time(&self, row: &SessionRow) -> bool {
        row.session_start <= self.to
    }
}

/// The rows of sessions that may match, and what a look has found out about them.
#[derive(Debug)]
pub(crate) struct Candidates<'q> {
    pub(crate) question: Question<'q>,
    /// Sessions of several rows that a look has found: of those that have what is rare, all.
    pub(crate) known: Known,
}

impl Candidates<'_> {
    /// Times of rows that the query is asked about.
    pub(crate) fn times(&self) -> RangeInclusive<Timestamp> {
        self.question.from.min(*self.known.times().start())..=self.question.to
    }

    /// In these times others than the known ones matter.
    pub(crate) fn wants_others(&self, times: &RangeInclusive<Timestamp>) -> bool {
        let is_named = self.question.named.is_some() && self.known.len() > 0;
        !is_named && *times.end() >= self.question.from
    }

    /// No others than the known ones matter, and so many sessions are over.
    pub(crate) fn are_over(&self, ended: usize) -> bool {
        self.question.named.is_some() && ended >= self.known.len()
    }

    /// Some rows are of sessions that match only if a look has found these: who they are decides.
    pub(crate) fn are_of_known(&self) -> bool {
        self.question.is_by_rare || self.question.from > Timestamp::MIN
    }

    /// The answer is the same for all rows of a session of several.
    pub(crate) fn accepts(&self, id: RowId, row: &SessionRow, by_id: bool) -> bool {
        let Question { from, is_by_rare, .. } = self.question;
        if part_of(row) != Part::WHOLE && (is_by_rare || row.session_start < from) {
            return self.known.contains(&Identity::of(row));
        }
        self.question.accepts(id, row, by_id)
    }
}
