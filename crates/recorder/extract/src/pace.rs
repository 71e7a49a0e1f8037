//! Whether what is looked for is rare: a look finds out before it is over.
//!
//! A look goes over all of the ring by what filters know, to save a search most of its rows. Where
//! filters rule out little, and few sessions are asked for, that costs more than the search: row
//! groups looked into stand for those to come, as they have come since the first that was found.

use index::GROUP_ROWS;
use units::Timestamp;
use units::number::to_u64;

use crate::order::{Order, Rows};

/// A part of a look.
#[derive(Clone, Copy, Debug)]
struct At {
    edge: Timestamp,
    rows: Rows,
    /// Rows that were looked into before.
    seen: u64,
}

/// How far a look is, and what it has cost.
#[derive(Debug)]
pub(crate) struct Pace {
    order: Order,
    /// So many sessions are asked for.
    enough: u64,
    at: At,
    /// Where the first row was found.
    first: Option<At>,
    /// Rows from there on until there were enough sessions.
    search: Option<u64>,
}

impl Pace {
    /// Of a look for so many sessions.
    pub(crate) fn new(order: Order, enough: u64) -> Self {
        let at = At { edge: Timestamp::MIN, rows: Rows::default(), seen: 0 };
        Self { order, enough, at, first: None, search: None }
    }

    /// A part begins with so many rows looked into; no row to come is beyond the edge.
    pub(crate) fn begin(&mut self, edge: Timestamp, rows: Rows, looked_at: u64) {
        self.at = At { edge, rows, seen: looked_at };
    }

    /// The row of this number of the part was found, which makes so many sessions; whether the
    /// search for as many as are asked for costs less than what is left of the look.
    pub(crate) fn is_lost(&mut self, row: u64, sessions: u64, looked_at: u64) -> bool {
        let first = *self.first.get_or_insert(self.at);
        if sessions < self.enough {
            return false;
        }
        let Rows { before, own, all } = self.at.rows;
        let row = if self.order == Order::NewestFirst { own.saturating_sub(row) } else { row };
        // Row groups are looked into as a whole.
        let here =
            before.unwrap_or(0).saturating_add((row + 1).next_multiple_of(to_u64(GROUP_ROWS)));
        let passed = here.saturating_sub(first.rows.before.unwrap_or(0));
        let search = *self.search.get_or_insert(passed);
        let looked_at = looked_at.saturating_sub(first.seen);
        let wide = |one: u64, other: u64| u128::from(one) * u128::from(other);
        wide(search, passed) < wide(looked_at, all.saturating_sub(here))
    }

    /// Sessions that are looked for have no row beyond this; `None` where that says nothing.
    pub(crate) fn edge(&self) -> Option<Timestamp> {
        self.first.and_then(|first| first.rows.before.map(|_| first.edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of ten row groups each, of which every `one_in` has what is looked for, so many times:
    /// row groups looked into until the look is given up.
    fn given_up(order: Order, (one_in, each): (u64, u64), enough: u64) -> Option<u64> {
        let (group, parts) = (to_u64(GROUP_ROWS), 100);
        let mut pace = Pace::new(order, enough);
        let (mut looked_at, mut sessions) = (0, 0);
        for part in 0..parts {
            let before = (part > 0).then_some(part * 10 * group);
            let rows = Rows { before, own: 10 * group, all: parts * 10 * group };
            pace.begin(Timestamp(i64::try_from(part).unwrap()), rows, looked_at);
            for at in (0..10).filter(|at| (part * 10 + at) % one_in == 0) {
                looked_at += group;
                sessions += each;
                let row = if order == Order::NewestFirst { 10 - at } else { at } * group;
                if pace.is_lost(row, sessions, looked_at) {
                    return Some(looked_at / group);
                }
            }
        }
        None
    }

    #[test]
    fn a_look_for_what_is_common_is_given_up_and_others_are_not() {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            assert_eq!(given_up(order, (1, 1000), 5), Some(1));
            assert_eq!(given_up(order, (1, 1), 5), Some(5));
            // All are asked for, or more than there are.
            assert_eq!(given_up(order, (1, 1000), u64::MAX), None);
            assert_eq!(given_up(order, (20, 1), 51), None);
            // Few row groups have one: the rest of the look costs less than a search among all.
            assert_eq!(given_up(order, (20, 1), 5), None);
            assert_eq!(given_up(order, (20, 5), 5), Some(1));
        }
    }

    #[test]
    fn the_edge_is_that_of_the_first_part_with_a_row_unless_that_is_the_first_of_all() {
        let rows = |before| Rows { before, own: 10, all: 30 };
        let mut pace = Pace::new(Order::OldestFirst, 5);
        pace.begin(Timestamp(1), rows(None), 0);
        pace.begin(Timestamp(2), rows(Some(0)), 0);
        assert_eq!(pace.edge(), None);
        pace.is_lost(3, 1, 10);
        pace.begin(Timestamp(3), rows(Some(10)), 10);
        pace.is_lost(3, 2, 20);
        assert_eq!(pace.edge(), Some(Timestamp(2)));
        let mut pace = Pace::new(Order::OldestFirst, 5);
        pace.begin(Timestamp(1), rows(None), 0);
        pace.is_lost(3, 1, 10);
        assert_eq!(pace.edge(), None);
    }
}
