//! Reading ahead: heads that will be asked for come many at a time, from all members together.
//!
//! The search reads the heads of a grid and then of a window of slots; a device answers many small
//! reads at once in hardly more time than one, and members answer side by side. What was read lives
//! as long as one search, which sees no head in two states that way although a writer may go on
//! meanwhile.

use core::iter;
use std::cell::RefCell;
use std::collections::BTreeMap;

use device::{LentRead, ReadAt};
use format::head::HEAD_BYTES;
use units::MemberId;

use crate::heads::Expected;

/// A scan of the whole ring must not fill the memory: 4 MiB of each member.
const HEADS_MAX: usize = 1024;

/// The members, by number, of which heads are read ahead.
pub(crate) struct Ahead<'a> {
    members: Vec<Option<OfMember<'a>>>,
}

/// A member whose heads are read ahead.
struct OfMember<'a> {
    device: &'a dyn ReadAt,
    /// By their offset on the member.
    heads: RefCell<BTreeMap<u64, Vec<u8>>>,
}

impl<'a> Ahead<'a> {
    /// Of members by number.
    pub(crate) fn new(members: impl Iterator<Item = Option<&'a dyn ReadAt>>) -> Self {
        let of = |device| OfMember { device, heads: RefCell::default() };
        Self { members: members.map(|device| device.map(of)).collect() }
    }

    fn of(&self, member: MemberId) -> Option<&OfMember<'a>> {
        self.members.get(member.place())?.as_ref()
    }

    /// Reads as the device of a member does; `None` where there is none.
    pub(crate) fn read(
        &self,
        member: MemberId,
        offset: u64,
        into: &mut [u8],
    ) -> Option<Result<(), device::Error>> {
        Some(self.of(member)?.read(offset, into))
    }

    /// Begins on all members, and waits as long as the slowest needs. What cannot be read fails
    /// when it is asked for. Slots are read whole into memory of their own, see
    /// [`crate::heads::Heads::read_slots`].
    pub(crate) fn fetch(&self, expected: Expected<'_>) {
        let Expected { places, len } = expected;
        if len != HEAD_BYTES {
            return;
        }
        let begun: Vec<_> = places
            .iter()
            .filter_map(|&(member, offsets)| Some((self.of(member)?, offsets)))
            .filter_map(|(it, offsets)| Some((it, it.device.begin(it.wanted(offsets)?))))
            .collect();
        for (of_member, reading) in begun {
            of_member.add(reading.end());
        }
    }
}

impl OfMember<'_> {
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
        if into.len() != HEAD_BYTES {
            return self.device.read_at(offset, into);
        }
        if let Some(head) = self.heads.borrow().get(&offset) {
            into.copy_from_slice(head);
            return Ok(());
        }
        self.device.read_at(offset, into)?;
        self.heads.borrow_mut().extend(iter::once((offset, into.to_vec())));
        Ok(())
    }

    /// The heads at these places that are not here yet; `None` where all are.
    fn wanted(&self, offsets: &[u64]) -> Option<Vec<LentRead>> {
        let mut heads = self.heads.borrow_mut();
        let is_new = |offset: &&u64| !heads.contains_key(offset);
        let wanted: Vec<u64> = offsets.iter().filter(is_new).copied().collect();
        if heads.len() + wanted.len() > HEADS_MAX {
            heads.clear();
        }
        let reads = wanted.into_iter().map(|offset| LentRead::new(offset, vec![0; HEAD_BYTES]));
        let reads: Vec<LentRead> = reads.collect();
        (!reads.is_empty()).then_some(reads)
    }

    fn add(&self, read: Vec<LentRead>) {
        let read = read.into_iter().filter(|read| read.result.is_ok());
        self.heads.borrow_mut().extend(read.map(|read| (read.offset, read.bytes)));
    }
}
