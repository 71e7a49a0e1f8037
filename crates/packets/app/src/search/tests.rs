use proptest::prelude::*;
use wire::App;

use super::*;
use crate::datagram::datagram;
use crate::dns;
use crate::findings::Findings;
use crate::payload::Datagram;
use crate::segment::segment;
use crate::values::{VALUE_COUNT_MAX, VALUE_LEN_MAX};

const ROOM: usize = 1 << 20;

fn rooms(budget: &Budget) -> [usize; 2] {
    [budget.heads.free_bytes, budget.names.free_bytes]
}

/// Everything seen of a TCP session whose segments are given as (side, offset in that side's
/// stream, payload).
fn names_of(segments: &[(Side, usize, &[u8])], ports: (u16, u16)) -> Names {
    let mut budget = Budget::new(ROOM, ROOM);
    let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::TCP));
    let mut seen: [Vec<(usize, usize)>; 2] = [Vec::new(), Vec::new()];
    for (time_ns, &(side, offset, payload)) in (0..).zip(segments) {
        let start = 0xffff_ff00_u32.wrapping_add(u32::try_from(offset).unwrap());
        let seen = side.of(&mut seen);
        let mut first_missing = 0;
        while let Some((_, end)) =
            seen.iter().find(|(start, end)| (*start..*end).contains(&first_missing))
        {
            first_missing = *end;
        }
        let is_ahead = offset > first_missing;
        seen.push((offset, offset + payload.len()));
        let part = Segment { side, time_ns, start, payload, is_truncated: false, is_ahead, ports };
        if !interest.is_none() {
            segment(&mut findings, &mut interest, &part, &mut budget);
        }
    }
    findings.finish(&mut budget);
    assert_eq!(rooms(&budget), [ROOM; 2], "space is given back");
    findings.take().map_or(Names::NONE, |names| names.unpack())
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
                assert_eq!(
                    (names.tls_version, names.app),
                    (Some(0x0304), Some(App::Tls)),
                    "{told:?}"
                );
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
    assert_eq!(names.app, Some(App::Http));
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
fn any_token_before_a_target_and_a_version_is_a_method() {
    let methods = ["RPC_IN_DATA", "RPC_OUT_DATA", "PROPFIND", "VERSION-CONTROL", "BREW", "X!y.z"];
    for method in methods.into_iter().chain(["SSTP_DUPLEX_POST", "get", "CCM_POST"]) {
        let request =
            format!("{method} /rpc/rpcproxy.dll?a:593 HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let names = in_pieces(request.as_bytes(), 1000, false);
        assert_eq!(
            (names.app, &names.http_method[..]),
            (Some(App::Http), &[method.to_owned()][..])
        );
        assert_eq!(names.http_host, ["a.example"]);
    }
    // A target longer than a segment.
    for method in ["RPC_IN_DATA", "PROPFIND", "MKCOL"] {
        let target = "x".repeat(2000);
        let request = format!("{method} /{target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(in_pieces(request.as_bytes(), 500, false).http_host, ["a.example"], "{method}");
    }
    for version in ["HTTP/0.9", "HTTP/1.0", "HTTP/2"] {
        let request = format!("GET /a {version}\r\nHost: a.example\r\n\r\n");
        assert_eq!(in_pieces(request.as_bytes(), 1000, false).http_host, ["a.example"]);
    }
}

#[test]
fn a_request_without_a_version_is_one_on_its_port_or_before_a_page() {
    let request = (Side::Orig, 0, &b"GET /a.html\r\n"[..]);
    let on_port = names_of(&[request], (40000, 80));
    assert_eq!(
        (on_port.app, &on_port.http_path[..]),
        (Some(App::Http), &["/a.html".to_owned()][..])
    );
    assert_eq!(on_port.http_method, ["GET"]);
    let page = (Side::Resp, 0, &b"\r\n<!DOCTYPE HTML><p>"[..]);
    assert_eq!(names_of(&[request, page], (40000, 7000)).http_path, ["/a.html"]);
    for other in [&b"$5\r\nvalue\r\n"[..], b"<?xml ?>", b"ERR", b"+OK"] {
        let names = names_of(&[request, (Side::Resp, 0, other)], (40000, 6379));
        assert_eq!(names, Names::default());
    }
    assert_eq!(names_of(&[request], (40000, 6379)), Names::default());
    // A page later says nothing.
    let late = [request, (Side::Resp, 0, b"+OK"), (Side::Resp, 3, b"<html>")];
    assert_eq!(names_of(&late, (40000, 6379)), Names::default());
    // Not a target, more than a line, another method, a version cut off.
    for text in ["GET key\r\n", "GET /a\r\nGET /b\r\n", "PUT /a\r\n", "GET /a HTT\r\n", "GET /a"] {
        let segments = [(Side::Orig, 0, text.as_bytes()), page];
        assert_eq!(names_of(&segments, (40000, 80)), Names::default(), "{text}");
    }
}

#[test]
fn text_that_only_begins_like_http_is_left_alone() {
    let prose = "the /usr/bin way\r\n";
    for text in ["GET lost\r\n\r\n", "GETTING HTTP/1.1\r\n\r\n", "HELO mail.example\r\n", prose] {
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
    let mut budget = Budget::new(10, ROOM);
    let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::TCP));
    let payload = b"GET /a HTTP/1.1\r\nHost:";
    let side = Side::Orig;
    let part = Segment {
        side,
        time_ns: 0,
        start: 0,
        payload,
        is_truncated: false,
        is_ahead: false,
        ports: (1, 2),
    };
    segment(&mut findings, &mut interest, &part, &mut budget);
    assert_eq!((budget.heads.free_bytes, budget.heads.refused), (10, 1));
}

/// Example.COM asked for by A, answered by an alias and two addresses, with a compressed name in
/// each.
const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\x07Example\x03COM\0\0\x01\0\x01\
    \xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03web\xc0\x14\
    \xc0\x29\0\x01\0\x01\0\0\0\x3c\0\x04\x5d\xb8\xd8\x22\
    \xc0\x29\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";

fn datagrams(payloads: &[&[u8]], ports: (u16, u16)) -> Names {
    let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::UDP));
    let mut budget = Budget::new(ROOM, ROOM);
    for (time_ns, payload) in (0..).zip(payloads) {
        let side = if time_ns % 2 == 0 { Side::Orig } else { Side::Resp };
        let part = Datagram { side, time_ns: 1000 * time_ns, ports, payload };
        if !interest.is_none() {
            datagram(&mut findings, &mut interest, &part, &mut budget);
        }
    }
    findings.finish(&mut budget);
    assert_eq!(rooms(&budget), [ROOM; 2], "space is given back");
    findings.take().map_or(Names::NONE, |names| names.unpack())
}

#[test]
fn a_session_that_speaks_something_else_on_the_port_of_dns_is_given_up() {
    let garbage = [0xff; 40];
    let ports = (4000, dns::PORT);
    let mut payloads = vec![&garbage[..]; usize::from(ATTEMPT_COUNT_MAX) - 1];
    payloads.push(ANSWER);
    assert!(!datagrams(&payloads, ports).dns_names.is_empty(), "there was patience left");
    payloads.insert(0, &garbage);
    assert_eq!(datagrams(&payloads, ports), Names::default());
    let readable = vec![ANSWER; 30];
    assert!(!datagrams(&readable, ports).dns_names.is_empty());
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
        assert_eq!(names.app, Some(App::Dns));
        assert_eq!(
            (&names.dns_names[..], &names.dns_types[..]),
            (&["Example.COM".into()][..], &[1][..])
        );
        assert_eq!(names.dns_rcodes, [0]);
        assert_eq!(names.dns_answers, ["web.COM", "93.184.216.34", "2001:db8::1"]);
    }
}

#[test]
fn a_name_asked_for_is_also_kept_as_an_answer() {
    let pointer = b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x03web\0\0\x0c\0\x01\
        \xc0\x0c\0\x0c\0\x01\0\0\0\x3c\0\x02\xc0\x0c";
    let names = datagrams(&[pointer], (1, 53));
    assert_eq!((names.dns_names, names.dns_answers), (vec!["web".into()], vec!["web".into()]));
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
    let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::UDP));
    for _ in 0..ATTEMPT_COUNT_MAX {
        assert!(!interest.is_none());
        let (ports, payload) = ((4000, 4001), &[0x55; 100][..]);
        let part = Datagram { side: Side::Orig, time_ns: 0, ports, payload };
        let mut budget = Budget::new(ROOM, ROOM);
        datagram(&mut findings, &mut interest, &part, &mut budget);
    }
    assert!(interest.is_none() && matches!(findings, Findings::Nothing));
}

const BEGINNINGS: &[&[u8]] = &[
    &[22, 3, 1],
    &[22, 3, 3, 1, 0, 2, 0, 0, 60, 3, 3],
    b"GET ",
    b"HTTP/1.1 ",
    b"SSH-2.0-x\r\n\0\0\0\x40\x04\x14",
    b"220 FTP\r\n",
    b"EHLO ",
    &[0, 40],
    &[0, 0, 0, 90, 0xfe, b'S', b'M', b'B', 0, 0, 0, 0],
    &[0, 0, 0, 90, 0xff, b'S', b'M', b'B', 0x75],
    &[3, 0, 0, 40, 35, 0xe0],
    &[0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0, 0x40, 0x90],
    &[],
];

proptest! {
    #[test]
    fn arbitrary_payload_never_panics_and_gives_its_room_back(
        segments in prop::collection::vec(
            (
                any::<bool>(),
                0_usize..3000,
                prop::sample::select(BEGINNINGS),
                prop::collection::vec(any::<u8>(), 0..600),
            ),
            0..30,
        ),
        port in prop::sample::select(&[53_u16, 2, 502, 123][..]),
    ) {
        let payloads: Vec<Vec<u8>> =
            segments.iter().map(|(_, _, start, rest)| [start, &rest[..]].concat()).collect();
        let side = |is_orig| if is_orig { Side::Orig } else { Side::Resp };
        let parts: Vec<_> = segments
            .iter()
            .zip(&payloads)
            .map(|(part, payload)| (side(part.0), part.1, &payload[..]))
            .collect();
        let ports = (1, port);
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

fn details(names: &Names) -> Vec<&str> {
    names.app_detail.iter().map(String::as_str).collect()
}

#[test]
fn a_segment_that_overtook_the_beginning_is_waited_for() {
    let bytes = records(&client_hello(), 1000);
    let (first, rest) = bytes.split_at(60);
    let (second, third) = rest.split_at(20);
    for segments in [
        vec![(Side::Orig, 80, third), (Side::Orig, 60, second), (Side::Orig, 0, first)],
        vec![(Side::Orig, 60, second), (Side::Orig, 0, first), (Side::Orig, 80, third)],
    ] {
        assert_eq!(names_of(&segments, (1, 2)).sni.as_deref(), Some("www.example.com"));
    }
}

#[test]
fn what_never_fits_is_not_waited_for() {
    let ahead: Vec<u8> = vec![0x55; 1400];
    let mut segments: Vec<(Side, usize, &[u8])> =
        (1..100).map(|at| (Side::Orig, at * 1400, &ahead[..])).collect();
    let request = b"GET /a HTTP/1.1\r\n\r\n";
    segments.push((Side::Orig, 500_000, request));
    assert_eq!(names_of(&segments, (1, 2)).http_path, ["/a"]);
}

#[test]
fn both_hellos_have_fingerprints_and_a_retry_is_no_answer() {
    let retry_random = tls::RETRY_RANDOM;
    let body = [&[3, 3][..], &retry_random, &[0, 0x13, 1, 0, 0, 0]].concat();
    let retry = [&[2, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat();
    let [client, retry, server] =
        [client_hello(), retry, server_hello(4)].map(|message| records(&message, 1000));
    let second = client.len();
    let segments = [
        (Side::Orig, 0, &client[..]),
        (Side::Resp, 0, &retry[..]),
        (Side::Orig, second, &client[..]),
        (Side::Resp, retry.len(), &server[..]),
    ];
    let names = names_of(&segments, (40000, 443));
    let tls = names.tls.unwrap();
    assert_eq!(tls.cipher, Some(0x1301));
    // MD5 of "771,4865,0-16-43,," and of "771,4865,43".
    assert_eq!(tls.ja3.as_deref(), Some("9cd3a3df22ead6ac1977bf836d6ea964"));
    assert_eq!(tls.ja3s.as_deref(), Some("cce84e7a8b742462e40afb585a3e3ccc"));
    assert!(tls.ja4.unwrap().starts_with("t13d0103h2_"));
}

#[test]
fn hellos_after_a_warning_or_an_answer_of_one_letter_are_read() {
    let hello = records(&server_hello(4), 1000);
    let warned = [&[21, 3, 3, 0, 2, 1, 112][..], &hello].concat();
    for segments in [
        vec![(Side::Resp, 0, &warned[..])],
        // PostgreSQL, asked for TLS, says S before it.
        vec![(Side::Resp, 0, b"S"), (Side::Resp, 1, &hello[..])],
    ] {
        let names = names_of(&segments, (40000, 5432));
        assert_eq!(names.tls.unwrap().cipher, Some(0x1301), "{segments:?}");
    }
}

#[test]
fn a_hello_that_was_cut_has_no_fingerprint() {
    let bytes = records(&client_hello(), 1000);
    let names = names_of(&[(Side::Orig, 0, &bytes[..bytes.len() - 12])], (1, 2));
    assert_eq!(names.tls, None);
}

fn ssh_offer(lists: &[&str]) -> Vec<u8> {
    let mut body = vec![4, 20];
    body.extend([7; 16]);
    for list in lists {
        body.extend(u32::try_from(list.len()).unwrap().to_be_bytes());
        body.extend(list.as_bytes());
    }
    body.extend([0; 13]);
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), &body[..]].concat()
}

#[test]
fn ssh_lines_and_offers_are_read_of_both_sides() {
    let offer =
        ssh_offer(&["kex", "key", "to-server", "to-client", "mac-up", "mac-down", "zip", "none"]);
    let client = [b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", &offer[..]].concat();
    let server = [b"SSH-2.0-Go\r\n", &offer[..]].concat();
    for size in [5, 40, 2000] {
        let parts = |side, bytes| {
            let parts = <[u8]>::chunks(bytes, size).enumerate();
            parts.map(move |(at, part)| (side, at * size, part)).collect::<Vec<_>>()
        };
        let segments = [parts(Side::Orig, &client[..]), parts(Side::Resp, &server)].concat();
        let names = names_of(&segments, (50000, 22));
        let ssh = names.ssh.unwrap();
        assert_eq!(names.app, Some(App::Ssh));
        assert_eq!(ssh.client.as_deref(), Some("SSH-2.0-OpenSSH_9.2p1 Debian"));
        assert_eq!(ssh.server.as_deref(), Some("SSH-2.0-Go"));
        // MD5 of "kex;to-server;mac-up;zip" and of "kex;to-client;mac-down;none".
        assert_eq!(ssh.hassh.as_deref(), Some("371c7129372802b48ad9d74999e2c7dd"));
        assert_eq!(ssh.hassh_server.as_deref(), Some("03a97155d9248f86973eabeb0bf110ff"));
    }
}

#[test]
fn the_round_trip_of_dns_is_from_the_first_query_to_its_answer() {
    let question = [&ANSWER[..2], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &ANSWER[12..29]].concat();
    let mut other = ANSWER.to_vec();
    other[0] ^= 1;
    let names = datagrams(&[&question, &other, &question, ANSWER], (5000, 53));
    assert_eq!(names.dns_rtt_ns, Some(3000));
    assert_eq!(datagrams(&[&other, ANSWER], (5000, 53)).dns_rtt_ns, None);
}

#[test]
fn http_2_is_known_by_its_preface() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04";
    for size in [18, 20, 100] {
        assert_eq!(in_pieces(preface, size, false).app, Some(App::Http2), "{size}");
    }
    assert_eq!(in_pieces(&preface[..18], 100, false), Names::default());
}

#[test]
fn ftp_says_user_and_files_and_no_password() {
    let segments: [(Side, usize, &[u8]); 6] = [
        (Side::Resp, 0, b"220 files.example FTP server ready\r\n"),
        (Side::Orig, 0, b"USER joe\r\n"),
        (Side::Resp, 36, b"331 Password, please\r\n"),
        (Side::Orig, 10, b"PASS se"),
        (Side::Orig, 17, b"cret\r\nRETR /a b.txt\r\n"),
        (Side::Resp, 58, b"550 no such file\r\n"),
    ];
    let names = names_of(&segments, (40000, 21));
    assert_eq!(names.app, Some(App::Ftp));
    let expected = [
        "ftp.greeting=files.example FTP server ready",
        "ftp.user=joe",
        "ftp.command=RETR /a b.txt",
        "ftp.error=550",
    ];
    assert_eq!(details(&names), expected);
}

#[test]
fn smtp_says_the_envelope_and_nothing_of_the_mail() {
    let segments: [(Side, usize, &[u8]); 4] = [
        (Side::Resp, 0, b"220 mx.example\r\n"),
        (Side::Orig, 0, b"EHLO client.example\r\nMAIL FROM:<a@b.example> SIZE=9\r\n"),
        (Side::Orig, 54, b"RCPT TO:<c@d.example>\r\nRCPT TO:<e@f.example>\r\nDATA\r\n"),
        (Side::Orig, 106, b"RCPT TO:<quoted@mail.example>\r\n.\r\n"),
    ];
    let names = names_of(&segments, (40000, 25));
    assert_eq!(names.app, Some(App::Smtp));
    let expected = [
        "smtp.helo=client.example",
        "smtp.from=a@b.example",
        "smtp.to=c@d.example",
        "smtp.to=e@f.example",
    ];
    assert_eq!(details(&names), expected);
}

#[test]
fn rdp_says_the_cookie_and_the_protocols() {
    let request = b"\x03\0\0\x2b\x26\xe0\0\0\0\0\0Cookie: mstshash=admin\r\n\x01\0\x08\0\x0b\0\0\0";
    let confirm = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0";
    let request = [&request[..3], &[u8::try_from(request.len()).unwrap()], &request[4..]].concat();
    let names = names_of(&[(Side::Orig, 0, &request), (Side::Resp, 0, confirm)], (40000, 3389));
    assert_eq!(names.app, Some(App::Rdp));
    let expected =
        ["rdp.cookie=admin", "rdp.offered=rdp,tls,credssp,credssp-ex", "rdp.protocol=credssp"];
    assert_eq!(details(&names), expected);
    // S7 and others begin with the same two layers.
    let other = b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02";
    assert_eq!(names_of(&[(Side::Orig, 0, other)], (40000, 102)), Names::default());
}

#[test]
fn modbus_says_units_and_functions() {
    let request = b"\0\x01\0\0\0\x06\x11\x03\0\x6b\0\x03";
    let exception = b"\0\x01\0\0\0\x03\x11\x83\x02";
    let both = [&request[..], &[0, 2, 0, 0, 0, 6, 1, 16, 0, 0, 0, 1]].concat();
    let segments = [(Side::Orig, 0, &both[..]), (Side::Resp, 0, &exception[..])];
    let names = names_of(&segments, (40000, 502));
    let expected = [
        "modbus.unit=17",
        "modbus.function=3",
        "modbus.unit=1",
        "modbus.function=16",
        "modbus.exception=3:2",
    ];
    assert_eq!((names.app, details(&names)), (Some(App::Modbus), expected.to_vec()));
    assert_eq!(names_of(&segments, (40000, 503)), Names::default());
}

#[test]
fn smb_says_dialect_share_and_who_logs_on() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let message = |command: u8, flags: u8, body: &[u8]| {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(b"\xfeSMB");
        (header[12], header[16]) = (command, flags);
        let len = u32::try_from(64 + body.len()).unwrap().to_be_bytes();
        [&len[..], &header, body].concat()
    };
    let path = utf16(r"\\files\data");
    let tree = [&[9, 0, 0, 0, 72, 0, 24, 0][..], &path].concat();
    let negotiated = [65, 0, 1, 0, 0x11, 0x03, 0, 0];
    let mut logon = vec![0; 64];
    logon[..12].copy_from_slice(b"NTLMSSP\0\x03\0\0\0");
    for (place, len, at) in [(28, 4, 64), (36, 6, 68), (44, 4, 74)] {
        (logon[place], logon[place + 4]) = (len, at);
    }
    logon[60] = 1;
    logon.extend([utf16("WG"), utf16("joe"), utf16("PC")].concat());
    let requests = [message(1, 0, &logon), message(3, 0, &tree)].concat();
    let answer = message(0, 1, &negotiated);
    let names = names_of(&[(Side::Resp, 0, &answer), (Side::Orig, 0, &requests)], (40000, 445));
    let expected = [
        "smb.dialect=3.1.1",
        "smb.domain=WG",
        "smb.user=joe",
        "smb.host=PC",
        r"smb.tree=\\files\data",
    ];
    assert_eq!((names.app, details(&names)), (Some(App::Smb), expected.to_vec()));
}

#[test]
fn dhcp_and_ntp_say_who_and_what() {
    let mut dhcp = vec![0; 240];
    dhcp[0] = 1;
    dhcp[16..20].copy_from_slice(&[192, 0, 2, 7]);
    dhcp[236..240].copy_from_slice(&[99, 130, 83, 99]);
    dhcp.extend(b"\x35\x01\x03\x00\x0c\x04host\x32\x04\xc0\x00\x02\x09\xff\x0c\x01x");
    let names = datagrams(&[&dhcp], (68, 67));
    let expected = [
        "dhcp.assigned=192.0.2.7",
        "dhcp.type=request",
        "dhcp.hostname=host",
        "dhcp.requested=192.0.2.9",
    ];
    assert_eq!((names.app, details(&names)), (Some(App::Dhcp), expected.to_vec()));
    let mut ntp = [[0x23; 1].as_slice(), &[0; 47]].concat();
    let question = ntp.clone();
    (ntp[0], ntp[1]) = (0x24, 2);
    let names = datagrams(&[&question, &ntp], (123, 123));
    let expected = ["ntp.version=4", "ntp.mode=client", "ntp.mode=server", "ntp.stratum=2"];
    assert_eq!((names.app, details(&names)), (Some(App::Ntp), expected.to_vec()));
}

#[test]
fn greetings_after_the_end_of_a_dialog_are_not_counted() {
    let mut budget = Budget::new(ROOM, ROOM);
    let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::TCP));
    // The first dialog ends with an unknown command; more greetings than any counter of lines has
    // numbers follow.
    for number in 0..70_000 {
        let (side, payload) =
            if number == 1 { (Side::Orig, &b"X\n"[..]) } else { (Side::Resp, &b"220 \n"[..]) };
        let part = Segment {
            side,
            time_ns: 0,
            start: number * 5,
            payload,
            is_truncated: false,
            is_ahead: false,
            ports: (40000, 21),
        };
        segment(&mut findings, &mut interest, &part, &mut budget);
    }
    findings.finish(&mut budget);
    assert_eq!(rooms(&budget), [ROOM; 2], "space is given back");
}

#[test]
fn the_most_that_a_search_can_find_is_within_its_bound() {
    let values = || vec!["x".repeat(VALUE_LEN_MAX); VALUE_COUNT_MAX];
    let value = || Some("x".repeat(VALUE_LEN_MAX));
    let tls = wire::Tls {
        alpn_chosen: value(),
        ja3: value(),
        ja3s: value(),
        ja4: value(),
        cert_subject: value(),
        cert_issuer: value(),
        ..wire::Tls::default()
    };
    let names = Names {
        sni: value(),
        alpn: values(),
        tls: Some(Box::new(tls)),
        http_host: values(),
        http_method: values(),
        http_path: values(),
        http_status: vec![0; VALUE_COUNT_MAX],
        http_user_agent: values(),
        http_content_type: values(),
        dns_names: values(),
        dns_types: vec![0; VALUE_COUNT_MAX],
        dns_rcodes: vec![0; VALUE_COUNT_MAX],
        dns_answers: values(),
        ssh: Some(Box::new(wire::Ssh {
            client: value(),
            server: value(),
            hassh: value(),
            hassh_server: value(),
        })),
        app_detail: vec!["x".repeat(VALUE_LEN_MAX + 20); crate::values::DETAIL_COUNT_MAX],
        ..Names::default()
    };
    let search = Search { names, quic: Some(Box::default()), ..Search::default() };
    // 64 parts of each stream of QUIC wait, and 32 segments.
    let most = search.memory_bytes() + 2 * 64 * 32 + 32 * 64;
    assert!((48 << 10..SEARCH_BYTES_MAX).contains(&most), "{most}");
}

#[test]
fn without_room_for_names_nothing_is_looked_at_and_it_is_counted() {
    let mut budget = Budget::new(ROOM, SEARCH_BYTES_MAX + 5000);
    let payload = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
    let mut searches: Vec<Box<Search>> = Vec::new();
    for number in 0..10 {
        let (mut findings, mut interest) = (Findings::Nothing, Interest::of(Protocol::TCP));
        let part = Segment {
            side: Side::Orig,
            time_ns: number,
            start: 0,
            payload,
            is_truncated: false,
            is_ahead: false,
            ports: (1, 2),
        };
        segment(&mut findings, &mut interest, &part, &mut budget);
        if let Findings::Open(search) = findings {
            searches.push(search);
        }
    }
    let taken: usize = searches.iter().map(|search| search.memory_bytes()).sum();
    assert_eq!(budget.names.free_bytes, SEARCH_BYTES_MAX + 5000 - taken);
    assert!((2..9).contains(&searches.len()), "{}", searches.len());
    assert_eq!(budget.names.refused, 10 - u64::try_from(searches.len()).unwrap());
    for mut search in searches {
        search.finish(&mut budget);
    }
    assert_eq!(budget.names.free_bytes, SEARCH_BYTES_MAX + 5000, "space is given back");
}
