use proptest::prelude::*;

use super::*;

/// RFC 1071, over everything anew.
fn full_sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let sum: u64 = bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}

/// What a frame is made of.
#[derive(Clone, Debug)]
struct Recipe {
    /// What stands between the stations and the IP header.
    link: Vec<u8>,
    is_v6: bool,
    protocol: u8,
    source: [u8; 16],
    destination: [u8; 16],
    /// Options of IPv4, or extension headers of IPv6 with the type of the first.
    between: (u8, Vec<u8>),
    payload: Vec<u8>,
}

const CHECKSUM_AT: [(u8, usize); 5] = [(6, 16), (17, 6), (33, 6), (58, 2), (136, 6)];

impl Recipe {
    fn addresses(&self) -> [&[u8]; 2] {
        let len = if self.is_v6 { 16 } else { 4 };
        [&self.source[..len], &self.destination[..len]]
    }

    /// The frame with checksums computed over everything; `no_udp` leaves that of UDP out.
    fn build(&self, no_udp: bool) -> Vec<u8> {
        let [source, destination] = self.addresses();
        let mut transport = self.payload.clone();
        if let Some((_, at)) = CHECKSUM_AT.iter().find(|(protocol, _)| *protocol == self.protocol) {
            let is_absent = no_udp && self.protocol == 17 && !self.is_v6;
            transport[*at..*at + 2].fill(0);
            let len = u32::try_from(transport.len()).unwrap().to_be_bytes();
            let pseudo = [0, 0, 0, self.protocol];
            let sum = full_sum(&[source, destination, &len, &pseudo, &transport]);
            let sum = if sum == 0 && self.protocol == 17 { 0xffff } else { sum };
            let sum = if is_absent { 0 } else { sum };
            transport[*at..*at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let mut frame = vec![2; 12];
        frame.extend(&self.link);
        let (kind, between) = &self.between;
        if self.is_v6 {
            let len = u16::try_from(between.len() + transport.len()).unwrap().to_be_bytes();
            let next = if between.is_empty() { self.protocol } else { *kind };
            frame.extend([0x60, 0, 0, 0, len[0], len[1], next, 64]);
            frame.extend([source, destination].concat());
            frame.extend(between);
        } else {
            let words = u8::try_from(between.len() / 4).unwrap();
            let len = u16::try_from(20 + between.len() + transport.len()).unwrap().to_be_bytes();
            let mut header = vec![0x45 + words, 0, len[0], len[1], 0, 7, 0, 0, 64, self.protocol];
            header.extend([0, 0]);
            header.extend([source, destination].concat());
            header.extend(between);
            let sum = full_sum(&[&header]).to_be_bytes();
            header[10..12].copy_from_slice(&sum);
            frame.extend(header);
        }
        frame.extend(transport);
        frame
    }
}

fn links() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![0x81, 0, 0, 5]),
        Just(vec![0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]),
    ]
}

prop_compose! {
    fn recipes()(
        link in links(),
        is_mpls in any::<bool>(),
        is_v6 in any::<bool>(),
        protocol in prop::sample::select(vec![6_u8, 17, 33, 58, 136, 1, 47]),
        source in any::<[u8; 16]>(),
        destination in any::<[u8; 16]>(),
        between in 0_usize..3,
        payload in prop::collection::vec(any::<u8>(), 20..100),
    ) -> Recipe {
        let mut link = link;
        if is_mpls {
            link.extend([0x88, 0x47, 0, 0, 16, 64, 0, 0, 17, 64]);
        } else {
            link.extend(if is_v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        }
        // ICMPv6 has a pseudo-header, and nothing else of that number has a place to check.
        let protocol = if !is_v6 && protocol == 58 { 6 } else { protocol };
        let between = match (is_v6, between) {
            (_, 0) => (0, vec![]),
            // Hop-by-hop options, then destination options.
            (true, 1) => (0, vec![protocol, 0, 1, 4, 0, 0, 0, 0]),
            (true, _) => (0, vec![60, 0, 1, 4, 0, 0, 0, 0, protocol, 0, 1, 4, 0, 0, 0, 0]),
            // Router alert and padding.
            (false, 1) => (0, vec![148, 4, 0, 0]),
            (false, _) => (0, vec![148, 4, 0, 0, 1, 1, 1, 0]),
        };
        Recipe { link, is_v6, protocol, source, destination, between, payload }
    }
}

proptest! {
    #[test]
    fn updated_checksums_equal_those_computed_over_everything(
        recipe in recipes(), loop_number in any::<u64>(), no_udp in any::<bool>(),
    ) {
        let mut frame = recipe.build(no_udp);
        let is_changed = renumber(&mut frame, loop_number);
        let fresh = if recipe.is_v6 {
            let new = |old| ipv6_in_loop(old, loop_number);
            let (source, destination) = (new(recipe.source), new(recipe.destination));
            prop_assert_eq!(is_changed, source.is_some() || destination.is_some());
            Recipe {
                source: source.unwrap_or(recipe.source),
                destination: destination.unwrap_or(recipe.destination),
                ..recipe
            }
        } else {
            let new = |mut old: [u8; 16]| {
                let first = *old.first_chunk().unwrap();
                let new = ipv4_in_loop(first, loop_number);
                old[..4].copy_from_slice(&new.unwrap_or(first));
                (old, new.is_some())
            };
            let (source, one) = new(recipe.source);
            let (destination, other) = new(recipe.destination);
            prop_assert_eq!(is_changed, one || other);
            Recipe { source, destination, ..recipe }
        };
        prop_assert_eq!(frame, fresh.build(no_udp));
    }

    #[test]
    fn any_bytes_are_taken(
        mut frame in prop::collection::vec(any::<u8>(), 0..120),
        link in prop::sample::select(vec![[8, 0], [0x86, 0xdd], [0x88, 0x64], [0x88, 0x47]]),
        number in any::<u64>(),
    ) {
        if let Some(place) = frame.get_mut(12..14) {
            place.copy_from_slice(&link);
        }
        renumber(&mut frame, number);
        prop_assert!(place_of(&frame, 3) < 3);
    }

    #[test]
    fn two_addresses_never_become_one(
        one in any::<[u8; 4]>(), other in any::<[u8; 4]>(), number in any::<u64>(),
    ) {
        let new = |address| ipv4_in_loop(address, number).unwrap_or(address);
        prop_assert_eq!(one == other, new(one) == new(other));
    }
}

#[test]
fn a_session_has_other_addresses_in_each_loop() {
    for address in [[10, 0, 0, 1], [192, 168, 7, 9], [100, 64, 0, 1], [172, 16, 0, 1], [8, 8, 8, 8]]
    {
        let seen: std::collections::BTreeSet<_> =
            (0..65_536).map(|number| ipv4_in_loop(address, number).unwrap()).collect();
        assert_eq!(seen.len(), 65_536, "{address:?}");
        assert_eq!(ipv4_in_loop(address, 0), Some(address));
    }
}

#[test]
fn private_stays_private_and_what_is_no_host_stays() {
    for number in 0..1000 {
        let new = |address| ipv4_in_loop(address, number).unwrap();
        assert_eq!(new([10, 1, 2, 3])[0], 10);
        assert_eq!(new([192, 168, 2, 3])[..2], [192, 168]);
        let [first, second, ..] = new([172, 31, 2, 3]);
        assert!(first == 172 && (16..32).contains(&second));
        let [first, second, ..] = new([100, 127, 2, 3]);
        assert!(first == 100 && (64..128).contains(&second));
    }
    for address in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 251], [255, 255, 255, 255]] {
        assert_eq!(ipv4_in_loop(address, 7), None);
    }
    let mut loopback = [0; 16];
    loopback[15] = 1;
    assert_eq!(ipv6_in_loop(loopback, 7), None);
    assert_eq!(ipv6_in_loop([0xff; 16], 7), None);
}

fn tcp_over(source_route: bool, fragment: [u8; 2]) -> Vec<u8> {
    let recipe = Recipe {
        link: vec![8, 0],
        is_v6: false,
        protocol: 6,
        source: [10; 16],
        destination: [11; 16],
        between: (0, if source_route { vec![131, 3, 4, 0] } else { vec![] }),
        payload: vec![9; 40],
    };
    let mut frame = recipe.build(false);
    frame[20..22].copy_from_slice(&fragment);
    frame
}

#[test]
fn later_fragments_have_no_checksum_of_a_transport() {
    let (before, mut after) = (tcp_over(false, [0, 3]), tcp_over(false, [0, 3]));
    assert!(renumber(&mut after, 5));
    assert_eq!(before[34..], after[34..], "the payload is no header");
    let mut first = tcp_over(false, [0x20, 0]);
    assert!(renumber(&mut first, 5));
    assert_ne!(before[50..52], first[50..52], "the first one has it");
}

#[test]
fn source_routed_packets_stay_as_they_are() {
    let mut frame = tcp_over(true, [0, 0]);
    assert!(!renumber(&mut frame, 5));
    assert_eq!(frame, tcp_over(true, [0, 0]));
}

/// Behind the last station of a route of IPv6 (RFC 8200, 4.4) the destination is that of checksums.
#[test]
fn a_route_of_ipv6_that_is_at_its_end_is_none() {
    let recipe = |left: u8| Recipe {
        link: vec![0x86, 0xdd],
        is_v6: true,
        protocol: 6,
        source: [0x20; 16],
        destination: [0x21; 16],
        between: (43, [&[6, 2, 4, left][..], &[0; 4], &[0x22; 16]].concat()),
        payload: vec![9; 40],
    };
    let mut frame = recipe(0).build(false);
    assert!(renumber(&mut frame, 5));
    let [source, destination] = [22, 38].map(|at| frame[at..at + 16].try_into().unwrap());
    assert_ne!((source, destination), ([0x20; 16], [0x21; 16]));
    assert_eq!(frame, Recipe { source, destination, ..recipe(0) }.build(false));
    let mut on_its_way = recipe(1).build(false);
    assert!(!renumber(&mut on_its_way, 5));
    assert_eq!(on_its_way, recipe(1).build(false));
}

#[test]
fn both_directions_have_one_place_and_hosts_spread() {
    let frame = |source: [u8; 4], destination: [u8; 4]| {
        let mut frame = tcp_over(false, [0, 0]);
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&destination);
        frame
    };
    let mut counts = [0; 4];
    for host in 0..=255 {
        let (client, server) = ([10, 0, 3, host], [192, 0, 2, 7]);
        let place = place_of(&frame(client, server), 4);
        assert_eq!(place, place_of(&frame(server, client), 4));
        counts[place] += 1;
    }
    assert!(counts.iter().all(|count| (32..96).contains(count)), "{counts:?}");
}
