//! Tables for terminals: columns are left out while they do not fit even shortened, the others
//! shortened as little as possible.

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'a> {
    pub(crate) title: &'a str,
    /// Numbers stand right.
    pub(crate) is_number: bool,
    /// It may be shortened down to this width; 0 for never.
    pub(crate) least: usize,
    /// Where there is no room, columns with a larger number go first; 0 stays.
    pub(crate) rank: u8,
}

const GAP: usize = 2;

/// How narrow a column of this width can get.
fn least(column: &Column<'_>, width: usize) -> usize {
    if column.least == 0 { width } else { width.min(column.least) }
}

/// Columns with their widths.
#[derive(Clone, Debug)]
pub(crate) struct Layout<'a> {
    /// Place in a row, column, width.
    shown: Vec<(usize, Column<'a>, usize)>,
}

impl<'a> Layout<'a> {
    /// Widths for `rows`, within `width` characters if there is a bound.
    pub(crate) fn fit(columns: &[Column<'a>], rows: &[Vec<String>], width: Option<usize>) -> Self {
        let widest = |at: usize, column: &Column<'_>| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([column.title.len()]).max().unwrap_or(0)
        };
        let measured = columns.iter().enumerate();
        let shown = measured.map(|(at, column)| (at, *column, widest(at, column))).collect();
        let mut layout = Self { shown };
        let Some(width) = width else { return layout };
        while layout.width(least) > width && layout.leave_out() {}
        while let Some(excess) = layout.width(|_, width| width).checked_sub(width)
            && excess > 0
            && layout.shorten(excess)
        {}
        layout
    }

    fn width(&self, of: impl Fn(&Column<'_>, usize) -> usize) -> usize {
        let cells: usize = self.shown.iter().map(|(_, column, width)| of(column, *width)).sum();
        cells + GAP * self.shown.len().saturating_sub(1)
    }

    /// Takes what it can of `excess` from the column that has most to give; false if none has.
    fn shorten(&mut self, excess: usize) -> bool {
        let spare = |column: &Column<'_>, width: usize| width - least(column, width);
        let most = self.shown.iter_mut().max_by_key(|(_, column, width)| spare(column, *width));
        let Some((_, column, width)) = most else { return false };
        let taken = spare(column, *width).min(excess);
        *width -= taken;
        taken > 0
    }

    fn leave_out(&mut self) -> bool {
        let ranked = self.shown.iter().enumerate();
        let last = ranked.max_by_key(|(_, (_, column, _))| column.rank);
        match last {
            Some((at, (_, column, _))) if column.rank > 0 => {
                self.shown.remove(at);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn heading(&self) -> String {
        self.line_of(|column, _| column.title.to_owned())
    }

    pub(crate) fn line(&self, row: &[String]) -> String {
        self.line_of(|_, at| row.get(at).cloned().unwrap_or_default())
    }

    fn line_of(&self, cell: impl Fn(&Column<'_>, usize) -> String) -> String {
        let mut line = String::new();
        for (at, column, width) in &self.shown {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let cell = shortened(&cell(column, *at), *width);
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if column.is_number { (&*pad, "") } else { ("", &*pad) };
            line.extend([before, &cell, after]);
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// Cut text ends with a tilde.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "~"
}

/// A whole table.
pub(crate) fn render(columns: &[Column<'_>], rows: &[Vec<String>], width: Option<usize>) -> String {
    let layout = Layout::fit(columns, rows, width);
    let lines = rows.iter().map(|row| layout.line(row));
    core::iter::once(layout.heading()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { title: "ID", is_number: false, least: 0, rank: 0 },
        Column { title: "COUNT", is_number: true, least: 0, rank: 1 },
        Column { title: "NAME", is_number: false, least: 6, rank: 2 },
    ];

    fn rows() -> Vec<Vec<String>> {
        vec![vec!["1".into(), "10".into(), "a-long-name".into()], vec!["22".into()]]
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let text = render(&COLUMNS, &rows(), None);
        assert_eq!(text, "ID  COUNT  NAME\n1      10  a-long-name\n22\n");
    }

    #[test]
    fn columns_are_left_out_where_shortening_is_not_enough() {
        let text = render(&COLUMNS, &rows(), Some(18));
        assert_eq!(text, "ID  COUNT  NAME\n1      10  a-long~\n22\n");
        let text = render(&COLUMNS, &rows(), Some(10));
        assert_eq!(text, "ID  COUNT\n1      10\n22\n");
        let text = render(&COLUMNS, &rows(), Some(1));
        assert_eq!(text, "ID\n1\n22\n");
    }
}
