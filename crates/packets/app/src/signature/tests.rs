use proptest::prelude::*;
use units::Random;

use super::*;

/// Bytes written as pairs of hex digits, with blanks wherever they help.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

fn payload(carrier: Carrier, port: u16, bytes: &[u8]) -> Payload<'_> {
    Payload { carrier, side: Side::Orig, ports: (50_000, port), bytes, len: bytes.len() }
}

/// What the payloads of one session, each with its side, are recognised as.
fn recognised(carrier: Carrier, port: u16, payloads: &[(Side, &[u8])]) -> Option<Recognised> {
    let mut watch = Watch::default();
    for &(side, bytes) in payloads {
        let payload = Payload { side, ..payload(carrier, port, bytes) };
        if watch.take(side, &look(&payload)) {
            break;
        }
    }
    watch.found()
}

fn check(carrier: Carrier, port: u16, bytes: &[u8], expected: Option<(App, AppBy)>) {
    let found = recognised(carrier, port, &[(Side::Orig, bytes)]);
    let expected = expected.map(|(app, by)| Recognised { app, by });
    assert_eq!(found, expected, "{}", bytes.escape_ascii());
}

/// By content, on a port that says nothing.
fn tcp(app: App, bytes: &[u8]) {
    check(Carrier::Tcp, 40_000, bytes, Some((app, AppBy::Content)));
}

fn udp(app: App, bytes: &[u8]) {
    check(Carrier::Udp, 40_000, bytes, Some((app, AppBy::Content)));
}

/// On its own port only.
fn on_port(carrier: Carrier, port: u16, app: App, bytes: &[u8]) {
    check(carrier, port, bytes, Some((app, AppBy::PortAndContent)));
    check(carrier, 40_000, bytes, None);
}

const CLIENT_HELLO: &str = "16 0301 00c8 01 0000c4 0303 00000000";
const DNS_QUESTION: &str = "1234 0100 0001 0000 0000 0000 03777777 076578616d706c65 03636f6d 00 \
                            0001 0001";

#[test]
fn tls_and_its_kin_are_known_by_records_and_hellos() {
    tcp(App::Tls, &hex(CLIENT_HELLO));
    tcp(App::Tls, &hex("15 0303 0002 0228"));
    tcp(App::Tls, &hex("17 0303 0004 01020304 15 0303 0002 0100"));
    let specs = "010080 020080 030080 040080 050080 060040 070000";
    tcp(App::Tls, &hex(&format!("802e 01 0301 0015 0000 0010 {specs} {}", "07".repeat(16))));
    check(Carrier::Tcp, 443, &hex("17 0303 4000 0102030405"), None);
    let dtls = hex("16 feff 0000 000000000000 000e 01 000002 0000 000000 000002 feff");
    udp(App::Dtls, &dtls);
    check(Carrier::Tcp, 40_000, &dtls, None);
    let mut initial = hex("c3 00000001 08 0102030405060708 00 00 44d0");
    initial.resize(1200, 7);
    udp(App::Quic, &initial);
    udp(App::Quic, &hex("80 00000000 08 0102030405060708 00 00000001 6b3343cf"));
    udp(App::Quic, &hex("0d 0102030405060708 51303433 01 0102"));
}

#[test]
fn dns_is_told_from_what_has_its_form() {
    let question = hex(DNS_QUESTION);
    udp(App::Dns, &question);
    let framed = [&[0, 33][..], &question].concat();
    tcp(App::Dns, &framed);
    check(Carrier::Udp, 5353, &question, Some((App::Mdns, AppBy::PortAndContent)));
    check(Carrier::Udp, 5355, &question, Some((App::Llmnr, AppBy::PortAndContent)));
    let name = "20 4645464145454143414341434143414341434143414341434143414341434141 00";
    let netbios = hex(&format!("8001 0110 0001 0000 0000 0000 {name} 0020 0001"));
    check(Carrier::Udp, 137, &netbios, Some((App::Netbiosns, AppBy::PortAndContent)));
    let datagram = hex(&format!("110a 8001 0a000001 008a 0044 0000 {name}{name}"));
    udp(App::Netbiosdgm, &datagram);
    // The root's question is too little to go by, but for the port.
    let root = hex("1234 0100 0001 0000 0000 0000 00 0002 0001");
    on_port(Carrier::Udp, 53, App::Dns, &root);
    udp(App::Dnscrypt, b"r6fnvWj8 and what follows");
}

#[test]
fn lines_of_text_are_known_by_their_words() {
    tcp(App::Http, b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n");
    tcp(App::Http, b"HTTP/1.0 404 Not Found\r\n\r\n");
    tcp(App::Http, b"PROPFIND /a HTTP/1.1\r\n\r\n");
    tcp(App::Http2, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    tcp(App::Rtsp, b"DESCRIBE rtsp://example.com/a RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    tcp(App::Ssh, b"SSH-2.0-OpenSSH_9.9\r\n");
    tcp(App::Smtp, b"220 mail.example.com ESMTP ready\r\n");
    tcp(App::Smtp, b"EHLO client.example.com\r\n");
    tcp(App::Ftp, b"220 ProFTPD Server\r\n");
    tcp(App::Pop3, b"+OK POP3 ready\r\n");
    tcp(App::Imap, b"* OK [CAPABILITY IMAP4rev1] ready\r\n");
    tcp(App::Nntp, b"200 news.example.com InterNetNews NNRP server ready\r\n");
    tcp(App::Irc, b"NICK me\r\nUSER me 0 * :Me\r\n");
    tcp(App::Xmpp, b"<?xml version='1.0'?><stream:stream to='example.com'>");
    udp(App::Sip, b"INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n");
    udp(App::Ssdp, b"M-SEARCH * HTTP/1.1\r\nMAN: \"ssdp:discover\"\r\n\r\n");
    udp(App::Syslog, b"<34>1 2003-10-11T22:14:15.003Z host su - ID47 - text");
    udp(App::Tftp, b"\0\x01rfc1350.txt\0OCTET\0");
    on_port(Carrier::Udp, 514, App::Syslog, b"<34>su: failed");
    on_port(Carrier::Udp, 2427, App::Mgcp, b"RQNT 1201 aaln/1@a.example MGCP 1.0\r\n");
    tcp(App::Telnet, &hex("fffd18 fffd20 fffd23"));
}

#[test]
fn a_greeting_in_common_is_told_apart_by_the_answer() {
    let greeting: &[u8] = b"220 ready\r\n";
    let both = |command: &[u8]| {
        let dialogue = [(Side::Resp, greeting), (Side::Orig, command)];
        recognised(Carrier::Tcp, 40_000, &dialogue).map(|found| (found.app, found.by))
    };
    assert_eq!(both(b"USER anonymous\r\n"), Some((App::Ftp, AppBy::Content)));
    assert_eq!(both(b"HELO me.example\r\n"), Some((App::Smtp, AppBy::Content)));
    assert_eq!(both(b"\x01\x02"), None);
    check(Carrier::Tcp, 21, greeting, Some((App::Ftp, AppBy::PortAndContent)));
    check(Carrier::Tcp, 25, greeting, Some((App::Smtp, AppBy::PortAndContent)));
    check(Carrier::Tcp, 40_000, greeting, None);
    // The same side twice is no dialogue.
    let monologue = [(Side::Orig, &b"USER me\r\n"[..]), (Side::Orig, b"+OK\r\n")];
    assert_eq!(recognised(Carrier::Tcp, 40_000, &monologue), None);
}

#[test]
fn hosts_are_known_by_what_they_say_to_each_other() {
    tcp(App::Smb, &hex("000000 54 fe534d42 4000"));
    let called = "20 4645464145454143414341434143414341434143414341434143414341434141 00";
    let request = hex(&format!("81 00 0044 {called}{called}"));
    let negotiate = hex("000000 54 ff534d42 72");
    tcp(App::Netbiosssn, &request);
    let inside = [(Side::Orig, &request[..]), (Side::Orig, &negotiate)];
    let found = recognised(Carrier::Tcp, 139, &inside).map(|found| found.app);
    assert_eq!(found, Some(App::Smb), "an envelope is replaced");
    let mut dhcp = hex("01010600");
    dhcp.resize(236, 0);
    udp(App::Dhcp, &[&dhcp[..], &[0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255]].concat());
    on_port(Carrier::Udp, 547, App::Dhcpv6, &hex("01 123456 0008 0002 0000"));
    let mut ntp = hex("23 00 06 ec");
    ntp.resize(48, 0);
    on_port(Carrier::Udp, 123, App::Ntp, &ntp);
    udp(App::Snmp, &hex("3018 020101 0406 7075626c6963 a00b 020101 020100 020100 3000"));
    tcp(App::Ldap, &hex("300c 020101 6007 020103 0400 8000"));
    udp(App::Cldap, &hex("300c 020101 6007 020103 0400 8000"));
    let kerberos = hex("6a0e 300c a103020105 a20302010a 0000");
    udp(App::Kerberos, &kerberos);
    tcp(App::Kerberos, &[&[0, 0, 0, 16][..], &kerberos].concat());
    on_port(
        Carrier::Udp,
        1812,
        App::Radius,
        &hex(&format!("01 01 0017 {} 010341", "00".repeat(16))),
    );
    tcp(App::Bgp, &hex(&format!("{} 0013 04", "ff".repeat(16))));
    udp(App::Bittorrent, b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe");
    tcp(App::Bittorrent, b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0");
    let rpc =
        "00000001 00000000 00000002 000186a0 00000002 00000003 00000000 00000000 00000000 00000000";
    udp(App::Sunrpc, &hex(rpc));
    tcp(App::Dcerpc, &hex("05000b03 10000000 4800 0000 01000000"));
}

#[test]
fn plants_databases_and_desks_are_known() {
    tcp(App::Modbus, &hex("0001 0000 0006 01 03 0000 000a"));
    check(Carrier::Tcp, 40_000, &hex("0001 0000 0006 01 03 0000 000a 00"), None);
    tcp(App::Dnp3, &hex("0564 05 c0 0100 0004 e921"));
    check(Carrier::Tcp, 20_000, &hex("0564 05 c0 0100 0004 e922"), None);
    tcp(App::S7comm, &hex("0300 0019 02f080 32010000ccc1 0008 0000 f000 0001 0001 03c0"));
    tcp(App::Rdp, &hex("0300 0013 0e e0 0000 0000 00 01000800 03000000"));
    on_port(
        Carrier::Tcp,
        102,
        App::S7comm,
        &hex("0300 0016 11 e0 0000 0001 00 c0010a c1020100 c2020102"),
    );
    tcp(App::Iec104, &hex("6804 07000000"));
    tcp(App::Mqtt, &hex("10 10 0004 4d515454 04 02 003c 0004 61626364"));
    tcp(App::Mysql, &hex("4a000000 0a 382e302e3336 00 0b000000"));
    tcp(App::Postgresql, &hex("00000008 04d2162f"));
    tcp(App::Postgresql, b"\0\0\0\x11\0\x03\0\0user\0me\0\0");
    tcp(App::Redis, b"*1\r\n$4\r\nPING\r\n");
    tcp(App::Tds, &hex("12 01 002f 0000 00 00 00 001a 0006 01 0020 0001 ff"));
    tcp(App::Mongodb, &hex("15000000 01000000 00000000 dd070000 00000000 00"));
    tcp(App::Vnc, b"RFB 003.008\n");
    udp(App::Stun, &hex("0001 0000 2112a442 0102030405060708090a0b0c"));
    on_port(Carrier::Udp, 3478, App::Stun, &hex("0001 0000 01020304 05060708 090a0b0c 0d0e0f10"));
    udp(App::Rtcp, &hex("80 c9 0001 01020304 81 ca 0002 01020304 01000000"));
    let random: Vec<u8> = (1..=124).collect();
    udp(App::Wireguard, &[&hex("01000000 01020304")[..], &random, &[0; 16]].concat());
    udp(App::Openvpn, &hex("38 0102030405060708 00 00000000"));
    tcp(App::Openvpn, &hex("000e 38 0102030405060708 00 00000000"));
    udp(App::Ike, &hex(&format!("0102030405060708 {} 21202208 00000000 0000001c", "00".repeat(8))));
}

#[test]
fn a_stream_of_rtp_is_known_by_its_second_packet() {
    let packet = |sequence: u16, source: u32| {
        let [high, low] = sequence.to_be_bytes();
        [&[0x80, 0, high, low, 0, 0, 0, 160][..], &source.to_be_bytes(), &[0xd5; 160]].concat()
    };
    let stream = |packets: &[Vec<u8>]| {
        let payloads: Vec<_> = packets.iter().map(|bytes| (Side::Orig, &bytes[..])).collect();
        recognised(Carrier::Udp, 40_000, &payloads).map(|found| found.app)
    };
    assert_eq!(stream(&[packet(0xffff, 7), packet(1, 7)]), Some(App::Rtp));
    assert_eq!(stream(&[packet(1, 7)]), None);
    assert_eq!(stream(&[packet(1, 7), packet(1, 7)]), None, "the same packet again");
    assert_eq!(stream(&[packet(1, 7), packet(2, 8)]), None, "another source");
    assert_eq!(stream(&[packet(1, 7), packet(1000, 7)]), None, "too far apart");
}

#[test]
fn every_protocol_has_a_signature() {
    for &app in App::ALL {
        let is_of_it = |rule: &rule::Rule| rule.app == app;
        assert!(tcp::RULES.iter().chain(udp::RULES).any(is_of_it), "{}", app.name());
    }
}

#[test]
fn a_rule_that_needs_a_port_has_one() {
    for (carrier, rules) in [(Carrier::Tcp, tcp::RULES), (Carrier::Udp, udp::RULES)] {
        for rule in rules.iter().filter(|rule| matches!(rule.proof, Proof::OnPort)) {
            let is_home = |&port: &u16| ports::is_on_own(rule.app, &payload(carrier, port, &[]));
            assert!((1..=u16::MAX).any(|port| is_home(&port)), "{rule:?}");
        }
    }
}

#[test]
fn a_port_alone_names_what_is_at_home_there() {
    let name = |carrier, port| by_port(carrier, port).map(|found| found.app);
    assert_eq!(name(Carrier::Tcp, 443), Some(App::Tls));
    assert_eq!(name(Carrier::Udp, 53), Some(App::Dns));
    assert_eq!(name(Carrier::Tcp, 40_000), None);
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(u64::try_from(limit).unwrap())).unwrap()
}

/// Random payloads of random length that get a name at once, of a million; `port` gives the
/// responder's.
fn named_of_a_million(mut port: impl FnMut(&mut Random, usize) -> (Carrier, u16)) -> u32 {
    let mut random = Random::new(5);
    let mut bytes = [0; 1500];
    let mut named = 0;
    for number in 0..1_000_000 {
        let (carrier, port) = port(&mut random, number);
        // Short ones, ones of usual sizes, and any.
        let len = match number % 4 {
            0 => 1 + below(&mut random, 64),
            1 => [20, 32, 48, 92, 148, 250, 1200, 1350][below(&mut random, 8)],
            _ => 1 + below(&mut random, 1500),
        };
        let bytes = &mut bytes[..len];
        random.fill(bytes);
        if let Some(found) = look(&payload(carrier, port, bytes)).sure {
            println!("{found:?} on {port}: {}", bytes[..len.min(32)].escape_ascii());
            named += 1;
        }
    }
    named
}

#[test]
fn random_payload_has_no_name() {
    let named = named_of_a_million(|random, number| {
        let carrier = if number % 2 == 0 { Carrier::Tcp } else { Carrier::Udp };
        (carrier, u16::try_from(below(random, 65_536)).unwrap())
    });
    assert!(named < 10, "{named} of a million");
}

/// Where a port speaks for a protocol already, less is asked of the payload.
#[test]
fn random_payload_on_known_ports_has_hardly_a_name() {
    let known: Vec<(Carrier, u16)> = [Carrier::Tcp, Carrier::Udp]
        .into_iter()
        .flat_map(|carrier| (1..=u16::MAX).map(move |port| (carrier, port)))
        .filter(|&(carrier, port)| by_port(carrier, port).is_some())
        .collect();
    let named = named_of_a_million(|random, _| known[below(random, known.len())]);
    assert!(named < 30, "{named} of a million");
}

/// Payloads that get far into the signatures.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let starts = prop::sample::select(vec![
        hex(CLIENT_HELLO),
        hex(DNS_QUESTION),
        hex("3018 020101 0406 7075626c6963 a00b 020101 020100 020100 3000"),
        hex("0300 0019 02f080 32010000ccc1"),
        hex("0001 0000 0006 01 03 0000 000a"),
        hex("05000b03 10000000 4800 0000 01000000"),
        hex("c3 00000001 08 0102030405060708 00 00 44d0"),
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        b"220 a\r\n".to_vec(),
        b"<34>1 2003-10-11".to_vec(),
        vec![0xff; 19],
        vec![0x80, 0xc8, 0, 6],
    ]);
    (starts, prop::collection::vec(any::<u8>(), 0..80), 0_usize..80, any::<u8>(), 0_usize..160)
        .prop_map(|(start, rest, at, byte, len)| {
            let mut bytes = [start, rest].concat();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(len);
            bytes
        })
}

proptest! {
    #[test]
    fn no_payload_panics_however_it_is_cut(
        payloads in prop::collection::vec((any::<bool>(), nearly(), 0_usize..3000), 0..20),
        is_tcp: bool,
        port in prop::sample::select(vec![1, 21, 53, 102, 137, 443, 514, 1433, 3389, 5353, 40_000]),
    ) {
        let carrier = if is_tcp { Carrier::Tcp } else { Carrier::Udp };
        let mut watch = Watch::default();
        let mut before = None;
        for (is_orig, bytes, cut) in &payloads {
            let side = if *is_orig { Side::Orig } else { Side::Resp };
            let len = bytes.len() + cut;
            let is_done =
                watch.take(side, &look(&Payload { side, len, ..payload(carrier, port, bytes) }));
            prop_assert_eq!(is_done, watch.found().is_some_and(|found| !is_envelope(found.app)));
            let is_kept = before.is_none_or(|before: Recognised| {
                is_envelope(before.app) || watch.found() == Some(before)
            });
            prop_assert!(is_kept, "a decision is final");
            before = watch.found();
        }
    }
}

/// What docs/protocols.md says of each protocol: its row begins with name and other words.
#[test]
fn every_protocol_is_documented() {
    let document = include_str!("../../../../../docs/protocols.md");
    for &app in App::ALL {
        let row = format!("\n| `{}` | {}", app.name(), app.aliases().join(", "));
        assert!(document.contains(row.trim_end()), "{row}");
    }
}
