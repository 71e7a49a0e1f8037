//! Texts of a bounded length.

/// The start of a text: at most so many bytes, cut at a character.
pub fn start_of(text: &str, bytes_max: usize) -> &str {
    text.split_at(text.floor_char_boundary(bytes_max)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_in_front_of_the_character_that_does_not_fit() {
        assert_eq!(start_of("a\u{e4}b", 2), "a");
        assert_eq!(start_of("a\u{e4}b", 3), "a\u{e4}");
        assert_eq!(start_of("ab", 9), "ab");
        assert_eq!(start_of("\u{e4}", 0), "");
    }
}
