//! Packets in, seconds out: the state that everything shown is made of.

use capture::{Interface, Packet};
use format::slice::Slice;
use query::Query;
use session::{Config, Keyer, PacketView, Table};
use units::Timestamp;
use wire::{Decoded, LinkType, decode};

use crate::dns::{self, Asked, Dns, DnsGrouping, Exchange};
use crate::history::{History, Moment, Second};
use crate::known::Known;
use crate::memory::Memory;
use crate::names::Names;
use crate::sums::{self, Grouping, Talker};

/// Packets so much before the present second belong to another time: a clock was set back, or
/// another file begins.
const BACK_MAX: i64 = 60;
/// Questions to DNS that are kept of a second.
const EXCHANGES_A_SECOND: usize = 1 << 14;

/// What bounds memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of packets that are kept.
    pub packet_bytes: usize,
    /// Lines of history: a session in a second is one of 32 bytes.
    pub lines: usize,
    /// Sessions at a time.
    pub sessions: usize,
}

/// 64 MiB of packets, about as much of history; 2^18 sessions of half a KiB.
impl Default for Limits {
    fn default() -> Self {
        Self { packet_bytes: 64 << 20, lines: 1 << 21, sessions: 1 << 18 }
    }
}

/// How much is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Packets taken in.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Sessions in the history.
    pub sessions: usize,
    /// The seconds that can be asked about; `None` where there is none yet.
    pub seconds: Option<(Moment, Moment)>,
    /// Earlier seconds were there, and went for want of room.
    pub has_forgotten: bool,
    /// Times at which everything began anew because time went back.
    pub restarts: u64,
    /// Questions to DNS that are in no second because there were too many.
    pub questions_left_out: u64,
}

impl Held {
    /// The last second that can be asked about.
    pub fn newest(&self) -> Option<Moment> {
        self.seconds.map(|(_, newest)| newest)
    }
}

/// Who talks.
#[derive(Debug)]
pub struct Talkers {
    limits: Limits,
    seed: u64,
    interfaces: Vec<Interface>,
    link_types: Vec<LinkType>,
    table: Table,
    memory: Memory,
    history: History,
    known: Known,
    names: Names,
    dns: Dns,
    /// Of the second that is not over.
    open: Option<i64>,
    rows: Vec<Slice>,
    exchanges: Vec<Exchange>,
    held: Held,
}

impl Talkers {
    /// Nothing yet. The seed, secret and random in production, keeps senders from choosing sessions
    /// that collide.
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self {
            limits,
            seed,
            interfaces: Vec::new(),
            link_types: Vec::new(),
            table: table(&limits, seed),
            memory: Memory::new(limits.packet_bytes),
            history: History::new(limits.lines),
            known: Known::default(),
            names: Names::default(),
            dns: Dns::default(),
            open: None,
            rows: Vec::new(),
            exchanges: Vec::new(),
            held: Held::default(),
        }
    }

    /// The interfaces that packets came from.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Takes packets in; the interfaces are those of their source, the list of which only grows.
    pub fn take<'p>(
        &mut self,
        interfaces: &[Interface],
        packets: impl IntoIterator<Item = Packet<'p>>,
    ) {
        let new = interfaces.iter().skip(self.interfaces.len());
        self.link_types.extend(new.clone().map(|interface| interface.link_type));
        self.interfaces.extend(new.cloned());
        for packet in packets {
            let second = packet.timestamp.unix_seconds();
            if self.open.is_none_or(|open| second > open || second < open - BACK_MAX) {
                self.open_second(second);
            }
            self.held.packets += 1;
            self.held.bytes += u64::from(packet.original_len);
            if !self.memory.push(&packet) {
                self.look();
                self.memory.turn();
                assert!(self.memory.push(&packet), "an empty chunk has room for any packet");
            }
        }
        self.look();
    }

    /// No packet from before this time will come: the seconds up to it are over.
    pub fn advance(&mut self, now: Timestamp) {
        if self.open.is_some_and(|open| now.unix_seconds() > open) {
            self.close();
        }
    }

    /// No packet will come any more: the present second is over, too, and what was not answered by
    /// now will not be.
    pub fn end(&mut self) {
        self.look();
        self.dns.expire(Timestamp::MAX, &mut self.exchanges);
        self.close();
    }

    fn open_second(&mut self, second: i64) {
        self.close();
        if self.history.newest().is_some_and(|newest| newest.0 >= second) {
            self.restart();
        }
        self.open = Some(second);
    }

    /// Another time begins: what is held belongs to none that could be asked about together.
    fn restart(&mut self) {
        self.held.restarts += 1;
        self.table = table(&self.limits, self.seed);
        self.history = History::new(self.limits.lines);
        self.known = Known::default();
        self.dns = Dns::default();
    }

    /// Looks at the packets since the last time.
    fn look(&mut self) {
        let fresh = self.memory.fresh(&self.link_types);
        let look = |packet: &PacketView<'_>, decoded: &Decoded<'_>| {
            self.dns.take(packet.timestamp, decoded, &mut self.names, &mut self.exchanges);
        };
        self.table.push_each(fresh, look, &mut self.rows);
    }

    fn close(&mut self) {
        let Some(number) = self.open.take() else { return };
        self.look();
        self.table.cut(&mut self.rows);
        self.dns.expire(Moment(number).end(), &mut self.exchanges);
        let left_out = self.exchanges.len().saturating_sub(EXCHANGES_A_SECOND);
        self.exchanges.truncate(EXCHANGES_A_SECOND);
        self.held.questions_left_out += u64::try_from(left_out).unwrap_or(u64::MAX);
        let known = &mut self.known;
        let entries: Vec<_> = self.rows.drain(..).map(|row| known.take(row)).collect();
        let second = Second {
            number,
            bytes: entries.iter().flat_map(|entry| entry.bytes).sum(),
            entries,
            exchanges: core::mem::take(&mut self.exchanges),
        };
        let has_forgotten = &mut self.held.has_forgotten;
        self.history.push(second, |gone| {
            *has_forgotten = true;
            known.forget(gone);
        });
    }

    /// How much is there.
    pub fn held(&self) -> Held {
        let seconds = self.history.oldest().zip(self.history.newest());
        Held { sessions: self.known.count(), seconds, ..self.held }
    }

    /// The sessions that match, put together, most in the middle window first, at most so many; and
    /// how many more there are.
    pub fn talkers(
        &self,
        grouping: Grouping,
        at: Moment,
        query: &Query,
        limit: usize,
    ) -> (Vec<Talker>, usize) {
        let of = (&self.history, &self.known, &self.names);
        sums::talkers(of, grouping, at, (query, limit))
    }

    /// The questions to DNS that match, put together, most first. Of a query that tells about
    /// sessions what no question has, none matches.
    pub fn asked(&self, grouping: DnsGrouping, at: Moment, query: &Query) -> Vec<Asked> {
        dns::asked(&self.history, grouping, at, query)
    }

    /// Bytes of each of the last so many seconds up to a moment, oldest first.
    pub fn bytes_by_second(&self, at: Moment, seconds: usize) -> Vec<u64> {
        let length = i64::try_from(seconds).unwrap_or(i64::MAX);
        let mut bytes = vec![0; seconds];
        for second in self.history.since(at, length) {
            let place = usize::try_from(length - 1 - (at.0 - second.number));
            if let Some(bytes) = place.ok().and_then(|place| bytes.get_mut(place)) {
                *bytes = second.bytes;
            }
        }
        bytes
    }

    /// The packets still held of the sessions that match, in the order in which they came.
    pub fn packets<'t>(&'t self, query: &'t Query) -> impl Iterator<Item = PacketView<'t>> {
        let mut keyer = Keyer::new(false);
        self.memory.packets(&self.link_types).filter(move |packet| {
            let decoded = decode(packet.link_type, packet.data, packet.original_len);
            let key = keyer.key(packet.timestamp, &decoded);
            self.known.of_key(&key).is_some_and(|session| query.matches(session, None))
        })
    }
}

/// Each session in one row a second, as [`Table::cut`] writes them.
fn table(limits: &Limits, seed: u64) -> Table {
    let config = Config { session_count_max: limits.sessions, slice_ns: None, ..Config::default() };
    Table::new(config, seed)
}
