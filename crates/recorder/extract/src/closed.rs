//! Sessions of closed segments, part after part, for who keeps them elsewhere: each session once,
//! when it is over.
//!
//! A part of the ring is a segment, or stripes between two segments that no index covers. Parts are
//! read in the order of the ring, each once, and what depends on the parts before is in
//! [`OpenSessions`]: rows of sessions that may go on. So what a part gives depends on the part and
//! on that, and on nothing that is recorded later.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use completeness::Completeness;
use format::directory::Gap;
use format::head::{Kind, StripeId, VolumeId};
use format::session_row::SessionRow;
use found::Found;
use index::Columns;
use query::Query;
use units::{Clock, EachSequence, Epoch, Sequence, Timestamp};

use crate::archive::{Archive, Part};
use crate::identity::{Identity, RowId};
use crate::joiner::found;
use crate::known::JOIN_IDLE_NS;
use crate::scan::{Scan, Step};
use crate::walk::Notes;
use crate::wanted::Wanted;
use crate::{Error, Options};

/// Sessions that may go on, of which a row is held: as many as a recorder has in its table take a
/// gigabyte. Beyond, the oldest is given out as it is.
const OPEN_MAX: usize = 1 << 18;
/// So many slots are looked at for packets that were not read: an index may lie in front of them.
const LAG_SLOTS: usize = 16;
/// A recorder that lives gives a sign of life within this time.
const ALIVE_NS: i64 = 120 * units::NANOS_PER_SECOND;

/// A part of the ring whose sessions are ready to be kept elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosedPart {
    part: Part,
    /// Rows whose packets lie up to here were read with an earlier part.
    read_through: Option<StripeId>,
}

impl ClosedPart {
    /// Its first stripe.
    pub fn first(&self) -> StripeId {
        self.part.first
    }

    /// Its last stripe.
    pub fn last(&self) -> StripeId {
        self.part.last
    }

    /// No packet is earlier, as far as heads and directory say.
    pub fn time_min(&self) -> Timestamp {
        self.part.time_min
    }
}

/// How far behind a reader is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lag {
    /// Slots of the ring that were not read.
    pub slots: u64,
    /// Slots of the ring: at so many it overwrites what was not read.
    pub of_slots: u64,
    /// Since when the oldest stripe that was not read is there, in nanoseconds.
    pub ns: i64,
}

/// What a part says besides its sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartReport {
    /// Losses while it was recorded.
    pub gaps: Vec<Gap>,
    /// What is missing from its sessions, those losses among it.
    pub completeness: Completeness,
    /// Rows read.
    pub rows: u64,
    /// The latest packet of those.
    pub latest: Option<Timestamp>,
}

/// A volume, opened to read its closed parts.
pub struct ClosedParts {
    archive: Archive,
    /// Nobody writes to it.
    is_over: bool,
}

impl core::fmt::Debug for ClosedParts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ClosedParts").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl ClosedParts {
    /// Opens a volume as it is now. Who writes to it afterwards makes no difference: what the ring
    /// has passed since is missing from a part that is read late.
    pub fn open(options: &Options, clock: &dyn Clock) -> Result<Self, Error> {
        let is_written = || {
            let mut paths = core::iter::once(&options.volume).chain(&options.members);
            paths.any(|path| device::is_open_for_writing(path))
        };
        let was_written = is_written();
        let archive = Archive::open(options, clock.realtime())?;
        // Asked twice: a recorder may begin or end while the newest stripe is looked for. One on
        // another machine, which no lock here knows of, gives a sign of life each minute.
        let alive = archive.reader.last_alive().filter(|_| !archive.reader.has_stopped_in_order());
        let is_silent = alive.is_none_or(|at| archive.now.since(at).abs() > ALIVE_NS);
        let is_over = is_silent && !was_written && !is_written() && !options.is_recorded;
        Ok(Self { archive, is_over })
    }

    /// Whose parts they are.
    pub fn volume(&self) -> VolumeId {
        self.archive.volume()
    }

    /// Its packets and its index are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.archive.reader.superblock().is_encrypted
    }

    /// The newest stripe that is durable.
    pub fn newest(&self) -> Option<StripeId> {
        self.archive.span().map(|span| span.acknowledged)
    }

    /// What distinguishes the slot of a stripe from every other one that was ever written under
    /// this sequence. None where it is not held, or was erased.
    pub fn mark(&self, stripe: StripeId) -> Option<[u8; 32]> {
        let head = self.archive.reader.head(stripe.sequence)?;
        (head.stripe.kind != Kind::Void).then_some(head.cid)
    }

    /// No recorder runs: no session goes on.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Times of which the volume does not say whether packets of them are missing: no gap says so
    /// before somebody records again.
    pub fn doubts(&self) -> Completeness {
        let standing = self.archive.standing(&(Timestamp::MIN..=Timestamp::MAX));
        Completeness { doubts: standing.doubts, ..Completeness::default() }
    }

    /// The oldest sequence that is held; `None` where nothing is.
    pub fn tail(&self) -> Option<Sequence> {
        self.archive.span().map(|span| span.tail)
    }

    /// The last stripe behind `read` that the ring has overwritten, if any is: every head names the
    /// stripe before it.
    pub fn lost_behind(&self, read: StripeId) -> Option<StripeId> {
        let tail = self.tail()?;
        let heads = self.archive.reader.leading_heads(tail);
        let lost = match heads.first() {
            Some(head) => head.stripe.previous,
            // Nothing says what was in front of it.
            None => StripeId { sequence: tail, sub: 0 }.before(),
        };
        (lost > read).then_some(lost)
    }

    /// How far behind the newest stripe one is that was read.
    pub fn lag(&self, read: Option<StripeId>) -> Lag {
        let of_slots = self.archive.reader.geometry().slots;
        let Some(span) = self.archive.span() else { return Lag { of_slots, ..Lag::default() } };
        let from = read.map_or(span.tail, |read| read.sequence.max(span.tail));
        let first = read.map_or(StripeId::default(), StripeId::after);
        let unread = first..=span.acknowledged;
        let heads = (from..=span.acknowledged.sequence)
            .each()
            .take(LAG_SLOTS)
            .flat_map(|sequence| self.archive.reader.leading_heads(sequence));
        let packets = heads.map(|head| head.stripe).filter(|stripe| stripe.kind == Kind::Data);
        let oldest = { packets }.find(|stripe| unread.contains(&stripe.stripe));
        // Behind the last packets lies their index.
        let Some(oldest) = oldest else { return Lag { of_slots, ..Lag::default() } };
        let slots = span.acknowledged.sequence.since(from).saturating_add(1);
        Lag { slots, of_slots, ns: self.archive.now.since(oldest.realtime).max(0) }
    }

    /// The parts behind a stripe, in the order of the ring. While a recorder runs, what lies behind
    /// the last segment is not closed.
    pub fn behind(&mut self, read: Option<StripeId>) -> Vec<ClosedPart> {
        let parts = self.archive.parts();
        let closed = parts.iter().rposition(|part| part.segment.is_some()).map_or(0, |at| at + 1);
        let closed = if self.is_over { parts.len() } else { closed };
        let mut through = read;
        let mut behind = Vec::new();
        for mut part in parts.into_iter().take(closed) {
            if through.is_some_and(|through| part.last <= through) {
                continue;
            }
            let read_through = through.filter(|through| part.first <= *through);
            if let (Some(through), None) = (read_through, part.segment) {
                part.first = through.after();
            }
            through = Some(part.last);
            behind.push(ClosedPart { part, read_through });
        }
        behind
    }

    /// Reads a part: gives out every session that is over by then, and keeps the others in `open`.
    /// After a break the part is to be read again, with `open` as it was before.
    pub fn read(
        &mut self,
        part: &ClosedPart,
        open: &mut OpenSessions,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<PartReport, Error> {
        let query = Query::all();
        let times = Timestamp::MIN..=Timestamp::MAX;
        let mut notes = Notes::default();
        let (mut rows, mut latest) = (0_u64, None);
        let wanted = Wanted::Query(&query);
        let mut scan = Scan::new(&mut self.archive, wanted, Columns::All, times);
        let flow = scan.run_part(&part.part, &mut notes, &mut |step, _, _| {
            Ok(match step {
                Step::Progress { .. } | Step::Before(_) => ControlFlow::Continue(()),
                Step::Part { epoch, is_indexed, .. } => {
                    open.begin((epoch, is_indexed), part.part.time_min, take)
                }
                Step::Row(id, row) => {
                    rows = rows.saturating_add(1);
                    latest = latest.max(Some(row.end));
                    if part.read_through.is_some_and(|through| is_through(&row, through)) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    open.add(&id.to_string(), *row, take)
                }
            })
        })?;
        let notes = notes.settled(&self.archive);
        let mut completeness = notes.completeness;
        completeness.stopped |= flow.is_break();
        Ok(PartReport { gaps: completeness.gaps.clone(), completeness, rows, latest })
    }
}

/// All packets of the row lie up to this stripe.
fn is_through(row: &SessionRow, through: StripeId) -> bool {
    let mut stripes = row
        .pieces
        .iter()
        .map(|span| StripeId { sequence: span.piece.sequence, sub: span.piece.sub });
    stripes.all(|stripe| stripe <= through)
}

/// Sessions of which rows were read and that may have further ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenSessions {
    epoch: Epoch,
    is_indexed: bool,
    sessions: BTreeMap<Identity, Found>,
    /// Given out before their end, for there were too many.
    cut: u64,
}

impl OpenSessions {
    /// As they were: sessions of an epoch with the ids of their first rows.
    pub fn restore(epoch: Epoch, sessions: impl IntoIterator<Item = (String, SessionRow)>) -> Self {
        let sessions = sessions.into_iter().map(|(id, session)| {
            let session = SessionRow { epoch, ..session };
            let found = first_of(id, session, true);
            (Identity::of(&found.session), found)
        });
        Self { epoch, is_indexed: true, sessions: sessions.collect(), cut: 0 }
    }

    /// The opening of the volume that they are of.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many were given out before their end since this was made: each may be given out again.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Each with the id of its first row.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SessionRow)> {
        self.sessions.values().map(|found| (found.id.as_str(), &found.session))
    }

    /// A part begins, of an epoch, with or without an index, and from a time on: a session that has
    /// had no row for too long is over, and so are all of another epoch.
    pub fn begin(
        &mut self,
        (epoch, is_indexed): (Epoch, bool),
        time_min: Timestamp,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.is_indexed = is_indexed;
        if core::mem::replace(&mut self.epoch, epoch) != epoch {
            return self.end(take);
        }
        let idle = time_min.plus_nanos(-JOIN_IDLE_NS);
        let over = self.sessions.extract_if(.., |_, found| found.session.end < idle);
        { over }.try_for_each(|(_, found)| take(&found))
    }

    /// Takes the next row, with its id.
    pub fn add(
        &mut self,
        id: &str,
        mut row: SessionRow,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Where packets lie means nothing elsewhere, and grows with the session.
        row.pieces = Vec::new();
        row.epoch = self.epoch;
        let (identity, continues) = (Identity::of(&row), row.continues);
        let session = match self.sessions.remove(&identity) {
            Some(mut known) => {
                // Rows of what a segment left out come before its own, which may be earlier.
                let is_before = RowId::parse(id) < RowId::parse(&known.id);
                if is_before && row.start < known.session.start {
                    id.clone_into(&mut known.id);
                    core::mem::swap(&mut known.session, &mut row);
                }
                known.session.join(row);
                known
            }
            None => first_of(id.to_owned(), row, self.is_indexed),
        };
        if !continues {
            return take(&session);
        }
        self.sessions.insert(identity, session);
        if self.sessions.len() <= OPEN_MAX {
            return ControlFlow::Continue(());
        }
        let oldest = self.sessions.iter().min_by_key(|(_, found)| found.session.start);
        let oldest = oldest.map(|(identity, _)| *identity);
        self.cut = self.cut.saturating_add(1);
        oldest
            .and_then(|oldest| self.sessions.remove(&oldest))
            .map_or(ControlFlow::Continue(()), |found| take(&found))
    }

    /// Nothing follows: gives out all of them.
    pub fn end(&mut self, take: &mut dyn FnMut(&Found) -> ControlFlow<()>) -> ControlFlow<()> {
        core::mem::take(&mut self.sessions).into_values().try_for_each(|found| take(&found))
    }
}

/// The session of a first row, which names no packets: none of them has left the ring.
fn first_of(id: String, row: SessionRow, is_indexed: bool) -> Found {
    found(id, row, (Sequence(0), is_indexed))
}
