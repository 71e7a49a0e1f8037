//! Heads at their places: reading them, and believing only those that are where they belong.

use core::ops::Range;

use format::checksum::{RowAddress, body_crc};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, Kind, StripeHead};

use crate::membership::Membership;

/// A member is absent or could not be read there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable;

/// How members are read, whether opened for writing or for reading: member, offset, buffer.
pub(crate) type ReadRows<'a> = &'a dyn Fn(u8, u64, &mut [u8]) -> Result<(), Unreadable>;

/// What will be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'e> {
    pub(crate) members: &'e [u8],
    /// On each of them.
    pub(crate) offsets: &'e [u64],
    /// Bytes at each offset.
    pub(crate) len: usize,
}

/// Reads ahead.
pub(crate) type Fetch<'a> = &'a dyn Fn(Expected<'_>);

/// Reads the heads of a volume.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a> {
    read: ReadRows<'a>,
    fetch: Option<Fetch<'a>>,
    membership: &'a Membership,
}

impl<'a> Heads<'a> {
    pub(crate) fn new(read: ReadRows<'a>, membership: &'a Membership) -> Self {
        Self { read, fetch: None, membership }
    }

    /// The same, of members that answer many reads at a time in hardly more time than one.
    pub(crate) fn fetched_by(self, fetch: Fetch<'a>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// Whether asking for many heads at once is worth it.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.fetch.is_some()
    }

    /// The first heads of these slots will be asked for.
    pub(crate) fn expect(&self, slots: &[u64]) {
        if self.fetch.is_none() {
            return;
        }
        let present = self.membership.present();
        let members: Vec<u8> = present.filter(|&it| self.membership.is_fresh(it)).collect();
        let offsets: Vec<u64> =
            slots.iter().map(|&slot| self.geometry().slot_offset(slot)).collect();
        self.fetch(Expected { members: &members, offsets: &offsets, len: HEAD_BYTES });
    }

    /// The slot of `sequence` will be read from all members at hand.
    pub(crate) fn expect_slot(&self, sequence: u64) {
        let geometry = self.geometry();
        let members: Vec<u8> = self.membership.present().collect();
        let len = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
        let offset = geometry.slot_offset(sequence);
        self.fetch(Expected { members: &members, offsets: &[offset], len });
    }

    fn fetch(&self, expected: Expected<'_>) {
        if let Some(fetch) = self.fetch {
            fetch(expected);
        }
    }

    pub(crate) fn geometry(&self) -> &'a Geometry {
        self.membership.geometry()
    }

    pub(crate) fn membership(&self) -> &'a Membership {
        self.membership
    }

    /// Head of whatever stripe begins slot `slot`, the newest that a fresh member shows; `None`
    /// when nothing valid does.
    pub(crate) fn first_of_slot(&self, slot: u64) -> Option<Head> {
        self.expect(&[slot]);
        let heads = self.membership.present().filter_map(|member| self.first_on(member, slot));
        heads.max_by_key(|head| head.stripe.stripe)
    }

    /// The same as one member shows it, if it is fresh.
    pub(crate) fn first_on(&self, member: u8, slot: u64) -> Option<Head> {
        if !self.membership.is_fresh(member) {
            return None;
        }
        let mut page = [0; HEAD_BYTES];
        (self.read)(member, self.geometry().slot_offset(slot), &mut page).ok()?;
        let head = self.decode(member, &page)?;
        // A misdirected write shows here: position and content disagree.
        let belongs = head.stripe.stripe.sub == 0
            && head.stripe.first_row == 0
            && self.geometry().slot(head.stripe.stripe.sequence) == slot;
        (belongs && self.counts(&head)).then_some(head)
    }

    /// The head in row `row` of the slot of `sequence`, as any fresh member shows it.
    pub(crate) fn head_at(&self, sequence: u64, row: u16) -> Option<Head> {
        let offset = self.geometry().slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES);
        let mut fresh =
            self.membership.present().filter(|&member| self.membership.is_fresh(member));
        fresh.find_map(|member| {
            let mut page = [0; HEAD_BYTES];
            (self.read)(member, offset, &mut page).ok()?;
            let head = self.decode(member, &page)?;
            let belongs = head.stripe.stripe.sequence == sequence && head.stripe.first_row == row;
            (belongs && self.counts(&head)).then_some(head)
        })
    }

    /// Whether what a head says counts by itself: it lies outside the gap of its member. Inside,
    /// its piece still serves when others that count have the same identity.
    pub(crate) fn counts(&self, head: &Head) -> bool {
        self.membership.is_whole_at(head.piece.member, head.stripe.stripe.sequence)
    }

    /// The last row of the slot of `sequence` on one member.
    pub(crate) fn last_row(
        &self,
        member: u8,
        sequence: u64,
        into: &mut [u8; HEAD_BYTES],
    ) -> Option<()> {
        let last = u64::from(self.geometry().piece_bytes - ROW_BYTES);
        (self.read)(member, self.geometry().slot_offset(sequence) + last, into).ok()
    }

    /// Whether as many members as there are data columns have this head, the one that it was read
    /// from included. Fewer may be of a past that only they have seen.
    pub(crate) fn is_agreed(&self, head: &Head) -> bool {
        let (sequence, row) = (head.stripe.stripe.sequence, head.stripe.first_row);
        let others = self.membership.present().filter(|&member| member != head.piece.member);
        let others: Vec<u8> = others.collect();
        let needed = usize::from(head.stripe.geometry.data_columns) - 1;
        let offset = self.geometry().slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES);
        self.fetch(Expected { members: &others, offsets: &[offset], len: HEAD_BYTES });
        let same = others.into_iter().filter(|&member| {
            let mut page = [0; HEAD_BYTES];
            (self.read)(member, offset, &mut page).is_ok()
                && self.decode(member, &page).is_some_and(|other| other.cid == head.cid)
        });
        same.take(needed).count() == needed
    }

    /// Reads a whole slot of one member into `buffer`. Where reading it in one go fails it is read
    /// row by row, so that an unreadable row costs only itself.
    ///
    /// # Panics
    /// When the buffer is not as long as a piece.
    pub(crate) fn read_slot(&self, member: u8, slot: u64, buffer: &mut [u8]) {
        if self.membership.of(member).is_none() {
            buffer.fill(0);
            return;
        }
        let offset = self.geometry().slot_offset(slot);
        if (self.read)(member, offset, buffer).is_ok() {
            return;
        }
        for (row, bytes) in buffer.chunks_exact_mut(HEAD_BYTES).enumerate() {
            let at = u64::try_from(row).expect("at most 512 rows") * u64::from(ROW_BYTES);
            if (self.read)(member, offset + at, bytes).is_err() {
                bytes.fill(0);
            }
        }
    }

    /// All heads in the rows of a fresh member's slot that belong to that slot, whatever their
    /// sequence.
    pub(crate) fn all_in_slot(&self, member: u8, slot: u64, buffer: &[u8]) -> Vec<Head> {
        if !self.membership.is_fresh(member) {
            return Vec::new();
        }
        let rows = buffer.chunks_exact(HEAD_BYTES).zip(0_u16..);
        rows.filter_map(|(bytes, row)| {
            let head = self.decode(member, bytes.first_chunk()?)?;
            let belongs = head.stripe.first_row == row
                && self.geometry().slot(head.stripe.stripe.sequence) == slot;
            (belongs && self.counts(&head)).then_some(head)
        })
        .collect()
    }

    /// The head in row `row` of a member's slot, if it is one of `sequence` and belongs there,
    /// whether it counts or not.
    pub(crate) fn head_in(
        &self,
        member: u8,
        buffer: &[u8],
        row: u16,
        sequence: u64,
    ) -> Option<Head> {
        let at = usize::from(row) * HEAD_BYTES;
        let head = self.decode(member, buffer.get(at..)?.first_chunk()?)?;
        let belongs = head.stripe.stripe.sequence == sequence && head.stripe.first_row == row;
        belongs.then_some(head)
    }

    /// Whether a head may follow another in its slot: one epoch writes a slot, and only a VOID of a
    /// later mount may end it. Without a key it must also name the hash of the one before, which
    /// nobody knew who sent a packet; a head that closes the slot has none of it, and does no harm.
    pub(crate) fn follows(&self, before: Option<(&StripeHead, &[u8; 32])>, head: &Head) -> bool {
        let Some((before, cid)) = before else { return true };
        let (kind, epoch) = (head.stripe.kind, head.stripe.epoch);
        let is_chained = self.membership.head_key().is_some()
            || kind.closes_slot()
            || head.stripe.previous_cid == *cid;
        is_chained && (epoch == before.epoch || (kind == Kind::Void && epoch > before.epoch))
    }

    /// A head that belongs here: of this volume, this member and its column, and not of a future
    /// that was abandoned: from where an epoch starts no earlier one has a say.
    pub(crate) fn decode(&self, member: u8, page: &[u8; HEAD_BYTES]) -> Option<Head> {
        let superblock = self.membership.superblock();
        let head = Head::decode(page, self.membership.head_key()).ok()?;
        let (stripe, piece) = (&head.stripe, &head.piece);
        let sequence = stripe.stripe.sequence;
        let geometry = self.membership.geometry_at(sequence);
        let is_abandoned =
            sequence >= superblock.joined_start && stripe.epoch < superblock.joined_epoch;
        let ours = stripe.volume_id == superblock.volume_id
            && !is_abandoned
            && stripe.geometry == geometry
            && piece.member == member
            && member < geometry.columns()
            && Some(piece.member_uuid) == self.membership.uuid(member)
            && piece.column == geometry.column_of(sequence, member);
        ours.then_some(head)
    }
}

impl core::fmt::Debug for Heads<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Heads").field("membership", self.membership).finish_non_exhaustive()
    }
}

/// Body rows of a piece whose address-seeded checksum does not match; all of them when the rows
/// match but the body as a whole does not agree with the manifest.
pub(crate) fn bad_rows(head: &Head, slot: &[u8]) -> Vec<u16> {
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

/// The body of a piece within the bytes of its slot.
pub(crate) fn body_in<'a>(head: &Head, slot: &'a [u8]) -> Option<&'a [u8]> {
    slot.get(body_range(head))
}

/// Where the body of a stripe lies in its slot.
pub(crate) fn body_range(head: &Head) -> Range<usize> {
    let begin = (usize::from(head.stripe.first_row) + 1) * HEAD_BYTES;
    begin..begin + usize::from(head.stripe.rows) * HEAD_BYTES
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
pub(crate) fn has_trailer(head: &Head, slot: &[u8]) -> bool {
    debug_assert!(head.stripe.kind.closes_slot());
    slot.last_chunk() == Some(&head.stripe.local_block_bytes().to_le_bytes())
}
