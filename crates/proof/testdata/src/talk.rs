//! One session's packets, as its two ends would send them.

use std::net::IpAddr;

use crate::layers::{
    Ends, ICMP, ICMPV6, Layer, Part, Side, TcpFields, UDP, extension_headers, fragment_header,
    frame, icmp_checksum, ip, low16, tcp, udp, with_checksum,
};
use crate::scene::{BEGIN_NS, Frame, Scene, Session};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// Between two packets of a session.
const STEP_NS: u64 = 1_000_000;
/// Between the beginnings of sessions: they overlap.
const STAGGER_NS: u64 = 730_000;
/// Payload of a TCP segment at most.
const SEGMENT_LEN: usize = 1400;

/// A session that is being made.
#[derive(Debug)]
pub(crate) struct Talk<'s> {
    scene: &'s mut Scene,
    session: usize,
    ends: Ends,
    layers: Vec<Layer>,
    interface: usize,
    next_ns: u64,
    /// The next sequence numbers of both sides.
    next: [u32; 2],
    ident: u16,
    has_extensions: bool,
}

impl<'s> Talk<'s> {
    pub(crate) fn new(scene: &'s mut Scene, ends: Ends) -> Self {
        let session = scene.sessions.len();
        let number = u64::try_from(session).expect("few sessions");
        scene.sessions.push(Session {
            ends: Some(ends),
            icmp: None,
            names: std::collections::BTreeMap::new(),
            app: None,
        });
        let first = u32::try_from(session).expect("few sessions").wrapping_mul(0x9e37_79b9);
        Self {
            scene,
            session,
            ends,
            layers: Vec::new(),
            interface: 0,
            next_ns: BEGIN_NS + number * STAGGER_NS,
            // Near the end of the numbers in some sessions, which go on at zero.
            next: [first, first ^ 0xffff_ff00],
            ident: low16(session % 1000) << 4,
            has_extensions: false,
        }
    }

    pub(crate) fn within(mut self, layers: &[Layer]) -> Self {
        layers.clone_into(&mut self.layers);
        self
    }

    pub(crate) fn on(mut self, interface: usize) -> Self {
        self.interface = interface;
        self
    }

    /// With IPv6 extension headers in every packet.
    pub(crate) fn with_extensions(mut self) -> Self {
        self.has_extensions = true;
        self
    }

    /// What it speaks, in nDPI's words.
    pub(crate) fn speaks(self, app: &'static str) -> Self {
        self.scene.sessions[self.session].app = Some(app);
        self
    }

    /// A name that it tells.
    pub(crate) fn names(self, column: &'static str, name: &str) -> Self {
        let names = &mut self.scene.sessions[self.session].names;
        names.entry(column).or_default().push(name.to_owned());
        self
    }

    /// Lets time pass.
    pub(crate) fn pause(mut self, ns: u64) -> Self {
        self.next_ns += ns;
        self
    }

    fn push(&mut self, side: Side, packet: &[u8], payload_bytes: usize, tcp_flags: u8) {
        let link = self.scene.ports[self.interface].link;
        self.scene.frames.push(Frame {
            time_ns: self.next_ns,
            interface: self.interface,
            bytes: frame(link, side, &self.layers, packet),
            session: self.session,
            side,
            ip_bytes: packet.len(),
            payload_bytes,
            tcp_flags,
        });
        self.next_ns += STEP_NS;
    }

    fn addresses(&self, side: Side) -> [IpAddr; 2] {
        self.ends.from(side).map(|end| end.0)
    }

    /// One IP packet of the session's protocol.
    fn packet(&mut self, side: Side, segment: &[u8], payload_bytes: usize, tcp_flags: u8) {
        self.ident = self.ident.wrapping_add(1);
        let part = Part { ident: self.ident, ..Part::default() };
        let ends = self.addresses(side);
        let packet = if self.has_extensions {
            let (first, bytes) = extension_headers(self.ends.proto, segment);
            ip(ends, first, part, &bytes)
        } else {
            ip(ends, self.ends.proto, part, segment)
        };
        self.push(side, &packet, payload_bytes, tcp_flags);
    }

    pub(crate) fn datagram(mut self, side: Side, payload: &[u8]) -> Self {
        assert_eq!(self.ends.proto, UDP);
        let segment = udp(self.ends.from(side), payload);
        self.packet(side, &segment, payload.len(), 0);
        self
    }

    /// A datagram in fragments of at most so many bytes, a multiple of eight.
    pub(crate) fn in_fragments(mut self, side: Side, payload: &[u8], len: usize) -> Self {
        let segment = udp(self.ends.from(side), payload);
        let ends = self.addresses(side);
        self.ident = self.ident.wrapping_add(1);
        for (number, bytes) in segment.chunks(len).enumerate() {
            let offset = number * len;
            let has_more = offset + bytes.len() < segment.len();
            let part = Part { ident: self.ident, offset, has_more };
            let packet = if ends[0].is_ipv4() {
                ip(ends, UDP, part, bytes)
            } else {
                let (first, bytes) = fragment_header(UDP, part, bytes);
                ip(ends, first, part, &bytes)
            };
            let header = if offset == 0 { 8 } else { 0 };
            self.push(side, &packet, bytes.len() - header, 0);
        }
        self
    }

    /// An echo and its answer, or any other message.
    pub(crate) fn icmp(mut self, side: Side, kind: u8, code: u8, rest: &[u8]) -> Self {
        self.scene.sessions[self.session].icmp.get_or_insert((kind, code));
        let message = [&[kind, code, 0, 0], rest].concat();
        let message = match self.ends.proto {
            ICMP => icmp_checksum(message),
            _ => with_checksum(message, 2, self.addresses(side), ICMPV6),
        };
        self.packet(side, &message, 0, 0);
        self
    }

    /// One segment with what is next, or with any fields.
    fn segment(&mut self, side: Side, flags: u8, window: u16, payload: &[u8]) {
        let [own, other] = if side == Side::A { [0, 1] } else { [1, 0] };
        let acknowledged = if flags & ACK == 0 { 0 } else { self.next[other] };
        let fields = TcpFields { sequence: self.next[own], acknowledged, flags, window };
        let segment = tcp(self.ends.from(side), fields, payload);
        self.packet(side, &segment, payload.len(), flags);
        let taken = payload.len() + usize::from(flags & (SYN | FIN) != 0);
        self.next[own] = self.next[own].wrapping_add(low16(taken).into());
    }

    /// The handshake.
    pub(crate) fn open(mut self) -> Self {
        self.segment(Side::A, SYN, 64_240, &[]);
        self.segment(Side::B, SYN | ACK, 65_160, &[]);
        self.segment(Side::A, ACK, 502, &[]);
        self
    }

    /// An empty segment.
    pub(crate) fn flags(mut self, side: Side, flags: u8, window: u16) -> Self {
        self.segment(side, flags, window, &[]);
        self
    }

    /// Bytes in as many segments as they take, and the other side's acknowledgement.
    pub(crate) fn say(mut self, side: Side, bytes: &[u8]) -> Self {
        for part in bytes.chunks(SEGMENT_LEN) {
            self.segment(side, PSH | ACK, 501, part);
        }
        let other = if side == Side::A { Side::B } else { Side::A };
        self.segment(other, ACK, 500, &[]);
        self
    }

    /// Bytes that are sent once more after a while, as if the first had got lost behind us.
    pub(crate) fn say_twice(mut self, side: Side, bytes: &[u8]) -> Self {
        let own = usize::from(side == Side::B);
        let before = self.next[own];
        self.segment(side, PSH | ACK, 501, bytes);
        self.next[own] = before;
        self.pause(200 * STEP_NS).say(side, bytes)
    }

    /// Two segments of which the second comes first.
    pub(crate) fn say_out_of_order(mut self, side: Side, first: &[u8], second: &[u8]) -> Self {
        let own = usize::from(side == Side::B);
        let before = self.next[own];
        self.next[own] = before.wrapping_add(low16(first.len()).into());
        self.segment(side, PSH | ACK, 501, second);
        let after = self.next[own];
        self.next[own] = before;
        self.segment(side, PSH | ACK, 501, first);
        self.next[own] = after;
        let other = if side == Side::A { Side::B } else { Side::A };
        self.flags(other, ACK, 500)
    }

    /// An orderly end.
    pub(crate) fn close(mut self) -> Self {
        self.segment(Side::A, FIN | ACK, 501, &[]);
        self.segment(Side::B, FIN | ACK, 501, &[]);
        self.segment(Side::A, ACK, 501, &[]);
        self
    }
}
