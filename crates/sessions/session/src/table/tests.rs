use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};

use format::session_row::{PieceId, PieceSpan, State};
use proptest::prelude::*;
use units::{InterfaceId, NANOS_PER_SECOND, Sequence};
use wire::{
    Address, App, AppBy, FiveTuple, Fragment, IcmpHeader, LinkType, Protocol, TcpHeader, TcpOptions,
};

use super::*;
use crate::Key;
use crate::tcp::RST;

const SECOND: i64 = NANOS_PER_SECOND;
const ACK: u8 = 16;

#[derive(Clone, Copy, Debug)]
struct Made {
    seconds: i64,
    tuple: FiveTuple,
    transport: Transport,
    fragment: Option<Fragment>,
    len: u32,
    vlan: Option<u16>,
}

fn tuple(proto: Protocol, from: u8, to: u8) -> FiveTuple {
    let end = |last| Address::V4(Ipv4Addr::new(10, 0, 0, last));
    let (orig_port, resp_port) = (1000 + u16::from(from), 1000 + u16::from(to));
    FiveTuple { orig: end(from), resp: end(to), orig_port, resp_port, proto }
}

fn udp(seconds: i64, from: u8, to: u8) -> Made {
    let tuple = tuple(Protocol::UDP, from, to);
    Made { seconds, tuple, transport: Transport::Udp, fragment: None, len: 100, vlan: None }
}

fn tcp(seconds: i64, from: u8, to: u8, flags: u8, seq: u32) -> Made {
    let header =
        TcpHeader { tcp_seq: seq, tcp_ack: 0, flags, window: 1000, options: TcpOptions::default() };
    let tuple = tuple(Protocol::TCP, from, to);
    Made { tuple, transport: Transport::Tcp(header), len: 54, ..udp(seconds, from, to) }
}

fn piece(number: u64) -> PieceId {
    PieceId { sequence: Sequence(number), sub: 0, column: 0 }
}

struct Bench {
    table: Table,
    rows: Vec<SessionRow>,
    begin: u32,
    piece: u64,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self { table: Table::new(config, 7), rows: Vec::new(), begin: 0, piece: 0 }
    }

    fn push(&mut self, made: &Made) {
        let packet = PacketView {
            timestamp: Timestamp(made.seconds.saturating_mul(SECOND)),
            interface: InterfaceId(0),
            link_type: LinkType::ETHERNET,
            original_len: made.len,
            data: &[],
            piece: piece(self.piece),
            begin: self.begin,
            end: self.begin + 4,
        };
        self.begin += 4;
        let decoded = Decoded {
            tuple: made.tuple,
            transport: made.transport,
            ip_len: made.len.saturating_sub(14),
            payload: &[],
            payload_len: made.len.saturating_sub(54),
            fragment: made.fragment,
            vlan: [made.vlan, None],
            mpls: None,
            tunnel: None,
            cut: false,
        };
        self.table.push_decoded(&packet, &decoded, &mut self.rows);
    }

    fn all(mut self, made: &[Made]) -> Vec<SessionRow> {
        for made in made {
            self.push(made);
        }
        self.table.finish(&mut self.rows);
        assert_eq!(self.table.session_count(), 0);
        self.rows
    }
}

fn off() -> Config {
    Config {
        tcp_timeout_ns: None,
        udp_timeout_ns: None,
        icmp_timeout_ns: None,
        other_timeout_ns: None,
        slice_ns: None,
        ..Config::default()
    }
}

fn packets(rows: &[SessionRow]) -> Vec<(u64, u64)> {
    rows.iter().map(|row| (row.orig.packets, row.resp.packets)).collect()
}

#[test]
fn packets_that_are_not_looked_at_for_names_are_counted_where_there_may_be_some() {
    let mut bench = Bench::new(off());
    bench.table.find_names(false);
    bench.push(&udp(1, 1, 2));
    bench.push(&udp(2, 2, 1));
    // Without payload, or of a protocol without names.
    bench.push(&tcp(3, 1, 2, SYN, 1));
    bench.push(&Made {
        tuple: tuple(Protocol::ICMP, 1, 2),
        transport: Transport::Other,
        ..udp(4, 1, 2)
    });
    assert_eq!(bench.table.stats().unread, 2);
    bench.table.find_names(true);
    bench.push(&udp(5, 1, 2));
    assert_eq!((bench.table.stats().unread, bench.table.stats().packets), (2, 5));
}

#[test]
fn kinds_of_icmp_messages_that_are_not_noted_are_counted() {
    let mut bench = Bench::new(off());
    let message = |at, kind| Made {
        tuple: tuple(Protocol::ICMP, 1, 2),
        transport: Transport::Icmp(IcmpHeader { kind, code: 0 }),
        ..udp(at, 1, 2)
    };
    bench.table.find_names(false);
    bench.push(&message(1, 8));
    assert_eq!(bench.table.stats().unread, 0, "the first kind stands in the row");
    bench.push(&message(2, 13));
    bench.push(&message(3, 13));
    assert_eq!(bench.table.stats().unread, 2);
    bench.table.find_names(true);
    bench.push(&message(4, 13));
    assert_eq!(bench.table.stats().unread, 2);
    let rows = bench.all(&[]);
    assert_eq!(rows[0].names.app_detail, ["icmp.orig=13/0"]);
}

/// The packets with port 443 for the end that has port 1002.
fn at_443(made: Made) -> Made {
    let port = |port| if port == 1002 { 443 } else { port };
    let FiveTuple { orig_port, resp_port, .. } = made.tuple;
    let tuple = FiveTuple { orig_port: port(orig_port), resp_port: port(resp_port), ..made.tuple };
    Made { tuple, ..made }
}

#[test]
fn the_port_names_a_session_without_payload_only_where_somebody_answers() {
    let app = |made: Vec<Made>| {
        let made: Vec<Made> = made.into_iter().map(at_443).collect();
        let [row] = &Bench::new(off()).all(&made)[..] else { panic!("one session") };
        row.app.map(|known| (known.app, known.by))
    };
    let syn = || tcp(1, 1, 2, SYN, 1);
    let answered = vec![syn(), tcp(2, 2, 1, SYN | ACK, 1), tcp(3, 1, 2, ACK, 2)];
    assert_eq!(app(answered), Some((App::Tls, AppBy::Port)));
    assert_eq!(
        app(vec![tcp(1, 2, 1, ACK, 5), tcp(2, 1, 2, ACK, 5)]),
        Some((App::Tls, AppBy::Port))
    );
    assert_eq!(app(vec![syn()]), None, "no host answers");
    assert_eq!(app(vec![syn(), tcp(2, 2, 1, RST | ACK, 0)]), None, "refused");
}

#[test]
fn a_silence_longer_than_the_timeout_splits_a_session_and_no_shorter_one() {
    let config = Config { slice_ns: None, ..Config::default() };
    let made = [udp(0, 1, 2), udp(60, 2, 1), udp(121, 1, 2), udp(100, 2, 1)];
    let rows = Bench::new(config).all(&made);
    assert_eq!(packets(&rows), [(1, 1), (1, 1)]);
    assert_eq!(rows[0].state, State::Sf);
    assert_eq!(packets(&Bench::new(off()).all(&made)), [(2, 2)]);
}

#[test]
fn an_idle_session_is_written_while_others_go_on() {
    let mut bench = Bench::new(Config::default());
    bench.push(&udp(1000, 1, 2));
    bench.push(&udp(1059, 3, 4));
    bench.push(&udp(1063, 3, 4));
    assert_eq!(packets(&bench.rows), [(1, 0)]);
    assert_eq!(bench.table.session_count(), 1);
    assert!(!bench.rows[0].continues);
}

#[test]
fn a_closed_tcp_session_lingers_for_its_last_acknowledgements() {
    let close = [
        tcp(0, 1, 2, SYN, 100),
        tcp(0, 2, 1, SYN | ACK, 500),
        tcp(1, 1, 2, ACK | 1, 101),
        tcp(1, 2, 1, ACK | 1, 501),
        tcp(3, 1, 2, ACK, 102),
        tcp(20, 1, 2, ACK, 102),
    ];
    let rows = Bench::new(Config::default()).all(&close);
    assert_eq!(packets(&rows), [(3, 2), (1, 0)]);
    assert_eq!((rows[0].state, rows[0].history.as_str()), (State::Sf, "ShFfA"));
    assert_eq!(packets(&Bench::new(off()).all(&close)), [(4, 2)]);
}

#[test]
fn a_session_seen_from_its_syn_ack_is_turned_round() {
    let rows = Bench::new(off()).all(&[tcp(0, 2, 1, SYN | ACK, 500), tcp(0, 1, 2, ACK, 101)]);
    assert_eq!(rows[0].tuple, tuple(Protocol::TCP, 1, 2));
    assert_eq!(packets(&rows), [(1, 1)]);
    assert_eq!((rows[0].state, rows[0].history.as_str()), (State::S1, "^hA"));
}

#[test]
fn a_syn_with_another_number_splits_and_a_repeated_one_does_not() {
    let made = [tcp(0, 1, 2, SYN, 100), tcp(1, 1, 2, SYN, 100), tcp(2, 1, 2, SYN, 101)];
    assert_eq!(packets(&Bench::new(off()).all(&made)), [(2, 0), (1, 0)]);
}

#[test]
fn a_cut_writes_what_is_new_and_sessions_go_on() {
    let mut bench = Bench::new(off());
    bench.push(&udp(0, 1, 2));
    bench.push(&udp(1, 3, 4));
    bench.table.cut(&mut bench.rows);
    bench.push(&udp(2, 2, 1));
    bench.table.cut(&mut bench.rows);
    bench.table.cut(&mut bench.rows);
    bench.table.finish(&mut bench.rows);
    assert_eq!(packets(&bench.rows), [(1, 0), (1, 0), (0, 1)]);
    assert!(bench.rows.iter().all(|row| row.continues));
    let [first, _, second] = &bench.rows[..] else { panic!("three rows") };
    assert_eq!(second.session_start, first.session_start);
    assert_eq!(second.tuple, first.tuple);
    assert_eq!((second.start, second.end), (Timestamp(2 * SECOND), Timestamp(2 * SECOND)));
    assert_eq!((second.state, second.history.as_str()), (State::Sf, "Dd"));
}

#[test]
fn a_long_session_has_a_row_for_each_minute_of_its_life() {
    let made: Vec<Made> = (0..13).map(|at| udp(at * 10, 1, 2)).collect();
    let rows = Bench::new(Config::default()).all(&made);
    assert_eq!(packets(&rows), [(6, 0), (6, 0), (1, 0)]);
    assert_eq!(rows.iter().map(|row| row.continues).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn rows_come_by_their_start_and_only_one_behind_all_others_is_the_last() {
    // Three minutes, the clock is set back by two, and half a minute follows.
    let seconds = (0..180).chain(60..90);
    let made: Vec<Made> = seconds.map(|at| udp(at, 1, 2)).collect();
    let rows = Bench::new(Config::default()).all(&made);
    assert!(rows.len() > 2 && rows.iter().all(|row| row.session_start == Timestamp(0)));
    let latest = rows.iter().max_by_key(|row| row.start).unwrap();
    assert!(latest.continues && rows.iter().all(|row| row.continues), "{rows:#?}");
    // Set back behind its begin, it is another one: its rows say when it began.
    let seconds = (200..400).chain(100..130);
    let made: Vec<Made> = seconds.map(|at| udp(at, 1, 2)).collect();
    let rows = Bench::new(Config::default()).all(&made);
    let starts: BTreeSet<i64> = rows.iter().map(|row| row.session_start.0 / SECOND).collect();
    assert_eq!(starts, BTreeSet::from([100, 200]));
    assert!(rows.iter().all(|row| row.start >= row.session_start));
    assert_eq!(rows.iter().filter(|row| !row.continues).count(), 2);
}

#[test]
fn a_full_table_writes_its_idlest_session_early() {
    let mut bench = Bench::new(Config { session_count_max: 2, ..off() });
    bench.push(&udp(0, 1, 2));
    bench.push(&udp(1, 3, 4));
    bench.push(&udp(100, 1, 2));
    bench.push(&udp(101, 5, 6));
    assert_eq!(bench.rows.iter().map(|row| row.tuple).collect::<Vec<_>>(), [udp(1, 3, 4).tuple]);
    assert_eq!(bench.table.session_count(), 2);
    assert_eq!(bench.table.stats().evicted, 1);
}

#[test]
fn later_fragments_join_the_session_of_their_first() {
    let part = |offset, more| Some(Fragment { id: 9, offset, more });
    let first = Made { fragment: part(0, true), ..udp(0, 1, 2) };
    let portless = FiveTuple { orig_port: 0, resp_port: 0, ..first.tuple };
    let later =
        Made { fragment: part(1480, false), tuple: portless, transport: Transport::Other, ..first };
    let rows = Bench::new(off()).all(&[first, later]);
    assert_eq!(packets(&rows), [(2, 0)]);
    assert_eq!(rows[0].fragments, 2);
    let rows = Bench::new(off()).all(&[first, Made { seconds: 31, ..later }]);
    assert_eq!(packets(&rows), [(1, 0), (1, 0)], "too late to be of the same datagram");
}

#[test]
fn later_fragments_behind_extension_headers_join_their_session() {
    let part = |offset, more| Some(Fragment { id: 9, offset, more });
    let end = |last: u128| Address::V6(last.into());
    let ends = FiveTuple { orig: end(1), resp: end(2), ..udp(0, 1, 2).tuple };
    let first = Made { tuple: ends, fragment: part(0, true), ..udp(0, 1, 2) };
    // What was cut up begins with a routing header.
    let later = FiveTuple { orig_port: 0, resp_port: 0, proto: Protocol(43), ..ends };
    let later =
        Made { fragment: part(1480, false), tuple: later, transport: Transport::Other, ..first };
    let rows = Bench::new(off()).all(&[first, later]);
    assert_eq!((packets(&rows), rows[0].tuple.proto), (vec![(2, 0)], Protocol::UDP));
    // In IPv4 it is the datagram's, and another number is another datagram.
    let ends = udp(0, 1, 2).tuple;
    let first = Made { tuple: ends, ..first };
    let tuple = FiveTuple { orig_port: 0, resp_port: 0, proto: Protocol(43), ..ends };
    let rows = Bench::new(off()).all(&[first, Made { tuple, ..later }]);
    assert_eq!(packets(&rows), [(1, 0), (1, 0)]);
}

#[test]
fn vlan_ids_join_the_key_when_asked() {
    let made = [Made { vlan: Some(1), ..udp(0, 1, 2) }, Made { vlan: Some(2), ..udp(0, 1, 2) }];
    assert_eq!(packets(&Bench::new(off()).all(&made)), [(2, 0)]);
    let rows = Bench::new(Config { vlan_in_key: true, ..off() }).all(&made);
    assert_eq!(packets(&rows), [(1, 0), (1, 0)]);
    assert_ne!(Key::of_slice(&rows[0], true), Key::of_slice(&rows[1], true));
    assert_eq!(Key::of_slice(&rows[0], false), Key::of_slice(&rows[1], false));
}

#[test]
fn pieces_are_ascending_and_spans_bound_the_slice() {
    let mut bench = Bench::new(off());
    for (piece, begin) in [(5, 40), (5, 44), (7, 0), (6, 12), (6, 16), (7, 36), (4, 32), (4, 36)] {
        (bench.piece, bench.begin) = (piece, begin);
        bench.push(&udp(0, 1, 2));
    }
    bench.table.finish(&mut bench.rows);
    let spans = [(4, 32, 40), (5, 40, 48), (6, 12, 20), (7, 0, 40)];
    let span = |(number, begin, end)| PieceSpan { piece: piece(number), begin, end };
    assert_eq!(bench.rows[0].pieces, spans.map(span));
}

#[derive(Clone, Debug)]
enum Op {
    Push(Made),
    Cut,
    NextPiece,
}

fn op() -> impl Strategy<Value = Op> {
    let made = (
        prop_oneof![0_i64..400, any::<i64>()],
        (0_u8..6, 0_u8..6),
        0_u8..4,
        prop_oneof![0_u32..2000, any::<u32>()],
        (any::<u8>(), 0_u32..5),
    )
        .prop_map(|(seconds, (from, to), kind, len, (flags, seq))| {
            let made = match kind {
                0 | 1 => tcp(seconds, from, to, flags, seq),
                2 => udp(seconds, from, to),
                _ => Made { transport: Transport::Other, ..udp(seconds, from, to) },
            };
            Made { len, ..made }
        });
    prop_oneof![20 => made.prop_map(Op::Push), 1 => Just(Op::Cut), 2 => Just(Op::NextPiece)]
}

fn config() -> impl Strategy<Value = Config> {
    let nanos = || prop::option::of(0_i64..200 * SECOND);
    let bytes = || prop_oneof![Just(0_usize), 0..4000_usize, Just(1 << 20)];
    let bounds = (1_usize..40, any::<bool>(), bytes());
    ((nanos(), nanos(), nanos(), nanos()), bounds).prop_map(
        |((tcp, udp, other, slice_ns), (session_count_max, vlan_in_key, bytes))| Config {
            tcp_timeout_ns: tcp,
            udp_timeout_ns: udp,
            icmp_timeout_ns: other,
            other_timeout_ns: other,
            slice_ns,
            session_count_max,
            vlan_in_key,
            piece_bytes_max: bytes,
            ..Config::default()
        },
    )
}

/// Packets and bytes by canonical tuple and sender: what the rows must add up to.
type Totals = BTreeMap<FiveTuple, (u64, u64, u64, u64)>;

fn add(totals: &mut Totals, sender: FiveTuple, counted: (u64, u64, u64, u64)) {
    let total = totals.entry(sender).or_default();
    total.0 += counted.0;
    total.1 += counted.1;
    total.2 += counted.2;
    total.3 += counted.3;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_add_up_to_the_packets_whatever_the_order_cuts_and_timeouts(
        ops in prop::collection::vec(op(), 0..120),
        config in config(),
    ) {
        let mut bench = Bench::new(config);
        let mut expected = Totals::new();
        for op in &ops {
            match op {
                Op::Push(made) => {
                    bench.push(made);
                    let len = u64::from(made.len);
                    let lens = (1, len, len.saturating_sub(14), len.saturating_sub(54));
                    add(&mut expected, made.tuple, lens);
                    prop_assert!(bench.table.session_count() <= config.session_count_max);
                }
                Op::Cut => bench.table.cut(&mut bench.rows),
                Op::NextPiece => (bench.piece, bench.begin) = (bench.piece + 1, 0),
            }
        }
        bench.table.finish(&mut bench.rows);
        let mut found = Totals::new();
        for row in &bench.rows {
            for (sender, side) in [(row.tuple, row.orig), (row.tuple.reversed(), row.resp)] {
                let lens = (side.frame_bytes, side.ip_bytes, side.payload_bytes);
                if side.packets > 0 {
                    add(&mut found, sender, (side.packets, lens.0, lens.1, lens.2));
                }
            }
            prop_assert!(row.start <= row.end);
            prop_assert!(row.pieces.is_sorted() && !row.pieces.is_empty());
        }
        // The two ends of a session with itself cannot be distinguished.
        for totals in [&mut expected, &mut found] {
            totals.retain(|sender, _| *sender != sender.reversed());
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(bench.table.session_count(), 0);
        prop_assert_eq!(bench.table.budget.heads.free_bytes, config.head_bytes_max);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_batches_change_nothing(
        packets in prop::collection::vec(
            (any::<i64>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..120)), 0..80),
        link_type in prop_oneof![Just(1_u16), Just(101), Just(0), Just(113), any::<u16>()],
    ) {
        let views: Vec<PacketView<'_>> = packets
            .iter()
            .zip(0..)
            .map(|((time, len, data), begin)| PacketView {
                timestamp: Timestamp(*time),
                interface: InterfaceId(0),
                link_type: LinkType(link_type),
                original_len: *len,
                data,
                piece: piece(0),
                begin,
                end: begin + 1,
            })
            .collect();
        let run = |seed, batch: bool| {
            let mut table = Table::new(Config::default(), seed);
            let mut rows = Vec::new();
            if batch {
                table.push_all(views.iter().copied(), &mut rows);
            } else {
                for view in &views {
                    table.push(view, &mut rows);
                }
            }
            table.finish(&mut rows);
            rows
        };
        let rows = run(1, false);
        prop_assert_eq!(&rows, &run(2, true));
        let counted: u64 = rows.iter().map(|row| row.orig.packets + row.resp.packets).sum();
        prop_assert_eq!(counted, u64::try_from(packets.len()).unwrap());
    }
}

fn between(first: u128, second: u128, ports: [u16; 2]) -> Made {
    let [orig_port, resp_port] = ports;
    let (orig, resp) = (Address::V6(first.into()), Address::V6(second.into()));
    let tuple = FiveTuple { orig, resp, orig_port, resp_port, proto: Protocol::UDP };
    Made { tuple, ..udp(0, 1, 2) }
}

#[test]
fn sessions_with_a_network_that_multiplies_by_zero_do_not_meet_in_one_place() {
    // The half of the address that a folded multiplication by its own constants makes zero, and
    // others that are special.
    for half in [0xc0ac_29b7_c97c_50dd_u64, 0, u64::MAX, 0x2001_0db8_0000_0000] {
        for in_low_half in [false, true] {
            let mut bench = Bench::new(off());
            for number in 0..4000_u32 {
                let (half, number) = (u128::from(half), u128::from(number));
                let second = if in_low_half { number << 64 | half } else { half << 64 | number };
                bench.push(&between(1, second, [4000, 4000]));
            }
            assert_eq!(bench.table.session_count(), 4000);
            let stretch = bench.table.slots.longest_stretch();
            assert!(stretch < 100, "{half:x}: {stretch}");
        }
    }
}

#[test]
fn sessions_that_meet_in_one_place_are_hashed_by_another_secret() {
    let mut bench = Bench::new(off());
    let hasher = bench.table.hasher;
    // Who knew the secret could choose ports that meet in one of 4096 places.
    let meets = |made: &Made| Key::new(&made.tuple, None).0.hashed(&hasher).is_multiple_of(1 << 12);
    let all = (1..=u16::MAX).flat_map(|port| (0..32).map(move |last| between(1, last, [port, 9])));
    let chosen: Vec<Made> = all.filter(meets).take(500).collect();
    for made in chosen.iter().chain(&chosen) {
        bench.push(made);
    }
    let stats = bench.table.stats();
    assert_eq!((stats.sessions, stats.reseeded), (500, 1), "each was found again");
    assert!(bench.table.slots.longest_stretch() < PASSED_COUNT_MAX);
}

#[test]
fn counters_at_their_maximum_stay_there_or_begin_another_row() {
    let mut bench = Bench::new(off());
    bench.push(&tcp(1, 1, 2, ACK, 5));
    let (hot, detail) = (&mut bench.table.hot[0], &mut bench.table.detail[0]);
    hot.fill_counters();
    detail.fill_counters();
    let full = Made {
        len: u32::MAX,
        fragment: Some(Fragment { id: 1, offset: 8, more: true }),
        ..tcp(1, 1, 2, ACK, 5)
    };
    bench.push(&Made { fragment: None, ..full });
    bench.push(&Made { fragment: None, ..full });
    assert_eq!(bench.rows.len(), 1, "the packets of a row have 32 bits");
    bench.table.finish(&mut bench.rows);
    assert_eq!(bench.rows.len(), 2);
    assert_eq!(bench.rows[0].truncated_packets, u64::from(u32::MAX));
}

#[test]
fn a_long_list_of_pieces_makes_a_row() {
    let mut bench = Bench::new(off());
    for piece in 0..5000 {
        bench.piece = piece;
        bench.push(&udp(1, 1, 2));
    }
    let long = usize::from(pieces::PIECE_COUNT_MAX);
    assert_eq!(bench.rows.iter().map(|row| row.pieces.len()).collect::<Vec<_>>(), [long; 4]);
    assert!(bench.rows.iter().all(|row| row.continues));
    assert_eq!(bench.table.stats().crowded, 4);
}
