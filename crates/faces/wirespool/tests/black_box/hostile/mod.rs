//! Hostile names in everything that has a name, through every output of every verb: nothing steers
//! the terminal, becomes a formula, an element of a page or a line of its own, and programs get
//! back what was there.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

mod checks;
mod programs;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::machine::{BINARY, Ran, Volume, run, text};
use checks::undone;

/// Begins as a formula; sequences and marks of direction for the terminal; an element and the end
/// of an attribute; a line feed. Its first 60 and 20 bytes end between characters.
const NAME: &str = "=\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}\nINJECTED\u{200b}\
                    <img src=x onerror=alert(1)>'\"&,\u{2066}\u{85}|";
/// The same as a name of a file.
const FILE: &str = NAME;
/// The same in the 15 bytes that a process has for its name.
const PROCESS: &str = "\u{1b}[2J\u{202e}\nINJ<b>";

const PROFILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles/single-8tb.csv");

/// A volume in a file of a hostile name, recorded from a capture of one.
struct Hostile {
    _volume: Volume,
    folder: PathBuf,
    path: String,
}

impl Hostile {
    fn new() -> Self {
        let volume = Volume::empty();
        let folder = volume.folder.path().join(FILE);
        std::fs::create_dir(&folder).unwrap();
        let path = text(folder.join("volume"));
        let capture = text(folder.join(format!("{FILE}.pcapng")));
        std::fs::write(&capture, traffic::capture(NAME.as_bytes())).unwrap();
        let create = ["create", &path, "--size", "64M", "--piece", "256K", "--sparse"];
        checks::ran("create", &run(&create).done());
        let other = text(folder.join("other"));
        let create = ["create", &other, "--size", "64M", "--sparse", "--json"];
        checks::json("create --json", &run(&create).done().out);
        let hostile = Self { _volume: volume, folder, path };
        let record = hostile.run("record", &["--pool", "4M", "--read", &capture, "--name", NAME]);
        assert_eq!(record.code, Some(0), "{record:?}");
        let record = ["--pool", "4M", "--read", &capture, "--json"];
        checks::json("record --json", &hostile.run("record", &record).done().out);
        hostile
    }

    fn file(&self, name: &str) -> String {
        text(self.folder.join(name))
    }

    /// Runs a verb on the volume; what it says is harmless whatever comes of it.
    fn run(&self, verb: &str, arguments: &[&str]) -> Ran {
        let index = self.file("index");
        let takes_index = ["record", "find", "extract", "hold", "archive", "tag"].contains(&verb);
        let index: &[&str] = if takes_index { &["--index-dir", &index] } else { &[] };
        let ran = run(&[&[verb, &self.path], arguments, index].concat());
        checks::ran(&format!("{verb} {arguments:?}"), &ran);
        ran
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(values) => values.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn sessions_with_hostile_names_are_shown_harmless_and_given_to_programs_as_they_are() {
    let hostile = Hostile::new();
    let found = checks::json("find", &hostile.run("find", &["--json"]).done().out);
    // Six sessions, recorded twice.
    assert_eq!(found.len(), 12, "{found:?}");
    // The names came through: this is no test of their absence.
    let names = texts(&Value::Array(found.clone()));
    // Controls do not get past the parsers of payload.
    for part in ["\u{202e}", "onerror"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part:?} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with('=')), "{names:?}");

    let csv = checks::csv("find", &hostile.run("find", &["--csv"]).done().out);
    let (heading, rows) = csv.split_first().unwrap();
    assert_eq!(rows.len(), found.len());
    for (row, expected) in rows.iter().zip(&found) {
        for (name, value) in expected.as_object().unwrap() {
            let at = heading.iter().position(|column| column == name).unwrap();
            if let Value::String(text) = value {
                assert_eq!(&undone(&row[at]), text, "{name}");
            }
        }
    }
    for arguments in [
        &[][..],
        &["--plot"],
        &["--plot", "--json"],
        &["--top", "sni"],
        &["--top", "http_host", "--json"],
        &["--explain"],
        &["sni", "x", NAME],
        &["--top", NAME],
        &["--limit", NAME],
        &[NAME],
    ] {
        hostile.run("find", arguments);
    }
    #[cfg(feature = "sql")]
    for form in [&[][..], &["--json"], &["--csv"]] {
        let query = "SELECT *, sni AS \"=\u{1b}[2J\" FROM sessions";
        let ran = hostile.run("sql", &[form, &[query]].concat());
        if form == ["--csv"] {
            checks::csv("sql", &ran.done().out);
        }
    }
    #[cfg(feature = "sql")]
    for query in ["SELECT \"{}\" FROM sessions", "SELECT * FROM \"{}\"", "SELECT '{}' + 1 {}", "{}"]
    {
        let ran = hostile.run("sql", &[&query.replace("{}", NAME)]);
        assert_eq!(ran.code, Some(2), "{query}: {ran:?}");
    }
}

/// Names of every kind, of at least 60 bytes: each begin of a formula, each way of a terminal to be
/// steered, letters that hide or turn, controls, and bytes that are no text at all.
fn names() -> Vec<Vec<u8>> {
    let texts = [
        "@SUM(1+1)*cmd|' /C calc'!A0\t\r",
        "+1\u{1b}P+q544e\u{1b}\\\u{9d}52;c;AAAA\u{9c}",
        "-2\u{2028}\u{2029}\u{feff}\u{61c}\u{fff9}\u{2067}\u{e0001}",
        "\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}\u{8}\u{8}\u{7f}",
        "</pre><script>alert(1)</script>&#x1b;[2J%1b%00\\x1b",
    ];
    let bytes = [0_u8..=0x3f, 0x40..=0x7f, 0x80..=0xbf, 0xc0..=0xff];
    let texts = texts.iter().map(|text| text.repeat(60 / text.len() + 1).into_bytes());
    texts.chain(bytes.into_iter().map(Iterator::collect)).collect()
}

#[test]
fn names_of_every_kind_are_harmless() {
    for name in names() {
        let volume = Volume::empty();
        let capture = volume.file("capture.pcapng");
        std::fs::write(&capture, traffic::capture(&name)).unwrap();
        let what = format!("{name:?}");
        checks::ran(&what, &volume.record(&["--read", &capture]).done());
        let find = |arguments: &[&str]| {
            let find = ["find", &volume.path, "--index-dir", &volume.index];
            let ran = run(&[&find[..], arguments].concat()).done();
            checks::ran(&what, &ran);
            ran.out
        };
        assert!(find(&[]).lines().count() > 6, "{what}");
        checks::json(&what, &find(&["--json"]));
        checks::csv(&what, &find(&["--csv"]));
        for measure in ["sni", "http_host", "dns_names", "app_detail"] {
            find(&["--top", measure]);
        }
        let out = volume.file("out.pcapng");
        let extract = ["extract", &volume.path, "tcp", "--comments", "-w", &out];
        checks::ran(&what, &run(&[&extract[..], &["--index-dir", &volume.index]].concat()).done());
        checks::json(&what, &std::fs::read_to_string(format!("{out}.json")).unwrap());
        checks::ran(&what, &run(&["inspect", &volume.path]).done());
    }
}

#[test]
fn what_is_written_of_hostile_names_is_harmless() {
    let hostile = Hostile::new();
    let (out, folder) = (hostile.file(FILE), hostile.file("hold"));
    hostile.run("extract", &["tcp", "--comments", "-w", &out]).done();
    let manifest = format!("{out}.json");
    checks::json("manifest", &std::fs::read_to_string(&manifest).unwrap());
    checks::ran("verify-extract", &run(&["verify-extract", &manifest, &out]).done());
    std::fs::write(&out, "another").unwrap();
    checks::ran("verify-extract", &run(&["verify-extract", &manifest, &out]));
    hostile.run("extract", &["tcp", "-w", &out]).is_refused("exists");
    hostile.run("extract", &["tcp", "-w", &hostile.file("x"), "--sign", &out]).code.unwrap();
    hostile.run("hold", &["tcp", "--hold-dir", &folder]).done();
    for form in [&["hold", "--list", "--hold-dir", &folder][..], &["hold", "--list", "--json"]] {
        checks::ran("hold --list", &run(form));
    }
    let log = hostile.file("eve.json");
    let event = serde_json::json!({
        "timestamp": "2023-11-14T22:13:20.000000+0000", "event_type": "alert", "proto": "TCP",
        "src_ip": "10.0.0.1", "src_port": 40_080, "dest_ip": "10.0.0.2", "dest_port": 80,
        "alert": { "signature": NAME, "severity": 1 },
    });
    std::fs::write(&log, format!("{event}\n")).unwrap();
    let tags = hostile.run("tag", &["--log", &log, "--hold-dir", &folder]);
    checks::json("tag", &tags.out);
    archive_is_harmless(&hostile);
    let map = hostile.file("map.svg");
    for (verb, arguments) in [
        ("inspect", &[][..]),
        ("inspect", &["--json"]),
        ("inspect", &["--map"]),
        ("inspect", &["--map-svg", &map]),
        ("inspect", &["--map-svg", &map]),
        ("status", &[]),
        ("status", &["--json"]),
        ("verify", &[]),
        ("verify", &["--json"]),
        ("scrub", &[]),
        ("scrub", &["--json"]),
        ("resilver", &[]),
        ("salvage", &["-w", &hostile.file("salvaged.pcapng")]),
        ("salvage", &["--json"]),
        ("grow", &[&out]),
        ("replace", &["0", &out]),
        ("erase", &[]),
        ("keys", &[]),
        ("qualify", &["--part", "reads", "--quick"]),
    ] {
        let ran = hostile.run(verb, arguments);
        if arguments == ["--json"] && ran.code == Some(0) {
            checks::json(verb, &ran.out);
        }
    }
    checks::markup("inspect --map-svg", &std::fs::read_to_string(&map).unwrap());
    for arguments in [&[][..], &["--json"]] {
        let top = ["top", &hostile.path, "--once", "--for", "1s"];
        checks::ran("top", &run(&[&top[..], arguments].concat()));
        let capture = hostile.file(&format!("{FILE}.pcapng"));
        let top = ["top", &capture, "--once", "--for", "1s"];
        checks::ran("top", &run(&[&top[..], arguments].concat()));
    }
}

/// An archive in a folder of a hostile name, with objects of such.
fn archive_is_harmless(hostile: &Hostile) {
    let to = format!("file://{}", hostile.file(FILE) + ".archive");
    let sensor = ["--to", &to, "--sensor", "dc1"];
    hostile.run("archive", &sensor).done();
    let json = hostile.run("archive", &[&sensor[..], &["--json"]].concat()).done();
    checks::json("archive", &json.out);
    let folder = Path::new(to.strip_prefix("file://").unwrap()).join("sessions/sensor=dc1");
    std::fs::write(folder.join(FILE), "x").unwrap();
    for verb in ["verify", "compact"] {
        for form in [&[][..], &["--json"]] {
            let ran = run(&[&["archive", verb][..], &sensor, form].concat());
            checks::ran(verb, &ran);
            if !form.is_empty() {
                checks::json(verb, &ran.out);
            }
        }
    }
    hostile.run("archive", &["--to", NAME, "--sensor", "dc1"]);
    hostile.run("archive", &["--to", &to, "--sensor", NAME]);
    let bucket = ["--to", "s3://bucket/x", "--sensor", "dc1", "--endpoint", NAME];
    hostile.run("archive", &bucket);
}

#[test]
fn errors_about_hostile_names_are_one_harmless_line() {
    let folder = tempfile::tempdir().unwrap();
    let absent = text(folder.path().join(FILE));
    let out = text(folder.path().join("out"));
    for arguments in [
        &["find", &absent][..],
        &["inspect", &absent],
        &["status", &absent],
        &["verify", &absent],
        &["scrub", &absent],
        &["resilver", &absent],
        &["salvage", &absent, "-w", &out],
        &["extract", &absent, "tcp", "-w", &out],
        &["hold", &absent, "tcp", "--hold-dir", &out],
        &["tag", &absent, "--log", &absent],
        &["record", &absent, "--read", &absent],
        &["record", &absent, "--interface", NAME],
        &["replay", &absent, "--interface", NAME],
        &["prove", "--volume", &absent, "--frames", &absent],
        &["qualify", "show", &absent],
        &["qualify", "--model", &absent],
        &["diagnose", "recorder", &absent],
        &["diagnose", "host", "--against", &absent],
        &["diagnose", "calls", "--cgroup", &absent],
        &["diagnose", "calls", "--unit", NAME],
        &["diagnose", "calls", "--", &absent],
        &["top", &absent, "--once"],
        &["trace", "--user", NAME, "--", "true"],
        &["trace", "-o", &out, "--via", NAME, "--", &absent],
        &["verify-extract", &absent, &absent],
        &["keygen", &format!("{absent}/key")],
        &["anchor", &absent, "-w", &format!("{absent}/anchor")],
        &["verify", &absent, "--anchor", &absent],
        &["decrypt", &absent, "-w", &out, "--identity", &absent],
        &["reveal", &absent, NAME, "--identity", &absent],
        &["forget", &absent, "--subject", NAME],
        &["request", NAME, "-w", &out, "--sign", &absent],
        &["approve", &absent, "--sign", &absent],
        &["create", &format!("{absent}/volume"), "--size", "64M"],
        &["stenoread", "--volume", &absent, NAME],
        &["fields", NAME],
        &["bench", "-r", "1", "--", &absent],
        &["completions", NAME],
        &[NAME],
        &["find", &absent, &format!("--{NAME}")],
    ] {
        let ran = run(arguments);
        checks::ran(&format!("{arguments:?}"), &ran);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        assert_ne!(ran.code, None, "{arguments:?}: {ran:?}");
        if ran.code == Some(3) {
            assert_eq!(ran.err.lines().count(), 1, "{arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn pages_drawings_and_tables_of_hostile_names_are_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| text(folder.path().join(name));
    let profile = file(&format!("{FILE}.csv"));
    std::fs::copy(PROFILE, &profile).unwrap();
    let (page, drawings, tables) = (file("page.html"), file("svg"), file("csv"));
    let written = ["--html", &page, "--svg", &drawings, "--csv", &tables];
    let model = ["qualify", "--model", &profile, "--rate", "1G", "--size", "64G"];
    let ran = run(&[&model[..], &written].concat());
    checks::ran("qualify", &ran);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    checks::json("qualify --json", &run(&[&model[..], &["--json"]].concat()).out);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let html = read(Path::new(&page));
    checks::markup("qualify --html", &html);
    assert!(html.contains("onerror"), "the name is in it");
    let all = |folder: &str| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    for path in all(&drawings) {
        checks::markup("qualify --svg", &read(&path));
    }
    for path in all(&tables) {
        checks::csv("qualify --csv", &read(&path));
    }
    let (csv, json) = (file("runs.csv"), file("runs.json"));
    let bench = ["bench", "-r", "2", "-n", NAME, "--csv", &csv, "--export-json", &json];
    checks::ran("bench", &run(&[&bench[..], &["--", "true"]].concat()));
    checks::csv("bench --csv", &read(Path::new(&csv)));
    checks::json("bench --export-json", &read(Path::new(&json)));
    checks::ran("bench --json", &run(&["bench", "-r", "2", "-n", NAME, "--json", "--", "true"]));
}

/// A process of a hostile name that holds a connection and writes a file of one.
struct Process(Child);

impl Process {
    fn start(folder: &Path) -> Self {
        let program = folder.join(PROCESS);
        let copied = Command::new("cp").arg("/bin/bash").arg(&program).status();
        assert!(copied.unwrap().success());
        let script = "while :; do echo x > \"$0\"; read -t 0.1; done";
        let mut command = Command::new(&program);
        command.args(["-c", script, FILE]).current_dir(folder);
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn processes_and_files_of_hostile_names_are_diagnosed_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let _process = Process::start(folder.path());
    let page = text(folder.path().join("page.html"));
    let mut why = String::new();
    for arguments in [
        &["diagnose", "io", "--for", "1s"][..],
        &["diagnose", "io", "--for", "1s", "--json"],
        &["diagnose", "io", "--for", "1s", "--files"],
        &["diagnose", "io", "--for", "1s", "--files", "--log"],
        &["diagnose", "io", "--for", "1s", "--files", "--json"],
        &["diagnose", "calls", "--for", "1s"],
        &["diagnose", "calls", "--for", "1s", "--json"],
        &["diagnose", "host", "--for", "1s", "--json"],
        &["diagnose", "host", "--for", "1s"],
        &["diagnose", "tcp", "--for", "1s"],
        &["diagnose", "--for", "1s", "--html", &page, "--force"],
        &["diagnose", "--for", "1s", "--json"],
    ] {
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "20", BINARY]).args(arguments);
        let ran = Ran::new(&command.stdin(Stdio::null()).output().unwrap());
        checks::ran(&format!("{arguments:?}"), &ran);
        if arguments.contains(&"--json") && !ran.out.is_empty() {
            checks::json(&format!("{arguments:?}"), &ran.out);
        }
        if arguments.contains(&"--html") {
            why = ran.err.lines().last().unwrap_or("it said nothing").to_owned();
        }
    }
    if let Ok(html) = std::fs::read_to_string(&page) {
        checks::markup("diagnose --html", &html);
    } else {
        println!("not run: diagnose --html: {why}");
    }
}
