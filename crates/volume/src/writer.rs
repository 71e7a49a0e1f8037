//! Appending stripes and acknowledging them in order.
//!
//! A piece is placed in the current slot if it fits behind what is there, else in the next slot.
//! Its head carries the watermark of the moment; body and head go out as one write. Writes complete
//! in any order; a flush makes durable what had completed before it began; the watermark rises over
//! the longest run of durable stripes. At most W stripes, over at most W slots, are unacknowledged:
//! recovery relies on it.

use std::collections::VecDeque;

use core::time::Duration;

use device::{Buffer, Completion, Device, Shared};
use format::checksum::body_crc;
use format::geometry::Geometry;
use format::head::{HEAD_BYTES, Head, Kind, PieceHead, StripeHead, StripeId, Totals};
use format::superblock::Superblock;
use units::{Clock, Timestamp};

use crate::Error;
use crate::heads::row_address;
use crate::reader::tail_behind;

/// Rows that are not worth a stripe of their own: a head and one body row need two.
const ROWS_TOO_FEW: u16 = 2;
/// Longest time that a completed write waits for others to share its flush.
const FLUSH_AFTER_NS: i64 = 20_000_000;

/// A sealed-to-be piece: a body in a column, padded to whole rows.
#[derive(Debug)]
pub struct Filled {
    /// The column: one row for the head, then the body.
    pub column: Buffer,
    /// What it holds.
    pub kind: Kind,
    /// Body rows.
    pub rows: u16,
    /// Packets of the piece, and losses since the stripe before.
    pub totals: Totals,
    /// Earliest packet; `Timestamp::MAX` without packets.
    pub time_min: Timestamp,
    /// Latest packet; `Timestamp::MIN` without packets.
    pub time_max: Timestamp,
}

impl Filled {
    /// A piece that holds no packets.
    pub fn without_packets(column: Buffer, kind: Kind, rows: u16) -> Self {
        let (time_min, time_max) = (Timestamp::MAX, Timestamp::MIN);
        Self { column, kind, rows, totals: Totals::default(), time_min, time_max }
    }
}

/// Where the next piece of a given size would go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Body rows to pad it to: more than asked for when the rest of the slot would be useless.
    pub rows: u16,
    /// Body rows still free in the current slot; fewer than `rows` means that a new slot begins.
    pub room: u16,
}

/// A piece on its way to the member.
#[derive(Clone, Debug)]
pub struct Appended {
    /// Its place.
    pub stripe: StripeId,
    /// The sealed column, read-only; the session table reads it while it is warm.
    pub column: Shared,
    /// Bytes of head and body.
    pub len: usize,
}

/// What a writer has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriterCounters {
    /// Stripes submitted.
    pub stripes: u64,
    /// Bytes sent to the member, heads included.
    pub bytes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Longest time from submission to completion of a write.
    pub write_latency_ns_max: u64,
    /// Rows left unused where a slot was closed early.
    pub closed_rows: u64,
}

/// What the next head repeats of the stripe before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Previous {
    pub(crate) stripe: StripeId,
    pub(crate) cid: [u8; 32],
    pub(crate) manifest: Vec<u64>,
}

#[derive(Debug)]
struct InFlight {
    stripe: StripeId,
    token: u64,
    written: bool,
    durable: bool,
}

#[derive(Debug)]
struct Flush {
    token: u64,
    /// Stripes whose writes had completed when it began.
    covers: Vec<u64>,
}

/// The only one who writes to an open volume.
#[derive(Debug)]
pub struct Writer {
    device: Box<dyn Device>,
    superblock: Superblock,
    epoch: u32,
    next: StripeId,
    next_row: u16,
    previous: Previous,
    index: StripeId,
    acknowledged: StripeId,
    in_flight: VecDeque<InFlight>,
    flush: Option<Flush>,
    oldest_unflushed_ns: Option<i64>,
    next_token: u64,
    counters: WriterCounters,
    failure: Option<device::Error>,
    completions: Vec<Completion>,
}

impl Writer {
    /// A writer behind the EPOCH stripe `previous`, which a mount has made durable.
    pub(crate) fn new(
        device: Box<dyn Device>,
        superblock: Superblock,
        previous: Previous,
        index: StripeId,
    ) -> Self {
        let epoch = superblock.joined_epoch;
        let acknowledged = previous.stripe;
        Self {
            device,
            superblock,
            epoch,
            next: StripeId { sequence: acknowledged.sequence + 1, sub: 0 },
            next_row: 0,
            previous,
            index,
            acknowledged,
            in_flight: VecDeque::new(),
            flush: None,
            oldest_unflushed_ns: None,
            next_token: 0,
            counters: WriterCounters::default(),
            failure: None,
            completions: Vec::new(),
        }
    }

    /// Shape of the volume.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }

    /// The superblock as joined.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Number of this opening.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Everything up to here is durable.
    pub fn acknowledged(&self) -> StripeId {
        self.acknowledged
    }

    /// Oldest sequence that the ring holds for certain.
    pub fn tail(&self) -> u64 {
        tail_behind(self.next.sequence, &self.superblock)
    }

    /// Stripes not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.in_flight.len()
    }

    /// Writes and flushes under way. Fewer than are unacknowledged while a flush is not yet due:
    /// then there is nothing to wait for but the time.
    pub fn in_flight(&self) -> usize {
        self.device.in_flight()
    }

    /// What was done so far.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// Messages of the device for the user.
    pub fn notes(&self) -> &[String] {
        self.device.notes()
    }

    /// First part of the newest INDEX that was appended or found.
    pub fn newest_index(&self) -> StripeId {
        self.index
    }

    /// Names the INDEX that following heads point to.
    pub fn set_newest_index(&mut self, first_part: StripeId) {
        self.index = first_part;
    }

    /// Where a piece of `rows` body rows would go.
    pub fn plan(&self, rows: u16) -> Plan {
        let slot = self.geometry().rows_per_slot();
        let room = (slot - self.next_row).saturating_sub(1);
        let target = if rows <= room { room } else { slot - 1 };
        let left = target - rows.min(target);
        Plan { rows: if left < ROWS_TOO_FEW { target.max(rows) } else { rows }, room }
    }

    /// Whether another stripe may be submitted now without exceeding the window.
    pub fn has_room_in_window(&self) -> bool {
        let window = u64::from(self.superblock.window);
        let reach = self.next.sequence - self.acknowledged.sequence;
        self.in_flight.len() < usize::from(self.superblock.window) && reach <= window
    }

    /// Seals and submits one piece; waits while the window is full.
    ///
    /// # Panics
    /// When the rows do not fit the column or a slot.
    pub fn append(&mut self, filled: Filled, clock: &dyn Clock) -> Result<Appended, Error> {
        self.check_latch()?;
        if filled.rows > self.plan(0).room {
            self.close_slot(clock, false)?;
        }
        while !self.has_room_in_window() {
            self.poll_at_once(clock)?;
        }
        let stripe = self.next;
        let Filled { mut column, kind, rows, totals, time_min, time_max } = filled;
        let len = HEAD_BYTES * (1 + usize::from(rows));
        let body = column.get(HEAD_BYTES..len).expect("the rows lie inside the column");
        let mut head = self.stripe_head(kind, rows, clock);
        (head.totals, head.time_min, head.time_max) = (totals, time_min, time_max);
        head.manifest = vec![body_crc(body)];
        let head = self.seal(head, u32::try_from(totals.packets).unwrap_or(u32::MAX), body);
        let page = head.encode(&self.superblock.head_key);
        column.get_mut(..HEAD_BYTES).expect("a column begins with a head").copy_from_slice(&page);
        let offset = self.geometry().slot_offset(stripe.sequence)
            + u64::from(head.stripe.first_row) * u64::try_from(HEAD_BYTES).expect("4096 fits");
        let column = column.freeze();
        let token = self.token();
        self.device.submit_write(token, offset, column.clone(), len);
        self.in_flight.push_back(InFlight { stripe, token, written: false, durable: false });
        self.counters.stripes += 1;
        self.counters.bytes += u64::try_from(len).expect("lengths fit 64 bits");
        self.advance(&head);
        self.poll(None, clock)?;
        Ok(Appended { stripe, column, len })
    }

    /// Takes completions, starts a flush when one is due, and raises the watermark. With a wait it
    /// returns when something completed or the time is over.
    pub fn poll(&mut self, wait: Option<Duration>, clock: &dyn Clock) -> Result<(), Error> {
        let mut completions = core::mem::take(&mut self.completions);
        self.device.reap(wait, &mut completions);
        for completion in completions.drain(..) {
            self.complete(completion, clock);
        }
        self.completions = completions;
        self.check_latch()?;
        self.start_flush(clock);
        Ok(())
    }

    /// Waits until everything appended is acknowledged.
    pub fn drain(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        while !self.in_flight.is_empty() {
            self.poll_at_once(clock)?;
        }
        Ok(())
    }

    /// As [`Writer::poll`] for somebody who waits for the watermark: any flush is due now.
    fn poll_at_once(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        self.oldest_unflushed_ns = self.oldest_unflushed_ns.map(|_| i64::MIN);
        self.poll(Some(Duration::from_millis(100)), clock)
    }

    /// Orderly end: everything is acknowledged, and a closing head says so for good.
    pub fn close(mut self, clock: &dyn Clock) -> Result<WriterCounters, Error> {
        self.drain(clock)?;
        self.close_slot(clock, true)?;
        self.device.flush()?;
        Ok(self.counters)
    }

    fn complete(&mut self, completion: Completion, clock: &dyn Clock) {
        if let Err(error) = completion.result {
            self.failure.get_or_insert(error);
            return;
        }
        if let Some(flush) = self.flush.take_if(|flush| flush.token == completion.token) {
            self.counters.flushes += 1;
            for stripe in &mut self.in_flight {
                stripe.durable |= flush.covers.contains(&stripe.token);
            }
            while let Some(first) = self.in_flight.pop_front_if(|first| first.durable) {
                assert!(first.stripe > self.acknowledged, "the watermark only rises");
                self.acknowledged = first.stripe;
            }
            return;
        }
        let latency = &mut self.counters.write_latency_ns_max;
        *latency = completion.latency_ns.max(*latency);
        let stripe = self.in_flight.iter_mut().find(|stripe| stripe.token == completion.token);
        stripe.expect("a completion belongs to a stripe in flight").written = true;
        self.oldest_unflushed_ns.get_or_insert(clock.boottime_ns());
    }

    /// One flush at a time; due when enough has gathered, or the oldest write has waited for it.
    fn start_flush(&mut self, clock: &dyn Clock) {
        let Some(oldest) = self.oldest_unflushed_ns else { return };
        if self.flush.is_some() {
            return;
        }
        let covers: Vec<u64> = self
            .in_flight
            .iter()
            .filter(|stripe| stripe.written && !stripe.durable)
            .map(|stripe| stripe.token)
            .collect();
        let enough = covers.len() >= usize::from(self.superblock.window).div_ceil(4);
        let waited = clock.boottime_ns().saturating_sub(oldest) >= FLUSH_AFTER_NS;
        if enough || waited {
            let token = self.token();
            self.device.submit_flush(token);
            self.flush = Some(Flush { token, covers });
            self.oldest_unflushed_ns = None;
        }
    }

    /// Leaves the current slot: a VOID head behind its last stripe, whose block reaches to the
    /// slot's end. Two rows, the end of the block first.
    fn close_slot(&mut self, clock: &dyn Clock, clean_stop: bool) -> Result<(), Error> {
        self.counters.closed_rows += u64::from(self.geometry().rows_per_slot() - self.next_row);
        let mut head = self.stripe_head(Kind::Void, 0, clock);
        head.clean_stop = clean_stop;
        head.manifest = vec![body_crc(&[])];
        let head = self.seal(head, 0, &[]);
        write_closing(self.device.as_mut(), &self.superblock, &head)?;
        self.advance(&head);
        Ok(())
    }

    /// The common part of the next head, without what depends on its body.
    fn stripe_head(&self, kind: Kind, rows: u16, clock: &dyn Clock) -> StripeHead {
        StripeHead {
            volume_id: self.superblock.volume_id,
            geometry: self.superblock.geometry,
            kind,
            clean_stop: false,
            epoch: self.epoch,
            stripe: self.next,
            first_row: self.next_row,
            rows,
            acknowledged: self.acknowledged,
            previous: self.previous.stripe,
            index: self.index,
            time_min: Timestamp::MAX,
            time_max: Timestamp::MIN,
            realtime: clock.realtime(),
            boottime_ns: clock.boottime_ns(),
            totals: Totals::default(),
            previous_cid: self.previous.cid,
            manifest: Vec::new(),
            previous_manifest: self.previous.manifest.clone(),
        }
    }

    fn seal(&self, stripe: StripeHead, packets: u32, body: &[u8]) -> Head {
        seal(&self.superblock, stripe, packets, body)
    }

    /// The next stripe goes behind this one.
    fn advance(&mut self, head: &Head) {
        let stripe = &head.stripe;
        self.previous =
            Previous { stripe: stripe.stripe, cid: head.cid, manifest: stripe.manifest.clone() };
        self.next_row = stripe.first_row + 1 + stripe.rows;
        self.next.sub += 1;
        if stripe.kind.closes_slot() || self.next_row == self.geometry().rows_per_slot() {
            self.next = StripeId { sequence: self.next.sequence + 1, sub: 0 };
            self.next_row = 0;
        }
    }

    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    fn check_latch(&self) -> Result<(), Error> {
        self.failure.clone().map_or(Ok(()), |failure| Err(Error::Device(failure)))
    }
}

/// The head of this member's piece of a stripe.
pub(crate) fn seal(superblock: &Superblock, stripe: StripeHead, packets: u32, body: &[u8]) -> Head {
    let member = superblock.member;
    let entry = superblock.members.get(usize::from(member)).expect("a member knows itself");
    let piece =
        PieceHead { member, column: 0, packets, member_uuid: entry.uuid, row_crcs: Vec::new() };
    let mut head = Head::new(stripe, piece);
    let address = row_address(&head);
    let rows = (0..).zip(body.chunks_exact(HEAD_BYTES));
    head.piece.row_crcs = rows.map(|(row, bytes)| address.row_crc(row, bytes)).collect();
    head
}

/// Writes a closing head and the end of its block: enough for a writer, who knows that only an
/// older lap lies between the two. The end goes first. Not durable before a flush.
fn write_closing(
    device: &mut dyn Device,
    superblock: &Superblock,
    head: &Head,
) -> Result<(), Error> {
    let geometry = &superblock.geometry;
    let row_bytes = u64::try_from(HEAD_BYTES).expect("4096 fits");
    let slot = geometry.slot_offset(head.stripe.stripe.sequence);
    let last_row = geometry.rows_per_slot() - 1;
    if head.stripe.first_row < last_row {
        let mut row = [0; HEAD_BYTES];
        let trailer = head.stripe.local_block_bytes().to_le_bytes();
        *row.last_chunk_mut().expect("a row has 4 bytes") = trailer;
        device.write_at(slot + u64::from(last_row) * row_bytes, &row)?;
    }
    let page = head.encode(&superblock.head_key);
    device.write_at(slot + u64::from(head.stripe.first_row) * row_bytes, &page)?;
    Ok(())
}
