//! One of six real disks is starved by the kernel's I/O controller: it stalls, is expelled, no
//! packet is lost; it is made whole again, and a scrub finds nothing.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::feed::{Fed, done};

const CONTROLLER: &str = "/sys/fs/cgroup/blkio";
const SLOWEST: &str = "1";

/// A loop device over a file that is removed with it.
struct Loop {
    path: String,
}

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(64 << 20).unwrap();
        let mut losetup = Command::new("losetup");
        let output =
            losetup.args(["--find", "--show", "--direct-io=on"]).arg(file).output().ok()?;
        let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        output.status.success().then_some(Self { path })
    }

    /// `major:minor`.
    fn number(&self) -> String {
        let name = self.path.trim_start_matches("/dev/");
        std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(Command::new("losetup").args(["--detach", &self.path]).status());
    }
}

/// A group of processes that the kernel starves.
struct Group {
    path: PathBuf,
}

impl Group {
    fn new() -> Option<Self> {
        let path = Path::new(CONTROLLER).join(format!("wirespool-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        let group = Self { path };
        group.path.join("blkio.throttle.write_bps_device").exists().then_some(group)
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path.join(file), text).unwrap();
    }

    /// Bytes a second that are written to one device; 0 lets it go.
    fn limit(&self, device: &Loop, bytes: &str) {
        self.write("blkio.throttle.write_bps_device", &format!("{} {bytes}", device.number()));
    }

    /// The same for what is read from it.
    fn limit_reads(&self, device: &Loop, bytes: &str) {
        self.write("blkio.throttle.read_bps_device", &format!("{} {bytes}", device.number()));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(&self.path));
    }
}

/// Six disks and the means to starve them; `None`, with the reason printed, where there are none.
fn machine(folder: &Path) -> Option<(Group, Vec<Loop>)> {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    if id != b"0\n" {
        println!("not run: needs root for loop devices and the blkio controller");
        return None;
    }
    let Some(group) = Group::new() else {
        println!("not run: no blkio controller of cgroup v1 with throttling at {CONTROLLER}");
        return None;
    };
    let disks: Vec<Loop> =
        (0..6).map_while(|number| Loop::new(&folder.join(format!("{number}")))).collect();
    if disks.len() < 6 {
        println!("not run: no loop devices");
        return None;
    }
    let mut create = vec!["create", &disks[0].path, "--raw", "--piece", "256K", "--parity", "2"];
    disks[1..].iter().for_each(|disk| create.extend(["--member", &disk.path]));
    done(&create);
    Some((group, disks))
}

/// Waits until recording goes on without member 2.
fn await_expelled(disks: &[Loop]) -> Duration {
    let expelled = || {
        let reader = volume::open_reader(Path::new(&disks[0].path), &[]).unwrap();
        reader.superblock().joined_members & (1 << 2) == 0
    };
    let begun = Instant::now();
    while !expelled() {
        assert!(begun.elapsed() < Duration::from_mins(1), "the starved member is expelled");
        thread::sleep(Duration::from_millis(100));
    }
    begun.elapsed()
}

#[test]
fn a_starved_disk_is_expelled_and_made_whole_and_no_packet_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let Some((group, disks)) = machine(folder.path()) else { return };
    let index = folder.path().join("index").into_os_string().into_string().unwrap();
    let record = ["record", &disks[0].path, "--pool", "8M", "--index-dir", &index];
    let mut fed = Fed::start(&record, Duration::from_millis(5));
    group.write("cgroup.procs", &fed.child.id().to_string());
    thread::sleep(Duration::from_millis(1500));
    group.limit(&disks[2], SLOWEST);
    let stalled = await_expelled(&disks);
    thread::sleep(Duration::from_secs(2));
    group.limit(&disks[2], "0");
    // The running recorder takes it back and gives it what it missed.
    let is_whole = |volume: &str| {
        let reader = volume::open_reader(Path::new(volume), &[]).unwrap();
        let entry = reader.superblock().members[2].clone();
        let is_back = reader.superblock().joined_members & (1 << 2) != 0;
        is_back && entry.clean_from <= reader.span().unwrap().tail.max(entry.stale_from)
    };
    let well = Instant::now();
    while !is_whole(&disks[0].path) {
        assert!(well.elapsed() < Duration::from_mins(1), "the member is taken back");
        thread::sleep(Duration::from_millis(100));
    }
    let returned = well.elapsed();
    let sent = fed.end();
    let output = fed.child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["stored"], &report["writer_drops"]), (&sent.into(), &0.into()), "{report}");
    let changes = report["members"].as_array().unwrap().iter();
    let changes: Vec<&str> = changes.map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["expelled", "returned", "resilvered"], "{report}");

    let scrubbed = done(&["scrub", &disks[5].path]);
    assert!(scrubbed.starts_with("clean: ") && !scrubbed.contains("never had"), "{scrubbed}");
    println!(
        "expelled after {} ms, back and whole {} ms after it answers, {sent} packets stored, \
         scrub clean",
        stalled.as_millis(),
        returned.as_millis()
    );
}

#[test]
fn a_disk_that_hangs_does_not_delay_the_end_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let Some((group, disks)) = machine(folder.path()) else { return };
    let index = folder.path().join("index").into_os_string().into_string().unwrap();
    let record = ["record", &disks[0].path, "--pool", "8M", "--index-dir", &index];
    let mut fed = Fed::start(&record, Duration::from_millis(5));
    group.write("cgroup.procs", &fed.child.id().to_string());
    thread::sleep(Duration::from_millis(1500));
    group.limit(&disks[2], SLOWEST);
    await_expelled(&disks);
    // A process that looks whether it is there again hangs in the kernel.
    group.limit_reads(&disks[2], SLOWEST);
    group.limit(&disks[2], "0");
    thread::sleep(Duration::from_secs(4));
    let sent = fed.end();
    let ended = Instant::now();
    let mut output = fed.child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        // The report ends with the brace that it began with; the process hangs with the disk.
        while !text.ends_with("\n}\n") {
            let mut byte = [0];
            if output.read(&mut byte).unwrap() == 0 {
                break;
            }
            text.push(char::from(byte[0]));
        }
        (text, Instant::now())
    });
    while !reader.is_finished() && ended.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(50));
    }
    let is_stopped = reader.is_finished();
    group.limit_reads(&disks[2], "0");
    let (text, reported) = reader.join().unwrap();
    fed.child.wait().unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["stored"], &report["writer_drops"]), (&sent.into(), &0.into()), "{report}");
    assert!(is_stopped, "it waited for the disk");
    let took = reported - ended;
    println!("reported {} ms after the last packet, while a disk hangs", took.as_millis());
}
