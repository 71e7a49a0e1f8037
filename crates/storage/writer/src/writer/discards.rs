//! Telling flash ahead of the head that what lies there is needed no more.
//!
//! Up to W slots in front of what is acknowledged hold nothing that a reader was promised: writes
//! in flight may tear them at any moment. Discards stay inside them, and so to recovery a discarded
//! slot is one that a crash has torn. The window is shared: its last quarter is for discards, the
//! rest for stripes in flight, so that the disk hears of a slot before the head is there however
//! fast the writer is. One run of slots is under way at a time; the head waits where it meets one,
//! and a member that made it wait long gets no discards for a minute.

use units::number::to_u64;
use units::{Clock, EachSequence, MemberId, Sequence};
use volume::Error;

use super::Writer;
use crate::member_writer::MemberWriter;

impl Writer {
    /// Bytes of one member in a run of slots that are discarded together.
    pub fn discard_bytes(&self) -> u64 {
        self.discard_slots() * u64::from(self.geometry().piece_bytes)
    }

    /// From now on a member gets discards ahead of the head, or none. It goes on
    /// until the member fails at it; the member that takes its place gets none.
    pub fn discard_ahead(&mut self, member: MemberId, is_wanted: bool) {
        if let Some(writer) = self.writers.get_mut(member) {
            writer.set_discards(is_wanted);
        }
    }

    fn discard_slots(&self) -> u64 {
        u64::from(self.superblock().window / 4).max(1)
    }

    /// Slots that stripes in flight may reach over.
    pub(super) fn window_of_stripes(&self) -> u64 {
        let window = u64::from(self.superblock().window);
        if self.writers.iter().any(MemberWriter::takes_discards) {
            window - self.discard_slots()
        } else {
            window
        }
    }

    /// Waits until another stripe may be submitted.
    pub(super) fn wait_for_room(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        while !self.has_room_in_window() {
            self.writers.await_discards(|slots| slots.contains(&self.next.sequence), clock);
            self.poll_at_once(clock)?;
        }
        Ok(())
    }

    /// Begins the next run, if it lies ahead of the head and wholly among the slots that no reader
    /// was promised.
    pub(super) fn discard_next(&mut self, clock: &dyn Clock) {
        if !self.writers.iter().any(MemberWriter::takes_discards)
            || self.writers.iter().any(|writer| writer.discarding().is_some())
        {
            return;
        }
        let first = self.next.sequence.max(self.discarded_through) + 1;
        let end = first + self.discard_slots();
        if end > self.acknowledged.sequence + u64::from(self.superblock().window) + 1 {
            return;
        }
        if self.is_erasing_under(&(first..end)) {
            return;
        }
        // At the end of the ring or of an extent the next slot lies elsewhere.
        let geometry = *self.geometry();
        let piece_bytes = u64::from(geometry.piece_bytes);
        let offset = geometry.slot_offset(first);
        let is_behind = |(place, sequence): &(u64, Sequence)| {
            geometry.slot_offset(*sequence) == offset + place * piece_bytes
        };
        let together = (0..).zip((first..end).each()).take_while(is_behind).count();
        let together = to_u64(together);
        let len = together * piece_bytes;
        self.discarded_through = first + together - 1;
        self.counters.discarded_bytes +=
            self.writers.discard(&(first..first + together), (offset, len), clock);
    }
}
