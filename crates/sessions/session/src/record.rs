//! What is kept of a live session: a hot record that every packet touches, and the detail.

use app::signature::{self, Carrier, Watch};
use app::{Budget, Findings, Interest, Side};
use format::session_row::{Direction, History, SessionRow, SparseNames, State};
use units::{Epoch, InterfaceId, Timestamp};
use wire::{
    AppBy, Decoded, FiveTuple, IcmpHeader, Protocol, Recognised, Transport, Tunnel,
    is_of_first_icmp,
};

use crate::PacketView;
use crate::key::Key;
use crate::pieces::{Pieces, Places};
use crate::resume::Resumed;
use crate::tcp::{Evidence, Flow, Steady, Tcp, is_syn_ack};

/// Bytes of one direction of the slice: frames, IP packets, payload.
type Sums<Number> = [Number; 3];

/// Two cache lines, which the processor fetches as a pair. A slice without packets has none in
/// either direction; its times mean nothing, except that `latest` stays as it was for the idle
/// test.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Hot {
    pub(crate) key: Key,
    pub(crate) steady: Steady,
    /// The canonical key's second end is the originator.
    turned: bool,
    /// The responder has sent something.
    answered: bool,
    pub(crate) interest: Interest,
    /// Its TCP connection was reset, or closed from both sides.
    pub(crate) is_over: bool,
    /// The slot holds a session.
    pub(crate) is_live: bool,
    /// Payloads looked at for the protocol.
    pub(crate) looked: u8,
    /// Some of them showed something.
    pub(crate) has_sight: bool,
    /// TCP flags of both directions of the slice.
    flags: [u8; 2],
    /// Pieces of the slice, or a few more.
    piece_count: u16,
    places: Places,
    /// Earliest packet of the slice.
    start: Timestamp,
    /// Latest packet.
    pub(crate) latest: Timestamp,
    packets: [u32; 2],
    /// What `Detail::carried` does not have yet.
    sums: [Sums<u32>; 2],
}

const _: () = assert!(size_of::<Hot>() == 128);

/// What most packets do not touch, TCP's first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Detail {
    /// Of a TCP session; else it stays as it was made.
    pub(crate) tcp: Tcp,
    pub(crate) findings: Findings,
    /// Sums that did not fit 32 bits.
    carried: Option<Box<[Sums<u64>; 2]>>,
    pub(crate) watch: Watch,
    tunnel: Option<Box<Tunnel>>,
    /// Of the slice, both directions together; each has fewer than 2^32 packets.
    truncated_packets: u32,
    fragments: u32,
    /// Frozen by the first row, so that it joins the rows of a session even if time runs
    /// backwards.
    session_start: Timestamp,
    interface: InterfaceId,
    mpls: Option<u32>,
    vlan: [Option<u16>; 2],
    icmp: Option<(u8, u8)>,
    /// The last message that was of another kind, and who sent it.
    other_icmp: Option<(Side, u8, u8)>,
    /// Where the latest of its rows starts.
    latest_row: Option<Timestamp>,
}

const _: () = assert!(size_of::<Detail>() == 448);

/// One packet with what was found out about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) packet: &'a PacketView<'a>,
    pub(crate) decoded: &'a Decoded<'a>,
    pub(crate) address: &'a Addressed,
}

/// Where a packet belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressed {
    pub(crate) key: Key,
    /// The sender is the second end of the key.
    pub(crate) turned: bool,
    /// Of the key, by the table's secret.
    pub(crate) hash: u64,
    /// Which of its secrets that was.
    pub(crate) epoch: u64,
}

/// What carries payload that may be looked at.
pub(crate) fn carrier(proto: Protocol) -> Option<Carrier> {
    match proto {
        Protocol::TCP => Some(Carrier::Tcp),
        Protocol::UDP => Some(Carrier::Udp),
        _ => None,
    }
}

impl Hot {
    /// The record of a session that begins with `arrival`, without counting it.
    pub(crate) fn new(arrival: &Arrival<'_>) -> Self {
        Self {
            key: arrival.address.key,
            steady: Steady::default(),
            turned: arrival.address.turned ^ begins_with_answer(arrival.decoded),
            answered: false,
            interest: Interest::of(arrival.address.key.proto()),
            is_over: false,
            is_live: true,
            looked: 0,
            has_sight: false,
            flags: [0; 2],
            piece_count: 0,
            places: Places::NONE,
            start: arrival.packet.timestamp,
            latest: arrival.packet.timestamp,
            packets: [0; 2],
            sums: [[0; 3]; 2],
        }
    }

    /// Makes it one of a session that has rows already.
    pub(crate) fn resume(&mut self, resumed: &Resumed) {
        let (_, turned) = Key::new(&resumed.tuple, None);
        self.turned = turned;
        self.answered = resumed.answered;
    }

    /// Something of each of its cache lines, so that they are read.
    #[inline]
    pub(crate) fn warm(&self) -> i64 {
        i64::from(self.looked) ^ self.latest.0
    }

    /// Whether a packet is likely to touch the detail.
    #[inline]
    pub(crate) fn needs_detail(&self, turned: bool, decoded: &Decoded<'_>) -> bool {
        match &decoded.transport {
            Transport::Tcp(header) => {
                !self.steady.is_plain(self.side_of(turned), header, decoded.payload_len)
            }
            _ => false,
        }
    }

    pub(crate) fn side(&self, arrival: &Arrival<'_>) -> Side {
        self.side_of(arrival.address.turned)
    }

    /// The sender of a packet that is turned against the key, or is not.
    fn side_of(&self, turned: bool) -> Side {
        if turned == self.turned { Side::Orig } else { Side::Resp }
    }

    /// Originator and responder.
    pub(crate) fn tuple(&self) -> FiveTuple {
        if self.turned { self.key.tuple().reversed() } else { self.key.tuple() }
    }

    /// Earliest packet of the slice.
    pub(crate) fn start(&self) -> Timestamp {
        self.start
    }

    /// The slice has no packets yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == [0, 0]
    }

    /// The slice must end before a packet of the present piece because lists of pieces have grown
    /// long.
    #[inline]
    pub(crate) fn is_crowded(&self, pieces: &Pieces) -> bool {
        pieces.should_end(&self.places, self.piece_count)
    }

    /// The slice must end before a packet at `time`: it has lived its time, or a counter is full.
    pub(crate) fn is_slice_over(&self, time: Timestamp, slice_ns: Option<i64>) -> bool {
        !self.is_empty()
            && (slice_ns.is_some_and(|slice_ns| time.since(self.start) >= slice_ns)
                || self.packets.contains(&u32::MAX))
    }

    /// Counts a packet that lies in the present piece, without its bytes.
    #[inline]
    pub(crate) fn count(&mut self, arrival: &Arrival<'_>, side: Side, pieces: &mut Pieces) {
        let Arrival { packet, .. } = arrival;
        if self.is_empty() {
            (self.start, self.latest) = (packet.timestamp, packet.timestamp);
        } else {
            self.start = self.start.min(packet.timestamp);
            self.latest = self.latest.max(packet.timestamp);
        }
        *side.of(&mut self.packets) += 1;
        self.answered |= side == Side::Resp;
        if pieces.note(&mut self.places, (packet.begin, packet.end)) {
            self.piece_count = self.piece_count.saturating_add(1);
        }
    }

    /// Adds the packet's bytes; false, and nothing is added, when they do not fit.
    #[inline]
    pub(crate) fn add(&mut self, arrival: &Arrival<'_>, side: Side) -> bool {
        let Arrival { packet, decoded, .. } = arrival;
        let sums = side.of(&mut self.sums);
        let [frame, ip, payload] = *sums;
        let sum = (
            frame.checked_add(packet.original_len),
            ip.checked_add(decoded.ip_len),
            payload.checked_add(decoded.payload_len),
        );
        if let (Some(frame), Some(ip), Some(payload)) = sum {
            *sums = [frame, ip, payload];
        }
        matches!(sum, (Some(_), Some(_), Some(_)))
    }

    pub(crate) fn note_flags(&mut self, side: Side, flags: u8) {
        *side.of(&mut self.flags) |= flags;
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn forget_piece_number(&mut self) {
        self.places.forget_number();
    }

    fn direction(&self, side: Side, sums: Sums<u64>, flow: &Flow) -> Direction {
        let evidence = flow.evidence;
        let [frame_bytes, ip_bytes, payload_bytes] = sums;
        Direction {
            packets: (*side.of(&self.packets)).into(),
            frame_bytes,
            ip_bytes,
            payload_bytes,
            tcp_flags: *side.of(&self.flags),
            retransmitted_packets: evidence.retransmitted_packets.into(),
            retransmitted_bytes: evidence.retransmitted_bytes,
            out_of_order_packets: evidence.out_of_order_packets.into(),
            resets: evidence.resets.into(),
            zero_windows: evidence.zero_windows.into(),
            missed_bytes: evidence.missed_bytes,
            syn_options: flow.syn_options,
        }
    }
}

/// A session seen from its SYN-ACK on: its sender is the responder.
fn begins_with_answer(decoded: &Decoded<'_>) -> bool {
    matches!(decoded.transport, Transport::Tcp(header) if is_syn_ack(&header))
}

impl Detail {
    /// Bytes of the heap that a session's detail takes at most, besides its search: sums, a tunnel,
    /// hints of its protocol, and holes in both directions.
    pub(crate) const HEAP_BYTES_MAX: usize = size_of::<[Sums<u64>; 2]>()
        + size_of::<Tunnel>()
        + signature::HINT_BYTES
        + 2 * Flow::HEAP_BYTES_MAX;

    pub(crate) fn new(arrival: &Arrival<'_>) -> Self {
        let Arrival { packet, decoded, .. } = arrival;
        Self {
            tcp: if begins_with_answer(decoded) { Tcp::turned() } else { Tcp::default() },
            findings: Findings::Nothing,
            watch: Watch::default(),
            carried: None,
            tunnel: decoded.tunnel.map(Box::new),
            truncated_packets: 0,
            fragments: 0,
            session_start: packet.timestamp,
            interface: packet.interface,
            mpls: decoded.mpls,
            vlan: decoded.vlan,
            icmp: None,
            other_icmp: None,
            latest_row: None,
        }
    }

    /// The same of the detail, with what was found out about its payload.
    pub(crate) fn resume(&mut self, hot: &mut Hot, resumed: Resumed, budget: &mut Budget) {
        self.tcp = if hot.key.proto() == Protocol::TCP { resumed.tcp() } else { Tcp::default() };
        hot.is_over = self.tcp.is_over();
        if let Some(names) = resumed.names() {
            (self.findings, hot.interest) = Findings::of_names(names, hot.interest, budget);
        }
        if let Some(app) = resumed.app {
            self.watch = Watch::of(app);
            hot.looked = signature::PAYLOAD_COUNT_MAX;
        }
        self.session_start = resumed.session_start;
        self.latest_row = Some(resumed.row_start);
        (self.vlan, self.mpls, self.icmp) = (resumed.vlan, resumed.mpls, resumed.icmp);
        (self.interface, self.tunnel) = (resumed.interface, resumed.tunnel);
    }

    /// Something of what a TCP segment touches, so that its memory is read.
    #[inline]
    pub(crate) fn warm(&self) -> u8 {
        self.tcp.orig.warm() ^ self.tcp.resp.warm()
    }

    /// Takes the sums of the hot record over.
    #[cold]
    pub(crate) fn carry(&mut self, hot: &mut Hot) {
        let sums = core::mem::take(&mut hot.sums);
        let carried = self.carried.get_or_insert_default().as_flattened_mut();
        for (carried, sum) in carried.iter_mut().zip(sums.as_flattened()) {
            *carried = carried.saturating_add(u64::from(*sum));
        }
    }

    pub(crate) fn count(&mut self, arrival: &Arrival<'_>) {
        let Arrival { packet, decoded, .. } = arrival;
        if packet.data.len() < usize::try_from(packet.original_len).unwrap_or(usize::MAX) {
            self.truncated_packets = self.truncated_packets.saturating_add(1);
        }
        // Written only when there is something to write: most packets leave the detail's memory
        // alone.
        if decoded.fragment.is_some() {
            self.fragments = self.fragments.saturating_add(1);
        }
        if let Transport::Icmp(header) = decoded.transport {
            self.icmp.get_or_insert((header.kind, header.code));
        }
    }

    /// Whether an ICMP message is of another kind than the first, and than the last such one.
    pub(crate) fn is_other_icmp(&mut self, hot: &Hot, side: Side, header: IcmpHeader) -> bool {
        let (kind, code) = (header.kind, header.code);
        let Some(first) = self.icmp.filter(|&first| first != (kind, code) || side != Side::Orig)
        else {
            return false;
        };
        let is_other = self.other_icmp != Some((side, kind, code))
            && !is_of_first_icmp(hot.key.proto(), first, (side != Side::Orig, kind, code));
        if is_other {
            self.other_icmp = Some((side, kind, code));
        }
        is_other
    }

    /// The message was not noted: the next one of its kind is as new.
    pub(crate) fn forget_other_icmp(&mut self) {
        self.other_icmp = None;
    }

    /// The earliest packet of the session, up to its first row.
    pub(crate) fn begin(&self, hot: &Hot) -> Timestamp {
        if self.latest_row.is_some() {
            self.session_start
        } else {
            self.session_start.min(hot.start)
        }
    }

    /// It began at an earlier packet.
    pub(crate) fn set_back(&mut self, session_start: Timestamp) {
        self.session_start = self.session_start.min(session_start);
    }

    /// Whether the session had a row before, and began later than this.
    pub(crate) fn has_begun_after(&self, time: Timestamp) -> bool {
        self.latest_row.is_some() && time < self.session_start
    }

    /// The row of the slice, which must not be empty. A last row takes the names with it; it does
    /// not say that it is the last where one from before starts as late, since time has run
    /// backwards: rows come by their start.
    pub(crate) fn row(
        &mut self,
        hot: &mut Hot,
        pieces: &mut Pieces,
        continues: bool,
    ) -> SessionRow {
        assert!(!hot.is_empty(), "only a slice with packets has a row");
        let (state, history) = match hot.key.proto() {
            Protocol::TCP => (self.tcp.state(), self.tcp.history),
            Protocol::UDP => State::of_datagrams(hot.answered),
            _ => (State::Oth, History::default()),
        };
        self.session_start = self.begin(hot);
        let is_before_others = self.latest_row.is_some_and(|latest| latest >= hot.start);
        self.latest_row = self.latest_row.max(Some(hot.start));
        let [orig_sums, resp_sums] = self.sums(hot);
        let row = SessionRow {
            tuple: hot.tuple(),
            vlan: self.vlan,
            mpls: self.mpls,
            tunnel: self.tunnel.as_deref().copied(),
            icmp: self.icmp,
            session_start: self.session_start,
            start: hot.start,
            end: hot.latest,
            orig: hot.direction(Side::Orig, orig_sums, &self.tcp.orig),
            resp: hot.direction(Side::Resp, resp_sums, &self.tcp.resp),
            state,
            history,
            handshake_ns: self.tcp.handshake_ns,
            truncated_packets: core::mem::take(&mut self.truncated_packets).into(),
            fragments: core::mem::take(&mut self.fragments).into(),
            continues: continues || is_before_others,
            app: self.app(hot, state),
            names: self.names(continues),
            interface: self.interface,
            source: None,
            epoch: Epoch::NONE,
            pieces: pieces.take(&mut hot.places),
        };
        hot.sums = [[0; 3]; 2];
        hot.packets = [0; 2];
        hot.flags = [0; 2];
        hot.piece_count = 0;
        self.tcp.orig.evidence = Evidence::default();
        self.tcp.resp.evidence = Evidence::default();
        row
    }

    /// All bytes of the slice; those carried over are forgotten.
    fn sums(&mut self, hot: &mut Hot) -> [Sums<u64>; 2] {
        if self.carried.is_some() {
            self.carry(hot);
        }
        match self.carried.take() {
            Some(carried) => *carried,
            None => hot.sums.map(|sums| sums.map(u64::from)),
        }
    }

    /// The protocol that payload showed; where none was looked at, that of the port, if a host
    /// answers there.
    fn app(&self, hot: &Hot, state: State) -> Option<Recognised> {
        let by_parser = self.findings.app().map(|app| Recognised { app, by: AppBy::Content });
        self.watch.found().or(by_parser).or_else(|| self.app_by_port(hot, state))
    }

    fn app_by_port(&self, hot: &Hot, state: State) -> Option<Recognised> {
        let carrier = carrier(hot.key.proto())?;
        let tuple = hot.tuple();
        let has_payload = hot.sums.iter().any(|&[_, _, payload]| payload > 0);
        let is_refused =
            matches!(state, State::Rej | State::Rstrh | State::Rstos0 | State::S0 | State::Sh);
        let is_alive = carrier == Carrier::Tcp && hot.answered && !is_refused;
        if hot.looked > 0 || !has_payload && !is_alive {
            return None;
        }
        // Seen from the middle on, the originator may be the server.
        let history = self.tcp.history.as_str();
        let is_from_middle = carrier == Carrier::Tcp && !history.contains(['S', 's', 'H', 'h']);
        let by_orig = || is_from_middle.then(|| signature::by_port(carrier, tuple.orig_port));
        signature::by_port(carrier, tuple.resp_port).or_else(|| by_orig().flatten())
    }

    fn names(&mut self, continues: bool) -> SparseNames {
        let names = if continues { self.findings.names() } else { self.findings.take() };
        names.map(SparseNames::from).unwrap_or_default()
    }
}

#[cfg(test)]
impl Hot {
    /// One packet before its counters are full.
    pub(crate) fn fill_counters(&mut self) {
        self.packets = [u32::MAX - 1; 2];
        self.sums = [[u32::MAX; 3]; 2];
    }
}

#[cfg(test)]
impl Detail {
    pub(crate) fn fill_counters(&mut self) {
        (self.truncated_packets, self.fragments) = (u32::MAX, u32::MAX);
        self.tcp.orig.fill_counters();
        self.carried = Some(Box::new([[u64::MAX; 3]; 2]));
    }
}
