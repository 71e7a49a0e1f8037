//! What pointers of system calls lead to: paths, addresses of sockets, and what is polled.
//!
//! A tracepoint gives the pointer, and the memory behind it may have changed when we could look. So
//! a program of some two hundred instructions in the kernel copies it at that moment into a ring of
//! ours (`bpf-helpers(7)`). It reads, and decides nothing: calls are counted without it, too, and
//! then have no paths. It goes with its descriptors.
//!
//! The kernel keeps the functions that read a program's memory for programs under the GPL, so that
//! these instructions are under the licence of MIT or GPL-2.0, as one chooses.

use core::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use host::native::{u32_bytes, u64_bytes};

use super::call_name;
use super::event::{ADDRESS, CallDecoder, PATH, POINTED_HEAD, POINTED_ID, POLLED, SUBMITTED};
use crate::perf::{self, Attributes, Ring, checked};
use crate::tracepoints::format::Format;
use crate::tracepoints::not_traced::NotTraced;
use crate::tracepoints::place::format_of;
use crate::tracepoints::set::{FLAGS, SAMPLE, Set, refused};

/// `linux/bpf.h`: commands, kinds of maps, the kind of programs for tracepoints.
const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const LOAD: c_int = 5;
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PERF_EVENT_ARRAY: u32 = 4;
const OF_TRACEPOINTS: u32 = 5;
const LICENSE: &CStr = c"Dual MIT/GPL";
/// `_IOW('$', 8, __u32)`
const SET_PROGRAM: libc::Ioctl = 0x4004_2408;
/// `PERF_TYPE_TRACEPOINT`; `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_BPF_OUTPUT`.
const TRACEPOINT: u32 = 2;
const OUTPUT: (u32, u64) = (1, 10);

/// Of the ring of a processor: 3000 paths of some eighty bytes.
const RING: usize = 256 << 10;
/// Processes and threads whose calls are wanted.
const WANTED_MAX: u32 = 1 << 14;
const PATH_MAX: i32 = 255;
const ADDRESS_MAX: i32 = 112;
const POLLED_MAX: i32 = 32;
/// Of `struct iocb`: operation, file, memory, length.
const SUBMITTED_MAX: i32 = 40;

/// Where a call has what is wanted: a path is the argument of this number; an address or an array
/// has its length in the argument behind. Not zero, which is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Path(i16),
    Address(i16),
    Polled(i16),
    /// An array of pointers, of which the first one is followed.
    Submitted(i16),
}

const PLACES: [(Place, &[&str]); 6] = [
    (
        Place::Path(0),
        &[
            "open",
            "creat",
            "stat",
            "lstat",
            "access",
            "readlink",
            "chdir",
            "execve",
            "unlink",
            "rmdir",
            "mkdir",
            "rename",
            "chmod",
            "chown",
            "lchown",
            "truncate",
            "statfs",
            "link",
            "symlink",
            "utimes",
            "getxattr",
            "lgetxattr",
        ],
    ),
    (
        Place::Path(1),
        &[
            "openat",
            "openat2",
            "newfstatat",
            "statx",
            "faccessat",
            "faccessat2",
            "readlinkat",
            "unlinkat",
            "mkdirat",
            "execveat",
            "fchmodat",
            "fchownat",
            "renameat",
            "renameat2",
            "linkat",
            "utimensat",
            "inotify_add_watch",
        ],
    ),
    (Place::Address(1), &["connect", "bind"]),
    (Place::Address(4), &["sendto"]),
    (Place::Polled(0), &["poll", "ppoll"]),
    (Place::Submitted(2), &["io_submit"]),
];
/// More than any call's number.
const NUMBERS: u32 = 1 << 10;

/// The program, attached until it is dropped.
#[derive(Debug)]
pub(super) struct Pointers {
    pub(super) set: Set<CallDecoder>,
    wanted: OwnedFd,
    /// What keeps the programs attached, and the ring in the map.
    _kept: Vec<OwnedFd>,
}

impl Pointers {
    /// For calls of everybody but us, or of those who are named by [`Self::want`] and what they
    /// start.
    pub(super) fn open(tracefs: &Path, is_of_all: bool) -> Result<Self, NotTraced> {
        let own = std::process::id().cast_signed();
        let wanted = map(HASH, WANTED_MAX).map_err(refused)?;
        let places = places().map_err(refused)?;
        let processors = perf::online();
        let last = processors.iter().max().map_or(1, |last| last.unsigned_abs() + 1);
        let output = map(PERF_EVENT_ARRAY, last).map_err(refused)?;
        let (mut rings, mut events) = (Vec::new(), Vec::new());
        for processor in processors {
            let event = output_event(processor).map_err(refused)?;
            rings.push(Ring::map(event.as_fd(), perf::ring_size(RING)).map_err(refused)?);
            let (key, value) = (processor.unsigned_abs(), event.as_raw_fd().unsigned_abs());
            update(&output, key, value).map_err(refused)?;
            events.push(event);
        }
        let maps = Maps {
            wanted: wanted.as_raw_fd(),
            places: places.as_raw_fd(),
            output: output.as_raw_fd(),
        };
        let filter = if is_of_all { Filter::NotOwn(own) } else { Filter::Wanted };
        let entered = format_of(tracefs, "raw_syscalls/sys_enter")?;
        let field = |format: &Format, name: &'static str| {
            let field = format.field(name).ok_or(NotTraced::NoTracepoint(name))?;
            i16::try_from(field.offset).map_err(|_| NotTraced::NoTracepoint(name))
        };
        let fields = Fields { number: field(&entered, "id")?, first: field(&entered, "args")? };
        let program = load(&reading(filter, fields, maps)).map_err(refused)?;
        let mut kept = vec![attach(&entered, &program).map_err(refused)?, output];
        if !is_of_all {
            let forked = format_of(tracefs, "sched/sched_process_fork")?;
            let child = field(&forked, "child_pid")?;
            let program = load(&following(child, maps)).map_err(refused)?;
            kept.push(attach(&forked, &program).map_err(refused)?);
        }
        let set = Set::started(vec![CallDecoder::of_program()], rings, events)?;
        Ok(Self { set, wanted, _kept: kept })
    }

    /// Wants calls of a process from now on. One too many is not noticed: its calls have no paths.
    pub(super) fn want(&self, process: u32) {
        update(&self.wanted, process, 1).unwrap_or_default();
    }

    /// Its number may become another one's.
    pub(super) fn forget(&self, process: u32) {
        let key = u32_bytes(process);
        let request = [u64::from(self.wanted.as_raw_fd().unsigned_abs()), address(key.as_ptr())];
        // SAFETY: of a map with keys of four bytes the kernel reads those four, which live on.
        unsafe { call(MAP_DELETE, &words(&request)) }.map(drop).unwrap_or_default();
    }
}

/// By the number of a call the number of its place in [`PLACES`], from 1.
fn places() -> io::Result<OwnedFd> {
    let places = map(ARRAY, NUMBERS)?;
    for number in 0..NUMBERS {
        let has = |(_, names): &(Place, &[&str])| {
            call_name(number).is_some_and(|name| names.contains(&name))
        };
        if let Some(place) = PLACES.iter().position(has) {
            update(&places, number, u32::try_from(place + 1).expect("six places"))?;
        }
    }
    Ok(places)
}

#[derive(Clone, Copy, Debug)]
struct Maps {
    wanted: RawFd,
    places: RawFd,
    output: RawFd,
}

/// Where they stand in the record of a call.
#[derive(Clone, Copy, Debug)]
struct Fields {
    number: i16,
    /// The first argument.
    first: i16,
}

#[derive(Clone, Copy, Debug)]
enum Filter {
    NotOwn(i32),
    Wanted,
}

/// Registers; 6 to 9 are kept over calls.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const STACK: u8 = 10;

/// Codes of instructions (`linux/bpf.h` and `bpf_common.h`).
const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x79;
const STORE_WORD: u8 = 0x63;
const STORE_DOUBLE: u8 = 0x7b;
const STORE_ZEROS: u8 = 0x7a;
const LOAD_IMMEDIATE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD_IMMEDIATE: u8 = 0x07;
const SHIFT_LEFT: u8 = 0x67;
const SHIFT_RIGHT: u8 = 0x77;
const JUMP: u8 = 0x05;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
const JUMP_IF_AT_MOST: u8 = 0xb5;
const JUMP_IF_LESS_SIGNED: u8 = 0xc5;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// `BPF_PSEUDO_MAP_FD`, in the place of a source register.
const OF_MAP: u8 = 1;

/// Functions of the kernel.
const MAP_LOOKUP_ELEM: i32 = 1;
const MAP_UPDATE_ELEM: i32 = 2;
const GET_CURRENT_PID_TGID: i32 = 14;
const PERF_EVENT_OUTPUT: i32 = 25;
const PROBE_READ_USER: i32 = 112;
const PROBE_READ_USER_STR: i32 = 114;

/// The record on the stack, below what the filter needs.
const KEY: i16 = -8;
const VALUE: i16 = -16;
const HEAD: i16 = -288;
const BODY: i16 = HEAD + 8;

/// A place in the program that others lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    /// Behind what is done for a place of this number.
    Behind(usize),
    Write,
    End,
}

#[derive(Debug, Default)]
struct Assembler {
    /// `struct bpf_insn`: a code, two registers, an offset, a number.
    instructions: Vec<(u8, u8, i16, i32)>,
    /// Instructions that lead to a label.
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u8, (to, from): (u8, u8), offset: i16, immediate: i32) {
        self.instructions.push((code, to | from << 4, offset, immediate));
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

    /// An address takes two instructions.
    fn set_map(&mut self, to: u8, map: RawFd) {
        self.put(LOAD_IMMEDIATE, (to, OF_MAP), 0, map);
        self.put(0, (0, 0), 0, 0);
    }

    fn set_place(&mut self, to: u8, place: i16) {
        self.copy(to, STACK);
        self.put(ADD_IMMEDIATE, (to, 0), 0, place.into());
    }

    fn jump(&mut self, code: u8, (register, value): (u8, i32), to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code, (register, 0), 0, value);
    }

    fn leave_if(&mut self, code: u8, register: u8, value: i32) {
        self.jump(code, (register, value), Label::End);
    }

    fn here(&mut self, label: Label) {
        self.labels.push((label, self.instructions.len()));
    }

    /// The end: others who listen to the tracepoint get its record all the same.
    fn finish(mut self) -> Vec<u8> {
        self.here(Label::End);
        self.set(R0, 1);
        self.put(EXIT, (0, 0), 0, 0);
        for (at, to) in self.jumps {
            let label = self.labels.iter().find(|(label, _)| *label == to);
            let distance = label.expect("every label is there").1 - at - 1;
            let instruction = self.instructions.get_mut(at).expect("a jump is an instruction");
            instruction.2 = i16::try_from(distance).expect("the program is short");
        }
        let bytes = |(code, registers, offset, immediate): &(u8, u8, i16, i32)| {
            // In one number, so that the order of bytes is the machine's.
            let low = u64::from(*code) | u64::from(*registers) << 8;
            let offset = u64::from(offset.cast_unsigned()) << 16;
            u64_bytes(low | offset | u64::from(immediate.cast_unsigned()) << 32)
        };
        self.instructions.iter().flat_map(bytes).collect()
    }
}

/// Keeps the record in register 6, and leaves unless its process is wanted.
fn filtered(filter: Filter, maps: Maps) -> Assembler {
    let mut it = Assembler::default();
    it.copy(R6, R1);
    it.call(GET_CURRENT_PID_TGID);
    it.put(SHIFT_RIGHT, (R0, 0), 0, 32);
    match filter {
        Filter::NotOwn(own) => it.leave_if(JUMP_IF_EQUAL, R0, own),
        Filter::Wanted => {
            it.put(STORE_WORD, (STACK, R0), KEY, 0);
            it.set_map(R1, maps.wanted);
            it.set_place(R2, KEY);
            it.call(MAP_LOOKUP_ELEM);
            it.leave_if(JUMP_IF_EQUAL, R0, 0);
        }
    }
    it
}

/// Reads what a pointer of a call leads to, if it has a place for one, and writes it.
fn reading(filter: Filter, fields: Fields, maps: Maps) -> Vec<u8> {
    let mut it = filtered(filter, maps);
    it.put(LOAD_DOUBLE, (R1, R6), fields.number, 0);
    it.put(STORE_WORD, (STACK, R1), KEY, 0);
    it.set_map(R1, maps.places);
    it.set_place(R2, KEY);
    it.call(MAP_LOOKUP_ELEM);
    it.leave_if(JUMP_IF_EQUAL, R0, 0);
    it.put(LOAD_WORD, (R8, R0), 0, 0);
    it.leave_if(JUMP_IF_EQUAL, R8, 0);
    for (at, (place, _)) in PLACES.iter().enumerate() {
        let code = i32::try_from(at + 1).expect("six places");
        it.jump(JUMP_IF_NOT_EQUAL, (R8, code), Label::Behind(at));
        let argument = |number: &i16| fields.first + 8 * number;
        let kind = match place {
            Place::Path(number) => {
                path(&mut it, argument(number));
                PATH
            }
            Place::Address(number) => {
                sized(&mut it, (argument(number), ADDRESS_MAX), 0);
                ADDRESS
            }
            Place::Polled(number) => {
                sized(&mut it, (argument(number), POLLED_MAX), 3);
                POLLED
            }
            Place::Submitted(number) => {
                submitted(&mut it, argument(number));
                SUBMITTED
            }
        };
        it.set(R1, i32::from(POINTED_ID) | i32::from(kind) << 16);
        it.jump(JUMP, (0, 0), Label::Write);
        it.here(Label::Behind(at));
    }
    it.jump(JUMP, (0, 0), Label::End);
    it.here(Label::Write);
    it.put(STORE_WORD, (STACK, R1), HEAD, 0);
    it.put(STORE_WORD, (STACK, R7), HEAD + 4, 0);
    it.copy(R1, R6);
    it.set_map(R2, maps.output);
    // `BPF_F_CURRENT_CPU`
    it.put(LOAD_IMMEDIATE, (R3, 0), 0, -1);
    it.put(0, (0, 0), 0, 0);
    it.set_place(R4, HEAD);
    it.copy(R5, R7);
    it.put(ADD_IMMEDIATE, (R5, 0), 0, i32::try_from(POINTED_HEAD).expect("8"));
    it.call(PERF_EVENT_OUTPUT);
    it.finish()
}

/// Reads a path; register 7 has its length.
fn path(it: &mut Assembler, argument: i16) {
    zeros(it, PATH_MAX + 1);
    it.put(LOAD_DOUBLE, (R3, R6), argument, 0);
    it.leave_if(JUMP_IF_EQUAL, R3, 0);
    it.set_place(R1, BODY);
    it.set(R2, PATH_MAX + 1);
    it.call(PROBE_READ_USER_STR);
    it.leave_if(JUMP_IF_LESS_SIGNED, R0, 1);
    it.copy(R7, R0);
    at_most(it, R7, PATH_MAX + 1);
}

/// Keeps a register within a bound, also for who checks the program.
fn at_most(it: &mut Assembler, register: u8, bound: i32) {
    it.put(JUMP_IF_AT_MOST, (register, 0), 1, bound);
    it.set(register, bound);
}

/// Reads as many bytes as the argument behind says, times a power of two; register 7 has how many.
fn sized(it: &mut Assembler, (argument, most): (i16, i32), shift: i32) {
    zeros(it, most);
    it.put(LOAD_DOUBLE, (R7, R6), argument + 8, 0);
    // A length is a number of 32 bits.
    it.put(SHIFT_LEFT, (R7, 0), 0, 32);
    it.put(SHIFT_RIGHT, (R7, 0), 0, 32);
    at_most(it, R7, most >> shift);
    it.put(SHIFT_LEFT, (R7, 0), 0, shift);
    it.leave_if(JUMP_IF_EQUAL, R7, 0);
    it.set_place(R1, BODY);
    it.copy(R2, R7);
    it.put(LOAD_DOUBLE, (R3, R6), argument, 0);
    it.leave_if(JUMP_IF_EQUAL, R3, 0);
    it.call(PROBE_READ_USER);
    it.leave_if(JUMP_IF_LESS_SIGNED, R0, 0);
}

/// Reads the first pointer of an array, and what that leads to; register 7 has how many bytes.
fn submitted(it: &mut Assembler, argument: i16) {
    zeros(it, SUBMITTED_MAX);
    it.put(LOAD_DOUBLE, (R3, R6), argument, 0);
    for bytes in [8, SUBMITTED_MAX] {
        it.leave_if(JUMP_IF_EQUAL, R3, 0);
        it.set_place(R1, BODY);
        it.set(R2, bytes);
        it.call(PROBE_READ_USER);
        it.leave_if(JUMP_IF_LESS_SIGNED, R0, 0);
        it.put(LOAD_DOUBLE, (R3, STACK), BODY, 0);
    }
    it.set(R7, SUBMITTED_MAX);
}

/// Writes to all of the body: whatever part is read, no old content of the stack leaves the kernel.
fn zeros(it: &mut Assembler, most: i32) {
    for at in (0..most).step_by(8) {
        let place = BODY + i16::try_from(at).expect("of a small record");
        it.put(STORE_ZEROS, (STACK, 0), place, 0);
    }
}

/// Wants what a wanted process starts, before it has made its first call.
fn following(child: i16, maps: Maps) -> Vec<u8> {
    let mut it = filtered(Filter::Wanted, maps);
    it.put(LOAD_WORD, (R1, R6), child, 0);
    it.put(STORE_WORD, (STACK, R1), KEY, 0);
    it.set(R1, 1);
    it.put(STORE_DOUBLE, (STACK, R1), VALUE, 0);
    it.set_map(R1, maps.wanted);
    it.set_place(R2, KEY);
    it.set_place(R3, VALUE);
    it.set(R4, 0);
    it.call(MAP_UPDATE_ELEM);
    it.finish()
}

/// Words of `union bpf_attr`, of which the kernel takes the rest for zero.
fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| u64_bytes(*word)).collect()
}

/// Two numbers of 32 bits as they lie in memory.
fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    let both = [first, second].map(u32_bytes);
    bytes.iter_mut().zip(both.as_flattened()).for_each(|(to, from)| *to = *from);
    host::native::u64_of(bytes)
}

/// With keys and values of four bytes.
fn map(kind: u32, entries: u32) -> io::Result<OwnedFd> {
    let request = words(&[pair(kind, 4), pair(4, entries)]);
    // SAFETY: the request has no addresses, and its answer is a new descriptor.
    unsafe { new_fd(MAP_CREATE, &request) }
}

fn update(map: &OwnedFd, key: u32, value: u32) -> io::Result<()> {
    let (key, value) = (u32_bytes(key), u32_bytes(value));
    let map = u64::from(map.as_raw_fd().unsigned_abs());
    let request = words(&[map, address(key.as_ptr()), address(value.as_ptr()), 0]);
    // SAFETY: of a map with keys and values of four bytes the kernel reads those, which live on.
    unsafe { call(MAP_UPDATE, &request) }.map(drop)
}

/// Gives a program to the kernel, which checks it.
fn load(instructions: &[u8]) -> io::Result<OwnedFd> {
    let count = u32::try_from(instructions.len() / 8).map_err(io::Error::other)?;
    let (code, license) = (address(instructions.as_ptr()), address(LICENSE.as_ptr().cast()));
    let request = words(&[pair(OF_TRACEPOINTS, count), code, license]);
    // SAFETY: the kernel reads `count` instructions and the licence up to its zero, both of which
    // live on, and writes nothing, because no log is asked for.
    unsafe { new_fd(LOAD, &request) }
}

/// The event through which programs write, on one processor.
fn output_event(processor: i32) -> io::Result<OwnedFd> {
    let (kind, config) = OUTPUT;
    let attributes = Attributes {
        kind,
        config,
        sample_period: 1,
        sample_type: SAMPLE,
        flags: FLAGS,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    perf::open(&attributes, perf::ALL_PROCESSES, processor)
}

/// The program runs on all processors as long as the event is open, which need not be on.
fn attach(format: &Format, program: &OwnedFd) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TRACEPOINT,
        config: format.id.into(),
        flags: FLAGS,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let first = perf::online().first().copied().unwrap_or(0);
    let event = perf::open(&attributes, perf::ALL_PROCESSES, first)?;
    // SAFETY: the argument is the descriptor of a program that is open.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), SET_PROGRAM, program.as_raw_fd()) })?;
    Ok(event)
}

/// As the kernel takes it.
fn address(of: *const u8) -> u64 {
    u64::try_from(of.expose_provenance()).expect("addresses have at most 64 bits")
}

/// # Safety
/// As [`call`]; and the answer to `command` is a new descriptor.
unsafe fn new_fd(command: c_int, request: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { call(command, request) }?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `request` is what `command` takes, and the addresses in it are of memory that the kernel may
/// read as long as the call takes.
unsafe fn call(command: c_int, request: &[u8]) -> io::Result<c_int> {
    let size = u32::try_from(request.len()).expect("requests are small");
    // SAFETY: the kernel reads `size` bytes, all initialised, and the rest is the caller's promise.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, request.as_ptr(), size) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::try_from(answer).expect("descriptors are small numbers"))
}
