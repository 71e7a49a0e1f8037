//! A recorder that takes over from another one: every packet is stored once, no time is missing.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lines::Lines;
use crate::machine::{BINARY, PAIR, Volume, enter, run};
use crate::supervised::{Supervised, process, signal};

const PATIENCE: Duration = Duration::from_mins(1);
/// Numbered datagrams leave `sender`, and arrive at `taker`, which is no host.
const ADDRESSED: &str = "ip addr add 10.9.0.1/24 dev sender; \
                         ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev sender";

/// Sends datagrams with their numbers, about 4000 a second, until dropped.
struct Numbers {
    ends: &'static AtomicBool,
    thread: Option<JoinHandle<u64>>,
}

impl Numbers {
    fn start(ends: &'static AtomicBool) -> Self {
        let socket = UdpSocket::bind("10.9.0.1:5000").unwrap();
        let body = move || {
            let (began, mut next) = (Instant::now(), 0_u64);
            while !ends.load(Ordering::Relaxed) {
                let due = began.elapsed().as_micros() / 250;
                while u128::from(next) < due {
                    socket.send_to(&next.to_be_bytes(), "10.9.0.2:5000").unwrap();
                    next += 1;
                }
                sleep(Duration::from_micros(250));
            }
            next
        };
        Self { ends, thread: Some(thread::spawn(body)) }
    }

    /// How many were sent.
    fn end(mut self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A recorder of `taker`, and what it says.
struct Recorder {
    child: Child,
    lines: Lines,
}

impl Recorder {
    fn start(volume: &Volume, further: &[&str]) -> Self {
        Self::start_in(volume, further, &[])
    }

    fn start_in(volume: &Volume, further: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(BINARY);
        command.envs(variables.iter().copied());
        command.args(["record", &volume.path, "--interface", "taker", "--pool", "8M"]);
        command.args(["--source", "packet", "--index-dir", &volume.index]).args(further);
        // A block of a MiB is closed each 50 ms, however little is in it: 16 s.
        command.args(["--kernel-ring", "320M"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// One that takes over, and listens: it asks now.
    fn taking_over(volume: &Volume, variables: &[(&str, &str)]) -> Self {
        // Each socket, with its protocol and interface, and whether it is bound: `packet(7)`.
        let is_bound = |line: &str| line.split_whitespace().nth(5) == Some("1");
        let bound = || {
            let sockets = fs::read_to_string("/proc/net/packet").unwrap();
            sockets.lines().filter(|line| is_bound(line)).count()
        };
        let before = bound();
        let next = Self::start_in(volume, &["--take-over"], variables);
        let until = Instant::now() + PATIENCE;
        while bound() == before {
            assert!(Instant::now() < until, "it opens no socket");
            sleep(Duration::from_millis(1));
        }
        next
    }

    /// Waits until it has ended, or for so long; whether it has.
    fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    /// Lines about how far it is come all the time.
    #[track_caller]
    fn hear(&mut self, words: &str) -> String {
        let heard = self.lines.heard(words, PATIENCE);
        heard.unwrap_or_else(|| panic!("no {words:?} in {:?}", self.lines.said))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The numbers that the volume has, in the order of their packets; the answer is complete.
fn numbers(volume: &Volume, further: &[&str]) -> Vec<u64> {
    let file = volume.file("numbers.pcap");
    let words = ["extract", &volume.path, "udp and port 5000", "--format", "pcap", "-w", &file];
    let index = ["--index-dir", &*volume.index, "--force"];
    let ran = run(&[&words[..], &index, further].concat()).done();
    assert!(ran.err.contains("complete") && !ran.err.contains("incomplete"), "{ran:?}");
    let bytes = fs::read(&file).unwrap();
    let (mut found, mut rest) = (Vec::new(), &bytes[24..]);
    while rest.len() >= 16 {
        let len = usize::try_from(u32::from_le_bytes(rest[8..12].try_into().unwrap())).unwrap();
        let (packet, behind) = rest[16..].split_at(len);
        found.push(u64::from_be_bytes(packet[42..50].try_into().unwrap()));
        rest = behind;
    }
    found
}

/// All of them once, whatever order those of one moment have.
#[track_caller]
fn are_all_there_once(mut found: Vec<u64>, sent: u64) {
    found.sort_unstable();
    let wrong = found.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    assert_eq!(wrong, None, "{} of {sent}", found.len());
    assert_eq!((found.first(), found.last()), (Some(&0), Some(&(sent - 1))));
}

/// Ends the load and then the recorder, whose volume has every packet of it.
#[track_caller]
fn ends_with_all(sending: Numbers, mut recorder: Recorder, volume: &Volume) {
    let sent = sending.end();
    sleep(Duration::from_millis(300));
    signal("-INT", recorder.child.id());
    assert_eq!(recorder.child.wait().unwrap().code(), Some(0), "{:?}", recorder.lines.said);
    are_all_there_once(numbers(volume, &[]), sent);
}

#[test]
fn recorders_take_over_from_each_other_without_a_packet_lost_or_twice() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let test = "handover::recorders_take_over_from_each_other_without_a_packet_lost_or_twice";
    if !enter(&format!("{PAIR}; {ADDRESSED}"), test) {
        return;
    }
    let volume = Volume::empty();
    let mut recorder = Recorder::start(&volume, &[]);
    recorder.hear("recording taker into ");
    let sending = Numbers::start(&ENDS);
    for _ in 0..4 {
        sleep(Duration::from_millis(700));
        let mut next = Recorder::start(&volume, &["--take-over"]);
        let said = next.hear("taken over from the recorder before, without a gap");
        println!("{}", said.trim());
        let ended = recorder.child.wait().unwrap();
        assert_eq!(ended.code(), Some(0), "{:?}", recorder.lines.said);
        recorder = next;
    }
    sleep(Duration::from_millis(700));
    ends_with_all(sending, recorder, &volume);
    let inspected = run(&["inspect", &volume.path, "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["recordings"].as_array().unwrap().len(), 5, "{inspected}");
}

/// What does not take over changes nothing for the one that runs.
#[test]
fn a_recorder_that_cannot_take_over_leaves_the_other_one_as_it_is() {
    let test = "handover::a_recorder_that_cannot_take_over_leaves_the_other_one_as_it_is";
    if !enter(PAIR, test) {
        return;
    }
    let volume = Volume::empty();
    let alone = Recorder::start(&volume, &["--take-over"]);
    let mut recorder = alone;
    recorder.hear("recording taker into ");
    let refused = ["record", &volume.path, "--interface", "absent", "--take-over"];
    let refused = run(&refused);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    sleep(Duration::from_millis(800));
    assert!(recorder.child.try_wait().unwrap().is_none(), "{:?}", recorder.lines.said);
    signal("-INT", recorder.child.id());
    assert_eq!(recorder.child.wait().unwrap().code(), Some(0));
}

/// Other keys, without a stop.
#[test]
fn a_reload_hands_a_recorder_its_new_keys_without_a_packet_lost() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let name = "handover::a_reload_hands_a_recorder_its_new_keys_without_a_packet_lost";
    if !enter(&format!("{PAIR}; {ADDRESSED}"), name) {
        return;
    }
    let volume = Volume::empty();
    let text = format!(
        "[recorder.office]\nvolume = '{}'\nindex_dir = '{}'\ninterface = 'taker'\n\
         source = 'packet'\npool = '4M'\n",
        volume.path, volume.index
    );
    let mut it = Supervised::with_input(volume, &text, Stdio::null());
    let first = process(&it.hear("recorder.office: process"));
    it.hear("recording taker into ");
    let sending = Numbers::start(&ENDS);
    sleep(Duration::from_millis(500));
    it.reload(&text.replace("4M", "8M"));
    it.hear("recorder.office: pool changed");
    let said = it.hear(" takes over");
    it.hear("taken over from the recorder before, without a gap");
    let second: u32 = said.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert_ne!(first, second, "{said}");
    let words = fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
    assert!(words.contains("--pool=8M"), "{words}");
    // A key that the recorder refuses once it looks at the machine.
    sleep(Duration::from_millis(500));
    it.reload(&text.replace("'taker'", "['taker', 'absent']"));
    it.hear("did not take over, and the one that runs goes on as it is");
    assert!(fs::exists(format!("/proc/{second}")).unwrap());
    sleep(Duration::from_millis(300));
    let sent = sending.end();
    sleep(Duration::from_millis(300));
    assert_eq!(it.end(), Some(0));
    are_all_there_once(numbers(&it.volume, &[]), sent);
}

const GOES_ON: &str = "not handed over, because the other recorder ended before it had stored \
                       anything: this recorder goes on, without a gap";

/// A recorder that went on says so until it ends.
fn told_by_status(volume: &Volume, gone_on: u64) {
    let json = run(&["status", &volume.path, "--json"]).done().out;
    let state: Value = serde_json::from_str(&json).unwrap();
    let handed = &state["hand_over"];
    assert!(handed["times_taken_back"].as_u64().unwrap_or(0) >= gone_on, "{json}");
    if gone_on > 0 {
        assert_eq!(handed["taken_back"], "it ended before it had stored anything", "{json}");
        assert!(handed["process"].is_u64() && handed["from_ns"].is_i64(), "{json}");
        let text = run(&["status", &volume.path]).done().out;
        assert!(text.contains(": this one went on ("), "{text}");
    }
}

/// A recorder that takes over is stopped at one moment after the other. Where the one before has
/// not ended by then, the new one is killed: the one before goes on.
#[test]
fn a_recorder_that_dies_while_it_takes_over_costs_no_packet() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let test = "handover::a_recorder_that_dies_while_it_takes_over_costs_no_packet";
    if !enter(&format!("{PAIR}; {ADDRESSED}"), test) {
        return;
    }
    let volume = Volume::empty();
    let mut recorder = Recorder::start(&volume, &[]);
    recorder.hear("recording taker into ");
    let sending = Numbers::start(&ENDS);
    let (mut gone_on, mut of_this, mut taken) = (0, 0, 0);
    // The old one reads on for 450 ms before it lets go, and the new one opens the volume then.
    for after_ms in [0, 100, 400].into_iter().chain((440..640).step_by(40)).chain([800, 1000]) {
        sleep(Duration::from_millis(300));
        let mut next = Recorder::taking_over(&volume, &[]);
        sleep(Duration::from_millis(after_ms));
        signal("-STOP", next.child.id());
        if recorder.ends_within(Duration::from_millis(900)) {
            // It had stored something.
            signal("-CONT", next.child.id());
            next.hear("taken over from the recorder before, without a gap");
            recorder = next;
            taken += 1;
            of_this = 0;
            continue;
        }
        next.child.kill().unwrap();
        next.child.wait().unwrap();
        if after_ms >= 100 && recorder.lines.heard(GOES_ON, Duration::from_secs(5)).is_some() {
            gone_on += 1;
            of_this += 1;
        }
        assert!(recorder.child.try_wait().unwrap().is_none(), "{:?}", recorder.lines.said);
    }
    told_by_status(&volume, of_this);
    println!("{gone_on} times the old one went on, {taken} times the new one");
    assert!(gone_on >= 3, "{gone_on}");
    sleep(Duration::from_millis(700));
    ends_with_all(sending, recorder, &volume);
}

/// One that is stopped and never continued has the volume open: it ends by itself.
#[test]
fn a_recorder_that_is_stopped_while_it_takes_over_costs_no_packet() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let test = "handover::a_recorder_that_is_stopped_while_it_takes_over_costs_no_packet";
    if !enter(&format!("{PAIR}; {ADDRESSED}"), test) {
        return;
    }
    let volume = Volume::empty();
    let mut recorder = Recorder::start(&volume, &[]);
    recorder.hear("recording taker into ");
    let sending = Numbers::start(&ENDS);
    let (mut stopped, mut killed) = (0, 0);
    for after_ms in (500..800).step_by(15) {
        sleep(Duration::from_millis(500));
        let mut next = Recorder::taking_over(&volume, &[]);
        sleep(Duration::from_millis(after_ms));
        signal("-STOP", next.child.id());
        if recorder.ends_within(Duration::from_secs(1)) {
            signal("-CONT", next.child.id());
            next.hear("taken over from the recorder before, without a gap");
            recorder = next;
            continue;
        }
        recorder.hear(GOES_ON);
        stopped += 1;
        // One that had the volume has ended by itself; one that had not finds it in use.
        killed += u64::from(next.ends_within(Duration::from_secs(1)));
        signal("-CONT", next.child.id());
        assert!(next.ends_within(PATIENCE), "{:?}", next.lines.said);
        if killed == 1 || stopped == 3 {
            break;
        }
    }
    println!("stopped {stopped} times, of which {killed} ended by themselves");
    assert!(stopped > 0, "never stopped in time");
    sleep(Duration::from_millis(700));
    ends_with_all(sending, recorder, &volume);
}

/// Of a recorder whose clock is set between the agreement and the moment when it lets go.
#[test]
fn a_clock_that_is_set_while_it_hands_over_costs_no_packet() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let test = "handover::a_clock_that_is_set_while_it_hands_over_costs_no_packet";
    if !enter(&format!("{PAIR}; {ADDRESSED}"), test) {
        return;
    }
    let volume = Volume::empty();
    let Some(shim) = crate::wrong_clock::shim(&volume) else { return };
    let ahead = volume.file("ahead");
    let set = |seconds: i64| {
        use std::os::unix::fs::FileExt as _;
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&ahead);
        file.unwrap().write_all_at(&seconds.to_le_bytes(), 0).unwrap();
    };
    set(0);
    let clock = [("LD_PRELOAD", &*shim), ("CLOCK_AHEAD_FILE", &*ahead)];
    let mut recorder = Recorder::start_in(&volume, &[], &clock);
    recorder.hear("recording taker into ");
    let sending = Numbers::start(&ENDS);
    for seconds in [3600, -3600, 2, -2, -1] {
        sleep(Duration::from_millis(500));
        let mut next = Recorder::taking_over(&volume, &clock);
        sleep(Duration::from_millis(250));
        // The kernel's clock is not set: they must not agree on a time of the other clock.
        signal("-STOP", next.child.id());
        set(seconds);
        recorder.hear("not handed over, because the clock was set meanwhile");
        set(0);
        signal("-CONT", next.child.id());
        next.hear("taken over from the recorder before, without a gap");
        assert!(recorder.ends_within(PATIENCE), "{:?}", recorder.lines.said);
        recorder = next;
    }
    let count = sending.end();
    sleep(Duration::from_millis(300));
    signal("-INT", recorder.child.id());
    recorder.child.wait().unwrap();
    are_all_there_once(numbers(&volume, &[]), count);
}
