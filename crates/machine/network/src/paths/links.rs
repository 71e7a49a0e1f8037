//! Interfaces with their addresses and what each has counted (`RTM_GETLINK`, `RTM_GETADDR`).

use std::io;
use std::net::IpAddr;

use host::native::{u32_of, u64_of};

use super::mode::LinkMode;
use crate::links::{LinkState, is_loopback, state};
use crate::netlink::{attributes, find_attribute, text_of};
use crate::route::{IFLA_IFNAME, RTM_GETLINK, RTM_NEWLINK, dump, link_header};

/// `linux/rtnetlink.h`
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
/// `linux/if_link.h`
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_CARRIER_CHANGES: u16 = 35;
/// `linux/if_addr.h`
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// `struct ifinfomsg` and `struct ifaddrmsg`
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;

/// An interface at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkLook {
    /// What the kernel numbers it by.
    pub ifindex: u32,
    /// Name of the interface.
    pub name: String,
    /// Kind of a virtual one, such as `veth`; a device has none.
    pub kind: Option<String>,
    /// Whether packets can come.
    pub state: LinkState,
    /// It leads to this machine alone.
    pub is_loopback: bool,
    /// Largest packet that it takes, in bytes.
    pub mtu: u32,
    /// How often its carrier came or went.
    pub carrier_changes: u32,
    /// Addresses that it has.
    pub addresses: Vec<IpAddr>,
    /// Speed and duplex, where somebody has asked for them.
    pub mode: Option<LinkMode>,
    /// What it has counted.
    pub totals: LinkTotals,
}

/// What an interface has counted since it is there (`struct rtnl_link_stats64`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkTotals {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets received that were not right.
    pub receive_errors: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Packets received for which there was no space or no use.
    pub receive_drops: u64,
    /// Packets to be sent that were dropped.
    pub send_drops: u64,
    /// Collisions.
    pub collisions: u64,
    /// Packets received of a wrong length.
    pub length_errors: u64,
    /// Packets received with a wrong checksum, or that were cut short.
    pub checksum_errors: u64,
    /// Packets for which the card or its ring had no space.
    pub missed: u64,
    /// Packets that were not sent for want of a carrier.
    pub carrier_errors: u64,
    /// Collisions that came late: the other side runs at full duplex.
    pub late_collisions: u64,
}

impl LinkTotals {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            received: self.received.saturating_sub(before.received),
            sent: self.sent.saturating_sub(before.sent),
            receive_errors: self.receive_errors.saturating_sub(before.receive_errors),
            send_errors: self.send_errors.saturating_sub(before.send_errors),
            receive_drops: self.receive_drops.saturating_sub(before.receive_drops),
            send_drops: self.send_drops.saturating_sub(before.send_drops),
            collisions: self.collisions.saturating_sub(before.collisions),
            length_errors: self.length_errors.saturating_sub(before.length_errors),
            checksum_errors: self.checksum_errors.saturating_sub(before.checksum_errors),
            missed: self.missed.saturating_sub(before.missed),
            carrier_errors: self.carrier_errors.saturating_sub(before.carrier_errors),
            late_collisions: self.late_collisions.saturating_sub(before.late_collisions),
        }
    }

    fn read(stats: &[u8]) -> Self {
        let at = |place: usize| stats.as_chunks().0.get(place).copied().map_or(0, u64_of);
        Self {
            received: at(0),
            sent: at(1),
            receive_errors: at(4),
            send_errors: at(5),
            receive_drops: at(6),
            send_drops: at(7),
            collisions: at(9),
            length_errors: at(10),
            // Overruns, FIFO errors and missed packets are the same to who looks from outside.
            missed: at(11).saturating_add(at(14)).saturating_add(at(15)),
            checksum_errors: at(12).saturating_add(at(13)),
            carrier_errors: at(17),
            late_collisions: at(20),
        }
    }
}

/// Those of the namespace that this thread is in.
pub(super) fn all() -> io::Result<Vec<LinkLook>> {
    let mut links: Vec<LinkLook> = Vec::new();
    dump(RTM_GETLINK, &link_header(0, 0), &mut |message| {
        if message.kind == RTM_NEWLINK {
            links.extend(link(message.body));
        }
    })?;
    dump(RTM_GETADDR, &[0; ADDRESS_HEADER], &mut |message| {
        if message.kind == RTM_NEWADDR
            && let Some((ifindex, address)) = address(message.body)
            && let Some(link) = links.iter_mut().find(|link| link.ifindex == ifindex)
        {
            link.addresses.push(address);
        }
    })?;
    Ok(links)
}

/// `struct ifinfomsg` and its attributes.
pub(super) fn link(body: &[u8]) -> Option<LinkLook> {
    let word = |at: usize| Some(u32_of(*body.get(at..)?.first_chunk()?));
    let (ifindex, flags) = (word(4)?, word(8)?);
    let rest = body.get(LINK_HEADER..)?;
    let number = |wanted| find_attribute(rest, wanted)?.first_chunk().copied().map(u32_of);
    let kind = find_attribute(rest, IFLA_LINKINFO)
        .and_then(|info| find_attribute(info, IFLA_INFO_KIND))
        .map(text_of);
    Some(LinkLook {
        ifindex,
        name: text_of(find_attribute(rest, IFLA_IFNAME)?),
        kind,
        state: state(flags),
        is_loopback: is_loopback(flags),
        mtu: number(IFLA_MTU).unwrap_or(0),
        carrier_changes: number(IFLA_CARRIER_CHANGES).unwrap_or(0),
        addresses: Vec::new(),
        mode: None,
        totals: find_attribute(rest, IFLA_STATS64).map(LinkTotals::read).unwrap_or_default(),
    })
}

/// `struct ifaddrmsg` and its attributes: the interface's ifindex, and our address there.
pub(super) fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let ifindex = u32_of(*body.get(4..)?.first_chunk()?);
    let (mut local, mut address) = (None, None);
    for (kind, value) in attributes(body.get(ADDRESS_HEADER..)?) {
        match kind {
            IFA_LOCAL => local = ip(value),
            IFA_ADDRESS => address = ip(value),
            _ => {}
        }
    }
    // Of a link from point to point the address is that of the other end.
    Some((ifindex, local.or(address)?))
}

/// An address in the order of the network.
pub(super) fn ip(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::from(*value.first_chunk::<4>()?)),
        16 => Some(IpAddr::from(*value.first_chunk::<16>()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_with_its_address() {
        let links = all().unwrap();
        let lo = links.iter().find(|link| link.is_loopback).unwrap();
        assert_eq!((&*lo.name, &lo.kind), ("lo", &None));
        assert!(lo.mtu > 1500, "{lo:?}");
        let home = IpAddr::from([127, 0, 0, 1]);
        assert!(lo.state != LinkState::Up || lo.addresses.contains(&home), "{lo:?}");
    }

    #[test]
    fn a_pair_is_of_kind_veth() {
        if let Err(error) = crate::enter_namespace() {
            println!("not run: {error}");
            return;
        }
        crate::make_pair(["left", "right"], 1400).unwrap();
        let links = all().unwrap();
        let left = links.iter().find(|link| link.name == "left").unwrap();
        assert_eq!((left.kind.as_deref(), left.mtu), (Some("veth"), 1400));
        assert_eq!(left.totals.since(left.totals), LinkTotals::default());
    }
}
