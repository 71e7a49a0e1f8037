//! Throughput by the bytes between two jumps, and where the jumps stop to matter.

use core::ops::Range;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{real, whole};
use crate::plan::{EXTENT_SIZES, Part, Plan};
use crate::report::{ExtentStep, Extents};
use crate::stream::{DEPTH, Stream, fill};

/// Extents of one size, at least and at most.
const EXTENTS_MIN: u64 = 4;
const EXTENTS_MAX: u64 = 1024;

/// Writes extents of each size at random places, several blocks under way across them.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Extents, Error> {
    let size = bench.size_bytes();
    let mut extents = Extents::default();
    for extent_bytes in EXTENT_SIZES {
        let places = size / extent_bytes;
        if places < EXTENTS_MIN || bench.is_interrupted {
            break;
        }
        let count = (plan.extents_bytes.min(size) / extent_bytes).clamp(EXTENTS_MIN, EXTENTS_MAX);
        let ranges: Vec<Range<u64>> = (0..count)
            .map(|_| bench.random.below(places) * extent_bytes)
            .map(|begin| begin..begin + extent_bytes)
            .collect();
        let block_bytes = plan.block_bytes.min(extent_bytes);
        let mut stream = Stream::new(block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
        let result = fill(bench, Part::Extents, &mut stream, &ranges)?;
        let done = result.bytes() / extent_bytes;
        if done > 0 {
            extents.steps.push(ExtentStep { extent_bytes, extents: done, ns: result.ns() });
        }
    }
    if extents.steps.is_empty() && !bench.is_interrupted {
        let minimum_bytes = EXTENT_SIZES.first().map_or(0, |size| size * EXTENTS_MIN);
        return Err(Error::TooSmall { part: Part::Extents, minimum_bytes });
    }
    fit(&mut extents);
    Ok(extents)
}

/// The time of an extent is that of a jump and of its bytes: least squares, weighted so that every
/// size counts by its relative error.
fn fit(extents: &mut Extents) {
    let points = extents
        .steps
        .iter()
        .map(|step| (real(step.extent_bytes), real(step.ns) / real(step.extents.max(1))));
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, ns) in points {
        let weight = 1.0 / (ns * ns).max(1.0);
        w += weight;
        x += weight * bytes;
        y += weight * ns;
        xx += weight * bytes * bytes;
        xy += weight * bytes * ns;
    }
    let spread = w * xx - x * x;
    if extents.steps.len() < 2 || spread <= 0.0 {
        return;
    }
    let ns_per_byte = (w * xy - x * y) / spread;
    let jump_ns = ((y - ns_per_byte * x) / w).max(0.0);
    if ns_per_byte <= 0.0 {
        return;
    }
    extents.jump_ns = whole(jump_ns);
    extents.bytes_per_s = whole(1e9 / ns_per_byte);
    // jump + bytes / rate = bytes / (0.9 rate).
    let knee = whole(9.0 * jump_ns / ns_per_byte);
    let smallest = extents.steps.first().map_or(0, |step| step.extent_bytes);
    extents.knee_bytes = (knee > smallest).then_some(knee);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jump_and_rate_are_found_from_the_times() {
        // 10 ms a jump and 200 MB/s.
        let step = |extent_bytes: u64| {
            let ns = 4 * (10_000_000 + extent_bytes * 5);
            ExtentStep { extent_bytes, extents: 4, ns }
        };
        let mut extents = Extents { steps: EXTENT_SIZES.map(step).to_vec(), ..Extents::default() };
        fit(&mut extents);
        assert!(extents.jump_ns.abs_diff(10_000_000) < 1000, "{extents:?}");
        assert!(extents.bytes_per_s.abs_diff(200_000_000) < 1000);
        assert!(extents.knee_bytes.unwrap().abs_diff(18_000_000) < 1000);
    }

    #[test]
    fn a_disk_without_jumps_has_no_knee() {
        let step = |extent_bytes: u64| ExtentStep { extent_bytes, extents: 4, ns: extent_bytes };
        let mut extents = Extents { steps: EXTENT_SIZES.map(step).to_vec(), ..Extents::default() };
        fit(&mut extents);
        assert_eq!((extents.knee_bytes, extents.bytes_per_s), (None, 4_000_000_000));
    }
}
