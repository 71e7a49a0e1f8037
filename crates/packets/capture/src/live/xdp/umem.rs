//! The memory that packets lie in: chunks, each of which is the kernel's or ours, and behind them
//! an area of our own, where packets of several chunks are put together.
//!
//! Invariant: bytes of a chunk are borrowed only while it is ours. It is the kernel's from the
//! moment it is named in a ring to the kernel ([`Umem::lend`]) until a ring from the kernel names
//! it ([`Umem::take`]); both need the memory exclusively, so that no borrow goes on.

use core::ops::Range;
use core::ptr::{self, NonNull};
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use zerocopy::FromBytes;

use crate::source::{Record, Run};

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
    /// By chunk, whether it is ours.
    ours: Vec<bool>,
    /// Bytes of the area that are taken.
    joined: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread.
unsafe impl Send for Umem {}

impl Umem {
    /// So many chunks, all of them ours.
    pub(super) fn new(chunk_bytes: usize, chunks: u32) -> io::Result<Self> {
        let count = usize::try_from(chunks).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let len = chunk_bytes.checked_mul(count).and_then(|len| len.checked_add(AREA_BYTES));
        let len = len.filter(|len| chunk_bytes > 0 && isize::try_from(*len).is_ok());
        let len = len.ok_or(io::ErrorKind::OutOfMemory)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap_anonymous(ptr::null_mut(), len, protection, flags) }?;
        if !cfg!(miri) {
            // SAFETY: the mapping is ours. Fewer entries of the page table are a gain, no need.
            unsafe { madvise(memory, len, Advice::LinuxHugepage) }.unwrap_or_default();
        }
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, chunk_bytes, chunks, ours: vec![true; count], joined: 0 })
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

    /// Packets that lie in chunks of ours, or in the area.
    pub(super) fn run<'a>(&'a self, records: &'a [Record]) -> Run<'a> {
        for record in records {
            self.check(&record.bytes);
        }
        // SAFETY: `len` bytes are mapped and initialised (the kernel gives zeros) as long as this
        // value is borrowed. The bytes of the records were checked to be ours; they stay so and
        // are not written as long, for that takes this value exclusively.
        unsafe { Run::shared((self.memory, self.len()), records) }
    }

    /// The chunk that an address lies in.
    fn chunk(&self, address: u64) -> Option<usize> {
        let at = usize::try_from(address).ok()? / self.chunk_bytes;
        (at < self.ours.len()).then_some(at)
    }

    /// Makes the chunk that an address lies in the kernel's. False where it is already.
    pub(super) fn lend(&mut self, address: u64) -> bool {
        let place = self.chunk(address).and_then(|at| self.ours.get_mut(at));
        place.is_some_and(|is_ours| core::mem::replace(is_ours, false))
    }

    /// Makes the chunk of `len` bytes at an address ours, as the kernel has said by a ring. `None`
    /// where that was never the kernel's: it lies elsewhere, reaches into a second chunk, or is
    /// ours.
    pub(super) fn take(&mut self, address: u64, len: u32) -> Option<Range<usize>> {
        let at = self.chunk(address)?;
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let is_ours = self.ours.get_mut(at)?;
        let is_right = end <= (at + 1) * self.chunk_bytes && !*is_ours;
        *is_ours |= is_right;
        is_right.then_some(start..end)
    }

    /// The 8 bytes before a packet.
    pub(super) fn stamp(&self, packet: usize) -> u64 {
        let at = packet.checked_sub(size_of::<u64>()).expect("there is headroom before a packet");
        u64::read_from_bytes(self.bytes(at..packet)).expect("eight bytes")
    }

    /// The bytes of a packet that lies in a chunk of ours, or in the area.
    pub(super) fn bytes(&self, packet: Range<usize>) -> &[u8] {
        self.check(&packet);
        // SAFETY: the bytes are inside.
        let start = unsafe { self.memory.add(packet.start) };
        // SAFETY: they are initialised, ours, and not written while this value is borrowed.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), packet.len()) }
    }

    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.check(&range);
        // SAFETY: the bytes are inside.
        let start = unsafe { self.memory.add(range.start) };
        // SAFETY: they are initialised, ours, and no other code borrows them, for this value is
        // borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), range.len()) }
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
        assert!(part.len() <= AREA_BYTES - self.joined, "a packet has at most 64 KiB");
        assert!(part.end <= self.chunks_len(), "a part lies in a chunk");
        let to = self.area();
        self.joined += part.len();
        let from = self.bytes(part.clone()).as_ptr();
        let to = self.bytes_mut(to..to + part.len()).as_mut_ptr();
        // SAFETY: both were checked, and have the same length; the area lies behind the chunks.
        unsafe { ptr::copy_nonoverlapping(from, to, part.len()) };
    }

    /// Writes into a chunk of ours.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes_mut(at..at + bytes.len()).copy_from_slice(bytes);
    }

    /// All chunks that a range touches are ours; what lies behind the chunks always is.
    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len(), "bytes lie in the memory");
        let first = range.start / self.chunk_bytes;
        let behind = range.end.div_ceil(self.chunk_bytes).min(self.ours.len());
        let mut touched = self.ours.get(first..behind).unwrap_or_default().iter();
        assert!(touched.all(|is_ours| *is_ours), "bytes of a chunk that the kernel has");
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference outlives this value.
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), self.len()) };
        unmapped.expect("a mapping of known address and size can be removed");
    }
}

/// For tests that give any bytes: what is lent to the kernel and what it describes, each an address
/// of two bytes and a length of two. Gives how many descriptions were believed; the others must not
/// be right.
pub(crate) fn read_any_descriptors(bytes: &[u8]) -> io::Result<usize> {
    const CHUNK: u64 = 2048;
    const CHUNKS: u32 = 8;
    let mut umem = Umem::new(2048, CHUNKS)?;
    let mut lent = [false; 8];
    let mut believed = 0;
    for (number, four) in bytes.as_chunks::<4>().0.iter().enumerate() {
        let [a, b, c, d] = *four;
        let (address, len) = (u64::from(u16::from_le_bytes([a, b])), u16::from_le_bytes([c, d]));
        let at = usize::try_from(address / CHUNK).unwrap_or(usize::MAX);
        if number % 2 == 0 {
            let is_ours = lent.get(at).is_some_and(|is_lent| !is_lent);
            assert_eq!(umem.lend(address), is_ours, "lent once");
            if let Some(is_lent) = lent.get_mut(at) {
                *is_lent = true;
            }
            continue;
        }
        let is_whole = address % CHUNK + u64::from(len) <= CHUNK;
        let is_right = is_whole && lent.get(at).is_some_and(|is_lent| *is_lent);
        let found = umem.take(address, len.into());
        assert_eq!(found.is_some(), is_right, "believed where it was lent");
        if let Some(found) = found {
            believed += 1;
            assert_eq!(umem.bytes(found).len(), usize::from(len));
            if let Some(is_lent) = lent.get_mut(at) {
                *is_lent = false;
            }
        }
    }
    Ok(believed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_one_owner_at_a_time() {
        let mut umem = Umem::new(2048, 4).unwrap();
        umem.write(2048, b"stamped_packet");
        assert!(umem.lend(2048 + 9) && !umem.lend(2048), "lent once");
        assert!(!umem.lend(4 * 2048) && !umem.lend(u64::MAX), "behind the chunks");
        assert_eq!(umem.take(0, 4), None, "never lent");
        assert_eq!(umem.take(2056, 2048), None, "into the next chunk");
        assert_eq!(umem.take(2056, 6), Some(2056..2062));
        assert_eq!(umem.take(2056, 6), None, "taken once");
        assert_eq!(umem.bytes(2056..2062), b"packet");
        assert_eq!(umem.stamp(2056).to_le_bytes(), *b"stamped_");
    }

    #[test]
    fn parts_are_joined_behind_the_chunks() {
        let mut umem = Umem::new(2048, 4).unwrap();
        umem.write(100, b"one ");
        umem.write(2048, b"two");
        let start = umem.area();
        umem.join(100..104);
        umem.join(2048..2051);
        assert_eq!(umem.bytes(start..umem.area()), b"one two");
        umem.clear();
        assert!(umem.area() == start && umem.has_area());
    }

    #[test]
    #[should_panic(expected = "bytes of a chunk that the kernel has")]
    fn bytes_that_the_kernel_may_write_are_not_borrowed() {
        let mut umem = Umem::new(2048, 4).unwrap();
        assert!(umem.lend(4096));
        umem.bytes(4095..4097);
    }

    #[test]
    #[should_panic(expected = "bytes of a chunk that the kernel has")]
    fn a_batch_has_no_packets_that_the_kernel_may_write() {
        let mut umem = Umem::new(2048, 4).unwrap();
        assert!(umem.lend(0));
        let record = Record {
            timestamp: units::Timestamp(0),
            interface: 0,
            original_len: 1,
            outbound: None,
            tag: None,
            bytes: 2047..2048,
            options: 0..0,
        };
        umem.run(&[record]);
    }
}
