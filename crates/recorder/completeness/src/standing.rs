//! When the interfaces of a volume were recorded, as its heads say it, and what of the times that
//! a question is about was not.
//!
//! Each head says since when and up to when everything is in its stripe or before it, and where
//! that stretch of recording begins; in front of there the heads of the stretch before are found.
//! So it takes a few reads for each stretch. What is not said is not known.

use core::ops::RangeInclusive;

use format::head::{Kind, StripeHead};
use format::recorded::{ALIVE_NS, Recorded};
use serde::Serialize;
use units::{EachSequence, Epoch, Times, Timestamp};
use volume::{Reader, Said, Span};

use crate::form;

/// Slots that are looked at for the first head that is held.
const BACK: usize = 256;
/// Stretches that are looked for, where the question has no first time, and where it has one.
const STRETCHES: usize = 16;
const STRETCHES_IN_TIME: usize = 4096;

/// How a stretch of recording ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StretchEnd {
    /// The recorder stopped in order.
    InOrder,
    /// The clock was set, and the next stretch follows at once.
    ClockSet,
    /// Without a stop: what was taken after the last acknowledged head is lost.
    Crash,
    /// The recorder runs.
    Going,
}

/// A stretch of time that was recorded. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Stretch {
    /// From this time on, as far as the ring holds it.
    #[serde(rename = "from_ns")]
    pub from: Timestamp,
    /// Up to this time.
    #[serde(rename = "to_ns")]
    pub through: Timestamp,
    /// Interfaces were recorded; else files were read, and the times are those of their packets.
    #[serde(rename = "source", serialize_with = "form::source")]
    pub is_live: bool,
    /// Names of interfaces, as many as heads have space for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// How many there were.
    pub interface_count: u16,
    /// How the stretch ended.
    pub end: StretchEnd,
    /// What lay before is overwritten or erased.
    #[serde(skip)]
    pub is_cut: bool,
}

/// Why it is not known whether packets are missing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// A recorder ended without a stop.
    Crash,
    /// The recorder runs and has not said yet that it is past this time.
    Going,
    /// No head says whether a recorder ran.
    Unsaid,
}

impl Doubt {
    /// Every doubt.
    pub const ALL: [Self; 3] = [Self::Crash, Self::Going, Self::Unsaid];

    /// As files and reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Going => "going",
            Self::Unsaid => "unsaid",
        }
    }
}

/// What is known of the times that a question is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Stretches that were recorded, oldest first.
    pub stretches: Vec<Stretch>,
    /// Times that were asked for, and in which no recorder ran.
    pub unrecorded: Times,
    /// Times that were asked for, and that the ring has overwritten, or that were erased.
    pub overwritten: Times,
    /// Times that were asked for, and of which it is not known whether packets are missing.
    pub doubts: Vec<(Doubt, Times)>,
}

/// What a question is about, and when it is asked.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The times; `Timestamp::MIN` and `Timestamp::MAX` are no bounds.
    pub times: RangeInclusive<Timestamp>,
    /// Time of the answer.
    pub now: Timestamp,
    /// A recorder runs, and has just made durable what it had taken.
    pub is_recorded: bool,
}

/// What the heads of a volume say of the times asked for.
pub fn standing(reader: &Reader, asking: &Asking) -> Standing {
    let Some(span) = reader.span() else { return Standing::of_nothing(reader, asking) };
    let known = Known::look(reader, span, asking);
    known.judge(asking)
}

/// The stretches found, and what lies around them.
#[derive(Default)]
struct Known {
    /// Oldest first.
    stretches: Vec<Stretch>,
    /// No recorder ran before the first of them.
    is_begin: bool,
    /// A recorder began after the last of them, and has said nothing.
    silent_since: Option<Timestamp>,
    /// Doubt at the end.
    end: Option<Doubt>,
    /// Stretches that were not looked at may have lost something up to this time.
    lost: Option<Timestamp>,
    /// Times of files before those that the ring still holds.
    overwritten: Times,
}

impl Known {
    fn look(reader: &Reader, span: Span, asking: &Asking) -> Self {
        let last_epoch = reader.last_head().map(|head| (head.stripe.epoch, head.stripe.realtime));
        let is_stopped = reader.has_stopped_in_order();
        let open_end = if asking.is_recorded { StretchEnd::Going } else { StretchEnd::Crash };
        let mut known = Self::default();
        let Some(newest) = reader.said().0 else {
            known.end = (!is_stopped).then_some(open_end.doubt()).flatten();
            known.silent_since = last_epoch.map(|(_, at)| at).filter(|_| !is_stopped);
            return known;
        };
        let is_last = last_epoch.is_none_or(|(epoch, _)| epoch == newest.acknowledged.epoch);
        let is_over = newest.is_stop || (is_last && is_stopped);
        let end = if is_over { StretchEnd::InOrder } else { open_end };
        if !is_last && !is_stopped {
            known.silent_since = last_epoch.map(|(_, at)| at);
        }
        known.end = end.doubt().or(known.silent_since.and(open_end.doubt()));
        known.walk(reader, span, (newest, end), asking);
        known.stretches.reverse();
        known
    }

    /// From the newest stretch back.
    fn walk(
        &mut self,
        reader: &Reader,
        span: Span,
        (mut said, mut end): (Said, StretchEnd),
        asking: &Asking,
    ) {
        let first = *asking.times.start();
        let most = if first == Timestamp::MIN { STRETCHES } else { STRETCHES_IN_TIME };
        loop {
            let recorded = &said.recorded;
            let Recorded { start, goes_on, earlier, .. } = *recorded;
            let is_cut = start.sequence < span.tail;
            let held = is_cut.then(|| held_from(reader, span, recorded.is_live)).flatten();
            if let Some(held) = held.filter(|_| !recorded.is_live) {
                self.overwritten = Times::of(recorded.from, held.plus_nanos(-1));
            }
            self.stretches.push(Stretch {
                from: held.map_or(recorded.from, |held| held.max(recorded.from)),
                through: recorded.through,
                is_live: recorded.is_live,
                interfaces: recorded.names.clone(),
                interface_count: recorded.interfaces,
                end,
                is_cut,
            });
            // A clock that was set may have been in the times asked for before.
            let is_enough = recorded.from <= first && earlier.is_some_and(|it| it.latest < first);
            if is_cut || is_enough {
                return;
            }
            if self.stretches.len() == most {
                self.lost = earlier.map(|it| it.lost).filter(|lost| {
                    held_from(reader, span, recorded.is_live).is_none_or(|held| *lost >= held)
                });
                return;
            }
            let (before, has_packets) = reader.said_before(&said);
            let Some(before) = before.filter(|before| before.recorded.start < start) else {
                let is_first_lap = span.tail <= reader.geometry().first_sequence();
                self.is_begin = is_first_lap && !has_packets;
                return;
            };
            end = match (before.is_stop, goes_on) {
                (true, _) => StretchEnd::InOrder,
                (false, true) => StretchEnd::ClockSet,
                (false, false) => StretchEnd::Crash,
            };
            said = before;
        }
    }

    fn judge(self, asking: &Asking) -> Standing {
        let Self { stretches, is_begin, silent_since, end, lost, overwritten } = self;
        let (first, last, now) = (*asking.times.start(), *asking.times.end(), asking.now);
        let (is_from, is_to) = (first > Timestamp::MIN, last < Timestamp::MAX);
        let covered: Times = stretches.iter().map(|it| (it.from, it.through)).collect();
        let mut crashes = crash_times(&stretches, now);
        if let (Some(since), Some(Doubt::Crash)) = (silent_since, end) {
            crashes.add(&Times::of(since, since.plus_nanos(ALIVE_NS).min(now)));
        }
        if let Some(lost) = lost {
            crashes.add(&Times::of(Timestamp::MIN, lost));
        }
        let doubts = |doubts: Vec<(Doubt, Times)>| {
            doubts.into_iter().filter(|(_, times)| !times.is_empty()).collect()
        };
        let has_live = stretches.iter().any(|stretch| stretch.is_live);
        let is_unsaid = stretches.is_empty();
        if !(is_from || is_to) || !(has_live || is_unsaid) {
            // All that the volume holds; files say nothing of the time around their packets.
            let asked = Times::of(first, last);
            let doubts = doubts(vec![(Doubt::Crash, crashes.and(&asked))]);
            let overwritten =
                if is_from || is_to { overwritten.and(&asked) } else { Times::default() };
            let stretches = held(stretches);
            return Standing { stretches, overwritten, doubts, ..Standing::default() };
        }
        let oldest = stretches.first();
        let newest = stretches.iter().map(|it| it.through).max();
        let begin = oldest.map_or(now, |it| it.from);
        let from = if is_from { first } else { begin };
        let open = if end == Some(Doubt::Crash) { now } else { newest.unwrap_or(now) };
        // Times to come are not asked after, but for those that a wrong clock has been through.
        let present = newest.map_or(now, |newest| newest.max(now));
        let mut to = if is_to { last.min(present) } else { open };
        if from > to {
            to = if is_to { last } else { now };
        }
        let mut holes = Times::of(from, to).minus(&covered);
        let mut take = |of: &Times| {
            let taken = holes.and(of);
            holes = holes.minus(of);
            taken
        };
        // A clock that was set back may have been through times of a crash twice.
        let crashes = crashes.and(&Times::of(from, to));
        take(&crashes);
        let going = newest.filter(|_| end == Some(Doubt::Going));
        let going = take(&going.map_or_else(Times::default, |at| Times::of(at, Timestamp::MAX)));
        let before = Times::of(Timestamp::MIN, begin.plus_nanos(-1));
        let is_cut = oldest.is_some_and(|it| it.is_cut);
        let overwritten = take(if is_cut { &before } else { NONE });
        let unsaid = take(if is_cut || (is_begin && !is_unsaid) { NONE } else { &before });
        Standing {
            stretches: held(stretches),
            unrecorded: holes,
            overwritten,
            doubts: doubts(vec![
                (Doubt::Crash, crashes),
                (Doubt::Going, going),
                (Doubt::Unsaid, unsaid),
            ]),
        }
    }
}

static NONE: &Times = &Times::NONE;

/// Without the one of which the ring holds nothing any more.
fn held(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.retain(|stretch| stretch.from <= stretch.through);
    stretches
}

/// Behind each stretch that ended without a stop: how long its recorder may have lived. The packets
/// of files have any times, and so have those that were read and are lost.
fn crash_times(stretches: &[Stretch], now: Timestamp) -> Times {
    // Up to now is asked, now included.
    let behind = now.plus_nanos(1);
    let next = stretches.iter().skip(1).map(|next| next.from).chain([behind]);
    let ended = stretches.iter().zip(next).filter(|(it, _)| it.end == StretchEnd::Crash);
    let alive = |(it, next): (&Stretch, Timestamp)| {
        if !it.is_live {
            return (Timestamp::MIN, Timestamp::MAX);
        }
        let (from, to) = (it.through.plus_nanos(1), it.through.plus_nanos(ALIVE_NS));
        // Where the next one has an earlier time, the clock was set back.
        (from, if next >= from { to.min(next.plus_nanos(-1)) } else { to })
    };
    ended.map(alive).collect()
}

impl StretchEnd {
    fn doubt(self) -> Option<Doubt> {
        match self {
            Self::InOrder | Self::ClockSet => None,
            Self::Crash => Some(Doubt::Crash),
            Self::Going => Some(Doubt::Going),
        }
    }
}

impl Standing {
    /// Of a volume that shows nothing: it was never recorded into, or a recorder ended before
    /// anything was acknowledged, or all of it was given up.
    fn of_nothing(reader: &Reader, asking: &Asking) -> Self {
        let (first, last, now) = (*asking.times.start(), *asking.times.end(), asking.now);
        let created = reader.superblock().created;
        let is_bounded = first > Timestamp::MIN || last < Timestamp::MAX;
        let asked = Times::of(first.max(created.min(now)), last.min(now));
        let mut standing = Self::default();
        if reader.superblock().prepared_epoch == Epoch::NONE {
            standing.unrecorded = Times::of(first, last.min(now));
            if !is_bounded {
                standing.unrecorded = Times::default();
            }
        } else if !reader.has_stopped_in_order() && !asking.is_recorded {
            standing.doubts = vec![(Doubt::Crash, asked)];
        } else if is_bounded {
            standing.doubts = vec![(Doubt::Unsaid, asked)];
        }
        standing.doubts.retain(|(_, times)| !times.is_empty());
        standing
    }
}

/// From when on the ring holds a stretch that begins in front of its tail: what lies before the
/// first head that is held had come when that was sealed, and what that head says is stored may
/// have been overwritten. A clock that was set back makes that later than when it was sealed.
fn held_from(reader: &Reader, span: Span, is_live: bool) -> Option<Timestamp> {
    let slots = (span.tail..=span.acknowledged.sequence).each().take(BACK);
    let mut heads = slots.flat_map(|sequence| reader.leading_heads(sequence));
    if is_live {
        let StripeHead { realtime, recorded, .. } = heads.next()?.stripe;
        // An opening of the volume says nothing of it; then the next head that does.
        let recorded = recorded.or_else(|| heads.find_map(|head| head.stripe.recorded));
        let stored = recorded.map(|recorded| recorded.through.plus_nanos(1));
        return Some(stored.map_or(realtime, |stored| stored.max(realtime)));
    }
    heads.find(|head| head.stripe.kind == Kind::Data).map(|head| head.stripe.time_min)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Stretches of recording one behind the other: each with a pause before it, a length, and
    /// whether it ended by a crash.
    fn known(stretches: &[(i64, i64, bool)]) -> (Known, Timestamp) {
        let (mut at, mut all) = (Timestamp(0), Vec::new());
        for (pause, length, is_crash) in stretches {
            let from = at.plus_nanos(1 + pause);
            at = from.plus_nanos(*length);
            let end = if *is_crash { StretchEnd::Crash } else { StretchEnd::InOrder };
            all.push(Stretch {
                from,
                through: at,
                is_live: true,
                interfaces: Vec::new(),
                interface_count: 1,
                end,
                is_cut: false,
            });
        }
        let end = all.last().and_then(|last| last.end.doubt());
        (Known { stretches: all, is_begin: true, end, ..Known::default() }, at)
    }

    #[test]
    fn a_crash_leaves_everything_up_to_now_in_doubt() {
        let (known, through) = known(&[(0, 10_000, true)]);
        let now = through.plus_nanos(3 * units::NANOS_PER_SECOND);
        let from = now.plus_nanos(-2 * units::NANOS_PER_SECOND);
        let asking = Asking { times: from..=Timestamp::MAX, now, is_recorded: false };
        let standing = known.judge(&asking);
        assert_eq!(standing.unrecorded, Times::NONE);
        assert_eq!(standing.doubts, [(Doubt::Crash, Times::of(from, now))]);
    }

    #[test]
    fn what_a_killed_import_has_lost_may_be_of_any_time() {
        let (mut known, through) = known(&[(0, 10_000, true), (5, 10_000, false)]);
        known.stretches.iter_mut().for_each(|stretch| stretch.is_live = false);
        for (first, last) in [(-9000, -8000), (100, 200), (50_000, 60_000)] {
            let (first, last) = (Timestamp(first), Timestamp(last));
            let known = Known { stretches: known.stretches.clone(), ..Known::default() };
            let asking = Asking { times: first..=last, now: through, is_recorded: false };
            let standing = known.judge(&asking);
            assert_eq!(standing.doubts, [(Doubt::Crash, Times::of(first, last))]);
        }
    }

    proptest! {
        /// To the nanosecond, at both ends.
        #[test]
        fn no_time_that_a_crashed_recorder_may_have_lived_is_without_a_recorder(
            stretches in prop::collection::vec((0_i64..5, 0_i64..5, any::<bool>()), 1..6),
            (since, first, length) in (0_i64..5, 0_i64..40, prop::option::of(0_i64..40)),
        ) {
            let (known, through) = known(&stretches);
            let now = through.plus_nanos(since);
            let last = length.map_or(Timestamp::MAX, |length| Timestamp(first + length));
            let all = known.stretches.clone();
            let asking = Asking { times: Timestamp(first)..=last, now, is_recorded: false };
            let standing = known.judge(&asking);
            // Without a last time nothing is asked of the time behind an orderly end.
            let is_over = all.last().is_some_and(|last| last.end == StretchEnd::InOrder);
            let is_open = length.is_none() && is_over && first <= through.0;
            let last = if is_open { through } else { now.min(last) };
            for at in (first..=last.0).map(Timestamp) {
                let one = Times::of(at, at);
                let before = all.iter().rfind(|stretch| stretch.from <= at);
                let is_in_doubt = before.is_some_and(|it| it.end == StretchEnd::Crash);
                let is_covered = before.is_some_and(|it| at <= it.through);
                let is_unrecorded = standing.unrecorded.has_all_of(&one);
                prop_assert_eq!(is_unrecorded, !is_covered && !is_in_doubt, "at {}", at.0);
            }
        }
    }
}
