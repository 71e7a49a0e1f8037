//! The fields of a session's row that are stored, each declared once: its name, what it means, how
//! its values are written, how they lie in a column, and how a row gives and takes them.
//!
//! Everything else follows from this table: the Parquet columns (`index`), the fields of queries
//! and their help (`query`), JSON and CSV and the way back (`session-view`), the tables of SQL and
//! of archives. docs/sessions.md describes them for readers of the files.
//!
//! The order is that of the columns in a file. It matters in one place: `start_ns` comes first,
//! because later times are stored as differences to it. Unsigned counters are stored as signed
//! 64-bit integers with the same bits, because no distributed engine reads unsigned ones without a
//! declaration; a count above 2^63 would show as negative there and is exact here.

mod table;

pub use table::STORED_FIELDS;

use units::Timestamp;
use wire::Address;

use crate::kind::Kind;
use crate::session_row::{PieceSpan, SessionRow};

/// How the values of a column are laid out. Compression costs more than all the rest of encoding,
/// so only columns of text that repeats in part have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One after the other: pays for flags.
    Plain,
    /// One after the other, compressed: pays for texts.
    Zstd,
    /// A dictionary of the distinct values: pays for a few words or flags.
    Dictionary,
    /// Differences to the value before, bit-packed: pays for numbers and times.
    Delta,
}

/// Of how many bits the integers of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 32: every value fits.
    Narrow,
    /// 64.
    Wide,
}

/// Whether a list of the pieces may be left empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It never is.
    Always,
    /// Where all of its values are zero.
    UnlessZero,
}

/// Gives an integer of many rows at once, and of one.
#[derive(Clone, Copy, Debug)]
pub struct NumberOf {
    /// Of each of these rows.
    pub of_all: fn(&[&SessionRow]) -> Vec<i64>,
    /// Of one row.
    pub of: fn(&SessionRow) -> i64,
}

/// How a row gives and takes a value. A setter returns `None` for what no row can hold.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Nanoseconds since 1970; always there.
    Time(NumberOf, fn(&mut SessionRow, i64)),
    /// Integer; always there.
    Number(Width, NumberOf, fn(&mut SessionRow, i64) -> Option<()>),
    /// Integer, absent where there is none.
    MaybeNumber(Width, fn(&SessionRow) -> Option<i64>, fn(&mut SessionRow, i64) -> Option<()>),
    /// Flag; always there.
    Flag(fn(&SessionRow) -> bool, fn(&mut SessionRow, bool)),
    /// Flag, absent where there is none.
    MaybeFlag(fn(&SessionRow) -> Option<bool>, fn(&mut SessionRow, bool)),
    /// Address; [`Address::None`] where there is none.
    Address(fn(&SessionRow) -> Address, fn(&mut SessionRow, Address)),
    /// Text, absent where there is none.
    Text(for<'a> fn(&'a SessionRow) -> Option<&'a str>, fn(&mut SessionRow, &str) -> Option<()>),
    /// Texts; none where there are none.
    Texts(fn(&SessionRow) -> &Vec<String>, fn(&mut SessionRow) -> &mut Vec<String>),
    /// Small numbers; none where there are none.
    Numbers(fn(&SessionRow) -> &Vec<u16>, fn(&mut SessionRow) -> &mut Vec<u16>),
    /// One integer for each piece.
    Pieces(Presence, fn(&PieceSpan) -> i64, fn(&mut PieceSpan, i64) -> Option<()>),
}

/// A stored field.
#[derive(Clone, Copy, Debug)]
pub struct StoredField {
    /// Its name: in Parquet, SQL, JSON and queries.
    pub name: &'static str,
    /// Other words for it in queries.
    pub aliases: &'static [&'static str],
    /// How its values are written.
    pub kind: Kind,
    /// What it means; empty for columns that nobody asks for by their name.
    pub meaning: &'static str,
    /// The first version of segments that has it.
    pub since: u16,
    /// Whether it was found in payload.
    pub is_of_payload: bool,
    /// How its column is laid out.
    pub layout: Layout,
    /// How a row gives and takes its value.
    pub access: Access,
}

impl StoredField {
    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn since(mut self, version: u16) -> Self {
        self.since = version;
        self
    }

    const fn of_payload(mut self) -> Self {
        self.is_of_payload = true;
        self
    }
}

/// A value of a stored field in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredValue<'a> {
    /// There is none.
    Absent,
    /// A point in time.
    Time(Timestamp),
    /// A count, a size, a number with a name; a duration in nanoseconds.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// An address.
    Address(Address),
    /// Text.
    Text(&'a str),
    /// Texts; none where there are none.
    Texts(&'a [String]),
    /// Small numbers; none where there are none.
    Numbers(&'a [u16]),
}

impl StoredField {
    /// Its value in a row; of pieces, which are no field to ask for, there is none.
    pub fn value<'a>(&self, row: &'a SessionRow) -> StoredValue<'a> {
        let number = |value: i64| match self.kind {
            Kind::Time => StoredValue::Time(Timestamp(value)),
            _ => StoredValue::Number(value.cast_unsigned()),
        };
        let absent = StoredValue::Absent;
        match self.access {
            Access::Time(get, _) | Access::Number(_, get, _) => number((get.of)(row)),
            Access::MaybeNumber(_, get, _) => get(row).map_or(absent, number),
            Access::Flag(get, _) => StoredValue::Flag(get(row)),
            Access::MaybeFlag(get, _) => get(row).map_or(absent, StoredValue::Flag),
            Access::Address(get, _) => match get(row) {
                Address::None => absent,
                address => StoredValue::Address(address),
            },
            Access::Text(get, _) => get(row).map_or(absent, StoredValue::Text),
            Access::Texts(get, _) => StoredValue::Texts(get(row)),
            Access::Numbers(get, _) => StoredValue::Numbers(get(row)),
            Access::Pieces(..) => absent,
        }
    }
}

const fn field(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    layout: Layout,
    access: Access,
) -> StoredField {
    let (aliases, since, is_of_payload): (&[&str], _, _) = (&[], 1, false);
    StoredField { name, aliases, kind, meaning, since, is_of_payload, layout, access }
}
