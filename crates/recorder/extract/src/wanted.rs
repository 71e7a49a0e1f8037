//! Which rows a scan is for: what they have, when they are, and which columns decide it.

use core::ops::{Range, RangeInclusive};
use std::collections::BTreeSet;

use format::head::StripeId;
use format::session_row::SessionRow;
use found::Windows;
use index::Needed;
use query::{Query, Required};
use units::Timestamp;

use crate::candidates::{Candidates, Question};
use crate::identity::{Identity, RowId};
use crate::known::{Alive, Known};

/// The column that says whether further rows follow.
pub(crate) const CONTINUES: &str = "continues";
/// What names sessions, in pairs: the columns that cost most to read.
const NAMES_OF_SESSIONS: [[&str; 2]; 3] =
    [["orig_ip", "resp_ip"], ["orig_port", "resp_port"], ["vlan", "vlan_inner"]];
/// The column that says whether packets are still there: without it no row is shown.
pub(crate) const PIECES: &str = "piece_sequences";

/// Which rows are wanted.
pub(crate) enum Wanted<'a> {
    /// Those that match by themselves.
    Query(&'a Query),
    /// Those that a look at sessions of several rows is for.
    Look(Question<'a>),
    /// All rows of sessions that may match.
    Candidates(&'a Candidates<'a>),
    /// The same without a first look, from the newest part back.
    Backwards(Question<'a>),
    /// All rows of these sessions.
    Sessions(&'a Known),
    /// These rows.
    Rows(&'a BTreeSet<RowId>),
    /// Rows with packets in these stretches of time.
    Windows(&'a Windows),
    /// No row: what segments and stripes say of themselves is enough.
    Nothing,
}

/// What wanted rows have, as far as indexes say who has it.
fn needed_by(query: &Query, with_rare: bool) -> Needed {
    let mut needed = Needed::default();
    for required in query.required() {
        match required {
            Required::Host(host) => needed.hosts.push(host),
            Required::Name(name) if with_rare => needed.names.push(name),
            Required::CommunityId(id) if with_rare => needed.community_ids.push(id),
            Required::Value(field, value) if with_rare && index::knows_values_of(field) => {
                needed.values.push((field, value));
            }
            Required::Ports(first, last) => needed.ports.push(first..=last),
            Required::Sum(columns, least) => needed.sums.push((columns, least)),
            _ => {}
        }
    }
    needed
}

/// What all rows of each of these sessions have; nothing where they are many.
fn shared_by(alive: Alive) -> Vec<Needed> {
    match alive {
        Alive::Many => vec![Needed::default()],
        Alive::These(sessions) => sessions.iter().map(Identity::needed).collect(),
    }
}

/// Whether a query names no session id, or one of a segment in these stripes: an id has the first
/// stripe of its own.
fn may_name(question: Question<'_>, stripes: &RangeInclusive<StripeId>) -> bool {
    question.named.is_none_or(|named| stripes.contains(&named.segment))
}

/// These columns, without ends and VLANs that the query does not ask for. It asks for both of a
/// pair or none: a row may have been seen from the other side.
fn without_ends<'c>(mut columns: Vec<&'c str>, query: &Query) -> Vec<&'c str> {
    let asked = query.columns();
    columns.retain(|column| {
        let pair = NAMES_OF_SESSIONS.iter().find(|pair| pair.contains(column));
        pair.is_none_or(|pair| pair.iter().any(|column| asked.contains(column)))
    });
    columns
}

impl Wanted<'_> {
    /// What wanted rows in these times have: each row all of one of these.
    pub(crate) fn needed(&self, times: &RangeInclusive<Timestamp>) -> Vec<Needed> {
        match self {
            Self::Query(query) => vec![needed_by(query, true)],
            Self::Look(look) | Self::Backwards(look) => {
                vec![needed_by(look.query, look.is_by_rare)]
            }
            Self::Candidates(candidates) => {
                let mut needed = Vec::new();
                let alive = candidates.known.alive_in(times);
                if candidates.wants_others(times) {
                    let Question { query, is_by_rare, .. } = candidates.question;
                    let with_rare = is_by_rare && !matches!(alive, Alive::Many);
                    needed.push(needed_by(query, with_rare));
                    if !with_rare {
                        return needed;
                    }
                }
                needed.extend(shared_by(alive));
                needed
            }
            Self::Sessions(known) => shared_by(known.alive_in(times)),
            Self::Nothing | Self::Rows(_) | Self::Windows(_) => vec![Needed::default()],
        }
    }

    /// What every wanted row has, but for those of sessions that are known.
    pub(crate) fn needed_by_most(&self) -> Needed {
        match self {
            Self::Query(query) => needed_by(query, true),
            Self::Look(look) | Self::Backwards(look) => needed_by(look.query, look.is_by_rare),
            Self::Candidates(Candidates { question, .. }) => {
                needed_by(question.query, question.is_by_rare)
            }
            _ => Needed::default(),
        }
    }

    /// In these times sessions are wanted besides what most rows have.
    pub(crate) fn wants_known(&self, times: &RangeInclusive<Timestamp>) -> bool {
        match self {
            Self::Candidates(candidates) => !candidates.known.alive_in(times).is_none(),
            _ => false,
        }
    }

    /// Whether the segment or stretch of these stripes and times may have wanted rows.
    pub(crate) fn may_be_of(
        &self,
        stripes: &RangeInclusive<StripeId>,
        times: &RangeInclusive<Timestamp>,
    ) -> bool {
        match self {
            Self::Query(query) => may_name(Question::new(query), stripes),
            Self::Look(look) | Self::Backwards(look) => may_name(*look, stripes),
            Self::Candidates(candidates) => {
                !candidates.known.alive_in(times).is_none()
                    || (candidates.wants_others(times) && may_name(candidates.question, stripes))
            }
            Self::Rows(rows) => {
                let row = |&segment, row| RowId { segment, row };
                rows.range(row(stripes.start(), 0)..=row(stripes.end(), u64::MAX)).next().is_some()
            }
            Self::Sessions(known) => !known.alive_in(times).is_none(),
            Self::Windows(_) | Self::Nothing => true,
        }
    }

    /// Rows are wanted that have a name, of sessions whose other rows may not.
    pub(crate) fn is_for_names(&self) -> bool {
        matches!(self, Self::Look(question) if question.is_by_rare)
    }

    pub(crate) fn all(&self) -> bool {
        match self {
            Self::Query(query) => **query == Query::all(),
            Self::Candidates(Candidates { question, .. }) | Self::Backwards(question) => {
                *question.query == Query::all()
            }
            _ => false,
        }
    }

    /// Those of these rows of a segment that are wanted, where their numbers are known.
    pub(crate) fn numbers(&self, segment: StripeId, rows: Range<u64>) -> Option<Vec<u64>> {
        let Self::Rows(wanted) = self else { return None };
        let id = |row| RowId { segment, row };
        Some(wanted.range(id(rows.start)..id(rows.end)).map(|id| id.row).collect())
    }

    /// Columns to decide by.
    pub(crate) fn columns(&self) -> Vec<&'static str> {
        let of_sessions =
            |query: &Query| [&query.columns()[..], &Identity::COLUMNS, &[CONTINUES]].concat();
        match self {
            Self::Query(query) => query.columns(),
            Self::Look(look) => of_sessions(look.query),
            Self::Backwards(question) => without_ends(of_sessions(question.query), question.query),
            Self::Candidates(candidates) if candidates.are_of_known() => {
                of_sessions(candidates.question.query)
            }
            Self::Candidates(Candidates { question: Question { query, .. }, .. }) => {
                without_ends(of_sessions(query), query)
            }
            Self::Sessions(_) => Identity::COLUMNS.to_vec(),
            Self::Rows(_) | Self::Windows(_) => vec!["proto"],
            Self::Nothing => Vec::new(),
        }
    }

    /// Whether a session may be wanted of which a row is one part, and another is not known.
    pub(crate) fn may_want(&self, id: RowId, row: &SessionRow) -> bool {
        let query = match self {
            Self::Query(query) => query,
            Self::Look(question) | Self::Backwards(question) => question.query,
            Self::Candidates(candidates) => candidates.question.query,
            _ => return self.accepts(id, row, false),
        };
        query.may_match(row, &[], None)
    }

    pub(crate) fn accepts(&self, id: RowId, row: &SessionRow, by_id: bool) -> bool {
        match self {
            Self::Query(query) if by_id => query.matches(row, &[id.to_string()]),
            Self::Query(query) => query.matches(row, &[]),
            Self::Look(look) => look.looks_for(id, row, by_id),
            Self::Candidates(candidates) => candidates.accepts(id, row, by_id),
            Self::Backwards(question) => question.accepts(id, row, by_id),
            Self::Sessions(known) => known.contains(&Identity::of(row)),
            Self::Rows(rows) => rows.contains(&id),
            Self::Windows(windows) => windows.overlaps(row.start, row.end),
            Self::Nothing => false,
        }
    }
}
