//! Which rows an extract takes its packets from. Where rows alone do not say which session matches
//! a look comes first, that gives the sessions, or the stretches of time around them.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use format::session_row::SessionRow;
use found::{Event, Windows};
use index::Columns;
use query::Query;
use units::Timestamp;
use units::number::to_u64;

use crate::Error;
use crate::archive::Archive;
use crate::identity::Identity;
use crate::joiner::Show;
use crate::known::Known;
use crate::request::{Request, SessionIds};
use crate::scan::{Scan, Step};
use crate::sessions::{Sessions, Told, columns_with};
use crate::walk::Notes;
use crate::wanted::Wanted;

/// What a row has to say, besides which session it is of, for its packets to be found.
const PLACES: [&str; 8] = [
    "orig_packets",
    "resp_packets",
    "continues",
    "piece_sequences",
    "piece_subs",
    "piece_columns",
    "piece_begins",
    "piece_lengths",
];

/// The columns by which packets are found.
pub(crate) fn columns() -> Vec<&'static str> {
    [&Identity::COLUMNS[..], &PLACES].concat()
}

/// The rows that packets are taken from.
#[derive(Debug)]
pub(crate) enum Chosen {
    /// Those that match the query, each for itself.
    Query,
    /// All of these sessions.
    Whole(Known),
    /// Of these sessions those in the query's times.
    InTimes(Known),
    /// All with packets in these stretches.
    Around(Windows),
}

impl Chosen {
    /// All of these sessions, whenever they are.
    pub(crate) fn whole(sessions: impl IntoIterator<Item = Identity>) -> Self {
        let ends = sessions.into_iter().map(|session| (session, Timestamp::MAX));
        Self::Whole(Known::new(ends.collect()))
    }

    pub(crate) fn wanted<'c>(&'c self, query: &'c Query) -> Wanted<'c> {
        match self {
            Self::Query => Wanted::Query(query),
            Self::Whole(sessions) | Self::InTimes(sessions) => Wanted::Sessions(sessions),
            Self::Around(windows) => Wanted::Windows(windows),
        }
    }

    /// No row outside is wanted.
    pub(crate) fn times(&self, query: &Query) -> RangeInclusive<Timestamp> {
        match self {
            Self::Query => {
                let (from, to) = query.time_range();
                from..=to
            }
            Self::InTimes(_) => {
                let (from, to) = query.packet_time_range();
                from..=to
            }
            Self::Whole(sessions) => sessions.times(),
            Self::Around(windows) => windows.hull(),
        }
    }
}

/// Sessions let through, at most so many.
#[derive(Debug)]
pub(crate) struct Admitted {
    limit: Option<u64>,
    known: BTreeSet<Identity>,
    /// Those that go on after the last row seen of them.
    open: BTreeSet<Identity>,
    /// Some session was one too many.
    pub(crate) is_limited: bool,
}

impl Admitted {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, known: BTreeSet::new(), open: BTreeSet::new(), is_limited: false }
    }

    /// Whether the session of a row is let through.
    pub(crate) fn admits(&mut self, row: &SessionRow) -> bool {
        let Some(limit) = self.limit else { return true };
        let identity = Identity::of(row);
        let count = to_u64(self.known.len());
        if !self.known.contains(&identity) {
            if count >= limit {
                self.is_limited = true;
                return false;
            }
            self.known.insert(identity);
        }
        if row.continues {
            self.open.insert(identity);
        } else {
            self.open.remove(&identity);
        }
        true
    }

    /// No further row will be let through.
    pub(crate) fn is_full(&self) -> bool {
        self.is_limited && self.open.is_empty()
    }
}

/// Looks for the sessions first, where that is needed. Breaks off where `goes_on` says so.
pub(crate) fn choose(
    archive: &mut Archive,
    request: &Request<'_>,
    admitted: &mut Admitted,
    notes: &mut Notes,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<(), Chosen>, Error> {
    let mut named = match &request.sessions {
        None => None,
        Some(ids) => match named(archive, ids, notes, goes_on)? {
            ControlFlow::Continue(sessions) => Some(sessions),
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        },
    };
    let query = request.query;
    // In a few slots, while they are recorded, sessions are not over: rows count as they are.
    let is_of_rows = request.slots.is_some() || query.is_of_rows(!request.whole_sessions);
    if named.is_none() && request.around.is_none() && is_of_rows {
        return Ok(ControlFlow::Continue(Chosen::Query));
    }
    let asks_no_more = *query == Query::all() && request.limits.sessions.is_none();
    if let (Some(named), None, true) = (&mut named, request.around, asks_no_more) {
        let named = core::mem::take(named);
        return Ok(ControlFlow::Continue(Chosen::Whole(named)));
    }
    let (mut sessions, mut stretches) = (BTreeMap::new(), Vec::new());
    let admit = &mut |event: Event<'_>| {
        let Event::Found(found) = event else { return goes_on() };
        if !admitted.admits(&found.session) {
            return ControlFlow::Break(());
        }
        if request.around.is_some() {
            stretches.push(found.session.start..=found.session.end);
        } else {
            sessions.insert(Identity::of(&found.session), found.session.end);
        }
        goes_on()
    };
    let flow = look(archive, (query, named.as_ref()), notes, admit)?;
    if flow.is_break() && !admitted.is_limited {
        return Ok(ControlFlow::Break(()));
    }
    Ok(ControlFlow::Continue(match request.around {
        Some(margin) => Chosen::Around(Windows::around(stretches.into_iter(), margin)),
        None if request.whole_sessions => Chosen::Whole(Known::new(sessions)),
        None => Chosen::InTimes(Known::new(sessions)),
    }))
}

/// Calls `show` with the sessions that match, or those of some.
pub(crate) fn look(
    archive: &mut Archive,
    (query, of): (&Query, Option<&Known>),
    notes: &mut Notes,
    show: &mut Show<'_>,
) -> Result<ControlFlow<()>, Error> {
    let columns = columns_with(query, &[]);
    let columns = Columns::Named(&columns);
    let mut told = Told { show, step: &mut |_| {} };
    let sessions = Sessions { archive, query, columns, limit: u64::MAX };
    let mut own = notes.aside();
    let flow = match of {
        Some(of) => sessions.each_of(of, &mut own, &mut told)?,
        None => sessions.each(&mut own, &mut told)?,
    };
    notes.add_search(own, query.time_range());
    Ok(flow)
}

/// The sessions of these ids; notes how many are not there.
fn named(
    archive: &mut Archive,
    ids: &SessionIds,
    notes: &mut Notes,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<(), Known>, Error> {
    let (mut sessions, mut found) = (BTreeMap::new(), 0_u64);
    let (wanted, times) = (Wanted::Rows(&ids.0), Timestamp::MIN..=Timestamp::MAX);
    let columns = columns();
    let columns = Columns::Named(&columns);
    let mut scan = Scan::new(archive, wanted, columns, times);
    let mut own = notes.aside();
    let flow = scan.run(&mut own, &mut |step, _, _| {
        let Step::Row(_, row) = step else { return Ok(ControlFlow::Continue(())) };
        // Other rows say how long it lives.
        sessions.insert(Identity::of(&row), Timestamp::MAX);
        found += 1;
        Ok(goes_on())
    })?;
    notes.add_aside(own);
    let count = to_u64(ids.len());
    // Segments that overlap have a row twice.
    notes.completeness.unknown_sessions = count.saturating_sub(found);
    Ok(flow.map_continue(|()| Known::new(sessions)))
}
