//! Interfaces of the namespace that this thread is in: a pair of our own, which there are, and what
//! one has counted.
//!
//! By `rtnetlink(7)` alone, so that nothing need be installed.

use std::fs;
use std::io;
use std::path::Path;

use host::native::{u32_bytes, u64_of};

use crate::Error;
use crate::netlink::{
    MESSAGE_HEADER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, attribute, find_attribute,
};
use crate::route::{
    IFLA_IFNAME, LINK_HEADER, RTM_GETLINK, RTM_NEWLINK, link_header, request, text, veth,
};

/// `linux/if.h`
const IFF_UP: u32 = 0x1;
const IFF_NOARP: u32 = 0x80;
/// `linux/if_link.h`
const IFLA_MTU: u16 = 4;
const IFLA_STATS64: u16 = 23;

/// Makes two interfaces, each of which receives what is sent on the other, and brings them up.
/// They take frames of `mtu` bytes behind the Ethernet header and ask for no addresses.
pub fn make_pair([one, other]: [&str; 2], mtu: u32) -> Result<(), Error> {
    let fail = |source| Error::system("make a pair of interfaces", source);
    let names = |name: &str| {
        let mut attributes = attribute(IFLA_IFNAME, &text(name));
        attributes.extend(attribute(IFLA_MTU, &u32_bytes(mtu)));
        attributes
    };
    let new = [link_header(0, 0), names(one), veth(&names(other))].concat();
    request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &new).map_err(fail)?;
    for name in [one, other] {
        let flags = IFF_UP | IFF_NOARP;
        let up = [link_header(flags, flags), attribute(IFLA_IFNAME, &text(name))].concat();
        request(RTM_NEWLINK, NLM_F_ACK, &up).map_err(fail)?;
    }
    Ok(())
}

/// Names of the interfaces of the namespace that this thread is in.
pub fn interfaces() -> Result<Vec<String>, Error> {
    let path = Path::new("/proc/thread-self/net/dev");
    let text = fs::read_to_string(path).map_err(|error| Error::path("read", path, error))?;
    // Two lines of headings, then a name, a colon and counters.
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    Ok(text.lines().skip(2).filter_map(name).collect())
}

/// The same, of those that are up.
pub fn interfaces_up() -> Result<Vec<String>, Error> {
    let mut names = interfaces()?;
    names.retain(|name| is_up(name));
    Ok(names)
}

/// One that has just vanished is not up.
fn is_up(name: &str) -> bool {
    let asked = [link_header(0, 0), attribute(IFLA_IFNAME, &text(name))].concat();
    request(RTM_GETLINK, 0, &asked).is_ok_and(|answer| flags_in(&answer) & IFF_UP != 0)
}

/// The flags in an answer to `RTM_GETLINK`: `struct ifinfomsg` has them behind family, type and
/// number.
fn flags_in(answer: &[u8]) -> u32 {
    let flags = answer.get(MESSAGE_HEADER + 8..).and_then(|rest| rest.first_chunk());
    flags.copied().map_or(0, u32::from_ne_bytes)
}

/// What an interface has counted since it is there, of all traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were received and dropped because a buffer was full: in the interface, or
    /// behind it.
    pub receive_drops: u64,
    /// Packets that could not be sent.
    pub send_drops: u64,
}

/// The counters of an interface of this namespace.
pub fn link_counters(name: &str) -> Result<LinkCounters, Error> {
    let fail = |source| Error::system("read the counters of an interface", source);
    let asked = [link_header(0, 0), attribute(IFLA_IFNAME, &text(name))].concat();
    let answer = request(RTM_GETLINK, 0, &asked).map_err(fail)?;
    counters_in(&answer).ok_or_else(|| fail(io::ErrorKind::InvalidData.into()))
}

/// Those of an answer to `RTM_GETLINK`.
fn counters_in(answer: &[u8]) -> Option<LinkCounters> {
    let attributes = answer.get(MESSAGE_HEADER + LINK_HEADER..).unwrap_or_default();
    let stats = find_attribute(attributes, IFLA_STATS64)?;
    // struct rtnl_link_stats64: missed are those for which the card had no room.
    let at = |place: usize| stats.as_chunks().0.get(place).copied().map_or(0, u64_of);
    Some(LinkCounters {
        received: at(0),
        sent: at(1),
        receive_drops: at(6).saturating_add(at(15)),
        send_drops: at(7),
    })
}

/// For tests that give any bytes: an answer of `rtnetlink(7)`.
pub(crate) fn read_any_answer(answer: &[u8]) -> Option<LinkCounters> {
    crate::netlink::error_in(answer);
    flags_in(answer);
    counters_in(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enter_namespace;

    #[test]
    fn a_pair_in_a_namespace_of_its_own_counts_what_goes_through() {
        // The namespace is that of this thread, which ends with the test.
        if let Err(error) = enter_namespace() {
            println!("not run: {error}");
            return;
        }
        assert!(link_counters("left").is_err());
        assert_eq!(interfaces_up().unwrap(), Vec::<String>::new(), "loopback is down");
        make_pair(["left", "right"], 9000).unwrap();
        let error = make_pair(["left", "right"], 9000).unwrap_err();
        let source = core::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("File exists"), "{source}");
        assert_eq!(link_counters("left").unwrap(), LinkCounters::default());
        assert_eq!(link_counters("right").unwrap(), LinkCounters::default());
        assert_eq!(interfaces_up().unwrap(), ["right", "left"]);
    }
}
