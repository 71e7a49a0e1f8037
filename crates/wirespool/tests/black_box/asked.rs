//! Plots and rankings: each says the same of a volume as `find --json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::machine::{Ran, Volume, run};

fn ask(volume: &Volume, verb: &str, rest: &[&str]) -> Ran {
    run(&[&[verb, &volume.path, "--index-dir", &volume.index], rest].concat())
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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

/// Of 10.0.0.0/8 and others: crates/query/tests/query/atlas.rs has what is in it.
const PLACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../query/tests/data/places.mmdb");

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
