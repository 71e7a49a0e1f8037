//! The find job: sessions that match, whole: a query is about sessions, and rows are joined before
//! it is asked.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use format::session_row::SessionRow;
use index::Columns;
use query::Query;
use units::Clock;
use wire::CommunityId;

use crate::archive::Archive;
use crate::choice::look;
use crate::completeness::Completeness;
use crate::explain::{Explain, Stopwatch};
use crate::known::Known;
use crate::met::NamesMet;
use crate::newest::newest;
use crate::scan::{Identity, PIECES, Scan, Step, Wanted};
use crate::sessions::{Sessions, Told, columns_with};
use crate::walk::Notes;
use crate::{Error, Options};

/// A session without a row for longer than this, where sessions have rows each minute, is over: no
/// timeout is longer.
pub(crate) const JOIN_IDLE_NS: i64 = 15 * 60 * units::NANOS_PER_SECOND;

/// Whether a session's packets can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// The volume holds all packets of the session.
    Held,
    /// Some of its pieces are overwritten.
    Partly,
    /// All of its pieces are overwritten; its rows are kept.
    Retired,
}

/// A session that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// `SEQUENCE.SUB-ROW` of its first row.
    pub id: String,
    /// Ids of all its rows.
    pub rows: Vec<String>,
    /// Its rows as one: sums of the counters, names and state of the last, all pieces.
    pub session: SessionRow,
    /// Community id, where there is IP.
    pub community_id: Option<CommunityId>,
    /// Whether its packets can be had.
    pub packets: Held,
    /// From packets that no index has: the id holds until something else is recorded.
    pub is_provisional: bool,
}

/// Events of a [`find`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A session that matches.
    Found(&'a Found),
    /// So many parts of the ring, mostly segments, of so many are searched.
    Searched {
        /// Number of parts done.
        parts: usize,
        /// Number of all parts.
        of: usize,
    },
}

/// Result of a [`find`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FindReport {
    /// Sessions shown.
    pub sessions: u64,
    /// What is missing.
    pub completeness: Completeness,
    /// Cost of the query.
    pub explain: Explain,
    /// The interfaces and recordings that it met.
    pub met: NamesMet,
}

/// Which sessions to find, and how much of them.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Query that selects the sessions.
    pub query: &'a Query,
    /// At most so many sessions.
    pub limit: Option<u64>,
    /// Columns that are needed of them; fields of others may be empty or zero. `None` for all.
    pub columns: Option<&'a [&'a str]>,
    /// Those that begin last first: as many as the limit are held in memory.
    pub newest_first: bool,
}

impl<'a> Sought<'a> {
    /// All sessions that match, with all columns, by their start.
    pub fn new(query: &'a Query) -> Self {
        Self { query, limit: None, columns: None, newest_first: false }
    }
}

/// A volume that was opened for a query.
struct Opened<'c> {
    archive: Archive,
    notes: Notes,
    watch: Stopwatch<'c>,
}

impl<'c> Opened<'c> {
    fn new(options: &Options, query: &Query, clock: &'c dyn Clock) -> Result<Self, Error> {
        let mut watch = Stopwatch::start(clock);
        let archive = Archive::open(options, clock.realtime())?;
        let mut notes = Notes::default();
        notes.explain.open_ns = watch.lap();
        let (from, to) = query.time_range();
        notes.completeness.erased_through = archive.erased_through(&(from..=to));
        notes.completeness.add_standing(&archive.standing(&(from..=to)));
        Ok(Self { archive, notes, watch })
    }
}

/// Calls `visit` with the sessions that match, by their start, at most `limit` of them, and with
/// how far the search is.
pub fn find(
    options: &Options,
    query: &Query,
    limit: Option<u64>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    find_columns(options, &Sought { limit, ..Sought::new(query) }, clock, visit)
}

/// As [`find`], of some columns only.
pub fn find_columns(
    options: &Options,
    sought: &Sought<'_>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    let Sought { query, limit, columns, newest_first } = *sought;
    let Opened { mut archive, mut notes, mut watch } = Opened::new(options, query, clock)?;
    let named = columns.map(|columns| columns_with(query, columns));
    let columns = named.as_deref().map_or(Columns::All, Columns::Named);
    let mut laps = Laps { watch: &mut watch, is_looking: None, explain: Explain::default() };
    let limit = limit.unwrap_or(u64::MAX);
    let mut shown = Shown { limit, count: 0, limited: false, visit };
    let mut told = Told { show: &mut |event| shown.show(event), step: &mut |step| laps.step(step) };
    let flow = if newest_first {
        newest(&mut archive, (query, columns), limit, &mut notes, &mut told)?
    } else {
        Sessions { archive: &mut archive, query, columns, limit }.each(&mut notes, &mut told)?
    };
    let Explain { list_ns, look_ns, rows_ns, .. } = laps.finish();
    archive.make_groups();
    let select_ns = list_ns + look_ns + rows_ns;
    let explain = Explain { select_ns, list_ns, look_ns, rows_ns, ..notes.explain };
    let Notes { mut completeness, met, .. } = notes.settled(&archive);
    completeness.limited = shown.limited;
    completeness.stopped = flow.is_break() && !shown.limited;
    Ok(FindReport { sessions: shown.count, completeness, explain, met })
}

/// Calls `visit` with the rows of the sessions that match, as far as they lie in the query's times,
/// in ring order: for what is summed over time and needs no session whole.
pub fn find_rows(
    options: &Options,
    sought: &Sought<'_>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(RowEvent<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    let Sought { query, .. } = *sought;
    let Opened { mut archive, mut notes, mut watch } = Opened::new(options, query, clock)?;
    let (from, to) = query.packet_time_range();
    let (mut known, mut flow) = (None, ControlFlow::Continue(()));
    if !query.is_of_rows(true) {
        let mut sessions = BTreeMap::new();
        flow = look(&mut archive, (query, None), &mut notes, &mut |event| match event {
            Event::Found(found) => {
                sessions.insert(Identity::of(&found.session), found.session.end);
                ControlFlow::Continue(())
            }
            Event::Searched { parts, of } => visit(RowEvent::Searched { parts, of }),
        })?;
        known = Some(Known::new(sessions));
    }
    let wanted = known.as_ref().map_or(Wanted::Query(query), Wanted::Sessions);
    if flow.is_continue() {
        let named = sought.columns.map(|columns| [columns, &[PIECES]].concat());
        let columns = named.as_deref().map_or(Columns::All, Columns::Named);
        let mut scan = Scan::new(&mut archive, wanted, columns, from..=to);
        flow = scan.run(&mut notes, &mut |step, _, _| {
            Ok(match step {
                Step::Part { .. } => ControlFlow::Continue(()),
                Step::Row(_, row) => visit(RowEvent::Row(&row)),
                Step::Progress { done: parts, of } => visit(RowEvent::Searched { parts, of }),
            })
        })?;
    }
    notes.explain.select_ns = watch.lap();
    let Notes { mut completeness, explain, met } = notes.settled(&archive);
    completeness.stopped = flow.is_break();
    Ok(FindReport { sessions: 0, completeness, explain, met })
}

/// Events of a [`find_rows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowEvent<'a> {
    /// A row that matches.
    Row(&'a SessionRow),
    /// As [`Event::Searched`].
    Searched {
        /// Number of parts done.
        parts: usize,
        /// Number of all parts.
        of: usize,
    },
}

/// Divides the time of a scan by the events of it.
struct Laps<'a, 'c> {
    watch: &'a mut Stopwatch<'c>,
    /// Segments are being looked into; `None` before the first.
    is_looking: Option<bool>,
    explain: Explain,
}

impl Laps<'_, '_> {
    fn step(&mut self, step: &Step) {
        let begins_look = matches!(step, Step::Progress { .. });
        if self.is_looking != Some(begins_look) {
            self.lap();
            self.is_looking = Some(begins_look);
        }
    }

    fn lap(&mut self) {
        let explain = &mut self.explain;
        let step = match self.is_looking {
            None => &mut explain.list_ns,
            Some(true) => &mut explain.look_ns,
            Some(false) => &mut explain.rows_ns,
        };
        *step += self.watch.lap();
    }

    fn finish(mut self) -> Explain {
        self.lap();
        self.explain
    }
}

/// The visitor and its limit.
struct Shown<'a> {
    limit: u64,
    count: u64,
    limited: bool,
    visit: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
}

impl Shown<'_> {
    /// Breaks off where one more is found than the limit, or more would have to be searched to know
    /// whether there is one.
    fn show(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if self.count == self.limit {
            self.limited = true;
            return ControlFlow::Break(());
        }
        if matches!(event, Event::Found(_)) {
            self.count += 1;
        }
        (self.visit)(event)
    }
}
