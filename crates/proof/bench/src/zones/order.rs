//! The ring's order alone: by formula, and written to the modelled disk extent after extent.

use core::time::Duration;

use anyhow::{Context, Result};
use device::{Device, Pool};
use units::SlotNumber;
use units::number::real;

use super::setting::{PIECE_BYTES, Ring};
use super::trace::Trace;

/// Seconds and bytes of an extent at the rate of its middle, with a jump wherever the next extent
/// is not the neighbour: what the executable model of the order computes.
pub(super) fn by_formula(ring: &Ring<'_>) -> Trace {
    let geometry = ring.geometry();
    let profile = ring.scaled_profile();
    let extent_bytes = ring.extent_bytes();
    let mut trace = Trace::default();
    let mut position = geometry.slot0_offset;
    for extent in 0..ring.extents {
        let offset = geometry.offset_of_slot(SlotNumber(extent * u64::from(ring.slots_per_extent)));
        let seconds = real(extent_bytes) / profile.rate_at(offset + extent_bytes / 2);
        let jump_ns = if offset == position { 0 } else { ring.published.jump_ns };
        let transfer = Duration::from_secs_f64(seconds).as_nanos();
        trace.push(
            u64::try_from(transfer).unwrap_or(u64::MAX) + jump_ns,
            ring.published.extent_bytes,
        );
        position = offset + extent_bytes;
    }
    trace
}

/// One lap in writes of one piece, four of them in flight.
pub(super) fn on_disk(ring: &Ring<'_>) -> Result<Trace> {
    let (mut disk, timeline) = ring.disk();
    let geometry = ring.geometry();
    let len = usize::try_from(PIECE_BYTES)?;
    let data = Pool::new(1, len)?.take().context("a pool of one has one")?.freeze();
    let (mut trace, mut done, mut before_ns) = (Trace::default(), Vec::new(), 0);
    for slot in geometry.all_slots() {
        while disk.in_flight() == 4 {
            disk.reap(Some(Duration::from_mins(1)), &mut done);
        }
        done.clear();
        disk.submit_write(slot.get(), geometry.offset_of_slot(slot), data.clone(), len);
        let now_ns = timeline.now_ns();
        trace.push((now_ns - before_ns).unsigned_abs(), ring.bytes_per_piece());
        before_ns = now_ns;
    }
    Ok(trace)
}
