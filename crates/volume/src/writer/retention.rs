//! How long packets are given out: a maximum age, and the time up to which they are expired.
//!
//! Readers give out nothing older than the maximum age, by the clock of the moment; what the writer
//! has declared expired stays so whatever a clock says later.

use format::superblock::Superblock;
use units::{Clock, Timestamp};

use super::Writer;
use crate::Error;

impl Writer {
    /// Sets the maximum age, in nanoseconds (0: none), and raises the time up to which packets are
    /// expired; durable on every member when this returns. Costs three flushes a member.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn set_retention(
        &mut self,
        max_age_ns: i64,
        through: Timestamp,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let expired_through = self.superblock().expired_through.max(through);
        let stored =
            self.lanes.store(|own| Superblock { max_age_ns, expired_through, ..own.successor() });
        match stored {
            Ok(()) => {
                self.membership = self.lanes.membership();
                Ok(())
            }
            Err(failed) => self.expel(failed, clock),
        }
    }
}
