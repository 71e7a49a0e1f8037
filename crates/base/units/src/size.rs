//! Sizes in bytes as people write them.

use core::fmt;
use core::str::FromStr;

/// A number of bytes. Read with binary suffixes (`8G` = 8 GiB) and written with them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ByteSize(pub u64);

/// The text is not a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseSizeError;

impl fmt::Display for ParseSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a size; write bytes or a number with K, M, G or T (powers of 1024), such as 8G",
        )
    }
}

impl core::error::Error for ParseSizeError {}

const SUFFIXES: [(char, u32); 5] = [('k', 10), ('m', 20), ('g', 30), ('t', 40), ('p', 50)];

/// Reads `4096`, `8G`, `1.5T`, `256MiB`; suffixes are powers of 1024.
impl FromStr for ByteSize {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let stem = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
        let (number, shift) = SUFFIXES
            .iter()
            .find_map(|&(letter, shift)| stem.strip_suffix(letter).map(|number| (number, shift)))
            .unwrap_or((stem, 0));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !plain(whole) || !plain(fraction) || fraction.len() > 6 {
            return Err(ParseSizeError);
        }
        let whole: u64 = whole.parse().map_err(|_| ParseSizeError)?;
        let unit = 1_u64 << shift;
        let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| ParseSizeError)?;
        let part = u128::from(unit) * u128::from(micros) / 1_000_000;
        whole
            .checked_mul(unit)
            .and_then(|bytes| bytes.checked_add(u64::try_from(part).ok()?))
            .map(Self)
            .ok_or(ParseSizeError)
    }
}

/// Three significant digits with a binary suffix: `1.50 GiB`, `512 B`.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(&(letter, shift)) = SUFFIXES.iter().rev().find(|&&(_, shift)| self.0 >> shift > 0)
        else {
            return write!(f, "{} B", self.0);
        };
        let letter = letter.to_ascii_uppercase();
        let hundredths = (u128::from(self.0) * 100) >> shift;
        let (whole, part) = (hundredths / 100, hundredths % 100);
        match whole {
            0..=9 => write!(f, "{whole}.{part:02} {letter}iB"),
            10..=99 => write!(f, "{whole}.{} {letter}iB", part / 10),
            _ => write!(f, "{whole} {letter}iB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        for (text, bytes) in [
            ("4096", 4096),
            ("8G", 8 << 30),
            ("1.5t", 3 << 39),
            ("256MiB", 256 << 20),
            ("2kb", 2048),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_size_is_refused() {
        for text in ["", "G", "-1", "1e9", "8 G!", "99999999999999999999", "17179869184G"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ParseSizeError), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_with_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 30, "1.00 GiB"),
            (3 << 29, "1.50 GiB"),
            (123 << 20, "123 MiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }
}
