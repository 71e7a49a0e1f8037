//! Any text, any query, any session.

use std::collections::BTreeSet;

use format::session_row::SessionRow;
use proptest::prelude::*;
use query::{FIELDS, Query, Reading};
use units::Timestamp;
use wire::Protocol;

use crate::sessions::{ID, NOW, arp, dns, http, ping, plain, tls, tuple};

/// Queries over a tiny world, so that about half of the answers are yes.
#[derive(Clone, Debug)]
pub(crate) enum Naive {
    /// Direction word, last byte of the address.
    Host(&'static str, u8),
    Net(&'static str, u8),
    Port(&'static str, u16),
    Proto(Protocol),
    Before(i64),
    After(i64),
    Packets(&'static str, u64),
    Sni(Option<u8>),
    Not(Box<Naive>),
    And(Box<Naive>, Box<Naive>),
    Or(Box<Naive>, Box<Naive>),
}

pub(crate) const PROTOCOLS: [(Protocol, &str); 3] =
    [(Protocol::TCP, "tcp"), (Protocol::UDP, "udp"), (Protocol::ICMP, "icmp")];

fn direction() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "src ", "dst ", "src and dst ", "src or dst "])
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(PROTOCOLS.map(|(protocol, _)| protocol).to_vec())
}

/// Conditions that packets can answer too.
pub(crate) fn packet_test() -> impl Strategy<Value = Naive> {
    prop_oneof![
        (direction(), 0_u8..4).prop_map(|(end, host)| Naive::Host(end, host)),
        (direction(), 0_u8..2).prop_map(|(end, net)| Naive::Net(end, net * 2)),
        (direction(), 1_u16..4).prop_map(|(end, port)| Naive::Port(end, port)),
        protocol().prop_map(Naive::Proto),
    ]
}

fn session_test() -> impl Strategy<Value = Naive> {
    let side = prop::sample::select(vec!["", "orig_", "resp_"]);
    prop_oneof![
        (0_i64..10).prop_map(Naive::Before),
        (0_i64..10).prop_map(Naive::After),
        (side, 0_u64..5).prop_map(|(side, count)| Naive::Packets(side, count)),
        proptest::option::of(0_u8..3).prop_map(Naive::Sni),
    ]
}

pub(crate) fn combined(
    leaf: impl Strategy<Value = Naive> + 'static,
) -> impl Strategy<Value = Naive> {
    leaf.prop_recursive(5, 24, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(|term| Naive::Not(Box::new(term))),
            pair().prop_map(|(a, b)| Naive::And(a, b)),
            pair().prop_map(|(a, b)| Naive::Or(a, b)),
        ]
    })
}

pub(crate) fn session() -> impl Strategy<Value = SessionRow> {
    let ends = (0_u8..4, 1_u16..4, 0_u8..4, 1_u16..4, protocol());
    let packets = (1_u64..3, 0_u64..3);
    (ends, packets, 0_i64..10, 0_i64..5, proptest::option::of(0_u8..3)).prop_map(
        |((orig, orig_port, resp, resp_port, proto), packets, start, length, sni)| {
            let ports = if proto == Protocol::ICMP { (0, 0) } else { (orig_port, resp_port) };
            let mut row = plain(tuple(&address(orig), ports.0, &address(resp), ports.1, proto));
            (row.orig.packets, row.resp.packets) = packets;
            row.start = second(start);
            row.end = second(start + length);
            row.names.sni = sni.map(name);
            row
        },
    )
}

pub(crate) fn address(host: u8) -> String {
    format!("10.0.0.{host}")
}

fn name(label: u8) -> String {
    format!("h{label}.example")
}

fn second(number: i64) -> Timestamp {
    NOW.plus_nanos(number * 1_000_000_000)
}

impl Naive {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Host(end, host) => format!("{end}host {}", address(*host)),
            Self::Net(end, host) => format!("{end}net {}/31", address(*host)),
            Self::Port(end, port) => format!("{end}port {port}"),
            Self::Proto(proto) => {
                PROTOCOLS.iter().find(|(known, _)| known == proto).unwrap().1.to_owned()
            }
            Self::Before(time) => format!("before {}", second(*time)),
            Self::After(time) => format!("after {}", second(*time)),
            Self::Packets(side, count) => format!("{side}packets > {count}"),
            Self::Sni(None) => "has sni".to_owned(),
            Self::Sni(Some(label)) => format!("sni = {}", name(*label).to_uppercase()),
            Self::Not(term) => format!("not ({})", term.text()),
            // A chain on the left needs no parentheses whatever its words are.
            Self::And(left, right) => format!("{} and ({})", left.text(), right.text()),
            Self::Or(left, right) => format!("{} or ({})", left.text(), right.text()),
        }
    }

    /// Whether a packet of the session with these ends would be selected.
    fn selects(&self, row: &SessionRow, [source, target]: [(String, u16); 2]) -> bool {
        let either = |end: &str, src: bool, dst: bool| match end {
            "src " => src,
            "dst " => dst,
            "src and dst " => src && dst,
            _ => src || dst,
        };
        match self {
            Self::Host(end, host) => {
                either(end, source.0 == address(*host), target.0 == address(*host))
            }
            Self::Net(end, net) => {
                let inside = |ip: &str| ip == address(*net) || ip == address(net + 1);
                either(end, inside(&source.0), inside(&target.0))
            }
            Self::Port(end, port) => either(end, source.1 == *port, target.1 == *port),
            Self::Proto(proto) => row.tuple.proto == *proto,
            Self::Before(time) => row.start < second(*time),
            Self::After(time) => row.end >= second(*time),
            Self::Packets("orig_", count) => row.orig.packets > *count,
            Self::Packets("resp_", count) => row.resp.packets > *count,
            Self::Packets(_, count) => row.orig.packets + row.resp.packets > *count,
            Self::Sni(None) => row.names.sni.is_some(),
            Self::Sni(Some(label)) => row.names.sni == Some(name(*label)),
            Self::Not(term) => !term.selects(row, [source, target]),
            Self::And(a, b) => {
                a.selects(row, [source.clone(), target.clone()]) && b.selects(row, [source, target])
            }
            Self::Or(a, b) => {
                a.selects(row, [source.clone(), target.clone()]) || b.selects(row, [source, target])
            }
        }
    }

    fn matches(&self, row: &SessionRow) -> bool {
        let orig = (row.tuple.orig.to_string(), row.tuple.orig_port);
        let resp = (row.tuple.resp.to_string(), row.tuple.resp_port);
        (row.orig.packets > 0 && self.selects(row, [orig.clone(), resp.clone()]))
            || (row.resp.packets > 0 && self.selects(row, [resp, orig]))
    }
}

/// Text made of the language's own pieces, which gets further into the parser than random
/// characters do.
fn almost_a_query() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = [
        "(",
        ")",
        "{",
        "}",
        ",",
        "!",
        "=",
        "!=",
        "<",
        ">=",
        "&&",
        "||",
        "and",
        "or",
        "not",
        "src",
        "dst",
        "orig",
        "host",
        "net",
        "port",
        "portrange",
        "proto",
        "ip",
        "ip6",
        "ether",
        "tcp",
        "arp",
        "tunnel",
        "vxlan",
        "mask",
        "before",
        "after",
        "ago",
        "now",
        "has",
        "in",
        "1.2.3.4",
        "10/8",
        "/8",
        "::1",
        "0:1:2:3:4:5",
        "80",
        "1-9",
        "\\tcp",
        "5m",
        "2026-11-20",
        "*.a",
        "\"a\\\"*\"",
        "\"",
        "yes",
        "1K",
        "\u{e9}",
    ]
    .map(str::to_owned)
    .to_vec();
    pieces.extend(FIELDS.iter().map(|field| field.name.to_owned()));
    prop::collection::vec(prop::sample::select(pieces), 0..12).prop_map(|words| words.join(" "))
}

/// What has to hold for any text at all.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    match Query::parse(text, NOW) {
        Ok(query) => {
            let printed = query.to_string();
            // Times are absolute by then, whatever the time.
            let again = Query::parse(&printed, Timestamp(0));
            prop_assert_eq!(again, Ok(query.clone()), "{}", printed);
            query.matches(&tls(), &[ID.to_owned()]);
        }
        Err(error) => {
            prop_assert!(error.at <= text.len());
            prop_assert!(text.is_char_boundary(error.at), "{}", error);
            prop_assert!(error.render(text).lines().count() >= 3);
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_parses_or_gives_an_error_inside_it(text in "\\PC*|[ -~\\t\\n]*") {
        check_text(&text)?;
    }

    #[test]
    fn the_printed_form_parses_to_the_same_query(text in almost_a_query()) {
        check_text(&text)?;
    }

    #[test]
    fn answers_agree_with_a_naive_evaluator(
        naive in combined(prop_oneof![packet_test(), session_test()]),
        rows in prop::collection::vec(session(), 1..20),
    ) {
        let text = naive.text();
        let query = Query::parse(&text, NOW).unwrap();
        prop_assert_eq!(Query::parse(&query.to_string(), NOW), Ok(query.clone()));
        let (first, last) = query.time_range();
        for row in &rows {
            prop_assert_eq!(query.matches(row, &[]), naive.matches(row), "{} of {:?}", text, row);
            if naive.matches(row) {
                prop_assert!(row.start <= last && row.end >= first, "{} prunes {:?}", text, row);
            }
        }
    }
}

/// Every value of every field of these sessions.
#[test]
fn the_condition_of_a_value_selects_the_session_that_has_it() {
    let ids = [ID.to_owned()];
    let mut fields = BTreeSet::new();
    for row in [tls(), http(), dns(), ping(), arp()] {
        for field in FIELDS.iter() {
            field.each((&row, &ids), None, |value| {
                let condition = field.condition(value);
                let query = Query::parse(&condition, NOW);
                let query = query.unwrap_or_else(|error| panic!("{condition}: {error}"));
                assert!(query.matches(&row, &ids), "{condition}");
                fields.insert(field.name);
            });
        }
    }
    assert!(fields.len() > 60, "{fields:?}");
}

proptest! {
    #[test]
    fn the_condition_of_any_name_selects_it_and_no_other(
        name in "[^\u{0}]{1,12}",
        other in "[a*\\\\\"]{1,4}",
    ) {
        let sni = query::Field::find("sni").unwrap();
        let of = |name: &str| {
            let mut row = tls();
            row.names.sni = Some(name.to_owned());
            row
        };
        for name in [&name, &other] {
            let condition = sni.condition(Reading::Name(name));
            let query = Query::parse(&condition, NOW);
            let query = query.unwrap_or_else(|error| panic!("{condition}: {error}"));
            prop_assert!(query.matches(&of(name), &[]), "{}", condition);
            prop_assert!(!query.matches(&of(&format!("{name}x")), &[]), "{}", condition);
        }
    }
}
