//! The find job: sessions that match, whole: a query is about sessions, and rows are joined before
//! it is asked.

use core::ops::{ControlFlow, RangeInclusive};

use completeness::Completeness;
use found::{Event, Explain};
use index::Columns;
use query::Query;
use units::{Clock, Times, Timestamp};

use crate::archive::Archive;
use crate::kept;
use crate::met::NamesMet;
use crate::newest::{SEARCHED_IN_PART, newest};
use crate::scan::Step;
use crate::sessions::{Sessions, Told, columns_with};
use crate::stopwatch::Stopwatch;
use crate::walk::Notes;
use crate::{Error, Options};

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
pub(crate) struct Opened<'c> {
    pub(crate) archive: Archive,
    pub(crate) notes: Notes,
    pub(crate) watch: Stopwatch<'c>,
}

impl<'c> Opened<'c> {
    pub(crate) fn new(
        options: &Options,
        query: &Query,
        clock: &'c dyn Clock,
    ) -> Result<Self, Error> {
        let (from, to) = query.time_range();
        Self::of(options, &(from..=to), clock)
    }

    /// For a question about these times.
    pub(crate) fn of(
        options: &Options,
        times: &RangeInclusive<Timestamp>,
        clock: &'c dyn Clock,
    ) -> Result<Self, Error> {
        let mut watch = Stopwatch::start(clock);
        let archive = Archive::open(options, clock.realtime())?;
        let mut notes = Notes::default();
        notes.explain.open_ns = watch.lap();
        notes.completeness.erased_through = archive.erased_through(times);
        notes.completeness.add_standing(&archive.standing(times));
        if options.keep_sessions.is_some() {
            notes.completeness.forgotten.add(&kept::forgotten(archive.cache.as_ref()));
        }
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
    let mut shown = Shown { limit, count: 0, looked: 0, end: None, visit };
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
    let (from, to) = sought.query.time_range();
    completeness.forget_but(&Times::of(from, to));
    completeness.limited = shown.end == Some(End::More);
    completeness.unsought = shown.end == Some(End::Unsought);
    completeness.stopped = flow.is_break() && shown.end.is_none();
    Ok(FindReport { sessions: shown.count, completeness, explain, met })
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

/// Parts that are searched behind the last session that may be shown: in a small volume it is then
/// known that there is no other, and in a large one they cost milliseconds.
const LOOKED_MAX: u64 = 2;

/// Why no more sessions are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// There is one more than the limit.
    More,
    /// More would have to be searched to know whether there is one.
    Unsought,
}

/// The visitor and its limit.
struct Shown<'a> {
    limit: u64,
    count: u64,
    /// Parts searched since the limit was reached.
    looked: u64,
    end: Option<End>,
    visit: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
}

impl Shown<'_> {
    /// Breaks off where one more is found than the limit, or much would have to be searched to know
    /// whether there is one.
    fn show(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let is_found = matches!(event, Event::Found(_));
        if self.count == self.limit {
            self.looked += 1;
            self.end = match event {
                Event::Found(_) => Some(End::More),
                SEARCHED_IN_PART => Some(End::Unsought),
                Event::Searched { .. } => (self.looked > LOOKED_MAX).then_some(End::Unsought),
            };
        }
        if self.end.is_some() {
            return ControlFlow::Break(());
        }
        self.count += u64::from(is_found);
        (self.visit)(event)
    }
}
