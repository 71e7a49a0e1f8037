//! All TCP and UDP sockets of the namespace that this thread is in, by `sock_diag(7)`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use host::native::{i32_of, u32_bytes, u32_of, u64_of};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::info::TcpInfo;
use super::socket::{DatagramSocket, Endpoint, SocketMemory, TcpSocket, TcpState};
use crate::netlink::{
    NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, attributes, header, messages, refusal,
    text_of,
};

/// `linux/sock_diag.h`
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `linux/inet_diag.h`
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_CGROUP_ID: u16 = 21;
/// `struct inet_diag_msg`
const MESSAGE: usize = 72;
/// `AF_INET` and `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;
/// The kernel fills what it is given, up to 32 KiB at a time.
const ANSWER_BYTES: usize = 32 << 10;
/// A dump that sockets came and went under is asked again so often.
const ATTEMPTS: usize = 3;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    family: u8,
    protocol: u8,
    /// Bits of the wanted attributes.
    wanted: u8,
    /// Only those that are connected to this port; 0 is any.
    remote_port: u16,
}

/// The sockets, of both families.
pub(super) fn tcp_sockets() -> io::Result<Vec<TcpSocket>> {
    let wanted =
        1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    let socket = open()?;
    let mut sockets = Vec::new();
    for family in FAMILIES {
        let asked = Asked { family, protocol: TCP, wanted, remote_port: 0 };
        dump(&socket, asked, socket_of, &mut sockets)?;
    }
    Ok(sockets)
}

/// The same of UDP.
pub(super) fn udp_sockets() -> io::Result<Vec<DatagramSocket>> {
    of_udp(&open()?, 0)
}

fn of_udp(socket: &OwnedFd, remote_port: u16) -> io::Result<Vec<DatagramSocket>> {
    let wanted = 1 << (INET_DIAG_SKMEMINFO - 1);
    let mut sockets = Vec::new();
    for family in FAMILIES {
        let asked = Asked { family, protocol: UDP, wanted, remote_port };
        dump(socket, asked, udp_socket_of, &mut sockets)?;
    }
    Ok(sockets)
}

/// Asks one namespace again and again for the UDP sockets that are connected to port 53.
#[derive(Debug)]
pub(crate) struct DnsAsker(OwnedFd);

impl DnsAsker {
    /// In the namespace that this thread is in.
    pub(crate) fn open() -> Result<Self, crate::Error> {
        let opened = open();
        opened.map(Self).map_err(|error| crate::Error::system("list the UDP sockets", error))
    }

    /// Those that are there now.
    pub(crate) fn ask(&self) -> Vec<DatagramSocket> {
        of_udp(&self.0, DNS_PORT).unwrap_or_default()
    }
}

/// Where every socket of TCP and UDP ends, and its number.
pub(super) fn endpoints() -> io::Result<Vec<Endpoint>> {
    let netlink = open()?;
    let mut endpoints = Vec::new();
    for (family, protocol) in FAMILIES.into_iter().flat_map(|it| [(it, TCP), (it, UDP)]) {
        let mut sockets = Vec::new();
        let asked = Asked { family, protocol, wanted: 0, remote_port: 0 };
        dump(&netlink, asked, socket_of, &mut sockets)?;
        endpoints.extend(sockets.into_iter().map(|socket| Endpoint {
            protocol,
            local: socket.local,
            remote: socket.remote,
            inode: socket.inode,
        }));
    }
    Ok(endpoints)
}

fn open() -> io::Result<OwnedFd> {
    let (netlink, raw) = (AddressFamily::NETLINK, SocketType::RAW);
    let protocol = rustix::net::netlink::SOCK_DIAG;
    Ok(socket_with(netlink, raw, SocketFlags::CLOEXEC, Some(protocol))?)
}

/// Adds what was asked for.
fn dump<T>(
    socket: &OwnedFd,
    asked: Asked,
    read: fn(&[u8]) -> Option<T>,
    found: &mut Vec<T>,
) -> io::Result<()> {
    let begun = found.len();
    for _ in 0..ATTEMPTS {
        found.truncate(begun);
        match dump_once(socket, asked, read, found) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            ended => return ended,
        }
    }
    // The last one is as good as any.
    Ok(())
}

fn dump_once<T>(
    socket: &OwnedFd,
    asked: Asked,
    read: fn(&[u8]) -> Option<T>,
    found: &mut Vec<T>,
) -> io::Result<()> {
    sendto(socket, &request(asked)?, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; ANSWER_BYTES];
    loop {
        let len = match recv(socket, &mut *answer, RecvFlags::empty()) {
            Ok((len, _)) => len,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        if each(answer.get(..len).unwrap_or_default(), read, found)? {
            return Ok(());
        }
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Takes the sockets of one datagram; true where it is the last.
pub(crate) fn take(datagram: &[u8], sockets: &mut Vec<TcpSocket>) -> io::Result<bool> {
    each(datagram, socket_of, sockets)
}

fn each<T>(datagram: &[u8], read: fn(&[u8]) -> Option<T>, found: &mut Vec<T>) -> io::Result<bool> {
    for message in messages(datagram) {
        match message.kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let errno = message.body.first_chunk().copied().map_or(0, i32_of);
                return Err(refusal(errno));
            }
            SOCK_DIAG_BY_FAMILY => found.extend(read(message.body)),
            _ => {}
        }
    }
    Ok(false)
}

/// `struct inet_diag_req_v2`, for all states and any socket but for its remote port.
fn request(asked: Asked) -> io::Result<Vec<u8>> {
    let Asked { family, protocol, wanted, remote_port } = asked;
    let [high, low] = remote_port.to_be_bytes();
    let any = [0, 0, high, low].into_iter().chain([0; 36]).chain([0xff; 8]);
    let body: Vec<u8> =
        [family, protocol, wanted, 0].into_iter().chain(u32_bytes(u32::MAX)).chain(any).collect();
    let mut message = header(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, body.len())?;
    message.extend(body);
    Ok(message)
}

/// A socket of UDP: queues are bytes.
fn udp_socket_of(body: &[u8]) -> Option<DatagramSocket> {
    let TcpSocket { local, remote, cookie, inode, receive_queue, memory, .. } = socket_of(body)?;
    let SocketMemory { receive_buffer, drops, reserved, .. } = memory.unwrap_or_default();
    Some(DatagramSocket {
        local,
        remote,
        cookie,
        inode,
        receive_queue,
        receive_buffer,
        drops,
        has_received: receive_queue > 0 || reserved > 0,
    })
}

/// The numbers of `INET_DIAG_SKMEMINFO`: `SK_MEMINFO_RCVBUF` is the second, `SK_MEMINFO_SNDBUF` the
/// fourth, `SK_MEMINFO_FWD_ALLOC` the fifth and `SK_MEMINFO_DROPS` the ninth.
fn memory_of(numbers: &[u8]) -> SocketMemory {
    let number = |place: usize| numbers.as_chunks().0.get(place).copied().map(u32_of);
    SocketMemory {
        receive_buffer: number(1).unwrap_or(0),
        send_buffer: number(3).unwrap_or(0),
        drops: number(8),
        reserved: number(4).unwrap_or(0),
    }
}

/// `struct inet_diag_msg` and its attributes; ports and addresses are in the order of the network.
fn socket_of(body: &[u8]) -> Option<TcpSocket> {
    let word = |at: usize| Some(u32_of(*body.get(at..)?.first_chunk()?));
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    let is_v4 = *body.first()? == FAMILIES[0];
    let scope = word(40)?;
    let address = |at: usize, port: u16| {
        Some(if is_v4 {
            let octets: [u8; 4] = *body.get(at..)?.first_chunk()?;
            SocketAddr::new(IpAddr::V4(Ipv4Addr::from(octets)), port)
        } else {
            let octets: [u8; 16] = *body.get(at..)?.first_chunk()?;
            let ip = Ipv6Addr::from(octets);
            let scope = if ip.is_unicast_link_local() { scope } else { 0 };
            SocketAddrV6::new(ip, port, 0, scope).into()
        })
    };
    let ends = [address(8, port(4)?)?, address(24, port(6)?)?];
    let mut socket = TcpSocket {
        cookie: u64_of(*body.get(44..)?.first_chunk()?),
        receive_queue: word(56)?,
        send_queue: word(60)?,
        retries: *body.get(3)?,
        uid: word(64)?,
        inode: word(68)?,
        ..TcpSocket::new(state(*body.get(1)?)?, ends)
    };
    for (kind, value) in attributes(body.get(MESSAGE..)?) {
        match kind {
            INET_DIAG_INFO => socket.info = TcpInfo::read(value),
            INET_DIAG_CONG => socket.congestion = Some(text_of(value)),
            INET_DIAG_SKMEMINFO => socket.memory = Some(memory_of(value)),
            INET_DIAG_CGROUP_ID => {
                socket.cgroup = value.first_chunk().copied().map(u64_of);
            }
            _ => {}
        }
    }
    Some(socket)
}

/// `include/net/tcp_states.h`; 12 is a SYN received by a listener.
fn state(number: u8) -> Option<TcpState> {
    Some(match number {
        1 => TcpState::Established,
        2 => TcpState::SynSent,
        3 | 12 => TcpState::SynReceived,
        10 => TcpState::Listen,
        6 => TcpState::TimeWait,
        8 => TcpState::CloseWait,
        4..=9 | 11 => TcpState::Closing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn a_connection_and_its_listener_are_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = match TcpStream::connect(at) {
            // A namespace of its own whose loopback interface nobody has brought up.
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => {
                return println!("not run: no loopback interface: {error}");
            }
            client => client.unwrap(),
        };
        let from = client.local_addr().unwrap();
        let sockets = tcp_sockets().unwrap();
        let find = |local, remote_port| {
            let found = sockets.iter().find(|socket: &&TcpSocket| {
                socket.local == local && socket.remote.port() == remote_port
            });
            found.unwrap_or_else(|| panic!("{local} is not among {}", sockets.len()))
        };
        let listening = find(at, 0);
        assert_eq!((listening.state, listening.receive_queue), (TcpState::Listen, 1));
        assert!(listening.send_queue > 0, "its backlog");
        assert_eq!(listening.memory.unwrap().drops, Some(0), "none found its queue full");
        let server = find(at, from.port());
        assert_eq!((server.state, server.inode), (TcpState::Established, 0), "not accepted yet");
        let connected = find(from, at.port());
        assert_ne!(connected.inode, 0);
        let info = connected.info.unwrap();
        assert!(info.congestion_window > 0 && info.send_mss > 500, "{info:?}");
        assert!(connected.congestion.as_ref().is_some_and(|name| !name.is_empty()));
        assert_ne!(connected.cookie, server.cookie);
        let memory = connected.memory.unwrap();
        assert!(memory.send_buffer > 1000 && memory.receive_buffer > 1000, "{memory:?}");
    }

    #[test]
    fn a_udp_socket_shows_whether_it_has_received_anything() {
        let bind = || UdpSocket::bind("127.0.0.1:0");
        let (Ok(one), Ok(other)) = (bind(), bind()) else {
            return println!("not run: no loopback interface");
        };
        one.connect(other.local_addr().unwrap()).unwrap();
        let at = one.local_addr().unwrap();
        let has_received = || {
            let sockets = udp_sockets().unwrap();
            sockets.iter().find(|socket| socket.local == at).unwrap().has_received
        };
        one.send(b"question").unwrap();
        assert!(!has_received());
        other.send_to(b"answer", at).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(one.recv(&mut bytes).unwrap(), 6);
        assert!(has_received(), "also when it has been read");
    }

    #[test]
    fn scopes_are_kept_and_cut_messages_are_none() {
        let mut body = vec![0; MESSAGE];
        body[0] = FAMILIES[1];
        body[1] = 1;
        body[4..6].copy_from_slice(&[0x1f, 0x90]);
        body[8] = 0xfe;
        body[9] = 0x80;
        body[40..44].copy_from_slice(&u32_bytes(3));
        let socket = socket_of(&body).unwrap();
        assert_eq!(socket.local.to_string(), "[fe80::%3]:8080");
        assert_eq!((socket.info, socket.congestion), (None, None));
        assert_eq!(socket_of(&body[..MESSAGE - 1]), None);
        body[1] = 99;
        assert_eq!(socket_of(&body), None);
    }
}
