//! The packet socket of one interface: set up so that the ring holds nothing from before the
//! filter, nothing of other interfaces, and what the kernel counts.

use core::mem::{size_of, zeroed};
use core::ptr;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{
    Ioctl, c_char, c_int, c_uint, ifreq, packet_mreq, sock_fprog, sockaddr_ll, socklen_t,
    tpacket_stats_v3,
};

use crate::filter::Instruction;

/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    index: c_int,
}

/// How an interface stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// Most bytes behind a link-level header.
    pub(super) mtu: usize,
    pub(super) is_up: bool,
    pub(super) has_carrier: bool,
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

    /// The index of the interface.
    pub(super) fn index(&self) -> u32 {
        self.index.cast_unsigned()
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
        let program = filter_program(program)?;
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Lets nothing in any more.
    pub(super) fn attach_nothing(&self) -> io::Result<()> {
        self.attach(&mut [Instruction { code: RETURN, jt: 0, jf: 0, k: 0 }])
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
        self.set(libc::PACKET_FANOUT, &request)?;
        let mut joined: c_int = 0;
        self.get(libc::SOL_PACKET, libc::PACKET_FANOUT, &mut joined)?;
        Ok(joined & 0xffff)
    }

    /// Sets the program that chooses among the sockets of the group.
    pub(super) fn choose_by(&self, program: &mut [Instruction]) -> io::Result<()> {
        self.set(libc::PACKET_FANOUT_DATA, &filter_program(program)?)
    }

    /// Leaves packets out that this host sends: on the loopback interface each of them is received
    /// too.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::PACKET_IGNORE_OUTGOING, &c_int::from(true))
    }

    /// Has the adapter stamp every packet, and the ring hold its stamps
    /// (`timestamping.rst` in the kernel's documentation). The adapter stays so.
    pub(super) fn take_adapter_timestamps(&self, name: &str) -> io::Result<()> {
        let all_packets = libc::HWTSTAMP_FILTER_ALL.cast_signed();
        let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: all_packets };
        let question = Ioctl::try_from(libc::SIOCSHWTSTAMP).expect("ioctls have 16 bits here");
        self.ask(name, question, (&raw mut config).cast())?;
        // A driver may give less than it was asked for, and say so.
        if config.rx_filter != all_packets {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE.cast_signed();
        self.set(libc::PACKET_TIMESTAMP, &source)
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

    /// Frames go to the driver past the queueing discipline, which would only delay or drop them.
    pub(super) fn bypass_queueing(&self) -> io::Result<()> {
        self.set(libc::PACKET_QDISC_BYPASS, &c_int::from(true))
    }

    /// What the interface of this name, which is the bound one, takes and how it stands.
    pub(super) fn link(&self, name: &str) -> io::Result<Link> {
        let mtu = self.ask(name, libc::SIOCGIFMTU, ptr::null_mut())?;
        // SAFETY: SIOCGIFMTU has filled this field of the union, of which any bits are a value.
        let mtu = unsafe { mtu.ifr_ifru.ifru_mtu };
        let flags = self.ask(name, libc::SIOCGIFFLAGS, ptr::null_mut())?;
        // SAFETY: SIOCGIFFLAGS has filled this field of the union, of which any bits are a value.
        let flags = c_int::from(unsafe { flags.ifr_ifru.ifru_flags });
        Ok(Link {
            mtu: usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData)?,
            is_up: flags & libc::IFF_UP != 0,
            has_carrier: self.has_carrier(name)?,
        })
    }

    /// Whether the interface of this name has an IPv4 address.
    pub(super) fn has_address(&self, name: &str) -> bool {
        // Packet sockets leave the question to those of IPv4 (`inet_ioctl` in the kernel).
        self.ask(name, libc::SIOCGIFADDR, ptr::null_mut()).is_ok()
    }

    /// Whether something is connected; a driver that does not tell is taken to be. The flags would
    /// tell it up to a second late (`linkwatch` in the kernel).
    fn has_carrier(&self, name: &str) -> io::Result<bool> {
        /// `ETHTOOL_GLINK` of `linux/ethtool.h`.
        const GET_LINK: u32 = 0x0a;
        // `ethtool_value`: the command, and the answer.
        let mut value = [GET_LINK, 0];
        match self.ask(name, libc::SIOCETHTOOL, value.as_mut_ptr().cast()) {
            Ok(_) => Ok(value != [GET_LINK, 0]),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// One question of `linux/ethtool.h` about the interface of this name. The request begins with
    /// the question's number and has room for the whole answer.
    pub(super) fn ask_driver(&self, name: &str, request: &mut [u32]) -> io::Result<()> {
        self.ask(name, libc::SIOCETHTOOL, request.as_mut_ptr().cast()).map(drop)
    }

    /// One question of netdevice(7); `data` is what its answer goes to, where that is not in the
    /// request itself.
    fn ask(&self, name: &str, question: Ioctl, data: *mut c_char) -> io::Result<ifreq> {
        // SAFETY: all fields are integers, addresses or pointers, for which zero is a value.
        let mut request: ifreq = unsafe { zeroed() };
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes().iter().take(room)) {
            *to = c_char::from_le_bytes([*from]);
        }
        request.ifr_ifru.ifru_data = data;
        // SAFETY: the request is an ifreq whose name ends in NUL, and data points to what the
        // question wants.
        let status = unsafe { libc::ioctl(self.fd.as_raw_fd(), question, &raw mut request) };
        check(status)?;
        Ok(request)
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
        get_option(self.as_fd(), level, name, value)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The program as the kernel wants it; valid as long as the instructions are.
fn filter_program(program: &mut [Instruction]) -> io::Result<sock_fprog> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(sock_fprog { len, filter: program.as_mut_ptr() })
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

/// Reads a socket option whose value is a structure of the kernel, all of integers.
pub(super) fn get_option<T>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut len = len_of::<T>();
    // SAFETY: the kernel writes at most `len` bytes into the value, whose fields are integers.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, ptr::from_mut(value).cast(), &raw mut len)
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
