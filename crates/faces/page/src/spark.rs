//! Numbers as characters.

/// How a plot is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlotStyle {
    /// Characters of a line.
    pub width: usize,
    /// Colours and blocks, for a terminal.
    pub is_terminal: bool,
}

/// Eighths of a block, from none to seven.
pub const EIGHTHS: [char; 8] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}'];
/// A whole one.
pub const BLOCK: char = '\u{2588}';

/// Where there is no terminal: by weight.
const RAMP: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '%', '#'];

/// Values from 0 to the largest of them, each column the smallest of those that it stands for: a
/// dip is not averaged away. At most `width` columns.
pub fn sparkline(values: &[u64], width: usize, is_terminal: bool) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let columns = width.min(values.len());
    let of_column = |column: usize| {
        let (begin, end) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let value = values.get(begin..end).unwrap_or_default().iter().copied().min().unwrap_or(0);
        let eighths = (u128::from(value) * 8).div_ceil(u128::from(most));
        mark(usize::try_from(eighths).unwrap_or(8), is_terminal)
    };
    (0..columns).map(of_column).collect()
}

fn mark(eighths: usize, is_terminal: bool) -> char {
    match (is_terminal, eighths) {
        (true, 8) => BLOCK,
        (true, eighths) => EIGHTHS.get(eighths).copied().unwrap_or(' '),
        (false, eighths) => RAMP.get(eighths).copied().unwrap_or('?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_wide_as_there_is_room_and_keeps_its_dips() {
        assert_eq!(sparkline(&[8, 4, 1, 0], 10, false), "#=. ");
        assert_eq!(sparkline(&[8, 8, 8, 1, 8, 8], 3, false), "#.#");
        assert_eq!(sparkline(&[5, 10], 10, true), "\u{2584}\u{2588}");
        assert_eq!(
            (sparkline(&[], 10, true), sparkline(&[0], 10, true)),
            (String::new(), " ".into())
        );
    }
}
