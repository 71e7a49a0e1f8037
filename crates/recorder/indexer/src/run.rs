//! What the worker holds of one run of stripes: its sessions, and what their segment says so far.

use std::collections::BTreeMap;

use bytes::Bytes;
use core::mem;
use core::ops::ControlFlow;

use format::directory::Gap;
use format::head::{StripeId, VolumeId};
use format::piece::Packets;
use format::session_row::PieceId;
use index::{Columns, Interface, Segment, SegmentMeta};
use session::{Config, PacketView, SessionRow, Table};
use units::number::to_u64;
use units::{InterfaceId, Timestamp};

use crate::message::{Before, Closing, GaveWay, Taken};
use crate::unite::unite;

/// Most gaps and interfaces that a segment lists: a file may describe any number of them.
const LIST_MAX: usize = 65_536;
/// A table for stripes that come late has this share of the sessions of the live one.
const LATE_SHARE: usize = 8;

/// How tables are made; `None` where segments have no rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sessions {
    pub(crate) config: Config,
    pub(crate) hash_seed: u64,
}

impl Sessions {
    pub(crate) fn table(&self) -> Table {
        Table::new(self.config, self.hash_seed)
    }

    /// The same with a share of the memory: for stripes that come late, or are of the past.
    pub(crate) fn late(self) -> Self {
        Self { config: late(&self.config), ..self }
    }
}

/// The same with a share of the memory.
pub(crate) fn late(config: &Config) -> Config {
    Config {
        session_count_max: (config.session_count_max / LATE_SHARE).max(1),
        head_bytes_max: config.head_bytes_max / LATE_SHARE,
        names_bytes_max: config.names_bytes_max / LATE_SHARE,
        piece_bytes_max: config.piece_bytes_max / LATE_SHARE,
        ..*config
    }
}

/// A run of stripes: the sessions that are alive, and the segment that is being filled.
#[derive(Debug)]
pub(crate) struct Run {
    sessions: Option<Sessions>,
    table: Option<Table>,
    /// Of stripes that come behind later ones: to the live table their packets would be too old.
    late: Option<Table>,
    unindexed: u64,
    unread: u64,
    times: Times,
    gaps: Vec<Gap>,
    interfaces: BTreeMap<InterfaceId, Interface>,
    /// What the recording is called, as its pieces say.
    recording: Option<String>,
    /// Rows of sessions and slices that have ended so far.
    rows: Vec<SessionRow>,
    /// The same of `late`.
    late_rows: Vec<SessionRow>,
    /// Memory of both, as far as it is counted: so many of `rows` and of `late_rows`.
    row_bytes: usize,
    counted: [usize; 2],
}

/// A piece as it came.
pub(crate) struct PieceOf<'a> {
    pub(crate) stripe: StripeId,
    pub(crate) column: u8,
    pub(crate) walk: Packets<'a>,
    pub(crate) is_late: bool,
    pub(crate) without_names: bool,
}

impl Run {
    pub(crate) fn new(sessions: Option<Sessions>) -> Self {
        Self {
            sessions,
            table: None,
            late: None,
            unindexed: 0,
            unread: 0,
            times: Times::NONE,
            gaps: Vec::new(),
            interfaces: BTreeMap::new(),
            recording: None,
            rows: Vec::new(),
            late_rows: Vec::new(),
            row_bytes: 0,
            counted: [0; 2],
        }
    }

    /// Sessions of a segment that was made before may go on. A file that cannot be read is as good
    /// as none: they begin anew.
    pub(crate) fn resume(&mut self, before: &Before, file: Bytes) {
        let Some(sessions) = &self.sessions else { return };
        let Ok(segment) = Segment::open(file) else { return };
        let meta = segment.meta();
        if (meta.epoch, meta.vlan_in_key) != (before.epoch, sessions.config.vlan_in_key) {
            return;
        }
        let table = self.table.get_or_insert_with(|| sessions.table());
        let columns = Columns::All.and(&[]);
        let columns: Vec<&str> =
            columns.into_iter().filter(|name| !name.starts_with("piece_")).collect();
        let all = Timestamp::MIN..=Timestamp::MAX;
        let before = session::Before { segment: before.number, at: before.at };
        let read = segment.rows(Columns::Named(&columns), &all, &mut |_, row| {
            table.resume(row, before);
            ControlFlow::Continue(())
        });
        // What comes before a damaged place counts.
        drop(read);
    }

    /// Gives the packets of one piece rows; without a table they stay without. `taken` counts.
    pub(crate) fn take(&mut self, piece: PieceOf<'_>, taken: &mut Taken) {
        let PieceOf { stripe, column, walk, is_late, without_names } = piece;
        let before = (self.times.packets, self.unread);
        let id = PieceId { sequence: stripe.sequence, sub: stripe.sub, column };
        let mut views = Views { walk, piece: id, times: self.times, malformed: None };
        if let Some(sessions) = &self.sessions {
            let (table, rows) = if is_late {
                let late = self.late.get_or_insert_with(|| sessions.late().table());
                (late, &mut self.late_rows)
            } else {
                (self.table.get_or_insert_with(|| sessions.table()), &mut self.rows)
            };
            table.find_names(!without_names);
            let before = table.stats();
            table.push_all(&mut views, rows);
            let after = table.stats();
            self.unread += after.unread - before.unread;
            taken.gave_way.add(GaveWay::between(&before, &after));
        } else {
            self.unindexed += to_u64(views.by_ref().count());
        }
        let Views { walk, times, malformed, .. } = views;
        self.times = times;
        let room = LIST_MAX.saturating_sub(self.gaps.len());
        self.gaps.extend(walk.gaps().iter().take(room).cloned());
        for known in walk.interfaces() {
            if self.recording.is_none() {
                self.recording.clone_from(&known.recording);
            }
            if self.interfaces.len() < LIST_MAX {
                self.interfaces.entry(known.id).or_insert_with(|| Interface {
                    id: known.id,
                    link_type: known.link_type,
                    name: known.name.clone(),
                });
            }
        }
        taken.packets += self.times.packets - before.0;
        taken.unread += self.unread - before.1;
        taken.malformed = taken.malformed.or(malformed.map(|offset| (column, offset)));
        self.note_rows(taken);
    }

    fn note_rows(&mut self, taken: &mut Taken) {
        for (rows, counted) in [&self.rows, &self.late_rows].into_iter().zip(&mut self.counted) {
            let new = rows.get(*counted..).unwrap_or_default();
            self.row_bytes += new.iter().map(SessionRow::memory_bytes).sum::<usize>();
            *counted = rows.len();
        }
        let rows = self.counted.iter().sum::<usize>();
        (taken.rows, taken.row_bytes) = (to_u64(rows), to_u64(self.row_bytes));
    }

    /// The segment ends: the rows that have ended, and how the others and its file are made.
    pub(crate) fn end(&mut self, closing: &Closing, volume: VolumeId) -> Ending<'_> {
        let missed = closing.missed_packets;
        let meta = SegmentMeta {
            time_min: self.times.min.min(closing.times.min),
            time_max: self.times.max.max(closing.times.max),
            packets: self.times.packets.saturating_add(missed),
            unindexed_packets: self.unindexed.saturating_add(missed),
            unread_packets: mem::take(&mut self.unread),
            gaps: mem::take(&mut self.gaps),
            interfaces: mem::take(&mut self.interfaces).into_values().collect(),
            recording: self.recording.take(),
            vlan_in_key: self.sessions.is_some_and(|sessions| sessions.config.vlan_in_key),
            left_out: closing.left_out.clone(),
            ..SegmentMeta::new(volume, closing.epoch, closing.first, closing.last)
        };
        (self.times, self.unindexed) = (Times::NONE, 0);
        (self.row_bytes, self.counted) = (0, [0; 2]);
        let mut ended = mem::take(&mut self.rows);
        if let (Some(mut late), Some(sessions)) = (self.late.take(), &self.sessions) {
            let mut rows = mem::take(&mut self.late_rows);
            late.finish(&mut rows);
            let table = self.table.get_or_insert_with(|| sessions.table());
            unite((&mut rows, &mut ended), table, (&sessions.config, meta.time_min));
            ended.extend(rows);
        }
        Ending { ended, table: &mut self.table, meta }
    }
}

/// A segment that ends.
pub(crate) struct Ending<'a> {
    /// Rows in any order.
    pub(crate) ended: Vec<SessionRow>,
    /// Has the others.
    pub(crate) table: &'a mut Option<Table>,
    pub(crate) meta: SegmentMeta,
}

/// How many packets there were, and from when to when.
#[derive(Clone, Copy, Debug)]
struct Times {
    packets: u64,
    min: Timestamp,
    max: Timestamp,
}

impl Times {
    const NONE: Self = Self { packets: 0, min: Timestamp::MAX, max: Timestamp::MIN };
}

/// The packets of a piece as the session table sees them.
struct Views<'a> {
    walk: Packets<'a>,
    piece: PieceId,
    times: Times,
    /// Where a block lies that is none.
    malformed: Option<u32>,
}

impl<'a> Iterator for Views<'a> {
    type Item = PacketView<'a>;

    /// Handed out through memory, a view would be read in other words than it was written in, and
    /// wait for them: a fifth of what a small packet costs here.
    #[expect(clippy::inline_always, reason = "the compiler leaves it a call")]
    #[inline(always)]
    fn next(&mut self) -> Option<PacketView<'a>> {
        let packet = match self.walk.next()? {
            Ok(packet) => packet,
            Err(error) => {
                self.malformed = Some(u32::try_from(error.offset).unwrap_or(u32::MAX));
                return None;
            }
        };
        let interface = self.walk.interfaces().get(packet.interface)?;
        let times = &mut self.times;
        times.packets += 1;
        times.min = times.min.min(packet.timestamp);
        times.max = times.max.max(packet.timestamp);
        let (begin, end) = packet.span();
        Some(PacketView {
            timestamp: packet.timestamp,
            interface: interface.id,
            link_type: interface.link_type,
            original_len: packet.original_len,
            data: packet.data,
            piece: self.piece,
            begin,
            end,
        })
    }
}
