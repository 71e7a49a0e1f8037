//! Random queries of random traffic: `find` and `extract` against a scan over all packets that
//! knows neither index nor pieces.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use extract::{Request, extract, find};
use found::Event;
use packet_output::Target;
use proptest::prelude::*;
use query::Query;
use units::{ManualClock, Timestamp};

use crate::reader::read;
use crate::recorder::{How, Packet, Traffic, Volume, ethernet, lacks_nothing};

const UDP: u8 = 17;
const ESP: u8 = 50;

/// A session, as its first packet made it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Session {
    orig: (u8, u16),
    resp: (u8, u16),
    proto: u8,
}

fn host(end: u8) -> String {
    format!("10.0.0.{end}")
}

impl Session {
    /// The name that its datagrams ask for.
    fn name(&self) -> Option<String> {
        (self.proto == UDP).then(|| name((self.orig.1 + u16::from(self.orig.0)) % 3))
    }

    fn frame(&self, back: bool) -> Vec<u8> {
        let (from, to) = if back { (self.resp, self.orig) } else { (self.orig, self.resp) };
        let mut payload = Vec::new();
        if let Some(name) = self.name() {
            // A DNS message with one question, answered or not.
            payload.extend([0, 1, if back { 0x80 } else { 1 }, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            for label in name.split('.') {
                payload.push(u8::try_from(label.len()).unwrap());
                payload.extend(label.as_bytes());
            }
            payload.extend([0, 0, 1, 0, 1]);
            let len = u16::try_from(8 + payload.len()).unwrap();
            let header = [from.1.to_be_bytes(), to.1.to_be_bytes(), len.to_be_bytes(), [0, 0]];
            payload.splice(0..0, header.concat());
        } else {
            payload.extend([7; 400]);
        }
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, self.proto, 0, 0]);
        frame.extend([10, 0, 0, from.0, 10, 0, 0, to.0]);
        frame.extend(payload);
        frame
    }
}

fn name(label: u16) -> String {
    format!("h{label}.example")
}

/// A query whose answer for a session needs nothing but what all of its rows share.
#[derive(Clone, Debug)]
enum Naive {
    Host(&'static str, u8),
    Net(&'static str, u8),
    Port(&'static str, u16),
    Proto(u8),
    Name(u16),
    Not(Box<Naive>),
    And(Box<Naive>, Box<Naive>),
    Or(Box<Naive>, Box<Naive>),
}

impl Naive {
    fn text(&self) -> String {
        match self {
            Self::Host(end, host) => format!("{end}host 10.0.0.{host}"),
            Self::Net(end, net) => format!("{end}net 10.0.0.{net}/31"),
            Self::Port(end, port) => format!("{end}port {port}"),
            Self::Proto(proto) => format!("ip proto {proto}"),
            Self::Name(label) => format!("dns.name = {}", name(*label)),
            Self::Not(term) => format!("not ({})", term.text()),
            Self::And(left, right) => format!("({}) and ({})", left.text(), right.text()),
            Self::Or(left, right) => format!("({}) or ({})", left.text(), right.text()),
        }
    }

    /// The same of either end.
    fn without_ends(&self) -> Self {
        let pair = |left: &Self, right: &Self| {
            (Box::new(left.without_ends()), Box::new(right.without_ends()))
        };
        match self {
            Self::Host(_, host) => Self::Host("", *host),
            Self::Net(_, net) => Self::Net("", *net),
            Self::Port(_, port) => Self::Port("", *port),
            Self::Not(term) => Self::Not(Box::new(term.without_ends())),
            Self::And(left, right) => {
                let (left, right) = pair(left, right);
                Self::And(left, right)
            }
            Self::Or(left, right) => {
                let (left, right) = pair(left, right);
                Self::Or(left, right)
            }
            Self::Proto(_) | Self::Name(_) => self.clone(),
        }
    }

    fn selects(&self, session: &Session) -> bool {
        let ends = |end: &str, holds: &dyn Fn((u8, u16)) -> bool| match end {
            "orig " => holds(session.orig),
            "resp " => holds(session.resp),
            _ => holds(session.orig) || holds(session.resp),
        };
        match self {
            Self::Host(end, host) => ends(end, &|at| at.0 == *host),
            Self::Net(end, net) => ends(end, &|at| at.0 / 2 == net / 2),
            Self::Port(end, port) => session.proto == UDP && ends(end, &|at| at.1 == *port),
            Self::Proto(proto) => session.proto == *proto,
            Self::Name(label) => session.name() == Some(name(*label)),
            Self::Not(term) => !term.selects(session),
            Self::And(left, right) => left.selects(session) && right.selects(session),
            Self::Or(left, right) => left.selects(session) || right.selects(session),
        }
    }
}

fn query() -> impl Strategy<Value = Naive> {
    let end = || prop::sample::select(vec!["", "orig ", "resp "]);
    let leaf = prop_oneof![
        3 => (end(), 0_u8..6).prop_map(|(end, host)| Naive::Host(end, host)),
        1 => (end(), 0_u8..6).prop_map(|(end, net)| Naive::Net(end, net / 2 * 2)),
        2 => (end(), prop_oneof![Just(53), 1000_u16..1004])
            .prop_map(|(end, port)| Naive::Port(end, port)),
        1 => prop_oneof![Just(UDP), Just(ESP), Just(6)].prop_map(Naive::Proto),
        2 => (0_u16..4).prop_map(Naive::Name),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            1 => inner.clone().prop_map(|term| Naive::Not(Box::new(term))),
            2 => pair().prop_map(|(a, b)| Naive::And(a, b)),
            2 => pair().prop_map(|(a, b)| Naive::Or(a, b)),
        ]
    })
}

fn session() -> impl Strategy<Value = Session> {
    (0_u8..6, 0_u8..6, 1000_u16..1003, prop::bool::weighted(0.8)).prop_map(
        |(orig, resp, port, is_udp)| {
            let (proto, ports) = if is_udp { (UDP, [port, 53]) } else { (ESP, [0, 0]) };
            Session { orig: (orig, ports[0]), resp: (resp, ports[1]), proto }
        },
    )
}

/// Packets of random sessions, which come a little out of order, and whose each is.
fn recorded(
    sessions: &[Session],
    choices: &[(prop::sample::Index, bool, i64)],
) -> (Traffic, Vec<Session>) {
    let mut traffic = Traffic { interfaces: vec![ethernet("eth0")], ..Traffic::default() };
    let mut known: BTreeMap<[(u8, u16); 2], Session> = BTreeMap::new();
    let mut owners = Vec::new();
    for (place, (index, back, jitter)) in (0..).zip(choices) {
        let session = index.get(sessions);
        let mut ends = [session.orig, session.resp];
        ends.sort_unstable();
        // The first packet says who opened it, so that one is never an answer.
        let is_first = !known.contains_key(&ends);
        let owner = known.entry(ends).or_insert_with(|| session.clone()).clone();
        let data = owner.frame(*back && !is_first);
        let original_len = u32::try_from(data.len()).unwrap();
        let timestamp = Timestamp(place * 100 + jitter);
        traffic.packets.push(Packet {
            interface: 0,
            timestamp,
            original_len,
            data,
            options: Vec::new(),
        });
        owners.push(owner);
    }
    (traffic, owners)
}

/// Times and bytes of the packets extracted, sorted; sessions that begin where no rows are may be
/// said to be split.
fn extracted(volume: &Volume, text: &str, may_be_split: bool) -> Vec<(i128, Vec<u8>)> {
    let parsed = Query::parse(text, Timestamp(0)).unwrap();
    let mut out = Vec::new();
    let request = Request::new(&parsed, text);
    let target = Target::Pcapng(&mut out);
    let clock = ManualClock::new(Timestamp(0));
    let report =
        extract(&volume.options(), &request, target, &clock, &mut |_| ControlFlow::Continue(()));
    let mut completeness = report.unwrap().manifest.completeness;
    if may_be_split {
        completeness.split_sessions = 0;
    }
    assert!(lacks_nothing(&completeness), "{text}");
    let mut frames: Vec<_> =
        read(&out).frames.into_iter().map(|frame| (frame.time_ns, frame.data)).collect();
    frames.sort();
    frames
}

/// Sessions found, by their ends, with their packets.
fn found(volume: &Volume, text: &str) -> BTreeMap<(String, u16, String, u16), u64> {
    let parsed = Query::parse(text, Timestamp(0)).unwrap();
    let clock = ManualClock::new(Timestamp(0));
    let mut all = BTreeMap::new();
    find(&volume.options(), &parsed, None, &clock, &mut |event| {
        if let Event::Found(found) = event {
            let tuple = &found.session.tuple;
            let ends =
                (tuple.orig.to_string(), tuple.orig_port, tuple.resp.to_string(), tuple.resp_port);
            let packets = found.session.orig.packets + found.session.resp.packets;
            assert_eq!(all.insert(ends, packets), None, "{text}: a session came twice");
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

/// What the scan selects, in the same form.
fn expected(
    traffic: &Traffic,
    owners: &[Session],
    naive: &Naive,
    times: core::ops::Range<i64>,
) -> Vec<(i128, Vec<u8>)> {
    let mut frames: Vec<_> = traffic
        .packets
        .iter()
        .zip(owners)
        .filter(|(packet, owner)| naive.selects(owner) && times.contains(&packet.timestamp.0))
        .map(|(packet, _)| (i128::from(packet.timestamp.0), packet.data.clone()))
        .collect();
    frames.sort();
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn find_and_extract_agree_with_a_scan_over_all_packets(
        sessions in prop::collection::vec(session(), 1..30),
        choices in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<bool>(), 0_i64..500),
            1..600,
        ),
        queries in prop::collection::vec((query(), 0_i64..60_000, 0_i64..60_000), 6),
        segment_pieces in prop_oneof![4 => (1_usize..5).prop_map(Some), 1 => Just(None)],
        (crash, late, forget) in
            (prop::bool::weighted(0.2), prop::bool::weighted(0.2), any::<bool>()),
    ) {
        let (traffic, owners) = recorded(&sessions, &choices);
        let how = How { piece_bytes: 16 << 10, segment_pieces, crash, late, ..How::default() };
        let volume = Volume::of(&traffic, how);
        for (naive, from, to) in &queries {
            // Indexed from the middle on, a session may show its other end first.
            let naive = &if late || crash { naive.without_ends() } else { naive.clone() };
            let text = naive.text();
            let whole = expected(&traffic, &owners, naive, 0..i64::MAX);
            prop_assert_eq!(extracted(&volume, &text, late), whole, "{}", text);
            let cut = format!(
                "({text}) and after {} and before {}",
                Timestamp(*from),
                Timestamp(*to),
            );
            let part = expected(&traffic, &owners, naive, *from..*to);
            prop_assert_eq!(extracted(&volume, &cut, late), part, "{}", cut);
            if !late && !crash {
                let mut wanted = BTreeMap::new();
                for owner in owners.iter().filter(|owner| naive.selects(owner)) {
                    let (orig, resp) = (host(owner.orig.0), host(owner.resp.0));
                    *wanted.entry((orig, owner.orig.1, resp, owner.resp.1)).or_insert(0) += 1;
                }
                prop_assert_eq!(found(&volume, &text), wanted, "{}", text);
            }
            if forget {
                volume.forget_cache();
            }
        }
    }
}
