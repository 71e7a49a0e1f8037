//! Timestamps in nanoseconds since 1970 UTC, their text form, and the clock trait.

use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicI64, Ordering};
use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds of a length of time. Saturates.
pub fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted (as in
/// pcapng). In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The earliest representable time, for open ranges.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest representable time, for open ranges.
    pub const MAX: Self = Self(i64::MAX);

    /// Nanoseconds from `earlier` to `self`; negative when `self` is the earlier one. Saturates.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time moved by `nanos`, which may be negative. Saturates.
    #[must_use]
    pub fn plus_nanos(self, nanos: i64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Reads seconds since 1970 with decimals (`1795339353.25`), as many logs have them; those
    /// beyond the ninth are cut. `None` for anything else, and for times that are none here.
    pub fn from_unix_text(text: &str) -> Option<Self> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        at_second(seconds.parse().ok()?, fraction_nanos(fraction)?)
    }

    /// Seconds since 1970, rounded down.
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(NANOS_PER_SECOND)
    }

    /// Nanoseconds after the full second of [`Self::unix_seconds`]: 0 to 999 999 999.
    pub fn subsecond_nanos(self) -> i64 {
        self.0.rem_euclid(NANOS_PER_SECOND)
    }
}

/// RFC 3339 in UTC with nine decimals: `2026-11-20T10:40:22.000000000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (
            self.unix_seconds().div_euclid(SECONDS_PER_DAY),
            self.unix_seconds().rem_euclid(SECONDS_PER_DAY),
        );
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let nanos = self.subsecond_nanos();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseTimestampError;

impl fmt::Display for ParseTimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time; write 2026-11-20T10:40:22Z, with decimals and an offset if needed")
    }
}

impl core::error::Error for ParseTimestampError {}

/// Reads RFC 3339 (`2026-11-20T10:40:22.5+01:00`); the date alone means its first instant, a
/// missing offset UTC, `T` may be a blank, seconds may be left out. Decimals beyond the ninth are
/// cut.
impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_rfc3339(text).ok_or(ParseTimestampError)
    }
}

fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
        None => (text, None),
    };
    let mut fields = date.split('-');
    let (year, month, day) =
        (digits(fields.next()?, 4)?, digits(fields.next()?, 2)?, digits(fields.next()?, 2)?);
    if fields.next().is_some()
        || !(1..=12).contains(&month)
        || !(1..=days_in_month(year, month)).contains(&day)
    {
        return None;
    }
    let midnight = days_from_civil(year, month, day).checked_mul(SECONDS_PER_DAY)?;
    let Some(rest) = rest else {
        return Some(Timestamp(midnight.checked_mul(NANOS_PER_SECOND)?));
    };
    let (clock, offset_seconds) = split_offset(rest)?;
    let (whole, fraction) =
        clock.split_once('.').map_or((clock, ""), |(whole, fraction)| (whole, fraction));
    let mut parts = whole.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |text| digits(text, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = midnight + hour * 3600 + minute * 60 + second - offset_seconds;
    at_second(seconds, fraction_nanos(fraction)?)
}

/// The first second is not whole: its nanoseconds alone are no time, those added to them are.
fn at_second(seconds: i64, nanos: i64) -> Option<Timestamp> {
    let sum = i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos);
    i64::try_from(sum).ok().map(Timestamp)
}

/// Splits `10:40:22+01:00` into the clock and its offset from UTC in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else {
        return Some((text, 0));
    };
    let (clock, offset) = (text.get(..at)?, text.get(at + 1..)?);
    let (hours, minutes) =
        offset.split_once(':').map_or((offset, "00"), |(hours, minutes)| (hours, minutes));
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    Some((clock, if text.get(at..=at)? == "-" { -seconds } else { seconds }))
}

fn fraction_nanos(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = fraction.get(..9).unwrap_or(fraction);
    format!("{kept:0<9}").parse().ok()
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a proleptic Gregorian date (Howard Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Where a crate gets the time: the system's clocks in the product, virtual time in simulation.
pub trait Clock: Send + Sync {
    /// Wall-clock time, which may jump (`CLOCK_REALTIME`).
    fn realtime(&self) -> Timestamp;
    /// Nanoseconds since boot, which never go back and count suspends (`CLOCK_BOOTTIME`).
    fn boottime_ns(&self) -> i64;

    /// Which boot of which machine that counts from; 0: not known.
    fn boot(&self) -> u64 {
        0
    }

    /// What the system says of its wall-clock time; `None` where nobody says anything.
    fn state(&self) -> Option<ClockState> {
        None
    }
}

/// A clock that was slewed goes wrong by less than this between two looks, nanoseconds.
pub const CLOCK_STEP_NS: i64 = 50_000_000;

/// How far the wall clock is ahead of the time since boot: another one once it was set.
pub fn wall_offset_ns(clock: &dyn Clock) -> i64 {
    clock.realtime().0.saturating_sub(clock.boottime_ns())
}

/// Whether the clock was set, and not slewed, between two such offsets.
pub fn is_clock_step(before_ns: i64, after_ns: i64) -> bool {
    before_ns.abs_diff(after_ns) > CLOCK_STEP_NS.unsigned_abs()
}

/// What a kernel says of its wall-clock time (`adjtimex(2)`): the numbers of the program that keeps
/// it, and no measurement. In microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockState {
    /// A program keeps the clock, and has told the kernel so not long ago.
    pub is_synchronised: bool,
    /// How far the clock is off, as estimated by that program.
    pub estimated_error_us: u64,
    /// How far it is off at most, by the same program; grows while that is silent.
    pub largest_error_us: u64,
}

/// A clock that can be waited for.
pub trait Sleep: Clock {
    /// Returns at [`Clock::boottime_ns`] of `until_ns`, or a little later; at once where that is
    /// past.
    fn sleep_until(&self, until_ns: i64);
}

/// A clock that stands still until a caller moves it: for tests and simulation.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanos: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start` as wall-clock time and as time since boot.
    pub fn new(start: Timestamp) -> Self {
        Self { nanos: AtomicI64::new(start.0) }
    }

    /// Moves both clocks forward.
    pub fn advance_nanos(&self, nanos: i64) {
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn realtime(&self) -> Timestamp {
        Timestamp(self.nanos.load(Ordering::Relaxed))
    }

    fn boottime_ns(&self) -> i64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

/// A thread that sleeps moves the clock.
impl Sleep for ManualClock {
    fn sleep_until(&self, until_ns: i64) {
        self.nanos.fetch_max(until_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: i64, nanos: i64) {
        assert_eq!(text.parse(), Ok(Timestamp(seconds * NANOS_PER_SECOND + nanos)), "{text}");
    }

    #[test]
    fn seconds_since_1970_are_read_with_their_decimals() {
        for (text, nanos) in [
            ("1795339353", Some(1_795_339_353_000_000_000)),
            ("1795339353.25", Some(1_795_339_353_250_000_000)),
            ("0.1234567899", Some(123_456_789)),
            ("-1", Some(-NANOS_PER_SECOND)),
            ("", None),
            ("1h ago", None),
            ("1.x", None),
            ("9999999999999", None),
        ] {
            assert_eq!(Timestamp::from_unix_text(text), nanos.map(Timestamp), "{text}");
        }
    }

    #[test]
    fn rfc3339_is_read_with_offsets_and_decimals() {
        check("1970-01-01T00:00:00Z", 0, 0);
        check("1970-01-01", 0, 0);
        check("2026-11-20T10:40:22Z", 1_795_171_222, 0);
        check("2026-11-20 10:40", 1_795_171_200, 0);
        check("2026-11-20T11:40:22.5+01:00", 1_795_171_222, 500_000_000);
        check("2000-02-29T00:00:00.1234567899Z", 951_782_400, 123_456_789);
        check("1969-12-31T23:59:59Z", -1, 0);
    }

    #[test]
    fn text_that_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2026-11-20T25:00:00Z",
            "2026-11-20T10:40:22.xZ",
            "2026-11-20T10:40:22+24:00",
            "2026-11-20T10:40:22-01:60",
            "26-1-1",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError), "{text}");
        }
    }

    #[test]
    fn display_and_parse_are_inverse() {
        let extremes = [i64::MIN, i64::MIN / 2, i64::MAX];
        for nanos in
            [0, -1, 1_795_171_222_123_456_789, 951_782_399_999_999_999].into_iter().chain(extremes)
        {
            let time = Timestamp(nanos);
            assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_is_slewed() {
        let clock = ManualClock::new(Timestamp(7_200 * NANOS_PER_SECOND));
        let before = wall_offset_ns(&clock);
        clock.advance_nanos(NANOS_PER_SECOND);
        assert!(!is_clock_step(before, wall_offset_ns(&clock)));
        for step_ns in [
            -3_600 * NANOS_PER_SECOND,
            -CLOCK_STEP_NS - 1,
            CLOCK_STEP_NS + 1,
            3_600 * NANOS_PER_SECOND,
        ] {
            assert!(is_clock_step(before, before + step_ns), "{step_ns}");
        }
    }
}
