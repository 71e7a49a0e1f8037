//! A volume has one writer, whatever it is called and by whichever path it is reached: two names of
//! one storage, two machines. The machines are namespaces that know nothing of each other's
//! processes, and see the volume by a loop device alone.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{Attached, CAPTURES, Mounted, Ran, Volume, command, run, text};

/// A recorder that takes what it is given, and has taken the first of it.
struct Recorder {
    child: Child,
    input: ChildStdin,
}

impl Recorder {
    fn start(volume: &str, index: &str) -> Self {
        let arguments = ["record", volume, "--pool", "4M", "--read", "-", "--index-dir", index];
        let mut recorder = command(&arguments);
        recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = recorder.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
        let begun = Instant::now();
        while !run(&["inspect", volume]).out.contains("all durable") {
            assert!(begun.elapsed().as_secs() < 30, "the recorder acknowledges");
        }
        Self { child, input }
    }

    fn signal(&self, name: &str) {
        let number = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &number]).status().unwrap().success());
    }

    fn end(self) -> Ran {
        drop(self.input);
        Ran::new(&self.child.wait_with_output().unwrap())
    }
}

fn sessions(volume: &str) -> usize {
    run(&["find", volume, "udp"]).done().out.lines().count()
}

#[test]
fn a_loop_device_over_a_member_is_the_member() {
    let volume = Volume::empty();
    let recorder = Recorder::start(&volume.path, &volume.index);
    let file = Path::new(&volume.path);
    let (Some(first), Some(second)) = (Attached::over(file, &[]), Attached::over(file, &[])) else {
        return;
    };
    let words = format!("lies in {}, which another process has open for writing", volume.path);
    for name in [&first.path, &second.path] {
        let input = format!("{CAPTURES}/tls.pcap");
        let other = run(&["record", name, "--read", &input, "--index-dir", &volume.index]);
        other.is_refused(&words);
        run(&["scrub", name]).is_refused(&words);
        run(&["scrub", name, "--dry-run"]).done();
    }
    let found = sessions(&volume.path);
    assert!(found > 0 && recorder.end().code == Some(0), "the first one goes on");
    assert!(sessions(&volume.path) >= found);
    run(&["verify", &volume.path]).done();
}

#[test]
fn two_loop_devices_over_one_file_are_one() {
    let volume = Volume::empty();
    let file = Path::new(&volume.path);
    let (Some(first), Some(second)) = (Attached::over(file, &[]), Attached::over(file, &[])) else {
        return;
    };
    let recorder = Recorder::start(&first.path, &volume.index);
    let second_record =
        |path: &str| run(&["record", path, "--read", CAPTURES, "--index-dir", &volume.index]);
    second_record(&second.path).is_refused("which another process has open for writing");
    second_record(&volume.path).is_refused("is in use by another process or by the system");
    assert_eq!(recorder.end().code, Some(0));
    // Nor are they two members.
    let words = "are one and the same storage under two names; give one of them";
    let create = |member: &str| run(&["create", &first.path, "--member", member, "--force"]);
    create(&second.path).is_refused(words);
    create(&volume.path).is_refused(words);
    let names = [&volume.path, "--member", &second.path];
    run(&[&["record"], &names[..], &["--read", CAPTURES]].concat()).is_refused(words);
    run(&["verify", &volume.path]).done();
}

#[test]
fn parts_of_one_file_are_two_members() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let parts = [["--offset", "0"], ["--offset", "33554432"]];
    let part = |offset: [&str; 2]| {
        Attached::over(&file, &[&offset[..], &["--sizelimit", "33554432"]].concat())
    };
    let [Some(first), Some(second)] = parts.map(part) else { return };
    let volume = [&first.path, "--member", &second.path, "--raw", "--piece", "64K"];
    run(&[&["create"], &volume[..]].concat()).done();
    let index = text(folder.path().join("index"));
    let input = ["--read", CAPTURES, "--index-dir", &index];
    run(&[&["record", &first.path], &input[..]].concat()).done();
}

#[test]
fn after_a_kill_nobody_waits() {
    let volume = Volume::empty();
    let mut recorder = Recorder::start(&volume.path, &volume.index);
    recorder.child.kill().unwrap();
    // As after a crash: no command has asked how it ended.
    let begun = Instant::now();
    volume.record(&["--read", &format!("{CAPTURES}/tls.pcap")]).done();
    let took = begun.elapsed();
    recorder.child.wait().unwrap();
    // Who waits for a claim waits four seconds and a half.
    assert!(took < Duration::from_secs(4), "{took:?}");
}

/// Runs a verb on another machine, which does not see what is mounted at `hidden`.
fn run_elsewhere(hidden: &Path, arguments: &[&str]) -> Ran {
    let script = "umount -l \"$1\" && shift && exec \"$@\"";
    let mut machine = Command::new("unshare");
    machine.args(["--pid", "--fork", "--mount", "--mount-proc", "sh", "-c", script, "sh"]);
    machine.arg(hidden).arg(env!("CARGO_BIN_EXE_wirespool")).args(arguments);
    Ran::new(&machine.stdin(Stdio::null()).output().unwrap())
}

/// Records a file on another machine, which reaches the volume by `device` alone.
fn elsewhere(device: &str, hidden: &Path, index: &str) -> Ran {
    let input = format!("{CAPTURES}/tls.pcap");
    let input = ["--pool", "4M", "--read", &input, "--index-dir", index];
    run_elsewhere(hidden, &[&["record", device], &input[..]].concat())
}

#[test]
fn on_another_machine_no_verb_takes_a_disk_that_a_recorder_has() {
    let Some(shared) = Mounted::new(&["-t", "tmpfs", "-o", "size=100M", "tmpfs"]) else { return };
    let hidden = shared.folder.path();
    let folder = tempfile::tempdir().unwrap();
    let [index, other, second] =
        ["index", "other", "second"].map(|name| text(folder.path().join(name)));
    let file = hidden.join("volume");
    let volume = text(file.clone());
    let size = ["--size", "64M", "--piece", "256K", "--sparse"];
    run(&[&["create", &volume], &size[..]].concat()).done();
    let two = ["create", &other, "--member", &second, "--parity", "1"];
    run(&[&two[..], &size].concat()).done();
    let recorder = Recorder::start(&volume, &index);
    let Some(device) = Attached::over(&file, &[]) else { return };
    let disk = &device.path;
    let name = disk.trim_start_matches("/dev/");
    let verbs: [&[&str]; 5] = [
        &["qualify", disk, "--part", "fill", "--destroy", name, "--overwrite", "volume"],
        &["create", disk, "--force"],
        &["grow", &other, disk, "--force"],
        &["grow", &other, disk, "--spare", "--force"],
        &["replace", &other, "1", disk, "--force"],
    ];
    for verb in verbs {
        let refused = run_elsewhere(hidden, verb);
        refused.is_refused("has it open for writing; stop that first");
        let process = format!("process {} on ", recorder.child.id());
        assert!(refused.err.contains(&process), "{refused:?}");
    }
    assert_eq!(recorder.end().code, Some(0));
    assert!(sessions(&volume) > 0);
    run(&["verify", &volume]).done();
    run(&["verify", &other]).done();
    run_elsewhere(hidden, &["create", disk, "--force"]).done();
}

/// Whoever wrote it took no claim, so nobody could refuse it.
#[test]
fn a_recorder_whose_disk_became_another_volume_does_not_say_that_its_packets_are_stored() {
    let [volume, other] = [Volume::empty(), Volume::empty()];
    let recorder = Recorder::start(&volume.path, &volume.index);
    let superblocks = &std::fs::read(&other.path).unwrap()[..8192];
    let mut disk = std::fs::OpenOptions::new().write(true).open(&volume.path).unwrap();
    disk.write_all(superblocks).unwrap();
    let ended = recorder.end();
    assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
    let words = "another program has written a superblock to member 0";
    assert!(ended.err.contains(words), "{ended:?}");
}

#[test]
fn of_two_machines_the_first_goes_on_and_one_that_stood_still_stops() {
    let Some(shared) = Mounted::new(&["-t", "tmpfs", "-o", "size=100M", "tmpfs"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [index, other] = ["index", "other"].map(|name| text(folder.path().join(name)));
    let file = shared.folder.path().join("volume");
    let volume = text(file.clone());
    run(&["create", &volume, "--size", "64M", "--piece", "256K", "--sparse"]).done();
    let recorder = Recorder::start(&volume, &index);
    let Some(device) = Attached::over(&file, &[]) else { return };

    let refused = elsewhere(&device.path, shared.folder.path(), &other);
    refused.is_refused("has it open for writing; stop that first");
    let process = format!("process {} on ", recorder.child.id());
    assert!(refused.err.contains(&process), "{}", refused.err);

    recorder.signal("-STOP");
    let begun = Instant::now();
    elsewhere(&device.path, shared.folder.path(), &other).done();
    assert!(begun.elapsed() > Duration::from_secs(4), "it was waited for");
    recorder.signal("-CONT");
    let stopped = recorder.end();
    assert!(stopped.code != Some(0), "{}", stopped.err);
    let said = stopped.err.lines().filter(|line| line.contains("has taken over the volume"));
    assert_eq!(said.count(), 1, "{}", stopped.err);

    run(&["verify", &volume]).done();
    // What the first one left is a gap, and what the second one recorded is there.
    let found = run(&["find", &volume, "sni", "www.github.com", "--index-dir", &other]);
    assert!(found.out.contains("github") && found.err.contains("gap: crash"), "{found:?}");
    drop(device);
}
