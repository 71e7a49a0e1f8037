use super::*;

fn key() -> Anonymiser {
    Anonymiser::new(&core::array::from_fn(|at| u8::try_from(at).unwrap()))
}

/// The sum of big-endian words, folded; a right checksum makes it 0xffff.
fn sum(parts: &[&[u8]]) -> u64 {
    let mut all = 0;
    for part in parts {
        for word in part.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            all += u64::from(u16::from_be_bytes([word[0], low]));
        }
    }
    while all > 0xffff {
        all = (all & 0xffff) + (all >> 16);
    }
    all
}

fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    (!u16::try_from(sum(parts)).unwrap()).to_be_bytes()
}

fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
    packet.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
    packet.extend([from, to].concat());
    let header = checksum(&[&packet]);
    packet[10..12].copy_from_slice(&header);
    packet.extend(payload);
    packet
}

fn ipv6(from: [u8; 16], to: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([from, to].concat());
    packet.extend(payload);
    packet
}

/// A transport's bytes with the checksum at `at` over them and the ends.
fn summed(mut layer: Vec<u8>, at: usize, protocol: u8, ends: &[u8]) -> Vec<u8> {
    let length = u32::try_from(layer.len()).unwrap().to_be_bytes();
    let value = checksum(&[ends, &length, &[0, protocol], &layer]);
    layer[at..at + 2].copy_from_slice(&value);
    layer
}

fn udp(ports: [u16; 2], payload: &[u8], ends: &[u8]) -> Vec<u8> {
    let mut layer = ports.map(u16::to_be_bytes).concat();
    layer.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
    layer.extend([0, 0]);
    layer.extend(payload);
    summed(layer, 6, 17, ends)
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

const A: [u8; 4] = [10, 1, 2, 3];
const B: [u8; 4] = [10, 1, 2, 77];
const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9];

fn ends() -> Vec<u8> {
    [A, B].concat()
}

#[track_caller]
fn changed(frame: &[u8]) -> Vec<u8> {
    let new = key().packet(LinkType::ETHERNET, frame).unwrap().to_vec();
    assert_eq!(new.len(), frame.len());
    for address in [&A[..], &B, &A6, &B6, &[2, 0, 0, 0, 0, 1], &[2, 0, 0, 0, 0, 2]] {
        let is_there = new.windows(address.len()).any(|window| window == address);
        assert!(!is_there, "{address:?} is left");
    }
    new
}

/// Everything of an IPv4 packet adds up: header, and transport with a pseudo-header.
#[track_caller]
fn adds_up_v4(packet: &[u8], has_pseudo: bool) {
    assert_eq!(sum(&[&packet[..20]]), 0xffff);
    let length = u32::try_from(packet.len() - 20).unwrap().to_be_bytes();
    let pseudo = [&packet[12..20], &length, &[0, packet[9]]];
    let pseudo = if has_pseudo { pseudo.concat() } else { Vec::new() };
    assert_eq!(sum(&[&pseudo, &packet[20..]]), 0xffff);
}

#[test]
fn sessions_keep_their_payload_ports_and_right_checksums() {
    let datagram = udp([1234, 53], b"odd", &ends());
    let frame = ethernet(0x0800, &ipv4(A, B, 17, &datagram));
    let new = changed(&frame);
    adds_up_v4(&new[14..], true);
    assert_eq!(new[34..38], frame[34..38]);
    assert!(new.ends_with(b"odd"));
    // The third bytes have the same bits in front of them.
    assert_eq!(new[26..29], new[30..33], "a common prefix stays one");

    let mut segment = vec![0; 20];
    segment[12] = 0x50;
    segment.extend(b"GET / HTTP/1.1");
    let frame = ethernet(0x0800, &ipv4(A, B, 6, &summed(segment, 16, 6, &ends())));
    adds_up_v4(&changed(&frame)[14..], true);
}

#[test]
fn a_checksum_that_is_absent_or_wrong_stays_so() {
    let mut frame = ethernet(0x0800, &ipv4(A, B, 17, &udp([1, 2], b"x", &ends())));
    frame[40..42].fill(0);
    assert_eq!(changed(&frame)[40..42], [0, 0]);
    frame[40..42].copy_from_slice(&[0x12, 0x34]);
    let new = changed(&frame);
    let pseudo = [&new[26..34], &[0, 0, 0, 9, 0, 17]].concat();
    assert_ne!(sum(&[&pseudo, &new[34..]]), 0xffff);
}

#[test]
fn tunnels_are_walked_into() {
    let inner = ethernet(0x0800, &ipv4(B, A, 17, &udp([5, 6], b"inside", &[B, A].concat())));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 5, 0], &inner[..]].concat();
    let frame = ethernet(0x0800, &ipv4(A, B, 17, &udp([999, 4789], &vxlan, &ends())));
    let new = changed(&frame);
    adds_up_v4(&new[14..], true);
    adds_up_v4(&new[14 + 20 + 16 + 14..], true);
    // The same address is the same one outside and inside.
    assert_eq!(new[26..30], new[14 + 36 + 14 + 16..][..4]);

    // Optional checksum of GRE, which covers what is inside.
    let mut gre = vec![0x80, 0, 0x08, 0, 0, 0, 0, 0];
    gre.extend(ipv4(B, A, 17, &udp([5, 6], b"inside", &[B, A].concat())));
    let value = checksum(&[&gre]);
    gre[4..6].copy_from_slice(&value);
    let new = changed(&ethernet(0x0800, &ipv4(A, B, 47, &gre)));
    adds_up_v4(&new[14..], false);
    adds_up_v4(&new[42..], true);

    let v6 = ipv6(A6, B6, 17, &udp([7, 8], b"six", &[A6, B6].concat()));
    let gtp = [&[0x30, 255, 0, 51, 0, 0, 0, 1], &v6[..]].concat();
    let new = changed(&ethernet(0x0800, &ipv4(A, B, 17, &udp([2152, 2152], &gtp, &ends()))));
    adds_up_v4(&new[14..], true);
}

#[test]
fn errors_of_icmp_quote_other_addresses_and_add_up() {
    let quoted = ipv4(B, A, 17, &udp([5, 6], b"lost", &[B, A].concat()));
    let mut icmp = vec![3, 3, 0, 0, 0, 0, 0, 0];
    icmp.extend(&quoted);
    let value = checksum(&[&icmp]);
    icmp[2..4].copy_from_slice(&value);
    let new = changed(&ethernet(0x0800, &ipv4(A, B, 1, &icmp)));
    adds_up_v4(&new[14..], false);
    adds_up_v4(&new[42..], true);
}

#[test]
fn neighbours_and_arp_are_found() {
    let mut layer = vec![135, 0, 0, 0, 0, 0, 0, 0];
    layer.extend(B6);
    layer.extend([1, 1, 2, 0, 0, 0, 0, 2]);
    let solicited = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 9];
    let layer = summed(layer, 2, 58, &[A6, solicited].concat());
    let mut frame = ethernet(0x86dd, &ipv6(A6, solicited, 58, &layer));
    frame[..6].copy_from_slice(&[0x33, 0x33, 0xff, 0, 0, 9]);
    let new = changed(&frame);
    let length = u32::try_from(layer.len()).unwrap().to_be_bytes();
    assert_eq!(sum(&[&new[22..54], &length, &[0, 58], &new[54..]]), 0xffff);
    assert_eq!((&new[..3], &new[38..51]), (&frame[..3], &frame[38..51]));
    assert_eq!(new[3..6], new[51..54], "group and address still fit together");
    assert_ne!(new[3..6], [0, 0, 9]);
    assert_eq!(new[6..12], new[80..86], "the station is the same in the option");

    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2];
    arp.extend(A);
    arp.extend([0; 6]);
    arp.extend(B);
    let mut frame = ethernet(0x0806, &arp);
    frame[..6].fill(0xff);
    let new = changed(&frame);
    assert_eq!((&new[..6], &new[32..38]), (&[0xff; 6][..], &[0; 6][..]));
    assert_eq!(new[6..12], new[22..28]);
}

#[test]
fn a_packet_that_ends_before_its_header_does_is_blanked_behind_it() {
    for protocol in [1, 4, 6, 17, 41, 47, 50, 58] {
        for outer in 0..=44_u16 {
            for inner in [0, 1, 19, 20, 21, 0xffff_u16] {
                let mut quoted = ipv4(B, A, 6, &[7; 8]);
                quoted[2..4].copy_from_slice(&inner.to_be_bytes());
                let mut packet = ipv4(A, B, protocol, &quoted);
                packet[2..4].copy_from_slice(&outer.to_be_bytes());
                let new = key().packet(LinkType::RAW, &packet).unwrap().to_vec();
                assert_eq!(new.len(), packet.len());
                let (from, to) = (20.max(usize::from(outer)), packet.len());
                if outer > 0 && from < to {
                    assert!(
                        new[from..].iter().all(|byte| *byte == 0),
                        "{protocol} {outer} {inner}"
                    );
                }
                let is_left = new.windows(4).any(|window| window == A || window == B);
                // What TCP, UDP and ESP carry stays as it is.
                let is_payload = [6, 17, 50].contains(&protocol);
                assert!(is_payload || !is_left, "{protocol} {outer} {inner}: an address is left");
            }
        }
    }
}

/// Frames with every kind of layer.
fn frames() -> Vec<Vec<u8>> {
    let datagram = udp([5, 6], b"inside", &ends());
    let inner = ipv4(A, B, 17, &datagram);
    let six = ipv6(A6, B6, 17, &udp([7, 8], b"six", &[A6, B6].concat()));
    let bridged = ethernet(0x0800, &inner);
    let over = |port: u16, header: &[u8], inside: &[u8]| {
        ipv4(A, B, 17, &udp([999, port], &[header, inside].concat(), &ends()))
    };
    let routed = [&[17, 2, 4, 1, 0, 0, 0, 0], &A6[..], &datagram].concat();
    let fragment = [&[17, 0, 0, 0, 0, 0, 0, 1], &datagram[..]].concat();
    let mut solicitation = vec![135, 0, 0, 0, 0, 0, 0, 0];
    solicitation.extend([&B6[..], &[1, 1, 2, 0, 0, 0, 0, 2]].concat());
    let report = [&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 1], &A6[..], &B6].concat();
    let redirected = [&[4, 4, 0, 0, 0, 0, 0, 0], &inner[..]].concat();
    let neighbours = [&[137, 0, 0, 0, 0, 0, 0, 0], &A6[..], &B6, &redirected].concat();
    let packets = [
        inner.clone(),
        six.clone(),
        ipv4(A, B, 4, &inner),
        ipv4(A, B, 41, &six),
        ipv4(
            A,
            B,
            47,
            &[&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &inner[..]].concat(),
        ),
        ipv4(
            A,
            B,
            47,
            &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &bridged[..]].concat(),
        ),
        ipv4(A, B, 1, &[&[3, 3, 0, 0, 0, 0, 0, 0], &inner[..]].concat()),
        over(4789, &[8, 0, 0, 0, 0, 0, 5, 0], &bridged),
        over(6081, &[1, 0, 0x65, 0x58, 0, 0, 0, 0, 1, 2, 3, 4], &bridged),
        over(2152, &[0x34, 255, 0, 51, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0], &inner),
        ipv6(A6, B6, 43, &routed),
        ipv6(A6, B6, 44, &fragment),
        ipv6(A6, B6, 0, &[&[58, 0, 5, 2, 0, 0, 1, 0], &report[..]].concat()),
        ipv6(A6, B6, 51, &[&[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &datagram[..]].concat()),
        ipv6(A6, B6, 58, &solicitation),
        ipv6(A6, B6, 58, &neighbours),
    ];
    packets.to_vec()
}

#[test]
fn any_byte_of_any_layer_may_be_any_length() {
    let mut anonymiser = key();
    for frame in frames() {
        for at in 0..frame.len() {
            for value in [0, 1, 4, 5, 19, 20, 39, 0x45, 0x7f, 0x80, 0xfe, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                assert_eq!(anonymiser.packet(LinkType::RAW, &changed).unwrap().len(), frame.len());
                // Lengths have two bytes.
                if let Some(next) = changed.get_mut(at + 1) {
                    *next = value;
                }
                let cut = frame.len() - at / 2;
                assert_eq!(anonymiser.packet(LinkType::RAW, &changed[..cut]).unwrap().len(), cut);
            }
        }
    }
}

#[test]
fn what_is_not_understood_is_blanked() {
    let lldp = ethernet(0x88cc, b"\x02\x07\x04\x02\x00\x00\x00\x00\x01management address 10.1.2.3");
    assert!(changed(&lldp)[14..].iter().all(|byte| *byte == 0));
    let ospf = ethernet(0x0800, &ipv4(A, B, 89, &[&[2, 1, 0, 44], &A[..]].concat()));
    assert!(changed(&ospf)[34..].iter().all(|byte| *byte == 0));
    for len in 0..14 + 20 + 8 {
        let frame = ethernet(0x0800, &ipv4(A, B, 17, &udp([1, 2], b"x", &ends())));
        changed(&frame[..len]);
    }
    let Err(error) = key().packet(LinkType::IEEE802_11, &[0; 40]) else {
        panic!("it has stations")
    };
    assert!(error.to_string().contains("cannot be anonymised"), "{error}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_walked(bytes: Vec<u8>, kind in 0..6_usize) {
        let link_types = [
            LinkType::ETHERNET, LinkType::RAW, LinkType::NULL, LinkType::LINUX_SLL,
            LinkType::LINUX_SLL2, LinkType::IPV6,
        ];
        let mut anonymiser = key();
        let len = anonymiser.packet(link_types[kind], &bytes).unwrap().len();
        proptest::prop_assert_eq!(len, bytes.len());
        // With something in front that leads into the depths.
        let inner = ethernet(0x86dd, &[&[0x60, 0, 0, 0, 0, 99, 43, 1], &bytes[..]].concat());
        anonymiser.packet(LinkType::ETHERNET, &inner).unwrap();
        let inner = ipv4(A, B, [1, 4, 17, 41, 47, 58][kind], &bytes);
        anonymiser.packet(LinkType::RAW, &inner).unwrap();
    }
}

#[test]
fn a_key_is_64_hex_digits() {
    let text = "00112233445566778899aabbccddeeff".repeat(2);
    assert!(Anonymiser::from_text(&format!("{text}\n")).is_ok());
    for text in ["", &text[1..], &format!("{text}0"), &"+0".repeat(32), &"gg".repeat(32)] {
        assert_eq!(Anonymiser::from_text(text).unwrap_err(), AddressKeyError, "{text}");
    }
}
