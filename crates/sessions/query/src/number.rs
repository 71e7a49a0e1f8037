//! Numbers as queries have them.

/// A decimal or `0x` number. A leading 0 does not mean octal.
pub(crate) fn number(text: &str) -> Option<u64> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        for (text, expected) in [
            ("80", Some(80)),
            ("0080", Some(80)),
            ("0x27", Some(39)),
            ("", None),
            ("+1", None),
            ("0x+1", None),
            ("-1", None),
            ("1e3", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
