//! Networks of our own: a namespace, a pair of interfaces in it, and what an interface counts.
//!
//! By `rtnetlink(7)` alone, so that nothing need be installed.

#![expect(unsafe_code, reason = "unshare may take descriptors from other threads")]

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Error;
use crate::netlink::{
    MESSAGE_HEADER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, attribute, error_in,
    find_attribute, from_bytes, header, to_bytes,
};

/// `linux/rtnetlink.h`
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// Length, type and flags of an answer, and its error or link.
const LINK_HEADER: usize = 16;
/// `linux/if.h`
const IFF_UP: u32 = 0x1;
const IFF_NOARP: u32 = 0x80;
/// `linux/if_link.h`
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// A link with all of its attributes takes about 1.5 KiB.
const ANSWER_BYTES: usize = 32 << 10;

/// Moves this thread, and those and the programs that it starts from now on, into an empty network
/// namespace; as an ordinary user, where the kernel permits it, inside of a user namespace.
/// Call it before there is another thread.
pub fn enter_namespace() -> Result<(), Error> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let new = UnshareFlags::NEWNET;
    // SAFETY: the table of descriptors stays shared.
    let entered = match unsafe { unshare_unsafe(new) } {
        // SAFETY: as above.
        Err(Errno::PERM) => match unsafe { unshare_unsafe(new | UnshareFlags::NEWUSER) } {
            Ok(()) => map_to_root(user, group),
            Err(errno) => Err(errno.into()),
        },
        entered => entered.map_err(io::Error::from),
    };
    entered.map_err(|source| Error::Namespace { source })?;
    // Interfaces that speak of their own accord would be heard. Where there is no IPv6 there is no
    // such file.
    drop(fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"));
    Ok(())
}

/// Programs started in a user namespace have its rights if they run as its root
/// (`user_namespaces(7)`).
fn map_to_root(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Makes two interfaces, each of which receives what is sent on the other, and brings them up.
/// They take frames of `mtu` bytes behind the Ethernet header and ask for no addresses.
pub fn make_pair([one, other]: [&str; 2], mtu: u32) -> Result<(), Error> {
    let fail = |source| Error::system("make a pair of interfaces", source);
    let names = |name: &str| {
        let mut attributes = attribute(IFLA_IFNAME, &text(name));
        attributes.extend(attribute(IFLA_MTU, &to_bytes(mtu)));
        attributes
    };
    let peer = [link_header(0, 0), names(other)].concat();
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let kind = attribute(IFLA_INFO_KIND, &text("veth"));
    let info = attribute(IFLA_LINKINFO, &[kind, data].concat());
    let new = [link_header(0, 0), names(one), info].concat();
    request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map_err(fail)?;
    for name in [one, other] {
        let flags = IFF_UP | IFF_NOARP;
        let up = [link_header(flags, flags), attribute(IFLA_IFNAME, &text(name))].concat();
        request(RTM_NEWLINK, NLM_F_ACK, &up).map_err(fail)?;
    }
    Ok(())
}

/// What an interface has counted since it is there, of all traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were received and dropped for want of room: in the interface, or behind it.
    pub receive_drops: u64,
    /// Packets that could not be sent.
    pub send_drops: u64,
}

/// The counters of an interface of this namespace.
pub fn link_counters(name: &str) -> Result<LinkCounters, Error> {
    let fail = |source| Error::system("read the counters of an interface", source);
    let asked = [link_header(0, 0), attribute(IFLA_IFNAME, &text(name))].concat();
    let answer = request(RTM_GETLINK, 0, &asked).map_err(fail)?;
    let attributes = answer.get(MESSAGE_HEADER + LINK_HEADER..).unwrap_or_default();
    let stats = find_attribute(attributes, IFLA_STATS64);
    let stats = stats.ok_or_else(|| fail(io::ErrorKind::InvalidData.into()))?;
    // struct rtnl_link_stats64: missed are those for which the card had no room.
    let at = |place: usize| stats.as_chunks().0.get(place).copied().map_or(0, from_bytes);
    Ok(LinkCounters {
        received: at(0),
        sent: at(1),
        receive_drops: at(6) + at(15),
        send_drops: at(7),
    })
}

/// Sends a request and gives the answer, or the error that it is.
fn request(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    let kernel = SocketAddrNetlink::new(0, 0);
    let (family, raw) = (AddressFamily::NETLINK, SocketType::RAW);
    // NETLINK_ROUTE is 0, the protocol that is none.
    let socket = socket_with(family, raw, SocketFlags::CLOEXEC, None)?;
    let mut message = header(kind, NLM_F_REQUEST | flags, body.len())?;
    message.extend_from_slice(body);
    sendto(&socket, &message, SendFlags::empty(), &kernel)?;
    let mut answer = vec![0; ANSWER_BYTES];
    let (len, _) = recv(&socket, &mut *answer, RecvFlags::empty())?;
    answer.truncate(len);
    let errno = error_in(&answer).unwrap_or(0);
    // The kernel gives it negative; 0 is an acknowledgement.
    if errno == 0 { Ok(answer) } else { Err(io::Error::from_raw_os_error(-errno)) }
}

/// struct ifinfomsg, for a link that is told by its name.
fn link_header(flags: u32, change: u32) -> Vec<u8> {
    [[0; 8].as_slice(), &to_bytes(flags), &to_bytes(change)].concat()
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_in_a_namespace_of_its_own_counts_what_goes_through() {
        // The namespace is that of this thread, which ends with the test.
        if let Err(error) = enter_namespace() {
            println!("not run: {error}");
            return;
        }
        assert!(link_counters("left").is_err());
        make_pair(["left", "right"], 9000).unwrap();
        let error = make_pair(["left", "right"], 9000).unwrap_err();
        let source = core::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("File exists"), "{source}");
        assert_eq!(link_counters("left").unwrap(), LinkCounters::default());
        assert_eq!(link_counters("right").unwrap(), LinkCounters::default());
    }
}
