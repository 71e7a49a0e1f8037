//! How long packets are given out: a maximum age, and the time up to which they are expired.
//!
//! Readers give out nothing older than the maximum age, by the clock of the moment; what the writer
//! has declared expired stays so whatever a clock says later, unless the user says that it is
//! right.

use core::fmt;

use format::superblock::Superblock;
use units::{Clock, Timestamp};

use super::Writer;
use super::explained::{Explained, slack_ns};
use crate::{Error, mark};

/// How long packets are kept, besides what the ring overwrites.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Older packets are not given out, in nanoseconds; 0: whatever their age.
    pub max_age_ns: i64,
    /// They are also erased.
    pub erases: bool,
}

impl Retention {
    /// As a superblock has it.
    pub fn of(superblock: &Superblock) -> Self {
        Self { max_age_ns: superblock.max_age_ns, erases: superblock.erases }
    }
}

/// Why packets do not expire by the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockDoubt {
    /// It says a time that nothing explains: packets expire as if it were `explained`.
    Ahead {
        /// Time by the clock.
        now: Timestamp,
        /// The latest time that the volume and the time since boot explain.
        explained: Timestamp,
    },
    /// What it says has expired already: whatever is recorded now is not given out.
    Behind {
        /// Time by the clock.
        now: Timestamp,
        /// Up to here packets count as expired.
        expired_through: Timestamp,
    },
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead { now, explained } => write!(
                f,
                "the clock says {now}, and what was recorded last and the time since boot explain \
                 no more than {explained}: packets expire as if it were that late; if the clock is \
                 right, say so once with --clock-is-right"
            ),
            Self::Behind { now, expired_through } => write!(
                f,
                "packets up to {expired_through} count as expired, and the clock says {now}: what \
                 is recorded now is never given out; if the clock is right, say so once with \
                 --clock-is-right"
            ),
        }
    }
}

impl Writer {
    /// Sets how long packets are kept, and declares expired what is older than `age_ns`, 0 for
    /// nothing: by the clock, as far as that is explained. Durable on every member when this
    /// returns; costs three flushes a member where anything changes.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn expire(
        &mut self,
        retention: Retention,
        age_ns: i64,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let through = self.through(age_ns, clock);
        let known = self.superblock();
        if retention == Retention::of(known) && through <= known.expired_through {
            return Ok(());
        }
        let through = through.max(known.expired_through);
        self.set_retention(retention, through, clock)
    }

    /// The same when the user says that the clock is right: packets expire by it, and
    /// what has expired beyond that is given out again, as far as it was not erased.
    pub fn expire_by_clock(
        &mut self,
        retention: Retention,
        age_ns: i64,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        self.explained = Explained::now(clock);
        let through = self.through(age_ns, clock);
        self.set_retention(retention, through, clock)
    }

    /// What keeps packets of this age from expiring by the clock.
    pub fn clock_doubt(&self, age_ns: i64, clock: &dyn Clock) -> Option<ClockDoubt> {
        let (now, explained) = (clock.realtime(), self.explained.at(clock));
        let expired_through = self.superblock().expired_through;
        if age_ns > 0 && now.0 > explained.0.saturating_add(slack_ns(age_ns)) {
            Some(ClockDoubt::Ahead { now, explained })
        } else if expired_through > now {
            Some(ClockDoubt::Behind { now, expired_through })
        } else {
            None
        }
    }

    /// Up to when packets may be erased that are older than `age_ns`: what has expired, but nothing
    /// that a clock expired which was wrong.
    pub fn erasable_through(&self, age_ns: i64, clock: &dyn Clock) -> Timestamp {
        self.through(age_ns, clock).min(self.superblock().expired_through)
    }

    fn through(&self, age_ns: i64, clock: &dyn Clock) -> Timestamp {
        if age_ns == 0 {
            return Timestamp::MIN;
        }
        let now = match self.clock_doubt(age_ns, clock) {
            Some(ClockDoubt::Ahead { explained, .. }) => explained,
            Some(ClockDoubt::Behind { .. }) | None => clock.realtime(),
        };
        Timestamp(now.0.saturating_sub(age_ns))
    }

    fn set_retention(
        &mut self,
        retention: Retention,
        expired_through: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let Retention { max_age_ns, erases } = retention;
        self.store(clock, |own| Superblock { max_age_ns, erases, expired_through, ..own })
    }

    /// Writes the superblocks that follow, with what was erased and acknowledged meanwhile.
    pub(super) fn store(
        &mut self,
        clock: &dyn Clock,
        change: impl Fn(Superblock) -> Superblock,
    ) -> Result<(), Error> {
        let erased = self.erasure.done();
        let mark = mark::of(self.superblock(), self.acknowledged, false, clock);
        let stored = self.writers.store(clock, |own| {
            let erased_before = own.erased_before.max(erased);
            change(Superblock { erased_before, mark, ..own.successor() })
        });
        match stored {
            Ok(()) => {
                self.membership = self.writers.membership();
                Ok(())
            }
            Err(failed) => self.expel(failed, clock),
        }
    }
}
