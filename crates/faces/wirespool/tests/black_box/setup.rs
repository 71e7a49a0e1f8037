//! `wirespool setup`: from nothing to a found session, what it refuses, and what it leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::lines::Lines;
use crate::machine::{
    BINARY, CAPTURES, Loop, PAIR, Ran, command, enter, is_root, make_ext4, open_to_all, run,
    run_unprivileged, text,
};

const PATIENCE: Duration = Duration::from_mins(1);

/// A folder with a place for the volume and one for the configuration.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }

    /// The words of a setup with a volume in a file of 64 MiB, which is not measured.
    fn words(&self, more: &[&str]) -> Vec<String> {
        let (data, config) = (self.path("data"), self.path("etc/wirespool.toml"));
        let fixed = ["setup", "--folder", &data, "--size", "64M", "--qualify", "none"];
        let words = fixed.into_iter().chain(["--config", &config]).chain(more.iter().copied());
        words.map(str::to_owned).collect()
    }

    fn run(&self, more: &[&str]) -> Ran {
        let words = self.words(more);
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Everything below a folder: names, sizes and times of change.
fn listing(folder: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let about = entry.metadata().unwrap();
            found.insert(entry.path(), (about.len(), about.modified().unwrap()));
            if about.is_dir() {
                next.push(entry.path());
            }
        }
    }
    found
}

/// A setup whose lines are read as they come.
struct Walking {
    child: Child,
    lines: Lines,
}

impl Walking {
    fn start(words: &[String]) -> Self {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = command(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    #[track_caller]
    fn hear(&mut self, words: &str) -> String {
        self.lines.hear(words, PATIENCE)
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    fn end(self) -> (Ran, String) {
        let said = self.lines.into_all().join("\n");
        (Ran::new(&self.child.wait_with_output().unwrap()), said)
    }
}

/// The last line on standard error; what takes long shows its progress before.
#[track_caller]
fn ends(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("wirespool: ") && last.contains(words), "{words:?} in {ran:?}");
}

/// Ends with the test.
struct Beside(Child);

impl Beside {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status());
        drop(self.0.wait());
    }
}

#[test]
fn from_nothing_to_a_found_session_and_again_without_a_change() {
    if !enter(PAIR, "setup::from_nothing_to_a_found_session_and_again_without_a_change") {
        return;
    }
    let site = Site::new();
    let capture = format!("{CAPTURES}/dns.pcap");
    let loops = ["--interface", "sender", "--pps", "300", "--loops", "0"];
    let _traffic = Beside::start(&[&["replay", &capture][..], &loops].concat());
    let words = site.words(&["--yes", "--wait", "30s", "--listen", "127.0.0.1:18427"]);
    let mut walking = Walking::start(&words);
    walking.hear("a mirror port: much received, little sent, no address");
    walking.hear("Recorded will be taker.");
    walking.hear("Step 5 of 8: volume");
    walking.hear("[recorder.main]");
    // There is no systemd, or the file is another one than its unit reads.
    walking.hear("This command starts the service:");
    let line = walking.hear("wirespool serve --config ");
    let config = line.trim().rsplit(' ').next().unwrap();
    let _service = Beside::start(&["serve", "--config", config]);
    let (ran, said) = walking.end();
    assert_eq!(ran.code, Some(0), "{ran:?} {said}");
    assert!(said.contains("The first session is found:"), "{said}");
    let volume = site.path("data/volume");
    for verb in ["status", "find", "extract"] {
        assert!(said.contains(&format!("  wirespool {verb} {volume}")), "{verb}: {said}");
    }
    let tokens = fs::read_to_string(site.path("etc/tokens")).unwrap();
    assert!(tokens.starts_with("setup:sessions,payload,extract:"), "{tokens}");

    let before = listing(&site.folder.path().join("etc"));
    let again = run(&words.iter().map(String::as_str).collect::<Vec<_>>()).done();
    for words in [
        "has these members: it is taken as it is.",
        "is there, as it would be written.",
        "The token setup is there",
        "A recorder runs on this volume.",
        "The first session is found:",
    ] {
        assert!(again.out.contains(words), "{words}: {again:?}");
    }
    assert!(before == listing(&site.folder.path().join("etc")), "nothing was written again");
}

#[test]
fn a_dry_run_writes_nothing_and_needs_no_rights() {
    let site = Site::new();
    fs::create_dir(site.path("data")).unwrap();
    let words = ["--dry-run", "--interface", "lo"];
    let before = listing(site.folder.path());
    let ran = site.run(&words).done();
    assert!(before == listing(site.folder.path()), "{ran:?}");
    for words in ["would run: wirespool create ", "would be written:", "[recorder.main]"] {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
    let binary = tempfile::tempdir().unwrap();
    open_to_all(site.folder.path());
    let words = site.words(&words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let before = listing(site.folder.path());
    if let Some(ran) = run_unprivileged(binary.path(), &words) {
        let ran = ran.done();
        assert!(ran.out.contains("CAP_NET_RAW"), "{ran:?}");
        assert!(before == listing(site.folder.path()), "{ran:?}");
    }
}

#[test]
fn a_disk_that_holds_something_is_refused_with_what_it_holds() {
    let Some(disk) = Loop::new(96 << 20, &[], make_ext4) else { return };
    let site = Site::new();
    let before = fs::read(&disk.path).unwrap();
    let config = site.path("etc/wirespool.toml");
    let ran = run(&[
        "setup",
        "--interface",
        "lo",
        "--member",
        &disk.path,
        "--qualify",
        "quick",
        "--yes",
        "--force",
        "--config",
        &config,
    ]);
    ran.is_refused(&format!("{} may not be used: holds ext2/ext3/ext4", disk.path));
    // The list of disks says it before anybody names one.
    let row = ran.out.lines().find(|line| line.starts_with(&format!("{} ", disk.path))).unwrap();
    assert!(row.contains("no: holds ext2/ext3/ext4"), "{row}");
    assert!(before == fs::read(&disk.path).unwrap(), "not a byte has changed");
    assert!(!Path::new(&config).exists(), "nothing was made");
}

#[test]
fn without_a_terminal_a_question_without_an_answer_names_its_flag() {
    if !is_root() {
        println!("not run: an ordinary user is not asked for interfaces");
        return;
    }
    let site = Site::new();
    // Loopback is never proposed, and of others none may be seen: the question comes first.
    let volume = site.words(&["--interface", "lo"]);
    let named: Vec<&str> = volume.iter().map(String::as_str).collect();
    let without = |flag: &str| {
        let at = named.iter().position(|word| *word == flag).unwrap();
        let mut words = named.clone();
        words.drain(at..at + 2);
        run(&words)
    };
    without("--interface").fails_with(2, "--interface");
    without("--size").fails_with(2, "give --size");
    without("--qualify").fails_with(2, "give --qualify quick|full|none");
    assert!(!Path::new(&site.path("data")).exists(), "nothing was made");
    // Only now the volume is made; what is asked last is asked last.
    ends(&run(&named), 2, "give --start yes|no");
    let ran = site.run(&["--interface", "lo", "--start", "no"]).done();
    assert!(ran.out.contains("it is taken as it is"), "{ran:?}");
    site.run(&["--interface", "absent0"]).is_refused("--interface absent0: there is none");
    site.run(&["--listen", "0.0.0.0:8420"]).fails_with(2, "needs TLS");
}

#[test]
fn interrupted_it_says_what_is_left_and_goes_on_there() {
    if !is_root() {
        println!("not run: needs root to record");
        return;
    }
    let site = Site::new();
    let more = ["--interface", "lo", "--start", "yes"];
    let mut walking = Walking::start(&site.words(&more));
    walking.hear("Step 8 of 8: first session");
    walking.signal("-INT");
    let (ran, said) = walking.end();
    ends(&ran, 3, "interrupted: the same command goes on there");
    assert!(said.contains("  done  volume: ") && said.contains("  left  first session"), "{said}");
    let volume = fs::metadata(site.path("data/volume")).unwrap().modified().unwrap();
    let ran = site.run(&["--interface", "lo", "--start", "no"]).done();
    assert!(ran.out.contains("it is taken as it is"), "{ran:?}");
    assert_eq!(fs::metadata(site.path("data/volume")).unwrap().modified().unwrap(), volume);
}

#[test]
fn a_configuration_that_is_there_is_replaced_by_force_alone() {
    if !is_root() {
        println!("not run: needs root to record");
        return;
    }
    let site = Site::new();
    let config = site.path("etc/wirespool.toml");
    fs::create_dir(site.path("etc")).unwrap();
    fs::write(&config, "[api]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let more = ["--interface", "lo", "--start", "no"];
    let ran = site.run(&more);
    ends(&ran, 3, "is there and differs; --force replaces it");
    assert!(ran.out.contains("  - listen = \"127.0.0.1:1\""), "{ran:?}");
    assert!(ran.out.contains("  + listen = \"127.0.0.1:8420\""), "{ran:?}");
    assert!(fs::read_to_string(&config).unwrap().contains("127.0.0.1:1\""), "as it was");
    let forced = [&more[..], &["--force"]].concat();
    site.run(&forced).done();
    assert!(fs::read_to_string(&config).unwrap().contains("[recorder.main]"));
}
