//! Extracts over the network that one asks for and another one approves: what comes out, what is
//! put down, and each way around it that somebody may try.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::browser::HEADING;
use super::{Answer, Served, people, until};
use crate::machine::{Volume, run};

const ASKED: &str = "query=port+53&case=2026/17&purpose=a+leak";

/// The flags of a service that takes requests, over this volume.
fn flags(volume: &Volume) -> Vec<String> {
    let [requests, audit, people] = ["requests", "audit", "people"].map(|name| volume.file(name));
    ["--requests-file", &requests, "--audit", &audit, "--people-file", &people]
        .map(str::to_owned)
        .to_vec()
}

fn start(volume: Volume, more: &[&str]) -> Served {
    let fixed = flags(&volume);
    let fixed: Vec<&str> = fixed.iter().map(|flag| &**flag).collect();
    Served::with(volume, &[&fixed[..], more].concat())
}

/// The same service after its end.
fn again(mut served: Served, signal: &str) -> Served {
    served.signal(signal);
    served.child.wait().unwrap();
    let volume = std::mem::replace(&mut served.volume, Volume::empty());
    drop(served);
    start(volume, &[])
}

fn ask(served: &Served, words: &str, token: &str) -> Answer {
    served.ask(&format!("POST /api/v1/requests?{words}"), token, &[HEADING])
}

/// The id of a request that was just made.
#[track_caller]
fn asked(served: &Served, words: &str, token: &str) -> String {
    ask(served, words, token).ok().json()["id"].as_str().unwrap().to_owned()
}

fn approve(served: &Served, id: &str, token: &str) -> Answer {
    served.ask(&format!("POST /api/v1/requests/{id}/approve"), token, &[HEADING])
}

fn end(served: &Served, id: &str, token: &str) -> Answer {
    served.ask(&format!("DELETE /api/v1/requests/{id}"), token, &[HEADING])
}

fn extract(served: &Served, id: &str, token: &str) -> Answer {
    served.get(&format!("/api/v1/requests/{id}/extract"), token)
}

fn listed(served: &Served, words: &str, token: &str) -> Vec<(String, String)> {
    let listed = served.get(&format!("/api/v1/requests{words}"), token).ok().json();
    let text = |request: &Value, key: &str| request[key].as_str().unwrap().to_owned();
    let requests = listed["requests"].as_array().unwrap().iter();
    requests.map(|request| (text(request, "id"), text(request, "state"))).collect()
}

/// A token with these scopes that sees only what matches.
fn filtered(served: &Served, name: &str, scopes: &str, filter: &str) -> String {
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", name, "--scope", scopes, "--token-file", &file];
    let made = run(&[&words[..], &["--filter", filter]].concat()).done().out;
    thread::sleep(Duration::from_millis(1100));
    made.trim().to_owned()
}

/// Takes the line of a token out of the file.
fn revoke(served: &Served, name: &str) {
    let file = served.volume.file("tokens");
    let text = fs::read_to_string(&file).unwrap();
    let other = |line: &&str| !line.starts_with(&format!("{name}:"));
    let kept: Vec<&str> = text.lines().filter(other).collect();
    assert_ne!(kept.len(), text.lines().count());
    fs::write(&file, kept.join("\n") + "\n").unwrap();
    thread::sleep(Duration::from_millis(1100));
}

/// What `extract` writes for a query.
fn written(served: &Served, query: &str) -> Vec<u8> {
    let file = served.volume.file("expected.pcapng");
    let fixed = ["extract", &*served.volume.path, "--index-dir", &served.volume.index, "--force"];
    run(&[&fixed[..], &[query, "-w", &file]].concat());
    fs::read(&file).unwrap()
}

/// Lines of ended requests in the audit that are of a request for an extract.
fn put_down(served: &Served) -> Vec<Value> {
    let text = fs::read_to_string(served.volume.file("audit")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "request" && line["four_eyes"].is_object()).collect()
}

#[test]
fn what_one_asks_and_another_approves_is_handed_out_with_both_names() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    let made = ask(&served, &format!("{ASKED}&valid_for_s=3600"), &anna).ok().json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["state"], &made["is_yours"]), (&"waiting".into(), &true.into()), "{made}");
    let hour_ns = made["until_ns"].as_i64().unwrap() - made["made_ns"].as_i64().unwrap();
    assert_eq!((hour_ns, &made["query"]), (3_600_000_000_000, &"port 53".into()));
    // Who approves sees what it is for.
    let shown = served.get(&format!("/api/v1/requests/{id}"), &bert).ok().json();
    assert_eq!((&shown["case"], &shown["purpose"]), (&"2026/17".into(), &"a leak".into()));
    assert_eq!(shown["requester"], serde_json::json!({"name": "anna", "kind": "token"}));
    assert_eq!(shown["is_yours"], false);
    let note = format!("POST /api/v1/requests/{id}/approve?note=once");
    let approved = served.ask(&note, &bert, &[HEADING]).ok().json();
    assert_eq!((&approved["state"], &approved["note"]), (&"approved".into(), &"once".into()));
    let answer = extract(&served, id, &anna).ok();
    assert_eq!(answer.headers["content-type"], "application/x-pcapng");
    assert!(answer.body == written(&served, "port 53"));
    // The manifest is for who has no other scope, and names both.
    let of = answer.headers["wirespool-answer"].clone();
    let manifest = served.get(&format!("/api/v1/answers/{of}/manifest"), &anna).ok();
    let (file, beside) = (served.volume.file("out.pcapng"), served.volume.file("out.json"));
    fs::write(&file, &answer.body).unwrap();
    fs::write(&beside, &manifest.body).unwrap();
    let checked = run(&["verify-extract", &beside, &file]).done().out;
    assert!(checked.contains("2026/17") && checked.contains("a leak"), "{checked}");
    let manifest = manifest.json();
    let named = &manifest["request"]["approved"];
    assert_eq!(
        (&named["requested_by"], &named["approved_by"]),
        (&"anna (token)".into(), &"bert (token)".into()),
        "{manifest}"
    );
    assert_eq!(
        (&named["request_blake3"], &named["approval_blake3"]),
        (&id.into(), &approved["approval_blake3"])
    );
    assert_eq!((&manifest["case"], &manifest["requester"]), (&"2026/17".into(), &"anna".into()));
    // All of it is in the audit, with both.
    until("the extract is put down", || put_down(&served).len() == 3);
    let lines = put_down(&served);
    let expected =
        [("anna", "", 200), ("bert", "bert (token)", 200), ("anna", "bert (token)", 200)];
    for (line, (who, by, status)) in lines.iter().zip(expected) {
        let asked = &line["four_eyes"];
        let by_whom = asked["approved_by"].as_str().unwrap_or_default();
        assert_eq!((line["credential"].as_str(), by_whom), (Some(who), by), "{line}");
        assert_eq!((&line["status"], &asked["request"]), (&status.into(), &id.into()));
        assert_eq!((&asked["case"], &asked["purpose"]), (&"2026/17".into(), &"a leak".into()));
        assert_eq!(asked["requested_by"], "anna (token)");
    }
    assert_eq!((&lines[2]["query"], &lines[2]["volume"]), (&"port 53".into(), &"volume".into()));
    assert_eq!(lines[2]["sha256"], manifest["outputs"][0]["sha256"]);
    let audit = served.volume.file("audit");
    let text = fs::read_to_string(&audit).unwrap();
    let begun = |path: &str| {
        let is_it = |line: &&str| line.contains("\"begun\"") && line.contains(path);
        text.lines().filter(is_it).count()
    };
    // Changes are put down before they are made.
    assert_eq!((begun("/api/v1/requests\""), begun("/approve\"")), (1, 1), "{text}");
    run(&["audit", "verify", &audit]).done();
    let shown = run(&["audit", "show", &audit]).done().out;
    assert!(shown.contains("requested by anna (token)  approved by bert (token)"), "{shown}");
}

#[test]
fn requests_survive_a_restart_and_a_kill_and_a_changed_one_is_found_out() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    let waiting = asked(&served, ASKED, &anna);
    let ready = asked(&served, "query=port+80&case=17&purpose=x", &anna);
    approve(&served, &ready, &bert).ok();
    let served = again(served, "-KILL");
    let expected =
        [(ready.clone(), "approved".to_owned()), (waiting.clone(), "waiting".to_owned())];
    assert_eq!(listed(&served, "", &bert), expected);
    assert_eq!(listed(&served, "?state=waiting", &anna), expected[1..]);
    assert_eq!(listed(&served, "?limit=1", &anna), expected[..1]);
    assert!(extract(&served, &ready, &anna).ok().body == written(&served, "port 80"));
    approve(&served, &waiting, &bert).ok();
    let served = again(served, "-TERM");
    extract(&served, &waiting, &anna).ok();
    // The file is private, and nobody's to change.
    let file = served.volume.file("requests");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("port 53"), "{text}");
    fs::write(&file, text.replacen("port 53", "port 80", 1)).unwrap();
    // A service that runs goes on with what was approved, and writes nothing over that.
    assert!(extract(&served, &waiting, &anna).ok().body == written(&served, "port 53"));
    let refused = ask(&served, ASKED, &anna);
    refused.is_refused(500, "not-written");
    assert!(refused.text().contains("line 1 was changed"), "{refused:?}");
    let volume = &served.volume;
    let (path, tokens) = (&*volume.path, volume.file("tokens"));
    let words = ["serve", path, "--listen", "127.0.0.1:0", "--token-file", &tokens];
    let audit = served.volume.file("other-audit");
    let kept = ["--requests-file", &file, "--audit", &audit];
    let begun = run(&[&words[..], &kept].concat());
    begun.fails_with(3, "line 1 was changed after it was made: take the line out");
}

#[test]
fn one_person_is_not_enough_and_neither_is_a_stranger() {
    let served = start(Volume::recorded(), &["--role", "lead=approve,request"]);
    let anna = served.token("anna", "request,approve");
    let carl = served.token("carl", "request,sessions");
    let bert = served.token("bert", "approve");
    let id = asked(&served, ASKED, &anna);
    extract(&served, &id, &anna).is_refused(403, "not-approved");
    approve(&served, &id, &anna).is_refused(403, "same-person");
    // Nor an account of the same name, in whatever letters.
    let cookie = people::member(&served, "Anna", "lead");
    let as_person = |what: &str| served.ask(what, "", &[&cookie, HEADING]);
    as_person(&format!("POST /api/v1/requests/{id}/approve")).is_refused(403, "same-person");
    // Nor a browser in the place of the token.
    let login = served.ask("POST /api/v1/login", &anna, &[HEADING]).ok();
    let browser = super::browser::cookie(&login);
    let by_cookie =
        served.ask(&format!("POST /api/v1/requests/{id}/approve"), "", &[&browser, HEADING]);
    by_cookie.is_refused(403, "same-person");
    // Who may not approve, and who has not asked.
    approve(&served, &id, &carl).is_refused(403, "no-scope");
    approve(&served, &id, "").is_refused(401, "no-credential");
    for what in ["", "/extract"] {
        let path = format!("/api/v1/requests/{id}{what}");
        served.get(&path, &carl).is_refused(404, "not-found");
    }
    end(&served, &id, &carl).is_refused(404, "not-found");
    assert_eq!(listed(&served, "", &carl), []);
    let none = served.token("none", "sessions,extract,payload,hold,admin");
    served.get("/api/v1/requests", &none).is_refused(403, "no-scope");
    extract(&served, &id, &none).is_refused(403, "no-scope");
    ask(&served, ASKED, &none).is_refused(403, "no-scope");
    approve(&served, &id, &none).is_refused(403, "no-scope");
    // Nothing of all that has approved it.
    extract(&served, &id, &anna).is_refused(403, "not-approved");
    approve(&served, &id, &bert).ok();
    approve(&served, &id, &bert).is_refused(409, "approved-before");
    extract(&served, &id, &bert).is_refused(403, "no-scope");
    extract(&served, &id, &anna).ok();
    // A person may ask, and a token approve.
    let made = as_person(&format!("POST /api/v1/requests?{ASKED}")).ok().json();
    let of = made["id"].as_str().unwrap();
    assert_eq!(made["requester"]["kind"], "person");
    approve(&served, of, &anna).is_refused(403, "same-person");
    approve(&served, of, &bert).ok();
    as_person(&format!("GET /api/v1/requests/{of}/extract")).ok();
    // The token of that name does not get it: another credential has asked.
    extract(&served, of, &anna).is_refused(404, "not-found");
}

#[test]
fn who_may_only_ask_gets_packets_in_no_other_way() {
    let volume = Volume::recorded();
    let (holds, tags) = (volume.file("holds"), volume.file("tags"));
    fs::create_dir(&holds).unwrap();
    let served = start(volume, &["--hold-dir", &holds, "--tags-file", &tags]);
    let anna = served.token("anna", "request");
    for what in [
        "GET /api/v1/extract?query=port+53",
        "GET /api/v1/packets?query=port+53",
        "GET /api/v1/sessions?query=port+53",
        "GET /api/v1/summary?fields=app",
        "GET /api/v1/sql?query=select+1",
        "POST /api/v1/holds?query=port+53",
        "POST /api/v1/tags?query=port+53&tag=x",
        "POST /api/v1/jobs?kind=hold&query=port+53",
        "POST /api/v1/tokens?name=eve&scopes=extract",
    ] {
        served.ask(what, &anna, &[HEADING]).is_refused(403, "no-scope");
    }
    // An answer of somebody else has a manifest for somebody else.
    let taker = served.token("taker", "extract");
    let answer = served.get("/api/v1/extract?query=port+53", &taker).ok();
    let path = format!("/api/v1/answers/{}/manifest", answer.headers["wirespool-answer"]);
    served.get(&path, &anna).is_refused(404, "not-found");
    served.get(&path, &taker).ok();
}

#[test]
fn nothing_but_what_was_approved_is_handed_out() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    let id = asked(&served, &format!("{ASKED}&only_range=true"), &anna);
    approve(&served, &id, &bert).ok();
    let path = format!("/api/v1/requests/{id}/extract");
    for wider in ["query=tcp", "volume=volume", "whole_sessions=true", "around_ms=1000", "case=x"] {
        let answer = served.get(&format!("{path}?{wider}"), &anna);
        answer.is_refused(400, "wrong-parameter");
    }
    let all = served.get(&path, &anna).ok();
    let file = served.volume.file("range.pcapng");
    let fixed = ["extract", &*served.volume.path, "--index-dir", &served.volume.index];
    run(&[&fixed[..], &["port 53", "--only-range", "-w", &file]].concat());
    assert!(all.body == fs::read(&file).unwrap());
    // What narrows it, and where it goes on.
    let few = served.get(&format!("{path}?limit_packets=3"), &anna).ok();
    let of = format!("/api/v1/answers/{}", few.headers["wirespool-answer"]);
    let known = served.get(&of, &anna).ok().json();
    assert_eq!((&known["count"], &known["statement"]["cut_by"]), (&3.into(), &"limit".into()));
    let udp = served.get(&format!("{path}?packet_filter=tcp"), &anna).ok();
    assert!(udp.body.len() < all.body.len());
    let part = &all.body[..400];
    let hash = units::hex(&evidence::sha256(part));
    let rest = served.get(&format!("{path}?offset=400&sha256={hash}"), &anna).ok();
    assert!(rest.body == all.body[400..]);
    let other = "0".repeat(64);
    let moved = served.get(&format!("{path}?offset=400&sha256={other}"), &anna);
    moved.is_refused(409, "moved-on");
}

#[test]
fn a_request_ends_in_time_or_when_somebody_ends_it() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    let [early, late] = [0, 1].map(|_| asked(&served, &format!("{ASKED}&valid_for_s=3"), &anna));
    approve(&served, &early, &bert).ok();
    extract(&served, &early, &anna).ok();
    thread::sleep(Duration::from_millis(3200));
    extract(&served, &early, &anna).is_refused(410, "request-over");
    approve(&served, &late, &bert).is_refused(410, "request-over");
    end(&served, &late, &anna).is_refused(410, "request-over");
    let over = [(late, "expired".to_owned()), (early, "expired".to_owned())];
    assert_eq!(listed(&served, "?state=expired", &bert), over);
    // Who asked withdraws it; who may approve refuses it, or takes an approval back.
    let withdrawn = asked(&served, ASKED, &anna);
    assert_eq!(end(&served, &withdrawn, &anna).ok().json()["state"], "withdrawn");
    approve(&served, &withdrawn, &bert).is_refused(410, "request-over");
    let refused = asked(&served, ASKED, &anna);
    let why = format!("DELETE /api/v1/requests/{refused}?note=no");
    let shown = served.ask(&why, &bert, &[HEADING]).ok().json();
    assert_eq!((&shown["state"], &shown["ended_note"]), (&"refused".into(), &"no".into()));
    assert_eq!(shown["ended_by"]["name"], "bert");
    extract(&served, &refused, &anna).is_refused(410, "request-over");
    let back = asked(&served, ASKED, &anna);
    approve(&served, &back, &bert).ok();
    extract(&served, &back, &anna).ok();
    end(&served, &back, &bert).ok();
    extract(&served, &back, &anna).is_refused(410, "request-over");
    end(&served, &back, &anna).is_refused(410, "request-over");
}

#[test]
fn what_was_revoked_neither_takes_nor_approves() {
    let served = start(Volume::recorded(), &["--role", "lead=approve"]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    let lead = people::member(&served, "lea", "lead");
    let [by_token, by_person, open] = [0, 1, 2].map(|_| asked(&served, ASKED, &anna));
    approve(&served, &by_token, &bert).ok();
    let what = format!("POST /api/v1/requests/{by_person}/approve");
    served.ask(&what, "", &[&lead, HEADING]).ok();
    // A token of the same name that was made anew is another credential.
    revoke(&served, "bert");
    approve(&served, &open, &bert).is_refused(401, "no-credential");
    extract(&served, &by_token, &anna).is_refused(403, "not-approved");
    let new_bert = served.token("bert", "approve");
    extract(&served, &by_token, &anna).is_refused(403, "not-approved");
    approve(&served, &open, &new_bert).ok();
    extract(&served, &open, &anna).ok();
    // The scope alone was taken.
    let file = served.volume.file("tokens");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("bert:approve:", "bert:sessions:")).unwrap();
    thread::sleep(Duration::from_millis(1100));
    extract(&served, &open, &anna).is_refused(403, "not-approved");
    // A person who is kept out.
    extract(&served, &by_person, &anna).ok();
    let people = served.volume.file("people");
    run(&["serve", "person", "disable", "lea", "--people-file", &people]).done();
    thread::sleep(Duration::from_millis(1100));
    extract(&served, &by_person, &anna).is_refused(403, "not-approved");
    run(&["serve", "person", "enable", "lea", "--people-file", &people]).done();
    thread::sleep(Duration::from_millis(1100));
    extract(&served, &by_person, &anna).ok();
    // Who asked.
    revoke(&served, "anna");
    extract(&served, &by_person, &anna).is_refused(401, "no-credential");
    let new_anna = served.token("anna", "request");
    extract(&served, &by_person, &new_anna).is_refused(404, "not-found");
    assert_eq!(listed(&served, "", &new_anna), []);
}

#[test]
fn the_filter_of_who_asks_holds_whatever_was_approved() {
    let served = start(Volume::recorded(), &[]);
    let lab = filtered(&served, "lab", "request", "port 53");
    let bert = served.token("bert", "approve");
    let near = filtered(&served, "near", "approve", "port 53");
    let far = filtered(&served, "far", "approve", "port 443");
    let made = ask(&served, "query=&case=17&purpose=x", &lab).ok().json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["query"], &made["filter"]), (&"port 53".into(), &"port 53".into()));
    assert_eq!(made["only_range"], true);
    // Out of the filter leads nothing.
    let out = ask(&served, "query=port+443)+or+(port+53&case=17&purpose=x", &lab);
    out.is_refused(400, "wrong-query");
    // Who sees another part does not know of it.
    approve(&served, id, &far).is_refused(404, "not-found");
    assert_eq!((listed(&served, "", &far).len(), listed(&served, "", &near).len()), (0, 1));
    approve(&served, id, &near).ok();
    let taken = extract(&served, id, &lab).ok();
    assert!(taken.body == written(&served, "port 53"));
    for wider in ["whole_sessions=true", "around_ms=5"] {
        let answer = served.get(&format!("/api/v1/requests/{id}/extract?{wider}"), &lab);
        answer.is_refused(400, "wrong-parameter");
    }
    // Another filter by now: both hold.
    let other = asked(&served, "query=&case=17&purpose=x", &lab);
    approve(&served, &other, &bert).ok();
    let file = served.volume.file("tokens");
    let text = fs::read_to_string(&file).unwrap();
    let changed = text.lines().map(|line| match line.strip_prefix("lab:") {
        Some(_) => line.replace("port 53", "port 443") + "\n",
        None => line.to_owned() + "\n",
    });
    fs::write(&file, changed.collect::<String>()).unwrap();
    thread::sleep(Duration::from_millis(1100));
    let none = extract(&served, &other, &lab).ok();
    let of = format!("/api/v1/answers/{}", none.headers["wirespool-answer"]);
    assert_eq!(served.get(&of, &lab).ok().json()["count"], 0);
}

#[test]
fn of_many_who_approve_at_once_one_does() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let tokens: Vec<String> =
        (0..6).map(|number| served.token(&format!("bert{number}"), "approve")).collect();
    for _ in 0..5 {
        let id = asked(&served, ASKED, &anna);
        let statuses: Vec<u16> = thread::scope(|scope| {
            let one = |token: &str| approve(&served, &id, token).status;
            let all: Vec<_> = tokens.iter().map(|token| scope.spawn(move || one(token))).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let count = |status: u16| statuses.iter().filter(|it| **it == status).count();
        assert_eq!((count(200), count(409)), (1, 5), "{statuses:?}");
    }
    // Whatever comes first, of an approval and an end only the end stays.
    for _ in 0..5 {
        let id = asked(&served, ASKED, &anna);
        thread::scope(|scope| {
            scope.spawn(|| approve(&served, &id, &tokens[0]));
            scope.spawn(|| end(&served, &id, &anna).ok());
        });
        extract(&served, &id, &anna).is_refused(410, "request-over");
    }
    run(&["audit", "verify", &served.volume.file("audit")]).done();
}

#[test]
fn what_is_missing_or_too_much_is_said() {
    let served = start(Volume::recorded(), &[]);
    let anna = served.token("anna", "request");
    let bert = served.token("bert", "approve");
    for wrong in [
        "query=port+53",
        "query=port+53&case=17",
        "query=port+53&purpose=x",
        "query=port+53&case=+&purpose=x",
        "query=port+53&case=17&purpose=x&valid_for_s=0",
        "query=port+53&case=17&purpose=x&valid_for_s=2592001",
        "query=country+%3D+NL&case=17&purpose=x",
        "query=port+53&case=17&purpose=x&until=1",
    ] {
        ask(&served, wrong, &anna).is_refused(400, "wrong-parameter");
    }
    let wrong = ask(&served, "query=hsot+1.2.3.4&case=17&purpose=x", &anna);
    wrong.is_refused(400, "wrong-query");
    let no_volume = ask(&served, &format!("{ASKED}&volume=other"), &anna);
    no_volume.is_refused(404, "not-found");
    let long = "x".repeat(1025);
    ask(&served, &format!("query=&case={long}&purpose=x"), &anna).is_refused(413, "too-long");
    // A page of another origin changes nothing.
    let bare = served.ask(&format!("POST /api/v1/requests?{ASKED}"), &anna, &[]);
    bare.is_refused(400, "wrong-parameter");
    let id = asked(&served, ASKED, &anna);
    let cross = served.ask(
        &format!("POST /api/v1/requests/{id}/approve"),
        &bert,
        &[HEADING, "Sec-Fetch-Site: cross-site"],
    );
    cross.is_refused(403, "cross-origin");
    // Text from outside stays text, in the audit, too.
    let odd = "query=&case=%1b%5b31m%0a&purpose=%22%3cb%3e%e2%80%ae";
    let made = ask(&served, odd, &anna).ok().json();
    assert_eq!(made["case"], "\u{1b}[31m");
    let audit = served.volume.file("audit");
    let shown = run(&["audit", "show", &audit]).done().out;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    // One who asks leaves room to others.
    for _ in 0..98 {
        ask(&served, ASKED, &anna).ok();
    }
    ask(&served, ASKED, &anna).is_refused(409, "too-many");
    end(&served, &id, &anna).ok();
    ask(&served, ASKED, &anna).ok();
    // Who asked and who approved has to be put down.
    let tokens = served.volume.file("tokens");
    let words = ["serve", &served.volume.path, "--token-file", &tokens];
    let requests = served.volume.file("requests");
    run(&[&words[..], &["--requests-file", &requests]].concat()).fails_with(2, "--audit");
    let bare = Served::over(Volume::recorded());
    let anna = bare.token("anna", "request");
    ask(&bare, ASKED, &anna).is_refused(404, "not-found");
    bare.get("/api/v1/requests", &anna).is_refused(404, "not-found");
}
