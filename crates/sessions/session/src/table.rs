//! The table of live sessions.

use app::signature;
use app::{Budget, Findings, Side};
use format::session_row::SessionRow;
use units::Timestamp;
use wire::{
    Address, Decoded, Fragment, TcpHeader, Transport, decode_datagram, decode_into,
    part_of_datagram,
};

use crate::look::{self, Place};
use crate::lookup::Lookup;
use crate::pieces::{self, Pieces};
use crate::reassembly::{self, Label, Piece, Reassembly};
use crate::record::{Addressed, Arrival, Detail, Hot, carrier};
use crate::resume::{Asking, Before, Resumable};
use crate::siphash::SipHasher;
use crate::tcp::{ACK, SYN};
use crate::wheel::Wheel;
use crate::{Config, Key, Keyer, PacketView};

/// Expired sessions written out per packet: more than a packet can make, so that they do not pile
/// up, and few enough that a jump in time costs no packet much.
const DUE_PER_PACKET: usize = 4;

/// Sessions looked at to find the idlest one.
const EVICTION_TRIES: usize = 16;

/// Sessions for which address space is reserved at the start: growing would copy them all while
/// packets wait. Memory is taken as it is touched.
const RESERVED_COUNT_MAX: usize = 1 << 20;

/// A session lies at most so many places from where it should be, or all are hashed by another
/// secret: 2^24 sessions in twice as many places, hashed by chance, lie within 90 of theirs.
const PASSED_COUNT_MAX: usize = 256;

/// For what is there once: ports of datagrams in fragments, and what the parsers take while they
/// read one payload.
const FIXED_BYTES: usize = 4 << 20;

/// Packets whose sessions are looked up together, so that the cache misses of one batch overlap.
const BATCH: usize = 32;

/// What happened that rows do not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Packets taken.
    pub packets: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Sessions whose row was written early because the table was full.
    pub evicted: u64,
    /// Messages, early segments and datagrams in fragments that were not kept for the names in them
    /// because the space for such was used up.
    pub heads_refused: u64,
    /// Payloads that were not looked at for names because the space for such was used up.
    pub names_refused: u64,
    /// Rows that were written early because lists of pieces had grown long.
    pub crowded: u64,
    /// Times that all sessions were hashed by another secret because too many had met in one place.
    pub reseeded: u64,
    /// Packets that were not looked at for names ([`Table::find_names`]), where there might have
    /// been some.
    pub unread: u64,
}

/// What a table knows of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// Its earliest packet, up to its first row.
    pub session_start: Timestamp,
    /// Its latest packet.
    pub latest: Timestamp,
    /// The SYN of its connection was seen.
    pub is_begun: bool,
}

/// The live sessions. Memory is bounded: [`Config::memory_bytes_max`].
#[derive(Debug)]
pub struct Table {
    config: Config,
    hasher: SipHasher,
    /// Sessions begun since the hasher's secret was last exchanged.
    hashed: usize,
    keyer: Keyer,
    /// Slots of live sessions, found by key.
    slots: Lookup,
    /// Slot `n` of both: one session, or free.
    hot: Vec<Hot>,
    detail: Vec<Detail>,
    free: Vec<u32>,
    wheel: Wheel,
    budget: Budget,
    pieces: Pieces,
    reassembly: Reassembly,
    stats: Stats,
    finds_names: bool,
    resumable: Resumable,
}

impl Table {
    /// Whether VLAN ids are part of its keys.
    pub fn vlan_in_key(&self) -> bool {
        self.keyer.vlan_in_key()
    }

    /// An empty table. The seed, secret and random in production, keeps senders from choosing
    /// tuples that collide (SipHash-1-3, and another secret where too many do); it does not change
    /// the rows.
    ///
    /// # Panics
    /// When `session_count_max` is 0 or does not fit 32 bits.
    pub fn new(config: Config, hash_seed: u64) -> Self {
        assert!(config.session_count_max >= 1, "a table holds at least one session");
        assert!(u32::try_from(config.session_count_max).is_ok(), "slots have 32-bit numbers");
        let reserved = config.session_count_max.min(RESERVED_COUNT_MAX);
        Self {
            config,
            hasher: SipHasher::new(hash_seed),
            hashed: 0,
            keyer: Keyer::new(config.vlan_in_key),
            slots: Lookup::new(),
            hot: Vec::with_capacity(reserved),
            detail: Vec::with_capacity(reserved),
            free: Vec::new(),
            wheel: Wheel::new(),
            budget: Budget::new(config.head_bytes_max, config.names_bytes_max),
            pieces: Pieces::new(config.piece_bounds()),
            reassembly: Reassembly::default(),
            stats: Stats::default(),
            finds_names: true,
            resumable: Resumable::default(),
        }
    }

    /// Makes the session of a row go on, which another table made.
    pub fn resume(&mut self, row: SessionRow, before: Before) {
        let vlan_in_key = self.keyer.vlan_in_key();
        self.resumable.add(row, before, (&self.config, vlan_in_key));
    }

    /// The session that is alive with this key.
    pub fn live(&self, key: &Key) -> Option<Live> {
        let slot = self.slot_of(key, key.hashed(&self.hasher))?;
        let (hot, detail) = (self.hot(slot), self.detail(slot));
        let session_start = detail.begin(hot);
        let is_begun = detail.tcp.history.is_from_syn();
        Some(Live { session_start, latest: hot.latest, is_begun })
    }

    /// The live session with this key began then, at an earlier packet, which is counted elsewhere.
    pub fn set_back(&mut self, key: &Key, session_start: Timestamp) {
        let slot = self.slot_of(key, key.hashed(&self.hasher));
        if let Some(detail) = slot.and_then(|slot| self.detail.get_mut(index(slot))) {
            detail.set_back(session_start);
        }
    }

    /// From the next packet on payload is looked at for names, or not: then packets in which there
    /// might have been some are counted ([`Stats::unread`]).
    pub fn find_names(&mut self, is_wanted: bool) {
        self.finds_names = is_wanted;
    }

    /// Takes one packet into account. Rows of sessions and slices that ended are appended to `out`.
    pub fn push(&mut self, packet: &PacketView<'_>, out: &mut Vec<SessionRow>) {
        let mut decoded = Decoded::default();
        decode_into(&mut decoded, packet.link_type, packet.data, packet.original_len);
        self.push_decoded(packet, &decoded, out);
    }

    /// The same as [`Self::push`] for each packet in turn, faster.
    pub fn push_all<'a>(
        &mut self,
        packets: impl IntoIterator<Item = PacketView<'a>>,
        out: &mut Vec<SessionRow>,
    ) {
        self.push_each(packets, |_, _| {}, out);
    }

    /// The same, for callers that want to look at the decoded packets too: each is shown before it
    /// is taken.
    pub fn push_each<'a>(
        &mut self,
        packets: impl IntoIterator<Item = PacketView<'a>>,
        mut look: impl FnMut(&PacketView<'a>, &Decoded<'a>),
        out: &mut Vec<SessionRow>,
    ) {
        let mut packets = packets.into_iter();
        let mut views = [PacketView::NOTHING; BATCH];
        let mut decoded = [Decoded::default(); BATCH];
        let mut addresses = [self.address(Timestamp(0), &Decoded::default()); BATCH];
        let mut count = BATCH;
        while count == BATCH {
            count = 0;
            // The packets come last: a full batch must not take one more.
            let lanes = views.iter_mut().zip(&mut decoded).zip(&mut addresses);
            for (((view, decoded), address), packet) in lanes.zip(packets.by_ref()) {
                *view = packet;
                decode_into(decoded, packet.link_type, packet.data, packet.original_len);
                *address = self.address(packet.timestamp, decoded);
                count += 1;
            }
            self.warm(addresses.get(..count).expect("at most a batch"), &decoded);
            let lanes = views.iter().zip(&decoded).zip(&addresses).take(count);
            for ((packet, decoded), address) in lanes {
                look(packet, decoded);
                self.take(&Arrival { packet, decoded, address }, out);
            }
        }
    }

    /// Ends a segment: a row for every session that has packets since its last one, in the order of
    /// their start. The sessions go on.
    pub fn cut(&mut self, out: &mut impl Extend<SessionRow>) {
        let order = self.by_start(|hot| !hot.is_empty());
        self.in_order(&order, |(hot, detail), pieces, _| {
            out.extend(Some(detail.row(hot, pieces, true)));
        });
        self.pieces.clear();
        self.resumable.expire(self.wheel.now(), &self.config);
    }

    /// Ends the recording: the last row of every session that has packets since its last one, in
    /// the order of their start. The table is empty then.
    pub fn finish(&mut self, out: &mut impl Extend<SessionRow>) {
        let order = self.by_start(|_| true);
        self.in_order(&order, |(hot, detail), pieces, budget| {
            out.extend(last_row(hot, detail, (pieces, budget)));
        });
        self.pieces.clear();
        self.hot.clear();
        self.detail.clear();
        self.free.clear();
        self.slots = Lookup::new();
        self.wheel = Wheel::new();
        self.reassembly.clear();
        self.resumable = Resumable::default();
    }

    /// Slots of the live sessions that `is_wanted` is true for, in the order of the slice's start.
    fn by_start(&self, is_wanted: impl Fn(&Hot) -> bool) -> Vec<u32> {
        let live = self.hot.iter().zip(0..).filter(|(hot, _)| hot.is_live && is_wanted(hot));
        let mut order: Vec<(Timestamp, u32)> =
            live.map(|(hot, slot)| (hot.start(), slot)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Does the same to the sessions of many slots. What they need is read ahead.
    fn in_order(
        &mut self,
        slots: &[u32],
        mut work: impl FnMut((&mut Hot, &mut Detail), &mut Pieces, &mut Budget),
    ) {
        for slots in slots.chunks(pieces::WARM_COUNT) {
            self.pieces.warm(slots.iter().map(|&slot| self.hot(slot).places()));
            for &slot in slots {
                let hot = self.hot.get_mut(index(slot)).expect("a live slot");
                let detail = self.detail.get_mut(index(slot)).expect("a live slot");
                work((hot, detail), &mut self.pieces, &mut self.budget);
            }
        }
    }

    /// Live sessions.
    pub fn session_count(&self) -> usize {
        self.slots.len()
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        let Budget { heads, names, .. } = &self.budget;
        let heads_refused = heads.refused.saturating_add(self.reassembly.refused);
        Stats { heads_refused, names_refused: names.refused, ..self.stats }
    }

    #[inline]
    fn address(&mut self, timestamp: Timestamp, decoded: &Decoded<'_>) -> Addressed {
        let (key, turned) = self.keyer.key_and_turn(timestamp, decoded);
        Addressed { key, turned, hash: key.hashed(&self.hasher), epoch: self.stats.reseeded }
    }

    fn push_decoded(
        &mut self,
        packet: &PacketView<'_>,
        decoded: &Decoded<'_>,
        out: &mut Vec<SessionRow>,
    ) {
        let address = self.address(packet.timestamp, decoded);
        self.take(&Arrival { packet, decoded, address: &address }, out);
    }

    fn find(&self, arrival: &Arrival<'_>) -> Option<u32> {
        self.slot_of(&arrival.address.key, self.hash_of(arrival))
    }

    #[inline]
    fn slot_of(&self, key: &Key, hash: u64) -> Option<u32> {
        self.slots.find(hash, |slot| self.hot(slot).key == *key)
    }

    /// Reads what the packets will need. The answers are of no use, for the packets before may
    /// still change them, but the memory is there when it is wanted. Each loop goes one step
    /// further from the table and is short, so that the processor waits for the memory of many
    /// packets at once.
    fn warm(&self, addresses: &[Addressed], decoded: &[Decoded<'_>]) {
        for address in addresses {
            core::hint::black_box(self.slots.warm(address.hash));
        }
        let mut slots = [None; BATCH];
        for (address, slot) in addresses.iter().zip(&mut slots) {
            *slot = self.slots.find(address.hash, |_| true);
        }
        for &slot in slots.iter().flatten() {
            core::hint::black_box(self.hot(slot).warm());
        }
        let mut detailed = [None; BATCH];
        let packets = slots.iter().zip(addresses).zip(decoded);
        for (((slot, address), decoded), detailed) in packets.zip(&mut detailed) {
            *detailed = slot.filter(|&slot| self.hot(slot).needs_detail(address.turned, decoded));
        }
        for &slot in detailed.iter().flatten() {
            core::hint::black_box(self.detail(slot).warm());
        }
    }

    fn take(&mut self, arrival: &Arrival<'_>, out: &mut Vec<SessionRow>) {
        self.stats.packets += 1;
        let packet = &arrival.packet;
        if self.pieces.is_full_for(packet.piece) {
            self.stats.crowded += 1;
            self.cut(out);
        }
        if !self.pieces.enter(packet.piece) {
            self.hot.iter_mut().for_each(Hot::forget_piece_number);
        }
        self.wheel.advance(packet.timestamp);
        self.expire(packet.timestamp, out);
        let mut slot = self.find(arrival);
        if let Some(old) = slot
            && self.is_another_session(old, arrival)
        {
            self.close(old, out);
            slot = None;
        }
        let slot = slot.unwrap_or_else(|| self.open(arrival, out));
        self.count(slot, arrival, out);
    }

    /// Writes out sessions whose timeout has passed, a few at a time.
    fn expire(&mut self, now: Timestamp, out: &mut Vec<SessionRow>) {
        for _ in 0..DUE_PER_PACKET {
            let Some(slot) = self.wheel.due() else {
                return;
            };
            let latest = self.hot(slot).latest;
            match self.timeout_ns(slot) {
                None => self.wheel.place_last(slot),
                Some(timeout_ns) if now.since(latest) > timeout_ns => self.close(slot, out),
                Some(timeout_ns) => self.wheel.place(slot, latest.plus_nanos(timeout_ns)),
            }
        }
    }

    fn timeout_ns(&self, slot: u32) -> Option<i64> {
        let hot = self.hot(slot);
        self.config.timeout_ns(hot.key.proto(), hot.is_over)
    }

    /// When the session expires if no packet comes; without a timeout, what its idleness is
    /// compared by.
    fn deadline(&self, slot: u32) -> Timestamp {
        let timeout_ns = self.timeout_ns(slot).or(Config::default().tcp_timeout_ns);
        self.hot(slot).latest.plus_nanos(timeout_ns.expect("the default is a number"))
    }

    /// Whether the packet begins a new session on the tuple of a live one.
    fn is_another_session(&self, slot: u32, arrival: &Arrival<'_>) -> bool {
        let hot = self.hot(slot);
        let silence_ns = arrival.packet.timestamp.since(hot.latest);
        if silence_ns > 0 && self.timeout_ns(slot).is_some_and(|timeout| silence_ns > timeout) {
            return true;
        }
        // Its rows say when it began. A packet from before that would be in none that is asked for
        // by time.
        if silence_ns < 0 && self.detail(slot).has_begun_after(arrival.packet.timestamp) {
            return true;
        }
        match arrival.decoded.transport {
            Transport::Tcp(header) if header.flags & SYN != 0 => {
                self.detail(slot).tcp.is_reused_by(hot.side(arrival), &header)
            }
            _ => false,
        }
    }

    #[cold]
    fn open(&mut self, arrival: &Arrival<'_>, out: &mut Vec<SessionRow>) -> u32 {
        if self.slots.len() >= self.config.session_count_max {
            self.evict(out);
        }
        self.stats.sessions += 1;
        let (mut hot, mut detail) = (Hot::new(arrival), Detail::new(arrival));
        if let Some(resumed) = self.resumable.take(&asking(arrival), &self.config) {
            hot.resume(&resumed);
            detail.resume(&mut hot, resumed, &mut self.budget);
        }
        let slot = if let Some(slot) = self.free.pop() {
            *self.hot.get_mut(index(slot)).expect("a free slot") = hot;
            *self.detail.get_mut(index(slot)).expect("a free slot") = detail;
            slot
        } else {
            self.hot.push(hot);
            self.detail.push(detail);
            number(self.hot.len() - 1)
        };
        self.hashed += 1;
        if self.slots.insert(self.hash_of(arrival), slot) > PASSED_COUNT_MAX {
            self.exchange_secret();
        }
        self.wheel.place(slot, self.deadline(slot));
        slot
    }

    /// The hash of a packet's key. The one that came with it may be of the secret before.
    fn hash_of(&self, arrival: &Arrival<'_>) -> u64 {
        if arrival.address.epoch == self.stats.reseeded {
            arrival.address.hash
        } else {
            arrival.address.key.hashed(&self.hasher)
        }
    }

    /// Hashes all sessions by another secret, if as many have begun since the last time: then the
    /// work is a constant for each session.
    #[cold]
    fn exchange_secret(&mut self) {
        if self.hashed < self.slots.len() {
            return;
        }
        self.hashed = 0;
        self.stats.reseeded += 1;
        self.hasher = self.hasher.next();
        let live = self.hot.iter().zip(0..).filter(|(hot, _)| hot.is_live);
        let hashed = live.map(|(hot, slot)| (hot.key.hashed(&self.hasher), slot));
        self.slots.place_anew(hashed);
    }

    /// Closes the idlest session, as far as a few looks show.
    fn evict(&mut self, out: &mut Vec<SessionRow>) {
        for _ in 0..EVICTION_TRIES {
            let slot = self.wheel.earliest().expect("every live session is on the wheel");
            let deadline = self.deadline(slot);
            if !self.wheel.waits_too_early(slot, deadline) {
                break;
            }
            self.wheel.place(slot, deadline);
        }
        let slot = self.wheel.earliest().expect("every live session is on the wheel");
        self.stats.evicted += 1;
        self.close(slot, out);
    }

    /// Removes a session; writes its last row if it has packets without one.
    fn close(&mut self, slot: u32, out: &mut Vec<SessionRow>) {
        let hash = self.hot(slot).key.hashed(&self.hasher);
        self.slots.remove(hash, slot);
        self.wheel.remove(slot);
        self.free.push(slot);
        let hot = self.hot.get_mut(index(slot)).expect("a live slot");
        let detail = self.detail.get_mut(index(slot)).expect("a live slot");
        out.extend(last_row(hot, detail, (&mut self.pieces, &mut self.budget)));
    }

    fn count(&mut self, slot: u32, arrival: &Arrival<'_>, out: &mut Vec<SessionRow>) {
        let hot = self.hot.get_mut(index(slot)).expect("a live slot");
        let detail = self.detail.get_mut(index(slot)).expect("a live slot");
        let is_crowded = hot.is_crowded(&self.pieces);
        if is_crowded || hot.is_slice_over(arrival.packet.timestamp, self.config.slice_ns) {
            self.stats.crowded += u64::from(is_crowded);
            out.push(detail.row(hot, &mut self.pieces, true));
        }
        let side = hot.side(arrival);
        hot.count(arrival, side, &mut self.pieces);
        if !hot.add(arrival, side) {
            detail.carry(hot);
            assert!(hot.add(arrival, side), "one packet's bytes fit");
        }
        detail.count(arrival);
        if self.finds_names && hot.looked < signature::PAYLOAD_COUNT_MAX {
            look::recognise((hot, detail), arrival, side);
        }
        match &arrival.decoded.transport {
            Transport::Tcp(header) => self.segment(slot, arrival, side, header),
            Transport::Udp | Transport::Arp(_) if !hot.interest.is_none() && !self.finds_names => {
                self.stats.unread += 1;
            }
            Transport::Icmp(header) if detail.is_other_icmp(hot, side, *header) => {
                let (findings, message) = (&mut detail.findings, (side, *header));
                let is_kept = self.finds_names
                    && app::icmp(findings, &mut hot.interest, message, &mut self.budget);
                if !is_kept {
                    self.stats.unread += 1;
                    detail.forget_other_icmp();
                }
            }
            Transport::Arp(header) if !hot.interest.is_none() => {
                app::arp(&mut detail.findings, &mut hot.interest, header, &mut self.budget);
            }
            Transport::Udp => look::at_datagram((hot, detail), arrival, side, &mut self.budget),
            _ => {}
        }
        if let Some(fragment) = arrival.decoded.fragment {
            self.reassemble(slot, arrival, fragment);
        }
    }

    /// Shows the datagram of a fragment to the parsers once it is whole. Its session is the one of
    /// its first fragment.
    #[cold]
    fn reassemble(&mut self, slot: u32, arrival: &Arrival<'_>, fragment: Fragment) {
        let (packet, tuple) = (arrival.packet, &arrival.decoded.tuple);
        let hot = self.hot(slot);
        let is_over = hot.interest.is_none() && hot.looked == signature::PAYLOAD_COUNT_MAX;
        if !self.finds_names || is_over || carrier(hot.key.proto()).is_none() {
            return;
        }
        let Some(part) = part_of_datagram(packet.link_type, packet.data, packet.original_len)
        else {
            return;
        };
        let protocol = (!matches!(tuple.orig, Address::V6(_))).then_some(part.protocol);
        let ends = (tuple.orig, tuple.resp);
        let label = Label { id: fragment.id, protocol, ends };
        let piece =
            Piece { label, fragment, part, timestamp: packet.timestamp, address: arrival.address };
        let Some(whole) = self.reassembly.take(&piece) else { return };
        let decoded = &decode_datagram(ends, whole.protocol, &whole.bytes);
        // What a tunnel carries is of another session.
        let is_own = decoded.tunnel.is_none() && (decoded.tuple.orig, decoded.tuple.resp) == ends;
        let arrival = Arrival { packet, decoded, address: &whole.address };
        if let Some(slot) = self.find(&arrival).filter(|_| is_own) {
            self.look_at(slot, &arrival);
        }
    }

    /// Looks for names in a datagram that was put together, and counts nothing.
    fn look_at(&mut self, slot: u32, arrival: &Arrival<'_>) {
        let hot = self.hot.get_mut(index(slot)).expect("a live slot");
        let detail = self.detail.get_mut(index(slot)).expect("a live slot");
        look::at_whole((hot, detail), arrival, &mut self.budget);
    }

    /// What a segment says about its connection, and the names in it.
    fn segment(&mut self, slot: u32, arrival: &Arrival<'_>, side: Side, header: &TcpHeader) {
        let Arrival { packet, decoded, .. } = arrival;
        let hot = self.hot.get_mut(index(slot)).expect("a live slot");
        let detail = self.detail.get_mut(index(slot)).expect("a live slot");
        hot.note_flags(side, header.flags);
        let was_over = hot.is_over;
        let start = look::begin_of(header);
        let mut is_ahead = false;
        if !hot.steady.take(side, header, decoded.payload_len) {
            let tcp = &mut detail.tcp;
            tcp.resume(&hot.steady);
            is_ahead = tcp.is_ahead(side, start);
            tcp.segment(side, packet.timestamp, header, decoded.payload_len);
            hot.steady = tcp.steady();
            hot.is_over = tcp.is_over();
        }
        let ends = !was_over && hot.is_over;
        let is_searched = look::is_searched(decoded) && !hot.interest.is_none();
        if is_searched && !self.finds_names {
            self.stats.unread += 1;
        } else if is_searched {
            let place = Place { side, start, is_ahead };
            look::at_segment((hot, detail), arrival, &place, &mut self.budget);
        }
        if ends {
            self.wheel.place(slot, self.deadline(slot));
        }
    }

    fn hot(&self, slot: u32) -> &Hot {
        self.hot.get(index(slot)).expect("slots come from the slab")
    }

    fn detail(&self, slot: u32) -> &Detail {
        self.detail.get(index(slot)).expect("slots come from the slab")
    }
}

/// What a packet asks of the sessions that have rows already.
fn asking(arrival: &Arrival<'_>) -> Asking {
    let begins_connection = matches!(
        arrival.decoded.transport,
        Transport::Tcp(header) if header.flags & (SYN | ACK) == SYN
    );
    let (key, time) = (arrival.address.key, arrival.packet.timestamp);
    Asking { key, time, begins_connection }
}

/// Ends the session of a slot: its row if it has packets without one.
fn last_row(
    hot: &mut Hot,
    detail: &mut Detail,
    (pieces, budget): (&mut Pieces, &mut Budget),
) -> Option<SessionRow> {
    hot.is_live = false;
    detail.findings.finish(budget);
    let row = (!hot.is_empty()).then(|| detail.row(hot, pieces, false));
    detail.findings = Findings::Nothing;
    row
}

impl Config {
    /// Bytes of memory that a [`Table`] takes at most, as requested of the allocator, whatever the
    /// packets are; rows that it has handed out are the caller's.
    ///
    /// What the limits cost: where there are too many sessions the idlest one's row is written
    /// early ([`Stats::evicted`]); a message whose parts have no space is not put together
    /// ([`Stats::heads_refused`]), nor is a datagram in fragments; where there is no space for more
    /// names those that are known stay and payloads are not looked at ([`Stats::names_refused`]);
    /// where lists of pieces have no space rows are written early ([`Stats::crowded`]).
    pub fn memory_bytes_max(&self) -> usize {
        let names = self.names_bytes_max;
        let pieces = self.piece_bounds().memory_bytes_max(self.session_count_max);
        memory_bytes_max(self) + self.head_bytes_max + names + pieces
    }
}

/// Bytes of the sessions' records and of what finds them, of a table that is full. Vectors have at
/// most twice the space that they need; where more than what is reserved is needed, the space
/// before is there while they grow.
fn memory_bytes_max(config: &Config) -> usize {
    let count = config.session_count_max;
    let times = if count <= RESERVED_COUNT_MAX { 1 } else { 3 };
    let records = times * (size_of::<Hot>() + size_of::<Detail>());
    let found = Lookup::session_bytes_max() + 3 * (Wheel::SESSION_BYTES + size_of::<u32>());
    // What `by_start` sorts.
    let sorted = size_of::<(Timestamp, u32)>() + size_of::<u32>();
    let fixed = FIXED_BYTES + reassembly::MEMORY_BYTES_MAX + config.resumed_bytes_max();
    count * (records + Detail::HEAP_BYTES_MAX + found + sorted) + fixed
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).expect("32 bits fit")
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("slots have 32-bit numbers")
}

#[cfg(test)]
mod tests;
