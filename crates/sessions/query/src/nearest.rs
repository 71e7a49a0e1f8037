//! Which word was probably meant by one that is unknown.

/// Words longer than this are not compared: none of ours is as long, and the cost is quadratic.
const LONGEST_WORD: usize = 32;

/// The end of a sentence about an unknown word that says what was probably meant by it.
pub fn did_you_mean(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

/// The known word with the fewest edits to `word`, among them swaps of neighbours: at most one edit
/// for short words, two for long ones.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let most = if word.len() <= 4 { 1 } else { 2 };
    known
        // So many insertions at least make the shorter one as long.
        .filter(|known| known.len().abs_diff(word.len()) <= most)
        .map(|known| (strsim::osa_distance(&word, &known.to_ascii_lowercase()), known))
        .filter(|&(edits, _)| edits <= most)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_few_edits_away() {
        let known = ["port", "host", "dns.name"];
        for (word, meant) in [
            ("prot", Some("port")),
            ("Hosst", Some("host")),
            ("dnsname", Some("dns.name")),
            ("dsnname", Some("dns.name")),
            ("part", Some("port")),
            ("parts", Some("port")),
            ("parcel", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
    }
}
