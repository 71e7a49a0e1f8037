//! The age of packets: clocks of a machine that starts again, and what may expire by them.

use device::Timeline;
use record::{MaxAge, Options};
use units::{Clock, NANOS_PER_SECOND, Sleep, Timestamp};
use volume::Reader;

use crate::check::{Verdict, broken};
use crate::counters::Counters;
use crate::random::Random;
use crate::recorder::judge::Kept;

const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;
/// How far a clock may be off that counts as right: it is set by so much while recording.
const RIGHT_NS: i64 = 3 * HOUR_NS;
/// How far a clock is believed at each start beyond what explains it: docs/format.md, Maximum age.
const BELIEVED_NS: i64 = 24 * HOUR_NS;

/// The clocks of a machine: since its start, and on the wall.
#[derive(Clone, Debug)]
pub(crate) struct MachineClock {
    timeline: Timeline,
    started_ns: i64,
}

impl Clock for MachineClock {
    fn realtime(&self) -> Timestamp {
        self.timeline.realtime()
    }

    fn boottime_ns(&self) -> i64 {
        self.timeline.now_ns() - self.started_ns
    }

    fn boot(&self) -> u64 {
        self.started_ns.unsigned_abs() + 1
    }
}

impl Sleep for MachineClock {
    fn sleep_until(&self, until_ns: i64) {
        self.timeline.sleep_until(until_ns + self.started_ns);
    }
}

/// How long packets are kept, and what the clocks have been through.
pub(crate) struct Ages {
    timeline: Timeline,
    /// What the wall clock said when the simulation began.
    began: Timestamp,
    started_ns: i64,
    /// Nothing older is given out; 0: whatever its age.
    max_age_ns: i64,
    erases: bool,
    /// This start has no maximum age.
    is_off: bool,
    /// The last start doubted its clock.
    is_doubted: bool,
    starts: i64,
}

impl core::fmt::Debug for Ages {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let hours = |ns: i64| ns / HOUR_NS;
        f.debug_struct("Ages")
            .field("now", &self.timeline.realtime().to_string())
            .field("off_hours", &hours(self.off_ns()))
            .field("up_hours", &hours(self.timeline.now_ns() - self.started_ns))
            .field("max_age_hours", &hours(self.max_age_ns))
            .finish_non_exhaustive()
    }
}

impl Ages {
    pub(crate) fn new(timeline: &Timeline, random: &mut Random) -> Self {
        let days = i64::try_from(10 + random.below(20)).expect("few");
        let max_age_ns = if random.percent(40) { days * 24 * HOUR_NS } else { 0 };
        Self {
            timeline: timeline.clone(),
            began: timeline.realtime(),
            started_ns: 0,
            max_age_ns,
            erases: random.percent(50),
            is_off: false,
            is_doubted: false,
            starts: 0,
        }
    }

    /// The recorder is started: perhaps much later, perhaps by another start of the machine, whose
    /// clock may be wrong.
    pub(crate) fn start(&mut self, random: &mut Random, counters: &mut Counters) -> MachineClock {
        self.starts += 1;
        if random.percent(30) {
            let hours = i64::try_from(random.below(12 * 24)).expect("few");
            self.timeline.advance_by((hours * HOUR_NS).unsigned_abs());
        }
        if random.percent(60) {
            self.started_ns = self.timeline.now_ns();
        }
        let off_ns = self.off_ns();
        if random.percent(15) {
            let days = i64::try_from(random.below(4000)).expect("few") - 2000;
            self.timeline.jump_realtime(days * 24 * HOUR_NS);
            counters.add("recorder: starts with a wrong clock", 1);
        } else if random.percent(70) {
            self.timeline.jump_realtime(-off_ns);
        }
        self.is_off = self.max_age_ns > 0 && random.percent(25);
        counters.add("recorder: starts without a maximum age between", u64::from(self.is_off));
        MachineClock { timeline: self.timeline.clone(), started_ns: self.started_ns }
    }

    /// The user says that the clock is right when it is, and the recorder has asked.
    pub(crate) fn apply(&self, options: &mut Options) {
        if self.is_off {
            (options.max_age, options.erase) = (MaxAge::Off, Some(false));
        } else if self.max_age_ns > 0 {
            options.clock_is_right = self.is_doubted && self.off_ns().abs() <= RIGHT_NS;
            let age = core::time::Duration::from_nanos(self.max_age_ns.unsigned_abs());
            (options.max_age, options.erase) = (MaxAge::Age(age), Some(self.erases));
        }
    }

    /// Whether a recording doubted its clock.
    pub(crate) fn note(&mut self, is_doubted: bool) {
        self.is_doubted = is_doubted;
    }

    /// By how much the wall clock is ahead.
    fn off_ns(&self) -> i64 {
        self.timeline.realtime().since(self.began) - self.timeline.now_ns()
    }

    /// It was recorded by a clock that was right.
    fn is_by_right_clock(&self, kept: &Kept) -> bool {
        let off_ns = kept.timestamp.since(self.began) - kept.at_ns;
        off_ns.abs() <= RIGHT_NS
    }

    fn age_ns(&self, kept: &Kept) -> i64 {
        self.timeline.now_ns() - kept.at_ns
    }

    /// It may be given out no more, by whichever writer.
    pub(crate) fn may_be_gone(&self, kept: &Kept) -> bool {
        let early_ns = self.starts * BELIEVED_NS + 2 * RIGHT_NS;
        let is_old = self.age_ns(kept) >= self.max_age_ns - early_ns.min(self.max_age_ns / 2);
        self.max_age_ns > 0 && (is_old || !self.is_by_right_clock(kept))
    }

    /// What the volume gives out no more was old enough, and what is too old is not given out any
    /// more, unless the recorder says that it does not trust the clock: then the user decides.
    pub(crate) fn judge<'k>(
        &self,
        kept: impl Iterator<Item = (&'k u64, &'k Kept)>,
        reader: &Reader,
        (is_in_order, is_doubted): (bool, bool),
        counters: &mut Counters,
    ) -> Verdict {
        let through = reader.superblock().expired_through;
        let is_right_now = self.off_ns().abs() <= RIGHT_NS;
        for (number, kept) in kept {
            let is_hidden = kept.timestamp <= through;
            if is_hidden && !is_doubted && !self.may_be_gone(kept) {
                let days = self.age_ns(kept) / (24 * HOUR_NS);
                return broken(format!("LOST: packet {number} has expired after {days} days"));
            }
            let too_old_ns = self.max_age_ns + 2 * RIGHT_NS;
            let is_too_old = self.max_age_ns > 0 && self.age_ns(kept) > too_old_ns;
            let is_certain = is_in_order && !is_doubted && is_right_now && !self.is_off;
            if is_too_old && is_certain && self.is_by_right_clock(kept) && !is_hidden {
                let days = self.age_ns(kept) / (24 * HOUR_NS);
                return broken(format!("EXPIRED: packet {number} is given out after {days} days"));
            }
            counters.add("recorder: packets expired", u64::from(is_hidden));
        }
        Ok(())
    }
}
