//! Writing anew what members should hold: rows that are damaged, and what they missed.
//!
//! A thread that computes a repair reads beside the writer, and members come and go meanwhile. So
//! each repair, and each word that a member lacks nothing more, says whom it was made for, in which
//! epoch: a spare in the place of a member that failed must not be marked to have what that one
//! had.

use core::ops::Range;

use device::Shared;
use format::geometry::ROW_BYTES;
use format::head::StripeId;
use units::number::to_u64;
use units::{Clock, Sequence};
use volume::{Error, Seat};

use super::Writer;

/// Rows of one member to be written anew.
#[derive(Debug)]
pub struct Repair {
    /// The member that gets the repair.
    pub seat: Seat,
    /// The slot's sequence.
    pub sequence: Sequence,
    /// First row in the slot.
    pub first_row: u16,
    /// Bytes that belong there.
    pub data: Shared,
    /// Length of these bytes.
    pub len: usize,
}

impl Writer {
    /// Sequences of which pieces may be written anew: acknowledged to the end of their slot, and
    /// not so old that the head may reach them while such a write is under way, nor given up.
    pub fn repairable(&self) -> Range<Sequence> {
        let geometry = self.geometry();
        let ahead = 2 * u64::from(self.superblock().window);
        let first = (self.next.sequence + ahead + 1).saturating_sub(geometry.slots);
        let first = first.max(geometry.first_sequence()).max(self.superblock().given_up_before);
        first..self.acknowledged.sequence.max(first)
    }

    /// Writes rows of an acknowledged slot of one member anew. Gives the number of this write: it
    /// is durable once [`Writer::durable_below`] is beyond it. The watermark does not pass it
    /// before, and so neither can the head come round to the slot.
    ///
    /// # Errors
    /// [`Error::Overwritten`] outside [`Writer::repairable`]; [`Error::MembersChanged`] when it was
    /// made before a member came or went.
    pub fn repair(&mut self, repair: Repair, clock: &dyn Clock) -> Result<u64, Error> {
        let Repair { seat, sequence, first_row, data, len } = repair;
        self.check_seat(seat)?;
        if !self.repairable().contains(&sequence) {
            return Err(Error::Overwritten(StripeId { sequence, sub: 0 }));
        }
        let offset =
            self.geometry().slot_offset(sequence) + u64::from(first_row) * u64::from(ROW_BYTES);
        let (number, member) = (self.number(), seat.member);
        let writer = self.writers.get_mut(member).ok_or(Error::Absent { member })?;
        writer.submit((number, 0), offset, (data, len), clock.boottime_ns());
        self.counters.repaired_bytes += to_u64(len);
        Ok(number)
    }

    /// A member lacks nothing from `clean_from` on: all of it was written to it before this, and
    /// becomes durable here. Says so in all superblocks.
    ///
    /// # Errors
    /// [`Error::MembersChanged`] when that was found out before a member came or went, also while
    /// the last writes become durable; those of drains.
    pub fn set_clean_from(
        &mut self,
        seat: Seat,
        clean_from: Sequence,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        self.check_seat(seat)?;
        self.drain(clock)?;
        self.check_seat(seat)?;
        let stored = self.writers.store_alike(clock, |superblock| {
            let entry = superblock.members.get_mut(seat.member.place()).expect("a member");
            // A resilver only makes more of it clean.
            entry.clean_from = clean_from.min(entry.clean_from);
        });
        match stored {
            Ok(()) => {
                self.membership = self.writers.membership();
                Ok(())
            }
            Err(failed) => self.expel(failed, clock),
        }
    }

    fn check_seat(&self, seat: Seat) -> Result<(), Error> {
        let is_theirs = self.membership.seat(seat.member) == Some(seat);
        let is_there = is_theirs && self.writers.get(seat.member).is_some();
        is_there.then_some(()).ok_or(Error::MembersChanged { member: seat.member })
    }
}
