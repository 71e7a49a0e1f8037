//! Tables for terminals: columns are left out while they do not fit even shortened, the others
//! shortened as little as possible.

use crate::safe::printable;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// In the heading.
    pub title: &'a str,
    /// Numbers stand right.
    pub is_number: bool,
    /// It may be shortened down to this width; 0 for never.
    pub least: usize,
    /// On a narrow terminal columns with a larger number go first; 0 stays.
    pub rank: u8,
}

impl<'a> Column<'a> {
    /// One that always has its whole width.
    pub const fn whole(title: &'a str, is_number: bool) -> Self {
        Self { title, is_number, least: 0, rank: 0 }
    }
}

const GAP: usize = 2;

/// A column with its width, and its place in a row.
#[derive(Clone, Debug)]
struct Shown {
    at: usize,
    title: String,
    is_number: bool,
    least: usize,
    rank: u8,
    width: usize,
}

impl Shown {
    /// How narrow it can get.
    fn narrowest(&self) -> usize {
        if self.least == 0 { self.width } else { self.width.min(self.least) }
    }

    /// What it can give.
    fn spare(&self) -> usize {
        self.width - self.narrowest()
    }
}

/// Columns with their widths.
#[derive(Clone, Debug)]
pub struct Layout {
    shown: Vec<Shown>,
}

impl Layout {
    /// Columns as wide as their titles.
    pub fn new(columns: &[Column<'_>]) -> Self {
        let shown = |(at, column): (usize, &Column<'_>)| {
            let Column { title, is_number, least, rank } = *column;
            Shown { at, title: title.to_owned(), is_number, least, rank, width: title.len() }
        };
        Self { shown: columns.iter().enumerate().map(shown).collect() }
    }

    /// Widths for `rows`, within `width` characters if there is a bound.
    pub fn fit(&mut self, rows: &[Vec<String>], width: Option<usize>) {
        for column in &mut self.shown {
            let cells = rows.iter().filter_map(|row| row.get(column.at));
            let widest = cells.map(|cell| cell.chars().count()).max();
            column.width = column.width.max(widest.unwrap_or(0));
        }
        let Some(width) = width else { return };
        while self.width(Shown::narrowest) > width && self.leave_out() {}
        while let Some(excess) = self.width(|column| column.width).checked_sub(width)
            && excess > 0
            && self.shorten(excess)
        {}
    }

    fn width(&self, of: impl Fn(&Shown) -> usize) -> usize {
        let cells: usize = self.shown.iter().map(of).sum();
        cells + GAP * self.shown.len().saturating_sub(1)
    }

    /// Takes what it can of `excess` from the column that has most to give; false if none has.
    fn shorten(&mut self, excess: usize) -> bool {
        let most = self.shown.iter_mut().max_by_key(|column| column.spare());
        let Some(column) = most else { return false };
        let taken = column.spare().min(excess);
        column.width -= taken;
        taken > 0
    }

    fn leave_out(&mut self) -> bool {
        let last = self.shown.iter().enumerate().max_by_key(|(_, column)| column.rank);
        match last {
            Some((at, column)) if column.rank > 0 => {
                self.shown.remove(at);
                true
            }
            _ => false,
        }
    }

    /// The line with the titles.
    pub fn heading(&self) -> String {
        self.line_of(|column| column.title.clone())
    }

    /// The line of a row.
    pub fn line(&self, row: &[String]) -> String {
        self.line_of(|column| row.get(column.at).cloned().unwrap_or_default())
    }

    fn line_of(&self, cell: impl Fn(&Shown) -> String) -> String {
        let mut line = String::new();
        for column in &self.shown {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let cell = shortened(&cell(column), column.width);
            let pad = " ".repeat(column.width.saturating_sub(cell.chars().count()));
            let (before, after) = if column.is_number { (&*pad, "") } else { ("", &*pad) };
            line.extend([before, &cell, after]);
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// A cell stays in its line, whatever is in it.
fn safe(cell: String) -> String {
    if cell.is_ascii() && !cell.contains(|letter: char| letter.is_ascii_control()) {
        return cell;
    }
    printable(&cell)
}

/// Where text is cut there is a tilde: at its end, or before the port of an address, which matters
/// more than the middle.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let end = port(text).filter(|port| port.len() < width.saturating_sub(1)).unwrap_or_default();
    let kept: String = text.chars().take(width.saturating_sub(1 + end.len())).collect();
    format!("{kept}~{end}")
}

/// `:443` at the end of a text.
fn port(text: &str) -> Option<&str> {
    let (address, port) = text.rsplit_once(':')?;
    let is_port = !address.is_empty() && port.parse::<u16>().is_ok();
    text.get(address.len()..).filter(|_| is_port)
}

/// A whole table.
pub fn render(columns: &[Column<'_>], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut layout = Layout::new(columns);
    let safe_row = |row: &Vec<String>| row.iter().cloned().map(safe).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(safe_row).collect();
    layout.fit(&rows, width);
    let lines = rows.iter().map(|row| layout.line(row));
    core::iter::once(layout.heading()).chain(lines).collect()
}

/// Rows that decide the widths of the columns of a long table.
pub(crate) const SAMPLE_ROWS: usize = 500;

/// A table of any length, in constant memory.
#[derive(Debug)]
pub struct LongTable {
    layout: Layout,
    width: Option<usize>,
    /// The first rows, while the widths are not decided.
    sample: Option<Vec<Vec<String>>>,
}

impl LongTable {
    /// A table at most `width` characters wide.
    pub fn new(columns: &[Column<'_>], width: Option<usize>) -> Self {
        Self { layout: Layout::new(columns), width, sample: Some(Vec::new()) }
    }

    /// Takes a row; gives the text that is ready to be shown.
    #[must_use]
    pub fn push(&mut self, row: Vec<String>) -> String {
        let row: Vec<String> = row.into_iter().map(safe).collect();
        match &mut self.sample {
            None => return self.layout.line(&row),
            Some(sample) => sample.push(row),
        }
        let is_enough = self.sample.as_ref().is_some_and(|sample| sample.len() == SAMPLE_ROWS);
        if is_enough { self.begin() } else { String::new() }
    }

    /// Whether it has had no row.
    pub fn is_empty(&self) -> bool {
        self.sample.as_ref().is_some_and(Vec::is_empty)
    }

    /// The rest of the text: of an empty table its heading.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.begin()
    }

    fn begin(&mut self) -> String {
        let Some(sample) = self.sample.take() else { return String::new() };
        self.layout.fit(&sample, self.width);
        let lines = sample.iter().map(|row| self.layout.line(row));
        core::iter::once(self.layout.heading()).chain(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::whole("ID", false),
        Column { title: "COUNT", is_number: true, least: 0, rank: 1 },
        Column { title: "NAME", is_number: false, least: 6, rank: 2 },
    ];

    fn rows() -> Vec<Vec<String>> {
        vec![vec!["1".into(), "10".into(), "a-long-name".into()], vec!["22".into()]]
    }

    #[test]
    fn an_address_that_is_cut_keeps_its_port() {
        assert_eq!(shortened("192.168.100.200:54321", 15), "192.168.~:54321");
        assert_eq!(shortened("[2001:db8:1234:5678::1]:443", 15), "[2001:db8:~:443");
        assert_eq!(shortened("a name that is long", 10), "a name th~");
        assert_eq!(shortened("x:54321", 4), "x:5~", "there is no room for it");
        assert_eq!(shortened("ends with: a word", 10), "ends with~");
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

    #[test]
    fn a_long_table_begins_before_its_end() {
        let mut table = LongTable::new(&COLUMNS, Some(18));
        assert!(table.is_empty());
        let row = || vec!["1".into(), "10".into(), "a-long-name".into()];
        let early: String = (0..=SAMPLE_ROWS).map(|_| table.push(row())).collect();
        assert_eq!(early.lines().count(), SAMPLE_ROWS + 2, "a heading and every row");
        assert!(early.lines().all(|line| line.chars().count() <= 18));
        assert!(!table.is_empty());
        assert_eq!(table.finish(), "");
    }
}
