//! Reading ahead: heads that are asked for one after the other come many at a time.
//!
//! The search reads the heads of a window of slots; a device answers many small reads at once in
//! hardly more time than one. What was read lives as long as one search, which sees no head in two
//! states that way although a writer may go on meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread;

use device::ReadAt;
use format::head::HEAD_BYTES;

/// Heads fetched by each of the reads at once; eight of them fetch a whole window of the search.
const HEADS_EACH: usize = 16;
/// Fewer are the search trying the neighbours of an unreadable slot.
const RUN_MIN: u32 = 3;

type Page = [u8; HEAD_BYTES];

/// A member whose heads are read ahead.
pub(crate) struct Ahead<'a> {
    device: &'a dyn ReadAt,
    /// Bytes from one slot to the next.
    stride: u64,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Where the head read last lies, and how many before it were asked for slot after slot.
    last: u64,
    run: u32,
    pages: BTreeMap<u64, Page>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(device: &'a dyn ReadAt, stride: u64) -> Self {
        Self { device, stride, state: RefCell::default() }
    }

    /// Reads as the device does.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
        if into.len() != HEAD_BYTES {
            return self.device.read_at(offset, into);
        }
        let mut state = self.state.borrow_mut();
        state.run = if offset == state.last + self.stride { state.run + 1 } else { 0 };
        state.last = offset;
        if state.run >= RUN_MIN && !state.pages.contains_key(&offset) {
            // What was kept before goes: a scan of the whole ring must not fill the memory.
            state.pages = self.fetch(offset);
        }
        if let Some(page) = state.pages.get(&offset) {
            into.copy_from_slice(page);
        } else {
            self.device.read_at(offset, into)?;
            state.pages.insert(offset, *into.first_chunk().expect("as long as a head"));
        }
        Ok(())
    }

    /// The heads from `offset` on, as far as they can be read.
    fn fetch(&self, offset: u64) -> BTreeMap<u64, Page> {
        let size_bytes = self.device.size_bytes();
        let at_once = self.device.reads_at_once();
        let offsets: Vec<u64> = (0..)
            .take(HEADS_EACH * at_once)
            .map(|slot| offset + slot * self.stride)
            .take_while(|&offset| offset + self.stride <= size_bytes)
            .collect();
        let share = offsets.len().div_ceil(at_once).max(1);
        if at_once == 1 {
            return read(self.device, &offsets).into_iter().collect();
        }
        thread::scope(|scope| {
            let start = |part| {
                let builder = thread::Builder::new().name("read-heads".to_owned());
                let device = self.device;
                builder.spawn_scoped(scope, move || read(device, part))
            };
            // Where no thread can be had, its part is read one by one when it is asked for.
            let threads: Vec<_> =
                offsets.chunks(share).filter_map(|part| start(part).ok()).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }
}

fn read(device: &dyn ReadAt, offsets: &[u64]) -> Vec<(u64, Page)> {
    let page = |&offset: &u64| {
        let mut page = [0; HEAD_BYTES];
        device.read_at(offset, &mut page).ok().map(|()| (offset, page))
    };
    offsets.iter().filter_map(page).collect()
}
