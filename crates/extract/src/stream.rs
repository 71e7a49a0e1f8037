//! Sessions that match, the first of them soon: what comes first is joined first.
//!
//! Rows are gone over in the order asked for. One that is all of its session answers at once. Of
//! the others each is a sign of a session that may match; before anything behind its start is
//! shown, all rows of that session are looked for, wherever they lie. So what is read is what lies
//! before the last session shown, and the rows of the few that are longer than that.
//!
//! Oldest first, after the first screen of sessions, all rows come by anyway, and are joined as
//! they do ([`Sessions`]).

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use index::Columns;
use query::Query;
use units::Timestamp;

use crate::Error;
use crate::archive::Archive;
use crate::candidates::{Question, is_whole};
use crate::find::{Event, JOIN_IDLE_NS};
use crate::identity::{Identity, RowId};
use crate::joiner::{Joiner, Place, Shown, found};
use crate::known::{FEW, Known};
use crate::scan::{Listed, Scan, Step, Stretches, Way};
use crate::sessions::{Begun, Flow, Sessions, Told, columns_with, keep_asked};
use crate::walk::Notes;
use crate::wanted::Wanted;

/// So many sessions are a screen of them: they come soon.
const FIRST: usize = 32;
/// So many are joined at a time when more than a screen of them is wanted.
const MANY: usize = 1 << 10;
/// Parts gone over for a first screen; after these all rows are joined as they come.
const PARTS_MAX: usize = 8;
/// So many sessions are kept in mind as done before those are forgotten that nothing can follow of.
const DONE_MAX: usize = 1 << 16;

/// The first sessions that match, or, from the newest on, all.
pub(crate) struct Stream<'a> {
    pub(crate) archive: &'a mut Archive,
    pub(crate) query: &'a Query,
    /// Of the sessions that are shown.
    pub(crate) columns: Columns<'a>,
    pub(crate) way: Way,
    /// At most so many are wanted.
    pub(crate) limit: Option<u64>,
}

/// What was found and is not shown yet, and what was shown.
#[derive(Debug)]
struct State {
    way: Way,
    /// Sessions that match.
    over: BTreeMap<Place, Shown>,
    /// Sessions that may match and have several rows.
    signs: BTreeMap<(Timestamp, Identity), ()>,
    /// Sessions that had several rows and were joined, with their ends.
    done: BTreeMap<Identity, Timestamp>,
    shown: usize,
    limit: usize,
    is_indexed: bool,
    behind: Timestamp,
    /// Everything between this and what was shown is known.
    bound: Option<Timestamp>,
    /// Parts whose rows were looked at.
    parts: usize,
    /// Nothing is shown before all is known, or so many are.
    is_held: bool,
}

/// Where a stretch ended.
enum Ended {
    /// All of it is done.
    Whole,
    /// Before this place, of which so many row groups are done.
    At { place: usize, groups: usize },
    /// Nothing more is wanted.
    Enough,
}

impl State {
    fn new(way: Way, limit: Option<u64>, is_held: bool) -> Self {
        Self {
            way,
            over: BTreeMap::new(),
            signs: BTreeMap::new(),
            done: BTreeMap::new(),
            shown: 0,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
            is_indexed: false,
            behind: Timestamp::MIN,
            bound: None,
            parts: 0,
            is_held,
        }
    }

    /// So many more are wanted at once.
    fn wanted(&self) -> usize {
        let at_once = if self.shown < FIRST { FIRST - self.shown } else { MANY };
        at_once.min(self.limit.saturating_sub(self.shown)).max(1)
    }

    /// Signs are to be looked into before the scan goes on.
    fn is_due(&self) -> bool {
        !self.signs.is_empty() && self.over.len().saturating_add(self.signs.len()) >= self.wanted()
    }

    fn add_sign(&mut self, session: Identity) {
        if !self.done.contains_key(&session) {
            self.signs.insert((session.start(), session), ());
        }
    }

    fn keep(&mut self, (place, found): Shown) {
        self.over.insert(place, (place, found));
    }

    /// All that lies between what was shown and this time is known.
    fn reach(&mut self, at: Timestamp) {
        self.bound = Some(match self.way {
            Way::OldestFirst => at.min(self.behind),
            Way::NewestFirst => at.max(self.behind),
        });
    }

    /// The session that comes next, if nothing that is not known can come before it.
    fn next(&mut self) -> Option<Shown> {
        if self.is_held && self.over.len() < self.wanted() {
            return None;
        }
        self.is_held = false;
        let bound = self.bound?;
        let is_next = |at: Timestamp| match self.way {
            Way::OldestFirst => {
                let waits = self.signs.first_key_value().is_some_and(|(sign, ())| sign.0 <= at);
                at <= bound && !waits
            }
            Way::NewestFirst => {
                let waits = self.signs.last_key_value().is_some_and(|(sign, ())| sign.0 >= at);
                at >= bound && !waits
            }
        };
        let first = match self.way {
            Way::OldestFirst => self.over.first_entry(),
            Way::NewestFirst => self.over.last_entry(),
        };
        let first = first.filter(|first| is_next(first.key().0))?;
        self.shown += 1;
        Some(first.remove())
    }

    /// Shows what can be shown; breaks off when it is enough.
    fn show(&mut self, told: &mut Told<'_>) -> ControlFlow<()> {
        while self.shown < self.limit {
            let Some((_, found)) = self.next() else { return ControlFlow::Continue(()) };
            (told.show)(Event::Found(&found))?;
        }
        ControlFlow::Break(())
    }

    /// The signs that come next.
    fn take_signs(&mut self) -> Vec<Identity> {
        let count = self.wanted().max(FEW).min(self.signs.len());
        let pop = |_| match self.way {
            Way::OldestFirst => self.signs.pop_first(),
            Way::NewestFirst => self.signs.pop_last(),
        };
        (0..count).filter_map(pop).map(|((_, session), ())| session).collect()
    }

    /// Forgets sessions of which no further row can come.
    fn forget(&mut self) {
        let Some(bound) = self.bound.filter(|_| self.done.len() > DONE_MAX) else { return };
        match self.way {
            Way::OldestFirst => self.done.retain(|_, end| end.plus_nanos(JOIN_IDLE_NS) >= bound),
            Way::NewestFirst => self.done.retain(|session, _| session.start() <= bound),
        }
    }
}

impl Stream<'_> {
    /// Hands them out.
    pub(crate) fn each(self, notes: &mut Notes, told: &mut Told<'_>) -> Flow {
        let query = self.query;
        let flow = self.run(notes, told);
        keep_asked(query, notes);
        flow
    }

    fn run(mut self, notes: &mut Notes, told: &mut Told<'_>) -> Flow {
        let question = Question::new(self.query);
        if question.named.is_some() {
            let Self { archive, query, columns, .. } = self;
            return Sessions { archive, query, columns }.each(notes, told);
        }
        let is_held = question.is_by_rare && self.way == Way::OldestFirst;
        let mut state = State::new(self.way, self.limit, is_held);
        let list = self.scan_of(Wanted::Nothing).list();
        if !question.is_by_rare
            && self.look_before(question, &list, &mut state, (notes, told))?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let (mut left, mut groups_done) = (0..list.len(), 0);
        loop {
            let stretches = Stretches { places: left.clone(), groups_done };
            let ended = self.signs(question, (&list, stretches), &mut state, (notes, told))?;
            let is_whole = matches!(ended, Ended::Whole);
            match ended {
                Ended::Enough => return Ok(ControlFlow::Break(())),
                Ended::Whole => left = 0..0,
                Ended::At { place, groups } => {
                    groups_done = groups;
                    left = match self.way {
                        Way::OldestFirst => place..list.len(),
                        Way::NewestFirst => 0..place + 1,
                    };
                }
            }
            if is_whole {
                state.bound = Some(match self.way {
                    Way::OldestFirst => Timestamp::MAX,
                    Way::NewestFirst => Timestamp::MIN,
                });
            }
            let is_first_screen = !question.is_by_rare && groups_done == 0;
            let goes_on = self.way == Way::OldestFirst
                && is_first_screen
                && !is_whole
                && (state.shown >= FIRST || state.parts >= PARTS_MAX);
            let joins_all = is_whole || goes_on;
            while state.is_due() || (joins_all && !state.signs.is_empty()) {
                let sessions = state.take_signs();
                self.join(&list, sessions, &mut state, (notes, told))?;
                if state.show(told).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            state.forget();
            if is_whole {
                state.is_held = false;
                return Ok(state.show(told));
            }
            if goes_on {
                let over = state.over.into_values().collect();
                let begun = Begun { list, next: left.start, done: state.done, over };
                let Self { archive, query, columns, .. } = self;
                return Sessions { archive, query, columns }.go_on(begun, notes, told);
            }
        }
    }

    /// Looks for sessions that began before the times asked for.
    fn look_before(
        &mut self,
        question: Question<'_>,
        list: &[Listed],
        state: &mut State,
        (notes, told): (&mut Notes, &mut Told<'_>),
    ) -> Flow {
        let Some(times) = question.look_times() else { return Ok(ControlFlow::Continue(())) };
        let mut own = notes.aside();
        let mut scan = self.scan_of(Wanted::Look(question));
        scan.times = times;
        let all = Stretches { places: 0..list.len(), groups_done: 0 };
        let flow = scan.over(list, all, &mut own, &mut |step, _, _| {
            (told.step)(&step);
            if let Step::Row(_, row) = &step {
                state.add_sign(Identity::of(row));
            }
            Ok(match step {
                Step::Progress { done, of } => (told.show)(Event::Searched { parts: done, of }),
                _ => ControlFlow::Continue(()),
            })
        })?;
        notes.add_aside(own);
        Ok(flow)
    }

    /// Goes over rows until sessions of several rows are to be joined, or a part ends behind which
    /// all are.
    fn signs(
        &mut self,
        question: Question<'_>,
        (list, stretches): (&[Listed], Stretches),
        state: &mut State,
        (notes, told): (&mut Notes, &mut Told<'_>),
    ) -> Result<Ended, Error> {
        let (from, to) = self.query.time_range();
        let tail = self.archive.tail();
        let mut at = match self.way {
            Way::OldestFirst => stretches.places.start,
            Way::NewestFirst => stretches.places.end.saturating_sub(1),
        };
        let (way, mut groups_done) = (self.way, stretches.groups_done);
        let mut scan = self.scan_of(Wanted::Signs(question));
        scan.times = from..=if question.is_by_rare { Timestamp::MAX } else { to };
        let mut ended = Ended::Whole;
        let flow = scan.over(list, stretches, notes, &mut |step, _, _| {
            (told.step)(&step);
            match step {
                Step::Progress { done, of } => {
                    return Ok((told.show)(Event::Searched { parts: done, of }));
                }
                Step::Part { is_indexed, behind, .. } => {
                    state.parts += usize::from(groups_done == 0);
                    (state.is_indexed, state.behind) = (is_indexed, behind);
                }
                Step::Row(id, row) if is_whole(&row) => {
                    let place = (row.start, id);
                    state.keep((place, found(id, *row, (tail, state.is_indexed))));
                }
                Step::Row(_, row) => state.add_sign(Identity::of(&row)),
                Step::Bound { at: time, groups } => {
                    state.reach(time);
                    if state.show(told).is_break() {
                        ended = Ended::Enough;
                        return Ok(ControlFlow::Break(()));
                    }
                    if let Some(groups) = groups.filter(|_| state.is_due()) {
                        ended = Ended::At { place: at, groups };
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Step::End { place } => {
                    (groups_done, at) = (0, place);
                    let listed = list.get(place);
                    state.bound = listed.map(|it| match way {
                        Way::OldestFirst => it.later_min,
                        Way::NewestFirst => it.earlier_max,
                    });
                    if state.show(told).is_break() {
                        ended = Ended::Enough;
                        return Ok(ControlFlow::Break(()));
                    }
                    let next = match way {
                        Way::OldestFirst => Some(place + 1).filter(|&next| next < list.len()),
                        Way::NewestFirst => place.checked_sub(1),
                    };
                    let Some(next) = next else { return Ok(ControlFlow::Continue(())) };
                    at = next;
                    let is_screen = state.shown >= FIRST || state.parts >= PARTS_MAX;
                    let goes_on = is_screen && way == Way::OldestFirst && !question.is_by_rare;
                    if state.is_due() || goes_on {
                        ended = Ended::At { place: next, groups: 0 };
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(match (flow, &ended) {
            // Whoever is told of progress wants no more.
            (ControlFlow::Break(()), Ended::Whole) => Ended::Enough,
            _ => ended,
        })
    }

    /// Joins these sessions, whatever parts their rows lie in, and keeps those that match.
    fn join(
        &mut self,
        list: &[Listed],
        mut sessions: Vec<Identity>,
        state: &mut State,
        (notes, told): (&mut Notes, &mut Told<'_>),
    ) -> Result<(), Error> {
        while !sessions.is_empty() {
            let mut asked = sessions.clone();
            let mut left = Vec::new();
            if !self.query.is_of_rows(false) {
                let columns = columns_with(self.query, &[]);
                let columns = Columns::Named(&columns);
                let (matching, open) =
                    self.joined(list, &sessions, columns, (&mut *notes, &mut *told))?;
                left = open;
                asked = matching.iter().map(|(_, found)| Identity::of(&found.session)).collect();
            }
            let (matching, open) = if asked.is_empty() {
                (Vec::new(), Vec::new())
            } else {
                self.joined(list, &asked, self.columns, (&mut *notes, &mut *told))?
            };
            left.extend(open);
            for shown in matching {
                let session = &shown.1.session;
                state.done.insert(Identity::of(session), session.end);
                state.keep(shown);
            }
            for session in sessions {
                if !left.contains(&session) {
                    state.done.entry(session).or_insert(Timestamp::MAX);
                }
            }
            sessions = left;
        }
        Ok(())
    }

    /// Those of these sessions that match; and, where few live on when most are over, these few,
    /// which are found sooner by themselves.
    fn joined(
        &mut self,
        list: &[Listed],
        sessions: &[Identity],
        columns: Columns<'_>,
        (notes, told): (&mut Notes, &mut Told<'_>),
    ) -> Result<(Vec<Shown>, Vec<Identity>), Error> {
        let known = sessions.iter().map(|session| (*session, Timestamp::MAX)).collect();
        let known = Known::new(known);
        let query = self.query;
        let mut joiner = Joiner::new(query, self.archive.tail());
        let mut matching = Vec::new();
        let mut keep = |event: Event<'_>| {
            if let Event::Found(found) = event {
                let id = RowId::parse(&found.id).unwrap_or_default();
                matching.push(((found.session.start, id), found.clone()));
            }
            ControlFlow::Continue(())
        };
        let begin = *known.times().start();
        let mut own = notes.aside();
        let (mut is_left, mut is_stopped) = (Vec::new(), false);
        let mut scan = Scan { columns, ..self.scan_of(Wanted::Sessions(&known)) };
        scan.way = Way::OldestFirst;
        scan.times = begin..=Timestamp::MAX;
        let first = list.partition_point(|it| it.earlier_max.max(it.part.time_max) < begin);
        let places = Stretches { places: first..list.len(), groups_done: 0 };
        let visit = &mut |step: Step, _: &Archive, _: &mut Notes| {
            (told.step)(&step);
            match step {
                Step::Progress { done, of } => {
                    let open = joiner.open_sessions();
                    let is_over = joiner.ended() + open.len() >= known.len();
                    if is_over && open.len() <= FEW && (open.is_empty() || known.len() > FEW) {
                        (is_left, is_stopped) = (open, true);
                        return Ok(ControlFlow::Break(()));
                    }
                    Ok((told.show)(Event::Searched { parts: done, of }))
                }
                step => {
                    let _: ControlFlow<()> = joiner.step(step, &mut keep);
                    let is_over = joiner.ended() >= known.len() && joiner.is_idle();
                    Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                }
            }
        };
        let _: ControlFlow<()> = scan.over(list, places, &mut own, visit)?;
        notes.add_aside(own);
        if is_stopped {
            joiner.drop_open();
        }
        let _: ControlFlow<()> = joiner.finish(&mut keep);
        Ok((matching, is_left))
    }

    fn scan_of<'s>(&'s mut self, wanted: Wanted<'s>) -> Scan<'s> {
        let (archive, columns, way) = (&mut *self.archive, self.columns, self.way);
        let times = Timestamp::MIN..=Timestamp::MAX;
        Scan { archive, wanted, columns, times, slots: None, way }
    }
}
