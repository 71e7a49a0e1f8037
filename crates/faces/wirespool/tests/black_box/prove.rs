//! `prove` as its users meet it: in namespaces that it makes itself.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::machine::{BINARY, CAPTURES, Ran, Volume, command, is_root, run};

const NO_NAMESPACE: &str = "cannot make a network namespace";
const NO_XDP: &str = "not permitted to use AF_XDP";

/// Runs `prove` and gives its report; `None` with a printed reason where there is no namespace.
fn prove(arguments: &[&str]) -> Option<(Ran, Value)> {
    reported(run(&[&["prove", "--json"], arguments].concat()))
}

fn reported(ran: Ran) -> Option<(Ran, Value)> {
    if ran.code == Some(3) && [NO_NAMESPACE, NO_XDP].iter().any(|line| ran.err.contains(line)) {
        println!("not run: {}", ran.err.trim());
        return None;
    }
    let json = serde_json::from_str(&ran.out);
    let json = json.unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    Some((ran, json))
}

fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"))
}

/// offered = stored + every loss.
#[track_caller]
fn adds_up(report: &Value) {
    let losses = ["altered", "interface_drops", "kernel_drops", "writer_drops", "unexplained"];
    let lost: u64 = losses.iter().map(|name| count(report, name)).sum();
    assert_eq!(count(report, "offered"), count(report, "stored") + lost, "{report}");
    assert_eq!(count(&report["recorder"], "stored"), count(report, "stored"), "{report}");
}

/// Nothing lost. A machine too busy to send at the rate gives no verdict, and loses nothing.
#[track_caller]
fn is_lossless((ran, report): &(Ran, Value)) {
    assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
    adds_up(report);
    assert_eq!(report["offered"], report["stored"]);
    assert!(report["findings"].as_array().unwrap().is_empty());
}

#[test]
fn a_mix_at_a_modest_rate_comes_back_whole() {
    let Some(proved) = prove(&["--pps", "15000", "--packets", "20000"]) else { return };
    is_lossless(&proved);
    let (_, report) = proved;
    assert_eq!(count(&report, "offered"), 20_480, "five rounds");
    assert_eq!((count(&report, "strangers"), count(&report, "reordered")), (0, 0));
    let recorder = &report["recorder"];
    assert!(count(recorder, "cpu_ns") > 0 && count(recorder, "cpu_ns_per_gigabyte") > 0);
    assert!(count(recorder, "pool_columns_used_max") > 0);
}

#[test]
fn by_af_xdp_a_mix_comes_back_whole_and_what_is_lost_adds_up() {
    let xdp = ["--", "--source", "xdp"];
    let arguments = [&["--pps", "15000", "--packets", "20000"], &xdp[..]].concat();
    let Some(proved) = prove(&arguments) else { return };
    is_lossless(&proved);
    // 64 chunks, and a burst that is many times as long.
    let overload = [&["--frames", "64", "--top", "--packets", "200000"], &xdp[..]].concat();
    let Some((ran, report)) = prove(&[&overload[..], &["--kernel-ring", "1K"]].concat()) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    adds_up(&report);
    assert!(count(&report, "kernel_drops") > 0, "{report}");
    assert_eq!(count(&report, "unexplained"), 0, "{report}");
}

#[test]
fn a_capture_goes_round_with_a_number_behind_each_packet() {
    let arguments = ["--frames", CAPTURES, "--pps", "5000", "--packets", "5000"];
    let Some(proved) = prove(&arguments) else { return };
    is_lossless(&proved);
    assert!(count(&proved.1, "offered") >= 5000);
}

#[test]
fn a_volume_that_is_given_is_recorded_into_again_and_again() {
    let volume = Volume::empty();
    let arguments = ["--volume", &volume.path, "--frames", "64", "--pps", "10000"];
    for _ in 0..2 {
        let packets = ["--packets", "4096", "--", "--pool", "4M", "--index-dir", &volume.index];
        let Some(proved) = prove(&[&arguments[..], &packets].concat()) else { return };
        is_lossless(&proved);
    }
    run(&["verify", &volume.path]).done();
    let found = run(&["find", &volume.path, "udp", "--index-dir", &volume.index]).done();
    assert!(found.out.contains("443"), "{found:?}");
    let many = run(&[&["prove"], &arguments[..], &["--packets", "9000000"]].concat());
    if many.code != Some(3) {
        many.fails_with(2, "send fewer (--packets)");
    }
}

#[test]
fn extraction_and_scrub_beside_it_cost_no_packet() {
    if !is_root() {
        // There the recorder seems gone to a reader outside, whose answers are then unknown.
        println!("not run: a recorder inside of a user namespace cannot be asked from outside");
        return;
    }
    let volume = Volume::recorded();
    let is_over = AtomicBool::new(false);
    let extract_until_over = || {
        let mut extracts = 0;
        while !is_over.load(Ordering::Relaxed) {
            let out = volume.file(&format!("{extracts}.pcapng"));
            let query = ["extract", &volume.path, "udp", "-w", &out];
            run(&[&query[..], &["--index-dir", &volume.index]].concat()).done();
            extracts += 1;
        }
        extracts
    };
    std::thread::scope(|scope| {
        let extracting = scope.spawn(extract_until_over);
        let load = ["--volume", &volume.path, "--pps", "5000", "--duration", "3s"];
        // Space for what a machine that runs other tests, too, makes the recorder wait.
        let scrubbed = ["--", "--scrub-every", "1s", "--pool", "32M", "--index-dir", &volume.index];
        let proved = prove(&[&load[..], &scrubbed].concat());
        is_over.store(true, Ordering::Relaxed);
        let extracts = extracting.join().unwrap();
        if let Some(proved) = proved {
            is_lossless(&proved);
            assert!(extracts > 0);
            println!("{extracts} extracts beside {} packets", proved.1["stored"]);
        }
    });
    run(&["verify", &volume.path]).done();
}

#[test]
fn an_overload_of_the_kernel_ring_adds_up_exactly() {
    let load = ["--frames", "1514", "--top", "--packets", "60000", "--", "--kernel-ring", "4K"];
    let Some((ran, report)) = prove(&load) else { return };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    adds_up(&report);
    assert!(count(&report, "kernel_drops") > 0, "{report}");
    assert_eq!(count(&report, "kernel_drops"), count(&report["recorder"], "kernel_drops"));
    assert_eq!((count(&report, "unexplained"), count(&report, "altered")), (0, 0));
    let first = report["findings"][0].as_str().unwrap();
    assert!(first.ends_with("missing"), "{first}");
}

/// The recorder stands still for a second while packets come.
#[test]
fn a_recorder_that_is_held_still_loses_by_causes_that_add_up() {
    let arguments = ["prove", "--json", "--pps", "20000", "--duration", "3s"];
    let mut prove = command(&arguments);
    prove.args(["--", "--kernel-ring", "1M"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = prove.spawn().unwrap();
    let shell = format!(
        "for try in $(seq 500); do
            # No line feed ends this file, which read reports as a failure.
            read recorder rest < /proc/{0}/task/{0}/children || true
            [ -n \"$recorder\" ] && break
            sleep 0.02
        done
        sleep 1.5; kill -STOP $recorder; sleep 1; kill -CONT $recorder",
        running.id()
    );
    let held = Command::new("sh").args(["-c", &shell]).stderr(Stdio::null()).status().unwrap();
    let Some((ran, report)) = reported(Ran::new(&running.wait_with_output().unwrap())) else {
        return;
    };
    adds_up(&report);
    if held.success() {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(count(&report, "kernel_drops") > 0, "{report}");
        assert_eq!(count(&report, "unexplained"), 0, "{report}");
    } else {
        println!("not run: the recorder could not be held still");
    }
}

#[test]
fn a_search_ends_and_says_who_is_the_limit() {
    let few = ["--find-limit", "--pps", "500000", "--duration", "100ms", "--repeats", "1"];
    let ran = run(&[&["prove", "--json", "--frames", "64"], &few[..]].concat());
    let Some((ran, report)) = reported(ran) else { return };
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    let trials = report["trials"].as_array().unwrap();
    assert!(!trials.is_empty() && trials.len() < 40, "{}", trials.len());
    trials.iter().for_each(adds_up);
    assert!(["sender", "recorder"].contains(&report["limited_by"].as_str().unwrap()));
    assert_eq!(ran.code == Some(0), report["lossless_packets_per_s"].is_u64());
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (arguments, words) in [
        (&["--frames", "59"][..], "frames have 60 to 9014 bytes"),
        (&["--flows", "1"], "2 to 1000000 flows"),
        (&["--top", "--duration", "3s"], "give a number of packets"),
        (&["--find-limit", "--top"], "begins slowly"),
    ] {
        run(&[&["prove"], arguments].concat()).fails_with(2, words);
    }
    for arguments in [&["--rate", "fast"][..], &["--top", "--pps", "5"], &["--interfaces", "lo"]] {
        assert_eq!(run(&[&["prove"], arguments].concat()).code, Some(2), "{arguments:?}");
    }
    run(&["prove", "--frames", "/nonexistent.pcap"]).is_refused("cannot read /nonexistent.pcap");
    let absent = run(&["prove", "--interfaces", "absent0", "absent1"]);
    assert_eq!((absent.code, absent.err.lines().count()), (Some(3), 1), "{absent:?}");
    let wrong = run(&["prove", "--packets", "1", "--", "--no-such-option"]);
    if !wrong.err.contains(NO_NAMESPACE) {
        wrong.fails_with(2, "'--no-such-option'");
    }
}

#[test]
fn where_there_is_no_namespace_to_be_had_the_remedy_is_named() {
    let script = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$0\" prove --packets 1";
    let arguments = ["--user", "--map-root-user", "sh", "-c", script, BINARY];
    let output = Command::new("unshare").args(arguments).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        println!("not run: no unshare");
        return;
    };
    let ran = Ran::new(&output);
    if ran.err.starts_with("wirespool: ") {
        ran.is_refused(NO_NAMESPACE);
        assert!(ran.err.contains("CAP_SYS_ADMIN"), "{ran:?}");
    } else {
        println!("not run: no namespace without namespaces: {}", ran.err.trim());
    }
}

#[test]
fn an_interrupted_run_judges_what_it_sent() {
    let mut prove = command(&["prove", "--json", "--pps", "5000", "--duration", "60s"]);
    let running = prove.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // From its first packet on: before, it would have nothing to report.
    std::thread::sleep(Duration::from_secs(4));
    let interrupt = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(interrupt.is_ok());
    let ran = Ran::new(&running.wait_with_output().unwrap());
    if ran.err.contains("stopped before the first packet") {
        println!("not run: the machine is too slow");
        return;
    }
    let Some((ran, report)) = reported(ran) else { return };
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(report["stopped"], true);
    adds_up(&report);
    assert!(count(&report, "offered") < 300_000);
}
