//! The captures of the small corpus.

use std::net::{IpAddr, Ipv4Addr};

use crate::layers::{self, Ends, ICMP, ICMPV6, Layer, Link, Side, TCP, UDP};
use crate::payloads::{
    HELLO_JA3, QUIC_JA3, dhcp, dns_answer, dns_over_tcp, dns_question, filler, http_page,
    http_request, ntp, quic_initial, sip, tls_client_hello, tls_data, tls_server_hello,
};
use crate::scene::{BEGIN_NS, Form, Frame, Port, Scene, Session};
use crate::talk::{ACK, PSH, RST, Talk};

use Side::{A, B};

const CLIENT: &str = "192.0.2.10";
const SERVER: &str = "198.51.100.80";
const CLIENT_6: &str = "2001:db8::10";
const SERVER_6: &str = "2001:db8:1::80";

/// All of them.
pub(crate) fn all() -> Vec<Scene> {
    let mut scenes = vec![
        protocols(),
        tcp(),
        tagged(),
        tunnelled(),
        fragments(),
        many(),
        interfaces("pcapng-gen/le-interfaces.pcapng", Form::PCAPNG),
        interfaces("pcapng-gen/be-interfaces.pcapng", Form::PCAPNG_BE),
        sections("pcapng-gen/le-sections.pcapng", Form::PCAPNG),
        sections("pcapng-gen/be-sections.pcapng", Form::PCAPNG_BE),
        snapped(),
    ];
    scenes.extend(links());
    scenes.into_iter().map(Scene::ended).collect()
}

fn dns(scene: &mut Scene, ends: Ends, name: &str, address: &str) {
    let address: IpAddr = address.parse().expect("an address");
    let id = ends.a.1;
    let talk = Talk::new(scene, ends).speaks("DNS").names("dns", name);
    talk.datagram(A, &dns_question(id, name, address)).datagram(B, &dns_answer(id, name, address));
}

fn http<'s>(talk: Talk<'s>, host: &str) -> Talk<'s> {
    let talk = talk.speaks("HTTP").names("http_host", host).open();
    talk.say(A, &http_request(host, "/index.html")).say(B, &http_page(4000)).close()
}

fn tls<'s>(talk: Talk<'s>, name: &str) -> Talk<'s> {
    let talk = talk.speaks("TLS").names("sni", name).names("ja3", HELLO_JA3);
    let talk = talk.names("subject", &format!("CN={name}")).open().say(A, &tls_client_hello(name));
    let talk = talk.say(B, &tls_server_hello(name)).say(A, &tls_data(300));
    talk.say(B, &tls_data(5000)).close()
}

/// Lines of a dialog, each with its side.
fn dialog<'s>(talk: Talk<'s>, lines: &[(Side, &str)]) -> Talk<'s> {
    let talk = talk.open();
    let said = lines
        .iter()
        .fold(talk, |talk, (side, line)| talk.say(*side, format!("{line}\r\n").as_bytes()));
    said.close()
}

/// Sessions of many protocols over Ethernet, both versions of IP, and ARP.
fn protocols() -> Scene {
    let mut scene = Scene::new("protocols.pcap", Form::PCAP, Link::Ethernet);
    let to = |proto, from, port| Ends::new(proto, (CLIENT, from), (SERVER, port));
    let to_6 = |proto, from, port| Ends::new(proto, (CLIENT_6, from), (SERVER_6, port));
    let it = &mut scene;
    arp(it);
    dns(it, to(UDP, 40_001, 53), "www.example.com", "198.51.100.80");
    dns(it, to_6(UDP, 40_002, 53), "six.example.net", "2001:db8:1::80");
    http(Talk::new(it, to(TCP, 40_003, 80)), "www.example.com");
    http(Talk::new(it, to_6(TCP, 40_004, 80)), "six.example.net");
    tls(Talk::new(it, to(TCP, 40_005, 443)), "shop.example.com");
    tls(Talk::new(it, to_6(TCP, 40_006, 443)), "mail.example.org");
    Talk::new(it, to(UDP, 40_007, 443))
        .speaks("QUIC")
        .names("sni", "example.com")
        .names("ja3", QUIC_JA3)
        .datagram(A, &quic_initial());
    ssh(it, to(TCP, 40_008, 22));
    let over_tcp = Talk::new(it, to(TCP, 40_009, 53)).speaks("DNS").names("dns", "big.example.com");
    let address = Ipv4Addr::new(198, 51, 100, 7).into();
    over_tcp
        .open()
        .say(A, &dns_over_tcp(&dns_question(9, "big.example.com", address)))
        .say(B, &dns_over_tcp(&dns_answer(9, "big.example.com", address)))
        .close();
    texts(it);
    Talk::new(it, to(UDP, 123, 123)).speaks("NTP").datagram(A, &ntp(3)).datagram(B, &ntp(4));
    Talk::new(it, Ends::new(UDP, ("0.0.0.0", 68), ("255.255.255.255", 67)))
        .speaks("DHCP")
        .datagram(A, &dhcp(1, 1, "laptop"))
        .datagram(A, &dhcp(1, 3, "laptop"));
    Talk::new(it, to(UDP, 5060, 5060))
        .speaks("SIP")
        .datagram(A, &sip("INVITE sip:bob@example.org SIP/2.0"))
        .datagram(B, &sip("SIP/2.0 180 Ringing"));
    let echo = [&[0x12, 0x34, 0, 1], &filler(48)[..]].concat();
    Talk::new(it, to(ICMP, 0, 0)).icmp(A, 8, 0, &echo).icmp(B, 0, 0, &echo).icmp(A, 8, 0, &echo);
    Talk::new(it, to_6(ICMPV6, 0, 0)).icmp(A, 128, 0, &echo).icmp(B, 129, 0, &echo);
    scene
}

fn arp(scene: &mut Scene) {
    let ends = [Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(192, 0, 2, 1)];
    let session = scene.sessions.len();
    scene.sessions.push(Session {
        ends: None,
        icmp: None,
        names: std::collections::BTreeMap::new(),
        app: None,
    });
    for (number, side) in (0..).zip([A, B]) {
        scene.frames.push(Frame {
            time_ns: BEGIN_NS + number * 1_000_000,
            interface: 0,
            bytes: layers::arp(side, ends),
            session,
            side,
            ip_bytes: 0,
            payload_bytes: 0,
            tcp_flags: 0,
        });
    }
}

fn ssh(scene: &mut Scene, ends: Ends) {
    let lines = ["SSH-2.0-OpenSSH_9.2p1", "SSH-2.0-generator_1"];
    let talk = Talk::new(scene, ends).speaks("SSH").names("ssh", lines[1]).names("ssh", lines[0]);
    let said = [(B, lines[0]), (A, lines[1])];
    dialog(talk, &said);
}

/// Protocols of lines.
fn texts(scene: &mut Scene) {
    let to = |from, port| Ends::new(TCP, (CLIENT, from), (SERVER, port));
    let ftp = [
        (B, "220 files.example.com FTP ready"),
        (A, "USER anonymous"),
        (B, "331 Please specify the password."),
        (A, "PASS guest@example.com"),
        (B, "230 Login successful."),
        (A, "QUIT"),
        (B, "221 Goodbye."),
    ];
    dialog(Talk::new(scene, to(40_020, 21)).speaks("FTP_CONTROL"), &ftp);
    let smtp = [
        (B, "220 mail.example.org ESMTP"),
        (A, "EHLO client.example.com"),
        (B, "250 mail.example.org"),
        (A, "MAIL FROM:<alice@example.com>"),
        (B, "250 2.1.0 Ok"),
        (A, "QUIT"),
        (B, "221 2.0.0 Bye"),
    ];
    dialog(Talk::new(scene, to(40_021, 25)).speaks("SMTP"), &smtp);
    let pop = [(B, "+OK POP3 ready"), (A, "USER bob"), (B, "+OK"), (A, "QUIT"), (B, "+OK bye")];
    dialog(Talk::new(scene, to(40_022, 110)).speaks("POP3"), &pop);
}

/// What goes wrong with TCP, and how sessions end; in nanoseconds, and big-endian.
fn tcp() -> Scene {
    let mut scene = Scene::new("tcp-ns-be.pcap", Form::PCAP_BE, Link::Ethernet).in_nanoseconds();
    let to = |from| Ends::new(TCP, (CLIENT, from), (SERVER, 9000));
    let it = &mut scene;
    Talk::new(it, to(41_001)).open().say_twice(A, &filler(700)).say(B, &filler(9000)).close();
    let swapped = Talk::new(it, to(41_002)).open();
    swapped.say_out_of_order(A, &filler(500), &filler(600)).close();
    Talk::new(it, to(41_003)).open().say(A, &filler(100)).flags(B, RST | ACK, 0);
    // Nobody listens.
    Talk::new(it, to(41_004)).flags(A, crate::talk::SYN, 64_240).flags(B, RST | ACK, 0);
    // The receiver has no room for a while.
    let full = Talk::new(it, to(41_005)).open().say(A, &filler(2800)).flags(B, ACK, 0);
    full.pause(400_000_000).flags(B, ACK, 501).say(A, &filler(100)).close();
    // Unanswered, and asked three times.
    let deaf = Talk::new(it, Ends::new(TCP, (CLIENT, 41_006), ("198.51.100.99", 9000)));
    deaf.flags(A, PSH | ACK, 500);
    // In the middle of a session, and longer than the usual times without a packet.
    let late = Talk::new(it, to(41_007)).say(A, &filler(64)).pause(1_000_000_000_000);
    late.say(B, &filler(64)).close();
    // An unusual protocol.
    http(Talk::new(it, Ends::new(TCP, (CLIENT_6, 41_008), (SERVER_6, 8080))), "odd.example.net");
    scene
}

/// Tags, labels and subscribers.
fn tagged() -> Scene {
    let mut scene = Scene::new("tagged-be.pcap", Form::PCAP_BE, Link::Ethernet);
    let to = |from, port| Ends::new(TCP, (CLIENT, from), (SERVER, port));
    let to_6 = |from, port| Ends::new(UDP, (CLIENT_6, from), (SERVER_6, port));
    let it = &mut scene;
    http(Talk::new(it, to(42_001, 80)).within(&[Layer::Vlan(100)]), "vlan.example.com");
    let double = [Layer::ServiceVlan(200), Layer::Vlan(300)];
    tls(Talk::new(it, to(42_002, 443)).within(&double), "qinq.example.com");
    let labels = [Layer::Mpls(16_001), Layer::Mpls(16_002)];
    http(Talk::new(it, to(42_003, 80)).within(&labels), "mpls.example.com");
    let subscriber = [Layer::Vlan(7), Layer::Pppoe(0x1234)];
    http(Talk::new(it, to(42_004, 80)).within(&subscriber), "pppoe.example.com");
    let six = Talk::new(it, to_6(42_005, 9000)).within(&[Layer::Pppoe(0x1235)]);
    six.datagram(A, &filler(120)).datagram(B, &filler(1300));
    scene
}

/// GRE, VXLAN, and IP in IP; in nanoseconds.
fn tunnelled() -> Scene {
    let mut scene = Scene::new("tunnelled-ns.pcap", Form::PCAP, Link::Ethernet).in_nanoseconds();
    let (near, far) = (Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 2));
    let to = |from, port| Ends::new(TCP, ("10.1.0.1", from), ("10.2.0.2", port));
    let to_6 = |from| Ends::new(UDP, (CLIENT_6, from), (SERVER_6, 9000));
    let it = &mut scene;
    http(Talk::new(it, to(43_001, 80)).within(&[Layer::Gre(near, far)]), "gre.example.com");
    let vxlan = [Layer::Vxlan(near, far, 5001)];
    tls(Talk::new(it, to(43_002, 443)).within(&vxlan), "vxlan.example.com");
    let tagged = [Layer::Vlan(9), Layer::Vxlan(near, far, 5002), Layer::Vlan(10)];
    http(Talk::new(it, to(43_003, 80)).within(&tagged), "inner.example.com");
    http(Talk::new(it, to(43_004, 80)).within(&[Layer::IpIp(near, far)]), "ipip.example.com");
    let six = Talk::new(it, to_6(43_005)).within(&[Layer::IpIp(near, far)]);
    six.datagram(A, &filler(90)).datagram(B, &filler(900));
    scene
}

/// Datagrams in fragments, and IPv6 extension headers.
fn fragments() -> Scene {
    let mut scene =
        Scene::new("fragments-ns-be.pcap", Form::PCAP_BE, Link::Ethernet).in_nanoseconds();
    let to = |from| Ends::new(UDP, (CLIENT, from), (SERVER, 9000));
    let to_6 = |from| Ends::new(UDP, (CLIENT_6, from), (SERVER_6, 9000));
    let it = &mut scene;
    let four = Talk::new(it, to(44_001)).in_fragments(A, &filler(4000), 1480);
    four.datagram(B, &filler(30)).in_fragments(A, &filler(3000), 1480);
    let six = Talk::new(it, to_6(44_002)).in_fragments(A, &filler(4000), 1432);
    six.datagram(B, &filler(30));
    let extended = Talk::new(it, to_6(44_003)).with_extensions();
    extended.datagram(A, &filler(200)).datagram(B, &filler(400));
    let stream = Ends::new(TCP, (CLIENT_6, 44_004), (SERVER_6, 80));
    http(Talk::new(it, stream).with_extensions(), "options.example.net");
    scene
}

/// A capture of each further link type.
fn links() -> Vec<Scene> {
    let of = |file, link, number: u16| {
        let mut scene = Scene::new(file, Form::PCAP, link);
        let four = Ends::new(TCP, (CLIENT, 45_000 + number), (SERVER, 80));
        http(Talk::new(&mut scene, four), "four.example.com");
        let six = Ends::new(UDP, (CLIENT_6, 45_100 + number), (SERVER_6, 53));
        dns(&mut scene, six, "six.example.net", "2001:db8::1");
        scene
    };
    vec![
        of("raw.pcap", Link::Raw, 1),
        of("null.pcap", Link::Null, 2),
        of("loop.pcap", Link::Loop, 3),
        of("ppp.pcap", Link::Ppp, 4),
        of("cooked.pcap", Link::Cooked, 5),
        of("cooked2.pcap", Link::Cooked2, 6),
    ]
}

/// Three interfaces of three link types, in micro- and nanoseconds.
fn interfaces(file: &'static str, form: Form) -> Scene {
    let mut scene = Scene::new(file, form, Link::Ethernet);
    let other = [(Link::Raw, 9), (Link::Cooked2, 6)];
    scene.ports.extend(other.map(|(link, digits)| Port { link, digits }));
    for (number, interface) in (0_u16..).zip([0, 1, 2, 1, 0]) {
        let to = |proto, from, port| Ends::new(proto, (CLIENT, from), (SERVER, port));
        let web = Talk::new(&mut scene, to(TCP, 46_000 + number, 80)).on(interface);
        http(web, "interfaces.example.com");
        let rest = Talk::new(&mut scene, to(UDP, 46_100 + number, 9000)).on(interface);
        rest.datagram(A, &filler(333)).datagram(B, &filler(77));
    }
    // A resolved name (address and name, then the end of records), and secrets of TLS.
    let record = [&[192, 0, 2, 10][..], b"client\0", &[0; 1]].concat();
    let order = |number: u16| {
        if form.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    };
    let names = [&order(1)[..], &order(11), &record[..], &order(0), &order(0)].concat();
    scene.blocks = vec![(4, names)];
    scene
}

/// Three sections, each of which begins with its own header and interface.
fn sections(file: &'static str, form: Form) -> Scene {
    let mut scene = Scene::new(file, form, Link::Ethernet).in_nanoseconds();
    let to = |from| Ends::new(TCP, (CLIENT, from), (SERVER, 80));
    for number in 0..4 {
        http(Talk::new(&mut scene, to(47_000 + number)), "sections.example.com");
    }
    scene.sections = vec![9, 25];
    scene
}

/// Only the first 68 bytes of each frame.
fn snapped() -> Scene {
    let form = Form { snaplen: 68, ..Form::PCAP };
    let mut scene = Scene::new("snapped.pcap", form, Link::Ethernet);
    for number in 0..4 {
        let ends = Ends::new(TCP, (CLIENT, 48_000 + number), (SERVER, 9000));
        Talk::new(&mut scene, ends).open().say(A, &filler(600)).say(B, &filler(9000)).close();
    }
    scene
}

/// Some 400 sessions at once, with sizes that differ by a factor of thousand.
fn many() -> Scene {
    let mut scene = Scene::new("many.pcap", Form::PCAP, Link::Ethernet);
    // A linear congruential generator: the same sessions each time.
    let mut state = 7_u64;
    let mut below = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % limit
    };
    for number in 0..400_u16 {
        let (host, server) = (below(200), below(40));
        let (a, b) = if number % 10 == 0 {
            (format!("2001:db8::{:x}", 1 + host), format!("2001:db8:1::{:x}", 1 + server))
        } else {
            (format!("10.0.0.{}", 1 + host), format!("198.51.100.{}", 1 + server))
        };
        let name = format!("host{}.example.com", below(100));
        let ends = |proto, port| Ends::new(proto, (&a, 10_000 + number), (&b, port));
        match number % 8 {
            0 | 1 => dns(&mut scene, ends(UDP, 53), &name, "198.51.100.9"),
            2 => {
                let stream = Talk::new(&mut scene, ends(UDP, 9999));
                let said = (0..=below(20)).fold(stream, |talk, number| {
                    talk.datagram(if number % 5 == 4 { B } else { A }, &filler(100 + number * 40))
                });
                said.pause(1);
            }
            3 => drop(http(Talk::new(&mut scene, ends(TCP, 80)), &name)),
            _ => {
                // A few kilobytes in most of them, up to a hundred in few.
                let len = 1500 << below(7).min(below(7));
                let talk = Talk::new(&mut scene, ends(TCP, 9000)).open();
                talk.say(A, &filler(200)).say(B, &filler(len)).close();
            }
        }
    }
    scene
}
