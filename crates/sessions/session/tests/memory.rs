//! What a table takes of memory under the worst traffic stays below what its configuration says,
//! by an allocator that counts.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::System;

use format::session_row::PieceId;
use session::{Before, Config, PacketView, SessionRow, Table};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use units::{InterfaceId, Sequence, Timestamp};
use wire::{Address, FiveTuple, LinkType, Protocol};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// A segment of a session, or a datagram; IPv4 in IPv4.
struct Packet<'a> {
    session: u32,
    is_resp: bool,
    flags: u8,
    sequence: u32,
    payload: &'a [u8],
}

fn frame(packet: &Packet<'_>, is_udp: bool) -> Vec<u8> {
    let [a, b, c, d] = packet.session.to_be_bytes();
    let (client, server) = ([10, b, c, d], [11, a, 0, 1]);
    let ends = if packet.is_resp { [server, client] } else { [client, server] };
    let ports = if packet.is_resp { [0, 80, 0x9c, 0x40] } else { [0x9c, 0x40, 0, 80] };
    let mut transport = ports.to_vec();
    if is_udp {
        transport.extend(u16::try_from(packet.payload.len() + 8).unwrap().to_be_bytes());
        transport.extend([0, 0]);
    } else {
        transport.extend(packet.sequence.to_be_bytes());
        transport.extend([0, 0, 0, 0, 0x50, packet.flags, 1, 0, 0, 0, 0, 0]);
    }
    transport.extend(packet.payload);
    let header = |proto, len: usize| {
        let [high, low] = u16::try_from(20 + len).unwrap().to_be_bytes();
        let start = [0x45, 0, high, low, 0, 0, 0, 0, 64, proto, 0, 0];
        [&start[..], &ends.concat()].concat()
    };
    let inner = header(if is_udp { 17 } else { 6 }, transport.len());
    [header(4, 20 + transport.len()), inner, transport].concat()
}

/// The table, and the most that it has taken while it had no rows to hand out.
struct Bench {
    table: Table,
    rows: Vec<SessionRow>,
    before: usize,
    most: usize,
    piece: u64,
}

impl Bench {
    fn new(config: Config) -> Self {
        let (rows, before) = (Vec::with_capacity(1 << 16), allocated());
        let before = before.max(allocated());
        Self { table: Table::new(config, 1), rows, before, most: 0, piece: 0 }
    }

    fn push(&mut self, packet: &Packet<'_>, is_udp: bool) {
        self.push_frame(frame(packet, is_udp));
    }

    fn push_frame(&mut self, data: Vec<u8>) {
        let view = PacketView {
            timestamp: Timestamp(0),
            interface: InterfaceId(0),
            link_type: LinkType::RAW,
            original_len: u32::MAX,
            data: &data,
            piece: PieceId { sequence: Sequence(self.piece), sub: 0, column: 0 },
            begin: 0,
            end: 4,
        };
        self.table.push(&view, &mut self.rows);
        self.rows.clear();
        drop(data);
        self.most = self.most.max(allocated().saturating_sub(self.before));
    }
}

/// Distinct values of the longest kind.
fn request(number: usize) -> Vec<u8> {
    let long = format!("{number:0>300}");
    let (agent, kind) = ("a".repeat(260), "b".repeat(260));
    let request = format!("GET /{long} HTTP/1.1\r\nHost: {long}\r\n");
    format!("{request}User-Agent: {number}{agent}\r\nContent-Type: {number}{kind}\r\n\r\n").into()
}

fn worst_session(bench: &mut Bench, session: u32, requests: &[Vec<u8>]) {
    let mut send = |is_resp, flags, sequence, payload: &[u8]| {
        bench.push(&Packet { session, is_resp, flags, sequence, payload }, false);
    };
    send(false, 2, 0, b"");
    send(true, 0x12, 0, b"");
    let mut sequence = 1;
    for request in requests {
        send(false, 0x18, sequence, request);
        sequence += u32::try_from(request.len()).unwrap();
    }
    // A head that never ends, and early segments.
    send(false, 0x18, sequence, b"GET / HTTP/1.1\r\nX:");
    for part in 0..9_u32 {
        send(false, 0x18, sequence + 18 + part * 1400, &[b'x'; 1400]);
        send(true, 0x18, 10_000 + part * 3000, &[b'y'; 1400]);
        // Holes.
        send(false, 0x10, 1_000_000 + part * 2000, b"z");
    }
}

/// Fragments of datagrams that never are whole: long ones, and of one byte in eight.
fn fragments(bench: &mut Bench) {
    let before = bench.table.stats().heads_refused;
    for number in 0..5000_u16 {
        let (id, offset, len) =
            if number < 2500 { (number, 1, 1440) } else { (number / 100, number % 100 * 2 + 1, 0) };
        let payload = vec![b'x'; len];
        let packet =
            Packet { session: 7, is_resp: false, flags: 0, sequence: 0, payload: &payload };
        let mut data = frame(&packet, true);
        // Identification and offset of the inner packet; more follow.
        let fields = [id, offset | 1 << 13].map(u16::to_be_bytes);
        data.splice(24..28, fields.concat());
        bench.push_frame(data);
    }
    assert!(bench.table.stats().heads_refused > before);
}

/// So little that every bound is reached.
fn small() -> Config {
    Config {
        session_count_max: 3000,
        head_bytes_max: 4 << 20,
        names_bytes_max: 8 << 20,
        piece_bytes_max: 1 << 20,
        ..Config::default()
    }
}

/// More sessions than there is space for have rows already.
fn resumed(bench: &mut Bench) {
    for number in 0..50_000_u32 {
        let orig = Address::V6(u128::from(number).into());
        let resp = Address::None;
        let tuple = FiveTuple { orig, resp, orig_port: 1, resp_port: 1, proto: Protocol::UDP };
        let mut row = SessionRow::new(tuple, Timestamp(0));
        row.continues = true;
        row.names.dns_names.push(number.to_string());
        let before = Before { segment: 0, at: Timestamp(0) };
        bench.table.resume(row, before);
    }
}

#[test]
fn the_worst_traffic_stays_below_what_the_configuration_says() {
    let config = small();
    let requests: Vec<Vec<u8>> = (0..16).map(request).collect();
    let mut bench = Bench::new(config);
    resumed(&mut bench);
    for session in 0..4000 {
        let requests = if session < 600 { &requests[..] } else { &requests[..2] };
        worst_session(&mut bench, session, requests);
    }
    // Every session in every piece.
    for piece in 1..60 {
        bench.piece = piece;
        for session in 1000..4000 {
            let packet = Packet { session, is_resp: false, flags: 0x10, sequence: 9, payload: b"" };
            bench.push(&packet, false);
        }
    }
    let initial =
        [&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x90], &[0; 1200][..]];
    let initial = initial.concat();
    for session in 0..4000 {
        let packet = Packet { session, is_resp: false, flags: 0, sequence: 0, payload: &initial };
        bench.push(&packet, true);
    }
    fragments(&mut bench);
    let stats = bench.table.stats();
    println!("{} bytes of at most {}; {stats:?}", bench.most, config.memory_bytes_max());
    assert!(bench.most <= config.memory_bytes_max());
    // Every bound was reached, and the sum of all is no idle number.
    assert!(stats.evicted > 0 && stats.heads_refused > 0);
    assert!(stats.names_refused > 0 && stats.crowded > 0);
    assert!(bench.most > config.memory_bytes_max() / 2);
    rows_tell_what_they_take(bench);
    println!("by default at most {} bytes", Config::default().memory_bytes_max());
}

fn rows_tell_what_they_take(bench: Bench) {
    let Bench { mut table, mut rows, .. } = bench;
    table.finish(&mut rows);
    drop(table);
    let told: usize = rows.iter().map(|row| row.memory_bytes() - size_of::<SessionRow>()).sum();
    let with_rows = allocated();
    rows.clear();
    let taken = with_rows - allocated();
    assert_eq!(taken, told);
    assert!(told > 1 << 20);
}
