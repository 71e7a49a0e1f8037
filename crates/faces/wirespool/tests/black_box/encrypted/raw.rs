//! Raw extracts: made without a private key, opened elsewhere with one.

use std::path::Path;

use serde_json::Value;

use super::{Encrypted, canaries, found};
use crate::machine::{CAPTURES, Ran, Volume, run, text};

const PCAPNG_PACKET: u32 = 6;

/// The Enhanced Packet Blocks of a file, as they are.
fn packets(path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut all) = (0, Vec::new());
    while let Some(head) = bytes.get(at..at + 8) {
        let word = |from: usize| u32::from_le_bytes(head[from..from + 4].try_into().unwrap());
        let end = at + usize::try_from(word(4)).unwrap();
        if word(0) == PCAPNG_PACKET {
            all.push(bytes[at..end].to_vec());
        }
        at = end;
    }
    all
}

fn json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn decrypt(volume: &Encrypted, raw: &str, more: &[&str]) -> Ran {
    run(&[&["decrypt", raw, "--identity", &volume.key, "--force"], more].concat())
}

#[test]
fn packets_are_copied_without_a_key_and_opened_elsewhere() {
    let volume = Encrypted::new(3, "1");
    volume.record(&["--read", CAPTURES, "--name", "captures"]).done();
    let direct = volume.extract("", "direct.pcapng");
    let raw = volume.file("all.raw");
    let made = ["extract", volume.path(), "", "--raw", "-w", &raw, "--case", "2026/17"];
    let made = run(&made).done();
    assert!(made.err.contains(", encrypted, complete"), "{made:?}");
    let bytes = std::fs::read(&raw).unwrap();
    for canary in canaries() {
        assert_eq!(found(&canary, std::slice::from_ref(&bytes)), 0, "{canary:?}");
    }
    let manifest = volume.file("all.raw.json");
    run(&["verify-extract", &manifest, &raw]).done();

    // Elsewhere: nothing of the volume is there any more.
    let elsewhere = tempfile::tempdir().unwrap();
    let [there, out] = ["there.raw", "out.pcapng"].map(|name| text(elsewhere.path().join(name)));
    std::fs::rename(&raw, &there).unwrap();
    std::fs::copy(&manifest, format!("{there}.json")).unwrap();
    volume.members.iter().for_each(|member| std::fs::remove_file(member).unwrap());
    std::fs::remove_dir_all(&volume.index).unwrap();
    let opened = decrypt(&volume, &there, &["-w", &out]).done();
    assert!(opened.err.contains("packets, complete"), "{opened:?}");
    assert!(std::fs::read(&out).unwrap() == direct, "byte by byte what a direct extract gives");
    let own = json(&format!("{out}.json"));
    let of_raw = json(&manifest);
    assert_eq!(own["request"]["raw_blake3"], of_raw["outputs"][0]["blake3"]);
    assert_eq!(own["case"], "2026/17");
    let of_direct = json(&volume.file("direct.pcapng.json"));
    for key in ["completeness", "statement", "outputs", "pieces", "clocks", "volume_id", "rows"] {
        let strip = |mut value: Value| {
            if let Some(output) = value.get_mut(0).and_then(Value::as_object_mut) {
                output.remove("file");
            }
            value
        };
        assert_eq!(strip(own[key].clone()), strip(of_direct[key].clone()), "{key}");
    }
    run(&["verify-extract", &format!("{out}.json"), &out]).done();
    let left: Vec<_> = std::fs::read_dir(elsewhere.path()).unwrap().collect();
    assert_eq!(left.len(), 4, "no member is left behind: {left:?}");

    // Of these the sessions of a query.
    let some = volume.file("some.pcapng");
    decrypt(&volume, &there, &["udp", "-w", &some]).done();
    let (some, all) = (packets(&some).len(), packets(&out).len());
    assert!(0 < some && some < all, "{some} of {all}");
}

#[test]
fn a_part_of_the_time_is_a_part_of_the_volume() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let sessions = volume.find("");
    let starts = sessions.lines().map(|line| {
        let session: Value = serde_json::from_str(line).unwrap();
        session["start_ns"].as_i64().unwrap()
    });
    let mut starts: Vec<i64> = starts.collect();
    starts.sort_unstable();
    let [from, to] = [starts[starts.len() / 3], starts[starts.len() * 2 / 3]];
    let time = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let query = format!("after {} and before {}", time(from), time(to));
    let [raw, out, direct] = ["part.raw", "out.pcapng", "direct.pcapng"].map(|it| volume.file(it));
    run(&["extract", volume.path(), &query, "--raw", "-w", &raw]).done();
    decrypt(&volume, &raw, &["-w", &out]).done();
    let same = ["extract", volume.path(), &query, "--only-range", "-w", &direct];
    run(&[&same[..], &["--identity", &volume.key]].concat()).done();
    assert!(!packets(&out).is_empty() && packets(&out) == packets(&direct));
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let [raw, out] = ["all.raw", "out.pcapng"].map(|name| volume.file(name));
    let copy = |query: &str| run(&["extract", volume.path(), query, "--raw", "-w", &raw]);
    copy("host 10.0.0.1").fails_with(2, "--raw takes packets by their times alone");
    copy("").done();
    let open = |key: &[&str]| run(&[&["decrypt", &raw, "-w", &out], key].concat());
    open(&[]).is_refused("all.raw is encrypted: name the file of a private key with --identity");
    open(&["--identity", &volume.other]).is_refused("all.raw is encrypted to others than");
    let plain = Volume::recorded();
    run(&["extract", &plain.path, "", "--raw", "-w", &out]).is_refused("is not encrypted");
    let whole = std::fs::read(&raw).unwrap();
    let with = |bytes: &[u8]| {
        std::fs::write(&raw, bytes).unwrap();
        open(&["--identity", &volume.key])
    };
    with(&whole[..whole.len() - 5000]).fails_with(4, "is cut off after");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    with(&changed).fails_with(4, "was changed or damaged");
    with(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).is_refused("no raw extract");
    with(b"").is_refused("no raw extract");
    assert!(!Path::new(&out).exists());
    let left = std::fs::read_dir(volume.folder.path()).unwrap();
    let left =
        left.filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
    with(&whole).done();
}

/// What was recorded before the volume had recipients leaves it only as a plain extract.
#[test]
fn plain_packets_do_not_get_into_a_raw_extract() {
    let plain = Volume::recorded();
    let raw = plain.file("all.raw");
    run(&["keys", &plain.path, "--add", super::PUBLIC]);
    plain.record(&["--read", CAPTURES]).done();
    run(&["extract", &plain.path, "", "--raw", "-w", &raw]).is_refused("are not encrypted");
    assert!(!Path::new(&raw).exists());
}

#[test]
fn damage_is_named_on_both_sides() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let mut bytes = std::fs::read(volume.path()).unwrap();
    let sealed =
        |slot: &usize| &bytes[*slot + 32..*slot + 40] == b"wireHEAD" && bytes[*slot + 58] == 1;
    let slots = ((2 << 20)..bytes.len() - (2 << 20)).step_by(4096).filter(sealed);
    let slots: Vec<usize> = slots.collect();
    let slot = slots[slots.len() / 2];
    bytes[slot + 4096..slot + 8192].fill(0x55);
    std::fs::write(volume.path(), bytes).unwrap();
    let [raw, out] = ["all.raw", "out.pcapng"].map(|name| volume.file(name));
    let made = run(&["extract", volume.path(), "", "--raw", "-w", &raw]);
    assert!(made.code == Some(1) && made.err.contains("damage"), "{made:?}");
    let opened = decrypt(&volume, &raw, &["-w", &out]);
    assert!(opened.code == Some(1) && opened.err.contains("damage"), "{opened:?}");
}
