//! A word or an address in the middle of a text.

/// Whether `term` stands in the text by itself, ASCII letters in either case: next to it is no
/// letter or digit, and an address or a number does not go on. So `10.0.0.1` is in `10.0.0.1:80`
/// and `http://10.0.0.1/`, not in `10.0.0.12` or `110.0.0.1`.
pub(crate) fn mentions(text: &str, term: &str) -> bool {
    let (text, term) = (text.to_ascii_lowercase(), term.to_ascii_lowercase());
    // Only IPv6 addresses go on behind a colon: behind others a port follows.
    let is_ipv6 = term.contains(':');
    let is_part = |next: Option<char>, behind: Option<char>, edge: Option<char>| {
        let both = |is: fn(char) -> bool| behind.is_some_and(is) && edge.is_some_and(is);
        match next {
            Some('.') => both(|it| it.is_ascii_digit()),
            Some(':') => is_ipv6 && both(|it| it.is_ascii_hexdigit() || it == ':'),
            next => [edge, next].iter().all(|it| it.is_some_and(char::is_alphanumeric)),
        }
    };
    !term.is_empty()
        && text.match_indices(&term).any(|(at, found)| {
            let (before, rest) = text.split_at(at);
            let after = rest.split_at(found.len()).1;
            let (mut back, mut on) = (before.chars().rev(), after.chars());
            !is_part(back.next(), back.next(), found.chars().next())
                && !is_part(on.next(), on.next(), found.chars().next_back())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_by_itself_and_not_in_others() {
        for (text, term, expected) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.12", "10.0.0.1", false),
            ("110.0.0.1", "10.0.0.1", false),
            ("1.10.0.0.1", "10.0.0.1", false),
            ("10.0.0.1.5", "10.0.0.1", false),
            ("10.0.0.12 10.0.0.1", "10.0.0.1", true),
            ("http://10.0.0.1:8080/", "10.0.0.1", true),
            ("seen at 10.0.0.1.", "10.0.0.1", true),
            ("10.0.0.1.example.com", "10.0.0.1", true),
            ("[2001:DB8::1]:443", "2001:db8::1", true),
            ("2001:db8::1:2", "2001:db8::1", false),
            ("2001:db8::12", "2001:db8::1", false),
            ("1:2001:db8::1", "2001:db8::1", false),
            ("2001:db8::", "2001:db8::", true),
            ("fe80::1%eth0", "fe80::1", true),
            ("Mr. Jones, Joneson", "jones", true),
            ("Joneson", "jones", false),
            ("b.jones@example.com", "jones", true),
            ("\u{fc}njones", "jones", false),
            ("a", "", false),
        ] {
            assert_eq!(mentions(text, term), expected, "{term} in {text}");
        }
    }
}
