//! The parts that write the surface once or twice, in different orders.

use core::ops::Range;

use format::geometry::{ExtentOrder, Geometry, PIECE_BYTES_MIN};
use units::SlotNumber;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{rate, real, to_u64, to_usize, whole};
use crate::plan::{Part, Plan};
use crate::report::{Cause, Fill, Passes};
use crate::stream::{DEPTH, Stream, fill, verify};

/// Places, or amounts, that two passes are compared at.
const CELLS: u64 = 24;
/// Differences below this are none: the spread of a machine.
const STEADY: f64 = 0.05;
/// A correlation that explains, in thousandths.
const EXPLAINS: i64 = 700;

/// From the first byte to the last.
pub(crate) fn first_to_last(bench: &mut Bench<'_>, plan: &Plan) -> Result<Fill, Error> {
    let whole = 0..bench.size_bytes();
    let mut stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
    let mut result = fill(bench, Part::Fill, &mut stream, core::slice::from_ref(&whole))?;
    if plan.verifies && !bench.is_interrupted {
        result.verified = Some(verify(bench, &whole)?);
    }
    Ok(result)
}

/// In the order in which a zone-levelled ring takes its extents.
pub(crate) fn ring(bench: &mut Bench<'_>, plan: &Plan) -> Result<Fill, Error> {
    let extents = ring_order(bench.size_bytes(), plan.extent_bytes, plan.zones);
    if extents.is_empty() {
        let minimum_bytes = plan.extent_bytes * u64::from(plan.zones);
        return Err(Error::TooSmall { part: Part::Ring, minimum_bytes });
    }
    let mut stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
    fill(bench, Part::Ring, &mut stream, &extents)
}

/// The extents of a ring over the surface, in the volume's own order. What does not fill a round of
/// the zones is left out, as the volume leaves it out.
pub(crate) fn ring_order(size_bytes: u64, extent_bytes: u64, zones: u16) -> Vec<Range<u64>> {
    let extents = size_bytes / extent_bytes / u64::from(zones) * u64::from(zones);
    let order = if zones == 1 { ExtentOrder::FirstToLast } else { ExtentOrder::ZoneLevelled };
    // Slots of the smallest piece stand for extents: only their order is taken from here.
    let geometry = Geometry {
        data_columns: 1,
        parity_columns: 0,
        order,
        zones,
        piece_bytes: PIECE_BYTES_MIN,
        slots: extents.max(1),
        slot0_offset: 0,
        slots_per_extent: 1,
        usable_begin: 0,
        usable_end: size_bytes,
    };
    let place = |slot| {
        geometry.offset_of_slot(SlotNumber(slot)) / u64::from(PIECE_BYTES_MIN) * extent_bytes
    };
    (0..extents).map(|slot| place(slot)..place(slot) + extent_bytes).collect()
}

/// From the first byte to the last, then from the middle round the end to the middle.
pub(crate) fn passes(bench: &mut Bench<'_>, plan: &Plan) -> Result<Passes, Error> {
    let size = bench.size_bytes();
    let middle = size / 2 / plan.block_bytes * plan.block_bytes;
    let mut stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
    let first = fill(bench, Part::Passes, &mut stream, core::slice::from_ref(&(0..size)))?;
    let second = fill(bench, Part::Passes, &mut stream, &[middle..size, 0..middle])?;
    Ok(compare(first, second, size))
}

/// What the differences within and between two passes follow.
fn compare(first: Fill, second: Fill, size_bytes: u64) -> Passes {
    let places = (cells(&first, size_bytes, true), cells(&second, size_bytes, true));
    let amounts = (cells(&first, size_bytes, false), cells(&second, size_bytes, false));
    let (by_place, by_amount) = (rank_correlation(&places), rank_correlation(&amounts));
    let ratio = real(second.rate()) / real(first.rate().max(1));
    let has_spread = spread(&amounts.0).max(spread(&amounts.1)) > STEADY;
    let cause = match (has_spread, (ratio - 1.0).abs() > STEADY) {
        (true, _) if by_place > by_amount && by_place >= EXPLAINS => Cause::Place,
        (true, _) if by_amount > by_place && by_amount >= EXPLAINS => Cause::Amount,
        (true, _) => Cause::Unknown,
        (false, true) => Cause::Pass,
        (false, false) => Cause::Steady,
    };
    Passes { first, second, cause, by_place, by_amount, second_to_first: whole(ratio * 1000.0) }
}

/// Rates by place, or by bytes written before; 0 where nothing was written.
fn cells(fill: &Fill, size: u64, is_by_place: bool) -> Vec<f64> {
    let mut sums = vec![(0_u64, 0_u64); to_usize(CELLS)];
    let (mut begin_ns, mut amount) = (0, 0);
    for window in &fill.windows {
        let at = if is_by_place { window.offset_low } else { amount };
        let cell = u128::from(at) * u128::from(CELLS) / u128::from(size.max(1));
        if let Some(sum) = usize::try_from(cell).ok().and_then(|cell| sums.get_mut(cell)) {
            *sum = (sum.0 + window.bytes, sum.1 + window.end_ns.saturating_sub(begin_ns));
        }
        (begin_ns, amount) = (window.end_ns, amount + window.bytes);
    }
    let rates = sums.into_iter().map(|(bytes, ns)| (bytes > 0).then(|| real(rate(bytes, ns))));
    rates.map(Option::unwrap_or_default).collect()
}

/// Largest over smallest rate, less 1, without the tenth at each end.
fn spread(rates: &[f64]) -> f64 {
    let mut ascending: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
    ascending.sort_by(f64::total_cmp);
    let tenth = ascending.len() / 10;
    let ends = (ascending.get(tenth), ascending.iter().rev().nth(tenth));
    match ends {
        (Some(low), Some(high)) => high / low - 1.0,
        _ => 0.0,
    }
}

/// Spearman's, in thousandths, over what both have.
fn rank_correlation((first, second): &(Vec<f64>, Vec<f64>)) -> i64 {
    let both = first.iter().zip(second).filter(|(a, b)| **a > 0.0 && **b > 0.0);
    let (a, b): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (*a, *b)).unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let n = real(to_u64(a.len()));
    if n < 3.0 {
        return 0;
    }
    let difference: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
    let thousandths = 1000.0 * (1.0 - 6.0 * difference / (n * (n * n - 1.0)));
    let size = i64::try_from(whole(thousandths.abs())).unwrap_or(i64::MAX);
    if thousandths < 0.0 { -size } else { size }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: &f64| values.iter().filter(|other| *other < value).count();
    values.iter().map(|value| real(to_u64(below(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Window;

    const SIZE: u64 = 24_000;

    /// A pass from `start` on over a surface of `SIZE` bytes, in 240 windows.
    fn pass(start: u64, rate: impl Fn(u64, u64) -> f64) -> Fill {
        let mut fill = Fill::default();
        let mut end_ns = 0;
        for amount in (0..SIZE).step_by(100) {
            let place = (start + amount) % SIZE;
            end_ns += whole(100.0 * 1e9 / rate(place, amount));
            let (offset_low, offset_high) = (place, place + 100);
            fill.windows.push(Window {
                end_ns,
                bytes: 100,
                offset_low,
                offset_high,
                latency_ns_max: 0,
            });
        }
        fill
    }

    #[track_caller]
    fn check(rate: impl Fn(u64, u64) -> f64, second: f64, cause: Cause) {
        let passes = (pass(0, &rate), pass(SIZE / 2, |place, amount| second * rate(place, amount)));
        let found = compare(passes.0, passes.1, SIZE);
        assert_eq!(found.cause, cause, "{} {}", found.by_place, found.by_amount);
    }

    #[test]
    fn what_the_rate_follows_is_told_apart() {
        check(|place, _| 200.0 - 100.0 * real(place) / real(SIZE), 1.0, Cause::Place);
        let cache = |_: u64, amount: u64| {
            if amount < SIZE / 3 { 300.0 } else { 100.0 - real(amount) / 1e3 }
        };
        check(cache, 1.0, Cause::Amount);
        check(|_, _| 100.0, 1.0, Cause::Steady);
        check(|_, _| 100.0, 0.8, Cause::Pass);
    }

    #[test]
    fn a_ring_takes_every_extent_once_and_one_of_each_zone_in_turn() {
        let order = ring_order(1000, 10, 4);
        let mut begins: Vec<u64> = order.iter().map(|extent| extent.start).collect();
        assert_eq!(begins[..6], [0, 490, 500, 990, 10, 480]);
        begins.sort_unstable();
        assert_eq!(begins, (0..100).map(|extent| extent * 10).collect::<Vec<_>>());
        assert!(ring_order(39, 10, 4).is_empty());
    }
}
