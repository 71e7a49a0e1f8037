//! How long packets are given out: a maximum age, and the time up to which they are expired.
//!
//! Readers give out nothing older than the maximum age, by the clock of the moment; what the writer
//! has declared expired stays so whatever a clock says later.

use format::superblock::Superblock;
use units::{Clock, Timestamp};

use super::Writer;
use crate::Error;

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

impl Writer {
    /// Sets how long packets are kept, and raises the time up to which they are expired; durable on
    /// every member when this returns. Costs three flushes a member.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn set_retention(
        &mut self,
        retention: Retention,
        through: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let Retention { max_age_ns, erases } = retention;
        let expired_through = self.superblock().expired_through.max(through);
        self.store(clock, |own| Superblock { max_age_ns, erases, expired_through, ..own })
    }

    /// Writes the superblocks that follow, with what was erased meanwhile.
    pub(super) fn store(
        &mut self,
        clock: &dyn Clock,
        change: impl Fn(Superblock) -> Superblock,
    ) -> Result<(), Error> {
        let erased = self.erasure.done();
        let stored = self.lanes.store(clock, |own| {
            let erased_before = own.erased_before.max(erased);
            change(Superblock { erased_before, ..own.successor() })
        });
        match stored {
            Ok(()) => {
                self.membership = self.lanes.membership();
                Ok(())
            }
            Err(failed) => self.expel(failed, clock),
        }
    }
}
