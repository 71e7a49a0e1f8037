//! Which packets of which pieces belong to the rows selected.
//!
//! A row says its key, its pieces, and where its first packet begins and its last ends in each. So
//! its packets are those with its key between these places: a tuple that was used again splits here
//! exactly where the session table split it, because a key has one live session at a time.

use core::ops::{Range, RangeInclusive};
use std::collections::BTreeMap;

use format::session_row::{PieceId, PieceSpan, SessionRow};
use packet_output::SessionStart;
use session::Key;
use units::{Sequence, Timestamp};
use wire::FiveTuple;

use crate::due::Due;
use crate::identity::{Identity, RowId};

/// A row's packets in one piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Interval {
    key: Key,
    /// First byte of the first packet's block.
    begin: u32,
    /// End of the last one's.
    end: u32,
    row: u64,
    vlan_in_key: bool,
}

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    id: RowId,
    pub(crate) session: Identity,
    tuple: FiveTuple,
}

impl Owner {
    pub(crate) fn new(id: RowId, slice: &SessionRow) -> Self {
        let session = Identity::of(slice);
        Self { id, session, tuple: slice.tuple }
    }

    /// What an output of the session alone is named by.
    pub(crate) fn start(&self) -> SessionStart {
        let (id, start) = (self.id.to_string(), self.session.start());
        SessionStart { id, tuple: self.tuple, start }
    }

    /// What is said of a packet with this tuple.
    pub(crate) fn comment(&self, tuple: &FiveTuple) -> String {
        let is_orig = (self.tuple.orig, self.tuple.orig_port) == (tuple.orig, tuple.orig_port);
        format!("session {} from {}", self.id, if is_orig { "originator" } else { "responder" })
    }
}

/// A row that is being extracted.
#[derive(Debug)]
struct Row {
    owner: Owner,
    expected: u64,
    found: u64,
    pieces_left: usize,
    /// A piece could not be read whole, so that fewer packets are no surprise.
    is_cut: bool,
}

/// The rows selected, by piece.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    pieces: BTreeMap<PieceId, Vec<Interval>>,
    /// Their slots.
    pub(crate) due: Due,
    intervals: usize,
    rows: BTreeMap<u64, Row>,
    next_row: u64,
}

/// Pieces that are due, all that are wanted of each slot.
#[derive(Debug, Default)]
pub(crate) struct DuePieces {
    pub(crate) pieces: BTreeMap<PieceId, PieceMatch>,
    /// By time: no packet wanted of the slot is earlier.
    pub(crate) slots: Vec<(Timestamp, Sequence)>,
}

impl Matching {
    /// Adds a row's pieces in `slots`, but for those below `tail`; says how many those are.
    pub(crate) fn add(
        &mut self,
        owner: Owner,
        slice: &SessionRow,
        vlan_in_key: bool,
        (slots, tail): (&RangeInclusive<Sequence>, Sequence),
    ) -> u64 {
        let key = Key::of_slice(slice, vlan_in_key);
        let row = self.next_row;
        self.next_row += 1;
        let (mut retired, mut left_out) = (0, 0);
        for &PieceSpan { piece, begin, end } in &slice.pieces {
            if piece.sequence < tail || !slots.contains(&piece.sequence) {
                retired += u64::from(slots.contains(&piece.sequence));
                left_out += 1;
                continue;
            }
            self.due.add(piece.sequence, slice.start);
            self.intervals += 1;
            self.pieces.entry(piece).or_default().push(Interval {
                key,
                begin,
                end,
                row,
                vlan_in_key,
            });
        }
        let expected = slice.orig.packets.saturating_add(slice.resp.packets);
        let pieces_left = slice.pieces.len() - left_out;
        if pieces_left > 0 {
            let is_cut = left_out > 0;
            self.rows.insert(row, Row { owner, expected, found: 0, pieces_left, is_cut });
        }
        retired
    }

    /// Pieces that rows have packets in and that were not taken out.
    pub(crate) fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// Places of rows in pieces that were not taken out.
    pub(crate) fn interval_count(&self) -> usize {
        self.intervals
    }

    /// Takes out the slots that may have packets before `time`, the earliest first, up to about
    /// `most` pieces.
    pub(crate) fn take_before(&mut self, time: Timestamp, most: usize) -> DuePieces {
        let mut due = DuePieces::default();
        while due.pieces.len() < most
            && let Some((earliest, sequence)) = self.due.take_before(time)
        {
            let first = PieceId { sequence, sub: 0, column: 0 };
            let last = PieceId { sequence, sub: u16::MAX, column: u8::MAX };
            for (piece, intervals) in self.pieces.extract_if(first..=last, |_, _| true) {
                self.intervals -= intervals.len();
                due.pieces.insert(piece, PieceMatch::new(intervals));
            }
            due.slots.push((earliest, sequence));
        }
        due
    }

    /// Whose the packets of a row are, until the row is done.
    pub(crate) fn owner(&self, row: u64) -> &Owner {
        &self.rows.get(&row).expect("a row stays until its last piece").owner
    }

    /// A piece is done; says how many packets are missing of the rows that are done with it.
    pub(crate) fn done(&mut self, piece: PieceMatch, is_cut: bool) -> u64 {
        let mut missing = 0_u64;
        for (interval, found) in piece.intervals.into_iter().zip(piece.found) {
            let row = self.rows.get_mut(&interval.row).expect("a row stays until its last piece");
            row.found += found;
            row.is_cut |= is_cut;
            row.pieces_left -= 1;
            if row.pieces_left == 0 {
                if !row.is_cut {
                    missing = row.expected.saturating_sub(row.found).saturating_add(missing);
                }
                self.rows.remove(&interval.row);
            }
        }
        missing
    }
}

/// What is wanted of one piece.
#[derive(Debug)]
pub(crate) struct PieceMatch {
    /// By key, then place.
    intervals: Vec<Interval>,
    found: Vec<u64>,
    /// Bytes of the body that hold all of it.
    hull: Range<u32>,
}

impl PieceMatch {
    fn new(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable();
        let begin = intervals.iter().map(|interval| interval.begin).min().unwrap_or(0);
        let end = intervals.iter().map(|interval| interval.end).max().unwrap_or(0);
        let found = vec![0; intervals.len()];
        Self { intervals, found, hull: begin..end }
    }

    /// Whether keys have VLAN ids: all rows of a piece are of one recording.
    pub(crate) fn vlan_in_key(&self) -> bool {
        self.intervals.first().is_some_and(|interval| interval.vlan_in_key)
    }

    /// Bytes of the body that hold all of it, ascending, not overlapping. Each range begins with
    /// the block of a packet.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        let mut all: Vec<Range<u32>> =
            self.intervals.iter().map(|interval| interval.begin..interval.end).collect();
        all.sort_unstable_by_key(|range| range.start);
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// Whether any row has packets around here: others need not be decoded.
    pub(crate) fn covers(&self, begin: u32) -> bool {
        self.hull.contains(&begin)
    }

    /// The row that has this packet, whose block begins here; counts it.
    pub(crate) fn takes(&mut self, key: &Key, begin: u32) -> Option<u64> {
        let behind =
            self.intervals.partition_point(|other| (&other.key, other.begin) <= (key, begin));
        let at = behind.checked_sub(1)?;
        let found = self.intervals.get(at)?;
        if found.key != *key || begin >= found.end {
            return None;
        }
        *self.found.get_mut(at).expect("a count for each interval") += 1;
        Some(found.row)
    }
}
