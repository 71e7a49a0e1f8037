//! Whole conversations: what two hosts say to each other, frame by frame, from the first packet to
//! the last.

use std::collections::VecDeque;

use units::Random;
use units::number::{floor, to_u64};

use crate::chance::{Chance as _, bits16, bits32};

/// Frames of one conversation, in their order.
pub(crate) type Frames = VecDeque<Vec<u8>>;

const HERE: [u8; 6] = [0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];
const THERE: [u8; 6] = [0, 0x11, 0x22, 0x33, 0x44, 0x55];
/// The shortest frame of Ethernet, without its checksum.
const FRAME_BYTES_MIN: usize = 60;
const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;
/// Payload of a full segment.
const SEGMENT_BYTES: usize = 1448;
/// Of 1000 segments so many are sent twice, and as many overtake the one before.
const TROUBLED: u64 = 3;
const NAMES: usize = 20_000;
const PAYLOAD_BYTES: usize = 70_000;
/// A payload of any length up to 1448 lies behind any place below this.
const PAYLOAD_PLACES: u64 = 60_000;
const TLS_PORT: u16 = 443;
const PORTS: [u16; 10] =
    [TLS_PORT, TLS_PORT, TLS_PORT, TLS_PORT, TLS_PORT, TLS_PORT, TLS_PORT, 80, 22, 8080];

/// Makes conversations of random hosts, sizes and kinds.
#[derive(Debug)]
pub(crate) struct Conversations {
    random: Random,
    payload: Vec<u8>,
    names: Vec<String>,
}

impl Conversations {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut payload = vec![0; PAYLOAD_BYTES];
        random.fill(&mut payload);
        let names = (0..NAMES).map(|number| server_name(&mut random, number)).collect();
        Self { random, payload, names }
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// A conversation of any kind: 80 of 100 are TCP, 12 questions to a name server, 8 streams of
    /// datagrams.
    pub(crate) fn any(&mut self) -> Frames {
        match self.random.below(100) {
            0..80 => {
                let most = if self.random.below(100) < 5 { 1_000_000 } else { 40_000 };
                let size = floor(900.0 * self.random.pareto(1.15)).min(most);
                self.tcp(size)
            }
            80..92 => self.question(),
            _ => self.datagrams(),
        }
    }

    /// A connection in which the responder sends `size` bytes.
    pub(crate) fn tcp(&mut self, size: usize) -> Frames {
        let port = *self.random.one_of(&PORTS);
        let mut connection = Connection::new(&mut self.random, port);
        connection.open();
        if port == TLS_PORT {
            let hello = self.client_hello();
            connection.segment(false, ACK | PUSH, &hello);
            let answer = [&[22, 3, 3][..], self.payload.get(..1300).unwrap_or_default()].concat();
            connection.segment(true, ACK | PUSH, &answer);
            connection.segment(false, ACK, &[]);
        }
        let (mut left, mut unacknowledged) = (size, 0);
        while left > 0 {
            let len = left.min(SEGMENT_BYTES);
            left -= len;
            let flags = if left == 0 { ACK | PUSH } else { ACK };
            let place = usize::try_from(self.random.below(PAYLOAD_PLACES)).unwrap_or(0);
            let payload = self.payload.get(place..place + len).unwrap_or_default();
            connection.segment(true, flags, payload);
            self.trouble(&mut connection.frames);
            unacknowledged += 1;
            if unacknowledged == 2 {
                connection.segment(false, ACK, &[]);
                unacknowledged = 0;
            }
        }
        connection.close();
        connection.frames
    }

    /// What may happen to the newest segment.
    fn trouble(&mut self, frames: &mut Frames) {
        let drawn = self.random.below(1000);
        let count = frames.len();
        if drawn < TROUBLED {
            frames.extend(frames.back().cloned());
        } else if drawn < 2 * TROUBLED && count > 8 {
            frames.swap(count - 1, count - 2);
        }
    }

    /// One question for an address, and its answer.
    fn question(&mut self) -> Frames {
        let mut hosts = Hosts::new(&mut self.random);
        let (port, id) = (client_port(&mut self.random), bits16(&mut self.random));
        let mut asked = Vec::new();
        for label in self.server_name().split('.') {
            asked.push(u8::try_from(label.len()).expect("labels are short"));
            asked.extend(label.bytes());
        }
        // The end of the name, type A, class IN.
        asked.extend([0, 0, 1, 0, 1]);
        let message = |flags: u16, answers: u16| {
            let mut message = Vec::new();
            for field in [id, flags, 1, answers, 0, 0] {
                message.extend(field.to_be_bytes());
            }
            message.extend(&asked);
            message
        };
        let mut answer = message(0x8180, 1);
        // The name asked for, type A, class IN, 300 s, an address.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 1, 0x2c, 0, 4]);
        answer.extend(bits32(&mut self.random).to_be_bytes());
        let ports = [port, 53];
        let question = hosts.datagram(false, ports, &message(0x0100, 0));
        [question, hosts.datagram(true, ports, &answer)].into()
    }

    /// Datagrams of sizes as of QUIC, mostly from the responder.
    fn datagrams(&mut self) -> Frames {
        let mut hosts = Hosts::new(&mut self.random);
        let port = client_port(&mut self.random);
        let count = floor(4.0 * self.random.pareto(1.2)).min(400);
        let mut datagram = |place: usize| {
            let back = self.random.below(10) < 8;
            let to = *self.random.one_of(&[TLS_PORT, 3478, 4500]);
            let len = *self.random.one_of(&[60, 300, 1200, 1250]);
            let rest = self.payload.get(place..place + len).unwrap_or_default();
            hosts.datagram(back, [port, to], &[&[0x41], rest].concat())
        };
        (1..=count).map(&mut datagram).collect()
    }

    /// A few names are asked for much more often than the others.
    fn server_name(&mut self) -> String {
        let rank = if self.random.below(10) < 8 {
            (floor(self.random.pareto(0.7)) - 1).min(NAMES - 1)
        } else {
            usize::try_from(self.random.below(to_u64(NAMES))).expect("few names")
        };
        self.names.get(rank).cloned().unwrap_or_default()
    }

    /// A record with a `ClientHello` (RFC 8446 4.1.2): a name, one group, version 1.3, two
    /// protocols, and padding.
    fn client_hello(&mut self) -> Vec<u8> {
        let name = self.server_name().into_bytes();
        let named = vector16(&[&[0][..], &vector16(&name)].concat());
        let extensions = [
            extension(0, &named),
            extension(10, &[0, 2, 0, 29]),
            extension(43, &[2, 3, 4]),
            extension(16, b"\0\x0c\x02h2\x08http/1.1"),
            extension(21, &[0; 120]),
        ]
        .concat();
        let mut chance = [0; 64];
        self.random.fill(&mut chance);
        let (random, session) = chance.split_at(32);
        let ciphers = [0, 6, 0x13, 1, 0x13, 2, 0x13, 3];
        let hello = [&[3, 3], random, &[32], session, &ciphers, &[1, 0], &vector16(&extensions)];
        let hello = hello.concat();
        let [_, _, high, low] = u32::try_from(hello.len()).expect("short").to_be_bytes();
        let message = [&[1, 0, high, low][..], &hello].concat();
        [&[22, 3, 1][..], &vector16(&message)].concat()
    }
}

fn server_name(random: &mut Random, number: usize) -> String {
    let host = random.one_of(&["www", "api", "cdn", "img", "mail", "login", "static"]);
    let domains = ["example.com", "example.net", "example.org", "test.invalid", "shop.example"];
    format!("{host}{number}.{}", random.one_of(&domains))
}

fn client_port(random: &mut Random) -> u16 {
    1024 + u16::try_from(random.below(64_512)).expect("below 2^16")
}

fn vector16(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("vectors are short");
    [&len.to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(body)].concat()
}

/// The two ends of a conversation: one of ten pairs speaks IPv6.
#[derive(Debug)]
struct Hosts {
    ends: [Vec<u8>; 2],
    /// Of the next IPv4 packet.
    id: u16,
}

impl Hosts {
    fn new(random: &mut Random) -> Self {
        let id = bits16(random);
        let ends = if random.below(10) == 0 {
            [(); 2].map(|()| {
                let [_, host @ ..] = bits32(random).to_be_bytes();
                [&[0x20, 1, 0x0d, 0xb8][..], &[0; 9], &host].concat()
            })
        } else {
            let orig = 0x0a00_0000 + (bits32(random) >> 14);
            let resp = 0xc633_6400 + u32::from(bits16(random));
            [orig, resp].map(|end| end.to_be_bytes().to_vec())
        };
        Self { ends, id }
    }

    /// A frame with these bytes behind the IP header.
    fn frame(&mut self, back: bool, protocol: u8, bytes: &[u8]) -> Vec<u8> {
        let [orig, resp] = &self.ends;
        let (from, to) = if back { (resp, orig) } else { (orig, resp) };
        let macs = if back { [HERE, THERE] } else { [THERE, HERE] };
        let len = u16::try_from(bytes.len()).expect("packets are short");
        if from.len() == 16 {
            let [high, low] = len.to_be_bytes();
            let header = [0x60, 0, 0, 0, high, low, protocol, 64];
            return [macs.as_flattened(), &[0x86, 0xdd], &header, from, to, bytes].concat();
        }
        self.id = self.id.wrapping_add(1);
        let words = [[0x45, 0], (20 + len).to_be_bytes(), self.id.to_be_bytes(), [0x40, 0]];
        let header = |sum: [u8; 2]| {
            [words.as_flattened(), &[64, protocol], &sum, from.as_slice(), to.as_slice()].concat()
        };
        let sum = checksum(&header([0; 2])).to_be_bytes();
        [macs.as_flattened(), &[8, 0], &header(sum), bytes].concat()
    }

    fn datagram(&mut self, back: bool, [orig, resp]: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let (from, to) = if back { (resp, orig) } else { (orig, resp) };
        let len = u16::try_from(8 + payload.len()).expect("datagrams are short");
        let header = [from, to, len, 0].map(u16::to_be_bytes);
        self.frame(back, UDP, &[header.as_flattened(), payload].concat())
    }
}

/// A TCP connection, and its frames so far.
#[derive(Debug)]
struct Connection {
    hosts: Hosts,
    ports: [u16; 2],
    /// Sequence numbers that originator and responder use next.
    next: [u32; 2],
    /// Both ends' clock of time stamps (RFC 7323).
    stamp: u32,
    frames: Frames,
}

impl Connection {
    fn new(random: &mut Random, port: u16) -> Self {
        let hosts = Hosts::new(random);
        let ports = [client_port(random), port];
        let next = [bits32(random), bits32(random)];
        Self { hosts, ports, next, stamp: bits32(random) >> 1, frames: Frames::new() }
    }

    /// The handshake: segments of 1460 bytes, selective acknowledgements, time stamps, windows of
    /// 2^7.
    fn open(&mut self) {
        let stamp = self.stamp.to_be_bytes();
        let options =
            [&[2, 4, 5, 0xb4, 4, 2, 8, 10][..], &stamp, &[0, 0, 0, 0, 1, 3, 3, 7]].concat();
        self.push(false, SYN, &options, &[]);
        self.push(true, SYN | ACK, &options, &[]);
        self.segment(false, ACK, &[]);
    }

    fn close(&mut self) {
        self.segment(false, FIN | ACK, &[]);
        self.segment(true, FIN | ACK, &[]);
        self.segment(false, ACK, &[]);
    }

    fn segment(&mut self, back: bool, flags: u8, payload: &[u8]) {
        self.stamp = self.stamp.wrapping_add(1);
        let stamp = self.stamp.to_be_bytes();
        let options = [&[1, 1, 8, 10][..], &stamp, &stamp].concat();
        self.push(back, flags, &options, payload);
    }

    fn push(&mut self, back: bool, flags: u8, options: &[u8], payload: &[u8]) {
        let [orig, resp] = self.ports;
        let [orig_next, resp_next] = self.next;
        let (from, to) = if back { (resp, orig) } else { (orig, resp) };
        let (mine, peer) = if back { (resp_next, orig_next) } else { (orig_next, resp_next) };
        let acknowledged = if flags & ACK == 0 { 0 } else { peer };
        let words = u8::try_from(5 + options.len() / 4).expect("at most 15");
        let header = [
            &[from.to_be_bytes(), to.to_be_bytes()].concat()[..],
            &mine.to_be_bytes(),
            &acknowledged.to_be_bytes(),
            // Window 502, no checksum, nothing urgent.
            &[words << 4, flags, 1, 0xf6, 0, 0, 0, 0],
            options,
            payload,
        ]
        .concat();
        let mut frame = self.hosts.frame(back, TCP, &header);
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        self.frames.push_back(frame);
        let len = u32::try_from(payload.len()).expect("segments are short");
        let sent = len + u32::from(flags & (SYN | FIN) != 0);
        let [orig_next, resp_next] = &mut self.next;
        let next = if back { resp_next } else { orig_next };
        *next = next.wrapping_add(sent);
    }
}

/// The Internet checksum (RFC 1071).
pub(crate) fn checksum(header: &[u8]) -> u16 {
    let (words, _) = header.as_chunks::<2>();
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded).expect("folded twice")
}
