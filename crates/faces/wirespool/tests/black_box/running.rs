//! Beside a recorder that runs: answers reach up to now, and status says how it stands.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::golden::capture;
use crate::machine::{BINARY, Volume, run};

/// A recorder behind a pipe, which would write nothing for a minute.
pub(crate) fn recorder(volume: &Volume) -> (Child, ChildStdin) {
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--read", "-", "--flush-interval", "60s"]);
    command.args(["--pool", "4M", "--index-dir", &volume.index]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

fn status(volume: &Volume) -> Value {
    serde_json::from_str(&run(&["status", &volume.path, "--json"]).done().out).unwrap()
}

/// Asks until the recorder has taken so many packets: the pipe and its reader take their time.
pub(crate) fn taken(volume: &Volume, packets: u64) -> Value {
    let started = Instant::now();
    loop {
        let status = status(volume);
        if status["offered"].as_u64() == Some(packets) {
            return status;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{status}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn answers_reach_up_to_now_while_a_recorder_runs() {
    let volume = Volume::empty();
    assert!(status(&volume).get("offered").is_none(), "no recorder runs");
    let (mut child, mut input) = recorder(&volume);
    let stream = capture(1_000_000_000, 0..20);
    let (first, second) = stream.split_at(24 + 10 * (stream.len() - 24) / 20);
    for (part, packets) in [(first, 10), (second, 20)] {
        input.write_all(part).unwrap();
        let status = taken(&volume, packets);
        assert_eq!(status["stored"].as_u64(), Some(packets - 10), "nothing was due: {status}");
        let query = ["find", &volume.path, "--json", "--index-dir", &volume.index];
        let answer = run(&query).done();
        let count = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["orig_packets"].as_u64().unwrap() + row["resp_packets"].as_u64().unwrap()
        };
        assert_eq!(answer.out.lines().map(count).sum::<u64>(), packets, "{answer:?}");
        let text = run(&["status", &volume.path]).done().out;
        assert!(text.contains("packets offered"), "{text}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(status(&volume).get("offered").is_none(), "it has ended");
}

#[test]
fn a_recorder_that_was_killed_holds_nobody_up() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    taken(&volume, 10);
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = run(&["find", &volume.path, "--index-dir", &volume.index]);
    assert_eq!(answer.code, Some(5), "what it had taken is not known: {answer:?}");
    assert!(!answer.err.contains("newest packets"), "{answer:?}");
    let (mut child, input) = recorder(&volume);
    drop(input);
    assert!(child.wait().is_ok());
}

#[test]
fn nothing_is_forgotten_beside_a_recorder_and_the_reason_is_that_one_runs() {
    let volume = Volume::recorded();
    let (mut child, mut input) = recorder(&volume);
    input.write_all(&capture(1_000_000_000, 0..20)).unwrap();
    taken(&volume, 20);
    for more in [&[][..], &["--yes"]] {
        let words = ["forget", &volume.path, "udp", "--index-dir", &volume.index];
        let ran = run(&[&words, more].concat());
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.err.contains("is being recorded to: stop the recorder first"), "{ran:?}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    run(&["verify", &volume.path]).done();
}
