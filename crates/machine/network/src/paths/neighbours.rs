//! Neighbours: which link-level address an IP address has (`RTM_GETNEIGH`).

use core::fmt;
use std::io;
use std::net::IpAddr;

use host::native::u32_of;

use super::links::ip;
use crate::netlink::attributes;
use crate::route::dump;

/// `linux/rtnetlink.h`
pub(super) const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
/// `linux/neighbour.h`
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_INCOMPLETE: u16 = 0x01;
const NUD_FAILED: u16 = 0x20;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
/// `struct ndmsg`
const HEADER: usize = 12;

/// Link-level address of Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkAddress(pub [u8; 6]);

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&bytes.join(":"))
    }
}

/// What is known of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighbourState {
    /// Its address was asked for, and no answer has come yet.
    Asked,
    /// It has not answered.
    Failed,
    /// Its address is known.
    Known,
}

/// A neighbour at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Number of the interface that it is behind.
    pub link: u32,
    /// Its IP address.
    pub address: IpAddr,
    /// Its link-level address, where it is known and of Ethernet.
    pub link_address: Option<LinkAddress>,
    /// What is known of it.
    pub state: NeighbourState,
}

/// Those of the namespace that this thread is in.
pub(super) fn all() -> io::Result<Vec<Neighbour>> {
    let mut neighbours = Vec::new();
    dump(RTM_GETNEIGH, &[0; HEADER], &mut |message| {
        if message.kind == RTM_NEWNEIGH {
            neighbours.extend(neighbour(message.body));
        }
    })?;
    Ok(neighbours)
}

/// `struct ndmsg` and its attributes; `None` of those that nobody asks for: multicast, and entries
/// that were made by hand.
pub(super) fn neighbour(body: &[u8]) -> Option<Neighbour> {
    let link = u32_of(*body.get(4..)?.first_chunk()?);
    let [low, high] = *u32_of(*body.get(8..)?.first_chunk()?).to_le_bytes().first_chunk::<2>()?;
    let flags = u16::from_le_bytes([low, high]);
    if flags & (NUD_NOARP | NUD_PERMANENT) != 0 || flags == 0 {
        return None;
    }
    let state = match flags {
        flags if flags & NUD_INCOMPLETE != 0 => NeighbourState::Asked,
        flags if flags & NUD_FAILED != 0 => NeighbourState::Failed,
        _ => NeighbourState::Known,
    };
    let (mut address, mut link_address) = (None, None);
    for (kind, value) in attributes(body.get(HEADER..)?) {
        match kind {
            NDA_DST => address = ip(value),
            NDA_LLADDR => link_address = <[u8; 6]>::try_from(value).ok().map(LinkAddress),
            _ => {}
        }
    }
    // What a failed one had is no longer so.
    let link_address = link_address.filter(|_| state == NeighbourState::Known);
    Some(Neighbour { link, address: address?, link_address, state })
}

#[cfg(test)]
mod tests {
    use host::native::u32_bytes;

    use super::*;
    use crate::netlink::attribute;

    #[test]
    fn a_neighbour_is_read_with_its_address() {
        let body = |state: u32| {
            [
                [[2, 0, 0, 0], u32_bytes(7), u32_bytes(state)].concat(),
                attribute(NDA_DST, &[10, 0, 0, 2]),
                attribute(NDA_LLADDR, &[2, 0, 0, 0, 0, 0x1f]),
            ]
            .concat()
        };
        let known = neighbour(&body(2)).unwrap();
        assert_eq!((known.link, known.state), (7, NeighbourState::Known));
        assert_eq!(known.link_address.unwrap().to_string(), "02:00:00:00:00:1f");
        assert_eq!(known.address, IpAddr::from([10, 0, 0, 2]));
        let failed = neighbour(&body(u32::from(NUD_FAILED))).unwrap();
        assert_eq!((failed.state, failed.link_address), (NeighbourState::Failed, None));
        assert_eq!(neighbour(&body(u32::from(NUD_NOARP))), None);
        assert!(all().is_ok());
    }
}
