//! The packet socket of one interface: set up so that the ring holds nothing from before the
//! filter, nothing of other interfaces, and what the kernel counts.

use core::mem::{size_of, zeroed};
use core::ptr;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_uint, packet_mreq, sock_fprog, sockaddr_ll, socklen_t, tpacket_stats_v3};

use crate::filter::Instruction;

/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    index: c_int,
}

/// The index of an interface, if there is one of that name.
pub(super) fn interface_index(name: &str) -> Option<c_int> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends in NUL.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    c_int::try_from(index).ok().filter(|&index| index != 0)
}

impl PacketSocket {
    /// Opens a socket on the interface that receives nothing yet.
    pub(super) fn open(index: c_int) -> io::Result<Self> {
        // Protocol 0: no packet before the second bind, thus none that the filter has not seen.
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, index };
        socket.bind(0)?;
        let version = libc::tpacket_versions::TPACKET_V3;
        socket.set(libc::PACKET_VERSION, &version)?;
        Ok(socket)
    }

    /// Starts reception of all protocols.
    pub(super) fn start(&self) -> io::Result<()> {
        self.bind(u16::try_from(libc::ETH_P_ALL).expect("ETH_P_ALL is 3").to_be())
    }

    fn bind(&self, protocol: u16) -> io::Result<()> {
        let mut address = empty_address();
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("AF_PACKET is 17");
        address.sll_protocol = protocol;
        address.sll_ifindex = self.index;
        // SAFETY: the address is a sockaddr_ll of the size given.
        let status = unsafe {
            libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len_of::<sockaddr_ll>())
        };
        check(status)
    }

    /// The `ARPHRD_` number of the bound interface; `None` once it has been removed.
    pub(super) fn hardware_type(&self) -> io::Result<Option<u16>> {
        let mut address = empty_address();
        let mut len = len_of::<sockaddr_ll>();
        // SAFETY: the kernel writes at most `len` bytes into the address.
        let status = unsafe {
            libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len)
        };
        check(status)?;
        Ok((address.sll_ifindex == self.index).then_some(address.sll_hatype))
    }

    /// Lets only those packets in that the program accepts, cut to what it returns.
    pub(super) fn attach(&self, program: &mut [Instruction]) -> io::Result<()> {
        let program = sock_fprog {
            len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            filter: program.as_mut_ptr(),
        };
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Lets nothing in any more.
    pub(super) fn attach_nothing(&self) -> io::Result<()> {
        self.attach(&mut [Instruction { code: RETURN, jt: 0, jf: 0, k: 0 }])
    }

    /// Leaves packets out that this host sends: on the loopback interface each of them is received
    /// too.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::PACKET_IGNORE_OUTGOING, &c_int::from(true))
    }

    /// Promiscuous mode until the socket is closed.
    pub(super) fn be_promiscuous(&self) -> io::Result<()> {
        let request = packet_mreq {
            mr_ifindex: self.index,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("PACKET_MR_PROMISC is 1"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// What the kernel counted since it was asked last; `tp_packets` includes `tp_drops`.
    pub(super) fn statistics(&self) -> io::Result<tpacket_stats_v3> {
        let mut value = tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut value)?;
        Ok(value)
    }

    /// The error that waits at the socket, which this takes away.
    pub(super) fn take_error(&self) -> io::Result<c_int> {
        let mut value: c_int = 0;
        self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut value)?;
        Ok(value)
    }

    fn set<T>(&self, name: c_int, value: &T) -> io::Result<()> {
        set_option(self.as_fd(), libc::SOL_PACKET, name, value)
    }

    fn get<T>(&self, level: c_int, name: c_int, value: &mut T) -> io::Result<()> {
        let mut len = len_of::<T>();
        // SAFETY: the kernel writes at most `len` bytes into the value, whose fields are integers.
        let status = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                ptr::from_mut(value).cast(),
                &raw mut len,
            )
        };
        check(status)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes the program's accepting returns keep at most `snaplen` bytes.
pub(super) fn limit(program: &mut [Instruction], snaplen: u32) {
    for instruction in program {
        if instruction.code == RETURN && instruction.k != 0 {
            instruction.k = snaplen;
        }
    }
}

/// A program that accepts everything, cut to `snaplen` bytes.
pub(super) fn accept_all(snaplen: u32) -> Vec<Instruction> {
    vec![Instruction { code: RETURN, jt: 0, jf: 0, k: snaplen }]
}

/// Sets a socket option whose value is a structure of the kernel.
pub(super) fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of the value, and what it points to, during the call only.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            len_of::<T>(),
        )
    };
    check(status)
}

fn check(status: c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn empty_address() -> sockaddr_ll {
    // SAFETY: all fields are integers or arrays of them, for which zero is a value.
    unsafe { zeroed() }
}

fn len_of<T>() -> socklen_t {
    c_uint::try_from(size_of::<T>()).expect("structures of the kernel are small")
}
