//! The normal distribution.

use core::f64::consts::{PI, SQRT_2};

/// The chance that a standard normal value is above `z`.
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 { 1.0 - normal_tail(-z) } else { 0.5 * error_function_complement(z / SQRT_2) }
}

/// Two-sided.
pub(crate) fn both_tails(z: f64) -> f64 {
    (2.0 * normal_tail(z.abs())).min(1.0)
}

/// The complement of the error function, of a value of at least 0: its series (Abramowitz and
/// Stegun 7.1.6, all terms positive) where that keeps 10 digits, the continued fraction (7.1.14)
/// beyond.
fn error_function_complement(x: f64) -> f64 {
    if x < 2.5 {
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term > sum * 1e-17 {
            odd += 2.0;
            term *= 2.0 * x * x / odd;
            sum += term;
        }
        return 1.0 - 2.0 / PI.sqrt() * (-x * x).exp() * sum;
    }
    // From the inside out; 60 steps are exact from 2.5 on.
    let fraction = (1..=60).rev().fold(x, |inner, step| x + f64::from(step) / 2.0 / inner);
    (-x * x).exp() / (fraction * PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (3.090_232_306_167_813, 0.001),
            (3.6, 1.591_085_901_575_338e-4),
            (6.0, 9.865_876_450_376_98e-10),
        ] {
            let found = normal_tail(z);
            assert!((found / tail - 1.0).abs() < 1e-9, "{z}: {found}");
            assert!((normal_tail(-z) - (1.0 - tail)).abs() < 1e-12);
        }
    }
}
