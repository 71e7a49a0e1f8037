//! The kernel ring: memory shared with the kernel, in kernel blocks that change hands by their
//! status word (`TPACKET_V3`; `packet_mmap.rst` in the kernel's documentation,
//! `linux/if_packet.h`).
//!
//! Invariant: a kernel block is read only between the moment its status says that it belongs to
//! this program and the moment it is given back, but for two words of its header, which both sides
//! may read at any time. [`KernelRing::next_block`] gives back the block handed out before, and its
//! borrow ends every use of that one.

use core::mem::{offset_of, size_of};
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{sockaddr_ll, tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};
use units::{NANOS_PER_SECOND, Timestamp};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::option::{PACKET_RX_RING, PACKET_VERSION, RingRequest};
use super::socket::TPACKET_V3;

/// Only a bound for the kernel's checks: in `TPACKET_V3` packets are as long as they are.
const FRAME_SIZE: usize = 2048;
/// A block must hold the largest packet, which is a little over 64 KiB.
const SMALLEST_BLOCK: usize = 128 << 10;
/// Bytes of a block that are handed out at a time: they stay in the nearest caches until their
/// packets have been copied, and are enough to be read ahead.
const SPAN: usize = 32 << 10;
const CACHE_LINE: usize = 64;
/// Fewer blocks and the kernel would have none while one is read.
const FEWEST_BLOCKS: usize = 2;

/// How a ring is divided into blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    largest: usize,
    /// As many of them, where they are not too large or too small.
    count: usize,
    /// How long the kernel waits for more packets before it hands over a block that is not full.
    retire_ms: u32,
}

impl Blocks {
    /// Of the only ring that a source has.
    pub(super) const OF_ONE: Self = Self { largest: 1 << 20, count: 16, retire_ms: 50 };
    /// Of several, whose packets wait for each other: what comes at 10 Gbit/s meanwhile, 25 MB,
    /// takes less than half of 64 MiB. At a low rate every block is handed over by its time, so
    /// that more blocks last as long without a reader.
    pub(super) const OF_SEVERAL: Self = Self { largest: 256 << 10, count: 64, retire_ms: 20 };
}

/// The status word stands behind version and private offset, and the number of packets behind it.
const STATUS_OFFSET: usize = 8;
const PACKETS_OFFSET: usize = STATUS_OFFSET + offset_of!(BlockHeader, packets);
const _: () = assert!(core::mem::offset_of!(tpacket_block_desc, hdr) == STATUS_OFFSET);
const _: () = assert!(core::mem::offset_of!(tpacket_hdr_v1, block_status) == 0);

/// The kernel puts the link-level address behind the packet's header, at the next multiple of 16.
const ADDRESS_OFFSET: usize = size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// One mapped ring.
#[derive(Debug)]
pub(super) struct KernelRing {
    memory: NonNull<u8>,
    block_size: usize,
    block_count: usize,
    next: usize,
    /// The block before `next` has been handed out and not given back.
    lent: bool,
    /// So many blocks before that one were handed out, and are kept to be handed out again.
    kept: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread.
unsafe impl Send for KernelRing {}

/// A packet in a block.
pub(super) struct RingPacket {
    pub(super) timestamp: Timestamp,
    pub(super) original_len: u32,
    pub(super) bytes: Range<usize>,
    /// The VLAN tag that the kernel took out: protocol identifier and control information.
    pub(super) tag: Option<[u8; 4]>,
    pub(super) outbound: bool,
}

impl KernelRing {
    /// Sets the ring of a socket up; `size` is rounded to whole blocks.
    pub(super) fn map(socket: BorrowedFd<'_>, size: usize, blocks: Blocks) -> io::Result<Self> {
        let Blocks { largest, count, retire_ms } = blocks;
        let block_size = (size / count).next_power_of_two().clamp(SMALLEST_BLOCK, largest);
        let block_count = (size / block_size).max(FEWEST_BLOCKS);
        let size = block_size * block_count;
        let number = |value: usize| u32::try_from(value).map_err(|_| io::ErrorKind::OutOfMemory);
        let request = RingRequest {
            block_size: number(block_size)?,
            block_count: number(block_count)?,
            frame_size: number(FRAME_SIZE)?,
            frame_count: number(size / FRAME_SIZE)?,
            retire_timeout_ms: retire_ms,
            private_bytes: 0,
            features: 0,
        };
        // Rings of other versions change hands in other ways.
        PACKET_VERSION.set(socket, &TPACKET_V3)?;
        PACKET_RX_RING.set(socket, &request)?;
        // SAFETY: a new mapping at an address the kernel chooses, of the size the ring was set up
        // with.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            // A smaller one can be tried.
            PACKET_RX_RING.set(socket, &RingRequest::default())?;
            return Err(error);
        }
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, block_size, block_count, next: 0, lent: false, kept: 0 })
    }

    /// Bytes of the ring.
    pub(super) fn size(&self) -> usize {
        self.block_size * self.block_count
    }

    /// Whether so many blocks wait, and one more.
    pub(super) fn is_waiting(&self, before: usize) -> bool {
        let index = (self.next + before) % self.block_count;
        before + self.handed_out() < self.block_count
            && self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether the block that the kernel fills has no packet so far: its number is set to zero when
    /// the kernel opens the block, and grows before a packet is written. One that is not open shows
    /// the number of the lap before.
    pub(super) fn holds_nothing_back(&self) -> bool {
        // The status first: a block that was handed over meanwhile has packets.
        !self.is_waiting(0) && self.word(self.next, PACKETS_OFFSET).load(Ordering::Acquire) == 0
    }

    /// Whether order has to stand back: half of the ring is left for what comes.
    pub(super) fn is_full(&self, waiting: usize) -> bool {
        waiting + self.handed_out() >= self.block_count / 2
    }

    /// Blocks that were handed out and not given back.
    fn handed_out(&self) -> usize {
        self.kept + usize::from(self.lent)
    }

    /// Keeps the block handed out last, if any, instead of giving it back. To be called with every
    /// block from there on: those that are kept lie side by side.
    pub(super) fn keep(&mut self) {
        self.kept += usize::from(core::mem::take(&mut self.lent));
    }

    /// Hands out what was kept once more, and the block handed out last.
    pub(super) fn rewind(&mut self) {
        self.next = (self.next + self.block_count - self.handed_out()) % self.block_count;
        (self.kept, self.lent) = (0, false);
    }

    /// Gives back what was kept.
    pub(super) fn forget(&mut self) {
        let first = self.next + self.block_count - self.handed_out();
        for index in first..first + core::mem::take(&mut self.kept) {
            self.give_back(index % self.block_count);
        }
    }

    /// Gives back the block handed out last, if any.
    pub(super) fn release(&mut self) {
        if core::mem::take(&mut self.lent) {
            assert_eq!(self.kept, 0, "blocks are given back in their order");
            let last = self.next.checked_sub(1).unwrap_or(self.block_count - 1);
            self.give_back(last);
        }
    }

    fn give_back(&self, index: usize) {
        self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Takes the next block, after giving back the one before it.
    pub(super) fn next_block(&mut self) -> Option<&[u8]> {
        self.release();
        if !self.is_waiting(0) {
            return None;
        }
        self.next = (self.next + 1) % self.block_count;
        self.lent = true;
        Some(self.lent_block())
    }

    /// The block handed out last; empty if it was given back.
    pub(super) fn lent_block(&self) -> &[u8] {
        if !self.lent {
            return &[];
        }
        let last = self.next.checked_sub(1).unwrap_or(self.block_count - 1);
        // SAFETY: the block lies in the mapping, is initialised by the kernel, and the kernel
        // leaves it alone until `release`, which needs the ring exclusively and thus no
        // slice of it.
        unsafe { core::slice::from_raw_parts(self.block(last).as_ptr(), self.block_size) }
    }

    fn block(&self, index: usize) -> NonNull<u8> {
        assert!(index < self.block_count, "a block lies in the ring");
        // SAFETY: the offset is below the size of the mapping.
        unsafe { self.memory.add(index * self.block_size) }
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        self.word(index, STATUS_OFFSET)
    }

    /// A word of a block's header.
    fn word(&self, index: usize, offset: usize) -> &AtomicU32 {
        assert!(offset <= PACKETS_OFFSET && offset.is_multiple_of(4), "a word of the header");
        // SAFETY: the offset lies in the block, whose size is at least SMALLEST_BLOCK.
        let word = unsafe { self.block(index).add(offset) };
        // SAFETY: the word is aligned to 4 in a block aligned to a page. The kernel writes it
        // whole; what is read is an old number or a new one.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this size, and no slice of it outlives the
        // ring.
        let status = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.size()) };
        assert_eq!(status, 0, "a mapping of known address and size can be removed");
    }
}

/// What a block begins with: `struct tpacket_hdr_v1`, as far as it is used.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct BlockHeader {
    status: u32,
    packets: u32,
    first_packet: u32,
    used_bytes: u32,
}

const _: () = {
    use tpacket_hdr_v1 as C;
    assert!(offset_of!(BlockHeader, status) == offset_of!(C, block_status));
    assert!(offset_of!(BlockHeader, packets) == offset_of!(C, num_pkts));
    assert!(offset_of!(BlockHeader, first_packet) == offset_of!(C, offset_to_first_pkt));
    assert!(offset_of!(BlockHeader, used_bytes) == offset_of!(C, blk_len));
};

/// What a packet begins with: `struct tpacket3_hdr`, and behind it the beginning of a `struct
/// sockaddr_ll`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PacketHeader {
    next_offset: u32,
    seconds: u32,
    nanos: u32,
    captured_len: u32,
    original_len: u32,
    status: u32,
    /// Where its bytes begin.
    bytes_offset: u16,
    network_offset: u16,
    hash: u32,
    tag_control: u32,
    tag_protocol: u16,
    padding: [u8; 10],
    address: [u8; 10],
    /// `PACKET_HOST` and so on.
    kind: u8,
    address_len: u8,
}

const _: () = {
    use tpacket3_hdr as C;
    assert!(offset_of!(PacketHeader, seconds) == offset_of!(C, tp_sec));
    assert!(offset_of!(PacketHeader, nanos) == offset_of!(C, tp_nsec));
    assert!(offset_of!(PacketHeader, captured_len) == offset_of!(C, tp_snaplen));
    assert!(offset_of!(PacketHeader, original_len) == offset_of!(C, tp_len));
    assert!(offset_of!(PacketHeader, status) == offset_of!(C, tp_status));
    assert!(offset_of!(PacketHeader, bytes_offset) == offset_of!(C, tp_mac));
    assert!(offset_of!(PacketHeader, tag_control) == offset_of!(C, hv1.tp_vlan_tci));
    assert!(offset_of!(PacketHeader, tag_protocol) == offset_of!(C, hv1.tp_vlan_tpid));
    assert!(offset_of!(PacketHeader, address) == ADDRESS_OFFSET);
    let kind = ADDRESS_OFFSET + offset_of!(sockaddr_ll, sll_pkttype);
    assert!(offset_of!(PacketHeader, kind) == kind);
};

fn read<T: FromBytes>(bytes: &[u8], offset: usize) -> Option<T> {
    T::read_from_prefix(bytes.get(offset..)?).ok().map(|(value, _)| value)
}

/// How far the packets of a block were handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// Packets that are left.
    left: u32,
    /// Where the next one begins.
    offset: usize,
    /// Where the last one ends; only for reading ahead.
    end: usize,
}

impl Cursor {
    /// The beginning of a block.
    pub(super) fn new(block: &[u8]) -> Self {
        let header: Option<BlockHeader> = read(block, STATUS_OFFSET);
        header.map_or_else(Self::default, |header| Self {
            left: header.packets,
            offset: index(header.first_packet),
            end: index(header.used_bytes).min(block.len()),
        })
    }

    /// Whether all packets were handed out.
    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0
    }

    /// The packets that begin in the next [`SPAN`] bytes of the block.
    ///
    /// Another processor has written them, and each says where the next one lies: walked as they
    /// come, every one would be waited for. Its bytes are wanted in any case, so they are read
    /// ahead one after the other, which the processor does many at once.
    pub(super) fn next_packets<'b>(
        &mut self,
        block: &'b [u8],
    ) -> impl Iterator<Item = RingPacket> + use<'_, 'b> {
        let until = self.offset.saturating_add(SPAN);
        let span = block.get(self.offset..until.min(self.end)).unwrap_or_default();
        let touched = span.iter().step_by(CACHE_LINE).fold(0, |all, &byte| all ^ byte);
        core::hint::black_box(touched);
        core::iter::from_fn(move || if self.offset < until { self.next(block) } else { None })
    }

    /// Offsets come from the kernel; one that leads out of the block, or into the packet that it
    /// is of, ends the walk.
    #[inline]
    fn next(&mut self, block: &[u8]) -> Option<RingPacket> {
        let packet = self.read(block);
        self.left = if packet.is_some() { self.left - 1 } else { 0 };
        packet
    }

    #[inline]
    fn read(&mut self, block: &[u8]) -> Option<RingPacket> {
        if self.is_at_end() {
            return None;
        }
        let header: PacketHeader = read(block, self.offset)?;
        let start = self.offset + usize::from(header.bytes_offset);
        let bytes = start..start + index(header.captured_len);
        block.get(bytes.clone())?;
        if self.left > 1 {
            let next = self.offset + index(header.next_offset);
            if next < bytes.end || next < self.offset + size_of::<PacketHeader>() {
                return None;
            }
            self.offset = next;
        }
        let nanos = i64::from(header.seconds) * NANOS_PER_SECOND + i64::from(header.nanos);
        Some(RingPacket {
            timestamp: Timestamp(nanos),
            original_len: header.original_len,
            bytes,
            tag: tag(&header),
            outbound: header.kind == libc::PACKET_OUTGOING,
        })
    }
}

fn tag(header: &PacketHeader) -> Option<[u8; 4]> {
    if header.status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let is_told = header.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let protocol = if is_told { header.tag_protocol } else { 0x8100 };
    let control = u16::try_from(header.tag_control & 0xffff).expect("16 bits were kept");
    let ([p0, p1], [c0, c1]) = (protocol.to_be_bytes(), control.to_be_bytes());
    Some([p0, p1, c0, c1])
}

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// For tests that give any bytes: a kernel block. Gives how many packets it has, which do not
/// overlap.
pub(crate) fn read_any_block(block: &[u8]) -> usize {
    let mut cursor = Cursor::new(block);
    let (mut packets, mut bytes) = (0, 0);
    while !cursor.is_at_end() {
        for packet in cursor.next_packets(block) {
            packets += 1;
            bytes += packet.bytes.len();
            assert!(packet.bytes.end <= block.len(), "a packet lies in its block");
        }
    }
    assert!(bytes <= block.len(), "packets do not overlap");
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 128 << 10;
    const FIRST: usize = 48;
    const FRAME: usize = 1600;
    const LEN: usize = 1500;

    fn put(block: &mut [u8], at: usize, value: usize) {
        let bytes = u32::try_from(value).unwrap().to_le_bytes();
        block[at..at + 4].copy_from_slice(&bytes);
    }

    /// As the kernel fills it; a packet has its number as nanoseconds and in each of its bytes.
    fn block(packets: u8) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        let end = FIRST + usize::from(packets) * FRAME;
        for (field, value) in [(1, usize::from(packets)), (2, FIRST), (3, end)] {
            put(&mut block, STATUS_OFFSET + 4 * field, value);
        }
        for number in 0..packets {
            let at = FIRST + usize::from(number) * FRAME;
            let next = if number + 1 == packets { 0 } else { FRAME };
            // The bytes lie 82 behind the header.
            let fields = [next, 0, number.into(), LEN, LEN + 1, 0, 82];
            for (place, value) in fields.into_iter().enumerate() {
                put(&mut block, at + 4 * place, value);
            }
            block[at + 82..at + 82 + LEN].fill(number);
        }
        block
    }

    /// Nanoseconds of the packets, by what is handed out at a time.
    fn walk(block: &[u8]) -> Vec<Vec<i64>> {
        let (mut cursor, mut all) = (Cursor::new(block), Vec::new());
        while !cursor.is_at_end() {
            let packets = cursor.next_packets(block).map(|packet| {
                let number = packet.timestamp.0;
                let bytes = &block[packet.bytes];
                assert_eq!((bytes.len(), packet.original_len), (LEN, 1501));
                assert!(bytes.iter().all(|&byte| i64::from(byte) == number));
                number
            });
            all.push(packets.collect());
        }
        all
    }

    #[test]
    fn all_packets_of_a_block_are_handed_out_in_spans() {
        let spans = walk(&block(70));
        assert_eq!(spans.iter().map(Vec::len).collect::<Vec<_>>(), [21, 21, 21, 7]);
        assert_eq!(spans.concat(), (0..70).collect::<Vec<_>>());
        assert!(walk(&block(0)).is_empty());
    }

    /// One that led nowhere made a packet of the same bytes 2^32 times.
    #[test]
    fn an_offset_that_leads_into_its_own_packet_ends_the_walk() {
        for near in [0, 1, 47, 82 + LEN - 1] {
            let mut block = block(9);
            put(&mut block, STATUS_OFFSET + 4, usize::try_from(u32::MAX).unwrap());
            put(&mut block, FIRST + 3 * FRAME, near);
            assert_eq!(walk(&block).concat(), [0, 1, 2], "{near}");
        }
    }

    #[test]
    fn an_offset_that_leads_out_of_the_block_ends_the_walk() {
        for far in [BLOCK - 10, BLOCK, usize::try_from(u32::MAX).unwrap()] {
            let mut block = block(9);
            put(&mut block, FIRST + 3 * FRAME, far);
            assert_eq!(walk(&block).concat(), [0, 1, 2, 3], "{far}");
        }
    }
}
