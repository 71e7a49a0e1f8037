//! Sessions of stripes that came late: most are parts of sessions whose other packets did not.
//!
//! A table of their own counted them, because to the live one their packets would be too old. They
//! come before their segment ends, so its rows and the live table still have the others: a late
//! session joins the nearest one of its key, by the rules of a table that had seen all of it. One
//! that finds none may go on in the live table later.

use std::collections::BTreeMap;

use session::{Before, Config, Key, Live, SessionRow, Table};
use units::Timestamp;

/// A session that late packets may belong to, as far as the segment has it.
struct Whole {
    session_start: Timestamp,
    start: Timestamp,
    end: Timestamp,
    /// Its first packet was seen to begin it.
    is_begun: bool,
    is_in_table: bool,
}

impl Whole {
    fn of(row: &SessionRow) -> Self {
        let SessionRow { session_start, start, end, .. } = *row;
        let is_begun = row.history.is_from_syn();
        Self { session_start, start, end, is_begun, is_in_table: false }
    }

    fn of_live(live: &Live) -> Self {
        let Live { session_start, latest, is_begun } = *live;
        Self { session_start, start: session_start, end: latest, is_begun, is_in_table: true }
    }

    fn add(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.is_begun |= other.is_begun;
        self.is_in_table |= other.is_in_table;
    }

    /// Nanoseconds without a packet between the two.
    fn distance(&self, late: &Self) -> i64 {
        late.start.since(self.end).max(self.start.since(late.end)).max(0)
    }

    /// Whether the late one may be a part of it, in a segment without packets before `begin`.
    fn may_have(&self, late: &Self, begin: Timestamp) -> bool {
        if late.session_start >= self.session_start {
            return !late.is_begun;
        }
        // Its earlier rows say when it began.
        !self.is_begun && self.session_start >= begin
    }
}

/// What joins: late rows of a key, those that ended in time, and the live session.
struct Parts<'r> {
    late: Vec<&'r mut SessionRow>,
    ended: Vec<&'r mut SessionRow>,
}

/// Makes the rows of late sessions those of the sessions that they are parts of. `begin` is the
/// earliest packet of the segment.
pub(crate) fn unite(
    (late, ended): (&mut [SessionRow], &mut [SessionRow]),
    table: &mut Table,
    (config, begin): (&Config, Timestamp),
) {
    let key = |row: &SessionRow| Key::of_slice(row, config.vlan_in_key);
    let mut keys: BTreeMap<Key, Parts<'_>> = BTreeMap::new();
    late.sort_by_key(|row| row.start);
    for row in late {
        let new = || Parts { late: Vec::new(), ended: Vec::new() };
        keys.entry(key(row)).or_insert_with(new).late.push(row);
    }
    for row in ended {
        if let Some(parts) = keys.get_mut(&key(row)) {
            parts.ended.push(row);
        }
    }
    for (key, mut parts) in keys {
        join(&key, &mut parts, table, (config, begin));
    }
}

fn join(
    key: &Key,
    parts: &mut Parts<'_>,
    table: &mut Table,
    (config, begin): (&Config, Timestamp),
) {
    let mut wholes: Vec<Whole> = Vec::new();
    let live = table.live(key).map(|live| Whole::of_live(&live));
    for whole in parts.ended.iter().map(|row| Whole::of(row)).chain(live) {
        match wholes.iter_mut().find(|known| known.session_start == whole.session_start) {
            Some(known) => known.add(&whole),
            None => wholes.push(whole),
        }
    }
    let Parts { late, ended } = parts;
    for row in late {
        let part = Whole::of(row);
        let near = |whole: &&mut Whole| {
            let timeout = config.timeout_ns(key.proto(), false).unwrap_or(i64::MAX);
            whole.distance(&part) <= timeout && whole.may_have(&part, begin)
        };
        row.continues = true;
        let nearest = wholes.iter_mut().filter(near).min_by_key(|whole| whole.distance(&part));
        let Some(whole) = nearest else {
            table.resume(row.clone(), Before { segment: 0, at: row.end });
            wholes.push(part);
            continue;
        };
        let known_start = whole.session_start;
        whole.add(&part);
        whole.session_start = known_start.min(part.session_start);
        row.session_start = whole.session_start;
        for row in ended.iter_mut().filter(|row| row.session_start == known_start) {
            // None of them is behind all others for certain.
            (row.session_start, row.continues) = (whole.session_start, true);
        }
        if whole.is_in_table {
            table.set_back(key, whole.session_start);
        }
    }
}
