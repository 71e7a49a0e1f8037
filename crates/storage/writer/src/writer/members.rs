//! Who takes part, and changes of that under a running writer: a member is expelled, replaced,
//! given back what it missed; members are added.
//!
//! Every change is the same steps: what is in flight becomes durable, a new epoch is prepared, the
//! slot is closed in its name, and it begins in a fresh slot with the members and the shape that it
//! names. Nothing is acknowledged in between.

use device::Device;
use format::geometry::{Geometry, MEMBERS_MAX, RESERVED_BYTES};
use format::head::StripeId;
use format::superblock::{EARLIER_SHAPES_MAX, EarlierShape, MemberEntry, Spare, Superblock};
use units::{Clock, Epoch, MemberId, Sequence};
use volume::{Error, MemberFailure, NewPlace, check_own_seat, columns_for, superblocks};

use super::erasure::Erasure;
use super::{Writer, own_pools, told_by_epoch};
use crate::epoch::{self, Beginning};
use crate::expelled::Expelled;
use crate::member_writer::MemberWriter;
use crate::member_writers::{Failed, WAIT};

/// A member that is there again, flushed and read: what may take its time is done before a writer
/// takes it back.
#[derive(Debug)]
pub struct Returning(Box<MemberWriter>);

impl Returning {
    /// Flushes a device and reads what it says; waits for it.
    ///
    /// # Errors
    /// Those of the device; [`Error::NoSuperblock`].
    pub fn open(device: Box<dyn Device>) -> Result<Self, Error> {
        Ok(Self(Box::new(MemberWriter::open(device)?)))
    }

    /// What it says: it may have missed what the others say.
    pub fn superblock(&self) -> &Superblock {
        self.0.superblock()
    }
}

/// What all agree on in an epoch, from what they agreed on before and the sequence it starts with.
type Next = Box<dyn FnOnce(&Superblock, Sequence) -> Superblock>;

/// What is different from an epoch on, besides who is there.
#[derive(Default)]
struct Change {
    /// Members that come new, blank, with their devices.
    devices: Vec<(MemberId, Box<dyn Device>)>,
    superblock: Option<Next>,
}

impl Writer {
    /// Goes on without a member. Everything in flight is made durable on the others; then they
    /// begin a new epoch in which the member has no part; only then the watermark rises again.
    ///
    /// # Errors
    /// [`Error::TooFewLeft`] when fewer members would be left than a stripe has data columns.
    pub(super) fn expel(&mut self, failed: Failed, clock: &dyn Clock) -> Result<(), Error> {
        let mut failed = failed;
        loop {
            let Some(member) = failed.member else { return Err(failed.error) };
            self.let_go(member);
            // Who was about to join when that came to nothing does not come with another member's
            // leaving: what is in flight is on those that stay, and not on it.
            let (epoch, agreed) = (self.epoch(), self.superblock());
            let is_new = |writer: &&MemberWriter| {
                let own = writer.superblock();
                own.joined_epoch < epoch || check_own_seat(agreed, 0, own).is_err()
            };
            let new: Vec<MemberId> = self
                .writers
                .iter()
                .filter(is_new)
                .map(|writer| writer.superblock().member)
                .collect();
            for member in new {
                self.let_go(member);
            }
            self.check_left((member, &failed.error))?;
            let reason = failed.error;
            match self.begin_epoch(Change::default(), clock) {
                Ok(()) => {
                    let epoch = self.epoch();
                    self.expelled.push(Expelled { member, reason, epoch });
                    return Ok(());
                }
                Err(also) => {
                    let epoch = self.epoch().next();
                    self.expelled.push(Expelled { member, reason, epoch });
                    failed = also;
                }
            }
        }
    }

    /// A member takes no part any more; what it has under way keeps its memory.
    pub(super) fn let_go(&mut self, member: MemberId) {
        let Some(writer) = self.writers.remove(member) else { return };
        self.counters.flushes += writer.flushes();
        let latency = &mut self.counters.write_latency_ns_max;
        *latency = writer.write_latency_ns_max().max(*latency);
        self.gone.push(writer);
    }

    /// Whether enough are left when this member has left.
    pub(super) fn check_left(&mut self, (member, reason): (MemberId, &Error)) -> Result<(), Error> {
        let (present, needed) = (self.writers.iter().count(), self.geometry().data_columns);
        if present >= usize::from(needed) {
            return Ok(());
        }
        self.stopped = true;
        // A spare may have taken the place of one that left before.
        let away = self.expelled.iter().filter(|gone| self.writers.get(gone.member).is_none());
        let mut lost: Vec<(MemberId, &Error)> =
            away.map(|gone| (gone.member, &gone.reason)).collect();
        lost.push((member, reason));
        let name = |(member, reason)| MemberFailure::new(self.superblock(), member, reason);
        let failed = lost.into_iter().map(name).collect();
        Err(Error::TooFewLeft { present, needed, failed })
    }

    /// Ends the epoch: everything in flight is durable, and the slot is closed in the name of the
    /// next one, whose stripe follows in a fresh slot. `change` is in force from there on.
    fn begin_epoch(&mut self, change: Change, clock: &dyn Clock) -> Result<(), Failed> {
        while self.writers.durable_below().is_some() || self.writers.discarding().next().is_some() {
            self.writers.await_discards(|_| true, clock);
            self.writers.poll(Some(WAIT), 1, clock)?;
        }
        let mut before = self.writers.membership();
        if change.superblock.is_none() && !has_same_seats(before.superblock(), self.superblock()) {
            // The JOIN of a change failed after some had stored it. Nothing was written under it,
            // and those that were to come may be too few now: what was in force is so again.
            before.admit(self.superblock().clone(), &[]);
        }
        let epoch = epoch::prepare(&mut self.writers, Epoch::NONE, self.next.sequence, clock)?;
        let last = if self.next_row == 0 {
            StripeId { sequence: self.next.sequence - 1, sub: u16::MAX }
        } else {
            let void = (self.next, self.next_row);
            epoch::close(&mut self.writers, &before, (epoch, void, self.index), clock)?;
            StripeId { sequence: self.next.sequence, sub: u16::MAX }
        };
        let newcomers: Vec<MemberId> = change.devices.iter().map(|&(member, _)| member).collect();
        if let Some(make) = change.superblock {
            let start = StripeId { sequence: last.sequence + 1, sub: 0 };
            before.admit(make(before.superblock(), start.sequence), &newcomers);
        }
        for (member, device) in change.devices {
            let superblock = before.of(member).expect("it was admitted").clone();
            self.writers
                .insert(MemberWriter::blank(device, superblock))
                .map_err(Failed::of_nobody)?;
        }
        // Or a JOIN that is cut short would name a member that cannot be found.
        self.writers.store_on(clock, |member| newcomers.contains(&member), Superblock::clone)?;
        if !newcomers.is_empty() {
            self.put_all_keys(clock)?;
        }
        let judged_from = self.acknowledged.sequence;
        let (index, explained) = (self.index, self.explained);
        let beginning = Beginning { epoch, gone: &[], judged_from, last, index, explained };
        self.previous = epoch::join(&mut self.writers, &before, beginning, clock)?;
        self.membership = self.writers.membership();
        (self.parity, self.rows) = own_pools(self.geometry()).map_err(Failed::of_nobody)?;
        self.keys.fit(self.membership.geometry()).map_err(Failed::of_nobody)?;
        self.in_flight.clear();
        self.acknowledged = self.previous.stripe;
        self.told = told_by_epoch(self.acknowledged);
        self.erasure = Erasure::new(&self.writers);
        self.next = StripeId { sequence: self.acknowledged.sequence + 1, sub: 0 };
        self.next_row = 0;
        Ok(())
    }

    /// Puts a blank device in the place of a member, which need not be there any more. It takes
    /// part from a new epoch on; what it misses is for a resilver to give it.
    ///
    /// # Errors
    /// [`Error::NoSuchMember`]; [`Error::Shrunk`] when the device is smaller than the others' ring;
    /// [`Error::NotJoined`] when it or a member fails meanwhile: the volume goes on without either.
    pub fn replace(
        &mut self,
        (member, spare): (MemberId, Spare),
        device: Box<dyn Device>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let last = self.geometry().last_member();
        if member > last {
            return Err(Error::NoSuchMember { member, last });
        }
        self.check_size(device.as_ref())?;
        self.drain(clock)?;
        if self.writers.get(member).is_some() {
            self.let_go(member);
            // An epoch without it comes first: with one that drops a member and takes in a blank
            // one at once, a crash inside the JOIN could leave a quorum that holds too little.
            let without = self.begin_epoch(Change::default(), clock);
            without.or_else(|failed| self.expel(failed, clock))?;
        }
        let superblock = move |before: &Superblock, _| {
            let mut after = before.clone();
            let entry = after.members.get_mut(member.place()).expect("checked before");
            after.spares.retain(|other| other.uuid != spare.uuid);
            *entry = MemberEntry::blank(spare.uuid, spare.path);
            after
        };
        self.change(vec![(member, device)], Box::new(superblock), clock)
    }

    /// Whether nothing of the members that were expelled is under way any more; their devices are
    /// then let go, so that they may be opened anew.
    pub fn has_let_go(&mut self) -> bool {
        self.gone.retain_mut(|writer| !writer.is_at_rest());
        self.gone.is_empty()
    }

    /// Writes and flushes of expelled members that have not ended: each write keeps its memory.
    pub fn held_by_gone(&self) -> usize {
        self.gone.iter().map(|writer| writer.device().in_flight()).sum()
    }

    /// Takes back a member that recording went on without: from a new epoch on it gets its pieces
    /// again. What it missed is for a resilver to give it. Where it fails at once, or another one
    /// does meanwhile, the volume goes on without it.
    ///
    /// # Errors
    /// [`Error::ForeignMember`], [`Error::ReplacedMember`], [`Error::GivenUp`] and
    /// [`Error::SameMember`] when the device is not that of an absent member; [`Error::Ahead`] when
    /// others have recorded on it meanwhile; [`Error::Shrunk`].
    pub fn take_back(
        &mut self,
        returning: Returning,
        clock: &dyn Clock,
    ) -> Result<MemberId, Error> {
        let Returning(writer) = returning;
        self.check_size(writer.device())?;
        let own = writer.superblock();
        let member = own.member;
        if own.volume_id != self.superblock().volume_id {
            return Err(Error::ForeignMember { place: 0, volume_id: own.volume_id });
        }
        check_own_seat(self.superblock(), 0, own)?;
        if own.joined_epoch >= self.epoch() {
            return Err(Error::Ahead { member });
        }
        self.drain(clock)?;
        if self.writers.get(member).is_some() {
            return Err(Error::SameMember { place: 0, member });
        }
        self.writers.insert(*writer)?;
        let taken = self.put_all_keys(clock);
        taken
            .and_then(|()| self.begin_epoch(Change::default(), clock))
            .or_else(|failed| self.expel(failed, clock))?;
        Ok(member)
    }

    /// Adds members: from a new epoch on stripes have as many columns more, of which
    /// `parity_columns` in all are for parity. Older stripes stay as they are until the ring
    /// passes them.
    ///
    /// # Errors
    /// [`Error::Geometry`] for a shape that no volume can have, or with fewer columns of either
    /// kind than now; [`Error::Shrunk`] when a device is smaller than the others' ring;
    /// [`Error::TooManyShapes`]; [`Error::NotJoined`] when a member or newcomer fails meanwhile:
    /// the volume goes on in the shape that it had.
    pub fn grow(
        &mut self,
        newcomers: Vec<(Spare, Box<dyn Device>)>,
        parity_columns: u8,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let before = *self.geometry();
        let members = usize::from(before.columns()) + newcomers.len();
        let shape = columns_for(members, parity_columns)?;
        if shape.0 < before.data_columns || parity_columns < before.parity_columns {
            return Err(Error::Geometry { members, parity: parity_columns });
        }
        newcomers.iter().try_for_each(|(_, device)| self.check_size(device.as_ref()))?;
        let tail = self.tail();
        let superblock = self.superblock();
        let held = superblock.earlier.iter().filter(|shape| shape.until > tail).count();
        if held >= EARLIER_SHAPES_MAX || members + superblock.spares.len() > MEMBERS_MAX {
            return Err(Error::TooManyShapes(held));
        }
        self.drain(clock)?;
        let (mut entries, mut devices) = (Vec::new(), Vec::new());
        let behind = MemberId::all().skip(before.columns().into());
        for (member, (spare, device)) in behind.zip(newcomers) {
            entries.push(MemberEntry::blank(spare.uuid, spare.path));
            devices.push((member, device));
        }
        let superblock = move |before: &Superblock, start: Sequence| {
            let mut after = before.clone();
            let Geometry { data_columns, parity_columns, .. } = before.geometry;
            after.earlier.retain(|shape| shape.until > tail);
            after.earlier.push(EarlierShape { until: start, data_columns, parity_columns });
            after.geometry.data_columns = shape.0;
            after.geometry.parity_columns = shape.1;
            after.members.extend(entries);
            after
        };
        self.change(devices, Box::new(superblock), clock)
    }

    /// Of some stripe in the ring fewer than K others lack nothing: replaced, the member would be a
    /// stranger, and what it alone can still give would be lost.
    pub fn is_needed(&self, member: MemberId) -> bool {
        let sequences = self.tail()..self.acknowledged.sequence + 1;
        let parts = self.membership.redundancy(sequences, Some(member));
        parts.iter().any(|part| part.spare_members.is_none())
    }

    fn change(
        &mut self,
        devices: Vec<(MemberId, Box<dyn Device>)>,
        superblock: Next,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let change = Change { devices, superblock: Some(superblock) };
        let Err(failed) = self.begin_epoch(change, clock) else { return Ok(()) };
        let Some(member) = failed.member else { return Err(failed.error) };
        let why = MemberFailure::new(self.superblock(), member, &failed.error);
        self.expel(failed, clock)?;
        Err(Error::NotJoined(why))
    }

    /// Makes a device known that is to take the place of a member that fails.
    ///
    /// # Errors
    /// [`Error::Shrunk`] when the device is smaller than the others' ring.
    ///
    /// # Panics
    /// When the volume has 24 members and spares already.
    pub fn add_spare(
        &mut self,
        spare: Spare,
        mut device: Box<dyn Device>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        self.check_size(device.as_ref())?;
        self.drain(clock)?;
        let stored = self.writers.store_alike(clock, |superblock| superblock.spares.push(spare));
        if let Err(failed) = stored {
            return self.expel(failed, clock);
        }
        self.membership = self.writers.membership();
        let superblock = self.superblock();
        let number = superblock.members.len() + superblock.spares.len() - 1;
        let member = MemberId(u8::try_from(number).expect("at most 24"));
        superblocks::store(device.as_mut(), &Superblock { member, ..superblock.clone() })
    }

    /// Notes where members and spares lie from now on. Durable on every member when this returns;
    /// costs three flushes a member where anything changes.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn remember(&mut self, places: &[NewPlace], clock: &dyn Clock) -> Result<(), Error> {
        let known = self.superblock();
        if NewPlace::in_superblock(places, known.clone()) == *known {
            return Ok(());
        }
        self.store(clock, |own| NewPlace::in_superblock(places, own))
    }

    fn check_size(&self, device: &dyn Device) -> Result<(), Error> {
        let geometry = self.geometry();
        let ring_bytes = geometry.slots * u64::from(geometry.piece_bytes);
        let expected = geometry.slot0_offset + ring_bytes + RESERVED_BYTES;
        let actual = device.size_bytes();
        if actual < expected { Err(Error::Shrunk { actual, expected }) } else { Ok(()) }
    }
}

/// Stripes have the same columns on the same devices.
fn has_same_seats(one: &Superblock, other: &Superblock) -> bool {
    let is_same = |(one, other): (&MemberEntry, &MemberEntry)| one.uuid == other.uuid;
    one.geometry == other.geometry && one.members.iter().zip(&other.members).all(is_same)
}
