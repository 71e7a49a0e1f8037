use super::*;

const ROOM: usize = 1 << 20;

/// Destination id of the examples in RFC 9001 and RFC 9369, appendix A.
const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// The client's CRYPTO frame, A.2 of both.
const CLIENT_FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
    0d0010000e0403050306030203080408050806002d00020101001c0002400100\
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

/// The server's Initial, A.3.
const SERVER_V1: &str = "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a\
    5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3\
    dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84\
    022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4\
    2158407dd074ee";
const SERVER_V2: &str = "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698\
    baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17\
    f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2\
    c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8\
    4bed8521e2e140";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

/// An Initial of the client with packet number 2 in four bytes.
fn client_initial(version: u32, frames: &[u8]) -> Vec<u8> {
    let kind = Version::of(version).unwrap().initial_type;
    let len = u16::try_from(frames.len() + 4 + 16).unwrap() | 0x4000;
    let header = [
        &[0xc3 | kind << 4][..],
        &version.to_be_bytes(),
        &[8],
        &ID,
        &[0, 0],
        &len.to_be_bytes(),
        &[0, 0, 0, 2],
    ]
    .concat();
    let keys = Keys::derive(Version::of(version).unwrap(), &ID);
    let mut packet = [&header[..], &keys.client.seal(2, &header, frames)].concat();
    let sample = *packet[header.len()..].first_chunk().unwrap();
    let [first, number @ ..] = keys.client.mask(sample);
    packet[0] ^= first & 0x0f;
    let at = header.len() - 4;
    packet[at..header.len()].iter_mut().zip(number).for_each(|(byte, mask)| *byte ^= mask);
    packet
}

/// As long as a client's first datagram.
fn padded(mut datagram: Vec<u8>) -> Vec<u8> {
    datagram.resize(datagram.len().max(DATAGRAM_LEN_MIN), 0);
    datagram
}

/// What is read of datagrams, each with its sender.
fn names_of(datagrams: &[(Side, &[u8])]) -> (Names, bool) {
    let mut budget = Budget::new(ROOM, ROOM);
    let (mut quic, mut names) = (Quic::default(), Names::default());
    let mut is_over = false;
    for &(side, payload) in datagrams {
        let datagram = Datagram { side, time_ns: 0, ports: (50000, 443), payload };
        is_over |= quic.read(&datagram, &mut names, &mut budget);
    }
    quic.free(&mut budget);
    assert_eq!(budget.heads.free_bytes, ROOM, "space is given back");
    (names, is_over)
}

#[test]
fn the_examples_of_both_standards_are_read() {
    // First and last bytes of the client's protected packet, A.2.
    let examples = [
        (
            1,
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
            "e221af44860018ab0856972e194cd934",
            SERVER_V1,
        ),
        (
            0x6b33_43cf,
            "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
            "a18b2faa745b6fe189cf772a9f84cbfc",
            SERVER_V2,
        ),
    ];
    for (version, start, end, server) in examples {
        let mut frames = bytes(CLIENT_FRAME);
        frames.resize(1162, 0);
        let client = client_initial(version, &frames);
        assert_eq!(client.len(), 1200);
        assert!(client.starts_with(&bytes(start)) && client.ends_with(&bytes(end)));
        let (names, is_over) = names_of(&[(Side::Orig, &client), (Side::Resp, &bytes(server))]);
        assert!(is_over, "both hellos were read");
        assert_eq!((names.app, names.sni.as_deref()), (Some(App::Quic), Some("example.com")));
        assert_eq!((&names.alpn[..], names.tls_version), (&["alpn".to_owned()][..], Some(0x0304)));
        let tls = names.tls.unwrap();
        assert_eq!(tls.cipher, Some(0x1301));
        assert!(tls.ja4.unwrap().starts_with("q13d0211an_"));
    }
}

#[test]
fn a_hello_in_several_packets_in_any_order_is_read() {
    let hello = &bytes(CLIENT_FRAME)[4..];
    let part = |from: usize, to: usize| {
        let [high, low] = u16::try_from(from).unwrap().to_be_bytes();
        let len = u8::try_from(to - from).unwrap();
        let ack = [2, 0x40, 9, 0, 1, 0, 3, 4];
        [&[0, 1][..], &ack, &[6, 0x40 | high, low, 0x40, len], &hello[from..to], &[0; 20]].concat()
    };
    let end = hello.len();
    let packets = [part(200, end), part(0, 90), part(80, 210)];
    let packets = packets.map(|frames| client_initial(1, &frames));
    let together = padded(packets.concat());
    let packets = packets.map(padded);
    for datagrams in [
        vec![(Side::Resp, &together[..])],
        packets.iter().map(|packet| (Side::Orig, &packet[..])).collect(),
    ] {
        let (names, is_over) = names_of(&datagrams);
        assert_eq!((names.sni.as_deref(), is_over), (Some("example.com"), false));
    }
}

#[test]
fn the_random_of_a_hello_is_read_without_what_came_before() {
    let hello = &bytes(CLIENT_FRAME)[4..];
    let random = hello.get(6..38).unwrap();
    for version in [1, 0x6b33_43cf] {
        let initial = client_initial(version, &bytes(CLIENT_FRAME));
        assert_eq!(crate::client_random(&padded(initial.clone())).unwrap(), random);
        assert_eq!(crate::client_random(&initial), None, "no client begins with so little");
    }
    let part = |from: usize, to: usize| {
        let (at, len) = (u8::try_from(from).unwrap(), u8::try_from(to - from).unwrap());
        client_initial(1, &[&[6, at, 0x40, len], &hello[from..to], &[0; 20]].concat())
    };
    let shuffled = padded([part(30, 60), part(0, 30)].concat());
    assert_eq!(crate::client_random(&shuffled).unwrap(), random);
    assert_eq!(crate::client_random(&padded(part(30, 60))), None, "its beginning is elsewhere");
    assert_eq!(crate::client_random(&padded(bytes(SERVER_V1))), None);
    let mut damaged = padded(part(0, 60));
    damaged[100] ^= 1;
    assert_eq!(crate::client_random(&damaged), None);
}

#[test]
fn a_damaged_packet_says_nothing_and_tries_end() {
    let mut damaged = client_initial(1, &bytes(CLIENT_FRAME));
    *damaged.last_mut().unwrap() ^= 1;
    let damaged = padded(damaged);
    let datagrams = vec![(Side::Orig, &damaged[..]); usize::from(DERIVATION_COUNT_MAX)];
    let (names, is_over) = names_of(&datagrams);
    assert_eq!((names, is_over), (Names::default(), true));
}

#[test]
fn keys_are_derived_once_a_datagram_and_for_none_that_is_short() {
    let initial = client_initial(1, &bytes(CLIENT_FRAME));
    let (names, _) = names_of(&[(Side::Orig, &initial)]);
    assert_eq!(names, Names::default(), "a client's first datagram is not as short");
    // The first packet has another id, so that its keys do not fit the second.
    let mut other = initial.clone();
    other[6] ^= 1;
    let two = padded([&other[..], &initial].concat());
    let mut quic = Quic::default();
    let mut budget = Budget::new(ROOM, ROOM);
    let datagram = Datagram { side: Side::Orig, time_ns: 0, ports: (50000, 443), payload: &two };
    quic.read(&datagram, &mut Names::default(), &mut budget);
    assert_eq!((quic.packets, quic.derivations), (2, 1));
}
