//! One-time passwords by time (RFC 6238): six digits, 30 s, SHA-1, which is what authenticators
//! take.

use hmac::{Hmac, Mac as _};
use sha1::Sha1;
use units::Timestamp;

const STEP_S: i64 = 30;
/// A clock that is so many steps off is taken, and a code that was typed slowly.
const DRIFT: u64 = 1;
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;

/// The number of 30 s since 1970 at a time.
pub(crate) fn step_at(now: Timestamp) -> u64 {
    now.unix_seconds().max(0).unsigned_abs() / STEP_S.unsigned_abs()
}

/// The code of a step (RFC 4226, section 5.3).
pub(crate) fn code(secret: &[u8], step: u64) -> u32 {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let offset = usize::from(hash.last().copied().unwrap_or(0) & 0xf);
    let four = hash.iter().skip(offset).take(4);
    let number = four.fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    (number & 0x7fff_ffff) % MODULUS
}

/// The step, later than those that were used, whose code this is at about this time.
pub(crate) fn step_of(secret: &[u8], given: &str, now: Timestamp, used: u64) -> Option<u64> {
    let given = digits(given)?;
    let now = step_at(now);
    let steps = now.saturating_sub(DRIFT)..=now.saturating_add(DRIFT);
    // All are computed: the time says nothing.
    let fitting = steps.filter(|step| code(secret, *step) == given).collect::<Vec<_>>();
    fitting.into_iter().find(|step| *step > used)
}

/// The number of a text that has the form of a code.
pub(crate) fn digits(text: &str) -> Option<u32> {
    let plain: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let is_code = plain.len() == DIGITS && plain.bytes().all(|byte| byte.is_ascii_digit());
    plain.parse().ok().filter(|_| is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000_000)
    }

    /// RFC 6238, appendix B, the last six of its eight digits.
    #[test]
    fn the_vectors_of_the_rfc() {
        for (seconds, expected) in [
            (59_u64, 287_082),
            (1_111_111_109, 81_804),
            (1_111_111_111, 50_471),
            (1_234_567_890, 5_924),
            (2_000_000_000, 279_037),
            (20_000_000_000, 353_130),
        ] {
            assert_eq!(code(SECRET, seconds / 30), expected, "{seconds}");
        }
        assert_eq!(step_at(at(59)), 1);
    }

    #[test]
    fn a_code_counts_one_step_early_and_late_and_once() {
        let now = at(1_111_111_111);
        let step = step_at(now);
        let text = |step| format!("{:06}", code(SECRET, step));
        for (of, is_taken) in [(-2_i64, false), (-1, true), (0, true), (1, true), (2, false)] {
            let of = step.saturating_add_signed(of);
            assert_eq!(step_of(SECRET, &text(of), now, 0), is_taken.then_some(of));
            assert_eq!(step_of(SECRET, &text(of), now, of), None, "it was used");
        }
        // Of an earlier step than one that was used none is taken any more.
        assert_eq!(step_of(SECRET, &text(step - 1), now, step), None);
        let spaced = format!("{} {}", &text(step)[..3], &text(step)[3..]);
        assert_eq!(step_of(SECRET, &spaced, now, 0), Some(step));
        for wrong in ["", "12345", "1234567", "+12345", "abcdef", "\u{661}23456"] {
            assert_eq!(digits(wrong), None, "{wrong}");
        }
    }
}
