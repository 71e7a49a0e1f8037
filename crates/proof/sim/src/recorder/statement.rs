//! What answers say is complete must be there, and what they say is not has a reason.
//!
//! The statement about a range of time is made of what heads say of it, and of the gaps that are
//! stored. It is compared with every packet that any recording was handed.

use std::collections::BTreeMap;

use completeness::{Asking, Completeness, State, standing};
use units::Timestamp;
use volume::Reader;

use crate::check::{Verdict, broken};
use crate::counters::Counters;
use crate::random::Random;
use crate::recorder::judge::Found;
use crate::recorder::link::Offered;

/// Ranges of time that are asked for after each recording.
const RANGES: usize = 8;
/// Between two packets that no clock was set between, the clocks agree to this.
const JITTER_NS: i64 = 1_000_000;

/// What every recording so far was handed.
pub(crate) struct Statements {
    offered: BTreeMap<u64, Timestamp>,
    /// Its own, so that asking changes no history.
    random: Random,
}

impl Statements {
    pub(crate) fn new(seed: u64) -> Self {
        Self { offered: BTreeMap::new(), random: Random::new(seed ^ 0x57a7_e4e9) }
    }

    pub(crate) fn note(&mut self, offered: &[Offered]) {
        self.offered.extend(offered.iter().map(|it| (it.number, it.timestamp)));
    }

    /// Only these are left undamaged: of the others, and of what was lost before, who reads their
    /// stripes learns there that something is missing, and not by this.
    pub(crate) fn keep(&mut self, is_left: impl Fn(u64) -> bool) {
        self.offered.retain(|number, _| is_left(*number));
    }

    /// Asks for some ranges of time. `last`: packets of a recording that has just ended in order.
    pub(crate) fn check(
        &mut self,
        (reader, found): (&Reader, &Found),
        now: Timestamp,
        last: Option<&[Offered]>,
        counters: &mut Counters,
    ) -> Verdict {
        // A clock that is set back goes through times twice, and what the ring has overwritten of
        // the first time cannot be distinguished from the second.
        let times: Vec<Timestamp> = self.offered.values().copied().collect();
        if !times.is_sorted() {
            counters.add("statements: not judged, the clock was set back", 1);
            return Ok(());
        }
        let asked = Self::said((reader, found), (Timestamp::MIN, Timestamp::MAX), now);
        self.is_true((Timestamp::MIN, Timestamp::MAX), &asked, (found, now))?;
        for _ in 0..RANGES.min(times.len()) {
            let mut pick = || {
                let near = times.get(self.random.index(times.len())).copied();
                let off = self.random.pick(&[0, 0, 1, 40_000_000, 3_000_000_000, 90_000_000_000]);
                let is_later = self.random.percent(50);
                near.unwrap_or(now).plus_nanos(if is_later { off } else { -off })
            };
            let (one, other) = (pick(), pick());
            let range = (one.min(other), one.max(other));
            let said = Self::said((reader, found), range, now);
            let name = match said.state() {
                State::Complete => "statements: complete",
                State::Unknown => "statements: unknown",
                State::Incomplete => "statements: incomplete",
            };
            counters.add(name, 1);
            self.is_true(range, &said, (found, now))?;
        }
        // Packets that came before the recorder said that it records are stored, and not claimed.
        let newest = asked.recorded.iter().map(|stretch| stretch.from).max();
        let known = last.zip(newest).map(|(last, newest)| {
            last.get(last.partition_point(|it| it.timestamp < newest)..).unwrap_or_default()
        });
        if let Some(known) = known.filter(|known| is_undisturbed(known, found)) {
            let ends = known.first().zip(known.last()).map(|(a, b)| (a.timestamp, b.timestamp));
            let range = ends.expect("there are some");
            let said = Self::said((reader, found), range, now);
            if said.state() != State::Complete {
                return broken(format!("STATEMENT: {range:?} was stored whole, and is {said}"));
            }
            counters.add("statements: ranges known to be complete", 1);
        }
        Ok(())
    }

    fn said(
        (reader, found): (&Reader, &Found),
        (from, to): (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Completeness {
        let mut said = Completeness::default();
        for (_, gap) in &found.gaps {
            said.add_gaps(core::slice::from_ref(gap), from, to);
        }
        said.add_standing(&standing(reader, &Asking { times: from..=to, now, is_recorded: false }));
        said
    }

    /// What is complete lacks no packet; what is not names a time of the range.
    fn is_true(
        &self,
        (from, to): (Timestamp, Timestamp),
        said: &Completeness,
        (found, now): (&Found, Timestamp),
    ) -> Verdict {
        // Without bounds it is about what the ring holds.
        let held = if from == Timestamp::MIN { found.packets.keys().next().copied() } else { None };
        let held = held.unwrap_or(if from == Timestamp::MIN { u64::MAX } else { 0 });
        // What a clock has gone back before lies in the future.
        let newest = said.recorded.iter().map(|stretch| stretch.through).max();
        let present = newest.map_or(now, |newest| newest.max(now));
        let to_present = if from > present { to } else { to.min(present) };
        let is_asked =
            |number: u64, at: Timestamp| number >= held && at >= from && at <= to_present;
        let missing = self
            .offered
            .iter()
            .find(|(number, at)| is_asked(**number, **at) && !found.packets.contains_key(number));
        if let (State::Complete, Some((number, at))) = (said.state(), missing) {
            return broken(format!(
                "STATEMENT: {from} to {to} is said to be complete and lacks packet {number} of \
                 {at}: {said}"
            ));
        }
        let times = said.unrecorded.iter().chain(said.overwritten.iter());
        let times = times.chain(said.doubts.iter().flat_map(|(_, times)| times.iter()));
        let times = times.chain(said.gaps.iter().map(|gap| (gap.from, gap.to)));
        let has_reason = times.into_iter().any(|(first, last)| first <= to && last >= from);
        if (said.state() == State::Complete) == has_reason {
            return broken(format!("STATEMENT: {from} to {to} without a reason: {said}"));
        }
        Ok(())
    }
}

/// All of it is there, and neither loss nor clock disturbed it.
fn is_undisturbed(known: &[Offered], found: &Found) -> bool {
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return false };
    let off = |it: &Offered| it.timestamp.since(Timestamp(it.at_ns));
    let is_steady = known.iter().all(|it| (off(it) - off(first)).abs() < JITTER_NS);
    let is_there = known.iter().all(|it| found.packets.contains_key(&it.number));
    let has_gap = |from: Timestamp, to: Timestamp| {
        found.gaps.iter().any(|(_, gap)| gap.from <= to && gap.to >= from)
    };
    is_steady && is_there && !has_gap(first.timestamp, last.timestamp)
}
