//! Files are read in parts, and no damaged part is believed.

use core::net::{IpAddr, Ipv4Addr};
use core::ops::{ControlFlow, RangeInclusive};

use bytes::Bytes;
use format::checksum::crc32c;
use format::session_row::{SessionRow, SourceNames};
use index::{Columns, Error, GROUP_ROWS, Needed, Segment, encode};
use units::Timestamp;
use wire::{Address, FiveTuple, Protocol};

use crate::examples::{empty, meta};

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(number + 0x0a00_0000)
}

/// Whom host `number` talks to.
fn server(number: u32) -> Ipv4Addr {
    host(number % 7 + 500_000)
}

fn rows(count: u32) -> Vec<SessionRow> {
    let of = |number: u32| {
        let (orig, resp) = (Address::V4(host(number)), Address::V4(server(number)));
        let start = Timestamp(i64::from(number));
        let (orig_port, resp_port, proto) = (0, 443, Protocol::UDP);
        empty(FiveTuple { orig, resp, orig_port, resp_port, proto }, start)
    };
    (0..count).map(of).collect()
}

fn open(bytes: Vec<u8>) -> Result<Option<Segment>, Error> {
    Segment::open_in_parts(Box::new(Bytes::from(bytes)))
}

/// The rows that have both hosts.
fn read(segment: &Segment, hosts: [Ipv4Addr; 2]) -> Result<Vec<SessionRow>, Error> {
    let mut found = Vec::new();
    let mut visit = |_, slice| {
        found.push(slice);
        ControlFlow::Continue(())
    };
    let times = Timestamp::MIN..=Timestamp::MAX;
    let needed = Needed { hosts: hosts.map(IpAddr::V4).to_vec(), ..Needed::default() };
    segment.rows_with(&needed, Columns::All, &times, &mut visit)?;
    Ok(found)
}

#[test]
fn no_damaged_byte_changes_an_answer() {
    let mut rows = rows(50);
    // What the segment calls the interface comes with what is read.
    let names = SourceNames { interface: Some("eth0".to_owned()), recording: None };
    rows[13].source = Some(names.into());
    let hosts = [host(13), server(13)];
    let whole = encode(&meta(), &rows).unwrap().parquet;
    assert_eq!(read(&open(whole.clone()).unwrap().unwrap(), hosts).unwrap(), rows[13..14]);
    let mut found = 0;
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let Ok(Some(segment)) = open(damaged) else {
            found += 1;
            continue;
        };
        match read(&segment, hosts) {
            Ok(answer) => assert_eq!(answer, rows[13..14], "byte {at}"),
            Err(error) => {
                assert!(error.is_of_file(), "byte {at}: {error}");
                found += 1;
            }
        }
    }
    assert!(found > whole.len() / 5 / 2, "{found} of {} bytes are of use", whole.len() / 5);
}

#[test]
fn a_host_costs_a_small_part_of_the_file() {
    let file = encode(&meta(), &rows(100_000)).unwrap().parquet;
    let segment = open(file.clone()).unwrap().unwrap();
    let absent = read(&segment, [host(77_777), host(300_000)]).unwrap();
    assert_eq!(absent, []);
    let footer = segment.read_bytes();
    assert!(footer <= 300 << 10, "{footer} bytes rule everything out");
    assert_eq!(read(&segment, [host(77_777), server(77_777)]).unwrap().len(), 1);
    let read = usize::try_from(segment.read_bytes() - footer).unwrap();
    assert!(read < file.len() / 5, "{read} of {} bytes", file.len());
}

/// Rows that are read for this, and may be others where most have it.
fn read_needed(segment: &Segment, needed: &Needed) -> Vec<FiveTuple> {
    let mut found = Vec::new();
    let mut visit = |_, row: SessionRow| {
        found.push(row.tuple);
        ControlFlow::Continue(())
    };
    let times = Timestamp::MIN..=Timestamp::MAX;
    segment.rows_with(needed, Columns::All, &times, &mut visit).unwrap();
    found
}

fn read_ports(segment: &Segment, ports: RangeInclusive<u16>) -> Vec<FiveTuple> {
    read_needed(segment, &Needed { ports: vec![ports], ..Needed::default() })
}

#[test]
fn rows_of_a_rare_port_alone_are_read_and_none_of_them_is_missing() {
    let mut rows = rows(20_000);
    for (row, port) in rows.iter_mut().zip((0..60_000_u16).cycle()) {
        (row.tuple.orig_port, row.tuple.resp_port) = (port, 443);
    }
    rows[7_777].tuple.resp_port = 60_001;
    let segment = open(encode(&meta(), &rows).unwrap().parquet).unwrap().unwrap();
    let tuples: Vec<FiveTuple> = rows.iter().map(|row| row.tuple).collect();
    assert_eq!(read_ports(&segment, 60_001..=60_001), tuples[7_777..=7_777]);
    assert_eq!(read_ports(&segment, 0..=0), tuples[..1]);
    assert_eq!(read_ports(&segment, 500..=600), tuples[500..=600]);
    assert_eq!(read_ports(&segment, 60_002..=u16::MAX), []);
    // Nearly all have it.
    assert_eq!(read_ports(&segment, 443..=443).len(), rows.len());
}

/// The file as the version before wrote it, but for keys of ports that it has.
fn without_port_keys(mut file: Vec<u8>) -> Vec<u8> {
    let at = file.windows(8).rposition(|window| window == b"WSFILTER").unwrap();
    let trailer = &mut file[at..at + 64];
    trailer[8..10].copy_from_slice(&3_u16.to_le_bytes());
    let crc = crc32c(&trailer[..60]);
    trailer[60..].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn filters_know_single_ports_and_those_of_earlier_versions_rule_out_none() {
    let mut rows = rows(24_576);
    for (at, row) in rows.iter_mut().enumerate() {
        // Each of the three row groups has ports of its own.
        row.tuple.orig_port = u16::try_from(at / GROUP_ROWS * 20_000 + at % GROUP_ROWS).unwrap();
    }
    let now = encode(&meta(), &rows).unwrap().parquet;
    let [now, before] = [now.clone(), without_port_keys(now)].map(|it| open(it).unwrap().unwrap());
    let groups = |segment: &Segment, ports: &[RangeInclusive<u16>]| {
        let needed = Needed { ports: ports.to_vec(), ..Needed::default() };
        segment.groups_with(&needed, &(Timestamp::MIN..=Timestamp::MAX)).unwrap()
    };
    for group in 0..3 {
        let first = u16::try_from(group * 20_000).unwrap();
        let alone = (0..1000).filter(|at| groups(&now, &[first + at..=first + at]) == [group]);
        assert!(alone.count() > 900, "one in a hundred passes by chance");
        for port in (first..first + 8000).step_by(7) {
            assert!(groups(&now, &[port..=port, 443..=443]).contains(&group), "{port}");
            assert_eq!(groups(&before, &[port..=port]), [0, 1, 2]);
        }
    }
    assert_eq!(groups(&now, &[443..=443]), [0, 1, 2]);
    assert_eq!(groups(&now, &[1..=2]), [0, 1, 2], "ranges are not known");
    for port in [0, 5, 20_005, 45_000, 60_000] {
        assert_eq!(read_ports(&now, port..=port), read_ports(&before, port..=port));
    }
}

#[test]
fn rows_of_large_sessions_are_read_and_those_of_sessions_with_other_rows() {
    let mut rows = rows(20_000);
    for row in &mut rows {
        (row.orig.packets, row.resp.packets) = (3, 2);
        (row.end, row.session_start, row.continues) = (row.start, row.start, false);
    }
    rows[1].orig.packets = 7;
    (rows[2].orig.packets, rows[2].resp.packets) = (0, u64::MAX);
    rows[9_000].end = rows[9_000].start.plus_nanos(500);
    // One that goes on, one that did, and one that began later, when the clock was set back.
    rows[9_001].continues = true;
    rows[9_002].session_start = rows[9_002].start.plus_nanos(-1);
    rows[9_003].session_start = rows[9_003].start.plus_nanos(1);
    let segment = open(encode(&meta(), &rows).unwrap().parquet).unwrap().unwrap();
    let tuples: Vec<FiveTuple> = rows.iter().map(|row| row.tuple).collect();
    let packets: &[&str] = &["orig_packets", "resp_packets"];
    let read = |sums: &[(&'static [&'static str], u64)]| {
        let tuples_read =
            read_needed(&segment, &Needed { sums: sums.to_vec(), ..Needed::default() });
        let place = |tuple: &FiveTuple| tuples.iter().position(|it| it == tuple).unwrap();
        tuples_read.iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(read(&[(packets, 6)]), [1, 2, 9_001, 9_002]);
    assert_eq!(read(&[(packets, 10)]), [2, 9_001, 9_002]);
    assert_eq!(read(&[(&["duration_ns"], 500)]), [9_000, 9_001, 9_002]);
    assert_eq!(read(&[(&["duration_ns"], 501), (packets, 6)]), [9_001, 9_002]);
    // A column that the file does not have rules nothing out.
    assert_eq!(read(&[(&["packets_of_tomorrow"], 1)]).len(), rows.len());
    assert_eq!(read(&[(packets, 5)]).len(), rows.len());
}

#[test]
fn sums_that_no_session_has_cost_nothing_but_the_footer() {
    let mut rows = rows(24_576);
    for (row, at) in rows.iter_mut().zip(0_u64..) {
        (row.orig.packets, row.resp.packets) = (at * 7919 % 100, at * 104_729 % 100);
        (row.end, row.session_start, row.continues) = (row.start, row.start, false);
    }
    let cost = |rows: &[SessionRow], least: u64| {
        let segment = open(encode(&meta(), rows).unwrap().parquet).unwrap().unwrap();
        let (footer, mut found) = (segment.read_bytes(), Vec::<u64>::new());
        let columns: &[&str] = &["orig_packets", "resp_packets"];
        let sums = vec![(columns, least)];
        let needed = Needed { sums, ..Needed::default() };
        let times = Timestamp::MIN..=Timestamp::MAX;
        let mut visit = |row: u64, _: SessionRow| {
            found.push(row);
            ControlFlow::Continue(())
        };
        segment.rows_with(&needed, Columns::Named(&[]), &times, &mut visit).unwrap();
        (found, segment.read_bytes() - footer)
    };
    // No row has so much, but bounds of two columns do not say so.
    assert!(rows.iter().all(|row| row.orig.packets + row.resp.packets < 198));
    let (found, of_all) = cost(&rows, 198);
    assert!(found.is_empty());
    assert_eq!(cost(&rows, 199), (vec![], 0));
    rows[9_000].continues = true;
    let (found, of_parts) = cost(&rows, 199);
    println!("{of_all} bytes for all rows, {of_parts} where one is a part of a session");
    assert_eq!(found, [9_000]);
    // Of the three row groups one is read.
    assert!(0 < of_parts && of_parts < of_all / 2, "{of_parts} of {of_all}");
}

#[test]
fn a_file_without_a_filter_is_not_read_in_parts() {
    let file = encode(&meta(), &rows(10)).unwrap().parquet;
    let at = file.windows(8).rposition(|window| window == b"WSFILTER").unwrap();
    let mut without = file;
    without[at] = b'X';
    assert!(open(without.clone()).unwrap().is_none());
    let whole = Segment::open(without.into()).unwrap();
    assert_eq!(read(&whole, [host(3), server(3)]).unwrap().len(), 1);
}
