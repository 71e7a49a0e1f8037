//! Where the ring lies on the surface of its members, and in which order it goes over it.
//!
//! A ring takes a range of each member, the same on all. On disks with inner and outer tracks it
//! takes an extent from each of several zones in turn (docs/format.md, Slots); elsewhere it goes
//! from the first slot to the last.

use format::geometry::{ExtentOrder, PIECE_BYTES_MAX, RESERVED_BYTES};
use format::superblock::MEMBER_BYTES_MIN;
use format::usable::Usable;

use crate::Error;

/// Fewest slots of a ring: the window must stay small against the ring.
const SLOTS_MIN: u64 = 16;
/// A ring takes 995 thousandths of its member, so that a slightly smaller replacement still fits.
const SHARE_OF_MEMBER: (u64, u64) = (995, 1000);
/// An extent, where the user chose none: it takes half a second at 250 MB/s, so that a jump of 8 ms
/// to the next zone costs 1.5 %.
const EXTENT_BYTES: u64 = 128 << 20;
/// On small rings extents are smaller: the ring is cut to whole extents in every zone, and that
/// shall cost less than a 64th of it.
const EXTENTS_PER_ZONE: u64 = 64;

/// How the ring goes over the surface of its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Zones of equal capacity, Z: 1 or even. The ring takes an extent from each in turn.
    pub zones: u16,
    /// Bytes of an extent on one member, a multiple of the piece; `None` for 128 MiB, or less on
    /// a small ring.
    pub extent_bytes: Option<u64>,
    /// The part of each member that the ring may use.
    pub usable: Usable,
}

impl Default for Layout {
    fn default() -> Self {
        Self { zones: 1, extent_bytes: None, usable: Usable::default() }
    }
}

/// A layout on members of a certain size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) order: ExtentOrder,
    pub(crate) zones: u16,
    pub(crate) slots_per_extent: u32,
    pub(crate) slots: u64,
    pub(crate) slot0_offset: u64,
    pub(crate) usable_begin: u64,
    pub(crate) usable_end: u64,
}

impl Layout {
    /// The ring on members of which the smallest has `size_bytes`.
    pub(crate) fn place(&self, size_bytes: u64, piece_bytes: u32) -> Result<Placed, Error> {
        if size_bytes == 0 {
            return Err(Error::NoBytes);
        }
        let piece = u64::from(piece_bytes);
        let (usable_begin, usable_end) =
            (self.usable.begin.of(size_bytes), self.usable.end.of(size_bytes));
        if usable_begin >= usable_end || usable_end > size_bytes {
            let (begin, end) = (usable_begin, usable_end);
            return Err(Error::Usable { begin, end, size_bytes });
        }
        // Aligned to the largest piece, so that `dd` with pieces as blocks can skip to a slot.
        let slot0_offset =
            usable_begin.max(RESERVED_BYTES).next_multiple_of(u64::from(PIECE_BYTES_MAX));
        let (share, whole) = SHARE_OF_MEMBER;
        let ring_bytes = size_bytes.saturating_sub(MEMBER_BYTES_MIN) / whole * share;
        let ring_end = usable_end.min(RESERVED_BYTES + ring_bytes);
        let slots = ring_end.saturating_sub(slot0_offset) / piece;
        if slots < SLOTS_MIN && self.usable != Usable::default() {
            return Err(Error::UsableTooSmall { slots, piece_bytes, slots_min: SLOTS_MIN });
        }
        if slots < SLOTS_MIN {
            let needed_bytes = MEMBER_BYTES_MIN + (SLOTS_MIN * piece / share + 1) * whole;
            return Err(Error::TooSmall { size_bytes, piece_bytes, needed_bytes });
        }
        let (order, slots_per_extent) = self.order(slots, piece_bytes)?;
        let cycle = u64::from(slots_per_extent) * u64::from(self.zones);
        let slots = slots - slots % cycle;
        let zones = self.zones;
        Ok(Placed { order, zones, slots_per_extent, slots, slot0_offset, usable_begin, usable_end })
    }

    /// The order of a ring of at most `slots`, and the slots of an extent.
    fn order(&self, slots: u64, piece_bytes: u32) -> Result<(ExtentOrder, u32), Error> {
        let (zones, piece) = (u64::from(self.zones), u64::from(piece_bytes));
        if zones == 0 || !(zones == 1 || zones.is_multiple_of(2)) {
            return Err(Error::Zones(self.zones));
        }
        if zones == 1 {
            return match self.extent_bytes {
                None => Ok((ExtentOrder::FirstToLast, 1)),
                Some(_) => Err(Error::ExtentOfOneZone),
            };
        }
        let extent_bytes = self.extent_bytes.unwrap_or_else(|| {
            let fits = |bytes: &u64| slots * piece / bytes / zones >= EXTENTS_PER_ZONE;
            let halves = core::iter::successors(Some(EXTENT_BYTES), |bytes| Some(bytes / 2));
            halves.take_while(|bytes| *bytes >= piece).find(fits).unwrap_or(piece)
        });
        let per_extent = u32::try_from(extent_bytes / piece).unwrap_or(u32::MAX);
        if per_extent == 0 || !extent_bytes.is_multiple_of(piece) {
            return Err(Error::Extent { extent_bytes, piece_bytes });
        }
        let cycle_slots = zones * u64::from(per_extent);
        // The ring is cut to whole cycles, and must stay a ring.
        if slots < cycle_slots || slots - slots % cycle_slots < SLOTS_MIN {
            let (ring_bytes, cycle_bytes) = (slots * piece, cycle_slots.saturating_mul(piece));
            return Err(Error::TooFewExtents { zones: self.zones, ring_bytes, cycle_bytes });
        }
        Ok((ExtentOrder::ZoneLevelled, per_extent))
    }
}

#[cfg(test)]
mod tests {
    use format::usable::Bound;

    use super::*;

    const PIECE: u32 = 2 << 20;
    const TERABYTE: u64 = 1_000_000_000_000;

    fn placed(layout: Layout, size_bytes: u64) -> Result<Placed, Error> {
        layout.place(size_bytes, PIECE)
    }

    fn levelled(zones: u16, extent_bytes: Option<u64>) -> Layout {
        Layout { zones, extent_bytes, ..Layout::default() }
    }

    #[test]
    fn a_ring_in_zones_is_cut_to_whole_cycles_and_hardly_shorter() {
        let plain = placed(Layout::default(), 8 * TERABYTE).unwrap();
        assert_eq!((plain.order, plain.slots_per_extent), (ExtentOrder::FirstToLast, 1));
        for (size_bytes, extent_bytes) in [
            (8 * TERABYTE, 128 << 20),
            (TERABYTE / 10, 128 << 20),
            (TERABYTE / 50, 32 << 20),
            (TERABYTE / 250, 4 << 20),
        ] {
            let whole = placed(Layout::default(), size_bytes).unwrap().slots;
            let Placed { order, slots, slots_per_extent, .. } =
                placed(levelled(8, None), size_bytes).unwrap();
            assert_eq!(order, ExtentOrder::ZoneLevelled);
            assert_eq!(u64::from(slots_per_extent) * u64::from(PIECE), extent_bytes);
            assert!(slots.is_multiple_of(8 * u64::from(slots_per_extent)));
            assert!((whole - slots) * 64 < whole, "{slots} of {whole}");
        }
    }

    #[test]
    fn a_usable_range_bounds_the_ring_on_both_sides() {
        let usable = Usable { begin: Bound::Share(1000), end: Bound::Bytes(6 * TERABYTE) };
        let ring = placed(Layout { usable, ..Layout::default() }, 8 * TERABYTE).unwrap();
        assert!(
            ring.slot0_offset >= 8 * TERABYTE / 10 && ring.slot0_offset.is_multiple_of(2 << 20)
        );
        let end = ring.slot0_offset + ring.slots * u64::from(PIECE);
        assert!((6 * TERABYTE - 2 * u64::from(PIECE)..=6 * TERABYTE).contains(&end));
        // The share that a smaller replacement may lack is kept whatever the range.
        let usable = Usable { begin: Bound::Bytes(0), end: Bound::Share(10_000) };
        let ring = placed(Layout { usable, ..Layout::default() }, 8 * TERABYTE);
        assert_eq!(ring.unwrap(), placed(Layout::default(), 8 * TERABYTE).unwrap());
    }

    #[test]
    fn what_cannot_be_laid_out_is_refused() {
        let refused = |layout: Layout| placed(layout, TERABYTE / 100).unwrap_err();
        for zones in [0, 3, 7] {
            assert!(matches!(refused(levelled(zones, None)), Error::Zones(odd) if odd == zones));
        }
        for extent_bytes in [0, 1 << 20, 3 << 20] {
            let error = refused(levelled(8, Some(extent_bytes)));
            assert!(matches!(error, Error::Extent { .. }), "{error}");
        }
        assert!(matches!(refused(levelled(1, Some(2 << 20))), Error::ExtentOfOneZone));
        assert!(matches!(refused(levelled(8, Some(2 << 30))), Error::TooFewExtents { .. }));
        for (begin, end) in [(10, 10), (20, 10), (0, TERABYTE)] {
            let usable = Usable { begin: Bound::Bytes(begin), end: Bound::Bytes(end) };
            let error = refused(Layout { usable, ..Layout::default() });
            assert!(matches!(error, Error::Usable { .. }), "{error}");
        }
        let usable = Usable { begin: Bound::Share(9000), end: Bound::Bytes(9_010_000_000) };
        let error = refused(Layout { usable, ..Layout::default() });
        assert!(matches!(error, Error::UsableTooSmall { slots: 2..=4, .. }), "{error}");
    }
}
