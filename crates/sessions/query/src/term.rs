//! The parsed query: a tree of tests, what it says of a row, and what can be known of it without
//! rows.
//!
//! The tree is at most [`MAXIMUM_DEPTH`] deep, so that plain recursion is safe.

use core::fmt;
use core::slice::from_ref;
use std::collections::BTreeSet;

use units::Timestamp;
use wire::{Address, Protocol};

use format::kind::Kind;

use crate::address::AddressSet;
use crate::field::{Field, Reading, Row, has_ports};
use crate::operator::{Comparison, Join, MENTIONS};
use crate::required::Required;
use crate::scope::{Part, Scope, Truth, mirrored, summands};
use crate::value::Value;

/// The most levels of a query. Parsing, evaluation and printing recurse, so the limit keeps them
/// off the stack's end.
pub const MAXIMUM_DEPTH: usize = 64;

/// Which end of a session has to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    #[default]
    Either,
    /// The sender of the packets in question.
    Src,
    /// The receiver of the packets in question.
    Dst,
    Both,
    Orig,
    Resp,
}

impl End {
    /// The words before the type, with a blank after them.
    fn prefix(self) -> &'static str {
        match self {
            Self::Either => "",
            Self::Src => "src ",
            Self::Dst => "dst ",
            Self::Both => "src and dst ",
            Self::Orig => "orig ",
            Self::Resp => "resp ",
        }
    }
}

/// What an end has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Address(AddressSet),
    /// An end of the tunnel around the session.
    Outer(AddressSet),
    /// First and last port of a range.
    Ports(u16, u16),
}

/// One condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Test {
    Place(End, Place),
    /// IPv4 or, if true, IPv6.
    Version(bool),
    Before(Timestamp),
    After(Timestamp),
    Has(&'static Field),
    Compare(&'static Field, Comparison, Value),
    In(&'static Field, Vec<Value>),
}

/// A test or a group of terms, perhaps negated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Term {
    pub(crate) negated: bool,
    pub(crate) node: Node,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    Test(Test),
    /// At least two terms, combined alike; `depth` counts the levels of groups from here down.
    Group {
        join: Join,
        terms: Vec<Term>,
        depth: usize,
    },
}

/// Earliest and latest; open ends are [`Timestamp::MIN`] and [`Timestamp::MAX`].
pub(crate) type Bounds = (Timestamp, Timestamp);

const UNBOUNDED: Bounds = (Timestamp::MIN, Timestamp::MAX);

impl From<Test> for Term {
    fn from(test: Test) -> Self {
        Self { negated: false, node: Node::Test(test) }
    }
}

impl Term {
    pub(crate) fn equals(field: &'static Field, value: Value) -> Self {
        Test::Compare(field, Comparison::Equal, value).into()
    }

    pub(crate) fn negate(self) -> Self {
        Self { negated: !self.negated, ..self }
    }

    /// `self and right` or `self or right`; a run of the same join stays one group.
    pub(crate) fn join(self, join: Join, right: Self) -> Self {
        let right_depth = right.depth();
        match self {
            Self { negated: false, node: Node::Group { join: same, mut terms, depth } }
                if same == join =>
            {
                terms.push(right);
                let depth = depth.max(right_depth + 1);
                Self { negated: false, node: Node::Group { join, terms, depth } }
            }
            left => {
                let depth = left.depth().max(right_depth) + 1;
                let terms = vec![left, right];
                Self { negated: false, node: Node::Group { join, terms, depth } }
            }
        }
    }

    /// Levels of groups.
    pub(crate) fn depth(&self) -> usize {
        match self.node {
            Node::Test(_) => 0,
            Node::Group { depth, .. } => depth,
        }
    }

    /// Whether the term holds for the packets of one direction: those of the responder if
    /// `reversed`.
    pub(crate) fn holds(&self, row: &Row<'_>, reversed: bool) -> bool {
        let holds = match &self.node {
            Node::Test(test) => test.holds(row, reversed),
            Node::Group { join: Join::And, terms, .. } => {
                terms.iter().all(|term| term.holds(row, reversed))
            }
            Node::Group { join: Join::Or, terms, .. } => {
                terms.iter().any(|term| term.holds(row, reversed))
            }
        };
        holds != self.negated
    }

    /// The same of the session of which `row` is one of several rows; without a `part` what any of
    /// them says.
    pub(crate) fn truth(&self, row: &Row<'_>, part: Option<Part>, reversed: bool) -> Truth {
        let of = |term: &Self| term.truth(row, part, reversed);
        let truth = match &self.node {
            Node::Test(test) => test.truth(row, part, reversed),
            Node::Group { join: Join::And, terms, .. } => {
                terms.iter().map(of).min().unwrap_or(Truth::Yes)
            }
            Node::Group { join: Join::Or, terms, .. } => {
                terms.iter().map(of).max().unwrap_or(Truth::No)
            }
        };
        if self.negated { !truth } else { truth }
    }

    /// Whether each row of a session says what the session does: with `in_times` each row in the
    /// times that the query asks for.
    pub(crate) fn is_of_rows(&self, in_times: bool) -> bool {
        match &self.node {
            Node::Test(test) if test.is_of_time() => in_times && !self.negated,
            Node::Test(test) => test.is_of_rows(),
            Node::Group { join, terms, .. } => {
                let in_times = in_times && *join == Join::And && !self.negated;
                terms.iter().all(|term| term.is_of_rows(in_times))
            }
        }
    }

    /// All tests, negated or not.
    pub(crate) fn for_each_test<'t>(&'t self, visit: &mut dyn FnMut(&'t Test)) {
        match &self.node {
            Node::Test(test) => visit(test),
            Node::Group { terms, .. } => terms.iter().for_each(|term| term.for_each_test(visit)),
        }
    }

    /// Bounds of the term from those of its tests: `and` intersects, `or` unites, `not` knows
    /// nothing.
    pub(crate) fn bounds(&self, of_test: fn(&Test) -> Bounds) -> Bounds {
        if self.negated {
            return UNBOUNDED;
        }
        match &self.node {
            Node::Test(test) => of_test(test),
            Node::Group { join, terms, .. } => terms
                .iter()
                .map(|term| term.bounds(of_test))
                .reduce(|a, b| match join {
                    Join::And => (a.0.max(b.0), a.1.min(b.1)),
                    Join::Or => (a.0.min(b.0), a.1.max(b.1)),
                })
                .unwrap_or(UNBOUNDED),
        }
    }
}

impl Term {
    /// What every session that fits has.
    pub(crate) fn required(&self) -> BTreeSet<Required> {
        if self.negated {
            return BTreeSet::new();
        }
        match &self.node {
            Node::Test(test) => test.required().into_iter().collect(),
            Node::Group { join, terms, .. } => terms
                .iter()
                .map(Self::required)
                .reduce(|a, b| match join {
                    Join::And => &a | &b,
                    Join::Or => &a & &b,
                })
                .unwrap_or_default(),
        }
    }
}

impl Test {
    fn holds(&self, row: &Row<'_>, reversed: bool) -> bool {
        match self {
            Self::Place(end, place) => place.holds(*end, row, reversed),
            Self::Version(six) => match row.slice.tuple.orig {
                Address::V4(_) => !six,
                Address::V6(_) => *six,
                Address::Mac(_) | Address::None => false,
            },
            Self::Before(time) => row.slice.start < *time,
            Self::After(time) => row.slice.end >= *time,
            Self::Has(field) => field.any(row, &mut |_| true),
            Self::Compare(field, comparison, value) => {
                field.any(row, &mut |reading| value.holds(*comparison, reading))
            }
            Self::In(field, values) => {
                let mut is_one = |reading: Reading<'_>| {
                    values.iter().any(|value| value.holds(Comparison::Equal, reading))
                };
                field.any(row, &mut is_one)
            }
        }
    }

    /// What a row says of the session that it is part of.
    fn truth(&self, row: &Row<'_>, part: Option<Part>, reversed: bool) -> Truth {
        let truth = Truth::of(self.holds(row, reversed));
        match self {
            // The session begins no later than its row, and no earlier than it says.
            Self::Before(time) => {
                let has_begun = part.is_some() && truth == Truth::Yes;
                truth.if_decided(has_begun || row.slice.session_start >= *time)
            }
            Self::After(_) => {
                truth.if_decided(part.is_some_and(|part| truth == Truth::Yes || part.is_last))
            }
            Self::Has(field) | Self::Compare(field, ..) | Self::In(field, _)
                if matches!(field.name, "session_id" | "tag") =>
            {
                // Each row has an id, and any of them is the session's.
                truth.if_decided(part.is_some() && truth == Truth::Yes)
            }
            _ => truth.if_decided(self.is_decided(row, part, reversed)),
        }
    }

    fn is_decided(&self, row: &Row<'_>, part: Option<Part>, reversed: bool) -> bool {
        match self.scope() {
            Scope::Each => true,
            Scope::First => part.is_some_and(|part| part.is_first),
            Scope::Last => part.is_some_and(|part| part.is_last),
            Scope::Names => part.is_some_and(|part| part.knows_names),
            Scope::EachButIcmp => {
                let is_icmp = matches!(row.slice.tuple.proto, Protocol::ICMP | Protocol::ICMPV6);
                !is_icmp || part.is_some_and(|part| part.knows_names)
            }
            Scope::Sum => false,
            Scope::Oriented => {
                let turned = self.mirrored();
                turned.is_some_and(|it| it.holds(row, reversed) == self.holds(row, reversed))
            }
        }
    }

    fn scope(&self) -> Scope {
        match self {
            Self::Place(_, Place::Outer(_)) => Scope::First,
            Self::Place(End::Orig | End::Resp, _) => Scope::Oriented,
            Self::Place(..) | Self::Version(_) => Scope::Each,
            Self::Before(_) | Self::After(_) => Scope::Sum,
            Self::Has(field) | Self::Compare(field, ..) | Self::In(field, _) => Scope::of(field),
        }
    }

    /// The same test of the other end.
    fn mirrored(&self) -> Option<Self> {
        Some(match self {
            Self::Place(End::Orig, place) => Self::Place(End::Resp, *place),
            Self::Place(End::Resp, place) => Self::Place(End::Orig, *place),
            Self::Has(field) => Self::Has(mirrored(field)?),
            Self::Compare(field, comparison, value) => {
                Self::Compare(mirrored(field)?, *comparison, value.clone())
            }
            Self::In(field, values) => Self::In(mirrored(field)?, values.clone()),
            _ => return None,
        })
    }

    fn is_of_time(&self) -> bool {
        matches!(self, Self::Before(_) | Self::After(_))
    }

    /// All rows of a session answer alike. What `src` and `dst` mean depends on who sent something.
    fn is_of_rows(&self) -> bool {
        self.scope() == Scope::Each && !self.is_directional()
    }

    /// Whether it speaks of stations.
    pub(crate) fn is_of_stations(&self) -> bool {
        matches!(self, Self::Place(_, Place::Address(AddressSet::Mac(_))))
    }

    fn required(&self) -> Option<Required> {
        match self {
            Self::Place(_, Place::Address(AddressSet::Host(host))) => Some(Required::Host(*host)),
            Self::Place(_, Place::Ports(first, last)) => Some(Required::Ports(*first, *last)),
            Self::Compare(field, Comparison::Equal, Value::Number(port))
                if matches!(field.name, "port" | "orig_port" | "resp_port") =>
            {
                let port = u16::try_from(*port).ok()?;
                Some(Required::Ports(port, port))
            }
            Self::Compare(field, Comparison::Equal, Value::Number(number))
                if field.is_of_payload =>
            {
                Some(Required::Value(field.name, number.to_string()))
            }
            Self::Compare(field, comparison, Value::Number(number)) => {
                let least = match comparison {
                    Comparison::Equal | Comparison::AtLeast => *number,
                    Comparison::More => number.saturating_add(1),
                    Comparison::Less | Comparison::AtMost => return None,
                };
                summands(field).map(|columns| Required::Sum(columns, least))
            }
            Self::Compare(field, Comparison::Equal, Value::Text(pattern)) => {
                let text = pattern.whole()?;
                match field.name {
                    "name" | "sni" | "http_host" | "dns_names" => {
                        Some(Required::Name(text.to_ascii_lowercase()))
                    }
                    "community_id" => Some(Required::CommunityId(text.to_owned())),
                    "session_id" => Some(Required::SessionId(text.to_owned())),
                    name if field.is_of_payload => {
                        Some(Required::Value(name, text.to_ascii_lowercase()))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the answer depends on the direction of a packet.
    pub(crate) fn is_directional(&self) -> bool {
        matches!(self, Self::Place(End::Src | End::Dst, _))
    }

    /// A row for which the test holds starts at or before the second and ends at or after the
    /// first.
    pub(crate) fn row_bounds(&self) -> Bounds {
        match self {
            Self::Before(_) | Self::After(_) => self.packet_bounds(),
            Self::Compare(field, comparison, Value::Time(time)) => {
                let bounds = match comparison {
                    Comparison::Equal => (*time, *time),
                    Comparison::Less => (Timestamp::MIN, time.plus_nanos(-1)),
                    Comparison::AtMost => (Timestamp::MIN, *time),
                    Comparison::More => (time.plus_nanos(1), Timestamp::MAX),
                    Comparison::AtLeast => (*time, Timestamp::MAX),
                };
                match field.name {
                    "start_ns" | "end_ns" => bounds,
                    // The row starts no earlier than its session, but may start any time later.
                    "session_start_ns" => (bounds.0, Timestamp::MAX),
                    _ => UNBOUNDED,
                }
            }
            _ => UNBOUNDED,
        }
    }

    /// Which packets of a row are meant: `before` and `after` cut, nothing else does.
    pub(crate) fn packet_bounds(&self) -> Bounds {
        match self {
            Self::Before(time) => (Timestamp::MIN, time.plus_nanos(-1)),
            Self::After(time) => (*time, Timestamp::MAX),
            _ => UNBOUNDED,
        }
    }

    /// The texts that the field of this name has to be, and that no `known` one is.
    pub(crate) fn unmet(&self, name: &str, known: &BTreeSet<String>) -> Vec<String> {
        let values = match self {
            Self::Compare(field, Comparison::Equal, value) if field.name == name => from_ref(value),
            Self::In(field, values) if field.name == name => values,
            _ => &[],
        };
        let is_known = |value: &Value| {
            let fits = |known: &String| value.holds(Comparison::Equal, Reading::Text(known));
            known.iter().any(fits)
        };
        let unmet = values.iter().filter(|value| !is_known(value));
        unmet.filter_map(Value::as_text).collect()
    }

    /// Its field, if that has values only with an atlas.
    pub(crate) fn needs_atlas(&self) -> Option<&'static Field> {
        match self {
            Self::Has(field) | Self::Compare(field, ..) | Self::In(field, _) => {
                field.needs_atlas().then_some(*field)
            }
            Self::Place(..) | Self::Version(_) | Self::Before(_) | Self::After(_) => None,
        }
    }

    pub(crate) fn columns(&self, columns: &mut BTreeSet<&'static str>) {
        columns.extend(match self {
            Self::Place(_, Place::Address(_)) => &["orig_ip", "resp_ip"][..],
            Self::Place(_, Place::Outer(_)) => &["tunnel_src", "tunnel_dst"],
            Self::Place(_, Place::Ports(..)) => &["proto", "orig_port", "resp_port"],
            Self::Version(_) => &["orig_ip"],
            Self::Before(_) => &["start_ns"],
            Self::After(_) => &["duration_ns", "start_ns"],
            Self::Has(field) | Self::Compare(field, ..) | Self::In(field, _) => field.columns(),
        });
        if self.is_directional() {
            columns.extend(["orig_packets", "resp_packets"]);
        }
    }
}

impl Place {
    fn holds(&self, end: End, row: &Row<'_>, reversed: bool) -> bool {
        let tuple = &row.slice.tuple;
        let (orig, resp) = match self {
            Self::Address(set) => (set.contains(tuple.orig), set.contains(tuple.resp)),
            Self::Outer(set) => row
                .slice
                .tunnel
                .map_or((false, false), |outer| (set.contains(outer.src), set.contains(outer.dst))),
            Self::Ports(first, last) if has_ports(row) => {
                let range = first..=last;
                (range.contains(&&tuple.orig_port), range.contains(&&tuple.resp_port))
            }
            Self::Ports(..) => (false, false),
        };
        match end {
            End::Either => orig || resp,
            End::Both => orig && resp,
            End::Orig => orig,
            End::Resp => resp,
            End::Src => {
                if reversed {
                    resp
                } else {
                    orig
                }
            }
            End::Dst => {
                if reversed {
                    orig
                } else {
                    resp
                }
            }
        }
    }
}

/// The words of the condition; reads back as the same test.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(end, Place::Address(set)) => {
                let scope = if matches!(set, AddressSet::Mac(_)) { "ether " } else { "" };
                write!(f, "{scope}{}{} {set}", end.prefix(), set.word())
            }
            Self::Place(end, Place::Outer(set)) => {
                write!(f, "tunnel {}{} {set}", end.prefix(), set.word())
            }
            Self::Place(end, Place::Ports(first, last)) if first == last => {
                write!(f, "{}port {first}", end.prefix())
            }
            Self::Place(end, Place::Ports(first, last)) => {
                write!(f, "{}portrange {first}-{last}", end.prefix())
            }
            Self::Version(six) => f.write_str(if *six { "ip6" } else { "ip" }),
            Self::Before(time) => write!(f, "before {time}"),
            Self::After(time) => write!(f, "after {time}"),
            Self::Has(field) => write!(f, "has {}", field.name),
            Self::Compare(field, _, value @ Value::Mention(_)) => {
                write!(f, "{} {MENTIONS} ", field.name)?;
                value.write(field.kind, f)
            }
            Self::Compare(field, comparison, value) => {
                write!(f, "{} {comparison} ", field.name)?;
                value.write(field.kind, f)
            }
            Self::In(field, values) => {
                write!(f, "{} in {{", field.name)?;
                write_values(field.kind, values, f)?;
                f.write_str("}")
            }
        }
    }
}

fn write_values(kind: Kind, values: &[Value], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        value.write(kind, f)?;
    }
    Ok(())
}

/// Every group in parentheses, except the outermost.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("not ")?;
        }
        match &self.node {
            Node::Test(test) => test.fmt(f),
            Node::Group { join, terms, .. } => {
                // The alternate form is that of a whole query.
                let bare = f.alternate() && !self.negated;
                f.write_str(if bare { "" } else { "(" })?;
                for (index, term) in terms.iter().enumerate() {
                    if index > 0 {
                        write!(f, " {join} ")?;
                    }
                    write!(f, "{term}")?;
                }
                f.write_str(if bare { "" } else { ")" })
            }
        }
    }
}
