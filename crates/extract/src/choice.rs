//! Which rows an extract takes its packets from, where the query alone does not say it: a look at
//! all rows comes first, that gives whole sessions, or the stretches of time around them.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeSet;

use format::slice::Slice;
use index::Columns;
use query::Query;
use units::Timestamp;

use crate::Error;
use crate::archive::Archive;
use crate::request::{Request, SessionIds};
use crate::scan::{Identity, RowId, Scan, Step, Wanted};
use crate::taking::columns;
use crate::walk::Notes;
use crate::windows::Windows;

/// The rows that packets are taken from.
#[derive(Debug)]
pub(crate) enum Chosen {
    /// Those that match the query.
    Query,
    /// All of these sessions.
    Whole(BTreeSet<Identity>),
    /// Of these sessions those that match the query.
    Matching(BTreeSet<Identity>),
    /// All with packets in these stretches.
    Around(Windows),
}

impl Chosen {
    pub(crate) fn wanted<'c>(&'c self, query: &'c Query) -> Wanted<'c> {
        match self {
            Self::Query => Wanted::Query(query),
            Self::Whole(sessions) => Wanted::Sessions(sessions, None),
            Self::Matching(sessions) => Wanted::Sessions(sessions, Some(query)),
            Self::Around(windows) => Wanted::Windows(windows),
        }
    }

    /// No row outside is wanted.
    pub(crate) fn times(&self, query: &Query) -> RangeInclusive<Timestamp> {
        match self {
            Self::Query | Self::Matching(_) => {
                let (from, to) = query.time_range();
                from..=to
            }
            Self::Whole(sessions) => {
                let first = sessions.iter().map(Identity::start).min();
                first.unwrap_or(Timestamp::MAX)..=Timestamp::MAX
            }
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
    pub(crate) fn admits(&mut self, row: &Slice) -> bool {
        let Some(limit) = self.limit else { return true };
        let identity = Identity::of(row);
        let count = u64::try_from(self.known.len()).expect("lengths fit 64 bits");
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

/// Looks at the rows first, where that is needed. Breaks off where `goes_on` says so.
pub(crate) fn choose(
    archive: &mut Archive,
    request: &Request<'_>,
    admitted: &mut Admitted,
    notes: &mut Notes,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<(), Chosen>, Error> {
    let mut chosen = Chosen::Query;
    if let Some(ids) = &request.sessions {
        match named(archive, ids, notes, goes_on)? {
            ControlFlow::Continue(sessions) => chosen = Chosen::Matching(sessions),
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        }
    }
    let (mut whole, mut stretches) = (BTreeSet::new(), Vec::new());
    // Where the payload decides, sessions are chosen by their packets.
    let is_whole = request.whole_sessions && request.payload.is_none();
    if request.around.is_none() && !is_whole {
        return Ok(ControlFlow::Continue(chosen));
    }
    let (wanted, times) = (chosen.wanted(request.query), chosen.times(request.query));
    let columns = columns();
    let columns = Columns::Named(&columns);
    let mut scan = Scan { archive, wanted, columns, times, slots: None };
    let flow = look(&mut scan, notes, &mut |_, row| {
        if admitted.admits(row) {
            if request.around.is_some() {
                stretches.push(row.start..=row.end);
            } else {
                whole.insert(Identity::of(row));
            }
        }
        if admitted.is_full() { ControlFlow::Break(()) } else { goes_on() }
    })?;
    if flow.is_break() && !admitted.is_full() {
        return Ok(ControlFlow::Break(()));
    }
    Ok(ControlFlow::Continue(match request.around {
        Some(margin) => Chosen::Around(Windows::around(stretches.into_iter(), margin)),
        None => Chosen::Whole(whole),
    }))
}

/// The sessions of these ids; notes how many are not there.
fn named(
    archive: &mut Archive,
    ids: &SessionIds,
    notes: &mut Notes,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<(), BTreeSet<Identity>>, Error> {
    let (mut sessions, mut found) = (BTreeSet::new(), 0_u64);
    let (wanted, times) = (Wanted::Rows(&ids.0), Timestamp::MIN..=Timestamp::MAX);
    let columns = columns();
    let columns = Columns::Named(&columns);
    let mut scan = Scan { archive, wanted, columns, times, slots: None };
    let flow = look(&mut scan, notes, &mut |_, row| {
        sessions.insert(Identity::of(row));
        found += 1;
        goes_on()
    })?;
    let count = u64::try_from(ids.len()).expect("lengths fit 64 bits");
    // Segments that overlap have a row twice.
    notes.completeness.unknown_sessions = count.saturating_sub(found);
    Ok(match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(sessions),
        ControlFlow::Break(()) => ControlFlow::Break(()),
    })
}

/// Calls `visit` with every row. What a look finds missing is missing from the answer, too, but
/// what is counted or bounded by times is counted when the packets are taken.
fn look(
    scan: &mut Scan<'_>,
    notes: &mut Notes,
    visit: &mut dyn FnMut(RowId, &Slice) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Error> {
    let mut own = Notes { explain: notes.explain, ..Notes::default() };
    let flow = scan.run(&mut own, &mut |step, _, _| {
        Ok(match step {
            Step::Row(id, row) => visit(id, &row),
            Step::Part { .. } | Step::Progress { .. } => ControlFlow::Continue(()),
        })
    })?;
    notes.explain = own.explain;
    for damage in own.completeness.damage {
        notes.completeness.add_damage(damage.stripe, damage.kind);
    }
    if let Some(through) = own.completeness.expired_through {
        notes.completeness.withhold(through);
    }
    let unread = own.completeness.unread_packets;
    notes.completeness.unread_packets = unread.max(notes.completeness.unread_packets);
    Ok(flow)
}
