//! A qualification as its user meets it: a file of its own, devices that are not touched, a model.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::{BINARY, Loop, Mounted, Throttle, command, make_ext4, run, text};

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles");

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| text(entry.unwrap().file_name().into())).collect()
}

#[test]
fn a_directory_is_qualified_with_a_file_that_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let (path, report) = (text(folder.path().into()), text(folder.path().join("report.json")));
    let sizes = ["--size", "256M", "--blocks", "2", "--rate", "1M", "-o", &report];
    let parts = ["--part", "sweep", "--part", "fill", "--part", "extents", "--json"];
    let answer = run(&[&["qualify", &path][..], &sizes, &parts].concat());
    // A moment's writing is no guarantee, unless the machine is slow enough.
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let is_short = json["verdict"]["doubts"][0]["reason"] == "short";
    let (code, word, said) =
        if is_short { (5, "cannot_judge", "it takes --size") } else { (0, "fits", "it fits") };
    assert_eq!(answer.code, Some(code), "{answer:?}");
    assert_eq!((&json["version"], &json["target"]["kind"]), (&1.into(), &"own_file".into()));
    let parts = json["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["part"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["sweep", "fill", "extents"]);
    assert_eq!(parts[1]["verified"], serde_json::json!({ "rows": 64, "wrong": 0 }));
    let written: u64 = parts[1]["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|window| window["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!((written, &json["verdict"]["asked"]["answer"]), (256 << 20, &word.into()));
    let rate = |name: &str| json[name].as_u64().unwrap();
    assert!(rate("guaranteed_bytes_per_s") <= rate("mean_bytes_per_s"));
    assert_eq!(names(folder.path()), ["report.json"], "the file is gone");
    let shown = run(&["qualify", "show", &report]).out;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("written, all to files of its own"), "{shown}");
    assert!(words.contains(said), "{shown}");
    assert_eq!(
        run(&["qualify", "show", &report, "--json"]).out,
        std::fs::read_to_string(&report).unwrap()
    );
}

#[test]
fn a_rate_that_is_too_high_is_a_negative_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("new"));
    let flags = ["--size", "64M", "--part", "fill", "--rate", "900G"];
    let answer = run(&[&["qualify", &path][..], &flags].concat());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.out.contains("too slow by"), "{answer:?}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_lies_in_memory_or_takes_a_moment_guarantees_nothing() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return println!("not run: no /dev/shm");
    };
    let path = text(folder.path().into());
    let flags = ["--size", "64M", "--part", "fill"];
    let words = [&["qualify", &path][..], &flags].concat();
    let answer = run(&words);
    assert_eq!(answer.code, Some(5), "{answer:?}");
    assert!(
        answer.out.contains("cannot judge: what is written there lies in memory"),
        "{answer:?}"
    );
    assert!(!answer.out.contains("guarantees"), "{answer:?}");
    let asked = run(&[&words[..], &["--rate", "1M"]].concat());
    assert_eq!(asked.code, Some(5), "{asked:?}");
    let asked = run(&[&words[..], &["--rate", "9000G"]].concat());
    assert_eq!(asked.code, Some(1), "too slow is too slow: {asked:?}");
}

#[test]
fn a_file_that_is_there_is_only_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let content = vec![7; 16 << 20];
    std::fs::write(file.path(), &content).unwrap();
    let path = text(file.path().into());
    let flags = ["--rate", "1M", "--blocks", "1"];
    let answer = run(&[&["qualify", &path][..], &flags].concat());
    assert_eq!(answer.code, Some(5), "{answer:?}");
    assert!(answer.out.contains("what was measured does not say"), "{answer:?}");
    assert_eq!(std::fs::read(&path).unwrap(), content);
    run(&["qualify", &path, "--part", "fill"]).is_refused("part fill writes, and");
    run(&["qualify", &path, "--destroy", "x"]).is_refused("is no device");
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().into());
    for (flags, said) in [
        (&["--part", "all"][..], "sweep, fill, "),
        (&["--block", "1000"], "a multiple of 4096"),
        (&["--size", "1M"], "a file of at least 64M"),
        (&["--mix", "jumbo"], "--mix jumbo: a length"),
        (&["--quick", "--full"], "cannot be used with"),
        (&["--rounds", "3"], "belong with --compare"),
    ] {
        let ran = run(&[&["qualify", &path], flags].concat());
        assert!(ran.code == Some(2) && ran.err.contains(said), "{said}: {ran:?}");
    }
    assert_eq!(run(&["qualify"]).code, Some(2));
    let absent = text(folder.path().join("absent/file"));
    run(&["qualify", &absent]).is_refused("does not exist");
    run(&["qualify", "/dev/null"]).is_refused("neither a file, a directory nor a block device");
    let other = text(folder.path().join("other.json"));
    std::fs::write(&other, "{}").unwrap();
    run(&["qualify", "show", &other]).is_refused("not the file of a qualification");
    assert_eq!(names(folder.path()), ["other.json"]);
}

#[test]
fn a_model_answers_for_an_array_in_its_own_time() {
    let profile = format!("{PROFILES}/single-8tb.csv");
    let flags = ["--data-disks", "2", "--rate", "2.5G", "--mix", "640", "--json"];
    let parts = ["--part", "sweep", "--part", "extents"];
    let answer = run(&[&["qualify", "--model", &profile][..], &flags, &parts].concat());
    let json: Value = serde_json::from_str(&answer.done().out).unwrap();
    assert_eq!(json["target"]["size_bytes"].as_u64(), Some(16_000_000_000_000 / 8192 * 8192));
    let judged = json["verdict"]["judged"].as_array().unwrap();
    let guaranteed = |at: usize| judged[at]["guaranteed_bytes_per_s"].as_u64().unwrap();
    assert_eq!((&judged[0]["order"], judged.len()), (&"zone_levelled".into(), 2));
    // RAID 0 of two such disks: about 250 MB/s in first-to-last order, about 400 levelled.
    assert!((250_000_000..280_000_000).contains(&guaranteed(1)), "{}", guaranteed(1));
    assert!((380_000_000..410_000_000).contains(&guaranteed(0)), "{}", guaranteed(0));
}

#[test]
fn a_device_is_written_to_only_by_name_and_only_when_it_is_empty() {
    let Some(device) = Loop::new(64 << 20, &[], |_| {}) else { return };
    let name = device.path.trim_start_matches("/dev/").to_owned();
    let flags = ["--part", "fill", "--destroy"];
    let destroy = |name: &str, more: &[&str]| {
        run(&[&["qualify", &device.path][..], &flags, &[name], more].concat())
    };
    run(&["qualify", &device.path, "--part", "fill"]).is_refused("--destroy NAME agrees");
    destroy("sda", &[]).is_refused(&format!("is {name}, not sda; nothing was written"));
    make_ext4(Path::new(&device.path));
    destroy(&name, &[]).is_refused("holds ext2/ext3/ext4 (found at byte 1080)");
    if let Some(mounted) = Mounted::new(&[&device.path]) {
        destroy(&name, &["--overwrite", "ext2/ext3/ext4"]).is_refused("is mounted on");
        drop(mounted);
    }
    destroy(&name, &["--overwrite", "ext2/ext3/ext4"]).measured();
    // Our own stamp lies there now: what we wrote is nothing to lose.
    destroy(&name, &[]).measured();
    run(&["create", &device.path, "--raw", "--force"]).done();
    destroy(&name, &[]).is_refused("holds a wirespool volume; nothing was written");
    destroy(&name, &["--overwrite", "volume"]).measured();
    let output = std::fs::OpenOptions::new().write(true).open(&device.path);
    Write::write_all(&mut output.unwrap(), &vec![b'x'; 16 << 20]).unwrap();
    destroy(&name, &[]).is_refused("that no program signed; nothing was written");
    destroy(&name, &["--overwrite", "data"]).measured();
}

#[test]
fn a_run_that_is_stopped_removes_its_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().into());
    let flags = ["--size", "64M", "--part", "latency", "--offer", "1M", "--json"];
    let mut child = command(&[&["qualify", &path][..], &flags].concat());
    let child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    // The file is there when it is measured, or about to be.
    while names(folder.path()).is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(1), "the file is made");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["is_interrupted"], true);
    assert!(json["written"][0]["end"].as_u64().unwrap() > 0, "{}", json["written"]);
    assert!(names(folder.path()).is_empty(), "the file is gone");
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_one_and_what_is_anybody_elses_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("probe"));
    let flags = ["--size", "64M", "--part", "latency", "--offer", "1M", "--json"];
    let words = [&["qualify", &path][..], &flags].concat();
    let mut child = command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while names(folder.path()).len() < 2 {
        assert!(begun.elapsed() < Duration::from_mins(1), "file and folder are made");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Of a run that goes on nothing is taken away: its file is only read.
    std::thread::sleep(Duration::from_secs(1));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(names(folder.path()).contains(&"probe".to_owned()), "{:?}", names(folder.path()));
    let again = run(&words).measured();
    assert!(again.err.contains("removed") && again.err.contains("probe"), "{again:?}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    // A file of a user beside such a folder.
    std::fs::create_dir(format!("{path}-files")).unwrap();
    std::fs::write(&path, vec![7; 64 << 20]).unwrap();
    run(&words);
    assert!(std::fs::read(&path).unwrap() == vec![7; 64 << 20]);
    assert!(Path::new(&format!("{path}-files")).exists());
}

#[test]
fn the_limit_of_a_throttled_device_is_found() {
    let Some(device) = Loop::in_memory(256 << 20, &[]) else { return };
    let limit = 40_000_000;
    let Some(group) = Throttle::new(&[&device], limit) else { return };
    let name = device.path.trim_start_matches("/dev/");
    // Requests above max_sectors_kb (1280 here) are split, and of those that wait in its queue the
    // controller lets through half the rate: as if it charged them twice.
    let flags = ["--destroy", name, "--part", "fill", "--block", "1M", "--json"];
    let asked = ["--rate", "200M", "--mix", "640"];
    let words = [&["qualify", &device.path], &flags[..], &asked].concat();
    let output = group.command(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    for rate in ["guaranteed_bytes_per_s", "mean_bytes_per_s"] {
        let found = json[rate].as_u64().unwrap();
        assert!(found.abs_diff(limit) <= limit / 20, "{rate}: {found} of {limit}");
    }
    // It is named, and the disk is not called slow for it.
    let doubt = &json["verdict"]["doubts"][0];
    assert_eq!(doubt["reason"], "limited", "{:#}", json["verdict"]);
    assert_eq!(doubt["limit"], json["target"]["limits"][0]);
    assert_eq!(
        (&doubt["limit"]["disk"], &doubt["limit"]["per_second"]),
        (&name.into(), &limit.into())
    );
    let much = [&["qualify", &device.path], &flags[..], &["--rate", "90G"]].concat();
    let output = group.command(&much).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn a_file_longer_than_the_process_may_write_is_refused_before_it_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "ulimit -f 1024; exec '{}' qualify '{}' --size 64M --part fill",
        env!("CARGO_BIN_EXE_wirespool"),
        folder.path().display()
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(errors.contains("ulimit -f unlimited"), "{errors}");
    assert!(names(folder.path()).is_empty());
}

/// The limit is another in each run, and what it is stands in a pipe: it is read when a run begins,
/// and its writer sets the limit before.
#[test]
fn a_device_with_two_modes_is_found_and_explained_by_what_makes_them() {
    let devices = [(); 2].map(|()| Loop::in_memory(64 << 20, &[]));
    let [Some(device), Some(other)] = devices else { return };
    let Some(group) = Throttle::new(&[&device], 16_000_000) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pipe = text(folder.path().join("limit"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let names = [&device, &other].map(|it| it.path.trim_start_matches("/dev/").to_owned());
    let flags = ["--rounds", "20", "--run-size", "16M", "--block", "1M", "--json", "--fact", &pipe];
    let destroy = ["--destroy", &names[0], "--destroy", &names[1]];
    let targets = ["qualify", "--compare", &device.path, &other.path];
    let words = [&targets[..], &destroy, &flags].concat();
    let mut command = group.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    let mut out = program.stdout.take().unwrap();
    let read = std::thread::Builder::new()
        .spawn(move || std::io::read_to_string(&mut out).unwrap())
        .unwrap();
    // Neither turns nor rounds: both modes come up in each of them.
    let pattern = 0b1011_0010_1110_0100_1101_0001_0110_1001_1100_0101_u64;
    for run in 0..40 {
        let (limit, word) =
            if pattern >> run & 1 == 1 { (80_000_000, "wide") } else { (16_000_000, "narrow") };
        // Opening waits for the reader: the run before is over.
        let mut pipe = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        group.set(limit);
        pipe.write_all(word.as_bytes()).unwrap();
        drop(pipe);
        // Until it is closed at the other end, too.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(program.wait().unwrap().success());
    let json: Value = serde_json::from_str(&read.join().unwrap()).unwrap();
    let target = &json["comparison"]["targets"][0];
    let near = |found: &Value, limit: u64| {
        let found = found.as_u64().unwrap();
        // The controller lets the first of a run through at once.
        assert!(found.abs_diff(limit) <= limit / 4, "{found} of {limit}: {}", target["modes"]);
    };
    near(&target["modes"]["lower_bytes_per_s"], 16_000_000);
    near(&target["modes"]["upper_bytes_per_s"], 80_000_000);
    let factor = &target["factors"][0];
    assert_eq!((&factor["name"], &factor["slower"]), (&pipe.as_str().into(), &"narrow".into()));
    assert!(factor["chance"].as_u64().unwrap() < 10_000, "millionths: {factor}");
    assert!(json["comparison"]["targets"][1]["modes"].is_null(), "the other one has no limit");
}

/// A report of a modelled disk, and the volume that is to be made.
fn modelled_report(folder: &Path, more: &[&str]) -> (String, String) {
    let (report, volume) = (text(folder.join("disk.json")), text(folder.join("volume")));
    let profile = format!("{PROFILES}/single-8tb.csv");
    let flags = ["--part", "sweep", "-o", &report];
    let ran = run(&[&["qualify", "--model", &profile][..], &flags, more].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    (report, volume)
}

#[test]
fn create_takes_zones_range_and_pool_from_a_qualification() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["--rate", "1.8G", "--mix", "1514", "--pool", "2G"];
    let (report, volume) = modelled_report(folder.path(), &asked);
    let create = |more: &[&str]| {
        let fixed = ["create", &volume, "--size", "64M", "--piece", "64K", "--sparse", "--force"];
        run(&[&fixed, &["--qualification", &report][..], more].concat())
    };
    create(&[]).is_refused("disk.json is not of it: it is of a modelled disk; nothing was written");
    assert!(!Path::new(&volume).exists());
    let made = create(&["--of-other-disks"]).done().out;
    for line in
        ["because:       8 zones:", "because:       the first", "because:       a pool of 2.00 GiB"]
    {
        assert!(made.contains(line), "{line} in {made}");
    }
    let json = run(&["inspect", &volume, "--json"]).done().out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["layout"]["zones"], 8);
    assert!(json["layout"]["usable_end"].as_u64().unwrap() < 62 << 20, "{}", json["layout"]);
    let kept = &json["qualified"];
    assert_eq!((&kept["by"], &kept["pool_bytes"]), (&"places".into(), &(2_u64 << 30).into()));
    assert!(kept["guaranteed_bytes_per_s"].as_u64().unwrap() > 225_000_000, "{kept}");
    assert_eq!(kept["report"].as_str().unwrap().len(), 32);
    let said = run(&["inspect", &volume]).done().out;
    assert!(said.contains("qualified:") && said.contains("with a pool of 2.00 GiB"), "{said}");
    // What is given by hand wins.
    let hand = ["--zones", "1", "--usable", "50%", "--of-other-disks", "--json"];
    let json: Value = serde_json::from_str(&create(&hand).done().out).unwrap();
    assert_eq!((&json["layout"]["zones"], &json["qualified"]["by"]), (&1.into(), &"places".into()));
    assert_eq!(json["layout"]["usable_end"], 32 << 20);
}

#[test]
fn a_qualification_of_the_same_place_is_taken_and_a_broken_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, report) = (text(folder.path().into()), text(folder.path().join("report.json")));
    run(&["qualify", &path, "--size", "64M", "--part", "fill", "-o", &report]).measured();
    let volume = text(folder.path().join("volume"));
    let create = ["create", &volume, "--size", "64M", "--sparse", "--qualification", &report];
    let made = run(&create).done().out;
    assert!(made.contains("because:       no zones: only one order"), "{made}");
    // A row that read back wrong: such a disk is none to record on.
    let text_of = std::fs::read_to_string(&report).unwrap();
    std::fs::write(&report, text_of.replace("\"wrong\": 0", "\"wrong\": 1")).unwrap();
    let other = text(folder.path().join("other"));
    let create = ["create", &other, "--size", "64M", "--sparse", "--qualification", &report];
    run(&create).is_refused("the disk did not hold what was written to it");
    std::fs::write(&report, "{}").unwrap();
    run(&create).is_refused("not the file of a qualification");
    let json = run(&["inspect", &volume, "--json"]).done().out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["qualified"]["by"], "writing");
    assert!(!Path::new(&other).exists());
}

#[test]
fn a_disk_that_has_become_slower_is_told_of_while_it_is_recorded_to() {
    let Some(device) = Loop::in_memory(64 << 20, &[]) else { return };
    let Some(group) = Throttle::new(&[&device], 4_000_000) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (report, _) = modelled_report(folder.path(), &["--pool", "16M"]);
    let create = ["create", &device.path, "--raw", "--piece", "64K", "--zones", "8"];
    let qualified = ["--qualification", &report, "--of-other-disks"];
    run(&[&create[..], &qualified].concat()).done();
    let capture = text(folder.path().join("packets.pcap"));
    std::fs::write(&capture, crate::golden::capture(1_700_000_000_000_000_000, 0..9000)).unwrap();
    let index = text(folder.path().join("index"));
    let flags = ["--read", &capture, "--index-dir", &index, "--slow-write", "5ms", "--json"];
    let words = [&["record", &device.path], &flags[..]].concat();
    let output = group.command(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes = json["notes"].to_string();
    assert!(notes.contains("slower than qualified: /dev/loop"), "{notes}");
    let (disks, disk) = (&json["disks"], &json["disks"]["devices"][0]);
    assert!(disk["slower_than_qualified"].as_u64().unwrap() >= 1, "{disk}");
    assert!(disk["loaded_bytes"].as_u64().unwrap() > 1 << 20, "{disk}");
    let slow = &disks["slow"][0];
    assert!(slow["latency_ns"].as_u64().unwrap() > 5_000_000, "{slow}");
    assert!(slow["depth"].as_u64().unwrap() >= 1 && slow["zone"].as_u64().unwrap() < 8, "{slow}");
    assert_eq!((&disks["slow_limit_ns"], &slow["member"]), (&5_000_000.into(), &0.into()));
    let written: u64 =
        disk["places"].as_array().unwrap().iter().map(|place| place[1].as_u64().unwrap()).sum();
    assert_eq!(Some(written), disk["bytes"].as_u64());
}

#[test]
fn a_volume_is_read_and_set_beside_what_it_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let (report, volume) = modelled_report(folder.path(), &[]);
    let second = text(folder.path().join("second"));
    let create = ["create", &volume, "--member", &second, "--size", "64M", "--sparse"];
    let qualified = ["--qualification", &report, "--of-other-disks"];
    run(&[&create[..], &qualified].concat()).done();
    let before = [&volume, &second].map(|path| std::fs::read(path).unwrap());
    let ran = run(&["qualify", &volume, "--part", "sweep", "--blocks", "1", "--json"]);
    assert!(matches!(ran.code, Some(0 | 1)), "fast or slow: {ran:?}");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["data_columns"], &json["qualified"]["by"]), (&2.into(), &"places".into()));
    let members = json["members"].as_array().unwrap();
    assert_eq!(members.len(), 2);
    let guaranteed = |json: &Value| {
        json["qualification"]["guaranteed_bytes_per_s"].as_u64().expect("a rate by reading")
    };
    let least = members.iter().map(guaranteed).min().unwrap();
    assert_eq!(json["guaranteed_bytes_per_s"], least * 2, "two columns of the slowest");
    assert_eq!(json["lost"][0]["members"], 1);
    assert!(json["lost"][0]["guaranteed_bytes_per_s"].is_null(), "it has no parity: {json}");
    for member in members {
        assert!(member["read_mean_bytes_per_s"].as_u64().unwrap() > 0, "{member}");
        assert_eq!(member["qualification"]["parts"][0]["part"], "sweep");
    }
    let said = run(&["qualify", &second, "--part", "sweep", "--blocks", "1"]).out;
    assert!(said.contains("member 1: reads") && said.contains("of the mean of"), "{said}");
    assert!(before == [&volume, &second].map(|path| std::fs::read(path).unwrap()));
}

#[test]
fn a_recorder_takes_the_pool_that_its_volume_was_qualified_with() {
    if !crate::machine::is_root() {
        println!("not run: needs root for a namespace with a link");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (report, volume) = modelled_report(folder.path(), &["--pool", "300M"]);
    let create = ["create", &volume, "--size", "64M", "--piece", "256K", "--sparse"];
    let qualified = ["--qualification", &report, "--of-other-disks"];
    run(&[&create[..], &qualified].concat()).done();
    let index = text(folder.path().join("index"));
    let script = "ip link set lo up && exec \"$0\" \"$@\"";
    let words = ["--net", "sh", "-c", script, BINARY, "record", &volume, "--interface", "lo"];
    let mut child = Command::new("unshare");
    let child = child.args(words).args(["--index-dir", &index, "--json"]).stdin(Stdio::null());
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let status = run(&["status", &volume]).done().out;
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("Operation not permitted") {
        println!("not run: no namespace with a link");
        return;
    }
    assert!(said.contains("a pool of 300 MiB, as the volume was qualified"), "{said}");
    assert!(status.contains("that the disks guarantee; most in ten seconds"), "{status}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["pool_columns"], 300 * 4);
    let headroom = &json["disks"]["headroom"];
    assert_eq!((&headroom["level"], &headroom["warnings"]), (&"calm".into(), &0.into()));
    assert!(headroom["guaranteed_bytes_per_s"].as_u64().unwrap() > 190_000_000, "{headroom}");
    assert_eq!(json["disks"]["qualified"]["by"], "places");
}

#[test]
fn readers_files_and_the_processor_are_measured_beside_fio() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().into());
    let parts = ["--part", "mixed", "--part", "iops", "--part", "files", "--part", "cpu"];
    let flags = ["--size", "384M", "--laps", "2", "--json", "--block", "512K"];
    let has_fio = Command::new("fio").arg("--version").output().is_ok();
    let fio: &[&str] = if has_fio { &["--fio"] } else { &[] };
    let answer = run(&[&["qualify", &path][..], &parts, &flags, fio].concat());
    let json: Value = serde_json::from_str(&answer.measured().out).unwrap();
    let parts = json["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["part"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["mixed", "iops", "files", "cpu"]);
    assert!(parts[0]["reads"]["random"]["count"].as_u64() > Some(0), "{}", parts[0]["reads"]);
    assert!(parts[1]["steps"][3]["latency"]["count"].as_u64() > Some(256));
    let laps = parts[2]["laps"].as_array().unwrap();
    assert_eq!(laps.len(), 2);
    assert!(laps.iter().all(|lap| lap["files"].as_u64() > Some(20)), "{laps:?}");
    if has_fio {
        let bytes = parts[2]["fio"]["bytes"].as_u64().unwrap();
        let lap = laps[0]["bytes"].as_u64().unwrap();
        assert!(bytes.abs_diff(lap) < lap / 8, "{bytes} {lap}");
    } else {
        println!("not run: fio is not installed");
    }
    assert!(parts[3]["steps"][2]["cpu_ns"].as_u64() > Some(0));
    assert!(names(folder.path()).is_empty(), "everything is gone");
}

#[test]
fn a_part_that_cannot_run_is_refused_when_it_was_asked_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 8 << 20]).unwrap();
    let path = text(file.path().into());
    run(&["qualify", &path, "--part", "files"]).is_refused("part files makes files in a directory");
    run(&["qualify", &path, "--part", "mixed"]).is_refused("part mixed writes, and");
    let profile = format!("{PROFILES}/single-8tb.csv");
    run(&["qualify", "--model", &profile, "--part", "cpu"]).is_refused("a modelled disk has none");
    let fio = run(&["qualify", &path, "--part", "reads", "--fio"]);
    assert!(fio.code == Some(2) && fio.err.contains("does not run here"), "{fio:?}");
}

#[test]
fn a_report_is_resumed_without_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (path, report) = (text(folder.path().into()), text(folder.path().join("report.json")));
    let flags = ["--size", "128M", "--blocks", "1", "--pool", "4M"];
    let first = ["--part", "sweep", "--part", "fill", "-o", &report];
    run(&[&["qualify", &path][..], &flags, &first].concat()).measured();
    let read =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap() };
    let before = read();
    let more = ["--part", "sweep", "--part", "fill", "--part", "cpu", "--resume", &report];
    run(&[&["qualify", &path][..], &flags, &more].concat()).measured();
    let after = read();
    assert_eq!(before["parts"][1]["windows"], after["parts"][1]["windows"], "not written again");
    assert_eq!(
        (&after["parts"][2]["part"], &after["is_interrupted"]),
        (&"cpu".into(), &false.into())
    );
    let other = [&["qualify", &path, "--size", "256M", "--pool", "4M", "--resume", &report][..]];
    run(&other.concat()).is_refused("is of another target: its size differs");
    let other = [&["qualify", &path][..], &["--size", "128M", "--pool", "8M", "--resume", &report]];
    run(&other.concat()).is_refused("give --pool 4194304");
    assert_eq!(names(folder.path()), ["report.json"]);
}

#[test]
fn two_directories_and_two_reports_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let places = ["a", "b"].map(|name| text(folder.path().join(name)));
    let output = text(folder.path().join("found.json"));
    let flags = ["--run-size", "16M", "--rounds", "6", "-o", &output];
    let answer = run(&[&["qualify", "--compare", &places[0], &places[1]][..], &flags].concat());
    assert!(answer.done().out.contains("6 runs of each, written in turn, forth and back"));
    let shown = run(&["qualify", "show", &output, "--json"]).done().out;
    let json: Value = serde_json::from_str(&shown).unwrap();
    let targets = json["comparison"]["targets"].as_array().unwrap();
    assert!(targets.iter().all(|target| target["runs"].as_array().unwrap().len() == 6));
    let effect = &json["comparison"]["effects"][0];
    assert!(effect["low"].as_u64() <= effect["ratio"].as_u64(), "{effect}");
    assert_eq!(names(folder.path()), ["found.json"], "their files are gone");
    let reports = ["1.json", "2.json"].map(|name| text(folder.path().join(name)));
    for report in &reports {
        let flags = ["--size", "64M", "--part", "fill", "-o", report];
        run(&[&["qualify", &places[0]][..], &flags].concat()).measured();
    }
    let answer = run(&["qualify", "--compare", &reports[0], &reports[1]]);
    assert!(answer.done().out.contains("reports, place by place"));
    let mixed = run(&["qualify", "--compare", &reports[0], &places[0]]);
    assert!(mixed.code == Some(2) && mixed.err.contains("reports with reports"), "{mixed:?}");
    assert_eq!(run(&["qualify", "--compare", &places[0]]).code, Some(2));
    run(&["qualify", "--compare", &output, &reports[0]])
        .is_refused("a comparison, and no report of one target");
}

#[test]
fn members_checksums_and_parity_are_compared_on_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    let place = text(folder.path().join("disk"));
    std::fs::create_dir(&place).unwrap();
    let output = text(folder.path().join("found.json"));
    let words = [
        place.clone(),
        format!("{place}:checksums"),
        format!("{place}+{place}:parity"),
        format!("{place}+{place}+{place}:parity"),
        format!("{place}+{place}+{place}:double-parity"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let flags = ["--block", "1M", "--run-size", "9M", "--rounds", "6", "-o", &output];
    let answer = run(&[&["qualify", "--compare"][..], &words, &flags].concat());
    assert!(answer.done().out.contains("6 runs of each, written in turn"));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&output).unwrap()).unwrap();
    let targets = json["comparison"]["targets"].as_array().unwrap();
    assert!(targets.iter().map(|target| target["name"].as_str().unwrap()).eq(words));
    let runs: Vec<&Value> =
        targets.iter().flat_map(|target| target["runs"].as_array().unwrap()).collect();
    assert_eq!(runs.len(), 30);
    assert!(runs.iter().all(|run| run["bytes"] == 8 << 20), "whole stripes of two columns");
    assert!(runs.iter().all(|run| run["cpu_ns"].as_u64() > Some(0)), "checksums take time");
    assert_eq!(json["comparison"]["effects"].as_array().unwrap().len(), 8, "two of each");
    assert!(names(Path::new(&place)).is_empty(), "their files are gone");
}

#[test]
fn members_that_make_no_target_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (place, file) = (text(folder.path().into()), text(folder.path().join("file")));
    std::fs::write(&file, [0; 4096]).unwrap();
    let word = |end: &str| format!("{place}{end}");
    for (word, flags, said) in [
        (word(":parity"), &[][..], "at least 2 targets"),
        (word(":checksum"), &[], "behind the colon comes checksums, parity or double-parity"),
        (word("+"), &[], "a target on either side of each +"),
        (format!("{place}/x+{place}/x"), &[], "is in it twice"),
        (word(":checksums"), &["--block", "4M"], "a column of a volume has 8K to 2M"),
        (format!("{place}+{place}"), &["--run-size", "2M"], "whole stripes of all targets"),
    ] {
        let ran = run(&[&["qualify", "--compare", &place, &word][..], flags].concat());
        assert!(ran.code == Some(2) && ran.err.contains(said), "{said}: {ran:?}");
    }
    let ran = run(&["qualify", "--compare", &file, &word(":checksums")]);
    ran.is_refused("may only be read");
    assert_eq!(names(folder.path()), ["file"]);
}
