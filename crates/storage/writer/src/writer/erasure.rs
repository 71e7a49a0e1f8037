//! How far the erasing of what was given up has come.

use std::collections::VecDeque;

use device::{Buffer, Pool, Shared};
use format::geometry::MEMBERS_MAX;
use format::head::{HEAD_BYTES, StripeHead};
use units::Sequence;
use volume::Error;
use volume::seal::rest;

use crate::member_writers::MemberWriters;

/// Slots under way at once: enough to keep a disk busy beside what is recorded.
pub(super) const SLOTS_AT_ONCE: usize = 4;

/// How far the erasing is.
#[derive(Debug)]
pub(super) struct Erasure {
    /// The next sequence.
    pub(super) next: Sequence,
    /// Sequences being erased, with the numbers of their writes, in order.
    pub(super) under_way: VecDeque<(Sequence, u64)>,
    /// Writes with larger numbers began when no repair was wanted any more what was given up.
    pub(super) settled_above: u64,
    /// Of single rows for heads, and what every slot gets behind its head, once they were needed.
    memory: Option<(Pool, Shared)>,
}

impl Erasure {
    /// From where on some member has not been erased.
    pub(super) fn new(writers: &MemberWriters) -> Self {
        let erased = writers.iter().map(|writer| writer.superblock().erased_before).min();
        Self {
            next: erased.unwrap_or_default(),
            under_way: VecDeque::new(),
            settled_above: 0,
            memory: None,
        }
    }

    /// Nothing is left, on any member, of what lies before this sequence.
    pub(super) fn done(&self) -> Sequence {
        self.under_way.front().map_or(self.next, |&(sequence, _)| sequence)
    }

    /// A row for each column of a closing head, and what follows it in the slot.
    pub(super) fn memory(
        &mut self,
        stripe: &StripeHead,
    ) -> Result<Option<(Vec<Buffer>, Shared)>, Error> {
        let columns = usize::from(stripe.geometry.columns());
        let (rows, zeros) = match &mut self.memory {
            Some(memory) => memory,
            none => {
                none.insert((Pool::new(SLOTS_AT_ONCE * MEMBERS_MAX, HEAD_BYTES)?, rest(stripe)?))
            }
        };
        let rows: Vec<Buffer> =
            core::iter::repeat_with(|| rows.take()).map_while(|row| row).take(columns).collect();
        Ok((rows.len() == columns).then(|| (rows, zeros.clone())))
    }

    /// Writes with smaller numbers are durable.
    pub(super) fn note(&mut self, below: u64) {
        while self.under_way.pop_front_if(|&mut (_, number)| number < below).is_some() {}
    }
}
