//! In which order the parts of the ring are scanned, and what each knows of those that follow.

use core::ops::RangeInclusive;

use format::head::StripeId;
use units::{Sequence, Timestamp};

use crate::archive::Part;

/// Which parts come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// As they lie in the ring.
    OldestFirst,
    /// The other way round.
    NewestFirst,
    /// By their earliest packets.
    ByTime,
}

/// A part, and what those that follow it in the scan have to do with its times.
pub(crate) struct Placed {
    pub(crate) part: Part,
    pub(crate) edge: Timestamp,
    pub(crate) beyond: Timestamp,
    pub(crate) is_apart: bool,
    /// When the latest packet came of the parts that were recorded before, as far as the directory
    /// says: later than its own where the clock was set back.
    pub(crate) before: Timestamp,
    pub(crate) rows: Rows,
}

/// How many rows a part has, and where they stand in a scan, as far as the directory says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rows {
    /// Of the parts before it in the scan; `None` where there are none.
    pub(crate) before: Option<u64>,
    pub(crate) own: u64,
    /// Of all parts.
    pub(crate) all: u64,
}

/// The parts in the order of a scan.
pub(crate) fn placed(mut parts: Vec<Part>, order: Order) -> Vec<Placed> {
    if order == Order::ByTime {
        parts.sort_by_key(|part| part.time_min);
    }
    let goes_back = order == Order::NewestFirst;
    let mut beyond = if goes_back { Timestamp::MIN } else { Timestamp::MAX };
    let mut place = |part: Part| {
        let edge = if goes_back { part.time_max().max(beyond) } else { part.time_min.min(beyond) };
        let behind = core::mem::replace(&mut beyond, edge);
        let (before, rows) = (Timestamp::MIN, Rows::default());
        Placed { part, edge, beyond: behind, is_apart: true, before, rows }
    };
    // Each needs to know of those that follow.
    let mut placed: Vec<Placed> = if goes_back {
        parts.into_iter().map(&mut place).collect()
    } else {
        parts.into_iter().rev().map(&mut place).collect()
    };
    placed.reverse();
    set_apart(&mut placed);
    count_rows(&mut placed);
    placed
}

fn count_rows(placed: &mut [Placed]) {
    let rows_of = |part: &Part| part.segment.map_or(0, |entry| entry.summary.sessions);
    let all = placed.iter().map(|placed| rows_of(&placed.part)).fold(0, u64::saturating_add);
    let mut before = None;
    for placed in placed {
        let own = rows_of(&placed.part);
        placed.rows = Rows { before, own, all };
        before = Some(before.unwrap_or(0).saturating_add(own));
    }
}

/// Finds out which parts are apart from those before them in the scan.
fn set_apart(placed: &mut [Placed]) {
    let mut by_stripe: Vec<usize> = (0..placed.len()).collect();
    by_stripe.sort_by_key(|&at| placed.get(at).map(|placed| placed.part.first));
    // Those that overlap, directly or by others between them.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut last = StripeId::default();
    let mut before = Timestamp::MIN;
    for at in by_stripe {
        let placed = placed.get_mut(at).expect("they are numbered");
        placed.before = before;
        let part = &placed.part;
        before = before.max(part.segment.map_or(before, |_| part.time_max()));
        match groups.last_mut().filter(|_| part.first <= last) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
        last = last.max(part.last);
    }
    // Of each part the last one of its group.
    let mut ends = vec![0; placed.len()];
    for group in groups {
        let end = group.iter().copied().max().unwrap_or(0);
        for at in group {
            *ends.get_mut(at).expect("they are numbered") = end;
        }
    }
    let mut open_until = None;
    for ((at, placed), end) in placed.iter_mut().enumerate().zip(ends) {
        placed.is_apart = open_until.is_none_or(|until| until < at);
        open_until = open_until.max(Some(end));
    }
}

/// How many parts lie before the one that begins with a stripe.
pub(crate) fn parts_before(parts: &[Placed], begin: StripeId) -> usize {
    parts.iter().position(|placed| placed.part.first >= begin).unwrap_or(parts.len())
}

/// The parts whose rows may have pieces in some slots: those that lie there, and the next segment,
/// for rows may name pieces of the one before theirs.
pub(crate) fn parts_with(parts: Vec<Part>, slots: &RangeInclusive<Sequence>) -> Vec<Part> {
    let is_behind = |part: &Part| part.first.sequence > *slots.end();
    let next = parts.iter().position(|part| part.segment.is_some() && is_behind(part));
    let until = next.map_or(parts.len(), |next| next + 1);
    let parts = parts.into_iter().take(until);
    parts.filter(|part| part.last.sequence >= *slots.start()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: u64, last: u64, time: i64) -> Part {
        let [first, last] =
            [first, last].map(|sequence| StripeId { sequence: Sequence(sequence), sub: 0 });
        Part { first, last, time_min: Timestamp(time), segment: None }
    }

    #[test]
    fn parts_that_share_stripes_are_not_apart_until_the_last_of_them_was_scanned() {
        let apart = |parts: Vec<Part>| -> Vec<bool> {
            placed(parts, Order::ByTime).iter().map(|placed| placed.is_apart).collect()
        };
        assert_eq!(apart(vec![part(1, 9, 1), part(10, 19, 2), part(20, 29, 3)]), [true; 3]);
        // The second and the third overlap; in between comes one of other stripes.
        let parts = vec![part(1, 9, 1), part(10, 19, 2), part(15, 29, 4), part(30, 39, 3)];
        assert_eq!(apart(parts), [true, true, false, false]);
        let parts = vec![part(1, 9, 1), part(9, 19, 1), part(20, 29, 2)];
        assert_eq!(apart(parts), [true, false, true]);
    }
}
