//! Tables below a title, for a terminal and for a page.

use page::table::{Column, render};
use page::text::duration;
use page::{Cell, Document};

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 20;
/// Length of the longest bar of a histogram.
const BAR: u64 = 24;
/// Columns of words that are as wide hold names of any length.
const LONG: usize = 16;

/// Rows below a title, for a terminal and for a page.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column<'static>>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        title: &str,
        columns: [Column<'static>; N],
        rows: impl Iterator<Item = [String; N]>,
    ) -> Self {
        let rows = rows.map(Vec::from).collect();
        Self { title: title.to_owned(), columns: columns.to_vec(), rows }
    }

    pub(crate) fn shown(&self) -> &[Vec<String>] {
        self.rows.get(..ROWS_MAX).unwrap_or(&self.rows)
    }

    /// How many rows are not shown.
    pub(crate) fn rest(&self) -> Option<String> {
        let more = self.rows.len().saturating_sub(ROWS_MAX);
        (more > 0).then(|| format!("and {more} more (--json has all)"))
    }

    /// Nothing without rows.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let rest = self.rest().map_or_else(String::new, |rest| rest + "\n");
        format!("{}\n{}{rest}\n", self.title, render(&self.columns, self.shown(), width))
    }

    /// The same on a page.
    pub(crate) fn on(&self, page: &mut Document) {
        if self.rows.is_empty() {
            return;
        }
        let titles: Vec<String> =
            self.columns.iter().map(|column| column.title.to_lowercase()).collect();
        let headings: Vec<&str> = titles.iter().map(String::as_str).collect();
        let cell = |(column, text): (&Column<'_>, &String)| match column {
            column if column.is_number => Cell::number(text),
            column if column.least >= LONG => Cell::long(text),
            _ => Cell::text(text),
        };
        let row = |row: &Vec<String>| self.columns.iter().zip(row).map(cell).collect();
        let rows: Vec<Vec<Cell>> = self.shown().iter().map(row).collect();
        page.table(&self.title, &headings, &rows);
        if let Some(rest) = self.rest() {
            page.remark(&rest);
        }
    }
}

pub(crate) fn number(title: &'static str, rank: u8) -> Column<'static> {
    Column { title, is_number: true, least: 0, rank }
}

pub(crate) fn words(title: &'static str, least: usize) -> Column<'static> {
    Column { title, is_number: false, least, rank: 0 }
}

pub(crate) fn time(nanos: u64) -> String {
    duration(i64::try_from(nanos).unwrap_or(i64::MAX))
}

pub(crate) fn share(part: u64, of: u64) -> String {
    let percent = (u128::from(part) * 100).checked_div(u128::from(of)).unwrap_or(0);
    format!("{percent} %")
}

/// A bar of a histogram, whose longest stands for `most`.
pub(crate) fn bar(count: u64, most: u64) -> String {
    let len = (u128::from(count) * u128::from(BAR)).div_ceil(u128::from(most.max(1)));
    "#".repeat(usize::try_from(len).unwrap_or(0))
}
