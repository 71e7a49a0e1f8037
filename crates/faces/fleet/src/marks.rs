//! Sessions that several sensors saw: the later row names the earlier one.
//!
//! Rows go out as they come, so that of two the first is gone when the second is known. The same
//! session is one of the same community id whose times overlap, or nearly so: the clocks of sensors
//! differ. What is remembered is bounded; of what is forgotten a mark may be missing.

use std::collections::{BTreeMap, VecDeque};

use found::Found;
use units::Timestamp;

/// Clocks of sensors that differ by less leave a session one.
const CLOCKS_NS: i64 = 1_000_000_000;
/// So many sessions are remembered: some 50 MiB.
const SESSIONS_MAX: usize = 1 << 18;

/// Where a session was seen before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// Number of the sensor.
    pub sensor: usize,
    /// Its id there.
    pub session_id: String,
}

#[derive(Debug)]
struct Seen {
    number: u64,
    at: Sighting,
    start: Timestamp,
    end: Timestamp,
}

/// The sessions that went out last.
#[derive(Debug)]
pub struct Marks {
    seen: BTreeMap<String, Vec<Seen>>,
    order: VecDeque<(u64, String)>,
    sessions_max: usize,
    number: u64,
    /// Sessions that are not remembered any more.
    pub forgotten: u64,
}

impl Default for Marks {
    fn default() -> Self {
        Self::new(SESSIONS_MAX)
    }
}

impl Marks {
    fn new(sessions_max: usize) -> Self {
        let (seen, order) = (BTreeMap::new(), VecDeque::new());
        Self { seen, order, sessions_max, number: 0, forgotten: 0 }
    }

    /// Remembers a session, and gives where another sensor saw it first.
    pub fn mark(&mut self, sensor: usize, found: &Found) -> Option<Sighting> {
        let community = &found.community_id.as_ref()?.0;
        let (start, end) = (found.session.start, found.session.end);
        let of_id = self.seen.entry(community.clone()).or_default();
        let overlaps = |seen: &&Seen| {
            seen.at.sensor != sensor
                && seen.start.0.saturating_sub(CLOCKS_NS) <= end.0
                && start.0 <= seen.end.0.saturating_add(CLOCKS_NS)
        };
        let first = of_id.iter().find(overlaps).map(|seen| seen.at.clone());
        self.number += 1;
        let at = Sighting { sensor, session_id: found.id.clone() };
        of_id.push(Seen { number: self.number, at, start, end });
        self.order.push_back((self.number, community.clone()));
        if self.order.len() > self.sessions_max {
            self.forget();
        }
        first
    }

    fn forget(&mut self) {
        let Some((number, community)) = self.order.pop_front() else { return };
        self.forgotten += 1;
        if let Some(of_id) = self.seen.get_mut(&community) {
            of_id.retain(|seen| seen.number != number);
            if of_id.is_empty() {
                self.seen.remove(&community);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::CommunityId;

    fn found(id: &str, community: Option<&str>, start_s: i64, end_s: i64) -> Found {
        let line = format!(
            "{{\"session_id\":\"{id}\",\"proto\":6,\"session_start_ns\":{0},\"start_ns\":{0},\
             \"end_ns\":{1}}}",
            start_s * 1_000_000_000,
            end_s * 1_000_000_000
        );
        let found = session_view::read_session(&line).unwrap();
        Found { community_id: community.map(|id| CommunityId(id.to_owned())), ..found }
    }

    fn at(sensor: usize, id: &str) -> Sighting {
        Sighting { sensor, session_id: id.to_owned() }
    }

    #[test]
    fn the_second_sight_of_a_session_names_the_first() {
        let mut marks = Marks::default();
        assert_eq!(marks.mark(0, &found("a", Some("1:x"), 10, 20)), None);
        assert_eq!(marks.mark(1, &found("b", Some("1:x"), 15, 30)), Some(at(0, "a")));
        assert_eq!(marks.mark(2, &found("c", Some("1:x"), 19, 19)), Some(at(0, "a")));
        // Its own next session, another conversation, a later one, one without a community id.
        assert_eq!(marks.mark(0, &found("d", Some("1:x"), 100, 101)), None);
        assert_eq!(marks.mark(1, &found("e", Some("1:y"), 10, 20)), None);
        assert_eq!(marks.mark(1, &found("f", Some("1:x"), 103, 104)), None);
        assert_eq!(marks.mark(1, &found("g", None, 10, 20)), None);
        // Clocks differ a little.
        assert_eq!(marks.mark(1, &found("h", Some("1:x"), 102, 104)), Some(at(0, "d")));
    }

    #[test]
    fn memory_has_a_bound_and_what_is_forgotten_is_counted() {
        let mut marks = Marks::new(2);
        for (id, community) in [("a", "1:a"), ("b", "1:b"), ("c", "1:b")] {
            assert_eq!(marks.mark(0, &found(id, Some(community), 1, 2)), None);
        }
        assert_eq!((marks.forgotten, marks.order.len(), marks.seen.len()), (1, 2, 1));
        assert_eq!(marks.mark(1, &found("d", Some("1:a"), 1, 2)), None);
        assert_eq!(marks.mark(1, &found("e", Some("1:b"), 1, 2)), Some(at(0, "c")));
    }
}
