//! Against captures and their tables, which were made by tools that know nothing of this crate.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop at once, and its counts are the result"
)]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::net::IpAddr;

use testdata::Corpus;
use wire::{Address, CommunityId, FiveTuple, LinkType, Protocol, decode};

/// The rows of a table, each by its column names.
fn table(text: &str) -> impl Iterator<Item = HashMap<&str, &str>> {
    let (head, rows) = text.split_once('\n').expect("a table has a head");
    let names: Vec<_> = head.split('\t').collect();
    rows.lines().map(move |row| names.iter().copied().zip(row.split('\t')).collect())
}

/// The pair of a row. None where the row is not about IP.
fn tuple(row: &HashMap<&str, &str>) -> Option<FiveTuple> {
    let address = |name| row[name].parse::<IpAddr>().map(Address::from).ok();
    let port = |name| row[name].parse().unwrap_or(0);
    Some(FiveTuple {
        orig: address("ip_a")?,
        resp: address("ip_b")?,
        orig_port: port("port_a"),
        resp_port: port("port_b"),
        proto: Protocol(row["proto"].parse().ok()?),
    })
}

#[test]
fn community_ids_equal_the_reference_implementations() {
    Corpus::all().iter().for_each(check_community_ids);
}

fn check_community_ids(corpus: &Corpus) {
    let text = fs::read_to_string(corpus.path().join("ref/community_id.tsv")).unwrap();
    let mut checked = 0;
    for row in table(&text).filter(|row| row["agree"] == "y") {
        let icmp = row["icmp"].split(' ').next().and_then(|first| {
            let (kind, code) = first.split_once('/')?;
            Some((kind.parse().ok()?, code.parse().ok()?))
        });
        let id = CommunityId::of(&tuple(&row).expect("rows are about IP"), icmp);
        let id = id.expect("IP has an id").0;
        assert!(row["pycommunityid"].split(',').any(|known| known == id), "{row:?}: {id}");
        checked += 1;
    }
    assert!(checked > if corpus.is_large { 5000 } else { 400 }, "only {checked} rows");
}

/// The packets of a classic pcap file: link type, original length, bytes. None for other formats.
fn classic(bytes: &[u8]) -> Option<impl Iterator<Item = (LinkType, u32, &[u8])>> {
    let swapped = match bytes.first_chunk()? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => true,
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => false,
        _ => return None,
    };
    let number = move |bytes: &[u8], at: usize| {
        let field = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if swapped { u32::from_le_bytes(field) } else { u32::from_be_bytes(field) })
    };
    // The upper half of the field is about frame check sequences.
    let link_type = LinkType(u16::try_from(number(bytes, 20)? & 0xffff).ok()?);
    let mut records = bytes.get(24..)?;
    Some(std::iter::from_fn(move || {
        let captured_len = usize::try_from(number(records, 8)?).ok()?;
        let original_len = number(records, 12)?;
        let (packet, after) = records.get(16..)?.split_at_checked(captured_len)?;
        records = after;
        Some((link_type, original_len, packet))
    }))
}

/// The frame numbers of a row: `1-4,9`.
fn frames(text: &str) -> impl Iterator<Item = usize> {
    let number = |digits: &str| digits.parse().expect("frames are numbers");
    text.split(',').filter(|part| !part.is_empty()).flat_map(move |part| {
        let (from, through) = part.split_once('-').unwrap_or((part, part));
        number(from)..=number(through)
    })
}

/// Packets that the reference reads through what is not decoded here.
fn is_known_difference(file: &str, proto: Protocol) -> bool {
    // IPComp: the reference decompresses.
    const IPCOMP: Protocol = Protocol(108);
    file == "libpcap/AH-IPcomp-IPv6.pcap" && proto == IPCOMP
}

#[test]
fn every_packet_falls_into_the_session_of_the_reference() {
    Corpus::all().iter().for_each(check_every_packet);
}

fn check_every_packet(corpus: &Corpus) {
    let text = fs::read_to_string(corpus.path().join("ref/tshark_sessions.tsv")).unwrap();
    let mut sessions: BTreeMap<&str, HashMap<usize, FiveTuple>> = BTreeMap::new();
    for row in table(&text) {
        if let Some(tuple) = tuple(&row) {
            let file = sessions.entry(row["file"]).or_default();
            file.extend(frames(row["frames"]).map(|frame| (frame, tuple.canonical().0)));
        }
    }
    let (mut checked, mut fragments) = (0, 0);
    for (file, expected) in sessions {
        let Ok(bytes) = fs::read(corpus.path().join("pcap").join(file)) else { continue };
        let Some(packets) = classic(&bytes) else { continue };
        for (number, (link_type, original_len, packet)) in (1..).zip(packets) {
            let Some(expected) = expected.get(&number) else { continue };
            let decoded = decode(link_type, packet, original_len);
            // The reference gives a datagram to its last fragment, which needs state.
            if decoded.fragment.is_some() {
                fragments += 1;
            } else if !is_known_difference(file, decoded.tuple.proto) {
                assert_eq!(decoded.tuple.canonical().0, *expected, "{file}, frame {number}");
                checked += 1;
            }
        }
    }
    println!("{checked} packets checked, {fragments} fragments not");
    assert!(checked > if corpus.is_large { 80_000 } else { 3000 } && fragments < checked / 100);
}
