//! Segments are found, reloaded and retired.

use core::time::Duration;

use format::directory::SegmentEntry;
use format::head::{StripeId, VolumeId};
use index::{
    Catalog, Encoded, Error, Files, Identity, LookUp, MemoryFiles, Needed, Packets, SegmentMeta,
    encode,
};
use units::{Epoch, Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol};

use crate::examples::{empty, piece};

const VOLUME: VolumeId = VolumeId([7; 16]);

fn stripe(sequence: u64) -> StripeId {
    StripeId { sequence: Sequence(sequence), sub: 0 }
}

/// Segment `number` has the stripes from 100 times its number on, and the second of its number.
fn meta(number: u64) -> SegmentMeta {
    let second = i64::try_from(number).unwrap() * units::NANOS_PER_SECOND;
    SegmentMeta {
        time_min: Timestamp(second),
        time_max: Timestamp(second + 999_999_999),
        packets: 10,
        ..SegmentMeta::new(VOLUME, Epoch(1), stripe(100 * number), stripe(100 * number + 97))
    }
}

fn encoded(number: u64) -> Encoded {
    encode(&meta(number), &[]).unwrap()
}

fn parquet(number: u64) -> Vec<u8> {
    encoded(number).parquet
}

fn entry(number: u64) -> SegmentEntry {
    encoded(number).entry(Some((stripe(100 * number + 98), 2)))
}

fn directory(numbers: core::ops::Range<u64>) -> Vec<SegmentEntry> {
    numbers.rev().map(entry).collect()
}

fn catalog(keep_sessions: Option<Duration>, files: &MemoryFiles) -> Catalog {
    let mut catalog = Catalog::new(VOLUME, Sequence(0), keep_sessions);
    for number in 1..5 {
        catalog.confirm(stripe(100 * number), Some(identity(number, 0)), files);
        catalog.store(entry(number), &parquet(number), files);
    }
    catalog
}

/// Of segment `number` in one of several pasts of the volume.
fn identity(number: u64, past: u8) -> Identity {
    Identity::new(meta(number).last, &[past; 32])
}

/// A ring that has the stripes of the first past.
fn ring(lasts: &[StripeId]) -> Vec<Option<Identity>> {
    lasts.iter().map(|last| Some(identity(last.sequence.get() / 100, 0))).collect()
}

fn numbers(catalog: &Catalog) -> Vec<u64> {
    let all = catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
    all.iter().map(|entry| entry.summary.first.sequence.get() / 100).collect()
}

fn nothing(_: &SegmentEntry) -> Option<Vec<u8>> {
    None
}

#[test]
fn directories_are_followed_to_the_oldest_segment_in_the_ring() {
    let mut catalog = Catalog::new(VOLUME, Sequence(250), None);
    assert!(catalog.older_directory().is_none());
    assert!(catalog.add(&directory(6..9)));
    assert_eq!(catalog.older_directory(), Some(entry(6).index));
    assert!(catalog.add(&directory(0..7)));
    assert_eq!(numbers(&catalog), [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(catalog.older_directory(), None);
    assert!(!catalog.add(&directory(0..9)));
}

#[test]
fn the_next_directory_lists_what_the_ring_holds_newest_first() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(Some(Duration::MAX), &files);
    catalog.store(encoded(5).entry(None), &parquet(5), &files);
    catalog.retire(Sequence(200), Timestamp(0), &files).unwrap();
    assert_eq!(numbers(&catalog), [1, 2, 3, 4, 5]);
    assert_eq!(catalog.directory(), directory(2..5));
}

#[test]
fn a_time_range_selects_the_segments_that_overlap_it() {
    let catalog = catalog(None, &MemoryFiles::default());
    let selected = catalog.select(&(Timestamp(2_999_999_999)..=Timestamp(3_000_000_000)));
    let first: Vec<_> = selected.iter().map(|entry| entry.summary.first).collect();
    assert_eq!(first, [stripe(200), stripe(300)]);
}

#[test]
fn a_file_that_is_missing_or_damaged_is_loaded_again() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(None, &files);
    let names = files.list().unwrap();
    files.remove(&names[0]).unwrap();
    let mut damaged = files.read(&names[1]).unwrap().unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    files.write_atomic(&names[1], &damaged).unwrap();
    let mut loaded = Vec::new();
    for entry in catalog.select(&(Timestamp::MIN..=Timestamp::MAX)) {
        let number = entry.summary.first.sequence.get() / 100;
        let segment = catalog.open(&entry, &files, &mut |_| {
            loaded.push(number);
            Some(parquet(number))
        });
        assert_eq!(segment.unwrap().unwrap().meta(), &meta(number));
    }
    assert_eq!(loaded, [1, 2]);
    assert_eq!(files.list().unwrap(), names);
    for entry in catalog.select(&(Timestamp::MIN..=Timestamp::MAX)) {
        assert!(catalog.open(&entry, &files, &mut nothing).unwrap().is_some());
    }
}

#[test]
fn a_segment_that_nobody_has_is_none() {
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    catalog.add(&directory(1..2));
    let entry = catalog.select(&(Timestamp::MIN..=Timestamp::MAX))[0];
    let opened = catalog.open(&entry, &MemoryFiles::default(), &mut nothing);
    assert!(opened.unwrap().is_none());
}

#[test]
fn what_is_loaded_must_be_the_segment_asked_for() {
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    catalog.add(&directory(1..2));
    let entry = catalog.select(&(Timestamp::MIN..=Timestamp::MAX))[0];
    let other = SegmentMeta { volume: VolumeId([8; 16]), ..meta(1) };
    for (bytes, expect) in [(parquet(2), "first"), (encode(&other, &[]).unwrap().parquet, "volume")]
    {
        let opened = catalog.open(&entry, &MemoryFiles::default(), &mut |_| Some(bytes.clone()));
        assert!(matches!(opened, Err(Error::Metadata { field }) if field == expect));
    }
}

#[test]
fn segments_without_a_directory_are_found_by_their_files() {
    let files = MemoryFiles::default();
    drop(catalog(None, &files));
    files.write_atomic("notes.txt", b"not ours").unwrap();
    files.write_atomic("7-0-0.parquet", b"not our spelling").unwrap();
    let mut damaged = files.list().unwrap().remove(0);
    let mut bytes = parquet(9);
    *bytes.last_mut().unwrap() ^= 1;
    damaged.replace_range(..20, "00000000000000000900");
    files.write_atomic(&damaged, &bytes).unwrap();
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    catalog.add(&directory(4..6));
    catalog.add_files(&files, &ring).unwrap();
    assert_eq!(numbers(&catalog), [1, 2, 3, 4, 5]);
}

#[test]
fn of_segments_that_share_stripes_one_counts() {
    // Their INDEX was lost, and a writer has indexed their stripes again since.
    let spans = [(50, 99), (150, 180), (190, 320), (198, 199), (398, 500), (550, 560)];
    for (first, last) in spans {
        let files = MemoryFiles::default();
        let (first, last) = (stripe(first), stripe(last));
        let (time_min, time_max) = (Timestamp(1), Timestamp(2));
        let of = SegmentMeta::new(VOLUME, Epoch(1), first, last);
        let meta = SegmentMeta { time_min, time_max, packets: 10, ..of };
        let identity = Identity::new(last, &[0; 32]);
        let encoded = encode(&meta, &[]).unwrap();
        let mut before = Catalog::new(VOLUME, Sequence(0), None);
        before.confirm(first, Some(identity), &files);
        before.store(encoded.entry(None), &encoded.parquet, &files);
        let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
        catalog.add(&directory(1..5));
        let ring = |lasts: &[StripeId]| vec![Some(identity); lasts.len()];
        catalog.add_files(&files, &ring).unwrap();
        let all = catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
        let spans: Vec<_> = all.iter().map(|it| (it.summary.first, it.summary.last)).collect();
        assert!(spans.is_sorted_by(|one, next| one.1 < next.0), "{spans:?}");
        let is_apart = matches!(first.sequence.get(), 50 | 198 | 550);
        assert_eq!(spans.len(), 4 + usize::from(is_apart), "{first} to {last}");
    }
}

#[test]
fn a_file_counts_only_while_the_ring_has_its_stripes() {
    let files = MemoryFiles::default();
    drop(catalog(None, &files));
    let is_found = |catalog: &Catalog, number| {
        let found = catalog.look_up(&entry(number), &files, &Needed::default());
        matches!(found, LookUp::Found(_))
    };
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    catalog.add(&directory(1..4));
    catalog.add_files(&files, &|lasts| lasts.iter().map(|_| None).collect()).unwrap();
    assert_eq!(numbers(&catalog), [1, 2, 3], "segment 4 is in no directory and not in the ring");
    assert!(!is_found(&catalog, 1), "the ring was not asked");
    catalog.confirm(stripe(100), Some(identity(1, 0)), &files);
    catalog.confirm(stripe(200), Some(identity(2, 1)), &files);
    catalog.confirm(stripe(300), None, &files);
    assert_eq!([1, 2, 3].map(|number| is_found(&catalog, number)), [true, false, false]);
    let held: Vec<String> = files.list().unwrap().iter().map(|name| name[17..20].into()).collect();
    assert_eq!(held, ["100", "300", "400"], "the file of another past is removed");

    let entry = entry(2);
    let reloaded = catalog.reload(&entry, &files, &mut |_| Some(parquet(2))).unwrap();
    assert!(reloaded.is_some() && is_found(&catalog, 2));
    assert_eq!(files.list().unwrap().len(), 4);
}

#[test]
fn files_of_a_future_that_was_given_up_are_removed_by_the_next_writer() {
    let files = MemoryFiles::default();
    drop(catalog(None, &files));
    let outdated = "00000000000000000100-00000-0123456789abcdef.parquet";
    files.write_atomic(outdated, b"of an earlier version").unwrap();
    let mut catalog = Catalog::new(VOLUME, Sequence(0), None);
    catalog.drop_future(stripe(200), &files).unwrap();
    let held: Vec<String> = files.list().unwrap().iter().map(|name| name[17..20].into()).collect();
    assert_eq!(held, ["100", "200"]);
    // What no directory names goes with the ring all the same.
    catalog.retire(Sequence(200), Timestamp(0), &files).unwrap();
    assert_eq!(files.list().unwrap().len(), 1);
}

#[test]
fn a_segment_retires_when_its_last_stripe_is_overwritten() {
    let files = MemoryFiles::default();
    let mut catalog = catalog(None, &files);
    catalog.retire(Sequence(297), Timestamp(0), &files).unwrap();
    assert_eq!(numbers(&catalog), [2, 3, 4]);
    catalog.retire(Sequence(298), Timestamp(0), &files).unwrap();
    assert_eq!(numbers(&catalog), [3, 4]);
    assert_eq!(files.list().unwrap().len(), 2);
    assert!(!catalog.add(&directory(1..3)), "retired segments do not come back");
}

#[test]
fn kept_sessions_outlive_their_packets_by_the_time_given() {
    let files = MemoryFiles::default();
    let keep = Some(Duration::from_secs(10));
    let mut catalog = catalog(keep, &files);
    catalog.retire(Sequence(400), Timestamp(12 * units::NANOS_PER_SECOND), &files).unwrap();
    assert_eq!(numbers(&catalog), [2, 3, 4]);
    let mut reopened = Catalog::new(VOLUME, Sequence(400), keep);
    reopened.add(&directory(4..5));
    reopened.add_files(&files, &ring).unwrap();
    assert_eq!(numbers(&reopened), [2, 3, 4]);
    reopened.retire(Sequence(400), Timestamp(14 * units::NANOS_PER_SECOND), &files).unwrap();
    assert_eq!(numbers(&reopened), [4]);
}

#[test]
fn a_row_is_alive_while_one_of_its_pieces_is() {
    let nobody = FiveTuple {
        orig: Address::None,
        resp: Address::None,
        orig_port: 0,
        resp_port: 0,
        proto: Protocol::UNPARSED,
    };
    let mut slice = empty(nobody, Timestamp(0));
    for (pieces, keep_sessions, expect) in [
        (&[198, 205][..], None, Some(Packets::Held)),
        (&[198, 199], None, None),
        (&[198, 199], Some(Duration::MAX), Some(Packets::Retired)),
        (&[], None, None),
    ] {
        slice.pieces = pieces.iter().copied().map(piece).collect();
        let catalog = Catalog::new(VOLUME, Sequence(200), keep_sessions);
        assert_eq!(catalog.shows(&slice), expect, "{pieces:?}");
    }
}
