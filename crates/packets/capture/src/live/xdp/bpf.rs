//! Maps, a program and its attachment by bpf(2). All of it goes when its descriptors are closed,
//! with the process at the latest.

use core::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use zerocopy::{Immutable, IntoBytes};

/// `linux/bpf.h`: commands.
const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEM: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const LINK_DETACH: c_int = 34;
/// `BPF_PROG_TYPE_XDP`, and `BPF_XDP` of the kinds of attachment.
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_TO_XDP: u32 = 37;
/// `BPF_F_MMAPABLE`.
const MAPPABLE: u32 = 1 << 10;
/// `BPF_F_XDP_HAS_FRAGS`: the program takes packets in several buffers.
const TAKES_FRAGMENTS: u32 = 1 << 5;
/// The functions that the program calls are not kept for programs under the GPL.
const LICENSE: &CStr = c"Apache-2.0";

/// A map of values of so many bytes, which may be mapped into memory.
#[derive(Debug)]
pub(super) struct ArrayMap(OwnedFd);

/// A map of sockets that packets are redirected to. Its values are descriptors.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

/// How a program is attached (`linux/if_link.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttachMode {
    /// The driver runs it, before it has made a packet of the kernel's own.
    Driver,
    /// The kernel runs it on packets of its own.
    Generic,
}

/// One instruction of eBPF: `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    pub(super) code: u8,
    /// Destination in the lower half, source in the upper one.
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

/// Parts of `union bpf_attr`, as far as they are used; the kernel takes the rest for zero.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct MapUpdate {
    map: c_int,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_kind: u32,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct LinkCreate {
    program: c_int,
    ifindex: u32,
    attach_kind: u32,
    flags: u32,
}

impl ArrayMap {
    /// `BPF_MAP_TYPE_ARRAY`, with numbers from 0 as keys.
    pub(super) fn new(value_bytes: u32, entries: u32) -> io::Result<Self> {
        let kind = 2;
        create(&MapCreate { kind, key_bytes: 4, value_bytes, entries, flags: MAPPABLE }).map(Self)
    }
}

impl AsFd for ArrayMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl SocketMap {
    /// `BPF_MAP_TYPE_XSKMAP`, with numbers from 0 as keys.
    pub(super) fn new(entries: u32) -> io::Result<Self> {
        let request = MapCreate { kind: 17, key_bytes: 4, value_bytes: 4, entries, flags: 0 };
        create(&request).map(Self)
    }

    /// Sets the socket of an entry.
    pub(super) fn set(&self, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value: c_int = socket.as_raw_fd();
        let request = MapUpdate {
            map: self.0.as_raw_fd(),
            padding: 0,
            key: address(&raw const key),
            value: address(&raw const value),
            flags: 0,
        };
        // SAFETY: of a map with keys and values of four bytes, which a `SocketMap` is, the kernel
        // reads those two numbers.
        unsafe { call(MAP_UPDATE_ELEM, &request) }.map(drop)
    }
}

impl AsFd for SocketMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn create(request: &MapCreate) -> io::Result<OwnedFd> {
    // SAFETY: the request has no addresses.
    unsafe { new_fd(MAP_CREATE, request) }
}

/// Gives a program for XDP to the kernel, which checks it.
pub(super) fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let first = instructions.first().ok_or(io::ErrorKind::InvalidInput)?;
    let request = ProgramLoad {
        kind: PROGRAM_OF_XDP,
        count: u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        instructions: address(first),
        license: address(LICENSE.as_ptr()),
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: TAKES_FRAGMENTS,
        name: *b"wirespool_xdp\0\0\0",
        ifindex: 0,
        attach_kind: ATTACH_TO_XDP,
    };
    // SAFETY: the kernel reads `count` instructions and the licence up to its NUL, all of which are
    // borrowed, and writes nothing, because no log is asked for.
    unsafe { new_fd(PROG_LOAD, &request) }
}

/// Attaches a program to an interface, until the descriptor is closed.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    ifindex: u32,
    mode: AttachMode,
) -> io::Result<OwnedFd> {
    // XDP_FLAGS_DRV_MODE and XDP_FLAGS_SKB_MODE.
    let flags = match mode {
        AttachMode::Driver => 1 << 2,
        AttachMode::Generic => 1 << 1,
    };
    let program = program.as_raw_fd();
    let request = LinkCreate { program, ifindex, attach_kind: ATTACH_TO_XDP, flags };
    // SAFETY: the request has no addresses.
    unsafe { new_fd(LINK_CREATE, &request) }
}

/// Detaches a program at once: programs that are just being started may have the descriptor, too.
pub(super) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request has no addresses.
    unsafe { call(LINK_DETACH, &link.as_raw_fd()) }.map(drop)
}

/// As the kernel takes it.
fn address<T>(value: *const T) -> u64 {
    u64::try_from(value.expose_provenance()).expect("addresses have at most 64 bits")
}

/// # Safety
/// As [`call`]; and the answer to `command` is a new descriptor.
unsafe fn new_fd<T: IntoBytes + Immutable>(command: c_int, request: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { call(command, request) }?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `request` is what `command` takes, and the addresses in it are of memory that the kernel may
/// read, and write where the command says so, as long as the call takes.
unsafe fn call<T: IntoBytes + Immutable>(command: c_int, request: &T) -> io::Result<c_int> {
    let bytes = request.as_bytes();
    let size = u32::try_from(bytes.len()).expect("requests are small");
    // SAFETY: the kernel reads `size` bytes, all initialised, and the rest is the caller's promise.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, bytes.as_ptr(), size) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::try_from(answer).expect("descriptors are small numbers"))
}
