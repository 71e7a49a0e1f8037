use format::session_row::{Direction, SessionRow};
use wire::{Address, App, AppBy, FiveTuple, Protocol, Recognised};

use super::*;

const SECOND: i64 = NANOS_PER_SECOND;

fn row(from_s: i64, to_s: i64, bytes: u64, app: Option<App>) -> SessionRow {
    let tuple = FiveTuple {
        orig: Address::V4([10, 0, 0, 1].into()),
        resp: Address::V4([10, 0, 0, 2].into()),
        orig_port: 1000,
        resp_port: 443,
        proto: Protocol::TCP,
    };
    SessionRow {
        end: Timestamp(to_s * SECOND - 1),
        orig: Direction { frame_bytes: bytes, ..Direction::default() },
        app: app.map(|app| Recognised { app, by: AppBy::Content }),
        ..SessionRow::new(tuple, Timestamp(from_s * SECOND))
    }
}

/// A minute of which the first half has 8 Mbit/s of TLS, the second 4 of it and 4 of DNS.
fn traffic() -> Traffic {
    let mut traffic = Traffic::default();
    traffic.add(&row(0, 30, 30_000_000, Some(App::Tls)));
    traffic.add(&row(30, 60, 15_000_000, Some(App::Tls)));
    traffic.add(&row(30, 60, 15_000_000, Some(App::Dns)));
    traffic
}

const PLAIN: PlotStyle = PlotStyle { width: 72, is_terminal: false };

#[test]
fn bands_are_stacked_with_the_largest_below() {
    let text = plot(&traffic(), &[], PLAIN);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].trim_start().starts_with("8.0 Mbit/s |##"), "{text}");
    assert!(lines[0].ends_with("oo"), "{text}");
    assert!(lines[15].ends_with("##") && !lines[15].contains('o'), "{text}");
    assert!(lines[8].trim_start().starts_with("4.0 Mbit/s |") || lines[8].contains('#'), "{text}");
    assert!(text.contains("1970-01-01 00:00:00.000") && text.contains("1970-01-01 00:01:0"));
    assert!(text.contains("# tls") && text.contains("75.0 %") && text.contains("o dns"), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() <= 72), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_terminal_has_colours_that_end_with_each_line() {
    let text = plot(&traffic(), &[], PlotStyle { is_terminal: true, ..PLAIN });
    let coloured = text.lines().filter(|line| line.contains("\u{1b}[3"));
    assert!(coloured.clone().count() > 10, "{text}");
    assert!(coloured.clone().all(|line| line.matches("\u{1b}[0m").count() > 0), "{text}");
}

#[test]
fn missing_packets_are_marked_below_their_time() {
    let gap = (Timestamp(0), Timestamp(SECOND));
    let text = plot(&traffic(), &[gap], PLAIN);
    let line = text.lines().find(|line| line.contains("missing")).unwrap();
    assert!(line.trim_end().ends_with('!') && line.matches('!').count() < 4, "{text}");
    assert!(!plot(&traffic(), &[], PLAIN).contains("missing"));
}

#[test]
fn no_traffic_is_said_and_one_instant_is_drawn() {
    assert_eq!(plot(&Traffic::default(), &[], PLAIN), "no traffic\n");
    let mut traffic = Traffic::default();
    traffic.add(&row(5, 5, 100, None));
    assert!(plot(&traffic, &[], PLAIN).contains("# tcp"));
}

#[test]
fn what_others_share_is_known_to_be_no_protocol() {
    let mut traffic = Traffic::default();
    let chart = |traffic: &Traffic| Chart::new(traffic, 60).unwrap();
    for (number, app) in App::ALL.iter().copied().take(BANDS_MAX + 3).enumerate() {
        let bytes = 1000 - u64::try_from(number).unwrap();
        traffic.add(&row(0, 30, bytes, Some(app)));
        if number == BANDS_MAX {
            assert_eq!(chart(&traffic).others, None);
        }
    }
    let chart = chart(&traffic);
    assert_eq!((chart.others, chart.bands.len()), (Some(3), BANDS_MAX + 1));
    assert_eq!(chart.bands.last().unwrap().name, "3 others");
}

#[test]
fn rates_are_bits_in_the_unit_that_suits_them() {
    for (bytes, nanos, text) in [
        (1, SECOND, "8 bit/s"),
        (125_000, SECOND, "1.0 Mbit/s"),
        (1_250_000_000, SECOND, "10 Gbit/s"),
        (0, SECOND, "0 bit/s"),
    ] {
        assert_eq!(rate(bytes, nanos), text);
    }
}

#[test]
fn json_has_each_stretch_of_time_with_traffic() {
    let lines: Vec<serde_json::Value> =
        plot_json(&traffic()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum: u64 = lines.iter().filter_map(|line| line["bytes"]["tls"].as_u64()).sum();
    assert_eq!(sum, 45_000_000);
    assert_eq!(lines[0]["bytes"].get("dns"), None);
}

#[test]
fn traffic_from_the_earliest_to_the_latest_time_is_drawn() {
    let mut traffic = Traffic::default();
    for (start, end) in [(i64::MIN, i64::MIN), (i64::MAX, i64::MAX), (i64::MIN, i64::MAX)] {
        let mut extreme = row(0, 1, u64::MAX / 2, Some(App::Tls));
        (extreme.start, extreme.end) = (Timestamp(start), Timestamp(end));
        traffic.add(&extreme);
        extreme.app = Some(Recognised { app: App::Dns, by: AppBy::Content });
        traffic.add(&extreme);
    }
    let gaps = [(Timestamp::MIN, Timestamp::MIN), (Timestamp::MIN, Timestamp::MAX)];
    for is_terminal in [false, true] {
        let text = plot(&traffic, &gaps, PlotStyle { width: 72, is_terminal });
        assert!(text.contains("1677-09-21") && text.contains("tls"), "{text}");
    }
    assert!(plot_json(&traffic).lines().count() > 1);
}
