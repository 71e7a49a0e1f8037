//! The shape of a volume, the same in every superblock and echoed in every head.

use serde::Serializer;
use units::{MemberId, Sequence, SlotNumber};

use crate::field::{get, get_u16, get_u32, get_u64, put};
use crate::head::HeadError;

/// Bytes of a row, of a head and of a superblock: the unit of every write.
pub const ROW_BYTES: u32 = 4096;
/// Bytes of a head.
pub const HEAD_BYTES: usize = 4096;
/// Most body rows of a piece.
pub const BODY_ROWS_MAX: usize = 511;
/// Smallest piece (the simulator's).
pub const PIECE_BYTES_MIN: u32 = 16 << 10;
/// Largest piece: the head has space for 511 row checksums.
pub const PIECE_BYTES_MAX: u32 = 2 << 20;
/// Bytes kept at each end of a member for superblocks and keys.
pub const RESERVED_BYTES: u64 = 2 << 20;
/// Highest end of a ring on a member: offsets of files are signed, and more lies behind the ring.
const RING_END_MAX: u64 = 1 << 62;
/// Most members of a volume.
pub const MEMBERS_MAX: usize = 24;

/// Encoded size of [`Geometry`].
pub(crate) const GEOMETRY_BYTES: usize = 56;

/// The order in which the ring takes the extents of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExtentOrder {
    /// From the first to the last: flash, files.
    FirstToLast,
    /// One extent from each zone in turn, odd zones inside out (docs/format.md, Slots).
    ZoneLevelled,
}

/// The shape of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Data columns of a stripe, K.
    pub data_columns: u8,
    /// Parity columns of a stripe, P: 0, 1 or 2.
    pub parity_columns: u8,
    /// Order of the extents.
    pub order: ExtentOrder,
    /// Zones, Z: 1 or even.
    pub zones: u16,
    /// Bytes of a slot on one member.
    pub piece_bytes: u32,
    /// Slots of the ring, N.
    pub slots: u64,
    /// Where slot 0 begins on every member.
    pub slot0_offset: u64,
    /// Consecutive slots of an extent.
    pub slots_per_extent: u32,
    /// Bytes of each member that the ring may use, from its first byte.
    pub usable_begin: u64,
    /// End of that range.
    pub usable_end: u64,
}

/// The numbers of columns alone, among the members of a report; for attributes of serde.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_columns<S: Serializer>(geometry: &Geometry, to: S) -> Result<S::Ok, S::Error> {
    let Geometry { data_columns, parity_columns, .. } = *geometry;
    to.collect_map([("data_columns", data_columns), ("parity_columns", parity_columns)])
}

impl Geometry {
    /// Rows of a slot, the head row included.
    pub fn rows_per_slot(&self) -> u16 {
        u16::try_from(self.piece_bytes / ROW_BYTES).expect("a piece has at most 512 rows")
    }

    /// Columns of a stripe, and so members of the volume, n = K + P.
    pub fn columns(&self) -> u8 {
        self.data_columns + self.parity_columns
    }

    /// The member with the highest number.
    pub fn last_member(&self) -> MemberId {
        MemberId(self.columns() - 1)
    }

    /// Whether the member has a column of its stripes; one that came later has none.
    pub fn has_member(&self, member: MemberId) -> bool {
        member <= self.last_member()
    }

    /// The member that holds a column of the stripes of `sequence`: columns rotate, so that every
    /// member carries its share of parity and of reading.
    pub fn member_of(&self, sequence: Sequence, column: u8) -> MemberId {
        MemberId(self.rotate(column, sequence.get() % u64::from(self.columns())))
    }

    /// The column that a member holds of the stripes of `sequence`.
    pub fn column_of(&self, sequence: Sequence, member: MemberId) -> u8 {
        let columns = u64::from(self.columns());
        self.rotate(member.get(), columns - sequence.get() % columns)
    }

    fn rotate(&self, number: u8, by: u64) -> u8 {
        let rotated = (u64::from(number) + by) % u64::from(self.columns());
        u8::try_from(rotated).expect("at most 24 columns")
    }

    /// The first sequence that is ever written: lap 0 is not.
    pub fn first_sequence(&self) -> Sequence {
        Sequence(self.slots)
    }

    /// Slot of a sequence.
    pub fn slot(&self, sequence: Sequence) -> SlotNumber {
        SlotNumber(sequence.get() % self.slots)
    }

    /// All slots, in the order of the ring.
    pub fn all_slots(&self) -> impl Iterator<Item = SlotNumber> + Clone + use<> {
        (0..self.slots).map(SlotNumber)
    }

    /// The last sequence up to `newest` whose slot this is; one below [`Self::first_sequence`]
    /// where the ring has not come there.
    pub fn last_of_slot(&self, slot: SlotNumber, newest: Sequence) -> Sequence {
        newest - (newest.get() - slot.get()) % self.slots
    }

    /// Byte offset of the slot of `sequence` on every member.
    pub fn slot_offset(&self, sequence: Sequence) -> u64 {
        self.offset_of_slot(self.slot(sequence))
    }

    /// Byte offset of a slot on every member.
    pub fn offset_of_slot(&self, slot: SlotNumber) -> u64 {
        let place = match self.order {
            ExtentOrder::FirstToLast => slot.get(),
            ExtentOrder::ZoneLevelled => self.zone_levelled_place(slot.get()),
        };
        self.slot0_offset + place * u64::from(self.piece_bytes)
    }

    /// Place on the surface of a slot: the ring takes one extent from each zone in turn and walks
    /// odd zones inside out, so that every cycle over the zones averages the surface and a
    /// change of zone is a short jump.
    fn zone_levelled_place(&self, slot: u64) -> u64 {
        let (zones, extent_slots) = (u64::from(self.zones), u64::from(self.slots_per_extent));
        let (extent, within) = (slot / extent_slots, slot % extent_slots);
        let extents_per_zone = self.slots / extent_slots / zones;
        let (zone, turn) = (extent % zones, extent / zones);
        let in_zone = if zone % 2 == 0 { turn } else { extents_per_zone - 1 - turn };
        (zone * extents_per_zone + in_zone) * extent_slots + within
    }

    /// The slot at a byte of a member, and so the inverse of [`Geometry::offset_of_slot`]; `None`
    /// outside the ring.
    pub fn slot_at(&self, offset: u64) -> Option<SlotNumber> {
        let place = offset.checked_sub(self.slot0_offset)? / u64::from(self.piece_bytes);
        let slot = match self.order {
            ExtentOrder::FirstToLast => place,
            ExtentOrder::ZoneLevelled => self.zone_levelled_slot(place),
        };
        (place < self.slots).then_some(SlotNumber(slot))
    }

    fn zone_levelled_slot(&self, place: u64) -> u64 {
        let (zones, extent_slots) = (u64::from(self.zones), u64::from(self.slots_per_extent));
        let (extent, within) = (place / extent_slots, place % extent_slots);
        let extents_per_zone = self.slots / extent_slots / zones;
        let (zone, in_zone) = (extent / extents_per_zone, extent % extents_per_zone);
        let turn = if zone % 2 == 0 { in_zone } else { extents_per_zone - 1 - in_zone };
        (turn * zones + zone) * extent_slots + within
    }

    /// Whether every field is inside its bounds, for values read from a disk or chosen by a user.
    pub fn check(&self) -> Result<(), HeadError> {
        let columns = usize::from(self.data_columns) + usize::from(self.parity_columns);
        let piece = self.piece_bytes;
        let sound = self.data_columns > 0
            && self.parity_columns <= 2
            && columns <= MEMBERS_MAX
            && (PIECE_BYTES_MIN..=PIECE_BYTES_MAX).contains(&piece)
            && piece.is_power_of_two()
            && (self.zones == 1 || (self.zones > 0 && self.zones.is_multiple_of(2)))
            && self.slots > 0
            && self.slots_per_extent > 0
            && (self.order == ExtentOrder::FirstToLast
                || self
                    .slots
                    .is_multiple_of(u64::from(self.slots_per_extent) * u64::from(self.zones)))
            && self.slot0_offset.is_multiple_of(u64::from(ROW_BYTES))
            && self
                .slots
                .checked_mul(u64::from(piece))
                .and_then(|bytes| bytes.checked_add(self.slot0_offset))
                .is_some_and(|end| {
                    let is_usable = self.usable_begin <= self.slot0_offset;
                    is_usable && end <= self.usable_end && end <= RING_END_MAX
                });
        if sound { Ok(()) } else { Err(HeadError::Geometry) }
    }

    pub(crate) fn encode(&self, page: &mut [u8], at: usize) {
        let order = match self.order {
            ExtentOrder::FirstToLast => 0,
            ExtentOrder::ZoneLevelled => 1,
        };
        put(page, at, &[self.data_columns, self.parity_columns, order, 0]);
        put(page, at + 4, &self.piece_bytes.to_le_bytes());
        put(page, at + 8, &self.zones.to_le_bytes());
        put(page, at + 12, &self.slots_per_extent.to_le_bytes());
        put(page, at + 16, &self.slots.to_le_bytes());
        put(page, at + 24, &self.slot0_offset.to_le_bytes());
        put(page, at + 32, &self.usable_begin.to_le_bytes());
        put(page, at + 40, &self.usable_end.to_le_bytes());
    }

    pub(crate) fn decode(page: &[u8], at: usize) -> Result<Self, HeadError> {
        let [data_columns, parity_columns, order, _] = get(page, at);
        let geometry = Self {
            data_columns,
            parity_columns,
            order: match order {
                0 => ExtentOrder::FirstToLast,
                1 => ExtentOrder::ZoneLevelled,
                _ => return Err(HeadError::Geometry),
            },
            piece_bytes: get_u32(page, at + 4),
            zones: get_u16(page, at + 8),
            slots_per_extent: get_u32(page, at + 12),
            slots: get_u64(page, at + 16),
            slot0_offset: get_u64(page, at + 24),
            usable_begin: get_u64(page, at + 32),
            usable_end: get_u64(page, at + 40),
        };
        geometry.check()?;
        Ok(geometry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levelled(zones: u16, extents: u64) -> Geometry {
        Geometry {
            data_columns: 1,
            parity_columns: 0,
            order: ExtentOrder::ZoneLevelled,
            zones,
            piece_bytes: PIECE_BYTES_MIN,
            slots: extents * 4,
            slot0_offset: RESERVED_BYTES,
            slots_per_extent: 4,
            usable_begin: 0,
            usable_end: u64::MAX,
        }
    }

    #[test]
    fn every_slot_has_a_place_of_its_own() {
        for (zones, extents) in [(1, 7), (2, 8), (4, 12), (8, 64)] {
            let geometry = levelled(zones, extents);
            assert_eq!(geometry.check(), Ok(()));
            let mut places: Vec<_> =
                geometry.all_slots().map(|slot| geometry.offset_of_slot(slot)).collect();
            places.sort_unstable();
            let in_order = Geometry { order: ExtentOrder::FirstToLast, ..geometry };
            assert_eq!(
                places,
                geometry.all_slots().map(|slot| in_order.offset_of_slot(slot)).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn columns_rotate_over_the_members() {
        let geometry = Geometry { data_columns: 4, parity_columns: 2, ..levelled(1, 7) };
        for sequence in [0, 1, 5, 6, 7, u64::MAX].map(Sequence) {
            let members: Vec<MemberId> =
                (0..6).map(|column| geometry.member_of(sequence, column)).collect();
            for (column, &member) in (0..).zip(&members) {
                assert_eq!(geometry.column_of(sequence, member), column);
                assert_eq!(u64::from(member.get()), (u64::from(column) + sequence.get() % 6) % 6);
            }
        }
    }

    #[test]
    fn the_ring_visits_every_zone_in_each_cycle() {
        let geometry = levelled(4, 12);
        let zone_of = |extent: u64| {
            (geometry.offset_of_slot(SlotNumber(extent * 4)) - geometry.slot0_offset)
                / u64::from(PIECE_BYTES_MIN)
                / 4
                / 3
        };
        assert_eq!((0..8).map(zone_of).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn a_ring_that_does_not_fit_its_zones_is_refused() {
        assert_eq!(levelled(8, 12).check(), Err(HeadError::Geometry));
        assert_eq!(levelled(3, 12).check(), Err(HeadError::Geometry));
    }
}
