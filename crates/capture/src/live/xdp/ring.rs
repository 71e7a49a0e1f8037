//! The rings between this program and the kernel: numbers and descriptors of chunks, which change
//! hands by two counters that only rise (`af_xdp.rst` in the kernel's documentation).
//!
//! Invariant: entries between consumer and producer belong to the consumer, the others to the
//! producer. Each side moves its own counter alone, after it is done with the entries before it.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::{XdpDesc, XdpRingFlags, XdpRingOffset};

/// What a ring holds.
///
/// # Safety
/// Every bit pattern is a value.
pub(super) unsafe trait Entry: Copy {}
// SAFETY: a number.
unsafe impl Entry for u64 {}
// SAFETY: all fields are numbers; flags are one that keeps bits without a name.
unsafe impl Entry for XdpDesc {}

/// A mapped ring.
#[derive(Debug)]
struct Mapping<T> {
    memory: NonNull<u8>,
    len: usize,
    places: XdpRingOffset,
    /// A power of two.
    entries: u32,
    kind: PhantomData<T>,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread.
unsafe impl<T: Entry> Send for Mapping<T> {}

impl<T: Entry> Mapping<T> {
    fn new(
        socket: BorrowedFd<'_>,
        offset: u64,
        places: XdpRingOffset,
        entries: u32,
    ) -> io::Result<Self> {
        assert!(entries.is_power_of_two(), "the kernel takes no other rings");
        let len = index(places.desc) + index(u64::from(entries)) * size_of::<T>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap(ptr::null_mut(), len, protection, flags, socket, offset) }?;
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, len, places, entries, kind: PhantomData })
    }

    fn word(&self, place: u64) -> &AtomicU32 {
        let place = index(place);
        assert!(place + size_of::<u32>() <= self.len, "counters lie in the ring");
        // SAFETY: the place is inside of the mapping.
        let word = unsafe { self.memory.add(place) };
        // SAFETY: the kernel aligns its counters, and both sides access them atomically only.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.places.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.places.consumer)
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        let place = index(u64::from(number & (self.entries - 1)));
        // SAFETY: the entry lies in the mapping, whose size was made for all of them.
        let entry = unsafe { self.memory.add(index(self.places.desc) + place * size_of::<T>()) };
        entry.cast()
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

    /// Entries that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.next)
    }

    /// One of those that wait, which must be more than `ahead`.
    pub(super) fn peek(&self, ahead: u32) -> T {
        let entry = self.ring.entry(self.next.wrapping_add(ahead));
        // SAFETY: the entry is ours, and initialised by the kernel; every bit pattern is a value.
        unsafe { entry.read() }
    }

    /// Goes on behind so many entries, which are the kernel's again.
    pub(super) fn skip(&mut self, count: u32) {
        self.next = self.next.wrapping_add(count);
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

/// A ring that we fill.
#[derive(Debug)]
pub(super) struct ToKernel<T: Entry> {
    ring: Mapping<T>,
    next: u32,
}

impl<T: Entry> ToKernel<T> {
    pub(super) fn map(
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
    /// # Panics
    /// There is no room.
    pub(super) fn put(&mut self, value: T) {
        let taken = self.ring.consumer().load(Ordering::Acquire);
        assert!(
            self.next.wrapping_sub(taken) < self.ring.entries,
            "a ring has room for all chunks"
        );
        let entry = self.ring.entry(self.next);
        // SAFETY: the entry is ours, for the kernel has gone beyond what was in it.
        unsafe { entry.write(value) };
        self.next = self.next.wrapping_add(1);
    }

    /// Shows the kernel what was put in.
    pub(super) fn publish(&self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel looks at the ring only when it is told to.
    pub(super) fn needs_wakeup(&self) -> bool {
        let Some(place) = self.ring.places.flags else { return true };
        let flags = self.ring.word(place).load(Ordering::Acquire);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

fn index(value: u64) -> usize {
    usize::try_from(value).expect("rings fit into memory")
}
