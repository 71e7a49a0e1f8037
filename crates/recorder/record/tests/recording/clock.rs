//! A recorder whose clock is wrong.

use core::ops::ControlFlow;
use core::time::Duration;

use host::SystemClock;
use record::{Input, MaxAge, Report, record};
use units::{Clock, NANOS_PER_SECOND, Sleep, Timestamp};
use volume::open_reader;
use writer::ClockDoubt;

use crate::volumes::{new_volume, options};

const DAY: Duration = Duration::from_hours(24);
const YEARS_NS: i64 = 5 * 365 * 24 * 3600 * NANOS_PER_SECOND;

/// The system's clock, so much ahead.
struct Ahead(i64);

impl Clock for Ahead {
    fn realtime(&self) -> Timestamp {
        SystemClock.realtime().plus_nanos(self.0)
    }

    fn boottime_ns(&self) -> i64 {
        SystemClock.boottime_ns()
    }

    fn boot(&self) -> u64 {
        SystemClock.boot()
    }
}

impl Sleep for Ahead {
    fn sleep_until(&self, until_ns: i64) {
        SystemClock.sleep_until(until_ns);
    }
}

#[test]
fn a_start_with_a_wrong_clock_is_told_and_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, pcap) = (folder.path().join("volume"), folder.path().join("in.pcap"));
    new_volume(&volume, 64 << 10, 16 << 20);
    let mut file: Vec<u8> = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    let now = u32::try_from(SystemClock.realtime().unix_seconds()).unwrap();
    for word in [now - 60, 0, 60, 60] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 60]);
    std::fs::write(&pcap, file).unwrap();
    let run = |max_age: MaxAge, ahead_ns: i64, clock_is_right: bool| -> Report {
        let mut options = options(&volume, Input::Files(vec![pcap.clone()]));
        (options.max_age, options.clock_is_right) = (max_age, clock_is_right);
        record(&options, &Ahead(ahead_ns), &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let is_hidden = || {
        let reader = open_reader(&volume, &[]).unwrap();
        reader.superblock().expired_through > SystemClock.realtime().plus_nanos(-120_000_000_000)
    };
    run(MaxAge::Unchanged, 0, false);
    let week = MaxAge::Age(7 * DAY);
    assert_eq!(run(week, 0, false).clock_doubt, None);
    for _ in 0..2 {
        let report = run(week, YEARS_NS, false);
        assert!(matches!(report.clock_doubt, Some(ClockDoubt::Ahead { .. })), "{report:?}");
        assert!(report.notes.iter().any(|note| note.contains("--clock-is-right")), "{report:?}");
        assert!(!is_hidden());
    }
    assert_eq!(run(week, 0, false).clock_doubt, None);
    // The user insists, and was wrong.
    assert_eq!(run(week, YEARS_NS, true).clock_doubt, None);
    assert!(is_hidden());
    let report = run(week, 0, false);
    assert!(matches!(report.clock_doubt, Some(ClockDoubt::Behind { .. })), "{report:?}");
    assert_eq!(run(week, 0, true).clock_doubt, None);
    assert!(!is_hidden());
    assert_eq!(run(MaxAge::Off, 0, false).clock_doubt, None);
}
