//! Traffic that once ended or held up a recorder, from a file and over a link: every packet is
//! stored, the indexer lives, and the sessions are found.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::golden::pcap;
use crate::machine::{BINARY, PAIR, Volume, enter, run};

/// Slow enough for a machine that is busy with other tests.
const PACKETS_PER_S: &str = "10000";
const PATIENCE: Duration = Duration::from_mins(1);

/// An attack, and how its packets are found again.
struct Attack {
    frames: Vec<Vec<u8>>,
    query: &'static str,
    sessions: usize,
}

impl Attack {
    fn packets(&self) -> u64 {
        u64::try_from(self.frames.len()).unwrap()
    }

    fn write(&self, path: &str) {
        let times = (0..).map(|number: u64| 1_700_000_000_000_000_000 + number * 100_000);
        let file = pcap(times.zip(self.frames.iter().cloned()));
        std::fs::write(path, file).unwrap();
    }
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    let ends = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    [&ends[..], &kind.to_be_bytes(), packet].concat()
}

fn ipv4(ends: [[u8; 4]; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let head = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    ethernet(0x0800, &[&head[..], &ends.concat(), payload].concat())
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + payload.len()).unwrap();
    let words = [ports[0], ports[1], len, 0].map(u16::to_be_bytes);
    [&words.concat()[..], payload].concat()
}

fn tcp(ports: [u16; 2], [sequence, acknowledged]: [u32; 2], flags: u8, data: &[u8]) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    let numbers = [sequence, acknowledged].map(u32::to_be_bytes).concat();
    [&ports[..], &numbers, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0], data].concat()
}

/// More greetings behind the end of a dialog than a counter of 16 bits holds, 5 bytes each.
fn dialog_flood() -> Attack {
    const GREETINGS: u32 = 65_600;
    let (client, server) = ([10, 9, 0, 1], [10, 9, 0, 2]);
    let from_client = |numbers, flags, data: &[u8]| {
        ipv4([client, server], 6, &tcp([40_000, 21], numbers, flags, data))
    };
    let from_server = |numbers, flags, data: &[u8]| {
        ipv4([server, client], 6, &tcp([21, 40_000], numbers, flags, data))
    };
    let greeting = |number: u32| from_server([501 + 5 * number, 103], 0x18, b"220 \n");
    let opening = [
        from_client([100, 0], 2, b""),
        from_server([500, 101], 0x12, b""),
        from_client([101, 501], 0x10, b""),
        from_server([501, 101], 0x18, b"220 \n"),
        // No command that anybody knows: the dialog is over.
        from_client([101, 506], 0x18, b"X\n"),
    ];
    let flood = (1..GREETINGS).map(greeting);
    let frames = opening.into_iter().chain(flood).collect();
    Attack { frames, query: "host 10.9.0.1 and port 21", sessions: 1 }
}

/// The hash that sessions had multiplied by the upper half of the larger address and this constant,
/// one over the other: by zero for addresses in this /64, whatever else the packet has.
const ZEROED: u64 = 0xc0ac_29b7_c97c_50dd;

/// As many sessions that all had one hash.
fn hash_flood() -> Attack {
    let frame = |number: u32| {
        let smaller = 0x2001_0db8_u128 << 96 | u128::from(number);
        let larger = u128::from(ZEROED) << 64 | u128::from(number % 251);
        let datagram = udp([40_000, 9], b"x");
        let [high, low] = u16::try_from(datagram.len()).unwrap().to_be_bytes();
        let head = [0x60, 0, 0, 0, high, low, 17, 64];
        let ends = [smaller, larger].map(u128::to_be_bytes).concat();
        ethernet(0x86dd, &[&head[..], &ends, &datagram].concat())
    };
    let frames = (0..40_000).map(frame).collect();
    Attack { frames, query: "net c0ac:29b7:c97c:50dd::/64", sessions: 40_000 }
}

/// Messages of 1451 bytes with as many names as there is space for, each of which points into the
/// longest one that there can be.
fn name_flood() -> Attack {
    const MESSAGE_BYTES: usize = 1451;
    let first = [&b"\x01a".repeat(124)[..], b"\0\0\x01\0\x01"].concat();
    let other = b"\x01b\xc0\x0e\0\x01\0\x01";
    let count = (MESSAGE_BYTES - 12 - first.len()) / other.len();
    let [high, low] = u16::try_from(1 + count).unwrap().to_be_bytes();
    let head = [0x12, 0x34, 1, 0, high, low, 0, 0, 0, 0, 0, 0];
    let mut message = [&head[..], &first, &other.repeat(count)].concat();
    message.resize(MESSAGE_BYTES, 0);
    let frame = |number: u16| {
        let datagram = udp([40_000 + number % 100, 53], &message);
        ipv4([[10, 9, 1, 1], [10, 9, 1, 2]], 17, &datagram)
    };
    let frames = (0..10_000).map(frame).collect();
    Attack { frames, query: "host 10.9.1.1 and port 53", sessions: 100 }
}

/// What was offered is stored, the indexer never ended, and every packet has its row.
fn is_whole(attack: &Attack, volume: &Volume, report: &Value) {
    let count = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    for name in ["kernel_drops", "writer_drops", "indexer_deaths", "left_out", "unindexed"] {
        assert_eq!(count(name), 0, "{name}: {report}");
    }
    assert_eq!(count("stored"), count("offered"), "{report}");
    let find = ["find", &volume.path, attack.query, "--json", "--index-dir", &volume.index];
    let found = run(&find).done();
    let packets = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["orig_packets"].as_u64().unwrap() + row["resp_packets"].as_u64().unwrap_or(0)
    };
    let sum: u64 = found.out.lines().map(packets).sum();
    let sessions = found.out.lines().count();
    assert_eq!((sessions, sum), (attack.sessions, attack.packets()), "{}", found.err);
}

fn from_a_file(attack: &Attack) {
    let volume = Volume::empty();
    let file = volume.file("attack.pcap");
    attack.write(&file);
    let ran = volume.record(&["--read", &file, "--json"]).done();
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["offered"].as_u64(), Some(attack.packets()), "{report}");
    is_whole(attack, &volume, &report);
}

fn offered(volume: &Volume) -> Option<u64> {
    let said = run(&["status", &volume.path, "--json"]).out;
    serde_json::from_str::<Value>(&said).ok()?["offered"].as_u64()
}

fn wait_until(what: &str, is_so: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(50));
    }
}

/// Sent over a pair of links, in a namespace of its own.
fn over_a_link(attack: &Attack, test: &str) {
    if !enter(PAIR, test) {
        return;
    }
    let volume = Volume::empty();
    let file = volume.file("attack.pcap");
    attack.write(&file);
    let mut record = Command::new(BINARY);
    record.args(["record", &volume.path, "--interface", "taker", "--pool", "32M", "--json"]);
    record.args(["--flush-interval", "50ms", "--index-dir", &volume.index]);
    record.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut recorder = record.spawn().unwrap();
    wait_until("it records", &|| offered(&volume).is_some());
    let sent = ["replay", &file, "--interface", "sender", "--pps", PACKETS_PER_S, "--json"];
    let sent = run(&sent);
    let sent: Value = serde_json::from_str(&sent.out).unwrap_or_else(|_| panic!("{sent:?}"));
    assert_eq!(sent["packets"].as_u64(), Some(attack.packets()), "{sent}");
    wait_until("all of them arrive", &|| offered(&volume) >= Some(attack.packets()));
    assert!(recorder.try_wait().unwrap().is_none(), "it still records");
    let asked = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
    assert!(asked.unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The system itself may send a packet or two.
    assert!(report["offered"].as_u64() >= Some(attack.packets()), "{report}");
    is_whole(attack, &volume, &report);
}

#[test]
fn greetings_behind_the_end_of_a_dialog_are_recorded_from_a_file() {
    from_a_file(&dialog_flood());
}

#[test]
fn greetings_behind_the_end_of_a_dialog_are_recorded_over_a_link() {
    let name = "attacked::greetings_behind_the_end_of_a_dialog_are_recorded_over_a_link";
    over_a_link(&dialog_flood(), name);
}

#[test]
fn addresses_that_had_one_hash_are_recorded_from_a_file() {
    from_a_file(&hash_flood());
}

#[test]
fn addresses_that_had_one_hash_are_recorded_over_a_link() {
    over_a_link(&hash_flood(), "attacked::addresses_that_had_one_hash_are_recorded_over_a_link");
}

#[test]
fn messages_full_of_compressed_names_are_recorded_from_a_file() {
    from_a_file(&name_flood());
}

#[test]
fn messages_full_of_compressed_names_are_recorded_over_a_link() {
    let name = "attacked::messages_full_of_compressed_names_are_recorded_over_a_link";
    over_a_link(&name_flood(), name);
}
