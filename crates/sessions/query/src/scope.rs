//! What one of a session's rows says about the whole session.
//!
//! A session that lives for long has a row for each minute or so, and a query asks about the
//! session that all of them make. A row decides alone what is the same in all of them; of the rest
//! it knows what those before it or behind it may still change.

use core::ops::Not;

use format::kind::Kind;

use crate::field::Field;

/// Where a row stands among those of its session, as far as it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// No row comes before.
    pub is_first: bool,
    /// No row follows.
    pub is_last: bool,
    /// No other row knows of payload what it does not: otherwise the last one does.
    pub knows_names: bool,
}

impl Part {
    /// The only row of its session.
    pub const WHOLE: Self = Self { is_first: true, is_last: true, knows_names: true };
}

/// Whether a condition holds for a session, as far as one row says. `and` of two is the lesser,
/// `or` the greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Truth {
    No,
    /// Other rows decide.
    Maybe,
    Yes,
}

impl Truth {
    pub(crate) fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// What a row says where it may not be the one that decides.
    pub(crate) fn if_decided(self, is_decided: bool) -> Self {
        if is_decided { self } else { Self::Maybe }
    }
}

impl Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

/// Which rows of a session a value of it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Any: all say the same.
    Each,
    /// The same, but a row may have been seen from the other side.
    Oriented,
    /// The first row of its session.
    First,
    /// The last, which knows what those before it knew.
    Last,
    /// The same, of what payload shows.
    Names,
    /// Any, but of ICMP, of which the last row knows the kinds of all messages before it.
    EachButIcmp,
    /// The sum over all rows of the session.
    Sum,
}

impl Scope {
    pub(crate) fn of(field: &Field) -> Self {
        match field.name {
            "community_id" => Self::EachButIcmp,
            "proto" | "host" | "port" | "country" | "asn" | "as_name" | "vlan" | "vlan_inner"
            | "session_start_ns" => Self::Each,
            "orig_ip" | "resp_ip" | "orig_port" | "resp_port" | "orig_country" | "resp_country"
            | "orig_asn" | "resp_asn" | "orig_as_name" | "resp_as_name" => Self::Oriented,
            "mpls" | "tunnel" | "tunnel_id" | "tunnel_src" | "tunnel_dst" | "vni" | "teid"
            | "interface" | "interface_name" | "recording" => Self::First,
            "state" | "history" | "continues" => Self::Last,
            _ if field.is_of_payload => Self::Names,
            _ => Self::Sum,
        }
    }
}

/// The stored columns whose sum the field is of a session that has one row, if it is a number that
/// no payload shows.
pub(crate) fn summands(field: &'static Field) -> Option<&'static [&'static str]> {
    if field.name == "duration_ns" {
        return Some(&["duration_ns"]);
    }
    if !matches!(field.kind, Kind::Count | Kind::Bytes) || Scope::of(field) != Scope::Sum {
        return None;
    }
    let is_own = |column: &&str| {
        let end = column.strip_prefix("orig_").or_else(|| column.strip_prefix("resp_"));
        *column == field.name || end == Some(field.name)
    };
    let columns = field.columns();
    columns.iter().all(is_own).then_some(columns)
}

/// The same field of the other end.
pub(crate) fn mirrored(field: &Field) -> Option<&'static Field> {
    let name = match field.name.split_once('_')? {
        ("orig", rest) => format!("resp_{rest}"),
        ("resp", rest) => format!("orig_{rest}"),
        _ => return None,
    };
    Field::find(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FIELDS;

    #[test]
    fn fields_of_one_end_have_one_of_the_other() {
        let oriented = FIELDS.iter().filter(|field| Scope::of(field) == Scope::Oriented);
        let names: Vec<&str> = oriented.map(|field| mirrored(field).unwrap().name).collect();
        assert_eq!(names.len(), 10, "{names:?}");
    }

    #[test]
    fn what_the_application_says_comes_from_the_last_row() {
        let shown = FIELDS.iter().filter(|field| Scope::of(field) == Scope::Names);
        let all = FIELDS.iter().skip_while(|field| field.name != "app");
        let names = |fields: Vec<&'static Field>| -> Vec<&str> {
            fields.into_iter().map(|field| field.name).collect()
        };
        assert_eq!(names(shown.collect()), names(all.collect()));
        let last = FIELDS.iter().filter(|field| Scope::of(field) == Scope::Last);
        assert_eq!(names(last.collect()), ["state", "history", "continues"]);
    }

    #[test]
    fn what_counts_is_a_sum_of_columns_and_nothing_else_is() {
        let of = |name| summands(Field::find(name).unwrap());
        assert_eq!(of("duration"), Some(&["duration_ns"][..]));
        assert_eq!(of("bytes"), Some(&["orig_frame_bytes", "resp_frame_bytes"][..]));
        assert_eq!(of("orig_packets"), Some(&["orig_packets"][..]));
        assert_eq!(of("fragments"), Some(&["fragments"][..]));
        for name in ["session_age_ns", "vni", "teid", "port", "http_status", "start"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn truths_combine_as_words_do() {
        assert_eq!(!Truth::Maybe, Truth::Maybe);
        assert_eq!(Truth::No.max(Truth::Maybe), Truth::Maybe);
        assert_eq!(Truth::Yes.min(Truth::Maybe), Truth::Maybe);
        assert_eq!(Truth::of(true).if_decided(false), Truth::Maybe);
    }
}
