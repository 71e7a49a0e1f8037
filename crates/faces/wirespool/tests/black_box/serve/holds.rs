//! Holds over the network: made by the rules of `hold`, seen and removed by whom they concern.

use std::fs;

use serde_json::Value;

use super::{Answer, Served};
use crate::machine::{Volume, run};

const HEADING: &str = "X-Wirespool: 1";

fn with_holds(flags: &[&str]) -> (Served, String) {
    let volume = Volume::recorded();
    let folder = volume.file("holds");
    fs::create_dir(&folder).unwrap();
    let audit = volume.file("audit.jsonl");
    let fixed = ["--hold-dir", &*folder, "--audit", &*audit];
    (Served::with(volume, &[&fixed[..], flags].concat()), folder)
}

fn hold(served: &Served, query: &str, token: &str) -> Answer {
    served.ask(&format!("POST /api/v1/holds?query={query}"), token, &[HEADING])
}

fn listed(served: &Served, token: &str) -> Vec<String> {
    let holds = served.get("/api/v1/holds", token).ok().json();
    let holds = holds["holds"].as_array().unwrap().iter();
    holds.map(|hold| hold["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_hold_is_what_the_verb_makes_and_is_removed_again() {
    let (served, folder) = with_holds(&[]);
    let holder = served.token("holder", "hold");
    let reader = served.token("reader", "sessions");
    let held = hold(&served, "port+53", &holder).ok().json();
    assert_eq!((&held["hold"]["packets"], &held["count"]), (&16.into(), &16.into()), "{held}");
    assert_eq!(held["statement"]["state"], "complete");
    let file = held["hold"]["file"].as_str().unwrap();
    let path = format!("{folder}/{file}");
    run(&["verify-extract", &format!("{path}.json"), &path]).done();
    let expected = served.volume.file("expected.pcapng");
    let volume = &*served.volume.path;
    run(&["extract", volume, "--index-dir", &served.volume.index, "port 53", "-w", &expected]);
    assert_eq!(fs::read(&path).unwrap(), fs::read(&expected).unwrap());
    let shown = run(&["hold", "--list", "--hold-dir", &folder, "--json"]).done().out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let holds = served.get("/api/v1/holds", &reader).ok().json();
    assert_eq!(holds["holds"], shown);
    let remove = |name: &str, token: &str| {
        served.ask(&format!("DELETE /api/v1/holds/{name}"), token, &[HEADING])
    };
    remove(file, &reader).is_refused(403, "no-scope");
    remove("other.pcapng", &holder).is_refused(404, "not-found");
    remove("..%2ftokens", &holder).is_refused(404, "not-found");
    assert_eq!(remove(file, &holder).ok().json()["file"], file);
    assert_eq!(listed(&served, &reader), [""; 0]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    // Each change was put down before it was made.
    let audit = served.volume.file("audit.jsonl");
    let text = fs::read_to_string(&audit).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changes: Vec<Value> = lines.filter(|line| line["credential"] == "holder").collect();
    let kinds: Vec<&str> = changes.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 8, "{kinds:?}");
    assert_eq!((kinds[0], kinds[1]), ("begun", "request"));
    assert_eq!(changes[1]["sha256"].as_str().unwrap().len(), 64, "{}", changes[1]);
    assert_eq!((&changes[3]["status"], &changes[3]["ended"]), (&404.into(), &"refused".into()));
    run(&["audit", "verify", &audit]).done();
}

#[test]
fn other_pages_cannot_hold_and_a_filter_is_not_left() {
    let (served, folder) = with_holds(&[]);
    let holder = served.token("holder", "hold,sessions");
    // What a page of another origin can have a browser send: the cookie at most, and no heading.
    let login = served.ask("POST /api/v1/login", &holder, &[HEADING]).ok();
    let cookie = format!("Cookie: {}", login.headers["set-cookie"].split(';').next().unwrap());
    for what in ["POST /api/v1/holds?query=port+53", "DELETE /api/v1/holds/x"] {
        served.ask(what, "", &[&cookie]).is_refused(400, "wrong-parameter");
    }
    let preflight = served.ask("OPTIONS /api/v1/holds", "", &["Origin: https://other.example"]);
    preflight.is_refused(401, "no-credential");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let wrong = served.ask("PUT /api/v1/holds", &holder, &[HEADING]);
    wrong.is_refused(405, "wrong-method");
    assert_eq!(wrong.headers["allow"], "GET, POST");
    served.ask("POST /api/v1/holds?query=port+53", "", &[&cookie, HEADING]).ok();
    let all = listed(&served, &holder);
    assert_eq!(all.len(), 1);
    // A credential with a filter: it holds what it sees, and does not see the other's, not even one
    // that has the same packets.
    hold(&served, "port+443", &holder).ok();
    let all = listed(&served, &holder);
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", "lab", "--scope", "sessions,hold"];
    let filter = ["--filter", "port 443", "--token-file", &file];
    let lab = run(&[&words[..], &filter].concat()).done().out.trim().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(listed(&served, &lab), [""; 0]);
    for file in &all {
        let not_its = format!("DELETE /api/v1/holds/{file}");
        served.ask(&not_its, &lab, &[HEADING]).is_refused(404, "not-found");
    }
    let none = hold(&served, "port+53", &lab).ok().json();
    assert_eq!(none["hold"]["packets"], 0, "{none}");
    hold(&served, "port+443)+or+(port+53", &lab).is_refused(400, "wrong-query");
    let held = hold(&served, "", &lab).ok().json();
    assert!(held["hold"]["packets"].as_u64().unwrap() > 0, "{held}");
    assert_eq!((listed(&served, &lab).len(), listed(&served, &holder).len()), (2, 4));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_of_it_is_left() {
    let (served, folder) = with_holds(&["--hold-size", "4K"]);
    let holder = served.token("holder", "hold");
    let full = hold(&served, "", &holder);
    full.is_refused(507, "holds-full");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    hold(&served, "hsot+x", &holder).is_refused(400, "wrong-query");
    // A folder that cannot be used is nothing that is wrong with the volume.
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    hold(&served, "port+53", &holder).is_refused(500, "hold-failed");
    let bare = Served::over(Volume::recorded());
    let holder = bare.token("holder", "hold,sessions");
    hold(&bare, "port+53", &holder).is_refused(404, "not-found");
    bare.get("/api/v1/holds", &holder).is_refused(404, "not-found");
}
