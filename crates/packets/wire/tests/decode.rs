//! One conversation inside every wrapping that is decoded; then all of it cut at every length, and
//! noise.

mod packets;

use packets::{
    DESTINATION, SOURCE, STATIONS, ethernet, inner, ipv4, ipv4_fragment, ipv6, ipv6_address, join,
    links, outer_udp, tcp, tunnels, udp,
};
use proptest::prelude::*;
use wire::{
    Address, Decoded, Fragment, IcmpHeader, LinkType, Part, Protocol, TcpOptions, Transport,
    TunnelKind, decode,
};

fn whole(link_type: LinkType, packet: &[u8]) -> Decoded<'_> {
    decode(link_type, packet, u32::try_from(packet.len()).expect("test packets are short"))
}

fn assert_is_inner(name: &str, decoded: &Decoded<'_>) {
    let tuple = decoded.tuple;
    assert_eq!(tuple.orig, Address::V4(SOURCE.into()), "{name}");
    assert_eq!(tuple.resp, Address::V4(DESTINATION.into()), "{name}");
    assert_eq!((tuple.orig_port, tuple.resp_port), (1000, 80), "{name}");
    assert_eq!(tuple.proto, Protocol::TCP, "{name}");
    assert_eq!(decoded.payload, b"hello", "{name}");
    assert_eq!((decoded.ip_len, decoded.payload_len), (45, 5), "{name}");
    let Transport::Tcp(header) = decoded.transport else { panic!("{name}: not TCP") };
    assert_eq!((header.tcp_seq, header.tcp_ack, header.window), (1, 2, 3), "{name}");
    assert!(decoded.fragment.is_none() && !decoded.cut, "{name}");
}

#[test]
fn every_link_layer_leads_to_the_conversation() {
    for (name, link_type, packet) in links() {
        let decoded = whole(link_type, &packet);
        assert_is_inner(name, &decoded);
        assert_eq!(decoded.tunnel, None, "{name}");
        let label = (name.contains("MPLS") || name.contains("pseudowire")).then_some(());
        assert_eq!(decoded.mpls.is_some(), label.is_some(), "{name}");
    }
}

#[test]
fn every_tunnel_leads_to_the_conversation_and_leaves_its_mark() {
    for (kind, id, packet) in tunnels() {
        let decoded = whole(LinkType::ETHERNET, &packet);
        assert_is_inner(kind.name(), &decoded);
        let tunnel = decoded.tunnel.expect("a tunnel was walked into");
        assert_eq!((tunnel.kind, tunnel.id), (kind, id));
        let by_stations = matches!(kind, TunnelKind::Pppoe | TunnelKind::Nsh);
        assert_eq!(matches!(tunnel.src, Address::Mac([2, 0, 0, 0, 0, 1])), by_stations, "{kind:?}");
    }
}

#[test]
fn ipv6_rides_in_its_own_tunnels() {
    let ip = ipv6(17, &udp(5, 6, b"x"));
    let ayiya = join(&[&[0x44, 0x52, 0x11, 41, 0, 0, 0, 0], &[0; 36]]);
    let teredo = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6];
    for (kind, packet) in [
        (TunnelKind::Ipv6InIp, ethernet(0x0800, &ipv4(41, &ip))),
        (TunnelKind::Teredo, outer_udp(3544, &[], &ip)),
        (TunnelKind::Teredo, outer_udp(3544, &teredo, &ip)),
        (TunnelKind::Ayiya, outer_udp(5072, &ayiya, &ip)),
    ] {
        let decoded = whole(LinkType::ETHERNET, &packet);
        assert_eq!(decoded.tunnel.map(|tunnel| tunnel.kind), Some(kind));
        assert_eq!((decoded.tuple.orig_port, decoded.tuple.resp_port), (5, 6), "{kind:?}");
        assert_eq!((decoded.ip_len, decoded.payload), (49, &b"x"[..]), "{kind:?}");
    }
}

#[test]
fn a_port_alone_makes_no_tunnel() {
    for port in [1701, 2152, 3544, 4341, 4342, 4754, 4789, 4790, 5072, 5247, 6081, 6635, 37008] {
        let packet = outer_udp(port, &[0xff; 40], &[]);
        let decoded = whole(LinkType::ETHERNET, &packet);
        assert_eq!((decoded.tuple.resp_port, decoded.tunnel), (port, None));
        assert_eq!((decoded.transport, decoded.payload_len), (Transport::Udp, 40), "{port}");
        assert!(!decoded.cut, "{port}");
    }
}

#[test]
fn a_tunnel_without_ip_inside_keeps_the_outer_addresses() {
    let arp = ethernet(0x0806, &[0; 28]);
    let packet = outer_udp(4789, &[8, 0, 0, 0, 0, 0, 9, 0], &arp);
    let decoded = whole(LinkType::ETHERNET, &packet);
    assert_eq!((decoded.tuple.orig_port, decoded.tuple.resp_port), (40000, 4789));
    assert_eq!((decoded.tuple.proto, decoded.tunnel), (Protocol::UDP, None));
}

#[test]
fn vlan_ids_are_kept_outermost_first_and_two_at_most() {
    let tags = [0x88, 0xa8, 0xe0, 100, 0x91, 0, 0, 200, 0x81, 0, 0, 44, 8, 0];
    let packet = join(&[&STATIONS, &tags, &inner()]);
    let decoded = whole(LinkType::ETHERNET, &packet);
    assert_is_inner("three tags", &decoded);
    assert_eq!(decoded.vlan, [Some(100), Some(200)]);

    let packet = join(&[&STATIONS, &[0x60, 0, 0, 100, 8, 0], &inner()]);
    assert_eq!(whole(LinkType::DSA_TAG_DSA, &packet).vlan, [Some(100), None]);
}

#[test]
fn packets_without_ip_are_a_pair_of_stations() {
    fn check(packet: &[u8], proto: Protocol) {
        let decoded = whole(LinkType::ETHERNET, packet);
        assert_eq!(decoded.tuple.orig, Address::Mac([2, 0, 0, 0, 0, 1]));
        assert_eq!(decoded.tuple.resp, Address::Mac([2, 0, 0, 0, 0, 2]));
        assert_eq!(decoded.tuple.proto, proto);
        assert_eq!((decoded.ip_len, decoded.payload_len, decoded.payload), (0, 0, &[][..]));
    }
    check(&ethernet(0x0806, &[0; 28]), Protocol::ARP);
    check(&ethernet(0x8100, &[0, 1, 0x88, 0xcc]), Protocol(0x88cc));
    check(&ethernet(0x8864, &[0x11, 0, 0, 9, 0, 4, 0xc0, 0x21]), Protocol(0x8864));
    check(&ethernet(38, &[0x42, 0x42, 3]), Protocol::UNPARSED);
    check(&ethernet(38, &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0]), Protocol(0x2000));
    check(&ethernet(0x0800, &[0x40; 20]), Protocol(0x0800));
    check(&STATIONS, Protocol::UNPARSED);
    assert_eq!(whole(LinkType(147), &[1; 60]), Decoded::default());
}

#[test]
fn lengths_come_from_the_headers_and_padding_does_not_count() {
    let padded = join(&[&ethernet(0x0800, &inner()), &[0; 20]]);
    assert_is_inner("padded", &whole(LinkType::ETHERNET, &padded));

    let packet = ethernet(0x0800, &inner());
    let snapped = &packet[..packet.len() - 3];
    let decoded = decode(LinkType::ETHERNET, snapped, 59);
    assert_eq!((decoded.payload, decoded.payload_len), (&b"he"[..], 5));
    assert!(!decoded.cut, "the headers were complete");

    let mut offloaded = packet.clone();
    offloaded[16..18].fill(0);
    let decoded = decode(LinkType::ETHERNET, &offloaded, 64_014);
    assert_eq!((decoded.ip_len, decoded.payload_len), (64_000, 63_960));

    let mut boasting = packet;
    boasting[16] = 0x40;
    let decoded = whole(LinkType::ETHERNET, &boasting);
    assert_eq!((decoded.ip_len, decoded.payload_len), (0x4000 + 45, 5));
}

#[test]
fn a_header_cut_by_the_capture_keeps_what_was_read() {
    let packet = ethernet(0x0800, &ipv4(6, &tcp(2, &[2, 4, 5, 180, 1, 3, 3, 7], b"hello")));
    let cut_at = |len: usize| decode(LinkType::ETHERNET, &packet[..len], 67);

    let only_ports = cut_at(14 + 20 + 4);
    assert_eq!((only_ports.tuple.orig_port, only_ports.tuple.resp_port), (1000, 80));
    assert_eq!((only_ports.transport, only_ports.cut), (Transport::Other, true));
    assert_eq!((only_ports.payload, only_ports.payload_len), (&[][..], 0));

    let half_options = cut_at(14 + 20 + 24);
    let Transport::Tcp(header) = half_options.transport else { panic!("20 bytes suffice") };
    assert_eq!((header.options.mss, header.options.window_scale), (Some(1460), None));
    assert_eq!((half_options.payload_len, half_options.cut), (5, true));

    let only_ethernet = cut_at(14 + 19);
    assert_eq!((only_ethernet.tuple.proto, only_ethernet.cut), (Protocol(0x0800), true));
}

#[test]
fn options_are_read_from_syns_only() {
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7];
    let read = |flags: u8| {
        let packet = ipv4(6, &tcp(flags, &options, b""));
        match whole(LinkType::RAW, &packet).transport {
            Transport::Tcp(header) => header.options,
            other => panic!("{other:?}"),
        }
    };
    let offered = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: true,
    };
    assert_eq!(read(0x02), offered);
    assert_eq!(read(0x12), offered);
    assert_eq!(read(0x10), TcpOptions::default());
}

#[test]
fn malformed_options_end_the_list_and_nothing_else() {
    for options in [[2, 0, 0, 0], [2, 1, 0, 0], [2, 40, 0, 0], [1, 1, 1, 2], [0, 3, 3, 7]] {
        let packet = ipv4(6, &tcp(2, &options, b"hello"));
        let decoded = whole(LinkType::RAW, &packet);
        let Transport::Tcp(header) = decoded.transport else { panic!("not TCP") };
        assert_eq!((header.options, decoded.payload), (TcpOptions::default(), &b"hello"[..]));
    }
}

#[test]
fn fragments_say_where_they_belong_and_are_not_walked_into() {
    let tunnel = udp(1, 4789, &join(&[&[8, 0, 0, 0, 0, 0, 9, 0], &ethernet(0x0800, &inner())]));
    let packet = ipv4_fragment(17, [0x20, 0], &tunnel);
    let first = whole(LinkType::RAW, &packet);
    assert_eq!(first.fragment, Some(Fragment { id: 0xabcd, offset: 0, more: true }));
    assert_eq!((first.tuple.resp_port, first.tunnel), (4789, None));

    let packet = ipv4_fragment(17, [0, 3], &tunnel);
    let later = whole(LinkType::RAW, &packet);
    assert_eq!(later.fragment, Some(Fragment { id: 0xabcd, offset: 24, more: false }));
    assert_eq!((later.tuple.proto, later.tuple.resp_port), (Protocol::UDP, 0));
    assert_eq!((later.transport, later.payload), (Transport::Other, &tunnel[..]));

    let packet = ipv6(44, &join(&[&[17, 0, 0, 25, 0, 0, 0, 7], &tunnel]));
    let later = whole(LinkType::RAW, &packet);
    assert_eq!(later.fragment, Some(Fragment { id: 7, offset: 24, more: true }));
    assert_eq!((later.tuple.proto, later.tuple.resp_port), (Protocol::UDP, 0));
}

#[test]
fn extension_headers_are_passed_and_atomic_fragments_are_whole() {
    let chain = join(&[
        &[43, 0, 5, 2, 0, 0, 0, 0],
        &[60, 0, 0, 0, 0, 0, 0, 0],
        &[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 9],
        &[17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
        &[0; 12],
        &udp(5, 6, b"x"),
    ]);
    let packet = ipv6(0, &chain);
    let decoded = whole(LinkType::IPV6, &packet);
    assert_eq!((decoded.tuple.orig_port, decoded.tuple.resp_port), (5, 6));
    assert_eq!((decoded.fragment, decoded.payload), (None, &b"x"[..]));

    for (next, header) in [(50, [0; 8]), (59, [0; 8]), (135, [59, 0, 0, 0, 0, 0, 0, 0])] {
        let packet = ipv6(next, &header);
        let decoded = whole(LinkType::IPV6, &packet);
        assert_eq!(decoded.tuple.proto, Protocol(u16::from(next)));
        assert_eq!(decoded.payload_len, 8);
    }
}

#[test]
fn a_datagram_is_the_parts_that_its_fragments_carry() {
    let datagram = udp(5, 6, b"hello there");
    let (start, rest) = datagram.split_at(16);
    for payload in [start, rest] {
        let packet = ethernet(0x0800, &ipv4_fragment(17, [0x20, 0], payload));
        let len = u32::try_from(packet.len()).expect("test packets are short");
        let part = wire::part_of_datagram(LinkType::ETHERNET, &packet, len);
        assert_eq!(part, Some(Part { protocol: 17, bytes: payload, is_whole: true }));
        let (_, cut) = packet.split_last().expect("it is not empty");
        let part = wire::part_of_datagram(LinkType::ETHERNET, cut, len);
        assert!(part.is_some_and(|part| !part.is_whole));
    }
    let packet = ipv6(44, &join(&[&[60, 0, 0, 1, 0, 0, 0, 7], rest]));
    let part = wire::part_of_datagram(LinkType::RAW, &packet, u32::MAX);
    let part = part.expect("it is a fragment");
    assert_eq!((part.protocol, part.bytes), (60, rest));
    assert_eq!(wire::part_of_datagram(LinkType::RAW, &inner(), u32::MAX), None);

    let (sender, receiver) = (Address::V4(SOURCE.into()), Address::V4(DESTINATION.into()));
    let whole = wire::decode_datagram((sender, receiver), 17, &datagram);
    assert_eq!((whole.tuple.orig, whole.tuple.orig_port), (sender, 5));
    assert_eq!((whole.transport, whole.payload), (Transport::Udp, &b"hello there"[..]));
    let (sender, receiver) =
        (Address::V6(ipv6_address(1).into()), Address::V6(ipv6_address(2).into()));
    let datagram = join(&[&[17, 0, 0, 0, 0, 0, 0, 0], &datagram]);
    let whole = wire::decode_datagram((sender, receiver), 43, &datagram);
    assert_eq!((whole.tuple.proto, whole.tuple.resp), (Protocol::UDP, receiver));
    assert_eq!(whole.payload, b"hello there");
}

#[test]
fn a_transport_is_found_behind_any_extension_headers() {
    let kinds = [0, 43, 60, 135, 139, 140];
    for first in kinds {
        for second in kinds {
            let chain =
                join(&[&[second, 0, 0, 0, 0, 0, 0, 0], &[17, 1, 0, 0, 0, 0, 0, 0], &[0; 8]]);
            let packet = ipv6(first, &join(&[&chain, &udp(5, 6, b"x")]));
            let decoded = whole(LinkType::IPV6, &packet);
            assert_eq!((decoded.tuple.proto, decoded.tuple.resp_port), (Protocol::UDP, 6));
            assert_eq!(decoded.payload, b"x", "{first} {second}");
        }
    }
    // As many as an attacker likes.
    let many = [&[60, 0, 0, 0, 0, 0, 0, 0].repeat(99)[..], &[17, 0, 0, 0, 0, 0, 0, 0]].concat();
    let packet = ipv6(60, &join(&[&many, &udp(5, 6, b"x")]));
    assert_eq!(whole(LinkType::IPV6, &packet).tuple.resp_port, 6);
    // Segmentation offload leaves the length out.
    let mut packet = ipv6(43, &join(&[&[17, 0, 4, 0, 0, 0, 0, 0], &udp(5, 6, b"x")]));
    packet.splice(4..6, [0, 0]);
    let decoded = whole(LinkType::IPV6, &packet);
    assert_eq!((decoded.tuple.proto, decoded.payload), (Protocol::UDP, &b"x"[..]));
}

#[test]
fn an_icmp_error_belongs_to_its_own_addresses() {
    let quoted = ipv4(17, &udp(5, 6, b""));
    let packet = ipv4(1, &join(&[&[3, 1, 0, 0, 0, 0, 0, 0], &quoted]));
    let decoded = whole(LinkType::RAW, &packet);
    assert_eq!(decoded.transport, Transport::Icmp(IcmpHeader { kind: 3, code: 1 }));
    assert_eq!((decoded.tuple.orig_port, decoded.tuple.resp_port), (0, 0));
    assert_eq!((decoded.tuple.proto, decoded.payload_len), (Protocol::ICMP, 28));
}

#[test]
fn sctp_has_ports_and_dccp_has_none() {
    let packet = ipv4(132, &[3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 4]);
    let decoded = whole(LinkType::RAW, &packet);
    assert_eq!((decoded.tuple.orig_port, decoded.transport), (1000, Transport::Sctp));
    assert_eq!(decoded.payload_len, 4);
    let packet = ipv4(33, &[3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0]);
    let decoded = whole(LinkType::RAW, &packet);
    assert_eq!((decoded.tuple.orig_port, decoded.transport), (0, Transport::Other));
}

#[test]
fn nesting_without_end_ends() {
    let mut packet = inner();
    for _ in 0..100 {
        packet = ipv4(4, &packet);
    }
    let decoded = whole(LinkType::RAW, &packet);
    assert_eq!((decoded.tuple.proto, decoded.tuple.orig_port), (Protocol(4), 0));
    let tags = [0x81, 0, 0, 1].repeat(70_000);
    let bridged = ethernet(60, &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 1]).repeat(10_000);
    let paths = [0, 6, 1, 4, 0, 0, 7, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let authenticated = [51, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1].repeat(5_000);
    for packet in [
        join(&[&STATIONS, &tags]),
        bridged,
        ethernet(0x894f, &paths.repeat(10_000)),
        ethernet(0x88e7, &join(&[&[0; 4], &STATIONS, &[0x88, 0xe7]]).repeat(10_000)),
        ethernet(0x0800, &ipv4(51, &authenticated)),
    ] {
        assert_eq!(whole(LinkType::ETHERNET, &packet).tuple.orig_port, 0);
    }
}

/// What holds for every packet whatever is in it.
fn assert_sound(link_type: LinkType, packet: &[u8], original_len: u32) {
    let decoded = decode(link_type, packet, original_len);
    if !decoded.payload.is_empty() {
        let (packet, payload) = (packet.as_ptr_range(), decoded.payload.as_ptr_range());
        assert!(packet.start <= payload.start && payload.end <= packet.end, "{link_type}");
    }
    let payload_len = usize::try_from(decoded.payload_len).expect("64 bits");
    let on_wire = packet.len().max(usize::try_from(original_len).expect("64 bits"));
    assert!((decoded.payload.len()..=on_wire).contains(&payload_len), "{link_type}");
    let (canonical, turned) = decoded.tuple.canonical();
    assert_eq!(if turned { canonical.reversed() } else { canonical }, decoded.tuple);
}

#[test]
fn every_prefix_of_every_packet_is_sound_and_at_the_end_cut() {
    let tunnels = tunnels().into_iter().map(|(_, _, packet)| (LinkType::ETHERNET, packet));
    let links = links().into_iter().map(|(_, link_type, packet)| (link_type, packet));
    for (link_type, packet) in links.chain(tunnels) {
        let original_len = u32::try_from(packet.len()).unwrap();
        for len in 0..packet.len() {
            assert_sound(link_type, &packet[..len], original_len);
        }
        // The last TCP header of the packet, cut in its middle.
        assert!(decode(link_type, &packet[..packet.len() - 15], original_len).cut, "{link_type}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn noise_is_sound_as_any_link_type(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        original_len in any::<u32>(),
    ) {
        for &link_type in LinkType::DECODED {
            assert_sound(link_type, &bytes, original_len);
        }
    }

    #[test]
    fn a_flipped_byte_is_sound(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let links = links().into_iter().map(|(_, link_type, packet)| (link_type, packet));
        let tunnels = tunnels().into_iter().map(|(_, _, packet)| (LinkType::ETHERNET, packet));
        let all: Vec<_> = links.chain(tunnels).collect();
        let (link_type, mut packet) = which.get(&all).clone();
        let at = at.index(packet.len());
        packet[at] = value;
        assert_sound(link_type, &packet, u32::try_from(packet.len()).unwrap());
    }
}
