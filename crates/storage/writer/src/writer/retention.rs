//! How long packets are given out: a maximum age, and the time up to which they are expired.
//!
//! Readers give out nothing older than the maximum age, by the clock of the moment; what the writer
//! has declared expired stays so whatever a clock says later, unless the user says that it is
//! right.

use format::superblock::{Superblock, TimeKnown};
use units::{Clock, Timestamp};
use volume::{Error, Retention, mark};

use super::Writer;
use crate::explained::{ClockDoubt, Explained};

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
        let is_alike = retention == Retention::of(known) && through <= known.expired_through;
        let noted = || self.explained.noted(known.clone(), clock).time;
        if is_alike && noted().early_before <= known.time.early_before {
            return Ok(());
        }
        let expired_through = through.max(known.expired_through);
        let Retention { max_age_ns, erases } = retention;
        self.store(clock, |own| Superblock { max_age_ns, erases, expired_through, ..own })
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
        // What was written by a clock that was behind was written by now.
        let early_from = clock.realtime();
        let Retention { max_age_ns, erases } = retention;
        self.store(clock, |own| {
            let time = TimeKnown { early_from, ..own.time };
            Superblock { max_age_ns, erases, expired_through: through, time, ..own }
        })
    }

    /// What keeps packets of this age from expiring by the clock, or from being given out.
    pub fn clock_doubt(&self, age_ns: i64, clock: &dyn Clock) -> Option<ClockDoubt> {
        let now = clock.realtime();
        let expired_through = self.superblock().expired_through;
        let by_time = self.explained.doubt(age_ns, clock);
        let is_ahead = matches!(by_time, Some(ClockDoubt::Ahead { .. }));
        if is_ahead && age_ns > 0 {
            return by_time;
        }
        let behind = ClockDoubt::Behind { now, expired_through };
        let behind = (expired_through > now).then_some(behind);
        // Who is back now has to be said without a maximum age, too: it may be set later.
        let back = by_time.filter(|_| !is_ahead);
        let explained = self.held_from();
        let held = ClockDoubt::Back { now, explained };
        behind.or(back).or((age_ns > 0 && explained > now).then_some(held))
    }

    /// Up to when packets may be erased that are older than `age_ns`: what has expired, but nothing
    /// that a clock expired which was wrong, nor what may be younger than it seems.
    pub fn erasable_through(&self, age_ns: i64, clock: &dyn Clock) -> Timestamp {
        let through = self.through(age_ns, clock).min(self.superblock().expired_through);
        if through < self.held_from() { Timestamp::MIN } else { through }
    }

    /// The oldest slots count as written then, where a clock was behind meanwhile.
    fn held_from(&self) -> Timestamp {
        let TimeKnown { early_before, early_from, .. } = self.superblock().time;
        let is_held = self.erasable().start < early_before;
        if is_held { early_from } else { Timestamp::MIN }
    }

    fn through(&self, age_ns: i64, clock: &dyn Clock) -> Timestamp {
        if age_ns == 0 {
            return Timestamp::MIN;
        }
        let now = match self.explained.doubt(age_ns, clock) {
            Some(ClockDoubt::Ahead { explained, .. }) => explained,
            _ => clock.realtime(),
        };
        Timestamp(now.0.saturating_sub(age_ns))
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
            let own = change(Superblock { erased_before, mark, ..own.successor() });
            self.explained.noted(own, clock)
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
