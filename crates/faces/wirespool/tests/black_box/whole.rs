//! Files are read whole and written whole, or not at all: one that is too long is not cut, and what
//! the disk did not keep is not called written.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::machine::{Mounted, Volume, run, text, write_key};

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
