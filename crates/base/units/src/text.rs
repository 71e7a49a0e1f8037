//! Texts of a bounded length.

/// The start of a text: at most so many bytes, cut at a character.
pub fn start_of(text: &str, bytes_max: usize) -> &str {
    text.split_at(text.floor_char_boundary(bytes_max)).0
}

/// The part of a line around the byte `at`: at most so many bytes on each side, with `...` where
/// more is left out; and at which byte of it the place is.
pub fn around(line: &str, at: usize, bytes_max: usize) -> (String, usize) {
    let (before, after) = line.split_at(line.floor_char_boundary(at));
    let cut = before.ceil_char_boundary(before.len().saturating_sub(bytes_max));
    let (left_out, start) = before.split_at(cut);
    let start = format!("{}{start}", if left_out.is_empty() { "" } else { "..." });
    let end = start_of(after, bytes_max);
    let left_out = if end.len() < after.len() { "..." } else { "" };
    (format!("{start}{end}{left_out}"), start.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_the_part_around_a_place_is_shown() {
        let whole = ("abc".to_owned(), 1);
        assert_eq!(around("abc", 1, 8), whole);
        assert_eq!(around("abcdefgh", 4, 2), ("...cdef...".to_owned(), 5));
        assert_eq!(around("a\u{e4}b\u{e4}c", 4, 2), ("...b\u{e4}...".to_owned(), 4));
        assert_eq!(around("abc", 9, 2), ("...bc".to_owned(), 5));
        assert_eq!(around("", 0, 2), (String::new(), 0));
    }

    #[test]
    fn a_text_is_cut_in_front_of_the_character_that_does_not_fit() {
        assert_eq!(start_of("a\u{e4}b", 2), "a");
        assert_eq!(start_of("a\u{e4}b", 3), "a\u{e4}");
        assert_eq!(start_of("ab", 9), "ab");
        assert_eq!(start_of("\u{e4}", 0), "");
    }
}
