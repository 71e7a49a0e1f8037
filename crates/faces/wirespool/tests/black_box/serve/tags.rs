//! Tags over the network: sessions that an event or a query names, kept, listed and removed by whom
//! they concern.

use std::fs;

use serde_json::Value;

use super::{Answer, Served};
use crate::machine::{Volume, run};

const HEADING: &str = "X-Wirespool: 1";

fn with_tags() -> Served {
    let volume = Volume::recorded();
    let (tags, audit) = (volume.file("tags"), volume.file("audit.jsonl"));
    Served::with(volume, &["--tags-file", &tags, "--audit", &audit])
}

fn post(served: &Served, words: &str, token: &str) -> Answer {
    served.ask(&format!("POST /api/v1/tags?{words}"), token, &[HEADING])
}

fn listed(served: &Served, words: &str, token: &str) -> Vec<Value> {
    let tags = served.get(&format!("/api/v1/tags{words}"), token).ok().json();
    tags["tags"].as_array().unwrap().clone()
}

/// As a part of a query string.
fn encoded(text: &str) -> String {
    text.bytes().flat_map(|byte| ["%".to_owned(), format!("{byte:02x}")]).collect()
}

/// A line of Suricata about the first session to a port 53.
fn event(served: &Served) -> String {
    let volume = &*served.volume.path;
    let words = ["find", volume, "port 53", "--json", "--index-dir", &served.volume.index];
    let found = run(&words).done().out;
    let session: Value = serde_json::from_str(found.lines().next().unwrap()).unwrap();
    let start_ns = session["start_ns"].as_i64().unwrap();
    let seconds = start_ns / 1_000_000_000;
    let time = String::from_utf8(
        std::process::Command::new("date")
            .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%S.000000+0000"])
            .output()
            .unwrap()
            .stdout,
    );
    serde_json::json!({
        "timestamp": time.unwrap().trim(),
        "event_type": "alert",
        "src_ip": session["orig_ip"], "src_port": session["orig_port"],
        "dest_ip": session["resp_ip"], "dest_port": session["resp_port"],
        "proto": if session["proto"] == 17 { "UDP" } else { "TCP" },
        "alert": {"signature": "ET SCAN x", "severity": 2},
    })
    .to_string()
}

#[test]
fn an_event_tags_the_sessions_that_the_verb_tags() {
    let served = with_tags();
    let holder = served.token("holder", "hold");
    let reader = served.token("reader", "sessions");
    let event = event(&served);
    let log = served.volume.file("eve.json");
    fs::write(&log, format!("{event}\n")).unwrap();
    let volume = &*served.volume.path;
    let printed =
        run(&["tag", volume, "--log", &log, "--index-dir", &served.volume.index]).done().out;
    let made = post(&served, &format!("event={}", encoded(&event)), &holder).ok().json();
    let expected: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tags = made["tags"].as_array().unwrap();
    assert_eq!((tags.len(), &made["count"]), (expected.len(), &expected.len().into()), "{made}");
    for (tag, printed) in tags.iter().zip(&expected) {
        for (key, value) in printed.as_object().unwrap() {
            assert_eq!(&tag[key], value, "{key}");
        }
        assert_eq!(tag["by"], "holder");
    }
    // A service that begins anew has them still.
    let mut all = listed(&served, "", &reader);
    all.reverse();
    assert_eq!(all, *tags, "the newest first");
    let of = format!("?session={}", tags[0]["session_id"].as_str().unwrap());
    assert_eq!(listed(&served, &of, &reader).len(), 1);
    assert_eq!(listed(&served, "?tag=SCAN", &reader).len(), tags.len());
    assert_eq!(listed(&served, "?tag=other", &reader).len(), 0);
    // The lines are what extract reads.
    let lines = served.ask("GET /api/v1/tags", &reader, &["Accept: application/x-ndjson"]).ok();
    let file = served.volume.file("tags.jsonl");
    fs::write(&file, lines.text()).unwrap();
    let packets = served.volume.file("tagged.pcapng");
    let index = ["--index-dir", &*served.volume.index, "-w", &packets];
    let extract = ["extract", volume, "--sessions", &file];
    run(&[&extract[..], &index].concat()).done();
    // Removed by who may.
    let id = tags[0]["id"].as_str().unwrap();
    let remove = |token: &str| served.ask(&format!("DELETE /api/v1/tags/{id}"), token, &[HEADING]);
    remove(&reader).is_refused(403, "no-scope");
    assert_eq!(remove(&holder).ok().json()["id"], id);
    remove(&holder).is_refused(404, "not-found");
    assert_eq!(listed(&served, "", &reader).len(), tags.len() - 1);
    let audit = served.volume.file("audit.jsonl");
    run(&["audit", "verify", &audit]).done();
    let text = fs::read_to_string(&audit).unwrap();
    assert!(text.lines().any(|line| line.contains("\"begun\"") && line.contains("/tags/")));
}

#[test]
fn a_query_tags_what_a_credential_sees_and_nothing_else() {
    let served = with_tags();
    let holder = served.token("holder", "hold,sessions");
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", "lab", "--scope", "sessions,hold"];
    let filter = ["--filter", "port 443", "--token-file", &file];
    let lab = run(&[&words[..], &filter].concat()).done().out.trim().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let made = post(&served, "query=port+53&tag=mine&severity=3", &holder).ok().json();
    assert!(made["count"].as_u64().unwrap() > 0, "{made}");
    assert_eq!(made["tags"][0]["severity"], 3);
    assert_eq!(post(&served, "query=port+53&tag=theirs", &lab).ok().json()["count"], 0);
    let theirs = post(&served, "query=&tag=theirs", &lab).ok().json();
    let theirs = theirs["count"].as_u64().unwrap();
    assert!(theirs > 0);
    assert_eq!(u64::try_from(listed(&served, "", &lab).len()).unwrap(), theirs);
    assert_eq!(listed(&served, "?limit=1", &holder).len(), 1);
    let id = made["tags"][0]["id"].as_str().unwrap();
    let remove = format!("DELETE /api/v1/tags/{id}");
    served.ask(&remove, &lab, &[HEADING]).is_refused(404, "not-found");
    post(&served, "query=port+443)+or+(port+53&tag=x", &lab).is_refused(400, "wrong-query");
}

#[test]
fn wrong_words_and_hostile_events_are_refused() {
    let served = with_tags();
    let holder = served.token("holder", "hold,sessions");
    let long = "x".repeat(201);
    for wrong in [
        "",
        "query=port+53",
        "tag=x",
        "query=port+53&tag=",
        "event=x&tag=y",
        "query=&tag=x&severity=256",
        "query=&tag=x&severity=0",
        &format!("query=&tag={long}"),
    ] {
        post(&served, wrong, &holder).is_refused(400, "wrong-parameter");
    }
    for wrong in ["x", "{}", "[1]", "{\"event_type\":\"alert\"}", "#fields\tid", "\u{0}"] {
        let event = format!("event={}", encoded(wrong));
        post(&served, &event, &holder).is_refused(400, "wrong-query");
    }
    let without = served.ask("POST /api/v1/tags?query=&tag=x", &holder, &[]);
    without.is_refused(400, "wrong-parameter");
    // Text from outside stays text.
    let odd = encoded("<b>\u{1b}[31m\n{\"a\":1}");
    let made = post(&served, &format!("query=port+53&tag={odd}"), &holder).ok().json();
    assert_eq!(made["tags"][0]["tag"], "<b>\u{1b}[31m\n{\"a\":1}");
    let bare = Served::over(Volume::recorded());
    let holder = bare.token("holder", "hold,sessions");
    bare.get("/api/v1/tags", &holder).is_refused(404, "not-found");
    // A file of tags that is none is not overwritten.
    let file = bare.volume.file("tags");
    crate::machine::write_key(&file, "{}\n");
    let tokens = bare.volume.file("tokens");
    let words = ["serve", &bare.volume.path, "--token-file", &tokens, "--tags-file", &file];
    run(&words).fails_with(3, "line 1 is no tag");
}
