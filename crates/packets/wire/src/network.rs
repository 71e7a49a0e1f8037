//! What a link layer carries, and a link layer made for it: for files that hold one link type only.

use crate::LinkType;

/// IPv4 (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
/// IPv6.
const IPV6: u16 = 0x86dd;
/// Numbers below are lengths and not `EtherType`s (IEEE 802.3, 3.2.6).
const ETHER_TYPE_MIN: u16 = 0x0600;
/// PPP's number of IPv4 (RFC 1332) and of IPv6 (RFC 5072).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// The longest header that is made: Linux cooked capture, version 2.
pub const MADE_HEADER_BYTES_MAX: usize = 20;

/// The `EtherType` of what follows the link layer, and the bytes that follow. Tags of VLANs count
/// as following. `None` for link types whose header is not read here, and for headers that are cut
/// or say something else.
pub fn network_layer(link_type: LinkType, packet: &[u8]) -> Option<(u16, &[u8])> {
    match link_type {
        LinkType::ETHERNET => typed(packet, 12, 14),
        LinkType::LINUX_SLL => typed(packet, 14, 16),
        LinkType::LINUX_SLL2 => typed(packet, 0, 20),
        LinkType::C_HDLC => typed(packet, 2, 4),
        LinkType::RAW
        | LinkType::RAW_BSD
        | LinkType::RAW_OPENBSD
        | LinkType::IPV4
        | LinkType::IPV6 => ip(packet),
        LinkType::NULL | LinkType::LOOP => ip(packet.get(4..)?),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(packet),
        _ => None,
    }
}

/// The header that a packet with this `EtherType` has in a capture of `link_type`; addresses are
/// zero. `None` for link types that no header is made for, or that cannot carry it.
pub fn made_header(
    link_type: LinkType,
    ether_type: u16,
) -> Option<([u8; MADE_HEADER_BYTES_MAX], usize)> {
    let mut header = [0; MADE_HEADER_BYTES_MAX];
    let is_ip = matches!(ether_type, IPV4 | IPV6);
    let (type_at, len) = match link_type {
        LinkType::ETHERNET => (12, 14),
        LinkType::LINUX_SLL => (14, 16),
        LinkType::LINUX_SLL2 => (0, 20),
        LinkType::RAW => return is_ip.then_some((header, 0)),
        _ => return None,
    };
    header.get_mut(type_at..type_at + 2)?.copy_from_slice(&ether_type.to_be_bytes());
    Some((header, len))
}

fn typed(packet: &[u8], type_at: usize, len: usize) -> Option<(u16, &[u8])> {
    let ether_type = u16::from_be_bytes(*packet.get(type_at..)?.first_chunk()?);
    let behind = packet.get(len..)?;
    (ether_type >= ETHER_TYPE_MIN).then_some((ether_type, behind))
}

fn ip(packet: &[u8]) -> Option<(u16, &[u8])> {
    match packet.first()? >> 4 {
        4 => Some((IPV4, packet)),
        6 => Some((IPV6, packet)),
        _ => None,
    }
}

fn ppp(packet: &[u8]) -> Option<(u16, &[u8])> {
    // Address and control are left out where both ends agreed to that (RFC 1661, 6.6).
    let packet = packet.strip_prefix(&[0xff, 0x03]).unwrap_or(packet);
    let (number, behind) = match packet {
        // A protocol number of one byte is odd (RFC 1661, 6.5).
        [short, behind @ ..] if short & 1 == 1 => (u16::from(*short), behind),
        [high, low, behind @ ..] => (u16::from_be_bytes([*high, *low]), behind),
        _ => return None,
    };
    match number {
        PPP_IPV4 => Some((IPV4, behind)),
        PPP_IPV6 => Some((IPV6, behind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: [u8; 4] = [0x45, 0, 0, 20];

    #[test]
    fn what_follows_each_link_layer_is_found() {
        let sll2 = [&[0x08, 0x00][..], &[0; 18]].concat();
        let cases: [(LinkType, &[u8]); 9] = [
            (LinkType::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
            (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]),
            (LinkType::LINUX_SLL2, &sll2),
            (LinkType::C_HDLC, &[0x0f, 0, 8, 0]),
            (LinkType::RAW, &[]),
            (LinkType::NULL, &[2, 0, 0, 0]),
            (LinkType::PPP, &[0xff, 3, 0, 0x21]),
            (LinkType::PPP, &[0x21]),
            (LinkType::PPP_HDLC, &[0, 0x21]),
        ];
        for (link_type, header) in cases {
            let packet = [header, &IP].concat();
            assert_eq!(network_layer(link_type, &packet), Some((IPV4, &IP[..])), "{link_type}");
            let cut = header.get(1..).unwrap_or_default();
            // PPP may leave away the first byte of its protocol.
            if cut != [0x21] {
                assert_eq!(network_layer(link_type, cut), None, "{link_type}");
            }
        }
        assert_eq!(network_layer(LinkType::IEEE802_11, &[0; 64]), None);
        assert_eq!(network_layer(LinkType::RAW, &[0x10; 20]), None);
        assert_eq!(network_layer(LinkType::ETHERNET, &[0; 60]), None, "a length");
    }

    #[test]
    fn a_made_header_is_read_back() {
        let made = [LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::LINUX_SLL2, LinkType::RAW];
        for link_type in made {
            let (header, len) = made_header(link_type, IPV4).unwrap();
            let packet = [&header[..len], &IP].concat();
            assert_eq!(network_layer(link_type, &packet), Some((IPV4, &IP[..])), "{link_type}");
        }
        assert_eq!(made_header(LinkType::RAW, 0x0806), None, "ARP is no IP");
        assert_eq!(made_header(LinkType::IEEE802_11, IPV4), None);
    }
}
