//! Which word was probably meant by one that is unknown.

/// Words longer than this are not compared: none of ours is as long, and the cost is quadratic.
const LONGEST_WORD: usize = 32;

/// The end of a sentence about an unknown word that says what was probably meant by it.
pub fn did_you_mean(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

/// The known word with the fewest edits to `word`: one edit for short words, two for long ones.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let most = if word.len() <= 4 { 1 } else { 2 };
    known
        // So many insertions at least make the shorter one as long.
        .filter(|known| known.len().abs_diff(word.len()) <= most)
        .map(|known| (edits(&word, &known.to_ascii_lowercase()), known))
        .filter(|&(edits, _)| edits <= most)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, known)| known)
}

/// Changes, insertions, deletions and swaps of neighbours that make one word of another.
fn edits(from: &str, to: &str) -> usize {
    edits_of(from.as_bytes(), to.as_bytes())
}

/// Edit distance with swapped neighbours as one edit (optimal string alignment).
fn edits_of(from: &[u8], to: &[u8]) -> usize {
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut next: Vec<usize> = Vec::new();
    let mut previous_from = None;
    for (row, &a) in from.iter().enumerate() {
        next.clear();
        next.push(row + 1);
        let mut previous_to = None;
        for (column, &b) in to.iter().enumerate() {
            let cell =
                |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX);
            let mut cost = (cell(&last, column) + usize::from(a != b))
                .min(cell(&last, column + 1) + 1)
                .min(cell(&next, column) + 1);
            if previous_from == Some(b) && previous_to == Some(a) {
                cost = cost.min(cell(&older, column - 1) + 1);
            }
            next.push(cost);
            previous_to = Some(b);
        }
        // Of three rows the oldest becomes the next one.
        core::mem::swap(&mut older, &mut last);
        core::mem::swap(&mut last, &mut next);
        previous_from = Some(a);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_insertions_changes_and_swaps() {
        for (from, to, count) in
            [("", "", 0), ("", "ab", 2), ("prot", "port", 1), ("hsot", "host", 1), ("abc", "b", 2)]
        {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }
}
