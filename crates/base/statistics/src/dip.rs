//! The dip of Hartigan and Hartigan (1985, Ann. Statist. 13:70): how far a sample is from the
//! nearest distribution with one mode.

#![expect(clippy::indexing_slicing, reason = "the published algorithm goes by places of a sample")]

use units::number::real_usize;

/// The largest distance between the distribution of `ascending` and the nearest one with a single
/// mode; 0 of no values, at least 1 / 2n of others. Takes a time that grows as n.
///
/// The mode is narrowed down from both ends: below it the sample is held against its greatest
/// convex minorant, above it against its least concave majorant, and it lies where these two are
/// farthest apart.
pub fn dip(ascending: &[f64]) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return 0.0 };
    let (mut low, mut high, mut found) = (0, last, 1.0_f64);
    while ascending[low] < ascending[high] {
        let minorant = hull(ascending, low..=high, |slope_before, slope| slope > slope_before);
        let majorant = hull(ascending, low..=high, |slope_before, slope| slope < slope_before);
        let (apart, next_low, next_high) = farthest(ascending, &minorant, &majorant);
        if apart <= found {
            break;
        }
        let below = minorant.windows(2).filter(|piece| piece[1] <= next_low);
        let above = majorant.windows(2).filter(|piece| piece[0] >= next_high);
        let below = below.map(|piece| away(ascending, piece, 1.0));
        let above = above.map(|piece| away(ascending, piece, -1.0));
        found = below.chain(above).fold(found, f64::max);
        if (next_low, next_high) == (low, high) {
            break;
        }
        (low, high) = (next_low, next_high);
    }
    found / (2.0 * real_usize(ascending.len()))
}

/// Places of a range that a hull of the points (value, place) touches; `bends` says whether the
/// slope of a next piece keeps its shape.
fn hull(
    values: &[f64],
    range: core::ops::RangeInclusive<usize>,
    bends: impl Fn(f64, f64) -> bool,
) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::new();
    let slope = |from: usize, to: usize| real_usize(to - from) / (values[to] - values[from]);
    for place in range {
        while let [.., before, last] = hull[..]
            && !bends(slope(before, last), slope(last, place))
        {
            hull.pop();
        }
        hull.push(place);
    }
    hull
}

/// The height of the straight line of a piece at a place of it.
fn height(values: &[f64], piece: &[usize], place: usize) -> f64 {
    let (from, to) = (piece[0], piece[1]);
    let width = values[to] - values[from];
    if width <= 0.0 {
        return real_usize(to);
    }
    real_usize(from) + real_usize(to - from) * (values[place] - values[from]) / width
}

/// The largest distance between both hulls, a step included, and the ends of what lies between.
fn farthest(values: &[f64], minorant: &[usize], majorant: &[usize]) -> (f64, usize, usize) {
    let mut found = (0.0, minorant[0], minorant[minorant.len() - 1]);
    let mut at = 0;
    for &place in minorant {
        while majorant[at + 1] < place {
            at += 1;
        }
        let apart = height(values, &majorant[at..], place) - real_usize(place) + 1.0;
        if apart > found.0 {
            found = (apart, place, majorant[at + 1]);
        }
    }
    at = 0;
    for &place in majorant {
        while minorant[at + 1] < place {
            at += 1;
        }
        let apart = real_usize(place) - height(values, &minorant[at..], place) + 1.0;
        if apart > found.0 {
            found = (apart, minorant[at], place);
        }
    }
    found
}

/// How far the sample is from a piece of a hull, a step included: above a minorant, or below a
/// majorant.
fn away(values: &[f64], piece: &[usize], side: f64) -> f64 {
    if values[piece[0]] >= values[piece[1]] {
        // A step of the hull itself, beside the mode.
        return 1.0;
    }
    let inside = piece[0]..=piece[1];
    let distances =
        inside.map(|place| side * (real_usize(place) - height(values, piece, place)) + 1.0);
    distances.fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw as _;
    use crate::sample::Sample;
    use units::Random;

    #[test]
    fn equal_distances_have_the_least_dip() {
        for count in [2_u32, 5, 100] {
            let values: Vec<f64> = (0..count).map(f64::from).collect();
            assert!((dip(&values) - 0.5 / f64::from(count)).abs() < 1e-12);
        }
        assert!((dip(&[3.0; 7]) - 0.5 / 7.0).abs() < 1e-12);
        assert!(dip(&[]).abs() < 1e-12);
    }

    #[test]
    fn two_heaps_far_apart_have_a_dip_of_a_quarter() {
        let heap = |at: f64| (0..500).map(move |step| at + f64::from(step) * 1e-6);
        let values: Vec<f64> = heap(0.0).chain(heap(1.0)).collect();
        assert!((dip(&values) - 0.25).abs() < 0.01, "{}", dip(&values));
    }

    /// The 95 % and 99 % points of the dip of uniform samples, by an implementation of others.
    #[test]
    fn points_of_uniform_samples_are_those_of_the_table() {
        let table =
            [(10, 0.140, 0.160), (15, 0.119, 0.136), (30, 0.088, 0.101), (100, 0.051, 0.059)];
        let mut random = Random::new(6);
        for (count, most, nearly_all) in table {
            let mut draw = || {
                let sample = Sample::new((0..count).map(|_| random.share())).unwrap();
                dip(sample.ascending())
            };
            let dips = Sample::new((0..4000).map(|_| draw())).unwrap();
            for (share, point) in [(0.95, most), (0.99, nearly_all)] {
                let found = dips.quantile(share);
                assert!((found / point - 1.0_f64).abs() < 0.05, "{count} {share}: {found}");
            }
        }
    }
}
