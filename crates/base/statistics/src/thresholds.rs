//! Beyond which a sample has two modes: calibrated, and not computed.
//!
//! `cargo run --release -p statistics --example calibrate` made these numbers; docs/statistics.md
//! has what it printed.

use units::number::real_usize;

/// Sizes of samples that the thresholds are known for.
pub const SIZES: [usize; 12] = [10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000];
/// Of the dip, times the root of the size: it hardly depends on the size then.
const DIP: [f64; 12] =
    [0.534, 0.550, 0.564, 0.586, 0.593, 0.606, 0.602, 0.619, 0.627, 0.637, 0.640, 0.643];
/// Of the gap, in deviations.
const GAP: [f64; 12] = [9.47, 5.57, 4.48, 3.62, 3.08, 2.22, 2.00, 2.00, 2.00, 2.00, 2.00, 2.00];
/// Values of Ashman's D.
const ASHMAN: [f64; 12] = [8.96, 7.36, 7.17, 6.71, 5.92, 5.07, 4.40, 4.07, 3.98, 3.87, 3.78, 3.68];

/// What each rule has to exceed, so that all of them together are wrong in 1 of 100 samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// Threshold of the dip.
    pub dip: f64,
    /// Of the widest gap, in deviations.
    pub gap: f64,
    /// Threshold of Ashman's D.
    pub ashman: f64,
}

impl Thresholds {
    /// For samples of `count` values: between two sizes on a straight line over the logarithm,
    /// beyond them those of the nearest.
    pub fn of(count: usize) -> Self {
        let at = |table: &[f64; 12]| interpolated(table, real_usize(count).ln());
        Self { dip: at(&DIP) / real_usize(count).sqrt(), gap: at(&GAP), ashman: at(&ASHMAN) }
    }
}

fn interpolated(table: &[f64; 12], at: f64) -> f64 {
    let points = SIZES.iter().map(|&size| real_usize(size).ln()).zip(table.iter().copied());
    let after = points.clone().find(|(size, _)| *size >= at);
    let before = points.rev().find(|(size, _)| *size < at);
    match (before, after) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (at - x0) / (x1 - x0),
        (Some((_, value)), None) | (None, Some((_, value))) => value,
        (None, None) => f64::INFINITY,
    }
}
