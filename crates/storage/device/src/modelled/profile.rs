//! The rate of a disk by place on its surface, measured once and read from CSV.

use units::number::real;

use crate::ROW_SIZE;

/// Bytes behind each number in a `seconds` column: 10 000 writes of 2 MiB.
const PROBE_BYTES: f64 = 20_971_520_000.0;

/// Rates at points of the surface, joined by straight lines and level beyond the outermost points.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneProfile {
    capacity_bytes: u64,
    /// Offset and bytes a second, by offset; at least one.
    points: Vec<(f64, f64)>,
}

/// Why a text is no zone profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The header names neither column.
    #[error("no columns `offset_bytes,mb_per_s` or `offset_bytes,seconds`")]
    Columns,
    /// A line is not two numbers, the second above 0.
    #[error("line {line} is not an offset and a positive number")]
    Line {
        /// Counted from 1.
        line: usize,
    },
    /// Offsets do not rise.
    #[error("line {line} lies before the line above it")]
    Order {
        /// Counted from 1.
        line: usize,
    },
    /// Header only.
    #[error("no measurements")]
    Empty,
}

impl ZoneProfile {
    /// The same rate everywhere.
    pub fn level(capacity_bytes: u64, bytes_per_s: f64) -> Self {
        Self { capacity_bytes, points: vec![(0.0, bytes_per_s)] }
    }

    /// Reads lines of `offset_bytes,mb_per_s`, or of `offset_bytes,seconds` for 10 000 writes of
    /// 2 MiB each. Lines that begin with `#` are passed over.
    pub fn parse(csv: &str, capacity_bytes: u64) -> Result<Self, ProfileError> {
        let lines = csv.lines().zip(1..).map(|(text, line)| (text.trim(), line));
        let mut lines = lines.filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
        let rate: fn(f64) -> f64 = match lines.next().map(|(header, _)| header) {
            Some("offset_bytes,mb_per_s") => |mb_per_s| mb_per_s * 1e6,
            Some("offset_bytes,seconds") => |seconds| PROBE_BYTES / seconds,
            _ => return Err(ProfileError::Columns),
        };
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (text, line) in lines {
            let numbers = text.split_once(',').and_then(|(offset, value)| {
                Some((real(offset.trim().parse().ok()?), value.trim().parse::<f64>().ok()?))
            });
            let (offset, value) = numbers
                .filter(|(_, value)| value.is_finite() && *value > 0.0)
                .ok_or(ProfileError::Line { line })?;
            if points.last().is_some_and(|last| last.0 >= offset) {
                return Err(ProfileError::Order { line });
            }
            points.push((offset, rate(value)));
        }
        if points.is_empty() {
            Err(ProfileError::Empty)
        } else {
            Ok(Self { capacity_bytes, points })
        }
    }

    /// Bytes of the disk that was measured.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// A disk of another size with the same surface: the rate at a share of the way in is
    /// `rate_factor` times what it was. A disk of a tenth of the bytes at a tenth of the rate takes
    /// the same times as the whole one.
    ///
    /// # Panics
    /// If the capacity is 0 or the factor is not positive.
    #[must_use]
    pub fn scaled(&self, capacity_bytes: u64, rate_factor: f64) -> Self {
        assert!(capacity_bytes > 0 && rate_factor > 0.0, "a disk has a surface that moves");
        let factor = real(capacity_bytes) / real(self.capacity_bytes);
        let points = self.points.iter();
        let points = points.map(|&(offset, rate)| (offset * factor, rate * rate_factor)).collect();
        Self { capacity_bytes, points }
    }

    /// Bytes a second at a place.
    pub fn rate_at(&self, offset: u64) -> f64 {
        let at = real(offset);
        let behind = self.points.partition_point(|point| point.0 < at);
        let before = behind.checked_sub(1).and_then(|index| self.points.get(index));
        match (before, self.points.get(behind)) {
            (Some((x0, r0)), Some((x1, r1))) => r0 + (r1 - r0) * (at - x0) / (x1 - x0),
            (Some((_, rate)), None) | (None, Some((_, rate))) => *rate,
            (None, None) => unreachable!("a profile has points"),
        }
    }

    /// Nanoseconds to pass `len` bytes from `offset` on.
    pub(super) fn transfer_ns(&self, offset: u64, len: u64) -> u64 {
        nanos(real(len) / self.rate_at(offset + len / 2))
    }

    /// How far apart two places are, as a share of the surface.
    pub(super) fn share(&self, from: u64, to: u64) -> f64 {
        real(from.abs_diff(to)) / real(self.capacity_bytes.max(crate::to_u64(ROW_SIZE)))
    }
}

pub(super) fn nanos(seconds: f64) -> u64 {
    let duration = core::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_lie_on_lines_between_the_points() {
        let profile =
            ZoneProfile::parse("# a disk\noffset_bytes,mb_per_s\n0,200\n1000,100\n", 2000).unwrap();
        let check = |offset: u64, mb_per_s: f64| {
            assert!((profile.rate_at(offset) / 1e6 - mb_per_s).abs() < 1e-9, "{offset}");
        };
        check(0, 200.0);
        check(250, 175.0);
        check(1000, 100.0);
        check(1999, 100.0);
        assert_eq!(profile.transfer_ns(0, 1000), 6667);
        let half = profile.scaled(1000, 0.1);
        assert!((half.rate_at(125) - profile.rate_at(250) / 10.0).abs() < 1e-6);
    }

    #[test]
    fn seconds_are_those_of_ten_thousand_writes() {
        let profile = ZoneProfile::parse("offset_bytes,seconds\n0,10\n", 1 << 40).unwrap();
        assert!((profile.rate_at(77) - 2_097_152_000.0).abs() < 1.0);
    }

    #[test]
    fn texts_that_are_no_profile_are_refused() {
        let check = |csv: &str, error: ProfileError| {
            assert_eq!(ZoneProfile::parse(csv, 1), Err(error), "{csv}");
        };
        check("", ProfileError::Columns);
        check("offset,rate\n0,1\n", ProfileError::Columns);
        check("offset_bytes,mb_per_s\n", ProfileError::Empty);
        check("offset_bytes,mb_per_s\n0,1\nx,2\n", ProfileError::Line { line: 3 });
        check("offset_bytes,mb_per_s\n0,0\n", ProfileError::Line { line: 2 });
        check("offset_bytes,mb_per_s\n\n5,1\n5,2\n", ProfileError::Order { line: 4 });
    }
}
