//! What is refused in the place of being guessed: a query that is left out of what changes
//! something, a body that nobody reads, an empty filter, bytes that are no text, a name of two
//! volumes, a cursor of another place. And answers that end with the credential that has asked.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use serde_json::Value;

use super::{Answer, Served, large, send, until};
use crate::machine::{Volume, run, write_key};

const HEADING: &str = "X-Wirespool: 1";

/// With a body, and what is said of its length.
fn with_body(served: &Served, (what, token): (&str, &str), length: usize, body: &str) -> Answer {
    let mut stream = served.connect();
    send(&mut stream, what, token, &[HEADING, &format!("Content-Length: {length}")]);
    stream.write_all(body.as_bytes()).unwrap();
    if body.len() < length {
        stream.shutdown(Shutdown::Write).unwrap();
    }
    Answer::read(&mut stream)
}

#[test]
fn nothing_is_put_aside_without_a_query_and_no_body_is_left_unread() {
    let volume = Volume::recorded();
    let folder = volume.file("holds");
    fs::create_dir(&folder).unwrap();
    let served = Served::with(volume, &["--hold-dir", &folder]);
    let token = served.token("holder", "sessions,extract,hold,admin");
    for what in ["POST /api/v1/holds", "POST /api/v1/jobs?kind=hold"] {
        let refused = served.ask(what, &token, &[HEADING]);
        refused.is_refused(400, "wrong-parameter");
        assert!(refused.text().contains("which sessions?"), "{}", refused.text());
    }
    // What a form sends in its body would be left unread, wherever there is none in the table.
    for what in [
        "POST /api/v1/holds",
        "POST /api/v1/holds?query=port+53",
        "POST /api/v1/jobs?kind=verify",
        "POST /api/v1/tokens?name=x&scopes=sessions",
        "GET /api/v1/extract",
        "DELETE /api/v1/holds/x",
    ] {
        let body = "query=port+53";
        let refused = with_body(&served, (what, &token), body.len(), body);
        refused.is_refused(400, "wrong-body");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(served.get("/api/v1/jobs", &token).ok().json()["jobs"], Value::Array(vec![]));
    // Who writes that it is all has asked for it.
    served.ask("POST /api/v1/holds?query=", &token, &[HEADING]).ok();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn what_is_empty_or_no_text_narrows_nothing_and_is_refused() {
    let served = Served::over(Volume::recorded());
    let token = served.token("admin", "sessions,extract,admin");
    let make = |words: &str| {
        served.ask(&format!("POST /api/v1/tokens?scopes=sessions&{words}"), &token, &[HEADING])
    };
    make("name=x&filter=").is_refused(400, "wrong-parameter");
    make("name=x&filter=+").is_refused(400, "wrong-parameter");
    make("name=x&expires=").is_refused(400, "wrong-parameter");
    make("name=x&filter=port+53").ok();
    make("name=x").is_refused(409, "taken");
    for words in [
        "extract?payload=",
        "extract?packet_filter=",
        "extract?limit=",
        "extract?limit_packets=",
        "extract?around_ms=",
        "sessions?cursor=",
        "sessions?limit=",
        "sessions?order=",
        // Bytes that are no UTF-8: another text would be searched for.
        "extract?payload=%80%01%ff",
        "sessions?query=sni+%ff",
        "sessions?%ff=1",
    ] {
        served.get(&format!("/api/v1/{words}"), &token).is_refused(400, "wrong-parameter");
    }
    served.get("/api/v1/extract?payload=%EF%BF%BD&limit_packets=1", &token).ok();
}

#[test]
fn a_filter_hides_names_and_times_from_statements_too() {
    let served = Served::over(Volume::recorded());
    let all = served.token("all", "sessions,extract");
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", "early", "--scope", "sessions,extract"];
    let filter = ["--filter", "before 2001-01-01T00:00:00Z", "--token-file", &file];
    let early = run(&[&words[..], &filter].concat()).done().out.trim().to_owned();
    std::thread::sleep(Duration::from_millis(1100));
    let asked = "/api/v1/sessions?query=recording+x";
    let statement = |token: &str| served.get(asked, token).ok().json()["statement"].clone();
    let seen = statement(&all);
    assert!(seen["hint"].as_str().unwrap().contains("recording"), "{seen}");
    let recorded = |statement: &Value| {
        let recorded = statement["completeness"].get("recorded").and_then(Value::as_array);
        (recorded.map_or(0, Vec::len), statement["text"].as_str().unwrap().contains("recorded: "))
    };
    assert!(recorded(&seen).0 > 0 && recorded(&seen).1, "{seen}");
    let hidden = statement(&early);
    assert_eq!(hidden.get("hint"), None, "{hidden}");
    assert_eq!(recorded(&hidden), (0, false), "{hidden}");
    // An extract and its manifest say no more.
    let answer = served.get("/api/v1/extract?query=recording+x", &early).ok();
    let id = &answer.headers["wirespool-answer"];
    let known = served.get(&format!("/api/v1/answers/{id}"), &early).ok().json();
    assert_eq!(known["statement"].get("hint"), None, "{known}");
    assert_eq!(recorded(&known["statement"]), (0, false), "{known}");
    let manifest = served.get(&format!("/api/v1/answers/{id}/manifest"), &early).ok().json();
    let listed = manifest["completeness"].get("recorded").and_then(Value::as_array);
    assert_eq!(listed.map_or(0, Vec::len), 0, "{manifest}");
}

#[test]
fn volumes_of_one_name_are_told_apart_by_their_ids() {
    let other = Volume::recorded();
    let served = Served::with(Volume::recorded(), &[&other.path]);
    let token = served.token("reader", "sessions");
    let refused = served.get("/api/v1/sessions?volume=volume", &token);
    refused.is_refused(400, "wrong-parameter");
    let volumes = served.get("/api/v1/volumes", &token).ok().json();
    let volumes = volumes["volumes"].as_array().unwrap();
    assert_eq!(volumes.len(), 2);
    for volume in volumes {
        let id = volume["volume_id"].as_str().unwrap();
        assert!(refused.text().contains(id), "{id}: {}", refused.text());
        served.get(&format!("/api/v1/sessions?volume={id}&limit=1"), &token).ok();
    }
    served.get("/api/v1/sessions?volume=absent", &token).is_refused(404, "not-found");
    // A cursor is of its volume and its order.
    let ids: Vec<&str> = volumes.iter().map(|it| it["volume_id"].as_str().unwrap()).collect();
    let [first, second] = [ids[0], ids[1]];
    let page = served.get(&format!("/api/v1/sessions?limit=1&volume={first}"), &token).ok();
    let cursor = page.json()["next_cursor"].as_str().unwrap().to_owned();
    let go_on = |volume: &str, words: &str| {
        served.get(&format!("/api/v1/sessions?limit=1&volume={volume}&cursor={words}"), &token)
    };
    go_on(first, &cursor).ok();
    go_on(first, &format!("{cursor}&order=oldest")).ok();
    go_on(second, &cursor).is_refused(400, "wrong-parameter");
    go_on(first, &format!("{cursor}&order=newest")).is_refused(400, "wrong-parameter");
    go_on(first, &cursor.replacen("1_", "2_", 1)).is_refused(400, "wrong-parameter");
}

#[test]
fn an_answer_ends_with_the_credential_that_asked_for_it() {
    let served = Served::over(large());
    let token = served.token("taker", "extract");
    let mut stream = served.connect();
    send(&mut stream, "GET /api/v1/extract?query=", &token, &[]);
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    until("a process answers", || !served.workers().is_empty());
    // As long as it counts, it goes on.
    let file = served.volume.file("tokens");
    let lines = fs::read_to_string(&file).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert!(!served.workers().is_empty());
    write_key(&file, "");
    until("its process is gone", || served.workers().is_empty());
    let mut rest = first.to_vec();
    stream.read_to_end(&mut rest).unwrap_or_default();
    let answer = Answer::of(&rest);
    assert!(answer.status == 200 && !answer.is_whole, "{} bytes", rest.len());
    write_key(&file, &lines);
    std::thread::sleep(Duration::from_millis(1100));
    let known = format!("/api/v1/answers/{}", answer.headers["wirespool-answer"]);
    assert_eq!(served.get(&known, &token).ok().json()["state"], "broken_off");
}

#[test]
fn headings_and_bodies_are_taken_as_far_as_they_are_whole_and_fit() {
    let volume = Volume::recorded();
    let people = volume.file("people");
    let served = Served::with(volume, &["--people-file", &people]);
    let token = served.token("reader", "sessions");
    let ask = |headers: &[&str]| served.ask("GET /api/v1/whoami", &token, headers);
    ask(&["Host: y"]).is_refused(400, "wrong-heading");
    let long = |bytes: usize| format!("X-Long: {}", "x".repeat(bytes));
    ask(&[&long(60_000)]).ok();
    for bytes in [66_000, 100_000] {
        assert_eq!(ask(&[&long(bytes)]).status, 431, "{bytes}");
    }
    let login = ("POST /api/v1/login", "");
    with_body(&served, login, 100, "{\"name\":").is_refused(400, "wrong-body");
    let mut late = served.connect();
    send(&mut late, login.0, login.1, &[HEADING, "Content-Length: 100"]);
    Answer::read(&mut late).is_refused(408, "late-body");
    with_body(&served, login, 20_000, &"x".repeat(20_000)).is_refused(413, "too-long");
}
