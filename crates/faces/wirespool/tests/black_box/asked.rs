//! SQL, plots and rankings: each says the same of a volume as `find --json`.

use std::collections::BTreeMap;
#[cfg(feature = "sql")]
use std::time::{Duration, Instant};

use serde_json::Value;

#[cfg(feature = "sql")]
use crate::golden::capture;
#[cfg(feature = "sql")]
use crate::machine;
use crate::machine::{Ran, Volume, run};

fn ask(volume: &Volume, verb: &str, rest: &[&str]) -> Ran {
    run(&[&[verb, &volume.path, "--index-dir", &volume.index], rest].concat())
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[cfg(feature = "sql")]
fn sql(volume: &Volume, query: &str) -> Vec<Value> {
    objects(&ask(volume, "sql", &["--json", query]).done().out)
}

fn sessions(volume: &Volume) -> Vec<Value> {
    objects(&ask(volume, "find", &["--json"]).done().out)
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}"))
}

fn bytes(row: &Value) -> u64 {
    number(row, "orig_frame_bytes") + number(row, "resp_frame_bytes")
}

#[cfg(feature = "sql")]
#[test]
fn sql_has_the_sessions_that_find_shows() {
    let volume = Volume::recorded();
    let found = sessions(&volume);
    let mut rows = sql(&volume, "SELECT * FROM sessions ORDER BY start_ns, session_id");
    assert_eq!(rows.len(), found.len());
    rows.sort_by_key(|row| row["session_id"].as_str().unwrap().to_owned());
    let mut expected = found.clone();
    expected.sort_by_key(|row| row["session_id"].as_str().unwrap().to_owned());
    for (row, expected) in rows.iter().zip(&expected) {
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&row[name], value, "{name} of {expected}");
        }
        assert_eq!(number(row, "frame_bytes"), bytes(expected));
    }
    // What is pushed down leaves the answer as it is.
    let ip = found[0]["orig_ip"].as_str().unwrap();
    let of_ip = found.iter().filter(|row| row["orig_ip"] == ip).count();
    let counted =
        sql(&volume, &format!("SELECT count(*) AS n FROM sessions WHERE orig_ip = '{ip}'"));
    assert_eq!(counted[0]["n"], of_ip);
    let id = found[0]["community_id"].as_str().unwrap();
    let counted =
        sql(&volume, &format!("SELECT orig_packets FROM sessions WHERE community_id = '{id}'"));
    assert_eq!(counted[0]["orig_packets"], found[0]["orig_packets"]);
    let start = found[found.len() / 2]["start_ns"].as_i64().unwrap();
    let later = found.iter().filter(|row| row["start_ns"].as_i64().unwrap() >= start).count();
    let query =
        format!("SELECT count(*) AS n FROM sessions WHERE start_ns >= to_timestamp_nanos({start})");
    assert_eq!(sql(&volume, &query)[0]["n"], later);
}

/// Every field that queries know, but for those that stand for either end or need a database, in
/// every session of captures of many protocols: the same value, or none in both.
#[cfg(feature = "sql")]
#[test]
fn every_field_is_the_same_in_sql_and_in_json() {
    let volume = Volume::recorded();
    for corpus in testdata::Corpus::all() {
        let captures = corpus.path().join("pcap");
        // Some of the large one's captures are damaged, which the exit code says.
        volume.record(&["--read", captures.to_str().unwrap(), "--name", "corpus"]);
    }
    let fields: Vec<Value> = serde_json::from_str(&run(&["fields", "--json"]).done().out).unwrap();
    let names = fields.iter().map(|field| field["name"].as_str().unwrap());
    let elsewhere =
        ["host", "port", "country", "asn", "as_name", "orig_country", "resp_country", "orig_asn"];
    let elsewhere = [&elsewhere[..], &["resp_asn", "orig_as_name", "resp_as_name", "tag"]].concat();
    let mut names: Vec<&str> = names.filter(|name| !elsewhere.contains(name)).collect();
    assert!(names.len() > 90, "{names:?}");
    names.extend(["proto_name", "tls_version_name", "tls_cipher_name", "packets_overwritten"]);
    let found = objects(&ask(&volume, "find", &["--json", "--columns", &names.join(",")]).out);
    let query = format!("SELECT {} FROM sessions", names.join(", "));
    let rows = objects(&ask(&volume, "sql", &["--json", &query]).out);
    let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
        let id = |row: &Value| row["session_id"].as_str().unwrap().to_owned();
        rows.into_iter().map(|row| (id(&row), row)).collect()
    };
    let (found, rows) = (by_id(found), by_id(rows));
    assert_eq!(found.keys().collect::<Vec<_>>(), rows.keys().collect::<Vec<_>>());
    let mut differs: BTreeMap<&str, String> = BTreeMap::new();
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    for (id, found) in &found {
        for name in &names {
            *values.entry(name).or_default() += usize::from(!found[name].is_null());
            if found[name] != rows[id][name] {
                let both = format!("{} in JSON, {} in SQL, of {id}", found[name], rows[id][name]);
                differs.entry(name).or_insert(both);
            }
        }
    }
    assert!(differs.is_empty(), "{differs:#?}");
    for name in ["tls_cipher_name", "name", "dns_names", "http_host", "recording"] {
        assert!(values[name] > 0, "no session has {name}, so nothing was compared");
    }
}

#[cfg(feature = "sql")]
#[test]
fn pieces_and_gaps_are_tables_that_can_be_joined() {
    let volume = Volume::recorded();
    let packets: u64 = sessions(&volume)
        .iter()
        .map(|row| number(row, "orig_packets") + number(row, "resp_packets"))
        .sum();
    let pieces = sql(&volume, "SELECT sum(stripe_packets) AS packets, count(*) AS n FROM pieces");
    assert_eq!(number(&pieces[0], "packets"), packets);
    assert!(number(&pieces[0], "n") > 0);
    assert!(sql(&volume, "SELECT * FROM gaps").is_empty());
    let joined = sql(
        &volume,
        "SELECT count(*) AS n FROM pieces p JOIN (SELECT session_id, unnest(piece_sequences) AS s \
         FROM sessions) x ON x.s = p.piece_sequence WHERE p.piece_column = 0",
    );
    assert!(number(&joined[0], "n") > 0);
}

#[cfg(feature = "sql")]
#[test]
fn pieces_have_a_statement() {
    use std::io::Write as _;

    let volume = Volume::empty();
    let more = ["--pool", "4M"];
    let (mut recorder, mut input) = machine::recorder(&volume.path, &volume.index, &more);
    input.write_all(&capture(1_700_000_000_000_000_000, 0..50)).unwrap();
    let started = Instant::now();
    while run(&["find", &volume.path, "", "--csv"]).out.lines().count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(30), "what has come is acknowledged");
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    for table in ["pieces", "gaps", "sessions"] {
        let asked = ask(&volume, "sql", &[&format!("SELECT count(*) FROM {table}")]);
        assert_eq!(asked.code, Some(5), "{table}: {asked:?}");
        assert!(asked.err.contains("a recorder ended without a stop"), "{table}: {asked:?}");
    }
}

#[cfg(feature = "sql")]
#[test]
fn exported_files_answer_as_the_volume_does() {
    let volume = Volume::recorded();
    let query =
        "SELECT app, count(*) AS n, sum(frame_bytes) AS b FROM sessions GROUP BY app ORDER BY app";
    let expected = sql(&volume, query);
    let [by_find, by_sql] = ["find.parquet", "sql.parquet"].map(|name| volume.file(name));
    ask(&volume, "find", &["--parquet", &by_find]).done();
    ask(&volume, "sql", &["SELECT * FROM sessions", "--parquet", &by_sql]).done();
    for file in [&by_find, &by_sql] {
        assert_eq!(objects(&run(&["sql", file, "--json", query]).done().out), expected, "{file}");
    }
    ask(&volume, "find", &["--parquet", &by_find]).is_refused("exists");
    ask(&volume, "find", &["--parquet", &by_find, "--force"]).done();
    // The folder of both, by days as a lake has them.
    let folder = volume.file("lake");
    for (day, file) in [("2026-11-20", &by_find), ("2026-11-21", &by_sql)] {
        let day = format!("{folder}/date={day}");
        std::fs::create_dir_all(&day).unwrap();
        std::fs::copy(file, format!("{day}/part.parquet")).unwrap();
    }
    let days = run(&[
        "sql",
        &folder,
        "--json",
        "SELECT date, count(*) AS n FROM sessions GROUP BY date ORDER BY 1",
    ]);
    let days = objects(&days.done().out);
    assert_eq!((days.len(), &days[0]["date"]), (2, &"2026-11-20".into()));
    assert_eq!(days[0]["n"], days[1]["n"]);
    let csv = ask(&volume, "sql", &["--csv", "SELECT 1 AS one, 'a,b' AS two"]).done().out;
    assert_eq!(csv, "one,two\n1,\"a,b\"\n");
}

#[cfg(feature = "sql")]
#[test]
fn a_wrong_query_in_sql_is_shown_with_its_place() {
    let volume = Volume::recorded();
    for (query, message) in [
        ("SELCT 1", "(line 1, column 1)"),
        ("SELECT orig_ipp FROM sessions", "there is no column \"orig_ipp\""),
        (
            "SELECT orig_ipp FROM sessions",
            "did you mean \"orig_ip\"?\n  SELECT orig_ipp FROM sessions\n         ^\n",
        ),
        ("SELECT bytes FROM sessions", "did you mean \"frame_bytes\"?"),
        ("SELECT * FROM session", "there is no table \"session\" (tables: gaps, pieces, sessions)"),
        ("SELECT * FROM session", "did you mean \"sessions\"?"),
        ("DROP TABLE sessions", "a query only reads"),
        ("COPY sessions TO '/tmp/x.parquet'", "a query only reads"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "a query only reads"),
        ("SELECT * FROM '/etc/passwd'", "there is no table"),
        ("SELECT nonesuch(1)", "nonesuch"),
        ("SELECT 1; SELECT 2", "a single SQL statement"),
        ("SELECT CAST('x' AS BIGINT)", "x"),
    ] {
        let ran = ask(&volume, "sql", &[query]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{query}: {ran:?}");
        assert!(
            ran.err.starts_with("wirespool: ") && ran.err.contains(message),
            "{query}: {}",
            ran.err
        );
    }
    run(&["sql", "/nowhere/volume", "SELECT 1"]).is_refused("/nowhere/volume does not exist");
    let file = volume.file("broken.parquet");
    std::fs::write(&file, b"PAR1 not really").unwrap();
    run(&["sql", &file, "SELECT 1"]).is_refused("broken.parquet");
    let folder = volume.file("empty");
    std::fs::create_dir(&folder).unwrap();
    run(&["sql", &folder, "SELECT 1"]).is_refused("empty: no Parquet file is there");
}

#[test]
fn a_ranking_and_a_plot_sum_up_to_what_find_shows() {
    let volume = Volume::recorded();
    let found = sessions(&volume);
    let total: u64 = found.iter().map(bytes).sum();
    let mut by_app: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in found.iter().filter(|row| row.get("app").is_some()) {
        let sum = by_app.entry(row["app"].as_str().unwrap().to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes(row));
    }
    let top = objects(&ask(&volume, "find", &["--top", "app", "--json"]).done().out);
    assert_eq!(top.len(), by_app.len());
    for row in &top {
        let (count, sum) = by_app[row["value"].as_str().unwrap()];
        assert_eq!((number(row, "sessions"), number(row, "bytes")), (count, sum), "{row}");
    }
    assert!(top.is_sorted_by_key(|row| core::cmp::Reverse(number(row, "bytes"))));
    let few = ask(&volume, "find", &["--top", "resp_port", "--by", "sessions", "--limit", "2"]);
    assert!(few.done().out.contains("further values"));
    let plot = objects(&ask(&volume, "find", &["--plot", "--json"]).done().out);
    let drawn: u64 = plot
        .iter()
        .flat_map(|bucket| bucket["bytes"].as_object().unwrap().values())
        .map(|bytes| bytes.as_u64().unwrap())
        .sum();
    assert_eq!(drawn, total);
    let text = ask(&volume, "find", &["--plot"]).done().out;
    assert!(text.contains("bit/s |") && text.contains("a column is"), "{text}");
    let wrong = ask(&volume, "find", &["--top", "sniw"]);
    wrong.fails_with(2, "there is no field \"sniw\"; did you mean \"sni\"?");
    let cost = ask(&volume, "find", &["tcp", "--json", "--explain"]).done().err;
    let cost: Value = serde_json::from_str(cost.trim()).unwrap();
    assert!(cost["explain"]["segments"].is_u64() && cost["explain"]["look_ns"].is_i64(), "{cost}");
}

/// Of 10.0.0.0/8 and others: crates/sessions/query/tests/query/atlas.rs has what is in it.
const PLACES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../sessions/query/tests/data/places.mmdb");

#[test]
fn countries_come_from_a_database_that_is_named() {
    let volume = Volume::recorded();
    let near = |row: &&Value| {
        ["orig_ip", "resp_ip"].iter().any(|end| row[end].as_str().unwrap().starts_with("10."))
    };
    let expected = sessions(&volume).iter().filter(near).count();
    let found = ask(&volume, "find", &["country = DE", "--json", "--mmdb", PLACES]).done().out;
    assert_eq!(objects(&found).len(), expected);
    let top = ask(&volume, "find", &["--top", "country", "--json", "--mmdb", PLACES]).done().out;
    let counts: Vec<u64> = objects(&top)
        .iter()
        .filter(|row| row["value"] == "de")
        .map(|row| number(row, "sessions"))
        .collect();
    assert_eq!(counts, [u64::try_from(expected).unwrap()]);
    let missing = "the field asn needs a database of addresses: --mmdb FILE";
    ask(&volume, "find", &["asn = 64500"]).fails_with(2, missing);
    ask(&volume, "extract", &["asn = 64500", "-w", &volume.file("out.pcapng")])
        .fails_with(2, missing);
    let wrong = ask(&volume, "find", &["asn = 64500", "--mmdb", &volume.path]);
    wrong.fails_with(2, "not an MMDB file");
}
