//! A query as a condition of SQL over the table `sessions` of an archive (docs/archive.md), for
//! engines that search it.
//!
//! Invariants: the text has visible ASCII only, and whatever a query contains stays inside of a
//! literal. The condition holds for every session that the query matches. Where it may hold for
//! others, because an engine has no words for a test, the test is named in [`Pushed::undecided`],
//! and whoever asks has to ask [`Query::matches`] of the rows that come.
//!
//! SQL's NULL is what the language calls absent: a comparison with it does not hold. Between `AND`
//! and `OR` it is as good as false; so only what is negated is made `COALESCE(..., FALSE)`.

mod address;
mod columns;
mod text;
mod words;

pub use text::sql_literal;
pub use words::Dialect;

use format::kind::Kind;

use crate::ciphers::cipher_name;
use crate::field::Field;
use crate::operator::{Comparison, Join};
use crate::query::Query;
use crate::sql::columns::{Column, columns};
use crate::sql::words::{FALSE, TRUE, joined};
use crate::term::{End, Node, Place, Term, Test};
use crate::value::Value;

/// What an engine is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// The condition: it holds for every session that matches.
    pub condition: String,
    /// The tests that it leaves open, as a query has them.
    pub undecided: Vec<String>,
}

impl Field {
    /// The number that an engine orders sessions by as a search here does; `None` for fields of
    /// text, and of several values.
    pub fn sql_number(&'static self) -> Option<String> {
        columns::number(self)
    }
}

impl Query {
    /// The condition in the words of an engine. Tests of fields that need an atlas stay open.
    pub fn sql(&self, dialect: Dialect) -> Pushed {
        let mut writer = Writer { dialect, undecided: Vec::new() };
        let mut all = Vec::new();
        if let Some(root) = self.root() {
            all.push(if self.is_directional() {
                let [orig, resp] = [false, true].map(|reversed| {
                    let sender = if reversed { "resp" } else { "orig" };
                    format!("{sender}_packets > 0 AND {}", writer.term(root, reversed, true))
                });
                format!("(({orig}) OR ({resp}))")
            } else {
                writer.term(root, false, true)
            });
        }
        all.extend(partitions(self));
        writer.undecided.dedup();
        let condition = if all.is_empty() { TRUE.to_owned() } else { all.join(" AND ") };
        Pushed { condition, undecided: writer.undecided }
    }
}

/// The partitions that may have something: a session lies in that of its last packet.
fn partitions(query: &Query) -> Option<String> {
    let (from, _) = query.time_range();
    let text = from.to_string();
    let (date, clock) = text.split_once('T')?;
    let hour = clock.get(..2)?;
    // Times before 1970 or without end have no partition of their own.
    (from.0 > 0 && from != units::Timestamp::MAX)
        .then(|| format!("(\"date\" > '{date}' OR (\"date\" = '{date}' AND \"hour\" >= '{hour}'))"))
}

/// What is made of a test.
enum Said {
    /// It holds as the test does.
    Exactly(String),
    /// It holds whenever the test does.
    AtLeast(String),
}

struct Writer {
    dialect: Dialect,
    undecided: Vec<String>,
}

impl Writer {
    /// A term about the packets of one direction. What is left open is taken to hold if `is_wide`,
    /// and else not to.
    fn term(&mut self, term: &Term, reversed: bool, is_wide: bool) -> String {
        let is_wide = is_wide != term.negated;
        let inner = match &term.node {
            Node::Test(test) => match self.test(test, reversed) {
                Said::Exactly(said) => said,
                Said::AtLeast(said) => {
                    self.undecided.push(test.to_string());
                    if is_wide { said } else { FALSE.to_owned() }
                }
            },
            Node::Group { join, terms, .. } => {
                let parts = terms.iter().map(|term| self.term(term, reversed, is_wide));
                joined(*join, parts.collect())
            }
        };
        if term.negated { format!("NOT COALESCE({inner}, FALSE)") } else { inner }
    }

    fn test(&self, test: &Test, reversed: bool) -> Said {
        if test.needs_atlas().is_some() {
            return Said::AtLeast(TRUE.to_owned());
        }
        Said::Exactly(match test {
            Test::Place(end, place) => self.place(*end, place, reversed),
            Test::Version(six) => address::version("orig_ip", *six),
            Test::Before(time) => format!("start_ns < {}", time.0),
            Test::After(time) => format!("end_ns >= {}", time.0),
            Test::Has(field) => {
                let has = |column: &Column| format!("{} IS NOT NULL", column.sql);
                joined(Join::Or, columns(field).iter().map(has).collect())
            }
            Test::Compare(field, comparison, value) => {
                return self.compare(field, *comparison, core::slice::from_ref(value));
            }
            Test::In(field, values) => return self.compare(field, Comparison::Equal, values),
        })
    }

    fn place(&self, end: End, place: &Place, reversed: bool) -> String {
        let [orig, resp] = match place {
            Place::Address(_) => ["orig_ip", "resp_ip"],
            Place::Outer(_) => ["tunnel_src", "tunnel_dst"],
            Place::Ports(..) => ["orig_port", "resp_port"],
        };
        let of = |column: &str| match place {
            Place::Address(set) | Place::Outer(set) => address::one_of(column, set, self.dialect),
            Place::Ports(first, last) if first == last => format!("{column} = {first}"),
            Place::Ports(first, last) => format!("{column} BETWEEN {first} AND {last}"),
        };
        match (end, reversed) {
            (End::Either, _) => joined(Join::Or, vec![of(orig), of(resp)]),
            (End::Both, _) => joined(Join::And, vec![of(orig), of(resp)]),
            (End::Orig, _) | (End::Src, false) | (End::Dst, true) => of(orig),
            (End::Resp, _) | (End::Src, true) | (End::Dst, false) => of(resp),
        }
    }

    /// Whether any value of a field compares so with any of these.
    fn compare(&self, field: &'static Field, comparison: Comparison, values: &[Value]) -> Said {
        let one = |column: &Column| {
            if column.is_list {
                let inner = self.any(field.kind, comparison, values, "item");
                self.any_of_list(&column.sql, &inner)
            } else {
                self.any(field.kind, comparison, values, &column.sql)
            }
        };
        let columns = columns(field);
        let mut text = joined(Join::Or, columns.iter().map(one).collect());
        let is_mention = values.iter().any(|value| matches!(value, Value::Mention(_)));
        if field.kind == Kind::CommunityId {
            // ICMP has ids of further messages, which are hashes of what app_detail says.
            let further = self.any_of_list("app_detail", "item LIKE 'icmp.%'");
            text = format!("({text} OR (proto IN (1, 58) AND {further}))");
        } else if !is_mention {
            return Said::Exactly(text);
        }
        Said::AtLeast(text)
    }

    fn any_of_list(&self, list: &str, inner: &str) -> String {
        match self.dialect {
            Dialect::Trino => format!("any_match({list}, item -> {inner})"),
            Dialect::DuckDb => format!("(len(list_filter({list}, lambda item: {inner})) > 0)"),
        }
    }

    /// Whether `read` compares so with any of the values: those that are literals make one list.
    fn any(&self, kind: Kind, comparison: Comparison, values: &[Value], read: &str) -> String {
        let (mut literals, mut others) = (Vec::new(), Vec::new());
        for value in values {
            match literal(kind, value) {
                Some(literal) if comparison == Comparison::Equal => literals.push(literal),
                _ => others.push(self.one(kind, comparison, value, read)),
            }
        }
        let left = if folds(kind) { text::folded(read) } else { read.to_owned() };
        match literals.as_slice() {
            [] => {}
            [one] => others.insert(0, format!("{left} = {one}")),
            _ => others.insert(0, format!("{left} IN ({})", literals.join(", "))),
        }
        joined(Join::Or, others)
    }

    fn one(&self, kind: Kind, comparison: Comparison, value: &Value, read: &str) -> String {
        let left = if folds(kind) { text::folded(read) } else { read.to_owned() };
        match value {
            Value::Number(number) => compared(&left, comparison, *number),
            Value::Time(time) => format!("{left} {comparison} {}", time.0),
            Value::Text(pattern) => text::like(&left, pattern.parts(), folds(kind)),
            Value::Mention(term) => {
                let parts = [String::new(), term.clone(), String::new()];
                text::like(&text::folded(read), &parts, true)
            }
            Value::Address(set) => address::one_of(read, set, self.dialect),
            Value::Flag(flag) => format!("{left} = {}", if *flag { TRUE } else { FALSE }),
            Value::Cipher(pattern) => {
                let fits = |number: &u16| {
                    cipher_name(*number).is_some_and(|name| pattern.matches(name, false))
                };
                let all: Vec<String> =
                    (0..=u16::MAX).filter(fits).map(|number| number.to_string()).collect();
                // A pattern that no suite fits is refused when it is read.
                format!("{left} IN ({})", all.join(", "))
            }
        }
    }
}

/// Whether upper and lower case of ASCII are the same in values of this kind.
fn folds(kind: Kind) -> bool {
    matches!(kind, Kind::Name | Kind::App | Kind::State)
}

/// A value that is the same as one literal.
fn literal(kind: Kind, value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => i64::try_from(*number).ok().map(|number| number.to_string()),
        Value::Text(pattern) => {
            let whole = pattern.whole()?;
            Some(sql_literal(&if folds(kind) {
                whole.to_ascii_lowercase()
            } else {
                whole.to_owned()
            }))
        }
        _ => None,
    }
}

/// Integers of an archive have 63 bits: what is larger is stored as the largest.
fn compared(left: &str, comparison: Comparison, number: u64) -> String {
    match i64::try_from(number) {
        Ok(number) => format!("{left} {comparison} {number}"),
        Err(_) => match comparison {
            Comparison::Equal | Comparison::AtLeast => format!("{left} = {}", i64::MAX),
            Comparison::More => FALSE.to_owned(),
            Comparison::Less | Comparison::AtMost => format!("{left} IS NOT NULL"),
        },
    }
}

#[cfg(test)]
mod tests;
