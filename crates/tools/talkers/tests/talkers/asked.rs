use query::Query;
use talkers::{Asked, DnsGrouping, Grouping, Limits, Moment, Talkers};
use units::Timestamp;

use crate::frames::{Made, dns, interface, udp};

const ANSWER: u16 = 0x8180;
const NXDOMAIN: u16 = ANSWER | 3;
const SERVFAIL: u16 = ANSWER | 2;

fn ask(ms: i64, port: u16, id: u16, name: &str) -> Made {
    udp(ms, (1, port), (53, 53), &dns(id, 0x0100, name, &[]))
}

fn answer(ms: i64, port: u16, id: u16, (flags, name): (u16, &str), answers: &[[u8; 4]]) -> Made {
    udp(ms, (53, 53), (1, port), &dns(id, flags, name, answers))
}

fn taken() -> Talkers {
    let frames = [
        ask(1000, 4001, 1, "www.example.com"),
        ask(1001, 4001, 1, "www.example.com"),
        answer(1030, 4001, 1, (ANSWER, "www.example.com"), &[[10, 0, 0, 9]]),
        ask(2000, 4002, 2, "Gone.Example.com"),
        answer(2010, 4002, 2, (NXDOMAIN, "Gone.Example.com"), &[]),
        ask(2500, 4003, 3, "slow.example.org"),
        ask(2600, 4004, 4, "broken.example.org"),
        answer(2700, 4004, 4, (SERVFAIL, "broken.example.org"), &[]),
        udp(9000, (1, 5000), (9, 443), &[0; 100]),
    ];
    let mut talkers = Talkers::new(Limits::default(), 7);
    talkers.take(&[interface()], frames.iter().map(Made::packet));
    talkers.end();
    talkers
}

fn lines(grouping: DnsGrouping, query: &str) -> Vec<Asked> {
    let query = Query::parse(query, Timestamp(0)).unwrap();
    taken().asked(grouping, Moment(9), &query)
}

fn shown(grouping: DnsGrouping, query: &str) -> Vec<(String, u64)> {
    let shown = lines(grouping, query);
    shown.iter().map(|line| (line.key.to_string(), line.questions[2])).collect()
}

fn counts(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn questions_are_put_together_by_what_they_have_in_common() {
    assert_eq!(shown(DnsGrouping::Domain, ""), counts(&[("example.com", 2), ("example.org", 2)]));
    assert_eq!(shown(DnsGrouping::Source, ""), counts(&[("10.0.0.1", 4)]));
    assert_eq!(shown(DnsGrouping::Destination, ""), counts(&[("10.0.0.53", 4)]));
    assert_eq!(shown(DnsGrouping::Type, ""), counts(&[("A", 4)]));
    let mut rcodes = shown(DnsGrouping::Rcode, "");
    rcodes.sort();
    assert_eq!(
        rcodes,
        counts(&[("NOERROR", 1), ("NXDOMAIN", 1), ("SERVFAIL", 1), ("no answer", 1)])
    );
}

#[test]
fn answers_have_times_and_failures_their_kinds() {
    let lines = lines(DnsGrouping::Name, "");
    let line = |name: &str| lines.iter().find(|line| line.key.to_string() == name).unwrap();
    let www = line("www.example.com");
    assert_eq!((www.questions[2], www.latency_median_ns), (1, Some(30_000_000)), "asked twice");
    assert_eq!(line("gone.example.com").absent, 1, "in lower case");
    assert_eq!(line("broken.example.org").errors, 1);
    let slow = line("slow.example.org");
    assert_eq!((slow.unanswered, slow.latency_max_ns), (1, None));
}

#[test]
fn the_query_of_a_line_selects_its_questions() {
    let groupings = [
        DnsGrouping::Source,
        DnsGrouping::Destination,
        DnsGrouping::Type,
        DnsGrouping::Rcode,
        DnsGrouping::Domain,
        DnsGrouping::Name,
    ];
    for grouping in groupings {
        for line in lines(grouping, "") {
            let query = line.key.query();
            assert_eq!(lines(grouping, &query), [line], "{query}");
        }
    }
    assert_eq!(shown(DnsGrouping::Name, "port 443"), []);
}

#[test]
fn hosts_have_the_names_that_were_asked_for() {
    let talkers = taken().talkers(Grouping::Host, Moment(9), &Query::all(), 100).0;
    let named = talkers.iter().find(|talker| talker.who.to_string() == "10.0.0.9").unwrap();
    assert_eq!(named.name.as_deref(), Some("www.example.com"));
}

/// Names at rest are packed; a query that reads them between two seconds must not change what is
/// accounted for them.
#[test]
fn names_may_be_read_at_any_moment() {
    let mut talkers = Talkers::new(Limits { lines: 64, ..Limits::default() }, 7);
    let by_name = Query::parse("dns_names *", Timestamp(0)).unwrap();
    for second in 1..200 {
        let id = u16::try_from(second).unwrap();
        let name = format!("a-rather-long-name-number-{}.example.com", second % 3);
        let frames = [
            ask(second * 1000, 4001, id, &name),
            answer(second * 1000 + 5, 4001, id, (ANSWER, &name), &[[10, 0, 0, 9]]),
        ];
        talkers.take(&[interface()], frames.iter().map(Made::packet));
        talkers.advance(Moment(second).end());
        let (lines, _) = talkers.talkers(Grouping::Session, Moment(second), &by_name, 10);
        assert_eq!(lines.len(), 1, "{second}");
    }
}
