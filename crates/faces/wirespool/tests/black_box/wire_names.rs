//! The names and types of everything that `--json` prints and that extracts and archives say of
//! themselves: programs of others read them, so a change of one is a change of the product.
//!
//! A snapshot has a line for each place in the output, of all elements of a list together. Where a
//! change is meant, `INSTA_UPDATE=always` takes it over, and the changelog names it. What depends
//! on the machine (`diagnose`, `top`, `bench`, `prove`) is held beside its types.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Deserializer, Value};

use crate::machine::{CAPTURES, run, text};

const PROFILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles/single-8tb.csv");

/// Types by their place.
type Shape = BTreeMap<String, BTreeSet<&'static str>>;

fn add(shape: &mut Shape, place: &str, value: &Value) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    shape.entry(place.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(elements) => {
            for element in elements {
                add(shape, &format!("{place}[]"), element);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                add(shape, &format!("{place}.{name}"), value);
            }
        }
        _ => {}
    }
}

/// Of one or several JSON values.
fn shape(output: &str) -> String {
    let mut shape = Shape::new();
    for value in Deserializer::from_str(output).into_iter::<Value>() {
        add(&mut shape, "", &value.unwrap());
    }
    let kinds = |kinds: BTreeSet<&str>| kinds.into_iter().collect::<Vec<_>>().join(" or ");
    let line = |(place, of): (String, _)| format!("{place}: {}\n", kinds(of));
    shape.into_iter().map(line).collect()
}

/// What was printed, once it was compared.
#[track_caller]
fn holds(name: &str, arguments: &[&str]) -> String {
    let ran = run(&[arguments, &["--json"]].concat()).done();
    insta::assert_snapshot!(name, shape(&ran.out));
    ran.out
}

/// Three members with a recording, and their folder.
struct Ring {
    folder: tempfile::TempDir,
}

impl Ring {
    fn recorded() -> Self {
        let ring = Self { folder: tempfile::tempdir().unwrap() };
        let [first, second, third] = ["m0", "m1", "m2"].map(|name| ring.file(name));
        let shape = ["--parity", "1", "--size", "32M", "--piece", "256K", "--sparse"];
        let members = ["create", &first, "--member", &second, "--member", &third];
        holds("create", &[&members[..], &shape].concat());
        let index = ring.file("index");
        let record = ["record", &first, "--read", CAPTURES, "--pool", "4M", "--index-dir", &index];
        holds("record", &record);
        ring
    }

    fn file(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }
}

#[test]
fn names_of_volumes_stay() {
    let ring = Ring::recorded();
    let [first, second, third] = ["m0", "m1", "m2"].map(|name| ring.file(name));
    holds("status", &["status", &first]);
    holds("inspect", &["inspect", &first]);
    holds("inspect-map", &["inspect", &first, "--map"]);
    holds("verify", &["verify", &first]);
    holds("scrub", &["scrub", &first]);
    holds("resilver", &["resilver", &first]);
    holds("keys", &["keys", &first]);
    let anchor = ring.file("anchor");
    run(&["anchor", &first, "-w", &anchor]).done();
    holds("verify-anchor", &["verify", &first, "--anchor", &anchor]);
    holds("salvage", &["salvage", &first, &second, &third, "-w", &ring.file("all.pcapng")]);
    holds("replace", &["replace", &first, "2", &ring.file("m3")]);
    holds("grow", &["grow", &first, &ring.file("m4")]);
    holds("grow-spare", &["grow", &first, &ring.file("m5"), "--spare"]);
    holds("status-with-spare", &["status", &first]);
}

#[test]
fn names_of_sessions_stay() {
    let ring = Ring::recorded();
    let (first, index) = (ring.file("m0"), ring.file("index"));
    let in_index = ["--index-dir", index.as_str()];
    let find = |name, more: &[&str]| holds(name, &[&["find", &first], more, &in_index].concat());
    find("find", &[""]);
    find("find-top", &["", "--top", "app"]);
    find("find-plot", &["", "--plot"]);
    holds("fields", &["fields"]);
    let extract = ring.file("dns.pcapng");
    run(&[&["extract", &first, "dns", "-w", &extract], &in_index[..]].concat()).done();
    insta::assert_snapshot!("manifest", shape(&fs::read_to_string(extract + ".json").unwrap()));
    let holds_folder = ring.file("holds");
    let hold = ["hold", &first, "dns", "--hold-dir", &holds_folder];
    run(&[&hold[..], &in_index].concat()).done();
    holds("hold-list", &["hold", "--list", "--hold-dir", &holds_folder]);
    let (url, to) = (format!("file://{}", ring.file("archive")), ["--sensor", "s", "--to"]);
    holds("archive", &[&["archive", &first], &to[..], &[&url], &in_index].concat());
    holds("archive-verify", &[&["archive", "verify"], &to[..], &[&url]].concat());
}

#[test]
fn names_of_qualifications_stay() {
    let folder = tempfile::tempdir().unwrap();
    let report = text(folder.path().join("report.json"));
    let model = ["qualify", "--model", PROFILE, "--rate", "1G"];
    fs::write(&report, holds("qualify-model", &model)).unwrap();
    holds("qualify-diff", &["qualify", "diff", &report, &report]);
    let plan = ["qualify", "plan", "--rate", "10G", "--mean", "1G", "--days", "10"];
    holds("qualify-plan", &plan);
}
