//! Packets in, seconds out: the state that everything shown is made of.

use std::sync::Arc;

use capture::{Interface, Packet};
use format::session_row::{SessionRow, SourceNames};
use query::Query;
use session::{Config, Keyer, PacketView, Table};
use units::{NANOS_PER_SECOND, Timestamp};
use wire::{Decoded, LinkType, decode};

use crate::dns::{self, Asked, Dns, DnsGrouping, Ended};
use crate::history::{Entry, History, Moment, Second, WINDOWS};
use crate::known::Known;
use crate::memory::Memory;
use crate::names::Names;
use crate::sums::{self, Grouping, Talker};

/// Packets so much before the present second belong to another time: a clock was set back, or
/// another file begins.
const BACK_MAX: i64 = 60;
/// Bytes for the names of live sessions. Each second their rows have a copy of them.
const NAMES_BYTES: usize = 32 << 20;
/// Bytes of known sessions for each line of history.
const KNOWN_BYTES_A_LINE: usize = 128;

/// Limits of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of packets that are kept.
    pub packet_bytes: usize,
    /// Lines of history: a session in a second is one of 32 bytes. The sessions themselves have
    /// 128 bytes for each line.
    pub lines: usize,
    /// Sessions at a time.
    pub sessions: usize,
}

/// 64 MiB of packets, about as much of history, four times as much of its sessions; 2^18 sessions
/// of half a KiB at a time.
impl Default for Limits {
    fn default() -> Self {
        Self { packet_bytes: 64 << 20, lines: 1 << 21, sessions: 1 << 18 }
    }
}

impl Limits {
    fn config(&self) -> Config {
        Config {
            session_count_max: self.sessions,
            slice_ns: None,
            names_bytes_max: NAMES_BYTES,
            piece_bytes_max: NAMES_BYTES,
            ..Config::default()
        }
    }

    /// Bytes of memory that [`Talkers`] take at most, as requested of the allocator, whatever the
    /// packets are; while something is asked, as much as the known sessions again.
    pub fn memory_bytes_max(&self) -> usize {
        let known = self.lines.saturating_mul(KNOWN_BYTES_A_LINE);
        let lines = self.lines.saturating_mul(3 * size_of::<Entry>());
        // Rows of all sessions, with their names, until they are absorbed.
        let rows = self.sessions * 2 * size_of::<SessionRow>() + 2 * NAMES_BYTES;
        let table = self.config().memory_bytes_max();
        let dns = Dns::MEMORY_BYTES_MAX + Names::MEMORY_BYTES_MAX;
        table + rows + known + lines + dns + Memory::bytes_max(self.packet_bytes)
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
    /// Earlier seconds were there, and went because memory was full.
    pub has_forgotten: bool,
    /// Times at which everything began anew because time went back.
    pub restarts: u64,
    /// Questions to DNS that are in no second because there were too many.
    pub questions_left_out: u64,
    /// Sessions that are not in the second in which they were, because there were too many.
    pub sessions_left_out: u64,
}

impl Held {
    /// The last second that can be asked about.
    pub fn newest(&self) -> Option<Moment> {
        self.seconds.map(|(_, newest)| newest)
    }
}

/// The traffic of the last while, second by second.
#[derive(Debug)]
pub struct Talkers {
    limits: Limits,
    seed: u64,
    interfaces: Vec<Interface>,
    link_types: Vec<LinkType>,
    /// What rows of each interface know of their source.
    sources: Vec<Arc<SourceNames>>,
    table: Table,
    memory: Memory,
    history: History,
    known: Known,
    names: Names,
    dns: Dns,
    /// Since when packets are seen: by who looks, or by the first packet.
    begun: Option<Timestamp>,
    /// The latest time that is known to have come.
    latest: Timestamp,
    /// Of the second that is not over.
    open: Option<i64>,
    rows: Vec<SessionRow>,
    /// Of the second that is not over.
    entries: Vec<Entry>,
    exchanges: Ended,
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
            sources: Vec::new(),
            table: table(&limits, seed),
            memory: Memory::new(limits.packet_bytes),
            history: History::new(limits.lines),
            known: Known::default(),
            names: Names::default(),
            dns: Dns::default(),
            begun: None,
            latest: Timestamp(i64::MIN),
            open: None,
            rows: Vec::new(),
            entries: Vec::new(),
            exchanges: Ended::default(),
            held: Held::default(),
        }
    }

    /// From this time on every packet is seen, whenever the first one comes.
    pub fn begin(&mut self, now: Timestamp) {
        self.begun = Some(now);
    }

    /// How much of each of [`WINDOWS`] that end with a moment was seen, in nanoseconds: less than
    /// the window where looking, or the source, began or ended inside of it, and at least a second.
    pub fn seen_ns(&self, at: Moment) -> [i64; 3] {
        let Moment(oldest) =
            self.history.oldest().filter(|_| self.held.has_forgotten).unwrap_or(Moment(i64::MIN));
        let oldest_ns = oldest.saturating_mul(NANOS_PER_SECOND);
        let end_ns = at.end().0.min(self.latest.0);
        WINDOWS.map(|seconds| {
            let window_ns = at.end().0.saturating_sub(seconds * NANOS_PER_SECOND);
            let begun_ns =
                self.begun.map_or(i64::MIN, |begun| begun.0).max(oldest_ns).max(window_ns);
            end_ns.saturating_sub(begun_ns).clamp(NANOS_PER_SECOND, seconds * NANOS_PER_SECOND)
        })
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
        self.sources.extend(new.clone().map(|interface| Arc::new(source(&interface.name))));
        self.interfaces.extend(new.cloned());
        for packet in packets {
            let second = packet.timestamp.unix_seconds();
            self.begun.get_or_insert(packet.timestamp);
            self.latest = self.latest.max(packet.timestamp);
            if self.open.is_none_or(|open| second > open || second < open - BACK_MAX) {
                self.open_second(second);
            }
            self.held.packets += 1;
            self.held.bytes += u64::from(packet.original_len);
            if !self.memory.push(&packet) {
                self.look();
                self.memory.turn();
                assert!(self.memory.push(&packet), "an empty chunk has space for any packet");
            }
        }
        self.look();
    }

    /// No packet from before this time will come: the seconds up to it are over.
    pub fn advance(&mut self, now: Timestamp) {
        self.latest = self.latest.max(now);
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
        (self.begun, self.latest) = (None, Timestamp(i64::MIN));
        self.table = table(&self.limits, self.seed);
        self.history = History::new(self.limits.lines);
        self.known = Known::default();
        self.rows.clear();
        self.entries.clear();
        self.dns = Dns::default();
    }

    /// Looks at the packets since the last time.
    fn look(&mut self) {
        let fresh = self.memory.fresh(&self.link_types);
        let look = |packet: &PacketView<'_>, decoded: &Decoded<'_>| {
            self.dns.take(packet.timestamp, decoded, &mut self.names, &mut self.exchanges);
        };
        self.table.push_each(fresh, look, &mut self.rows);
        self.absorb();
    }

    /// Makes entries of the present second of the rows there are. Where there is no space for a
    /// session the oldest seconds go first; if it is the present one that is too large, the session
    /// is left out.
    fn absorb(&mut self) {
        let known_bytes_max = self.limits.lines.saturating_mul(KNOWN_BYTES_A_LINE);
        for mut row in self.rows.drain(..) {
            row.source = self.sources.get(row.interface.place()).cloned();
            let bytes = row.memory_bytes() + Known::SESSION_BYTES;
            let (known, has_forgotten) = (&mut self.known, &mut self.held.has_forgotten);
            while known.memory_bytes() + bytes > known_bytes_max
                && self.history.forget_oldest(|gone| known.forget(gone))
            {
                *has_forgotten = true;
            }
            let has_room = known.memory_bytes() + bytes <= known_bytes_max || known.has(&row);
            if has_room && self.entries.len() < self.limits.lines.max(1) {
                self.entries.push(known.take(row));
            } else {
                self.held.sessions_left_out += 1;
            }
        }
    }

    fn close(&mut self) {
        let Some(number) = self.open.take() else { return };
        self.look();
        self.table.cut(&mut self.rows);
        self.absorb();
        self.dns.expire(Moment(number).end(), &mut self.exchanges);
        let known = &mut self.known;
        let entries = core::mem::take(&mut self.entries);
        let bytes = entries.iter().flat_map(|entry| entry.bytes).fold(0, u64::saturating_add);
        let second = Second { number, bytes, entries, exchanges: self.exchanges.take() };
        let has_forgotten = &mut self.held.has_forgotten;
        self.history.push(second, |gone| {
            *has_forgotten = true;
            known.forget(gone);
        });
    }

    /// How much is there.
    pub fn held(&self) -> Held {
        let seconds = self.history.oldest().zip(self.history.newest());
        let questions_left_out = self.exchanges.left_out;
        Held { sessions: self.known.count(), seconds, questions_left_out, ..self.held }
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
        self.talkers_of(grouping, at, &|session| query.matches(session, &[]), limit)
    }

    /// The same of the sessions that are selected by what is known of them.
    pub fn talkers_of(
        &self,
        grouping: Grouping,
        at: Moment,
        selects: &dyn Fn(&SessionRow) -> bool,
        limit: usize,
    ) -> (Vec<Talker>, usize) {
        let of = (&self.history, &self.known, &self.names);
        sums::talkers(of, grouping, at, (selects, limit))
    }

    /// The questions to DNS that match, put together, most first. Of a query that asks about
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
            self.known.of_key(&key).is_some_and(|session| query.matches(session, &[]))
        })
    }
}

/// The name of an interface, if it has one.
fn source(name: &str) -> SourceNames {
    let interface = (!name.is_empty()).then(|| name.to_owned());
    SourceNames { interface, recording: None }
}

/// Each session in one row a second, as [`Table::cut`] writes them.
fn table(limits: &Limits, seed: u64) -> Table {
    Table::new(limits.config(), seed)
}
