//! The sessions that match, whole: which rows may be of some is found out first where rows alone do
//! not say, then rows are joined, and those of sessions that go on beyond the query's times are
//! read to their end.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeMap;

use format::head::StripeId;
use found::Event;
use index::Columns;
use query::Query;
use units::number::to_u64;
use units::{Sequence, Timestamp};

use crate::Error;
use crate::archive::Archive;
use crate::candidates::{Candidates, Question};
use crate::identity::{Identity, RowId};
use crate::joiner::{Joiner, Show};
use crate::known::Known;
use crate::order::Order;
use crate::pace::Pace;
use crate::scan::{Scan, Step, few_of};
use crate::walk::Notes;
use crate::wanted::{CONTINUES, PIECES, Wanted};

/// So many steps of a look are remembered, so that few rows need no second one.
const STEPS_MAX: usize = 1 << 12;

/// Receives sessions that match, and how far the search is.
pub(crate) struct Told<'t> {
    pub(crate) show: &'t mut Show<'t>,
    /// Each step of a scan, before it is taken.
    pub(crate) step: &'t mut dyn FnMut(&Step),
}

/// What came of it.
type Flow = Result<ControlFlow<()>, Error>;

/// What a look has found out.
enum Looked {
    /// All that there is, and it was joined.
    All,
    /// Sessions of several rows.
    Known(Known),
    /// What is asked for is not rare. Sessions that have it end at this time or later, if that says
    /// anything.
    Common(Option<Timestamp>),
}

/// Sessions that match, by their start.
pub(crate) struct Sessions<'a> {
    pub(crate) archive: &'a mut Archive,
    pub(crate) query: &'a Query,
    /// Of their rows.
    pub(crate) columns: Columns<'a>,
    /// So many are shown at most: no others are looked for.
    pub(crate) limit: u64,
}

/// From where on a scan goes over the ring.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Begin {
    stripe: StripeId,
    /// Rows up to this one were read.
    row: Option<RowId>,
}

impl Begin {
    const OF_THE_RING: Self =
        Self { stripe: StripeId { sequence: Sequence(0), sub: 0 }, row: None };
    const BEHIND_THE_RING: Self =
        Self { stripe: StripeId { sequence: Sequence::MAX, sub: u16::MAX }, row: None };

    fn has_read(&self, id: RowId) -> bool {
        self.row.map_or(id.segment < self.stripe, |row| id <= row)
    }
}

/// Looks whether the sessions that are known are enough.
struct Enough {
    limit: u64,
    /// So many must be known for the next look.
    look_at: u64,
    /// The part that is being read can be read again from any row.
    is_by_id: bool,
    /// What comes next.
    next: Begin,
}

impl Enough {
    fn new(limit: u64) -> Self {
        Self { limit, look_at: limit, is_by_id: false, next: Begin::OF_THE_RING }
    }

    /// Notes a step that is taken.
    fn note(&mut self, step: &Step) {
        match *step {
            Step::Part { first, is_by_id, .. } => {
                self.is_by_id = is_by_id;
                // A part that is read on keeps what was read of it.
                if self.next.stripe != first {
                    self.next = Begin { stripe: first, row: None };
                }
            }
            Step::Row(id, _) => self.next.row = Some(id),
            Step::Progress { .. } | Step::Before(_) => {}
        }
    }

    /// The open sessions whose further rows are all that is needed.
    fn first<'q>(&mut self, joiner: &mut Joiner<'q>) -> Option<Joiner<'q>> {
        if !self.is_by_id || joiner.known() < self.look_at {
            return None;
        }
        // A look goes over all that are known.
        self.look_at = joiner.known().saturating_mul(2);
        joiner.split_off_first(self.limit)
    }
}

impl Sessions<'_> {
    /// Hands out those that match.
    pub(crate) fn each(self, notes: &mut Notes, told: &mut Told<'_>) -> Flow {
        let (from, to) = self.query.time_range();
        let flow = self.search(notes, told);
        // A look goes on behind the times that are asked for.
        notes.completeness.gaps.retain(|gap| gap.from <= to && gap.to >= from);
        flow
    }

    fn search(mut self, notes: &mut Notes, told: &mut Told<'_>) -> Flow {
        let query = self.query;
        let mut joiner = Joiner::new(query, self.archive.tail());
        let mut question = Question::new(query);
        let asked_from = question.from();
        let known = loop {
            let Some(times) = question.look_times() else { break Known::default() };
            match self.look(question, times, (&mut joiner, notes), told)? {
                ControlFlow::Continue(Looked::Known(found)) => break found,
                ControlFlow::Continue(Looked::All) => return Ok(joiner.finish(told.show)),
                ControlFlow::Continue(Looked::Common(from)) => question = question.common(from),
                ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
            }
        };
        let candidates = Candidates { question, known };
        let times = candidates.times();
        // What parts say of themselves counts from the times that are asked for on.
        let times = asked_from.min(*times.start())..=*times.end();
        let until = *times.end();
        let mut is_over = false;
        let (mut enough, mut is_all) = (Enough::new(self.limit), false);
        while !is_all {
            let wanted = (Wanted::Candidates(&candidates), times.clone());
            let (begin, mut first) = (enough.next, None);
            let flow = self.scan(wanted, begin, notes, &mut |step| {
                (told.step)(&step);
                is_over = candidates.are_over(joiner.ended());
                match &step {
                    Step::Part { .. } if is_over => return ControlFlow::Break(()),
                    Step::Row(id, _) if begin.has_read(*id) => return ControlFlow::Continue(()),
                    _ => enough.note(&step),
                }
                joiner.step(step, told.show)?;
                first = enough.first(&mut joiner);
                if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            is_all = first.is_none();
            if let Some(mut first) = first {
                let read = (enough.next, until);
                if self.rest(&mut first, read, notes, told)?.is_break()
                    || joiner.take_over(first, told.show).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            } else if flow.is_break() && !is_over {
                return Ok(flow);
            }
        }
        let read = (Begin::BEHIND_THE_RING, until);
        if !is_over && self.rest(&mut joiner, read, notes, told)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(joiner.finish(told.show))
    }

    /// Hands out those of these sessions that match.
    pub(crate) fn each_of(
        mut self,
        sessions: &Known,
        notes: &mut Notes,
        told: &mut Told<'_>,
    ) -> Flow {
        let mut joiner = Joiner::new(self.query, self.archive.tail());
        let wanted = (Wanted::Sessions(sessions), sessions.times());
        let mut own = notes.aside();
        let flow = self.scan(wanted, Begin::OF_THE_RING, &mut own, &mut |step| {
            (told.step)(&step);
            joiner.step(step, told.show)
        })?;
        notes.add_aside(own);
        Ok(if flow.is_break() { flow } else { joiner.finish(told.show) })
    }

    /// Looks for sessions whose rows lie elsewhere, too.
    fn look(
        &mut self,
        question: Question<'_>,
        times: RangeInclusive<Timestamp>,
        (joiner, notes): (&mut Joiner<'_>, &mut Notes),
        told: &mut Told<'_>,
    ) -> Result<ControlFlow<(), Looked>, Error> {
        let (mut lives, mut steps, mut is_all) = (BTreeMap::new(), Vec::new(), question.is_by_rare);
        let (wanted, mut reach) = (Wanted::Look(question), Timestamp::MIN);
        let enough = if question.may_be_common() { self.limit } else { u64::MAX };
        let mut pace = Pace::new(Order::OldestFirst, enough);
        let (mut whole, mut is_common) = (0_u64, false);
        let mut own = notes.aside();
        let few = few_of(enough);
        let mut scan = Scan { few, ..Scan::new(self.archive, wanted, self.columns, times) };
        let flow = scan.run(&mut own, &mut |step, _, own| {
            (told.step)(&step);
            match &step {
                Step::Progress { done, of } => {
                    return Ok((told.show)(Event::Searched { parts: *done, of: *of }));
                }
                Step::Row(id, row) => {
                    if let Some((session, end)) = question.life_of(row, reach) {
                        let known = lives.entry(session).or_insert(end);
                        *known = end.max(*known);
                    } else {
                        whole += 1;
                    }
                    let sessions = whole.saturating_add(to_u64(lives.len()));
                    is_common = pace.is_lost(id.row, sessions, own.explain.rows);
                    if is_common {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Step::Part { edge, reach: of_part, rows, .. } => {
                    reach = *of_part;
                    pace.begin(*edge, *rows, own.explain.rows);
                }
                Step::Before(_) => {}
            }
            is_all &= lives.is_empty() && steps.len() < STEPS_MAX;
            if is_all {
                steps.push(step);
            } else {
                steps.clear();
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if is_common {
            notes.add_aside(own);
            return Ok(ControlFlow::Continue(Looked::Common(pace.edge())));
        }
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !is_all {
            notes.add_aside(own);
            return Ok(ControlFlow::Continue(Looked::Known(Known::new(lives))));
        }
        notes.add(&own);
        for step in steps {
            if joiner.step(step, told.show).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(Looked::All))
    }

    /// Reads the further rows of a joiner's open sessions, and nothing else. Of the rows before
    /// `next` those that start up to `until` were read.
    fn rest(
        &mut self,
        joiner: &mut Joiner<'_>,
        (next, until): (Begin, Timestamp),
        notes: &mut Notes,
        told: &mut Told<'_>,
    ) -> Flow {
        let is_all = next == Begin::BEHIND_THE_RING;
        if joiner.is_idle() || (is_all && until == Timestamp::MAX) {
            return Ok(ControlFlow::Continue(()));
        }
        let open = joiner.open();
        let mut own = notes.aside();
        let from = if is_all { until.plus_nanos(1) } else { Timestamp::MIN };
        let wanted = (Wanted::Sessions(&open), from..=Timestamp::MAX);
        let begin = if until == Timestamp::MAX { next } else { Begin::OF_THE_RING };
        let flow = self.scan(wanted, begin, &mut own, &mut |step| {
            (told.step)(&step);
            match step {
                _ if joiner.is_idle() => ControlFlow::Break(()),
                Step::Row(id, row) if next.has_read(id) && row.start <= until => {
                    ControlFlow::Continue(())
                }
                step => joiner.step(step, told.show),
            }
        })?;
        notes.add_aside(own);
        Ok(if joiner.is_idle() { ControlFlow::Continue(()) } else { flow })
    }

    fn scan(
        &mut self,
        (wanted, times): (Wanted<'_>, RangeInclusive<Timestamp>),
        begin: Begin,
        notes: &mut Notes,
        visit: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Flow {
        let (archive, columns) = (&mut *self.archive, self.columns);
        let begin = begin.stripe;
        let few = few_of(self.limit);
        let mut scan = Scan { begin, few, ..Scan::new(archive, wanted, columns, times) };
        scan.run(notes, &mut |step, _, _| Ok(visit(step)))
    }
}

/// The columns by which rows are joined and a query is asked, besides these.
pub(crate) fn columns_with<'c>(query: &Query, columns: &[&'c str]) -> Vec<&'c str> {
    let mut all = [columns, &Identity::COLUMNS, &[CONTINUES, PIECES], &query.columns()].concat();
    let asks_for = |fields: &[&str]| all.iter().any(|column| fields.contains(column));
    let (by_payload, by_order) = (asks_for(&OF_APP), asks_for(&OF_APP) || asks_for(&OF_STATE));
    all.extend(OF_APP.iter().filter(|_| by_payload));
    all.extend(PAYLOAD.iter().filter(|_| by_payload));
    all.extend(OF_STATE.iter().chain(&PLACES).filter(|_| by_order));
    all
}

/// Of these a session has what the row says that was recorded last, or that had payload first.
const OF_APP: [&str; 2] = ["app", "app_by"];
const OF_STATE: [&str; 2] = ["state", "history"];
const PAYLOAD: [&str; 2] = ["orig_payload_bytes", "resp_payload_bytes"];
/// Which of two rows was recorded last, where both have packets in one piece.
const PLACES: [&str; 4] = ["piece_subs", "piece_columns", "piece_begins", "piece_lengths"];
