//! Base 32 without padding (RFC 4648, section 6): how authenticators take secrets, and letters that
//! a person can type.

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};

/// Bytes as letters and digits. Five bytes are eight of them; a rest is filled with zero bits.
pub(crate) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes)
}

/// The bytes of such a text; none where it is none.
pub(crate) fn unbase32(text: &str) -> Option<Vec<u8>> {
    BASE32_NOPAD_NOCASE.decode(text.as_bytes()).ok()
}

/// In groups of four small letters, to be read aloud and typed.
pub(crate) fn grouped(bytes: &[u8]) -> String {
    let text = base32(bytes).to_ascii_lowercase();
    let letters: Vec<char> = text.chars().collect();
    let groups: Vec<String> = letters.chunks(4).map(|four| four.iter().collect()).collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10, without the padding.
    #[test]
    fn the_vectors_of_the_rfc() {
        for (plain, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(plain.as_bytes()), text);
            assert_eq!(unbase32(text).unwrap(), plain.as_bytes());
            assert_eq!(unbase32(&text.to_lowercase()).unwrap(), plain.as_bytes());
        }
        assert_eq!(unbase32("M1"), None);
    }
}
