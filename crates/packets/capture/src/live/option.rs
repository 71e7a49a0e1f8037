//! Options of sockets, each with the type of its value.
//!
//! What the kernel reads or writes by an option depends on its number alone, so an option is made
//! once, here, with the type that belongs to it; setting and asking are safe. Values are plain
//! data: a structure that holds an address has a function of its own.

use core::marker::PhantomData;
use core::mem::{offset_of, size_of};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use filters::Instruction;
use libc::{c_int, socklen_t};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An option whose value is a `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketOption<T> {
    level: c_int,
    name: c_int,
    kind: PhantomData<fn(T)>,
}

/// A ring to be made: `struct tpacket_req3`. All zero, it takes the ring away.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct RingRequest {
    pub(super) block_size: u32,
    pub(super) block_count: u32,
    pub(super) frame_size: u32,
    pub(super) frame_count: u32,
    pub(super) retire_timeout_ms: u32,
    pub(super) private_bytes: u32,
    pub(super) features: u32,
}

const _: () = {
    use libc::tpacket_req3 as C;
    assert!(size_of::<RingRequest>() == size_of::<C>());
    assert!(offset_of!(RingRequest, block_count) == offset_of!(C, tp_block_nr));
    assert!(offset_of!(RingRequest, frame_size) == offset_of!(C, tp_frame_size));
    assert!(offset_of!(RingRequest, retire_timeout_ms) == offset_of!(C, tp_retire_blk_tov));
    assert!(offset_of!(RingRequest, features) == offset_of!(C, tp_feature_req_word));
};

/// What an interface is to be switched to: `struct packet_mreq`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Membership {
    pub(super) interface: c_int,
    pub(super) kind: u16,
    pub(super) address_len: u16,
    pub(super) address: [u8; 8],
}

const _: () = {
    use libc::packet_mreq as C;
    assert!(size_of::<Membership>() == size_of::<C>());
    assert!(offset_of!(Membership, kind) == offset_of!(C, mr_type));
    assert!(offset_of!(Membership, address) == offset_of!(C, mr_address));
};

/// What the kernel counted: `struct tpacket_stats_v3`. `packets` includes `drops`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Statistics {
    pub(super) packets: u32,
    pub(super) drops: u32,
    pub(super) freezes: u32,
}

const _: () = {
    use libc::tpacket_stats_v3 as C;
    assert!(size_of::<Statistics>() == size_of::<C>());
    assert!(offset_of!(Statistics, drops) == offset_of!(C, tp_drops));
    assert!(offset_of!(Statistics, freezes) == offset_of!(C, tp_freeze_q_cnt));
};

/// An option whose value is one number.
macro_rules! number {
    ($level:expr, $name:expr) => {
        // SAFETY: of the options named below the kernel takes one `int` each, and gives no more
        // (packet(7), socket(7), `fanout_add` and `packet_setsockopt` in the kernel).
        unsafe { SocketOption::<c_int>::new($level, $name) }
    };
}

pub(super) const PACKET_VERSION: SocketOption<c_int> =
    number!(libc::SOL_PACKET, libc::PACKET_VERSION);
pub(super) const PACKET_FANOUT: SocketOption<c_int> =
    number!(libc::SOL_PACKET, libc::PACKET_FANOUT);
pub(super) const PACKET_IGNORE_OUTGOING: SocketOption<c_int> =
    number!(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING);
pub(super) const PACKET_TIMESTAMP: SocketOption<c_int> =
    number!(libc::SOL_PACKET, libc::PACKET_TIMESTAMP);
pub(super) const PACKET_QDISC_BYPASS: SocketOption<c_int> =
    number!(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS);
pub(super) const SOCKET_ERROR: SocketOption<c_int> = number!(libc::SOL_SOCKET, libc::SO_ERROR);
/// `asm-generic/socket.h`
pub(super) const BUSY_POLL: SocketOption<c_int> = number!(libc::SOL_SOCKET, 46);
pub(super) const INCOMING_NAPI_ID: SocketOption<c_int> = number!(libc::SOL_SOCKET, 56);
pub(super) const PREFER_BUSY_POLL: SocketOption<c_int> = number!(libc::SOL_SOCKET, 69);
pub(super) const BUSY_POLL_BUDGET: SocketOption<c_int> = number!(libc::SOL_SOCKET, 70);

pub(super) const PACKET_RX_RING: SocketOption<RingRequest> =
    // SAFETY: the kernel takes a `tpacket_req3`, which the assertions above say this is, and makes
    // memory of its own; a ring that is mapped it does not take away (`packet_set_ring`).
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_RX_RING) };
pub(super) const PACKET_ADD_MEMBERSHIP: SocketOption<Membership> =
    // SAFETY: the kernel takes a `packet_mreq`, which the assertions above say this is.
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP) };
pub(super) const PACKET_STATISTICS: SocketOption<Statistics> =
    // SAFETY: of a socket of TPACKET_V3 the kernel gives a `tpacket_stats_v3`, which the assertions
    // above say this is, of other versions the part of it that they have; never more than asked.
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_STATISTICS) };

impl<T> SocketOption<T> {
    /// # Safety
    /// By this option, set with a value or asked for one of the size of `T`, the kernel touches no
    /// memory of this process but that value, whatever bytes it has.
    const unsafe fn new(level: c_int, name: c_int) -> Self {
        Self { level, name, kind: PhantomData }
    }
}

impl<T: IntoBytes + Immutable> SocketOption<T> {
    /// Sets it.
    pub(super) fn set(self, socket: BorrowedFd<'_>, value: &T) -> io::Result<()> {
        // SAFETY: as many bytes as are named are initialised and borrowed (`IntoBytes`); that the
        // kernel touches nothing else was promised where the option was made.
        let status = unsafe { set(socket, (self.level, self.name), value.as_bytes()) };
        check(status)
    }
}

impl<T: FromBytes + IntoBytes> SocketOption<T> {
    /// Its value. What the kernel does not fill is zero.
    pub(super) fn get(self, socket: BorrowedFd<'_>) -> io::Result<T> {
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        let mut len = socklen_t::try_from(bytes.len()).expect("structures are small");
        let (place, len_place) = (bytes.as_mut_ptr().cast(), &raw mut len);
        // SAFETY: the kernel writes at most `len` bytes, which are borrowed mutably, and any bytes
        // are a value (`FromBytes`); that it touches nothing else was promised where the option
        // was made.
        let status = unsafe {
            libc::getsockopt(socket.as_raw_fd(), self.level, self.name, place, len_place)
        };
        check(status)?;
        Ok(value)
    }
}

/// The options that take a program of classic BPF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProgramOption {
    /// Which packets come in: `SO_ATTACH_FILTER`.
    Filter,
    /// Which socket of a group a packet goes to: `PACKET_FANOUT_DATA`.
    Fanout,
}

impl ProgramOption {
    /// Gives the kernel a program, which it checks and copies.
    pub(super) fn set(self, socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
        let (level, name) = match self {
            Self::Filter => (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
            Self::Fanout => (libc::SOL_PACKET, libc::PACKET_FANOUT_DATA),
        };
        let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let request = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
        let size = socklen_t::try_from(size_of::<libc::sock_fprog>()).expect("16 bytes");
        let place = (&raw const request).cast();
        // SAFETY: both options take a `sock_fprog`. The kernel reads it, and the `len` instructions
        // that it names and that are borrowed, during the call only, and writes nothing.
        let status = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, place, size) };
        check(status)
    }
}

/// # Safety
/// By this option the kernel touches no memory of this process but `value`, which it reads.
unsafe fn set(socket: BorrowedFd<'_>, (level, name): (c_int, c_int), value: &[u8]) -> c_int {
    let len = socklen_t::try_from(value.len()).expect("structures are small");
    // SAFETY: the caller's promise; the length is that of the value.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) }
}

pub(super) fn check(status: c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn an_option_comes_back_as_it_was_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(SOCKET_ERROR.get(socket.as_fd()).unwrap(), 0);
        BUSY_POLL.set(socket.as_fd(), &0).unwrap();
        assert_eq!(BUSY_POLL.get(socket.as_fd()).unwrap(), 0);
        let refused = PACKET_VERSION.set(socket.as_fd(), &2).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOPROTOOPT));
    }

    #[test]
    fn a_program_that_is_none_is_refused() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let attach = |program: &[Instruction]| ProgramOption::Filter.set(socket.as_fd(), program);
        attach(&[Instruction { code: 0x06, jt: 0, jf: 0, k: 64 }]).unwrap();
        assert!(attach(&[]).is_err());
        let jump_out = Instruction { code: 0x05, jt: 0, jf: 0, k: 9 };
        assert!(attach(&[jump_out]).is_err());
        assert!(attach(&vec![jump_out; 1 << 16]).is_err(), "more than the kernel can count");
    }
}
