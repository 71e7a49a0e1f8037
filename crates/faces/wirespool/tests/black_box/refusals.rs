//! Whatever must not be touched is refused in one line that says what was found and what to do.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::machine::{
    CAPTURES, Loop, Mounted, Volume, command, make_ext4, open_to_all, run, run_unprivileged, text,
};

const MIB: u64 = 1 << 20;

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("absent"));
    for verb in ["inspect", "verify", "find"] {
        run(&[verb, &path]).is_refused(&format!("{path} does not exist"));
    }
    run(&["record", &path, "--read", "-"]).is_refused(&format!("{path} does not exist"));
    let capture = text(folder.path().join("absent.pcap"));
    let volume = Volume::empty();
    volume.record(&["--read", &capture]).is_refused("absent.pcap");
    run(&["create", &format!("{path}/volume"), "--size", "64M"]).is_refused("the directory of");
}

#[test]
fn what_is_no_volume_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("text"));
    for size in [0, 4096, 64 << 20] {
        std::fs::write(&path, vec![b'x'; size]).unwrap();
        for verb in ["inspect", "verify", "find"] {
            run(&[verb, &path]).is_refused("is no wirespool volume");
        }
        run(&["record", &path, "--read", CAPTURES]).is_refused("is no wirespool volume");
    }
    let folder = text(folder.path().to_path_buf());
    run(&["inspect", &folder]).is_refused("neither a regular file nor a block device");
    run(&["create", &folder, "--size", "64M"]).is_refused("neither a regular file");
}

#[test]
fn a_truncated_volume_is_too_damaged() {
    let volume = Volume::recorded();
    let file = std::fs::OpenOptions::new().write(true).open(&volume.path).unwrap();
    file.set_len(32 * MIB).unwrap();
    for verb in ["inspect", "verify", "find"] {
        run(&[verb, &volume.path]).fails_with(4, "it was cut to 33554432 bytes");
    }
    volume.record(&["--read", CAPTURES]).fails_with(4, "it was cut to 33554432 bytes");
}

#[test]
fn damage_inside_is_a_verdict_with_its_place() {
    let volume = Volume::recorded();
    let mut bytes = std::fs::read(&volume.path).unwrap();
    let packet = b"www.github.com";
    let at = bytes.windows(packet.len()).position(|window| window == packet).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&volume.path, bytes).unwrap();
    let ran = run(&["verify", &volume.path]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let row = at / 4096 * 4096;
    assert!(ran.out.contains(&format!("first at byte {row}")), "row {row} in {ran:?}");
    let json = run(&["verify", &volume.path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["clean"], false);
    assert_eq!(json["damage"][0]["row_offsets"][0], row);
}

#[test]
fn a_damaged_index_is_told_apart_from_packets() {
    let volume = Volume::recorded();
    let mut bytes = std::fs::read(&volume.path).unwrap();
    let at = bytes.windows(4).position(|window| window == b"PAR1").unwrap();
    bytes[at + 100] ^= 1;
    std::fs::write(&volume.path, bytes).unwrap();
    let json = run(&["verify", &volume.path, "--json"]);
    assert_eq!(json.code, Some(1), "{json:?}");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["index_damage"].as_array().unwrap().len(), 1, "{json:#}");
    assert!(run(&["inspect", &volume.path]).done().out.contains("extract rebuilds the index"));
    std::fs::remove_dir_all(&volume.index).unwrap();
    let found = run(&["find", &volume.path, "--index-dir", &volume.index]);
    assert_eq!(found.out.lines().count(), 13, "rebuilt from packets: {found:?}");
}

#[test]
fn an_existing_file_is_kept_unless_it_is_known_and_forced() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("file"));
    let create = |force: bool| {
        let fixed = ["create", &path, "--size", "64M", "--piece", "256K", "--sparse", "--force"];
        run(if force { &fixed } else { &fixed[..7] })
    };
    create(false).done();
    create(false).is_refused("is a wirespool volume already; --force");
    assert!(create(true).done().out.contains("destroyed:     a wirespool volume"));

    std::fs::write(&path, b"").unwrap();
    create(false).is_refused("exists already and is empty; --force");
    create(true).done();

    std::fs::write(&path, vec![0; 64 << 20]).unwrap();
    make_ext4(Path::new(&path));
    create(false).is_refused("holds ext2/ext3/ext4 (found at byte 1080); --force destroys it");
    create(true).done();

    std::fs::write(&path, b"my thesis").unwrap();
    create(false).is_refused("what it holds is not known");
    create(true).is_refused("what it holds is not known");
    assert_eq!(std::fs::read(&path).unwrap(), b"my thesis");
}

#[test]
fn sizes_that_cannot_be_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("volume"));
    run(&["create", &path]).is_refused("needs a size: --size 8G");
    run(&["create", &path, "--size", "8M"])
        .is_refused("8.00 MiB are too few; a volume with pieces of 2.00 MiB needs ");
    assert_eq!(run(&["create", &path, "--size", "8 apples"]).code, Some(2));
    assert_eq!(run(&["create", &path, "--size", "64M", "--piece", "300K"]).code, Some(2));
    assert!(!Path::new(&path).exists());
    let volume = Volume::empty();
    run(&["record", &volume.path, "--pool", "1M", "--read", CAPTURES])
        .is_refused("a pool of 1.00 MiB is too small");
}

#[test]
fn missing_permission_is_named() {
    let volume = Volume::recorded();
    let folder = volume.folder.path();
    let Some(ran) = run_unprivileged(folder, &["inspect", &volume.path]) else { return };
    ran.is_refused("no permission to open");
    let path = text(folder.join("other"));
    let create = ["create", &path, "--size", "64M", "--sparse"];
    run_unprivileged(folder, &create).unwrap().is_refused("no permission");
    open_to_all(Path::new(&volume.path));
    let record = ["record", &volume.path, "--interface", "lo"];
    run_unprivileged(folder, &record).unwrap().is_refused("permi");
    // May be read, may not be written.
    let record = ["record", &volume.path, "--read", CAPTURES];
    let ran = run_unprivileged(folder, &record).unwrap();
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn a_disk_with_a_foreign_file_system_is_refused() {
    let Some(disk) = Loop::new(64 * MIB, &[], make_ext4) else { return };
    let create = ["create", &disk.path, "--piece", "256K"];
    run(&create).is_refused("holds ext2/ext3/ext4 (found at byte 1080); --force destroys it");
    let forced = run(&[&create[..], &["--force"]].concat()).done();
    assert!(forced.out.contains("destroyed:     ext2/ext3/ext4"), "{forced:?}");
    run(&create).is_refused("is a wirespool volume already");
    run(&["create", &disk.path, "--size", "1G"])
        .is_refused("it is used whole, so leave --size out");
    run(&["inspect", &disk.path]).done();
}

#[test]
fn a_whole_disk_gets_a_partition_table_unless_told_otherwise() {
    let Some(disk) = Loop::new(64 * MIB, &["--partscan"], |_| {}) else { return };
    let created = run(&["create", &disk.path, "--piece", "256K"]).done();
    let partition = format!("{}p1", disk.path);
    assert!(created.out.contains(&partition), "{created:?}");
    run(&["inspect", &partition]).done();
    run(&["inspect", &disk.path]).is_refused("of a disk with partitions, name the partition");
    run(&["create", &disk.path, "--piece", "256K"]).is_refused("GPT partition table");
    run(&["create", &disk.path, "--piece", "256K", "--raw", "--force"]).done();
    run(&["inspect", &disk.path]).done();
}

#[test]
fn a_mounted_disk_is_refused_even_with_force() {
    let Some(disk) = Loop::new(64 * MIB, &[], make_ext4) else { return };
    let Some(mounted) = Mounted::new(&[&disk.path]) else { return };
    let place = text(mounted.folder.path().to_path_buf());
    let create = ["create", &disk.path, "--force"];
    run(&create).is_refused(&format!("is mounted on {place}; nothing was changed"));
}

#[test]
fn a_read_only_disk_is_refused() {
    let Some(disk) = Loop::new(64 * MIB, &["--read-only"], |_| {}) else { return };
    run(&["create", &disk.path, "--piece", "256K"]).is_refused("is read-only");
    let volume = Volume::recorded();
    let source = volume.path.clone();
    let copy = move |path: &Path| {
        std::fs::copy(&source, path).unwrap();
    };
    let Some(disk) = Loop::new(64 * MIB, &["--read-only"], copy) else { return };
    run(&["verify", &disk.path]).done();
    run(&["record", &disk.path, "--pool", "4M", "--read", CAPTURES]).is_refused("is read-only");
}

#[test]
fn a_full_file_system_leaves_nothing_behind() {
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=32M", "tmpfs"]) else { return };
    let path = text(mounted.folder.path().join("volume"));
    run(&["create", &path, "--size", "64M"]).is_refused("No space left on device");
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_volume_in_use_has_one_writer_and_any_readers() {
    let volume = Volume::empty();
    let arguments = ["record", &volume.path, "--pool", "4M", "--read", "-"];
    let mut writer = command(&[&arguments[..], &["--index-dir", &volume.index]].concat());
    writer.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut writer = writer.spawn().unwrap();
    let capture = std::fs::read(format!("{CAPTURES}/tls.pcap")).unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(&capture).unwrap();
    // Its packets are acknowledged about a second after they came, so it holds the volume by then.
    let begun = std::time::Instant::now();
    while !run(&["inspect", &volume.path]).out.contains("all durable") {
        assert!(begun.elapsed().as_secs() < 30, "the recorder acknowledges");
    }
    let second = volume.record(&["--read", CAPTURES]);
    second.is_refused("is in use by another process or by the system");
    let forced = ["create", &volume.path, "--size", "64M", "--force"];
    run(&forced).is_refused("has it open for writing; stop that first");
    run(&["verify", &volume.path]).done();
    run(&["scrub", &volume.path]).is_refused("is in use, by a recorder perhaps");
    run(&["scrub", &volume.path, "--dry-run"]).done();
    drop(input);
    assert!(writer.wait().unwrap().success());
    assert!(run(&["find", &volume.path, "sni", "www.github.com"]).done().out.contains("github"));
}

/// Every flag that names a file to be written, with a file that is there.
#[test]
fn what_is_there_is_replaced_by_force_alone() {
    let volume = Volume::recorded();
    let (path, index) = (volume.path.clone(), volume.index.clone());
    let (taken, report) = (volume.file("taken"), volume.file("report.json"));
    let place = text(volume.folder.path().to_path_buf());
    run(&["qualify", &place, "--size", "64M", "--part", "fill", "-o", &report]).measured();
    let mut all: Vec<Vec<&str>> = vec![
        vec!["extract", &path, "", "--index-dir", &index, "-w", &taken],
        vec!["extract", &path, "", "--index-dir", &index, "-w", "-", "--manifest", &taken],
        vec!["salvage", &path, "-w", &taken],
        vec!["inspect", &path, "--map-svg", &taken],
        vec!["diagnose", "--for", "100ms", "--html", &taken],
        vec!["diagnose", "host", "--for", "100ms", "--save", &taken],
        vec!["diagnose", "tcp", "--for", "100ms", "--here", "--html", &taken],
        vec!["diagnose", "tcp", "--for", "100ms", "--here", "--save", &taken],
        vec!["diagnose", "io", "--for", "100ms", "--html", &taken],
        vec!["qualify", &place, "--size", "64M", "--part", "fill", "-o", &taken],
        vec!["qualify", &place, "--size", "64M", "--part", "fill", "--html", &taken],
        vec!["qualify", "show", &report, "--html", &taken],
        vec!["qualify", "--compare", &report, &report, "-o", &taken],
        vec!["qualify", "--compare", &report, &report, "--html", &taken],
        vec!["bench", "--export-json", &taken, "--", "true"],
        vec!["bench", "--csv", &taken, "--", "true"],
    ];
    if cfg!(feature = "sql") {
        all.push(vec!["find", &path, "--index-dir", &index, "--parquet", &taken]);
        all.push(vec!["sql", &path, "SELECT 1", "--index-dir", &index, "--parquet", &taken]);
    }
    for words in all {
        std::fs::write(&taken, "kept").unwrap();
        let ran = run(&words);
        assert_eq!(ran.code, Some(3), "{words:?}: {ran:?}");
        assert!(
            ran.err.contains("taken exists already; --force replaces it"),
            "{words:?}: {ran:?}"
        );
        assert_eq!(std::fs::read_to_string(&taken).unwrap(), "kept", "{words:?}");
        // What follows "--" is a command of its own.
        let own = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let mut with_force = words.clone();
        with_force.insert(own, "--force");
        let forced = run(&with_force);
        assert!(!forced.err.contains("exists already"), "{words:?}: {forced:?}");
        assert_ne!(std::fs::read_to_string(&taken).unwrap_or_default(), "kept", "{words:?}");
    }
}
