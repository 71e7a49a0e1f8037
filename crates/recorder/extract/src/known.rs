//! Sessions of which all rows are wanted: which part of the ring may have some.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use units::Timestamp;

use crate::identity::Identity;

/// A session without a row for longer than this, where sessions have rows each minute, is over: no
/// timeout is longer.
pub(crate) const JOIN_IDLE_NS: i64 = 15 * 60 * units::NANOS_PER_SECOND;

/// So many are looked for one by one in a segment; more, and all of its rows are read.
const FEW: usize = 16;
/// So many are looked at to see whether they are few.
const LOOKED_AT_MAX: usize = 1 << 10;

/// When a session has rows, as far as is known.
#[derive(Clone, Copy, Debug)]
struct Life {
    session: Identity,
    end: Timestamp,
    /// The latest end of this session and of those that began before.
    latest: Timestamp,
}

impl Life {
    fn place(&self) -> (Timestamp, Identity) {
        (self.session.start(), self.session)
    }
}

/// Sessions, and until when each has rows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By their start.
    lives: Vec<Life>,
}

/// Those that may have rows in some stretch of time.
#[derive(Debug)]
pub(crate) enum Alive {
    /// At most [`FEW`].
    These(Vec<Identity>),
    Many,
}

impl Known {
    pub(crate) fn new(ends: BTreeMap<Identity, Timestamp>) -> Self {
        let life = |(session, end)| Life { session, end, latest: end };
        let mut lives: Vec<Life> = ends.into_iter().map(life).collect();
        lives.sort_by_key(Life::place);
        let mut latest = Timestamp::MIN;
        for life in &mut lives {
            latest = latest.max(life.end);
            life.latest = latest;
        }
        Self { lives }
    }

    pub(crate) fn len(&self) -> usize {
        self.lives.len()
    }

    pub(crate) fn contains(&self, session: &Identity) -> bool {
        let place = (session.start(), *session);
        self.lives.binary_search_by_key(&place, Life::place).is_ok()
    }

    /// Rows of them lie in these times.
    pub(crate) fn times(&self) -> RangeInclusive<Timestamp> {
        let first = self.lives.first().map_or(Timestamp::MAX, |life| life.session.start());
        let last = self.lives.last().map_or(Timestamp::MIN, |life| life.latest);
        first..=last.plus_nanos(JOIN_IDLE_NS)
    }

    /// Those that may have rows in these times.
    pub(crate) fn alive_in(&self, times: &RangeInclusive<Timestamp>) -> Alive {
        let begun = self.lives.partition_point(|life| life.session.start() <= *times.end());
        let begun = self.lives.get(..begun).unwrap_or_default();
        let is_over = |end: Timestamp| end.plus_nanos(JOIN_IDLE_NS) < *times.start();
        let mut alive = Vec::new();
        for (looked_at, life) in begun.iter().rev().enumerate() {
            if is_over(life.latest) {
                break;
            }
            if looked_at == LOOKED_AT_MAX || alive.len() == FEW {
                return Alive::Many;
            }
            if !is_over(life.end) {
                alive.push(life.session);
            }
        }
        Alive::These(alive)
    }
}

impl Alive {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::These(sessions) if sessions.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use format::session_row::SessionRow;
    use wire::{Address, FiveTuple, Protocol};

    use super::*;

    fn session(port: u16, start: i64) -> Identity {
        let (orig, resp) = (Address::None, Address::None);
        let tuple = FiveTuple { orig, resp, orig_port: port, resp_port: 0, proto: Protocol::UDP };
        Identity::of(&SessionRow::new(tuple, Timestamp(start)))
    }

    #[test]
    fn few_are_named_and_those_that_are_over_are_left_out() {
        let hour = 4 * JOIN_IDLE_NS;
        let life = |port: u16| (session(port, i64::from(port) * hour), i64::from(port) * hour + 1);
        let mut ends: BTreeMap<_, _> =
            (0..100).map(life).map(|(session, end)| (session, Timestamp(end))).collect();
        // One that lives through all of it.
        ends.insert(session(1000, 5), Timestamp(100 * hour));
        let known = Known::new(ends);
        let alive = |from: i64, to: i64| match known.alive_in(&(Timestamp(from)..=Timestamp(to))) {
            Alive::These(sessions) => Some(sessions.len()),
            Alive::Many => None,
        };
        assert_eq!(alive(-2, -1), Some(0));
        assert_eq!(alive(0, 4), Some(1));
        assert_eq!(alive(50 * hour, 50 * hour), Some(2));
        assert_eq!(alive(50 * hour + 2 * JOIN_IDLE_NS, 50 * hour + 3 * JOIN_IDLE_NS), Some(1));
        assert_eq!(alive(10 * hour, 22 * hour), Some(14));
        assert_eq!(alive(10 * hour, 60 * hour), None);
        assert_eq!(alive(200 * hour, 300 * hour), Some(0));
        assert_eq!(*known.times().start(), Timestamp(0));
        assert!(Known::default().alive_in(&(Timestamp::MIN..=Timestamp::MAX)).is_none());
    }
}
