//! `fleet`: five services asked as one, with certificates of an authority that `enrol` made; one
//! that is killed, one that is stopped, one whose recorder runs; services that lie.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdin};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::Served;
use crate::golden::capture;
use crate::machine::{CAPTURES, Ran, Volume, command, run, write_key};
use crate::running::{recorder, taken};

const NAMES: [&str; 5] = ["north", "east", "south", "west", "live"];
const FILES: [&str; 4] = ["dns.pcap", "http.pcap", "tls.pcap", "dns.pcap"];

struct Fleet {
    folder: TempDir,
    served: Vec<Served>,
    recorder: (Child, ChildStdin),
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let ca = file("ca");
        run(&["fleet", "enrol", "init", &ca]).done();
        run(&["fleet", "enrol", "client", &ca, "alice"]).done();
        let (mut served, mut recorder) = (Vec::new(), None);
        for (at, name) in NAMES.iter().enumerate() {
            let volume = Volume::empty();
            match FILES.get(at) {
                Some(file) => {
                    drop(volume.record(&["--read", &format!("{CAPTURES}/{file}")]).done());
                }
                None => recorder = Some(recording(&volume)),
            }
            run(&["fleet", "enrol", "server", &ca, name, "--address", "127.0.0.1"]).done();
            write_key(&volume.file("tokens"), "*:sessions,extract:certificate\n");
            let [certificate, key] = ["pem", "key"].map(|end| format!("{ca}/server-{name}.{end}"));
            let [root, list] = ["ca.pem", "crl.pem"].map(|name| format!("{ca}/{name}"));
            let tls = ["--tls-cert", &certificate, "--tls-key", &key];
            let clients = ["--client-ca", &root, "--client-crl", &list];
            served.push(Served::with(volume, &[tls, clients].concat()));
        }
        let fleet = Self { folder, served, recorder: recorder.unwrap() };
        let table = |(name, served): (&&str, &Served)| {
            let url = format!("url = \"https://{}\"", served.address);
            let own = "certificate = \"ca/client-alice.pem\"\nkey = \"ca/client-alice.key\"\n";
            format!("[sensor.{name}]\n{url}\nca = \"ca/ca.pem\"\n{own}")
        };
        let text: String = NAMES.iter().zip(&fleet.served).map(table).collect();
        fs::write(fleet.file("fleet.toml"), text).unwrap();
        fleet
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn ask(&self, words: &[&str]) -> Ran {
        run(&[&["fleet"], words, &["--fleet", &self.file("fleet.toml")]].concat())
    }

    /// Sessions of the volumes of these sensors, as `find` on each of them has them: by their
    /// starts, and of the same start by the order of the file.
    fn sessions(&self, sensors: &[usize], query: &str) -> Vec<Value> {
        let mut all: Vec<(i64, usize, Value)> = Vec::new();
        for &at in sensors {
            let volume = &self.served[at].volume;
            let words = ["find", &volume.path, "--index-dir", &volume.index, "--json", query];
            for line in run(&words).out.lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                all.push((row["start_ns"].as_i64().unwrap(), at, row));
            }
        }
        all.sort_by_key(|(start, at, _)| (*start, *at));
        let named = |(_, at, mut row): (i64, usize, Value)| {
            row["sensor"] = NAMES[at].into();
            row
        };
        all.into_iter().map(named).collect()
    }

    /// Packets of an extract of one sensor's volume, by time.
    fn packets(&self, at: usize, query: &str) -> Vec<Packet> {
        let (volume, path) = (&self.served[at].volume, self.file(&format!("{at}.pcapng")));
        let words = ["extract", &volume.path, "--index-dir", &volume.index, query, "-w", &path];
        let ran = run(&[&words[..], &["--force"]].concat());
        assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
        let packets = read_pcapng(&path).into_iter();
        packets.map(|packet| Packet { interface: named(at, &packet.interface), ..packet }).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.recorder.0.kill());
        drop(self.recorder.0.wait());
    }
}

/// A recorder that has taken twenty packets, and runs.
fn recording(volume: &Volume) -> (Child, ChildStdin) {
    let (child, mut input) = recorder(volume);
    input.write_all(&capture(1_700_000_000_000_000_000, 0..20)).unwrap();
    taken(volume, 20);
    (child, input)
}

fn named(at: usize, interface: &str) -> String {
    let own = if interface.is_empty() { "if0" } else { interface };
    format!("{}:{own}", NAMES[at])
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Packet {
    time: u64,
    interface: String,
    data: Vec<u8>,
}

/// Packets of a file in the order of the file, with the names of their interfaces.
fn read_pcapng(path: &str) -> Vec<Packet> {
    let bytes = fs::read(path).unwrap();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let size_at = |at: usize| usize::try_from(u32_at(at)).unwrap();
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let (mut at, mut interfaces, mut packets) = (0, Vec::new(), Vec::new());
    while at < bytes.len() {
        let len = size_at(at + 4);
        match u32_at(at) {
            1 => {
                let (mut option, mut name) = (at + 16, String::new());
                while option + 4 < at + len - 4 {
                    let (code, size) = (u16_at(option), usize::from(u16_at(option + 2)));
                    if code == 2 {
                        name = String::from_utf8(bytes[option + 4..option + 4 + size].to_vec())
                            .unwrap();
                    }
                    option += 4 + size.next_multiple_of(4);
                }
                interfaces.push(name);
            }
            6 => {
                let interface = interfaces[size_at(at + 8)].clone();
                let time = u64::from(u32_at(at + 12)) << 32 | u64::from(u32_at(at + 16));
                let data = bytes[at + 28..at + 28 + size_at(at + 20)].to_vec();
                packets.push(Packet { time, interface, data });
            }
            _ => {}
        }
        at += len;
    }
    packets
}

fn rows(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows without their marks, and how many have one.
fn unmarked(rows: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let (mut plain, mut marks) = (Vec::new(), Vec::new());
    for mut row in rows {
        marks.extend(row.as_object_mut().unwrap().remove("same_as"));
        plain.push(row);
    }
    (plain, marks)
}

#[test]
fn five_sensors_are_asked_as_one_and_who_is_missing_is_named() {
    let fleet = Fleet::new();
    let all = [0, 1, 2, 3, 4];
    for query in ["", "port 53", "tcp and bytes > 1000", "host 1.2.3.4"] {
        let ran = fleet.ask(&["find", query, "--json"]);
        // The recorder that runs has not said yet what it took.
        assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
        let (plain, marks) = unmarked(rows(&ran));
        assert_eq!(plain, fleet.sessions(&all, query), "{query}");
        // West has what north has: each of its sessions is marked, and none is left out.
        let of_west = plain.iter().filter(|row| row["sensor"] == "west").count();
        assert_eq!(marks.len(), of_west, "{query}");
        assert!(marks.iter().all(|mark| mark["sensor"] == "north"), "{marks:?}");
    }
    let first = fleet.ask(&["find", "--limit", "3", "--json"]);
    assert_eq!(unmarked(rows(&first)).0, fleet.sessions(&all, "")[..3]);
    assert!(first.err.contains("more than the limit") || first.code == Some(0), "{first:?}");
    let largest = fleet.ask(&["find", "--sort", "bytes:desc", "--json", "--columns", "bytes"]);
    let bytes: Vec<u64> =
        rows(&largest).iter().map(|row| row["frame_bytes"].as_u64().unwrap()).collect();
    assert!(bytes.len() > 10 && bytes.is_sorted_by(|one, next| one >= next), "{bytes:?}");
    let csv = fleet.ask(&["find", "--csv", "--sensor", "east"]).done();
    assert!(csv.out.starts_with("sensor,same_as,session_id,") && csv.out.contains("\neast,,"));

    // One is killed, one stopped: the others answer, and the time is bounded.
    fleet.served[1].signal("-KILL");
    fleet.served[2].signal("-STOP");
    let begun = Instant::now();
    let ran = fleet.ask(&["find", "--json", "--sensor-deadline", "3s"]);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(unmarked(rows(&ran)).0, fleet.sessions(&[0, 3, 4], ""));
    for line in
        ["\neast: down, 0 sessions\neast: cannot reach https://", "\nsouth: slow, 0 sessions\n"]
    {
        assert!(ran.err.contains(line), "{ran:?}");
    }
    assert!(!ran.err.contains("north: "), "{ran:?}");
    let path = fleet.file("part.pcapng");
    let ran = fleet.ask(&["extract", "", "-w", &path, "--sensor-deadline", "3s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let manifest: Value = serde_json::from_slice(&fs::read(path + ".json").unwrap()).unwrap();
    assert_eq!((&manifest["state"], &manifest["complete"]), (&"incomplete".into(), &false.into()));
    let conditions = manifest["sensors"].as_array().unwrap().iter();
    let conditions: Vec<&str> = conditions.map(|it| it["condition"].as_str().unwrap()).collect();
    assert_eq!(conditions[..4], ["complete", "down", "slow", "complete"]);
    let ran = fleet.ask(&["status", "--json", "--sensor-deadline", "3s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let status: Value = serde_json::from_str(&ran.out).unwrap();
    let of = |at: usize| &status["sensors"][at];
    assert_eq!(
        [of(1)["condition"].as_str(), of(2)["condition"].as_str()],
        [Some("down"), Some("slow")]
    );
    assert_eq!(of(4)["is_recording"], true);
    let clock = &of(0)["clock"];
    let [offset, most] = ["offset_ns", "uncertainty_ns"].map(|key| clock[key].as_i64().unwrap());
    assert!(offset.abs() <= most && most < 5_000_000_000, "{clock}");
    fleet.served[2].signal("-CONT");

    // The others are killed, too: there is no answer.
    fleet.served.iter().for_each(|served| served.signal("-KILL"));
    let ran = fleet.ask(&["find", "--json"]);
    assert!(ran.code == Some(3) && ran.err.contains("no sensor answered"), "{ran:?}");
}

#[test]
fn packets_of_all_sensors_are_one_file_in_the_order_of_time() {
    let fleet = Fleet::new();
    for (query, path) in [("", "all.pcapng"), ("port 53", "dns.pcapng")] {
        let path = fleet.file(path);
        let ran = fleet.ask(&["extract", query, "-w", &path]);
        assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
        let packets = read_pcapng(&path);
        assert!(packets.is_sorted_by_key(|packet| packet.time));
        let (mut sorted, mut expected) = (packets, Vec::new());
        (0..5).for_each(|at| expected.extend(fleet.packets(at, query)));
        sorted.sort();
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(sorted, expected, "{query}");
        let manifest = path.clone() + ".json";
        run(&["verify-extract", &manifest, &path]).done();
        let again = fleet.ask(&["extract", query, "-w", &path]);
        again.is_refused("exists already");
    }
    let names: BTreeSet<String> =
        read_pcapng(&fleet.file("all.pcapng")).into_iter().map(|it| it.interface).collect();
    assert!(NAMES.iter().all(|name| names.iter().any(|it| it.starts_with(&format!("{name}:")))));
    fleet.ask(&["extract", "port 53", "-w", "x", "--sessions", "y"]).fails_with(2, "--sessions");
}

#[test]
fn who_is_revoked_is_refused_and_a_new_certificate_counts() {
    let fleet = Fleet::new();
    let ca = fleet.file("ca");
    let key = fleet.file("ca/client-alice.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&key).unwrap();
    let words = ["find", "port 53", "--json", "--sensor", "north", "--sensor", "east"];
    let first = fleet.ask(&words).done();
    run(&["fleet", "enrol", "revoke", &ca, "alice"]).done();
    // Services look at the list once a second.
    thread::sleep(Duration::from_millis(1500));
    let ran = fleet.ask(&words);
    assert_eq!((ran.code, &*ran.out), (Some(3), ""), "{ran:?}");
    for name in ["north", "east"] {
        assert!(ran.err.contains(&format!("{name}: refused, 0 sessions")), "{ran:?}");
    }
    assert!(ran.err.contains("CertificateRevoked"), "{ran:?}");
    // Who has the key must not get a certificate for it.
    let again = ["fleet", "enrol", "client", &ca, "alice"];
    run(&again).is_refused("what was issued for this key is revoked; move it away");
    assert_eq!(fs::read(&key).unwrap(), before, "the key stays");
    fs::rename(&key, fleet.file("ca/old.key")).unwrap();
    run(&again).done();
    assert_eq!(fleet.ask(&words).done().out, first.out);
    let listed = run(&["fleet", "enrol", "list", &ca]).done().out;
    assert_eq!(listed.matches("client alice: revoked").count(), 1, "{listed}");
    assert_eq!(listed.matches("client alice: counts").count(), 1, "{listed}");
    run(&["fleet", "enrol", "init", &ca]).is_refused("there is an authority already");
    run(&["fleet", "enrol", "revoke", &ca, "bob"]).fails_with(2, "bob");
    run(&["fleet", "enrol", "client", &ca, "../bob"]).fails_with(2, "is no name");
    run(&["fleet", "enrol", "client", &fleet.file("none"), "bob"]).is_refused("no authority");
}

#[test]
fn a_file_of_sensors_that_is_wrong_is_refused_with_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.toml").to_str().unwrap().to_owned();
    let ask = |words: &[&str]| run(&[&["fleet"], words, &["--fleet", &path]].concat());
    ask(&["find"]).is_refused("fleet.toml");
    fs::write(&path, "[sensor.a]\nurl = 'https://127.0.0.1:1'\ntoken = 'x'\n").unwrap();
    ask(&["status"]).fails_with(2, "line 3: token is no key of [sensor]");
    fs::write(&path, "[sensor.alpha]\nurl = 'https://127.0.0.1:1'\n").unwrap();
    ask(&["find", "--sensor", "alpa"]).fails_with(2, "did you mean alpha?");
    let ran = ask(&["find", "port x"]);
    assert!(ran.code == Some(2) && ran.err.contains('^'), "{ran:?}");
    ask(&["find", "--sort", "country"]).fails_with(2, "--mmdb");
    ask(&["find", "--columns", "sn"]).fails_with(2, "did you mean");
    // Refused by the sensor's address alone, and named.
    fs::write(&path, "[sensor.a]\nurl = 'http://192.0.2.1'\n").unwrap();
    let ran = ask(&["find"]);
    assert!(ran.code == Some(3) && ran.err.contains("a: refused, 0 sessions"), "{ran:?}");
}

/// A service that answers each request with the same, for as long as the test runs.
fn liar(answer: &'static [u8], is_endless: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let volumes = "{\"volumes\":[{\"name\":\"v\",\"id\":\"x\"}]}";
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            let is_first = request[..count].windows(6).any(|part| part == b"whoami");
            if is_first {
                let len = volumes.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
                let head = format!("{head}content-length: {len}\r\n\r\n");
                drop(stream.write_all((head + volumes).as_bytes()));
                continue;
            }
            let mut sent = stream.write_all(answer);
            while is_endless && sent.is_ok() {
                sent =
                    stream.write_all(b"4000\r\n").and_then(|()| stream.write_all(&[b'x'; 0x4000]));
                sent = sent.and_then(|()| stream.write_all(b"\r\n"));
            }
        }
    });
    format!("http://{address}")
}

#[test]
fn a_sensor_that_lies_is_named_and_the_others_are_heard() {
    const LINES: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\
                         wirespool-answer: a\r\ntransfer-encoding: chunked\r\n\r\n";
    const HTML: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 1\r\n\r\nx";
    const MOVED: &[u8] =
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let with = |text: &str| -> &'static [u8] { (LINES.to_owned() + text).leak().as_bytes() };
    let row = "{\"session_id\":\"1.0-1\",\"proto\":6,\"session_start_ns\":3,\"start_ns\":3,\
               \"end_ns\":3}\n";
    let row = format!("{:x}\r\n{row}\r\n", row.len());
    let liars = [
        ("huge", liar(with(""), true), "too long"),
        ("html", liar(HTML, false), "text/html"),
        ("moved", liar(MOVED, false), "not followed"),
        ("words", liar(with("9\r\n{\"a\": 5}\n\r\n0\r\n\r\n"), false), "a session that is none"),
        ("cut", liar(with(&row), false), "broke the answer off"),
        ("noise", liar(b"\xff\xfe nonsense \r\n\r\n", false), "noise: "),
    ];
    let honest = Served::over(Volume::recorded());
    let token = honest.token("me", "sessions,extract");
    let file = honest.volume.file("token");
    write_key(&file, &token);
    let path = honest.volume.file("fleet.toml");
    let mut text =
        format!("[sensor.honest]\nurl = \"http://{}\"\ntoken_file = \"token\"\n", honest.address);
    let table =
        |(name, url, _): &(&str, String, &str)| format!("[sensor.{name}]\nurl = \"{url}\"\n");
    text.extend(liars.iter().map(table));
    fs::write(&path, text).unwrap();
    let words = ["fleet", "find", "--json", "--fleet", &path, "--sensor-deadline", "20s"];
    let ran = run(&words);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let here = ["find", &honest.volume.path, "--index-dir", &honest.volume.index, "--json"];
    let expected = run(&here).done().out.lines().count();
    let of_honest = rows(&ran).iter().filter(|row| row["sensor"] == "honest").count();
    assert_eq!(of_honest, expected);
    for (name, _, why) in &liars {
        let is_named = ran.err.lines().any(|line| line.starts_with(&format!("{name}: ")));
        assert!(is_named && ran.err.contains(why), "{name}: {ran:?}");
    }
    assert!(!ran.err.contains("honest: "), "{ran:?}");
    // What one cut off has said is shown once, although it was asked for again.
    assert_eq!(rows(&ran).iter().filter(|row| row["sensor"] == "cut").count(), 1);
    // An extract of a sensor that does not say packets is no file.
    let out = honest.volume.file("lies.pcapng");
    let words = ["fleet", "extract", "", "--fleet", &path, "--sensor", "html", "-w", &out];
    let ran = run(&words);
    assert!(ran.code == Some(3) && ran.err.contains("html: no answer"), "{ran:?}");
    assert!(!fs::exists(&out).unwrap());
}

#[test]
fn who_has_had_enough_ends_it_at_once_without_a_file() {
    // It takes connections, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let url = format!("http://{}", listener.local_addr().unwrap());
    fs::write(file("fleet.toml"), format!("[sensor.a]\nurl = \"{url}\"\n")).unwrap();
    let words = ["fleet", "extract", "", "--fleet", &file("fleet.toml"), "-w", &file("x.pcapng")];
    let mut child = command(&words).stderr(std::process::Stdio::piped()).spawn().unwrap();
    listener.accept().unwrap();
    let begun = Instant::now();
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let code = child.wait().unwrap().code();
    assert!(code == Some(3) && begun.elapsed() < Duration::from_secs(10), "{code:?}");
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "neither a file nor a manifest");
}

/// What answers with status 0 asks with a certificate that counts.
#[test]
fn a_certificate_near_its_end_is_renewed_and_one_that_is_over_or_a_strangers_is_refused() {
    let fleet = Fleet::new();
    let ca = fleet.file("ca");
    let volume = Volume::empty();
    let Some(shim) = crate::wrong_clock::shim(&volume) else { return };
    let key = fs::read(fleet.file("ca/client-alice.key")).unwrap();
    // Of a day, which was over but for eight seconds when it was made.
    let mut short = command(&["fleet", "enrol", "client", &ca, "alice", "--days", "1"]);
    short.env("LD_PRELOAD", &shim).env("CLOCK_AHEAD_S", "-86392");
    let made = Instant::now();
    Ran::new(&short.output().unwrap()).done();
    let words = ["find", "port 53", "--json", "--sensor", "north"];
    let first = fleet.ask(&words).done();
    thread::sleep(Duration::from_secs(9).saturating_sub(made.elapsed()));
    let over = fleet.ask(&words);
    assert_eq!((over.code, &*over.out), (Some(3), ""), "{over:?}");
    assert!(over.err.contains("north: refused"), "{over:?}");
    // One that is over is renewed by the authority, for the same key.
    run(&["fleet", "enrol", "client", &ca, "alice"]).done();
    assert_eq!(fleet.ask(&words).done().out, first.out);
    assert_eq!(fs::read(fleet.file("ca/client-alice.key")).unwrap(), key);
    // The same name of another authority.
    let other = fleet.file("other");
    run(&["fleet", "enrol", "init", &other]).done();
    run(&["fleet", "enrol", "client", &other, "alice"]).done();
    for end in ["pem", "key"] {
        let name = format!("client-alice.{end}");
        fs::copy(fleet.file(&format!("other/{name}")), fleet.file(&format!("ca/{name}"))).unwrap();
    }
    let stranger = fleet.ask(&words);
    assert_eq!((stranger.code, &*stranger.out), (Some(3), ""), "{stranger:?}");
}

/// `enrol` is killed at one moment after the other: what is there can be used, and renewed.
#[test]
fn a_renewal_that_is_killed_leaves_what_counts() {
    let fleet = Fleet::new();
    let ca = fleet.file("ca");
    let words = ["find", "port 53", "--json", "--sensor", "north"];
    let first = fleet.ask(&words).done();
    let mut killed = 0;
    for at in 0..40_u64 {
        let began = Instant::now();
        let mut renewal = command(&["fleet", "enrol", "client", &ca, "alice"]).spawn().unwrap();
        thread::sleep(Duration::from_micros(at * 500).saturating_sub(began.elapsed()));
        renewal.kill().unwrap();
        killed += u64::from(renewal.wait().unwrap().code().is_none());
        assert_eq!(fleet.ask(&words).done().out, first.out, "killed after {at} steps");
    }
    println!("{killed} killed");
    assert!(killed > 5, "{killed}");
    // A first enrolment may have left a key alone.
    for at in 0..40_u64 {
        let name = format!("bob{at}");
        let mut enrolment = command(&["fleet", "enrol", "client", &ca, &name]).spawn().unwrap();
        thread::sleep(Duration::from_micros(at * 500));
        enrolment.kill().unwrap();
        enrolment.wait().unwrap();
        run(&["fleet", "enrol", "client", &ca, &name]).done();
        let text = fs::read_to_string(fleet.file("fleet.toml")).unwrap();
        let own = text.replace("client-alice", &format!("client-{name}"));
        fs::write(fleet.file("bob.toml"), own).unwrap();
        if at % 8 == 0 {
            let ran =
                run(&[&["fleet"], &words[..], &["--fleet", &fleet.file("bob.toml")]].concat());
            assert_eq!(ran.done().out, first.out);
        }
    }
    let listed = run(&["fleet", "enrol", "list", &ca]).done().out;
    assert!(listed.contains("client alice: counts"), "{listed}");
}
