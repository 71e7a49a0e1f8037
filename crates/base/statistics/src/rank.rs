//! Ranks of values, and whether two samples come from the same source.

use units::number::real_usize;

use crate::normal::both_tails;

/// Ranks from 1 on, equal values sharing the mean of theirs; and the sum of t^3 - t over the
/// groups of equal values.
pub(crate) fn ranks(values: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0.0; values.len()];
    let (mut before, mut ties) = (0, 0.0);
    for group in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let size = real_usize(group.len());
        let rank = real_usize(before) + f64::midpoint(1.0, size);
        for (_, place) in group {
            if let Some(of_place) = ranks.get_mut(*place) {
                *of_place = rank;
            }
        }
        before += group.len();
        ties += size.powi(3) - size;
    }
    (ranks, ties)
}

/// The chance of ranks that differ as much or more although both samples come from one source
/// (Mann and Whitney 1947; normal approximation with ties). 1 where one of them is empty.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> f64 {
    let (n1, n2) = (real_usize(first.len()), real_usize(second.len()));
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let (ranks, ties) = ranks(&all);
    let n = n1 + n2;
    let of_first: f64 = ranks.iter().take(first.len()).sum();
    let away = of_first - n1 * (n1 + 1.0) / 2.0 - n1 * n2 / 2.0;
    let variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)).max(1.0));
    if variance > 0.0 { both_tails(away / variance.sqrt()) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[10.0, 30.0, 10.0, 20.0]), (vec![1.5, 4.0, 1.5, 3.0], 6.0));
    }

    #[test]
    fn what_lies_apart_is_told_apart_and_what_does_not_is_not() {
        let low: Vec<f64> = (0..10).map(f64::from).collect();
        let high: Vec<f64> = (10..20).map(f64::from).collect();
        // U = 0, z = 50 / sqrt(175).
        let p = mann_whitney(&low, &high);
        assert!((p - 1.570_524e-4).abs() < 1e-9, "{p}");
        assert!((mann_whitney(&low, &low) - 1.0).abs() < 1e-12);
        assert!((mann_whitney(&[], &low) - 1.0).abs() < 1e-12);
        assert!((mann_whitney(&[1.0; 5], &[1.0; 5]) - 1.0).abs() < 1e-12);
    }
}
