//! Surroundings that nobody rehearsed: signals, outputs that are full, files that are taken away,
//! sizes that no machine has. What was not done is said, and is no success.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{BINARY, CAPTURES, Ran, Volume, command, is_root, recorder, run};

/// Longest that a stop may take.
const STOP: Duration = Duration::from_mins(1);

/// One that hears every signal, also where tests run in the background.
fn hearing(arguments: &[&str]) -> Command {
    let mut hearing = Command::new("env");
    hearing.arg("--default-signal").arg(BINARY).args(arguments);
    hearing.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    hearing
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success(), "{name} is sent");
}

/// What it said, once it has ended by itself.
#[track_caller]
fn ended(mut child: Child) -> Ran {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > STOP {
            child.kill().unwrap();
            panic!("it goes on: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ran::new(&child.wait_with_output().unwrap())
}

/// Status 3 and these words; how far it was may be said before, on a machine that is busy.
#[track_caller]
fn is_refused(ran: &Ran, words: &str) {
    assert!(ran.code == Some(3) && ran.err.contains(words), "{words:?} in {ran:?}");
}

/// Reads standard error up to a line with these words, and what comes behind it once it is wanted.
fn read_up_to(child: &mut Child, words: &str) -> BufReader<std::process::ChildStderr> {
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it ended before it said {words:?}");
    }
    err
}

#[test]
fn files_that_a_stopped_recording_has_not_read_are_missing() {
    let volume = Volume::empty();
    let pipe = volume.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let dns = format!("{CAPTURES}/dns.pcap");
    // The pipe has no writer, so that the file behind it does not get its turn.
    let record = ["record", &volume.path, "--pool", "4M", "--read", &pipe, "--read", &dns];
    let mut child = hearing(&record).spawn().unwrap();
    let mut err = read_up_to(&mut child, "of memory: ");
    signal(&child, "TERM");
    let ran = ended(child);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(ran.code, Some(1), "{ran:?} {rest}");
    assert!(ran.out.contains("missing: the rest of 1 input that broke off"), "{ran:?}");
    assert!(ran.out.contains(&format!("broken off: {dns}: stopped before its end")), "{ran:?}");

    // A pipe has no other end.
    let record = ["record", &volume.path, "--pool", "4M", "--read", &pipe];
    let mut child = hearing(&record).spawn().unwrap();
    let _err = read_up_to(&mut child, "of memory: ");
    signal(&child, "TERM");
    let ran = ended(child);
    assert!(ran.code == Some(1) && ran.out.starts_with("no packet was read\n"), "{ran:?}");
}

#[test]
fn a_log_of_which_not_all_was_tagged_is_named() {
    let volume = Volume::recorded();
    let log = volume.file("eve.json");
    let mut file = File::create(&log).unwrap();
    for _ in 0..100_000 {
        let line = r#"{"timestamp":"2016-04-07T17:11:32.000000+0000","event_type":"alert",
            "src_ip":"192.168.0.30","src_port":45418,"dest_ip":"8.8.4.4","dest_port":53,
            "proto":"UDP","alert":{"signature":"x","severity":1}}"#;
        writeln!(file, "{}", line.replace('\n', "")).unwrap();
    }
    let tag = ["tag", &volume.path, "--log", &log, "--index-dir", &volume.index];
    let mut child = hearing(&tag).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.read_line(&mut String::new()).unwrap() > 0, "an event was tagged");
    // What it prints is read on, so that it does not wait for that.
    let reading = std::thread::spawn(move || out.read_to_string(&mut String::new()).unwrap());
    signal(&child, "TERM");
    let ran = ended(child);
    reading.join().unwrap();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("eve.json: stopped before its end"), "{ran:?}");
}

#[test]
fn who_could_not_look_at_everything_does_not_say_that_nothing_is_there() {
    use std::os::unix::fs::FileExt;
    let volume = Volume::empty();
    volume.record(&["--read", &format!("{CAPTURES}/dns.pcap"), "--no-index"]).done();
    let forget = ["forget", &volume.path, "host 8.8.8.8", "--yes"];
    let none = run(&["forget", &volume.path, "host 10.9.8.7"]);
    let nothing = "no answer gives out a packet or row of these sessions; what is hidden";
    assert!(none.code == Some(1) && none.out.starts_with(nothing), "{none:?}");

    // The stripe with the packets is damaged, and there is nothing else that names them.
    let bytes = std::fs::read(&volume.path).unwrap();
    let name = b"\x06kernel\x03org";
    let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(name));
    let file = File::options().write(true).open(&volume.path).unwrap();
    for at in places.collect::<Vec<_>>() {
        file.write_all_at(b"damaged", u64::try_from(at).unwrap()).unwrap();
    }
    let ran = run(&forget);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("in what could be looked at; there may be some"), "{ran:?}");
    assert!(ran.err.contains("damage"), "{ran:?}");
}

#[test]
fn an_output_that_is_full_is_named_whatever_is_printed() {
    let volume = Volume::recorded();
    let path = &*volume.path;
    let printing: [&[&str]; 10] = [
        &["--help"],
        &["--version"],
        &["find", "--help"],
        &["help", "record"],
        &["fields"],
        &["completions", "bash"],
        &["status", path],
        &["find", path],
        &["find", path, "--json"],
        &["erase", path, "--max-age", "9999d"],
    ];
    for arguments in printing {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::new(&command(arguments).stdout(full).output().unwrap());
        is_refused(&ran, "wirespool: cannot write to standard output: No space left on device");
    }
}

#[test]
fn a_volume_that_is_removed_while_it_is_recorded_keeps_nothing() {
    for is_removed in [true, false] {
        let volume = Volume::empty();
        let (recorder, mut input) = recorder(&volume.path, &volume.index, &["--pool", "4M"]);
        input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
        let begun = Instant::now();
        while !Path::new(&volume.index).exists() && begun.elapsed() < STOP {
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_removed {
            std::fs::remove_file(&volume.path).unwrap();
        } else {
            // Under another name it is there all the same.
            std::fs::rename(&volume.path, volume.file("renamed")).unwrap();
        }
        drop(input);
        let ran = ended(recorder);
        if is_removed {
            is_refused(&ran, "the file was removed while it was written");
        } else {
            ran.done();
            run(&["verify", &volume.file("renamed")]).done();
        }
    }
}

#[test]
fn memory_that_no_machine_has_is_refused_at_once() {
    let volume = Volume::empty();
    for size in ["8192P", "9223372036854775808", "18446744073709551615", "100T"] {
        let of_files = ["record", &volume.path, "--read", CAPTURES, "--pool", size];
        let of_link = ["record", &volume.path, "--interface", "lo", "--kernel-ring", size];
        for (arguments, what) in [(&of_files[..], "pool: "), (&of_link, "kernel rings: ")] {
            let ran = ended(hearing(arguments).spawn().unwrap());
            is_refused(&ran, "of memory that are free");
            assert!(ran.err.contains(what), "{ran:?}");
        }
    }
}

#[test]
fn holds_that_are_made_at_once_take_no_more_than_all_may() {
    let volume = Volume::empty();
    let path = volume.file("much.pcap");
    std::fs::write(&path, crate::golden::capture(1_790_000_000_000_000_000, 0..20_000)).unwrap();
    volume.record(&["--read", &path]).done();
    let folder = volume.file("holds");
    let used = || {
        let files = std::fs::read_dir(&folder).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let hold = |most: &str| {
        hearing(&["hold", &volume.path, "udp or tcp", "--hold-dir", &folder, "--size-max", most])
    };
    ended(hold("1G").spawn().unwrap()).done();
    // Space for two more.
    let most = used() * 3 + used() / 2;
    let running: Vec<Child> = (0..8).map(|_| hold(&most.to_string()).spawn().unwrap()).collect();
    let ran: Vec<Ran> = running.into_iter().map(ended).collect();
    let done = ran.iter().filter(|ran| ran.code == Some(0)).count();
    assert_eq!(done, 2, "{ran:?}");
    for ran in ran.iter().filter(|ran| ran.code != Some(0)) {
        is_refused(ran, "has no space for it");
    }
    assert!(used() <= most, "{} of {most}", used());
}

#[test]
fn what_a_bare_root_lacks_is_named() {
    if !is_root() {
        println!("not run: needs root to hide what is mounted");
        return;
    }
    let volume = Volume::empty();
    for (hidden, named) in [("/proc", "/proc/self/exe"), ("/dev", "/dev/null")] {
        let script = format!("mount -t tmpfs none {hidden} && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh", BINARY]);
        command.args(["record", &volume.path, "--pool", "4M", "--read", CAPTURES]);
        let ran = Ran::new(&command.output().unwrap());
        is_refused(&ran, &format!("cannot start the launcher: there is no {named} here"));
    }
}
