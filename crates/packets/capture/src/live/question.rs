//! Questions about an interface: `ioctl`s of netdevice(7), and those of `linux/ethtool.h` that go
//! to the driver.
//!
//! A driver says itself how much it answers, and not all kernels keep it to what was asked for. So
//! its answer goes to memory behind which nothing can be written ([`Guarded`]).

use core::mem::{offset_of, size_of};
use core::ptr::{self, NonNull};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{Ioctl, c_int, ifreq};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::option::check;

/// What is asked for without further memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    Mtu,
    Flags,
    Address,
}

/// `struct ifreq`: a name that ends in NUL, and a union.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; VALUE_BYTES],
}

const VALUE_BYTES: usize = size_of::<ifreq>() - libc::IFNAMSIZ;
const _: () = assert!(size_of::<Request>() == size_of::<ifreq>());
const _: () = assert!(offset_of!(Request, value) == offset_of!(ifreq, ifr_ifru));
const _: () = assert!(align_of::<Request>() >= align_of::<ifreq>());

impl Request {
    /// About an interface; of a name that is too long there is none.
    fn about(name: &str) -> io::Result<Self> {
        let mut request = Self { name: [0; libc::IFNAMSIZ], value: [0; VALUE_BYTES] };
        let room = request.name.get_mut(..libc::IFNAMSIZ - 1).unwrap_or_default();
        let room = room.get_mut(..name.len()).ok_or(io::ErrorKind::NotFound)?;
        room.copy_from_slice(name.as_bytes());
        Ok(request)
    }

    /// The union begins with an address.
    fn with_data(mut self, data: *mut u8) -> Self {
        let address: [u8; size_of::<usize>()] = zerocopy::transmute!(data.expose_provenance());
        *self.value.first_chunk_mut().expect("a union that fits an address") = address;
        self
    }
}

/// Asks about the interface of this name. The answer stands where the union of `ifreq` begins, as
/// an `int` or a `short` by the question.
fn ask(socket: BorrowedFd<'_>, name: &str, question: Question) -> io::Result<Request> {
    let number = match question {
        Question::Mtu => libc::SIOCGIFMTU,
        Question::Flags => libc::SIOCGIFFLAGS,
        Question::Address => libc::SIOCGIFADDR,
    };
    let mut request = Request::about(name)?;
    // SAFETY: these three read a name from the request and write an answer into it.
    unsafe { ioctl(socket, number, &mut request) }?;
    Ok(request)
}

/// Most bytes behind a link-level header.
pub(super) fn mtu(socket: BorrowedFd<'_>, name: &str) -> io::Result<c_int> {
    let answer = ask(socket, name, Question::Mtu)?;
    Ok(c_int::read_from_prefix(&answer.value).map_or(0, |(mtu, _)| mtu))
}

/// `IFF_` bits.
pub(super) fn flags(socket: BorrowedFd<'_>, name: &str) -> io::Result<c_int> {
    let answer = ask(socket, name, Question::Flags)?;
    Ok(i16::read_from_prefix(&answer.value).map_or(0, |(flags, _)| c_int::from(flags)))
}

/// Whether it has an IPv4 address.
pub(super) fn has_address(socket: BorrowedFd<'_>, name: &str) -> bool {
    ask(socket, name, Question::Address).is_ok()
}

/// Has the adapter stamp packets; gives what it does, which may be less.
pub(super) fn set_timestamping(
    socket: BorrowedFd<'_>,
    name: &str,
    mut config: libc::hwtstamp_config,
) -> io::Result<libc::hwtstamp_config> {
    let number = Ioctl::try_from(libc::SIOCSHWTSTAMP).expect("ioctls have 16 bits here");
    let mut request = Request::about(name)?.with_data((&raw mut config).cast());
    // SAFETY: the question reads and writes one `hwtstamp_config`, which data points to and which
    // is not borrowed meanwhile; all bits are values of its fields.
    unsafe { ioctl(socket, number, &mut request) }?;
    Ok(config)
}

/// One question of `linux/ethtool.h`: it begins with its number, and is answered in place. An
/// answer that is longer than the question is cut, or an error.
pub(super) fn ask_driver(socket: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    let mut memory = Guarded::new(size_of_val(words))?;
    let room = memory.bytes().get_mut(..size_of_val(words)).unwrap_or_default();
    room.copy_from_slice(words.as_bytes());
    let mut request = Request::about(name)?.with_data(memory.start.as_ptr());
    // SAFETY: structures of ethtool hold no addresses. Of the memory that data points to the kernel
    // reads and writes a contiguous part from the start on; nothing else of this process can be
    // reached by that, for behind it is a page that cannot be accessed.
    unsafe { ioctl(socket, libc::SIOCETHTOOL, &mut request) }?;
    let answer = memory.bytes().get(..size_of_val(words)).unwrap_or_default();
    words.as_mut_bytes().copy_from_slice(answer);
    Ok(())
}

/// # Safety
/// By this request the kernel touches no memory of this process but `request` and what its data,
/// if it has any, points to and may be written by the caller.
unsafe fn ioctl(socket: BorrowedFd<'_>, number: Ioctl, request: &mut Request) -> io::Result<()> {
    let place: *mut Request = request;
    // SAFETY: the request is laid out as an `ifreq`, its name ends in NUL; the rest is the caller's
    // promise.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), number, place) })
}

/// Memory with a page behind it that no code can access, the kernel on our behalf included.
#[derive(Debug)]
struct Guarded {
    start: NonNull<u8>,
    /// Whole pages, without the one behind.
    len: usize,
    page: usize,
}

impl Guarded {
    /// Space for so many bytes at least, all zero.
    fn new(bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let len = bytes.max(1).checked_next_multiple_of(page);
        let len = len.filter(|len| *len < usize::MAX / 2).ok_or(io::ErrorKind::OutOfMemory)?;
        let (place, flags) = (ptr::null_mut(), MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap_anonymous(place, len + page, ProtFlags::empty(), flags) }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        let memory = Self { start, len, page };
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range is ours, all of it but the last page, and nothing points to it yet.
        unsafe { mprotect(start.as_ptr().cast(), len, access) }?;
        Ok(memory)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes can be read and written, are initialised (the kernel gives zeros),
        // and belong to this value, which is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference outlives this value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len + self.page) };
        unmapped.expect("a mapping of known address and size can be removed");
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_loopback_interface_answers() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd = socket.as_fd();
        assert!(mtu(fd, "lo").unwrap() > 1500);
        let flags = flags(fd, "lo").unwrap();
        assert!(flags & libc::IFF_LOOPBACK != 0);
        if flags & libc::IFF_UP == 0 {
            return println!(
                "not run: nobody has brought up the loopback interface of this namespace"
            );
        }
        assert!(has_address(fd, "lo"));
        for name in ["", "absent", "a-name-of-more-than-fifteen-bytes"] {
            assert!(mtu(fd, name).is_err() && !has_address(fd, name), "{name}");
        }
        // `ETHTOOL_GLINK`.
        let mut link = [0x0a, 0];
        ask_driver(fd, "lo", &mut link).unwrap();
        assert_eq!(link, [0x0a, 1]);
    }

    #[test]
    fn an_answer_longer_than_its_room_overwrites_nothing() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // `ETHTOOL_GET_TS_INFO` answers 44 bytes: of these the first word comes back.
        let mut words = [0x41, 7, 7];
        ask_driver(socket.as_fd(), "lo", words.first_chunk_mut::<1>().unwrap()).unwrap();
        assert_eq!(words, [0x41, 7, 7]);
        let mut whole = vec![0x41; rustix::param::page_size() / 4];
        ask_driver(socket.as_fd(), "lo", &mut whole).unwrap();
        assert!(whole[1] != 0x41 && whole[11] == 0x41, "44 bytes and no more");
        // Without even a number there is no question.
        assert!(ask_driver(socket.as_fd(), "lo", &mut []).is_err());
    }

    #[test]
    fn the_kernel_cannot_write_behind_guarded_memory() {
        let mut memory = Guarded::new(5).unwrap();
        let page = rustix::param::page_size();
        assert_eq!(memory.bytes().len(), page);
        memory.bytes().fill(9);
        let (from, into) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&into, &[1; 64]).unwrap();
        let last = memory.start.as_ptr().wrapping_add(page - 8);
        // SAFETY: the kernel writes what can be written, and refuses the rest.
        let read = unsafe { libc::read(from.as_raw_fd(), last.cast(), 64) };
        assert!(read == 8 || read == -1, "{read}");
        assert!(memory.bytes()[..page - 8].iter().all(|byte| *byte == 9));
    }
}
