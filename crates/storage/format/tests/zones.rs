//! The zone-levelled order: against the executable model of it, and what it is for.

use format::geometry::{ExtentOrder, Geometry, PIECE_BYTES_MAX, PIECE_BYTES_MIN, RESERVED_BYTES};
use proptest::prelude::*;
use units::SlotNumber;

fn levelled(zones: u16, extents: u64, slots_per_extent: u32, piece_bytes: u32) -> Geometry {
    let slots = extents * u64::from(slots_per_extent);
    let geometry = Geometry {
        data_columns: 1,
        parity_columns: 0,
        order: ExtentOrder::ZoneLevelled,
        zones,
        piece_bytes,
        slots,
        slot0_offset: RESERVED_BYTES,
        slots_per_extent,
        usable_begin: 0,
        usable_end: u64::MAX,
    };
    assert_eq!(geometry.check(), Ok(()));
    geometry
}

fn place(geometry: &Geometry, slot: u64) -> u64 {
    (geometry.offset_of_slot(SlotNumber(slot)) - geometry.slot0_offset)
        / u64::from(geometry.piece_bytes)
}

/// Ring order of extents as `zone_levelling.py` has it, word for word.
fn model(extents: u64, zones: u64) -> Vec<u64> {
    let per = extents / zones;
    (0..per)
        .flat_map(|t| (0..zones).map(move |z| z * per + if z % 2 == 0 { t } else { per - 1 - t }))
        .collect()
}

#[test]
fn the_order_is_that_of_the_executable_model() {
    for (zones, extents) in [(1, 5), (2, 6), (4, 12), (8, 64), (16, 31_232)] {
        let geometry = levelled(zones, extents, 3, PIECE_BYTES_MIN);
        let places: Vec<_> = (0..extents).map(|extent| place(&geometry, extent * 3) / 3).collect();
        assert_eq!(places, model(extents, u64::from(zones)), "{zones} zones");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn place_and_slot_are_inverse(
        half_zones in 0_u16..32,
        extents_per_zone in 1_u64..40_000,
        slots_per_extent in 1_u32..2000,
        any in any::<u64>(),
        within in 0..u64::from(PIECE_BYTES_MAX),
    ) {
        let zones = (half_zones * 2).max(1);
        let extents = extents_per_zone * u64::from(zones);
        let geometry = levelled(zones, extents, slots_per_extent, PIECE_BYTES_MAX);
        let slot = any % geometry.slots;
        let number = SlotNumber(slot);
        prop_assert_eq!(geometry.slot_at(geometry.offset_of_slot(number) + within), Some(number));
        let offset = geometry.slot0_offset + slot * u64::from(geometry.piece_bytes) + within;
        let there = geometry.offset_of_slot(geometry.slot_at(offset).unwrap());
        prop_assert_eq!(there, offset - within);
        prop_assert!(place(&geometry, slot) < geometry.slots);
        // Within an extent the ring goes straight on.
        if !slot.is_multiple_of(u64::from(slots_per_extent)) {
            prop_assert_eq!(place(&geometry, slot), place(&geometry, slot - 1) + 1);
        }
        let end = geometry.slot0_offset + geometry.slots * u64::from(geometry.piece_bytes);
        prop_assert_eq!(geometry.slot_at(end), None);
        prop_assert_eq!(geometry.slot_at(RESERVED_BYTES - 1), None);
    }

    #[test]
    fn every_cycle_over_the_zones_averages_the_surface(
        half_zones in 1_u64..16,
        extents_per_zone in 1_u64..500,
    ) {
        let zones = half_zones * 2;
        let extents = extents_per_zone * zones;
        let geometry = levelled(u16::try_from(zones).unwrap(), extents, 1, PIECE_BYTES_MIN);
        for turn in 0..extents_per_zone {
            let cycle = turn * zones..(turn + 1) * zones;
            let sum: u64 = cycle.map(|extent| place(&geometry, extent)).sum();
            // The mean place of all extents, (extents - 1) / 2, times the zones.
            prop_assert_eq!(sum, half_zones * (extents - 1), "turn {}", turn);
        }
    }
}
