use core::time::Duration;

use units::number::real_usize;

use super::*;

fn setting(sensors: usize, rows: u64) -> Setting {
    Setting {
        sensors,
        mix: Mix::usual(),
        rows,
        limits: Setting::limits(None),
        search_ns: 60_000_000,
        slow_ns: 600_000_000_000,
        way_ns: 20_000_000,
        row_bytes: 1000,
        link_bytes: 1_250_000_000,
        cores: 8,
        connect_ns: 1_000_000,
        read_ns: 5_000,
        take_ns: 5_000,
    }
}

#[test]
fn one_seed_is_one_history_and_another_is_another() {
    let setting = setting(300, 200);
    assert_eq!(ask(&setting, 3), ask(&setting, 3));
    assert_ne!(ask(&setting, 3).whole_s.to_bits(), ask(&setting, 4).whole_s.to_bits());
}

/// Every sensor is named by what is wrong with it, and by nothing else; rows of those that are
/// well are all there, each once, in order.
#[test]
fn dead_slow_and_incomplete_sensors_are_named() {
    let setting = setting(1000, 100);
    let answer = ask(&setting, 1);
    let mut random = Random::new(units::mix(1));
    let kinds: Vec<Kind> = setting.sensors(&mut random).iter().map(|it| it.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind != Kind::Well).count(), 50);
    for (part, kind) in answer.parts.iter().zip(&kinds) {
        assert_eq!(part.condition(false).name(), kind.word(), "{kind:?} {part:?}");
        let expected = match kind {
            Kind::Dead | Kind::Silent | Kind::Slow => 0,
            Kind::Cut => 50,
            _ => 100,
        };
        assert_eq!((part.count, part.late), (expected, 0), "{kind:?} {part:?}");
    }
    // Dead and stuck ones are asked twice, silent ones too.
    assert_eq!(answer.attempts, 1000 + 10 + 10 + 5);
    assert!((30.0..31.5).contains(&answer.whole_s), "{}", answer.whole_s);
}

#[test]
fn a_deadline_ends_it_and_patience_brings_the_first_rows_early() {
    let mut setting = setting(1000, 100);
    setting.limits.deadline = Some(Duration::from_secs(5));
    let strict = ask(&setting, 1);
    // What waits at the deadline goes out behind it.
    let late_s = strict.whole_s - 5.0 - real(strict.rows) * 5e-6;
    assert!((-0.01..0.06).contains(&late_s), "{}", strict.whole_s);
    assert!(strict.first_s.is_some_and(|first_s| first_s > 4.9), "{:?}", strict.first_s);
    setting.limits.patience = Some(Duration::from_millis(200));
    let patient = ask(&setting, 1);
    assert!(patient.first_s.is_some_and(|first_s| first_s < 1.5), "{:?}", patient.first_s);
    let named = patient.named();
    assert_eq!((named["slow"], named["down"], named["broken off"]), (15, 10, 5));
}

/// Nothing but searches: what takes longest of n that are exponential takes H(n) of their mean.
#[test]
fn the_mean_of_the_whole_is_that_of_the_longest_of_n() {
    let (sensors, searches) = (100, 300_u64);
    let setting = Setting {
        mix: Mix::default(),
        way_ns: 0,
        connect_ns: 0,
        read_ns: 0,
        take_ns: 0,
        link_bytes: u64::MAX >> 12,
        ..setting(sensors, 1)
    };
    let sum: f64 = (0..searches).map(|seed| ask(&setting, seed).whole_s).sum();
    let harmonic: f64 = (1..=sensors).map(|number| 1.0 / real_usize(number)).sum();
    let (mean, formula) = (sum / real(searches), harmonic * 0.06);
    // The deviation of one is 1.28 means, of 300 of them 7.4 % of a mean: 1.4 % of H(100).
    assert!((mean / formula - 1.0).abs() < 0.04, "{mean} {formula}");
}

#[test]
fn a_merge_that_is_too_slow_makes_sensors_wait_and_loses_nothing() {
    let setting = Setting { search_ns: 0, way_ns: 0, ..setting(50, 2000) };
    let mut setting = Setting { mix: Mix::default(), take_ns: 100_000, ..setting };
    setting.limits.memory_bytes = 50 * 20_000;
    let answer = ask(&setting, 1);
    assert_eq!((answer.rows, answer.late), (100_000, 0));
    assert!(answer.stalls > 50 && answer.merge > 0.9, "{} {}", answer.stalls, answer.merge);
    // 100 000 rows of 100 us.
    assert!((10.0..11.0).contains(&answer.whole_s), "{}", answer.whole_s);
}
