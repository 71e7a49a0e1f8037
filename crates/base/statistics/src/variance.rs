//! Whether runs differ, or windows within them.

use units::number::real_usize;

/// The share of all variance that lies between groups (intraclass correlation of one factor,
/// Shrout and Fleiss 1979): near 1 where each run is steady and runs differ, by placement or by
/// what they began with; near 0 where every run varies by itself. `None` with fewer than two
/// groups, or no group of two.
pub fn intraclass(groups: &[Vec<f64>]) -> Option<f64> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let count = real_usize(groups.len());
    let all: f64 = groups.iter().map(|group| real_usize(group.len())).sum();
    if groups.len() < 2 || all <= count {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / real_usize(values.len());
    let grand = groups.iter().flat_map(|group| group.iter()).sum::<f64>() / all;
    let between: f64 =
        groups.iter().map(|group| real_usize(group.len()) * (mean(group) - grand).powi(2)).sum();
    let within: f64 = groups
        .iter()
        .map(|group| {
            let middle = mean(group);
            group.iter().map(|value| (value - middle).powi(2)).sum::<f64>()
        })
        .sum();
    let squares: f64 = groups.iter().map(|group| real_usize(group.len()).powi(2)).sum();
    let size = (all - squares / all) / (count - 1.0);
    let (between, within) = (between / (count - 1.0), within / (all - count));
    let of_groups = ((between - within) / size).max(0.0);
    let total = of_groups + within;
    Some(if total > 0.0 { of_groups / total } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_runs_that_differ_are_told_from_runs_that_vary() {
        let steady = [vec![100.0, 101.0, 99.0], vec![80.0, 81.0, 80.5], vec![100.5, 99.5, 100.0]];
        assert!(intraclass(&steady).unwrap() > 0.95);
        let varying = [vec![100.0, 80.0, 101.0, 79.0], vec![80.5, 99.0, 81.0, 100.0]];
        assert!(intraclass(&varying).unwrap() < 0.05);
        assert!(
            intraclass(&steady[..1]).is_none() && intraclass(&[vec![1.0], vec![2.0]]).is_none()
        );
        assert!(intraclass(&[vec![1.0, 1.0], vec![1.0, 1.0]]).unwrap().abs() < 1e-12);
    }

    /// Four targets and three judges; mean squares 11.25 / 3 and 6.75 / 8 by hand.
    #[test]
    fn the_share_is_that_of_the_analysis_of_variance() {
        let groups =
            [vec![9.0, 8.0, 7.0], vec![6.0, 5.0, 7.0], vec![8.0, 9.0, 8.5], vec![7.0, 6.5, 6.0]];
        let means = [8.0, 6.0, 8.5, 6.5];
        let grand = 7.25_f64;
        let between = 3.0 * means.iter().map(|mean| (mean - grand).powi(2)).sum::<f64>() / 3.0;
        let within = (2.0 + 2.0 + 0.5 + 0.5) / 8.0;
        let expected = (between - within) / (between + 2.0 * within);
        assert!((intraclass(&groups).unwrap() - expected).abs() < 1e-12);
    }
}
