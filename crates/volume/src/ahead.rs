//! Reading ahead: heads that will be asked for come many at a time.
//!
//! The search reads the heads of a grid and then of a window of slots; a device answers many small
//! reads at once in hardly more time than one. What was read lives as long as one search, which
//! sees no head in two states that way although a writer may go on meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;

use device::{Read, ReadAt};
use format::head::HEAD_BYTES;

/// A scan of the whole ring must not fill the memory: 4 MiB.
const PAGES_MAX: usize = 1024;

type Page = [u8; HEAD_BYTES];

/// A member whose heads are read ahead.
pub(crate) struct Ahead<'a> {
    device: &'a dyn ReadAt,
    pages: RefCell<BTreeMap<u64, Page>>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(device: &'a dyn ReadAt) -> Self {
        Self { device, pages: RefCell::default() }
    }

    /// Reads as the device does.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
        if into.len() != HEAD_BYTES {
            return self.device.read_at(offset, into);
        }
        let mut pages = self.pages.borrow_mut();
        if let Some(page) = pages.get(&offset) {
            into.copy_from_slice(page);
        } else {
            self.device.read_at(offset, into)?;
            pages.insert(offset, *into.first_chunk().expect("as long as a head"));
        }
        Ok(())
    }

    /// Reads the heads at `offsets` at once. Those that cannot be read fail when they are asked
    /// for.
    pub(crate) fn fetch(&self, offsets: impl Iterator<Item = u64>) {
        let mut pages = self.pages.borrow_mut();
        let wanted: Vec<u64> = offsets.filter(|offset| !pages.contains_key(offset)).collect();
        if pages.len() + wanted.len() > PAGES_MAX {
            pages.clear();
        }
        let mut bytes = vec![0; wanted.len() * HEAD_BYTES];
        let (fetched, _) = bytes.as_chunks_mut::<HEAD_BYTES>();
        let into = wanted.iter().zip(&mut *fetched);
        let mut reads: Vec<_> = into.map(|(&offset, page)| Read::new(offset, page)).collect();
        self.device.read_many(&mut reads);
        let results: Vec<bool> = reads.into_iter().map(|read| read.result.is_ok()).collect();
        let read = wanted.into_iter().zip(&*fetched).zip(results).filter(|(_, is_read)| *is_read);
        pages.extend(read.map(|((offset, page), _)| (offset, *page)));
    }
}
