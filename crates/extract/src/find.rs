//! The find job: sessions that match, their rows joined.
//!
//! Rows match one by one; the matching rows of a session are shown as one. Sessions come by their
//! start: a session waits while it may have further rows and while later parts may hold earlier
//! sessions, but at most `WAITING_MAX` wait, so far apart the order is that of the ring.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeMap;

use format::slice::Slice;
use index::Columns;
use query::Query;
use units::{Clock, Timestamp};
use wire::CommunityId;

use crate::archive::Archive;
use crate::explain::{Explain, Stopwatch};
use crate::scan::{Identity, RowId, Scan, Step, Wanted};
use crate::statement::Completeness;
use crate::walk::Notes;
use crate::{Error, Options};

/// Sessions held back for the sake of order and of further rows.
const WAITING_MAX: usize = 1 << 16;
/// A session without a row for longer than this, where sessions have rows each minute, is over: no
/// timeout is longer.
pub const JOIN_IDLE_NS: i64 = 15 * 60 * units::NANOS_PER_SECOND;

/// Whether a session's packets can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// All of them.
    Held,
    /// Some of its pieces are overwritten.
    Partly,
    /// All of its pieces are overwritten; its rows are kept.
    Retired,
}

/// A session that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// `SEQUENCE.SUB-ROW` of its first matching row.
    pub id: String,
    /// Ids of all its matching rows.
    pub rows: Vec<String>,
    /// Its matching rows as one: sums of the counters, names and state of the last, all pieces.
    pub session: Slice,
    /// Community id, where there is IP.
    pub community_id: Option<CommunityId>,
    /// Whether its packets can be had.
    pub packets: Held,
    /// From packets that no index has: the id holds until something else is recorded.
    pub is_provisional: bool,
}

/// What [`find`] tells on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A session that matches.
    Found(&'a Found),
    /// So many parts of the ring, mostly segments, of so many are searched.
    Searched {
        /// Those done.
        parts: usize,
        /// All of them.
        of: usize,
    },
}

/// What [`find`] did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FindReport {
    /// Sessions shown.
    pub sessions: u64,
    /// What is missing.
    pub completeness: Completeness,
    /// What it cost.
    pub explain: Explain,
}

/// Which sessions to find, and how much of them.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Selects their rows.
    pub query: &'a Query,
    /// At most so many sessions.
    pub limit: Option<u64>,
    /// Columns that are needed of them; fields of others may be empty or zero. `None` for all.
    pub columns: Option<&'a [&'a str]>,
}

/// What joining takes, besides what tells sessions apart.
const CONTINUES: &str = "continues";
/// What tells whether packets are still there.
const PIECES: &str = "piece_sequences";

/// A volume that was opened for a query.
struct Opened<'c> {
    archive: Archive,
    notes: Notes,
    watch: Stopwatch<'c>,
    /// That rows may be of.
    times: RangeInclusive<Timestamp>,
}

impl<'c> Opened<'c> {
    fn new(options: &Options, query: &Query, clock: &'c dyn Clock) -> Result<Self, Error> {
        let mut watch = Stopwatch::start(clock);
        let archive = Archive::open(options, clock.realtime())?;
        let mut notes = Notes::default();
        notes.explain.open_ns = watch.lap();
        let (from, to) = query.time_range();
        notes.completeness.erased_through = archive.erased_through(&(from..=to));
        Ok(Self { archive, notes, watch, times: from..=to })
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
    find_columns(options, &Sought { query, limit, columns: None }, clock, visit)
}

/// As [`find`], of some columns only.
pub fn find_columns(
    options: &Options,
    sought: &Sought<'_>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    let Sought { query, limit, columns } = *sought;
    let Opened { mut archive, mut notes, mut watch, times } = Opened::new(options, query, clock)?;
    let tail = archive.tail();
    let mut shown = Shown { limit: limit.unwrap_or(u64::MAX), count: 0, limited: false, visit };
    let mut joiner = Joiner { tail, ..Joiner::default() };
    let wanted = Wanted::Query(query);
    let named = columns.map(|columns| [columns, &Identity::COLUMNS, &[CONTINUES, PIECES]].concat());
    let columns = named.as_deref().map_or(Columns::All, Columns::Named);
    let mut scan = Scan { archive: &mut archive, wanted, columns, times, slots: None };
    let mut laps = Laps { watch: &mut watch, is_looking: None, explain: Explain::default() };
    let mut flow = scan.run(&mut notes, &mut |step, _, _| {
        laps.step(&step);
        Ok(match step {
            Step::Part { epoch, time_min, is_indexed, .. } => {
                joiner.is_indexed = is_indexed;
                joiner.advance(epoch, time_min, &mut shown)
            }
            Step::Row(id, row) => joiner.add(id, *row, &mut shown),
            Step::Progress { done: parts, of } => (shown.visit)(Event::Searched { parts, of }),
        })
    })?;
    if flow.is_continue() {
        flow = joiner.finish(&mut shown);
    }
    let Explain { list_ns, look_ns, rows_ns, .. } = laps.finish();
    archive.make_groups();
    let select_ns = list_ns + look_ns + rows_ns;
    let explain = Explain { select_ns, list_ns, look_ns, rows_ns, ..notes.explain };
    let mut completeness = notes.completeness;
    completeness.limited = shown.limited;
    completeness.stopped = flow.is_break() && !shown.limited;
    Ok(FindReport { sessions: shown.count, completeness, explain })
}

/// Calls `visit` with the rows that match as they lie in the index, in ring order: for what is
/// summed over time and needs no session whole.
pub fn find_rows(
    options: &Options,
    sought: &Sought<'_>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(RowEvent<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    let Sought { query, .. } = *sought;
    let Opened { mut archive, mut notes, mut watch, times } = Opened::new(options, query, clock)?;
    let named = sought.columns.map(|columns| [columns, &[PIECES]].concat());
    let columns = named.as_deref().map_or(Columns::All, Columns::Named);
    let wanted = Wanted::Query(query);
    let mut scan = Scan { archive: &mut archive, wanted, columns, times, slots: None };
    let flow = scan.run(&mut notes, &mut |step, _, _| {
        Ok(match step {
            Step::Part { .. } => ControlFlow::Continue(()),
            Step::Row(_, row) => visit(RowEvent::Row(&row)),
            Step::Progress { done: parts, of } => visit(RowEvent::Searched { parts, of }),
        })
    })?;
    notes.explain.select_ns = watch.lap();
    let Notes { mut completeness, explain } = notes;
    completeness.stopped = flow.is_break();
    Ok(FindReport { sessions: 0, completeness, explain })
}

/// What [`find_rows`] tells on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowEvent<'a> {
    /// A row that matches.
    Row(&'a Slice),
    /// As [`Event::Searched`].
    Searched {
        /// Those done.
        parts: usize,
        /// All of them.
        of: usize,
    },
}

/// Divides the time of a scan by what it is told of it.
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
    fn show(&mut self, found: &Found) -> ControlFlow<()> {
        if self.count == self.limit {
            self.limited = true;
            return ControlFlow::Break(());
        }
        self.count += 1;
        (self.visit)(Event::Found(found))
    }
}

#[derive(Default)]
struct Joiner {
    tail: u64,
    epoch: u32,
    is_indexed: bool,
    /// Waiting sessions by start.
    waiting: BTreeMap<(Timestamp, RowId), Found>,
    /// Those that may have further rows.
    open: BTreeMap<Identity, (Timestamp, RowId)>,
}

impl Joiner {
    /// A part begins: what cannot change any more and has nothing before it is shown.
    fn advance(
        &mut self,
        epoch: u32,
        time_min: Timestamp,
        shown: &mut Shown<'_>,
    ) -> ControlFlow<()> {
        if epoch != self.epoch {
            self.open.clear();
            self.epoch = epoch;
        }
        let idle = time_min.plus_nanos(-JOIN_IDLE_NS);
        let waiting = &self.waiting;
        self.open
            .retain(|_, place| waiting.get(place).is_some_and(|found| found.session.end >= idle));
        while let Some((&place, found)) = self.waiting.first_key_value() {
            let is_open = self.open.get(&Identity::of(&found.session)) == Some(&place);
            if is_open || place.0 > time_min {
                break;
            }
            self.show_first(shown)?;
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, id: RowId, row: Slice, shown: &mut Shown<'_>) -> ControlFlow<()> {
        let identity = Identity::of(&row);
        let continues = row.continues;
        let known = self.open.remove(&identity);
        let joined = known.filter(|place| self.waiting.contains_key(place));
        let place = joined.unwrap_or((row.start, id));
        if let Some(found) = joined.and_then(|place| self.waiting.get_mut(&place)) {
            found.rows.push(id.to_string());
            found.packets = both(found.packets, held(&row, self.tail));
            found.session.join(row);
        } else {
            self.waiting.insert(place, self.found(id, row));
        }
        if continues {
            self.open.insert(identity, place);
        }
        if self.waiting.len() > WAITING_MAX {
            self.show_first(shown)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn found(&self, id: RowId, session: Slice) -> Found {
        Found {
            id: id.to_string(),
            rows: vec![id.to_string()],
            community_id: CommunityId::of(&session.tuple, session.icmp),
            packets: held(&session, self.tail),
            is_provisional: !self.is_indexed,
            session,
        }
    }

    fn show_first(&mut self, shown: &mut Shown<'_>) -> ControlFlow<()> {
        self.waiting.pop_first().map_or(ControlFlow::Continue(()), |(_, found)| shown.show(&found))
    }

    fn finish(&mut self, shown: &mut Shown<'_>) -> ControlFlow<()> {
        while !self.waiting.is_empty() {
            self.show_first(shown)?;
        }
        ControlFlow::Continue(())
    }
}

fn held(row: &Slice, tail: u64) -> Held {
    let retired = row.pieces.iter().filter(|span| span.piece.sequence < tail).count();
    match retired {
        0 => Held::Held,
        _ if retired == row.pieces.len() => Held::Retired,
        _ => Held::Partly,
    }
}

fn both(one: Held, other: Held) -> Held {
    if one == other { one } else { Held::Partly }
}

#[cfg(test)]
mod tests;
