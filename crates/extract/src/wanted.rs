//! Which rows a scan is for, and what indexes can say of them beforehand.

use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::collections::BTreeSet;

use format::head::StripeId;
use format::slice::Slice;
use index::Needed;
use query::{Query, Required};
use units::Timestamp;
use wire::{Address, CommunityId};

use crate::candidates::{Candidates, Question, is_whole};
use crate::identity::{CONTINUES, Identity, RowId};
use crate::known::{Alive, Known};
use crate::windows::Windows;

/// Which rows are wanted.
pub(crate) enum Wanted<'a> {
    /// Those that match by themselves.
    Query(&'a Query),
    /// Those that a look at sessions of several rows is for.
    Look(Question<'a>),
    /// Those that match and are all of their session, and of others one at least, if they may
    /// match.
    Signs(Question<'a>),
    /// All rows of sessions that may match.
    Candidates(&'a Candidates<'a>),
    /// All rows of these sessions.
    Sessions(&'a Known),
    /// These rows.
    Rows(&'a BTreeSet<RowId>),
    /// Rows with packets in these stretches of time.
    Windows(&'a Windows),
    /// No row: what segments and stripes say of themselves is enough.
    Nothing,
}

fn ip(address: &Address) -> Option<IpAddr> {
    match *address {
        Address::V4(ip) => Some(ip.into()),
        Address::V6(ip) => Some(ip.into()),
        Address::Mac(_) | Address::None => None,
    }
}

/// What wanted rows have, as far as indexes tell who has it.
fn needed_by(query: &Query, with_rare: bool) -> Needed {
    let mut needed = Needed::default();
    for required in query.required() {
        match required {
            Required::Host(host) => needed.hosts.push(host),
            Required::Name(name) if with_rare => needed.names.push(name),
            Required::CommunityId(id) => needed.community_ids.push(id),
            _ => {}
        }
    }
    needed
}

/// What all rows of each of these sessions have; nothing where they are many.
fn shared_by(alive: Alive) -> Vec<Needed> {
    match alive {
        Alive::Many => vec![Needed::default()],
        Alive::These(sessions) => sessions.iter().map(of_session).collect(),
    }
}

fn of_session(session: &Identity) -> Needed {
    let hosts = [session.tuple.orig, session.tuple.resp].iter().filter_map(ip).collect();
    // The messages of ICMP have a part in theirs.
    let id = session.tuple.proto.has_ports().then(|| CommunityId::of(&session.tuple, None));
    let community_ids = id.flatten().map(|id| id.0).into_iter().collect();
    Needed { hosts, community_ids, ..Needed::default() }
}

/// Whether a query names no session id, or one of a segment in these stripes: an id has the first
/// stripe of its own.
fn may_name(question: Question<'_>, stripes: &RangeInclusive<StripeId>) -> bool {
    question.named.is_none_or(|named| stripes.contains(&named.segment))
}

impl Wanted<'_> {
    /// What wanted rows in these times have: each row all of one of these.
    pub(crate) fn needed(&self, times: &RangeInclusive<Timestamp>) -> Vec<Needed> {
        match self {
            Self::Query(query) => vec![needed_by(query, true)],
            Self::Look(look) | Self::Signs(look) => {
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
            Self::Look(look) | Self::Signs(look) => needed_by(look.query, look.is_by_rare),
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
            Self::Look(look) | Self::Signs(look) => may_name(*look, stripes),
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

    pub(crate) fn all(&self) -> bool {
        match self {
            Self::Query(query) => **query == Query::all(),
            Self::Candidates(candidates) => *candidates.question.query == Query::all(),
            _ => false,
        }
    }

    /// Of this row more is wanted than what it was chosen by.
    pub(crate) fn wants_all_of(&self, row: &Slice) -> bool {
        !matches!(self, Self::Signs(_)) || is_whole(row)
    }

    /// Columns to decide by.
    pub(crate) fn columns(&self) -> Vec<&'static str> {
        let of_sessions =
            |query: &Query| [&query.columns()[..], &Identity::COLUMNS, &[CONTINUES]].concat();
        match self {
            Self::Query(query) => query.columns(),
            Self::Look(look) | Self::Signs(look) => of_sessions(look.query),
            Self::Candidates(candidates) => of_sessions(candidates.question.query),
            Self::Sessions(_) => Identity::COLUMNS.to_vec(),
            Self::Rows(_) | Self::Windows(_) => vec!["proto"],
            Self::Nothing => Vec::new(),
        }
    }

    pub(crate) fn accepts(&self, id: RowId, row: &Slice, by_id: bool) -> bool {
        match self {
            Self::Query(query) if by_id => query.matches(row, &[id.to_string()]),
            Self::Query(query) => query.matches(row, &[]),
            Self::Look(look) => look.looks_for(id, row, by_id),
            Self::Signs(look) => look.is_sign(id, row, by_id),
            Self::Candidates(candidates) => candidates.accepts(id, row, by_id),
            Self::Sessions(known) => known.contains(&Identity::of(row)),
            Self::Rows(rows) => rows.contains(&id),
            Self::Windows(windows) => windows.overlaps(row.start, row.end),
            Self::Nothing => false,
        }
    }
}
