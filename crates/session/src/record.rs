//! What is kept of a live session: a hot record that every packet touches, and the detail.

use format::slice::{Direction, Names, PieceId, Slice, State};
use units::Timestamp;
use wire::{Decoded, FiveTuple, Protocol, Transport, Tunnel};

use crate::PacketView;
use crate::key::Key;
use crate::names::{Interest, Search};
use crate::tcp::{Evidence, Flow, Side, Tcp, is_syn_ack};

/// Bytes of one direction of the slice. Sums of 32-bit lengths over at most 2^32 packets fit 64
/// bits.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    frame: u64,
    ip: u64,
    payload: u64,
}

/// Two cache lines. A slice without packets has no packets in either direction; its times mean
/// nothing, except that `latest` stays as it was for the idle test.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Hot {
    pub(crate) key: Key,
    /// Earliest packet of the slice.
    start: Timestamp,
    /// Latest packet.
    pub(crate) latest: Timestamp,
    sums: [Sums; 2],
    packets: [u32; 2],
    /// The table's number of the last piece of `Detail::pieces`, if the last packet lay there.
    piece_number: u32,
    last_ordinal: u32,
    /// The canonical key's second end is the originator.
    turned: bool,
    /// The responder has sent something.
    answered: bool,
    pub(crate) interest: Interest,
    /// The slot holds a session.
    pub(crate) is_live: bool,
}

const _: () = assert!(size_of::<Hot>() == 128);

/// What most packets do not touch, apart from TCP's; in the order in which it is wanted.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Detail {
    pieces: Vec<PieceId>,
    first_ordinal: u32,
    pub(crate) tcp: Option<Tcp>,
    interface: u32,
    truncated_packets: u64,
    fragments: u64,
    /// Frozen by the first row, so that it joins the rows of a session even if time runs
    /// backwards.
    session_start: Timestamp,
    has_row: bool,
    vlan: [Option<u16>; 2],
    mpls: Option<u32>,
    tunnel: Option<Tunnel>,
    icmp: Option<(u8, u8)>,
    pub(crate) search: Option<Box<Search>>,
}

/// One packet with what was found out about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) packet: &'a PacketView<'a>,
    pub(crate) decoded: &'a Decoded<'a>,
    pub(crate) key: Key,
    /// The sender is the second end of the key.
    pub(crate) turned: bool,
    /// Of the key, by the table's hasher.
    pub(crate) hash: u64,
}

impl Hot {
    /// The record of a session that begins with `arrival`, without counting it.
    pub(crate) fn new(arrival: &Arrival<'_>) -> Self {
        Self {
            key: arrival.key,
            start: arrival.packet.timestamp,
            latest: arrival.packet.timestamp,
            sums: [Sums::default(); 2],
            packets: [0; 2],
            piece_number: 0,
            last_ordinal: 0,
            turned: arrival.turned ^ begins_with_answer(arrival.decoded),
            answered: false,
            interest: Interest::of(arrival.key.tuple().proto),
            is_live: true,
        }
    }

    /// Something of each of its cache lines, so that they are read.
    pub(crate) fn warm(&self) -> u64 {
        let [orig, resp] = &self.sums;
        let times = self.start.0 ^ self.latest.0;
        let [packets, _] = self.packets;
        times.cast_unsigned() ^ orig.frame ^ resp.payload ^ u64::from(packets)
    }

    pub(crate) fn side(&self, arrival: &Arrival<'_>) -> Side {
        if arrival.turned == self.turned { Side::Orig } else { Side::Resp }
    }

    /// Originator and responder.
    pub(crate) fn tuple(&self) -> FiveTuple {
        if self.turned { self.key.tuple().reversed() } else { self.key.tuple() }
    }

    /// The slice has no packets yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == [0, 0]
    }

    /// The slice must end before a packet at `time`: it has lived its time, or a counter is full.
    pub(crate) fn is_slice_over(&self, time: Timestamp, slice_ns: Option<i64>) -> bool {
        !self.is_empty()
            && (slice_ns.is_some_and(|slice_ns| time.since(self.start) >= slice_ns)
                || self.packets.contains(&u32::MAX))
    }

    /// Counts a packet. `piece_number` is the table's number of its piece, never 0.
    pub(crate) fn count(&mut self, arrival: &Arrival<'_>, side: Side, piece_number: u32) -> Place {
        let Arrival { packet, decoded, .. } = arrival;
        if self.is_empty() {
            self.start = packet.timestamp;
            self.piece_number = 0;
        } else {
            self.start = self.start.min(packet.timestamp);
        }
        self.latest =
            if self.is_empty() { packet.timestamp } else { self.latest.max(packet.timestamp) };
        let ([orig, resp], [orig_packets, resp_packets]) = (&mut self.sums, &mut self.packets);
        let (sums, packets) = match side {
            Side::Orig => (orig, orig_packets),
            Side::Resp => (resp, resp_packets),
        };
        *packets += 1;
        sums.frame += u64::from(packet.original_len);
        sums.ip += u64::from(decoded.ip_len);
        sums.payload += u64::from(decoded.payload_len);
        self.answered |= side == Side::Resp;
        if self.piece_number == piece_number {
            self.last_ordinal = packet.ordinal;
            Place::Known
        } else {
            Place::New
        }
    }

    fn direction(&self, side: Side, flow: Option<&Flow>) -> Direction {
        let ([orig, resp], [orig_packets, resp_packets]) = (&self.sums, &self.packets);
        let (sums, &packets) = match side {
            Side::Orig => (orig, orig_packets),
            Side::Resp => (resp, resp_packets),
        };
        let evidence = flow.map(|flow| flow.evidence).unwrap_or_default();
        Direction {
            packets: packets.into(),
            frame_bytes: sums.frame,
            ip_bytes: sums.ip,
            payload_bytes: sums.payload,
            tcp_flags: evidence.flags,
            retransmitted_packets: evidence.retransmitted_packets,
            retransmitted_bytes: evidence.retransmitted_bytes,
            zero_windows: evidence.zero_windows,
            missed_bytes: evidence.missed_bytes,
            syn_options: flow.and_then(|flow| flow.syn_options),
        }
    }

    fn udp_state(&self) -> (State, String) {
        if self.answered { (State::Sf, "Dd".into()) } else { (State::S0, "D".into()) }
    }
}

/// Whether the packet's piece is the one its session's last packet lay in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Known,
    New,
}

/// A session seen from its SYN-ACK on: its sender is the responder.
fn begins_with_answer(decoded: &Decoded<'_>) -> bool {
    matches!(decoded.transport, Transport::Tcp(header) if is_syn_ack(&header))
}

impl Detail {
    pub(crate) fn new(arrival: &Arrival<'_>) -> Self {
        let Arrival { packet, decoded, .. } = arrival;
        Self {
            tcp: match decoded.transport {
                Transport::Tcp(_) if begins_with_answer(decoded) => Some(Tcp::turned()),
                _ if decoded.tuple.proto == Protocol::TCP => Some(Tcp::default()),
                _ => None,
            },
            pieces: Vec::new(),
            first_ordinal: 0,
            interface: packet.interface,
            truncated_packets: 0,
            fragments: 0,
            session_start: packet.timestamp,
            has_row: false,
            vlan: decoded.vlan,
            mpls: decoded.mpls,
            tunnel: decoded.tunnel,
            icmp: None,
            search: None,
        }
    }

    /// Something of what a packet touches, so that its memory is read.
    pub(crate) fn warm(&self) -> u64 {
        let places = u64::from(self.first_ordinal);
        self.tcp.as_ref().map_or(places, |tcp| places ^ tcp.orig.warm() ^ tcp.resp.warm())
    }

    /// The same for what lies beyond the detail.
    pub(crate) fn warm_places(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.sequence)
    }

    pub(crate) fn count(&mut self, arrival: &Arrival<'_>) {
        let Arrival { packet, decoded, .. } = arrival;
        if packet.data.len() < usize::try_from(packet.original_len).unwrap_or(usize::MAX) {
            self.truncated_packets += 1;
        }
        // Written only when there is something to write: most packets leave the detail's memory
        // alone.
        if decoded.fragment.is_some() {
            self.fragments += 1;
        }
        if let Transport::Icmp(header) = decoded.transport {
            self.icmp.get_or_insert((header.kind, header.code));
        }
    }

    /// Notes that a packet lies in a piece other than the last one's; pieces may come in any order.
    pub(crate) fn add_place(&mut self, hot: &mut Hot, packet: &PacketView<'_>, piece_number: u32) {
        let (piece, ordinal) = (packet.piece, packet.ordinal);
        if self.pieces.last().is_some_and(|&last| last < piece) {
            self.pieces.push(piece);
            (hot.last_ordinal, hot.piece_number) = (ordinal, piece_number);
            return;
        }
        let first = self.pieces.first().copied();
        if first.is_none_or(|first| (piece, ordinal) < (first, self.first_ordinal)) {
            self.first_ordinal = ordinal;
        }
        let last = self.pieces.last().copied();
        if last.is_none_or(|last| (piece, ordinal) >= (last, hot.last_ordinal)) {
            hot.last_ordinal = ordinal;
        }
        if let Err(at) = self.pieces.binary_search(&piece) {
            self.pieces.insert(at, piece);
        }
        // Only in the last piece does the next packet's ordinal stand without a look here.
        hot.piece_number = if self.pieces.last() == Some(&piece) { piece_number } else { 0 };
    }

    /// The row of the slice, which must not be empty. A last row takes the names with it.
    pub(crate) fn row(&mut self, hot: &mut Hot, continues: bool) -> Slice {
        assert!(!hot.is_empty(), "only a slice with packets has a row");
        let is_udp = hot.key.tuple().proto == Protocol::UDP;
        let (state, history) = match &self.tcp {
            Some(tcp) => (tcp.state(), tcp.history.text()),
            None if is_udp => hot.udp_state(),
            None => (State::Oth, String::new()),
        };
        if !self.has_row {
            self.has_row = true;
            self.session_start = self.session_start.min(hot.start);
        }
        let flow = |side| {
            self.tcp.as_ref().map(|tcp| if side == Side::Orig { &tcp.orig } else { &tcp.resp })
        };
        let row = Slice {
            tuple: hot.tuple(),
            vlan: self.vlan,
            mpls: self.mpls,
            tunnel: self.tunnel,
            icmp: self.icmp,
            session_start: self.session_start,
            start: hot.start,
            end: hot.latest,
            orig: hot.direction(Side::Orig, flow(Side::Orig)),
            resp: hot.direction(Side::Resp, flow(Side::Resp)),
            state,
            history,
            handshake_ns: self.tcp.as_ref().and_then(|tcp| tcp.handshake_ns),
            truncated_packets: core::mem::take(&mut self.truncated_packets),
            fragments: core::mem::take(&mut self.fragments),
            continues,
            names: self.names(continues).into(),
            interface: self.interface,
            pieces: core::mem::take(&mut self.pieces),
            first_ordinal: self.first_ordinal,
            last_ordinal: hot.last_ordinal,
        };
        hot.sums = [Sums::default(); 2];
        hot.packets = [0; 2];
        if let Some(tcp) = &mut self.tcp {
            tcp.orig.evidence = Evidence::default();
            tcp.resp.evidence = Evidence::default();
        }
        row
    }

    fn names(&mut self, continues: bool) -> Names {
        match &mut self.search {
            Some(search) if continues => search.names.clone(),
            Some(search) => core::mem::take(&mut search.names),
            None => Names::default(),
        }
    }
}
