//! The audit: each request has its line, what cannot be put down is not answered, and whoever
//! changes a line is found out.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;

use super::{Served, large, send, until};
use crate::machine::{Ran, Volume, is_on_overlayfs, run};

/// A service with an audit in the folder of its volume.
fn audited(volume: Volume, flags: &[&str]) -> (Served, String) {
    let file = volume.file("audit.jsonl");
    let served = Served::with(volume, &[&["--audit", &*file], flags].concat());
    (served, file)
}

fn lines(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    // A torn one is none.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Each line has the number behind the one before.
#[track_caller]
fn are_numbered(file: &str) {
    for (number, line) in (1_u64..).zip(lines(file)) {
        assert_eq!(line["seq"], number, "{line}");
    }
}

/// Lines of requests, ended ones.
fn requests(file: &str) -> Vec<Value> {
    lines(file).into_iter().filter(|line| line["event"] == "request").collect()
}

#[track_caller]
fn whole(files: &[&str]) -> Ran {
    run(&[&["audit", "verify"], files].concat()).done()
}

/// Waits until so many requests have ended.
#[track_caller]
fn ended(file: &str, count: usize) -> Vec<Value> {
    until("requests are put down", || requests(file).len() >= count);
    let requests = requests(file);
    assert_eq!(requests.len(), count, "{requests:#?}");
    requests
}

fn end(mut served: Served) -> Volume {
    served.signal("-TERM");
    served.hear("head ");
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    // The folder goes on while the service does not.
    std::mem::replace(&mut served.volume, Volume::empty())
}

#[test]
fn each_request_has_its_line_with_what_came_out_and_no_secret() {
    let (served, file) = audited(Volume::recorded(), &[]);
    let token = served.token("anna", "sessions,extract");
    served.get("/api/v1/sessions?query=port+53&limit=1", &token).ok();
    let extract = served.get("/api/v1/extract?query=port+53+and+since+2001-01-01", &token).ok();
    served.get("/api/v1/packets", &token).is_refused(403, "no-scope");
    served.get("/api/v1/extract", "wirespool_wrong").is_refused(401, "no-credential");
    served.get("/api/v1/extract", "").is_refused(401, "no-credential");
    served.get("/api/v1/health", "").ok();
    served.get("/", "").ok();
    let login = served.ask("POST /api/v1/login", &token, &["X-Wirespool: 1"]).ok();
    let cookie = login.headers["set-cookie"].split(';').next().unwrap().to_owned();
    let heading = format!("Cookie: {cookie}");
    served.ask("GET /api/v1/whoami", "", &[&heading]).ok();
    served.ask("POST /api/v1/logout", "", &[&heading, "X-Wirespool: 1"]).ok();
    let found = ended(&file, 8);
    let of = |at: usize, name: &str| found[at][name].clone();
    let expected = [
        ("anna", "token", "/api/v1/sessions", 200, "cut"),
        ("anna", "token", "/api/v1/extract", 200, "complete"),
        ("anna", "token", "/api/v1/packets", 403, "refused"),
        ("", "token", "/api/v1/extract", 401, "refused"),
        ("", "", "/api/v1/extract", 401, "refused"),
        ("anna", "token", "/api/v1/login", 200, "complete"),
        ("anna", "cookie", "/api/v1/whoami", 200, "complete"),
        ("anna", "cookie", "/api/v1/logout", 200, "complete"),
    ];
    for (at, (name, kind, path, status, ended)) in expected.into_iter().enumerate() {
        let text = |name: &str| of(at, name).as_str().unwrap_or_default().to_owned();
        let line =
            (text("credential"), text("kind"), text("path"), of(at, "status"), text("ended"));
        let expected = (name.into(), kind.into(), path.into(), Value::from(status), ended.into());
        assert_eq!(line, expected);
        assert!(text("from").starts_with("127.0.0.1:"));
    }
    assert_eq!((of(0, "query"), of(0, "cut_by")), ("port 53".into(), "limit".into()));
    assert_eq!((of(1, "volume"), of(1, "bytes")), ("volume".into(), extract.body.len().into()));
    assert!(of(1, "range")[0].as_str().unwrap().starts_with("2001-01-01"), "{}", found[1]);
    // The hash is that of the manifest.
    let id = &extract.headers["wirespool-answer"];
    let manifest = served.get(&format!("/api/v1/answers/{id}/manifest"), &token).ok().json();
    for hash in ["sha256", "blake3"] {
        assert_eq!(of(1, hash), manifest["outputs"][0][hash], "{hash}");
    }
    are_numbered(&file);
    let text = fs::read_to_string(&file).unwrap();
    let secret = cookie.split('=').nth(1).unwrap();
    assert!(!text.contains(&token) && !text.contains(secret) && !text.contains("wirespool_wrong"));
    // sha256sum finds the same.
    let sum = Command::new("sh").args(["-c", "head -n 1 \"$0\" | sha256sum", &file]).output();
    let sum = String::from_utf8(sum.unwrap().stdout).unwrap();
    assert_eq!(lines(&file)[1]["prev"], sum[..64]);
    whole(&[&file]);
}

#[test]
fn a_query_cannot_write_lines_or_steer_a_terminal() {
    let (mut served, file) = audited(Volume::recorded(), &[]);
    let token = served.token("anna", "sessions");
    let query = "sni+%22a%0a%7b%22seq%22:9%7d%1b%5b2J%e2%80%ae%22";
    served.get(&format!("/api/v1/sessions?query={query}"), &token);
    served.get(&format!("/api/v1/sessions/{query}?{}", "x".repeat(9000)), &token);
    let found = ended(&file, 2);
    assert_eq!(found[0]["query"], "sni \"a\n{\"seq\":9}\u{1b}[2J\u{202e}\"");
    assert_eq!(found[1]["parameters"].as_str().unwrap().len(), 1024);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{text}");
    assert_eq!(text.lines().count(), lines(&file).len());
    let shown = run(&["audit", "show", &file]).done().out;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains("/api/v1/sessions")).count(), 2);
    let said = served.hear("request ");
    assert!(said.contains("anna") && said.contains(" token"), "{said}");
}

#[test]
fn fifty_clients_at_once_get_lines_without_a_gap_and_a_second_service_is_refused() {
    let (served, file) = audited(Volume::recorded(), &[]);
    let token = served.token("anna", "sessions");
    thread::scope(|scope| {
        for _ in 0..50 {
            let (served, token) = (&served, &token);
            scope.spawn(move || {
                for path in ["/api/v1/whoami", "/api/v1/fields", "/api/v1/extract"] {
                    served.get(path, token);
                }
            });
        }
    });
    ended(&file, 150);
    are_numbered(&file);
    let tokens = served.volume.file("tokens");
    let words = ["serve", &served.volume.path, "--token-file", &tokens];
    let second = run(&[&words[..], &["--listen", "127.0.0.1:0", "--audit", &file]].concat());
    assert_eq!(second.code, Some(3), "{second:?}");
    assert!(second.err.contains("another process writes it"), "{second:?}");
    whole(&[&file]);
}

#[test]
fn after_a_kill_in_the_middle_the_chain_goes_on_and_says_what_has_no_end() {
    let (mut served, file) = audited(large(), &[]);
    let token = served.token("anna", "extract");
    let mut stream = served.connect();
    send(&mut stream, "GET /api/v1/extract?query=", &token, &[]);
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    // What has begun was put down before its first byte.
    let begun = lines(&file);
    assert_eq!(begun.last().unwrap()["event"], "begun", "{begun:#?}");
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let head = run(&["audit", "show", "--head", &file]).done().out.trim().to_owned();
    // A line that was being written when the machine went down.
    let whole_text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole_text}{{\"prev\":\"00")).unwrap();
    let torn = run(&["audit", "verify", &file]);
    assert_eq!(torn.code, Some(1), "{torn:?}");
    assert!(torn.out.contains("it has no end"), "{torn:?}");
    let volume = std::mem::replace(&mut served.volume, Volume::empty());
    let (served, file) = audited(volume, &[]);
    assert!(served.said.iter().any(|line| line.contains("ended within a line")));
    served.get("/api/v1/whoami", &token).ok();
    ended(&file, 1);
    assert!(fs::read_to_string(&file).unwrap().starts_with(&whole_text), "nothing was removed");
    let verified = run(&["audit", "verify", &file, "--head", &head]).done().out;
    assert!(verified.contains("1 line torn, as the next ones state"), "{verified}");
    let shown = run(&["audit", "show", &file]).done().out;
    assert!(shown.contains("no end: the service was ended meanwhile"), "{shown}");
    // A client that leaves is told from that.
    let mut stream = served.connect();
    send(&mut stream, "GET /api/v1/extract?query=", &token, &[]);
    stream.read_exact(&mut first).unwrap();
    drop(stream);
    let found = ended(&file, 2);
    assert_eq!(found[1]["ended"], "client_left", "{found:#?}");
    assert!(found[1]["sha256"].is_null());
    let volume = end(served);
    let said = run(&["audit", "verify", &volume.file("audit.jsonl")]).done().out;
    assert!(said.starts_with("1 line torn"), "{said}");
}

#[test]
fn an_edited_removed_or_cut_off_line_is_found() {
    let (served, file) = audited(Volume::recorded(), &[]);
    let token = served.token("anna", "sessions");
    for _ in 0..3 {
        served.get("/api/v1/whoami", &token).ok();
    }
    let volume = end(served);
    let text = fs::read_to_string(&file).unwrap();
    let head = run(&["audit", "show", "--head", &file]).done().out.trim().to_owned();
    run(&["audit", "verify", &file, "--head", &head]).done();
    let all: Vec<&str> = text.lines().collect();
    let edited = volume.file("edited.jsonl");
    let verify = |lines: &[&str], head: &[&str]| {
        fs::write(&edited, lines.join("\n") + "\n").unwrap();
        run(&[&["audit", "verify", &*edited], head].concat())
    };
    let bert = all[2].replace("anna", "bert");
    let changed = [&all[..2], &[&*bert], &all[3..]].concat();
    for (lines, words) in [
        (changed, "line 4: line 3 of the chain, before it, was changed"),
        ([&all[..2], &all[3..]].concat(), "line 3: line 3 of the chain is missing before it"),
        ([&all[..3], &all[1..2], &all[3..]].concat(), "line 4: line 2 of the chain stands behind"),
    ] {
        let ran = verify(&lines, &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains(words) && ran.out.contains("broken: "), "{words}: {ran:?}");
        assert_eq!(run(&["audit", "show", &edited]).code, Some(1));
    }
    verify(&all[..4], &[]).done();
    let ran = verify(&all[..4], &["--head", &head]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("lines are missing, or were changed"), "{ran:?}");
    run(&["audit", "verify", &volume.file("absent")]).is_refused("absent");
    run(&["audit", "verify", &file, "--head", "12"]).code.filter(|code| *code == 2).unwrap();
    // What is shown can be chosen.
    let shown = |words: &[&str]| run(&[&["audit", "show", &*file], words].concat()).done().out;
    assert_eq!(shown(&["--credential", "anna"]).lines().count(), 3);
    assert_eq!(shown(&["--credential", "bert"]), "");
    assert_eq!(shown(&["--path", "/api/v1/whoami", "--since", "1h ago"]).lines().count(), 3);
    assert_eq!(shown(&["--until", "2001-01-01T00:00:00Z"]), "");
    let json = shown(&["--credential", "anna", "--json"]);
    assert_eq!(json.lines().next(), Some(all[1]));
}

/// A file system of its own, which can be full; ended with the value.
pub(super) struct Small(pub(super) String);

impl Small {
    pub(super) fn mount(at: String) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "audit-test", &at]);
        let is_done = mount.output().is_ok_and(|output| output.status.success());
        is_done.then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l", &self.0]).status());
    }
}

#[test]
fn what_cannot_be_put_down_is_not_answered() {
    let volume = Volume::recorded();
    let Some(small) = Small::mount(volume.file("small")) else {
        return println!("not run: no file system can be mounted");
    };
    let (file, filler) = (format!("{}/audit.jsonl", small.0), format!("{}/filler", small.0));
    let mut served = Served::with(volume, &["--audit", &file]);
    let token = served.token("anna", "sessions,extract");
    served.get("/api/v1/sessions?limit=1", &token).ok();
    ended(&file, 1);
    drop(fs::write(&filler, vec![0; 1 << 20]));
    // What is free in the file's last page is used up.
    let mut refused = 0;
    for _ in 0..40 {
        refused += usize::from(served.get("/api/v1/whoami", &token).status == 503);
    }
    assert!(refused > 0);
    served.hear("cannot be written, nothing is answered");
    let ask = |path: &str| served.get(path, &token);
    for path in ["/api/v1/sessions", "/api/v1/extract", "/api/v1/whoami", "/metrics", "/api/v2"] {
        ask(path).is_refused(503, "no-audit");
    }
    served.get("/api/v1/sessions", "").is_refused(503, "no-audit");
    // Whether it is well it says nevertheless.
    assert_eq!(served.get("/api/v1/health", "").status, 503);
    let health = ask("/api/v1/health");
    assert_eq!((health.status, &health.json()["audit_written"]), (503, &false.into()));
    whole(&[&file]);
    fs::remove_file(&filler).unwrap();
    // By itself: behind a load balancer that goes by this nobody shows a credential before.
    until("it is well again", || served.get("/api/v1/health", "").status == 200);
    assert!(lines(&file).iter().any(|line| line["event"] == "resumed"));
    until("it answers again", || ask("/api/v1/whoami").status == 200);
    ask("/api/v1/health").ok();
    let resumed = lines(&file).into_iter().find(|line| line["event"] == "resumed").unwrap();
    assert!(resumed["why"].as_str().unwrap().contains("No space left"), "{resumed}");
    whole(&[&file]);
    drop(served);
}

#[test]
fn a_file_that_is_made_unchangeable_while_it_is_open_has_requests_refused() {
    let (served, file) = audited(Volume::recorded(), &[]);
    if is_on_overlayfs(Path::new(&file)) {
        return println!("not run: on overlayfs an open file is written to all the same");
    }
    let token = served.token("anna", "sessions");
    served.get("/api/v1/whoami", &token).ok();
    let chattr = |flag: &str| {
        let ran = Command::new("chattr").args([flag, &file]).output();
        ran.is_ok_and(|output| output.status.success())
    };
    if !chattr("+i") {
        return println!("not run: chattr makes no file unchangeable here");
    }
    let refused = served.get("/api/v1/whoami", &token);
    assert!(chattr("-i"));
    refused.is_refused(503, "no-audit");
    until("it answers again", || served.get("/api/v1/whoami", &token).status == 200);
    // What only grows can be written.
    if chattr("+a") {
        let answered = served.get("/api/v1/whoami", &token);
        assert!(chattr("-a"));
        answered.ok();
    }
    whole(&[&file]);
}

#[test]
fn a_file_that_is_renamed_removed_or_full_is_gone_on_with() {
    let (mut served, file) = audited(Volume::recorded(), &["--audit-size", "64K"]);
    let token = served.token("anna", "sessions");
    served.get("/api/v1/whoami", &token).ok();
    let first = served.volume.file("audit.jsonl.1");
    fs::rename(&file, &first).unwrap();
    for _ in 0..200 {
        served.get(&format!("/api/v1/whoami?{}", "x".repeat(800)), &token);
    }
    served.hear("was renamed or removed: a further file begins");
    let folder = served.volume.folder.path();
    let all = || {
        let names = fs::read_dir(folder).unwrap().flatten().map(|it| it.path());
        let mut all: Vec<String> = names.map(|it| it.to_str().unwrap().to_owned()).collect();
        all.retain(|it| it.contains("audit.jsonl"));
        all
    };
    assert!(all().len() > 3, "{:?}", all());
    let files = all();
    let said = whole(&files.iter().map(|it| &**it).collect::<Vec<&str>>()).out;
    assert!(!said.contains("in no file"), "{said}");
    // Whoever removes the file has lines missing.
    fs::remove_file(&file).unwrap();
    served.get("/api/v1/whoami", &token).ok();
    let files = all();
    let ran =
        run(&[&["audit", "verify"], &*files.iter().map(|it| &**it).collect::<Vec<_>>()].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("of the chain are missing before it"), "{ran:?}");
}

#[test]
fn a_file_that_others_could_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let volume = Volume::recorded();
    let tokens = volume.file("tokens");
    crate::machine::write_key(&tokens, "");
    let file = volume.file("audit.jsonl");
    let serve = |file: &str| {
        let words = ["serve", &volume.path, "--token-file", &tokens, "--listen", "127.0.0.1:0"];
        run(&[&words[..], &["--audit", file]].concat())
    };
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(serve(&file).err.contains("others may change it"));
    assert!(serve("/dev/null").err.contains("it is no file"));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let nowhere = volume.file("absent/audit.jsonl");
    assert_eq!(serve(&nowhere).code, Some(3));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}
