//! Links, addresses and routes of the namespace that this thread is in, by `rtnetlink(7)`.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use host::native::{i32_of, u32_bytes, u32_of};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use crate::netlink::{
    MESSAGE_HEADER, Message, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST,
    NLMSG_DONE, NLMSG_ERROR, attribute, error_in, find_attribute, header, messages, refusal, short,
};

/// `linux/rtnetlink.h`
pub(crate) const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;
const RTA_GATEWAY: u16 = 5;
/// Length, type and flags of an answer, and its error or link.
pub(crate) const LINK_HEADER: usize = 16;
/// `linux/if.h`
const IFF_UP: u32 = 0x1;
/// `linux/if_link.h`
const IFLA_ADDRESS: u16 = 1;
pub(crate) const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// `linux/if_addr.h`
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// `linux/neighbour.h`
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFA_F_NODAD: u8 = 0x2;
/// A link with all of its attributes takes about 1.5 KiB.
const ANSWER_BYTES: usize = 32 << 10;

/// Makes an interface whose other end is `theirs` in the namespace of this descriptor.
pub(crate) fn add_pair(ours: &str, theirs: &str, namespace: i32) -> io::Result<()> {
    let fd = attribute(IFLA_NET_NS_FD, &u32_bytes(namespace.cast_unsigned()));
    let peer = [attribute(IFLA_IFNAME, &text(theirs)), fd].concat();
    let new = [link_header(0, 0), attribute(IFLA_IFNAME, &text(ours)), veth(&peer)].concat();
    request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map(drop)
}

/// What makes a link one end of a pair, whose other end has these attributes.
pub(crate) fn veth(peer: &[u8]) -> Vec<u8> {
    let peer = [&link_header(0, 0), peer].concat();
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let kind = attribute(IFLA_INFO_KIND, &text("veth"));
    attribute(IFLA_LINKINFO, &[kind, data].concat())
}

/// Removes an interface; the other end of a pair goes with it.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    let gone = [link_header(0, 0), attribute(IFLA_IFNAME, &text(name))].concat();
    request(RTM_DELLINK, NLM_F_ACK, &gone).map(drop)
}

pub(crate) fn bring_up(name: &str) -> io::Result<()> {
    let up = [link_header(IFF_UP, IFF_UP), attribute(IFLA_IFNAME, &text(name))].concat();
    request(RTM_NEWLINK, NLM_F_ACK, &up).map(drop)
}

/// Gives an interface an address of a network with this prefix.
pub(crate) fn add_address(name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    let number = number_of(&link(name)?)?;
    let (family, octets) = of_address(address);
    let (local, same) = (attribute(IFA_LOCAL, &octets), IFA_ADDRESS);
    // Of ours nobody else has the address: with IPv6 it could not be used for a second.
    let flags = if family == AF_INET6 { IFA_F_NODAD } else { 0 };
    // struct ifaddrmsg: family, prefix, flags, scope, number of the interface.
    let head = [&[family, prefix, flags, 0], &u32_bytes(number)[..]].concat();
    let new = [head, local, attribute(same, &octets)].concat();
    request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map(drop)
}

/// What the kernel says of an interface.
fn link(name: &str) -> io::Result<Vec<u8>> {
    let asked = [link_header(0, 0), attribute(IFLA_IFNAME, &text(name))].concat();
    request(RTM_GETLINK, 0, &asked)
}

fn number_of(link: &[u8]) -> io::Result<u32> {
    // struct ifinfomsg: family, type, then the number.
    let number = link.get(MESSAGE_HEADER + 4..).and_then(|rest| rest.first_chunk());
    Ok(u32_of(*number.ok_or(io::ErrorKind::InvalidData)?))
}

/// The address of Ethernet of an interface.
pub(crate) fn station_of(name: &str) -> io::Result<Vec<u8>> {
    let link = link(name)?;
    let attributes = link.get(MESSAGE_HEADER + LINK_HEADER..).unwrap_or_default();
    let address = find_attribute(attributes, IFLA_ADDRESS);
    Ok(address.ok_or(io::ErrorKind::InvalidData)?.to_vec())
}

/// Tells the kernel at which station an address lies by this interface, for good: it does not ask.
pub(crate) fn add_neighbour(name: &str, address: IpAddr, station: &[u8]) -> io::Result<()> {
    let number = u32_bytes(number_of(&link(name)?)?);
    let (family, octets) = of_address(address);
    // struct ndmsg: family, three bytes of nothing, number of the interface, state, flags, type.
    let head = [&[family, 0, 0, 0], &number[..], &short(NUD_PERMANENT), &[0, 0]].concat();
    let new = [head, attribute(NDA_DST, &octets), attribute(NDA_LLADDR, station)].concat();
    request(RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map(drop)
}

fn of_address(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

pub(crate) fn add_default_route(gateway: IpAddr) -> io::Result<()> {
    let (family, octets) = of_address(gateway);
    // struct rtmsg: family, both prefixes, service, table, origin, scope, type, flags.
    let head = [family, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0];
    let new = [&head[..], &attribute(RTA_GATEWAY, &octets)].concat();
    request(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map(drop)
}

/// A route of IPv4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// Where it leaves.
    pub(crate) interface: String,
    /// First address, and the bits that tell it; a default route has none.
    pub(crate) to: (Ipv4Addr, u32),
    metric: u32,
}

impl Route {
    pub(crate) fn is_default(&self) -> bool {
        self.to.1 == 0
    }

    /// Whether some address of the network `1 << (32 - prefix)` wide at `first` goes that way.
    pub(crate) fn meets(&self, first: Ipv4Addr, prefix: u8) -> bool {
        let wide = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let mask = wide & self.to.1;
        !self.is_default() && u32::from(first) & mask == u32::from(self.to.0) & mask
    }
}

/// The routes of the main table, those that are preferred first.
pub(crate) fn routes() -> io::Result<Vec<Route>> {
    let mut found = routes_in(&fs::read_to_string("/proc/thread-self/net/route")?);
    found.sort_by_key(|route| route.metric);
    Ok(found)
}

/// `/proc/net/route`: addresses are hexadecimal, in the order of the machine.
pub(crate) fn routes_in(table: &str) -> Vec<Route> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let interface = words.next()?.to_owned();
        let rest: Vec<&str> = words.collect();
        let address = |at: usize| u32::from_str_radix(rest.get(at)?, 16).ok().map(u32::to_be);
        let to = (Ipv4Addr::from(address(0)?), address(6)?);
        Some(Route { interface, to, metric: rest.get(5)?.parse().ok()? })
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// The interface of the default route of IPv6, if there is one.
pub(crate) fn default_interface_6() -> Option<String> {
    default_in_6(&fs::read_to_string("/proc/thread-self/net/ipv6_route").ok()?)
}

/// `/proc/net/ipv6_route`: numbers are hexadecimal; the preferred route has the lowest metric.
fn default_in_6(table: &str) -> Option<String> {
    /// `RTF_REJECT` of `linux/route.h`: it leads nowhere.
    const REJECT: u32 = 0x200;
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let is_default = words.first()?.bytes().all(|digit| digit == b'0') && number(1)? == 0;
        let leads = number(8)? & REJECT == 0;
        (is_default && leads).then_some((number(5)?, (*words.get(9)?).to_owned()))
    };
    table.lines().filter_map(line).min().map(|(_, interface)| interface)
}

/// Sends a request and gives the answer, or the error that it is.
pub(crate) fn request(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
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
    if errno == 0 { Ok(answer) } else { Err(refusal(errno)) }
}

/// Asks for all there are of something, and hands out each message of the answer.
pub(crate) fn dump(kind: u16, body: &[u8], take: &mut dyn FnMut(Message<'_>)) -> io::Result<()> {
    let (family, raw) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, raw, SocketFlags::CLOEXEC, None)?;
    let mut message = header(kind, NLM_F_REQUEST | NLM_F_DUMP, body.len())?;
    message.extend_from_slice(body);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; ANSWER_BYTES];
    loop {
        let len = match recv(&socket, &mut *answer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((len, _)) => len,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for message in messages(answer.get(..len).unwrap_or_default()) {
            match message.kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let errno = message.body.first_chunk().copied().map_or(0, i32_of);
                    return Err(refusal(errno));
                }
                _ => take(message),
            }
        }
    }
}

/// struct ifinfomsg, for a link that is told by its name.
pub(crate) fn link_header(flags: u32, change: u32) -> Vec<u8> {
    [[0; 8].as_slice(), &u32_bytes(flags), &u32_bytes(change)].concat()
}

pub(crate) fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// For tests that give any text: that of `/proc/net/route`.
pub(crate) fn read_any_routes(text: &str) -> bool {
    let routes = routes_in(text);
    routes.iter().any(|route| route.is_default() || route.meets(Ipv4Addr::LOCALHOST, 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_of_ipv6_is_one_that_leads_somewhere() {
        let line = |to: &str, prefix: &str, metric: &str, flags: &str, interface: &str| {
            let none = "0".repeat(32);
            format!(
                "{to} {prefix} {none} 00 {none} {metric} 00000001 00000000 {flags} {interface}\n"
            )
        };
        let (all, some) = ("0".repeat(32), format!("fd77{}", "0".repeat(28)));
        let nowhere = line(&all, "00", "ffffffff", "00200200", "lo");
        assert_eq!(default_in_6(&nowhere), None);
        let table = [
            nowhere,
            line(&some, "7e", "00000100", "00000001", "eth1"),
            line(&all, "00", "00000400", "00000003", "eth2"),
            line(&all, "00", "00000064", "00000003", "eth0"),
        ];
        assert_eq!(default_in_6(&table.concat()), Some("eth0".to_owned()));
    }

    #[test]
    fn routes_are_read_as_the_kernel_lists_them() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let routes = routes_in(table);
        assert_eq!(routes.len(), 2);
        assert!(routes[0].is_default() && routes[0].interface == "eth0");
        assert_eq!(routes[1].to, (Ipv4Addr::new(192, 168, 1, 0), 0xffff_ff00));
        assert!(routes[1].meets(Ipv4Addr::new(192, 168, 1, 4), 30));
        assert!(routes[1].meets(Ipv4Addr::new(192, 168, 0, 0), 16), "it lies inside");
        assert!(!routes[1].meets(Ipv4Addr::new(192, 168, 2, 4), 30));
        assert!(!routes[0].meets(Ipv4Addr::new(192, 168, 1, 4), 30), "a default route is no place");
    }
}
