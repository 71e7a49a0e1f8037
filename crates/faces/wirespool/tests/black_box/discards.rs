//! A recorder that discards blocks of a disk ahead of the head.

use core::ops::Range;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::golden::{capture, extracted};
use crate::machine::{Loop, Volume, run};

const MIB: u64 = 1 << 20;
const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// Records packets; gives what the recorder reported and said.
fn record(disk: &Loop, folder: &Volume, packets: Range<u32>, wished: &str) -> (Value, String) {
    let path = folder.file("some.pcap");
    std::fs::write(&path, capture(FIRST_NS, packets)).unwrap();
    let record = ["record", &disk.path, "--read", &path, "--pool", "4M", "--json"];
    let ran = run(&[&record[..], &["--no-index", "--discard", wished]].concat()).done();
    (serde_json::from_str(&ran.out).unwrap(), ran.err)
}

#[test]
fn a_disk_hears_what_is_needed_no_more_and_keeps_what_was_promised() {
    let Some(disk) = Loop::in_memory(16 * MIB, &[]) else { return };
    let folder = Volume::empty();
    run(&["create", &disk.path, "--piece", "64K", "--raw", "--zones", "1"]).done();
    // Two laps and a half.
    let (silent, said) = record(&disk, &folder, 0..30_000, "off");
    assert_eq!((&silent["discarded_bytes"], said.contains("discard")), (&0.into(), false));
    let full = disk.allocated_bytes();

    let (told, said) = record(&disk, &folder, 30_000..31_000, "on");
    assert!(said.contains("gets discards ahead of the head"), "{said}");
    assert!(told["discarded_bytes"].as_u64().unwrap() >= 4 * 65536, "{told}");
    // Slots in front of the head are holes in the file below the disk.
    let holes = full.saturating_sub(disk.allocated_bytes());
    assert!(holes >= 65536, "{holes} of {full} bytes are not allocated");
    let found = extracted(&disk.path, folder.folder.path(), FIRST_NS);
    let oldest = *found.first().unwrap();
    assert_eq!(found, (oldest..31_000).collect::<BTreeSet<u32>>());
    assert!(oldest < 22_000, "{oldest}");
    run(&["verify", &disk.path]).done();
}

#[test]
fn a_file_is_never_discarded() {
    let volume = Volume::empty();
    let path = volume.file("some.pcap");
    std::fs::write(&path, capture(FIRST_NS, 0..1000)).unwrap();
    let ran = volume.record(&["--read", &path, "--discard", "on", "--json"]).done();
    assert!(ran.err.contains("gets no discards: it is no block device"), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["discarded_bytes"], 0);
    let wrong = run(&["record", &volume.path, "--read", &path, "--discard", "maybe"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("auto, on, off"), "{wrong:?}");
}
