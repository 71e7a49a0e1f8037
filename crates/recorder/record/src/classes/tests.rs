use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::selection::tests::packet;

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

#[test]
fn what_is_no_class_says_how_one_looks() {
    for text in ["", "port 443", "port 443=", "port 443=much", "port 443=12q", "=-1p"] {
        assert_eq!(text.parse::<Class>(), Err(ClassError), "{text}");
    }
    let class: Class = "tcp[13] = 2 = 64k".parse().unwrap();
    assert_eq!(class, Class { filter: "tcp[13] = 2".to_owned(), keep: Keep::Bytes(64 << 10) });
}

proptest! {
    #[test]
    fn a_class_reads_back(filter in "[a-z][a-z 0-9=]{0,20}[a-z]", kind in 0..5, amount: u32) {
        let amount = u64::from(amount);
        let keep = match kind {
            0 => Keep::All,
            1 => Keep::Bytes(amount),
            2 => Keep::Packets(amount),
            3 => Keep::Headers,
            _ => Keep::Nothing,
        };
        let class = Class { filter, keep };
        prop_assert_eq!(class.to_string().parse::<Class>(), Ok(class));
    }
}
