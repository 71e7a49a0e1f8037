//! Whole flows, built compactly from bytes: a program of steps, each of which sends a packet, sends
//! the last one again up to 2^17 times, or changes what the next ones look like. Tests run programs
//! by seed and from files, the fuzz target `session_flows` those that a fuzzer thinks of.

use std::collections::BTreeMap;

use format::session_row::PieceId;
use session::{Config, PacketView, SessionRow, Stats, Table};
use units::{InterfaceId, Sequence, Timestamp};
use wire::LinkType;

/// Packets that a program sends at most.
pub(crate) const PACKET_COUNT_MAX: usize = 300_000;

const TCP: u8 = 6;
const UDP: u8 = 17;
const PROTOCOLS: [u8; 8] = [TCP, TCP, TCP, UDP, UDP, UDP, 1, 132];
const PORTS: [u16; 16] =
    [21, 22, 25, 53, 67, 80, 123, 137, 443, 445, 502, 3389, 5353, 8080, 40_000, 102];
const TIMES: [i64; 12] = [
    0,
    1,
    1000,
    1 << 20,
    1 << 30,
    5_000_000_001,
    60_000_000_001,
    301_000_000_000,
    -1,
    -61_000_000_000,
    i64::MAX,
    i64::MIN,
];
const JUMPS: [u32; 10] = [
    1,
    1460,
    1 << 16,
    1 << 20,
    (1 << 30) - 1,
    1 << 30,
    1 << 31,
    (1 << 31) + 1,
    u32::MAX,
    u32::MAX - 1460,
];
const LENS: [u32; 6] = [0, 1, 1514, 1 << 20, 1 << 31, u32::MAX];
const FLAGS: [u8; 10] = [0x10, 0x18, 2, 0x12, 0x11, 4, 0x14, 0, 0xff, 1];

/// What payloads begin with.
pub(crate) const PAYLOADS: &[&[u8]] = &[
    b"220 \r\n",
    b"220-a\r\n",
    b"220 FTP\r\n",
    b"220 ESMTP\r\n",
    b"USER a\r\n",
    b"RETR a\r\n",
    b"EHLO a\r\n",
    b"RCPT TO:<a@b>\r\n",
    b"DATA\r\n",
    b"550 no\r\n",
    b"\n",
    b"GET / HTTP/1.1\r\nHost: ",
    b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: a\r\n\r\n",
    b"PROPFIND / HTTP/1.1\n\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-x\r\n",
    b"SSH-2.0-x\r\n\0\0\0\x16\0\x140123456789abcdef\0\0\0\0",
    b"SSH-",
    &[22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3],
    &[22, 3, 3, 0, 50, 2, 0, 0, 46, 3, 3],
    &[22, 3, 3, 0, 9, 11, 0, 0, 5, 0, 0, 2, 0, 0],
    &[22, 3, 1, 0, 1, 1],
    &[21, 3, 3, 0, 2, 1, 0],
    b"\0\0\0\x40\xfeSMB\x40\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\0\x20\xffSMB\x75\0\0\0\0\0\0\0\0\0\0\0",
    b"\x03\0\0\x2c\x27\xe0\0\0\0\0\0Cookie: mstshash=a\r\n\x01\0\x08\0\x03\0\0\0",
    b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\0\x08\0\x02\0\0\0",
    &[0, 1, 0, 0, 0, 6, 1, 3, 0, 0, 0, 1],
    &[0, 1, 0, 0, 0, 3, 1, 0x83, 2],
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x01a\0\0\x01\0\x01\
      \xc0\x0c\0\x05\0\x01\0\0\0\0\0\x02\xc0\x0c",
    b"\0\x13\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    &[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x90],
    &[0x23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    b"M-SEARCH * HTTP/1.1\r\nHOST: a\r\n\r\n",
    &[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9],
    b"<34>Jan  1 ",
    &[0xff, 0xfb, 1, 0xff, 0xfb, 3],
    b"* OK IMAP4\r\n",
    b"+OK POP3\r\n",
    b"",
];

/// What a program did.
pub(crate) struct Report {
    pub(crate) packets: usize,
    pub(crate) stats: Stats,
}

struct Session {
    proto: u8,
    port: u16,
    sequences: [u32; 2],
}

/// The packet that is sent, and sent again.
#[derive(Clone, Default)]
struct Sent {
    is_resp: bool,
    flags: u8,
    payload: Vec<u8>,
    fragment: u16,
    /// A number that differs from packet to packet is put behind the payload.
    is_numbered: bool,
}

pub(crate) struct Traffic<F> {
    sessions: BTreeMap<u8, Session>,
    session: u8,
    time: i64,
    piece: u64,
    begin: u32,
    original_len: Option<u32>,
    sent: Sent,
    packets: usize,
    packets_max: usize,
    /// Takes each packet; a cut where there is none.
    take: F,
}

/// Bytes that are read in order; none left is zero.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }
}

impl<F: FnMut(Option<&PacketView<'_>>)> Traffic<F> {
    pub(crate) fn new(packets_max: usize, take: F) -> Self {
        Self {
            sessions: BTreeMap::new(),
            session: 0,
            time: 0,
            piece: 1,
            begin: 0,
            original_len: None,
            sent: Sent::default(),
            packets: 0,
            packets_max,
            take,
        }
    }

    pub(crate) fn run(mut self, program: &[u8]) -> usize {
        let mut input = Input(program);
        while !input.0.is_empty() && self.packets < self.packets_max {
            self.step(&mut input);
        }
        self.packets
    }

    fn session(&mut self) -> &mut Session {
        let fresh = || Session { proto: TCP, port: 80, sequences: [u32::MAX - 5000, 7] };
        self.sessions.entry(self.session).or_insert_with(fresh)
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 12 {
            0 => self.session = input.byte(),
            1 => self.session().port = input.of(&PORTS),
            2 => self.session().proto = input.of(&PROTOCOLS),
            3 => self.payload(input),
            4 => self.again(input),
            5 => {
                self.sent = Sent { flags: input.of(&FLAGS), ..self.sent.clone() };
                self.sent.payload.clear();
                self.send();
            }
            6 => self.time = self.time.saturating_add(input.of(&TIMES)),
            7 => match input.byte() {
                200.. => self.piece = self.piece.saturating_sub(3),
                step => (self.piece, self.begin) = (self.piece + u64::from(step), 0),
            },
            8 => self.original_len = Some(input.of(&LENS)).filter(|&len| len > 0),
            9 => {
                let (side, jump) = (usize::from(input.byte() & 1), input.of(&JUMPS));
                let sequence = &mut self.session().sequences[side];
                *sequence = sequence.wrapping_add(jump);
            }
            10 => {
                let (offset, more) = (u16::from(input.byte()), u16::from(input.byte() & 1));
                self.sent.fragment = offset | more << 13;
                self.send();
                self.sent.fragment = 0;
            }
            _ => (self.take)(None),
        }
    }

    fn payload(&mut self, input: &mut Input<'_>) {
        let how = input.byte();
        let mut payload = input.of(PAYLOADS).to_vec();
        let len = usize::from(input.byte());
        let own = &input.0[..len.min(input.0.len())];
        payload.extend(own);
        input.0 = &input.0[own.len()..];
        if how & 2 != 0 {
            payload = payload.repeat(1 + usize::from(how >> 4));
        }
        let long = if how & 4 == 0 { 0 } else { 1200 };
        payload.resize(payload.len().max(long), b'a');
        let (is_resp, is_numbered) = (how & 1 != 0, how & 8 != 0);
        self.sent = Sent { is_resp, flags: 0x18, payload, fragment: 0, is_numbered };
        self.send();
    }

    /// The last packet, up to 2^17 times: further on in the stream, at the same place, with a byte
    /// missing in between, by the other side each second time, from other ports, in other pieces,
    /// later.
    fn again(&mut self, input: &mut Input<'_>) {
        let (how, count) = (input.byte(), 1_usize << (input.byte() % 18));
        for _ in 0..count {
            if self.packets >= self.packets_max {
                return;
            }
            let side = usize::from(self.sent.is_resp);
            let len = u32::try_from(self.sent.payload.len()).unwrap();
            let sequence = &mut self.session().sequences[side];
            match how & 3 {
                0 => {}
                1 => *sequence = sequence.wrapping_sub(len),
                2 => *sequence = sequence.wrapping_add(1),
                _ => *sequence = sequence.wrapping_sub(2 * len + 1),
            }
            if how & 4 != 0 {
                self.sent.is_resp ^= true;
            }
            if how & 8 != 0 {
                let port = &mut self.session().port;
                *port = port.wrapping_add(1);
            }
            if how & 16 != 0 {
                (self.piece, self.begin) = (self.piece + 1, 0);
            }
            if how & 32 != 0 {
                self.time = self.time.saturating_add(1 << 20);
            }
            self.send();
        }
    }

    fn send(&mut self) {
        let (number, sent) = (self.session, self.sent.clone());
        let Session { proto, port, sequences } = *self.session();
        let mut payload = sent.payload;
        if sent.is_numbered {
            payload.extend(format!("{}", self.packets).bytes());
        }
        let side = usize::from(sent.is_resp);
        let len = u32::try_from(payload.len()).unwrap();
        self.session().sequences[side] = sequences[side].wrapping_add(len);
        let ends = if sent.is_resp { [port, 40_001] } else { [40_001, port] };
        let mut transport = ends.map(u16::to_be_bytes).concat();
        match proto {
            TCP => {
                transport
                    .extend([sequences[side], sequences[1 - side]].map(u32::to_be_bytes).concat());
                transport.extend([0x50, sent.flags, 1, 0, 0, 0, 0, 0]);
            }
            UDP => {
                transport.extend(u16::try_from(8 + len).unwrap_or(0).to_be_bytes());
                transport.extend([0, 0]);
            }
            _ => {}
        }
        transport.extend(payload);
        let total = u16::try_from(20 + transport.len()).unwrap_or(0).to_be_bytes();
        let [f0, f1] = sent.fragment.to_be_bytes();
        let mut packet = vec![0x45, 0, total[0], total[1], 0, number, f0, f1, 64, proto, 0, 0];
        let hosts = if sent.is_resp { [2, number, 1] } else { [1, number, 2] };
        packet.extend([10, 0, hosts[1], hosts[0], 10, 0, hosts[1], hosts[2]]);
        packet.extend(transport);
        let original_len = self.original_len.unwrap_or(u32::try_from(packet.len()).unwrap());
        self.packets += 1;
        let view = PacketView {
            timestamp: Timestamp(self.time),
            interface: InterfaceId(0),
            link_type: LinkType::RAW,
            original_len,
            data: &packet,
            piece: PieceId { sequence: Sequence(self.piece), sub: 0, column: 0 },
            begin: self.begin,
            end: self.begin.saturating_add(4),
        };
        self.begin = view.end;
        (self.take)(Some(&view));
    }
}

/// Runs a program through a table; what must hold of its rows is asserted. `look` is called after
/// each packet, when there are no rows.
pub(crate) fn run(
    program: &[u8],
    packets_max: usize,
    config: Config,
    mut look: impl FnMut(),
) -> Report {
    let (mut table, mut rows) = (Table::new(config, 1), Vec::new());
    let mut counted = 0;
    let mut count = |rows: &mut Vec<SessionRow>| {
        for row in rows.drain(..) {
            counted += row.orig.packets + row.resp.packets;
            assert!(row.start <= row.end);
            assert!(row.pieces.is_sorted() && !row.pieces.is_empty());
            bounded(&row);
        }
    };
    let packets = Traffic::new(packets_max, |packet: Option<&PacketView<'_>>| {
        match packet {
            Some(packet) => table.push(packet, &mut rows),
            None => table.cut(&mut rows),
        }
        count(&mut rows);
        look();
    })
    .run(program);
    table.finish(&mut rows);
    count(&mut rows);
    assert_eq!(counted, u64::try_from(packets).unwrap(), "each packet is in one row");
    assert_eq!(table.session_count(), 0);
    Report { packets, stats: table.stats() }
}

/// Lists and values have their bounds.
fn bounded(row: &SessionRow) {
    let names = &row.names;
    let lists = [&names.http_host, &names.http_path, &names.dns_names, &names.dns_answers];
    for list in lists.into_iter().chain([&names.alpn, &names.http_method]) {
        assert!(list.len() <= 16 && list.iter().all(|text| text.len() <= 256));
    }
    assert!(names.app_detail.len() <= 32);
    assert!(names.heap_bytes() <= app::SEARCH_BYTES_MAX);
}
