//! Small pieces of text: numbers with their unit, and times.

use core::fmt::Write as _;
use core::time::Duration;

use units::number::{between, per_second};
use units::{ByteSize, NANOS_PER_SECOND, Timestamp};
pub use units::{grouped, plural};

use crate::safe::printable;

/// A length of time in the unit that suits it: `350 ms`, `12.4 s`, `3 h 20 min`, `12.5 days`.
pub fn duration(nanos: i64) -> String {
    let nanos = nanos.max(0);
    let seconds = nanos / NANOS_PER_SECOND;
    let tenths = |unit: i64| format!("{}.{}", nanos / unit, nanos / (unit / 10) % 10);
    match seconds {
        0 if nanos < 1_000_000 => format!("{} us", tenths(1_000)),
        0 => format!("{} ms", tenths(1_000_000)),
        1..120 => format!("{} s", tenths(NANOS_PER_SECOND)),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} days", tenths(86_400 * NANOS_PER_SECOND)),
    }
}

/// The same of a count of nanoseconds.
pub fn nanos(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A part of a whole: `12.5 %`.
pub fn percent(part: u64, whole: u64) -> String {
    permille(units::number::permille(part, whole))
}

/// Thousandths as percent.
pub fn permille(value: u64) -> String {
    format!("{}.{} %", value / 10, value % 10)
}

/// The same of a time that was measured.
pub fn took(time: Duration) -> String {
    duration(units::nanos(time))
}

/// Bytes in a length of time: `812 MiB/s`.
pub fn rate(bytes: u64, nanos: i64) -> String {
    format!("{}/s", ByteSize(per_second(bytes, between(0, nanos))))
}

/// Rates of disks are given in powers of 1000, as their makers do.
pub fn disk_rate(bytes_per_s: u64) -> String {
    let (unit, name) = match bytes_per_s {
        0..1_000_000 => (1_000, "kB/s"),
        1_000_000..1_000_000_000 => (1_000_000, "MB/s"),
        _ => (1_000_000_000, "GB/s"),
    };
    let hundredths = u128::from(bytes_per_s) * 100 / unit;
    match hundredths {
        0..1_000 => format!("{}.{:02} {name}", hundredths / 100, hundredths % 100),
        1_000..10_000 => format!("{}.{} {name}", hundredths / 100, hundredths / 10 % 10),
        _ => format!("{} {name}", hundredths / 100),
    }
}

/// Bits a second in the unit that suits them.
pub fn bits(per_second: u64) -> String {
    let (unit, name) = match per_second {
        0..1_000_000 => (1_000, "kbit/s"),
        1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
        _ => (1_000_000_000, "Gbit/s"),
    };
    let hundredths = u128::from(per_second) * 100 / unit;
    format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
}

/// The clock that tables show times by.
#[derive(Clone, Copy, Debug, Default)]
pub enum Zone {
    /// UTC.
    #[default]
    Utc,
    /// That of the machine: the seconds that its clocks are ahead of UTC at a second since 1970.
    Local(fn(i64) -> i32),
}

impl Zone {
    /// The name in a heading.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utc => "UTC",
            Self::Local(_) => "local",
        }
    }

    /// A time in milliseconds; where it is not UTC with its offset, so that a query can take it.
    pub fn time(self, at: Timestamp) -> String {
        let Self::Local(offset) = self else { return time(at) };
        let seconds = i64::from(offset(at.unix_seconds()));
        let local = time(at.plus_nanos(seconds.saturating_mul(NANOS_PER_SECOND)));
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// A time in milliseconds: `2026-11-20 10:40:22.123`, UTC.
pub fn time(time: Timestamp) -> String {
    cut(time, 23)
}

/// A time to the second: `2026-11-20 10:40:22`, UTC.
pub fn clock_time(time: Timestamp) -> String {
    cut(time, 19)
}

/// So many letters of a time, with a blank before the clock.
fn cut(time: Timestamp, letters: usize) -> String {
    let whole = time.to_string();
    whole.get(..letters).unwrap_or(&whole).replace('T', " ")
}

/// The day of a time: `2026-11-20`, UTC.
pub fn day(time: Timestamp) -> String {
    let whole = time.to_string();
    whole.split('T').next().unwrap_or(&whole).to_owned()
}

/// From and to, and how long that is.
pub fn times((from, to): (Timestamp, Timestamp)) -> String {
    format!("{} to {} UTC ({})", time(from), time(to), duration(to.since(from)))
}

/// Bytes as people say them and as they are.
pub fn size(bytes: u64) -> String {
    format!("{} ({} bytes)", ByteSize(bytes), grouped(bytes))
}

/// Lines of at most `width` characters, where words are that short; those behind the first stand
/// `further` in.
pub fn wrapped(text: &str, width: usize, further: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{:further$}{word}", ""));
        }
    }
    lines
}

/// Lines of `name: value` with the values below each other; each stays in its line.
#[derive(Debug, Default)]
pub struct Facts(String);

impl Facts {
    /// Appends a line.
    pub fn add(&mut self, name: &str, value: impl core::fmt::Display) {
        // Further values of a name stand below it.
        let name = if name.is_empty() { String::new() } else { format!("{name}:") };
        let value = printable(&value.to_string());
        writeln!(self.0, "{name:<14} {value}").expect("a string takes all text");
    }

    /// The lines.
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        for (nanos, text) in [
            (-5, "0.0 us"),
            (1_500, "1.5 us"),
            (350_000_000, "350.0 ms"),
            (12_400_000_000, "12.4 s"),
            (12_000 * NANOS_PER_SECOND, "3 h 20 min"),
            (1_080_000 * NANOS_PER_SECOND, "12.5 days"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }

    #[test]
    fn local_times_have_their_offset() {
        let at: Timestamp = "2026-11-20T23:40:22.1234Z".parse().unwrap();
        assert_eq!(Zone::Utc.time(at), "2026-11-20 23:40:22.123");
        let india = Zone::Local(|_| 19_800).time(at);
        assert_eq!(india, "2026-11-21 05:10:22.123+05:30");
        assert_eq!(Zone::Local(|_| -12_600).time(at), "2026-11-20 20:10:22.123-03:30");
        let back: Timestamp = india.parse().unwrap();
        assert_eq!(back.0, at.0 / 1_000_000 * 1_000_000);
        assert_eq!(Zone::Local(|_| i32::MIN).time(Timestamp::MIN).len(), 33);
    }

    #[test]
    fn rates_survive_a_clock_that_stood_still() {
        assert_eq!(rate(1 << 30, 2 * NANOS_PER_SECOND), "512 MiB/s");
        assert_eq!(rate(1, 0), "953 MiB/s");
    }

    #[test]
    fn bits_have_the_unit_that_suits_them() {
        for (per_second, text) in
            [(999, "0.99 kbit/s"), (12_340_000, "12.34 Mbit/s"), (9_870_000_000, "9.87 Gbit/s")]
        {
            assert_eq!(bits(per_second), text);
        }
    }
}
