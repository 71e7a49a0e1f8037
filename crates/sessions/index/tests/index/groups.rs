//! Filters over groups of segments rule out what the segments' own filters do, and nothing more.

use core::net::IpAddr;
use std::collections::BTreeSet;

use format::head::{StripeId, VolumeId};
use format::session_row::SessionRow;
use index::{Catalog, Files as _, Identity, LookUp, MemoryFiles, Needed, SegmentMeta, encode};
use units::{Sequence, Timestamp};
use wire::{Address, CommunityId, FiveTuple, Protocol};

use crate::examples::{empty, meta, piece};

const VOLUME: VolumeId = VolumeId([7; 16]);
const SEGMENTS: u64 = 150;
const ROWS: u64 = 20;

fn stripe(segment: u64) -> StripeId {
    StripeId { sequence: Sequence(100 + 10 * segment), sub: 0 }
}

fn host(number: u64) -> IpAddr {
    IpAddr::from([10, 0, u8::try_from(number / 256).unwrap(), u8::try_from(number % 256).unwrap()])
}

/// Row `row` of a segment: hosts of its own, and one that every third segment has.
fn row(segment: u64, row: u64) -> SessionRow {
    let number = segment * ROWS + row;
    let other = if segment.is_multiple_of(3) && row == 0 { 60_000 } else { 30_000 + number };
    let address = |number| Address::from(host(number));
    let tuple = FiveTuple {
        orig: address(number),
        resp: address(other),
        orig_port: 1000,
        resp_port: 443,
        proto: Protocol::TCP,
    };
    let mut slice = empty(tuple, Timestamp(i64::try_from(number).unwrap()));
    slice.names.sni = Some(format!("N{number}.example"));
    slice.names.tls.get_or_insert_default().ja4 = Some(format!("T13D{number}"));
    slice.names.http_status = vec![u16::try_from(number).unwrap(), 200];
    slice.pieces = vec![piece(stripe(segment).sequence.get())];
    slice
}

fn meta_of(segment: u64) -> SegmentMeta {
    let StripeId { sequence, sub } = stripe(segment);
    SegmentMeta {
        volume: VOLUME,
        first: stripe(segment),
        last: StripeId { sequence: sequence + 5, sub },
        gaps: Vec::new(),
        unindexed_packets: 0,
        ..meta()
    }
}

fn store(catalog: &mut Catalog, segment: u64, files: &MemoryFiles) {
    let meta = meta_of(segment);
    let rows: Vec<SessionRow> = (0..ROWS).map(|number| row(segment, number)).collect();
    let encoded = encode(&meta, &rows).unwrap();
    catalog.confirm(meta.first, Some(Identity::new(meta.last, &[1; 32])), files);
    catalog.store(encoded.entry(None), &encoded.parquet, files);
}

fn catalog(files: &MemoryFiles, segments: u64) -> Catalog {
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    (0..segments).for_each(|segment| store(&mut catalog, segment, files));
    catalog
}

fn groups(files: &MemoryFiles) -> Vec<String> {
    files.list().unwrap().into_iter().filter(|name| name.ends_with(".groups")).collect()
}

/// As if no packets lay between any two segments.
fn make(catalog: &mut Catalog, files: &MemoryFiles) -> index::Result<usize> {
    let all = catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
    let firsts: Vec<StripeId> = all.iter().map(|entry| entry.summary.first).collect();
    let behind = firsts.windows(2).map(|pair| (pair[1], pair[0])).collect();
    catalog.make_groups(files, &behind)
}

fn needed(segment: u64, number: u64) -> Vec<Needed> {
    let row = row(segment, number);
    let hosts = vec![host(segment * ROWS + number)];
    let id = CommunityId::of(&row.tuple, None).unwrap().0.clone();
    vec![
        Needed { hosts, ..Needed::default() },
        Needed {
            names: vec![format!("n{}.example", segment * ROWS + number)],
            ..Needed::default()
        },
        Needed { community_ids: vec![id], ..Needed::default() },
        of_value("ja4", &format!("t13d{}", segment * ROWS + number)),
        of_value("http_status", &(segment * ROWS + number).to_string()),
    ]
}

fn of_value(field: &'static str, value: &str) -> Needed {
    Needed { values: vec![(field, value.to_owned())], ..Needed::default() }
}

/// What remains when groups have ruled out theirs.
fn left(catalog: &Catalog, needed: &Needed) -> BTreeSet<StripeId> {
    let ruled_out = catalog.rule_out(needed).segments;
    let all = catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
    let firsts = all.iter().map(|entry| entry.summary.first);
    firsts.filter(|first| !ruled_out.contains(first)).collect()
}

#[test]
fn a_group_knows_where_a_key_may_be_and_loses_none() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, SEGMENTS);
    assert_eq!(make(&mut catalog, &files).unwrap(), 1);
    let mut total = 0;
    for segment in (0..SEGMENTS).step_by(7) {
        for needed in needed(segment, segment % ROWS) {
            let left = left(&catalog, &needed);
            assert!(left.contains(&stripe(segment)), "{needed:?}");
            total += left.len();
        }
    }
    // 110 questions; one key in 600 passes by chance, in 150 segments each.
    assert!(total < 110 * 2, "{total} segments are left for 110 questions");
    let common = Needed { hosts: vec![host(60_000)], ..Needed::default() };
    assert!(left(&catalog, &common).len() >= 50);
    let absent = Needed { names: vec!["absent.example".to_owned()], ..Needed::default() };
    assert!(left(&catalog, &absent).len() < 5);
    assert_eq!(left(&catalog, &Needed::default()).len(), 150, "nothing was asked");
    // Each segment that is ruled out is one that its own filter rules out, or had better.
    let only = &needed(3, 4)[0];
    for entry in catalog.select(&(Timestamp::MIN..=Timestamp::MAX)) {
        if !left(&catalog, only).contains(&entry.summary.first) {
            let LookUp::Found(segment) = catalog.look_up(&entry, &files, only) else { continue };
            let mut rows = 0;
            let all = Timestamp::MIN..=Timestamp::MAX;
            segment
                .rows_with(only, index::Columns::All, &all, &mut |_, _| {
                    rows += 1;
                    core::ops::ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(rows, 0, "{:?}", entry.summary.first);
        }
    }
}

/// A file as it was before filters knew values.
fn without_values(parquet: &[u8]) -> Vec<u8> {
    let mut file = parquet.to_vec();
    let magic = file.windows(8).rposition(|bytes| bytes == b"WSFILTER").unwrap();
    file[magic + 8] = 2;
    let crc = format::checksum::crc32c(&file[magic..magic + 60]);
    file[magic + 60..magic + 64].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn files_whose_filters_know_no_values_have_groups_of_their_own() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, 70);
    for segment in 70..140 {
        let meta = meta_of(segment);
        let rows: Vec<SessionRow> = (0..ROWS).map(|number| row(segment, number)).collect();
        let encoded = encode(&meta, &rows).unwrap();
        catalog.confirm(meta.first, Some(Identity::new(meta.last, &[1; 32])), &files);
        catalog.store(encoded.entry(None), &without_values(&encoded.parquet), &files);
    }
    make(&mut catalog, &files).unwrap();
    assert_eq!(groups(&files).len(), 2);
    let absent = Needed { names: vec!["absent.example".to_owned()], ..Needed::default() };
    assert!(left(&catalog, &absent).len() < 5, "names are known to both");
    for absent in [of_value("ja4", "absent"), of_value("http_status", "999")] {
        let left = left(&catalog, &absent);
        assert!((70..75).contains(&left.len()), "{absent:?}: {} are left", left.len());
        for segment in [0, 75] {
            let entry = catalog.select(&(Timestamp::MIN..=Timestamp::MAX))[segment];
            let is_ruled_out =
                matches!(catalog.look_up(&entry, &files, &absent), LookUp::RuledOut(_));
            assert_eq!(is_ruled_out, segment < 70, "{absent:?}");
        }
    }
    for needed in needed(75, 3) {
        assert!(left(&catalog, &needed).contains(&stripe(75)), "{needed:?}");
    }
}

#[test]
fn groups_double_and_follow_their_segments() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, 63);
    assert_eq!((make(&mut catalog, &files).unwrap(), groups(&files).len()), (0, 0));
    store(&mut catalog, 63, &files);
    assert_eq!((make(&mut catalog, &files).unwrap(), groups(&files).len()), (1, 1));
    assert_eq!(make(&mut catalog, &files).unwrap(), 0, "all have one");
    for segment in 64..128 {
        store(&mut catalog, segment, &files);
    }
    make(&mut catalog, &files).unwrap();
    assert_eq!(groups(&files).len(), 1, "it has doubled");
    assert!(groups(&files)[0].ends_with("-128.groups"), "{:?}", groups(&files));
    // The ring passes all of them.
    catalog.retire(Sequence(1_000_000), Timestamp(0), &files).unwrap();
    make(&mut catalog, &files).unwrap();
    assert_eq!(groups(&files).len(), 0);
}

#[test]
fn what_is_erased_leaves_no_trace_in_a_group() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, 70);
    make(&mut catalog, &files).unwrap();
    catalog.drop_groups(&files).unwrap();
    assert_eq!(groups(&files).len(), 1, "all of its segments are there");
    catalog.retire(stripe(1).sequence, Timestamp(0), &files).unwrap();
    catalog.drop_groups(&files).unwrap();
    assert_eq!(groups(&files).len(), 0);
    let absent = Needed { names: vec!["absent.example".to_owned()], ..Needed::default() };
    assert_eq!(left(&catalog, &absent).len(), 69);
}

#[test]
fn a_group_counts_only_for_the_files_that_it_was_made_of() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, 70);
    make(&mut catalog, &files).unwrap();
    let absent = Needed { names: vec!["absent.example".to_owned()], ..Needed::default() };
    assert!(left(&catalog, &absent).len() < 5);
    // Segment 8 was recorded anew, from another past of the volume.
    let meta = meta_of(8);
    catalog.confirm(meta.first, Some(Identity::new(meta.last, &[2; 32])), &files);
    let other: Vec<SessionRow> = vec![row(9, 0)];
    let encoded = encode(&meta, &other).unwrap();
    catalog.store(encoded.entry(None), &encoded.parquet, &files);
    assert!(left(&catalog, &absent).contains(&stripe(8)));
    // Bytes that changed answer nothing: the segments are looked into one by one.
    let name = groups(&files).remove(0);
    let whole = files.read(&name).unwrap().unwrap();
    for at in (0..whole.len()).step_by(977) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        files.write_atomic(&name, &damaged).unwrap();
        let catalog = reopened(&catalog, &files);
        for number in [0, 5] {
            for needed in needed(20, number) {
                assert!(left(&catalog, &needed).contains(&stripe(20)), "byte {at}");
            }
        }
    }
    files.write_atomic(&name, &whole[..whole.len() / 2]).unwrap();
    let catalog = reopened(&catalog, &files);
    assert!(left(&catalog, &needed(20, 5)[0]).contains(&stripe(20)));
}

/// The same segments, known from a directory, with the files as they are.
fn reopened(catalog: &Catalog, files: &MemoryFiles) -> Catalog {
    let mut again = Catalog::new(VOLUME, Sequence(0), None);
    again.add(&catalog.select(&(Timestamp::MIN..=Timestamp::MAX)));
    again.add_files(files, &|_| Vec::new()).unwrap();
    for segment in 0..70 {
        let meta = meta_of(segment);
        let past = if segment == 8 { 2 } else { 1 };
        again.confirm(meta.first, Some(Identity::new(meta.last, &[past; 32])), files);
    }
    again
}

#[test]
fn the_newest_segment_of_a_group_vouches_for_all_before_it() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(&files, 70);
    make(&mut catalog, &files).unwrap();
    let entries = catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
    let open = || {
        let mut again = Catalog::new(VOLUME, Sequence(0), None);
        again.add(&entries);
        again.add_files(&files, &|_| Vec::new()).unwrap();
        again
    };
    let asked = core::cell::RefCell::new(Vec::new());
    let ring = |past: u8| {
        let asked = &asked;
        move |lasts: &[StripeId]| {
            asked.borrow_mut().extend(lasts.iter().copied());
            lasts.iter().map(|&last| Some(Identity::new(last, &[past; 32]))).collect()
        }
    };
    let mut again = open();
    let follow = again.confirm_groups(&ring(1));
    assert_eq!(*asked.borrow(), [meta_of(69).last], "one question for all");
    assert!((0..70).all(|segment| again.is_confirmed(stripe(segment))));
    assert_eq!(follow.len(), 69, "nothing is known of what lies before the first");
    // Where the segment before is not known, what lies between is looked at.
    let mut again = Catalog::new(VOLUME, Sequence(0), None);
    again.add(
        &entries
            .iter()
            .filter(|entry| entry.summary.first != stripe(30))
            .copied()
            .collect::<Vec<_>>(),
    );
    again.add_files(&files, &|lasts| vec![None; lasts.len()]).unwrap();
    assert!(!again.confirm_groups(&ring(1)).contains(&stripe(31)));
    // Another past: nothing is confirmed.
    let mut again = open();
    assert!(again.confirm_groups(&ring(9)).is_empty());
    assert!((0..70).all(|segment| !again.is_confirmed(stripe(segment))));
}
