//! What answers say of the times in which no recorder ran, or that are not known: a link in a
//! namespace of the test's own, and recorders that are stopped, killed, or go on.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use capture::FrameSender;
use serde_json::Value;

use crate::golden::{capture, packet};
use crate::machine::{self, BINARY, CAPTURES, PAIR, Ran, Volume, enter, run};

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// A query for the packets between two times.
fn between(from: f64, to: f64) -> String {
    let text = |at: f64| {
        let mut date = Command::new("date");
        date.args(["-u", "-d", &format!("@{at:.3}"), "+%Y-%m-%dT%H:%M:%S.%NZ"]);
        let out = date.output().unwrap().stdout;
        String::from_utf8(out).unwrap().trim().to_owned()
    };
    format!("after {} and before {}", text(from), text(to))
}

/// A recorder of the link `taker`, which has stored a packet sent after it began.
#[expect(clippy::zombie_processes, reason = "callers wait for it; a test that fails ends here")]
fn recorder(volume: &Volume, number: u32) -> Child {
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--interface", "taker", "--flush-interval", "200ms"]);
    command.args(["--pool", "4M", "--index-dir", &volume.index]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let started = Instant::now();
    loop {
        FrameSender::open("sender").unwrap().send(&packet(0, number).1).unwrap();
        sleep(Duration::from_millis(100));
        let status = run(&["status", &volume.path, "--json"]);
        let status: Value = serde_json::from_str(&status.out).unwrap_or_default();
        if status["stored"].as_u64().is_some_and(|stored| stored > 0) {
            return child;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{status}");
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// A table of nothing is no answer to a question about completeness: so the statement is asked for
/// by an extract, which always ends with it.
fn extract(volume: &Volume, query: &str) -> (Ran, Value) {
    extract_with(volume, query, &[])
}

fn extract_with(volume: &Volume, query: &str, more: &[&str]) -> (Ran, Value) {
    let out = volume.file("out.pcapng");
    let command = ["extract", &volume.path, query, "--force", "-w", &out];
    let ran = run(&[&command[..], &["--index-dir", &volume.index], more].concat());
    let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
    (ran, serde_json::from_str(&manifest).unwrap())
}

#[track_caller]
fn is(said: &(Ran, Value), code: i32, state: &str, words: &str) {
    let (ran, manifest) = said;
    assert_eq!(ran.code, Some(code), "{ran:?}");
    // A line of progress may come first.
    let says = |line: &str| line.ends_with(&format!(", {state}"));
    assert!(ran.err.lines().any(says), "{ran:?}");
    assert!(ran.err.contains(words), "{words:?} in {ran:?}");
    assert_eq!(manifest["state"], state);
    assert_eq!(manifest["complete"], state == "complete");
}

#[test]
fn who_was_killed_may_have_had_more_and_nobody_recorded_since() {
    if !enter(PAIR, "standing::who_was_killed_may_have_had_more_and_nobody_recorded_since") {
        return;
    }
    let volume = Volume::empty();
    let began = now();
    let mut child = recorder(&volume, 0);
    let running = extract(&volume, "udp");
    is(&running, 0, "complete", "\nrecorded: ");
    assert!(running.0.err.contains(" on taker, and goes on"), "{running:?}");
    signal(&child, "-KILL");
    child.wait().unwrap();
    let killed = extract(&volume, "udp");
    is(&killed, 5, "unknown", "\nnot known: a recorder ended without a stop");
    assert_eq!(killed.1["completeness"]["not_known"][0]["why"], "crash");
    assert!(killed.0.err.contains(" on taker, at least"), "{killed:?}");
    let found = run(&["find", &volume.path, "udp", "--index-dir", &volume.index]);
    assert!(found.code == Some(5) && found.err.contains(", unknown\n"), "{found:?}");
    let diagnosed = || {
        let ran = run(&["diagnose", "recorder", &volume.path, "--json"]);
        let found: Value = serde_json::from_str(&ran.out).unwrap();
        let kinds = found["findings"].as_array().unwrap().iter().map(|it| it["kind"].clone());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(diagnosed(), ["recorder.crash"]);
    // In front of the kill everything is there.
    let through = killed.1["completeness"]["recorded"][0]["to_ns"].as_u64().unwrap();
    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "times in seconds")]
    let through = through as f64 / 1e9;
    let from = killed.1["completeness"]["recorded"][0]["from_ns"].as_u64().unwrap();
    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "times in seconds")]
    let from = from as f64 / 1e9;
    assert!(began <= from && from < through);
    is(&extract(&volume, &between(from + 0.01, through - 0.01)), 0, "complete", "");
    let mut child = recorder(&volume, 1);
    signal(&child, "-INT");
    child.wait().unwrap();
    // The session goes on behind the kill: whole, it would be handed out with what came there.
    let in_front = between(from + 0.01, through - 0.01);
    is(&extract_with(&volume, &in_front, &["--only-range"]), 0, "complete", "");
    is(&extract(&volume, "udp"), 5, "unknown", "\ngap: crash between ");
    assert_eq!(diagnosed(), ["recorder.crash"]);
}

#[test]
fn times_between_recordings_are_not_recorded() {
    if !enter(PAIR, "standing::times_between_recordings_are_not_recorded") {
        return;
    }
    let volume = Volume::empty();
    let before = now();
    let mut times = Vec::new();
    for number in 0..2 {
        let mut child = recorder(&volume, number);
        let within = now();
        sleep(Duration::from_millis(500));
        signal(&child, "-INT");
        child.wait().unwrap();
        times.push((within, now()));
        sleep(Duration::from_millis(500));
    }
    let whole = extract(&volume, "udp");
    is(&whole, 0, "complete", "\nrecorded: ");
    let recorded = whole.1["completeness"]["recorded"].as_array().unwrap();
    assert_eq!(recorded.len(), 2);
    assert_eq!(recorded[0]["interfaces"][0], "taker");
    assert_eq!(recorded[0]["end"], "in_order");
    // What the recorders knew of the clock that packets have their times from.
    let clocks = whole.1["clocks"].as_array().unwrap();
    assert!(clocks.len() >= 2, "{clocks:?}");
    for clock in clocks {
        assert_eq!((&clock["times_by"], &clock["steps"]), (&"kernel".into(), &0.into()));
        assert!(clock["synchronised"].is_boolean(), "{clock}");
        assert!(clock["largest_error_us"].as_u64().is_some(), "{clock}");
    }
    let [(first, first_end), (second, _)] = times[..] else { panic!("two recordings") };
    is(&extract(&volume, &between(first, first + 0.2)), 0, "complete", "");
    is(&extract(&volume, &between(second, second + 0.2)), 0, "complete", "");
    let none = "\nnot recorded: no recorder ran between ";
    is(&extract(&volume, &between(first, second)), 1, "incomplete", none);
    is(&extract(&volume, &between(before - 60.0, second)), 1, "incomplete", none);
    let nobody = extract(&volume, &between(first_end + 0.1, first_end + 0.2));
    is(&nobody, 1, "incomplete", none);
    assert!(nobody.0.err.starts_with("0 packets"), "{nobody:?}");
    let after = between(now() - 0.1, now() + 60.0);
    is(&extract(&volume, &after), 1, "incomplete", none);
}

#[test]
fn a_limit_is_said_and_nothing_behind_it_is_claimed() {
    let volume = Volume::recorded();
    let find = ["find", &volume.path, "--limit", "1", "--index-dir", &volume.index];
    let found = run(&find).done();
    assert!(found.err.starts_with("1 session, incomplete\n"), "{found:?}");
    assert!(found.err.contains("\ncut: there is more than the limit allows\n"), "{found:?}");
    // As many as there are, and none behind them.
    let count = run(&["find", &volume.path, "--csv"]).out.lines().count() - 1;
    let exact = run(&["find", &volume.path, "--csv", "--limit", &count.to_string()]).done();
    assert!(!exact.err.contains("cut:"), "{exact:?}");
    let all = run(&["find", &volume.path, "--limit", "1000000"]).done();
    assert!(!all.err.contains("limit"), "it was not reached: {all:?}");
}

#[test]
fn what_is_too_old_is_said_when_it_is_recorded_and_when_it_is_asked_for() {
    let volume = Volume::empty();
    let path = volume.file("old.pcap");
    std::fs::write(&path, capture(1_600_000_000_000_000_000, 0..8)).unwrap();
    let recorded = volume.record(&["--read", &path, "--max-age", "1h"]);
    let said = format!("{}{}", recorded.out, recorded.err);
    assert!(said.contains("withheld by age: 1 stripe has packets"), "{recorded:?}");
    assert_eq!(recorded.code, Some(1), "{recorded:?}");
    assert!(said.contains("from 2020-09-13T"), "{recorded:?}");
    let found = run(&["find", &volume.path, "--index-dir", &volume.index]);
    assert!(found.code == Some(1) && found.err.starts_with("0 sessions, incomplete"), "{found:?}");
    assert!(found.err.contains("\nwithheld by age: packets from 2020-09-13T"), "{found:?}");
}

/// A file system of 12 MiB, for a volume that believes it may become larger, an index, an output.
const SMALL_DISK: &str = "mount -t tmpfs -o size=12M small /mnt";

#[test]
fn a_full_disk_leaves_an_account() {
    if !enter(SMALL_DISK, "standing::a_full_disk_leaves_an_account") {
        return;
    }
    let small = "/mnt";
    let volume = Volume::empty();
    let sparse = format!("{small}/volume");
    run(&["create", &sparse, "--size", "64M", "--piece", "256K", "--sparse"]).done();
    let path = volume.file("much.pcap");
    std::fs::write(&path, capture(1_600_000_000_000_000_000, 0..30_000)).unwrap();
    let record = ["record", &sparse, "--pool", "4M", "--index-dir", &volume.index];
    let recorded = run(&[&record[..], &["--read", &path]].concat());
    assert_eq!(recorded.code, Some(3), "{recorded:?}");
    assert!(recorded.err.contains("No space left"), "{recorded:?}");
    let found = run(&["find", &sparse, "--index-dir", &volume.index]);
    assert!(found.code.is_some_and(|code| code == 5 || code == 1), "{found:?}");
    assert!(found.err.contains("not known: a recorder ended without a stop"), "{found:?}");
    std::fs::remove_file(&sparse).unwrap();
    // No space for the index directory: it is a cache of what lies in the ring, and nothing lacks.
    let filler = format!("{small}/filler");
    std::fs::create_dir(format!("{small}/index")).unwrap();
    std::fs::write(&filler, vec![1; 13 << 20]).unwrap_err();
    let index = format!("{small}/index");
    let record = ["record", &volume.path, "--pool", "4M", "--index-dir", &index];
    let recorded = run(&[&record[..], &["--read", &path]].concat());
    assert!(recorded.done().out.contains("30 000 packets"));
    let found = run(&["find", &volume.path, "udp", "--json", "--index-dir", &index]);
    assert!(found.code == Some(0) && !found.out.is_empty(), "{found:?}");
    // No space for the extract: nothing is left that looks like one.
    let out = format!("{small}/out.pcapng");
    let ran = run(&["extract", &volume.path, "udp", "-w", &out, "--index-dir", &volume.index]);
    assert!(ran.code == Some(3) && ran.err.contains("No space left"), "{ran:?}");
    assert!(!std::path::Path::new(&out).exists());
    assert!(!std::path::Path::new(&format!("{out}.json")).exists());
}

/// While it records and has no index, after a kill, and once another recording made the index.
#[test]
fn a_recording_has_its_name_from_its_first_packet_on() {
    let volume = Volume::empty();
    let named = |recording: &str| {
        let query = format!("recording = {recording}");
        let find = ["find", &volume.path, &query, "--csv", "--index-dir", &volume.index];
        run(&find).out.lines().count().saturating_sub(1)
    };
    let more = ["--name", "night", "--pool", "4M"];
    let (mut recorder, mut input) = machine::recorder(&volume.path, &volume.index, &more);
    let packets = std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap();
    input.write_all(&packets).unwrap();
    let started = Instant::now();
    while named("night") == 0 {
        assert!(started.elapsed() < Duration::from_secs(30), "it records under its name");
    }
    let count = named("night");
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert_eq!(named("night"), count);
    let inspected = run(&["inspect", &volume.path]).out;
    assert!(inspected.contains("night"), "{inspected}");
    volume.record(&["--read", CAPTURES, "--name", "day"]).done();
    assert_eq!(named("night"), count);
    assert!(named("day") > count);
    std::fs::remove_dir_all(&volume.index).unwrap();
    assert_eq!(named("night"), count);
}

#[test]
fn a_name_that_is_too_long_is_refused() {
    let volume = Volume::empty();
    let (longest, longer) = ("n".repeat(256), "n".repeat(257));
    let ran = volume.record(&["--read", CAPTURES, "--name", &longer]);
    assert!(ran.code == Some(2) && ran.err.contains("--name takes at most 256 bytes"), "{ran:?}");
    volume.record(&["--read", CAPTURES, "--name", &longest]).done();
    let find = ["find", &volume.path, &format!("recording = {longest}"), "--csv"];
    assert!(run(&find).done().out.lines().count() > 1);
}

/// The newest recording begins before the times asked for, and says nothing of them.
#[test]
fn what_a_killed_recording_with_later_times_may_have_lost_is_not_known() {
    let volume = Volume::empty();
    let (first_ns, day_ns) = (1_700_000_000_000_000_000, 24 * 3600 * 1_000_000_000);
    let more = ["--pool", "4M"];
    let (mut recorder, mut input) = machine::recorder(&volume.path, &volume.index, &more);
    let later = capture(first_ns + 10 * day_ns, 0..50);
    input.write_all(&later).unwrap();
    let (count, started) = (["find", &volume.path, "", "--csv"], Instant::now());
    while run(&count).out.lines().count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(30), "what has come is acknowledged");
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let earlier = volume.file("earlier.pcap");
    std::fs::write(&earlier, capture(first_ns, 50..100)).unwrap();
    volume.record(&["--read", &earlier]);
    let words = "not known: a recorder ended without a stop";
    is(&extract(&volume, ""), 5, "unknown", words);
    is(&extract(&volume, "after 2023-11-20"), 5, "unknown", words);
    // The packets of files have any times.
    is(&extract(&volume, "before 2023-11-20"), 5, "unknown", words);
}

#[test]
fn a_session_over_segments_without_an_index_is_not_known_as_one() {
    let find = |packets: u32, query: &str| {
        let volume = Volume::empty();
        let file = volume.file("long.pcap");
        std::fs::write(&file, capture(1_700_000_000_000_000_000, 0..packets)).unwrap();
        volume.record(&["--read", &file, "--no-index"]).done();
        run(&["find", &volume.path, query, "--index-dir", &volume.index])
    };
    // 35 sessions to the end: in one segment, and over several.
    for query in ["", "packets > 500"] {
        let whole = find(1000, query);
        assert_eq!(whole.code, Some(0), "{whole:?}");
        let cut = find(20_000, query);
        assert_eq!(cut.code, Some(5), "{cut:?}");
        assert!(cut.err.contains("\nnot known as one: "), "{cut:?}");
    }
}
