//! Reading ahead: heads that will be asked for come many at a time.
//!
//! The search reads the heads of a grid and then of a window of slots; a device answers many small
//! reads at once in hardly more time than one. What was read lives as long as one search, which
//! sees no head in two states that way although a writer may go on meanwhile.

use core::iter;
use std::cell::RefCell;
use std::collections::BTreeMap;

use device::{Read, ReadAt};
use format::head::HEAD_BYTES;

/// A scan of the whole ring must not fill the memory: 4 MiB.
const HEADS_MAX: usize = 1024;

/// A member whose heads are read ahead.
pub(crate) struct Ahead<'a> {
    device: &'a dyn ReadAt,
    fetched: RefCell<Fetched>,
}

#[derive(Default)]
struct Fetched {
    /// Heads that came together, one behind the other.
    batches: Vec<Vec<u8>>,
    /// By their offset on the member: the batch that a head came with, and its place there.
    heads: BTreeMap<u64, (usize, usize)>,
}

impl Fetched {
    /// Places for heads in all batches.
    fn held(&self) -> usize {
        self.batches.iter().map(|batch| batch.len() / HEAD_BYTES).sum()
    }

    fn get(&self, offset: u64) -> Option<&[u8]> {
        let &(batch, place) = self.heads.get(&offset)?;
        self.batches.get(batch)?.chunks_exact(HEAD_BYTES).nth(place)
    }

    /// Takes a batch in; `read` are the offsets of its heads and whether each could be read.
    fn add(&mut self, batch: Vec<u8>, read: impl Iterator<Item = (u64, bool)>) {
        let number = self.batches.len();
        let placed = read.zip(0..).filter(|((_, is_read), _)| *is_read);
        self.heads.extend(placed.map(|((offset, _), place)| (offset, (number, place))));
        self.batches.push(batch);
    }
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(device: &'a dyn ReadAt) -> Self {
        Self { device, fetched: RefCell::default() }
    }

    /// Reads as the device does.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
        if into.len() != HEAD_BYTES {
            return self.device.read_at(offset, into);
        }
        let mut fetched = self.fetched.borrow_mut();
        if let Some(head) = fetched.get(offset) {
            into.copy_from_slice(head);
        } else {
            self.device.read_at(offset, into)?;
            fetched.add(into.to_vec(), iter::once((offset, true)));
        }
        Ok(())
    }

    /// Reads the heads at `offsets` at once. Those that cannot be read fail when they are asked
    /// for.
    pub(crate) fn fetch(&self, offsets: impl Iterator<Item = u64>) {
        let mut fetched = self.fetched.borrow_mut();
        let wanted: Vec<u64> = offsets.filter(|&offset| fetched.get(offset).is_none()).collect();
        if fetched.held() + wanted.len() > HEADS_MAX {
            *fetched = Fetched::default();
        }
        let mut batch = vec![0; wanted.len() * HEAD_BYTES];
        let into = wanted.iter().zip(batch.chunks_exact_mut(HEAD_BYTES));
        let mut reads: Vec<_> = into.map(|(&offset, head)| Read::new(offset, head)).collect();
        self.device.read_many(&mut reads);
        let results: Vec<bool> = reads.into_iter().map(|read| read.result.is_ok()).collect();
        fetched.add(batch, wanted.into_iter().zip(results));
    }
}
