//! The interfaces of this network namespace, as an operator tells them apart.

use std::fs;
use std::path::Path;

use host::native::u32_of;

use crate::Error;
use crate::link::interfaces;
use crate::netlink::{MESSAGE_HEADER, attribute};
use crate::route::{IFLA_IFNAME, RTM_GETLINK, link_header, request, routes, text};

/// `linux/if.h`
const IFF_UP: u32 = 0x1;
const IFF_LOOPBACK: u32 = 0x8;
const IFF_LOWER_UP: u32 = 0x1_0000;
/// `IPV6_ADDR_LINKLOCAL` of `net/ipv6.h`: the kernel gives such an address without being asked.
const SCOPE_OF_LINK: &str = "20";

/// Whether packets can come to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Nobody has brought it up.
    Down,
    /// It is up, without a cable, or without a port at its other end.
    NoCarrier,
    /// They can.
    Up,
}

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Whether packets can come.
    pub state: LinkState,
    /// It leads to this machine alone.
    pub is_loopback: bool,
    /// Its speed in Mbit/s; `None` where the driver does not say.
    pub mbit_per_s: Option<u64>,
    /// Packets are sent by it: it has an address, or a route leads there.
    pub has_address: bool,
}

pub(crate) fn state(flags: u32) -> LinkState {
    match (flags & IFF_UP != 0, flags & IFF_LOWER_UP != 0) {
        (false, _) => LinkState::Down,
        (true, false) => LinkState::NoCarrier,
        (true, true) => LinkState::Up,
    }
}

pub(crate) fn is_loopback(flags: u32) -> bool {
    flags & IFF_LOOPBACK != 0
}

/// The interfaces, in the kernel's order; one that vanishes meanwhile is left out.
///
/// # Errors
/// The kernel lists none.
pub fn links() -> Result<Vec<Link>, Error> {
    let routed: Vec<String> =
        routes().unwrap_or_default().into_iter().map(|route| route.interface).collect();
    let table = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    let with_ipv6 = named_in(&table);
    let link = |name: String| {
        let asked = [link_header(0, 0), attribute(IFLA_IFNAME, &text(&name))].concat();
        let (ifindex, flags) = ifindex_and_flags(&request(RTM_GETLINK, 0, &asked).ok()?)?;
        Some(Link {
            state: state(flags),
            is_loopback: is_loopback(flags),
            mbit_per_s: speed(&name, ifindex),
            has_address: routed.contains(&name) || with_ipv6.contains(&name),
            name,
        })
    };
    Ok(interfaces()?.into_iter().filter_map(link).collect())
}

/// `struct ifinfomsg`: family, padding and type take four bytes.
fn ifindex_and_flags(answer: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32_of(*answer.get(MESSAGE_HEADER + at..)?.first_chunk()?));
    Some((number(4)?, number(8)?))
}

/// What sysfs says, where it shows this namespace: it stays with the one it was mounted in.
fn speed(name: &str, ifindex: u32) -> Option<u64> {
    let place = Path::new("/sys/class/net").join(name);
    let number = |file: &str| -> Option<u64> {
        fs::read_to_string(place.join(file)).ok()?.trim().parse().ok()
    };
    let is_same = number("ifindex") == Some(u64::from(ifindex));
    // Without a link it is -1, and unknown 0 or the highest number of 32 bits.
    let is_known = |speed: &u64| (1..u64::from(u32::MAX)).contains(speed);
    number("speed").filter(is_known).filter(|_| is_same)
}

/// The interfaces of `/proc/net/if_inet6` with an address that somebody gave them: address, index,
/// prefix, scope, flags, name.
fn named_in(table: &str) -> Vec<String> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_given = *words.get(3)? != SCOPE_OF_LINK;
        Some((*words.get(5)?).to_owned()).filter(|_| is_given)
    };
    table.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_as_such() {
        let all = links().unwrap();
        let lo = all.iter().find(|link| link.name == "lo").unwrap();
        assert!(lo.is_loopback, "{lo:?}");
        assert_eq!(lo.mbit_per_s, None, "no driver, no speed");
    }

    #[test]
    fn an_address_that_the_kernel_gave_by_itself_is_none() {
        let table = "fe80000000000000020c29fffe000001 02 40 20 80     eth0\n\
                     fd000000000000000000000000000001 03 40 00 80     eth1\n";
        assert_eq!(named_in(table), ["eth1"]);
    }

    #[test]
    fn a_pair_is_up_with_a_carrier_and_without_an_address() {
        if let Err(error) = crate::enter_namespace() {
            println!("not run: {error}");
            return;
        }
        crate::make_pair(["left", "right"], 1500).unwrap();
        let left = links().unwrap().into_iter().find(|link| link.name == "left").unwrap();
        assert!(left.state == LinkState::Up && !left.is_loopback, "{left:?}");
        assert!(!left.has_address, "{left:?}");
    }
}
