//! Tables that live: lines of values that can be sorted and searched, as text and as JSON. What
//! `top` shows is made of them.

mod disks;
mod dns;
mod profile;
mod recorders;
mod sockets;
mod talkers;
mod vitals;

use core::cmp::Ordering;

use findings::Unseen;
use serde_json::{Map, Value, json};
use units::ByteSize;

pub use disks::{DiskGrouping, disks_sheet};
pub use dns::dns_sheet;
pub use profile::{profile_head, profile_sheet};
pub use recorders::{RecorderGrouping, recorders_sheet};
pub use sockets::{SocketGrouping, sockets_sheet};
pub use talkers::{HEAD_SECONDS, talkers_sheet, traffic_head};
pub use vitals::{VitalsGrouping, vitals_sheet};

use page::safe::{json_pretty, printable};
use page::table::{Column, Layout};
use page::text::{grouped, nanos, permille};

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Not known, or there is none.
    Absent,
    /// Words; from the system or the network, so they are escaped where they are shown.
    Text(String),
    /// A number that something goes by, such as a process.
    Id(u64),
    /// A number of things.
    Count(u64),
    /// A number of things a second.
    PerSecond(u64),
    /// Bytes.
    Bytes(u64),
    /// Bytes a second.
    BytesPerSecond(u64),
    /// Bits a second.
    BitsPerSecond(u64),
    /// A length of time in nanoseconds.
    Nanos(u64),
    /// Thousandths of a whole.
    Permille(u64),
    /// A number with a fraction, in the unit that its column or line names.
    Real(f64),
}

impl Cell {
    /// A cell of text; empty for `None`.
    pub fn text(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Absent, |text| Self::Text(text.into()))
    }

    /// A length of time, or nothing.
    pub fn nanos(ns: Option<u64>) -> Self {
        ns.map_or(Self::Absent, Self::Nanos)
    }

    /// Of those that are whole.
    fn number(&self) -> Option<u64> {
        match *self {
            Self::Absent | Self::Text(_) | Self::Real(_) => None,
            Self::Id(number)
            | Self::Count(number)
            | Self::PerSecond(number)
            | Self::Bytes(number)
            | Self::BytesPerSecond(number)
            | Self::BitsPerSecond(number)
            | Self::Nanos(number)
            | Self::Permille(number) => Some(number),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Absent => "-".to_owned(),
            Self::Text(text) => printable(text),
            Self::Id(number) => number.to_string(),
            Self::Count(count) => grouped(*count),
            Self::PerSecond(count) => format!("{}/s", decimal(*count).trim_end()),
            Self::Bytes(bytes) => ByteSize(*bytes).to_string(),
            Self::BytesPerSecond(bytes) => format!("{}/s", ByteSize(*bytes)),
            Self::BitsPerSecond(bits) => format!("{}bit/s", decimal(*bits)),
            Self::Nanos(ns) => nanos(*ns),
            Self::Permille(share) => permille(*share),
            Self::Real(number) => format!("{number:.2}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Absent => Value::Null,
            Self::Text(text) => json!(text),
            Self::Real(number) => json!(number),
            other => json!(other.number()),
        }
    }
}

/// Three figures and a prefix of the powers of 1000: `12.5 k`, with a blank at the end.
fn decimal(number: u64) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut tenths, mut place) = (u128::from(number) * 10, 0);
    while tenths >= 10_000 && place + 1 < PREFIXES.len() {
        tenths = (tenths + 500) / 1000;
        place += 1;
    }
    let prefix = PREFIXES.get(place).copied().unwrap_or_default();
    if place == 0 || tenths >= 1000 {
        format!("{} {prefix}", tenths / 10)
    } else {
        format!("{}.{} {prefix}", tenths / 10, tenths % 10)
    }
}

/// A column of a sheet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SheetColumn {
    /// Its name in JSON, with the unit.
    pub key: &'static str,
    /// Title of the column.
    pub title: &'static str,
    /// Narrowest width that it may be shortened to; 0 for not at all, as numbers are.
    pub least: usize,
    /// On a narrow terminal columns with a larger number go first; 0 stays.
    pub rank: u8,
}

impl SheetColumn {
    /// A column of numbers.
    pub const fn number(key: &'static str, title: &'static str, rank: u8) -> Self {
        Self { key, title, least: 0, rank }
    }

    /// A column of words.
    pub const fn words(key: &'static str, title: &'static str, least: usize, rank: u8) -> Self {
        Self { key, title, least, rank }
    }
}

/// A line of a sheet.
#[derive(Clone, PartialEq, Debug)]
pub struct SheetLine {
    /// A value for each column.
    pub cells: Vec<Cell>,
    /// A query that selects what it is about, where it is about sessions.
    pub query: Option<String>,
}

/// A table that lives.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sheet {
    /// Columns of the table.
    pub columns: Vec<SheetColumn>,
    /// Its lines, most first.
    pub lines: Vec<SheetLine>,
    /// What there is to say besides: what was not seen, what it would take, what is wrong.
    pub notes: Vec<String>,
    /// Of rates over several windows: how much of each was seen, in nanoseconds.
    pub rates_over_ns: Option<[i64; 3]>,
}

/// The order of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SheetOrder {
    /// The column that decides.
    pub column: usize,
    /// Against the usual way, which is most first for numbers and A first for words.
    pub is_reversed: bool,
}

impl Sheet {
    /// Puts lines in order; those that are equal stay as they are.
    pub fn sort(&mut self, order: SheetOrder) {
        self.lines.sort_by(|one, other| {
            let of = |line: &SheetLine| line.cells.get(order.column).cloned();
            match (of(one), of(other)) {
                (Some(one), Some(other)) => compare(&one, &other, order.is_reversed),
                _ => Ordering::Equal,
            }
        });
    }

    /// Keeps lines that have all these words, in upper or lower case, in some of their cells.
    pub fn keep(&mut self, words: &str) {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        self.lines.retain(|line| {
            let texts = line.cells.iter().map(|cell| cell.shown().to_lowercase());
            let texts: Vec<String> = texts.collect();
            words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
        });
    }

    /// The heading, and a text for each of these lines, of one width; the column that decides the
    /// order is marked.
    pub fn shown(
        &self,
        lines: core::ops::Range<usize>,
        width: usize,
        order: Option<SheetOrder>,
    ) -> (String, Vec<String>) {
        let titles: Vec<String> = (0..)
            .zip(&self.columns)
            .map(|(at, column)| match order.filter(|order| order.column == at) {
                Some(order) if order.is_reversed => format!("{}^", column.title),
                Some(_) => format!("{}v", column.title),
                None => column.title.to_owned(),
            })
            .collect();
        let shown = self.lines.get(lines).unwrap_or_default();
        let columns: Vec<Column<'_>> = (0..)
            .zip(self.columns.iter().zip(&titles))
            .map(|(at, (column, title))| Column {
                title,
                is_number: self.is_number(at),
                least: column.least,
                rank: column.rank,
            })
            .collect();
        let rows: Vec<Vec<String>> =
            shown.iter().map(|line| line.cells.iter().map(Cell::shown).collect()).collect();
        let mut layout = Layout::new(&columns);
        layout.fit(&rows, Some(width));
        let line = |text: String| text.trim_end_matches('\n').to_owned();
        let lines = rows.iter().map(|row| line(layout.line(row))).collect();
        (line(layout.heading()), lines)
    }

    /// Words stand left: a column is one of words if it may be shortened.
    fn is_number(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| column.least == 0)
    }

    /// The table as text, at most so wide, with its notes.
    pub fn text(&self, lines_max: usize, width: Option<usize>) -> String {
        let count = self.lines.len().min(lines_max);
        let (heading, lines) = self.shown(0..count, width.unwrap_or(usize::MAX), None);
        let more = self.lines.len() - count;
        let rest = (more > 0).then(|| format!("and {more} more"));
        let notes = self.notes.iter().map(|note| printable(note));
        let heading = (!heading.is_empty()).then_some(heading);
        let all = heading.into_iter().chain(lines).chain(rest).chain(notes);
        all.map(|line| line + "\n").collect()
    }

    /// An object: lines with a value for each key, and notes.
    pub(crate) fn json(&self) -> Value {
        let line = |line: &SheetLine| -> Value {
            let cells = self.columns.iter().zip(&line.cells);
            let known = cells.filter(|(_, cell)| **cell != Cell::Absent);
            let mut object: Map<String, Value> =
                known.map(|(column, cell)| (column.key.to_owned(), cell.json())).collect();
            object.extend(line.query.as_ref().map(|query| ("query".to_owned(), json!(query))));
            Value::Object(object)
        };
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        match self.rates_over_ns {
            Some(ns) => json!({ "rates_over_ns": ns, "lines": lines, "notes": self.notes }),
            None => json!({ "lines": lines, "notes": self.notes }),
        }
    }
}

/// A note on what could not be seen.
fn unseen(unseen: &Unseen) -> String {
    format!("not seen: {}; {}", unseen.what, unseen.needs)
}

fn compare(one: &Cell, other: &Cell, is_reversed: bool) -> Ordering {
    let order = match (one, other) {
        // What is not there is last either way.
        (Cell::Absent, Cell::Absent) => return Ordering::Equal,
        (Cell::Absent, _) => return Ordering::Greater,
        (_, Cell::Absent) => return Ordering::Less,
        (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
        (Cell::Real(one), Cell::Real(other)) => other.total_cmp(one),
        _ => other.number().cmp(&one.number()),
    };
    if is_reversed { order.reverse() } else { order }
}

/// Sheets by tab and grouping as one object: what `top --once --json` prints.
pub fn sheets_json<'s>(
    time_ns: i64,
    sheets: impl IntoIterator<Item = (&'s str, &'s str, &'s Sheet)>,
) -> String {
    let mut tabs: Map<String, Value> = Map::new();
    for (tab, grouping, sheet) in sheets {
        let groupings = tabs.entry(tab.to_owned()).or_insert_with(|| json!({}));
        if let Some(groupings) = groupings.as_object_mut() {
            groupings.insert(grouping.to_owned(), sheet.json());
        }
    }
    json_pretty(&json!({ "version": 1, "time_ns": time_ns, "tabs": tabs }))
}

#[cfg(test)]
mod tests;
