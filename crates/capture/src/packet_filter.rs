//! Filters that are asked here, packet by packet, and not in the kernel.

use wire::LinkType;

use crate::filter::Programs;
use crate::{Error, Packet};

/// Headers lie within this: a filter need not see more of a packet that lies in two parts.
const SEEN_BYTES: usize = 512;

/// A filter in the words of pcap-filter(7), for packets of any link type.
#[derive(Clone, Debug)]
pub struct PacketFilter {
    programs: Programs,
}

impl PacketFilter {
    /// Compiles the expression.
    ///
    /// # Errors
    /// [`Error::FilterLibrary`] without libpcap; [`Error::Filter`] with what it does not like.
    pub fn new(expression: &str) -> Result<Self, Error> {
        let mut programs = Programs::new(expression);
        programs.index_of(LinkType::ETHERNET)?;
        Ok(Self { programs })
    }

    /// Whether a packet passes. Where a VLAN tag was put back, a filter sees it, and the first 512
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Filter`] when the expression means nothing for the link type.
    pub fn accepts(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Result<bool, Error> {
        let index = self.programs.index_of(link_type)?;
        let program = self.programs.get(index);
        if packet.tag.is_none() && packet.tail.is_empty() {
            return Ok(program.accepts(packet.head, packet.original_len));
        }
        let mut seen = [0; SEEN_BYTES];
        let len = packet.copy_to(&mut seen);
        let bytes = seen.get(..len).expect("no more was copied than there is room");
        Ok(program.accepts(bytes, packet.original_len))
    }
}
