//! IPv6 of a namespace: an address of our own (RFC 4193), which the machine translates as it does
//! that of IPv4.
//!
//! The kernel forwards IPv6 for all interfaces or for none, and a machine that forwards for all
//! ignores what routers advertise, its own route above all. So IPv6 is there where the machine
//! forwards anyway, or where single interfaces can (`force_forwarding`, Linux 6.17).

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::forwarding::{Family, Forwarding, can_forward, turn_on_for_good};
use crate::nat::{Rules, Translation};
use crate::route;

/// Of the addresses at both ends.
const PREFIX: u8 = 126;

/// The way by IPv6.
#[derive(Debug)]
pub(crate) struct Six {
    ours: Ipv6Addr,
    theirs: Ipv6Addr,
    /// None where the machine forwards anyway.
    forwarding: Option<Forwarding>,
    via: String,
}

impl Six {
    /// By the interface of the default route; `None` where single interfaces do not forward.
    pub(crate) fn turn_on(via: &str, of: Ipv4Addr) -> io::Result<Option<Self>> {
        let forwards = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding")?;
        let is_router = forwards.trim() != "0";
        if !is_router && !can_forward(via, Family::Six) {
            return Ok(None);
        }
        let forwarding = (!is_router).then(|| Forwarding::turn_on(via, Family::Six)).transpose()?;
        // As unlikely to be met elsewhere as that of IPv4.
        let [_, _, high, low] = of.octets();
        let place = |end| {
            let number = u16::from_be_bytes([high, low]);
            Ipv6Addr::new(0xfd77, 0x6972, 0x6573, 0x706f, number, 0, 0, end)
        };
        Ok(Some(Self { ours: place(1), theirs: place(2), forwarding, via: via.to_owned() }))
    }

    /// Gives our end of the pair its address, and has it forward.
    pub(crate) fn set_up_outside(&self, outer: &str) -> io::Result<()> {
        set(outer, "disable_ipv6", "0")?;
        route::add_address(outer, self.ours.into(), PREFIX)?;
        if self.forwarding.is_some() { turn_on_for_good(outer, Family::Six) } else { Ok(()) }
    }

    /// The same inside, with the way out.
    pub(crate) fn set_up_inside(&self, inner: &str) -> io::Result<()> {
        // No router is there to be asked.
        set(inner, "router_solicitations", "0")?;
        set(inner, "disable_ipv6", "0")?;
        set("lo", "disable_ipv6", "0")?;
        route::add_address(inner, self.theirs.into(), PREFIX)?;
        route::add_default_route(self.ours.into())
    }

    /// Where the programs inside find this machine.
    pub(crate) fn gateway(&self) -> Ipv6Addr {
        self.ours
    }

    /// Translates the address of the programs.
    pub(crate) fn translate(&self, table: &str, outer: &str) -> io::Result<Translation> {
        let is_changed = self.forwarding.as_ref().is_some_and(Forwarding::is_changed);
        let only = is_changed.then_some([&*self.via, outer]);
        Translation::new(Rules { table, source: self.theirs.into(), only })
    }

    /// As it was before.
    pub(crate) fn restore(&self) {
        if let Some(forwarding) = &self.forwarding {
            forwarding.restore();
        }
    }
}

fn set(interface: &str, name: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys/net/ipv6/conf").join(interface).join(name), value)
}
