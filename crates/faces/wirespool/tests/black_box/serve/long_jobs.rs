//! Long jobs over the network: started, watched, ended early; they go on when their client leaves,
//! and end with the service.

use std::fs;
use std::io::Read as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Answer, PATIENCE, Served, send, until};
use crate::machine::{Volume, run};

const HEADING: &str = "X-Wirespool: 1";

fn post(served: &Served, words: &str, token: &str) -> Answer {
    served.ask(&format!("POST /api/v1/jobs?{words}"), token, &[HEADING])
}

fn started(served: &Served, words: &str, token: &str) -> String {
    let job = post(served, words, token).ok().json();
    job["id"].as_str().unwrap().to_owned()
}

fn job(served: &Served, id: &str, token: &str) -> Value {
    served.get(&format!("/api/v1/jobs/{id}"), token).ok().json()
}

/// Waits until a job has ended.
fn ended(served: &Served, id: &str, token: &str) -> Value {
    let began = Instant::now();
    loop {
        let job = job(served, id, token);
        if !["waiting", "running"].contains(&job["state"].as_str().unwrap()) {
            return job;
        }
        assert!(began.elapsed() < PATIENCE, "{job}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_job_finds_what_the_verb_finds_and_is_watched_to_its_end() {
    let volume = Volume::recorded();
    let audit = volume.file("audit.jsonl");
    let served = Served::with(volume, &["--audit", &audit]);
    let admin = served.token("admin", "admin");
    let id = started(&served, "kind=verify", &admin);
    let events = served.get(&format!("/api/v1/jobs/{id}/events"), &admin).ok();
    assert_eq!(events.headers["content-type"], "text/event-stream");
    let text = events.text();
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let data = last.strip_prefix("event: end\ndata: ").unwrap_or_else(|| panic!("{text}"));
    let found: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&found["state"], &found["is_clean"]), (&"done".into(), &true.into()), "{found}");
    let printed = run(&["verify", &served.volume.path, "--json"]).done().out;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(found["result"], printed);
    assert_eq!(job(&served, &id, &admin), found);
    // Nobody records, so a scrub may write.
    for words in ["kind=scrub&dry_run=true", "kind=scrub"] {
        let id = started(&served, words, &admin);
        let scrubbed = ended(&served, &id, &admin);
        assert_eq!((&scrubbed["state"], &scrubbed["is_clean"]), (&"done".into(), &true.into()));
    }
    let jobs = served.get("/api/v1/jobs", &admin).ok().json();
    let kinds: Vec<&str> =
        jobs["jobs"].as_array().unwrap().iter().map(|job| job["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["scrub", "scrub", "verify"], "the newest first");
    let over = served.ask(&format!("DELETE /api/v1/jobs/{id}"), &admin, &[HEADING]);
    over.is_refused(409, "job-ended");
    run(&["audit", "verify", &audit]).done();
    let text = fs::read_to_string(&audit).unwrap();
    let begun = text.lines().filter(|line| line.contains("\"begun\"") && line.contains("/jobs"));
    assert!(begun.count() >= 4, "{text}");
}

#[test]
fn damage_is_found_and_a_hold_is_kept() {
    let volume = Volume::recorded();
    let folder = volume.file("holds");
    fs::create_dir(&folder).unwrap();
    let served = Served::with(volume, &["--hold-dir", &folder]);
    let admin = served.token("admin", "admin,sessions");
    let id = started(&served, "kind=hold&query=port+53", &admin);
    let found = ended(&served, &id, &admin);
    assert_eq!((&found["state"], &found["result"]["packets"]), (&"done".into(), &16.into()));
    let holds = served.get("/api/v1/holds", &admin).ok().json();
    assert_eq!(holds["holds"][0]["file"], found["result"]["file"]);
    // One byte of the packets is another one.
    let mut bytes = fs::read(&served.volume.path).unwrap();
    let inspected = run(&["inspect", &served.volume.path, "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    let begin = inspected["layout"]["ring_begin"].as_u64().unwrap();
    let piece = inspected["piece_bytes"].as_u64().unwrap();
    let at = usize::try_from(begin + piece + 4096 + 100).unwrap();
    bytes[at] ^= 1;
    fs::write(&served.volume.path, &bytes).unwrap();
    let id = started(&served, "kind=verify", &admin);
    let found = ended(&served, &id, &admin);
    let verdict = run(&["verify", &served.volume.path]).code == Some(0);
    assert_eq!((&found["state"], &found["is_clean"]), (&"done".into(), &verdict.into()));
}

#[test]
fn who_may_not_starts_nothing_and_wrong_words_are_refused() {
    let served = Served::over(Volume::recorded());
    let admin = served.token("admin", "admin");
    let reader = served.token("reader", "sessions,payload,extract,hold");
    for what in [
        "GET /api/v1/jobs",
        "POST /api/v1/jobs?kind=verify",
        "GET /api/v1/jobs/x",
        "GET /api/v1/jobs/x/events",
        "DELETE /api/v1/jobs/x",
    ] {
        served.ask(what, &reader, &[HEADING]).is_refused(403, "no-scope");
        served.ask(what, "", &[HEADING]).is_refused(401, "no-credential");
    }
    served.ask("POST /api/v1/jobs?kind=verify", &admin, &[]).is_refused(400, "wrong-parameter");
    for wrong in [
        "",
        "kind=format",
        "kind=verify&query=x",
        "kind=verify&dry_run=true",
        "kind=scrub&only_range=true",
    ] {
        post(&served, wrong, &admin).is_refused(400, "wrong-parameter");
    }
    post(&served, "kind=hold&query=port+53", &admin).is_refused(404, "not-found");
    post(&served, "kind=verify&volume=other", &admin).is_refused(404, "not-found");
    for what in ["GET /api/v1/jobs/x", "GET /api/v1/jobs/x/events", "DELETE /api/v1/jobs/x"] {
        served.ask(what, &admin, &[HEADING]).is_refused(404, "not-found");
    }
    assert_eq!(served.get("/api/v1/jobs", &admin).ok().json()["jobs"], Value::Array(vec![]));
}

/// A volume that takes a while to be verified.
fn large() -> Volume {
    let volume = Volume::of_size("512M");
    let capture = volume.file("large.pcap");
    let frame = |number: u64| (1_000_000_000 + number, vec![7; 60_000]);
    fs::write(&capture, crate::golden::pcap((0..5000).map(frame))).unwrap();
    volume.record(&["--read", &capture]).done();
    fs::remove_file(&capture).unwrap();
    volume
}

fn signal(name: &str, process: u32) -> bool {
    let kill = std::process::Command::new("kill").args([name, &process.to_string()]).status();
    kill.unwrap().success()
}

fn is_there(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}/exe")).read_link().is_ok()
}

/// Stops the process of a job, which then takes as long as it likes.
fn stopped(served: &Served) -> u32 {
    let began = Instant::now();
    loop {
        if let [worker] = served.workers()[..]
            && signal("-STOP", worker)
        {
            return worker;
        }
        assert!(began.elapsed() < PATIENCE, "no worker was seen");
    }
}

/// Waits until a job runs, which it does a moment after its process is there.
fn runs(served: &Served, id: &str, token: &str) {
    until("the job runs", || job(served, id, token)["state"] == "running");
}

#[test]
fn a_job_goes_on_when_who_watches_leaves() {
    let served = Served::over(large());
    let admin = served.token("admin", "admin");
    let id = started(&served, "kind=verify", &admin);
    let worker = stopped(&served);
    let mut watching = served.connect();
    send(&mut watching, &format!("GET /api/v1/jobs/{id}/events"), &admin, &[]);
    let mut first = [0; 512];
    let count = watching.read(&mut first).unwrap();
    assert!(String::from_utf8_lossy(&first[..count]).starts_with("HTTP/1.1 200"));
    drop(watching);
    assert!(signal("-CONT", worker));
    let found = ended(&served, &id, &admin);
    assert_eq!(found["state"], "done", "{found}");
    assert_eq!((&found["done"], found["of"].as_u64() > Some(0)), (&found["of"], true), "{found}");
}

#[test]
fn a_job_is_ended_at_once_and_with_the_service() {
    let mut served = Served::over(large());
    let admin = served.token("admin", "admin");
    let id = started(&served, "kind=verify", &admin);
    let worker = stopped(&served);
    runs(&served, &id, &admin);
    let second = started(&served, "kind=verify", &admin);
    assert_eq!(job(&served, &second, &admin)["state"], "waiting", "one after the other");
    let began = Instant::now();
    served.ask(&format!("DELETE /api/v1/jobs/{id}"), &admin, &[HEADING]).ok();
    while is_there(worker) {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    // A tenth of a second is promised; the machine of this test has other things to do.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let found = ended(&served, &id, &admin);
    assert_eq!(
        (&found["state"], &found["reason"]),
        (&"cancelled".into(), &"admin ended it".into())
    );
    let worker = stopped(&served);
    runs(&served, &second, &admin);
    assert!(signal("-TERM", served.child.id()));
    let line = served.hear(&format!("job {second}"));
    assert!(line.contains("ended early: the service ended"), "{line}");
    served.hear("ended in order");
    assert!(served.child.wait().unwrap().success());
    let began = Instant::now();
    while is_there(worker) {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn who_is_not_known_any_more_watches_no_job() {
    let served = Served::over(large());
    let admin = served.token("admin", "admin");
    let watcher = served.token("watcher", "admin");
    let id = started(&served, "kind=verify", &admin);
    let worker = stopped(&served);
    let mut watching = served.connect();
    send(&mut watching, &format!("GET /api/v1/jobs/{id}/events"), &watcher, &[]);
    let mut said = vec![0; 64];
    watching.read_exact(&mut said).unwrap();
    served.ask("DELETE /api/v1/tokens/watcher", &admin, &[HEADING]).ok();
    watching.read_to_end(&mut said).unwrap_or_default();
    let events = Answer::of(&said);
    assert!(events.status == 200 && !events.is_whole, "{}", events.text());
    // The job is another's, and goes on.
    runs(&served, &id, &admin);
    assert!(signal("-CONT", worker));
    assert_eq!(ended(&served, &id, &admin)["state"], "done");
}
