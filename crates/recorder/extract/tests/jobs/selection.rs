//! What an extract selects, against a naive scan over all packets.

use core::ops::ControlFlow;
use core::time::Duration;

use extract::{ExtractReport, Pattern, Request, SessionIds, extract};
use filters::PacketFilter;
use manifest::Limits;
use packet_output::Target;
use proptest::prelude::*;
use query::Query;
use units::{ManualClock, Timestamp};

use crate::reader::{Capture, read};
use crate::recorder::{How, Packet, Traffic, Volume, ethernet, lacks_nothing};

const SECOND: i64 = units::NANOS_PER_SECOND;

/// A packet as the test knows it: a datagram of session `port`, one way or the other.
#[derive(Clone, Copy, Debug)]
struct Sent {
    port: u16,
    back: bool,
    vlan: Option<u16>,
    /// The payload has the needle in it.
    marked: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let vlan = prop_oneof![3 => Just(None), 1 => Just(Some(5_u16))];
    (1000..1006_u16, any::<bool>(), vlan, prop::bool::weighted(0.1))
        .prop_map(|(port, back, vlan, marked)| Sent { port, back, vlan, marked })
}

impl Sent {
    fn frame(self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if let Some(vlan) = self.vlan {
            // Priority 5: what compares the whole field for the id is wrong.
            frame.extend([0x81, 0, 0xa0 | u8::try_from(vlan >> 8).unwrap(), 5]);
        }
        frame.extend([8, 0, 0x45, 0, 2, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let (from, to) = if self.back { (1, 0) } else { (0, 1) };
        frame.extend([ends[from], ends[to]].concat());
        let ports = if self.back { [53, self.port] } else { [self.port, 53] };
        frame.extend(ports.map(u16::to_be_bytes).concat());
        frame.extend(492_u16.to_be_bytes());
        frame.extend([0, 0]);
        let begin = frame.len();
        frame.resize(begin + 484, b'.');
        if self.marked {
            frame[begin + 100..begin + 106].copy_from_slice(b"needle");
        }
        frame
    }
}

/// One packet a second.
fn traffic(sent: &[Sent]) -> Traffic {
    let packet = |(second, sent): (i64, &Sent)| {
        let data = sent.frame();
        let original_len = u32::try_from(data.len()).unwrap();
        let timestamp = Timestamp(second * SECOND);
        Packet { interface: 0, timestamp, original_len, data, options: Vec::new() }
    };
    let packets = (0..).zip(sent).map(packet).collect();
    Traffic { interfaces: vec![ethernet("eth0")], packets, blocks: Vec::new() }
}

/// What is asked, in a form that the naive scan understands.
#[derive(Clone, Debug)]
struct Asked {
    ports: Vec<u16>,
    after: Option<usize>,
    before: Option<usize>,
    whole: bool,
    around_s: Option<u16>,
    filter: Option<usize>,
    payload: bool,
    limits: [Option<u64>; 2],
}

/// Filters, and what they mean.
type Means = fn(Sent) -> bool;
const FILTERS: [(&str, Means); 5] = [
    ("dst port 53", |sent| !sent.back),
    ("vlan 5", |sent| sent.vlan.is_some()),
    ("not vlan", |sent| sent.vlan.is_none()),
    ("vlan and src port 53", |sent| sent.vlan.is_some() && sent.back),
    ("tcp", |_| false),
];

fn asked(packets: usize) -> impl Strategy<Value = Asked> {
    let ports = prop::collection::vec(1000..1007_u16, 0..3);
    let time = || prop::option::weighted(0.4, 0..packets);
    let limits = [prop::option::weighted(0.2, 0..20_u64), prop::option::weighted(0.2, 0..9000_u64)];
    let flags = (prop::bool::weighted(0.4), prop::option::weighted(0.3, 0..20_u16));
    let sieve = (prop::option::weighted(0.4, 0..FILTERS.len()), prop::bool::weighted(0.3));
    (ports, time(), time(), flags, sieve, limits).prop_map(
        |(ports, after, before, (whole, around_s), (filter, payload), limits)| Asked {
            ports,
            after,
            before,
            whole,
            around_s,
            filter,
            payload,
            limits,
        },
    )
}

impl Asked {
    fn query(&self) -> String {
        let time = |second: usize| format!("1970-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
        let ports: Vec<String> = self.ports.iter().map(|port| format!("port {port}")).collect();
        let mut words = Vec::new();
        if !ports.is_empty() {
            words.push(format!("({})", ports.join(" or ")));
        }
        words.extend(self.after.map(|second| format!("after {}", time(second))));
        words.extend(self.before.map(|second| format!("before {}", time(second))));
        words.join(" and ")
    }

    /// Places of the packets that are to come out, by looking at every one; and whether a limit
    /// left some out.
    fn naive(&self, sent: &[Sent]) -> (Vec<usize>, bool) {
        let in_time = |at: usize| {
            self.after.is_none_or(|after| at >= after)
                && self.before.is_none_or(|before| at < before)
        };
        let of = |port: u16| (0..sent.len()).filter(move |&at| sent[at].port == port);
        let is_selected = |port: u16| {
            let (first, last) = (of(port).next(), of(port).next_back());
            (self.ports.is_empty() || self.ports.contains(&port))
                && self.after.is_none_or(|after| last.is_some_and(|last| last >= after))
                && self.before.is_none_or(|before| first.is_some_and(|first| first < before))
        };
        let passes = |at: usize| self.filter.is_none_or(|filter| FILTERS[filter].1(sent[at]));
        let by_payload = self.payload && self.whole;
        let near = |at: usize, margin: u16| {
            let margin = usize::from(margin);
            (1000..1007).filter(|&port| is_selected(port)).any(|port| {
                let (Some(first), Some(last)) = (of(port).next(), of(port).next_back()) else {
                    return false;
                };
                at + margin >= first && at <= last + margin
            })
        };
        let is_taken = |at: usize| match self.around_s {
            Some(margin) => near(at, margin),
            None => is_selected(sent[at].port) && (self.whole || in_time(at)),
        };
        // A hit is a packet that the words before `--payload` let through.
        let is_hit = |at: usize| sent[at].marked && is_taken(at) && passes(at);
        let mut chosen: Vec<usize> = (0..sent.len())
            .filter(|&at| is_taken(at) && passes(at))
            .filter(|&at| match (self.payload, by_payload) {
                (false, _) => true,
                (true, false) => is_hit(at),
                (true, true) => of(sent[at].port).any(is_hit),
            })
            .collect();
        let most = self.limits[0].map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
        let mut bytes = 0;
        let fit = chosen.iter().take_while(|&&at| {
            bytes += u64::try_from(32 + sent[at].frame().len().next_multiple_of(4)).unwrap();
            self.limits[1].is_none_or(|limit| bytes <= limit)
        });
        let fit = fit.count().min(most);
        let is_cut = fit < chosen.len();
        chosen.truncate(fit);
        (chosen, is_cut)
    }

    fn run(&self, volume: &Volume) -> (Capture, ExtractReport) {
        let text = self.query();
        let query = Query::parse(&text, Timestamp(0)).unwrap();
        let [packets, bytes] = self.limits;
        let request = Request {
            whole_sessions: self.whole,
            around: self.around_s.map(|seconds| Duration::from_secs(seconds.into())),
            packet_filter: self.filter.map(|at| PacketFilter::new(FILTERS[at].0).unwrap()),
            payload: self.payload.then(|| "needle".parse().unwrap()),
            limits: Limits { packets, bytes, ..Limits::default() },
            ..Request::new(&query, &text)
        };
        take(volume, &request)
    }
}

fn take(volume: &Volume, request: &Request<'_>) -> (Capture, ExtractReport) {
    let mut out = Vec::new();
    let clock = ManualClock::new(Timestamp(0));
    let go_on = &mut |_: &extract::Progress| ControlFlow::Continue(());
    let target = Target::Pcapng(&mut out);
    let report = extract(&volume.options(), request, target, &clock, go_on).unwrap();
    (read(&out), report)
}

fn seconds(capture: &Capture) -> Vec<usize> {
    let second = |time: i128| usize::try_from(time / i128::from(SECOND)).unwrap();
    capture.frames.iter().map(|frame| second(frame.time_ns)).collect()
}

/// One row a session, so that the naive scan knows their bounds.
fn one_segment() -> How {
    How { piece_bytes: 16 << 10, segment_pieces: Some(1000), ..How::default() }
}

#[test]
fn every_selection_is_that_of_a_naive_scan() {
    if PacketFilter::new("tcp").is_err() {
        println!("not run: libpcap is not installed");
        return;
    }
    let traffics = prop::collection::vec(sent(), 1..300);
    let strategy = traffics.prop_flat_map(|sent| {
        let asked = prop::collection::vec(asked(sent.len()), 12);
        (Just(sent), asked)
    });
    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    proptest!(config, |((sent, questions) in strategy)| {
        let volume = Volume::of(&traffic(&sent), one_segment());
        for asked in questions {
            let (capture, report) = asked.run(&volume);
            let (expected, is_cut) = asked.naive(&sent);
            prop_assert_eq!(seconds(&capture), expected, "{:?} {}", &asked, asked.query());
            let completeness = &report.manifest.completeness;
            prop_assert_eq!(completeness.limited, is_cut, "{:?}", &asked);
            prop_assert_eq!(lacks_nothing(completeness), !is_cut, "{:?}", completeness);
        }
    });
}

fn steady(sessions: u16, rounds: u16) -> Vec<Sent> {
    let of_round = |round| {
        (0..sessions).map(move |session| Sent {
            port: 1000 + session,
            back: round % 2 == 1,
            vlan: None,
            marked: false,
        })
    };
    (0..rounds).flat_map(of_round).collect()
}

#[test]
fn a_limit_of_sessions_keeps_all_rows_of_those_it_lets_through() {
    // Several segments: a session has a row in each.
    let sent = steady(5, 60);
    let volume = Volume::of(&traffic(&sent), How { piece_bytes: 16 << 10, ..How::default() });
    let query = Query::all();
    for whole_sessions in [false, true] {
        let limits = Limits { sessions: Some(2), ..Limits::default() };
        let request = Request { limits, whole_sessions, ..Request::new(&query, "") };
        let (capture, report) = take(&volume, &request);
        assert!(report.manifest.rows > 4, "{report:?}");
        assert_eq!(capture.frames.len(), 2 * 60);
        assert!(report.manifest.completeness.limited);
        let limits = Limits { sessions: Some(5), ..Limits::default() };
        let (capture, report) = take(&volume, &Request { limits, ..request });
        assert!(capture.frames.len() == 300 && report.manifest.completeness.is_complete());
    }
}

#[test]
fn sessions_named_by_one_row_come_with_all_and_unknown_ones_are_counted() {
    let sent = steady(3, 100);
    let volume = Volume::of(&traffic(&sent), How { piece_bytes: 16 << 10, ..How::default() });
    let clock = ManualClock::new(Timestamp(0));
    let mut found = Vec::new();
    let query = Query::parse("port 1001", Timestamp(0)).unwrap();
    extract::find(&volume.options(), &query, None, &clock, &mut |event| {
        if let found::Event::Found(session) = event {
            found.extend(session.rows.clone());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(found.len() > 2, "{found:?}");
    let mut ids = SessionIds::default();
    assert!(ids.add(&found[1]));
    let all = Query::all();
    let named = Request { sessions: Some(ids.clone()), ..Request::new(&all, "") };
    let (capture, report) = take(&volume, &named);
    assert_eq!(capture.frames.len(), 100);
    assert!(report.manifest.completeness.is_complete(), "{report:?}");

    let text = "after 1970-01-01T00:04:50Z";
    let late = Query::parse(text, Timestamp(0)).unwrap();
    let request = Request { query: &late, query_text: text, ..named.clone() };
    assert_eq!(seconds(&take(&volume, &request).0), [292, 295, 298]);

    assert!(ids.add("1.0-0") && ids.add(&found[1].replace('-', "-99")));
    let (capture, report) = take(&volume, &Request { sessions: Some(ids), ..named });
    let completeness = &report.manifest.completeness;
    assert!(capture.frames.len() == 100 && completeness.unknown_sessions == 2, "{completeness:?}");
    assert!(!completeness.is_complete());
}

#[test]
fn comments_say_whose_a_packet_is() {
    let volume = Volume::of(&traffic(&steady(2, 4)), one_segment());
    let query = Query::parse("port 1001", Timestamp(0)).unwrap();
    let request = Request { comments: true, ..Request::new(&query, "port 1001") };
    let (capture, _) = take(&volume, &request);
    let comments: Vec<&str> =
        capture.frames.iter().filter_map(|frame| frame.comment.as_deref()).collect();
    assert_eq!(comments.len(), 4);
    assert!(comments[0].starts_with("session ") && comments[0].ends_with("-1 from originator"));
    assert_eq!(comments[1], comments[0].replace("originator", "responder"));
    let plain = take(&volume, &Request::new(&query, "port 1001")).0;
    let bytes = |capture: &Capture| -> Vec<Vec<u8>> {
        capture.frames.iter().map(|frame| frame.data.clone()).collect()
    };
    assert_eq!(bytes(&plain), bytes(&capture));
}

#[test]
fn packets_for_which_a_filter_means_nothing_are_left_out_and_counted() {
    let Ok(filter) = PacketFilter::new("ether host 02:02:02:02:02:02") else {
        println!("not run: libpcap is not installed");
        return;
    };
    let mut mixed = traffic(&steady(1, 3));
    mixed.interfaces[0].link_type = wire::LinkType::RAW;
    mixed.interfaces.push(ethernet("eth1"));
    mixed.packets[1].interface = 1;
    let volume = Volume::of(&mixed, one_segment());
    let all = Query::all();
    let request = Request { packet_filter: Some(filter), ..Request::new(&all, "") };
    let mut out = Vec::new();
    let clock = ManualClock::new(Timestamp(0));
    let go_on = &mut |_: &extract::Progress| ControlFlow::Continue(());
    let target = Target::Pcapng(&mut out);
    let report = extract(&volume.options(), &request, target, &clock, go_on).unwrap();
    let completeness = &report.manifest.completeness;
    assert_eq!((report.packets, completeness.unfit_packets), (1, 2), "{completeness:?}");
    assert_eq!(completeness.state(), completeness::State::Incomplete);
}

#[test]
fn a_pattern_is_looked_for_in_payload_only() {
    let volume = Volume::of(&traffic(&steady(1, 2)), one_segment());
    let all = Query::all();
    // The header's bytes are not payload.
    for (pattern, packets) in [("hex:08 00 45 00", 0), ("hex:2e2e2e2e", 2), ("re:^\\.{484}$", 2)] {
        let payload: Option<Pattern> = Some(pattern.parse().unwrap());
        let request = Request { payload, ..Request::new(&all, "") };
        assert_eq!(take(&volume, &request).0.frames.len(), packets, "{pattern}");
    }
}
