//! Maps, a program and its attachment by bpf(2). All of it goes when its descriptors are closed,
//! with the process at the latest.

use core::ffi::{CStr, c_int};
use core::mem::size_of;
use core::ptr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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

/// What the entries of a map are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapKind {
    /// Values of so many bytes, which may be mapped into memory.
    Array(u32),
    /// Sockets that packets are redirected to.
    Sockets,
}

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
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: c_int,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

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
    interface: u32,
    attach_kind: u32,
}

#[repr(C)]
struct LinkCreate {
    program: c_int,
    interface: u32,
    attach_kind: u32,
    flags: u32,
}

/// Makes a map whose keys are numbers from 0.
pub(super) fn create_map(kind: MapKind, entries: u32) -> io::Result<OwnedFd> {
    // BPF_MAP_TYPE_ARRAY and BPF_MAP_TYPE_XSKMAP.
    let (kind, value_bytes, flags) = match kind {
        MapKind::Array(value_bytes) => (2, value_bytes, MAPPABLE),
        MapKind::Sockets => (17, 4, 0),
    };
    create(MAP_CREATE, &MapCreate { kind, key_bytes: 4, value_bytes, entries, flags })
}

/// Sets the socket of an entry.
pub(super) fn set_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let request = MapUpdate {
        map: map.as_raw_fd(),
        padding: 0,
        key: address(&raw const key),
        value: address(&raw const value),
        flags: 0,
    };
    call(MAP_UPDATE_ELEM, &request).map(drop)
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
        interface: 0,
        attach_kind: ATTACH_TO_XDP,
    };
    create(PROG_LOAD, &request)
}

/// Attaches a program to an interface, until the descriptor is closed.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    mode: AttachMode,
) -> io::Result<OwnedFd> {
    // XDP_FLAGS_DRV_MODE and XDP_FLAGS_SKB_MODE.
    let flags = match mode {
        AttachMode::Driver => 1 << 2,
        AttachMode::Generic => 1 << 1,
    };
    let program = program.as_raw_fd();
    create(LINK_CREATE, &LinkCreate { program, interface, attach_kind: ATTACH_TO_XDP, flags })
}

/// Detaches a program at once: programs that are just being started may have the descriptor, too.
pub(super) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    call(LINK_DETACH, &link.as_raw_fd()).map(drop)
}

/// As the kernel takes it.
fn address<T>(value: *const T) -> u64 {
    u64::try_from(value.expose_provenance()).expect("addresses have at most 64 bits")
}

fn create<T>(command: c_int, request: &T) -> io::Result<OwnedFd> {
    let fd = call(command, request)?;
    // SAFETY: the descriptor is new and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: c_int, request: &T) -> io::Result<c_int> {
    let size = u32::try_from(size_of::<T>()).expect("requests are small");
    // SAFETY: the kernel reads the request and what it points to during the call only, and writes
    // nothing, because no log is asked for.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(request), size) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::try_from(answer).expect("descriptors are small numbers"))
}
