//! Erasing what was given up: slots are overwritten on every member, in the order of the ring.
//!
//! First the superblocks name the sequence that stripes are given out from; that is durable on
//! every member before anything is touched, so whatever a crash leaves in a slot before it, no
//! reader reads, repairs or judges it. Then each slot gets a VOID of its own sequence in place of
//! all that it held: the head, zeros, the end of the block. The ring keeps the head of every slot,
//! which the search of a mount needs, and other tools still read any run of slots as pcapng. How
//! far that has come stands in each member's superblock: one that was away is erased when it
//! returns.

use core::ops::Range;

use format::head::{Kind, StripeHead, StripeId};
use format::superblock::Superblock;
use units::{Clock, Sequence, Timestamp};
use volume::Error;
use volume::seal::{Sealed, empty_head, row_offset};

use super::erasure::SLOTS_AT_ONCE;
use super::{Filled, Writer};
use crate::member_writer::MemberWriter;

/// A slot whose content is forgotten on request, wherever in the ring it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forgotten {
    /// Its sequence.
    pub sequence: Sequence,
    /// When the packets were recorded that it held: its head goes on to say so.
    pub times: (Timestamp, Timestamp),
    /// The newest INDEX before it, which the way to older ones leads over.
    pub index: StripeId,
}

/// Rows of a slot that are written: its head, and what lies behind it.
const HEAD_ROW: u16 = 0;
const ROWS_BEHIND: u16 = 1;

impl Writer {
    /// Gives up the stripes before `sequence`, as far as a mount would not have to judge them:
    /// durable on every member when this returns. From then on no reader is shown them.
    /// [`Writer::erase_next`] takes them off the members. Costs three flushes a member.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn give_up_before(&mut self, sequence: Sequence, clock: &dyn Clock) -> Result<(), Error> {
        let before = sequence.min(self.told.sequence);
        if before <= self.superblock().given_up_before {
            return Ok(());
        }
        self.store(clock, |own| Superblock { given_up_before: before, ..own })?;
        // A repair of what is given up may still be under way, and must not land on zeros.
        self.erasure.settled_above = self.number;
        Ok(())
    }

    /// Sequences that may be given up next, from the oldest that a slot still holds.
    pub fn erasable(&self) -> Range<Sequence> {
        let first = self.oldest_in_slots().max(self.superblock().given_up_before);
        first..self.told.sequence.max(first)
    }

    /// Slots that were given up and are not yet erased.
    pub fn left_to_erase(&self) -> u64 {
        let from = self.erasure.done().max(self.oldest_in_slots());
        self.superblock().given_up_before.since(from)
    }

    /// Slots of earlier sequences hold newer stripes.
    fn oldest_in_slots(&self) -> Sequence {
        let geometry = self.geometry();
        self.next.sequence.next().saturating_sub(geometry.slots).max(geometry.first_sequence())
    }

    /// Begins to erase the next slots of what was given up, a few at a time; false when nothing is
    /// left to begin. [`Writer::poll`] takes the completions. How far it came is stored with the
    /// next change of the superblocks, and by [`Writer::note_erased`].
    ///
    /// # Errors
    /// When memory cannot be had.
    pub fn erase_next(&mut self, clock: &dyn Clock) -> Result<bool, Error> {
        self.erasure.next = self.erasure.next.max(self.oldest_in_slots());
        let end = self.superblock().given_up_before;
        let is_settled = self.durable_below() > self.erasure.settled_above;
        while self.erasure.next < end {
            if !is_settled || self.erasure.under_way.len() >= SLOTS_AT_ONCE {
                return Ok(true);
            }
            if self.is_discarding_held(clock) || !self.erase(self.erasure.next, clock)? {
                return Ok(true);
            }
            self.erasure.next += 1;
        }
        Ok(false)
    }

    /// Says in the superblocks how far the erasing has come, if that is not known yet.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn note_erased(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        let done = self.erasure.done();
        if self.writers.iter().all(|writer| writer.superblock().erased_before >= done) {
            return Ok(());
        }
        self.store(clock, |own| own)
    }

    /// Leaves the current slot, so that it can be given up: from when this returns a mount judges
    /// nothing of it.
    pub fn leave_slot(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        if self.next_row > 0 {
            self.close_slot(clock, false)?;
        }
        // The second of them says that the first one is acknowledged, and so the slot before it.
        while self.told.sequence < self.next.sequence {
            self.append(Filled::heartbeat(), clock)?;
            self.drain(clock)?;
        }
        Ok(())
    }

    /// The slot that the head is about to take is being erased.
    pub(super) fn is_erasing_ahead(&self) -> bool {
        let next = self.next.sequence;
        self.is_erasing_under(&(next..next + 1))
    }

    /// The next slot to be erased lies ahead of the head and is being discarded: the discard might
    /// land behind what is written there. It is waited for, as the head would.
    fn is_discarding_held(&mut self, clock: &dyn Clock) -> bool {
        let holder = self.erasure.next + self.geometry().slots;
        let is_meant = |slots: &Range<Sequence>| slots.contains(&holder);
        self.writers.await_discards(is_meant, clock);
        self.writers.discarding().any(is_meant)
    }

    /// Some of the slots that these sequences are going to take are being erased.
    pub(super) fn is_erasing_under(&self, sequences: &Range<Sequence>) -> bool {
        let slots = self.geometry().slots;
        let mut under_way = self.erasure.under_way.iter();
        under_way.any(|(sequence, _)| sequences.contains(&(*sequence + slots)))
    }

    /// Takes acknowledged slots off all members and says in their heads what is forgotten; done
    /// when this returns. First all that lies behind the heads goes, durably, then the heads: a
    /// crash in between leaves what cannot be read and nothing that can. Which slots that may be
    /// stands in the superblocks until then ([`Superblock::forgetting`]); those that an earlier
    /// call had begun are to be among `slots`. Call [`Writer::leave_slot`] before.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    ///
    /// # Panics
    /// When a mount might have to judge one of the slots, or the ring has passed it.
    pub fn forget(&mut self, slots: &[Forgotten], clock: &dyn Clock) -> Result<(), Error> {
        let range = self.erasable().start..self.told.sequence;
        assert!(slots.iter().all(|slot| range.contains(&slot.sequence)), "only what is held");
        let sequences = || slots.iter().map(|slot| slot.sequence);
        let forgetting = sequences().min().zip(sequences().max());
        self.store(clock, |own| Superblock { forgetting, ..own })?;
        for row in [ROWS_BEHIND, HEAD_ROW] {
            for &Forgotten { sequence, times: (time_min, time_max), index } in slots {
                let head = self.empty_void(sequence, clock);
                let head = StripeHead { time_min, time_max, index, ..head };
                while self.overwrite(head.clone(), &[row], clock)?.is_none() {
                    self.poll_at_once(clock)?;
                }
            }
            self.drain(clock)?;
        }
        self.store(clock, |own| Superblock { forgetting: None, ..own })
    }

    /// Takes off all members what the slots in front of the head still hold of an older lap: no
    /// reader is shown it, and no query finds it. Call [`Writer::leave_slot`] before.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn erase_older_lap(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        self.give_up_before(self.tail(), clock)?;
        while self.erase_next(clock)? {
            self.poll_at_once(clock)?;
        }
        self.drain(clock)?;
        self.note_erased(clock)
    }

    fn empty_void(&self, sequence: Sequence, clock: &dyn Clock) -> StripeHead {
        let place = (StripeId { sequence, sub: 0 }, 0);
        let head = empty_head(self.superblock(), Kind::Void, place, clock);
        StripeHead { epoch: self.epoch(), acknowledged: self.acknowledged, ..head }
    }

    /// False when members that do not answer hold the memory.
    fn erase(&mut self, sequence: Sequence, clock: &dyn Clock) -> Result<bool, Error> {
        let head = self.empty_void(sequence, clock);
        let number = self.overwrite(head, &[ROWS_BEHIND, HEAD_ROW], clock)?;
        self.erasure.under_way.extend(number.map(|number| (sequence, number)));
        Ok(number.is_some())
    }

    /// Writes a VOID over a slot, or one of its two parts; gives the number of the writes, and
    /// nothing when members that do not answer hold the memory.
    fn overwrite(
        &mut self,
        head: StripeHead,
        parts: &[u16],
        clock: &dyn Clock,
    ) -> Result<Option<u64>, Error> {
        let sequence = head.stripe.sequence;
        let sealed = Sealed::new(head);
        let stripe = sealed.stripe();
        let Some((rows, zeros)) = self.erasure.memory(stripe)? else { return Ok(None) };
        let number = self.number();
        let now_ns = clock.boottime_ns();
        for (column, mut row) in (0..).zip(rows) {
            let member = stripe.geometry.member_of(sequence, column);
            let writer = self.writers.get_mut(member);
            let is_there =
                |writer: &&mut MemberWriter| writer.superblock().erased_before <= sequence;
            let Some(writer) = writer.filter(is_there) else { continue };
            row.copy_from_slice(&sealed.page(self.membership.superblock(), column, 0, Vec::new()));
            let both = [(ROWS_BEHIND, zeros.clone()), (HEAD_ROW, row.freeze())];
            for (row, data) in both.into_iter().filter(|(row, _)| parts.contains(row)) {
                let data = (data.clone(), data.len());
                writer.submit((number, u8::from(row == 0)), row_offset(stripe, row), data, now_ns);
            }
        }
        Ok(Some(number))
    }
}
