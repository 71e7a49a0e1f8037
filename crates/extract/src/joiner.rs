//! Rows into sessions: those of a session are joined, and the query is asked when it is over.
//!
//! Sessions come by their start. One waits while it may have further rows and while earlier ones
//! may come, but at most `WAITING_MAX` wait; beyond, those that are over come in the order of the
//! ring.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use format::slice::Slice;
use query::Query;
use units::Timestamp;
use wire::CommunityId;

use crate::find::{Event, Found, Held, JOIN_IDLE_NS};
use crate::known::Known;
use crate::scan::{Identity, RowId, Step};

/// Sessions held back for the sake of order, and as many for the sake of further rows.
const WAITING_MAX: usize = 1 << 16;

/// Start of a session, and its first row.
type Place = (Timestamp, RowId);

/// Receives sessions that match, and how far the search is.
pub(crate) type Show<'s> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 's;

/// What was joined so far.
pub(crate) struct Joiner<'q> {
    query: &'q Query,
    tail: u64,
    epoch: u32,
    is_indexed: bool,
    /// How many are over.
    ended: usize,
    /// Those that may have further rows.
    open: BTreeMap<Place, Found>,
    places: BTreeMap<Identity, Place>,
    /// Those that match.
    over: BTreeMap<Place, Found>,
}

impl<'q> Joiner<'q> {
    /// Of a volume that holds stripes from `tail` on.
    pub(crate) fn new(query: &'q Query, tail: u64) -> Self {
        Self {
            query,
            tail,
            epoch: 0,
            is_indexed: false,
            ended: 0,
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
            Step::Part { epoch, time_min, is_indexed, .. } => {
                self.is_indexed = is_indexed;
                self.advance(epoch, time_min, show)
            }
            Step::Row(id, row) => self.add(id, *row, show),
        }
    }

    /// A part begins: what cannot change any more and has nothing before it is shown.
    fn advance(&mut self, epoch: u32, time_min: Timestamp, show: &mut Show<'_>) -> ControlFlow<()> {
        let idle = time_min.plus_nanos(-JOIN_IDLE_NS);
        let is_new_epoch = core::mem::replace(&mut self.epoch, epoch) != epoch;
        let is_over = |found: &Found| is_new_epoch || found.session.end < idle;
        let over = self.open.iter().filter(|(_, found)| is_over(found));
        let over: Vec<Place> = over.map(|(place, _)| *place).collect();
        for place in over {
            self.end(place);
        }
        while let Some((&place, _)) = self.over.first_key_value() {
            let waits = self.open.first_key_value().is_some_and(|(before, _)| *before < place);
            if waits || place.0 > time_min {
                break;
            }
            self.show_first(show)?;
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, id: RowId, row: Slice, show: &mut Show<'_>) -> ControlFlow<()> {
        let (identity, continues) = (Identity::of(&row), row.continues);
        let known = self.places.get(&identity).copied();
        let place = known.unwrap_or((row.start, id));
        if let Some(found) = self.open.get_mut(&place) {
            found.rows.push(id.to_string());
            found.packets = both(found.packets, held(&row, self.tail));
            found.session.join(row);
        } else {
            let found = self.found(id, row);
            self.open.insert(place, found);
            self.places.insert(identity, place);
        }
        if !continues {
            self.end(place);
        }
        if self.open.len() > WAITING_MAX
            && let Some((&oldest, _)) = self.open.first_key_value()
        {
            self.end(oldest);
        }
        if self.over.len() > WAITING_MAX {
            return self.show_first(show);
        }
        ControlFlow::Continue(())
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

    /// A session is over, and kept if it matches.
    fn end(&mut self, place: Place) {
        let Some(found) = self.open.remove(&place) else { return };
        self.places.remove(&Identity::of(&found.session));
        self.ended += 1;
        if self.query.matches(&found.session, &found.rows) {
            self.over.insert(place, found);
        }
    }

    fn show_first(&mut self, show: &mut Show<'_>) -> ControlFlow<()> {
        let first = self.over.pop_first();
        first.map_or(ControlFlow::Continue(()), |(_, found)| show(Event::Found(&found)))
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
