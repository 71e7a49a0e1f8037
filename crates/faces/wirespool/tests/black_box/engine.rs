//! An engine over an archive of several sensors gives the sessions that `find` gives on each.
//!
//! `cargo xtask engine` unpacks Trino and asks both engines everything, in minutes. An ordinary run
//! asks no Trino, and `DuckDB`, where Python has it, a sample.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::long_sessions;
use crate::machine::{CAPTURES, Ran, Volume, python, run, text};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/trino/engine");
/// What only a volume knows of a session.
const OF_VOLUMES: [&str; 2] = ["packets_overwritten", "provisional"];

type Session = Map<String, Value>;

/// Everything is asked, as `cargo xtask engine` wants it.
fn is_whole() -> bool {
    std::env::var_os("WIRESPOOL_ENGINES").is_some()
}

/// Of the queries each so many in an ordinary run.
const SAMPLED: usize = 9;

/// Sensors whose sessions are in one archive.
struct Sensors {
    sensors: Vec<(&'static str, Volume)>,
    folder: tempfile::TempDir,
}

impl Sensors {
    /// Two that saw the same, one of many protocols, one of long sessions.
    fn new() -> Self {
        let east = Volume::empty();
        for name in ["dns.pcap", "tls.pcap", "tls-ipv6.pcap"] {
            east.record(&["--read", &format!("{CAPTURES}/{name}"), "--name", "Night's"]).done();
        }
        let many = Volume::empty();
        let corpus = testdata::Corpus::small();
        for capture in corpus.captures() {
            many.record(&["--read", &text(capture)]);
        }
        let sensors = vec![
            ("west", Volume::recorded()),
            ("east", east),
            ("many", many),
            ("long", long_sessions::volume()),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (name, volume) in &sensors {
            let to = format!("file://{}", text(folder.path().join("archive")));
            let place = ["archive", &volume.path, "--index-dir", &volume.index, "--to", &to];
            let ran = run(&[&place[..], &["--sensor", name]].concat());
            assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
        }
        Self { sensors, folder }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// What `find` shows, by sensor and session.
    fn found(&self, query: &str) -> BTreeMap<(String, String), Session> {
        let mut found = BTreeMap::new();
        for (sensor, volume) in &self.sensors {
            let ran = run(&["find", &volume.path, "--json", "--index-dir", &volume.index, query]);
            assert!(matches!(ran.code, Some(0 | 1 | 5)), "{query}: {ran:?}");
            found.extend(sessions(&ran.out).map(|session| keyed(session, Some(sensor))));
        }
        found
    }

    /// Queries about every field, with values that it has.
    fn queries_of_values(&self) -> Vec<String> {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for session in self.found("").into_values() {
            for (name, value) in session {
                let of_name = values.entry(name).or_default();
                let list = value.as_array().cloned();
                for value in list.unwrap_or_else(|| vec![value]) {
                    // No command line has it.
                    if value.as_str().is_some_and(|text| text.contains('\0')) {
                        continue;
                    }
                    of_name.insert(written(&value));
                }
            }
        }
        let mut queries = Vec::new();
        for (name, values) in values {
            let is_no_field = OF_VOLUMES.contains(&&*name) || name == "sensor";
            // Of community ids an engine decides most, not all.
            if is_no_field || name.ends_with("_name") || name == "community_id" {
                continue;
            }
            let unit = if is_duration(&name) { "ns" } else { "" };
            let all: Vec<String> = values.iter().map(|value| format!("{value}{unit}")).collect();
            let middle = &all[all.len() / 2];
            queries.push(format!("{name} = {middle} or {name} = {}", all[0]));
            queries.push(format!("has {name} and {name} != {}", all[all.len() - 1]));
            if middle.starts_with('"') && !["state", "app"].contains(&&*name) {
                let part: String = middle.trim_matches('"').chars().take(3).collect();
                if !part.contains(['\\', '"']) && !is_address(&name) {
                    queries.push(format!("{name} = \"{part}*\" and not {name} = \"*{part}\""));
                }
            }
        }
        queries
    }
}

/// A value as queries have it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let escaped: String = text
                .chars()
                .flat_map(|it| {
                    matches!(it, '"' | '\\' | '*').then_some('\\').into_iter().chain([it])
                })
                .collect();
            format!("\"{escaped}\"")
        }
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

fn is_duration(name: &str) -> bool {
    ["duration_ns", "handshake_ns", "dns_rtt_ns", "session_age_ns"].contains(&name)
}

fn is_address(name: &str) -> bool {
    ["orig_ip", "resp_ip", "tunnel_src", "tunnel_dst"].contains(&name)
}

fn sessions(lines: &str) -> impl Iterator<Item = Session> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// A session by its sensor and id, without what an archive has not.
fn keyed(mut session: Session, sensor: Option<&str>) -> ((String, String), Session) {
    let named = session.remove("sensor");
    let sensor = sensor.or_else(|| named.as_ref().and_then(Value::as_str)).unwrap().to_owned();
    for name in OF_VOLUMES.iter().chain(&["same_as"]) {
        session.remove(*name);
    }
    ((sensor, session["session_id"].as_str().unwrap().to_owned()), session)
}

/// The queries of docs/questions.md: what the shell makes of its commands, up to the first option.
fn queries_of_questions(folder: &Path) -> Vec<String> {
    let document = include_str!("../../../../../docs/questions.md");
    let program = folder.join("wirespool");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let commands = document.lines().filter_map(|line| line.split('`').nth(1));
    let is_one =
        |command: &&str| command.contains("wirespool find /data") && !command.contains("&&");
    let finds = commands.filter(is_one);
    let mut queries = BTreeSet::new();
    for command in finds {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", &path).stdin(Stdio::null());
        let words = Ran::new(&shell.output().unwrap()).done().out;
        let query = words.lines().skip(2).take_while(|word| !word.starts_with("--"));
        queries.insert(query.collect::<Vec<_>>().join(" "));
    }
    assert!(queries.len() > 40, "{}", queries.len());
    queries.into_iter().collect()
}

/// Further ones: each word of the language, and what is negated.
const QUERIES: [&str; 44] = [
    "",
    "host 192.168.0.30",
    "not host 192.168.0.30",
    "net 10.0.0.0/8 or net 172.16/12 or net 192.168",
    "orig net 141.142.0.0 mask 255.254.0.255",
    "net 2001:db8::/32 or net 2600:1f00::/21 or net fe80::/10",
    "not net ::/0",
    "net 0.0.0.0/0 and not resp net 8.8.0.0/17",
    "src host 192.168.0.30 and dst port 53",
    "not src port 53",
    "src and dst portrange 1024-65535",
    "orig port 443 or resp port 443",
    "tcp or sctp or igmp or gre",
    "ip6 and not icmp6",
    "ip proto 1",
    "arp",
    "arp or ether proto 0x88cc or proto = unparsed",
    "ether host 02:00:00:00:00:01 or ether host 00:1b:2c:3d:4e:5f",
    "vlan",
    "vlan 100 or vlan_inner = 7",
    "mpls or pppoes or geneve or vxlan",
    "vni > 0 or teid >= 1",
    "tunnel net 0.0.0.0/0",
    "not tunnel host 10.0.0.1",
    "packets > 10 and resp_packets = 0",
    "bytes >= 1K and not bytes > 100K",
    "payload_bytes < 18446744073709551615",
    "duration > 1h or duration < 1ms",
    "session_age_ns = 0ns",
    "after 2026-11-20T10:00:00Z and before 2026-11-20T11:30:00Z",
    "not after 2020-01-01",
    "start >= 2013-11-25 and end < 2013-11-26",
    "tcp_sack",
    "tcp_sack no or not tcp_timestamps",
    "state in {S0, SF, RSTO*} and history *a*",
    "name *.COM and not name *google*",
    "name \"\" or name \"%\" or name \"_*\" or name \"*'*\"",
    "http_path mentions download or dns_answers mentions 149.20.4.69",
    "not (http_path mentions download)",
    "tls_cipher in {*RC4*, *GCM*} or tls_version <= 1.1",
    "recording \"Night's\" or recording captures",
    "recording night's or interface_name *",
    "community_id 1:JebvFh6+fkj6uRw7LYcK388Vcy8= or community_id 1:a*",
    "not community_id 1:JebvFh6+fkj6uRw7LYcK388Vcy8= and icmp",
];

struct Trino {
    url: String,
    state: PathBuf,
    port: u16,
}

impl Trino {
    fn start(archive: &Path, state: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let trino = Self { url, state: state.to_path_buf(), port };
        trino.tool(&["start", &format!("file://{}", archive.display())]).done();
        trino
    }

    fn tool(&self, words: &[&str]) -> Ran {
        let mut tool = Command::new(TOOL);
        tool.env("ENGINE_STATE", &self.state).env("ENGINE_PORT", self.port.to_string());
        Ran::new(&tool.args(words).stdin(Stdio::null()).output().unwrap())
    }

    fn find(&self, more: &[&str]) -> Ran {
        let find = ["fleet", "find", "--json", "--engine", "trino", "--url", &self.url];
        run(&[&find[..], more].concat())
    }

    /// The sessions of several queries, of which the engine decides all of each.
    fn ask_at_once(&self, queries: &[String]) -> Vec<BTreeSet<(String, String)>> {
        let of = |(number, query): (usize, &String)| {
            let ran = self.find(&["--explain", query]).done();
            assert_eq!(ran.err, "", "{query}");
            let statement = ran.out.trim_end();
            format!("SELECT {number} AS query, sensor, session_id FROM ({statement})")
        };
        let all: Vec<String> = queries.iter().enumerate().map(of).collect();
        let ran = self.tool(&["sql", &all.join(" UNION ALL ")]).done();
        let mut found = vec![BTreeSet::new(); queries.len()];
        for row in sessions(&ran.out) {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            let number = usize::try_from(row["query"].as_u64().unwrap()).unwrap();
            found[number].insert((text("sensor"), text("session_id")));
        }
        found
    }

    /// Sessions by sensor and id.
    fn ask(&self, query: &str) -> BTreeMap<(String, String), Session> {
        let ran = self.find(&[query]);
        assert!(matches!(ran.code, Some(0 | 1)), "{query}: {ran:?}");
        let found: Vec<_> = sessions(&ran.out).map(|session| keyed(session, None)).collect();
        let count = found.len();
        let found = BTreeMap::from_iter(found);
        assert_eq!(found.len(), count, "{query}: none comes twice");
        found
    }
}

impl Drop for Trino {
    fn drop(&mut self) {
        drop(self.tool(&["clean"]));
    }
}

#[test]
fn trino_finds_what_each_sensor_finds() {
    if !is_whole() {
        println!("not run: Trino takes minutes: cargo xtask engine");
        return;
    }
    let sensors = Sensors::new();
    let state = sensors.folder.path().join("trino");
    let trino = Trino::start(&sensors.archive(), &state);
    let mut queries = queries_of_questions(sensors.folder.path());
    queries.extend(QUERIES.map(str::to_owned));
    for query in &queries {
        assert_eq!(trino.ask(query), sensors.found(query), "{query}");
    }
    // What is about one field takes a second each, too: some are asked at once.
    let of_values = sensors.queries_of_values();
    let mut matched = 0;
    for some in of_values.chunks(12) {
        for (query, ids) in some.iter().zip(trino.ask_at_once(some)) {
            let expected: BTreeSet<_> = sensors.found(query).into_keys().collect();
            assert_eq!(ids, expected, "{query}");
            matched += usize::from(!expected.is_empty());
        }
    }
    println!("{} queries, then {} of which {matched} match", queries.len(), of_values.len());
    assert!(matched * 2 > of_values.len(), "most queries find something: {matched}");
    orders_limits_and_refusals(&trino, &sensors);
}

/// What else is asked of it.
fn orders_limits_and_refusals(trino: &Trino, sensors: &Sensors) {
    let bytes = |session: &Session| {
        let of = |name| session.get(name).and_then(Value::as_u64).unwrap();
        of("orig_frame_bytes") + of("resp_frame_bytes")
    };
    let mut largest: Vec<u64> = sensors.found("tcp").values().map(bytes).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    let sorted = trino.find(&["--sort", "bytes:desc", "--limit", "3", "tcp"]).out;
    assert_eq!(sessions(&sorted).map(|it| bytes(&it)).collect::<Vec<_>>(), largest[..3]);
    let starts: Vec<i64> = sessions(&trino.find(&[""]).out)
        .map(|session| session["start_ns"].as_i64().unwrap())
        .collect();
    assert!(starts.is_sorted());
    let limited = trino.find(&["--limit", "1", "http_path mentions download"]);
    assert_eq!(limited.out.lines().count(), 1, "{limited:?}");
    assert!(limited.err.contains("cannot decide"), "{limited:?}");
    let west = sessions(&trino.find(&["--sensor", "west", ""]).out).collect::<Vec<_>>();
    assert!(!west.is_empty() && west.iter().all(|session| session["sensor"] == "west"));
    let marked = trino.find(&["sni www.github.com"]).out;
    assert!(marked.contains("\"same_as\":{\"sensor\":"), "two sensors saw it: {marked}");
    trino.find(&["--sort", "sni", ""]).fails_with(2, "order them afterwards");
    let other = ["--schema", "no_such", "tcp"];
    trino.find(&other).is_refused("the engine says: ");
}

/// Asks each statement of standard input, and prints sensor and session of each row.
const DUCKDB: &str = r#"
import json, sys, duckdb
db = duckdb.connect()
files = f"'{sys.argv[1]}/sessions/*/*/*/*.parquet'"
options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
db.execute(f"CREATE VIEW sessions AS SELECT * FROM read_parquet({files}, {options})")
for statement in json.load(sys.stdin):
    cursor = db.execute(statement)
    names = [column[0] for column in cursor.description]
    places = names.index("sensor"), names.index("session_id")
    print(json.dumps([[row[place] for place in places] for row in cursor.fetchall()]))
"#;

#[test]
fn duckdb_finds_what_each_sensor_finds() {
    let Some(python) = python("engines", &["duckdb", "pyarrow"]) else { return };
    let sensors = Sensors::new();
    let mut queries = queries_of_questions(sensors.folder.path());
    queries.extend(QUERIES.map(str::to_owned));
    queries.extend(sensors.queries_of_values());
    let queries: Vec<_> =
        queries.into_iter().step_by(if is_whole() { 1 } else { SAMPLED }).collect();
    let explained =
        |query: &String| run(&["fleet", "find", "--engine", "duckdb", "--explain", query]).done();
    let explained: Vec<Ran> = queries.iter().map(explained).collect();
    let statements: Vec<&str> = explained.iter().map(|ran| ran.out.trim_end()).collect();
    let mut duckdb = Command::new(python);
    duckdb.args(["-c", DUCKDB, &text(sensors.archive())]);
    let mut duckdb =
        duckdb.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = serde_json::to_vec(&statements).unwrap();
    duckdb.stdin.take().unwrap().write_all(&input).unwrap();
    let answers = Ran::new(&duckdb.wait_with_output().unwrap()).done().out;
    assert_eq!(answers.lines().count(), queries.len());
    for ((query, ran), answer) in queries.iter().zip(&explained).zip(answers.lines()) {
        let answer: BTreeSet<(String, String)> = serde_json::from_str(answer).unwrap();
        let expected: BTreeSet<_> = sensors.found(query).into_keys().collect();
        if ran.err.contains("cannot decide") {
            // Others are among them, which `fleet find` would leave out.
            assert!(answer.is_superset(&expected), "{query}\n{}", ran.out);
        } else {
            assert_eq!(answer, expected, "{query}\n{}", ran.out);
        }
    }
    run(&["fleet", "find", "--engine", "duckdb", "tcp"]).fails_with(2, "DuckDB is no server");
    run(&["fleet", "find", "--engine", "trino", "tcp"]).fails_with(2, "where is the engine?");
}
