//! Who reads and writes what on the disk below the tests, as a user asks for it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::fs::Advice;
use serde_json::Value;

use crate::machine::{
    Loop, Ran, Throttle, command, folder_on_block_device, folder_on_disk, is_root, run,
    run_unprivileged,
};

const FILE_LEN: u64 = 64 << 20;

/// A file on the disk, of which nothing is in memory.
fn cold_file(path: &Path) -> fs::File {
    let mut file =
        fs::File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all(&vec![7; usize::try_from(FILE_LEN).unwrap()]).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    file
}

/// Begins a watch, and waits until it listens.
fn watching(arguments: &[&str]) -> Child {
    let all = [&["diagnose", "io", "--json"], arguments].concat();
    let mut command = command(&all);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    child
}

fn report(child: Child) -> (Option<i32>, Value) {
    let ran = Ran::new(&child.wait_with_output().unwrap());
    let json = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, json)
}

/// Whether all requests were seen one by one; else it is said why not. Some kernels keep records
/// back under load, which is reported as such: then there is nothing to compare.
fn is_traced(json: &Value) -> bool {
    let tracing = &json["tracing"];
    if tracing["is_on"] == false {
        println!("not run: tracing takes {}", tracing["needs"]);
    } else if tracing["lost_requests"] != 0 {
        println!("not run: the kernel kept {} records back", tracing["lost_requests"]);
        assert!(json["unseen"].to_string().contains("did not hand out"), "{json:#}");
    }
    tracing["is_on"] == true && tracing["lost_requests"] == 0
}

fn of_file<'j>(json: &'j Value, path: &Path) -> &'j Value {
    let name = fs::canonicalize(path).unwrap().display().to_string();
    let mut files = json["files"].as_array().unwrap().iter();
    files.find(|file| file["name"] == name.as_str()).unwrap_or_else(|| panic!("{name} in {json:#}"))
}

fn finding<'j>(json: &'j Value, kind: &str) -> Option<&'j Value> {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == kind)
}

#[test]
fn writes_of_parts_of_pages_are_named_with_file_and_process() {
    let Some(folder) = folder_on_block_device() else { return };
    let path = folder.path().join("log");
    let file = cold_file(&path);
    let watch = watching(&[folder.path().to_str().unwrap(), "--for", "3s"]);
    for write in 0..64 {
        file.write_all_at(&[8; 1000], write * (1 << 20) + 300).unwrap();
    }
    file.sync_all().unwrap();
    let (code, json) = report(watch);
    if !is_traced(&json) {
        return;
    }
    let of_file = of_file(&json, &path);
    if of_file["partial_pages"]["count"].as_u64().is_none_or(|count| count < 60) {
        println!("not run: this file system reads no pages for parts of them: {of_file:#}");
        return;
    }
    assert!(of_file["writes"]["count"].as_u64().is_some_and(|count| count >= 60), "{of_file:#}");
    let found = finding(&json, "io.partial_pages").unwrap_or_else(|| panic!("{json:#}"));
    assert_eq!((code, &found["severity"]), (Some(1), &"warning".into()));
    let said = found.to_string();
    assert!(said.contains(path.file_name().unwrap().to_str().unwrap()), "{said}");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

/// What is found of a file of 64 MiB that fio maps; `None` where it cannot be looked for.
fn mapped_by_fio(further: &[&str]) -> Option<(Value, Value)> {
    let folder = folder_on_block_device()?;
    let path = folder.path().join("index");
    drop(cold_file(&path));
    let name = path.to_str().unwrap();
    let fio = ["fio", "--name=stores", "--ioengine=mmap", "--bs=4k"];
    let filename = format!("--filename={name}");
    let fixed = ["--size=64m", "--fadvise_hint=0", "--invalidate=0", "--output=/dev/null"];
    let place = folder.path().to_str().unwrap();
    let diagnose = ["diagnose", "io", "--json", place, "--"];
    let ran = run(&[&diagnose[..], &fio, &[&*filename], &fixed, further].concat());
    if ran.code == Some(3) {
        println!("not run: {}", ran.err);
        return None;
    }
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    if !is_traced(&json) {
        return None;
    }
    let of_file = of_file(&json, &path);
    let by = of_file["by"].as_array().unwrap();
    let faults: u64 = by.iter().filter_map(|by| by["mapped_faults"].as_u64()).sum();
    assert!(faults > 0, "{of_file:#}");
    let read = of_file.pointer("/readahead/bytes").and_then(Value::as_u64).unwrap();
    if read < 2 << 20 {
        println!("not run: this machine reads little ahead: {of_file:#}");
        return None;
    }
    let of_file = of_file.clone();
    Some((json, of_file))
}

#[test]
fn stores_through_a_mapping_are_named_by_the_readahead_that_they_cause() {
    let Some((json, _)) = mapped_by_fio(&["--rw=randwrite", "--io_size=256k"]) else { return };
    let found = finding(&json, "io.phantom_readahead").unwrap_or_else(|| panic!("{json:#}"));
    let said = found.to_string();
    assert!(said.contains("index for fio (process "), "{said}");
    assert!(said.contains("through a mapping") && said.contains("MADV_RANDOM"), "{said}");
}

/// `MADV_RANDOM` would make it several times slower.
#[test]
fn who_goes_through_a_mapping_is_not_told_to_do_without_readahead() {
    for way in ["--rw=write", "--rw=read"] {
        let Some((json, _)) = mapped_by_fio(&[way]) else { return };
        for kind in ["io.phantom_readahead", "io.random_mapping"] {
            assert!(finding(&json, kind).is_none(), "{way}: {json:#}");
        }
    }
}

#[test]
fn reads_here_and_there_of_a_mapping_are_named_by_the_readahead_that_they_cause() {
    let Some((json, of_file)) = mapped_by_fio(&["--rw=randread", "--io_size=512k"]) else {
        return;
    };
    let found = finding(&json, "io.random_mapping").unwrap_or_else(|| panic!("{of_file:#}"));
    assert!(found.to_string().contains("MADV_RANDOM"), "{found:#}");
}

/// Records of 200 bytes, each made durable: nothing but the journal and flushes is to be seen.
#[test]
fn who_waits_for_fsync_is_named() {
    let Some(folder) = folder_on_block_device() else { return };
    let place = folder.path().to_str().unwrap();
    let filename = format!("--filename={place}/log");
    let fio = ["fio", "--name=log", "--rw=write", "--bs=200", "--size=80k", "--fsync=1"];
    let further = [&*filename, "--output=/dev/null"];
    let ran = run(&[&["diagnose", "io", "--json", place, "--"][..], &fio, &further].concat());
    if ran.code == Some(3) {
        return println!("not run: {}", ran.err);
    }
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    if !is_traced(&json) {
        return;
    }
    let Some(found) = finding(&json, "io.sync_waits") else {
        return println!("not run: an fsync takes no time on this file system: {json:#}");
    };
    let said = found.to_string();
    assert!(said.contains("fio (process ") && said.contains("/log"), "{said}");
    assert!(said.contains("410 calls") || said.contains("409 calls"), "{said}");
}

#[test]
fn a_command_is_watched_to_its_end_and_the_requests_are_those_that_the_kernel_counts() {
    let Some(folder) = folder_on_block_device() else { return };
    let path = folder.path().join("file");
    drop(cold_file(&path));
    let name = path.to_str().unwrap();
    let read = format!("if={name}");
    let dd = ["dd", &read, "of=/dev/null", "bs=1M", "iflag=direct", "status=none"];
    let ran = run(&[&["diagnose", "io", "--json", "--"][..], &dd].concat());
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    if !is_traced(&json) {
        return;
    }
    let of_file = of_file(&json, &path);
    assert_eq!(of_file["reads"]["bytes"], FILE_LEN, "{of_file:#}");
    assert_eq!(of_file["by"][0]["name"], "dd");
    for disk in json["disks"].as_array().unwrap() {
        let counted = json["counters"].as_array().unwrap().iter();
        let mut counted = counted.filter(|counted| counted["device"] == disk["device"]);
        let kernel =
            counted.next().unwrap_or_else(|| panic!("{json:#}"))["read_bytes"].as_u64().unwrap();
        let operations = disk["operations"].as_array().unwrap().iter();
        let reads = operations.filter(|one| one["operation"] == "read");
        let ours: u64 = reads.map(|one| one["bytes"].as_u64().unwrap()).sum();
        // What is under way at either end is in one of them only.
        assert!(ours.abs_diff(kernel) <= kernel / 20 + (4 << 20), "{ours} {kernel}");
    }
}

#[test]
fn without_rights_there_is_what_the_kernel_counts_and_what_is_missing() {
    let folder = folder_on_disk();
    let arguments = ["diagnose", "io", "--for", "200ms"];
    let Some(ran) = run_unprivileged(folder.path(), &arguments) else { return };
    // Another test may limit a disk meanwhile, which is found without rights, too.
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    for words in [
        "not seen:",
        "requests one by one",
        "which root has outside of a container",
        "counters of ",
    ] {
        assert!(ran.out.contains(words), "{words} in {ran:?}");
    }
    let Some(ran) = run_unprivileged(folder.path(), &["diagnose", "io", "--files"]) else { return };
    ran.is_refused("run as root (CAP_SYS_ADMIN)");
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_a_line() {
    run(&["diagnose", "io", "/nonexistent"]).is_refused("/nonexistent");
    run(&["diagnose", "io", "/proc"]).is_refused("it is on no block device");
    let folder = folder_on_disk();
    let place = folder.path().to_str().unwrap();
    let ran = run(&["diagnose", "io", place, "--", "/nonexistent"]);
    if !ran.err.contains("no block device") {
        ran.is_refused("cannot start /nonexistent");
    }
    assert_eq!(run(&["diagnose", "io", "--kind", "read"]).code, Some(2));
    assert_eq!(run(&["diagnose", "io", "--for", "1s", "--", "true"]).code, Some(2));
}

#[test]
fn who_touches_files_is_told_by_kind_and_process() {
    if !is_root() {
        return println!("not run: watching files takes root");
    }
    let Some(folder) = folder_on_block_device() else { return };
    let place = fs::canonicalize(folder.path()).unwrap();
    let path = place.join("file");
    let script = format!("echo one > {0}; cat {0}; rm {0}", path.display());
    let watched = |arguments: &[&str]| {
        let fixed = ["diagnose", "io", "--files", "--json", place.to_str().unwrap()];
        let ran = run(&[&fixed, arguments, &["--", "sh", "-c", &script]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines = ran.out.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let all = watched(&[]);
    let kinds = |all: &[Value]| -> Vec<String> {
        let of = all.iter().filter(|touch| touch["path"] == path.to_str().unwrap());
        let kinds = of.flat_map(|touch| touch["kinds"].as_array().unwrap().clone());
        kinds.map(|kind| kind.as_str().unwrap().to_owned()).collect()
    };
    for kind in ["open", "read", "write", "close", "create", "remove"] {
        assert!(kinds(&all).iter().any(|found| found == kind), "{kind} in {all:?}");
    }
    let writes = watched(&["--kind", "write"]);
    assert!(!writes.is_empty() && kinds(&writes).iter().all(|kind| kind == "write"), "{writes:?}");
    let without = watched(&["--exclude", "cat"]);
    assert!(!kinds(&without).is_empty() && without.iter().all(|touch| touch["name"] != "cat"));
    let only = watched(&["--process", "nobody-is-called-so"]);
    assert!(only.is_empty(), "{only:?}");
}

/// What is found of fio, which reads 64 KiB at a time and has a limit in its group; `None` where
/// there is no such limit.
fn read_within_a_limit(bytes_per_s: u64) -> Option<(Value, String)> {
    let disk = Loop::in_memory(64 << 20, &[])?;
    let limit = Throttle::of_reads(&[&disk], bytes_per_s)?;
    let filename = format!("--filename={}", disk.path);
    let fio = ["fio", "--name=backup", "--rw=randread", "--bs=64k", "--direct=1", "--size=64m"];
    let further = [&*filename, "--runtime=3", "--time_based", "--rate=5m", "--output=/dev/null"];
    let program = [&["sh"], &limit.entering()[..], &fio, &further].concat();
    let ran = run(&[&["diagnose", "io", "--json", "--"][..], &program].concat());
    if ran.code == Some(3) {
        println!("not run: {}", ran.err);
        return None;
    }
    let json = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    Some((json, disk.path.trim_start_matches("/dev/").to_owned()))
}

#[test]
fn a_limit_of_the_cgroup_is_named_and_its_requests_are_of_who_asked() {
    let Some((json, disk)) = read_within_a_limit(4_000_000) else { return };
    // The disk has each request for some microseconds; the limit makes it a hundredth of a second.
    let found = finding(&json, "io.cgroup_limit").unwrap_or_else(|| panic!("{json:#}"));
    assert_eq!(json["findings"][0]["kind"], "io.cgroup_limit", "it stands first: {json:#}");
    let said = found.to_string();
    let evidence = found["evidence"].to_string();
    assert!(
        said.contains("fio (process ") && said.contains(&format!("reads from {disk}")),
        "{said}"
    );
    assert!(evidence.contains("blkio.throttle.read_bps_device: 4000000 for "), "{evidence}");
    assert!(said.contains("blkio.throttle.read_bps_device'"), "the remedy: {said}");
    if !is_traced(&json) {
        return;
    }
    let requests = |process: &Value| process["reads"]["count"].as_u64().unwrap_or(0);
    let processes = json["processes"].as_array().unwrap();
    let of_fio = processes.iter().filter(|process| process["name"] == "fio");
    let of_fio: u64 = of_fio.map(requests).sum();
    let disks = json["disks"].as_array().unwrap().iter();
    let [of_disk] = &disks.filter(|of| of["name"] == *disk).collect::<Vec<_>>()[..] else {
        panic!("{json:#}")
    };
    let all = of_disk["operations"][0]["count"].as_u64().unwrap();
    // udev and others look at a new disk.
    assert!(of_fio >= 150 && all <= of_fio + 20, "{of_fio} of {all}: {processes:#?}");
    let held = &json["cgroups"][0]["limits"][0]["held_back"]["count"];
    assert!(held.as_u64().is_some_and(|held| held >= 15), "{:#}", json["cgroups"]);
}

#[test]
fn a_limit_of_the_cgroup_that_is_far_away_is_not_named() {
    let Some((json, disk)) = read_within_a_limit(400_000_000) else { return };
    // Another test may have a limit at the same time, at another disk.
    let is_ours = |found: &&Value| found["what"].to_string().contains(&format!("from {disk}"));
    let found = finding(&json, "io.cgroup_limit").filter(is_ours);
    assert!(found.is_none(), "{found:#?}");
}
