//! Bytes of index per session, by column, on real sessions and on random ones (design goal: at most
//! 100).

use std::collections::BTreeMap;

use bytes::Bytes;
use format::session_row::{Direction, Names, PieceSpan, SessionRow, State};
use index::{Segment, column_sizes, encode};
use units::{Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol, TcpOptions};

use crate::examples::{empty, meta, piece};

/// Encodes, prints the columns by size and returns the bytes per row.
fn measure(title: &str, rows: &[SessionRow]) -> u64 {
    let bytes = encode(&meta(), rows).unwrap().parquet;
    let total = bytes.len();
    let segment = Segment::open(Bytes::from(bytes)).unwrap();
    let mut sizes = column_sizes(&segment);
    sizes.sort_by_key(|&(_, size)| core::cmp::Reverse(size));
    println!("{title}: {} rows, {total} bytes", rows.len());
    for (name, size) in sizes {
        let hundredths = size * 100 / u64::try_from(rows.len().max(1)).unwrap();
        println!("{:>5}.{:02} {name}", hundredths / 100, hundredths % 100);
    }
    u64::try_from(total / rows.len().max(1)).unwrap()
}

/// A generator of test data: xorshift64* (Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators").
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * bound) >> 32
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(u64::try_from(values.len()).unwrap())).unwrap()]
    }
}

/// The rows of 1.5 M packets of three sizes over 100 k random five-tuples in 473 pieces: no
/// handshake, no names, nothing to compress but the random itself. Half of the packets belong to 60
/// flows.
fn random_mix() -> Vec<SessionRow> {
    const FLOWS: u64 = 100_000;
    const PACKETS: u64 = 1_500_000;
    let mut random = Random(1);
    let tuples: Vec<FiveTuple> = (0..FLOWS).map(|_| random_tuple(&mut random)).collect();
    let mut rows: BTreeMap<u64, SessionRow> = BTreeMap::new();
    let mut time = 1_700_000_000_000_000_000;
    let (mut piece_number, mut begin) = (0, 0);
    for packet in 0..PACKETS {
        let flow = if random.below(10) < 5 { random.below(60) } else { random.below(FLOWS) };
        time += i64::try_from(random.below(3) * 1000).unwrap();
        let sequence = packet * 473 / PACKETS;
        let turned = random.below(2) == 0;
        let row = rows.entry(flow).or_insert_with(|| {
            let tuple = tuples[usize::try_from(flow).unwrap()];
            let tuple = if turned { tuple.reversed() } else { tuple };
            empty(tuple, Timestamp(time))
        });
        row.end = Timestamp(time);
        let forward = row.tuple.orig_port == tuples[usize::try_from(flow).unwrap()].orig_port;
        let side = if forward == turned { &mut row.resp } else { &mut row.orig };
        let frame = match random.below(16) {
            0..7 => 64,
            7..11 => 576,
            _ => 1514,
        };
        let tcp = row.tuple.proto == Protocol::TCP;
        side.packets += 1;
        side.frame_bytes += frame;
        side.ip_bytes += frame - 14;
        side.payload_bytes += frame - if tcp { 54 } else { 42 };
        side.tcp_flags = if tcp { 16 } else { 0 };
        if sequence != piece_number {
            (piece_number, begin) = (sequence, 0);
        }
        let end = begin + 32 + u32::try_from(frame).unwrap().next_multiple_of(4);
        match row.pieces.last_mut() {
            Some(last) if last.piece.sequence == Sequence(sequence) => last.end = end,
            _ => row.pieces.push(PieceSpan { begin, end, ..piece(sequence) }),
        }
        begin = end;
    }
    for row in rows.values_mut() {
        let history = if row.tuple.proto == Protocol::TCP { "Aa" } else { "Dd" };
        row.history = history.parse().unwrap();
    }
    rows.into_values().collect()
}

fn random_tuple(random: &mut Random) -> FiveTuple {
    let address = |base: u32, bits: u64| Address::V4((base + u32::try_from(bits).unwrap()).into());
    FiveTuple {
        orig: address(0x0a00_0000, random.below(1 << 22)),
        resp: address(0xc0a8_0000, random.below(1 << 16)),
        orig_port: u16::try_from(1024 + random.below(64_512)).unwrap(),
        resp_port: random.pick(&[80, 443, 443, 443, 53, 22, 8080]),
        proto: if random.below(10) < 8 { Protocol::TCP } else { Protocol::UDP },
    }
}

/// The sessions of the corpus, as its reference table has them; what the table lacks is filled with
/// likely values.
fn corpus() -> Option<Vec<SessionRow>> {
    let path = testdata::Corpus::large()?.path().join("ref/tshark_sessions.tsv");
    let table = std::fs::read_to_string(path).unwrap();
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next()?.split('\t').collect();
    let rows = lines.enumerate().filter_map(|(number, line)| {
        let fields: BTreeMap<&str, &str> = header.iter().copied().zip(line.split('\t')).collect();
        corpus_row(number, &fields)
    });
    Some(rows.collect())
}

fn corpus_row(number: usize, fields: &BTreeMap<&str, &str>) -> Option<SessionRow> {
    let count = |name| fields[name].parse::<u64>().unwrap_or(0);
    let time = |name| Some(Timestamp(fields.get(name)?.replace('.', "").parse().ok()?));
    let address = |name| Some(Address::from(fields.get(name)?.parse::<std::net::IpAddr>().ok()?));
    let list = |name| {
        let texts = fields[name].split([',', ';']).filter(|text| !text.is_empty());
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let tuple = FiveTuple {
        orig: address("ip_a")?,
        resp: address("ip_b")?,
        orig_port: u16::try_from(count("port_a")).ok()?,
        resp_port: u16::try_from(count("port_b")).ok()?,
        proto: Protocol(fields["proto"].parse().ok()?),
    };
    let tcp = tuple.proto == Protocol::TCP;
    let flags = |name| {
        let text: &str = fields[name];
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u8::try_from(u16::from_str_radix(digits, 16).unwrap_or(0) & 0xff).unwrap()
    };
    let side = |packets, ip, payload, frame, tcp_flags| Direction {
        packets: count(packets),
        ip_bytes: count(ip),
        payload_bytes: count(payload),
        frame_bytes: count(frame),
        tcp_flags: flags(tcp_flags),
        syn_options: tcp.then_some(TcpOptions {
            mss: Some(1460),
            window_scale: Some(u8::try_from(number % 9).unwrap()),
            sack_permitted: true,
            timestamps: number.is_multiple_of(2),
        }),
        ..Direction::default()
    };
    let names = Names {
        sni: list("sni").into_iter().next(),
        http_host: list("http_host"),
        dns_names: list("dns"),
        ..Names::default()
    };
    let first_piece = u64::try_from(number / 20).unwrap();
    let piece_count = 1 + count("pkts").min(4000) / 400;
    let begin = 4 * (u32::try_from(number).unwrap() * 7919 % 400_000);
    let span = |number| PieceSpan { begin, end: begin + 100 + begin / 7 * 4, ..piece(number) };
    Some(SessionRow {
        end: time("last")?,
        orig: side("pkts_ab", "ip_bytes_ab", "payload_ab", "frame_bytes_ab", "tcp_flags_ab"),
        resp: side("pkts_ba", "ip_bytes_ba", "payload_ba", "frame_bytes_ba", "tcp_flags_ba"),
        state: if tcp { State::Sf } else { State::Oth },
        history: if tcp { "ShADadFf" } else { "Dd" }.parse().unwrap(),
        handshake_ns: tcp.then_some(u64::try_from(number).unwrap() * 7919 % 90_000_000),
        app: None,
        names: names.into(),
        pieces: (first_piece..first_piece + piece_count).map(span).collect(),
        ..empty(tuple, time("first")?)
    })
}

#[test]
fn real_sessions_take_at_most_100_bytes() {
    let Some(rows) = corpus() else {
        println!("not run: {}", testdata::lacks_large());
        return;
    };
    assert!(rows.len() > 4000, "the table has {} sessions", rows.len());
    let per_row = measure("corpus", &rows);
    assert!(per_row <= 100, "{per_row} bytes");
}

#[test]
fn random_sessions_take_at_most_100_bytes() {
    let rows = random_mix();
    assert!(rows.len() > 95_000, "{} rows", rows.len());
    let per_row = measure("random mix", &rows);
    assert!(per_row <= 100, "{per_row} bytes");
}

#[test]
fn an_empty_segment_is_its_footer() {
    let size = encode(&meta(), &[]).unwrap().parquet.len();
    let one = encode(&meta(), &random_mix()[..1]).unwrap().parquet.len();
    println!("no row: {size} bytes, one row: {one} bytes");
    assert!(one <= 16 << 10, "{one} bytes");
}
