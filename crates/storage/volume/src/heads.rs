//! Heads at their places: reading them, and believing only those that are where they belong.

use core::ops::Range;
use std::collections::BTreeMap;

use format::checksum::{RowAddress, body_crc};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, Kind, StripeHead};
use units::{MemberId, Sequence, SlotNumber};

use crate::membership::Membership;

/// A member is absent or could not be read there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable;

/// How members are read, whether opened for writing or for reading: member, offset, buffer.
pub(crate) type ReadRows<'a> = &'a dyn Fn(MemberId, u64, &mut [u8]) -> Result<(), Unreadable>;

/// What will be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'e> {
    /// Members, and where on each.
    pub places: &'e [(MemberId, &'e [u64])],
    /// Bytes at each place.
    pub len: usize,
}

/// Reads ahead.
pub type Fetch<'a> = &'a dyn Fn(Expected<'_>);

/// Reads at one place of all members whose memory is not empty, at the same time: that place, and
/// the memory by member. Gives the members of which it could not be read in one go, and may be row
/// by row; their memory, and that of those that do not answer, is zeros.
pub(crate) type ReadSlots<'a> = &'a dyn Fn(u64, &mut [Vec<u8>]) -> Vec<MemberId>;

/// Reads the heads of a volume.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    read: ReadRows<'a>,
    fetch: Option<Fetch<'a>>,
    slots: Option<ReadSlots<'a>>,
    membership: &'a Membership,
}

impl<'a> Heads<'a> {
    /// Of members that `read` reads.
    pub fn new(read: ReadRows<'a>, membership: &'a Membership) -> Self {
        Self { read, fetch: None, slots: None, membership }
    }

    /// The same, of members that answer many reads at a time in hardly more time than one.
    #[must_use]
    pub fn fetched_by(self, fetch: Fetch<'a>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// The same, of members that read whole slots at the same time.
    pub(crate) fn read_by(self, slots: ReadSlots<'a>) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// Whether asking for many heads at once is worth it.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.fetch.is_some()
    }

    /// The first heads of these slots will be asked for.
    pub fn expect(&self, slots: &[SlotNumber]) {
        if self.fetch.is_none() {
            return;
        }
        let present = self.membership.present();
        let members: Vec<MemberId> = present.filter(|&it| self.membership.is_fresh(it)).collect();
        let offsets: Vec<u64> =
            slots.iter().map(|&slot| self.geometry().offset_of_slot(slot)).collect();
        self.fetch_from(&members, &offsets, HEAD_BYTES);
    }

    /// The first heads of the slots of these sequences will be asked for.
    pub(crate) fn expect_firsts(&self, sequences: &[Sequence]) {
        let slots: Vec<SlotNumber> = sequences.iter().map(|&at| self.geometry().slot(at)).collect();
        self.expect(&slots);
    }

    /// Reads the slot of `sequence` of all members whose memory is not empty, as
    /// [`Self::read_slot`] does of one.
    pub(crate) fn read_slots(&self, sequence: Sequence, members: &mut [Vec<u8>]) {
        let slot = self.geometry().slot(sequence);
        let Some(read_all) = self.slots else {
            self.expect_slot(sequence);
            for (member, bytes) in
                MemberId::all().zip(members).filter(|(_, bytes)| !bytes.is_empty())
            {
                self.read_slot(member, slot, bytes);
            }
            return;
        };
        for member in read_all(self.geometry().offset_of_slot(slot), members) {
            let bytes = members.get_mut(member.place()).expect("it is one of them");
            self.read_rows(member, slot, bytes);
        }
    }

    /// The slot of `sequence` will be read from all members at hand.
    fn expect_slot(&self, sequence: Sequence) {
        let geometry = self.geometry();
        let members: Vec<MemberId> = self.membership.present().collect();
        let len = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
        let offset = geometry.slot_offset(sequence);
        self.fetch_from(&members, &[offset], len);
    }

    /// The first and the last row of the slot of `sequence` will be asked for.
    pub(crate) fn expect_ends(&self, sequence: Sequence) {
        let first = self.geometry().slot_offset(sequence);
        let last = first + u64::from(self.geometry().piece_bytes - ROW_BYTES);
        let members: Vec<MemberId> = self.membership.present().collect();
        self.fetch_from(&members, &[first, last], HEAD_BYTES);
    }

    /// The same places of these members will be asked for.
    fn fetch_from(&self, members: &[MemberId], offsets: &[u64], len: usize) {
        let places: Vec<(MemberId, &[u64])> =
            members.iter().map(|&member| (member, offsets)).collect();
        self.fetch(Expected { places: &places, len });
    }

    fn fetch(&self, expected: Expected<'_>) {
        if let Some(fetch) = self.fetch {
            fetch(expected);
        }
    }

    /// Shape of the volume.
    pub fn geometry(&self) -> &'a Geometry {
        self.membership.geometry()
    }

    /// Which members are there, and what each may be believed.
    pub fn membership(&self) -> &'a Membership {
        self.membership
    }

    /// Head of whatever stripe begins slot `slot`, the newest that a fresh member shows; `None`
    /// when nothing valid does.
    pub(crate) fn first_of_slot(&self, slot: SlotNumber) -> Option<Head> {
        self.expect(&[slot]);
        let heads = self.membership.present().filter_map(|member| self.first_on(member, slot));
        heads.max_by_key(|head| head.stripe.stripe)
    }

    /// The same as one member shows it, if it is fresh.
    pub(crate) fn first_on(&self, member: MemberId, slot: SlotNumber) -> Option<Head> {
        if !self.membership.is_fresh(member) {
            return None;
        }
        let mut page = [0; HEAD_BYTES];
        (self.read)(member, self.geometry().offset_of_slot(slot), &mut page).ok()?;
        let head = self.decode(member, &page)?;
        // A misdirected write shows here: position and content disagree.
        let belongs = head.stripe.stripe.sub == 0
            && head.stripe.first_row == 0
            && self.geometry().slot(head.stripe.stripe.sequence) == slot;
        (belongs && self.counts(&head)).then_some(head)
    }

    /// The head in row `row` of the slot of `sequence`, as any fresh member shows it.
    pub(crate) fn head_at(&self, sequence: Sequence, row: u16) -> Option<Head> {
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
    pub fn counts(&self, head: &Head) -> bool {
        self.membership.is_whole_at(head.piece.member, head.stripe.stripe.sequence)
    }

    /// The last row of the slot of `sequence` on one member.
    pub(crate) fn last_row(
        &self,
        member: MemberId,
        sequence: Sequence,
        into: &mut [u8; HEAD_BYTES],
    ) -> Option<()> {
        let last = u64::from(self.geometry().piece_bytes - ROW_BYTES);
        (self.read)(member, self.geometry().slot_offset(sequence) + last, into).ok()
    }

    /// Whether as many members as there are data columns have this head, the one that it was read
    /// from included. Fewer may be of a past that only they have seen.
    pub(crate) fn is_agreed(&self, head: &Head) -> bool {
        let (sequence, row) = (head.stripe.stripe.sequence, head.stripe.first_row);
        let mut needed = usize::from(head.stripe.geometry.data_columns) - 1;
        let offset = self.geometry().slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES);
        let others: Vec<MemberId> = self.witnesses(head).collect();
        let mut others = others.as_slice();
        // Those who do not agree, or cannot be read, are made up for by as many of the others.
        while needed > 0 && needed <= others.len() {
            let (asked, later) = others.split_at(needed);
            others = later;
            self.fetch_from(asked, &[offset], HEAD_BYTES);
            let same = asked.iter().filter(|&&member| {
                let mut page = [0; HEAD_BYTES];
                (self.read)(member, offset, &mut page).is_ok()
                    && self.decode(member, &page).is_some_and(|other| other.cid == head.cid)
            });
            needed -= same.count();
        }
        needed == 0
    }

    /// The other members of a head, in the order in which they are asked whether they agree.
    fn witnesses(&self, head: &Head) -> impl Iterator<Item = MemberId> + use<'a> {
        let own = head.piece.member;
        self.membership.present().filter(move |&member| member != own)
    }

    /// It will be asked whether these heads are agreed on.
    pub(crate) fn expect_agreement<'h>(&self, heads: impl Iterator<Item = &'h Head>) {
        let mut offsets: BTreeMap<MemberId, Vec<u64>> = BTreeMap::new();
        for head in heads {
            let StripeHead { stripe, first_row, geometry, .. } = &head.stripe;
            let slot_offset = self.geometry().slot_offset(stripe.sequence);
            let offset = slot_offset + u64::from(*first_row) * u64::from(ROW_BYTES);
            let needed = usize::from(geometry.data_columns) - 1;
            for member in self.witnesses(head).take(needed) {
                offsets.entry(member).or_default().push(offset);
            }
        }
        let places: Vec<(MemberId, &[u64])> =
            offsets.iter().map(|(&member, offsets)| (member, offsets.as_slice())).collect();
        self.fetch(Expected { places: &places, len: HEAD_BYTES });
    }

    /// Heads at these places, sequence and row, will be asked for by [`Self::head_at`], which
    /// normally asks the first fresh member alone.
    pub(crate) fn expect_at(&self, places: &[(Sequence, u16)]) {
        let mut fresh =
            self.membership.present().filter(|&member| self.membership.is_fresh(member));
        let offset = |&(sequence, row): &(Sequence, u16)| {
            self.geometry().slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES)
        };
        if let Some(member) = fresh.next() {
            let offsets: Vec<u64> = places.iter().map(offset).collect();
            self.fetch_from(&[member], &offsets, HEAD_BYTES);
        }
    }

    /// Reads a whole slot of one member into `buffer`. Where reading it in one go fails it is read
    /// row by row, so that an unreadable row costs only itself.
    ///
    /// # Panics
    /// When the buffer is not as long as a piece.
    pub fn read_slot(&self, member: MemberId, slot: SlotNumber, buffer: &mut [u8]) {
        if self.membership.of(member).is_none() {
            buffer.fill(0);
            return;
        }
        let offset = self.geometry().offset_of_slot(slot);
        if (self.read)(member, offset, buffer).is_err() {
            self.read_rows(member, slot, buffer);
        }
    }

    /// Reads a slot row by row: one that cannot be read costs only itself.
    pub(crate) fn read_rows(&self, member: MemberId, slot: SlotNumber, buffer: &mut [u8]) {
        let offset = self.geometry().offset_of_slot(slot);
        for (row, bytes) in buffer.chunks_exact_mut(HEAD_BYTES).enumerate() {
            let at = u64::try_from(row).expect("at most 512 rows") * u64::from(ROW_BYTES);
            if (self.read)(member, offset + at, bytes).is_err() {
                bytes.fill(0);
            }
        }
    }

    /// All heads in the rows of a fresh member's slot that belong to that slot, whatever their
    /// sequence.
    pub fn all_in_slot(&self, member: MemberId, slot: SlotNumber, buffer: &[u8]) -> Vec<Head> {
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
    pub fn head_in(
        &self,
        member: MemberId,
        buffer: &[u8],
        row: u16,
        sequence: Sequence,
    ) -> Option<Head> {
        let at = usize::from(row) * HEAD_BYTES;
        let head = self.decode(member, buffer.get(at..)?.first_chunk()?)?;
        let belongs = head.stripe.stripe.sequence == sequence && head.stripe.first_row == row;
        belongs.then_some(head)
    }

    /// Whether a head may follow another in its slot: one epoch writes a slot, and only a VOID of a
    /// later mount may end it. Without a key it must also name the hash of the one before, which
    /// it was not known who sent a packet; a head that closes the slot has none of it, and does no
    /// harm.
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
    pub(crate) fn decode(&self, member: MemberId, page: &[u8; HEAD_BYTES]) -> Option<Head> {
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
            && geometry.has_member(member)
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
pub fn body_in<'a>(head: &Head, slot: &'a [u8]) -> Option<&'a [u8]> {
    slot.get(body_range(head))
}

/// Where the body of a stripe lies in its slot.
pub fn body_range(head: &Head) -> Range<usize> {
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
