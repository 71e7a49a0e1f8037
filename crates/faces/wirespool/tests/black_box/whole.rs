//! Files are read whole and written whole, or not at all: one that is too long is not cut, and what
//! the disk did not keep is not called written.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::machine::{Attached, Loop, Mounted, Volume, run, text, write_key};

/// The beginning of a log or a list is no answer to a question about all of it: whatever reads a
/// file whole refuses one that is longer than it can be, and at once.
#[test]
fn a_file_that_is_too_long_is_refused_and_not_cut() {
    let volume = Volume::recorded();
    let (out, key) = (volume.file("out"), volume.file("long.key"));
    write_key(&key, "");
    let long = volume.file("long");
    fs::write(&long, "{").unwrap();
    for path in [&long, &key] {
        File::options().write(true).open(path).unwrap().set_len(5 << 30).unwrap();
    }
    let (long, path) = (long.as_str(), volume.path.as_str());
    run(&["extract", path, "", "-w", &volume.file("good")]).done();
    let good = volume.file("good");
    for arguments in [
        &["find", path, "--from-eve", long][..],
        &["find", path, "--from-zeek", long],
        &["find", path, "country = DE", "--mmdb", long],
        &["find", path, "tag = x", "--tags", long],
        &["extract", path, "-w", &out, "--sessions", long],
        &["extract", path, "", "-w", &out, "--sign", &key],
        &["approve", long, "--sign", &key],
        &["verify-extract", long, &good],
        &["verify-extract", &format!("{good}.json"), &good, "--public-key", long],
        &["verify-extract", &format!("{good}.json"), &good, "--tsa-ca", long],
        &["verify", path, "--anchor", long],
        &["verify", path, "--witness", long],
        &["qualify", "show", long],
        &["qualify", "diff", long, long],
        &["qualify", "plan", "--rate", "1G", "--disk", long],
        &["qualify", "--model", long],
        &["create", &out, "--size", "64M", "--sparse", "--qualification", long],
        &["diagnose", "recorder", path, "--report", long],
        &["bench", "--baseline", long, "--", "true"],
        &["config", "check", long],
        &["serve", path, "--token-file", &key],
    ] {
        run(arguments).is_refused("is longer than");
        assert!(!Path::new(&out).exists(), "{arguments:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let volume = Volume::recorded();
    let absent = volume.file("absent");
    for (arguments, code) in [
        (&["find", &volume.path, "--identity", &absent][..], 2),
        (&["find", &volume.path, "--from-eve", &absent], 3),
        (&["extract", &volume.path, "", "-w", &volume.file("out"), "--sign", &absent], 3),
        (&["verify", &volume.path, "--anchor", &absent], 3),
        (&["verify-extract", &absent, &absent], 3),
        (&["qualify", "show", &absent], 3),
    ] {
        let ran = run(arguments);
        ran.fails_with(code, "No such file or directory");
        assert_eq!(ran.err.matches(&absent).count(), 1, "{arguments:?}: {ran:?}");
    }
}

/// Verbs that write a file, with its place.
fn writers<'a>(volume: &'a str, to: &'a str) -> [Vec<&'a str>; 7] {
    [
        vec!["extract", volume, "", "-w", to],
        vec!["extract", volume, "", "-w", to, "--format", "pcap"],
        vec!["extract", volume, "", "-w", to, "--split", "sessions"],
        vec!["salvage", volume, "-w", to],
        vec!["anchor", volume, "-w", to],
        vec!["inspect", volume, "--map-svg", to],
        vec!["keygen", to],
    ]
}

/// Fills a file system to the last byte.
fn fill(folder: &Path) {
    let mut file = File::create(folder.join("filler")).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

#[test]
fn a_full_disk_is_named_with_the_file_and_nothing_stays() {
    let volume = Volume::recorded();
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=1M", "tmpfs"]) else { return };
    fill(disk.folder.path());
    let to = text(disk.folder.path().join("out"));
    let created = ["create", &to, "--size", "64M", "--sparse"];
    for arguments in writers(&volume.path, &to).iter().map(Vec::as_slice).chain([&created[..]]) {
        let ran = run(arguments);
        ran.is_refused("No space left on device");
        assert!(ran.err.contains(&to) || arguments[0] == "create", "{arguments:?}: {ran:?}");
        let left: Vec<_> = fs::read_dir(disk.folder.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(left.len(), 1, "{arguments:?}: {left:?}");
    }
}

/// A file system takes every write although nothing is left below it, as with a thin pool: only a
/// flush says so.
#[test]
fn what_the_disk_does_not_keep_is_not_called_written() {
    let volume = Volume::recorded();
    let Some(pool) = Mounted::new(&["-t", "tmpfs", "-o", "size=16M", "tmpfs"]) else { return };
    let image = text(pool.folder.path().join("image"));
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    // Without a journal, whose failure would end all writing.
    let made = Command::new("mkfs.ext2").args(["-q", "-F", "-b", "4096", &image]).status();
    assert!(made.expect("mkfs.ext2 runs").success());
    let Some(thin) = Mounted::new(&["-o", "loop", &image]) else { return };
    let good = text(thin.folder.path().join("good"));
    run(&["extract", &volume.path, "", "-w", &good]).done();
    fill(pool.folder.path());
    let to = text(thin.folder.path().join("out"));
    for arguments in writers(&volume.path, &to) {
        let ran = run(&arguments);
        ran.is_refused(&to);
        let causes = ["Input/output error", "No space left on device"];
        assert!(causes.iter().any(|cause| ran.err.contains(cause)), "{arguments:?}: {ran:?}");
        assert!(!Path::new(&to).exists(), "{arguments:?}");
    }
}

/// A volume comes into being whole or not at all: the member at fault is named, and the same
/// command makes it when there is room.
#[test]
fn a_volume_of_which_a_member_cannot_be_written_leaves_nothing() {
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=96M", "tmpfs"]) else { return };
    let Some(small) = Mounted::new(&["-t", "tmpfs", "-o", "size=1M", "tmpfs"]) else { return };
    let good = ["a", "b"].map(|name| text(disk.folder.path().join(name)));
    let full = text(small.folder.path().join("full"));
    let [first, second] = [&*good[0], &*good[1]];
    let members = ["--member", second, "--member", &full, "--parity", "1"];
    for more in [&["--size", "40M"][..], &["--size", "40M", "--sparse"]] {
        let create = [&["create", first][..], &members, more].concat();
        let ran = run(&create);
        ran.is_refused("No space left on device");
        let line = format!("{full} cannot be made a member: ");
        assert!(ran.err.contains(&line) && ran.err.contains("make room there"), "{ran:?}");
        for folder in [&disk, &small] {
            let left: Vec<_> = fs::read_dir(folder.folder.path()).unwrap().collect();
            assert!(left.is_empty(), "{create:?}: {left:?}");
        }
    }
    // The same of a volume that grows: what was made for that goes.
    let create = ["create", first, "--size", "40M", "--sparse"];
    run(&create).done();
    let ran = run(&["grow", first, second, &full, "--sparse"]);
    ran.is_refused("No space left on device");
    assert!(ran.err.contains(&full) && !Path::new(second).exists(), "{ran:?}");
    run(&["grow", first, second, "--sparse"]).done();
}

/// The same of disks, which get a partition table before anything is written.
#[test]
fn disks_of_a_volume_that_was_not_made_are_as_blank_as_before() {
    let Some(small) = Mounted::new(&["-t", "tmpfs", "-o", "size=3M", "tmpfs"]) else { return };
    let image = small.folder.path().join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(good) = Loop::in_memory(64 << 20, &["--partscan"]) else { return };
    let Some(full) = Attached::over(&image, &["--partscan"]) else { return };
    let create = ["create", &good.path, "--member", &full.path, "--parity", "1"];
    let (mut refusals, filler) = (0, small.folder.path().join("filler"));
    // The space ends while a partition table, zeros or a superblock is written.
    for left_kib in [0, 4, 64, 2100, 2800] {
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let len = file.metadata().unwrap().len();
        file.set_len(len.saturating_sub(left_kib << 10)).unwrap();
        let ran = run(&create);
        if ran.code == Some(3) && ran.err.contains("partition of /dev/loop") {
            println!("not run: the kernel is not to be told of partitions here");
            return;
        }
        assert_eq!(ran.code, Some(3), "{left_kib}: {ran:?}");
        assert!(ran.err.contains(&full.path), "{left_kib}: {ran:?}");
        refusals += 1;
        fs::remove_file(&filler).unwrap();
        File::options().write(true).open(&image).unwrap().set_len(0).unwrap();
        File::options().write(true).open(&image).unwrap().set_len(64 << 20).unwrap();
        let first = fs::read(&good.path).unwrap();
        assert!(first.iter().all(|byte| *byte == 0), "{left_kib}: {ran:?}");
    }
    assert_eq!(refusals, 5);
    drop(full);
    // Where there is room the same command makes it.
    let Some(other) = Loop::in_memory(64 << 20, &["--partscan"]) else { return };
    let create = ["create", &good.path, "--member", &other.path, "--parity", "1"];
    run(&create).done();
}

#[test]
fn a_witness_file_that_gets_no_line_is_not_begun() {
    let volume = Volume::recorded();
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=1M", "tmpfs"]) else { return };
    fill(disk.folder.path());
    let witness = text(disk.folder.path().join("witness"));
    let anchor = volume.file("anchor");
    let make = ["anchor", &volume.path, "-w", &anchor, "--witness", &witness];
    let ran = run(&make);
    ran.is_refused("No space left on device");
    assert!(ran.err.contains(&witness), "{ran:?}");
    assert!(!Path::new(&witness).exists(), "{ran:?}");
    assert!(ran.err.contains("the anchor is written") && Path::new(&anchor).exists(), "{ran:?}");
    // Nor where nothing came of the anchor.
    let to = text(disk.folder.path().join("out"));
    run(&["anchor", &volume.path, "-w", &to, "--witness", &witness]).is_refused("No space left");
    assert!(!Path::new(&witness).exists());
    fs::remove_file(disk.folder.path().join("filler")).unwrap();
    run(&[&make[..], &["--force"]].concat()).done();
    run(&["verify", &volume.path, "--witness", &witness]).done();
}
