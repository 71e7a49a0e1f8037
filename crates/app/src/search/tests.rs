use proptest::prelude::*;

use super::*;
use crate::values::{VALUE_COUNT_MAX, VALUE_LEN_MAX};

const ROOM: usize = 1 << 20;

/// Everything seen of a TCP session whose segments are given as (side, offset in that side's
/// stream, payload).
fn names_of(segments: &[(Side, usize, &[u8])], ports: (u16, u16)) -> Names {
    let mut budget = Budget { free_bytes: ROOM, refused: 0 };
    let (mut search, mut interest) = (None, Interest::of(Protocol::TCP));
    for &(side, offset, payload) in segments {
        let start = 0xffff_ff00_u32.wrapping_add(u32::try_from(offset).unwrap());
        let part = Segment { side, start, payload, is_truncated: false, ports };
        if !interest.is_none() {
            segment(&mut search, &mut interest, &part, &mut budget);
        }
    }
    let mut search: Box<Search> = search.unwrap_or_default();
    search.finish(&mut budget);
    assert_eq!(budget.free_bytes, ROOM, "room is given back");
    search.names
}

/// The client's bytes in pieces of `size`, in order or with neighbours exchanged.
fn in_pieces(bytes: &[u8], size: usize, exchange: bool) -> Names {
    let mut parts: Vec<_> =
        bytes.chunks(size).enumerate().map(|(at, part)| (Side::Orig, at * size, part)).collect();
    if exchange {
        parts.get_mut(1..).unwrap().chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    }
    names_of(&parts, (40000, 8443))
}

fn vector16(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &vector16(body)[..]].concat()
}

fn hello(kind: u8, middle: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0], middle, &vector16(&extensions.concat())].concat();
    let [_, a, b, c] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, a, b, c][..], &body].concat()
}

/// The message in records of at most `size` bytes.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|part| [&[22, 3, 1][..], &vector16(part)].concat()).collect()
}

fn client_hello() -> Vec<u8> {
    let name = [&[0][..], &vector16(b"www.example.com")].concat();
    hello(
        1,
        &[&vector16(&[0x13, 1])[..], &[1, 0]].concat(),
        &[
            extension(0x0a0a, &[]),
            extension(0, &vector16(&name)),
            extension(16, &vector16(b"\x02h2\x08http/1.1")),
            extension(43, &[6, 0x7a, 0x7a, 3, 4, 3, 3]),
        ],
    )
}

fn server_hello(version: u8) -> Vec<u8> {
    let extensions = if version == 4 { vec![extension(43, &[3, 4])] } else { Vec::new() };
    hello(2, &[0x13, 1, 0], &extensions)
}

#[test]
fn a_client_hello_is_read_over_any_records_and_segments() {
    for record_size in [7, 100, 1000] {
        let bytes = records(&client_hello(), record_size);
        for size in [4, 5, 60, 1460] {
            for exchange in [false, true] {
                let names = in_pieces(&bytes, size, exchange && size < bytes.len());
                let told = (record_size, size, exchange);
                assert_eq!(names.sni.as_deref(), Some("www.example.com"), "{told:?}");
                assert_eq!(names.alpn, ["h2", "http/1.1"], "{told:?}");
                assert_eq!((names.tls_version, names.app), (Some(0x0304), Some("tls")), "{told:?}");
            }
        }
    }
}

#[test]
fn the_version_is_the_one_the_server_chose() {
    let client = records(&client_hello(), 1000);
    for (minor, version) in [(3, 0x0303), (4, 0x0304)] {
        let server = records(&server_hello(minor), 1000);
        let names = [(Side::Orig, 0, &client[..]), (Side::Resp, 0, &server[..])];
        assert_eq!(names_of(&names, (1, 2)).tls_version, Some(version));
        let reversed = [(Side::Resp, 0, &server[..]), (Side::Orig, 0, &client[..])];
        assert_eq!(names_of(&reversed, (1, 2)).tls_version, Some(version));
    }
}

#[test]
fn a_cut_client_hello_gives_what_it_shows() {
    let bytes = records(&client_hello(), 1000);
    let names = names_of(&[(Side::Orig, 0, &bytes[..bytes.len() - 12])], (1, 2));
    assert_eq!(names.sni.as_deref(), Some("www.example.com"));
}

#[test]
fn http_heads_are_read_wherever_a_segment_begins_with_one() {
    let request = b"GET /a?b=c HTTP/1.1\r\nHost: one.example\r\nUser-Agent: curl/8\r\n\r\n";
    let pipelined = [&request[..], b"HEAD /d HTTP/1.1\nhost:two.example\n\n"].concat();
    let response = b"HTTP/1.1 304 Not Modified\r\nX: y\r\n\r\n";
    let binary = [0_u8; 20];
    let segments = [
        (Side::Orig, 0, &binary[..]),
        (Side::Orig, 20, &pipelined[..]),
        (Side::Resp, 0, &response[..]),
        (Side::Resp, 1000, b"HTTP/1.0 200 OK\r\n\r\n"),
    ];
    let names = names_of(&segments, (50000, 8081));
    assert_eq!(names.app, Some("http"));
    assert_eq!(names.http_host, ["one.example", "two.example"]);
    assert_eq!(names.http_method, ["GET", "HEAD"]);
    assert_eq!(names.http_path, ["/a?b=c", "/d"]);
    assert_eq!(names.http_status, [304, 200]);
    assert_eq!(names.http_user_agent, ["curl/8"]);
    for size in [1, 3, 40] {
        assert_eq!(in_pieces(request, size, false).http_host, ["one.example"], "{size}");
    }
}

#[test]
fn text_that_only_begins_like_http_is_left_alone() {
    for text in ["GET lost\r\n\r\n", "GETTING HTTP/1.1\r\n\r\n", "HELO mail.example\r\n"] {
        assert_eq!(in_pieces(text.as_bytes(), 1000, false), Names::default(), "{text}");
    }
}

#[test]
fn lists_and_values_are_bounded() {
    let requests: String = (0..40)
        .fold(String::new(), |all, n| format!("{all}GET /{n}{} HTTP/1.1\r\n\r\n", "x".repeat(300)));
    let names = names_of(&[(Side::Orig, 0, requests.as_bytes())], (1, 2));
    assert_eq!(names.http_path.len(), VALUE_COUNT_MAX);
    assert!(names.http_path.iter().all(|path| path.len() == VALUE_LEN_MAX));
}

#[test]
fn a_message_without_room_is_given_up_and_counted() {
    let mut budget = Budget { free_bytes: 10, refused: 0 };
    let (mut search, mut interest) = (None, Interest::of(Protocol::TCP));
    let payload = b"GET /a HTTP/1.1\r\nHost:";
    let side = Side::Orig;
    let part = Segment { side, start: 0, payload, is_truncated: false, ports: (1, 2) };
    segment(&mut search, &mut interest, &part, &mut budget);
    assert_eq!((budget.free_bytes, budget.refused), (10, 1));
}

/// Example.COM asked for by A, answered by an alias and two addresses, with a compressed name in
/// each.
const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\x07Example\x03COM\0\0\x01\0\x01\
    \xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03web\xc0\x14\
    \xc0\x29\0\x01\0\x01\0\0\0\x3c\0\x04\x5d\xb8\xd8\x22\
    \xc0\x29\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";

fn datagrams(payloads: &[&[u8]], ports: (u16, u16)) -> Names {
    let (mut search, mut interest) = (None, Interest::of(Protocol::UDP));
    for payload in payloads {
        datagram(&mut search, &mut interest, ports, payload);
    }
    search.unwrap_or_default().names
}

#[test]
fn dns_names_types_codes_and_answers_are_kept() {
    let question = [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &ANSWER[12..29]].concat();
    for names in [
        datagrams(&[&question, ANSWER], (5000, 53)),
        datagrams(&[&question, ANSWER], (5000, 5000)),
        {
            let message = vector16(ANSWER);
            let (length, rest) = message.split_at(2);
            names_of(&[(Side::Resp, 0, length), (Side::Resp, 2, rest)], (5000, 53))
        },
        names_of(&[(Side::Resp, 0, &vector16(ANSWER))], (5000, 5001)),
    ] {
        assert_eq!(names.app, Some("dns"));
        assert_eq!(
            (&names.dns_names[..], &names.dns_types[..]),
            (&["Example.COM".into()][..], &[1][..])
        );
        assert_eq!(names.dns_rcodes, [0]);
        assert_eq!(names.dns_answers, ["web.COM", "93.184.216.34", "2001:db8::1"]);
    }
}

#[test]
fn labels_that_are_no_text_are_escaped_and_the_root_is_a_dot() {
    let ask = |name: &[u8]| {
        let header = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        datagrams(&[&[&header, name, &[0, 2, 0, 1]].concat()], (1, 53)).dns_names
    };
    assert_eq!(ask(b"\0"), ["."]);
    assert_eq!(ask(b"\x03a.\xff\0"), ["a\\046\\255"]);
    assert_eq!(ask("\x06m\u{fc}ll!\0".as_bytes()), ["m\u{fc}ll!"]);
    assert_eq!(ask(b"\xc0\x0c\0"), [""; 0], "a name that points to itself");
}

#[test]
fn other_datagrams_are_given_up_after_a_few() {
    let (mut search, mut interest) = (None, Interest::of(Protocol::UDP));
    for _ in 0..ATTEMPT_COUNT_MAX {
        assert!(!interest.is_none());
        datagram(&mut search, &mut interest, (4000, 4001), &[0x55; 100]);
    }
    assert!(interest.is_none() && search.is_none());
}

proptest! {
    #[test]
    fn arbitrary_payload_never_panics_and_gives_its_room_back(
        segments in prop::collection::vec(
            (
                any::<bool>(),
                0_usize..3000,
                prop::sample::select(vec![&[22, 3, 1][..], b"GET ", b"HTTP/1.1 ", &[0, 40], &[]]),
                prop::collection::vec(any::<u8>(), 0..600),
            ),
            0..30,
        ),
        is_dns_port: bool,
    ) {
        let payloads: Vec<Vec<u8>> =
            segments.iter().map(|(_, _, start, rest)| [start, &rest[..]].concat()).collect();
        let side = |is_orig| if is_orig { Side::Orig } else { Side::Resp };
        let parts: Vec<_> = segments
            .iter()
            .zip(&payloads)
            .map(|(part, payload)| (side(part.0), part.1, &payload[..]))
            .collect();
        let ports = (1, if is_dns_port { 53 } else { 2 });
        names_of(&parts, ports);
        datagrams(&payloads.iter().map(|payload| &payload[..]).collect::<Vec<_>>(), ports);
    }

    #[test]
    fn a_damaged_dns_answer_never_panics(at in 0_usize..100, byte: u8, len in 0_usize..110) {
        let mut message = ANSWER.to_vec();
        if let Some(place) = message.get_mut(at) {
            *place = byte;
        }
        message.truncate(len);
        datagrams(&[&message], (1, 53));
        datagrams(&[&message], (1, 2));
    }
}
