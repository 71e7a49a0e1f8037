//! What fields are compared with, and how it is written.

use core::fmt;

use format::session_row::State;
use units::{ByteSize, Timestamp};
use wire::App;

use format::kind::Kind;

use crate::address::AddressSet;
use crate::ciphers::cipher_name;
use crate::field::Reading;
use crate::mention::mentions;
use crate::names;
use crate::number::number;
use crate::operator::Comparison;
use crate::pattern::Pattern;
use crate::zone;

/// The right side of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Counts, sizes, numbers with names; durations in nanoseconds.
    Number(u64),
    Time(Timestamp),
    Text(Pattern),
    /// Texts in which this one stands by itself.
    Mention(String),
    Address(AddressSet),
    Flag(bool),
    /// Cipher suites with such a name.
    Cipher(Pattern),
}

impl Value {
    /// A value as a single token gives it. Times that take two (`3h ago`) are the parser's.
    pub(crate) fn parse(kind: Kind, text: &str, quoted: bool) -> Option<Self> {
        let named = |find: fn(&str) -> Option<u16>| {
            find(text).map(u64::from).or_else(|| number(text)).map(Self::Number)
        };
        match kind {
            Kind::Count | Kind::Interface => number(text).map(Self::Number),
            Kind::Bytes => size(text).map(Self::Number),
            Kind::Duration => duration(text).map(Self::Number),
            Kind::Time => time(text).map(Self::Time),
            Kind::Name | Kind::Text => Some(Self::Text(pattern(text, quoted))),
            Kind::State => checked(pattern(text, quoted), is_state),
            Kind::CommunityId => checked(pattern(text, quoted), is_community_id),
            Kind::Address => AddressSet::any(text).map(Self::Address),
            Kind::Flag => flag(text).map(Self::Flag),
            Kind::Protocol => named(names::protocol),
            Kind::DnsType => named(names::dns_type),
            Kind::DnsRcode => named(names::dns_rcode),
            Kind::TlsVersion => named(names::tls_version),
            Kind::Cipher => number(text).map(Self::Number).or_else(|| cipher(text, quoted)),
            Kind::App => app(text),
        }
    }

    /// Whether the comparison holds between what a row has and this value.
    pub(crate) fn holds(&self, comparison: Comparison, reading: Reading<'_>) -> bool {
        match (self, reading) {
            (Self::Number(value), Reading::Number(read)) => comparison.holds(read.cmp(value)),
            (Self::Time(value), Reading::Time(read)) => comparison.holds(read.cmp(value)),
            (Self::Text(pattern), Reading::Name(text)) => pattern.matches(text, false),
            (Self::Text(pattern), Reading::Text(text)) => pattern.matches(text, true),
            (Self::Mention(term), Reading::Name(text) | Reading::Text(text)) => {
                mentions(text, term)
            }
            (Self::Address(set), Reading::Address(address)) => set.contains(address),
            (Self::Flag(value), Reading::Flag(read)) => *value == read,
            (Self::Cipher(pattern), Reading::Number(read)) => {
                let name = u16::try_from(read).ok().and_then(cipher_name);
                name.is_some_and(|name| pattern.matches(name, false))
            }
            _ => false,
        }
    }

    /// A text as a query has it.
    pub(crate) fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(pattern) => Some(pattern.to_string()),
            _ => None,
        }
    }

    /// The value as a query of this kind of field reads it back.
    pub(crate) fn write(&self, kind: Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) if kind == Kind::Duration => write!(f, "{value}ns"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Time(value) => write!(f, "{value}"),
            Self::Text(pattern) | Self::Cipher(pattern) => write!(f, "{pattern}"),
            Self::Mention(term) => write!(f, "{}", Pattern::exactly(term)),
            Self::Address(set) => write!(f, "{set}"),
            Self::Flag(value) => f.write_str(if *value { "yes" } else { "no" }),
        }
    }
}

fn pattern(text: &str, quoted: bool) -> Pattern {
    if quoted { Pattern::quoted(text) } else { Pattern::bare(text) }
}

/// A pattern for several, or one that is.
fn checked(pattern: Pattern, is_one: fn(&str) -> bool) -> Option<Value> {
    pattern.whole().is_none_or(is_one).then_some(Value::Text(pattern))
}

fn is_state(text: &str) -> bool {
    State::ALL.iter().any(|state| state.name().eq_ignore_ascii_case(text))
}

/// Whether a text has the form of a community id of version 1: the base64 of a SHA-1.
pub fn is_community_id(text: &str) -> bool {
    let Some(digits) = text.strip_prefix("1:").and_then(|rest| rest.strip_suffix('=')) else {
        return false;
    };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    digits.len() == 27 && digits.bytes().all(is_digit)
}

/// A protocol by any of its words, or a pattern for their names.
fn app(text: &str) -> Option<Value> {
    let pattern = Pattern::bare(text);
    if pattern.whole().is_none() {
        return Some(Value::Text(pattern));
    }
    App::meant_by(text).map(|app| Value::Text(Pattern::bare(app.name())))
}

/// A pattern that some cipher suite's name fits.
fn cipher(text: &str, quoted: bool) -> Option<Value> {
    let pattern = pattern(text, quoted);
    let is_one = (0..=u16::MAX).filter_map(cipher_name).any(|name| pattern.matches(name, false));
    is_one.then_some(Value::Cipher(pattern))
}

fn size(text: &str) -> Option<u64> {
    number(text).or_else(|| text.parse::<ByteSize>().ok().map(|size| size.0))
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// RFC 3339, a time in a named zone, seconds since 1970 with decimals or without, or what JSON has:
/// nanoseconds since 1970. Other numbers are not taken: shorter ones may be dates, and of those
/// between the unit is not known.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_whole = digits == text.len();
    let has_decimals =
        text.get(digits..).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'));
    match digits {
        16.. if is_whole => return text.parse().ok().map(Timestamp),
        9..=11 if is_whole || has_decimals => return Timestamp::from_unix_text(text),
        _ => {}
    }
    text.parse().ok().or_else(|| zone::time(text))
}

const DURATION_UNITS: [(&str, u64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign and the Greek letter, as in Go, and so in Stenographer.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Nanoseconds of `90s`, `1.5h` or `1h30m`; every number needs its unit.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, tail) = rest.split_at(unit_at);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let &(_, nanos) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(amount, nanos)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// `amount` times `nanos`; decimals beyond a nanosecond are cut.
fn scaled(amount: &str, nanos: u64) -> Option<u64> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let whole: u64 = whole.parse().ok()?;
    let decimals = fraction.get(..9).unwrap_or(fraction);
    let billionths: u64 = format!("{decimals:0<9}").parse().ok()?;
    let part = u128::from(billionths) * u128::from(nanos) / 1_000_000_000;
    whole.checked_mul(nanos)?.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_units() {
        for (text, expected) in [
            ("45m", Some(2_700_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("0.0000000019s", Some(1)),
            ("1w", Some(604_800_000_000_000)),
            ("1.5\u{b5}s", Some(1_500)),
            ("2\u{3bc}s", Some(2_000)),
            ("", None),
            ("5", None),
            ("m", None),
            ("5 m", None),
            ("5y", None),
            ("1.2.3s", None),
            ("99999999w", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn short_numbers_are_not_times() {
        assert_eq!(time("1795171222123456789"), Some(Timestamp(1_795_171_222_123_456_789)));
        assert_eq!(time("20121103"), None);
        assert_eq!(time("1700000000000"), None, "milliseconds, or a year far away");
        assert_eq!(time("1700000000"), Some(Timestamp(1_700_000_000_000_000_000)));
        assert_eq!(time("1700000000.25"), Some(Timestamp(1_700_000_000_250_000_000)));
        assert_eq!(time("999999999"), Some(Timestamp(999_999_999_000_000_000)));
        assert_eq!(
            (time("1700000000."), time("1700000000.x"), time("99999999999")),
            (None, None, None)
        );
        assert_eq!(time("99999999999999999999"), None);
    }
}
