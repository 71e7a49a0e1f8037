//! Disks that are slower than the link: packets are lost and counted, and nothing else suffers.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::golden::from_50_ports;
use crate::machine::{BINARY, Loop, PAIR, Throttle, enter, run, text};

fn replay(traffic: &Path, packets_per_s: &str) -> Child {
    let mut replay = Command::new(BINARY);
    replay.arg("replay").arg(traffic).args(["--interface", "sender", "--pps", packets_per_s]);
    replay.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    replay.spawn().unwrap()
}

fn status(volume: &str) -> Option<Value> {
    let status = run(&["status", volume, "--json"]);
    serde_json::from_str(&status.out).ok().filter(|status: &Value| status["offered"].is_u64())
}

/// Asked while a disk cannot keep up, over and over, a recorder has packets in columns that fill no
/// stripe, and none to spread them over.
#[test]
fn questions_do_not_stop_a_recorder_whose_disks_are_too_slow() {
    const NAME: &str = "slow_disks::questions_do_not_stop_a_recorder_whose_disks_are_too_slow";
    if !enter(PAIR, NAME) {
        return;
    }
    let devices = [(); 3].map(|()| Loop::in_memory(72 << 20, &[]));
    let [Some(first), Some(second), Some(third)] = &devices else { return };
    let Some(group) = Throttle::new(&[first, second, third], 1_500_000) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [many, few] = ["many.pcap", "few.pcap"].map(|name| folder.path().join(name));
    std::fs::write(&many, from_50_ports(120_000)).unwrap();
    std::fs::write(&few, from_50_ports(1500)).unwrap();
    let index = text(folder.path().join("index"));
    let volume = &first.path;
    let members = ["--member", &second.path, "--member", &third.path];
    run(&[&["create", volume, "--parity", "1", "--piece", "256K"], &members[..]].concat()).done();
    let record = ["record", volume, "--interface", "taker", "--pool", "32M", "--json"];
    let mut recorder = group.command(&[&record[..], &["--index-dir", &index]].concat());
    recorder.stdout(Stdio::piped()).stderr(Stdio::null());
    let recorder = recorder.spawn().unwrap();
    assert!((0..400).any(|_| {
        sleep(Duration::from_millis(50));
        status(volume).is_some()
    }));
    let mut sending = replay(&many, "8000");
    while sending.try_wait().unwrap().is_none() {
        // Its answer may come too late to reach up to now.
        drop(run(&["find", volume, "--index-dir", &index, "--limit", "1"]));
        sleep(Duration::from_millis(500));
    }
    let stored = |status: Option<Value>| status.unwrap()["stored"].as_u64().unwrap();
    let before = stored(status(volume));
    group.set(0);
    let mut sending = replay(&few, "500");
    sending.wait().unwrap();
    sleep(Duration::from_secs(2));
    let after = stored(status(volume));
    assert!(after >= before + 1000, "it goes on when the disks are fast: {before}, then {after}");
    let ended = Instant::now();
    let interrupt = ["-INT", &recorder.id().to_string()].map(str::to_owned);
    assert!(Command::new("kill").args(interrupt).status().unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    assert!(ended.elapsed() < Duration::from_mins(1), "it hears the end");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| report[name].as_u64().unwrap();
    let lost = count("kernel_drops") + count("writer_drops");
    assert!(lost > 0, "the disks were too slow: {report}");
    assert_eq!(count("offered"), count("stored") + lost, "{report}");
    let all = run(&["find", volume, "--index-dir", &index, "--json"]);
    assert_eq!(all.code, Some(1), "what was lost is reported: {}", all.err);
    let packets = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["orig_packets"].as_u64().unwrap() + row["resp_packets"].as_u64().unwrap()
    };
    assert_eq!(all.out.lines().map(packets).sum::<u64>(), count("stored"), "{}", all.err);
}
