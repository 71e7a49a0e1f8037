//! The memory that packets lie in: chunks, each of which is the kernel's or ours, and behind them
//! an area of our own, where packets of several chunks are put together.
//!
//! Invariant: bytes of a chunk are read only between the moment the kernel describes a packet in it
//! and the moment the chunk is given back, and written only while it is not given to the kernel.

use core::ops::Range;
use core::ptr::{self, NonNull};
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::source::Memory;

/// The area behind the chunks; a packet is at most 64 KiB.
const AREA_BYTES: usize = 2 << 20;
/// Left for one more packet.
const LONGEST: usize = 128 << 10;

/// The memory of one socket.
#[derive(Debug)]
pub(super) struct Umem {
    memory: NonNull<u8>,
    chunk_bytes: usize,
    chunks: u32,
    /// Bytes of the area that are taken.
    joined: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread.
unsafe impl Send for Umem {}

impl Umem {
    pub(super) fn new(chunk_bytes: usize, chunks: u32) -> io::Result<Self> {
        let mut umem = Self { memory: NonNull::dangling(), chunk_bytes, chunks, joined: 0 };
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap_anonymous(ptr::null_mut(), umem.len(), protection, flags) };
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                core::mem::forget(umem);
                return Err(error.into());
            }
        };
        umem.memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        // SAFETY: the mapping is ours. Fewer entries of the page table are a gain, no need.
        unsafe { madvise(memory, umem.len(), Advice::LinuxHugepage) }.unwrap_or_default();
        Ok(umem)
    }

    /// Where the chunks begin, for the kernel.
    pub(super) fn address(&self) -> u64 {
        u64::try_from(self.memory.as_ptr().expose_provenance()).expect("addresses have 64 bits")
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(super) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Bytes of all chunks.
    pub(super) fn chunks_len(&self) -> usize {
        self.chunk_bytes * usize::try_from(self.chunks).expect("chunks fit into memory")
    }

    fn len(&self) -> usize {
        self.chunks_len() + AREA_BYTES
    }

    /// For a batch whose packets lie in chunks that were not given back, or in the area.
    pub(super) fn memory(&self) -> Memory<'_> {
        // SAFETY: the mapping lives as long as the borrow, during which no chunk is given back and
        // nothing is joined: both need this value exclusively.
        unsafe { Memory::shared(self.memory, self.len()) }
    }

    /// The 8 bytes before a packet.
    pub(super) fn stamp(&self, packet: usize) -> u64 {
        let at = packet.checked_sub(size_of::<u64>()).expect("there is headroom before a packet");
        self.check(&(at..packet));
        // SAFETY: the bytes lie in a chunk that is ours.
        let stamp = unsafe { self.memory.add(at) };
        // SAFETY: every bit pattern is a value, and the address need not be aligned.
        unsafe { stamp.cast::<u64>().read_unaligned() }
    }

    /// The bytes of a packet that lies in a chunk, or in the area.
    pub(super) fn bytes(&self, packet: Range<usize>) -> &[u8] {
        self.check(&packet);
        // SAFETY: the bytes are inside.
        let start = unsafe { self.memory.add(packet.start) };
        // SAFETY: they belong to a packet that was described, so that nobody writes them.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), packet.len()) }
    }

    /// Forgets what was joined.
    pub(super) fn clear(&mut self) {
        self.joined = 0;
    }

    /// Whether a packet may be joined.
    pub(super) fn has_area(&self) -> bool {
        AREA_BYTES - self.joined >= LONGEST
    }

    /// Where the next byte that is joined will be.
    pub(super) fn area(&self) -> usize {
        self.chunks_len() + self.joined
    }

    /// Copies a part of a packet behind what was joined.
    pub(super) fn join(&mut self, part: Range<usize>) {
        self.check(&part);
        assert!(part.len() <= AREA_BYTES - self.joined, "a packet has at most 64 KiB");
        let to = self.area();
        self.joined += part.len();
        // SAFETY: the part lies in a chunk that is ours.
        let from = unsafe { self.memory.add(part.start) };
        // SAFETY: the area lies behind the chunks, in the mapping.
        let to = unsafe { self.memory.add(to) };
        // SAFETY: both were checked, and a chunk does not reach into the area.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), part.len()) };
    }

    /// Writes into a chunk that is ours.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.check(&(at..at + bytes.len()));
        // SAFETY: the place is inside.
        let to = unsafe { self.memory.add(at) };
        // SAFETY: the bytes fit, and come from elsewhere, for this value is borrowed exclusively.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    /// The kernel describes nothing beyond the memory that it was given.
    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len(), "bytes lie in the memory");
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference outlives this value.
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), self.len()) };
        unmapped.expect("a mapping of known address and size can be removed");
    }
}
