//! Base 32 without padding (RFC 4648, section 6): how authenticators take secrets, and letters that
//! a person can type.

const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Bytes as letters and digits. Five bytes are eight of them; a rest is filled with zero bits.
pub(crate) fn base32(bytes: &[u8]) -> String {
    let letter = |bits: u64, at: u32| {
        let index = usize::try_from((bits >> (35 - 5 * at)) & 31).unwrap_or(0);
        char::from(LETTERS.get(index).copied().unwrap_or(b'A'))
    };
    let of_five = |five: &[u8]| -> String {
        let filled = five.iter().copied().chain([0; 4]).take(5);
        let bits = filled.fold(0_u64, |bits, byte| bits << 8 | u64::from(byte));
        let count = u32::try_from((five.len() * 8).div_ceil(5)).unwrap_or(8);
        (0..count).map(|at| letter(bits, at)).collect()
    };
    bytes.chunks(5).map(of_five).collect()
}

/// The bytes of such a text; none where it is none. Bits that fill no byte are left out.
pub(crate) fn unbase32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let value = LETTERS.iter().position(|it| *it == letter.to_ascii_uppercase())?;
        bits = (bits << 5 | u32::try_from(value).ok()?) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
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
