//! ARP by the addresses that it is about, and ICMP by the ids that other tools give its messages.

use crate::golden::pcap;
use crate::machine::{Volume, run};

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ALL: [u8; 6] = [0xff; 6];

fn ethernet(from: [u8; 6], to: [u8; 6], kind: [u8; 2], body: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind, body].concat()
}

/// `operation` 1 asks, 2 answers; 10.9.0.`last` is what is meant.
fn arp(operation: u8, (from, sender): ([u8; 6], u8), (to, target): ([u8; 6], u8)) -> Vec<u8> {
    let stations = if operation == 1 { ([0; 6], ALL) } else { (to, to) };
    let head = [0, 1, 8, 0, 6, 4, 0, operation];
    let own = [&from[..], &[10, 9, 0, sender]].concat();
    let other = [&stations.0[..], &[10, 9, 0, target]].concat();
    ethernet(from, stations.1, [8, 6], &[&head[..], &own, &other].concat())
}

/// An ICMP message from 10.9.0.`from` to 10.9.0.`to`, eight bytes long.
fn icmp(from: u8, to: u8, kind: u8, code: u8) -> Vec<u8> {
    let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 0, from, 10, 9, 0, to];
    ethernet(A, B, [8, 0], &[&ip[..], &[kind, code, 0, 0, 0, 0, 0, 0]].concat())
}

fn recorded(packets: Vec<Vec<u8>>) -> Volume {
    let volume = Volume::empty();
    let file = volume.file("packets.pcap");
    let timed = (0_u64..).zip(packets).map(|(at, it)| (1_795_000_000_000_000_000 + at * 1000, it));
    std::fs::write(&file, pcap(timed)).unwrap();
    volume.record(&["--read", &file]).done();
    volume
}

/// Sessions that are found; none is exit code 1.
fn count(volume: &Volume, query: &str) -> usize {
    let ran = run(&["find", &volume.path, query, "--json", "--index-dir", &volume.index]);
    assert!(matches!(ran.code, Some(0 | 1)), "{query}: {ran:?}");
    ran.out.lines().filter(|line| line.contains("\"session_id\"")).count()
}

#[test]
fn arp_is_found_by_the_addresses_that_it_asks_for_and_tells_of() {
    // One station asks for a whole /24, another answers, a third one probes for an address.
    let mut packets: Vec<_> = (2..=254).map(|it| arp(1, (A, 1), (ALL, it))).collect();
    packets.push(arp(2, (B, 7), (A, 1)));
    packets.push(ethernet(B, ALL, [8, 6], &[0, 1, 8, 0, 6, 4, 0]));
    let volume = recorded(packets);
    for (query, sessions) in [
        ("arp", 3),
        ("arp host 10.9.0.254", 1),
        ("arp host 10.9.0.7", 2),
        ("arp src host 10.9.0.7", 1),
        ("arp dst host 10.9.0.7", 1),
        ("arp host 10.9.0.255", 0),
        ("app_detail \"arp.target=10.9.0.25*\"", 1),
    ] {
        assert_eq!(count(&volume, query), sessions, "{query}");
    }
}

/// The ids are those of the specification's reference implementation for each message alone.
#[test]
fn an_icmp_session_is_found_by_the_community_id_of_each_of_its_kinds() {
    let volume = recorded(vec![
        icmp(1, 2, 8, 0),
        icmp(2, 1, 0, 0),
        icmp(2, 1, 3, 3),
        icmp(2, 1, 3, 3),
        icmp(2, 1, 8, 0),
        icmp(1, 2, 0, 0),
    ]);
    for (id, sessions) in [
        ("1:Utpcozp+CSEdUZdxNvu1Mh18NLQ=", 1),
        ("1:/o+9a2OZyY2MB0sjskRJwHCLuGU=", 1),
        ("1:JGVXr9bYM/CoQwjmgvy9woNXLRw=", 1),
        // Unreachable, from the other end: there was none.
        ("1:IKCPTVaaH1NOl6nwDdxDP+XWQug=", 0),
    ] {
        assert_eq!(count(&volume, &format!("community_id {id}")), sessions, "{id}");
    }
    assert_eq!(count(&volume, "app_detail \"icmp.resp=3/3\""), 1);
}
