//! The rings between this program and the kernel: numbers and descriptors of chunks, which change
//! hands by two counters that only rise (`af_xdp.rst` in the kernel's documentation).
//!
//! Invariant: entries between consumer and producer belong to the consumer, the others to the
//! producer. Each side moves its own counter alone, after it is done with the entries before it.

use core::marker::PhantomData;
use core::mem::{offset_of, size_of};
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::{XdpDesc, XdpDescOptions, XdpRingFlags, XdpRingOffset};

/// What a ring holds: one or two words, of which any bits are a value.
///
/// Entries are loaded and stored word by word, atomically: whatever the other side does, nothing
/// is undefined.
pub(super) trait Entry: Copy {
    /// Words of an entry.
    const WORDS: usize;

    /// From as many words as it has.
    fn load(words: &[AtomicU64]) -> Self;
    /// Into as many words as it has.
    fn store(self, words: &[AtomicU64]);
}

impl Entry for u64 {
    const WORDS: usize = 1;

    fn load(words: &[AtomicU64]) -> Self {
        words.first().map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(self, words: &[AtomicU64]) {
        if let Some(word) = words.first() {
            word.store(self, Ordering::Relaxed);
        }
    }
}

const _: () = assert!(size_of::<XdpDesc>() == 16 && offset_of!(XdpDesc, addr) == 0);
const _: () = assert!(offset_of!(XdpDesc, len) == 8 && offset_of!(XdpDesc, options) == 12);

impl Entry for XdpDesc {
    const WORDS: usize = 2;

    fn load(words: &[AtomicU64]) -> Self {
        let word = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        let [len, options]: [u32; 2] = zerocopy::transmute!(word(1));
        Self { addr: word(0), len, options: XdpDescOptions::from_bits_retain(options) }
    }

    fn store(self, words: &[AtomicU64]) {
        let second: u64 = zerocopy::transmute!([self.len, self.options.bits()]);
        for (word, value) in words.iter().zip([self.addr, second]) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// A mapped ring.
#[derive(Debug)]
struct Mapping<T> {
    memory: NonNull<u8>,
    len: usize,
    places: XdpRingOffset,
    /// A power of two.
    entries: u32,
    kind: PhantomData<fn(T)>,
}

// SAFETY: the mapping belongs to this value alone, is valid in every thread, and is accessed
// atomically only.
unsafe impl<T> Send for Mapping<T> {}

impl<T: Entry> Mapping<T> {
    fn new(
        socket: BorrowedFd<'_>,
        offset: u64,
        places: XdpRingOffset,
        entries: u32,
    ) -> io::Result<Self> {
        assert!(entries.is_power_of_two(), "the kernel takes no other rings");
        let len = Self::len(&places, entries).ok_or(io::ErrorKind::InvalidData)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap(ptr::null_mut(), len, protection, flags, socket, offset) }?;
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, len, places, entries, kind: PhantomData })
    }

    /// Bytes of a ring whose counters stand before its entries, all of them aligned.
    fn len(places: &XdpRingOffset, entries: u32) -> Option<usize> {
        let counters = [Some(places.producer), Some(places.consumer), places.flags];
        let is_before = |place: u64| place.is_multiple_of(4) && place < places.desc;
        let are_before = counters.into_iter().flatten().all(is_before);
        let begin =
            usize::try_from(places.desc).ok().filter(|at| are_before && at.is_multiple_of(8))?;
        let bytes = usize::try_from(entries).ok()?.checked_mul(T::WORDS * size_of::<u64>())?;
        begin.checked_add(bytes).filter(|len| isize::try_from(*len).is_ok())
    }

    /// One of the counters, by its place.
    fn word(&self, place: u64) -> &AtomicU32 {
        assert!(
            place.is_multiple_of(4) && place < self.places.desc,
            "counters lie before the entries"
        );
        // SAFETY: the place is inside of the mapping, in which the entries begin behind it.
        let word = unsafe { self.memory.add(index(place)) };
        // SAFETY: aligned to 4 in a mapping aligned to a page; four bytes of it lie before the
        // entries, which begin at a multiple of 8; this side accesses it only atomically, and only
        // as four bytes; it lives as long as the borrow.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.places.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.places.consumer)
    }

    /// The words of an entry.
    fn entry(&self, number: u32) -> &[AtomicU64] {
        let place = index(u64::from(number & (self.entries - 1)));
        let offset = index(self.places.desc) + place * T::WORDS * size_of::<u64>();
        // SAFETY: the entry lies in the mapping, whose length `len` made for all of them.
        let entry = unsafe { self.memory.add(offset) };
        // SAFETY: so many words are inside, aligned to 8 (`len`), accessed atomically only by this
        // side, and live as long as the borrow.
        unsafe { slice::from_raw_parts(entry.as_ptr().cast(), T::WORDS) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference outlives this value.
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), self.len) };
        unmapped.expect("a mapping of known address and size can be removed");
    }
}

/// A ring that the kernel fills.
#[derive(Debug)]
pub(super) struct FromKernel<T: Entry> {
    ring: Mapping<T>,
    next: u32,
}

impl<T: Entry> FromKernel<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        offset: u64,
        places: XdpRingOffset,
        entries: u32,
    ) -> io::Result<Self> {
        let ring = Mapping::new(socket, offset, places, entries)?;
        let next = ring.consumer().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Entries that wait; never more than the ring has.
    pub(super) fn waiting(&self) -> u32 {
        let waiting = self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.next);
        waiting.min(self.ring.entries)
    }

    /// One of those that wait; `None` where there are fewer.
    pub(super) fn peek(&self, ahead: u32) -> Option<T> {
        (ahead < self.waiting()).then(|| T::load(self.ring.entry(self.next.wrapping_add(ahead))))
    }

    /// Takes the next one. Its place is the kernel's again.
    pub(super) fn take(&mut self) -> Option<T> {
        let entry = self.peek(0)?;
        self.next = self.next.wrapping_add(1);
        self.ring.consumer().store(self.next, Ordering::Release);
        Some(entry)
    }
}

/// A ring that we fill.
#[derive(Debug)]
pub(super) struct ToKernel<T: Entry> {
    ring: Mapping<T>,
    next: u32,
}

impl<T: Entry> ToKernel<T> {
    /// # Safety
    /// It is the only one of this ring, for what another one has put in would be shown a second
    /// time.
    pub(super) unsafe fn map(
        socket: BorrowedFd<'_>,
        offset: u64,
        places: XdpRingOffset,
        entries: u32,
    ) -> io::Result<Self> {
        let ring = Mapping::new(socket, offset, places, entries)?;
        let next = ring.producer().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Entries that the kernel has not taken yet.
    pub(super) fn pending(&self) -> u32 {
        let published = self.ring.producer().load(Ordering::Relaxed);
        published.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Puts an entry into the ring, where the kernel does not see it yet.
    ///
    /// # Safety
    /// The memory that it names is the kernel's from now on: no code borrows it until it has come
    /// back by another ring.
    ///
    /// # Panics
    /// There is no space.
    pub(super) unsafe fn put(&mut self, value: T) {
        let taken = self.ring.consumer().load(Ordering::Acquire);
        assert!(
            self.next.wrapping_sub(taken) < self.ring.entries,
            "a ring has space for all chunks"
        );
        value.store(self.ring.entry(self.next));
        self.next = self.next.wrapping_add(1);
    }

    /// Shows the kernel what was put in.
    pub(super) fn publish(&self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel looks at the ring only when it is woken.
    pub(super) fn needs_wakeup(&self) -> bool {
        let Some(place) = self.ring.places.flags else { return true };
        let flags = self.ring.word(place).load(Ordering::Acquire);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

fn index(value: u64) -> usize {
    usize::try_from(value).expect("rings fit into memory")
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const PLACES: XdpRingOffset =
        XdpRingOffset { producer: 0, consumer: 32, desc: 128, flags: Some(64) };

    fn memory() -> OwnedFd {
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, 1 << 16).unwrap();
        memory
    }

    #[test]
    fn what_is_put_in_comes_out_in_order_and_no_more() {
        let memory = memory();
        // SAFETY: the only one, and no code looks at what the entries name.
        let mut to: ToKernel<XdpDesc> =
            unsafe { ToKernel::map(memory.as_fd(), 0, PLACES, 4) }.unwrap();
        let mut from: FromKernel<XdpDesc> = FromKernel::map(memory.as_fd(), 0, PLACES, 4).unwrap();
        for turn in 0..9 {
            let entry = XdpDesc { addr: turn, len: 7, options: XdpDescOptions::XDP_PKT_CONTD };
            // SAFETY: as above.
            unsafe { to.put(entry) };
            assert!(from.take().is_none(), "not yet shown");
            to.publish();
            assert!(from.peek(1).is_none() && from.waiting() == 1);
            let found = from.take().unwrap();
            assert_eq!((found.addr, found.len, found.options), (turn, 7, entry.options));
            assert_eq!(to.pending(), 0);
        }
    }

    #[test]
    fn a_producer_that_says_too_much_is_held_to_the_ring() {
        let memory = memory();
        let from: FromKernel<u64> = FromKernel::map(memory.as_fd(), 0, PLACES, 8).unwrap();
        rustix::io::pwrite(&memory, &[0xff; 4], 0).unwrap();
        assert_eq!((from.waiting(), from.peek(7), from.peek(8)), (8, Some(0), None));
    }

    #[test]
    fn offsets_that_the_kernel_does_not_give_are_refused() {
        let memory = memory();
        for places in [
            XdpRingOffset { desc: u64::MAX, ..PLACES },
            XdpRingOffset { desc: 132, ..PLACES },
            XdpRingOffset { producer: 128, ..PLACES },
            XdpRingOffset { consumer: 33, ..PLACES },
            XdpRingOffset { flags: Some(u64::MAX - 3), ..PLACES },
        ] {
            let refused = FromKernel::<u64>::map(memory.as_fd(), 0, places, 8);
            assert!(refused.is_err(), "{places:?}");
        }
    }
}
