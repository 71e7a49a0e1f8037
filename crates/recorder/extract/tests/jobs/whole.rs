//! A query is about sessions: however a recording divides them into rows, the answer is that of one
//! row each.

use core::cmp::Reverse;
use core::ops::ControlFlow;
use std::collections::BTreeSet;

use completeness::{Completeness, State};
use extract::{Request, Sought, extract, find_columns};
use found::{Event, Found};
use packet_output::Target;
use proptest::prelude::*;
use query::Query;
use session::{Config, SessionRow};
use units::{ManualClock, NANOS_PER_SECOND, Timestamp};

use crate::reader::read;
use crate::recorder::{How, Packet, Traffic, Volume, endless, ethernet, lacks_nothing};

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opens {
    InOrder,
    /// In the middle: nobody saw the handshake.
    Before,
    /// The first SYN is lost behind the capture, and sent again.
    AtTheSecondTry,
}

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    InOrder,
    /// By a FIN of one side; the other one's is not seen.
    HalfClosed(bool),
    /// By a RST of one side.
    Reset(bool),
    NotYet,
    /// It never began: the SYN is rejected, or nobody answers.
    Rejected,
    Unanswered,
}

/// A connection, and what it is about.
#[derive(Clone, Copy, Debug)]
struct Connection {
    opens: Opens,
    ends: Ends,
    /// Each so many segments with data one is sent twice.
    again: usize,
}

/// A conversation: a datagram after the other, or a segment, some of which ask for a name.
#[derive(Clone, Debug)]
struct Talk {
    port: u16,
    begin_s: i64,
    /// Between two datagrams; sessions with longer silence are two.
    gap_s: i64,
    packets: u16,
    /// From this one on they ask for `name`.
    named_from: u16,
    name: u8,
    answers: bool,
    connection: Option<Connection>,
}

fn connection() -> impl Strategy<Value = Option<Connection>> {
    let opens = prop::sample::select(vec![
        Opens::InOrder,
        Opens::InOrder,
        Opens::Before,
        Opens::AtTheSecondTry,
    ]);
    let ends = prop_oneof![
        3 => Just(Ends::InOrder),
        2 => any::<bool>().prop_map(Ends::HalfClosed),
        2 => any::<bool>().prop_map(Ends::Reset),
        2 => Just(Ends::NotYet),
        1 => Just(Ends::Rejected),
        1 => Just(Ends::Unanswered),
    ];
    let again = prop::sample::select(vec![3, 7, usize::MAX]);
    let connection =
        (opens, ends, again).prop_map(|(opens, ends, again)| Connection { opens, ends, again });
    prop::option::of(connection)
}

fn talks() -> impl Strategy<Value = Vec<Talk>> {
    let gap = prop_oneof![1_i64..5, 20_i64..70, 200_i64..850];
    let talk = (0_i64..4000, gap, 1_u16..40, 0_u16..30, 0_u8..3, any::<bool>(), connection());
    prop::collection::vec(talk, 1..12).prop_map(|talks| {
        let talk = |(number, (begin_s, gap_s, packets, named_from, name, answers, connection))| {
            let port = 1000 + number;
            Talk { port, begin_s, gap_s, packets, named_from, name, answers, connection }
        };
        (0_u16..).zip(talks).map(talk).collect()
    })
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A connection under way: what each side has sent so far.
struct Segments<'t> {
    talk: &'t Talk,
    sent: [u32; 2],
    frames: Vec<Vec<u8>>,
}

impl<'t> Segments<'t> {
    fn new(talk: &'t Talk) -> Self {
        Self { talk, sent: [u32::MAX - 700, 5000], frames: Vec::new() }
    }

    fn send(&mut self, back: bool, flags: u8, payload: &[u8]) {
        let [own, others] =
            if back { [self.sent[1], self.sent[0]] } else { [self.sent[0], self.sent[1]] };
        let others = if flags & ACK == 0 { 0 } else { others };
        let mut segment = if back { [80, self.talk.port] } else { [self.talk.port, 80] }
            .map(u16::to_be_bytes)
            .concat();
        segment.extend([own, others].map(u32::to_be_bytes).concat());
        segment.extend([0x50, flags, 64, 0, 0, 0, 0, 0]);
        segment.extend(payload);
        self.frames.push(self.talk.packet(back, 6, &segment));
        let numbers = u32::from(flags & (SYN | FIN) != 0) + u32::try_from(payload.len()).unwrap();
        let sent = &mut self.sent[usize::from(back)];
        *sent = sent.wrapping_add(numbers);
    }

    fn open(&mut self, opens: Opens) {
        if opens == Opens::Before {
            return;
        }
        if opens == Opens::AtTheSecondTry {
            let before = self.sent;
            self.send(false, SYN, &[]);
            self.sent = before;
        }
        self.send(false, SYN, &[]);
        self.send(true, SYN | ACK, &[]);
        self.send(false, ACK, &[]);
    }

    fn close(&mut self, ends: Ends) {
        match ends {
            Ends::InOrder => {
                self.send(false, FIN | ACK, &[]);
                self.send(true, FIN | ACK, &[]);
                self.send(false, ACK, &[]);
            }
            Ends::HalfClosed(back) => {
                self.send(back, FIN | ACK, &[]);
                self.send(!back, ACK, &[]);
            }
            Ends::Reset(back) => self.send(back, RST | ACK, &[]),
            Ends::NotYet | Ends::Rejected | Ends::Unanswered => {}
        }
    }
}

impl Talk {
    /// All of it, in order.
    fn frames(&self) -> Vec<Vec<u8>> {
        match self.connection {
            Some(connection) => self.segments(connection),
            None => (0..self.packets).map(|number| self.datagram(number)).collect(),
        }
    }

    fn segments(&self, Connection { opens, ends, again }: Connection) -> Vec<Vec<u8>> {
        let mut segments = Segments::new(self);
        if matches!(ends, Ends::Rejected | Ends::Unanswered) {
            segments.send(false, SYN, &[]);
            if ends == Ends::Rejected {
                segments.send(true, RST | ACK, &[]);
            }
            return segments.frames;
        }
        segments.open(opens);
        for number in 0..self.packets {
            let back = self.answers && number % 2 == 1;
            let is_request = !back && number >= self.named_from;
            let mut payload = match (is_request, back) {
                (true, _) => format!("GET /{number} HTTP/1.1\r\nHost: h{}\r\n\r\n", self.name),
                (false, true) => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
                (false, false) => "-".repeat(40),
            };
            if !is_request {
                payload.push_str(&"-".repeat(usize::from(number)));
            }
            let before = segments.sent;
            segments.send(back, ACK, payload.as_bytes());
            if usize::from(number) % again == again - 1 {
                segments.sent = before;
                segments.send(back, ACK, payload.as_bytes());
            }
        }
        segments.close(ends);
        segments.frames
    }

    fn datagram(&self, number: u16) -> Vec<u8> {
        let back = self.answers && number % 2 == 1;
        let mut payload = vec![0, 1, if back { 0x80 } else { 1 }, 0];
        if number >= self.named_from {
            payload.extend([0, 1, 0, 0, 0, 0, 0, 0, 2, b'h', b'0' + self.name, 0, 0, 1, 0, 1]);
        } else {
            payload.extend([0; 8]);
        }
        payload.resize(payload.len() + 300 + usize::from(number), 0);
        let ports = if back { [53, self.port] } else { [self.port, 53] };
        let mut datagram = ports.map(u16::to_be_bytes).concat();
        datagram.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend(payload);
        self.packet(back, 17, &datagram)
    }

    fn packet(&self, back: bool, proto: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, u8::try_from(self.port - 998).unwrap()]];
        frame.extend(if back { [ends[1], ends[0]].concat() } else { ends.concat() });
        frame.extend(payload);
        frame
    }
}

fn traffic(talks: &[Talk]) -> Traffic {
    let mut packets = Vec::new();
    for talk in talks {
        for (number, data) in (0_i64..).zip(talk.frames()) {
            let second = talk.begin_s + number * talk.gap_s;
            packets.push(Packet {
                interface: 0,
                timestamp: Timestamp(second * NANOS_PER_SECOND + i64::from(talk.port)),
                original_len: u32::try_from(data.len()).unwrap(),
                data,
                options: Vec::new(),
            });
        }
    }
    packets.sort_by_key(|packet: &Packet| packet.timestamp);
    Traffic { interfaces: vec![ethernet("eth0")], packets, blocks: Vec::new() }
}

/// The clock is set back while all of it is recorded, as far as no session gets packets from before
/// it began: those would be another one.
fn set_back(mut traffic: Traffic, talks: &[Talk], (at, share): (usize, i64)) -> Traffic {
    let at = at % traffic.packets.len();
    let (before, after) = traffic.packets.split_at_mut(at);
    let first = |packets: &[Packet], talk: &Talk| {
        packets.iter().find(|it| port_of(&it.data) == talk.port).map(|it| it.timestamp)
    };
    let both = talks.iter().filter_map(|talk| first(before, talk).zip(first(after, talk)));
    let most = both.map(|(begin, next)| next.since(begin)).min().unwrap_or(0);
    for packet in after {
        packet.timestamp = packet.timestamp.plus_nanos(-(most / 4 * share));
    }
    traffic
}

fn time(second: i64) -> String {
    Timestamp(second * NANOS_PER_SECOND).to_string()
}

fn condition() -> impl Strategy<Value = String> {
    let second = || (0_i64..6000).prop_map(time);
    let side = || prop::sample::select(vec!["", "orig_", "resp_"]);
    let than = || prop::sample::select(vec!["<", "<=", ">", ">=", "="]);
    prop_oneof![
        2 => second().prop_map(|time| format!("after {time}")),
        2 => second().prop_map(|time| format!("before {time}")),
        2 => (side(), than(), 0..40).prop_map(|(side, than, n)| {
            format!("{side}packets {than} {n}")
        }),
        2 => (than(), 0..3000).prop_map(|(than, n)| format!("duration {than} {n}s")),
        1 => (side(), than(), 0..20_000).prop_map(|(side, than, n)| {
            format!("{side}bytes {than} {n}")
        }),
        2 => (0..3).prop_map(|name| format!("dns.name = h{name}")),
        1 => Just("has dns.name".to_owned()),
        1 => prop::sample::select(vec!["1", "16"]).prop_map(|kind| format!("dns.type = {kind}")),
        1 => Just("app dns".to_owned()),
        1 => (0..3).prop_map(|name| format!("http.host = h{name}")),
        1 => (0..3).prop_map(|name| format!("name h{name}")),
        1 => prop::sample::select(vec!["app http", "has http.host", "http.status = 200", "tcp"])
            .prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "S0", "S1", "S2", "S3", "SF", "REJ", "RSTO", "RSTR", "OTH",
        ])
        .prop_map(|state| format!("state = {state}")),
        1 => prop::sample::select(vec!["S*", "*F*", "*f", "*R", "*t*", "ShAD*", "D*"])
            .prop_map(|letters| format!("history = \"{letters}\"")),
        1 => (side(), than(), 0..4).prop_map(|(side, than, n)| {
            format!("{side}retransmitted_packets {than} {n}")
        }),
        1 => (side(), than(), 0..2).prop_map(|(side, than, n)| format!("{side}resets {than} {n}")),
        1 => (than(), 0..900).prop_map(|(than, n)| format!("tcp.handshake {than} {n}s")),
        1 => prop::sample::select(vec![1, 2, 4, 16, 17, 18, 19, 20, 22, 23])
            .prop_map(|flags| format!("orig_tcp_flags = {flags}")),
        1 => (than(), second()).prop_map(|(than, time)| format!("start {than} {time}")),
        1 => (than(), second()).prop_map(|(than, time)| format!("end {than} {time}")),
        1 => (than(), second()).prop_map(|(than, time)| format!("session_start {than} {time}")),
        2 => (1000..1012).prop_map(|port| format!("port {port}")),
        1 => (1000..1012).prop_map(|port| format!("src port {port}")),
        1 => (2..14).prop_map(|host| format!("orig host 10.0.0.{host}")),
        1 => (2..14).prop_map(|host| format!("resp_ip = 10.0.0.{host}")),
        1 => (2..14).prop_map(|host| format!("dst host 10.0.0.{host}")),
    ]
}

fn question() -> impl Strategy<Value = String> {
    condition().prop_recursive(3, 6, 2, |inner| {
        let pair = (inner.clone(), inner.clone(), prop::sample::select(vec!["and", "and", "or"]));
        prop_oneof![
            4 => pair.prop_map(|(left, right, word)| format!("({left}) {word} ({right})")),
            1 => inner.prop_map(|inner| format!("not ({inner})")),
        ]
    })
}

/// What a reader of the answer sees of a session.
pub(crate) fn shown(found: &Found) -> impl PartialEq + core::fmt::Debug + use<> {
    let session = &found.session;
    let names = (session.names.dns_names.clone(), session.names.http_host.clone());
    let counters = (session.orig, session.resp);
    let connection = (session.state, session.history, session.handshake_ns);
    (session.start, session.end, session.tuple, connection, counters, names, found.packets)
}

pub(crate) fn found(volume: &Volume, text: &str) -> Vec<Found> {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let (all, completeness) = sought(volume, &Sought::new(&query));
    assert!(lacks_nothing(&completeness), "{text}: {completeness:?}");
    all
}

pub(crate) fn sought(volume: &Volume, sought: &Sought<'_>) -> (Vec<Found>, Completeness) {
    let mut all = Vec::new();
    let clock = ManualClock::new(Timestamp(0));
    let report = find_columns(&volume.options(), sought, &clock, &mut |event| {
        if let Event::Found(found) = event {
            let mut found = found.clone();
            // Where rows are made on the way, they come before others of the same segment.
            found.rows.sort_by_key(|id| {
                let (segment, row) = id.rsplit_once('-').unwrap();
                (segment.to_owned(), row.parse::<u64>().unwrap())
            });
            all.push(found);
        }
        ControlFlow::Continue(())
    });
    (all, report.unwrap().completeness)
}

/// The first of both orders are those of the whole answer: one of both and of some limits, another
/// for each question.
fn first_ones_agree(
    volume: &Volume,
    text: &str,
    all: &[Found],
    number: usize,
) -> Result<(), TestCaseError> {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let newest_first = number % 2 == 1;
    let mut expected = all.to_vec();
    if newest_first {
        expected.sort_by_key(|found| Reverse(found.session.start));
    }
    let limits = [1, 3, all.len(), all.len() + 1];
    let limit = limits[number / 2 % limits.len()];
    let asked =
        Sought { limit: Some(u64::try_from(limit).unwrap()), newest_first, ..Sought::new(&query) };
    let (found, completeness) = sought(volume, &asked);
    let expected = expected.get(..limit).unwrap_or(&expected);
    prop_assert_eq!(&found, expected, "{} {} of {}", newest_first, limit, text);
    let ended = completeness.limited || completeness.unsought;
    prop_assert!(ended || limit >= all.len());
    prop_assert!(!completeness.limited || limit < all.len());
    prop_assert!(!completeness.unsought || limit <= all.len());
    Ok(())
}

/// Times and bytes of the packets extracted.
fn extracted(volume: &Volume, text: &str, whole_sessions: bool) -> Vec<(i128, Vec<u8>)> {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let request = Request { whole_sessions, ..Request::new(&query, text) };
    let (clock, mut out) = (ManualClock::new(Timestamp(0)), Vec::new());
    let go_on = &mut |_: &extract::Progress| ControlFlow::Continue(());
    let target = Target::Pcapng(&mut out);
    let report = extract(&volume.options(), &request, target, &clock, go_on).unwrap();
    let completeness = report.manifest.completeness;
    assert!(lacks_nothing(&completeness), "{text}: {completeness:?}");
    read(&out).frames.into_iter().map(|frame| (frame.time_ns, frame.data)).collect()
}

/// What has no rows until somebody asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    /// The newest segment.
    NewestIndex,
    /// Every third piece.
    SomeRows,
}

/// How rows are cut: by time, and where segments end.
fn cuts() -> impl Strategy<Value = (Option<i64>, usize)> {
    let slice_s = prop_oneof![Just(None), (1_i64..120).prop_map(Some)];
    (slice_s, prop_oneof![1_usize..4, Just(usize::MAX)])
}

/// Volumes with the same packets, recorded once or several times.
fn recorded(traffic: &Traffic, how: How, times: usize) -> Volume {
    let mut volume = Volume::of(traffic, how);
    for _ in 1..times {
        volume.record(traffic, how);
    }
    volume
}

/// The answers where each session has one row: that is asked, and nothing else.
struct Truth {
    volume: Volume,
    sessions: Vec<Found>,
    /// Of all of them, in the order of an extract.
    packets: Vec<(i128, Vec<u8>)>,
}

impl Truth {
    fn of(volume: Volume) -> Self {
        let (sessions, packets) = (found(&volume, ""), extracted(&volume, "", true));
        assert!(sessions.iter().all(|found| found.rows.len() == 1));
        Self { volume, sessions, packets }
    }

    fn found(&self, query: &Query) -> Vec<&Found> {
        let matches = |found: &&Found| query.matches(&found.session, &found.rows);
        self.sessions.iter().filter(matches).collect()
    }

    /// Its packets: sessions have ports of their own.
    fn extracted(&self, query: &Query, whole_sessions: bool) -> Vec<(i128, Vec<u8>)> {
        let ports: BTreeSet<u16> = self.found(query).iter().map(|it| port(&it.session)).collect();
        let (from, to) = query.packet_time_range();
        let times = i128::from(from.0)..=i128::from(to.0);
        let is_wanted = |(time, data): &&(i128, Vec<u8>)| {
            ports.contains(&port_of(data)) && (whole_sessions || times.contains(time))
        };
        self.packets.iter().filter(is_wanted).cloned().collect()
    }

    /// What it says is what the volume answers.
    fn holds(&self, text: &str) -> Result<(), TestCaseError> {
        let query = Query::parse(text, Timestamp(0)).unwrap();
        let (answer, sessions) = (found(&self.volume, text), self.found(&query));
        prop_assert_eq!(answer.iter().collect::<Vec<_>>(), sessions, "find {}", text);
        for whole in [false, true] {
            let same = extracted(&self.volume, text, whole) == self.extracted(&query, whole);
            prop_assert!(same, "extract {}", text);
        }
        Ok(())
    }
}

fn port(row: &SessionRow) -> u16 {
    row.tuple.orig_port.max(row.tuple.resp_port)
}

/// Of a frame.
fn port_of(data: &[u8]) -> u16 {
    let ports = data.get(34..38).unwrap();
    u16::from_be_bytes([ports[0], ports[1]]).max(u16::from_be_bytes([ports[2], ports[3]]))
}

fn agree(
    traffic: &Traffic,
    (sessions, times): (usize, usize),
    ((slice_s, segment_pieces), without): ((Option<i64>, usize), Without),
    questions: &[String],
) -> Result<(), TestCaseError> {
    let length_ns = slice_s.map(|seconds| seconds * NANOS_PER_SECOND);
    let config = Config { slice_ns: length_ns, ..endless() };
    let (piece_bytes, segment_pieces) = (16 << 10, Some(segment_pieces));
    let (crash, late) = (without == Without::NewestIndex, without == Without::SomeRows);
    let how = How { piece_bytes, segment_pieces, config, crash, late, ..How::default() };
    let cut = recorded(traffic, how, times);
    let one = How { piece_bytes, segment_pieces: Some(usize::MAX), ..How::default() };
    let truth = Truth::of(recorded(traffic, one, times));
    prop_assert_eq!(truth.sessions.len(), sessions * times);
    truth.holds(questions.first().unwrap())?;
    let mut named = BTreeSet::new();
    for (number, text) in questions.iter().enumerate() {
        let query = Query::parse(text, Timestamp(0)).unwrap();
        let all = found(&cut, text);
        let left: Vec<_> = all.iter().map(shown).collect();
        let right: Vec<_> = truth.found(&query).into_iter().map(shown).collect();
        prop_assert_eq!(left, right, "find {}", text);
        first_ones_agree(&cut, text, &all, number)?;
        let is_cut = query.packet_time_range() != (Timestamp::MIN, Timestamp::MAX);
        for whole in [false, true].into_iter().filter(|whole| is_cut || *whole) {
            let (left, right) = (extracted(&cut, text, whole), truth.extracted(&query, whole));
            prop_assert!(left == right, "extract {}: {} of {}", text, left.len(), right.len());
        }
        for session in all.iter().take(1).chain(all.last()) {
            names_its_session(&cut, session, &mut named)?;
        }
    }
    Ok(())
}

/// Each row's id names its session, whatever else was asked.
fn names_its_session(
    cut: &Volume,
    session: &Found,
    named: &mut BTreeSet<String>,
) -> Result<(), TestCaseError> {
    let id = session.rows.get(session.rows.len() / 2).unwrap();
    if !named.insert(id.clone()) {
        return Ok(());
    }
    let text = format!("session_id = {id}");
    prop_assert_eq!(&found(cut, &text), core::slice::from_ref(session), "{}", text);
    let packets = session.session.orig.packets + session.session.resp.packets;
    let count = u64::try_from(extracted(cut, &text, true).len()).unwrap();
    prop_assert_eq!(count, packets, "{}", text);
    Ok(())
}

/// As many volumes as the environment says, or these.
fn cases(count: u32) -> ProptestConfig {
    match std::env::var("PROPTEST_CASES") {
        Ok(_) => ProptestConfig::default(),
        Err(_) => ProptestConfig::with_cases(count),
    }
}

fn questions() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(question(), 16)
}

fn in_order(
    talks: &[Talk],
    cuts: (Option<i64>, usize),
    questions: &[String],
) -> Result<(), TestCaseError> {
    agree(&traffic(talks), (talks.len(), 1), (cuts, Without::Nothing), questions)
}

/// A capture is imported twice, or overlaps with another; the clock is set back meanwhile.
fn whatever_the_clock_does(
    talks: &[Talk],
    cuts: (Option<i64>, usize),
    questions: &[String],
    (times, step): (usize, (usize, i64)),
) -> Result<(), TestCaseError> {
    let traffic = set_back(traffic(talks), talks, step);
    agree(&traffic, (talks.len(), times), (cuts, Without::Nothing), questions)
}

/// The newest segment has no index: the recorder is still at it, or was killed. Who makes its
/// rows knows what the segments before say of sessions that go on. It has the usual timeouts.
fn behind_the_newest_index(
    talks: Vec<Talk>,
    cuts: (Option<i64>, usize),
    questions: &[String],
) -> Result<(), TestCaseError> {
    let within = |talk: Talk| {
        // A connection that is over lingers for so long.
        let most = if talk.connection.is_some() { 5 } else { 59 };
        // What was sent already no row says.
        let once = |it: Connection| Connection {
            opens: if it.opens == Opens::Before { it.opens } else { Opens::InOrder },
            again: usize::MAX,
            ..it
        };
        let connection = talk.connection.map(once);
        Talk { gap_s: talk.gap_s.min(most), connection, ..talk }
    };
    let talks: Vec<Talk> = talks.into_iter().map(within).collect();
    agree(&traffic(&talks), (talks.len(), 1), (cuts, Without::NewestIndex), questions)
}

/// The indexer had no time for some pieces, among others of the same segment that have rows. None
/// of them is the first one: what began in it would be two sessions. And each session has rows
/// within its timeout before them, or in the segment.
fn where_pieces_have_no_rows(
    talks: Vec<Talk>,
    cuts: (Option<i64>, usize),
    questions: &[String],
) -> Result<(), TestCaseError> {
    let at_once = |talk: Talk| Talk {
        begin_s: talk.begin_s % 5,
        gap_s: talk.gap_s.clamp(5, 19),
        // How far a connection is no row says of the packets that have none.
        connection: None,
        ..talk
    };
    let talks: Vec<Talk> = talks.into_iter().map(at_once).collect();
    agree(&traffic(&talks), (talks.len(), 1), (cuts, Without::SomeRows), questions)
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn answers_are_those_of_one_row_each(
        talks in talks(), cuts in cuts(), questions in questions()
    ) {
        in_order(&talks, cuts, &questions)?;
    }

    #[test]
    fn answers_are_those_of_one_row_each_whatever_the_clock_does(
        talks in talks(),
        cuts in cuts(),
        questions in questions(),
        times in 1_usize..3,
        step in (any::<usize>(), 0_i64..5),
    ) {
        whatever_the_clock_does(&talks, cuts, &questions, (times, step))?;
    }

    #[test]
    fn answers_are_those_of_one_row_each_behind_the_newest_index(
        talks in talks(), cuts in cuts(), questions in questions()
    ) {
        behind_the_newest_index(talks, cuts, &questions)?;
    }

    #[test]
    fn answers_are_those_of_one_row_each_where_pieces_have_no_rows(
        talks in talks(), cuts in cuts(), questions in questions()
    ) {
        where_pieces_have_no_rows(talks, cuts, &questions)?;
    }
}

proptest! {
    #![proptest_config(cases(6250))]

    #[test]
    #[ignore = "takes two hours: 100 000 questions"]
    fn answers_are_those_of_one_row_each_at_length(
        talks in talks(),
        cuts in cuts(),
        questions in questions(),
        times in 1_usize..3,
        step in (any::<usize>(), 0_i64..5),
        kind in 0..4,
    ) {
        match kind {
            0 => in_order(&talks, cuts, &questions)?,
            1 => whatever_the_clock_does(&talks, cuts, &questions, (times, step))?,
            2 => behind_the_newest_index(talks, cuts, &questions)?,
            _ => where_pieces_have_no_rows(talks, cuts, &questions)?,
        }
    }
}

/// A message of ICMP: between which hosts, whether back, type and code, and how long after the one
/// before.
type Message = (u8, bool, u8, u8, i64);

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let kind = prop::sample::select(vec![0_u8, 3, 5, 8, 11, 13, 14]);
    prop::collection::vec((1_u8..4, any::<bool>(), kind, 0_u8..2, 0_i64..40), 1..30)
}

fn of_messages(messages: &[Message]) -> Traffic {
    let mut second = 0;
    let packets = messages.iter().map(|&(host, is_back, kind, code, gap_s)| {
        second += gap_s;
        let ends = [[10, 0, 0, host], [10, 0, 0, host + 10]];
        let mut data = vec![2; 12];
        data.extend([8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, 1, 0, 0]);
        data.extend(if is_back { [ends[1], ends[0]].concat() } else { ends.concat() });
        data.extend([kind, code, 0, 0, 0, 7, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        Packet {
            interface: 0,
            timestamp: Timestamp(second * NANOS_PER_SECOND),
            original_len: u32::try_from(data.len()).unwrap(),
            data,
            options: Vec::new(),
        }
    });
    let packets = packets.collect();
    Traffic { interfaces: vec![ethernet("eth0")], packets, blocks: Vec::new() }
}

proptest! {
    #![proptest_config(cases(12))]

    /// A kind of message that comes late gives the session a further id, which its first rows do
    /// not know.
    #[test]
    fn each_community_id_of_icmp_names_the_whole_session(
        messages in messages(), (slice_s, segment_pieces) in cuts()
    ) {
        let traffic = of_messages(&messages);
        let length_ns = slice_s.map(|seconds| seconds * NANOS_PER_SECOND);
        let config = Config { slice_ns: length_ns, ..endless() };
        let (piece_bytes, segment_pieces) = (16 << 10, Some(segment_pieces));
        let how = How { piece_bytes, segment_pieces, ..How::default() };
        let cut = Volume::of(&traffic, How { config, ..how });
        let one = Volume::of(&traffic, how);
        for session in found(&one, "") {
            for id in session.session.community_ids() {
                let text = format!("community_id = \"{id}\"");
                let [left, right] = [&cut, &one]
                    .map(|volume| found(volume, &text).iter().map(shown).collect::<Vec<_>>());
                prop_assert_eq!(&left, &right, "find {}", text);
                prop_assert!(right.contains(&shown(&session)), "find {}", text);
                let [left, right] = [&cut, &one].map(|it| extracted(it, &text, true));
                prop_assert!(left == right, "{}: {} of {}", text, left.len(), right.len());
            }
        }
    }
}

/// A row that has a name need not be the last one of its session, and says nothing of the others.
#[test]
fn a_session_has_the_name_of_any_row_whatever_the_others_count() {
    let talk = |port, (gap_s, packets), (named_from, name)| Talk {
        port,
        begin_s: 0,
        gap_s,
        packets,
        named_from,
        name,
        answers: false,
        connection: None,
    };
    let check = |traffic: &Traffic, how: How, questions: &[&str]| {
        let how = How { piece_bytes: 16 << 10, ..how };
        let cut = Volume::of(traffic, how);
        for text in questions {
            let ports: Vec<u16> = found(&cut, text).iter().map(|it| port(&it.session)).collect();
            assert_eq!(ports, [1001], "{text}");
            assert!(extracted(&cut, text, true).iter().all(|(_, data)| port_of(data) == 1001));
        }
    };
    // Those between have no rows at first, and no name.
    let talks =
        [talk(1000, (5, 23), (0, 0)), talk(1001, (5, 33), (28, 1)), talk(1002, (5, 8), (0, 0))];
    let how = How { segment_pieces: Some(usize::MAX), late: true, ..How::default() };
    check(
        &traffic(&talks),
        how,
        &["dns.name = h1", "dns.name = h1 and packets = 33", "dns.name = h1 and duration = 160s"],
    );
    // The clock is set back to the beginning before the first name comes.
    let talks = [talk(1001, (60, 60), (50, 1))];
    let config = Config { slice_ns: Some(46 * NANOS_PER_SECOND), ..endless() };
    for segment_pieces in [1, 2] {
        let how = How { segment_pieces: Some(segment_pieces), config, ..How::default() };
        check(
            &set_back(traffic(&talks), &talks, (50, 4)),
            how,
            &[
                "dns.name = h1",
                "dns.name = h1 and packets = 60",
                "dns.name = h1 and after 1970-01-01T00:20:00Z and before 1970-01-01T00:10:00Z",
                "dns.name = h1 and end = 1970-01-01T00:49:00.000001001Z",
                "dns.name = h1 and after 1970-01-01T00:48:30Z",
            ],
        );
    }
}

/// The index has written down another beginning, so its rows are of another session. Whoever asks
/// about that session, by either part or by both, is told.
#[test]
fn a_session_that_begins_among_packets_without_rows_is_said_to_be_two() {
    let talk = |port, begin_s, (gap_s, packets)| Talk {
        port,
        begin_s,
        gap_s,
        packets,
        named_from: 99,
        name: 0,
        answers: false,
        connection: None,
    };
    // The second piece of three has no rows: in the midst of a segment, and at the end of one.
    let talks = [talk(1000, 0, (1, 150)), talk(1001, 40, (5, 16))];
    for segment_pieces in [usize::MAX, 2] {
        let segment_pieces = Some(segment_pieces);
        let how = How { piece_bytes: 16 << 10, segment_pieces, ..How::default() };
        let volume = Volume::of(&traffic(&talks), How { late: true, ..how });
        let asked = |text: &str| asked_both_ways(&volume, text);
        assert_eq!(asked("port 1001"), (2, 1, State::Unknown));
        assert_eq!(asked("packets = 16"), (0, 1, State::Unknown));
        assert_eq!(asked("packets = 150"), (1, 1, State::Unknown));
        assert_eq!(asked("port 1000"), (1, 0, State::Complete));
        // It had not begun.
        let (found, split, _) = asked("port 1001 and before 1970-01-01T00:00:30Z");
        assert_eq!((found, split), (0, 0));
        let whole = Volume::of(&traffic(&talks), how);
        assert_eq!(self::found(&whole, "packets = 16").len(), 1);
    }
}

/// Sessions found, those that are said to be split, and what the answer is, oldest or newest first.
fn asked_both_ways(volume: &Volume, text: &str) -> (usize, u64, State) {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let (found, completeness) = sought(volume, &Sought::new(&query));
    let newest = Sought { newest_first: true, ..Sought::new(&query) };
    let (other, of_newest) = sought(volume, &newest);
    assert_eq!(found.len(), other.len(), "{text}");
    assert_eq!(completeness.split_sessions, of_newest.split_sessions, "{text}");
    (found.len(), completeness.split_sessions, completeness.state())
}
