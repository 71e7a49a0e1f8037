use proptest::prelude::*;
use units::{InterfaceId, NANOS_PER_SECOND, Sequence};
use wire::LinkType;

use super::*;
use crate::{Config, Keyer, PacketView, SessionRow, Table};
use format::session_row::PieceId;

fn address() -> Addressed {
    let key = Keyer::new(false).key(Timestamp(0), &wire::Decoded::default());
    Addressed { key, turned: false, hash: 0, epoch: 0 }
}

fn take(
    reassembly: &mut Reassembly,
    (id, seconds): (u32, i64),
    (offset, more): (usize, bool),
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let ends = (Address::V4([10, 0, 0, 1].into()), Address::V4([10, 0, 0, 2].into()));
    let piece = Piece {
        label: Label { id, protocol: Some(17), ends },
        fragment: Fragment { id, offset: u16::try_from(offset).unwrap(), more },
        part: Part { protocol: 17, bytes, is_whole: true },
        timestamp: Timestamp(seconds * NANOS_PER_SECOND),
        address: &address(),
    };
    let whole = reassembly.take(&piece);
    let held: usize = reassembly.datagrams.iter().map(Datagram::held).sum();
    assert_eq!(reassembly.held, held);
    assert!(held <= BYTES_MAX && reassembly.datagrams.len() <= DATAGRAM_COUNT);
    whole.map(|whole| whole.bytes)
}

/// Offset, whether more follow, and bytes of each fragment.
fn cut(datagram: &[u8], size: usize) -> Vec<(usize, bool, &[u8])> {
    let parts = datagram.chunks(size).enumerate();
    parts.map(|(n, part)| (n * size, n * size + part.len() < datagram.len(), part)).collect()
}

proptest! {
    #[test]
    fn a_datagram_is_whole_once_in_any_order_of_its_fragments(
        datagram in prop::collection::vec(any::<u8>(), 9..800),
        order in Just((0..100).collect::<Vec<usize>>()).prop_shuffle(),
        again in 0_usize..100,
    ) {
        let parts = cut(&datagram, 8);
        let mut order: Vec<usize> = order.into_iter().filter(|&n| n < parts.len()).collect();
        order.insert(1, order[0]);
        let at = again % order.len();
        order.insert(at, order[at]);
        let mut reassembly = Reassembly::default();
        let whole: Vec<Vec<u8>> = order
            .iter()
            .filter_map(|&n| {
                let (offset, more, part) = parts[n];
                take(&mut reassembly, (7, 0), (offset, more), part)
            })
            .collect();
        prop_assert_eq!(whole, [datagram]);
    }
}

#[test]
fn what_overlaps_or_contradicts_is_dropped_for_good() {
    let bytes = [1; 32];
    let wrong: [(usize, bool, &[u8]); 6] = [
        // Other bytes, a shifted copy, a longer one, two ends, one beyond the end, odd bytes.
        (8, true, &[2; 8]),
        (0, true, &bytes[..16]),
        (8, true, &bytes[..24]),
        (16, false, &bytes[..4]),
        (40, true, &bytes[..8]),
        (16, true, &bytes[..7]),
    ];
    for (offset, more, part) in wrong {
        let mut reassembly = Reassembly::default();
        assert_eq!(take(&mut reassembly, (7, 0), (8, true), &bytes[..8]), None);
        assert_eq!(take(&mut reassembly, (7, 0), (24, false), &bytes[..8]), None);
        assert_eq!(take(&mut reassembly, (7, 0), (offset, more), part), None);
        for (offset, more) in [(0, true), (16, true), (8, true), (24, false)] {
            assert_eq!(take(&mut reassembly, (7, 29), (offset, more), &bytes[..8]), None);
        }
        assert_eq!((reassembly.held, reassembly.refused), (0, 0));
        // Another datagram of the same identification, later.
        assert_eq!(take(&mut reassembly, (7, 31), (0, true), &bytes[..8]), None);
        assert!(take(&mut reassembly, (7, 31), (8, false), &bytes[..8]).is_some());
    }
}

#[test]
fn the_oldest_gives_way_and_is_counted() {
    let mut reassembly = Reassembly::default();
    for id in 0..1000 {
        assert_eq!(take(&mut reassembly, (id, 0), (0, true), &[0; 8]), None);
    }
    assert_eq!(reassembly.refused, 1000 - 64);
    assert_eq!(take(&mut reassembly, (0, 0), (8, false), &[0; 8]), None);
    assert!(take(&mut reassembly, (999, 0), (8, false), &[0; 8]).is_some());
    // By bytes.
    let long = vec![0; 64_000];
    let mut reassembly = Reassembly::default();
    for id in 0..100 {
        assert_eq!(take(&mut reassembly, (id, 0), (0, true), &long), None);
    }
    assert_eq!((reassembly.datagrams.len(), reassembly.refused), (16, 84));
    // What is over is no loss.
    take(&mut reassembly, (200, 31), (0, true), &long);
    assert_eq!(reassembly.refused, 84);
    // Neither is there space for parts without end.
    let mut reassembly = Reassembly::default();
    for part in 0..200 {
        assert_eq!(take(&mut reassembly, (7, 0), (part * 16, true), &[0; 8]), None);
    }
    assert_eq!(reassembly.held, 0);
}

/// Ports, and what UDP carries.
fn udp(payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len() + 8).unwrap();
    let ports = [40_000, 53, len, 0].map(u16::to_be_bytes);
    [ports.as_flattened(), payload].concat()
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let start = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    [&start[..], payload].concat()
}

fn query() -> Vec<u8> {
    let labels: [&[u8]; 3] = [b"\x03www", b"\x07example", b"\x03com"];
    [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &labels.concat(), &[0, 0, 1, 0, 1]].concat()
}

const REQUEST: &[u8] = b"GET /in/fragments HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// Packets of IPv4, or of IPv6 where the datagram begins with a header of this number.
fn packets(is_v6: bool, protocol: u8, datagram: &[u8], size: usize) -> Vec<Vec<u8>> {
    let packet = |(offset, more, part): (usize, bool, &[u8])| {
        let offset = u16::try_from(offset).unwrap();
        if is_v6 {
            let len = u16::try_from(part.len() + 8).unwrap().to_be_bytes();
            let head = [&[0x60, 0, 0, 0][..], &len, &[44, 64], &[0x20; 16], &[0x30; 16]].concat();
            let field = (offset | u16::from(more)).to_be_bytes();
            return [&head, &[protocol, 0][..], &field, &[0, 0, 0, 9], part].concat();
        }
        let [l0, l1] = u16::try_from(part.len() + 20).unwrap().to_be_bytes();
        let [f0, f1] = ((offset / 8) | (u16::from(more) << 13)).to_be_bytes();
        let head = [0x45, 0, l0, l1, 0, 9, f0, f1, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&head, part].concat()
    };
    cut(datagram, size).into_iter().map(packet).collect()
}

fn rows_of(packets: &[Vec<u8>]) -> Vec<SessionRow> {
    let (mut table, mut rows) = (Table::new(Config::default(), 1), Vec::new());
    for (data, begin) in packets.iter().zip(0..) {
        let packet = PacketView {
            timestamp: Timestamp(i64::from(begin)),
            interface: InterfaceId(0),
            link_type: LinkType::RAW,
            original_len: u32::try_from(data.len()).unwrap(),
            data,
            piece: PieceId { sequence: Sequence(0), sub: 0, column: 0 },
            begin,
            end: begin + 1,
        };
        table.push(&packet, &mut rows);
    }
    table.finish(&mut rows);
    rows
}

#[test]
fn names_in_fragments_are_found_and_packets_counted_as_they_came() {
    let option = [[17, 0, 1, 4, 0, 0, 0, 0], [6, 0, 1, 4, 0, 0, 0, 0]];
    let cases = [
        (false, 17, udp(&query()), "www.example.com"),
        (false, 6, tcp(REQUEST), "a.example"),
        (true, 17, udp(&query()), "www.example.com"),
        (true, 60, [&option[0], &udp(&query())[..]].concat(), "www.example.com"),
        (true, 60, [&option[1], &tcp(REQUEST)[..]].concat(), "a.example"),
    ];
    for (is_v6, protocol, datagram, name) in cases {
        let size = if protocol == 60 { 16 } else { 8 };
        for is_last_first in [false, true] {
            let mut packets = packets(is_v6, protocol, &datagram, size);
            if is_last_first && protocol != 60 {
                packets.reverse();
            }
            let rows = rows_of(&packets);
            let lists =
                |row: &SessionRow| [&row.names.dns_names[..], &row.names.http_host].concat();
            let found: Vec<String> = rows.iter().flat_map(lists).collect();
            assert_eq!(found, [name], "{is_v6} {protocol}");
            let count = u64::try_from(packets.len()).unwrap();
            let sum = |of: fn(&SessionRow) -> u64| rows.iter().map(of).sum::<u64>();
            assert_eq!(sum(|row| row.orig.packets + row.resp.packets), count);
            assert_eq!(sum(|row| row.fragments), count);
            let bytes: usize = packets.iter().map(Vec::len).sum();
            assert_eq!(sum(|row| row.orig.ip_bytes), u64::try_from(bytes).unwrap());
            let named = rows.iter().find(|row| lists(row).contains(&name.to_owned())).unwrap();
            assert_eq!(
                named.tuple.orig_port.min(named.tuple.resp_port),
                if name.len() > 9 { 53 } else { 80 }
            );
        }
    }
}

#[test]
fn a_datagram_with_a_fragment_that_was_cut_is_none() {
    let mut packets = packets(false, 17, &udp(&query()), 24);
    packets[1].pop();
    let rows = rows_of(&packets);
    assert!(rows.iter().all(|row| row.names.dns_names.is_empty()));
}
