//! From the logs of Suricata and Zeek to sessions.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{Volume, command, run};

/// The rows of the captures of the demo.
fn rows(volume: &Volume, query: &str) -> Vec<Value> {
    let found = run(&["find", &volume.path, query, "--json"]).done().out;
    found.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn iso(ns: i64) -> String {
    let text = units::Timestamp(ns).to_string();
    // As Suricata writes it.
    text.replace('Z', "+0000")
}

/// An alert on a session, by community id or by its ends.
fn alert(row: &Value, by_id: bool, signature: &str, severity: u8) -> String {
    let mut event = json!({
        "timestamp": iso(row["start_ns"].as_i64().unwrap() + 1000),
        "event_type": "alert",
        "src_ip": row["resp_ip"], "src_port": row["resp_port"],
        "dest_ip": row["orig_ip"], "dest_port": row["orig_port"],
        "proto": row["proto_name"].as_str().unwrap().to_uppercase(),
        "alert": {"signature": signature, "severity": severity},
    });
    if by_id {
        event["community_id"] = row["community_id"].clone();
    }
    event.to_string() + "\n"
}

const STATS: &str =
    "{\"timestamp\":\"2026-11-22T10:22:33.000000+0000\",\"event_type\":\"stats\"}\n";

#[test]
fn sessions_of_alerts_are_found_and_extracted() {
    let volume = Volume::recorded();
    let (tls, dns) = (rows(&volume, "sni www.github.com"), rows(&volume, "udp port 53"));
    let log = volume.file("eve.json");
    let flow = json!({
        "timestamp": iso(dns[1]["end_ns"].as_i64().unwrap() + 30_000_000_000),
        "event_type": "flow", "src_ip": dns[1]["orig_ip"], "dest_ip": dns[1]["resp_ip"],
        "flow": {"start": iso(dns[1]["start_ns"].as_i64().unwrap())},
    });
    let by_ends = alert(&dns[0], false, "ET DNS", 3);
    std::fs::write(&log, [STATS, &alert(&tls[0], true, "ET TLS", 1), &by_ends].concat()).unwrap();
    let found = run(&["find", &volume.path, "--from-eve", &log, "--json"]).done().out;
    let ids: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = ids.iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{found}");
    for row in [&tls[0], &dns[0]] {
        assert!(ids.contains(&row["session_id"].as_str().unwrap()), "{row}");
    }
    let out = volume.file("alert.pcapng");
    let extract = ["extract", &volume.path, "tcp", "--from-eve", &log, "-w", &out];
    assert!(run(&extract).done().err.contains("23 packets of 1 session row"));

    // Without an alert every event counts; one event may go over several lines.
    std::fs::write(&log, serde_json::to_string_pretty(&flow).unwrap()).unwrap();
    let found = run(&["find", &volume.path, "--from-eve", &log, "--json"]).done().out;
    assert!(found.contains(dns[1]["session_id"].as_str().unwrap()), "{found}");
    std::fs::write(&log, STATS).unwrap();
    run(&["find", &volume.path, "--from-eve", &log]).fails_with(2, "no event names a session");
    std::fs::write(&log, "what is this\n").unwrap();
    run(&["find", &volume.path, "--from-eve", &log]).fails_with(2, "not a log of Suricata");
    run(&["find", &volume.path, "--from-eve", &volume.file("absent")]).is_refused("cannot open");

    let many: String = (0..2000).map(|_| alert(&tls[0], true, "ET TLS", 1)).collect();
    std::fs::write(&log, many).unwrap();
    assert_eq!(run(&["find", &volume.path, "--from-eve", &log]).done().out.lines().count(), 2);
}

#[test]
fn sessions_of_zeek_are_found() {
    let volume = Volume::recorded();
    let dns = &rows(&volume, "udp port 53")[0];
    let text = |name: &str| dns[name].to_string().replace('"', "");
    let seconds = dns["start_ns"].as_i64().unwrap() / 1_000_000_000;
    let log = volume.file("conn.log");
    let fields =
        "#path\tconn\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\n";
    let values = ["orig_ip", "orig_port", "resp_ip", "resp_port"].map(text).join("\t");
    std::fs::write(&log, format!("{fields}{seconds}.000000\tC1\t{values}\tudp\n")).unwrap();
    let found = run(&["find", &volume.path, "--from-zeek", &log, "--json"]).done().out;
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains(dns["session_id"].as_str().unwrap()));
}

#[test]
fn tags_name_sessions_and_alerts_are_held() {
    let volume = Volume::recorded();
    let (tls, dns) = (rows(&volume, "sni www.github.com"), rows(&volume, "udp port 53"));
    let (log, holds) = (volume.file("eve.json"), volume.file("holds"));
    let lines = [&alert(&tls[0], true, "ET TLS", 1), STATS, &alert(&dns[0], false, "ET DNS", 3)];
    std::fs::write(&log, lines.concat()).unwrap();
    let hold = ["--hold-dir", &holds, "--hold-severity", "1"];
    let ran = run(&[&["tag", &volume.path, "--log", &log][..], &hold].concat()).done();
    let tags: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tags.len(), 2, "{ran:?}");
    assert_eq!((&tags[0]["tag"], &tags[0]["severity"]), (&"ET TLS".into(), &1.into()));
    assert_eq!(tags[0]["session_id"], tls[0]["session_id"]);
    assert_eq!(tags[1]["session_id"], dns[0]["session_id"]);
    let listed = run(&["hold", "--list", "--hold-dir", &holds, "--json"]).done().out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["packets"]), (1, &23.into()));

    let file = volume.file("tags.jsonl");
    std::fs::write(&file, &ran.out).unwrap();
    let out = volume.file("tagged.pcapng");
    let ran = run(&["extract", &volume.path, "--sessions", &file, "-w", &out]).done();
    assert!(ran.err.contains("of 2 session rows, complete"), "{ran:?}");

    let lost = alert(&tls[0], false, "ET LOST", 2).replace("443", "444");
    std::fs::write(&log, lost).unwrap();
    let ran = run(&["tag", &volume.path, "--log", &log]);
    assert!(ran.code == Some(1) && ran.err.contains("no session found for 1 event"), "{ran:?}");
    std::fs::write(&log, "no log\n").unwrap();
    run(&["tag", &volume.path, "--log", &log]).is_refused("not a log of Suricata or Zeek");
    run(&["tag", &volume.path, "--log", &volume.file("absent")]).is_refused("cannot open");
}

#[test]
fn a_log_is_followed_as_it_grows_and_is_rotated() {
    let volume = Volume::recorded();
    let tls = rows(&volume, "sni www.github.com");
    let (log, out) = (volume.file("eve.json"), volume.file("tags.jsonl"));
    std::fs::write(&log, alert(&tls[0], true, "first", 1)).unwrap();
    let mut child = command(&["tag", &volume.path, "--log", &log, "--follow"]);
    let child = child.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let wait_for = |tag: &str| {
        let begun = Instant::now();
        while !std::fs::read_to_string(&out).unwrap().contains(tag) {
            assert!(begun.elapsed() < Duration::from_mins(1), "{tag} is tagged");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("first");
    std::fs::write(volume.file("next"), alert(&tls[0], false, "second", 1)).unwrap();
    std::fs::rename(volume.file("next"), &log).unwrap();
    wait_for("second");
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
