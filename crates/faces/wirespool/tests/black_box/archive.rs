//! Sessions in an archive: all that `find` shows, each once, whatever happens to who archives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use arrow_array::StringArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::golden::pcap;
use crate::long_sessions;
use crate::machine::{CAPTURES, Ran, Volume, command, python, run, text};

const SECOND: u64 = 1_000_000_000;
/// 2026-11-20T10:00:00Z
const BEGIN: u64 = 1_795_168_800;

/// Where a volume is archived to.
fn url(volume: &Volume) -> String {
    format!("file://{}", volume.file("archive"))
}

fn words<'a>(volume: &'a Volume, to: &'a str) -> [&'a str; 8] {
    ["archive", &volume.path, "--to", to, "--sensor", "dc1", "--index-dir", &volume.index]
}

fn archive(volume: &Volume, further: &[&str]) -> Ran {
    let to = url(volume);
    run(&[&words(volume, &to)[..], further].concat())
}

/// Its report; of a run with --json that is the last line.
fn report(ran: &Ran) -> Value {
    let line = ran.out.lines().last().unwrap_or_else(|| panic!("{ran:?}"));
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// Every object below a folder, with its bytes.
fn objects(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut objects = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            objects.extend(self::objects(&path));
        } else {
            objects.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    objects
}

/// The ids of all sessions that who lists the archive reads.
fn listed(volume: &Volume) -> Vec<String> {
    let mut ids = Vec::new();
    for path in objects(Path::new(&volume.file("archive/sessions"))).into_keys() {
        let file = File::open(&path).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("session_id").unwrap();
            let column = column.as_any().downcast_ref::<StringArray>().unwrap();
            ids.extend(column.iter().map(|id| id.unwrap().to_owned()));
        }
    }
    ids.sort();
    ids
}

/// The ids of the sessions that `find` shows.
fn found(volume: &Volume) -> Vec<String> {
    let ran = run(&["find", &volume.path, "--json", "--index-dir", &volume.index]);
    let id = |line: &str| {
        let session: Value = serde_json::from_str(line).unwrap();
        session.get("session_id").and_then(Value::as_str).unwrap().to_owned()
    };
    let mut ids: Vec<String> = ran.out.lines().map(id).collect();
    ids.sort();
    ids
}

#[track_caller]
fn is_sound(volume: &Volume) {
    let verified = run(&["archive", "verify", "--to", &url(volume)]).done().out;
    assert!(verified.contains("all as it was written"), "{verified}");
}

#[test]
fn what_find_shows_is_archived_and_a_second_run_changes_nothing() {
    for volume in [Volume::recorded(), long_sessions::volume()] {
        let ran = archive(&volume, &["--json"]).done();
        let expected = found(&volume);
        assert!(expected.len() >= 12);
        assert_eq!(listed(&volume), expected);
        assert_eq!(report(&ran)["sessions"], expected.len());
        assert_eq!(report(&ran)["state"], "complete");
        is_sound(&volume);
        let folder = volume.file("archive");
        let before = objects(Path::new(&folder));
        let again = report(&archive(&volume, &["--json"]).done());
        assert_eq!((&again["parts"], &again["objects"]), (&0.into(), &0.into()));
        assert_eq!(objects(Path::new(&folder)), before);
        // What is recorded later is added, and what is there stays as it is.
        volume.record(&["--read", CAPTURES]).done();
        archive(&volume, &[]).done();
        assert_eq!(listed(&volume), found(&volume));
        let after = objects(Path::new(&volume.file("archive/sessions")));
        assert!(before.iter().all(|(path, bytes)| {
            !path.to_string_lossy().contains("/sessions/") || after.get(path) == Some(bytes)
        }));
        // Into an empty store all that the volume holds comes again.
        fs::remove_dir_all(&folder).unwrap();
        archive(&volume, &[]).done();
        assert_eq!(listed(&volume), found(&volume));
    }
}

#[test]
fn the_small_captures_are_archived_as_they_are_found() {
    let corpus = testdata::Corpus::small();
    for capture in corpus.captures() {
        let volume = Volume::empty();
        volume.record(&["--read", &text(capture.clone())]);
        let ran = archive(&volume, &[]);
        assert!(matches!(ran.code, Some(0 | 1 | 5)), "{}: {ran:?}", capture.display());
        assert_eq!(listed(&volume), found(&volume), "{}", capture.display());
    }
}

/// A capture of `count` short sessions from `first` on, a datagram of 1400 bytes each way apart.
fn sessions(first: u64, count: u64) -> Vec<u8> {
    pcap((first..first + count).map(|number| {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0x05, 0x6a];
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0]);
        frame.extend(u16::try_from(number / 50_000).unwrap().to_be_bytes());
        frame.extend([192, 168, 1, 1]);
        frame.extend(u16::try_from(number % 50_000 + 1).unwrap().to_be_bytes());
        frame.extend([0x1f, 0x90, 0x05, 0x56, 0, 0]);
        frame.resize(1400, 7);
        (BEGIN * SECOND + number * 1_000_000, frame)
    }))
}

fn spawn(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_follower_that_is_killed_again_and_again_archives_all_of_it_once() {
    let volume = Volume::empty();
    let record = ["record", &volume.path, "--read", "-", "--pool", "4M"];
    let mut recorder = command(&[&record[..], &["--index-dir", &volume.index]].concat());
    let recorder = recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    let mut input = recorder.stdin.take().unwrap();
    let capture = sessions(0, 24_000);
    let to = url(&volume);
    let follow = [&words(&volume, &to)[..], &["--follow", "--json"]].concat();
    let writer = std::thread::spawn(move || {
        for part in capture.chunks(1 << 19) {
            input.write_all(part).unwrap();
            sleep(Duration::from_millis(100));
        }
    });
    let mut kills = 0;
    let mut was_recording = false;
    while !writer.is_finished() || kills < 12 {
        let mut follower = spawn(&follow);
        sleep(Duration::from_millis(150 + 97 * (kills % 7)));
        follower.kill().unwrap();
        let said = Ran::new(&follower.wait_with_output().unwrap());
        was_recording |= said.out.contains("\"event\":\"archived\"") && !writer.is_finished();
        kills += 1;
        let ids = listed(&volume);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "nothing is there twice");
    }
    writer.join().unwrap();
    assert!(was_recording, "it was archived while it was recorded");
    assert_eq!(recorder.wait_with_output().unwrap().status.code(), Some(0));
    archive(&volume, &[]).done();
    assert_eq!(listed(&volume), found(&volume));
    assert_eq!(listed(&volume).len(), 24_000);
    is_sound(&volume);
}

#[test]
fn a_follower_hears_that_it_is_to_stop_and_says_what_it_did() {
    let volume = Volume::recorded();
    let to = url(&volume);
    for signal in ["-INT", "-TERM"] {
        let follower = spawn(&[&words(&volume, &to)[..], &["--follow"]].concat());
        sleep(Duration::from_secs(2));
        let begun = Instant::now();
        Command::new("kill").args([signal, &follower.id().to_string()]).status().unwrap();
        let ran = Ran::new(&follower.wait_with_output().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("sensor dc1") && ran.out.contains("complete"), "{ran:?}");
    }
    assert_eq!(listed(&volume), found(&volume));
}

#[test]
fn what_the_ring_overwrites_before_it_is_archived_is_said_and_stored_as_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().join("volume"));
    let index = text(folder.path().join("index"));
    run(&["create", &path, "--size", "16M", "--piece", "64K", "--sparse"]).done();
    let volume = Volume { folder, path, index };
    let record = |name: &str, bytes: &[u8]| {
        let file = volume.file(name);
        fs::write(&file, bytes).unwrap();
        volume.record(&["--read", &file]).done();
    };
    record("first.pcap", &sessions(0, 2000));
    archive(&volume, &[]).done();
    let first = listed(&volume);
    assert_eq!(first.len(), 2000);
    record("then.pcap", &sessions(2000, 30_000));
    let ran = archive(&volume, &["--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("\"event\":\"overwritten\""), "{ran:?}");
    assert!(report(&ran)["overwritten_slots"].as_u64().unwrap() > 10, "{ran:?}");
    assert_eq!(report(&ran)["state"], "incomplete");
    // What was archived before stays, and all that is still held is added.
    let all: BTreeSet<String> = listed(&volume).into_iter().collect();
    assert!(first.iter().all(|id| all.contains(id)));
    assert!(found(&volume).iter().all(|id| all.contains(id)));
    assert_eq!(all.len(), listed(&volume).len());
    let losses = objects(Path::new(&volume.file("archive/losses/sensor=dc1")));
    assert!(!losses.is_empty());
    is_sound(&volume);
    // It is said once.
    let again = archive(&volume, &[]).done();
    assert!(again.out.ends_with("complete\n") || again.out.contains("\ncomplete\n"), "{again:?}");
}

#[test]
fn verify_finds_a_flipped_bit_a_missing_and_a_foreign_object() {
    let volume = Volume::recorded();
    archive(&volume, &[]).done();
    let folder = volume.file("archive/sessions");
    let all = objects(Path::new(&folder));
    let (path, bytes) = all.first_key_value().unwrap();
    let verify = || {
        let ran = run(&["archive", "verify", "--to", &url(&volume), "--sensor", "dc1", "--json"]);
        let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        let kinds = report["findings"].as_array().unwrap().iter();
        (ran.code, kinds.map(|it| it["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(verify(), (Some(0), vec![]));
    let mut flipped = bytes.clone();
    flipped[100] ^= 4;
    fs::write(path, flipped).unwrap();
    assert_eq!(verify(), (Some(1), vec!["damaged".to_owned()]));
    fs::remove_file(path).unwrap();
    assert_eq!(verify(), (Some(1), vec!["missing".to_owned()]));
    fs::write(path.with_file_name("other.parquet"), bytes).unwrap();
    assert_eq!(verify(), (Some(1), vec!["missing".to_owned(), "foreign".to_owned()]));
    let said = run(&["archive", "verify", "--to", &url(&volume)]);
    assert!(said.out.contains("2 findings") && said.out.contains("missing: sessions/"), "{said:?}");
    let other = run(&["archive", "verify", "--to", &url(&volume), "--sensor", "dc2"]);
    other.is_refused("there is no archive of the sensor dc2 at file://");
}

#[test]
fn merged_objects_have_the_same_sessions() {
    let volume = long_sessions::volume();
    archive(&volume, &[]).done();
    let before = listed(&volume);
    let file = volume.file("more.pcap");
    fs::write(&file, sessions(0, 5000)).unwrap();
    for _ in 0..2 {
        volume.record(&["--read", &file]).done();
        archive(&volume, &[]).done();
    }
    let before = [before, listed(&volume)].concat().into_iter().collect::<BTreeSet<_>>();
    let count = || objects(Path::new(&volume.file("archive/sessions"))).len();
    let many = count();
    let compact = ["archive", "compact", "--to", &url(&volume), "--sensor", "dc1"];
    let said = run(&compact).done().out;
    assert!(count() < many, "{said}");
    assert_eq!(listed(&volume).into_iter().collect::<BTreeSet<_>>(), before);
    assert_eq!(listed(&volume), found(&volume));
    is_sound(&volume);
    assert!(run(&compact).done().out.contains("nothing to merge"));
    // It goes on as before.
    volume.record(&["--read", CAPTURES]).done();
    archive(&volume, &[]).done();
    assert_eq!(listed(&volume), found(&volume));
}

#[test]
fn what_is_recorded_to_a_volume_that_was_put_back_is_not_called_archived() {
    let volume = Volume::empty();
    let record = |first, count| {
        let file = volume.file("sessions.pcap");
        fs::write(&file, sessions(first, count)).unwrap();
        volume.record(&["--read", &file]).done();
    };
    record(0, 20);
    archive(&volume, &[]).done();
    let image = volume.file("image");
    fs::copy(&volume.path, &image).unwrap();
    record(20, 20);
    archive(&volume, &[]).done();
    let archived = objects(Path::new(&volume.file("archive")));
    fs::copy(&image, &volume.path).unwrap();
    fs::remove_dir_all(&volume.index).unwrap();
    let ends_before = archive(&volume, &[]);
    assert_eq!(ends_before.code, Some(4), "{ends_before:?}");
    for first in [40, 60] {
        record(first, 20);
        let refused = archive(&volume, &[]);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.err.contains("is not what was archived"), "{refused:?}");
    }
    assert_eq!(objects(Path::new(&volume.file("archive"))), archived);
    let words = ["archive", &volume.path, "--to", &url(&volume), "--sensor", "dc1-2"];
    let other = report(&run(&[&words[..], &["--json"]].concat()).done());
    assert_eq!(other["sessions"], found(&volume).len(), "{other}");
}

#[test]
fn what_cannot_be_archived_is_refused_in_one_line() {
    let volume = Volume::recorded();
    let to =
        |to: &str, sensor: &str| run(&["archive", &volume.path, "--to", to, "--sensor", sensor]);
    for (url, sensor) in [("/data/archive", "dc1"), ("file:///data", "a/b"), ("s3://X/y", "dc1")] {
        assert_eq!(to(url, sensor).code, Some(2), "{url}");
    }
    assert_eq!(run(&["archive", &volume.path, "--sensor", "dc1"]).code, Some(2));
    let file = volume.file("a-file");
    fs::write(&file, "").unwrap();
    to(&format!("file://{file}"), "dc1").is_refused("refuses");
    run(&["archive", &volume.file("absent"), "--to", &url(&volume), "--sensor", "dc1"])
        .is_refused("does not exist");
    if cfg!(feature = "s3") {
        let bucket = ["archive", &volume.path, "--to", "s3://bucket/x", "--sensor", "dc1"];
        let endpoint = ["--endpoint", "http://10.0.0.1:1"];
        run(&[&bucket[..], &endpoint].concat()).is_refused("use https, or say --allow-http");
    } else {
        to("s3://bucket/x", "dc1").is_refused("no client of S3");
    }
}

/// Reads the archive as its guide says, and compares it with what `find` shows, field by field.
const COMPARE: &str = r#"
import json, sys, time
import duckdb, pyarrow.dataset as ds
root, found = sys.argv[1], [json.loads(line) for line in open(sys.argv[2])]
db = duckdb.connect()
files = f"'{root}/sessions/*/*/*/*.parquet'"
options = "hive_partitioning = true, union_by_name = true"
db.execute(f"CREATE VIEW sessions AS SELECT * FROM read_parquet({files}, {options})")
count = db.execute("SELECT count(*) FROM sessions").fetchone()[0]
assert count == len(found), (count, len(found))
cursor = db.execute("SELECT * FROM sessions")
names = [column[0] for column in cursor.description]
rows = {}
for values in cursor.fetchall():
    row = dict(zip(names, values))
    rows[row["session_id"]] = row
assert len(rows) == count
for session in found:
    row = rows[session["session_id"]]
    assert row["sensor"] == "dc1" and len(row["volume"]) == 32
    end = session["end_ns"] // 10**9
    hour = time.strftime("%Y-%m-%d %H", time.gmtime(end))
    assert f"{row['date']} {int(row['hour']):02}" == hour, (row["date"], row["hour"], hour)
    for key, value in session.items():
        if key not in ("packets_overwritten", "provisional"):
            assert row[key] == value, (key, row[key], value)
    own = {"volume", "sensor", "date", "hour"}
    absent = [name for name in names if name not in own and name not in session]
    assert all(row[name] is None for name in absent), absent
table = ds.dataset(f"{root}/sessions", format="parquet", partitioning="hive").to_table()
assert table.num_rows == count
assert sum(table["orig_packets"].to_pylist()) == sum(session["orig_packets"] for session in found)
start = min(session["start_ns"] for session in found)
assert db.execute("SELECT count(*) FROM sessions WHERE start_ns = ?", [start]).fetchone()[0] >= 1
print("compared", count)
"#;

#[test]
fn engines_read_what_find_shows() {
    let Some(python) = python("engines", &["duckdb", "pyarrow"]) else { return };
    for volume in [Volume::recorded(), long_sessions::volume()] {
        archive(&volume, &[]).done();
        let sessions = volume.file("found.json");
        let ran = run(&["find", &volume.path, "--json", "--index-dir", &volume.index]).done();
        fs::write(&sessions, ran.out).unwrap();
        let mut compare = Command::new(&python);
        compare.args(["-c", COMPARE, &volume.file("archive"), &sessions]);
        let ran = Ran::new(&compare.output().unwrap()).done();
        assert!(ran.out.starts_with("compared "), "{ran:?}");
    }
}

/// A server of S3 in a folder, on a port of its own.
#[cfg(feature = "s3")]
struct Server {
    child: Child,
    endpoint: String,
}

#[cfg(feature = "s3")]
impl Server {
    /// `None` with a printed reason where there is no such program and none can be built.
    fn new(volume: &Volume, port: u16) -> Option<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from)?;
        let cache = home.join(".cache/wirespool-tests");
        let program = cache.join("versitygw");
        if !program.exists() {
            let mut install = Command::new("timeout");
            install.args(["600", "go", "install"]);
            install.arg("github.com/versity/versitygw/cmd/versitygw@latest");
            drop(install.env("GOBIN", &cache).output());
        }
        if !program.exists() {
            println!("not run: no versitygw: go does not install it here");
            return None;
        }
        let folder = volume.file("s3");
        fs::create_dir_all(format!("{folder}/sessions")).unwrap();
        let mut command = Command::new(program);
        command.env("ROOT_ACCESS_KEY", "test").env("ROOT_SECRET_KEY", "testsecret");
        command.args(["--port", &format!("127.0.0.1:{port}"), "--region", "us-east-1"]);
        command.args(["posix", &folder]).stdout(Stdio::null()).stderr(Stdio::null());
        let server =
            Self { child: command.spawn().unwrap(), endpoint: format!("http://127.0.0.1:{port}") };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the server listens");
            sleep(Duration::from_millis(50));
        }
        Some(server)
    }
}

#[cfg(feature = "s3")]
impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[cfg(feature = "s3")]
fn with_keys(arguments: &[&str], secret: &str) -> Command {
    let mut command = command(arguments);
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", secret);
    command.env("AWS_REGION", "us-east-1");
    command
}

#[cfg(feature = "s3")]
#[test]
fn a_bucket_is_an_archive_as_a_folder_is() {
    let volume = Volume::recorded();
    let Some(server) = Server::new(&volume, 17_071) else { return };
    let endpoint = server.endpoint.clone();
    let to = ["--to", "s3://sessions/prod", "--endpoint", &endpoint];
    let words = ["archive", &volume.path, "--sensor", "dc1", "--index-dir", &volume.index];
    let all = [&words[..], &to].concat();
    let s3 = |arguments: &[&str]| Ran::new(&with_keys(arguments, "testsecret").output().unwrap());
    let wrong = Ran::new(&with_keys(&all, "wrong").output().unwrap());
    wrong.is_refused("look at the credentials");
    let nowhere = ["--to", "s3://nowhere/prod", "--endpoint", &endpoint];
    s3(&[&words[..], &nowhere].concat()).is_refused("nowhere");
    let ran = s3(&[&all[..], &["--json"]].concat()).done();
    assert_eq!(report(&ran)["sessions"], found(&volume).len());
    // The same names and bytes as in a folder.
    archive(&volume, &[]).done();
    let below = |folder: &str| -> BTreeMap<String, Vec<u8>> {
        let root = volume.file(folder);
        let all = objects(Path::new(&format!("{root}/sessions"))).into_iter();
        let name = |path: PathBuf| text(path.strip_prefix(&root).unwrap().to_path_buf());
        all.map(|(path, bytes)| (name(path), bytes)).collect()
    };
    assert_eq!(below("s3/sessions/prod"), below("archive"));
    let again = report(&s3(&[&all[..], &["--json"]].concat()).done());
    assert_eq!(again["objects"], 0);
    let verify = [&["archive", "verify"][..], &to].concat();
    s3(&verify).done();
    let compact = [&["archive", "compact", "--sensor", "dc1"][..], &to].concat();
    s3(&compact).done();
    s3(&verify).done();
    // It goes away while it is followed, and comes back.
    let mut follow = with_keys(&[&all[..], &["--follow", "--json"]].concat(), "testsecret");
    let follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(1));
    drop(server);
    volume.record(&["--read", CAPTURES]).done();
    sleep(Duration::from_secs(3));
    let server = Server::new(&volume, 17_071).unwrap();
    sleep(Duration::from_secs(8));
    Command::new("kill").args(["-INT", &follower.id().to_string()]).status().unwrap();
    let said = Ran::new(&follower.wait_with_output().unwrap()).done();
    assert!(said.out.contains("\"event\":\"away\""), "{said:?}");
    assert!(said.out.contains("\"event\":\"back\""), "{said:?}");
    let verified: Value =
        serde_json::from_str(&s3(&[&verify[..], &["--json"]].concat()).done().out).unwrap();
    assert_eq!(verified["sessions"], found(&volume).len());
    // Away, and to be stopped: at once.
    let mut follow = with_keys(&[&all[..], &["--follow"]].concat(), "testsecret");
    drop(server);
    let follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(2));
    let begun = Instant::now();
    Command::new("kill").args(["-TERM", &follower.id().to_string()]).status().unwrap();
    let said = Ran::new(&follower.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(2), "{said:?}");
    assert!(said.err.contains("is away"), "{said:?}");
}

#[test]
fn the_help_says_where_credentials_are_from() {
    let help = run(&["archive", "--help"]).done().out;
    assert!(help.contains("AWS_ACCESS_KEY_ID") && help.contains("file:///FOLDER"), "{help}");
}
