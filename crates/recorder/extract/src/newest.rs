//! The newest sessions that match: parts of the ring from the newest back, until enough are found.
//!
//! Within a row group the rows of a session come in the order of time, and what earlier row groups
//! and parts have of it is joined in front. A session is over when its first row is there, and all
//! rows of the part; it is shown when none can come any more that begins later, which is known
//! behind each row group. The columns that decide are read of all rows, the others of those that
//! are shown. Held are the sessions that wait for earlier rows and at most as many others as are
//! asked for.

use core::cmp::Reverse;
use core::ops::ControlFlow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use format::head::StripeId;
use format::session_row::SessionRow;
use found::{Event, Found};
use index::Columns;
use query::{Part, Query};
use units::number::to_u64;
use units::{Sequence, Timestamp};

use crate::Error;
use crate::archive::Archive;
use crate::candidates::{Question, part_of};
use crate::identity::{Identity, RowId};
use crate::joiner::{Joiner, Show, both, found};
use crate::known::{JOIN_IDLE_NS, Known};
use crate::order::Order;
use crate::pace::Pace;
use crate::scan::{Scan, Step, few_of};
use crate::sessions::{Sessions, Told, columns_with};
use crate::walk::{Flow, Notes};
use crate::wanted::Wanted;

/// Sessions that wait for earlier rows; beyond, those are taken for the first ones that are there.
const WAITING_MAX: usize = 1 << 16;

/// The latest start first, of equal ones the first row in the ring.
type Place = (Reverse<Timestamp>, RowId);

/// Hands out at most `limit` sessions that match, those first that begin last.
pub(crate) fn newest(
    archive: &mut Archive,
    (query, columns): (&Query, Columns<'_>),
    limit: u64,
    notes: &mut Notes,
    told: &mut Told<'_>,
) -> Flow {
    let mut newest = Newest::new(query, archive.tail(), limit);
    let question = Question::new(query);
    let looked = if question.may_be_common() {
        look_back(archive, question, &mut newest, notes, told)?
    } else if question.is_by_rare {
        Looked::Rare
    } else {
        Looked::Common
    };
    if !matches!(looked, Looked::Ended(_)) {
        newest = Newest::new(query, archive.tail(), limit);
    }
    let is_backwards = !matches!(looked, Looked::Rare);
    let flow = match looked {
        Looked::Ended(flow) => flow,
        Looked::Common => backwards(archive, question.common(None), &mut newest, notes, told)?,
        Looked::Rare => {
            let sessions = Sessions { archive, query, columns, limit: u64::MAX };
            all(sessions, &mut newest, notes, told)?
        }
    };
    if flow.is_break() && !newest.are_enough() {
        return Ok(flow);
    }
    if flow.is_continue() {
        newest.finish();
    }
    let mut found = newest.certain;
    if is_backwards && fill(archive, columns, &mut found, notes)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    for found in &found {
        if (told.show)(Event::Found(found)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    // Where not all was searched there may be more.
    Ok(if flow.is_break() { (told.show)(SEARCHED_IN_PART) } else { flow })
}

/// What a look for what is rare has found out.
enum Looked {
    /// The answer, or that nobody waits for it any more.
    Ended(ControlFlow<()>),
    /// It is not rare: a search does without.
    Common,
    /// Sessions of several rows have it.
    Rare,
}

/// Looks from the newest part back for what is rare. Where each session has one row that is all.
fn look_back(
    archive: &mut Archive,
    question: Question<'_>,
    newest: &mut Newest<'_>,
    notes: &mut Notes,
    told: &mut Told<'_>,
) -> Result<Looked, Error> {
    let columns = columns_with(question.query, &[]);
    let columns = Columns::Named(&columns);
    let (order, enough) = (Order::NewestFirst, to_u64(newest.limit));
    let (mut pace, mut whole, mut others) = (Pace::new(order, enough), 0, BTreeSet::new());
    let (times, wanted) = (question.times(), Wanted::Look(question));
    let is_open_ended = *times.end() == Timestamp::MAX;
    let (mut is_whole, mut is_common, mut own) = (is_open_ended, false, notes.aside());
    let few = few_of(enough);
    let mut scan = Scan { order, few, ..Scan::new(archive, wanted, columns, times) };
    let flow = scan.run(&mut own, &mut |step, _, own| {
        (told.step)(&step);
        match &step {
            Step::Part { edge, rows, .. } => pace.begin(*edge, *rows, own.explain.rows),
            Step::Row(id, row) => {
                if part_of(row) == Part::WHOLE {
                    whole += 1;
                } else {
                    others.insert(Identity::of(row));
                    is_whole = false;
                }
                let sessions = to_u64(others.len()).saturating_add(whole);
                is_common = pace.is_lost(id.row, sessions, own.explain.rows) && !is_whole;
            }
            Step::Progress { done, of } if !is_whole => {
                return Ok((told.show)(Event::Searched { parts: *done, of: *of }));
            }
            Step::Progress { .. } | Step::Before(_) => {}
        }
        Ok(match step {
            _ if is_common => ControlFlow::Break(()),
            step if is_whole => newest.step(step, Timestamp::MAX, told.show),
            _ => ControlFlow::Continue(()),
        })
    })?;
    if is_whole {
        notes.add(&own);
    } else {
        notes.add_aside(own);
    }
    Ok(match flow {
        _ if is_common => Looked::Common,
        ControlFlow::Continue(()) if !is_whole => Looked::Rare,
        flow => Looked::Ended(flow),
    })
}

/// Not all parts of the ring are searched.
pub(crate) const SEARCHED_IN_PART: Event<'static> = Event::Searched { parts: 0, of: 1 };

/// Searches from the newest part back, by the columns that decide, until enough are certain.
fn backwards(
    archive: &mut Archive,
    question: Question<'_>,
    newest: &mut Newest<'_>,
    notes: &mut Notes,
    told: &mut Told<'_>,
) -> Flow {
    let columns = columns_with(question.query, &[]);
    let columns = Columns::Named(&columns);
    if going_on(archive, (question, columns), newest, notes, told)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let few = few_of(to_u64(newest.limit));
    let mut scan = |(wanted, times), notes: &mut Notes, newest: &mut Newest<'_>, until| {
        let order = Order::NewestFirst;
        let mut scan = Scan { order, few, ..Scan::new(archive, wanted, columns, times) };
        scan.run(notes, &mut |step, _, _| {
            (told.step)(&step);
            Ok(newest.step(step, until, told.show))
        })
    };
    let times = question.times();
    let from = *times.start();
    newest.from = from;
    let wanted = (Wanted::Backwards(question), times);
    if scan(wanted, notes, newest, Timestamp::MAX)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    newest.end_part();
    let open = newest.open();
    if from == Timestamp::MIN || open.len() == 0 {
        return Ok(ControlFlow::Continue(()));
    }
    // Their rows before the times that are asked for.
    let before = from.plus_nanos(-1);
    let wanted = (Wanted::Sessions(&open), Timestamp::MIN..=before);
    let mut own = notes.aside();
    let flow = scan(wanted, &mut own, newest, before)?;
    notes.add_aside(own);
    Ok(flow)
}

/// Reads the sessions that may go on behind the times that are asked for, all of them whole.
fn going_on(
    archive: &mut Archive,
    (question, columns): (Question<'_>, Columns<'_>),
    newest: &mut Newest<'_>,
    notes: &mut Notes,
    told: &mut Told<'_>,
) -> Flow {
    let to = *question.times().end();
    if to == Timestamp::MAX {
        return Ok(ControlFlow::Continue(()));
    }
    let (mut ends, mut own) = (BTreeMap::new(), notes.aside());
    let times = to.plus_nanos(-JOIN_IDLE_NS)..=to;
    let mut scan = Scan::new(archive, Wanted::Backwards(question), columns, times);
    let flow = scan.run(&mut own, &mut |step, _, _| {
        (told.step)(&step);
        Ok(match step {
            Step::Progress { done: parts, of } => (told.show)(Event::Searched { parts, of }),
            Step::Row(_, row) if row.continues => {
                ends.insert(Identity::of(&row), Timestamp::MAX);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        })
    })?;
    let known = Known::new(ends);
    if flow.is_break() || known.len() == 0 {
        return Ok(flow);
    }
    let mut joiner = Joiner::new(question.query, archive.tail());
    let mut keep = |event: Event<'_>| match event {
        Event::Found(found) => {
            newest.keep_found(found.clone());
            ControlFlow::Continue(())
        }
        searched @ Event::Searched { .. } => (told.show)(searched),
    };
    let mut is_over = false;
    let mut scan = Scan::new(archive, Wanted::Sessions(&known), columns, known.times());
    let flow = scan.run(&mut own, &mut |step, _, _| {
        (told.step)(&step);
        is_over = matches!(step, Step::Part { edge, .. } if edge > to) && joiner.is_idle();
        Ok(if is_over { ControlFlow::Break(()) } else { joiner.step(step, &mut keep) })
    })?;
    notes.add_aside(own);
    if (flow.is_break() && !is_over) || joiner.finish(&mut keep).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    newest.going_on = known;
    Ok(ControlFlow::Continue(()))
}

/// Reads the other columns of sessions that were chosen by a few. Rows without an index have all.
fn fill(
    archive: &mut Archive,
    columns: Columns<'_>,
    found: &mut [Found],
    notes: &mut Notes,
) -> Flow {
    let has_all = |found: &&Found| found.is_provisional && found.rows.len() == 1;
    let rows = found.iter().filter(|found| !has_all(found)).flat_map(|found| &found.rows);
    let rows: BTreeSet<RowId> = rows.filter_map(|id| RowId::parse(id)).collect();
    let query = Query::all();
    let mut joiner = Joiner::new(&query, archive.tail());
    let mut whole = BTreeMap::new();
    let mut keep = |event: Event<'_>| {
        if let Event::Found(found) = event {
            whole.insert(found.id.clone(), found.clone());
        }
        ControlFlow::Continue(())
    };
    let (wanted, times) = (Wanted::Rows(&rows), Timestamp::MIN..=Timestamp::MAX);
    let mut scan = Scan::new(archive, wanted, columns, times);
    let mut own = notes.aside();
    let flow = scan.run(&mut own, &mut |step, _, _| Ok(joiner.step(step, &mut keep)))?;
    notes.add_aside(own);
    let flow = if flow.is_break() { flow } else { joiner.finish(&mut keep) };
    for found in found {
        if let Some(whole) = whole.remove(&found.id) {
            *found = whole;
        }
    }
    Ok(flow)
}

/// Searches from the oldest part on, and keeps the newest that match.
fn all(
    sessions: Sessions<'_>,
    newest: &mut Newest<'_>,
    notes: &mut Notes,
    told: &mut Told<'_>,
) -> Flow {
    let mut show = |event: Event<'_>| match event {
        Event::Found(found) => {
            newest.keep_found(found.clone());
            ControlFlow::Continue(())
        }
        searched @ Event::Searched { .. } => (told.show)(searched),
    };
    let mut step = |step: &Step| (told.step)(step);
    sessions.each(notes, &mut Told { show: &mut show, step: &mut step })
}

/// A session that matches and is over.
enum Over {
    /// Of one row, and whether that is of an index. Most of them give way to newer ones before
    /// anybody asks for more.
    Whole(Box<SessionRow>, bool),
    Joined(Box<Found>),
}

/// What was read so far, from the newest part back.
struct Newest<'q> {
    query: &'q Query,
    /// It asks for the ids of rows.
    by_id: bool,
    tail: Sequence,
    limit: usize,
    /// Rows that end before are not read at first. Where the clock was set back, later rows of a
    /// session may, although its first one does not.
    from: Timestamp,
    /// The part that is being read.
    at: Option<StripeId>,
    is_indexed: bool,
    /// Sessions with several rows in the row group that is being read.
    group: BTreeMap<Identity, Found>,
    /// The same of the row groups behind it in its part.
    part: BTreeMap<Identity, Found>,
    /// Those of newer parts that wait for earlier rows.
    open: BTreeMap<Identity, Found>,
    /// Those that match and are over.
    over: BTreeMap<Place, Over>,
    /// Those before which none can come any more, in order.
    certain: Vec<Found>,
    /// Those that were read whole before.
    going_on: Known,
}

impl<'q> Newest<'q> {
    fn new(query: &'q Query, tail: Sequence, limit: u64) -> Self {
        Self {
            query,
            by_id: query.columns().contains(&"session_id"),
            tail,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            from: Timestamp::MIN,
            at: None,
            is_indexed: false,
            group: BTreeMap::new(),
            part: BTreeMap::new(),
            open: BTreeMap::new(),
            over: BTreeMap::new(),
            certain: Vec::new(),
            going_on: Known::default(),
        }
    }

    /// Nothing more needs to be read.
    fn are_enough(&self) -> bool {
        self.certain.len() >= self.limit
    }

    /// Takes a step of a scan from the newest part back; rows that end behind `until` were taken
    /// before.
    fn step(&mut self, step: Step, until: Timestamp, show: &mut Show<'_>) -> ControlFlow<()> {
        match step {
            Step::Progress { .. } if self.are_enough() => ControlFlow::Break(()),
            Step::Progress { done: parts, of } => show(Event::Searched { parts, of }),
            Step::Part { first, edge, is_indexed, .. } => {
                self.is_indexed = is_indexed;
                if self.at.replace(first) == Some(first) {
                    // Another stretch of the same part: the rows of a session go on.
                    return ControlFlow::Continue(());
                }
                self.end_part();
                self.advance(edge)
            }
            Step::Row(_, row) if row.end > until => ControlFlow::Continue(()),
            Step::Row(id, row) => {
                self.add(id, row);
                ControlFlow::Continue(())
            }
            Step::Before(latest) => {
                self.end_group();
                // Where those begin that wait for earlier rows is not known yet.
                let waiting = self.part.values().chain(self.open.values());
                let waiting = waiting.map(|found| found.session.start).max();
                self.show_after(waiting.map_or(latest, |start| start.max(latest)))
            }
        }
    }

    /// A part begins, and no packet of it or of an older one is later than `latest`.
    fn advance(&mut self, latest: Timestamp) -> ControlFlow<()> {
        let idle = latest.plus_nanos(JOIN_IDLE_NS);
        // Of one that was recorded twice at once an older part has a first row, too.
        let from = self.from;
        let over = self.open.extract_if(.., |_, Found { session, .. }| {
            let has_all = session.start > latest && part_of(session).is_first;
            session.start >= from && (has_all || session.start > idle)
        });
        for (_, found) in over.collect::<Vec<_>>() {
            self.end(found);
        }
        self.show_after(latest)
    }

    /// No session begins later than `latest` any more, but for those that are over.
    fn show_after(&mut self, latest: Timestamp) -> ControlFlow<()> {
        while let Some(first) = self.over.first_entry()
            && first.key().0.0 > latest
        {
            let (place, over) = first.remove_entry();
            self.certain.push(shown(self.tail, place, over));
        }
        // One too many is enough to know that there are more.
        if self.certain.len() > self.limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn add(&mut self, id: RowId, row: Box<SessionRow>) {
        if part_of(&row) == Part::WHOLE {
            let ids = if self.by_id { vec![id.to_string()] } else { Vec::new() };
            if self.query.matches(&row, &ids) {
                let place = (Reverse(row.start), id);
                self.keep(place, Over::Whole(row, self.is_indexed));
            }
            return;
        }
        let identity = Identity::of(&row);
        if self.going_on.contains(&identity) {
            return;
        }
        let next = found(id.to_string(), *row, (self.tail, self.is_indexed));
        match self.group.entry(identity) {
            Entry::Occupied(mut earlier) => join(earlier.get_mut(), next),
            Entry::Vacant(place) => drop(place.insert(next)),
        }
    }

    /// All rows of a row group are there: they come before those of the row groups behind it.
    fn end_group(&mut self) {
        for (identity, mut found) in core::mem::take(&mut self.group) {
            if let Some(later) = self.part.remove(&identity) {
                join(&mut found, later);
            }
            self.part.insert(identity, found);
        }
    }

    /// All rows of a part are there.
    fn end_part(&mut self) {
        self.end_group();
        for (identity, mut found) in core::mem::take(&mut self.part) {
            if let Some(later) = self.open.remove(&identity) {
                join(&mut found, later);
            }
            self.open.insert(identity, found);
        }
        while self.open.len() > WAITING_MAX
            && let Some((_, found)) = self.open.pop_first()
        {
            self.end(found);
        }
    }

    /// A session is over, and kept if it matches.
    fn end(&mut self, found: Found) {
        if self.query.matches(&found.session, &found.rows) {
            self.keep_found(found);
        }
    }

    fn keep_found(&mut self, found: Found) {
        let id = RowId::parse(&found.id).expect("ids are made of these");
        self.keep((Reverse(found.session.start), id), Over::Joined(Box::new(found)));
    }

    /// Keeps a session that matches, if it is among the newest.
    fn keep(&mut self, place: Place, over: Over) {
        self.over.insert(place, over);
        // One too many says that there are more.
        if self.certain.len() + self.over.len() > self.limit.saturating_add(1) {
            self.over.pop_last();
        }
    }

    /// Those that may have rows which were not read.
    fn open(&self) -> Known {
        let waiting = self.open.iter().filter(|(_, Found { session, .. })| {
            session.start < self.from || !part_of(session).is_first
        });
        Known::new(waiting.map(|(session, found)| (*session, found.session.end)).collect())
    }

    /// No further row comes.
    fn finish(&mut self) {
        self.end_part();
        for found in core::mem::take(&mut self.open).into_values() {
            self.end(found);
        }
        let over = core::mem::take(&mut self.over).into_iter();
        self.certain.extend(over.map(|(place, over)| shown(self.tail, place, over)));
    }
}

/// A session as it is handed out.
fn shown(tail: Sequence, (_, id): Place, over: Over) -> Found {
    match over {
        Over::Whole(row, is_indexed) => found(id.to_string(), *row, (tail, is_indexed)),
        Over::Joined(found) => *found,
    }
}

/// Adds further rows of a session, which lie behind in the ring; but the rows that are made of what
/// a segment left out are read before its others, or after them where it is searched twice.
fn join(one: &mut Found, mut other: Found) {
    let is_before = RowId::parse(&other.id) < RowId::parse(&one.id);
    if is_before && other.session.start < one.session.start {
        core::mem::swap(one, &mut other);
    }
    one.rows.extend(other.rows);
    one.packets = both(one.packets, other.packets);
    one.session.join(other.session);
}
