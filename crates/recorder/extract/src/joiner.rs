//! Rows into sessions: those of a session are joined, and the query is asked when it is over.
//!
//! Sessions come by their start, each as soon as no earlier one can come any more. One waits while
//! it may have further rows and while earlier ones may come, but at most `WAITING_MAX` wait;
//! beyond, those that are over come in the order of the ring.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};

use format::session_row::SessionRow;
use found::{Event, Found, Held};
use query::Query;
use units::number::to_u64;
use units::{Sequence, Timestamp};
use wire::CommunityId;

use crate::candidates::part_of;
use crate::identity::{Identity, RowId};
use crate::known::{JOIN_IDLE_NS, Known};
use crate::scan::Step;

/// Sessions held back for the sake of order, and as many for the sake of further rows.
const WAITING_MAX: usize = 1 << 16;

/// Start of a session, and its first row.
type Place = (Timestamp, RowId);

/// Receives sessions that match, and how far the search is.
pub(crate) type Show<'s> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 's;

/// What was joined so far.
pub(crate) struct Joiner<'q> {
    query: &'q Query,
    tail: Sequence,
    is_indexed: bool,
    /// No row behind those of this part starts earlier.
    later_min: Timestamp,
    /// No row that is still to come starts earlier.
    floor: Timestamp,
    /// How many are over.
    ended: usize,
    /// How many were shown.
    shown: u64,
    /// Those whose further rows were read before the parts in between.
    done: BTreeSet<Identity>,
    /// Those that were recorded twice at once: two rows of each are the first, and two the last.
    doubled: BTreeSet<Identity>,
    /// Sessions that are over stay, for another one to take them.
    keeps: bool,
    /// Those that may have further rows.
    open: BTreeMap<Place, Found>,
    places: BTreeMap<Identity, Place>,
    /// Those that match.
    over: BTreeMap<Place, Found>,
}

impl<'q> Joiner<'q> {
    /// Of a volume that holds stripes from `tail` on.
    pub(crate) fn new(query: &'q Query, tail: Sequence) -> Self {
        Self {
            query,
            tail,
            is_indexed: false,
            later_min: Timestamp::MIN,
            floor: Timestamp::MIN,
            ended: 0,
            shown: 0,
            done: BTreeSet::new(),
            doubled: BTreeSet::new(),
            keeps: false,
            open: BTreeMap::new(),
            places: BTreeMap::new(),
            over: BTreeMap::new(),
        }
    }

    /// Those that may have further rows, however late.
    pub(crate) fn open(&self) -> Known {
        Known::new(self.places.keys().map(|session| (*session, Timestamp::MAX)).collect())
    }

    /// No session may have further rows.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// How many are over, whether they match or not.
    pub(crate) fn ended(&self) -> usize {
        self.ended
    }

    /// Takes a step of a scan.
    pub(crate) fn step(&mut self, step: Step, show: &mut Show<'_>) -> ControlFlow<()> {
        match step {
            Step::Progress { done: parts, of } => show(Event::Searched { parts, of }),
            Step::Part { edge, beyond, is_indexed, .. } => {
                (self.is_indexed, self.later_min) = (is_indexed, beyond);
                self.advance(edge, show)
            }
            Step::Row(id, row) => self.add(id, *row, show),
            // Only from the newest part back.
            Step::Before(_) => ControlFlow::Continue(()),
        }
    }

    /// A part begins: what cannot change any more and has nothing before it is shown.
    fn advance(&mut self, time_min: Timestamp, show: &mut Show<'_>) -> ControlFlow<()> {
        let idle = time_min.plus_nanos(-JOIN_IDLE_NS);
        self.floor = time_min;
        // Of those that another opening recorded, rows may come by another scan.
        let over = self.open.iter().filter(|(_, found)| found.session.end < idle);
        let over: Vec<Place> = over.map(|(place, _)| *place).collect();
        for place in over {
            self.end(place);
        }
        self.show_until(time_min, show)
    }

    /// How many sessions are known that are shown or may be.
    pub(crate) fn known(&self) -> u64 {
        let held = to_u64(self.over.len() + self.open.len());
        self.shown.saturating_add(held)
    }

    /// Takes out the open sessions that stand before the last of the `limit` that are to be shown,
    /// if so many are there as far as the rows say and none that is to come stands before it:
    /// besides their further rows nothing needs to be read then.
    pub(crate) fn split_off_first(&mut self, limit: u64) -> Option<Self> {
        let missing = usize::try_from(limit.saturating_sub(self.shown)).ok()?;
        let matches = |found: &Found| self.query.matches(&found.session, &found.rows);
        let open = self.open.iter().filter(|(_, found)| matches(found));
        let places = self.over.keys().chain(open.map(|(place, _)| place));
        let mut places: Vec<Place> = places.copied().collect();
        if places.len() < missing {
            return None;
        }
        let (_, last, _) = places.select_nth_unstable(missing.checked_sub(1)?);
        if last.0 > self.floor {
            return None;
        }
        let behind = self.open.split_off(&(last.0, last.1.next()));
        let open = core::mem::replace(&mut self.open, behind);
        let mut first = Self { open, keeps: true, ..Self::new(self.query, self.tail) };
        for (place, found) in &first.open {
            let identity = Identity::of(&found.session);
            self.places.remove(&identity);
            self.done.insert(identity);
            first.places.insert(identity, *place);
            first.doubled.extend(self.doubled.take(&identity));
        }
        (!first.is_idle()).then_some(first)
    }

    /// Takes sessions of which all rows were read, and shows what is certain now.
    pub(crate) fn take_over(&mut self, mut first: Self, show: &mut Show<'_>) -> ControlFlow<()> {
        let open: Vec<Place> = first.open.keys().copied().collect();
        for place in open {
            first.end(place);
        }
        self.ended += first.ended;
        self.over.append(&mut first.over);
        self.show_until(self.floor, show)
    }

    /// Shows those that are over and start at `time` or earlier, as far as none that is open stands
    /// before them.
    fn show_until(&mut self, time: Timestamp, show: &mut Show<'_>) -> ControlFlow<()> {
        while let Some((&place, _)) = self.over.first_key_value().filter(|_| !self.keeps) {
            let waits = self.open.first_key_value().is_some_and(|(before, _)| *before < place);
            if waits || place.0 > time {
                break;
            }
            self.show_first(show)?;
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, id: RowId, row: SessionRow, show: &mut Show<'_>) -> ControlFlow<()> {
        let (identity, continues) = (Identity::of(&row), row.continues);
        if self.done.contains(&identity) {
            return ControlFlow::Continue(());
        }
        self.floor = row.start.min(self.later_min);
        let known = self.places.get(&identity).copied();
        let place = known.unwrap_or((row.start, id));
        // Rows of what a segment left out come before its own, which may be earlier.
        let is_before = row.start < place.0 && id < place.1;
        let place = if is_before { self.set_back(place, (row.start, id)) } else { place };
        if let Some(found) = self.open.get_mut(&place) {
            if part_of(&row).is_first {
                self.doubled.insert(identity);
            }
            let at = if is_before { 0 } else { found.rows.len() };
            found.rows.insert(at, id.to_string());
            found.packets = both(found.packets, held(&row, self.tail));
            if is_before {
                let later = core::mem::replace(&mut found.session, row);
                found.session.join(later);
            } else {
                found.session.join(row);
            }
        } else {
            let found = found(id.to_string(), row, (self.tail, self.is_indexed));
            self.open.insert(place, found);
            self.places.insert(identity, place);
        }
        if !continues && !self.doubled.contains(&identity) {
            self.end(place);
        }
        if self.open.len() > WAITING_MAX
            && let Some((&oldest, _)) = self.open.first_key_value()
        {
            self.end(oldest);
        }
        self.show_until(self.floor, show)?;
        if self.over.len() > WAITING_MAX {
            return self.show_first(show);
        }
        ControlFlow::Continue(())
    }

    /// An open session has a row before the first one that is known.
    fn set_back(&mut self, known: Place, place: Place) -> Place {
        let Some(mut found) = self.open.remove(&known) else { return known };
        (found.id, found.is_provisional) = (place.1.to_string(), !self.is_indexed);
        self.places.insert(Identity::of(&found.session), place);
        self.open.insert(place, found);
        place
    }

    /// No further row comes.
    pub(crate) fn finish(&mut self, show: &mut Show<'_>) -> ControlFlow<()> {
        let open: Vec<Place> = self.open.keys().copied().collect();
        for place in open {
            self.end(place);
        }
        while !self.over.is_empty() {
            self.show_first(show)?;
        }
        ControlFlow::Continue(())
    }

    /// A session is over, and kept if it matches.
    fn end(&mut self, place: Place) {
        let Some(found) = self.open.remove(&place) else { return };
        let identity = Identity::of(&found.session);
        self.places.remove(&identity);
        self.doubled.remove(&identity);
        self.ended += 1;
        if self.query.matches(&found.session, &found.rows) {
            self.over.insert(place, found);
        }
    }

    fn show_first(&mut self, show: &mut Show<'_>) -> ControlFlow<()> {
        let Some((_, found)) = self.over.pop_first() else { return ControlFlow::Continue(()) };
        self.shown += 1;
        show(Event::Found(&found))
    }
}

/// The session of a first row, in a volume that holds stripes from `tail` on.
pub(crate) fn found(
    id: String,
    session: SessionRow,
    (tail, is_indexed): (Sequence, bool),
) -> Found {
    Found {
        rows: vec![id.clone()],
        id,
        community_id: CommunityId::of(&session.tuple, session.icmp),
        packets: held(&session, tail),
        is_provisional: !is_indexed,
        session,
    }
}

fn held(row: &SessionRow, tail: Sequence) -> Held {
    let retired = row.pieces.iter().filter(|span| span.piece.sequence < tail).count();
    match retired {
        0 => Held::Held,
        _ if retired == row.pieces.len() => Held::Retired,
        _ => Held::Partly,
    }
}

/// Whether the packets of two rows can be had.
pub(crate) fn both(one: Held, other: Held) -> Held {
    if one == other { one } else { Held::Partly }
}
