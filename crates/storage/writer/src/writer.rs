//! Appending stripes and acknowledging them in order.
//!
//! A stripe is placed in the current slot if it fits behind what is there, else in the next slot.
//! Its heads carry the watermark of the moment; head and body of a piece go out as one write. The
//! watermark rises over the longest run of stripes that are durable on every member. At most W
//! stripes, over at most W slots, are unacknowledged: recovery relies on it.
//!
//! A member that fails or stalls is expelled: the others begin a new epoch without it, durably,
//! before anything is acknowledged that it does not hold.

mod discards;
mod erase;
mod erasure;
mod members;
mod repairs;
mod retention;
mod sealing;

pub use erase::Forgotten;
use erasure::Erasure;
pub use members::Returning;
pub use repairs::Repair;

use std::collections::VecDeque;

use core::ops::Range;
use core::time::Duration;

use device::{Buffer, Pool, ReadAt, Shared};
use format::geometry::Geometry;
use format::head::{HEAD_BYTES, Kind, StripeHead, StripeId, Totals};
use format::recorded::Recorded;
use format::superblock::Superblock;
use parity::Codec;
use serde::Serialize;
use units::number::to_u64;
use units::{Clock, Epoch, Sequence, Timestamp};
use volume::seal::{Previous, Sealed, address, empty_head, rest, row_offset};
use volume::{Error, Membership, Reader, mark};

use crate::expelled::Expelled;
use crate::explained::Explained;
use crate::member_writer::MemberWriter;
use crate::member_writers::{Failed, MemberWriters, WAIT};
use crate::protect::{ColumnSums, protect};
use crate::sealing::Keys;

/// Rows that are not worth a stripe of their own: a head and one body row need two.
const ROWS_TOO_FEW: u16 = 2;
/// A member that answers nothing for this long is expelled.
const STALL_NS: i64 = 2_000_000_000;
/// Stripes for which the writer has parity and head buffers of its own.
const SPARE_STRIPES: usize = 8;

/// A stripe ready to be sealed: the bodies of its data columns, padded to the same whole rows.
#[derive(Debug)]
pub struct Filled {
    /// One for each data column; none for a stripe without a body.
    pub columns: Vec<FilledColumn>,
    /// Kind of its content.
    pub kind: Kind,
    /// Body rows.
    pub rows: u16,
    /// Packets of the stripe, and losses since the stripe before.
    pub totals: Totals,
    /// Earliest packet; `Timestamp::MAX` without packets.
    pub time_min: Timestamp,
    /// Latest packet; `Timestamp::MIN` without packets.
    pub time_max: Timestamp,
    /// Some body holds blocks that belong to no packet.
    pub extra_blocks: bool,
}

/// The body of one column.
#[derive(Debug)]
pub struct FilledColumn {
    /// One row for the head, then the body.
    pub buffer: Buffer,
    /// Packets in the column.
    pub packets: u32,
}

impl Filled {
    /// A stripe that holds no packets.
    pub fn without_packets(columns: Vec<Buffer>, kind: Kind, rows: u16) -> Self {
        let columns =
            columns.into_iter().map(|buffer| FilledColumn { buffer, packets: 0 }).collect();
        let (time_min, time_max) = (Timestamp::MAX, Timestamp::MIN);
        let (totals, extra_blocks) = (Totals::default(), false);
        Self { columns, kind, rows, totals, time_min, time_max, extra_blocks }
    }

    /// A sign of life.
    pub fn heartbeat() -> Self {
        Self::without_packets(Vec::new(), Kind::Heartbeat, 0)
    }
}

/// Where the next stripe of a given size would go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Body rows to pad it to: more than asked for when the rest of the slot would be useless.
    pub rows: u16,
    /// Body rows still free in the current slot; fewer than `rows` means that a new slot begins.
    pub room: u16,
}

/// A stripe on its way to the members.
#[derive(Clone, Debug)]
pub struct Appended {
    /// Id of the stripe.
    pub stripe: StripeId,
    /// `CID` of the first stripe in its slot.
    pub slot_cid: [u8; 32],
    /// The sealed data columns, read-only; the session table reads them while they are warm.
    pub columns: Vec<Shared>,
    /// Bytes of head and body of each.
    pub len: usize,
}

/// What a writer has done so far. The report of a recording has some of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WriterCounters {
    /// Bytes sent to the members, heads and parity included.
    #[serde(rename = "member_bytes")]
    pub bytes: u64,
    /// Bytes that members were told to discard ahead of the head.
    pub discarded_bytes: u64,
    /// Stripes submitted.
    pub stripes: u64,
    /// Flushes completed, of all members.
    pub flushes: u64,
    /// Longest time from submission to completion of a write.
    pub write_latency_ns_max: u64,
    /// Rows of each member left unused where a slot was closed early.
    #[serde(skip)]
    pub closed_rows: u64,
    /// Bytes of acknowledged stripes written anew.
    #[serde(skip)]
    pub repaired_bytes: u64,
}

/// The only one who writes to an open volume.
#[derive(Debug)]
pub struct Writer {
    writers: MemberWriters,
    membership: Membership,
    codec: Codec,
    /// Parity columns: the writer must never wait for a column that capture may take before it.
    parity: Pool,
    /// Single rows: heads without a body.
    rows: Pool,
    next: StripeId,
    next_row: u16,
    previous: Previous,
    /// `CID` of the first stripe in the slot of `previous`.
    slot_cid: [u8; 32],
    index: StripeId,
    /// What heads say of the recording.
    recorded: Option<Recorded>,
    /// What the newest head said of it.
    said: Option<Recorded>,
    acknowledged: StripeId,
    /// Stripes not yet acknowledged.
    in_flight: VecDeque<InFlight>,
    /// The watermark in the newest head that is acknowledged: a mount goes by this or a later one.
    told: StripeId,
    erasure: Erasure,
    /// How late it may be.
    explained: Explained,
    /// Stripes submitted since the writer began.
    number: u64,
    counters: WriterCounters,
    expelled: Vec<Expelled>,
    /// Of expelled members: what they have under way keeps its memory.
    gone: Vec<MemberWriter>,
    /// Slots up to that of this sequence were discarded, or are behind the head.
    discarded_through: Sequence,
    keys: Keys,
    /// Too few members are left.
    stopped: bool,
}

impl Writer {
    /// A writer behind the EPOCH stripe `previous`, which a mount has made durable.
    pub(crate) fn new(
        mut writers: MemberWriters,
        previous: Previous,
        keys: Keys,
        (index, explained): (StripeId, Explained),
    ) -> Result<Self, Error> {
        writers.set_patience(STALL_NS);
        let membership = writers.membership();
        let geometry = membership.geometry();
        let (parity, rows) = own_pools(geometry)?;
        let acknowledged = previous.stripe;
        Ok(Self {
            codec: Codec::new()?,
            parity,
            rows,
            next: StripeId { sequence: acknowledged.sequence + 1, sub: 0 },
            next_row: 0,
            slot_cid: previous.cid,
            previous,
            index,
            recorded: None,
            said: None,
            acknowledged,
            in_flight: VecDeque::new(),
            told: told_by_epoch(acknowledged),
            erasure: Erasure::new(&writers),
            explained,
            number: 0,
            counters: WriterCounters::default(),
            expelled: Vec::new(),
            gone: Vec::new(),
            discarded_through: Sequence(0),
            keys,
            stopped: false,
            membership,
            writers,
        })
    }

    /// Shape of the volume.
    pub fn geometry(&self) -> &Geometry {
        self.membership.geometry()
    }

    /// The superblock as joined.
    pub fn superblock(&self) -> &Superblock {
        self.membership.superblock()
    }

    /// Which members take part, and from where on each is whole.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Members that this writer went on without.
    pub fn expelled(&self) -> &[Expelled] {
        &self.expelled
    }

    /// Number of this opening; rises when a member is expelled.
    pub fn epoch(&self) -> Epoch {
        self.superblock().joined_epoch
    }

    /// Where the next stripe would go, if it fits behind what is there: that of an orderly stop
    /// always does.
    pub fn next(&self) -> StripeId {
        self.next
    }

    /// A reader of everything that is acknowledged, without a search.
    pub fn reader(&self, devices: Vec<Box<dyn ReadAt>>) -> Result<Reader, Error> {
        Reader::of_acknowledged(devices, self.acknowledged(), self.epoch())
    }

    /// Everything up to here is durable.
    pub fn acknowledged(&self) -> StripeId {
        self.acknowledged
    }

    /// Oldest sequence that the ring holds for certain.
    pub fn tail(&self) -> Sequence {
        mark::tail_behind(self.next.sequence, self.superblock())
    }

    /// Writes with smaller numbers are durable on every member that is left.
    pub fn durable_below(&self) -> u64 {
        self.writers.durable_below().unwrap_or(self.number + 1)
    }

    /// Nothing is on its way to any member: no stripe and no repair.
    pub fn is_all_durable(&self) -> bool {
        self.in_flight.is_empty() && self.writers.durable_below().is_none()
    }

    /// Stripes not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.in_flight.len()
    }

    /// Writes and flushes under way. None while stripes are unacknowledged means that a flush is
    /// not yet due: then there is nothing to wait for but the time.
    pub fn in_flight(&self) -> usize {
        self.writers.in_flight()
    }

    /// What was done so far.
    pub fn counters(&self) -> WriterCounters {
        let latencies = self.writers.iter().map(MemberWriter::write_latency_ns_max);
        WriterCounters {
            flushes: self.counters.flushes
                + self.writers.iter().map(MemberWriter::flushes).sum::<u64>(),
            write_latency_ns_max: latencies.fold(self.counters.write_latency_ns_max, u64::max),
            ..self.counters
        }
    }

    /// Messages of the devices for the user.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.writers.iter().flat_map(|writer| writer.device().notes())
    }

    /// First part of the newest INDEX that was appended or found.
    pub fn newest_index(&self) -> StripeId {
        self.index
    }

    /// Names the INDEX that following heads point to.
    pub fn set_newest_index(&mut self, first_part: StripeId) {
        self.index = first_part;
    }

    /// What following heads say of the recording; nothing before the first call.
    pub fn set_recorded(&mut self, recorded: Recorded) {
        self.recorded = Some(recorded);
    }

    /// Where a stripe of `rows` body rows would go.
    pub fn plan(&self, rows: u16) -> Plan {
        let slot = self.geometry().rows_per_slot();
        let room = (slot - self.next_row).saturating_sub(1);
        let target = if rows <= room { room } else { slot - 1 };
        let left = target - rows.min(target);
        Plan { rows: if left < ROWS_TOO_FEW { target.max(rows) } else { rows }, room }
    }

    /// Whether another stripe may be submitted now without exceeding the window.
    pub fn has_room_in_window(&self) -> bool {
        let window = self.window_of_stripes();
        let reach = self.next.sequence - self.acknowledged.sequence;
        let in_flight = to_u64(self.in_flight.len());
        let is_discarded = |slots: &Range<Sequence>| slots.contains(&self.next.sequence);
        in_flight < window
            && reach <= window
            && !self.writers.discarding().any(is_discarded)
            && !self.is_erasing_ahead()
    }

    /// Seals and submits one stripe; waits while the window is full.
    ///
    /// # Panics
    /// When there is not one column for each data column of the geometry (or none, without rows),
    /// or the rows do not fit a column or a slot.
    pub fn append(&mut self, filled: Filled, clock: &dyn Clock) -> Result<Appended, Error> {
        let Filled { columns, kind, rows, totals, time_min, time_max, extra_blocks } = filled;
        let data_columns = usize::from(self.geometry().data_columns);
        assert!(
            columns.len() == data_columns || (columns.is_empty() && rows == 0),
            "a stripe has a body for every data column or none"
        );
        if mark::is_due(self.superblock(), self.acknowledged) {
            self.store(clock, |own| own)?;
        }
        if rows > self.plan(0).room {
            self.close_slot(clock, false)?;
        }
        let seals = self.superblock().is_encrypted && kind == Kind::Data && rows > 0;
        let key_id = seals.then(|| self.key_of_now(clock)).transpose()?;
        self.wait_for_room(clock)?;
        let packets: Vec<u32> = columns.iter().map(|column| column.packets).collect();
        let plain: Vec<Buffer> = columns.into_iter().map(|column| column.buffer).collect();
        let (plain, mut buffers) = match key_id {
            Some(_) => (plain, self.take_sealed_columns(clock)?),
            None => (Vec::new(), plain),
        };
        let own: fn(&Self) -> &Pool = if rows > 0 { |it| &it.parity } else { |it| &it.rows };
        while buffers.len() < usize::from(self.geometry().columns()) {
            buffers.push(self.wait_for_buffer(own, clock)?);
        }
        let head = self.stripe_head(kind, clock);
        let stripe = StripeHead { rows, totals, time_min, time_max, extra_blocks, key_id, ..head };
        if key_id.is_some() {
            self.keys.seal(&stripe, &plain, &mut buffers);
        }
        let sums = self.protect(&stripe, &mut buffers);
        let manifest = sums.iter().map(|sums| sums.body_crc).collect();
        let stripe = StripeHead { manifest, ..stripe };
        let sealed = Sealed::new(stripe);
        let pieces = buffers.into_iter().zip(sums).collect();
        let on_disk = self.submit(&sealed, pieces, &packets, clock);
        let shared = match key_id {
            Some(_) => plain.into_iter().map(Buffer::freeze).collect(),
            None => on_disk,
        };
        self.counters.stripes += 1;
        self.advance(&sealed);
        self.poll(None, clock)?;
        let len = HEAD_BYTES * (1 + usize::from(rows));
        let stripe = sealed.stripe().stripe;
        Ok(Appended { stripe, slot_cid: self.slot_cid, columns: shared, len })
    }

    /// P and Q of the bodies in front into the buffers behind them, and the checksums of all.
    fn protect(&self, stripe: &StripeHead, buffers: &mut [Buffer]) -> Vec<ColumnSums> {
        let data_columns = usize::from(stripe.geometry.data_columns);
        let body = HEAD_BYTES..HEAD_BYTES * (1 + usize::from(stripe.rows));
        let (data, parity) = buffers.split_at_mut(data_columns);
        let data = data.iter().map(|buffer| buffer.get(body.clone()).expect("rows fit a column"));
        let parity = parity
            .iter_mut()
            .map(|buffer| buffer.get_mut(body.clone()).expect("rows fit a column"));
        let (data, mut parity) = (data.collect::<Vec<_>>(), parity.collect::<Vec<_>>());
        protect(self.codec, address(stripe), &data, &mut parity)
    }

    /// Sends the pieces of a sealed stripe to their members; gives back its data columns.
    fn submit(
        &mut self,
        sealed: &Sealed,
        pieces: Vec<(Buffer, ColumnSums)>,
        packets: &[u32],
        clock: &dyn Clock,
    ) -> Vec<Shared> {
        let stripe = sealed.stripe();
        let len = HEAD_BYTES * (1 + usize::from(stripe.rows));
        let offset = row_offset(stripe, stripe.first_row);
        let number = self.number();
        let mut data = Vec::new();
        for (column, (mut buffer, sums)) in (0..).zip(pieces) {
            // Who computes an encrypted piece anew cannot count its packets.
            let counted = packets.get(usize::from(column)).filter(|_| stripe.key_id.is_none());
            let count = counted.copied().unwrap_or(0);
            let page = sealed.page(self.membership.superblock(), column, count, sums.row_crcs);
            buffer
                .get_mut(..HEAD_BYTES)
                .expect("a column begins with a head")
                .copy_from_slice(&page);
            let shared = buffer.freeze();
            let member = stripe.geometry.member_of(stripe.stripe.sequence, column);
            if let Some(writer) = self.writers.get_mut(member) {
                let data = (shared.clone(), len);
                writer.submit((number, 0), offset, data, clock.boottime_ns());
                self.counters.bytes += to_u64(len);
            }
            if column < stripe.geometry.data_columns {
                data.push(shared);
            }
        }
        self.in_flight.push_back(InFlight::new(stripe, number));
        data
    }

    /// Takes completions, starts flushes that are due, and raises the watermark. With a wait it
    /// returns when something completed, or after a while.
    pub fn poll(&mut self, wait: Option<Duration>, clock: &dyn Clock) -> Result<(), Error> {
        let enough = usize::from(self.superblock().window).div_ceil(4);
        self.poll_for(wait, enough, clock)
    }

    /// As [`Writer::poll`] for a caller that waits for what is under way: any flush is due now.
    pub fn poll_at_once(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        self.poll_for(Some(WAIT), 1, clock)
    }

    fn poll_for(
        &mut self,
        wait: Option<Duration>,
        enough: usize,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        if self.stopped {
            return Err(Error::Stopped);
        }
        match self.writers.poll(wait, enough, clock) {
            Ok(()) => {
                self.acknowledge();
                self.discard_next(clock);
                Ok(())
            }
            Err(failed) => self.expel(failed, clock),
        }
    }

    fn acknowledge(&mut self) {
        let below = self.writers.durable_below().unwrap_or(u64::MAX);
        while let Some(durable) = self.in_flight.pop_front_if(|it| it.number < below) {
            assert!(durable.stripe > self.acknowledged, "the watermark only rises");
            (self.acknowledged, self.told) = (durable.stripe, durable.told);
        }
        self.erasure.note(below);
    }

    /// Waits until everything appended is acknowledged, and every repair durable.
    pub fn drain(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        while !self.in_flight.is_empty() || self.writers.durable_below().is_some() {
            self.poll_at_once(clock)?;
        }
        Ok(())
    }

    /// Orderly end: everything is acknowledged, and a closing head says so for good. Members that
    /// fail meanwhile are among [`Self::expelled`]. Nothing can be written from here on.
    ///
    /// # Errors
    /// [`Error::TooFewLeft`] when fewer members are left than a stripe has data columns; what
    /// stops all of them.
    pub fn stop(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        loop {
            self.drain(clock)?;
            let epoch = self.epoch();
            self.close_slot(clock, true)?;
            self.drain(clock)?;
            if self.epoch() != epoch {
                // A member left meanwhile: the stop was that of an epoch which is over.
                continue;
            }
            let mark = mark::of(self.superblock(), self.acknowledged, true, clock);
            let stored = self.writers.store(clock, |own| {
                self.explained.noted(Superblock { mark, ..own.successor() }, clock)
            });
            // Of a member that another program has written to nothing may be left: an epoch
            // without it says so. Who fails now only knows less than the others.
            let is_changed = |failed: &Failed| matches!(failed.error, Error::Changed { .. });
            let Some(changed) = self.leave_failed(stored, is_changed)? else { break };
            self.expel(changed, clock)?;
        }
        self.stopped = true;
        // A claim that is left is one that no process renews.
        let given_up = self.writers.give_up(clock);
        self.leave_failed(given_up, |_| false).map(drop)
    }

    /// Leaves members that fail when the volume is closed, but for those of which the epoch has to
    /// say so; gives one of these.
    fn leave_failed(
        &mut self,
        ended: Result<(), Failed>,
        is_told: impl Fn(&Failed) -> bool,
    ) -> Result<Option<Failed>, Error> {
        let (mut ended, mut told) = (ended, None);
        while let Err(failed) = ended {
            let Some(member) = failed.member else { return Err(failed.error) };
            if is_told(&failed) {
                told = Some(failed);
            } else {
                self.let_go(member);
                self.check_left((member, &failed.error))?;
                let (reason, epoch) = (failed.error, self.epoch());
                self.expelled.push(Expelled { member, reason, epoch });
            }
            ended = self.writers.failure();
        }
        Ok(told)
    }

    /// Stops in order; what was done.
    ///
    /// # Errors
    /// Those of [`Self::stop`].
    pub fn close(mut self, clock: &dyn Clock) -> Result<WriterCounters, Error> {
        self.stop(clock)?;
        Ok(self.counters())
    }

    /// Leaves the current slot: a VOID head behind its last stripe, whose block reaches to the
    /// slot's end. Nothing stays behind it that an older lap left there: no age and no request
    /// would reach it.
    fn close_slot(&mut self, clock: &dyn Clock, clean_stop: bool) -> Result<(), Error> {
        self.wait_for_room(clock)?;
        let columns = self.geometry().columns();
        let mut buffers = Vec::new();
        for _ in 0..columns {
            buffers.push(self.wait_for_buffer(|it| &it.rows, clock)?);
        }
        if self.next_row == 0 && !clean_stop {
            // A member was expelled meanwhile, and with the new epoch came a new slot.
            return Ok(());
        }
        let last_row = self.geometry().rows_per_slot() - 1;
        self.counters.closed_rows += u64::from(last_row + 1 - self.next_row);
        // What is recorded up to now may lie in the stripe that is about to follow.
        let recorded = if clean_stop { self.recorded.clone() } else { self.said.clone() };
        let head = StripeHead { clean_stop, recorded, ..self.stripe_head(Kind::Void, clock) };
        let sealed = Sealed::new(head);
        let stripe = sealed.stripe();
        let behind = (stripe.first_row < last_row).then(|| rest(stripe)).transpose()?;
        let number = self.number();
        let now_ns = clock.boottime_ns();
        for column in 0..columns {
            let member = stripe.geometry.member_of(stripe.stripe.sequence, column);
            let Some(writer) = self.writers.get_mut(member) else { continue };
            let page = sealed.page(self.membership.superblock(), column, 0, Vec::new());
            let mut buffer = buffers.pop().expect("one for every column");
            buffer.copy_from_slice(&page);
            let head = (stripe.first_row, (buffer.freeze(), HEAD_BYTES));
            let behind =
                behind.clone().map(|rows| (stripe.first_row + 1, (rows.clone(), rows.len())));
            for (part, (row, data)) in (0..).zip(behind.into_iter().chain([head])) {
                writer.submit((number, part), row_offset(stripe, row), data, now_ns);
            }
        }
        self.in_flight.push_back(InFlight::new(stripe, number));
        self.advance(&sealed);
        Ok(())
    }

    /// The common part of the next head, without what depends on its body.
    fn stripe_head(&self, kind: Kind, clock: &dyn Clock) -> StripeHead {
        StripeHead {
            epoch: self.epoch(),
            acknowledged: self.acknowledged,
            previous: self.previous.stripe,
            index: self.index,
            previous_cid: self.previous.cid,
            previous_manifest: self.previous.manifest.clone(),
            recorded: self.recorded.clone(),
            ..empty_head(self.superblock(), kind, (self.next, self.next_row), clock)
        }
    }

    /// The next stripe goes behind this one.
    fn advance(&mut self, sealed: &Sealed) {
        let stripe = sealed.stripe();
        self.previous = sealed.as_previous();
        self.said.clone_from(&stripe.recorded);
        if stripe.stripe.sub == 0 {
            self.slot_cid = self.previous.cid;
        }
        self.next_row = stripe.first_row + 1 + stripe.rows;
        self.next.sub += 1;
        if stripe.kind.closes_slot() || self.next_row == self.geometry().rows_per_slot() {
            self.next = StripeId { sequence: self.next.sequence + 1, sub: 0 };
            self.next_row = 0;
        }
    }

    /// A buffer of the writer's own. Writes under way bring one back.
    fn wait_for_buffer(
        &mut self,
        pool: fn(&Self) -> &Pool,
        clock: &dyn Clock,
    ) -> Result<Buffer, Error> {
        loop {
            if let Some(buffer) = pool(self).take() {
                return Ok(buffer);
            }
            self.poll_at_once(clock)?;
        }
    }

    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

/// A stripe on its way to the members.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    stripe: StripeId,
    /// Of its writes.
    number: u64,
    /// The watermark that its heads carry.
    told: StripeId,
}

impl InFlight {
    fn new(head: &StripeHead, number: u64) -> Self {
        Self { stripe: head.stripe, number, told: head.acknowledged }
    }
}

/// The watermark in the heads of the EPOCH stripe `epoch`: everything before.
fn told_by_epoch(epoch: StripeId) -> StripeId {
    StripeId { sequence: epoch.sequence - 1, sub: u16::MAX }
}

/// Parity columns, and single rows for heads without a body.
fn own_pools(geometry: &Geometry) -> Result<(Pool, Pool), Error> {
    let piece_bytes = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
    let columns = usize::from(geometry.columns());
    let parity_buffers = (usize::from(geometry.parity_columns) * SPARE_STRIPES).max(1);
    Ok((Pool::new(parity_buffers, piece_bytes)?, Pool::new(2 * columns, HEAD_BYTES)?))
}
