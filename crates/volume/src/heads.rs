//! Heads at their places: which stripes a slot holds, and whether their rows are whole.

use format::checksum::{RowAddress, body_crc};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, HeadKey, Kind, StripeId, VolumeId};
use format::superblock::Superblock;

/// How a member is read: a device opened for writing or for reading, as a function of offset and
/// buffer.
pub(crate) type ReadRows<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<(), device::Error>;

/// Reads the heads of one member and believes only those that are where they belong.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    read: ReadRows<'a>,
    geometry: &'a Geometry,
    volume_id: VolumeId,
    key: &'a HeadKey,
    member_uuid: [u8; 16],
}

impl core::fmt::Debug for Heads<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Heads").field("volume_id", &self.volume_id).finish_non_exhaustive()
    }
}

/// One stripe of a slot, as far as this member tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeInSlot {
    /// Its head.
    pub head: Head,
    /// Body rows whose checksum does not match, ascending.
    pub bad_rows: Vec<u16>,
    /// Acknowledged stripes between this one and the one before it have no readable head.
    pub behind_damage: bool,
}

/// What a slot holds of one sequence.
///
/// Above the watermark the first missing stripe ends the slot: what lies behind it was never
/// acknowledged or is of an older lap. At or below the watermark a missing stripe is damage, and
/// the walk goes on at the next head that fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The stripes with a readable head, in order.
    pub stripes: Vec<StripeInSlot>,
    /// First row behind them.
    pub next_row: u16,
    /// The last of them reaches to the end of the slot.
    pub closed: bool,
    /// A closing head whose rows behind it are not what it says: no end of its block in the slot's
    /// last row, or heads of the same sequence.
    pub closing_torn: bool,
}

impl<'a> Heads<'a> {
    pub(crate) fn new(read: ReadRows<'a>, superblock: &'a Superblock) -> Self {
        let member = superblock.members.get(usize::from(superblock.member));
        Self {
            read,
            geometry: &superblock.geometry,
            volume_id: superblock.volume_id,
            key: &superblock.head_key,
            member_uuid: member.expect("decoded superblocks name their own member").uuid,
        }
    }

    pub(crate) fn geometry(&self) -> &'a Geometry {
        self.geometry
    }

    /// Sequence of whatever stripe begins slot `slot`; `None` when nothing valid does.
    pub(crate) fn first_of_slot(&self, slot: u64) -> Option<Head> {
        let mut page = [0; HEAD_BYTES];
        (self.read)(self.geometry.slot_offset(slot), &mut page).ok()?;
        let head = self.decode(&page)?;
        let stripe = &head.stripe;
        // A misdirected write shows here: position and content disagree.
        let belongs = stripe.stripe.sub == 0
            && stripe.first_row == 0
            && self.geometry.slot(stripe.stripe.sequence) == slot;
        belongs.then_some(head)
    }

    /// The head in row `row` of the slot of `sequence`, if it is one of that sequence.
    pub(crate) fn head_at(&self, sequence: u64, row: u16) -> Option<Head> {
        let mut page = [0; HEAD_BYTES];
        let offset = self.geometry.slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES);
        (self.read)(offset, &mut page).ok()?;
        let head = self.decode(&page)?;
        let belongs = head.stripe.stripe.sequence == sequence && head.stripe.first_row == row;
        belongs.then_some(head)
    }

    /// Reads the whole slot of `sequence` into `buffer`. Where reading it in one go fails it is
    /// read row by row, so that an unreadable row costs only itself.
    ///
    /// # Panics
    /// When the buffer is not as long as a piece.
    pub(crate) fn read_slot(&self, slot: u64, buffer: &mut [u8]) {
        let offset = self.geometry.slot_offset(slot);
        if (self.read)(offset, buffer).is_ok() {
            return;
        }
        for (row, bytes) in buffer.chunks_exact_mut(HEAD_BYTES).enumerate() {
            let at = u64::try_from(row).expect("at most 512 rows") * u64::from(ROW_BYTES);
            if (self.read)(offset + at, bytes).is_err() {
                bytes.fill(0);
            }
        }
    }

    /// All heads in the rows of a slot that belong to that slot, whatever their sequence.
    pub(crate) fn all_in_slot(&self, slot: u64, buffer: &[u8]) -> Vec<Head> {
        let rows = buffer.chunks_exact(HEAD_BYTES).zip(0_u16..);
        rows.filter_map(|(bytes, row)| {
            let head = self.decode(bytes.first_chunk()?)?;
            let belongs = head.stripe.first_row == row
                && self.geometry.slot(head.stripe.stripe.sequence) == slot;
            belongs.then_some(head)
        })
        .collect()
    }

    /// Reads the slot of `sequence` and verifies every stripe of that sequence.
    pub(crate) fn walk_slot(
        &self,
        sequence: u64,
        acknowledged: StripeId,
        buffer: &mut [u8],
    ) -> Slot {
        self.read_slot(self.geometry.slot(sequence), buffer);
        let rows_per_slot = self.geometry.rows_per_slot();
        let mut slot =
            Slot { stripes: Vec::new(), next_row: 0, closed: false, closing_torn: false };
        while slot.next_row < rows_per_slot && !slot.closed {
            let Some((head, behind_damage)) = self.next_head(sequence, &slot, acknowledged, buffer)
            else {
                break;
            };
            let bad_rows = bad_rows(&head, buffer);
            slot.next_row = head.stripe.first_row + 1 + head.stripe.rows;
            slot.closed = slot.next_row == rows_per_slot;
            if head.stripe.kind.closes_slot() {
                slot.closed = true;
                slot.closing_torn = !has_trailer(&head, buffer)
                    || (slot.next_row..rows_per_slot)
                        .any(|row| self.head_in(buffer, row, sequence).is_some());
            }
            slot.stripes.push(StripeInSlot { head, bad_rows, behind_damage });
        }
        slot
    }

    /// The stripe behind those found so far: at the next row, or, where acknowledged stripes are
    /// damaged, at the first later row with a head that fits. One epoch writes a slot; only a
    /// VOID of a later mount may end it.
    fn next_head(
        &self,
        sequence: u64,
        slot: &Slot,
        acknowledged: StripeId,
        buffer: &[u8],
    ) -> Option<(Head, bool)> {
        let before = slot.stripes.last().map(|stripe| &stripe.head.stripe);
        let sub = before.map_or(0, |before| before.stripe.sub + 1);
        let continues = |head: &Head| {
            before.is_none_or(|before| {
                head.stripe.epoch == before.epoch
                    || (head.stripe.kind == Kind::Void && head.stripe.epoch > before.epoch)
            })
        };
        let expected = StripeId { sequence, sub };
        let head = self.head_in(buffer, slot.next_row, sequence);
        if let Some(head) = head.filter(|head| head.stripe.stripe == expected && continues(head)) {
            return Some((head, false));
        }
        if expected > acknowledged {
            return None;
        }
        (slot.next_row + 1..self.geometry.rows_per_slot())
            .filter_map(|row| self.head_in(buffer, row, sequence))
            .find(|head| head.stripe.stripe > expected && continues(head))
            .map(|head| (head, true))
    }

    /// The head in row `row`, if it is one of `sequence` and belongs there.
    fn head_in(&self, buffer: &[u8], row: u16, sequence: u64) -> Option<Head> {
        let at = usize::from(row) * HEAD_BYTES;
        let head = self.decode(buffer.get(at..)?.first_chunk()?)?;
        let belongs = head.stripe.stripe.sequence == sequence && head.stripe.first_row == row;
        belongs.then_some(head)
    }

    fn decode(&self, page: &[u8; HEAD_BYTES]) -> Option<Head> {
        let head = Head::decode(page, Some(self.key)).ok()?;
        let ours = head.stripe.volume_id == self.volume_id
            && head.stripe.geometry == *self.geometry
            && head.piece.member_uuid == self.member_uuid;
        ours.then_some(head)
    }
}

/// Body rows of this stripe whose address-seeded checksum does not match; all of them when the rows
/// match but the body as a whole does not agree with the manifest.
fn bad_rows(head: &Head, slot: &[u8]) -> Vec<u16> {
    let first = usize::from(head.stripe.first_row) + 1;
    let rows = slot.chunks_exact(HEAD_BYTES).skip(first).zip(&head.piece.row_crcs);
    let address = row_address(head);
    let bad: Vec<u16> = (0..)
        .zip(rows)
        .filter(|&(row, (bytes, &crc))| address.row_crc(row, bytes) != crc)
        .map(|(row, _)| row)
        .collect();
    let column = usize::from(head.piece.column);
    let whole = body_in(head, slot).map(body_crc) == head.stripe.manifest.get(column).copied();
    if bad.is_empty() && !whole { (0..head.stripe.rows).collect() } else { bad }
}

/// The body of a stripe within the bytes of its slot.
pub(crate) fn body_in<'a>(head: &Head, slot: &'a [u8]) -> Option<&'a [u8]> {
    let begin = (usize::from(head.stripe.first_row) + 1) * HEAD_BYTES;
    slot.get(begin..begin + usize::from(head.stripe.rows) * HEAD_BYTES)
}

pub(crate) fn row_address(head: &Head) -> RowAddress {
    RowAddress {
        epoch: head.stripe.epoch,
        sequence: head.stripe.stripe.sequence,
        sub: head.stripe.stripe.sub,
        column: head.piece.column,
    }
}

/// Whether the block that a closing head opens also ends, in the last bytes of the slot.
fn has_trailer(head: &Head, slot: &[u8]) -> bool {
    debug_assert!(matches!(head.stripe.kind, Kind::Void | Kind::Epoch));
    slot.last_chunk() == Some(&head.stripe.local_block_bytes().to_le_bytes())
}
