//! The program that the kernel runs for every packet that comes by an interface: it counts the
//! packet, writes the time in front of it, and redirects it to the socket of its receive queue.
//! With it go the counts, which it shares with us.
//!
//! A packet of a queue that is closed goes on to the host, uncounted. The time is that of
//! `CLOCK_TAI`, the only one of the kernel's clocks for programs that follows UTC; it takes the 8
//! bytes of metadata before the packet, which the kernel hands on with it.

use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::bpf::{self, ArrayMap, AttachMode, Instruction, SocketMap};

/// Bytes of the time before a packet.
pub(super) const STAMP_BYTES: usize = 8;

/// Bytes of the counts of a queue: a cache line, for each queue has a processor of its own.
const COUNTS_BYTES: u32 = 64;
/// Places in them.
const PACKETS: i16 = 0;
const UNSTAMPED: i16 = 8;
const IS_OPEN: i16 = 16;

/// Registers, and what the kernel's calling convention makes of them.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
/// Kept over calls.
const R6: u8 = 6;
const R7: u8 = 7;
const STACK: u8 = 10;

/// Fields of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RECEIVE_QUEUE: i16 = 16;

/// Codes of instructions (`linux/bpf.h` and `bpf_common.h`): a class, an operation and a source.
const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x79;
const STORE_WORD: u8 = 0x63;
const STORE_DOUBLE: u8 = 0x7b;
const LOAD_IMMEDIATE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD_IMMEDIATE: u8 = 0x07;
/// `BPF_STX | BPF_ATOMIC | BPF_DW`; adding is the immediate 0.
const ATOMIC_ADD: u8 = 0xdb;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
const JUMP_IF_GREATER: u8 = 0x2d;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// `BPF_PSEUDO_MAP_FD`, in the place of a source register.
const OF_MAP: u8 = 1;

/// Functions of the kernel.
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_ADJUST_META: i32 = 54;
const KTIME_GET_TAI_NS: i32 = 208;
/// `XDP_PASS`.
const PASS: i32 = 2;

/// A place in the program that others lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Unstamped,
    Redirect,
    Host,
}

#[derive(Debug, Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    /// Instructions that lead to a place once it is known.
    jumps: Vec<(usize, Place)>,
    places: Vec<(Place, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u8, (to, from): (u8, u8), offset: i16, immediate: i32) {
        let registers = to | from << 4;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }

    fn set(&mut self, to: u8, value: i32) {
        self.put(MOVE_IMMEDIATE, (to, 0), 0, value);
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.put(MOVE, (to, from), 0, 0);
    }

    fn call(&mut self, function: i32) {
        self.put(CALL, (0, 0), 0, function);
    }

    /// An address has 64 bits and takes two instructions.
    fn set_map(&mut self, to: u8, map: RawFd) {
        self.put(LOAD_IMMEDIATE, (to, OF_MAP), 0, map);
        self.put(0, (0, 0), 0, 0);
    }

    fn jump(&mut self, code: u8, registers: (u8, u8), to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code, registers, 0, 0);
    }

    fn here(&mut self, place: Place) {
        self.places.push((place, self.instructions.len()));
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let place = self.places.iter().find(|(place, _)| *place == to);
            let distance = place.expect("every place is there").1 - at - 1;
            let instruction = self.instructions.get_mut(at).expect("a jump is an instruction");
            instruction.offset = i16::try_from(distance).expect("the program is short");
        }
        self.instructions
    }
}

/// The program, with the maps it uses.
fn assemble(counts: RawFd, sockets: RawFd) -> Vec<Instruction> {
    let mut it = Assembler::default();
    it.copy(R6, R1);
    it.put(LOAD_WORD, (R2, R6), RECEIVE_QUEUE, 0);
    it.put(STORE_WORD, (STACK, R2), -4, 0);
    it.set_map(R1, counts);
    it.copy(R2, STACK);
    it.put(ADD_IMMEDIATE, (R2, 0), 0, -4);
    it.call(MAP_LOOKUP_ELEM);
    it.jump(JUMP_IF_EQUAL, (R0, 0), Place::Host);
    it.copy(R7, R0);
    it.put(LOAD_DOUBLE, (R1, R7), IS_OPEN, 0);
    it.jump(JUMP_IF_EQUAL, (R1, 0), Place::Host);
    it.set(R1, 1);
    it.put(ATOMIC_ADD, (R7, R1), PACKETS, 0);
    it.copy(R1, R6);
    it.set(R2, -i32::try_from(STAMP_BYTES).expect("8"));
    it.call(XDP_ADJUST_META);
    it.jump(JUMP_IF_NOT_EQUAL, (R0, 0), Place::Unstamped);
    it.call(KTIME_GET_TAI_NS);
    it.put(LOAD_WORD, (R2, R6), DATA_META, 0);
    it.put(LOAD_WORD, (R3, R6), DATA, 0);
    it.copy(R4, R2);
    it.put(ADD_IMMEDIATE, (R4, 0), 0, i32::try_from(STAMP_BYTES).expect("8"));
    it.jump(JUMP_IF_GREATER, (R4, R3), Place::Unstamped);
    it.put(STORE_DOUBLE, (R2, R0), 0, 0);
    it.jump(JUMP, (0, 0), Place::Redirect);
    it.here(Place::Unstamped);
    it.set(R1, 1);
    it.put(ATOMIC_ADD, (R7, R1), UNSTAMPED, 0);
    it.here(Place::Redirect);
    it.set_map(R1, sockets);
    it.put(LOAD_WORD, (R2, R6), RECEIVE_QUEUE, 0);
    it.set(R3, PASS);
    it.call(REDIRECT_MAP);
    it.put(EXIT, (0, 0), 0, 0);
    it.here(Place::Host);
    it.set(R0, PASS);
    it.put(EXIT, (0, 0), 0, 0);
    it.finish()
}

/// The program on one interface, attached until it is dropped. Every queue is closed at first.
#[derive(Debug)]
pub(super) struct Hook {
    counts: Counts,
    sockets: SocketMap,
    pub(super) mode: AttachMode,
    /// Why it is not in driver mode.
    pub(super) why_generic: Option<io::Error>,
    link: OwnedFd,
}

impl Hook {
    /// Attaches the program to an interface with so many receive queues.
    pub(super) fn attach(ifindex: u32, queues: u32) -> io::Result<Self> {
        let counts = ArrayMap::new(COUNTS_BYTES, queues)?;
        let sockets = SocketMap::new(queues)?;
        let fds = (counts.as_fd().as_raw_fd(), sockets.as_fd().as_raw_fd());
        let program = bpf::load(&assemble(fds.0, fds.1))?;
        let counts = Counts::map(&counts, queues)?;
        let attach = |mode| bpf::attach(program.as_fd(), ifindex, mode);
        let (link, mode, why_generic) = match attach(AttachMode::Driver) {
            Ok(link) => (link, AttachMode::Driver, None),
            // Another program is there, and would be in the way of a generic one, too.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(error),
            Err(error) => (attach(AttachMode::Generic)?, AttachMode::Generic, Some(error)),
        };
        Ok(Self { counts, sockets, mode, why_generic, link })
    }

    /// Packets of this queue go to this socket, once the queue is open.
    pub(super) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(queue, socket)
    }

    /// Opens or closes a queue.
    pub(super) fn set_open(&self, queue: u32, is_open: bool) {
        self.counts.word(queue, IS_OPEN).store(u64::from(is_open), Ordering::Release);
    }

    /// Packets of a queue that were redirected, those dropped behind that included.
    pub(super) fn packets(&self, queue: u32) -> u64 {
        self.counts.word(queue, PACKETS).load(Ordering::Acquire)
    }

    /// Whether all packets of a queue had space for the time in front of them. Their number would
    /// be of no use: which ones had not is not known.
    pub(super) fn has_times(&self, queue: u32) -> bool {
        self.counts.word(queue, UNSTAMPED).load(Ordering::Acquire) == 0
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Where the interface is gone, so is the attachment.
        bpf::detach(self.link.as_fd()).unwrap_or_default();
    }
}

/// The map of counts, in memory.
#[derive(Debug)]
struct Counts {
    memory: NonNull<u8>,
    len: usize,
    queues: u32,
}

// SAFETY: the mapping belongs to this value and is accessed atomically only.
unsafe impl Send for Counts {}
// SAFETY: as above.
unsafe impl Sync for Counts {}

impl Counts {
    fn map(map: &ArrayMap, queues: u32) -> io::Result<Self> {
        let len = index(queues) * index(COUNTS_BYTES);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap(ptr::null_mut(), len, protection, flags, map.as_fd(), 0) }?;
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, len, queues })
    }

    fn word(&self, queue: u32, place: i16) -> &AtomicU64 {
        assert!(queue < self.queues, "a queue is one of the interface");
        let place = usize::try_from(place).expect("places are numbers from 0");
        let is_in = place.is_multiple_of(size_of::<u64>()) && place < index(COUNTS_BYTES);
        assert!(is_in, "a count lies in its entry");
        // SAFETY: the entry lies in the mapping, whose length is that of `queues` entries, and the
        // place in the entry.
        let word = unsafe { self.memory.add(index(queue) * index(COUNTS_BYTES) + place) };
        // SAFETY: it is aligned to 8 in a mapping aligned to a page, with entries of 64 bytes. The
        // program adds to it atomically, and this is the only way to it here.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        let len = NonZeroUsize::new(self.len).expect("there is a queue at least").get();
        // SAFETY: the mapping was made with this length, and no reference outlives this value.
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), len) };
        unmapped.expect("a mapping of known address and size can be removed");
    }
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("addresses have at least 32 bits")
}
