//! Events of a recording are said when they happen: on standard error, in `status`, and in the
//! heading of the report.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::lines::Lines;
use crate::machine::{CAPTURES, PAIR, Ran, Volume, command, enter, run};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A recorder whose lines are read as they come.
struct Recorder {
    child: Child,
    lines: Lines,
}

impl Recorder {
    fn start(volume: &Volume, more: &[&str]) -> Self {
        let record = ["record", &volume.path, "--index-dir", &volume.index, "--pool", "8M"];
        let mut command = command(&[&record[..], more].concat());
        // Standard input stays open, and nothing comes from it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// Waits for a line that contains `words`.
    #[track_caller]
    fn says(&mut self, words: &str) {
        self.lines.hear(words, PATIENCE);
    }

    fn stop(self) -> (Ran, Vec<String>) {
        let interrupt = ["-INT", &self.child.id().to_string()].map(str::to_owned);
        // One that has ended by itself needs none.
        drop(Command::new("kill").args(interrupt).stderr(Stdio::null()).status());
        let said = self.lines.into_all();
        let ended = self.child.wait_with_output().unwrap();
        (Ran::new(&ended), said)
    }
}

fn ip(arguments: &str) {
    assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
}

fn heading(ran: &Ran) -> &str {
    ran.out.lines().next().unwrap_or_default()
}

#[test]
fn an_interface_that_goes_down_and_comes_back_is_said_at_once() {
    if !enter(PAIR, "said::an_interface_that_goes_down_and_comes_back_is_said_at_once") {
        return;
    }
    let volume = Volume::empty();
    let mut recorder = Recorder::start(&volume, &["--interface", "taker"]);
    recorder.says(&format!("recording taker into {}", volume.path));
    ip("link set taker down");
    recorder.says("interface taker is down: until it is up again nothing is stored of it");
    let status = run(&["status", &volume.path]).done().out;
    assert!(status.contains("interface taker is down"), "{status}");
    ip("link set taker up");
    recorder.says("interface taker is up again; what passed meanwhile is not stored");
    // A link that flaps has one line a minute of each kind; the others are counted.
    for _ in 0..3 {
        ip("link set taker down");
        ip("link set taker up");
    }
    let counted = |json: &str| {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        json["interfaces"][0]["times_down"].as_u64().unwrap()
    };
    let begun = std::time::Instant::now();
    let json = loop {
        let json = run(&["status", &volume.path, "--json"]).done().out;
        if counted(&json) >= 2 {
            break json;
        }
        assert!(begun.elapsed() < PATIENCE, "{json}");
    };
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let kinds: Vec<_> =
        json["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("interface_down"), Some("interface_up")], "{json}");
    let (ran, said) = recorder.stop();
    let down: Vec<_> = said.iter().filter(|line| line.contains("taker is down")).collect();
    assert_eq!(down.len(), 2, "the first at once, the newest of the others in the end: {said:?}");
    assert!(heading(&ran).contains("not known: what passed taker, which was down "), "{ran:?}");
    assert!(!ran.out.contains("nothing was lost"), "{ran:?}");
    assert_eq!(ran.out.matches("note: interface taker is down").count(), 2, "{ran:?}");
}

#[test]
fn an_interface_that_vanishes_is_said_and_heads_the_report() {
    if !enter(PAIR, "said::an_interface_that_vanishes_is_said_and_heads_the_report") {
        return;
    }
    let volume = Volume::empty();
    let both = ["--interface", "taker", "--interface", "lo"];
    let mut recorder = Recorder::start(&volume, &both);
    recorder.says("recording taker, lo into ");
    ip("link del taker");
    recorder.says("interface taker was removed; recording goes on with the others");
    let status = run(&["status", &volume.path]).done().out;
    assert!(status.contains("interface taker was removed"), "{status}");
    let (ran, _) = recorder.stop();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(heading(&ran).contains("missing: the rest of 1 input that broke off"), "{ran:?}");
    assert!(heading(&ran).contains("not known: what passed taker"), "{ran:?}");
}

#[test]
fn drops_are_said_when_they_begin() {
    if !enter(PAIR, "said::drops_are_said_when_they_begin") {
        return;
    }
    let volume = Volume::empty();
    let small = ["--interface", "taker", "--kernel-ring", "2M"];
    let mut recorder = Recorder::start(&volume, &small);
    recorder.says("recording taker into ");
    let number = recorder.child.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &number]).status().unwrap();
    // It takes nothing for a while, as on a machine that swaps.
    assert!(signal("-STOP").success());
    let sender = capture::FrameSender::open("sender").unwrap();
    for number in 0..20_000 {
        // What the link does not take is not lost by the recorder.
        drop(sender.send(&crate::golden::packet(0, number).1));
    }
    assert!(signal("-CONT").success());
    recorder.says("taker loses packets (");
    let status = run(&["status", &volume.path, "--json"]);
    assert!(status.out.contains("drops_begin"), "{status:?}");
    let (ran, _) = recorder.stop();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(heading(&ran).starts_with("lost: "), "{ran:?}");
}

#[test]
fn an_adapter_without_times_is_said_when_the_recording_begins() {
    if !enter(PAIR, "said::an_adapter_without_times_is_said_when_the_recording_begins") {
        return;
    }
    let volume = Volume::empty();
    let adapter = ["--interface", "taker", "--timestamps", "adapter"];
    let mut recorder = Recorder::start(&volume, &adapter);
    recorder.says("interface taker: the adapter gives no times");
    let (ran, _) = recorder.stop();
    assert!(ran.out.contains("note: interface taker: the adapter gives no times"), "{ran:?}");
}

#[test]
fn what_a_killed_recorder_lost_heads_the_report_of_the_next() {
    let volume = Volume::empty();
    let read = ["--read", CAPTURES];
    volume.record(&read).done();
    let mut recorder = Recorder::start(&volume, &["--read", "-"]);
    recorder.says("recording standard input into ");
    recorder.child.kill().unwrap();
    recorder.stop();
    let next = volume.record(&read);
    assert!(heading(&next).contains("not known: what passed after "), "{next:?}");
    assert!(!next.out.contains("nothing was lost"), "{next:?}");
}

#[test]
fn any_is_each_interface_that_is_up_by_its_own_name() {
    if !enter(PAIR, "said::any_is_each_interface_that_is_up_by_its_own_name") {
        return;
    }
    ip("link add idle type veth peer name other");
    let volume = Volume::empty();
    let mut recorder =
        Recorder::start(&volume, &["--interface", "taker", "--interface", "any", "--json"]);
    recorder.says("interfaces that come up later are not recorded");
    recorder.says("recording taker, ");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..40 {
        // Nobody listens there, which the next call may hear of.
        drop(socket.send_to(b"to nobody", "127.0.0.1:9"));
        std::thread::sleep(Duration::from_millis(25));
    }
    let (ran, said) = recorder.stop();
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let interfaces = report["interfaces"].as_array().unwrap();
    let mut names: Vec<&str> =
        interfaces.iter().map(|interface| interface["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    // Not those that are down, and each once.
    assert_eq!(names, ["lo", "sender", "taker"], "{said:?}");
    let lo = interfaces.iter().find(|interface| interface["name"] == "lo").unwrap();
    assert!(lo["stored"].as_u64().unwrap() >= 5, "{lo}");
    let found = run(&["find", &volume.path, "interface_name = lo and port 9"]).done().out;
    assert!(found.contains("127.0.0.1"), "{found}");
}
