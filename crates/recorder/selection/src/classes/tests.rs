use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::tests::packet;

fn classes(texts: &[&str]) -> Classes {
    let classes: Vec<Class> = texts.iter().map(|text| text.parse().unwrap()).collect();
    Classes::new(&classes, false).unwrap()
}

/// Ethernet, IPv4 and UDP or TCP with as much payload.
fn frame(proto: u8, (from, to): ((u8, u16), (u8, u16)), flags: u8, payload: usize) -> Vec<u8> {
    let header = if proto == 6 { 20 } else { 8 };
    let len = u16::try_from(20 + header + payload).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(len.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
    frame.extend(Ipv4Addr::new(10, 0, 0, from.0).octets());
    frame.extend(Ipv4Addr::new(10, 0, 0, to.0).octets());
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    if proto == 6 {
        frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    } else {
        frame.extend(u16::try_from(8 + payload).unwrap().to_be_bytes());
        frame.extend([0, 0]);
    }
    frame.resize(frame.len() + payload, 7);
    frame
}

fn keep(classes: &mut Classes, bytes: &[u8], seconds: i64) -> Kept {
    classes.keep(LinkType::ETHERNET, &packet(bytes, seconds * 1_000_000_000))
}

const THERE: ((u8, u16), (u8, u16)) = ((1, 4000), (2, 443));
const BACK: ((u8, u16), (u8, u16)) = ((2, 443), (1, 4000));

#[test]
fn a_session_is_kept_up_to_its_cutoff_and_both_directions_count() {
    let mut classes = classes(&["port 443=300"]);
    let (there, back) = (frame(17, THERE, 0, 58), frame(17, BACK, 0, 58));
    assert_eq!(there.len(), 100);
    let kept: Vec<Kept> =
        (0..5).map(|n| keep(&mut classes, if n % 2 == 0 { &there } else { &back }, n)).collect();
    assert_eq!(kept, [Kept::Whole, Kept::Whole, Kept::Whole, Kept::Nothing, Kept::Nothing]);
    // Another session, and one of no class.
    assert_eq!(keep(&mut classes, &frame(17, ((3, 1), (2, 443)), 0, 58), 6), Kept::Whole);
    assert_eq!(keep(&mut classes, &frame(17, ((1, 4000), (2, 80)), 0, 5000), 6), Kept::Whole);
}

#[test]
fn a_new_connection_on_the_same_ports_begins_anew() {
    let mut classes = classes(&["tcp=2p"]);
    let (syn, data) = (frame(6, THERE, SYN, 0), frame(6, THERE, ACK, 10));
    let kept: Vec<Kept> =
        [&syn, &data, &data, &syn, &data, &data].map(|bytes| keep(&mut classes, bytes, 1)).into();
    let once = [Kept::Whole, Kept::Whole, Kept::Nothing];
    assert_eq!(kept, [once, once].concat());
}

#[test]
fn who_is_forgotten_begins_anew_and_who_goes_on_is_not_forgotten() {
    let mut classes = classes(&["=1p"]);
    let (busy, silent) = (frame(17, THERE, 0, 5), frame(17, ((5, 1), (6, 1)), 0, 5));
    assert_eq!(keep(&mut classes, &busy, 0), Kept::Whole);
    assert_eq!(keep(&mut classes, &silent, 0), Kept::Whole);
    for seconds in (100..1200).step_by(100) {
        assert_eq!(keep(&mut classes, &busy, seconds), Kept::Nothing);
    }
    assert_eq!(keep(&mut classes, &silent, 1200), Kept::Whole);
}

#[test]
fn headers_end_where_payload_begins_and_the_first_class_decides() {
    let mut classes = classes(&["host 10.0.0.9=nothing", "udp=headers", "=all"]);
    assert_eq!(keep(&mut classes, &frame(17, THERE, 0, 500), 0), Kept::First(42));
    assert_eq!(keep(&mut classes, &frame(17, THERE, 0, 0), 0), Kept::Whole);
    assert_eq!(keep(&mut classes, &frame(6, THERE, ACK, 500), 0), Kept::Whole);
    assert_eq!(keep(&mut classes, &frame(17, ((9, 1), (2, 2)), 0, 500), 0), Kept::Nothing);
    // A protocol whose header is not known does not give away what follows.
    let mut classes = self::classes(&["=headers"]);
    assert_eq!(keep(&mut classes, &frame(250, THERE, 0, 500), 0), Kept::First(64));
}

#[test]
fn a_tag_that_was_taken_out_is_seen_by_filters_and_headers() {
    let mut classes = classes(&["vlan 7=headers"]);
    let whole = frame(17, THERE, 0, 500);
    let (head, tail) = whole.split_at(12);
    let tagged = Packet { head, tail, tag: Some([0x81, 0, 0, 7]), ..packet(&whole, 0) };
    let tagged = Packet { original_len: tagged.original_len + 4, ..tagged };
    assert_eq!(classes.keep(LinkType::ETHERNET, &tagged), Kept::First(46));
    assert_eq!(keep(&mut classes, &whole, 0), Kept::Whole);
}

/// The same with this payload, of the sequence number `seq` where it is TCP.
fn carrying(proto: u8, ends: ((u8, u16), (u8, u16)), seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame(proto, ends, ACK, payload.len());
    let begin = frame.len() - payload.len();
    frame[begin..].copy_from_slice(payload);
    if proto == 6 {
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
    }
    frame
}

/// A record of TLS with so many bytes.
fn record_of(kind: u8, message: u8, len: u16) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3];
    bytes.extend(len.to_be_bytes());
    bytes.resize(5 + usize::from(len), 9);
    bytes[5] = message;
    bytes
}

#[test]
fn of_tls_the_handshake_is_kept_whole_and_behind_it_headers() {
    const HEADERS: Kept = Kept::First(54);
    let mut classes = classes(&["=handshake"]);
    let mut keep =
        |ends, seq: u32, payload: &[u8]| keep(&mut classes, &carrying(6, ends, seq, payload), 1);
    let (hello, data) = (record_of(22, 1, 400), record_of(23, 0, 300));
    let start = u32::MAX - 100;
    assert_eq!(keep(THERE, start, &hello), Kept::Whole);
    // The answer and, behind it in the same segment, what is encrypted already.
    let answer = [record_of(22, 2, 90), record_of(20, 1, 1), data.clone()].concat();
    assert_eq!(keep(BACK, 5000, &answer), Kept::Whole);
    assert_eq!(keep(BACK, 5407, b"any bytes of its rest"), HEADERS);
    // Sent again, or come late.
    assert_eq!(keep(BACK, 5000, &answer), Kept::Whole);
    assert_eq!(keep(THERE, start.wrapping_add(405), &record_of(20, 1, 1)), Kept::Whole);
    assert_eq!(keep(THERE, start.wrapping_add(411), &data), HEADERS);
    assert_eq!(keep(THERE, start.wrapping_add(400), &record_of(20, 1, 1)), Kept::Whole);
    assert_eq!(keep(THERE, start.wrapping_add(716), &[]), Kept::Whole, "no payload");
    // Far more bytes than there are sequence numbers.
    let mut seq = start.wrapping_add(716);
    for _ in 0..40 {
        seq = seq.wrapping_add(1 << 28);
        assert_eq!(keep(THERE, seq, &data), HEADERS, "{seq}");
    }
}

#[test]
fn what_did_not_greet_is_kept_whole() {
    let mut classes = classes(&["=handshake"]);
    let data = record_of(23, 0, 300);
    let mut keep = |payload: &[u8]| keep(&mut classes, &carrying(6, THERE, 1, payload), 1);
    // Its beginning was not seen, or it is something else.
    for payload in [&data, &record_of(22, 11, 300), &b"GET / HTTP/1.1".to_vec(), &data] {
        assert_eq!(keep(payload), Kept::Whole);
    }
    // A hello behind a line in clear, as after STARTTLS.
    assert_eq!(keep(&record_of(22, 1, 300)), Kept::Whole);
    assert_eq!(keep(&data), Kept::First(54));
    // A new connection on the same ports.
    let syn = frame(6, THERE, SYN, 0);
    assert_eq!(self::keep(&mut classes, &syn, 2), Kept::Whole);
    assert_eq!(self::keep(&mut classes, &carrying(6, THERE, 1, &data), 2), Kept::Whole);
}

#[test]
fn of_quic_long_headers_are_kept_whole_and_short_ones_without_payload() {
    let mut classes = classes(&["=handshake"]);
    let mut keep = |ends, payload: &[u8]| keep(&mut classes, &carrying(17, ends, 0, payload), 1);
    let (long, short) = ([0xc3, 0, 0, 0, 1, 8, 7, 7, 7], [0x43, 7, 7, 7, 7, 7, 7]);
    assert_eq!(keep(THERE, &short), Kept::Whole, "not known to be QUIC");
    assert_eq!(keep(THERE, &long), Kept::Whole);
    assert_eq!(keep(THERE, &short), Kept::First(42));
    assert_eq!(keep(BACK, &short), Kept::Whole, "that end has said nothing");
    assert_eq!(keep(BACK, &long), Kept::Whole);
    assert_eq!(keep(BACK, &short), Kept::First(42));
    let unknown = [0xc3, 0x51, 0x30, 0x34, 0x36, 8, 7];
    assert_eq!(
        self::keep(&mut classes, &carrying(17, ((3, 1), (4, 1)), 0, &unknown), 1),
        Kept::Whole
    );
}

#[test]
fn what_is_no_class_says_how_one_looks() {
    for text in ["", "port 443", "port 443=", "port 443=much", "port 443=12q", "=-1p"] {
        assert_eq!(text.parse::<Class>(), Err(ClassError), "{text}");
    }
    let class: Class = "tcp[13] = 2 = 64k".parse().unwrap();
    assert_eq!(class, Class { filter: "tcp[13] = 2".to_owned(), keep: Keep::Bytes(64 << 10) });
}

proptest! {
    /// Whatever is sent, a packet is cut at its payload or not at all.
    #[test]
    fn any_payload_is_kept_whole_or_not(
        packets in prop::collection::vec(
            (any::<bool>(), any::<bool>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..30)),
            1..20,
        ),
    ) {
        let mut classes = classes(&["=handshake"]);
        for (is_tcp, is_back, seq, payload) in packets {
            let (proto, header) = if is_tcp { (6, 54) } else { (17, 42) };
            let ends = if is_back { BACK } else { THERE };
            let kept = keep(&mut classes, &carrying(proto, ends, seq, &payload), 1);
            prop_assert!([Kept::Whole, Kept::First(header)].contains(&kept), "{:?}", kept);
        }
    }

    #[test]
    fn a_class_reads_back(filter in "[a-z][a-z 0-9=]{0,20}[a-z]", kind in 0..6, amount: u32) {
        let amount = u64::from(amount);
        let keep = match kind {
            0 => Keep::All,
            1 => Keep::Bytes(amount),
            2 => Keep::Packets(amount),
            3 => Keep::Headers,
            4 => Keep::Handshake,
            _ => Keep::Nothing,
        };
        let class = Class { filter, keep };
        prop_assert_eq!(class.to_string().parse::<Class>(), Ok(class));
    }
}
