//! Counts as people read them.

/// A count with its noun: `1 packet`, `12 packets`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// Digits in groups of three: `1 500 000`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_have_their_plural() {
        assert_eq!(plural(1, "packet"), "1 packet");
        assert_eq!(plural(1_500_000, "packet"), "1 500 000 packets");
        assert_eq!(grouped(123), "123");
    }
}
