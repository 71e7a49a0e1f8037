//! The recorder over the network, on the loopback: endpoints, credentials, limits, clients that are
//! slow or leave, and what comes out beside what `find` and `extract` print.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::golden::{capture, pcap_of};
use crate::machine::{self, BINARY, Ran, Volume, command, run, write_key};
use crate::running::{recorder, taken};
use crate::stenographer::question;

mod audit;
mod browser;
mod decoded;
mod documented;
mod doors;
mod fleet;
mod four_eyes;
mod holds;
mod long_jobs;
mod looks;
mod people;
mod refused;
mod remote;
mod tags;

/// Longer than anything here takes on a machine that has much to do.
const PATIENCE: Duration = Duration::from_mins(1);

/// A service that runs, and is ended with this value.
pub(crate) struct Served {
    pub(crate) volume: Volume,
    child: Child,
    pub(crate) address: SocketAddr,
    /// Lines that it has said so far, and where further ones come from.
    said: Vec<String>,
    lines: BufReader<ChildStderr>,
}

/// A disk that is dead or late takes nothing away but its own volume.
#[test]
fn a_volume_that_is_not_there_is_named_and_the_others_are_served() {
    let volume = Volume::recorded();
    let (late, name) = (volume.file("late"), "late");
    let mut served = Served::with(volume, &[&late]);
    let said = served.said.iter().any(|line| line.contains("not served until it can be read"));
    assert!(said, "{:?}", served.said);
    let token = served.token("me", "sessions");
    let volumes = served.get("/api/v1/volumes", &token).ok().json();
    let [there, absent] = [0, 1].map(|at| volumes["volumes"][at].clone());
    assert!(there["volume_id"].is_string() && there.get("problem").is_none(), "{there}");
    assert!(absent["name"] == name && absent["problem"].is_object(), "{absent}");
    let sessions =
        |volume: &str| served.get(&format!("/api/v1/sessions?limit=1&volume={volume}"), &token);
    let count = |answer: &Answer| answer.json()["sessions"].as_array().unwrap().len();
    assert_eq!(count(&sessions("volume").ok()), 1);
    sessions(name).is_refused(503, "unreadable");
    sessions("").is_refused(404, "not-found");
    let health = served.get("/api/v1/health", &token).ok().json();
    let unread = serde_json::json!([name]);
    assert_eq!((&health["ok"], &health["volumes_unread"]), (&true.into(), &unread));
    let metrics = served.get("/metrics", &token).ok().text();
    assert!(metrics.contains("wirespool_volume_readable{volume=\"late\"} 0"), "{metrics}");

    run(&["create", &late, "--size", "64M", "--piece", "256K", "--sparse"]).done();
    served.hear("late: is there, and served");
    let found = served.get("/api/v1/sessions?limit=1&volume=late", &token).ok();
    assert_eq!(found.json()["sessions"].as_array().unwrap().len(), 0);
}

impl Served {
    fn over(volume: Volume) -> Self {
        Self::with(volume, &[])
    }

    fn with(volume: Volume, flags: &[&str]) -> Self {
        Self::start(volume, flags, &[])
    }

    fn start(volume: Volume, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let tokens = volume.file("tokens");
        let fixed = ["serve", &volume.path, "--listen", "127.0.0.1:0", "--token-file", &tokens];
        let index = ["--index-dir", &volume.index];
        if !Path::new(&tokens).exists() {
            write_key(&tokens, "");
        }
        let mut command = command(&[&fixed[..], &index, flags].concat());
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        command.envs(environment.iter().copied());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut served = Self { volume, child, address, said: Vec::new(), lines };
        let line = served.hear("listening at ");
        served.address = line.rsplit("//").next().unwrap().trim().parse().unwrap();
        served
    }

    /// Reads lines up to one that contains this.
    fn hear(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "{words:?} was not said: {:?}", self.said);
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// A token with these scopes.
    fn token(&self, name: &str, scopes: &str) -> String {
        let file = self.volume.file("tokens");
        let scopes = if scopes.is_empty() { vec![] } else { vec!["--scope", scopes] };
        let words = ["serve", "token", "create", name, "--token-file", &file];
        let made = run(&[&words[..], &scopes].concat()).done();
        // The service looks at the file once a second.
        std::thread::sleep(Duration::from_millis(1100));
        made.out.trim().to_owned()
    }

    fn get(&self, path: &str, token: &str) -> Answer {
        self.ask(&format!("GET {path}"), token, &[])
    }

    fn ask(&self, what: &str, token: &str, headers: &[&str]) -> Answer {
        let mut stream = self.connect();
        send(&mut stream, what, token, headers);
        Answer::read(&mut stream)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Processes that answer a request of it.
    fn workers(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task", self.child.id());
        let mut workers = Vec::new();
        for task in fs::read_dir(path).unwrap().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            workers.extend(children.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
        }
        workers
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn send(stream: &mut TcpStream, what: &str, token: &str, headers: &[&str]) {
    let mut lines = vec![format!("{what} HTTP/1.1"), "Host: x".into(), "Connection: close".into()];
    if !token.is_empty() {
        lines.push(format!("Authorization: Bearer {token}"));
    }
    lines.extend(headers.iter().map(|&header| header.to_owned()));
    stream.write_all((lines.join("\r\n") + "\r\n\r\n").as_bytes()).unwrap();
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    is_whole: bool,
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Self::of(&bytes)
    }

    fn of(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a heading");
        let heading = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = heading.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = heading.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers: BTreeMap<String, String> =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let rest = &bytes[end + 4..];
        let (body, is_whole) = match headers.get("transfer-encoding") {
            Some(_) => unchunked(rest),
            None => (rest.to_vec(), true),
        };
        Self { status, headers, body, is_whole }
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    fn ok(self) -> Self {
        assert!(self.status == 200 && self.is_whole, "{self:?}");
        self
    }

    #[track_caller]
    fn is_refused(&self, status: u16, word: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["type"], format!("urn:wirespool:problem:{word}"), "{problem}");
        assert_eq!(problem["status"], status);
    }
}

/// The bytes of chunks, and whether the last one is there.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else { break };
        body.extend(chunk);
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
    (body, false)
}

fn find(served: &Served, words: &[&str]) -> String {
    let fixed = ["find", &served.volume.path, "--index-dir", &served.volume.index, "--json"];
    run(&[&fixed[..], words].concat()).out
}

#[test]
fn pages_and_lines_are_what_find_prints() {
    let served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    for query in ["", "port 53", "tcp and bytes > 1000", "host 1.2.3.4"] {
        let expected = find(&served, &[query]);
        let asked = format!("/api/v1/sessions?query={}", query.replace(' ', "+"));
        let lines = served.ask(
            &format!("GET {}", asked.replace('>', "%3E")),
            &token,
            &["Accept: application/x-ndjson"],
        );
        assert_eq!(lines.headers["content-type"], "application/x-ndjson");
        assert_eq!(lines.ok().text(), expected, "{query}");
        for limit in [1, 3, 1000] {
            let (mut cursor, mut rows, mut pages) = (String::new(), Vec::new(), 0);
            loop {
                let asked = format!("{asked}&limit={limit}{cursor}").replace('>', "%3E");
                let page = served.get(&asked, &token).ok().json();
                let sessions = page["sessions"].as_array().unwrap();
                assert!(sessions.len() <= limit && page["count"] == sessions.len());
                rows.extend(sessions.clone());
                pages += 1;
                let Some(next) = page["next_cursor"].as_str() else {
                    assert_eq!(page["statement"].get("cut_by"), None, "{page}");
                    break;
                };
                assert_eq!(page["statement"]["cut_by"], "limit");
                cursor = format!("&cursor={next}");
                if pages == 40 {
                    break;
                }
            }
            let expected = expected.lines().take(rows.len());
            let expected: Vec<Value> =
                expected.map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(rows, expected, "{query} by {limit}");
        }
    }
}

#[test]
fn an_extract_is_what_extract_writes_and_its_manifest_verifies() {
    let served = Served::over(Volume::recorded());
    let token = served.token("taker", "extract");
    let file = served.volume.file("expected.pcapng");
    let fixed = ["extract", &served.volume.path, "--index-dir", &served.volume.index];
    run(&[&fixed[..], &["port 53", "-w", &file]].concat());
    let answer = served.get("/api/v1/extract?query=port+53", &token).ok();
    assert_eq!(answer.headers["content-type"], "application/x-pcapng");
    assert_eq!(answer.body, fs::read(&file).unwrap());
    let id = &answer.headers["wirespool-answer"];
    let known = served.get(&format!("/api/v1/answers/{id}"), &token).ok().json();
    assert_eq!((&known["state"], &known["count"]), (&"done".into(), &16.into()), "{known}");
    let said = known["statement"]["text"].as_str().unwrap();
    assert!(said.starts_with("16 packets of "), "{said}");
    let manifest = served.get(&format!("/api/v1/answers/{id}/manifest"), &token).ok();
    let (file, beside) = (served.volume.file("taken.pcapng"), served.volume.file("taken.json"));
    fs::write(&file, &answer.body).unwrap();
    fs::write(&beside, &manifest.body).unwrap();
    run(&["verify-extract", &beside, &file]).done();
    // What others have asked for is not shown.
    let other = served.token("other", "extract");
    served.get(&format!("/api/v1/answers/{id}"), &other).is_refused(404, "not-found");
    let few = served.get("/api/v1/extract?query=port+53&limit_packets=3", &token).ok();
    let id = &few.headers["wirespool-answer"];
    let known = served.get(&format!("/api/v1/answers/{id}"), &token).ok().json();
    assert_eq!((&known["count"], &known["statement"]["cut_by"]), (&3.into(), &"limit".into()));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of endpoints")]
fn each_endpoint_asks_for_its_scope() {
    const SCOPES: [&str; 7] =
        ["sessions", "payload", "extract", "request", "approve", "hold", "admin"];
    const ROLES: [(&str, &str); 4] = [
        ("administrator", "sessions payload extract request approve hold admin"),
        ("analyst", "sessions payload extract hold"),
        ("viewer", "sessions"),
        ("desk", "sessions payload"),
    ];
    const ENDPOINTS: [(&str, Option<&str>); 36] = [
        ("/api/v1/holds", Some("sessions")),
        ("POST /api/v1/holds?query=port+9", Some("hold")),
        ("DELETE /api/v1/holds/x", Some("hold")),
        ("/api/v1/openapi.json", Some("")),
        ("/api/v1/whoami", Some("")),
        ("/api/v1/fields", Some("")),
        ("/api/v1/volumes", Some("")),
        ("/metrics", Some("")),
        ("/api/v1/answers/x", Some("")),
        ("/api/v1/answers/x/manifest", Some("extract request")),
        ("/api/v1/requests", Some("request approve")),
        ("POST /api/v1/requests?query=port+9&case=c&purpose=p", Some("request")),
        ("/api/v1/requests/x", Some("request approve")),
        ("DELETE /api/v1/requests/x", Some("request approve")),
        ("POST /api/v1/requests/x/approve", Some("approve")),
        ("/api/v1/requests/x/extract", Some("request")),
        ("/api/v1/sessions?limit=1", Some("sessions")),
        ("/api/v1/summary?fields=app", Some("sessions")),
        ("/api/v1/packets?limit=1", Some("payload")),
        ("/api/v1/extract?query=port+9", Some("extract")),
        ("/api/v1/health", None),
        ("/api/v1/people", Some("admin")),
        ("POST /api/v1/people?name=a%20b&role=viewer", Some("admin")),
        ("DELETE /api/v1/people/x", Some("admin")),
        ("POST /api/v1/people/x/role?role=viewer", Some("admin")),
        ("POST /api/v1/people/x/password", Some("admin")),
        ("POST /api/v1/people/x/disable", Some("admin")),
        ("POST /api/v1/people/x/enable", Some("admin")),
        ("DELETE /api/v1/people/x/second-factor", Some("admin")),
        ("/api/v1/tokens", Some("admin")),
        ("POST /api/v1/tokens?name=a%20b&scopes=admin", Some("admin")),
        ("DELETE /api/v1/tokens/x", Some("admin")),
        ("/api/v1/audit?limit=1", Some("admin")),
        ("/api/v1/audit/check", Some("admin")),
        ("POST /api/v1/account/password", Some("")),
        ("DELETE /api/v1/account/second-factor", Some("")),
    ];
    let volume = Volume::recorded();
    let [folder, people, audit, requests] =
        ["holds", "people", "audit", "requests"].map(|name| volume.file(name));
    fs::create_dir(&folder).unwrap();
    let desk = ["--role", "desk=sessions,payload"];
    let flags = ["--hold-dir", &folder, "--people-file", &people, "--audit", &audit];
    let desk = [&desk[..], &["--requests-file", &requests]].concat();
    let served = Served::with(volume, &[&flags[..], &desk].concat());
    let get = |path: &str, token: &str, cookie: &str| {
        let what = if path.contains(' ') { path.to_owned() } else { format!("GET {path}") };
        let headers = ["X-Wirespool: 1", cookie];
        served.ask(&what, token, if cookie.is_empty() { &headers[..1] } else { &headers })
    };
    let mut askers: Vec<(&str, String, String)> =
        SCOPES.iter().map(|scope| (*scope, served.token(scope, scope), String::new())).collect();
    askers.push(("", served.token("nothing", ""), String::new()));
    for (role, scopes) in ROLES {
        askers.push((scopes, String::new(), people::member(&served, role, role)));
    }
    for (path, needs) in ENDPOINTS {
        let bare = get(path, "", "");
        let wrong = get(path, "wirespool_wrong", "");
        if needs.is_some() {
            bare.is_refused(401, "no-credential");
            assert_eq!(bare.headers["www-authenticate"], "Bearer realm=\"wirespool\"");
            wrong.is_refused(401, "no-credential");
        } else {
            assert_eq!(bare.ok().json(), serde_json::json!({"ok": true}));
            wrong.ok();
        }
        for (scopes, token, cookie) in &askers {
            let answer = get(path, token, cookie);
            let has = |needs: &str| {
                scopes.split(' ').any(|scope| needs.split(' ').any(|needed| needed == scope))
            };
            if needs.is_some_and(|needs| !needs.is_empty() && !has(needs)) {
                answer.is_refused(403, "no-scope");
                continue;
            }
            let expected = match path {
                // Only a person has an account, and its changes have a body.
                _ if path.contains("/account/") && cookie.is_empty() => 403,
                _ if path.contains("/account/") || path.contains("%20") => 400,
                // An answer, a hold, a person or a token of this id there is not.
                _ if path.contains("/x") => 404,
                _ => 200,
            };
            assert_eq!(answer.status, expected, "{path} {scopes} {answer:?}");
        }
    }
    let token = &askers[0].1;
    served.get("/api", "").is_refused(401, "no-credential");
    served.get("/api/v2", token).is_refused(404, "not-found");
    served.ask("POST /api/v1/sessions", token, &[]).is_refused(405, "wrong-method");
    let more = served.get("/api/v1/health", token).ok().json();
    assert_eq!(more["volumes"], serde_json::json!(["volume"]), "{more}");
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    let get = |path: &str| served.get(&format!("/api/v1/sessions?{path}"), &token);
    let wrong = get("query=port+53+and+hsot+1.2.3.4");
    wrong.is_refused(400, "wrong-query");
    let problem = wrong.json();
    assert_eq!(
        (&problem["query"]["at"], &problem["query"]["suggestion"]),
        (&12.into(), &"host".into())
    );
    for (asked, word) in [
        ("qurey=x", "query"),
        ("limit=x", "whole number"),
        ("limit=0", "above 0"),
        ("limit=10001", "10000"),
        ("limit=1&limit=2", "twice"),
        ("cursor=x", "cursor"),
    ] {
        let refused = get(asked);
        refused.is_refused(400, "wrong-parameter");
        assert!(refused.json()["detail"].as_str().unwrap().contains(word), "{refused:?}");
    }
    get("volume=other").is_refused(404, "not-found");
    get(&format!("query={}", "x".repeat(40_000))).is_refused(413, "too-long");
    let cursor = get("limit=1").ok().json()["next_cursor"].as_str().unwrap().to_owned();
    get(&format!("query=tcp&cursor={cursor}")).is_refused(400, "wrong-parameter");
    // A cursor that a client has made up costs nobody anything.
    let mut parts: Vec<&str> = cursor.split('_').collect();
    parts[3] = "18446744073709551615";
    get(&format!("limit=1&cursor={}", parts.join("_"))).ok();
    let start = parts[1].to_owned();
    for made_up in ["-9223372036854775808", "9223372036854775807"] {
        get(&format!("limit=1&cursor={}", parts.join("_").replace(&start, made_up))).ok();
    }
}

#[test]
fn a_token_counts_until_its_line_is_taken_out_and_a_bad_file_lets_nobody_in() {
    let mut served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    served.get("/api/v1/sessions", &token).ok();
    let file = served.volume.file("tokens");
    let lines = fs::read_to_string(&file).unwrap();
    assert!(lines.starts_with("reader:sessions:") && !lines.contains(&token));
    fs::write(&file, "").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    served.get("/api/v1/sessions", &token).is_refused(401, "no-credential");
    fs::write(&file, format!("{lines}nonsense\n")).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    served.get("/api/v1/sessions", &token).is_refused(401, "no-credential");
    assert_eq!(served.get("/api/v1/health", "").status, 503);
    served.hear("no credential counts until this is mended");
    fs::write(&file, lines).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    served.get("/api/v1/sessions", &token).ok();
    served.get("/api/v1/health", "").ok();
}

#[test]
fn the_document_describes_what_is_answered() {
    let volume = Volume::recorded();
    let folder = volume.file("holds");
    fs::create_dir(&folder).unwrap();
    let served = Served::with(volume, &["--hold-dir", &folder]);
    let token = served.token("reader", "sessions,payload,hold");
    let document = served.get("/api/v1/openapi.json", &token).ok().json();
    assert_eq!(document["openapi"], "3.1.0");
    let schema = |name: &str| {
        let reference = format!("#/components/schemas/{name}");
        let schema = serde_json::json!({"$ref": reference, "components": document["components"]});
        jsonschema::validator_for(&schema).unwrap()
    };
    let check = |name: &str, value: &Value| {
        let validator = schema(name);
        let errors: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    };
    let held = served.ask("POST /api/v1/holds?query=port+53", &token, &["X-Wirespool: 1"]);
    check("Held", &held.ok().json());
    check("Holds", &served.get("/api/v1/holds", &token).ok().json());
    let page = served.get("/api/v1/sessions?limit=10000", &token).ok().json();
    assert!(page["sessions"].as_array().unwrap().len() > 10);
    check("Page", &page);
    let id = page["answer"].as_str().unwrap();
    check("Answer", &served.get(&format!("/api/v1/answers/{id}"), &token).ok().json());
    for (name, path) in [
        ("Summary", "summary?fields=app,host,resp_port,bytes,start"),
        ("Packets", "packets?limit=50"),
        #[cfg(feature = "sql")]
        ("Rows", "sql?query=SELECT+app+FROM+sessions+LIMIT+3"),
        ("Caller", "whoami"),
        ("Fields", "fields"),
    ] {
        check(name, &served.get(&format!("/api/v1/{path}"), &token).ok().json());
    }
    check("Health", &served.get("/api/v1/health", &token).ok().json());
    check("Problem", &served.get("/api/v1/sessions?query=port", &token).json());
    assert!(!schema("Session").is_valid(&serde_json::json!({"sni": 5})));
}

#[test]
fn volumes_are_as_status_tells_and_metrics_are_in_the_form_of_prometheus() {
    let served = Served::over(Volume::recorded());
    let token = served.token("watch", "");
    let volumes = served.get("/api/v1/volumes", &token).ok().json();
    let mut told = volumes["volumes"][0].clone();
    assert_eq!(told.as_object_mut().unwrap().remove("name"), Some("volume".into()));
    let status = run(&["status", &served.volume.path, "--json"]).done();
    assert_eq!(told, serde_json::from_str::<Value>(&status.out).unwrap());
    let metrics = served.get("/metrics", &token).ok();
    assert!(metrics.headers["content-type"].starts_with("text/plain; version=0.0.4"));
    let text = metrics.text();
    let mut known = BTreeMap::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(name.starts_with("wirespool_"), "{line}");
            assert!(known.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let base = name.strip_suffix("_sum").or(name.strip_suffix("_count"));
            assert!(
                known.contains_key(name) || base.is_some_and(|it| known.contains_key(it)),
                "{line}"
            );
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
    for line in [
        "wirespool_recorder_up{volume=\"volume\"} 0",
        "wirespool_volume_whole{volume=\"volume\"} 1",
        "wirespool_member_state{volume=\"volume\",member=\"0\",state=\"whole\"} 1",
        "wirespool_http_requests_total{endpoint=\"/api/v1/volumes\",status=\"200\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
    }
}

#[test]
fn beside_a_recorder_answers_reach_up_to_now_and_its_counters_are_metrics() {
    let mut served = Served::over(Volume::empty());
    let token = served.token("reader", "sessions");
    let (mut recorder, mut input) = recorder(&served.volume);
    input.write_all(&capture(1_000_000_000, 0..20)).unwrap();
    taken(&served.volume, 20);
    let page = served.get("/api/v1/sessions", &token).ok().json();
    let packets = page["sessions"].as_array().unwrap().iter();
    let of =
        |row: &Value| row["orig_packets"].as_u64().unwrap() + row["resp_packets"].as_u64().unwrap();
    assert_eq!(packets.map(of).sum::<u64>(), 20, "{page}");
    // A state that is two seconds old is asked for again.
    until("the recorder is told of", || {
        let text = served.get("/metrics", &token).ok().text();
        let has = |line: &str| text.lines().any(|it| it.starts_with(line));
        has("wirespool_recorder_up{volume=\"volume\"} 1")
            && has("wirespool_pool_columns{volume=\"volume\"} ")
            && has("wirespool_packets_offered_total{volume=\"volume\",interface=\"(files)\"} 20")
            && has("wirespool_packets_stored_total{volume=\"volume\",interface=\"(files)\"} 20")
            && has("wirespool_member_writes_total{volume=\"volume\",member=\"0\"} ")
    });
    // The service ends as badly as it can, and the recorder goes on.
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    input.write_all(&capture(2_000_000_000, 20..30)[24..]).unwrap();
    taken(&served.volume, 30);
    drop(input);
    assert!(recorder.wait().unwrap().success());
}

/// A volume with more packets than fits into what lies between a process and its client.
fn large() -> Volume {
    let volume = Volume::empty();
    let payload = [question(), vec![0; 1300]].concat();
    let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &payload].concat();
    let packets = (0..24_000).map(|number| (1_700_000_000_000_000_000 + number, frame.clone()));
    let file = volume.file("large.pcap");
    fs::write(&file, pcap_of(1, packets)).unwrap();
    volume.record(&["--read", &file]).done();
    volume
}

/// Waits until this holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Of a process that answers a request.
#[track_caller]
fn stands_behind_recorders(process: u32) {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
    let stat = read("stat");
    // Behind the name, which is in parentheses: proc_pid_stat(5), field 19.
    let niceness = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
    assert_eq!(niceness, Some("10"), "{stat}");
    assert_eq!(read("oom_score_adj").trim(), "1000");
    let limits = read("limits");
    let of = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(of("Max address space"), (8_u64 << 30).to_string());
    assert_eq!(of("Max core file size"), "0");
    // What was asked stands in no list of processes.
    assert_eq!(read("cmdline"), "wirespool\0answer\0");
    changes_no_interface(process);
}

/// Of what answers over the network: no right to change or record interfaces, or the machine.
#[track_caller]
fn changes_no_interface(process: u32) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().to_owned()
    };
    assert_eq!(of("NoNewPrivs"), "1");
    // capabilities(7): of the network those to administer it and to take packets, of the machine
    // those to load modules and to administer it, and that to lock memory.
    let refused = 1 << 12 | 1 << 13 | 1 << 16 | 1 << 21 | 1 << 14;
    for name in ["CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"] {
        let held = u64::from_str_radix(&of(name), 16).unwrap();
        // An ordinary user's bounding set takes a right to be left.
        if name != "CapBnd" || machine::is_root() {
            assert_eq!(held & refused, 0, "{name} {held:x}");
        }
    }
}

#[test]
fn the_work_ends_when_the_client_leaves_or_takes_nothing() {
    let served = Served::with(large(), &["--workers", "2"]);
    let token = served.token("taker", "extract,sessions");
    let mut stream = served.connect();
    send(&mut stream, "GET /api/v1/extract?query=", &token, &[]);
    // Something comes, and the rest does not fit into what lies between.
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"));
    until("a process answers", || !served.workers().is_empty());
    stands_behind_recorders(served.workers()[0]);
    changes_no_interface(served.child.id());
    // A client that takes little keeps none out.
    served.get("/api/v1/health", "").ok();
    drop(stream);
    until("nobody answers who has left", || served.workers().is_empty());
    served.get("/api/v1/sessions?limit=1", &token).ok();
}

/// Whoever else asks is answered meanwhile, and at once.
#[test]
fn one_credential_with_endless_queries_keeps_no_other_waiting() {
    let served = Served::with(large(), &["--workers", "4"]);
    let [much, other] = ["much", "other"].map(|name| served.token(name, "sessions,extract"));
    let endless = || {
        let mut stream = served.connect();
        // It takes nothing of the answer, which does not fit into what lies between.
        send(&mut stream, "GET /api/v1/extract?query=", &much, &[]);
        stream
    };
    let streams: Vec<TcpStream> = (0..90).map(|_| endless()).collect();
    until("half of the places are taken", || served.workers().len() == 2);
    until("its queue is full", || {
        let metrics = served.get("/metrics", &other).ok().text();
        let of = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse::<f64>().unwrap()
        };
        let own = "wirespool_queue_refused_total{room=\"own\"}";
        let waiting = of("wirespool_queue_requests ");
        (of(own), waiting, of("wirespool_workers_most_each ")) == (56.0, 32.0, 2.0)
    });
    let began = Instant::now();
    for _ in 0..5 {
        served.get("/api/v1/sessions?limit=1", &other).ok();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let refused = served.get("/api/v1/sessions?limit=1", &much);
    refused.is_refused(429, "own-queue-full");
    assert_eq!(refused.headers["retry-after"], "5");
    drop(streams);
    until("places are free again", || served.workers().is_empty());
    served.get("/api/v1/sessions?limit=1", &much).ok();
}

#[test]
fn an_answer_whose_process_ends_early_is_seen_to_have_no_end() {
    let served = Served::over(large());
    let token = served.token("taker", "extract");
    let mut stream = served.connect();
    send(&mut stream, "GET /api/v1/extract?query=", &token, &[]);
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    until("a process answers", || !served.workers().is_empty());
    for id in served.workers() {
        let killed = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    let mut rest = first.to_vec();
    stream.read_to_end(&mut rest).unwrap_or_default();
    let answer = Answer::of(&rest);
    assert!(answer.status == 200 && !answer.is_whole, "{} bytes", rest.len());
    let known = format!("/api/v1/answers/{}", answer.headers["wirespool-answer"]);
    let known = served.get(&known, &token).ok().json();
    assert_eq!((&known["state"], known.get("statement")), (&"broken_off".into(), None));
    served.get("/api/v1/extract?query=port+53&limit_packets=1", &token).ok();
}

#[test]
fn silent_and_slow_clients_keep_nobody_out() {
    let served = Served::with(Volume::recorded(), &["--connections", "100"]);
    let token = served.token("reader", "sessions");
    let mut slow: Vec<TcpStream> = (0..200).map(|_| served.connect()).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        // Half say nothing; the others begin a heading and do not end it. Some of them had to make
        // room already.
        if number % 2 == 0 {
            drop(stream.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\nX-"));
        }
    }
    for _ in 0..5 {
        served.get("/api/v1/sessions?limit=5", &token).ok();
    }
    // A heading that does not end is cut off.
    let mut newest = served.connect();
    newest.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let mut said = Vec::new();
    newest.read_to_end(&mut said).unwrap();
    assert!(
        said.is_empty() || said.starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&said)
    );
    let long = format!("GET /{}", "x".repeat(200_000));
    let mut stream = served.connect();
    drop(stream.write_all(format!("{long} HTTP/1.1\r\n\r\n").as_bytes()));
    let mut said = Vec::new();
    drop(stream.read_to_end(&mut said));
    assert!(!String::from_utf8_lossy(&said).contains("200 OK"));
    served.get("/api/v1/health", "").ok();
}

#[test]
fn an_answer_says_by_what_it_was_cut() {
    let served = Served::with(Volume::recorded(), &["--max-bytes", "2K"]);
    let token = served.token("reader", "sessions,extract");
    let page = served.get("/api/v1/sessions", &token).ok().json();
    assert_eq!(page["statement"]["cut_by"], "bytes", "{page}");
    assert_eq!(page["statement"]["state"], "incomplete");
    let cursor = page["next_cursor"].as_str().expect("it can be gone on");
    let next = served.get(&format!("/api/v1/sessions?cursor={cursor}"), &token).ok().json();
    assert_ne!(next["sessions"][0], page["sessions"][0]);
    let answer = served.get("/api/v1/extract?query=", &token).ok();
    assert!(answer.body.len() < 8 << 10, "{}", answer.body.len());
    let id = &answer.headers["wirespool-answer"];
    let known = served.get(&format!("/api/v1/answers/{id}"), &token).ok().json();
    assert_eq!(known["statement"]["cut_by"], "limit", "{known}");
}

#[test]
fn an_answer_ends_when_its_time_is_over_and_says_so() {
    let served = Served::with(Volume::recorded(), &["--max-time", "1ms"]);
    let token = served.token("reader", "sessions,extract");
    let page = served.get("/api/v1/sessions", &token).ok().json();
    assert_eq!(page["statement"]["cut_by"], "time", "{page}");
    assert_eq!(page["statement"]["completeness"]["stopped"], true);
    let answer = served.get("/api/v1/extract", &token).ok();
    let known = format!("/api/v1/answers/{}", answer.headers["wirespool-answer"]);
    let known = served.get(&known, &token).ok().json();
    assert_eq!(known["statement"]["cut_by"], "time", "{known}");
}

#[test]
fn a_signal_ends_it_in_order_and_the_log_has_a_line_for_each_request() {
    let mut served = Served::over(Volume::recorded());
    let token = served.token("anna", "sessions");
    served.get("/api/v1/sessions?limit=1&query=port%201%1b", &token);
    let line = served.hear("/api/v1/sessions");
    for part in ["Z anna 127.0.0.1:", "\"GET /api/v1/sessions?limit=1", "\" 400 ", " bytes ", " ms"]
    {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains('\u{1b}') && !line.contains(&token), "{line}");
    served.signal("-TERM");
    served.hear("ended in order");
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_manager_of_services_is_told_when_it_listens_and_when_it_ends() {
    let volume = Volume::recorded();
    let place = volume.file("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let served = Served::start(volume, &[], &[("NOTIFY_SOCKET", &place)]);
    let told = || {
        let mut bytes = [0; 64];
        let len = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    };
    assert_eq!(told(), "READY=1");
    served.get("/api/v1/health", "").ok();
    served.signal("-TERM");
    assert_eq!(told(), "STOPPING=1");
}

#[test]
fn a_service_that_others_could_ask_is_refused_in_one_line() {
    let volume = Volume::recorded();
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    let serve = |flags: &[&str]| run(&[&["serve", &volume.path], flags].concat());
    serve(&["--listen", "127.0.0.1:0"]).fails_with(2, "--people-file FILE or --client-ca FILE");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8420"] {
        let flags = ["--listen", listen, "--token-file", &tokens];
        serve(&flags).fails_with(2, "nothing listens without TLS");
    }
    let door = ["--stenographer", "127.0.0.1:0", "--token-file", &tokens];
    serve(&door).fails_with(2, "--stenographer needs --tls-cert");
    let readable = volume.file("readable");
    fs::write(&readable, "").unwrap();
    serve(&["--listen", "127.0.0.1:0", "--token-file", &readable]).is_refused("others may read");
    write_key(&tokens, "a:b\n");
    serve(&["--listen", "127.0.0.1:0", "--token-file", &tokens]).is_refused("line 1");
    let absent = volume.file("absent");
    let ran: Ran = run(&["serve", &absent, "--listen", "127.0.0.1:0", "--token-file", &tokens]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(Path::new(BINARY).exists());
}

/// The alerts, by Prometheus' own program: they are rules, and each fires with its cause and does
/// not without it.
#[test]
fn alerts_fire_with_their_causes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contrib/prometheus");
    for arguments in [["check", "wirespool.rules.yml"], ["test", "wirespool.tests.yml"]] {
        let [verb, file] = arguments;
        let mut command = Command::new("promtool");
        let output = match command.args([verb, "rules", file]).current_dir(folder).output() {
            Ok(output) => output,
            Err(error) => return println!("not run: promtool: {error}"),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("SUCCESS"), "{said}");
    }
}

#[test]
fn an_encrypted_volume_is_served_with_an_identity_and_refused_without() {
    for (has_key, status) in [(true, 200), (false, 409)] {
        let volume = Volume::recorded();
        let key = volume.file("key");
        write_key(&key, crate::encrypted::SECRET);
        run(&["keys", &volume.path, "--add", crate::encrypted::PUBLIC]).done();
        volume.record(&["--read", machine::CAPTURES]).done();
        let flags = ["--identity", &key];
        let served = Served::with(volume, if has_key { &flags } else { &[] });
        let token = served.token("anna", "sessions,extract");
        let sessions = served.get("/api/v1/sessions?query=", &token);
        assert_eq!(sessions.status, status, "{sessions:?}");
        let extract = served.get("/api/v1/extract?query=port+53", &token);
        assert_eq!(extract.status, status, "{extract:?}");
        if !has_key {
            assert!(
                String::from_utf8_lossy(&sessions.body).contains("is encrypted"),
                "{sessions:?}"
            );
        }
    }
}

#[test]
fn a_service_whose_identity_is_none_does_not_begin() {
    let volume = Volume::recorded();
    let (tokens, key) = (volume.file("tokens"), volume.file("key"));
    write_key(&tokens, "");
    write_key(&key, "# nothing");
    let words = ["serve", &volume.path, "--listen", "127.0.0.1:0", "--token-file", &tokens];
    let ran = run(&[&words[..], &["--identity", &key]].concat());
    assert!(ran.code == Some(3) && ran.err.contains("holds no identity"), "{ran:?}");
}

#[cfg(feature = "sql")]
#[test]
fn sql_over_the_network_gives_the_rows_that_sql_prints() {
    let served = Served::over(Volume::recorded());
    let token = served.token("anna", "sessions");
    let query =
        "SELECT resp_port, count(*) AS n FROM sessions GROUP BY resp_port ORDER BY resp_port";
    let path = |query: &str| format!("/api/v1/sql?query={}", query.replace(' ', "+"));
    let words = ["sql", &served.volume.path, query, "--json", "--index-dir", &served.volume.index];
    let printed = run(&words).done().out;
    let asks = |query: &str, kind: &str| {
        served.ask(&format!("GET {}", path(query)), &token, &[&format!("Accept: {kind}")])
    };
    assert_eq!(asks(query, "application/x-ndjson").ok().text(), printed);
    let page = served.get(&path(query), &token).ok().json();
    let rows = page["rows"].as_array().unwrap();
    assert_eq!(rows.len(), printed.lines().count());
    assert_eq!(page["statement"]["state"], "complete");
    let arrow = asks(query, "application/vnd.apache.arrow.stream").ok();
    assert_eq!(arrow.headers["content-type"], "application/vnd.apache.arrow.stream");
    assert!(
        arrow.body.starts_with(&[0xff; 4])
            && arrow.body.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])
    );
    let cut = served.get(&format!("{}&limit=2", path(query)), &token).ok().json();
    assert_eq!((cut["rows"].as_array().unwrap().len(), &cut["count"]), (2, &2.into()));
    assert_eq!(cut["statement"]["cut_by"], "limit");
    let all = served.get(&format!("{}&limit={}", path(query), rows.len()), &token).ok().json();
    assert!(all["statement"].get("cut_by").is_none(), "{all}");

    // What is found wrong only once rows are made is refused in each form as well.
    for form in ["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"]
    {
        asks("SELECT 1/0", form).is_refused(400, "wrong-query");
        asks("SELECT CAST(orig_ip AS INT) FROM sessions", form).is_refused(400, "wrong-query");
    }
    let wrong = served.get(&path("SELECT nothing FROM sessions"), &token);
    wrong.is_refused(400, "wrong-query");
    assert!(wrong.json()["detail"].as_str().unwrap().contains("nothing"), "{wrong:?}");
    for change in ["DROP TABLE sessions", "CREATE TABLE x AS SELECT 1", "COPY sessions TO 'x'"] {
        let refused = served.get(&path(change), &token);
        assert_eq!(refused.status, 400, "{change}: {refused:?}");
    }
    let other = served.token("packets", "extract");
    served.get(&path(query), &other).is_refused(403, "no-scope");
    let file = served.volume.file("tokens");
    let filtered = ["serve", "token", "create", "desk", "--token-file", &file];
    let flags = ["--scope", "sessions", "--filter", "port 53"];
    let filtered = run(&[&filtered[..], &flags].concat()).done().out.trim().to_owned();
    std::thread::sleep(Duration::from_millis(1100));
    served.get(&path(query), &filtered).is_refused(403, "no-scope");
}
