//! What a segment has no rows of, because the indexer had no time for these stripes: their rows are
//! made when somebody asks, and are rows of the sessions that the segment has others of.
//!
//! A session that has rows in the segment goes on in them, by the rules of a table that had seen
//! all of it: a row begins behind the first packet of the session, and not longer after its
//! packets, or before them, than it may be silent. Of the segment's own rows some that say that
//! their session is over are wrong then. Sessions that go on from segments before are known to who
//! makes the rows. One that begins in such a stripe and goes on behind it, in the segment or in the
//! next one, is two: the index has written down when the other one began. Which these are is known,
//! and said ([`Around::is_split`]).

use core::ops::ControlFlow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use format::head::StripeId;
use format::session_row::State;
use index::{Columns, LeftOut, Segment};
use session::{Config, Key, SessionRow};
use units::Timestamp;
use wire::{FiveTuple, Protocol};

/// So many sessions of a segment are known, some 200 bytes each; rows of others are of sessions by
/// themselves.
const WHOLES_MAX: usize = 1 << 18;
/// The columns that are read, besides those that tell sessions apart.
const FURTHER: [&str; 5] =
    ["continues", "history", "piece_sequences", "piece_subs", "piece_columns"];

/// When a session began, and in which VLANs: with the ends, what it is known by.
type Known = (Timestamp, [Option<u16>; 2]);

/// A session, as far as its segment has rows of it.
#[derive(Clone, Debug)]
struct Whole {
    session_start: Timestamp,
    vlan: [Option<u16>; 2],
    start: Timestamp,
    end: Timestamp,
    /// As its first row has it.
    tuple: FiveTuple,
    /// Rows that say that it is over.
    last: Vec<u64>,
    /// It begins with a SYN: none of its packets came before.
    is_from_syn: bool,
}

impl Whole {
    /// Nanoseconds without a packet between it and a row.
    fn distance(&self, row: &SessionRow) -> i64 {
        row.start.since(self.end).max(self.start.since(row.end)).max(0)
    }
}

/// Stripes of which no rows are to be made.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Those that have rows.
    pub indexed: BTreeSet<StripeId>,
    /// Those that shall have none.
    pub left_out: Vec<LeftOut>,
}

impl Covered {
    /// Whether it is one of them.
    pub fn has(&self, stripe: StripeId) -> bool {
        self.indexed.contains(&stripe) || self.left_out.iter().any(|left| left.contains(stripe))
    }
}

/// What a segment has rows of.
#[derive(Debug)]
pub struct Around {
    vlan_in_key: bool,
    /// Every piece that was indexed has a row that names it.
    pub covered: Covered,
    wholes: BTreeMap<Key, Vec<Whole>>,
    /// Of sessions that have further rows: with what they began as, how they are known.
    united: BTreeMap<(Key, Timestamp), Option<Known>>,
    /// Rows of the segment whose sessions are not over, although they say so.
    pub gone_on: BTreeSet<u64>,
    /// When sessions begin in the next segment that may have begun in this one.
    behind: BTreeMap<Key, Vec<Timestamp>>,
    /// Sessions that began before the index's rows of them say, by what the made rows say.
    split: BTreeSet<(Key, Timestamp)>,
    edges: Edges,
}

/// Of a segment where one beside it has no rows: its first and its last time. Rows of each are made
/// by themselves, so sessions that have packets in both are several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Edges {
    /// Its first time, where the segment in front has no rows.
    pub first: Option<Timestamp>,
    /// Its last time, where the next one has none.
    pub last: Option<Timestamp>,
}

impl Edges {
    /// Whether packets of a session may lie beyond them.
    fn may_cut(&self, row: &SessionRow) -> bool {
        let timeout = |is_over| silence_ns(row.tuple.proto, is_over);
        let is_begun = row.start == row.session_start && !row.history.is_from_syn();
        let is_over = matches!(row.state, State::Sf | State::Rej | State::Rsto | State::Rstr);
        self.first.is_some_and(|first| is_begun && row.start.since(first) <= timeout(false))
            || self.last.is_some_and(|last| last.since(row.end) <= timeout(is_over))
    }
}

/// How long a session may be silent.
fn silence_ns(proto: Protocol, is_over: bool) -> i64 {
    Config::default().timeout_ns(proto, is_over).unwrap_or(i64::MAX)
}

impl Around {
    /// Reads the rows of a segment.
    pub fn of(segment: &Segment) -> index::Result<Self> {
        let mut around = Self {
            vlan_in_key: segment.meta().vlan_in_key,
            covered: Covered {
                indexed: BTreeSet::new(),
                left_out: segment.meta().left_out.clone(),
            },
            wholes: BTreeMap::new(),
            united: BTreeMap::new(),
            gone_on: BTreeSet::new(),
            behind: BTreeMap::new(),
            split: BTreeSet::new(),
            edges: Edges::default(),
        };
        let columns = Columns::Named(&Columns::OF_SESSION).and(&FURTHER);
        let mut count = 0;
        segment.rows(
            Columns::Named(&columns),
            &(Timestamp::MIN..=Timestamp::MAX),
            &mut |number, row| {
                let pieces = row.pieces.iter().map(|span| span.piece);
                let stripes = pieces.map(|it| StripeId { sequence: it.sequence, sub: it.sub });
                around.covered.indexed.extend(stripes);
                if count < WHOLES_MAX {
                    count += usize::from(around.add(number, &row));
                }
                ControlFlow::Continue(())
            },
        )?;
        Ok(around)
    }

    /// Reads what the next segment takes for new.
    pub fn look_behind(&mut self, next: &Segment) -> index::Result<()> {
        let columns = Columns::Named(&Columns::OF_SESSION).and(&["history"]);
        let mut left = WHOLES_MAX;
        next.rows(Columns::Named(&columns), &(Timestamp::MIN..=Timestamp::MAX), &mut |_, row| {
            if row.start == row.session_start && !row.history.is_from_syn() {
                let key = Key::of_slice(&row, self.vlan_in_key);
                self.behind.entry(key).or_default().push(row.start);
                left -= 1;
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(())
    }

    /// Takes note of segments without rows beside this one.
    pub fn set_edges(&mut self, edges: Edges) {
        self.edges = edges;
    }

    /// Takes a row of the segment; says whether it is the first one of its session.
    fn add(&mut self, number: u64, row: &SessionRow) -> bool {
        let wholes = self.wholes.entry(Key::of_slice(row, self.vlan_in_key)).or_default();
        let SessionRow { session_start, vlan, start, end, tuple, .. } = *row;
        let known = wholes
            .iter()
            .position(|whole| whole.session_start == session_start && (whole.vlan == vlan));
        let at = known.unwrap_or(wholes.len());
        if known.is_none() {
            let (last, is_from_syn) = (Vec::new(), row.history.is_from_syn());
            wholes.push(Whole { session_start, vlan, start, end, tuple, last, is_from_syn });
        }
        if let Some(whole) = wholes.get_mut(at) {
            (whole.start, whole.end) = (whole.start.min(start), whole.end.max(end));
            whole.last.extend((!row.continues).then_some(number));
        }
        known.is_none()
    }

    /// Makes the next rows, in the order of their start, those of the sessions that they are of.
    pub fn unite(&mut self, rows: &mut [SessionRow]) {
        for row in rows {
            let key = Key::of_slice(row, self.vlan_in_key);
            let (began, goes_on) = (row.session_start, row.continues);
            let known = self.united.get(&(key, began)).copied();
            let session = known.unwrap_or_else(|| self.session_of(&key, row));
            if let Some((session_start, vlan)) = session {
                // None of them is behind all others for certain.
                (row.session_start, row.vlan, row.continues) = (session_start, vlan, true);
                self.extend(&key, row);
            } else if self.goes_on_behind(&key, row) {
                self.split.insert((key, began));
                row.continues = true;
            }
            match self.united.entry((key, began)) {
                Entry::Vacant(place) if goes_on => drop(place.insert(session)),
                Entry::Occupied(place) if !goes_on => drop(place.remove()),
                Entry::Vacant(_) | Entry::Occupied(_) => {}
            }
        }
    }

    /// Whether a row that was made is of a session that goes on as another one, in the segment or
    /// the next.
    pub fn is_split(&self, row: &SessionRow) -> bool {
        let known = (Key::of_slice(row, self.vlan_in_key), row.session_start);
        self.edges.may_cut(row) || self.split.contains(&known)
    }

    /// A table that had seen all of it would have gone on with what the segment takes for new.
    fn goes_on_behind(&self, key: &Key, row: &SessionRow) -> bool {
        let timeout = silence_ns(key.proto(), false);
        let mut wholes = self.wholes.get(key).into_iter().flatten();
        let mut behind = self.behind.get(key).into_iter().flatten();
        wholes.any(|whole| {
            let is_behind = whole.session_start > row.start && !whole.is_from_syn;
            is_behind && whole.distance(row) <= timeout
        }) || behind.any(|start| *start > row.start && start.since(row.end) <= timeout)
    }

    /// The session that a row goes on with.
    fn session_of(&self, key: &Key, row: &SessionRow) -> Option<(Timestamp, [Option<u16>; 2])> {
        if row.start > row.session_start {
            return Some((row.session_start, row.vlan));
        }
        let timeout = silence_ns(key.proto(), false);
        let wholes = self.wholes.get(key).into_iter().flatten();
        let near = wholes
            .filter(|whole| row.start >= whole.session_start && whole.distance(row) <= timeout);
        let nearest = near.min_by_key(|whole| whole.distance(row));
        nearest
            .filter(|_| !row.history.is_from_syn())
            .map(|whole| (whole.session_start, whole.vlan))
    }

    /// A session of the segment has this row, too.
    fn extend(&mut self, key: &Key, row: &mut SessionRow) {
        let wholes = self.wholes.get_mut(key).into_iter().flatten();
        let start = row.session_start;
        for whole in wholes.filter(|whole| whole.session_start == start) {
            (whole.start, whole.end) = (whole.start.min(row.start), whole.end.max(row.end));
            row.turn_to(&whole.tuple);
            self.gone_on.extend(whole.last.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use format::head::VolumeId;
    use format::session_row::{PieceId, PieceSpan};
    use index::{Encoded, SegmentMeta, encode};
    use units::{Epoch, NANOS_PER_SECOND, Sequence};
    use wire::Address;

    use super::*;

    /// A row of one packet of a session that began then, in the piece of its second.
    fn row((proto, port): (Protocol, u16), began_s: i64, at_s: i64, continues: bool) -> SessionRow {
        let second = |at: i64| Timestamp(at * NANOS_PER_SECOND);
        let ends = [1, 2].map(|host| Address::V4([10, 0, 0, host].into()));
        let [orig, resp] = ends;
        let tuple = FiveTuple { orig, resp, orig_port: port, resp_port: 53, proto };
        let mut row = SessionRow::new(tuple, second(began_s));
        (row.start, row.end, row.continues) = (second(at_s), second(at_s), continues);
        row.orig.packets = 1;
        let sequence = u64::try_from(at_s.max(0)).unwrap();
        let piece = PieceId { sequence: Sequence(sequence), sub: 0, column: 0 };
        row.pieces = vec![PieceSpan { piece, begin: 0, end: 4 }];
        row
    }

    fn around(rows: &[SessionRow]) -> Around {
        Around::of(&segment(rows)).unwrap()
    }

    fn segment(rows: &[SessionRow]) -> Segment {
        let stripe = |sequence| StripeId { sequence, sub: 0 };
        let meta = SegmentMeta {
            unindexed_packets: 9,
            ..SegmentMeta::new(
                VolumeId([1; 16]),
                Epoch(1),
                stripe(Sequence(0)),
                stripe(Sequence(999)),
            )
        };
        let Encoded { parquet, .. } = encode(&meta, rows).unwrap();
        Segment::open(parquet.into()).unwrap()
    }

    /// When the sessions of the rows began, in seconds, and which of them go on.
    fn united(around: &mut Around, mut rows: Vec<SessionRow>) -> Vec<(i64, bool)> {
        around.unite(&mut rows);
        let began = |row: &SessionRow| row.session_start.0 / NANOS_PER_SECOND;
        rows.iter().map(|row| (began(row), row.continues)).collect()
    }

    const UDP: (Protocol, u16) = (Protocol::UDP, 1000);
    const TCP: (Protocol, u16) = (Protocol::TCP, 1000);

    #[test]
    fn a_session_goes_on_where_its_table_would_have_had_it() {
        let of_segment =
            [row(UDP, 0, 0, true), row(UDP, 0, 100, false), row((Protocol::UDP, 7), 20, 20, false)];
        let mut around = around(&of_segment);
        let stripes =
            [0, 20, 100].map(|sequence| StripeId { sequence: Sequence(sequence), sub: 0 });
        assert_eq!(around.covered.indexed, stripes.into());
        let rows = vec![
            // Between its rows, and behind them; by itself for as long as it may be silent.
            row(UDP, 50, 50, true),
            row(UDP, 50, 110, false),
            row(UDP, 170, 170, false),
            row(UDP, 231, 231, true),
            // The same session, whatever its other rows are near to.
            row(UDP, 231, 240, false),
        ];
        let expected = [(0, true), (0, true), (0, true), (231, true), (231, false)];
        assert_eq!(united(&mut around, rows), expected);
        // The row that says that it is the last one of that session; the other one is.
        assert_eq!(around.gone_on, BTreeSet::from([2]));
        assert!(around.united.is_empty());
    }

    #[test]
    fn what_begins_is_a_session_by_itself() {
        let mut around = around(&[row(UDP, 50, 50, false), row(TCP, 50, 50, false)]);
        // Before the first packet that the index knows: it goes on there, as another one.
        assert_eq!(united(&mut around, vec![row(UDP, 49, 49, false)]), [(49, true)]);
        assert!(around.is_split(&row(UDP, 49, 49, false)));
        // Longer ago than it may be silent, or of other ends.
        let before = vec![row(UDP, -11, -11, false), row((Protocol::UDP, 7), 49, 49, false)];
        assert_eq!(united(&mut around, before.clone()), [(-11, false), (49, false)]);
        assert!(!before.iter().any(|row| around.is_split(row)));
        let mut syn = row(TCP, 51, 51, false);
        syn.history.push(b'S');
        assert_eq!(united(&mut around, vec![syn]), [(51, false)]);
        assert_eq!(around.gone_on, BTreeSet::new());
        // One that goes on from a segment before is known already, and goes on.
        assert_eq!(united(&mut around, vec![row((Protocol::UDP, 9), 1, 90, false)]), [(1, true)]);
    }

    #[test]
    fn what_the_next_segment_takes_for_new_may_have_begun_in_this_one() {
        let mut syn = row((Protocol::TCP, 7), 100, 100, true);
        syn.history.push(b'S');
        let next = [row(UDP, 100, 100, true), row((Protocol::UDP, 7), 60, 100, false), syn];
        let mut around = around(&[row((Protocol::UDP, 9), 0, 0, false)]);
        around.look_behind(&segment(&next)).unwrap();
        let rows = vec![
            row(UDP, 39, 39, false),
            row(UDP, 40, 40, false),
            // It is known there when it began; it begins there.
            row((Protocol::UDP, 7), 70, 70, false),
            row((Protocol::TCP, 7), 70, 70, false),
        ];
        let expected = [(39, false), (40, true), (70, false), (70, false)];
        assert_eq!(united(&mut around, rows.clone()), expected);
        let split: Vec<bool> = rows.iter().map(|row| around.is_split(row)).collect();
        assert_eq!(split, [false, true, false, false]);
    }

    #[test]
    fn a_connection_of_which_the_index_has_the_syn_began_there() {
        let mut syn = row(TCP, 50, 50, true);
        syn.history.push(b'S');
        let mut around = around(&[syn]);
        assert_eq!(united(&mut around, vec![row(TCP, 49, 49, false)]), [(49, false)]);
        assert!(!around.is_split(&row(TCP, 49, 49, false)));
    }

    #[test]
    fn of_two_sessions_the_nearest_goes_on_and_its_ends_stay_where_they_are() {
        let mut around = around(&[row(UDP, 0, 0, false), row(UDP, 70, 70, false)]);
        let mut back = row(UDP, 75, 75, false);
        (back.tuple, back.orig.packets) = (back.tuple.reversed(), 3);
        let mut rows = vec![row(UDP, 20, 20, false), back];
        around.unite(&mut rows);
        let began: Vec<i64> =
            rows.iter().map(|row| row.session_start.0 / NANOS_PER_SECOND).collect();
        assert_eq!(began, [0, 70]);
        assert_eq!((rows[1].tuple.orig_port, rows[1].resp.packets), (1000, 3));
        assert_eq!(around.gone_on, BTreeSet::from([0, 1]));
    }
}
