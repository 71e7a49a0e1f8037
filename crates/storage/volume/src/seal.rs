//! Sealing: the heads of a stripe's pieces, from one common part.

use device::{Pool, Shared};
use encryption::Place;
use format::checksum::{RowAddress, body_crc};
use format::geometry::ROW_BYTES;
use format::head::{HEAD_BYTES, Head, Kind, PieceHead, StripeHead, StripeId, Totals};
use format::superblock::Superblock;
use units::{Clock, MemberId, Timestamp};

use crate::Error;

/// What the next head repeats of the stripe before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Previous {
    /// Its identity.
    pub stripe: StripeId,
    /// Hash of the common part of its heads.
    pub cid: [u8; 32],
    /// Checksums of its bodies, by column.
    pub manifest: Vec<u64>,
}

/// A head without what depends on a body.
pub fn empty_head(
    superblock: &Superblock,
    kind: Kind,
    (stripe, first_row): (StripeId, u16),
    clock: &dyn Clock,
) -> StripeHead {
    let geometry = superblock.geometry_at(stripe.sequence);
    let columns = usize::from(geometry.columns());
    StripeHead {
        volume_id: superblock.volume_id,
        geometry,
        kind,
        clean_stop: false,
        extra_blocks: false,
        key_id: None,
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
        manifest: vec![body_crc(&[]); columns],
        previous_manifest: Vec::new(),
        recorded: None,
    }
}

/// A stripe whose common part is complete.
#[derive(Debug)]
pub struct Sealed {
    head: Head,
}

impl Sealed {
    /// Of this common part.
    pub fn new(stripe: StripeHead) -> Self {
        let piece = PieceHead {
            member: MemberId(0),
            column: 0,
            packets: 0,
            member_uuid: [0; 16],
            row_crcs: Vec::new(),
        };
        Self { head: Head::new(stripe, piece) }
    }

    /// That common part.
    pub fn stripe(&self) -> &StripeHead {
        &self.head.stripe
    }

    /// What the next head repeats of this one.
    pub fn as_previous(&self) -> Previous {
        let Head { stripe, cid, .. } = &self.head;
        Previous { stripe: stripe.stripe, cid: *cid, manifest: stripe.manifest.clone() }
    }

    /// The head of one column's piece as it lies on the disk.
    pub fn page(
        &self,
        superblock: &Superblock,
        column: u8,
        packets: u32,
        row_crcs: Vec<u32>,
    ) -> [u8; HEAD_BYTES] {
        let stripe = self.head.stripe.clone();
        let member = stripe.geometry.member_of(stripe.stripe.sequence, column);
        let entry = superblock.members.get(member.place()).expect("a column has its member");
        let member_uuid = entry.uuid;
        let piece = PieceHead { member, column, packets, member_uuid, row_crcs };
        Head { stripe, piece, cid: self.head.cid }.encode(&superblock.head_key)
    }
}

/// Where the rows of a stripe's first column lie, for their checksums.
pub fn address(stripe: &StripeHead) -> RowAddress {
    RowAddress {
        epoch: stripe.epoch,
        sequence: stripe.stripe.sequence,
        sub: stripe.stripe.sub,
        column: 0,
    }
}

/// Which body it is, for its key.
pub fn place_of(stripe: &StripeHead, column: u8) -> Place {
    Place {
        volume_id: stripe.volume_id.0,
        sequence: stripe.stripe.sequence,
        sub: stripe.stripe.sub,
        column,
        len: HEAD_BYTES * usize::from(stripe.rows),
    }
}

/// Checksums of the rows of a body.
pub(crate) fn row_crcs(stripe: &StripeHead, column: u8, body: &[u8]) -> Vec<u32> {
    let address = RowAddress { column, ..address(stripe) };
    (0..)
        .zip(body.chunks_exact(HEAD_BYTES))
        .map(|(row, bytes)| address.row_crc(row, bytes))
        .collect()
}

/// Byte offset of a row of a slot on every member.
pub fn row_offset(stripe: &StripeHead, row: u16) -> u64 {
    stripe.geometry.slot_offset(stripe.stripe.sequence) + u64::from(row) * u64::from(ROW_BYTES)
}

/// The rows behind a head that closes its slot before the last row, for all members.
pub fn rest(stripe: &StripeHead) -> Result<Shared, Error> {
    let bytes = to_slot_end(stripe, None, stripe.first_row + 1);
    let mut buffer = Pool::new(1, bytes.len())?.take().expect("it was just made");
    buffer.copy_from_slice(&bytes);
    Ok(buffer.freeze())
}

/// The rows from `from_row` to the end of the slot of a closing head, with its page in front if
/// `page` is given: zeros, and the end of the block.
pub fn to_slot_end(stripe: &StripeHead, page: Option<&[u8; HEAD_BYTES]>, from_row: u16) -> Vec<u8> {
    let rows = usize::from(stripe.geometry.rows_per_slot() - from_row);
    let mut bytes = vec![0; rows * HEAD_BYTES];
    if let Some(end) = bytes.last_chunk_mut() {
        *end = stripe.local_block_bytes().to_le_bytes();
    }
    if let Some(page) = page {
        bytes.get_mut(..HEAD_BYTES).expect("at least one row").copy_from_slice(page);
    }
    bytes
}
