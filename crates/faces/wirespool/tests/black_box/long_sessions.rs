//! Sessions of more than an hour, of which the index has a row for each minute: whatever asks about
//! sessions means all of it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::golden::{capture, from_50_ports, pcap};
use crate::machine::{self, Ran, Volume, run};

const SECOND: u64 = 1_000_000_000;
/// 2026-11-20T10:00:00Z
const BEGIN: u64 = 1_795_168_800;
const SESSIONS: u64 = 20;
/// A datagram each half minute for 83 minutes.
const PACKETS: u64 = 167;

/// Datagrams of 1400 bytes that cross an hour.
fn frame(session: u64, number: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0x05, 0x6a];
    let host = u8::try_from(session).unwrap() + 1;
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, host, 192, 168, 1, 1]);
    frame.extend([0x90, host, 0x1f, 0x90, 0x05, 0x56, 0, 0]);
    frame.resize(1400, u8::try_from(number % 251).unwrap());
    frame
}

pub(crate) fn volume() -> Volume {
    let volume = Volume::empty();
    let capture = volume.file("long.pcap");
    let packets = (0..PACKETS).flat_map(|number| {
        let time = (BEGIN + 30 * number) * SECOND;
        (0..SESSIONS).map(move |session| (time + session, frame(session, number)))
    });
    std::fs::write(&capture, pcap(packets)).unwrap();
    volume.record(&["--read", &capture]).done();
    volume
}

/// Waits until this many packets are shown, and gives how many sessions have them all.
fn whole_sessions(volume: &Volume, packets: u64) -> usize {
    let find = |query: &str| run(&["find", &volume.path, query, "--json"]);
    let count = |sessions: &[Value]| -> u64 {
        sessions.iter().map(|session| session["orig_packets"].as_u64().unwrap()).sum()
    };
    let started = Instant::now();
    while count(&lines(&find("udp"))) < packets {
        assert!(started.elapsed() < Duration::from_mins(1), "what has come is acknowledged");
    }
    lines(&find("packets = 400")).len()
}

/// Its rows are in segments that have an index, in one that has none so far, in what a killed
/// recorder left, and in what the next one made of that.
#[test]
fn a_session_that_goes_on_behind_the_newest_index_is_one() {
    let volume = Volume::empty();
    let (mut recorder, mut input) =
        machine::recorder(&volume.path, &volume.index, &["--pool", "4M"]);
    input.write_all(&from_50_ports(20_000)).unwrap();
    assert_eq!(whole_sessions(&volume, 20_000), 50);
    let inspected = run(&["inspect", &volume.path, "--json"]).done();
    let inspected: Value = serde_json::from_str(&inspected.out).unwrap();
    assert!(inspected["index"]["sessions"].as_u64().unwrap() > 50, "{inspected}");
    let out = volume.file("all.pcapng");
    let extracted = run(&["extract", &volume.path, "packets = 400", "-w", &out]).done();
    assert!(extracted.err.contains("20 000 packets"), "{}", extracted.err);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert_eq!(whole_sessions(&volume, 20_000), 50);
    let more = volume.file("more.pcap");
    std::fs::write(&more, capture(BEGIN * SECOND, 0..10)).unwrap();
    volume.record(&["--read", &more]).done();
    assert_eq!(whole_sessions(&volume, 20_010), 50);
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn conditions_are_asked_of_the_whole_session() {
    let volume = volume();
    let find = |query: &str| lines(&run(&["find", &volume.path, query, "--json"]).done());
    let all = find("udp");
    assert_eq!(all.len(), 20, "{all:?}");
    assert!(all.iter().all(|session| session["orig_packets"] == PACKETS));
    for query in [
        "duration > 1h",
        "duration > 82m and duration < 84m",
        "bytes > 220K",
        "packets = 167",
        "packets > 166 and after 2026-11-20T11:00:00Z",
        "end > 2026-11-20T11:22:00Z and start < 2026-11-20T10:01:00Z",
        "before 2026-11-20T10:00:10Z",
        "state = S0",
    ] {
        assert_eq!(find(query), all, "{query}");
    }
    for query in ["packets < 167", "bytes < 220K", "duration < 1h", "start > 2026-11-20T10:01:00Z"]
    {
        assert!(find(query).is_empty(), "{query}");
    }
    // A minute in the middle shows the sessions that are alive then, as they are.
    let minute = "after 2026-11-20T10:40:00Z and before 2026-11-20T10:41:00Z";
    assert_eq!(find(minute), all);
}

/// The seconds that are shown have two packets of each.
#[test]
fn top_shows_what_whole_sessions_did_at_a_moment() {
    let volume = volume();
    let lines = |query: &str| {
        let fixed = ["top", &volume.path, "--once", "--json", "--tab", "talkers"];
        let asked = ["--by", "session", "--at", "2026-11-20T10:40:00Z", "--query", query];
        let out = run(&[&fixed[..], &asked].concat()).done().out;
        let shown: Value = serde_json::from_str(&out).unwrap();
        shown["tabs"]["talkers"]["session"]["lines"].as_array().unwrap().len()
    };
    for query in ["", "duration > 1h", "bytes > 220K", "packets = 167", "udp and state = S0"] {
        assert_eq!(lines(query), 20, "{query}");
    }
    assert_eq!(lines("port 36869 and duration > 1h"), 1);
    for query in ["duration < 1h", "packets < 167", "tcp"] {
        assert_eq!(lines(query), 0, "{query}");
    }
}

#[test]
fn an_extract_has_what_find_shows() {
    let volume = volume();
    let extract = |arguments: &[&str]| {
        let out = volume.file("out.pcapng");
        let fixed = ["extract", &volume.path, "-w", &out, "--force"];
        run(&[&fixed[..], arguments].concat()).done().err
    };
    let minute = "after 2026-11-20T10:40:00Z and before 2026-11-20T10:41:00Z";
    assert!(extract(&["duration > 1h"]).contains("3 340 packets"));
    assert!(extract(&[minute]).contains("3 340 packets"));
    assert!(extract(&[minute, "--only-range"]).contains("40 packets"));
    let query = format!("packets > 160 and {minute}");
    assert!(extract(&[&query, "--only-range"]).contains("40 packets"));
    assert!(extract(&[&format!("packets < 160 and {minute}")]).contains("0 packets"));

    // Any of its rows names a session.
    let find = ["find", &volume.path, "host 192.168.0.7", "--json"];
    let session = lines(&run(&find).done()).remove(0);
    let id = session["session_id"].as_str().unwrap();
    assert!(extract(&["session_id", id]).contains("167 packets"));
    let both = ["extract", &volume.path, minute, "-w", "x", "--only-range", "--whole-sessions"];
    assert_eq!(run(&both).code, Some(2));
}

#[test]
fn a_plot_and_a_ranking_ask_the_whole_session_too() {
    let volume = volume();
    let top = ["find", &volume.path, "duration > 1h", "--top", "resp_ip", "--json"];
    let ranked: Value = serde_json::from_str(&run(&top).done().out).unwrap();
    assert!(ranked.to_string().contains("192.168.1.1"), "{ranked}");
    let plot = |query: &str| run(&["find", &volume.path, query, "--plot", "--json"]).done().out;
    assert_eq!(plot("packets > 160"), plot("udp"));
    assert_ne!(plot("packets < 160"), plot("udp"));
}
