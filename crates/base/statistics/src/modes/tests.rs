use super::*;
use crate::random::Draw as _;
use units::Random;

/// Twelve uniform values: near enough to a normal one for what is tested here.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.share()).sum::<f64>() - 6.0
}

/// Of each hundred samples of `count` values, of which `share` lie `sigmas` higher: how many each
/// rule calls bimodal, and how many any of them.
fn found(count: usize, share: f64, sigmas: f64) -> [usize; 4] {
    let mut random = Random::new(11);
    let mut counts = [0; 4];
    for _ in 0..100 {
        let upper = floor(share * real_usize(count));
        let values = (0..count).map(|at| {
            let shift = if at < upper { sigmas } else { 0.0 };
            ((normal(&mut random) + shift) * 0.05).exp()
        });
        let modes = modes(&values.collect::<Vec<f64>>()).unwrap();
        let rules = [Rule::Dip, Rule::Gap, Rule::Ashman];
        for (counted, rule) in counts.iter_mut().zip(rules) {
            *counted += usize::from(modes.rules.contains(&rule));
        }
        counts[3] += usize::from(modes.is_bimodal());
    }
    counts
}

#[test]
fn each_rule_finds_what_the_others_miss() {
    // A fifth of 30, far away: for the gap.
    let [_, gap, ..] = found(30, 0.2, 10.0);
    assert!(gap >= 80, "{gap}");
    // A tenth of 100, far away: the dip is blind to it.
    let [dip, gap, ashman, any] = found(100, 0.1, 10.0);
    assert!(dip <= 20 && gap >= 80 && ashman >= 98 && any >= 98, "{dip} {gap} {ashman} {any}");
    // Two halves that touch: for the dip.
    let [dip, gap, _, any] = found(100, 0.5, 4.0);
    assert!(dip >= 50 && gap <= 5 && any >= 50, "{dip} {gap} {any}");
}

#[test]
fn a_single_mode_is_seldom_taken_for_two() {
    for count in [10, 30, 100] {
        let [.., any] = found(count, 0.0, 0.0);
        assert!(any <= 4, "{any} of 100 at {count}");
    }
}

#[test]
fn values_are_parted_where_the_gap_is() {
    let values: Vec<f64> = (0..30).map(|at| if at % 5 == 0 { 90.0 } else { 100.0 }).collect();
    let values: Vec<f64> = values.iter().zip(0..).map(|(v, at)| v + f64::from(at) / 50.0).collect();
    let found = modes(&values).unwrap();
    assert!(found.is_bimodal() && found.is_upper(100.5) && !found.is_upper(90.5), "{found:?}");
    assert_eq!((found.lower.count, found.upper.count), (6, 24));
}

#[test]
fn what_hardly_differs_or_is_too_little_is_not_two_modes() {
    // As clear as can be, and 1 % apart.
    let close: Vec<f64> = (0..40).map(|at| if at % 2 == 0 { 100.0 } else { 101.0 }).collect();
    let found = modes(&close).unwrap();
    assert!(!found.rules.is_empty() && !found.is_bimodal(), "{found:?}");
    assert!(!modes(&[5.0; 12]).unwrap().is_bimodal());
    assert!(modes(&[1.0; 9]).is_none());
    assert!(modes(&[0.0; 20]).is_none());
}

/// Of normal values the best parting takes 2/pi of the variance.
#[test]
fn the_best_parting_of_normal_values_takes_what_theory_says() {
    let mut random = Random::new(12);
    let values: Vec<f64> = (0..20_000).map(|_| normal(&mut random)).collect();
    let sample = Sample::new(values).unwrap();
    let parting = best_parting(sample.ascending(), 3);
    let (low, high) = sample.ascending().split_at(parting.below);
    let mean = |side: &[f64]| side.iter().sum::<f64>() / real_usize(side.len());
    let between =
        [low, high].map(|side| real_usize(side.len()) * (mean(side) - sample.mean()).powi(2));
    let all: f64 = sample.ascending().iter().map(|value| (value - sample.mean()).powi(2)).sum();
    let share = between.iter().sum::<f64>() / all;
    assert!((share - 2.0 / core::f64::consts::PI).abs() < 0.01, "{share}");
}
