//! From the link layer to the innermost transport header.

use crate::decoded::Decoded;
use crate::walk::{Layer, Part, Walk, Walked, wire_len};
use crate::{Address, LinkType, ethernet, ip, link, wireless};

/// Decodes one packet of `link_type`, of which `original_len` bytes were on the wire. Never fails.
pub fn decode(link_type: LinkType, packet: &[u8], original_len: u32) -> Decoded<'_> {
    let mut out = Decoded::default();
    decode_into(&mut out, link_type, packet, original_len);
    out
}

/// As [`decode`], but writes the result where it shall lie. For hot loops: the copy that this saves
/// costs nearly as much as reading the headers of a TCP packet.
pub fn decode_into<'a>(
    out: &mut Decoded<'a>,
    link_type: LinkType,
    packet: &'a [u8],
    original_len: u32,
) {
    *out = Decoded::default();
    let mut walk = Walk::new(out, packet, original_len);
    let end = link::link(&mut walk, link_type, packet);
    let end = through_tunnels(&mut walk, end);
    walk.finish(&end);
}

/// What a packet carries of its datagram where the innermost IP packet is a fragment
/// ([`Decoded::fragment`]): the headers are read once more.
#[cold]
pub fn part_of_datagram(link_type: LinkType, packet: &[u8], original_len: u32) -> Option<Part<'_>> {
    let mut out = Decoded::default();
    let mut walk = Walk::new(&mut out, packet, original_len);
    let end = link::link(&mut walk, link_type, packet);
    let end = through_tunnels(&mut walk, end);
    // What was read before the bytes ended counts.
    let part = walk.part();
    walk.finish(&end);
    part
}

/// Decodes a datagram put together from fragments ([`Part`]): what stands behind the IP header of
/// a packet that `sender` sent to `receiver`.
pub fn decode_datagram(
    (sender, receiver): (Address, Address),
    protocol: u8,
    payload: &[u8],
) -> Decoded<'_> {
    let mut out = Decoded::default();
    let mut walk = Walk::new(&mut out, payload, wire_len(payload));
    let end = ip::datagram(&mut walk, (sender, receiver), protocol, payload);
    let end = through_tunnels(&mut walk, end);
    walk.finish(&end);
    out
}

/// Walks on through what tunnels carry; each header shortens what is left.
#[inline]
fn through_tunnels(walk: &mut Walk<'_, '_>, mut end: Walked) -> Walked {
    while let Some((layer, bytes)) = walk.take_next() {
        end = match layer {
            Layer::Ethernet => ethernet::ethernet(walk, bytes),
            Layer::EtherType(kind) => ethernet::ether_type(walk, kind, bytes),
            Layer::Ip => ip::ip(walk, bytes),
            Layer::GuessedIp => ip::guessed_ip(walk, bytes),
            Layer::Ipv4 => ip::ipv4(walk, bytes),
            Layer::Ipv6 => ip::ipv6(walk, bytes),
            Layer::Mpls => ethernet::mpls(walk, bytes),
            Layer::Ppp => ethernet::ppp(walk, bytes),
            Layer::Wireless => wireless::frame(walk, bytes, false),
        };
    }
    end
}
