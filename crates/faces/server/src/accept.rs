//! In which form an answer is wanted.

use hyper::header::{ACCEPT, HeaderMap};
use interface::JSON;

/// What stands first in `Accept` of these; the first of them where none does.
pub(crate) fn wanted_of(headers: &HeaderMap, kinds: &[&'static str]) -> &'static str {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut accepted = accepted
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let named = accepted.find_map(|name| kinds.iter().find(|kind| **kind == name));
    named.or(kinds.first()).copied().unwrap_or(JSON)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use interface::NDJSON;

    use super::*;

    #[test]
    fn lines_are_sent_to_who_names_them_before_a_page() {
        for (accept, are_lines) in [
            ("application/x-ndjson", true),
            ("text/html, Application/X-NDJSON;q=0.9, application/json", true),
            ("application/json, application/x-ndjson", false),
            ("*/*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            let wanted = wanted_of(&headers, &[JSON, NDJSON]);
            assert_eq!(wanted == NDJSON, are_lines, "{accept}");
        }
        assert_eq!(wanted_of(&HeaderMap::new(), &[JSON, NDJSON]), JSON);
    }
}
