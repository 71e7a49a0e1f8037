//! The packet socket of one interface: set up so that the ring holds nothing from before the
//! filter, nothing of other interfaces, and what the kernel counts.

use core::mem::{size_of, zeroed};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use filters::Instruction;
use libc::{c_int, c_uint, sockaddr_ll, socklen_t};

use super::option::{self, Membership, ProgramOption, Statistics, check};
use super::question;

/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;
/// `enum tpacket_versions`
pub(super) const TPACKET_V3: c_int = 2;

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    ifindex: c_int,
}

/// How an interface stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// Most bytes behind a link-level header.
    pub(super) mtu: usize,
    pub(super) is_up: bool,
    pub(super) has_carrier: bool,
}

/// The kernel's number of an interface, if there is one of that name.
pub(super) fn ifindex_of(name: &str) -> Option<c_int> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends in NUL.
    let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
    c_int::try_from(ifindex).ok().filter(|&ifindex| ifindex != 0)
}

impl PacketSocket {
    /// Opens a socket on the interface that receives nothing yet.
    pub(super) fn open(ifindex: c_int) -> io::Result<Self> {
        // Protocol 0: no packet before the second bind, thus none that the filter has not seen.
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, ifindex };
        socket.bind(0)?;
        option::PACKET_VERSION.set(socket.as_fd(), &TPACKET_V3)?;
        Ok(socket)
    }

    /// The kernel's number of the interface.
    pub(super) fn ifindex(&self) -> u32 {
        self.ifindex.cast_unsigned()
    }

    /// Starts reception of all protocols.
    pub(super) fn start(&self) -> io::Result<()> {
        self.bind(u16::try_from(libc::ETH_P_ALL).expect("ETH_P_ALL is 3").to_be())
    }

    fn bind(&self, protocol: u16) -> io::Result<()> {
        let mut address = empty_address();
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("AF_PACKET is 17");
        address.sll_protocol = protocol;
        address.sll_ifindex = self.ifindex;
        // SAFETY: the address is a sockaddr_ll of the size given.
        let status = unsafe {
            libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len_of::<sockaddr_ll>())
        };
        check(status)
    }

    /// The `ARPHRD_` number of the bound interface; `None` once it has been removed, or is being:
    /// then the kernel has no interface of the socket's number any more, and says no type and no
    /// length of an address (`packet_getname`). No type has both.
    pub(super) fn hardware_type(&self) -> io::Result<Option<u16>> {
        let mut address = empty_address();
        let mut len = len_of::<sockaddr_ll>();
        // SAFETY: the kernel writes at most `len` bytes into the address.
        let status = unsafe {
            libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len)
        };
        check(status)?;
        let is_there = (address.sll_hatype, address.sll_halen) != (0, 0);
        Ok((address.sll_ifindex == self.ifindex && is_there).then_some(address.sll_hatype))
    }

    /// Lets only those packets in that the program accepts, cut to what it returns.
    pub(super) fn attach(&self, program: &[Instruction]) -> io::Result<()> {
        ProgramOption::Filter.set(self.as_fd(), program)
    }

    /// Lets nothing in any more.
    pub(super) fn attach_nothing(&self) -> io::Result<()> {
        self.attach(&[Instruction { code: RETURN, jt: 0, jf: 0, k: 0 }])
    }

    /// Joins a group of sockets on this interface that share its packets; without a number, makes a
    /// group. Returns the group's number. Reception must have been started.
    pub(super) fn join(&self, group: Option<c_int>, ignores_outgoing: bool) -> io::Result<c_int> {
        let mut flags = 0;
        if group.is_none() {
            flags |= libc::PACKET_FANOUT_FLAG_UNIQUEID;
        }
        if ignores_outgoing {
            flags |= libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        }
        let kind = (libc::PACKET_FANOUT_CBPF | flags) << 16;
        let request = kind.cast_signed() | group.unwrap_or(0);
        option::PACKET_FANOUT.set(self.as_fd(), &request)?;
        Ok(option::PACKET_FANOUT.get(self.as_fd())? & 0xffff)
    }

    /// Sets the program that chooses among the sockets of the group.
    pub(super) fn choose_by(&self, program: &[Instruction]) -> io::Result<()> {
        ProgramOption::Fanout.set(self.as_fd(), program)
    }

    /// Leaves packets out that this host sends: on the loopback interface each of them is received
    /// too.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        option::PACKET_IGNORE_OUTGOING.set(self.as_fd(), &c_int::from(true))
    }

    /// Has the adapter stamp every packet, and the ring hold its stamps
    /// (`timestamping.rst` in the kernel's documentation). The adapter stays so.
    pub(super) fn take_adapter_timestamps(&self, name: &str) -> io::Result<()> {
        let all_packets = libc::HWTSTAMP_FILTER_ALL.cast_signed();
        let config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: all_packets };
        let config = question::set_timestamping(self.as_fd(), name, config)?;
        // A driver may give less than it was asked for, and say so.
        if config.rx_filter != all_packets {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE.cast_signed();
        option::PACKET_TIMESTAMP.set(self.as_fd(), &source)
    }

    /// Promiscuous mode until the socket is closed.
    pub(super) fn be_promiscuous(&self) -> io::Result<()> {
        let request = Membership {
            interface: self.ifindex,
            kind: u16::try_from(libc::PACKET_MR_PROMISC).expect("PACKET_MR_PROMISC is 1"),
            address_len: 0,
            address: [0; 8],
        };
        option::PACKET_ADD_MEMBERSHIP.set(self.as_fd(), &request)
    }

    /// Frames go to the driver past the queueing discipline, which would only delay or drop them.
    pub(super) fn bypass_queueing(&self) -> io::Result<()> {
        option::PACKET_QDISC_BYPASS.set(self.as_fd(), &c_int::from(true))
    }

    /// What the interface of this name, which is the bound one, takes and how it stands.
    pub(super) fn link(&self, name: &str) -> io::Result<Link> {
        let mtu = question::mtu(self.as_fd(), name)?;
        Ok(Link {
            mtu: usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData)?,
            is_up: self.is_up(name)?,
            has_carrier: self.has_carrier(name)?,
        })
    }

    /// Whether the interface of this name is up. This waits for nobody, whereas a question to a
    /// driver waits for the kernel's one lock of all network devices, which whoever removes an
    /// interface or a namespace may have for seconds.
    pub(super) fn is_up(&self, name: &str) -> io::Result<bool> {
        Ok(question::flags(self.as_fd(), name)? & libc::IFF_UP != 0)
    }

    /// Whether the interface of this name has an IPv4 address.
    pub(super) fn has_address(&self, name: &str) -> bool {
        // Packet sockets leave the question to those of IPv4 (`inet_ioctl` in the kernel).
        question::has_address(self.as_fd(), name)
    }

    /// Whether something is connected; a driver that does not say is taken to be. The flags would
    /// say it up to a second late (`linkwatch` in the kernel).
    fn has_carrier(&self, name: &str) -> io::Result<bool> {
        /// `ETHTOOL_GLINK` of `linux/ethtool.h`.
        const GET_LINK: u32 = 0x0a;
        // `ethtool_value`: the command, and the answer.
        let mut value = [GET_LINK, 0];
        match self.ask_driver(name, &mut value) {
            Ok(()) => Ok(value != [GET_LINK, 0]),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// One question of `linux/ethtool.h` about the interface of this name. The request begins with
    /// the question's number and has space for the whole answer.
    pub(super) fn ask_driver(&self, name: &str, request: &mut [u32]) -> io::Result<()> {
        question::ask_driver(self.as_fd(), name, request)
    }

    /// What the kernel counted since it was asked last.
    pub(super) fn statistics(&self) -> io::Result<Statistics> {
        option::PACKET_STATISTICS.get(self.as_fd())
    }

    /// The error that waits at the socket, which this takes away.
    pub(super) fn take_error(&self) -> io::Result<c_int> {
        option::SOCKET_ERROR.get(self.as_fd())
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

fn empty_address() -> sockaddr_ll {
    // SAFETY: all fields are integers or arrays of them, for which zero is a value.
    unsafe { zeroed() }
}

fn len_of<T>() -> socklen_t {
    c_uint::try_from(size_of::<T>()).expect("structures of the kernel are small")
}
