//! Bytes as hex digits, and back.

/// Bytes in hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// So many bytes of as many pairs of hex digits; `None` of any other text.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let [high, low] = pair.map(digit);
        *byte = high? << 4 | low?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_survive_their_text_and_nothing_else_is_one() {
        let hash: [u8; 32] = core::array::from_fn(|at| u8::try_from(at * 8).unwrap());
        assert_eq!(unhex(&hex(&hash)), Some(hash));
        for text in ["", "00", &"0".repeat(63), &"g".repeat(64), &"0".repeat(66)] {
            assert_eq!(unhex::<32>(text), None, "{text}");
        }
    }
}
