//! Names of people, tokens and roles.

const NAME_MAX: usize = 64;

/// What a name has, in words.
pub const NAME_RULE: &str = "a name has letters, digits, dots, dashes and underscores, 64 at most";

/// Whether a text is a name: harmless in a line, a path and a page.
pub fn is_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_harmless_wherever_it_stands() {
        for name in ["anna", "anna.b-c_9", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a:b", "a/b", "a\n", "\u{e4}", &"x".repeat(65), "a=b", "%41"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
