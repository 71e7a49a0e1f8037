//! Text with `*` for any run of characters.

use core::fmt;

/// The parts of the text between its stars; one part means that there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    parts: Vec<String>,
}

impl Pattern {
    /// A word as it stands: every `*` is a wild card.
    pub(crate) fn bare(text: &str) -> Self {
        Self { parts: text.split('*').map(str::to_owned).collect() }
    }

    /// The inside of quotes: `\` takes the next character, `*` too, for itself.
    pub(crate) fn quoted(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '*' => parts.push(core::mem::take(&mut part)),
                '\\' => part.extend(characters.next()),
                _ => part.push(character),
            }
        }
        parts.push(part);
        Self { parts }
    }

    /// This text and no other.
    pub(crate) fn exactly(text: &str) -> Self {
        Self { parts: vec![text.to_owned()] }
    }

    /// Any text that has this one in it.
    pub(crate) fn containing(text: &str) -> Self {
        Self { parts: vec![String::new(), text.to_owned(), String::new()] }
    }

    /// The only text that fits, if there are no stars.
    pub(crate) fn whole(&self) -> Option<&str> {
        if let [whole] = self.parts.as_slice() { Some(whole) } else { None }
    }

    /// The texts between its stars; one means that there is none.
    pub(crate) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Whether all of `text` fits. Without `exact`, ASCII letters fit in either case (as in DNS,
    /// RFC 4343).
    pub(crate) fn matches(&self, text: &str, exact: bool) -> bool {
        let same = |a: &[u8], b: &[u8]| if exact { a == b } else { a.eq_ignore_ascii_case(b) };
        let text = text.as_bytes();
        let [first, middle @ .., last] = self.parts.as_slice() else {
            return self.parts.first().is_some_and(|whole| same(whole.as_bytes(), text));
        };
        let Some((start, rest)) = text.split_at_checked(first.len()) else { return false };
        let Some((mut rest, end)) =
            rest.len().checked_sub(last.len()).and_then(|at| rest.split_at_checked(at))
        else {
            return false;
        };
        // Each part at its earliest place leaves the most for the next.
        same(first.as_bytes(), start)
            && same(last.as_bytes(), end)
            && middle.iter().map(String::as_bytes).filter(|part| !part.is_empty()).all(|part| {
                let found = rest.windows(part.len()).position(|window| same(window, part));
                rest = found.and_then(|at| rest.get(at + part.len()..)).unwrap_or(&[]);
                found.is_some()
            })
    }
}

/// Quoted, so that it reads back as it is whatever it contains.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |part: &String| {
            part.chars().fold(String::new(), |mut text, character| {
                if matches!(character, '"' | '\\' | '*') {
                    text.push('\\');
                }
                text.push(character);
                text
            })
        };
        write!(f, "\"{}\"", self.parts.iter().map(escape).collect::<Vec<_>>().join("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_run_and_nothing_else_does() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "A", true),
            ("a", "ab", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*.example.com", "www.example.com", true),
            ("*.example.com", "example.com", false),
            ("www.*", "www.", true),
            ("a*b*a", "aba", true),
            ("a*b*a", "aa", false),
            ("ab*ba", "aba", false),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aab", false),
            ("a?c", "abc", false),
        ] {
            assert_eq!(Pattern::bare(pattern).matches(text, false), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn exact_patterns_tell_cases_apart() {
        assert!(!Pattern::bare("a*").matches("Ab", true));
    }

    #[test]
    fn escapes_take_the_meaning_of_a_star() {
        assert!(Pattern::quoted(r#"a\*\"\\*"#).matches(r#"a*"\z"#, true));
        assert!(!Pattern::quoted(r"a\*").matches("ab", true));
    }
}
