//! What no output takes the place of, and what ends a recording: nothing is lost by a slip.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{Attached, CAPTURES, Volume, command, run, text};

#[test]
fn no_output_replaces_a_member_by_any_name() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let [linked, hard] = ["linked", "hard"].map(|name| volume.file(name));
    symlink(&volume.path, &linked).unwrap();
    std::fs::hard_link(&volume.path, &hard).unwrap();
    let before = std::fs::read(&volume.path).unwrap();
    let manifest = volume.file("packets.pcapng");
    for place in [&volume.path, &linked, &hard] {
        let path: &str = &volume.path;
        for words in [
            &["extract", path, "", "-w", place, "--force"][..],
            &["extract", path, "", "-w", &manifest, "--manifest", place, "--force"],
            &["salvage", path, "-w", place, "--force"],
            &["inspect", path, "--map-svg", place, "--force"],
        ] {
            let ran = run(words);
            let expected = format!("{place} is a member of a volume: name another place");
            let is_open = format!("{place} is read by this command: name another place");
            assert!(ran.code != Some(0), "{words:?}");
            assert!(
                ran.err.contains(&expected) || ran.err.contains(&is_open),
                "{words:?}: {ran:?}"
            );
        }
    }
    assert!(std::fs::read(&volume.path).unwrap() == before, "not a byte has changed");
    assert!(!Path::new(&manifest).exists());
}

#[test]
fn no_output_goes_to_a_disk_or_replaces_its_input() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let input = volume.file("input.pcap");
    std::fs::copy(format!("{CAPTURES}/dns.pcap"), &input).unwrap();
    let extract = ["extract", &volume.path, "", "--force", "-w"];
    // What it reads from, here its standard input, is its input.
    let mut reading = command(&[&extract[..], &[&input]].concat());
    let reading = reading.stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&reading.stderr).into_owned();
    assert!(said.contains("is read by this command: name another place"), "{said}");
    assert!(
        std::fs::read(&input).unwrap() == std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()
    );
    let disk = volume.file("disk");
    std::fs::write(&disk, vec![7; 8 << 20]).unwrap();
    let Some(device) = Attached::over(Path::new(&disk), &[]) else { return };
    let words = [&extract[..], &[&device.path]].concat();
    run(&words).is_refused("is a disk: name another place");
    assert!(std::fs::read(&disk).unwrap() == vec![7; 8 << 20]);
}

/// Records what arrives until a signal comes; what it then says.
fn end_by(signal: &str, volume: &Volume) {
    let record = [
        "record",
        &volume.path,
        "--pool",
        "4M",
        "--read",
        "-",
        "--name",
        signal.trim_start_matches('-'),
    ];
    let program = command(&[&record[..], &["--index-dir", &volume.index]].concat());
    // Where the tests run in the background, signals may be ignored.
    let mut recorder = Command::new("env");
    recorder.arg("--default-signal").arg(program.get_program()).args(program.get_args());
    recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = recorder.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
    let begun = Instant::now();
    while !run(&["inspect", &volume.path]).out.contains("all durable") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the recorder acknowledges");
    }
    let number = child.id().to_string();
    assert!(Command::new("kill").args([signal, &number]).status().unwrap().success());
    let signalled = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if signalled.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{signal} does not end it");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.wait_with_output().unwrap();
    drop(input);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{signal}: {ended:?}");
    assert!(said.contains("every packet that arrived is stored"), "{signal}: {said}");
}

#[test]
fn whatever_signal_ends_a_recording_it_ends_in_order() {
    for signal in ["-HUP", "-QUIT", "-XCPU", "-USR1", "-ALRM", "-TERM"] {
        // One each: of a second recording nothing says from outside that it has begun.
        let volume = Volume::empty();
        end_by(signal, &volume);
        run(&["verify", &volume.path]).done();
        let found = run(&["find", &volume.path, "udp", "--index-dir", &volume.index]).done();
        assert!(!found.err.contains("gap"), "{}", text(found.err.into()));
    }
}
