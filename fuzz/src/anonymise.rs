//! Packets of any link type get other addresses: as many bytes, the same ones every time, and none
//! of the addresses in front.
//!
//! The input: a byte for the link type, a byte for what is put in front of the rest so that it is
//! reached (layers of tunnels), the rest.

use extract::Anonymiser;
use wire::LinkType;

const LINK_TYPES: [LinkType; 8] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::NULL,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::IPV6,
    LinkType::LOOP,
    LinkType(147),
];

/// An IPv4 header of this protocol, from 10.1.2.3 to 10.1.2.77, whose length is `len`.
fn ipv4(protocol: u8, len: [u8; 2]) -> Vec<u8> {
    let mut header = vec![0x45, 0, len[0], len[1], 0x12, 0x34, 0, 0, 64, protocol, 0, 0];
    header.extend([10, 1, 2, 3, 10, 1, 2, 77]);
    header
}

fn ipv6(next: u8, len: [u8; 2]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0, len[0], len[1], next, 64];
    header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9]);
    header
}

/// What leads into a decoder.
fn front(choice: u8) -> Vec<u8> {
    let udp = |port: u16| {
        let [high, low] = port.to_be_bytes();
        [ipv4(17, [0, 0]), vec![high, low, high, low, 0, 0, 1, 1]].concat()
    };
    match choice % 16 {
        1 => ipv4(4, [0, 0]),
        2 => ipv4(41, [0, 24]),
        3 => ipv4(47, [0, 0]),
        4 => ipv4(1, [0xff, 0xff]),
        5 => ipv4(6, [0, 19]),
        6 => ipv6(43, [0, 0]),
        7 => ipv6(58, [0, 0]),
        8 => ipv6(0, [0, 16]),
        9 => ipv6(44, [0, 0]),
        10 => [udp(4789), vec![8, 0, 0, 0, 0, 0, 5, 0]].concat(),
        11 => udp(6081),
        12 => udp(2152),
        13 => ipv6(17, [0, 4]),
        14 => [ipv4(4, [0, 0]), ipv4(4, [0, 0]), ipv4(4, [0, 0])].concat(),
        15 => ipv6(41, [0, 0]),
        _ => Vec::new(),
    }
}

/// # Panics
/// The anonymiser does, or changes the length, or does not give the same twice, or lets an address
/// through.
pub fn run(input: &[u8]) {
    let [kind, choice, rest @ ..] = input else { return };
    let front = front(*choice);
    let is_led = !front.is_empty();
    let packet = [front, rest.to_vec()].concat();
    let link_type = if is_led {
        LinkType::RAW
    } else {
        LINK_TYPES.get(usize::from(kind % 8)).copied().unwrap_or(LinkType::RAW)
    };
    let mut anonymiser = Anonymiser::from_text(&"0123456789abcdef".repeat(4)).expect("it is a key");
    let first = anonymiser.packet(link_type, &packet).map(<[u8]>::to_vec);
    let Ok(first) = first else { return };
    assert_eq!(first.len(), packet.len(), "other addresses are as long");
    let again = anonymiser.packet(link_type, &packet).map(<[u8]>::to_vec);
    assert_eq!(again.ok(), Some(first.clone()), "the same packet becomes the same one");
    if is_led {
        let ends = if packet.first() == Some(&0x45) { 12..20 } else { 8..40 };
        assert_ne!(first.get(ends.clone()), packet.get(ends), "addresses become others");
    }
}
