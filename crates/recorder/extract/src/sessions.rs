//! The sessions that match, whole: which rows may be of some is found out first where rows alone do
//! not say, then rows are joined, and those of sessions that go on beyond the query's times are
//! read to their end.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeMap;

use format::head::StripeId;
use found::Event;
use index::Columns;
use query::Query;
use units::{Sequence, Timestamp};

use crate::Error;
use crate::archive::Archive;
use crate::candidates::{Candidates, Question};
use crate::identity::{Identity, RowId};
use crate::joiner::{Joiner, Show};
use crate::known::Known;
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
        let question = Question::new(query);
        let mut known = Known::default();
        if let Some(times) = question.look_times() {
            match self.look(question, times, (&mut joiner, notes), told)? {
                ControlFlow::Continue(Some(found)) => known = found,
                ControlFlow::Continue(None) => return Ok(joiner.finish(told.show)),
                ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
            }
        }
        let candidates = Candidates { question, known };
        let times = candidates.times();
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

    /// Looks for sessions whose rows lie elsewhere, too. `None` where the rows that it has found
    /// were all that there are, and are joined.
    fn look(
        &mut self,
        question: Question<'_>,
        times: RangeInclusive<Timestamp>,
        (joiner, notes): (&mut Joiner<'_>, &mut Notes),
        told: &mut Told<'_>,
    ) -> Result<ControlFlow<(), Option<Known>>, Error> {
        let (mut lives, mut steps, mut is_all) = (BTreeMap::new(), Vec::new(), question.is_by_rare);
        let (wanted, mut reach) = ((Wanted::Look(question), times), Timestamp::MIN);
        let mut own = notes.aside();
        let flow = self.scan(wanted, Begin::OF_THE_RING, &mut own, &mut |step| {
            (told.step)(&step);
            match &step {
                Step::Progress { done, of } => {
                    return (told.show)(Event::Searched { parts: *done, of: *of });
                }
                Step::Row(_, row) => {
                    if let Some((session, end)) = question.life_of(row, reach) {
                        let known = lives.entry(session).or_insert(end);
                        *known = end.max(*known);
                    }
                }
                Step::Part { reach: of_part, .. } => reach = *of_part,
                Step::Before(_) => {}
            }
            is_all &= lives.is_empty() && steps.len() < STEPS_MAX;
            if is_all {
                steps.push(step);
            } else {
                steps.clear();
            }
            ControlFlow::Continue(())
        })?;
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !is_all {
            notes.add_aside(own);
            return Ok(ControlFlow::Continue(Some(Known::new(lives))));
        }
        notes.add(&own);
        for step in steps {
            if joiner.step(step, told.show).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(None))
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
    [columns, &Identity::COLUMNS, &[CONTINUES, PIECES], &query.columns()].concat()
}
