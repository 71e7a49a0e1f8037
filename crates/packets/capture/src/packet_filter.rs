//! Filters that are asked here, packet by packet, and not in the kernel.

use wire::LinkType;

use crate::filter::Programs;
use crate::{Error, Packet};

/// Headers lie within this: a filter need not see more of a packet that lies in two parts.
const SEEN_BYTES: usize = 512;

/// A filter in the words of pcap-filter(7), for packets of any link type.
#[derive(Clone, Debug)]
pub struct PacketFilter {
    /// It has the word `vlan`.
    asks_for_tags: bool,
    programs: Programs,
}

impl PacketFilter {
    /// Compiles the expression, which some link type has to know: `type mgt` means something for
    /// 802.11 alone.
    ///
    /// # Errors
    /// [`Error::FilterLibrary`] without libpcap; [`Error::Filter`] with what it does not like of
    /// the expression for Ethernet.
    pub fn new(expression: &str) -> Result<Self, Error> {
        let programs = Programs::new(expression)?;
        let mut words = expression.split(|letter: char| !letter.is_ascii_alphanumeric());
        let asks_for_tags = words.any(|word| word == "vlan");
        Ok(Self { asks_for_tags, programs })
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
        let bytes = seen.get(..len).expect("no more was copied than fits");
        Ok(program.accepts(bytes, packet.original_len))
    }

    /// As [`Self::accepts`], of a frame as it was on the wire. Where the expression does not speak
    /// of VLANs it is asked of the frame without its tags, too, as on a link, where the kernel has
    /// taken them out.
    ///
    /// # Errors
    /// [`Error::Filter`] when the expression means nothing for the link type.
    pub fn accepts_bytes(
        &mut self,
        link_type: LinkType,
        frame: &[u8],
        original_len: u32,
    ) -> Result<bool, Error> {
        let index = self.programs.index_of(link_type)?;
        let program = self.programs.get(index);
        if program.accepts(frame, original_len) {
            return Ok(true);
        }
        if self.asks_for_tags || link_type != LinkType::ETHERNET {
            return Ok(false);
        }
        let mut seen = [0; SEEN_BYTES];
        let Some((len, left_out)) = without_tags(frame, &mut seen) else { return Ok(false) };
        let bytes = seen.get(..len).expect("no more was copied than fits");
        Ok(program.accepts(bytes, original_len.saturating_sub(left_out)))
    }

    /// The filter expression as it was given.
    pub fn expression(&self) -> &str {
        self.programs.expression()
    }
}

/// Copies the beginning of a frame without its VLAN tags; says how much that is and how many bytes
/// were left out. `None` where there is no tag.
fn without_tags(frame: &[u8], to: &mut [u8; SEEN_BYTES]) -> Option<(usize, u32)> {
    /// Both addresses, behind which tags stand (IEEE 802.1Q, 9.3).
    const ADDRESSES: usize = 12;
    const TAGS: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
    let (addresses, mut rest) = frame.split_at_checked(ADDRESSES)?;
    let mut left_out = 0;
    while rest.first_chunk().is_some_and(|kind| TAGS.contains(kind)) {
        rest = rest.get(4..)?;
        left_out += 4;
    }
    if left_out == 0 {
        return None;
    }
    let count = rest.len().min(SEEN_BYTES - ADDRESSES);
    to.get_mut(..ADDRESSES)?.copy_from_slice(addresses);
    to.get_mut(ADDRESSES..ADDRESSES + count)?.copy_from_slice(rest.get(..count)?);
    Some((ADDRESSES + count, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_link_type_knows_is_a_filter_and_what_none_knows_is_not() {
        if let Err(Error::FilterLibrary { .. }) = PacketFilter::new("ip") {
            println!("not run: libpcap is not installed");
            return;
        }
        let mut beacons = PacketFilter::new("type mgt subtype beacon").unwrap();
        let beacon = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(beacons.accepts_bytes(LinkType::IEEE802_11, &beacon, 10).unwrap());
        let of_ethernet = beacons.accepts_bytes(LinkType::ETHERNET, &beacon, 10);
        assert!(matches!(of_ethernet, Err(Error::Filter { .. })), "{of_ethernet:?}");
        let wrong = PacketFilter::new("tcp port").unwrap_err().to_string();
        assert!(wrong.starts_with("filter \"tcp port\": "), "{wrong}");
    }
}
