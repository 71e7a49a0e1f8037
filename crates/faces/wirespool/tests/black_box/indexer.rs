//! The indexer is a process of its own: it has no rights, and that it is killed costs no packet.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use format::head::StripeId;
use indexer::{Fate, Faulty, Workers};
use record::Input;
use serde_json::Value;
use units::ByteSize;

use crate::golden::capture;
use crate::machine::{self, BINARY, PAIR, Volume, enter, is_root, run};

const PACKETS: u32 = 30_000;
/// So often they are sent in ten minutes, 8000 in a second.
const TEN_MINUTES: u32 = 600 * 8000 / PACKETS;

/// Words of a process's `status` in /proc.
fn status_of(pid: u32, field: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The processes below one, at whatever depth.
fn below(above: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_below = |mut pid: u32| loop {
        match status_of(pid, "PPid").and_then(|parent| parent.parse().ok()) {
            Some(parent) if parent == above => break true,
            Some(parent) if parent > 1 => pid = parent,
            _ => break false,
        }
    };
    pids.filter(|pid| is_below(*pid)).collect()
}

/// Those of them that index.
fn indexers_of(above: u32) -> Vec<u32> {
    with_verb(above, "indexer")
}

fn with_verb(above: u32, verb: &str) -> Vec<u32> {
    let has_it = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
    };
    below(above).into_iter().filter(has_it).collect()
}

/// Memory of a process and all below it, in KiB; pages that they share count for each of them.
fn memory_kib(pid: u32) -> u64 {
    let of = |pid| status_of(pid, "VmRSS")?.split(' ').next()?.parse::<u64>().ok();
    below(pid).into_iter().chain([pid]).filter_map(of).sum()
}

fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
    assert!(sent.is_ok(), "kill runs");
}

fn kill(pid: u32) {
    signal(pid, "KILL");
}

/// Packets in all sessions of the volume, and what the statement says. Where something was left
/// out, it is not known what it was.
fn found(volume: &Volume, left_out: u64) -> (u64, String) {
    let answer = run(&["find", &volume.path, "--json", "--index-dir", &volume.index]);
    assert_eq!(answer.code, Some(if left_out > 0 { 5 } else { 0 }), "{}", answer.err);
    let count = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["orig_packets"].as_u64().unwrap() + row["resp_packets"].as_u64().unwrap_or(0)
    };
    (answer.out.lines().map(count).sum(), answer.err)
}

#[test]
fn an_indexer_that_is_killed_ten_times_a_second_costs_no_packet_and_no_row() {
    let volume = Volume::empty();
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--read", "-", "--pool", "4M", "--json"]);
    command.args(["--flush-interval", "20ms", "--index-dir", &volume.index]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (pid, mut input) = (child.id(), child.stdin.take().unwrap());
    let is_done = AtomicBool::new(false);
    let (killed, output) = scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !is_done.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(100));
                for indexer in indexers_of(pid) {
                    kill(indexer);
                    killed += 1;
                }
            }
            killed
        });
        let stream = capture(1_000_000_000, 0..PACKETS);
        for part in stream.chunks(stream.len() / 60) {
            input.write_all(part).unwrap();
            sleep(Duration::from_millis(50));
        }
        is_done.store(true, Ordering::Relaxed);
        let deaths: u64 = killer.join().unwrap();
        drop(input);
        (deaths, child.wait_with_output().unwrap())
    });
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(killed >= 5 && report["indexer_deaths"].as_u64() >= Some(killed / 2), "{report}");
    let counts = ["stored", "unindexed", "left_out"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(counts, [u64::from(PACKETS), 0, 0], "{report}");
    let (packets, said) = found(&volume, 0);
    assert_eq!(packets, u64::from(PACKETS), "{said}");
    assert!(indexers_of(pid).is_empty(), "no process is left behind");
}

/// Frames of zstd with the largest window that is taken, their blocks as they are: as much memory
/// as can be asked for with a few bytes.
fn with_large_window(stream: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3];
    let blocks = stream.chunks(128 << 10);
    let last = blocks.len() - 1;
    for (number, block) in blocks.enumerate() {
        let header = (u32::try_from(block.len()).unwrap() << 3) | u32::from(number == last);
        packed.extend(&header.to_le_bytes()[..3]);
        packed.extend(block);
    }
    packed
}

/// Every process keeps below what was said, with a flood of sessions out of the largest window.
#[test]
fn memory_stays_below_what_is_said_at_the_beginning() {
    let volume = Volume::empty();
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--read", "-", "--pool", "4M"]);
    command.args(["--index-dir", &volume.index]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let said = child.stderr.take().unwrap();
    // Another session with each packet, and then as much as fills the window.
    let flood = (0..150_000_u32).map(|number| {
        let [_, a, b, c] = number.to_be_bytes();
        let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28];
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, a, b, c, 192, 168, 0, 2]);
        packet.extend([0x90, 0, 0, 53, 0, 8, 0, 0]);
        (1_000_000_000 + u64::from(number), packet)
    });
    let large = (0..2200_u64).map(|number| (2_000_000_000 + number, vec![0; 65_535]));
    let stream = crate::golden::pcap(flood.chain(large));
    assert!(stream.len() > 128 << 20);
    let packed = with_large_window(&stream);
    let (rest, end) = packed.split_at(packed.len() - 10);
    input.write_all(rest).unwrap();
    // What a process has taken at most is known as long as it is there.
    sleep(Duration::from_secs(1));
    let peak = |pid: &u32| {
        let peak = status_of(*pid, "VmHWM").unwrap();
        1024 * peak.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let processes: Vec<u32> = indexers_of(child.id()).into_iter().chain([child.id()]).collect();
    let peaks: Vec<u64> = processes.iter().map(peak).collect();
    input.write_all(end).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let said = std::io::read_to_string(said).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("at most ")).expect("said");
    let most = line.split(" of memory").next().unwrap().replace(' ', "");
    let (sum, most) = (ByteSize(peaks.iter().sum()), most.parse::<ByteSize>().unwrap());
    assert!(processes.len() == 2 && sum > ByteSize(128 << 20), "{peaks:?}");
    assert!(sum < most, "{peaks:?} of {most}: {line}");
    println!("{sum} of {most} that were said");
}

/// One that shows soon what it gets.
fn recorder(volume: &Volume) -> (Child, ChildStdin) {
    let more = ["--pool", "4M", "--flush-interval", "20ms"];
    machine::recorder(&volume.path, &volume.index, &more)
}

/// Who starts indexers was killed: that there is none any more is said while it records.
#[test]
fn that_no_indexer_can_be_started_is_said_at_once() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while indexers_of(child.id()).is_empty() {
        assert!(Instant::now() < until, "no indexer");
        sleep(Duration::from_millis(50));
    }
    with_verb(child.id(), "launch").into_iter().for_each(kill);
    let stream = capture(1_000_000_000, 10..10_010);
    let (said, heard) = std::sync::mpsc::channel();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            drop(said.send(line));
        }
    });
    // What is behind the header is one long run of packets.
    let mut parts = stream[24..].chunks(1 << 12);
    let line = loop {
        assert!(Instant::now() < until, "it is not said");
        if let Some(part) = parts.next() {
            input.write_all(part).unwrap();
        }
        match heard.recv_timeout(Duration::from_millis(100)) {
            Ok(line) if line.contains("no indexer can be started") => break line,
            _ => {}
        }
    };
    assert!(line.contains("start the recorder again"), "{line}");
    for part in parts {
        input.write_all(part).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_indexer_has_no_rights_and_ends_with_its_recorder() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume);
    input.write_all(&capture(1_000_000_000, 0..10)).unwrap();
    let mut waited = 0;
    let indexer = loop {
        // It confines itself before it reads the first byte, and inherits what its launcher did.
        let lists = |pid: &u32| status_of(*pid, "Seccomp_filters")?.parse::<u32>().ok();
        let confined = |pid: &u32| lists(pid).is_some_and(|lists| lists >= 4);
        if let Some(pid) = indexers_of(child.id()).into_iter().find(confined) {
            break pid;
        }
        assert!(waited < 400, "no indexer");
        waited += 1;
        sleep(Duration::from_millis(50));
    };
    for (field, value) in [("CapEff", "0"), ("CapBnd", "0"), ("CapPrm", "0"), ("NoNewPrivs", "1")] {
        let is = status_of(indexer, field).unwrap();
        let is = is.trim_start_matches('0');
        let value = value.trim_start_matches('0');
        assert!(is == value || (!is_root() && field == "CapBnd"), "{field} is {is}");
    }
    if is_root() {
        assert!(status_of(indexer, "Uid").unwrap().starts_with("65534"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..100 {
        if status_of(indexer, "State").is_none_or(|state| state.starts_with('Z')) {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("the indexer is still there");
}

#[test]
fn a_link_is_recorded_without_loss_while_the_indexer_is_killed() {
    let name = "indexer::a_link_is_recorded_without_loss_while_the_indexer_is_killed";
    let ended = indexers_end(name, ("KILL", Duration::from_millis(100)), 1);
    assert_eq!(ended.map_or(0, |ended| ended.left_out), 0, "what a killed one had is not blamed");
}

/// `cargo test -p wirespool --test black_box for_ten -- --ignored --nocapture --test-threads 1`
#[test]
#[ignore = "takes ten minutes"]
fn a_link_is_recorded_without_loss_while_the_indexer_is_killed_for_ten_minutes() {
    const NAME: &str =
        "indexer::a_link_is_recorded_without_loss_while_the_indexer_is_killed_for_ten_minutes";
    indexers_end(NAME, ("KILL", Duration::from_millis(100)), TEN_MINUTES);
}

/// Poison as real indexers meet it: twice in a second one ends by a fault of its own.
#[test]
#[ignore = "takes ten minutes"]
fn a_link_is_recorded_without_loss_while_the_indexer_crashes_for_ten_minutes() {
    const NAME: &str =
        "indexer::a_link_is_recorded_without_loss_while_the_indexer_crashes_for_ten_minutes";
    indexers_end(NAME, ("SEGV", Duration::from_millis(500)), TEN_MINUTES);
}

/// What became of a recording whose indexers ended.
struct Ended {
    left_out: u64,
}

/// Records traffic that is sent so many times, while every indexer gets a signal again and again;
/// nothing in the namespace that does not.
fn indexers_end(name: &str, (how, every): (&str, Duration), loops: u32) -> Option<Ended> {
    if !enter(PAIR, name) {
        return None;
    }
    let mut volume = Volume::empty();
    volume.path = volume.file("large");
    run(&["create", &volume.path, "--size", "6G", "--piece", "256K", "--sparse"]).done();
    let traffic = volume.folder.path().join("traffic.pcap");
    std::fs::write(&traffic, capture(1_000_000_000, 0..PACKETS)).unwrap();
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--interface", "taker", "--pool", "32M", "--json"]);
    command.args(["--flush-interval", "50ms", "--index-dir", &volume.index]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let is_going = || run(&["status", &volume.path, "--json"]).out.contains("offered");
    assert!((0..200).any(|_| is_going() || {
        sleep(Duration::from_millis(50));
        false
    }));
    let mut replay = Command::new(BINARY);
    replay.args(["replay", traffic.to_str().unwrap(), "--interface", "sender", "--pps", "8000"]);
    replay.args(["--loops", &loops.to_string()]);
    replay.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut replay = replay.spawn().unwrap();
    let mut ended = 0;
    let (mut memory, mut looked) = (Vec::new(), Instant::now());
    while replay.try_wait().unwrap().is_none() {
        sleep(every);
        for indexer in indexers_of(pid) {
            signal(indexer, how);
            ended += 1;
        }
        if looked.elapsed() > Duration::from_secs(30) {
            looked = Instant::now();
            memory.push(memory_kib(pid));
        }
    }
    sleep(Duration::from_millis(200));
    signal(pid, "INT");
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = ["stored", "left_out", "unindexed"].map(|name| report[name].as_u64().unwrap());
    let [stored, left_out, unindexed] = counts;
    println!(
        "{stored} packets stored, {left_out} left out, {} wait for their index, {ended} indexers \
         ended; KiB of memory every 30 s: {memory:?}",
        unindexed - left_out
    );
    let drops = ["kernel_drops", "writer_drops"].map(|name| report[name].as_u64());
    assert_eq!(drops, [Some(0); 2], "{report}");
    assert!(ended >= 5 && stored >= u64::from(PACKETS) * u64::from(loops), "{report}");
    is_flat(&memory);
    let (packets, said) = found(&volume, left_out);
    assert_eq!(packets + left_out, stored, "{said}");
    Some(Ended { left_out })
}

/// Memory does not grow after the first minutes.
fn is_flat(memory_kib: &[u64]) {
    let (early, late) = memory_kib.split_at(memory_kib.len() / 2);
    let most = |of: &[u64]| of.iter().copied().max().unwrap_or(0);
    assert!(most(late) <= most(early) * 5 / 4 || early.len() < 4, "{memory_kib:?}");
}

#[test]
fn a_link_is_recorded_without_loss_while_poison_arrives() {
    poison_arrives("indexer::a_link_is_recorded_without_loss_while_poison_arrives", 1);
}

/// `cargo test -p wirespool --test black_box poison -- --ignored --nocapture`
#[test]
#[ignore = "takes ten minutes"]
fn a_link_is_recorded_without_loss_while_poison_arrives_for_ten_minutes() {
    const NAME: &str =
        "indexer::a_link_is_recorded_without_loss_while_poison_arrives_for_ten_minutes";
    poison_arrives(NAME, TEN_MINUTES);
}

/// The traffic is sent so many times, while one stripe in twenty ends the indexer: about one in a
/// second.
fn poison_arrives(name: &str, loops: u32) {
    if !enter(PAIR, name) {
        return;
    }
    let mut volume = Volume::empty();
    // Nothing is overwritten before there was time for it.
    volume.path = volume.file("large");
    run(&["create", &volume.path, "--size", "6G", "--piece", "256K", "--sparse"]).done();
    let traffic = volume.folder.path().join("traffic.pcap");
    std::fs::write(&traffic, capture(1_000_000_000, 0..PACKETS)).unwrap();
    let defaults =
        record::Options::new(volume.path.clone().into(), Input::Interfaces(vec!["taker".into()]));
    let crashes: Arc<Mutex<BTreeMap<StripeId, u32>>> = Arc::default();
    let counted = Arc::clone(&crashes);
    let options = record::Options {
        pool_bytes: Some(32 << 20),
        cut_after: Duration::from_millis(50),
        index_dir: Some(volume.index.clone().into()),
        workers: Workers::new(Arc::new(Faulty::new(move |seen| {
            let stripe = seen.stripe.filter(|stripe| stripe.sequence.get() % 20 == 10)?;
            *counted.lock().unwrap().entry(stripe).or_default() += 1;
            Some(Fate::Crashes)
        }))),
        ..defaults
    };
    let mut replay = None;
    let (mut memory, mut begun) = (Vec::new(), Instant::now());
    let report = record::record(&options, &host::SystemClock, &mut |_| {
        let sending = replay.get_or_insert_with(|| {
            let mut replay = Command::new(BINARY);
            replay.arg("replay").arg(&traffic).args(["--interface", "sender", "--pps", "8000"]);
            replay.args(["--loops", &loops.to_string()]);
            replay.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            replay.spawn().unwrap()
        });
        if begun.elapsed() > Duration::from_secs(30) {
            begun = Instant::now();
            memory.push(memory_kib(std::process::id()));
        }
        match sending.try_wait().unwrap() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    });
    let report = report.unwrap();
    let total = &report.total;
    let sent = u64::from(PACKETS) * u64::from(loops);
    let crashes = crashes.lock().unwrap();
    // Under poison without end what waits may outgrow the time for it: readers index that.
    let waiting = report.unindexed - report.left_out;
    println!(
        "{} packets stored, {} left out, {waiting} wait for their index; {} indexers ended by {} \
         stripes; KiB of memory every 30 s: {memory:?}",
        total.stored,
        report.left_out,
        report.indexer_deaths,
        crashes.len()
    );
    let most = crashes.values().max();
    assert!(most == Some(&2), "a stripe ended {most:?} indexers");
    is_flat(&memory);
    assert!(total.stored >= sent && total.stored == total.offered, "{report:?}");
    assert!(report.left_out > 0 && report.indexer_deaths >= 4, "{report:?}");
    let most = if loops == 1 { 0 } else { total.stored / 100 };
    assert!(waiting <= most, "only the poison has no rows: {report:?}");
    assert!(report.left_out < total.stored / 2, "{report:?}");
}

#[test]
fn what_ended_the_indexer_twice_is_told_by_inspect_find_and_verify() {
    let volume = Volume::empty();
    let traffic = volume.folder.path().join("traffic.pcap");
    std::fs::write(&traffic, capture(1_000_000_000, 0..PACKETS)).unwrap();
    let is_poison = |sequence: u64| sequence % 5 == 2;
    let defaults = record::Options::new(volume.path.clone().into(), Input::Files(vec![traffic]));
    let options = record::Options {
        pool_bytes: Some(4 << 20),
        index_dir: Some(volume.index.clone().into()),
        workers: Workers::new(Arc::new(Faulty::new(move |seen| {
            seen.stripe
                .is_some_and(|stripe| is_poison(stripe.sequence.get()))
                .then_some(Fate::Crashes)
        }))),
        ..defaults
    };
    let report =
        record::record(&options, &host::SystemClock, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.left_out > 0, "{report:?}");
    let inspected = run(&["inspect", &volume.path, "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    let left_out = inspected["index"]["left_out"].as_array().unwrap();
    let packets: u64 = left_out.iter().map(|left| left["packets"].as_u64().unwrap()).sum();
    assert_eq!(packets, report.left_out, "{inspected}");
    let text = run(&["inspect", &volume.path]).done().out;
    assert!(text.contains("packets left out for good: they ended the indexer twice"), "{text}");
    let found = run(&["find", &volume.path, "--index-dir", &volume.index, "proto udp"]);
    assert!(found.err.contains(&report.left_out.to_string()), "{found:?}");
    run(&["verify", &volume.path]).done();
}
