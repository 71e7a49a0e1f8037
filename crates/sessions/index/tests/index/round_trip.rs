//! What goes into a segment comes out of it.

use core::net::{IpAddr, Ipv4Addr};
use core::ops::{ControlFlow, RangeInclusive};
use std::sync::LazyLock;

use bytes::Bytes;
use format::session_row::{Names, SessionRow};
use index::{
    Columns, EncodedGroup, Error, GROUP_ROWS, GroupEncoder, Interface, Needed, Segment, encode,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use units::{InterfaceId, Timestamp};
use wire::{Address, FiveTuple, LinkType, Protocol, Tls};

use crate::arbitrary;
use crate::examples::{empty, meta};

const ALWAYS: RangeInclusive<Timestamp> = Timestamp::MIN..=Timestamp::MAX;

fn read(
    segment: &Segment,
    columns: Columns<'_>,
    times: &RangeInclusive<Timestamp>,
) -> Vec<(u64, SessionRow)> {
    let mut found = Vec::new();
    segment
        .rows(columns, times, &mut |row, slice| {
            found.push((row, slice));
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

fn segment(rows: &[SessionRow]) -> Segment {
    let encoded = encode(&meta(), rows).unwrap();
    let segment = Segment::open(Bytes::from(encoded.parquet)).unwrap();
    assert_eq!(encoded.summary, segment.summary());
    segment
}

fn sorted(mut rows: Vec<SessionRow>) -> Vec<(u64, SessionRow)> {
    rows.sort_by_key(|slice| slice.start);
    (0..).zip(rows).collect()
}

/// One ordinary row, to be changed by the tests.
fn row() -> SessionRow {
    // Made once: the strategies of its texts are compiled each time.
    static ROW: LazyLock<SessionRow> = LazyLock::new(|| {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        arbitrary::slice().new_tree(&mut runner).unwrap().current()
    });
    ROW.clone()
}

fn at(second: i64) -> Timestamp {
    Timestamp(second * units::NANOS_PER_SECOND)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_field_survives(rows in vec(arbitrary::slice(), 0..12)) {
        let segment = segment(&rows);
        prop_assert_eq!(segment.row_count(), u64::try_from(rows.len()).unwrap());
        prop_assert_eq!(read(&segment, Columns::All, &ALWAYS), sorted(rows));
    }

    #[test]
    fn a_time_range_gives_the_rows_that_overlap_it(
        rows in vec(arbitrary::slice(), 0..12),
        from in any::<i64>(),
        to in any::<i64>(),
    ) {
        let times = Timestamp(from.min(to))..=Timestamp(from.max(to));
        let expect: Vec<_> = sorted(rows.clone())
            .into_iter()
            .filter(|(_, slice)| slice.start <= *times.end() && slice.end >= *times.start())
            .collect();
        prop_assert_eq!(read(&segment(&rows), Columns::All, &times), expect);
    }

    #[test]
    fn the_metadata_survives(
        names in vec(any::<String>(), 0..4),
        recording in any::<Option<String>>(),
        gap in any::<(Option<u32>, Option<u64>, Option<u64>, i64, i64)>(),
        cause in prop::sample::select(&format::directory::GapCause::ALL[..]),
    ) {
        let mut meta = meta();
        meta.interfaces = (0..).zip(names).map(|(id, name)| Interface {
            id: InterfaceId(id),
            link_type: LinkType(147),
            name,
        }).collect();
        meta.recording = recording;
        meta.gaps.push(format::directory::Gap {
            cause,
            interface: gap.0.map(InterfaceId),
            packets: gap.1,
            bytes: gap.2,
            from: Timestamp(gap.3),
            to: Timestamp(gap.4),
        });
        let segment = Segment::open(Bytes::from(encode(&meta, &[]).unwrap().parquet)).unwrap();
        prop_assert_eq!(segment.meta(), &meta);
    }

    #[test]
    fn arbitrary_bytes_are_no_segment(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Segment::open(Bytes::from(bytes)).is_err());
    }
}

#[test]
fn rows_of_several_groups_keep_their_numbers_and_order() {
    let rows: Vec<SessionRow> = (0..70_000_i64)
        .map(|second| SessionRow { start: at(second), end: at(second + 1), ..row() })
        .collect();
    let segment = segment(&rows);
    let found = read(&segment, Columns::Named(&["orig_ip"]), &(at(65_530)..=at(65_540)));
    let numbers: Vec<u64> = found.iter().map(|(row, _)| *row).collect();
    assert_eq!(numbers, (65_529..=65_540).collect::<Vec<_>>());
    let numbers = [0, 1, 7, 8191, 8192, 65_535, 65_536, 69_999];
    let mut found = Vec::new();
    let mut visit = |row, slice| {
        found.push((row, slice));
        ControlFlow::Continue(())
    };
    segment.rows_at(&numbers, Columns::All, &mut visit).unwrap();
    let expect = numbers.map(|number| (number, rows[usize::try_from(number).unwrap()].clone()));
    assert_eq!(found, expect);
}

#[test]
fn only_the_rows_of_the_hosts_asked_for_are_found() {
    let host = |number: i64| Ipv4Addr::from(u32::try_from(number).unwrap() + 0x0a00_0000);
    let rows: Vec<SessionRow> = (0..40_000_i64)
        .map(|number| {
            let tuple = FiveTuple {
                orig: Address::V4(host(number)),
                resp: Address::V6(host(number + 100_000).to_ipv6_mapped()),
                ..row().tuple
            };
            SessionRow { start: at(number), end: at(number), tuple, ..row() }
        })
        .collect();
    let segment = segment(&rows);
    let read = |hosts: &[IpAddr]| {
        let mut found = Vec::new();
        let columns = Columns::Named(&["orig_ip", "resp_ip"]);
        let mut visit = |_, slice: SessionRow| {
            found.push(slice.tuple.orig);
            ControlFlow::Continue(())
        };
        let needed = Needed { hosts: hosts.to_vec(), ..Needed::default() };
        segment.rows_with(&needed, columns, &ALWAYS, &mut visit).unwrap();
        found
    };
    for number in [0, 8191, 8192, 39_999] {
        let [orig, resp] = [host(number), host(number + 100_000)].map(IpAddr::V4);
        for hosts in [&[orig][..], &[resp], &[orig, resp]] {
            let found = read(hosts);
            let number = usize::try_from(number).unwrap();
            assert_eq!(found, [rows[number].tuple.orig], "{hosts:?}");
        }
    }
    assert_eq!(read(&[IpAddr::V4(host(1)), IpAddr::V4(host(39_999))]), []);
    assert_eq!(read(&[IpAddr::V4(host(50_000))]), []);
}

#[test]
fn names_and_community_ids_rule_out_row_groups_of_other_rows() {
    let name = |number: i64| format!("Host-{number}.example.com");
    let rows: Vec<SessionRow> = (0..40_000_i64)
        .map(|number| {
            let [orig, resp] = [Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST].map(Address::V4);
            let orig_port = u16::try_from(number).unwrap();
            let tuple = FiveTuple { orig, resp, orig_port, resp_port: 53, proto: Protocol::UDP };
            let tls = Tls { cert_issuer: Some(name(number)), ..Tls::default() };
            let names = Names {
                dns_names: vec![name(number)],
                dns_answers: vec!["192.0.2.1".to_owned(), name(-number)],
                dns_types: vec![u16::try_from(number).unwrap(), 1],
                tls: Some(tls.into()),
                ..Names::default()
            };
            SessionRow { names: names.into(), ..empty(tuple, at(number)) }
        })
        .collect();
    let segment = segment(&rows);
    let count = |needed: &Needed, wanted: &SessionRow| {
        let (mut count, mut is_there) = (0, false);
        let mut visit = |_, slice: SessionRow| {
            count += 1;
            is_there |= slice.tuple.orig_port == wanted.tuple.orig_port;
            ControlFlow::Continue(())
        };
        segment.rows_with(needed, Columns::Named(&["orig_port"]), &ALWAYS, &mut visit).unwrap();
        assert!(is_there, "{needed:?}");
        count
    };
    for number in [0, 8191, 39_999] {
        let wanted = &rows[usize::try_from(number).unwrap()];
        let names = vec![name(number).to_ascii_lowercase()];
        let id = wire::CommunityId::of(&wanted.tuple, wanted.icmp).unwrap();
        let of_name = Needed { names: names.clone(), ..Needed::default() };
        let of_id = Needed { community_ids: vec![id.0], ..Needed::default() };
        let of_both = Needed { names, ..of_id.clone() };
        let of_values = [
            ("cert_issuer", name(number).to_ascii_lowercase()),
            ("dns_answers", name(-number).to_ascii_lowercase()),
            ("dns_types", number.to_string()),
        ];
        let of_values = of_values.map(|value| Needed { values: vec![value], ..Needed::default() });
        for needed in [of_name, of_id, of_both].into_iter().chain(of_values) {
            // One group, or by chance another one.
            assert!(count(&needed, wanted) <= 2 * 8192, "{needed:?}");
        }
    }
}

#[test]
fn a_subset_of_the_columns_leaves_the_others_empty() {
    let whole = row();
    let found = read(
        &segment(core::slice::from_ref(&whole)),
        Columns::Named(&["resp_port", "sni"]),
        &ALWAYS,
    );
    let slice = &found[0].1;
    assert_eq!((slice.start, slice.end), (whole.start, whole.end));
    assert_eq!(slice.tuple.resp_port, whole.tuple.resp_port);
    assert_eq!(slice.names.sni, whole.names.sni);
    assert_eq!((slice.tuple.orig_port, &slice.pieces), (0, &Vec::new()));
}

#[test]
fn a_break_ends_the_reading() {
    let rows = vec![row(); 3000];
    let mut visited = 0;
    segment(&rows)
        .rows(Columns::All, &ALWAYS, &mut |row, _| {
            visited += 1;
            if row == 9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(visited, 10);
}

#[test]
fn row_groups_may_be_encoded_in_any_order() {
    let row = row();
    let at = |start| SessionRow { start: Timestamp(start), ..row.clone() };
    let rows: Vec<SessionRow> = (0..20_000).map(at).collect();
    let encoder = GroupEncoder::new().unwrap();
    let references: Vec<&SessionRow> = rows.iter().collect();
    let groups = references.chunks(GROUP_ROWS).enumerate().rev();
    let groups = groups.map(|(number, group)| encoder.encode(number, group));
    let mut groups: Vec<EncodedGroup> = groups.collect::<Result<_, _>>().unwrap();
    groups.reverse();
    assert_eq!(encoder.file(&meta(), groups).unwrap(), encode(&meta(), &rows).unwrap());
    assert_eq!(read(&segment(&rows), Columns::All, &ALWAYS), sorted(rows));
}

#[test]
fn a_parquet_file_of_others_is_refused() {
    let bytes = encode(&meta(), &[row()]).unwrap().parquet;
    let at = bytes.windows(9).position(|window| window == b"wirespool").unwrap();
    let mut renamed = bytes.clone();
    renamed[at] = b'x';
    let keys: Vec<usize> = bytes
        .windows(17)
        .enumerate()
        .filter(|(_, window)| window == b"wirespool.segment")
        .map(|(at, _)| at)
        .collect();
    for at in keys {
        renamed[at] = b'x';
    }
    let error = Segment::open(Bytes::from(renamed)).unwrap_err();
    assert!(matches!(error, Error::Metadata { field: "wirespool.segment" }), "{error}");
}

#[test]
fn the_summary_says_what_the_directory_needs() {
    let early = SessionRow { start: at(1), end: at(2), ..row() };
    let (meta, summary) = (meta(), segment(&[early]).summary());
    assert_eq!((summary.first, summary.last), (meta.first, meta.last));
    assert!(summary.unindexed && summary.gaps);
    assert_eq!((summary.sessions, summary.packets), (1, meta.packets));
    assert_eq!((summary.time_min, summary.time_max), (at(1), meta.time_max));
}
