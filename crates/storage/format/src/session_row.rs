//! A session's row in one segment.
//!
//! `session` makes slices, `index` stores them as Parquet, `query` selects among them,
//! `session-view` shows them. One name per field everywhere: the names in queries, JSON and SQL are
//! those of the Parquet columns (docs/sessions.md).

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::str::FromStr;
use std::sync::{Arc, OnceLock};

use units::{Epoch, InterfaceId, Sequence, Timestamp};
use wire::{AppBy, CommunityId, FiveTuple, PackedNames, Protocol, Recognised, TcpOptions, Tunnel};

pub use wire::Names;

/// Place of a piece in the volume's life: stripe, part of its slot, column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PieceId {
    /// Sequence of the stripe.
    pub sequence: Sequence,
    /// Which of the short stripes in the slot, from 0.
    pub sub: u16,
    /// Column of the stripe.
    pub column: u8,
}

/// Where the packets of a slice lie in one piece: every one between `begin` and `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PieceSpan {
    /// The piece with the packets.
    pub piece: PieceId,
    /// First byte of the first packet's block in the body; a multiple of 4.
    pub begin: u32,
    /// End of the last packet's block; a multiple of 4.
    pub end: u32,
}

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Direction {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire, link layer included.
    pub frame_bytes: u64,
    /// Bytes of the innermost IP packets by their headers.
    pub ip_bytes: u64,
    /// Bytes of transport payload by the headers.
    pub payload_bytes: u64,
    /// All TCP flags seen, or-ed.
    pub tcp_flags: u8,
    /// TCP segments with payload, some or all of which had been seen before.
    pub retransmitted_packets: u64,
    /// Payload bytes that had been seen before.
    pub retransmitted_bytes: u64,
    /// TCP segments with payload that came after later ones and had not been seen: overtaken, or
    /// sent again for a loss before the capture.
    pub out_of_order_packets: u64,
    /// TCP segments with RST.
    pub resets: u64,
    /// TCP segments with a window of zero.
    pub zero_windows: u64,
    /// Bytes acknowledged by the other side but never seen here.
    pub missed_bytes: u64,
    /// Options of this side's SYN.
    pub syn_options: Option<TcpOptions>,
}

/// State of a connection when the row was written, in Zeek's words (conn.log, `conn_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// Connection attempt seen, no reply.
    S0,
    /// Established, not terminated.
    S1,
    /// Established, close attempt by the originator seen, none by the responder.
    S2,
    /// Established, close attempt by the responder seen, none by the originator.
    S3,
    /// Normal establishment and termination.
    Sf,
    /// Attempt rejected.
    Rej,
    /// Established, originator aborted.
    Rsto,
    /// Responder sent a RST.
    Rstr,
    /// Originator sent a SYN and then a RST; no SYN-ACK seen.
    Rstos0,
    /// Responder sent a SYN-ACK and then a RST; no SYN of the originator seen.
    Rstrh,
    /// Originator sent a SYN and then a FIN; no SYN-ACK seen.
    Sh,
    /// Responder sent a SYN-ACK and then a FIN; no SYN of the originator seen.
    Shr,
    /// No SYN seen: midstream traffic, or not a connection.
    #[default]
    Oth,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 13] = [
        Self::S0,
        Self::S1,
        Self::S2,
        Self::S3,
        Self::Sf,
        Self::Rej,
        Self::Rsto,
        Self::Rstr,
        Self::Rstos0,
        Self::Rstrh,
        Self::Sh,
        Self::Shr,
        Self::Oth,
    ];

    /// Of a session of datagrams, with its history: all that is told is whether it was answered.
    pub fn of_datagrams(is_answered: bool) -> (Self, History) {
        let mut history = History::default();
        history.push(b'D');
        if !is_answered {
            return (Self::S0, history);
        }
        history.push(b'd');
        (Self::Sf, history)
    }

    /// Zeek's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::S0 => "S0",
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::Sf => "SF",
            Self::Rej => "REJ",
            Self::Rsto => "RSTO",
            Self::Rstr => "RSTR",
            Self::Rstos0 => "RSTOS0",
            Self::Rstrh => "RSTRH",
            Self::Sh => "SH",
            Self::Shr => "SHR",
            Self::Oth => "OTH",
        }
    }
}

/// Zeek's history letters of a connection, the first 31 of them: ASCII, in place, because every row
/// has some.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct History {
    letters: [u8; Self::LEN_MAX],
    len: u8,
}

impl History {
    /// Letters kept.
    pub const LEN_MAX: usize = 31;

    /// Appends a letter, if there is space.
    ///
    /// # Panics
    /// If it is not ASCII.
    pub fn push(&mut self, letter: u8) {
        assert!(letter.is_ascii(), "letters are ASCII");
        if let Some(place) = self.letters.get_mut(usize::from(self.len)) {
            *place = letter;
            self.len += 1;
        }
    }

    /// The connection was seen from its first SYN on.
    pub fn is_from_syn(&self) -> bool {
        self.as_str().starts_with('S')
    }

    /// The letters as text.
    pub fn as_str(&self) -> &str {
        let letters = self.letters.get(..usize::from(self.len)).expect("the length counts letters");
        str::from_utf8(letters).expect("letters are ASCII")
    }
}

impl FromStr for History {
    type Err = NotLetters;

    /// # Errors
    /// [`NotLetters`] for what no history is.
    fn from_str(text: &str) -> Result<Self, NotLetters> {
        if !text.is_ascii() || text.len() > Self::LEN_MAX {
            return Err(NotLetters);
        }
        let mut history = Self::default();
        text.bytes().for_each(|letter| history.push(letter));
        Ok(history)
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// More letters than a history has, or others than ASCII.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotLetters;

/// The names of a slice, read and written as [`Names`]. Most slices have none and store none, and
/// those of a row that waits for its segment to end are packed until they are read: otherwise names
/// would be more than half of every such row.
#[derive(Clone, Default)]
pub struct SparseNames {
    packed: Option<PackedNames>,
    read: OnceLock<Box<Names>>,
}

impl From<Names> for SparseNames {
    fn from(names: Names) -> Self {
        let read = OnceLock::new();
        if names != Names::NONE {
            read.get_or_init(|| Box::new(names));
        }
        Self { packed: None, read }
    }
}

/// A row says elsewhere what the parser read: that is not among its names.
impl From<PackedNames> for SparseNames {
    fn from(names: PackedNames) -> Self {
        let packed = (!names.is_app_alone()).then_some(names);
        Self { packed, read: OnceLock::new() }
    }
}

impl SparseNames {
    /// There are no names, and no memory for any.
    pub fn is_none(&self) -> bool {
        self.packed.is_none() && self.read.get().is_none()
    }

    /// Bytes of the heap that they take; none while there are no names.
    pub fn heap_bytes(&self) -> usize {
        let read = self.read.get().map_or(0, |names| size_of::<Names>() + names.heap_bytes());
        self.packed.as_ref().map_or(0, PackedNames::heap_bytes) + read
    }

    /// Unpacks them for good: reading takes no further memory from here on.
    pub fn unpack(&mut self) {
        if let Some(packed) = self.packed.take() {
            self.read.get_or_init(|| unpacked(&packed));
        }
    }

    /// Adds the names of another row of the session.
    fn add(&mut self, other: &Self) {
        if other.is_none() {
            return;
        }
        if self.is_none() {
            self.clone_from(other);
            return;
        }
        let packed = other.packed.clone();
        let pack = || PackedNames::new((**other).clone(), &mut Vec::new());
        packed.unwrap_or_else(pack).add_to(self);
    }
}

fn unpacked(packed: &PackedNames) -> Box<Names> {
    Box::new(Names { app: None, ..packed.unpack() })
}

impl Deref for SparseNames {
    type Target = Names;

    fn deref(&self) -> &Names {
        static NONE: Names = Names::NONE;
        match &self.packed {
            Some(packed) => self.read.get_or_init(|| unpacked(packed)),
            None => self.read.get().map_or(&NONE, |names| names),
        }
    }
}

/// Stores names from the first writing access on.
impl DerefMut for SparseNames {
    fn deref_mut(&mut self) -> &mut Names {
        self.unpack();
        self.read.get_or_init(Box::default);
        self.read.get_mut().expect("just set")
    }
}

impl PartialEq for SparseNames {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SparseNames {}

impl fmt::Debug for SparseNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Where packets were recorded, by name: what a segment says besides its rows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceNames {
    /// Name of the interface, given by the system or the capture file.
    pub interface: Option<String>,
    /// Name of the recording, where it was given one.
    pub recording: Option<String>,
}

/// One session's row in one segment. Counters are those of this slice; state, history and names are
/// those of the whole session up to the end of this slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRow {
    /// Originator and responder.
    pub tuple: FiveTuple,
    /// VLAN ids of the first packet, outermost first.
    pub vlan: [Option<u16>; 2],
    /// MPLS label of the first packet.
    pub mpls: Option<u32>,
    /// Outermost tunnel of the first packet.
    pub tunnel: Option<Tunnel>,
    /// Type and code of the first ICMP message (community ids need them).
    pub icmp: Option<(u8, u8)>,
    /// Earliest packet of the session up to its first slice: with the tuple it joins the slices of
    /// one session.
    pub session_start: Timestamp,
    /// Earliest packet of this slice.
    pub start: Timestamp,
    /// Latest packet of this slice.
    pub end: Timestamp,
    /// Originator to responder.
    pub orig: Direction,
    /// Responder to originator.
    pub resp: Direction,
    /// State at the end of this slice.
    pub state: State,
    /// Zeek's history letters up to the end of this slice, upper case from the originator.
    pub history: History,
    /// Handshake round trip in nanoseconds: from the SYN to the ACK of the SYN-ACK.
    pub handshake_ns: Option<u64>,
    /// Packets of which less was captured than was on the wire.
    pub truncated_packets: u64,
    /// IP fragments.
    pub fragments: u64,
    /// The session goes on: another slice may follow.
    pub continues: bool,
    /// Application protocol, as far as it was recognised up to the end of this slice.
    pub app: Option<Recognised>,
    /// Application names.
    pub names: SparseNames,
    /// Interface of the first packet.
    pub interface: InterfaceId,
    /// Names of that interface and of its recording. No column has them: a reader that knows the
    /// segment adds them, and its rows share them.
    pub source: Option<Arc<SourceNames>>,
    /// Opening of the volume in which it was recorded. No column has it, either: it is its
    /// segment's. Sessions end with it.
    pub epoch: Epoch,
    /// Pieces that hold packets of this slice, ascending, distinct.
    pub pieces: Vec<PieceSpan>,
}

impl SessionRow {
    /// The community ids of the session: of its first message, and with ICMP of each other kind
    /// that its details name, in the direction in which it was sent. None without IP.
    pub fn community_ids(&self) -> impl Iterator<Item = CommunityId> {
        let is_icmp = matches!(self.tuple.proto, Protocol::ICMP | Protocol::ICMPV6);
        let details = self.names.app_detail.iter().filter(move |_| is_icmp);
        let others = details.filter_map(|detail| {
            let (key, kind) = detail.split_once('=')?;
            let tuple = match key {
                "icmp.orig" => self.tuple,
                "icmp.resp" => self.tuple.reversed(),
                _ => return None,
            };
            let (kind, code) = kind.split_once('/')?;
            CommunityId::of(&tuple, Some((kind.parse().ok()?, code.parse().ok()?)))
        });
        CommunityId::of(&self.tuple, self.icmp).into_iter().chain(others)
    }

    /// The first slice of a session of which nothing is known but its tuple and when it began: no
    /// packet yet.
    pub fn new(tuple: FiveTuple, start: Timestamp) -> Self {
        Self {
            tuple,
            vlan: [None; 2],
            mpls: None,
            tunnel: None,
            icmp: None,
            session_start: start,
            start,
            end: start,
            orig: Direction::default(),
            resp: Direction::default(),
            state: State::default(),
            history: History::default(),
            handshake_ns: None,
            truncated_packets: 0,
            fragments: 0,
            continues: false,
            app: None,
            names: SparseNames::default(),
            interface: InterfaceId(0),
            source: None,
            epoch: Epoch::NONE,
            pieces: Vec::new(),
        }
    }

    /// Bytes of memory that the row takes, those of its names and its list of pieces included, as
    /// requested of the allocator; the names of its source are shared and not counted.
    pub fn memory_bytes(&self) -> usize {
        let pieces = self.pieces.capacity() * size_of::<PieceSpan>();
        size_of::<Self>() + self.names.heap_bytes() + pieces
    }

    /// Turns a row that was seen from the other side, so that its ends are those of `tuple`. To a
    /// session that began there its datagrams are answers.
    pub fn turn_to(&mut self, tuple: &FiveTuple) {
        if self.tuple == *tuple || self.tuple.reversed() != *tuple {
            return;
        }
        self.tuple = *tuple;
        core::mem::swap(&mut self.orig, &mut self.resp);
        if self.tuple.proto == Protocol::UDP {
            (self.state, self.history) = State::of_datagrams(true);
        }
    }

    /// Takes a further row of the same session in: counters are added, names and state are those of
    /// the one that was recorded later. One that was seen from the other side is turned.
    pub fn join(&mut self, mut row: Self) {
        row.turn_to(&self.tuple);
        // Where time has run backwards, a row that starts later was recorded earlier.
        let end = |row: &Self| row.pieces.last().map(|span| (span.piece, span.end));
        let is_earlier = end(&row).zip(end(self)).is_some_and(|(of_row, own)| of_row < own);
        // Of datagrams that came late, neither row knows whether the other one has an answer.
        let is_answered = |row: &Self| row.tuple.proto == Protocol::UDP && row.state == State::Sf;
        if is_answered(&row) || !(is_earlier || is_answered(self)) {
            (self.state, self.history) = (row.state, row.history);
        }
        if is_earlier {
            self.app = row.app_with(self);
            self.names.add(&row.names);
        } else {
            self.app = self.app_with(&row);
            // A later row has all names, unless another process went on without space for them, or
            // where the rows lie in their piece is not known here, and this one came earlier.
            let names = core::mem::replace(&mut self.names, row.names);
            if names != self.names {
                self.names.add(&names);
            }
            self.continues = row.continues;
        }
        self.start = self.start.min(row.start);
        self.end = self.end.max(row.end);
        self.orig.add(&row.orig);
        self.resp.add(&row.resp);
        self.icmp = self.icmp.or(row.icmp);
        self.handshake_ns = self.handshake_ns.or(row.handshake_ns);
        self.truncated_packets = self.truncated_packets.saturating_add(row.truncated_packets);
        self.fragments = self.fragments.saturating_add(row.fragments);
        let is_mixed = is_earlier || row.pieces.first() < self.pieces.last();
        self.pieces.extend(row.pieces);
        if is_mixed {
            self.pieces.sort_unstable();
        }
        self.pieces.dedup_by(|next, span| {
            let is_same = next.piece == span.piece;
            if is_same {
                (span.begin, span.end) = (span.begin.min(next.begin), span.end.max(next.end));
            }
            is_same
        });
    }

    /// The protocol of this row and a later one. What payload showed stays. A port is a guess while
    /// there is no payload: where there is some, and it showed nothing, neither row has one.
    fn app_with(&self, later: &Self) -> Option<Recognised> {
        let is_shown = |app: Option<Recognised>| app.is_some_and(|it| it.by != AppBy::Port);
        let has_payload = self.orig.payload_bytes > 0 || self.resp.payload_bytes > 0;
        if is_shown(self.app) && !is_shown(later.app) {
            return self.app;
        }
        let is_refuted = self.app.is_none() && has_payload && !is_shown(later.app);
        later.app.filter(|_| !is_refuted)
    }
}

impl Direction {
    fn add(&mut self, later: &Self) {
        // Rows may come from a file, so their numbers may be any.
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut self.packets, later.packets);
        add(&mut self.frame_bytes, later.frame_bytes);
        add(&mut self.ip_bytes, later.ip_bytes);
        add(&mut self.payload_bytes, later.payload_bytes);
        self.tcp_flags |= later.tcp_flags;
        add(&mut self.retransmitted_packets, later.retransmitted_packets);
        add(&mut self.retransmitted_bytes, later.retransmitted_bytes);
        add(&mut self.out_of_order_packets, later.out_of_order_packets);
        add(&mut self.resets, later.resets);
        add(&mut self.zero_windows, later.zero_windows);
        add(&mut self.missed_bytes, later.missed_bytes);
        // Of a SYN that was sent again the last one counts.
        self.syn_options = later.syn_options.or(self.syn_options);
    }
}

#[cfg(test)]
mod tests {
    use wire::{Address, App, Protocol};

    use super::*;

    fn row() -> SessionRow {
        let (orig, resp) = (Address::None, Address::None);
        let tuple = FiveTuple { orig, resp, orig_port: 0, resp_port: 0, proto: Protocol::UDP };
        SessionRow::new(tuple, Timestamp(0))
    }

    #[test]
    fn the_memory_of_a_row_has_its_names_and_its_pieces() {
        let mut row = row();
        assert_eq!(row.memory_bytes(), size_of::<SessionRow>());
        row.pieces.reserve_exact(3);
        row.names.dns_types.reserve_exact(2);
        let names = size_of::<Names>() + 2 * size_of::<u16>();
        assert_eq!(
            row.memory_bytes(),
            size_of::<SessionRow>() + 3 * size_of::<PieceSpan>() + names
        );
    }

    #[test]
    fn a_row_that_was_seen_from_the_other_side_is_turned() {
        let mut first = row();
        first.tuple.orig_port = 7;
        first.orig.packets = 1;
        let mut later = row();
        later.tuple.resp_port = 7;
        (later.orig.packets, later.resp.packets) = (20, 10);
        first.join(later);
        assert_eq!((first.orig.packets, first.resp.packets), (11, 20));
    }

    #[test]
    fn what_was_recorded_last_says_the_state_and_no_name_is_lost_whatever_the_clock_did() {
        let piece = PieceId { sequence: Sequence(1), sub: 0, column: 0 };
        let of = |(begin, end), state, names: &[&str]| {
            let mut row = row();
            row.tuple.proto = Protocol::TCP;
            row.pieces = vec![PieceSpan { piece, begin, end }];
            row.state = state;
            row.names.dns_names = names.iter().map(ToString::to_string).collect();
            row.names.dns_rcodes = vec![0];
            row
        };
        let rows = [
            of((0, 8), State::S0, &[]),
            of((16, 24), State::S1, &["a", "b"]),
            of((8, 16), State::Sh, &["a"]),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let mut found = order.iter().map(|&at| rows[at].clone());
            let mut joined = found.next().unwrap();
            found.for_each(|row| joined.join(row));
            assert_eq!(joined.state, State::S1, "{order:?}");
            assert_eq!(joined.names.dns_names, ["a", "b"], "{order:?}");
            assert_eq!(joined.pieces, [PieceSpan { piece, begin: 0, end: 24 }], "{order:?}");
            // Where only the piece is known, or not even that.
            for is_known in [false, true] {
                let places = [PieceSpan { piece, begin: 0, end: 0 }];
                let mut found = order.iter().map(|&at| SessionRow {
                    pieces: places.iter().copied().filter(|_| is_known).collect(),
                    ..rows[at].clone()
                });
                let mut joined = found.next().unwrap();
                found.for_each(|row| joined.join(row));
                assert_eq!(joined.names.dns_names, ["a", "b"], "{order:?}");
            }
        }
    }

    #[test]
    fn a_port_is_a_guess_until_payload_shows_something_or_nothing() {
        let of = |app: Option<AppBy>, payload_bytes| {
            let app = app.map(|by| Recognised { app: App::Modbus, by });
            let orig = Direction { payload_bytes, ..Direction::default() };
            SessionRow { orig, app, ..row() }
        };
        let (port, content) = (Some(AppBy::Port), Some(AppBy::Content));
        for (rows, expected) in [
            ([of(port, 0), of(None, 5)], None),
            ([of(None, 5), of(port, 0)], None),
            ([of(None, 0), of(port, 0)], port),
            ([of(port, 0), of(content, 5)], content),
            ([of(content, 5), of(port, 0)], content),
            ([of(content, 5), of(None, 5)], content),
            ([of(None, 5), of(content, 5)], content),
        ] {
            let [mut first, later] = rows;
            first.join(later);
            assert_eq!(first.app.map(|it| it.by), expected);
        }
    }

    #[test]
    fn datagrams_from_both_sides_are_an_answer_of_which_neither_row_knows() {
        let mut first = row();
        first.tuple.proto = Protocol::UDP;
        first.tuple.orig_port = 7;
        (first.state, first.history) = State::of_datagrams(false);
        first.orig.packets = 1;
        let answer = SessionRow { tuple: first.tuple.reversed(), ..first.clone() };
        first.join(answer);
        assert_eq!((first.state, first.history.as_str()), (State::Sf, "Dd"));
        assert_eq!((first.orig.packets, first.resp.packets), (1, 1));
    }

    #[test]
    fn counters_of_joined_rows_stay_at_their_maximum() {
        let mut full = row();
        let counters = [&mut full.orig.packets, &mut full.resp.frame_bytes, &mut full.fragments];
        for counter in counters {
            *counter = u64::MAX;
        }
        let mut joined = full.clone();
        joined.join(full.clone());
        assert_eq!(joined, full);
    }
}
