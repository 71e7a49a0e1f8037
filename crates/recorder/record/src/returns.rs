//! Members that come back while the recording goes on.
//!
//! An absent member is looked for at the places that the volume knows. One that is there again, and
//! answers, is opened and handed to the ring writer. One that failed although it was there (a bad
//! disk, not one that was unplugged) is left alone until it was away; and one that comes and goes
//! has to wait longer each time, for each change of members costs a few flushes.

use std::collections::{BTreeMap, BTreeSet};

use units::{MemberId, NANOS_PER_SECOND};
use volume::{MemberAt, NewPlace};
use writer::Returning;

use crate::spares::Opening;
use crate::status::{SharedStatus, status_of};
use crate::task::Task;

/// From a member's leaving to the first look for it.
const PATIENCE_NS: i64 = 2 * NANOS_PER_SECOND;
/// Between two looks: each reads a few rows of every member.
const LOOK_NS: i64 = NANOS_PER_SECOND;
/// The patience grows so much with each return, up to an hour.
const GROWTH: i64 = 4;
const PATIENCE_NS_MAX: i64 = 3600 * NANOS_PER_SECOND;
/// Who takes longer for a flush is not well yet.
const FLUSH_NS_MAX: i64 = NANOS_PER_SECOND / 2;

/// Looks for absent members.
pub(crate) struct Returns {
    opening: Opening,
    /// By member: since when it is away, and how long it is not looked for.
    away: BTreeMap<MemberId, i64>,
    patience_ns: BTreeMap<MemberId, i64>,
    /// They were not to be found since they left.
    vanished: BTreeSet<MemberId>,
    looked_ns: i64,
}

impl Returns {
    pub(crate) fn new(opening: Opening) -> Self {
        Self {
            opening,
            away: BTreeMap::new(),
            patience_ns: BTreeMap::new(),
            vanished: BTreeSet::new(),
            looked_ns: i64::MIN,
        }
    }

    /// A member that is there again, opened and read, for the ring writer.
    pub(crate) fn look(&mut self, status: &SharedStatus) -> Option<Task> {
        let shown = status_of(status);
        let now_ns = shown.now_ns;
        self.away.retain(|member, _| shown.away.contains(member));
        for &member in &shown.away {
            self.away.entry(member).or_insert(now_ns);
        }
        let is_due = |(member, since_ns): (&MemberId, &i64)| {
            let patience_ns = self.patience_ns.get(member).copied().unwrap_or(PATIENCE_NS);
            now_ns - since_ns >= patience_ns
        };
        let looks = now_ns.saturating_sub(self.looked_ns) >= LOOK_NS;
        if !looks || !shown.has_let_go || !self.away.iter().any(is_due) {
            return None;
        }
        self.looked_ns = now_ns;
        let due: Vec<_> = self.away.iter().filter(|it| is_due(*it)).map(|(it, _)| *it).collect();
        let found = self.opening.storage.find_any().unwrap_or_default();
        let is_there = |member: &MemberId| found.iter().any(|found| found.member == *member);
        self.vanished.extend(due.iter().filter(|member| !is_there(member)));
        let may_return = |found: &MemberAt| {
            let member = found.member;
            due.contains(&member)
                && (!shown.failed.contains(&member) || self.vanished.contains(&member))
        };
        let (found, returning) = found.into_iter().filter(may_return).find_map(|found| {
            let returning = self.open(&found, status)?;
            Some((found, returning))
        })?;
        let patience_ns = self.patience_ns.entry(found.member).or_insert(PATIENCE_NS);
        *patience_ns = (*patience_ns * GROWTH).min(PATIENCE_NS_MAX);
        self.vanished.remove(&found.member);
        let place = self.new_place(&found, &returning);
        let takes_discards = self.opening.takes_discards(&found.path);
        Some(Task::Returned { returning, place, takes_discards })
    }

    fn new_place(&self, found: &MemberAt, returning: &Returning) -> Option<NewPlace> {
        let own = returning.superblock();
        let recorded = own.members.get(found.member.place()).map(|entry| &*entry.path);
        self.opening.storage.new_place(&found.path, own.own_uuid(), recorded.unwrap_or_default())
    }

    fn open(&self, found: &MemberAt, status: &SharedStatus) -> Option<Returning> {
        let mut device = self.opening.open(&found.path, Some(found.member))?;
        let begun_ns = status_of(status).now_ns;
        device.flush().ok()?;
        let is_well = status_of(status).now_ns - begun_ns <= FLUSH_NS_MAX;
        is_well.then(|| Returning::open(device).ok()).flatten()
    }
}
