//! Opening a volume for writing after anything: a stop, a kill, a power cut, a crash inside this.
//!
//! The steps are those of docs/format.md, Mount; every one may be interrupted and repeated:
//!
//! 0. flush what a killed writer left in the device's cache, so that what is judged stays as it is;
//! 1. read the superblock;
//! 2. find the newest head and the watermark;
//! 3. PREPARE: a new epoch number, durable before anything else is written;
//! 4. judge what lies above the watermark, and nothing else: whole stripes stay, behind the first
//!    stripe of a slot that is not whole a VOID head closes the slot;
//! 5. EPOCH: a stripe in a fresh slot that carries the watermark of everything kept;
//! 6. JOIN: the superblock names the epoch; only now may data be shown or acknowledged.

use device::Device;
use format::head::{HEAD_BYTES, Head, Kind, StripeHead, StripeId, Totals};
use format::superblock::Superblock;
use units::{Clock, Timestamp};

use crate::heads::{Heads, Slot};
use crate::reader::known;
use crate::search::{self, Newest};
use crate::writer::{Previous, Writer, seal};
use crate::{Error, superblocks};

/// What a mount found and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// The last writer stopped in order.
    pub clean: bool,
    /// Whole stripes above the watermark that were kept.
    pub kept: u64,
    /// Slots closed because what followed was not whole.
    pub voided: u64,
    /// Acknowledged stripes that are damaged or missing; left as they are.
    pub damaged: u64,
    /// The newest sign of life before this mount; `None` on a new volume.
    pub last_alive: Option<Timestamp>,
    /// Every slot was read, because the search contradicted itself.
    pub scanned_all: bool,
}

/// Recovers the ring on `device` and opens it for writing.
pub fn mount(mut device: Box<dyn Device>, clock: &dyn Clock) -> Result<(Writer, Recovery), Error> {
    device.flush()?;
    let superblock =
        superblocks::load(&|offset, into| device.read_at(offset, into), device.size_bytes())?;
    let found = find_newest(device.as_ref(), &superblock)?;
    let epochs = [superblock.prepared_epoch, superblock.joined_epoch];
    let seen = found.as_ref().map_or(0, |newest| newest.epoch);
    let epoch = epochs.into_iter().fold(seen, u32::max) + 1;
    let prepared = Superblock { prepared_epoch: epoch, ..superblock.successor() };
    superblocks::store(device.as_mut(), &prepared)?;

    let judged = match &found {
        Some(newest) => judge(device.as_mut(), &prepared, newest, clock)?,
        None => Judged::of_fresh_ring(&prepared),
    };
    let previous = write_epoch(device.as_mut(), &prepared, &judged, clock)?;
    device.flush()?;
    let joined_start = previous.stripe.sequence;
    let joined = Superblock { joined_epoch: epoch, joined_start, ..prepared.successor() };
    superblocks::store(device.as_mut(), &joined)?;
    Ok((Writer::new(device, joined, previous, judged.index), judged.recovery))
}

fn find_newest(device: &dyn Device, superblock: &Superblock) -> Result<Option<Newest>, Error> {
    if !known(superblock).ever_prepared {
        return Ok(None);
    }
    let read = |offset: u64, into: &mut [u8]| device.read_at(offset, into);
    let heads = Heads::new(&read, superblock);
    let known = known(superblock);
    let mut buffer = piece_buffer(superblock);
    // Without any readable first head a later stripe may still have landed in the first slots.
    let fresh = superblock.geometry.slots;
    let newest = search::newest(&heads, known)?.unwrap_or(Newest {
        sequence: fresh,
        acknowledged: StripeId::default(),
        epoch: 0,
        scanned_all: false,
    });
    let newest = search::newest_in_all_rows(&heads, known, newest, &mut buffer);
    Ok((newest.epoch > 0).then_some(newest))
}

fn piece_buffer(superblock: &Superblock) -> Vec<u8> {
    vec![0; usize::try_from(superblock.geometry.piece_bytes).expect("at most 2 MiB")]
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
        let last = StripeId { sequence: superblock.geometry.slots - 1, sub: u16::MAX };
        Self { last, index: StripeId::default(), recovery: Recovery::default() }
    }
}

fn judge(
    device: &mut dyn Device,
    superblock: &Superblock,
    newest: &Newest,
    clock: &dyn Clock,
) -> Result<Judged, Error> {
    let reach = 2 * u64::from(superblock.window);
    let lowest = superblock.geometry.slots.max(newest.sequence.saturating_sub(reach));
    let mut judged = Judged::of_fresh_ring(superblock);
    judged.recovery.scanned_all = newest.scanned_all;
    let mut buffer = piece_buffer(superblock);
    for sequence in newest.acknowledged.sequence.max(lowest)..=newest.sequence {
        let slot = {
            let read = |offset: u64, into: &mut [u8]| device.read_at(offset, into);
            Heads::new(&read, superblock).walk_slot(sequence, newest.acknowledged, &mut buffer)
        };
        let verdict = Verdict::of(sequence, &slot, newest.acknowledged);
        judged.note(&slot, &verdict);
        if let Some((stripe, row)) = verdict.void {
            let head = closing_head(superblock, Kind::Void, stripe, row, clock);
            let acknowledged = newest.acknowledged;
            let head = StripeHead { acknowledged, index: judged.index, ..head };
            let head = seal(superblock, head, 0, &[]);
            write_to_slot_end(device, superblock, &head, row)?;
        } else if let Some(closing) = slot.stripes.last().filter(|_| slot.closing_torn) {
            let behind = closing.head.stripe.first_row + 1;
            write_to_slot_end(device, superblock, &closing.head, behind)?;
        }
    }
    device.flush()?;
    judged.last = StripeId { sequence: newest.sequence, sub: u16::MAX };
    Ok(judged)
}

impl Judged {
    fn note(&mut self, slot: &Slot, verdict: &Verdict) {
        let recovery = &mut self.recovery;
        recovery.kept += verdict.kept;
        recovery.damaged += verdict.damaged;
        recovery.voided += u64::from(verdict.void.is_some());
        let alive = slot.stripes.iter().map(|stripe| Some(stripe.head.stripe.realtime)).max();
        recovery.last_alive = recovery.last_alive.max(alive.flatten());
        let whole = slot.stripes.get(..verdict.stripes).and_then(<[_]>::last);
        recovery.clean = whole.is_some_and(|stripe| stripe.head.stripe.clean_stop);
        self.index = whole.map_or(self.index, |stripe| stripe.head.stripe.index);
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
    fn of(sequence: u64, slot: &Slot, acknowledged: StripeId) -> Self {
        let mut verdict = Self { stripes: 0, kept: 0, damaged: 0, void: None };
        let mut next = StripeId { sequence, sub: 0 };
        for stripe in &slot.stripes {
            let (id, first_row) = (stripe.head.stripe.stripe, stripe.head.stripe.first_row);
            let above = id > acknowledged;
            verdict.damaged += u64::from(stripe.behind_damage);
            if above && (!stripe.bad_rows.is_empty() || stripe.behind_damage) {
                // Behind damage the length of what was acknowledged is unknown; this head is surely
                // beyond it.
                let first_above =
                    if acknowledged.sequence == sequence { acknowledged.sub + 1 } else { 0 };
                let sub = if stripe.behind_damage { first_above } else { id.sub };
                verdict.void = Some((StripeId { sequence, sub }, first_row));
                return verdict;
            }
            verdict.stripes += 1;
            verdict.kept += u64::from(above);
            verdict.damaged += u64::from(!stripe.bad_rows.is_empty());
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

/// Writes the rows from `from_row` to the end of the slot of a closing head in one go, the head
/// included when it lies there: nothing of the slot's earlier contents stays behind a closing head
/// of a mount, or it might come back when that head rots.
fn write_to_slot_end(
    device: &mut dyn Device,
    superblock: &Superblock,
    head: &Head,
    from_row: u16,
) -> Result<(), Error> {
    let rows = usize::from(superblock.geometry.rows_per_slot() - from_row);
    let mut bytes = vec![0; rows * HEAD_BYTES];
    if let Some(end) = bytes.last_chunk_mut() {
        *end = head.stripe.local_block_bytes().to_le_bytes();
    }
    if from_row == head.stripe.first_row {
        let page = head.encode(&superblock.head_key);
        bytes.get_mut(..HEAD_BYTES).expect("at least one row").copy_from_slice(&page);
    }
    let row_bytes = u64::try_from(HEAD_BYTES).expect("4096 fits");
    let slot = superblock.geometry.slot_offset(head.stripe.stripe.sequence);
    device.write_at(slot + u64::from(from_row) * row_bytes, &bytes)?;
    Ok(())
}

/// A head of the new epoch that closes a slot and has no stripe before it to repeat.
fn closing_head(
    superblock: &Superblock,
    kind: Kind,
    stripe: StripeId,
    first_row: u16,
    clock: &dyn Clock,
) -> StripeHead {
    StripeHead {
        volume_id: superblock.volume_id,
        geometry: superblock.geometry,
        kind,
        clean_stop: false,
        epoch: superblock.prepared_epoch,
        stripe,
        first_row,
        rows: 0,
        acknowledged: StripeId::default(),
        previous: StripeId::default(),
        index: StripeId::default(),
        time_min: Timestamp::MAX,
        time_max: Timestamp::MIN,
        realtime: clock.realtime(),
        boottime_ns: clock.boottime_ns(),
        totals: Totals::default(),
        previous_cid: [0; 32],
        manifest: vec![format::checksum::body_crc(&[])],
        previous_manifest: Vec::new(),
    }
}

fn write_epoch(
    device: &mut dyn Device,
    superblock: &Superblock,
    judged: &Judged,
    clock: &dyn Clock,
) -> Result<Previous, Error> {
    let stripe = StripeId { sequence: judged.last.sequence + 1, sub: 0 };
    // The watermark covers everything that this mount is about to show.
    let head = StripeHead {
        acknowledged: judged.last,
        index: judged.index,
        ..closing_head(superblock, Kind::Epoch, stripe, 0, clock)
    };
    let head = seal(superblock, head, 0, &[]);
    write_to_slot_end(device, superblock, &head, 0)?;
    Ok(Previous { stripe, cid: head.cid, manifest: head.stripe.manifest })
}
