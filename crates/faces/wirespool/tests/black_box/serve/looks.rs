//! What is looked at over the network beside what the verbs print: inspection, ring, recordings,
//! gaps, qualification, findings; and which part of it a credential with a filter sees.

use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::Served;
use crate::golden::capture;
use crate::machine::{Volume, run};
use crate::running::{recorder, taken};

const LOOKS: [&str; 6] = ["inspection", "ring", "recordings", "gaps", "qualification", "findings"];

/// A token with a filter besides.
fn filtered(served: &Served, name: &str, scopes: &str, filter: &str) -> String {
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", name, "--scope", scopes, "--filter", filter];
    let made = run(&[&words[..], &["--token-file", &file]].concat()).done();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    made.out.trim().to_owned()
}

#[test]
fn an_inspection_is_what_the_verb_prints_and_the_rest_agrees_with_it() {
    let served = Served::over(Volume::recorded());
    let reader = served.token("reader", "sessions");
    let expected = run(&["inspect", &served.volume.path, "--json"]).done().out;
    let found = served.get("/api/v1/inspection", &reader).ok();
    assert_eq!(found.text(), expected);
    let inspected = found.json();
    let recordings = served.get("/api/v1/recordings", &reader).ok().json();
    assert_eq!(recordings["recordings"], inspected["recordings"]);
    assert_eq!(recordings["is_narrowed"], false);
    let ring = served.get("/api/v1/ring?columns=8&rows=4", &reader).ok().json();
    assert_eq!(ring["slots"], inspected["slots"]);
    assert_eq!(ring["members"][0]["state"], inspected["members"][0]["state"]);
    let cells = ring["cells"].as_array().unwrap();
    assert!(!cells.is_empty() && cells.len() <= 32, "{ring}");
    let slots: u64 = cells.iter().map(|cell| cell["slots"].as_u64().unwrap()).sum();
    assert_eq!(Some(slots), ring["slots"].as_u64(), "each slot is in one cell");
    let heads = cells.iter().filter(|cell| cell["head"] == true);
    assert_eq!(heads.count(), 1);
    // Slot by slot.
    let ring = served.get("/api/v1/ring", &reader).ok().json();
    assert_eq!(ring["slots_per_cell"], 1);
    let cells = ring["cells"].as_array().unwrap();
    let held = cells.iter().filter(|cell| cell["content"] != "unwritten");
    assert!(held.clone().count() > 0 && held.clone().all(|cell| cell["age"].is_u64()), "{ring}");
    let gaps = served.get("/api/v1/gaps", &reader).ok().json();
    assert_eq!((&gaps["count"], &gaps["statement"]["state"]), (&0.into(), &"complete".into()));
    let measured = served.get("/api/v1/qualification", &reader).ok().json();
    assert_eq!(measured["volume_id"], inspected["volume_id"]);
    assert_eq!(measured["reports"].as_array().unwrap().len(), 0);
    // Of a volume that nobody records to.
    let volume = &*served.volume.path;
    let diagnosed = run(&["diagnose", "recorder", volume, "--json"]).done().out;
    let findings = served.get("/api/v1/findings", &reader).ok();
    assert_eq!(findings.text(), diagnosed);
}

#[test]
fn who_may_not_sees_nothing_and_wrong_words_are_refused() {
    let served = Served::over(Volume::recorded());
    let (reader, bare) = (served.token("reader", "sessions"), served.token("bare", ""));
    for look in LOOKS {
        let path = format!("/api/v1/{look}");
        served.get(&path, "").is_refused(401, "no-credential");
        served.get(&format!("{path}?volume=other"), &reader).is_refused(404, "not-found");
        served.get(&format!("{path}?volum=x"), &reader).is_refused(400, "wrong-parameter");
        served.ask(&format!("POST {path}"), &reader, &[]).is_refused(405, "wrong-method");
        if ["inspection", "recordings", "gaps"].contains(&look) {
            served.get(&path, &bare).is_refused(403, "no-scope");
        } else {
            served.get(&path, &bare).ok();
        }
    }
    for wrong in [
        "ring?columns=513",
        "ring?columns=512&rows=512",
        "ring?rows=0",
        "gaps?limit=10001",
        "findings?for_ms=10001",
        "findings?for_ms=x",
    ] {
        let path = format!("/api/v1/{wrong}");
        served.get(&path, &reader).is_refused(400, "wrong-parameter");
    }
    served.get("/api/v1/gaps?query=hsot+x", &reader).is_refused(400, "wrong-query");
    // Its filter bounds times, and it sees no counts.
    let past = filtered(&served, "past", "sessions", "before 2001-01-01");
    served.get("/api/v1/inspection", &past).is_refused(403, "no-scope");
    let none = served.get("/api/v1/recordings", &past).ok().json();
    assert_eq!(
        (&none["recordings"], &none["is_narrowed"]),
        (&Value::from([(); 0].as_slice().iter().map(|()| 0).collect::<Vec<i64>>()), &true.into())
    );
    let lab = filtered(&served, "lab", "sessions", "port 53");
    let some = served.get("/api/v1/recordings", &lab).ok().json();
    let recording = &some["recordings"][0];
    assert!(recording["start_ns"].is_i64() && recording.get("packets").is_none(), "{some}");
    served.get("/api/v1/ring", &lab).ok();
}

#[test]
fn a_recorder_that_runs_is_looked_at() {
    let volume = Volume::empty();
    let (mut child, mut input) = recorder(&volume);
    input.write_all(&capture(1_000_000_000, 0..20)).unwrap();
    taken(&volume, 20);
    let served = Served::over(volume);
    let reader = served.token("reader", "sessions");
    let findings = served.get("/api/v1/findings?for_ms=200", &reader).ok().json();
    let looked_at = findings["looked_at"].to_string();
    assert!(looked_at.contains("the recorder that runs"), "{findings}");
    let measured = served.get("/api/v1/qualification", &reader).ok().json();
    assert!(measured["devices"].is_array() && measured.get("qualified").is_none(), "{measured}");
    let ring = served.get("/api/v1/ring", &reader).ok().json();
    assert_eq!(ring["members"].as_array().unwrap().len(), 1);
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn answers_are_as_the_document_describes_them() {
    let served = Served::over(Volume::recorded());
    let reader = served.token("reader", "sessions");
    let document = served.get("/api/v1/openapi.json", &reader).ok().json();
    for look in LOOKS {
        let path = format!("/api/v1/{look}");
        let schema = &document["paths"][&path]["get"]["responses"]["200"]["content"];
        let name = schema["application/json"]["schema"]["$ref"].as_str().unwrap();
        // The references of a schema lead into the document.
        let of = serde_json::json!({ "$ref": name, "components": document["components"] });
        let validator = jsonschema::validator_for(&of).unwrap();
        let found = served.get(&path, &reader).ok().json();
        let wrong: Vec<String> =
            validator.iter_errors(&found).map(|error| error.to_string()).collect();
        assert_eq!(wrong, [""; 0], "{look}: {found}");
    }
}

#[test]
fn holds_are_marked_in_the_ring_for_who_may_see_them() {
    let volume = Volume::recorded();
    let folder = volume.file("holds");
    fs::create_dir(&folder).unwrap();
    let served = Served::with(volume, &["--hold-dir", &folder]);
    let holder = served.token("holder", "hold,sessions");
    let marked = |token: &str| {
        let ring = served.get("/api/v1/ring", token).ok().json();
        let cells = ring["cells"].as_array().unwrap().iter();
        cells.filter(|cell| cell["holds"] == 1).count()
    };
    assert_eq!(marked(&holder), 0);
    let heading = ["X-Wirespool: 1"];
    served.ask("POST /api/v1/holds?query=port+53", &holder, &heading).ok();
    assert!(marked(&holder) > 0);
    let lab = filtered(&served, "lab", "sessions", "port 443");
    assert_eq!(marked(&lab), 0, "it is not one of its own");
}

#[test]
fn reports_of_disks_are_shown_and_what_is_none_is_refused() {
    let volume = Volume::recorded();
    let none = volume.file("none.json");
    fs::write(&none, "{}").unwrap();
    let tokens = volume.file("tokens");
    crate::machine::write_key(&tokens, "");
    let words = ["serve", &volume.path, "--token-file", &tokens, "--qualification", &none];
    run(&words).fails_with(3, "none.json");
    let report = volume.file("report.json");
    let target = volume.file("target");
    fs::create_dir(&target).unwrap();
    let sizes = ["--size", "64M", "--blocks", "2", "--rate", "1M", "-o", &report];
    run(&[&["qualify", &target][..], &sizes, &["--part", "fill"]].concat());
    let served = Served::with(volume, &["--qualification", &report]);
    let bare = served.token("bare", "");
    let measured = served.get("/api/v1/qualification", &bare).ok().json();
    let shown = &measured["reports"][0];
    let expected: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!((&shown["file"], &shown["report"]), (&"report.json".into(), &expected));
    assert_eq!(shown["is_of_volume"], false, "it was made without");
}
