//! Reading without writing: what is acknowledged, verified byte by byte and repaired in memory.
//!
//! A reader takes no lock and may run beside the writer. It shows nothing above the watermark it
//! found (or got by [`Reader::refresh`]), and nothing that the ring has passed: a slot with a
//! newer sequence than asked for means overwritten, not damaged. What the member of a column cannot
//! give is computed from the others; what they cannot give either is named, never guessed.

use core::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex};

use device::{Bounded, Buffer, LentRead, Pool, ReadAt, ReadBudget};
use encryption::Keyring;
use format::geometry::Geometry;
use format::head::{HEAD_BYTES, Head, StripeId};
use format::superblock::Superblock;
use schemars::JsonSchema;
use serde::Serialize;
use units::{EachSequence, Epoch, MemberId, Sequence, Timestamp};

use crate::ahead::Ahead;
use crate::heads::{Heads, Unreadable, bad_rows, body_in, body_range};
use crate::membership::Membership;
use crate::repair::rebuild;
use crate::search::{self, Care, Known, Newest};
use crate::slot_view::{SlotBytes, SlotView, StripeView};
use crate::{Error, mark, quorum, superblocks};

/// The acknowledged part of a ring, oldest and newest sequence included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Oldest sequence that the ring may still hold.
    pub tail: Sequence,
    /// Watermark: the newest acknowledged stripe.
    pub acknowledged: StripeId,
}

/// What one column of a slot holds of one sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The stripes with a readable head, in order.
    pub stripes: Vec<StripeInSlot>,
    /// First row behind them.
    pub next_row: u16,
    /// The last of them reaches to the end of the slot.
    pub closed: bool,
}

impl Slot {
    /// The first stripes of the parts that are not shown, between those that are and behind them,
    /// of the slot of `sequence` of a ring that is acknowledged up to `newest`.
    pub fn missing(&self, sequence: Sequence, newest: StripeId) -> Vec<StripeId> {
        let mut next = StripeId { sequence, sub: 0 };
        let mut missing = Vec::new();
        for stripe in &self.stripes {
            let id = stripe.head.stripe.stripe;
            missing.extend((next < id).then_some(next));
            next.sub = id.sub.saturating_add(1);
        }
        // Only the newest slot may end open, behind what is acknowledged.
        missing.extend((!self.closed && next <= newest).then_some(next));
        missing
    }
}

/// A stripe's piece in the column that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeInSlot {
    /// Head of the piece.
    pub head: Head,
    /// Body rows that could not be had from any member, ascending.
    pub bad_rows: Vec<u16>,
    /// Acknowledged stripes between this one and the one before it have no readable head.
    pub behind_damage: bool,
    /// Some of it was computed from other members.
    pub repaired: bool,
    /// It is encrypted, and its key could not be opened: all its rows count as bad.
    pub is_locked: bool,
}

/// A member that is not read any more, because too much of what was read of it failed, or took too
/// long to fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
pub struct GivenUp {
    /// Number of the member.
    pub member: MemberId,
    /// Reads that failed.
    #[serde(rename = "failed_reads")]
    pub failed: u64,
    /// How long they took together.
    pub seconds: u64,
}

impl core::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { member, failed, seconds } = self;
        write!(f, "member {member}, after {failed} reads that failed and took {seconds} s")
    }
}

fn seen(device: &Bounded) -> &dyn ReadAt {
    device
}

/// A volume opened for reading.
#[derive(Debug)]
pub struct Reader {
    /// By member number. One that fails too much is as good as absent, until [`Reader::refresh`].
    members: Vec<Option<Bounded>>,
    membership: Membership,
    newest: Option<Newest>,
    last_head: Option<Head>,
    /// Identities of the stripes in the slot read last, as its members agree on them.
    agreed: Mutex<Vec<[u8; 32]>>,
    /// What encrypted packets are opened with.
    pub(crate) keyring: Option<Arc<Keyring>>,
}

impl Reader {
    /// Reads the superblocks of the members at hand, in any order, and finds the newest
    /// acknowledged stripe.
    pub fn open(devices: Vec<Box<dyn ReadAt>>) -> Result<Self, Error> {
        let mut reader = Self::of_members(devices)?;
        reader.find_newest()?;
        Ok(reader)
    }

    /// A reader of what is acknowledged up to there, as its writer says, without a search.
    pub fn of_acknowledged(
        devices: Vec<Box<dyn ReadAt>>,
        acknowledged: StripeId,
        epoch: Epoch,
    ) -> Result<Self, Error> {
        let newest = Newest::of_writer(acknowledged, epoch);
        Ok(Self { newest: Some(newest), ..Self::of_members(devices)? })
    }

    /// Reads the superblocks and nothing else: no stripe can be read with it. Members that cannot
    /// be read are absent, as long as one can.
    pub fn of_members(devices: Vec<Box<dyn ReadAt>>) -> Result<Self, Error> {
        let (mut found, mut failed) = (Vec::new(), None);
        let all: Vec<&dyn ReadAt> = devices.iter().map(AsRef::as_ref).collect();
        let loaded = superblocks::load_from_all(&all);
        for (device, loaded) in devices.into_iter().zip(loaded) {
            match loaded {
                Ok(superblock) => found.push((device, superblock)),
                Err(Error::Device(error)) if error.is_failure() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) if found.is_empty() => Err(error.into()),
            _ => Self::of_found(found, true),
        }
    }

    /// Of members whose superblocks are known from elsewhere; without a key all of them have a say.
    pub(crate) fn of_found(
        found: Vec<(Box<dyn ReadAt>, Superblock)>,
        has_key: bool,
    ) -> Result<Self, Error> {
        let (devices, superblocks): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let numbers: Vec<MemberId> =
            superblocks.iter().map(|superblock| superblock.member).collect();
        let mut membership = Membership::assemble(superblocks)?;
        if !has_key {
            membership = membership.without_key();
        }
        let mut members: Vec<Option<Bounded>> = Vec::new();
        members.resize_with(membership.numbers().count(), || None);
        let has_others = numbers.len() > usize::from(membership.geometry().data_columns);
        let budget = if has_others { ReadBudget::AMONG_OTHERS } else { ReadBudget::LAST_RESORT };
        for (number, device) in numbers.into_iter().zip(devices) {
            let device = Bounded::new(device, budget);
            *members.get_mut(number.place()).expect("assembled") = Some(device);
        }
        let agreed = Mutex::default();
        Ok(Self { members, membership, newest: None, last_head: None, agreed, keyring: None })
    }

    /// Looks again for the newest acknowledged stripe: the writer may have gone on. Members that
    /// cannot be read any more are absent from now on.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let present = core::mem::take(&mut self.members).into_iter().flatten();
        let present = present.map(Bounded::into_inner).collect();
        let Self { members, membership, .. } = Self::of_members(present)?;
        (self.members, self.membership) = (members, membership);
        if let Some(keyring) = &self.keyring {
            self.teach(keyring);
        }
        self.find_newest()
    }

    /// Finds the newest acknowledged stripe, for a reader that knows superblocks alone.
    pub fn find_newest(&mut self) -> Result<(), Error> {
        let mut settled = self.membership.clone();
        quorum::settle_for_reading(&mut settled, |_| self.with_heads(quorum::epoch_used));
        self.membership = settled;
        let known = Known::of(&self.membership);
        let (newest, last_head) = self.with_heads(|heads| self.newest_by(heads, known))?;
        (self.newest, self.last_head) = (newest, last_head);
        Ok(())
    }

    /// The newest stripe, and the head of the last one in its slot.
    fn newest_by(
        &self,
        heads: &Heads<'_>,
        known: Known,
    ) -> Result<(Option<Newest>, Option<Head>), Error> {
        let mut newest = search::newest(heads, known, Care::OneOfAFew)?;
        let mut last_head = None;
        if let Some(found) = &mut newest {
            // The watermark rises within a slot: its last stripe knows most, and one damaged head
            // before it must not hide it.
            let mut stripes = self.newest_heads(heads, found.sequence);
            stripes.retain(|head| {
                head.stripe.epoch <= known.settled_epoch
                    && head.stripe.stripe.sequence == found.sequence
            });
            let watermarks = stripes.iter().map(|head| head.stripe.acknowledged);
            found.acknowledged = watermarks.fold(found.acknowledged, StripeId::max);
            last_head = stripes.into_iter().max_by_key(|head| head.stripe.stripe);
            if last_head.is_none() {
                // The newest of those that can be read.
                last_head = heads.first_of_slot(heads.geometry().slot(found.seen));
            }
        }
        Ok((newest, last_head))
    }

    /// The heads in the slot of `sequence` that fresh members show.
    fn newest_heads(&self, heads: &Heads<'_>, sequence: Sequence) -> Vec<Head> {
        self.heads(sequence).unwrap_or_else(|| {
            let slot = heads.geometry().slot(sequence);
            let bytes = SlotBytes::read(heads, sequence);
            let members = self.membership.present();
            members.flat_map(|member| heads.all_in_slot(member, slot, bytes.of(member))).collect()
        })
    }

    /// The newest superblock of the volume.
    pub fn superblock(&self) -> &Superblock {
        self.membership.superblock()
    }

    /// Members that failed too often or for too long since this was opened or refreshed, and are
    /// not read any more.
    pub fn given_up(&self) -> Vec<GivenUp> {
        let members = MemberId::all().zip(&self.members);
        let members = members.filter_map(|(member, device)| Some((member, device.as_ref()?)));
        let given_up =
            members.filter(|(_, device)| device.is_given_up()).map(|(member, device)| {
                let (failed, spent) = device.spent();
                GivenUp { member, failed, seconds: spent.as_secs() }
            });
        given_up.collect()
    }

    /// A member is to show the stripe of `sequence` by itself: it has missed nothing there, and was
    /// not given up.
    pub fn shows(&self, member: MemberId, sequence: Sequence) -> bool {
        let device = self.members.get(member.place()).and_then(Option::as_ref);
        self.membership.is_whole_at(member, sequence)
            && device.is_some_and(|device| !device.is_given_up())
    }

    /// Which members are there, and what each may be believed.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Searches as at opening and shows nothing yet.
    pub(crate) fn search(&mut self) -> Result<Option<Newest>, Error> {
        self.find_newest()?;
        Ok(self.newest.take())
    }

    /// Shows everything up to the watermark of `newest`.
    pub fn show_through(&mut self, newest: Newest) {
        self.newest = Some(newest);
    }

    /// The watermark as the later heads of the newest slots say it, those that name the hash of the
    /// head before them: first heads alone lag behind.
    pub(crate) fn watermark_of_newest(&self, newest: &Newest) -> StripeId {
        self.unproven(newest).each().fold(newest.acknowledged, |watermark, sequence| {
            let view = self.with_heads(|heads| {
                let bytes = SlotBytes::read(heads, sequence);
                SlotView::walk(heads, sequence, newest.acknowledged, &bytes)
            });
            let pairs = view.stripes.iter().zip(view.stripes.iter().skip(1));
            let chained = pairs.filter(|(before, it)| it.stripe.previous_cid == before.cid);
            let told = chained.map(|(_, it)| it.stripe.acknowledged);
            told.filter(|told| told.sequence <= newest.sequence).fold(watermark, StripeId::max)
        })
    }

    /// The slots from the watermark to the newest head, a lap at most: heads that say otherwise are
    /// forged.
    fn unproven(&self, newest: &Newest) -> RangeInclusive<Sequence> {
        let lap = newest.sequence.saturating_sub(self.geometry().slots);
        newest.acknowledged.sequence.max(lap)..=newest.sequence
    }

    /// Shows the stripes above the watermark, too, as far as they are whole one after the other: a
    /// mount would keep them.
    pub(crate) fn show_whole_stripes_behind(&mut self) {
        let Some(newest) = self.newest.clone() else { return };
        let mut shown = newest.acknowledged;
        for sequence in self.unproven(&newest).each() {
            let view = self.with_heads(|heads| {
                let bytes = SlotBytes::read(heads, sequence);
                SlotView::walk(heads, sequence, newest.acknowledged, &bytes)
            });
            let above = view.stripes.iter().filter(|it| it.stripe.stripe > newest.acknowledged);
            let whole = above.take_while(|it| it.is_whole() && !it.behind_damage);
            let last = whole.last().map(|it| it.stripe.stripe);
            let all = view.closed && view.stripes.last().map(|it| it.stripe.stripe) == last;
            shown = last.unwrap_or(shown);
            let nothing_above = sequence == newest.acknowledged.sequence && last.is_none();
            if !(all || (nothing_above && view.closed)) {
                break;
            }
        }
        self.newest = Some(Newest { acknowledged: shown, ..newest });
    }

    /// Refuses where a mount by these members would be refused, too.
    pub fn check_quorum(&self, gone: &[MemberId]) -> Result<(), Error> {
        let mut membership = self.membership.clone();
        quorum::settle(&mut membership, gone, |_| self.with_heads(quorum::epoch_used))
    }

    /// Superblock copies that differ from the newest of their member: member, copy, and whether it
    /// is only older.
    pub fn other_copies(&self) -> Vec<(MemberId, u8, bool)> {
        let devices = MemberId::all().zip(&self.members);
        let devices = devices.filter_map(|(member, device)| Some((member, seen(device.as_ref()?))));
        let (members, devices): (Vec<MemberId>, Vec<&dyn ReadAt>) = devices.unzip();
        let others = superblocks::other_copies_of(&devices).into_iter().zip(members);
        others
            .flat_map(|(others, member)| {
                others.into_iter().map(move |(copy, is_old)| (member, copy, is_old))
            })
            .collect()
    }

    /// Shape of the volume.
    pub fn geometry(&self) -> &Geometry {
        self.membership.geometry()
    }

    /// Bytes of the smallest member at hand.
    pub fn smallest_member_bytes(&self) -> u64 {
        self.members.iter().flatten().map(ReadAt::size_bytes).min().unwrap_or(0)
    }

    /// Bytes of a piece: the length of the buffers that [`Reader::slot`] needs.
    pub fn piece_bytes(&self) -> usize {
        usize::try_from(self.geometry().piece_bytes).expect("at most 2 MiB")
    }

    /// The newest head and watermark; `None` on a volume that was never written.
    pub fn newest(&self) -> Option<&Newest> {
        self.newest.as_ref()
    }

    /// The newest head on the ring. Its stripe may lie above the watermark; what it says of the
    /// stripes before it holds: the newest INDEX, and whether the writer stopped in order.
    pub fn last_head(&self) -> Option<&Head> {
        self.last_head.as_ref()
    }

    /// The last writer stopped in order, as the newest head or the superblocks say it.
    pub fn has_stopped_in_order(&self) -> bool {
        let prepared_epoch = self.membership.prepared_epoch();
        self.last_head().is_some_and(|head| head.stripe.clean_stop)
            || mark::is_stopped(self.superblock(), prepared_epoch)
    }

    /// The newest sign of life of a writer; `None` where nothing was ever written.
    pub fn last_alive(&self) -> Option<Timestamp> {
        let marked = self.superblock().mark.last_alive();
        self.last_head().map(|head| head.stripe.realtime).max(marked)
    }

    /// What may be read; `None` while nothing is acknowledged.
    pub fn span(&self) -> Option<Span> {
        let newest = self.newest.as_ref()?;
        let tail = mark::tail_behind(newest.sequence, self.superblock());
        // Nothing is behind the newest head, whatever a forged one says is acknowledged.
        let last = StripeId { sequence: newest.sequence, sub: u16::MAX };
        let acknowledged = newest.acknowledged.min(last);
        (acknowledged.sequence >= tail).then_some(Span { tail, acknowledged })
    }

    /// Reads and verifies one column of the acknowledged stripes of a slot. Rows that the column's
    /// member does not give are computed from the others; those that cannot be are named.
    ///
    /// # Errors
    /// [`Error::Overwritten`] when the ring has passed it; [`Error::Damaged`] when nothing valid is
    /// there.
    ///
    /// # Panics
    /// When the buffer is not as long as a piece, or the volume has no such column.
    pub fn slot(&self, sequence: Sequence, column: u8, buffer: &mut [u8]) -> Result<Slot, Error> {
        let span = self.span_at(sequence)?;
        let member = self.member_of(sequence, column);
        if self.shows(member, sequence) {
            let slot = self.geometry().slot(sequence);
            self.with_heads(|heads| heads.read_slot(member, slot, buffer));
        }
        let mut slot = self.verified(span, sequence, column, buffer)?;
        self.decrypt_slot(&mut slot, buffer);
        Ok(slot)
    }

    /// The same of several columns, whose members are read at the same time, each into memory of
    /// its own, which becomes as long as a piece.
    ///
    /// # Panics
    /// When there is not as much memory as columns, or the volume has no such column.
    pub fn slots(
        &self,
        sequence: Sequence,
        columns: &[u8],
        memory: &mut [Vec<u8>],
    ) -> Vec<Result<Slot, Error>> {
        let mut slots = self.sealed_slots(sequence, columns, memory);
        for (slot, buffer) in slots.iter_mut().zip(memory) {
            if let Ok(slot) = slot {
                self.decrypt_slot(slot, buffer);
            }
        }
        slots
    }

    /// As [`Self::slots`], with bodies as they lie on the members: encrypted where the volume is.
    ///
    /// # Panics
    /// When there is not as much memory as columns, or the volume has no such column.
    pub fn sealed_slots(
        &self,
        sequence: Sequence,
        columns: &[u8],
        memory: &mut [Vec<u8>],
    ) -> Vec<Result<Slot, Error>> {
        assert_eq!(columns.len(), memory.len(), "each column has memory");
        let spans = columns.iter().map(|_| self.span_at(sequence));
        let spans: Vec<Result<Span, Error>> = spans.collect();
        let is_held = spans.iter().all(Result::is_ok);
        // By member, as they are read.
        let mut pieces = vec![Vec::new(); self.members.len()];
        for (&column, memory) in columns.iter().zip(&mut *memory) {
            let member = self.member_of(sequence, column);
            memory.resize(self.piece_bytes(), 0);
            if is_held && self.shows(member, sequence) {
                let place = pieces.get_mut(member.place()).expect("a place for every member");
                *place = core::mem::take(memory);
            }
        }
        self.with_heads(|heads| heads.read_slots(sequence, &mut pieces));
        let verify = |((&column, memory), span): ((&u8, &mut Vec<u8>), Result<Span, Error>)| {
            let span = span?;
            let member = self.member_of(sequence, column).place();
            let piece = pieces.get_mut(member).filter(|piece| !piece.is_empty());
            if let Some(piece) = piece {
                *memory = core::mem::take(piece);
            }
            self.verified(span, sequence, column, memory)
        };
        columns.iter().zip(memory).zip(spans).map(verify).collect()
    }

    fn member_of(&self, sequence: Sequence, column: u8) -> MemberId {
        let geometry = self.membership.geometry_at(sequence);
        assert!(column < geometry.columns(), "stripes of {sequence} have column {column}");
        geometry.member_of(sequence, column)
    }

    /// What may be read, if it reaches back to `sequence`.
    fn span_at(&self, sequence: Sequence) -> Result<Span, Error> {
        let first = StripeId { sequence, sub: 0 };
        let span = self.span().ok_or(Error::Damaged(first))?;
        if sequence < span.tail { Err(Error::Overwritten(first)) } else { Ok(span) }
    }

    /// What of a column was read is verified, and made good from the others where it is damaged.
    fn verified(
        &self,
        span: Span,
        sequence: Sequence,
        column: u8,
        buffer: &mut [u8],
    ) -> Result<Slot, Error> {
        let first = StripeId { sequence, sub: 0 };
        let mut slot = match self.slot_of_member(span, sequence, column, buffer) {
            Some(slot) => slot,
            None => self.slot_of_all(span, sequence, column, buffer),
        };
        let shown = |stripe: &StripeInSlot| stripe.head.stripe.stripe <= span.acknowledged;
        slot.stripes.truncate(slot.stripes.iter().take_while(|stripe| shown(stripe)).count());
        if slot.stripes.is_empty() {
            return Err(if self.is_passed(sequence) {
                Error::Overwritten(first)
            } else {
                Error::Damaged(first)
            });
        }
        Ok(slot)
    }

    /// Whether the slot of `sequence` holds something newer by now.
    fn has_passed(&self, sequence: Sequence) -> bool {
        let now = self.with_heads(|heads| heads.first_of_slot(self.geometry().slot(sequence)));
        now.is_some_and(|head| head.stripe.stripe.sequence > sequence)
    }

    /// A writer has passed the slot since the reader was opened, or may be writing, discarding or
    /// erasing it. A writer is at most W slots ahead of what is acknowledged: what lies W slots
    /// before a slot that it changes is surely newer by now.
    pub fn is_passed(&self, sequence: Sequence) -> bool {
        let window = u64::from(self.superblock().window);
        self.has_passed(sequence)
            || self.has_passed(sequence - window)
            || self.is_given_up(sequence)
    }

    /// It was given up since the reader was opened, and may be half erased. What a member says that
    /// has missed the newest epoch was cut short, and nothing is erased by it.
    fn is_given_up(&self, sequence: Sequence) -> bool {
        let known = self.superblock().newness();
        let devices: Vec<&dyn ReadAt> = self.members.iter().flatten().map(seen).collect();
        let superblocks = superblocks::load_from_all(&devices).into_iter();
        let mut newer = superblocks.flatten().filter(|own| own.newness() > known);
        newer.any(|own| own.given_up_before > sequence)
    }

    /// The slot, which was read from the member of the column, as that alone has it; `None` when
    /// anything in it needs the others.
    fn slot_of_member(
        &self,
        span: Span,
        sequence: Sequence,
        column: u8,
        buffer: &[u8],
    ) -> Option<Slot> {
        let member = self.member_of(sequence, column);
        if !self.shows(member, sequence) {
            return None;
        }
        self.with_heads(|heads| {
            let rows_per_slot = heads.geometry().rows_per_slot();
            let mut slot = Slot { stripes: Vec::new(), next_row: 0, closed: false };
            let mut expected = StripeId { sequence, sub: 0 };
            while !slot.closed {
                let before = slot.stripes.last().map(|it: &StripeInSlot| &it.head);
                let before = before.map(|head| (&head.stripe, &head.cid));
                let Some(head) = heads
                    .head_in(member, buffer, slot.next_row, sequence)
                    .filter(|head| head.stripe.stripe == expected && heads.follows(before, head))
                else {
                    // Only the newest slot may end open, behind what is acknowledged.
                    let ends = expected > span.acknowledged;
                    return Some(slot).filter(|slot| ends && self.is_agreed(heads, slot, span));
                };
                if !bad_rows(&head, buffer).is_empty() {
                    return None;
                }
                slot.next_row = head.stripe.first_row + 1 + head.stripe.rows;
                slot.closed = slot.next_row == rows_per_slot || head.stripe.kind.closes_slot();
                expected.sub += 1;
                slot.stripes.push(StripeInSlot {
                    head,
                    bad_rows: Vec::new(),
                    behind_damage: false,
                    repaired: false,
                    is_locked: false,
                });
            }
            Some(slot).filter(|slot| self.is_agreed(heads, slot, span))
        })
    }

    /// Whether the other members know the acknowledged stripes of a slot as one of them has it. A
    /// stripe that the next one names needs no other witness, nor does one that was asked for in
    /// another column just before.
    fn is_agreed(&self, heads: &Heads<'_>, slot: &Slot, span: Span) -> bool {
        let stripes = slot.stripes.iter().map(|stripe| &stripe.head);
        let shown = stripes.take_while(|head| head.stripe.stripe <= span.acknowledged);
        let cids: Vec<[u8; 32]> = shown.clone().map(|head| head.cid).collect();
        let mut agreed = stage::lock(&self.agreed);
        if cids.iter().all(|cid| agreed.contains(cid)) {
            return true;
        }
        let next = shown.clone().skip(1).map(Some).chain([None]);
        let are_agreed = shown.zip(next).all(|(head, next)| {
            next.is_some_and(|next| next.stripe.previous_cid == head.cid) || heads.is_agreed(head)
        });
        if are_agreed {
            *agreed = cids;
        }
        are_agreed
    }

    fn slot_of_all(&self, span: Span, sequence: Sequence, column: u8, buffer: &mut [u8]) -> Slot {
        self.with_heads(|heads| {
            let bytes = SlotBytes::read(heads, sequence);
            let view = SlotView::walk(heads, sequence, span.acknowledged, &bytes);
            let member = self.membership.geometry_at(sequence).member_of(sequence, column);
            match bytes.of(member) {
                [] => buffer.fill(0),
                own => buffer.copy_from_slice(own),
            }
            let stripes = view.stripes.iter();
            let stripes =
                stripes.map(|stripe| self.piece_of(stripe, &bytes, column, buffer)).collect();
            Slot { stripes, next_row: view.next_row, closed: view.closed }
        })
    }

    /// One column of a stripe, whose body is put into its place in `buffer`.
    fn piece_of(
        &self,
        view: &StripeView,
        bytes: &SlotBytes,
        column: u8,
        buffer: &mut [u8],
    ) -> StripeInSlot {
        let piece = view.pieces.get(usize::from(column)).expect("a view has every column");
        let stripe = view.stripe.clone();
        let behind_damage = view.behind_damage;
        if let (true, Some(own)) = (piece.is_whole(), &piece.head) {
            let head = Head { stripe, piece: own.clone(), cid: view.cid };
            let (bad_rows, repaired, is_locked) = Default::default();
            return StripeInSlot { head, bad_rows, behind_damage, repaired, is_locked };
        }
        let rebuilt = rebuild(&self.membership, view, bytes, column);
        let head = Head { piece: rebuilt.piece, stripe, cid: view.cid };
        let begin = (usize::from(head.stripe.first_row) + 1) * HEAD_BYTES;
        let place = buffer.get_mut(begin..begin + rebuilt.body.len());
        place.expect("a stripe lies inside its slot").copy_from_slice(&rebuilt.body);
        let (bad_rows, repaired, is_locked) = (rebuilt.lost_rows, true, false);
        StripeInSlot { head, bad_rows, behind_damage, repaired, is_locked }
    }

    /// The first head of the slot of `sequence`, without its body: for tables and directories.
    pub fn head(&self, sequence: Sequence) -> Option<Head> {
        let slot = self.geometry().slot(sequence);
        self.with_heads(|heads| heads.first_of_slot(slot))
            .filter(|head| head.stripe.stripe.sequence == sequence)
    }

    /// The first heads of the slots of `sequences`, as [`Self::head`] gives each, read at the same
    /// time.
    pub fn first_heads(&self, sequences: &[Sequence]) -> Vec<Option<Head>> {
        self.with_heads(|heads| {
            heads.expect_firsts(sequences);
            let slot = |sequence| self.geometry().slot(sequence);
            let is_it = |head: &Head, sequence| head.stripe.stripe.sequence == sequence;
            let first = |&sequence: &Sequence| {
                heads.first_of_slot(slot(sequence)).filter(|head| is_it(head, sequence))
            };
            sequences.iter().map(first).collect()
        })
    }

    /// The heads of all stripes of a slot, read one by one without the bodies. `None` where one of
    /// them cannot be read or the slot is not used to its end.
    pub fn heads(&self, sequence: Sequence) -> Option<Vec<Head>> {
        let heads = self.leading_heads(sequence);
        let last = &heads.last()?.stripe;
        let is_used_up = last.first_row + 1 + last.rows == self.geometry().rows_per_slot();
        (is_used_up || last.kind.closes_slot()).then_some(heads)
    }

    /// The heads of a slot up to the first one that cannot be read, or that is not there yet.
    pub fn leading_heads(&self, sequence: Sequence) -> Vec<Head> {
        let mut heads: Vec<Head> = Vec::new();
        let (mut row, mut sub) = (0, 0);
        while row < self.geometry().rows_per_slot() {
            let head = self.with_heads(|heads| heads.head_at(sequence, row));
            let expected = StripeId { sequence, sub };
            let Some(head) = head.filter(|head| head.stripe.stripe == expected) else { break };
            let is_last = head.stripe.kind.closes_slot();
            (row, sub) = (row + 1 + head.stripe.rows, sub + 1);
            heads.push(head);
            if is_last {
                break;
            }
        }
        heads
    }

    /// The head of the last acknowledged stripe of a slot.
    pub(crate) fn last_head_of(&self, sequence: Sequence) -> Option<Head> {
        let acknowledged = self.span()?.acknowledged;
        let mut heads = self.heads(sequence).or_else(|| {
            let mut buffer = vec![0; self.piece_bytes()];
            let slot = self.slot(sequence, 0, &mut buffer).ok()?;
            Some(slot.stripes.into_iter().map(|stripe| stripe.head).collect())
        })?;
        heads.retain(|head| head.stripe.stripe <= acknowledged);
        heads.pop()
    }

    /// The body of a stripe found by [`Reader::slot`] in the same buffer.
    pub fn body<'a>(head: &Head, buffer: &'a [u8]) -> &'a [u8] {
        body_in(head, buffer).unwrap_or_default()
    }

    /// Where that body lies in the buffer.
    pub fn body_range(head: &Head) -> Range<usize> {
        body_range(head)
    }

    pub(crate) fn device(&self, member: MemberId) -> Option<&dyn ReadAt> {
        self.members.get(member.place())?.as_ref().map(seen)
    }

    /// Reads heads, of all members at the same time where more than one is asked. What was read is
    /// kept until `run` returns.
    pub fn with_heads<T>(&self, run: impl FnOnce(&Heads<'_>) -> T) -> T {
        let ahead = Ahead::new(self.members.iter().map(|device| device.as_ref().map(seen)));
        let read = |member: MemberId, offset: u64, into: &mut [u8]| {
            ahead.read(member, offset, into).ok_or(Unreadable)?.map_err(|_| Unreadable)
        };
        let slots = |offset: u64, buffers: &mut [Vec<u8>]| self.read_side_by_side(offset, buffers);
        run(&Heads::new(&read, &self.membership)
            .fetched_by(&|expected| ahead.fetch(expected))
            .read_by(&slots))
    }

    /// Fills the memory, by member, from one place of each, all at the same time. Gives the members
    /// that may be read row by row, because it failed; zeros stand for what could not be read.
    fn read_side_by_side(&self, offset: u64, buffers: &mut [Vec<u8>]) -> Vec<MemberId> {
        let wanted = MemberId::all().zip(buffers).filter(|(_, buffer)| !buffer.is_empty());
        let begun = wanted.map(|(member, buffer)| {
            let own = core::mem::take(buffer);
            let len = own.len();
            let reading = match self.device(member) {
                Some(device) => Ok(device.begin(vec![LentRead::new(offset, own)])),
                None => Err(own),
            };
            (member, buffer, len, reading)
        });
        let begun: Vec<_> = begun.collect();
        let mut failed = Vec::new();
        for (member, buffer, len, reading) in begun {
            let is_read = match reading.map(|reading| reading.end().pop()) {
                Ok(Some(LentRead { bytes, result, .. })) => {
                    *buffer = bytes;
                    // Who does not answer is not asked again.
                    let may_have_rows = result.as_ref().is_err_and(|error| !error.is_silent());
                    failed.extend(may_have_rows.then_some(member));
                    result.is_ok()
                }
                Ok(None) => false,
                Err(own) => {
                    *buffer = own;
                    false
                }
            };
            if !is_read {
                buffer.clear();
                buffer.resize(len, 0);
            }
        }
        failed
    }

    /// Reads the slot of `sequence` of one member, unreadable rows as zeros, into a buffer of
    /// `pool`. `None` when the member keeps that one, and there is no other.
    pub fn slot_buffer(&self, member: MemberId, sequence: Sequence, pool: &Pool) -> Option<Buffer> {
        let slot = self.geometry().slot(sequence);
        let buffer = pool.take()?;
        let (buffer, result) = match self.device(member) {
            Some(device) => device.read_buffer(self.geometry().offset_of_slot(slot), buffer),
            None => (Some(buffer), Err(device::Error::Interrupted)),
        };
        let mut buffer = buffer.or_else(|| pool.take())?;
        match result {
            Ok(()) => {}
            Err(error) if error.is_silent() => buffer.fill(0),
            Err(_) => self.with_heads(|heads| heads.read_rows(member, slot, &mut buffer)),
        }
        Some(buffer)
    }
}
