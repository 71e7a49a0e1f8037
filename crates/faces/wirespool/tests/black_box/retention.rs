//! A maximum age, and packets that are held beyond the ring.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::golden::{capture, extracted};
use crate::machine::{Mounted, Volume, run, text};

const HOUR_NS: u64 = 3_600_000_000_000;

fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// Packets 0 to 49 came two hours ago, 50 to 99 ten minutes ago. Gives the time of packet 0, were
/// all as the newer ones. Of what is too old to be given out the recording ends with status 1.
fn record_old_and_new(volume: &Volume, arguments: &[&str], of_old: i32) -> u64 {
    let first_ns = now_ns() - HOUR_NS / 6;
    let inputs = [(first_ns - 2 * HOUR_NS, 0..50), (first_ns, 50..100)];
    for (number, (first_ns, packets)) in inputs.into_iter().enumerate() {
        let path = volume.file(&format!("{number}.pcap"));
        std::fs::write(&path, capture(first_ns, packets)).unwrap();
        let ran = volume.record(&[&["--read", &*path], arguments].concat());
        assert_eq!(ran.code, Some(if number == 0 { of_old } else { 0 }), "{ran:?}");
    }
    first_ns
}

fn inspected(volume: &Volume) -> Value {
    let json = run(&["inspect", &volume.path, "--json"]).done().out;
    serde_json::from_str(&json).unwrap()
}

/// Rows live from the index directory alone once the ring has overwritten their packets.
#[test]
fn rows_that_cannot_be_kept_are_said_to_be_lost_while_it_is_recorded() {
    let volume = Volume::empty();
    let options = ["-t", "tmpfs", "-o", "size=16k,mode=700", "none"];
    let Some(index) = Mounted::new(&options) else { return };
    let ballast = index.folder.path().join("fill");
    std::fs::write(&ballast, vec![0; 16 << 10]).unwrap();
    let folder = text(index.folder.path().to_path_buf());
    let record = |name: &str, further: &[&str]| {
        let capture_file = volume.file(name);
        std::fs::write(&capture_file, capture(now_ns() - HOUR_NS / 6, 0..50)).unwrap();
        let words = ["record", &volume.path, "--read", &capture_file, "--pool", "4M"];
        run(&[&words[..], &["--index-dir", &folder], further].concat()).done()
    };
    let keep = ["--keep-sessions", "180d"];
    let full = record("full.pcap", &keep);
    assert!(full.err.contains("do not outlive their packets (--keep-sessions)"), "{full:?}");
    let without = record("without.pcap", &[]);
    assert!(!without.err.contains("outlive"), "{without:?}");
    std::fs::remove_file(&ballast).unwrap();
    let room = record("room.pcap", &keep);
    assert!(!room.err.contains("outlive"), "{room:?}");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let unusable = record("unusable.pcap", &keep);
    assert!(unusable.err.contains("no row outlives its packets"), "{unusable:?}");
}

#[test]
fn nothing_older_than_the_maximum_age_is_given_out() {
    let volume = Volume::empty();
    let first_ns = record_old_and_new(&volume, &["--max-age", "1h"], 1);
    let newer = (50..100).collect();
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns), newer);
    let json = inspected(&volume);
    assert_eq!(json["max_age_ns"], HOUR_NS);
    let through = json["expired_through_ns"].as_u64().unwrap();
    assert!((now_ns() - HOUR_NS).abs_diff(through) < HOUR_NS / 60, "{json:#}");
    assert!(json["start_ns"].as_u64().unwrap() >= through);
    let text = run(&["inspect", &volume.path]).done().out;
    assert!(text.contains("maximum age:   60 min 0 s; expired up to "), "{text}");

    let index = ["--index-dir", &*volume.index];
    let out = volume.file("whole.pcap");
    let whole = ["extract", &volume.path, "udp", "--whole-sessions", "-w", &out];
    let ran = run(&[&whole[..], &index].concat());
    assert!(ran.code == Some(1) && ran.err.contains("\nexpired: "), "{ran:?}");
    let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
    assert!(manifest.contains("\"expired_through_ns\""), "{manifest}");
    // Also without the index, and with the rows that the index directory keeps.
    std::fs::remove_dir_all(&volume.index).unwrap();
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns).len(), 50);
    let find = ["find", &volume.path, "--json", "--keep-sessions", "30d"];
    let found = run(&[&find[..], &index].concat()).out;
    let starts = found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let starts: Vec<u64> = starts.map(|row| row["start_ns"].as_u64().unwrap()).collect();
    assert!(starts.len() == 35 && starts.iter().all(|start| *start >= first_ns), "{found}");

    // What has expired does not come back when nothing expires any more.
    let path = volume.file("1.pcap");
    volume.record(&["--read", &path, "--max-age", "off"]).done();
    let json = inspected(&volume);
    assert_eq!(json.get("max_age_ns"), None);
    assert!(json["expired_through_ns"].as_u64() >= Some(through), "{json:#}");
    let ran = run(&["extract", &volume.path, "udp", "-w", &volume.file("again.pcapng")]);
    assert!(ran.code == Some(1) && ran.err.starts_with("100 packets"), "{ran:?}");
}

#[test]
fn a_volume_remembers_its_maximum_age() {
    let volume = Volume::empty();
    std::fs::remove_file(&volume.path).unwrap();
    let create = ["create", &volume.path, "--size", "64M", "--piece", "256K", "--sparse"];
    run(&[&create[..], &["--max-age", "1h"]].concat()).done();
    let first_ns = record_old_and_new(&volume, &[], 1);
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns).len(), 50);
    assert_eq!(inspected(&volume)["max_age_ns"], HOUR_NS);
    let ran = volume.record(&["--read", "x", "--max-age", "forever"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_hold_is_an_extract_with_its_manifest_within_a_budget() {
    let volume = Volume::empty();
    record_old_and_new(&volume, &[], 0);
    let holds = volume.file("holds");
    let listed = |arguments: &[&str]| {
        run(&[&["hold", "--list", "--hold-dir", &holds], arguments].concat()).done().out
    };
    assert_eq!(listed(&["--json"]), "[]\n");
    let absent = run(&["hold", "--list", "--hold-dir", &holds]).done().err;
    assert!(absent.contains("holds does not exist: no holds are there"), "{absent}");
    let hold = ["hold", &volume.path, "udp", "--hold-dir", &holds, "--index-dir", &volume.index];
    let ran = run(&hold).done();
    assert!(ran.err.starts_with("100 packets in ") && ran.err.contains("complete"), "{ran:?}");
    run(&hold).done();
    let json: Value = serde_json::from_str(&listed(&["--json"])).unwrap();
    let entries = json.as_array().unwrap();
    assert_eq!(entries.len(), 2, "{json}");
    let file = format!("{holds}/{}", entries[0]["file"].as_str().unwrap());
    assert_eq!(entries[0]["packets"], 100);
    assert_eq!(entries[0]["bytes"], std::fs::metadata(&file).unwrap().len());
    run(&["verify-extract", &format!("{file}.json"), &file]).done();
    assert_eq!(listed(&[]).lines().count(), 3);

    let files = || std::fs::read_dir(&holds).unwrap().count();
    assert_eq!(files(), 4);
    for most in ["1", "250K"] {
        let full = run(&[&hold[..], &["--size-max", most]].concat());
        full.is_refused("has no space for it");
        assert_eq!(files(), 4, "nothing is left of it");
    }
    for wrong in [&["hold"][..], &["hold", &volume.path], &["hold", &volume.path, "udp and"]] {
        assert_eq!(run(&[wrong, &["--hold-dir", &holds]].concat()).code, Some(2), "{wrong:?}");
    }
    assert_eq!(files(), 4);

    // What is not as it was put aside is not called complete.
    let list = ["hold", "--list", "--hold-dir", &holds];
    let (manifest, packets) = (format!("{file}.json"), std::fs::read(&file).unwrap());
    let text = std::fs::read_to_string(&manifest).unwrap();
    let is_told = |altered: &str, shown: &str| {
        let ran = run(&list);
        assert!(ran.code == Some(1) && ran.out.contains(shown), "{ran:?}");
        let ran = run(&[&list[..], &["--json"]].concat());
        let json: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, json[0]["altered"].as_str()), (Some(1), Some(altered)), "{json}");
    };
    std::fs::write(&file, &packets[..packets.len() - 1]).unwrap();
    is_told("length", "other length");
    std::fs::remove_file(&file).unwrap();
    is_told("missing", "file missing");
    std::fs::write(&file, &packets).unwrap();
    let altered = text.replace("\"complete\": true", "\"complete\" : true");
    std::fs::write(&manifest, altered).unwrap();
    is_told("manifest", "manifest altered");
    std::fs::write(&manifest, "{").unwrap();
    assert_eq!(run(&list).code, Some(1));
    std::fs::write(&manifest, text).unwrap();
    run(&list).done();
}

/// Records 5 MB a time, in 24 times two laps of the ring; the packets of one host of five are held.
/// Gives what each recorder said on standard error, and the codes.
fn record_with_hold(volume: &Volume, holds: &str, budget: &str) -> (String, BTreeSet<i32>) {
    let (mut said, mut codes) = (String::new(), BTreeSet::new());
    for round in 0..24 {
        let path = volume.file("round.pcap");
        std::fs::write(&path, capture(FIRST_NS, round * 5000..(round + 1) * 5000)).unwrap();
        let hold = ["--hold", "src host 10.1.0.3", "--hold-dir", holds, "--hold-budget", budget];
        let ran = volume.record(&[&["--read", &*path], &hold[..]].concat());
        said += &ran.err;
        codes.insert(ran.code.unwrap());
    }
    (said, codes)
}

const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// Numbers of the packets in all holds; each is in one of them.
fn held(holds: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for entry in std::fs::read_dir(holds).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pcapng") {
            let path = path.to_str().unwrap();
            run(&["verify-extract", &format!("{path}.json"), path]).done();
            // A volume of its own reads it.
            let volume = Volume::empty();
            volume.record(&["--read", path]).done();
            let found = extracted(&volume.path, volume.folder.path(), FIRST_NS);
            assert!(numbers.is_disjoint(&found), "{path}");
            numbers.extend(found);
        }
    }
    numbers
}

#[test]
fn what_a_standing_hold_asks_for_is_put_aside_before_the_ring_takes_it() {
    let volume = Volume::empty();
    let holds = volume.file("holds");
    let (said, codes) = record_with_hold(&volume, &holds, "1G");
    assert_eq!(codes, BTreeSet::from([0]), "{said}");
    assert!(said.contains("packets in ") && !said.contains("overwritten"), "{said}");
    let mut numbers = held(&holds);
    let in_ring = extracted(&volume.path, volume.folder.path(), FIRST_NS);
    assert!(*in_ring.first().unwrap() > 5000, "the ring has gone round");
    assert!(!numbers.is_empty() && numbers.iter().all(|number| number % 5 == 3));
    numbers.extend(in_ring.into_iter().filter(|number| number % 5 == 3));
    assert_eq!(numbers, (0..120_000).filter(|number| number % 5 == 3).collect());
    let listed = run(&["hold", "--list", "--hold-dir", &holds, "--json"]).done().out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(listed.as_array().unwrap().iter().all(|hold| hold["complete"] == true), "{listed:#}");
}

#[test]
fn what_does_not_fit_the_budget_of_a_standing_hold_is_said_and_never_silently_lost() {
    let volume = Volume::empty();
    let holds = volume.file("holds");
    let (said, codes) = record_with_hold(&volume, &holds, "3M");
    assert!(codes.contains(&1), "{said}");
    assert!(said.contains("does not fit: "), "{said}");
    assert!(said.contains("were overwritten before they could be put aside"), "{said}");
    let bytes = std::fs::read_dir(&holds).unwrap().map(|file| file.unwrap().metadata().unwrap());
    let bytes: u64 = bytes.map(|file| file.len()).sum();
    assert!(bytes <= 3 << 20, "{bytes}");
    assert!(!held(&holds).is_empty(), "what did fit is held");

    let hold =
        |arguments: &[&str]| volume.record(&[&["--read", "x", "--hold"], arguments].concat()).code;
    assert_eq!(hold(&["tcp"]), Some(2), "it needs a folder");
    assert_eq!(hold(&["tcp and", "--hold-dir", &holds]), Some(2), "no query");
}

/// Numbers of the packets that lie anywhere in a file, in the clear.
fn in_file(path: &str) -> BTreeSet<u32> {
    let bytes = std::fs::read(path).unwrap();
    // From the sender's address to the number: golden.rs, `packet`.
    let found = bytes.windows(20).filter(|it| matches!(it, [10, 1, 0, _, 10, 2, 0, 1, ..]));
    found.map(|it| u32::from_be_bytes(*it.last_chunk().unwrap())).collect()
}

fn index_files(volume: &Volume) -> usize {
    let files = std::fs::read_dir(&volume.index).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".parquet")).count()
}

#[test]
fn what_is_older_than_the_maximum_age_is_erased_with_its_index() {
    let volume = Volume::empty();
    let first_ns = record_old_and_new(&volume, &["--max-age", "1h", "--erase"], 1);
    let newer: BTreeSet<u32> = (50..100).collect();
    assert_eq!(in_file(&volume.path), newer);
    assert_eq!(index_files(&volume), 1, "only that of the newer packets");
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns), newer);
    let json = inspected(&volume);
    assert_eq!(json["erases"], true);
    let text = run(&["inspect", &volume.path]).done().out;
    assert!(text.contains(", erased\n"), "{text}");
    // What is gone is no damage, and nothing that could be repaired.
    run(&["verify", &volume.path]).done();
    run(&["scrub", &volume.path]).done();
    assert_eq!(in_file(&volume.path), newer);

    // Slots go in the order of the ring: what is old behind something younger is hidden first.
    let path = volume.file("0.pcap");
    assert_eq!(volume.record(&["--read", &path]).code, Some(1));
    assert_eq!(inspected(&volume)["erases"], true, "the volume remembers it");
    assert_eq!(in_file(&volume.path).len(), 100);
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns), newer);
    assert_eq!(volume.record(&["--read", &path, "--max-age", "1s"]).code, Some(1));
    assert_eq!(in_file(&volume.path), BTreeSet::new());

    let ran = volume.record(&["--read", &path, "--max-age", "off", "--erase"]);
    ran.is_refused("nothing would be erased");
    assert_eq!(volume.record(&["--read", &path, "--erase=perhaps"]).code, Some(2));
    assert_eq!(volume.record(&["--read", &path, "--erase=off"]).code, Some(1));
    assert_eq!(inspected(&volume).get("erases"), None);
    assert_eq!(in_file(&volume.path), (0..50).collect(), "expired, and not erased");
    let out = volume.file("none.pcap");
    let ran = run(&["extract", &volume.path, "udp", "-w", &out, "--index-dir", &volume.index]);
    assert!(ran.code == Some(1) && ran.err.starts_with("0 packets"), "{ran:?}");
}

#[test]
fn a_volume_that_nobody_records_into_is_erased_by_command() {
    let volume = Volume::empty();
    let first_ns = record_old_and_new(&volume, &[], 0);
    let erase = |arguments: &[&str]| {
        run(&[&["erase", &volume.path, "--index-dir", &volume.index], arguments].concat())
    };
    erase(&[]).is_refused("has no maximum age");
    assert_eq!(in_file(&volume.path).len(), 100);
    assert_eq!(erase(&["--max-age", "a while"]).code, Some(2));
    // Copies of packets that ended an indexer, from the first slot and from one behind the newest.
    let [gone, stays] = [0_u64, 1 << 40]
        .map(|sequence| format!("{}/poison-{sequence:020}-00000-00.pcapng", volume.index));
    for copy in [&gone, &stays] {
        std::fs::write(copy, b"packets").unwrap();
    }
    let ran = erase(&["--max-age", "1h"]).done();
    assert!(ran.out.contains("erased"), "{ran:?}");
    assert_eq!(in_file(&volume.path), (50..100).collect());
    assert_eq!(index_files(&volume), 1);
    assert!(!Path::new(&gone).exists() && Path::new(&stays).exists());
    assert_eq!(extracted(&volume.path, volume.folder.path(), first_ns), (50..100).collect());
    assert_eq!(erase(&["--max-age", "1h"]).done().out, "nothing has expired\n");
    run(&["scrub", &volume.path]).done();

    let ran = erase(&["--max-age", "1s", "--json"]).done();
    assert!(ran.out.contains("\"stopped\": false"), "{ran:?}");
    assert_eq!(in_file(&volume.path), BTreeSet::new());
    assert_eq!(index_files(&volume), 0);
    let found = run(&["find", &volume.path, "--index-dir", &volume.index]);
    assert!(
        found.code.is_some_and(|code| [0, 1, 5].contains(&code)) && !found.out.contains("10.1."),
        "{found:?}"
    );
    assert!(found.err.contains("\nerased by age: packets up to "), "{found:?}");
    let out = volume.file("erased.pcapng");
    let since = ["extract", &volume.path, "", "-w", &out, "--index-dir", &volume.index];
    let extracted = run(&since);
    assert!(extracted.err.contains("\nerased by age: "), "{extracted:?}");
    assert!(extracted.code == Some(1) && extracted.err.contains(", incomplete"), "{extracted:?}");
    let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
    assert!(manifest.contains("\"erased_through_ns\""), "{manifest}");
    run(&["erase", "/nowhere/at/all"]).fails_with(3, "/nowhere/at/all");
}
