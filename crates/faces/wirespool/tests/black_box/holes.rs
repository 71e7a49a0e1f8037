//! Long stretches of a volume that are zeros, as a program that writes to the wrong disk leaves
//! them: what lies behind them stays, and no answer calls complete what is not.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use core::ops::Range;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::golden::{capture, extracted};
use crate::machine::{Ran, Volume, command, run};

const PIECE_BYTES: u64 = 64 << 10;
const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// Zeros instead of these slots; the first one lies 2 MiB into the member.
fn zero(member: &str, slots: Range<u64>) {
    let file = File::options().write(true).open(member).unwrap();
    let (begin, end) = ((2 << 20) + slots.start * PIECE_BYTES, (2 << 20) + slots.end * PIECE_BYTES);
    let zeros = vec![0; usize::try_from(end - begin).unwrap()];
    file.write_all_at(&zeros, begin).unwrap();
}

fn record(volume: &Volume, numbers: Range<u32>) -> Ran {
    let file = volume.file("sent.pcap");
    fs::write(&file, capture(FIRST_NS, numbers)).unwrap();
    run(&["record", &volume.file("ring"), "--read", &file, "--index-dir", &volume.index])
}

/// Slots that are in use, as `verify` reads them.
fn slots_used(ring: &str) -> u64 {
    let report: Value = serde_json::from_str(&run(&["verify", ring, "--json"]).out).unwrap();
    report["slots"].as_u64().unwrap()
}

fn ring(volume: &Volume) -> String {
    let ring = volume.file("ring");
    run(&["create", &ring, "--size", "64M", "--piece", "64K", "--sparse"]).done();
    ring
}

#[test]
fn a_hole_on_the_first_lap_does_not_make_the_next_recording_write_over_what_lies_behind() {
    let volume = Volume::empty();
    let ring = ring(&volume);
    record(&volume, 0..24_000).done();
    let used = slots_used(&ring);
    assert!(used > 350, "{used} slots");
    zero(&ring, 100..300);
    let folder = Path::new(&ring).parent().unwrap();
    let before = extracted(&ring, folder, FIRST_NS);
    let newest: BTreeSet<u32> = (20_000..24_000).collect();
    assert!(before.is_superset(&newest) && before.len() < 20_000, "{} packets", before.len());
    record(&volume, 24_000..25_000);
    let after = extracted(&ring, folder, FIRST_NS);
    let expected: BTreeSet<u32> = before.into_iter().chain(24_000..25_000).collect();
    assert_eq!(after, expected, "what could be read is still there");
}

#[test]
fn newest_slots_that_are_zeros_are_damage_and_not_the_end() {
    let volume = Volume::empty();
    let ring = ring(&volume);
    record(&volume, 0..24_000).done();
    let used = slots_used(&ring);
    zero(&ring, used - 20..used);
    let status = run(&["status", &ring]).out;
    assert!(status.contains("stopped in order"), "{status}");
    let verified = run(&["verify", &ring]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let extract = ["extract", &ring, "udp", "--index-dir", &volume.index, "--force", "-w"];
    let ran = run(&[&extract[..], &[&volume.file("out.pcapng")]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("incomplete"), "{ran:?}");

    let out = volume.file("left.pcapng");
    let salvaged = run(&["salvage", &ring, "-w", &out]);
    assert_eq!(salvaged.code, Some(1), "{salvaged:?}");
    assert!(salvaged.out.contains("lost: 20 stripes without a readable head"), "{salvaged:?}");
    assert!(salvaged.out.contains("is unknown, at most"), "{salvaged:?}");
    let report = run(&["salvage", &ring, "-w", &out, "--force", "--json"]).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["unknown_stripes"], &report["complete"]), (&20.into(), &false.into()));
    assert_eq!(report["unknown_packets_at_most"], 20 * (PIECE_BYTES - 4096) / 32);

    // The next recording goes on behind them, and does not make them good.
    let again = record(&volume, 24_000..24_100);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.out.contains("20 stripes at the end of the earlier"), "{again:?}");
    assert!(!again.out.contains("did not stop in order"), "{again:?}");
    let found = extracted(&ring, Path::new(&ring).parent().unwrap(), FIRST_NS);
    assert!((0..22_000).chain(24_000..24_100).all(|number| found.contains(&number)));
}

/// The packets that an extract gets, and whether it names damage.
fn answers(volume: &Volume, ring: &str) -> (BTreeSet<u32>, bool) {
    let packets = extracted(ring, Path::new(&volume.file("")), FIRST_NS);
    let out = volume.file("again.pcapng");
    let query = ["udp", "--index-dir", &volume.index, "--force", "-w", &out];
    let ran = run(&[&["extract", ring][..], &query].concat());
    (packets, !ran.err.contains("damage: "))
}

/// The next recording indexes what has no index: of that nothing that was given before is given no
/// more, and what is damaged stays damage.
fn check_next_recording(volume: &Volume, ring: &str, next: Range<u32>) {
    let before = answers(volume, ring);
    assert!(!before.1 && !before.0.is_empty(), "{} packets", before.0.len());
    let again = record(volume, next.clone());
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.out.contains("cannot be read"), "{again:?}");
    let mut expected = before.0;
    expected.extend(next.clone());
    for _ in 0..2 {
        let after = answers(volume, ring);
        let lost: Vec<&u32> = expected.difference(&after.0).collect();
        assert!(lost.is_empty() && !after.1, "{lost:?} are lost");
        // What a recorder that was killed had written and not acknowledged is there from then on.
        let mut more = after.0.difference(&expected);
        assert!(more.all(|number| *number < next.start), "{next:?}");
        expected = after.0;
        fs::remove_dir_all(&volume.index).unwrap();
    }
    assert_eq!(run(&["verify", ring]).code, Some(1));
    // It was said once: what is recorded now is all there.
    record(volume, next.end..next.end + 10).done();
}

#[test]
fn damage_beyond_the_parity_stays_damage_when_its_slots_are_indexed() {
    let volume = Volume::empty();
    let members = ["ring", "m1", "m2"].map(|name| volume.file(name));
    let create = ["create", &members[0], "--member", &members[1], "--member", &members[2]];
    let shape = ["--parity", "1", "--size", "64M", "--piece", "64K", "--sparse"];
    run(&[&create[..], &shape].concat()).done();
    record(&volume, 0..24_000).done();
    let used = slots_used(&members[0]);
    for member in &members[..2] {
        zero(member, used - 20..used);
    }
    check_next_recording(&volume, &members[0], 24_000..25_000);
}

#[test]
fn damage_behind_the_newest_index_of_a_recorder_that_was_killed_stays_damage() {
    let volume = Volume::empty();
    let ring = ring(&volume);
    let pipe = volume.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut recorder =
        command(&["record", &ring, "--read", &pipe, "--index-dir", &volume.index]).spawn().unwrap();
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    writer.write_all(&capture(FIRST_NS, 0..24_000)).unwrap();
    // The newest segments are not closed, and the last stripes may be on their way.
    let is_stored = || slots_used(&ring) > 300;
    assert!((0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        is_stored()
    }));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(writer);
    let used = slots_used(&ring);
    let file = File::options().write(true).open(&ring).unwrap();
    let slot = (2 << 20) + (used - 30) * PIECE_BYTES;
    file.write_all_at(&[0xff, 0, 0xff], slot + 5 * 4096 + 100).unwrap();
    zero(&ring, used - 20..used - 17);
    check_next_recording(&volume, &ring, 24_000..25_000);
    // Rows of sessions are not all of them, either.
    let found = run(&["find", &ring, "udp", "--index-dir", &volume.index]);
    assert!(found.code == Some(1) && found.err.contains("damage: "), "{found:?}");
    if cfg!(feature = "sql") {
        let count = "SELECT count(*) FROM sessions";
        let sql = run(&["sql", &ring, count, "--index-dir", &volume.index]);
        assert!(sql.code == Some(1) && sql.err.contains("damage: "), "{sql:?}");
    }
}
