//! Sessions from packets, where no index has them.
//!
//! The indexer makes them: it gets the stripes in stretches of about a segment, so that memory is
//! bounded; sessions go on from one stretch to the next, and from the segments before the first
//! one ([`SegmentsBefore`]), and end with the epoch. The stretches depend on the stripes alone, so
//! rows keep their numbers from query to query as long as nothing else is recorded. When the
//! indexer dies, the stretch is read again, up to the stripe that it died of, which then gets a
//! stretch of its own; what ends it twice is left out, and counted.

use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeSet;

use bytes::Bytes;
use completeness::DamageKind;
use device::Pool;
use format::directory::Gap;
use format::head::{Head, StripeId};
use format::session_row::SessionRow;
use host::SystemClock;
use index::{Columns, Encoded, Segment};
use indexer::{
    Closing, Covered, Event, Owner, Piece, Rest, RunKind, SegmentsBefore, Setup, Stripe, Taken,
    Times,
};
use session::Config;
use units::number::to_u64;
use units::{EachSequence, Epoch, Timestamp};

use crate::Error;
use crate::archive::{Archive, Part};
use crate::slots::Place;
use crate::walk::{DataStripe, Notes, each_data_stripe};

/// Body bytes of a stretch: a segment's.
const STRETCH_BYTES: u64 = 1 << 30;
/// Rows of a stretch.
const STRETCH_ROWS: u64 = 1 << 18;
/// How often the indexer is waited for at once.
const TICK: Duration = Duration::from_millis(100);
/// Indexers in a row that were killed while they did the same, before the query fails.
const KILLED_MAX: u32 = 32;

/// Sessions of a run of stripes.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) epoch: Epoch,
    pub(crate) first: StripeId,
    /// In the order of their start, as a segment has them.
    pub(crate) rows: Vec<SessionRow>,
    pub(crate) packets: u64,
    pub(crate) gaps: Vec<Gap>,
    /// The Parquet file of the segment, if all of its stripes are in it.
    pub(crate) encoded: Encoded,
    pub(crate) is_whole: bool,
}

/// Receives stretches.
pub(crate) type Visit<'v> = dyn FnMut(Stretch, &mut Notes) -> Result<ControlFlow<()>, Error> + 'v;

/// Indexes the data stripes of `part` that are not `covered`.
pub(crate) fn rebuild<'a>(
    archive: &'a Archive,
    (part, before): (&'a Part, Option<SegmentsBefore>),
    covered: &Covered,
    notes: &mut Notes,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Error> {
    let mut builder = Builder::new(archive, part)?;
    // Once: an indexer that died is not given what it may have died of.
    if let Some(before) = before {
        builder.owner.resume(RunKind::Live, before);
    }
    let mut from = part.first;
    loop {
        let flow = builder.index(from..=part.last, covered, (notes, visit))?;
        match flow {
            Flow::Ended => return Ok(ControlFlow::Continue(())),
            Flow::Stopped => return Ok(ControlFlow::Break(())),
            Flow::Again(stripe) => from = stripe,
        }
    }
}

/// How a walk over stripes ended.
enum Flow {
    /// With the last stripe.
    Ended,
    /// The receiver of the stretches has enough.
    Stopped,
    /// The indexer died; it goes on from this stripe.
    Again(StripeId),
}

/// A run of stripes that the indexer has.
struct Open {
    epoch: Epoch,
    first: StripeId,
    last: StripeId,
    times: Times,
    packets: u64,
    bytes: u64,
    taken: Taken,
}

/// When the packets of a stripe came.
fn times_of(head: &Head) -> Times {
    Times { min: head.stripe.time_min, max: head.stripe.time_max }
}

struct Builder<'a> {
    archive: &'a Archive,
    owner: Owner,
    memory: Pool,
    open: Option<Open>,
    /// Whose stripes these are, where rows are numbered as in a segment: all are one stretch.
    part: &'a Part,
    is_segment: bool,
    /// Stripes that an indexer died of.
    suspects: BTreeSet<StripeId>,
    /// Stretches that could not be ended, by their first stripes.
    failed: BTreeSet<StripeId>,
    /// Those that stay without rows.
    left_out: BTreeSet<StripeId>,
    is_whole: bool,
    killed: u32,
}

impl<'a> Builder<'a> {
    fn new(archive: &'a Archive, part: &'a Part) -> Result<Self, Error> {
        let config = Config { vlan_in_key: archive.vlan_in_key, ..Config::default() };
        // The secret of the volume keeps senders from choosing tuples that collide.
        let [seed, ..] = archive.reader.superblock().head_key.0.as_chunks().0 else {
            unreachable!("a key has 32 bytes");
        };
        let memory = Pool::shared(1, archive.reader.piece_bytes())?;
        let owner = Owner::new(Setup {
            volume: archive.volume(),
            hash_seed: u64::from_le_bytes(*seed),
            sessions: Some(config),
            memories: vec![memory.clone()],
            workers: archive.workers.clone(),
        });
        Ok(Self {
            archive,
            owner,
            memory,
            open: None,
            part,
            is_segment: part.segment.is_some(),
            suspects: BTreeSet::new(),
            failed: BTreeSet::new(),
            left_out: BTreeSet::new(),
            is_whole: true,
            killed: 0,
        })
    }

    /// Indexes stripes until they end or the indexer dies.
    fn index(
        &mut self,
        stripes: core::ops::RangeInclusive<StripeId>,
        covered: &Covered,
        (notes, visit): (&mut Notes, &mut Visit<'_>),
    ) -> Result<Flow, Error> {
        let archive = self.archive;
        let tail = archive.tail();
        let places: Vec<Place> = (stripes.start().sequence.max(tail)..=stripes.end().sequence)
            .each()
            .filter(|&sequence| archive.may_hold_packets(sequence, stripes.clone()))
            .map(|sequence| archive.place(sequence))
            .collect();
        let wanted = |id| stripes.contains(&id) && !covered.has(id);
        let mut ended = None;
        let flow = each_data_stripe(archive, &places, notes, &wanted, &mut |stripe, notes| {
            let flow = self.stripe(stripe, notes, visit)?;
            let goes_on = matches!(flow, Flow::Ended);
            ended = Some(flow);
            Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        match ended {
            Some(ended) if flow.is_break() => Ok(ended),
            // Behind it the recording may go on, with an index or in stripes that are to come.
            _ => self.end_stretch(Rest::GoesOn, notes, visit),
        }
    }

    /// Takes one piece, and ends stretches around it: `Ended` says that it is done.
    fn stripe(
        &mut self,
        stripe: &DataStripe<'_>,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Error> {
        let (id, epoch) = (stripe.id(), stripe.head.stripe.epoch);
        // Sessions end with the epoch: another one is another recording, with its own interfaces.
        let of_another = self.open.as_ref().is_some_and(|open| open.epoch != epoch);
        let is_alone = self.suspects.contains(&id);
        let ends_before = is_alone && self.open.as_ref().is_some_and(|open| open.last != id);
        if of_another || ends_before {
            let rest = if of_another { Rest::Last } else { Rest::GoesOn };
            match self.end_stretch(rest, notes, visit)? {
                Flow::Ended => {}
                flow => return Ok(flow),
            }
        }
        if self.owner.is_poison(id) {
            self.leave_out(stripe.head, notes);
            return Ok(Flow::Ended);
        }
        match self.take(stripe, notes)? {
            Flow::Ended if self.is_full() => self.end_stretch(Rest::GoesOn, notes, visit),
            flow => Ok(flow),
        }
    }

    fn leave_out(&mut self, head: &Head, notes: &mut Notes) {
        self.is_whole = false;
        // The head counts the packets of all columns.
        if self.left_out.insert(head.stripe.stripe) {
            let packets = &mut notes.completeness.left_out_packets;
            *packets = packets.saturating_add(head.stripe.totals.packets);
        }
    }

    /// Hands a piece to the indexer, and waits until its packets have rows.
    fn take(&mut self, stripe: &DataStripe<'_>, notes: &mut Notes) -> Result<Flow, Error> {
        let id = stripe.id();
        let packets = stripe.head.stripe.totals.packets;
        let mut buffer = self.memory.take().expect("one piece is handed over at a time");
        let len = stripe.body.len().min(buffer.len());
        if let (Some(into), Some(body)) = (buffer.get_mut(..len), stripe.body.get(..len)) {
            into.copy_from_slice(body);
        }
        let (buffer, column) = (buffer.freeze(), stripe.head.piece.column);
        let (memory, starts) = (0, Vec::new());
        self.owner.push(Stripe {
            run_kind: RunKind::Live,
            id,
            epoch: stripe.head.stripe.epoch,
            is_late: false,
            without_names: false,
            packets,
            times: times_of(stripe.head),
            slot_cid: None,
            pieces: vec![Piece { memory, buffer, column, body: 0..len, starts }],
        });
        match self.next()? {
            Event::Taken(_, taken) => {
                self.note_taken(stripe, taken, notes);
                Ok(Flow::Ended)
            }
            Event::Died(death) => {
                self.suspects.insert(id);
                self.died(id, death.by_itself, &death.how)
            }
            _ => Err(Error::Indexer("it answered what it was not asked".to_owned())),
        }
    }

    fn note_taken(&mut self, stripe: &DataStripe<'_>, taken: Taken, notes: &mut Notes) {
        let (id, epoch) = (stripe.id(), stripe.head.stripe.epoch);
        let times = times_of(stripe.head);
        let new = Open { epoch, first: id, last: id, times, packets: 0, bytes: 0, taken };
        let open = self.open.get_or_insert(new);
        open.times.add(times);
        (open.last, open.taken) = (id, taken);
        open.packets = open.packets.saturating_add(taken.packets);
        let bytes = to_u64(stripe.body.len());
        open.bytes = open.bytes.saturating_add(bytes);
        notes.explain.packets_seen += taken.packets;
        notes.explain.stripes_indexed += 1;
        if let (Some((_, offset)), false) = (taken.malformed, stripe.is_cut) {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            notes.completeness.add_damage(id, DamageKind::Malformed(offset));
        }
        self.killed = 0;
    }

    /// The indexer is gone with the stretch: it begins again, unless that cannot end.
    fn died(&mut self, at: StripeId, by_itself: bool, how: &str) -> Result<Flow, Error> {
        self.killed = if by_itself { self.killed } else { self.killed + 1 };
        if self.killed > KILLED_MAX {
            return Err(Error::Indexer(format!("the indexer is ended again and again: {how}")));
        }
        if by_itself {
            // What is left gets rows in several stretches.
            (self.is_segment, self.is_whole) = (false, false);
        }
        self.owner.forget(|_| true);
        let first = self.open.take().map_or(at, |open| open.first);
        Ok(Flow::Again(first.min(at)))
    }

    fn next(&mut self) -> Result<Event, Error> {
        loop {
            match self.owner.poll(&SystemClock, TICK) {
                Some(Event::Unavailable(_)) => {
                    let why = self.owner.take_notes().pop();
                    let why = why.unwrap_or_else(|| "it cannot be started".to_owned());
                    return Err(Error::Indexer(why));
                }
                Some(event) => return Ok(event),
                None => {}
            }
        }
    }

    fn is_full(&self) -> bool {
        let of_open = self.open.as_ref().filter(|_| !self.is_segment);
        of_open.is_some_and(|open| {
            open.bytes >= STRETCH_BYTES
                || open.taken.rows >= STRETCH_ROWS
                || open.taken.row_bytes >= indexer::ROW_BYTES_MAX
        })
    }

    /// Ends the stretch, if there is one, and hands it out.
    fn end_stretch(
        &mut self,
        rest: Rest,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Error> {
        let Some(open) = &self.open else { return Ok(Flow::Ended) };
        let whole = self.is_segment.then_some((self.part.first, self.part.last));
        let (first, last) = whole.unwrap_or((open.first, open.last));
        let closing = Closing {
            run_kind: RunKind::Live,
            first,
            last,
            epoch: open.epoch,
            times: open.times,
            packets: open.packets,
            missed_packets: 0,
            left_out: Vec::new(),
            index_bytes_max: u64::MAX,
            rest,
        };
        let event = match self.owner.close(closing, &SystemClock) {
            Some(event) => event,
            None => self.next()?,
        };
        let (why, by_itself) = match event {
            Event::Segment(_, encoded) => return self.hand_out(encoded, notes, visit),
            Event::Failed(_, why) => (why, true),
            Event::Died(death) => (death.how, death.by_itself),
            _ => return Err(Error::Indexer("it answered what it was not asked".to_owned())),
        };
        let Some(open) = &self.open else { return Ok(Flow::Ended) };
        if by_itself && !self.failed.insert(open.first) {
            return Err(Error::Indexer(why));
        }
        self.died(open.first, by_itself, &why)
    }

    fn hand_out(
        &mut self,
        encoded: Encoded,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<Flow, Error> {
        let Some(open) = self.open.take() else { return Ok(Flow::Ended) };
        let segment = Segment::open(Bytes::from(encoded.parquet.clone()))?;
        let mut rows = Vec::new();
        segment.rows(Columns::All, &(Timestamp::MIN..=Timestamp::MAX), &mut |_, row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        let stretch = Stretch {
            epoch: open.epoch,
            first: open.first,
            rows,
            packets: open.packets,
            gaps: segment.meta().gaps.clone(),
            encoded,
            is_whole: self.is_whole,
        };
        let flow = visit(stretch, notes)?;
        Ok(if flow.is_break() { Flow::Stopped } else { Flow::Ended })
    }
}
