use super::merging::HOUR_NS;
use super::*;
use crate::agenda::nanos;

const SECOND_NS: i64 = 1_000_000_000;

fn put(kind: Kind) -> Call {
    Call { kind, bytes: 1000 }
}

/// 1000 sensors with a part a minute each.
fn setting() -> Setting {
    Setting {
        sensors: 1000,
        part_ns: 60 * SECOND_NS,
        part_bytes: 1e6,
        encode_ns: SECOND_NS / 2,
        ring_parts: 600,
        rate: None,
        script: vec![put(Kind::Put), put(Kind::PutRows), put(Kind::Put)],
        channels: 8,
        call_ns: SECOND_NS / 50,
        channel_bytes: 1e8,
        busy_ns: 10 * SECOND_NS,
        away: (i64::MAX, i64::MAX),
        end_ns: 3600 * SECOND_NS,
    }
}

#[test]
fn one_seed_is_one_history_and_what_comes_in_goes_out() {
    let setting = setting();
    let outcome = play(&setting, 1);
    assert_eq!(outcome, play(&setting, 1));
    assert_ne!(outcome, play(&setting, 2));
    // A part a minute of each; what is under way at the end waits.
    assert!((59_500..60_500).contains(&outcome.parts), "{outcome:?}");
    assert_eq!((outcome.overwritten, outcome.failed), (0, 0));
    assert_eq!(outcome.parts, outcome.archived + outcome.waiting);
    assert!(outcome.waiting < 40, "{outcome:?}");
    let share = expected_share(&setting);
    assert!((outcome.share / share - 1.0).abs() < 0.01, "{} {share}", outcome.share);
    let calls = calls_per_second(&setting) * 3600.0;
    assert!((real(outcome.calls) / calls - 1.0).abs() < 0.01, "{} {calls}", outcome.calls);
}

/// Many sensors at times by chance are nearly a Poisson stream, so that a store that serves one
/// call at a time is M/D/1.
#[test]
fn the_mean_wait_at_the_store_is_that_of_the_formula() {
    for share in [0.5, 0.8] {
        let call_ns = nanos(share * 60.0 / 1000.0);
        let script = vec![put(Kind::Put)];
        let setting =
            Setting { script, channels: 1, call_ns, channel_bytes: f64::MAX, ..setting() };
        let waits: f64 = (0..8).map(|seed| play(&setting, seed).wait_s).sum::<f64>() / 8.0;
        let formula = share / (2.0 * (1.0 - share)) * seconds(call_ns);
        assert!((waits / formula - 1.0).abs() < 0.15, "{share}: {waits} {formula}");
    }
}

/// The rate of catching up is what the store has left over what comes in.
#[test]
fn an_outage_of_an_hour_is_caught_up_and_nothing_is_lost_in_a_ring_that_holds_it() {
    let away = (1800 * SECOND_NS, 5400 * SECOND_NS);
    let setting = Setting { away, end_ns: 6 * HOUR_NS, ..setting() };
    let outcome = play(&setting, 1);
    assert_eq!(outcome.overwritten, 0);
    assert!((60..=75).contains(&outcome.behind_max), "{outcome:?}");
    let share = expected_share(&setting);
    let formula = 3600.0 * share / (1.0 - share);
    let took_s = outcome.caught_up_s.unwrap();
    assert!(took_s > formula && took_s < 3.0 * formula + 300.0, "{took_s} {formula}");
    assert!(outcome.waiting < 40 && outcome.failed > 1000 * 90, "{outcome:?}");
    // A ring of half an hour loses the rest.
    let outcome = play(&Setting { ring_parts: 30, ..setting }, 1);
    assert!((29_000..33_000).contains(&outcome.overwritten), "{outcome:?}");
}

/// A store that is too small never catches up; busy answers keep its queue short, and the parts
/// wait in the rings.
#[test]
fn a_store_that_is_too_small_pushes_back() {
    let setting = Setting { channels: 1, ..setting() };
    assert!(expected_share(&setting) > 1.0);
    let outcome = play(&setting, 1);
    assert!(outcome.longest_s < 10.1 && outcome.failed > 0, "{outcome:?}");
    let formula = real(outcome.parts) * (1.0 - 1.0 / expected_share(&setting));
    assert!((real(outcome.waiting) / formula - 1.0).abs() < 0.05, "{outcome:?} {formula}");
    assert!(outcome.share > 0.99, "{outcome:?}");
    assert_eq!(outcome.parts, outcome.archived + outcome.waiting + outcome.overwritten);
}

#[test]
fn a_sensor_sends_no_faster_than_its_rate() {
    // A megabyte a minute at 10 kB/s takes 100 s.
    let outcome = play(&Setting { rate: Some(10_000), channels: 1000, ..setting() }, 1);
    let per_sensor = real(outcome.archived) / 1000.0;
    assert!((35.0..37.0).contains(&per_sensor), "{per_sensor}");
}

fn merging() -> merging::Setting {
    merging::Setting {
        sensors: 400,
        hours: 6,
        objects: 60,
        object_bytes: 1 << 20,
        object_rows: 4000,
        look_ns: SECOND_NS,
        row_ns: 4_000.0,
        writers: 1,
        life_ns: i64::MAX,
        restart_ns: 10 * SECOND_NS,
        end_ns: 9 * HOUR_NS,
    }
}

#[test]
fn one_writer_merges_every_ripe_hour_of_objects_into_as_few_as_the_bounds_allow() {
    let setting = merging();
    assert!(merging::expected_share(&setting) < 0.25);
    let outcome = merging::play(&setting, 1);
    assert_eq!(outcome, merging::play(&setting, 1));
    assert_eq!((outcome.ripe, outcome.merged), (6 * 400, 6 * 400));
    // Hours 1 to 6 are ripe; the last one is not. 60 objects of 1 MiB fit into one of 64 MiB.
    assert_eq!((outcome.objects, outcome.left), (7 * 400 * 60, 6 * 400 + 400 * 60));
    assert_eq!((outcome.deaths, outcome.barred), (0, 0));
}

#[test]
fn a_writer_that_dies_leaves_hours_that_another_one_merges_when_its_claim_is_over() {
    let setting = merging::Setting { life_ns: 600 * SECOND_NS, ..merging() };
    let outcome = merging::play(&setting, 1);
    assert!(outcome.deaths > 30 && outcome.barred > 0, "{outcome:?}");
    assert_eq!(outcome.merged, outcome.ripe, "{outcome:?}");
    // The claim of a writer that died holds for eleven minutes.
    assert!(outcome.delay_max_s > 660.0, "{outcome:?}");
    // Without deaths one merges them all in a quarter of an hour.
    assert!(merging::play(&merging(), 1).delay_max_s < 900.0);
}
