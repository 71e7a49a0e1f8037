//! What a recorder gives up, seen from outside and tried from inside.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::golden::capture;
use crate::machine::{BINARY, Volume, is_root, run};

/// A recorder behind a pipe.
fn recorder(volume: &Volume, further: &[&str]) -> (Child, ChildStdin) {
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--read", "-", "--pool", "4M"]);
    command.args(["--index-dir", &volume.index]).args(further);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

/// What the kernel says of each thread of a process, for one word.
fn of_threads(process: u32, word: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let value = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        // The kernel's own, which carry out what a ring allows, and run none of our code.
        if status.starts_with("Name:\tiou-wrk") {
            return None;
        }
        let line = status.lines().find_map(|line| line.strip_prefix(word).map(str::to_owned));
        Some(line?.trim_start_matches(':').trim().to_owned())
    };
    tasks.filter_map(|entry| value(entry.ok()?)).collect()
}

fn wait_until(what: &str, is_so: &dyn Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_recording_is_confined_and_leaves_no_core() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume, &[]);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    let process = child.id();
    let is_recording = || of_threads(process, "Name").iter().any(|name| name == "ring");
    wait_until("it records", &is_recording);
    let each = |word: &str| of_threads(process, word);
    assert!(each("Seccomp:").iter().all(|mode| mode == "2"), "{:?}", each("Seccomp:"));
    assert!(each("NoNewPrivs:").iter().all(|is_so| is_so == "1"));
    // No more than the right to lock memory: all of it lies in folders of our own.
    for word in ["CapEff", "CapPrm", "CapBnd"] {
        let rights = each(word).into_iter().map(|text| u64::from_str_radix(&text, 16).unwrap());
        for rights in rights.filter(|_| is_root()) {
            assert_eq!(rights & !(1 << 14), 0, "{word} {rights:x}");
        }
    }
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    let children: Vec<u32> =
        children.split_whitespace().map(|child| child.parse().unwrap()).collect();
    assert_eq!(children.len(), 2, "its launcher, and one in reserve");

    // It crashes, and takes along what it started.
    let signalled = Command::new("kill").args(["-ABRT", &process.to_string()]).status().unwrap();
    assert!(signalled.success());
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(6) && !status.core_dumped(), "{status:?}");
    let is_gone = || {
        children.iter().all(|child| {
            let state = fs::read_to_string(format!("/proc/{child}/stat"));
            state.is_err() || state.is_ok_and(|state| state.contains(") Z"))
        })
    };
    wait_until("the launchers are gone", &is_gone);
    drop(input);
}

fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    listed.unwrap_or_default().split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// The launcher takes its indexer along; the one in reserve starts the next one.
#[test]
fn a_recorder_whose_launcher_is_killed_goes_on_with_an_index() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume, &[]);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    let process = child.id();
    // A launcher, and its first indexer.
    let working = || {
        let of = |launcher: u32| Some((launcher, *children(launcher).first()?));
        children(process).into_iter().find_map(of)
    };
    wait_until("an indexer runs", &|| working().is_some());
    let (launcher, _) = working().unwrap();
    let killed = Command::new("kill").args(["-KILL", &launcher.to_string()]).status().unwrap();
    assert!(killed.success());
    wait_until("the next indexer runs", &|| working().is_some_and(|(it, _)| it != launcher));
    let file = capture(1_000_000_000, 10..20);
    input.write_all(&file[24..]).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let inspected = run(&["inspect", &volume.path, "--json"]).out;
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["index"]["packets"], 20, "{inspected}");
    assert_eq!(inspected["index"]["segments_unindexed"], 0, "{inspected}");
}

#[test]
fn a_recorder_that_was_told_so_keeps_its_rights() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume, &["--no-sandbox"]);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    let process = child.id();
    wait_until("it records", &|| of_threads(process, "Name").iter().any(|name| name == "ring"));
    assert!(of_threads(process, "Seccomp:").iter().all(|mode| mode == "0"));
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_self_tests_try_sixty_things_and_more() {
    for process in ["recorder", "indexer", "launcher"] {
        let tested = run(&["self-test-sandbox", "--of", process]).done().out;
        let count = |begin: &str| tested.lines().filter(|line| line.starts_with(begin)).count();
        assert!(count("right  must not") >= 60, "{tested}");
        assert!(count("right  must  ") >= 6 && count("WRONG") == 0, "{tested}");
    }
    // And can fail.
    let free = run(&["self-test-sandbox", "--of", "nobody"]);
    assert!(free.code == Some(1) && free.out.contains("WRONG  must not"), "{free:?}");
}
