//! Filters that are asked here, packet by packet, and not in the kernel.

use wire::LinkType;

use crate::Error;
use crate::compiler::{Programs, refused};

/// A filter in the words of pcap-filter(7), for packets of any link type.
#[derive(Clone, Debug)]
pub struct PacketFilter {
    /// It has the word `vlan`.
    asks_for_tags: bool,
    programs: Programs,
}

impl PacketFilter {
    /// Headers lie within this: a filter need not see more of a packet that lies in two parts.
    pub const SEEN_BYTES: usize = 512;

    /// Compiles the expression, which some link type has to know: `type mgt` means something for
    /// 802.11 alone.
    ///
    /// # Errors
    /// [`Error::Library`] without libpcap; [`Error::Wrong`] with what it does not like of
    /// the expression for Ethernet.
    pub fn new(expression: &str) -> Result<Self, Error> {
        let programs = Programs::new(expression)?;
        let mut words = expression.split(|letter: char| !letter.is_ascii_alphanumeric());
        let asks_for_tags = words.any(|word| word == "vlan");
        Ok(Self { asks_for_tags, programs })
    }

    /// The same of an expression by somebody who asks about packets. It has to give addresses:
    /// libpcap would ask name servers for a host's name, and so tell others who is asked about,
    /// wait for them, and take what they answer today for packets of another day.
    ///
    /// # Errors
    /// [`Error::Wrong`] where it names a host, else as [`Self::new`].
    pub fn of_addresses(expression: &str) -> Result<Self, Error> {
        if let Some(name) = host_name_in(expression) {
            let message = format!("names such as {name:?} are not looked up; give addresses");
            return Err(refused(expression, message));
        }
        Self::new(expression)
    }

    /// Whether a packet passes, of which `bytes` were captured.
    ///
    /// # Errors
    /// [`Error::Wrong`] when the expression means nothing for the link type.
    pub fn accepts(
        &mut self,
        link_type: LinkType,
        bytes: &[u8],
        original_len: u32,
    ) -> Result<bool, Error> {
        let index = self.programs.index_of(link_type)?;
        Ok(self.programs.get(index).accepts(bytes, original_len))
    }

    /// As [`Self::accepts`], of a frame as it was on the wire. Where the expression does not speak
    /// of VLANs it is asked of the frame without its tags, too, as on a link, where the kernel has
    /// taken them out.
    ///
    /// # Errors
    /// [`Error::Wrong`] when the expression means nothing for the link type.
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
        let mut seen = [0; Self::SEEN_BYTES];
        let Some((len, left_out)) = without_tags(frame, &mut seen) else { return Ok(false) };
        let bytes = seen.get(..len).expect("no more was copied than fits");
        Ok(program.accepts(bytes, original_len.saturating_sub(left_out)))
    }

    /// The filter expression as it was given.
    pub fn expression(&self) -> &str {
        self.programs.expression()
    }
}

/// A word that libpcap would look up: one with dots that is neither an address of IP nor of a
/// station, and what stands behind `host`.
fn host_name_in(expression: &str) -> Option<&str> {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.:\\".contains(letter);
    let mut is_behind_host = false;
    for word in expression.split(|letter| !is_of_word(letter)).filter(|word| !word.is_empty()) {
        let name = word.trim_start_matches('\\');
        let is_hex = |letter: char| letter.is_ascii_hexdigit();
        let is_address = name.chars().all(|letter| is_hex(letter) || "-.:".contains(letter))
            && (name.contains([':', '.', '-']) || name.len() == 12);
        let is_number = name.starts_with(|letter: char| letter.is_ascii_digit());
        let may_be_one = is_behind_host && !is_number || name.contains('.');
        if may_be_one && !is_address && name.contains(|letter: char| letter.is_ascii_alphabetic()) {
            return Some(word);
        }
        is_behind_host = name == "host";
    }
    None
}

/// Copies the beginning of a frame without its VLAN tags; says how much that is and how many bytes
/// were left out. `None` where there is no tag.
fn without_tags(frame: &[u8], to: &mut [u8; PacketFilter::SEEN_BYTES]) -> Option<(usize, u32)> {
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
    let count = rest.len().min(PacketFilter::SEEN_BYTES - ADDRESSES);
    to.get_mut(..ADDRESSES)?.copy_from_slice(addresses);
    to.get_mut(ADDRESSES..ADDRESSES + count)?.copy_from_slice(rest.get(..count)?);
    Some((ADDRESSES + count, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_not_looked_up() {
        for named in [
            "host www.example.com",
            "src www.example.com",
            "tcp and (dst example.com or port 80)",
            "host \\example.com",
            "host 10.0.0.1 or 3com.example",
            "host localhost",
            "net 10.0.0.0/8 and not src host proxy",
            "gateway gw.example and udp",
        ] {
            let error = PacketFilter::of_addresses(named).unwrap_err().to_string();
            assert!(error.contains("are not looked up"), "{named}: {error}");
        }
        for by_address in [
            "host 10.0.0.1 or host 2001:db8::1 or ip6 host fe80::a",
            "net 10.1 and portrange 1-80",
            "ether host 00:1b:21:aa:bb:cc or ether src 001b.21aa.bbcc",
            "ether host 00-1b-21-aa-bb-cc or ether host 001b21aabbcc",
            "port http or port domain or tcp port https",
            "ip proto ospf or type mgt subtype beacon",
            "tcp[tcpflags] & (tcp-syn|tcp-ack) = 0x12 and icmp[icmptype] != icmp-echo",
            "not host 10.0.0.1 and (src host 10.2.3.4 or dst host ::ffff:10.0.0.9)",
        ] {
            assert_eq!(host_name_in(by_address), None, "{by_address}");
        }
    }

    #[test]
    fn what_one_link_type_knows_is_a_filter_and_what_none_knows_is_not() {
        if let Err(Error::Library { .. }) = PacketFilter::new("ip") {
            println!("not run: libpcap is not installed");
            return;
        }
        let mut beacons = PacketFilter::new("type mgt subtype beacon").unwrap();
        let beacon = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(beacons.accepts_bytes(LinkType::IEEE802_11, &beacon, 10).unwrap());
        let of_ethernet = beacons.accepts_bytes(LinkType::ETHERNET, &beacon, 10);
        assert!(matches!(of_ethernet, Err(Error::Wrong { .. })), "{of_ethernet:?}");
        let wrong = PacketFilter::new("tcp port").unwrap_err().to_string();
        assert!(wrong.starts_with("filter \"tcp port\": "), "{wrong}");
    }
}
