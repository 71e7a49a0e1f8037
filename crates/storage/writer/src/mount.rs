//! Opening a volume for writing after anything: a stop, a kill, a power cut, a crash inside this.
//!
//! The steps are those of docs/format.md, Mount; every one may be interrupted and repeated:
//!
//! 0. claim the members (`claim`), and flush what a killed writer left in the devices' caches, so
//!    that what is judged stays as it is;
//! 1. read the superblocks; refuse without a quorum of the members of the newest epoch;
//! 2. find the newest head and the watermark;
//! 3. PREPARE: a new epoch number, durable before anything else is written;
//! 4. judge what lies above the watermark, and nothing else: whole stripes stay, and their missing
//!    pieces are computed and written; behind the first stripe of a slot that is not whole a VOID
//!    head closes the slot. Wrapped keys of which copies differ are written anew, as the fresh
//!    members have them;
//! 5. EPOCH: a stripe in a fresh slot that carries the watermark of everything kept;
//! 6. JOIN: the superblocks name the epoch; only now may data be shown or acknowledged.
//!
//! A member that cannot be written meanwhile is left out, and the mount begins again without it.

use device::Device;
use format::head::{Head, Kind, StripeHead, StripeId};
use format::superblock::Superblock;
use units::{Clock, EachSequence, Epoch, MemberId, Sequence};
use volume::repair::rebuild;
use volume::seal::{Previous, Sealed, empty_head, row_offset};
use volume::search::{self, Care, Known};
use volume::slot_view::{SlotBytes, SlotView, StripeView};
use volume::{Error, MemberFailure, Membership, Newest, quorum};

use crate::claim::{Claiming, Opener};
use crate::epoch::{self, Beginning, Part, write_closing};
use crate::explained::Explained;
use crate::member_writer::MemberWriter;
use crate::member_writers::{Failed, MemberWriters};
use crate::recovery::Recovery;
use crate::sealing::Keys;
use crate::writer::Writer;

/// A member that answers nothing for this long, while others do, is left out.
const PATIENCE_NS: i64 = 10_000_000_000;

/// Recovers the ring on the members at hand, in any order, and opens it for writing.
///
/// # Errors
/// [`Error::Claimed`] when another process has it open for writing; [`Error::Quorum`]; those of the
/// devices.
pub fn mount(
    devices: Vec<Box<dyn Device>>,
    opener: &Opener<'_>,
) -> Result<(Writer, Recovery), Error> {
    mount_without(devices, &[], opener)
}

/// The same when the operator says that some members are gone for good, and so will never show a
/// future of their own: they are not needed for a quorum. K members still are. Their seats are
/// vacant from then on; should one of them come back, it is a stranger ([`Error::GivenUp`]).
///
/// # Errors
/// [`Error::NoSuchMember`]; as [`mount`].
pub fn mount_without(
    devices: Vec<Box<dyn Device>>,
    gone: &[MemberId],
    opener: &Opener<'_>,
) -> Result<(Writer, Recovery), Error> {
    let found = MemberWriter::open_all(devices).into_iter().collect::<Result<Vec<_>, _>>()?;
    mount_on_members(found, Vec::new(), gone, opener)
}

/// A member to be mounted: its number, and its device or why there is none.
pub type Candidate = (MemberId, Result<Box<dyn Device>, Error>);

/// The same of members of which some may have failed already. One that cannot be read is left out
/// as if it failed later.
pub fn mount_members(
    members: Vec<Candidate>,
    gone: &[MemberId],
    opener: &Opener<'_>,
) -> Result<(Writer, Recovery), Error> {
    let (mut numbers, mut devices) = (Vec::new(), Vec::new());
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for (member, device) in members {
        match device {
            Ok(device) => {
                numbers.push(member);
                devices.push(device);
            }
            Err(error) => failed.push((member, error)),
        }
    }
    for (member, opened) in numbers.into_iter().zip(MemberWriter::open_all(devices)) {
        match opened {
            Ok(writer) => found.push(writer),
            Err(error) => failed.push((member, error)),
        }
    }
    mount_on_members(found, failed, gone, opener)
}

fn mount_on_members(
    found: Vec<MemberWriter>,
    mut failed: Vec<(MemberId, Error)>,
    gone: &[MemberId],
    opener: &Opener<'_>,
) -> Result<(Writer, Recovery), Error> {
    // Without any superblock nothing is known but the failures.
    let first = |failed: Vec<(MemberId, Error)>, error| {
        failed.into_iter().next().map_or(error, |(_, first)| first)
    };
    let mut writers = match MemberWriters::assemble(found) {
        Ok(writers) => writers,
        Err(error) => return Err(first(failed, error)),
    };
    writers.set_patience(PATIENCE_NS);
    failed.extend(Claiming::run(opener, &mut writers)?);
    failed.extend(writers.reload()?);
    if writers.iter().next().is_none() {
        return Err(first(failed, Error::NoMembers));
    }
    let clock: &dyn Clock = opener.clock;
    let recovery = recover(&mut writers, &failed, gone, clock);
    match recovery {
        Ok((previous, keys, recovery, judged)) => {
            Ok((Writer::new(writers, previous, keys, judged)?, recovery))
        }
        Err(error) => {
            // The first cause counts: who cannot give it up either leaves a claim that ends by
            // itself.
            writers.give_up(clock).unwrap_or_default();
            Err(error)
        }
    }
}

/// What a writer begins with: the newest INDEX, and how late it may be.
type Begin = (StripeId, Explained);

fn recover(
    writers: &mut MemberWriters,
    failed: &[(MemberId, Error)],
    gone: &[MemberId],
    clock: &dyn Clock,
) -> Result<(Previous, Keys, Recovery, Begin), Error> {
    let volume = writers.membership().superblock().clone();
    let last = volume.geometry.last_member();
    if let Some(&member) = gone.iter().find(|&&member| member > last) {
        return Err(Error::NoSuchMember { member, last });
    }
    let failure = |member: MemberId, error: &Error| MemberFailure::new(&volume, member, error);
    let mut failed: Vec<MemberFailure> =
        failed.iter().map(|(member, error)| failure(*member, error)).collect();
    // Of before this mount: a head that it has written explains nothing.
    let mut explained = None;
    let mut explain = |recovery: &Recovery| {
        *explained.get_or_insert_with(|| Explained::of(&volume, recovery, clock))
    };
    loop {
        match mount_on(writers, gone, &mut explain, clock) {
            Ok((previous, keys, judged)) => {
                let recovery = Recovery { failed, ..judged.recovery };
                let begin = (judged.index, explain(&recovery));
                return Ok((previous, keys, recovery, begin));
            }
            Err(Failed { member: Some(member), error }) => {
                writers.remove(member);
                failed.push(failure(member, &error));
                let strangers = writers.remove_strangers();
                failed.extend(strangers.iter().map(|(member, error)| failure(*member, error)));
                if writers.iter().next().is_none() {
                    let needed = volume.geometry.data_columns;
                    return Err(Error::TooFewLeft { present: 0, needed, failed });
                }
            }
            Err(Failed { member: None, error }) => return Err(error.beside(&failed)),
        }
    }
}

/// Whose word counts.
fn settled(
    writers: &mut MemberWriters,
    gone: &[MemberId],
    clock: &dyn Clock,
) -> Result<Membership, Failed> {
    let (mut membership, mut looked) = (writers.membership(), Ok(()));
    let settled = quorum::settle(&mut membership, gone, |membership| {
        let is_used = writers.with_heads(membership, clock, quorum::epoch_used);
        is_used.unwrap_or_else(|failed| {
            looked = Err(failed);
            false
        })
    });
    looked?;
    settled.map_err(Failed::of_nobody)?;
    Ok(membership)
}

fn mount_on(
    writers: &mut MemberWriters,
    gone: &[MemberId],
    explain: &mut dyn FnMut(&Recovery) -> Explained,
    clock: &dyn Clock,
) -> Result<(Previous, Keys, Judged), Failed> {
    let membership = &settled(writers, gone, clock)?;
    let found = find_newest(writers, membership, clock)?;
    let (seen, last) =
        found.as_ref().map_or((Epoch::NONE, Sequence(0)), |newest| (newest.epoch, newest.sequence));
    let epoch = epoch::prepare(writers, seen, last, clock)?;
    let superblock = Superblock { prepared_epoch: epoch, ..membership.superblock().clone() };
    let judged = match &found {
        Some(newest) => {
            let judge = Judge { membership, superblock: &superblock, newest, clock };
            judge.all(writers)?
        }
        None => Judged::of_fresh_ring(&superblock),
    };
    let judged = judged.with_mark(&superblock, Known::of(membership).is_stopped);
    // While it is known who was away: behind the JOIN nobody was.
    let keys = Keys::load(writers, membership, clock)?;
    let beginning = Beginning {
        epoch,
        gone,
        judged_from: found.map_or(Sequence(0), |newest| newest.acknowledged.sequence),
        last: judged.last,
        index: judged.index,
        explained: explain(&judged.recovery),
    };
    let previous = epoch::join(writers, membership, beginning, clock)?;
    Ok((previous, keys, judged))
}

fn find_newest(
    writers: &mut MemberWriters,
    membership: &Membership,
    clock: &dyn Clock,
) -> Result<Option<Newest>, Failed> {
    let known = Known::of(membership);
    if known.prepared_epoch == Epoch::NONE {
        return Ok(None);
    }
    let newest = writers.with_heads(membership, clock, |heads| -> Result<Newest, Error> {
        // Without any readable first head a later stripe may still have landed in the first slots.
        let newest = search::newest(heads, known, Care::EverySlot)?.unwrap_or(Newest {
            sequence: membership.geometry().first_sequence(),
            seen: Sequence(0),
            index: StripeId::default(),
            acknowledged: StripeId::default(),
            epoch: Epoch::NONE,
            scanned_all: false,
        });
        Ok(search::newest_in_all_rows(heads, known, newest))
    })?;
    let newest = newest.map_err(Failed::of_nobody)?;
    Ok((newest.epoch > Epoch::NONE).then_some(newest))
}

/// The ring after judgement: nothing above `last` exists.
#[derive(Debug)]
struct Judged {
    last: StripeId,
    index: StripeId,
    recovery: Recovery,
}

impl Judged {
    /// Lap 0 is never written: the first sequence is N.
    fn of_fresh_ring(superblock: &Superblock) -> Self {
        let last =
            StripeId { sequence: superblock.geometry.first_sequence().previous(), sub: u16::MAX };
        Self { last, index: StripeId::default(), recovery: Recovery::default() }
    }

    /// What cannot be read of the newest slots is known by the superblocks.
    fn with_mark(mut self, superblock: &Superblock, is_stopped: bool) -> Self {
        let recovery = &mut self.recovery;
        recovery.clean |= is_stopped;
        recovery.last_alive = recovery.last_alive.or(superblock.mark.last_alive());
        self
    }

    fn note(&mut self, view: &SlotView, verdict: &Verdict) {
        let recovery = &mut self.recovery;
        recovery.kept += verdict.kept;
        recovery.damaged += verdict.damaged;
        recovery.voided += u64::from(verdict.void.is_some());
        let alive = view.stripes.iter().map(|stripe| Some(stripe.stripe.realtime)).max();
        recovery.last_alive = recovery.last_alive.max(alive.flatten());
        let last =
            view.stripes.last().map(|stripe| (stripe.stripe.epoch, stripe.stripe.boottime_ns));
        recovery.last_boottime = recovery.last_boottime.max(last);
        let whole = view.stripes.get(..verdict.stripes).and_then(<[_]>::last);
        recovery.clean = whole.is_some_and(|stripe| stripe.stripe.clean_stop);
        self.index = whole.map_or(self.index, |stripe| stripe.stripe.index);
    }
}

/// What the judgement goes by.
struct Judge<'a> {
    membership: &'a Membership,
    /// With the epoch of this mount.
    superblock: &'a Superblock,
    newest: &'a Newest,
    clock: &'a dyn Clock,
}

impl Judge<'_> {
    fn all(&self, writers: &mut MemberWriters) -> Result<Judged, Failed> {
        let newest = self.newest;
        let reach = 2 * u64::from(self.superblock.window);
        let first = self.superblock.geometry.first_sequence();
        let lowest = first.max(newest.sequence.saturating_sub(reach));
        let mut judged = Judged::of_fresh_ring(self.superblock);
        judged.recovery.scanned_all = newest.scanned_all;
        let acknowledged = newest.acknowledged.sequence;
        if newest.seen < acknowledged {
            judged.index = newest.index;
            // The newest of them is judged with what follows.
            judged.recovery.damaged = acknowledged - 1 - newest.seen;
        }
        for sequence in (newest.acknowledged.sequence.max(lowest)..=newest.sequence).each() {
            writers.renew(self.clock)?;
            self.slot(writers, sequence, &mut judged)?;
        }
        writers.flush(self.clock)?;
        judged.last = StripeId { sequence: newest.sequence, sub: u16::MAX };
        Ok(judged)
    }

    fn slot(
        &self,
        writers: &mut MemberWriters,
        sequence: Sequence,
        judged: &mut Judged,
    ) -> Result<(), Failed> {
        let acknowledged = self.newest.acknowledged;
        let (bytes, view) = writers.with_heads(self.membership, self.clock, |heads| {
            let bytes = SlotBytes::read(heads, sequence);
            let view = SlotView::walk(heads, sequence, acknowledged, &bytes);
            (bytes, view)
        })?;
        let verdict = Verdict::of(sequence, &view, acknowledged);
        judged.note(&view, &verdict);
        for stripe in view.stripes.iter().take(verdict.stripes) {
            if stripe.stripe.stripe > acknowledged && !stripe.is_complete() {
                self.complete(writers, stripe, &bytes)?;
                judged.recovery.completed += 1;
            }
        }
        if let Some(place) = verdict.void {
            let head = empty_head(self.superblock, Kind::Void, place, self.clock);
            let sealed = Sealed::new(StripeHead { acknowledged, index: judged.index, ..head });
            write_closing(writers, (self.superblock, &sealed), &|_| Some(Part::Whole), self.clock)?;
        }
        Ok(())
    }

    /// Rolls a whole stripe forward: every member at hand gets its piece, as it was sealed, also
    /// one that returns: a quorum of the new epoch must hold what it kept.
    fn complete(
        &self,
        writers: &mut MemberWriters,
        view: &StripeView,
        bytes: &SlotBytes,
    ) -> Result<(), Failed> {
        let stripe = &view.stripe;
        if stripe.kind.closes_slot() {
            let sealed = Sealed::new(stripe.clone());
            let part = |member| {
                let piece = view.pieces.iter().find(|piece| piece.member == member)?;
                match (&piece.head, piece.torn_behind) {
                    (None, _) => Some(Part::Whole),
                    (Some(_), true) => Some(Part::BehindHead),
                    (Some(_), false) => None,
                }
            };
            return write_closing(writers, (self.superblock, &sealed), &part, self.clock);
        }
        writers.each(|member, writer| {
            if !stripe.geometry.has_member(member) {
                return Ok(());
            }
            let column = stripe.geometry.column_of(stripe.stripe.sequence, member);
            let piece = view.pieces.get(usize::from(column)).expect("a view has every column");
            if piece.is_whole() {
                return Ok(());
            }
            let rebuilt = rebuild(self.membership, view, bytes, column);
            assert!(rebuilt.lost_rows.is_empty(), "a whole stripe gives every row");
            let head = Head { stripe: stripe.clone(), piece: rebuilt.piece, cid: view.cid };
            let page = head.encode(&self.superblock.head_key);
            let bytes = [&page[..], &rebuilt.body].concat();
            Ok(writer.device_mut().write_at(row_offset(stripe, stripe.first_row), &bytes)?)
        })
    }
}

/// What becomes of one slot.
struct Verdict {
    /// Leading stripes that stay.
    stripes: usize,
    /// Of those, above the watermark.
    kept: u64,
    /// Acknowledged stripes that are damaged or missing.
    damaged: u64,
    /// A VOID to be written: its place in the ring and in the slot.
    void: Option<(StripeId, u16)>,
}

impl Verdict {
    /// Rules: VOID only above the watermark; whole data beats VOID; the first stripe above the
    /// watermark that is not whole ends its slot.
    fn of(sequence: Sequence, slot: &SlotView, acknowledged: StripeId) -> Self {
        let mut verdict = Self { stripes: 0, kept: 0, damaged: 0, void: None };
        let mut next = StripeId { sequence, sub: 0 };
        for stripe in &slot.stripes {
            let (id, first_row) = (stripe.stripe.stripe, stripe.stripe.first_row);
            let (above, whole) = (id > acknowledged, stripe.is_whole());
            verdict.damaged += u64::from(stripe.behind_damage);
            if above && (!whole || stripe.behind_damage) {
                // Behind damage the length of what was acknowledged is unknown; this head is surely
                // beyond it.
                let first_above = if acknowledged.sequence == sequence {
                    acknowledged.sub.saturating_add(1)
                } else {
                    0
                };
                let sub = if stripe.behind_damage { first_above } else { id.sub };
                verdict.void = Some((StripeId { sequence, sub }, first_row));
                return verdict;
            }
            verdict.stripes += 1;
            verdict.kept += u64::from(above);
            verdict.damaged += u64::from(!whole);
            next = StripeId { sequence, sub: id.sub + 1 };
        }
        if !slot.closed && next > acknowledged {
            verdict.void = Some((next, slot.next_row));
        } else if !slot.closed {
            // Acknowledged and unreadable, and nothing readable behind it: there is nothing to
            // guard against, and a VOID would overwrite it.
            verdict.damaged += 1;
        }
        verdict
    }
}
