//! pcap-filter's words mean what they mean in libpcap: a session matches exactly if tcpdump selects
//! one of its packets.

use core::net::Ipv4Addr;
use std::io::Write;
use std::process::{Command, Stdio};

use format::session_row::SessionRow;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use query::Query;
use wire::{Address, FiveTuple, Protocol};

use crate::properties::{combined, packet_test, session};
use crate::sessions::NOW;

const QUERIES: usize = 200;
const SESSIONS: u16 = 60;

#[test]
fn a_session_matches_if_tcpdump_selects_one_of_its_packets() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("not run: tcpdump is not installed");
        return;
    }
    let mut runner = TestRunner::deterministic();
    let rows: Vec<SessionRow> =
        (0..SESSIONS).map(|_| session().new_tree(&mut runner).unwrap().current()).collect();
    let capture = capture(&rows);
    let mut selected_in_all = 0;
    for _ in 0..QUERIES {
        let text = combined(packet_test()).new_tree(&mut runner).unwrap().current().text();
        let query = Query::parse(&text, NOW).unwrap();
        let selected = tcpdump(&capture, &text);
        for (number, row) in (0..SESSIONS).zip(&rows) {
            let expected = selected.contains(&number);
            assert_eq!(query.matches(row, &[]), expected, "{text} of {:?}", row.tuple);
            selected_in_all += usize::from(expected);
        }
    }
    assert!(selected_in_all > QUERIES, "the queries select next to nothing: {selected_in_all}");
}

/// The sessions, by number, of which the filter selects packets.
fn tcpdump(capture: &[u8], filter: &str) -> Vec<u16> {
    let mut child = Command::new("tcpdump")
        // Optimised, a filter that can select nothing would be an error.
        .args(["-O", "-r", "-", "-w", "-", filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The capture fits the pipe, so that writing it before reading the answer cannot block.
    assert!(capture.len() < 65_536);
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    // Past the file header; each packet is its record header and IPv4, the number at 4 of that.
    let packets = output.stdout.get(24..).unwrap().chunks_exact(16 + PACKET);
    packets
        .map(|packet| u16::from_be_bytes(*packet.get(20..).unwrap().first_chunk().unwrap()))
        .collect()
}

/// An IPv4 header and eight bytes, enough for the ports.
const PACKET: usize = 28;

/// A pcap file of raw IPv4 packets (`LINKTYPE_RAW`), one for each direction of each session that
/// has any. The IPv4 identification is the session's number.
fn capture(rows: &[SessionRow]) -> Vec<u8> {
    let header: [u32; 6] = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, 101];
    // Version numbers are two 16-bit fields; the rest are words in the order that the magic shows.
    let mut file: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
    for (number, row) in (0..SESSIONS).zip(rows) {
        for (packets, tuple) in
            [(row.orig.packets, row.tuple), (row.resp.packets, row.tuple.reversed())]
        {
            if packets > 0 {
                file.extend([0, 0, 28, 28].iter().flat_map(|word: &u32| word.to_be_bytes()));
                file.extend(packet(number, &tuple));
            }
        }
    }
    file
}

fn packet(number: u16, tuple: &FiveTuple) -> [u8; PACKET] {
    let mut packet = [0; PACKET];
    packet[0] = 0x45;
    packet[3] = 28;
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    packet[8] = 64;
    packet[9] = u8::try_from(tuple.proto.0).unwrap();
    packet[12..16].copy_from_slice(&v4(tuple.orig).octets());
    packet[16..20].copy_from_slice(&v4(tuple.resp).octets());
    if tuple.proto != Protocol::ICMP {
        packet[20..22].copy_from_slice(&tuple.orig_port.to_be_bytes());
        packet[22..24].copy_from_slice(&tuple.resp_port.to_be_bytes());
    }
    packet
}

fn v4(address: Address) -> Ipv4Addr {
    match address {
        Address::V4(ip) => ip,
        other => panic!("{other} is not IPv4"),
    }
}
