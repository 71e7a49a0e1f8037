//! Ten codes for who has lost the authenticator: shown once, each counts once.

use units::hex;

use crate::base32::grouped;
use crate::secret::hash_of;

/// So many are made at a time.
pub(crate) const CODES: usize = 10;
/// 80 random bits: nobody guesses them, so a plain hash hides them.
pub(crate) const CODE_BYTES: usize = 10;

/// The code of these random bytes, as it is shown.
pub(crate) fn code(random: &[u8]) -> String {
    grouped(random)
}

/// By what a code is known, however it is typed.
pub(crate) fn hash(typed: &str) -> String {
    let letters = typed.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    hex(&hash_of(&plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_known_however_it_is_typed() {
        let shown = code(&[0xa5; CODE_BYTES]);
        assert_eq!(shown.len(), 19, "{shown}");
        for typed in [shown.to_uppercase(), shown.replace('-', " "), shown.replace('-', "")] {
            assert_eq!(hash(&typed), hash(&shown), "{typed}");
        }
        assert_ne!(hash(&shown[1..]), hash(&shown));
    }
}
