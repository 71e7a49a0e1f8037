//! Schemas of reports, and reports against them.

use std::fs;
use std::path::Path;

use machine_view::Explained;
use page::schema::{close, schema_json};
use qualify_view::{ComparisonFile, QualificationFile};
use serde_json::{Value, json};
use session_view::Session;
use upkeep::Verification;
use volume_view::{Standing, WithMap};

use crate::machine::{run, text};

const SCHEMA: &str = include_str!("../../../../../docs/qualification.schema.json");
const COMPARISON: &str = include_str!("../../../../../docs/comparison.schema.json");
const PROFILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles/single-8tb.csv");

/// The schema allows fields that it does not know, for later programs; here each must be known.
fn strict(schema: &str) -> Value {
    let mut schema = serde_json::from_str(schema).unwrap();
    close(&mut schema);
    schema
}

#[track_caller]
fn check(schema: &Value, report: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(report)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

fn report(arguments: &[&str]) -> Value {
    let ran = run(&[&["qualify"], arguments, &["--json"]].concat());
    assert!(matches!(ran.code, Some(0 | 1 | 5)), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn files_of_schemas_are_what_the_types_of_reports_say() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let is_update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    for (name, schema) in [
        (
            "qualification.schema.json",
            schema_json::<QualificationFile<'_>>("A qualification by wirespool, version 1"),
        ),
        (
            "comparison.schema.json",
            schema_json::<ComparisonFile<'_>>(
                "A comparison by wirespool qualify --compare, version 1",
            ),
        ),
        ("schemas/diagnose.json", schema_json::<Explained<'_>>("wirespool diagnose --json")),
        ("schemas/find.json", schema_json::<Session>("A line of wirespool find --json")),
        ("schemas/inspect.json", schema_json::<WithMap<'_>>("wirespool inspect --json")),
        ("schemas/status.json", schema_json::<Standing<'_>>("wirespool status --json")),
        ("schemas/verify.json", schema_json::<Verification>("wirespool verify --json")),
    ] {
        let path = documents.join(name);
        if is_update {
            fs::write(&path, &schema).unwrap();
        }
        let is_so = fs::read_to_string(&path).is_ok_and(|file| file == schema);
        assert!(is_so, "docs/{name} is not what its type says: INSTA_UPDATE=always writes it");
    }
}

#[test]
fn reports_are_as_the_schema_says_and_have_nothing_else() {
    let strict = strict(SCHEMA);
    let disks = ["--data-disks", "2", "--parity-disks", "1", "--rate", "1G", "--size", "64G"];
    let modelled = report(&[&["--model", PROFILE], &disks[..]].concat());
    assert!(modelled["parts"].as_array().unwrap().len() >= 7);
    check(&strict, &modelled);
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path().into());
    let own = report(&[&path, "--size", "64M", "--part", "fill", "--part", "reads"]);
    check(&strict, &own);
    let file = text(folder.path().join("file"));
    fs::write(&file, vec![1; 16 << 20]).unwrap();
    check(&strict, &report(&[&file, "--blocks", "1"]));
}

#[test]
fn comparisons_are_as_their_schema_says_and_have_nothing_else() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = folders.each_ref().map(|folder| text(folder.path().into()));
    let flags = ["--rounds", "12", "--run-size", "8M", "--block", "1M", "--fact", "/proc/uptime"];
    let found = report(&[&["--compare", &one, &other][..], &flags].concat());
    assert_eq!(found["comparison"]["targets"][1]["runs"].as_array().unwrap().len(), 12);
    check(&strict(COMPARISON), &found);
    let strict = strict(COMPARISON);
    let validator = jsonschema::validator_for(&strict).unwrap();
    assert!(!validator.is_valid(&json!({ "version": 1, "comparison": {} })));
}

#[test]
fn what_is_no_report_is_not_valid() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let whole = report(&["--model", PROFILE, "--size", "64G", "--part", "sweep"]);
    assert!(validator.is_valid(&whole));
    let with = |pointer: &str, value: Value| {
        let mut report = whole.clone();
        *report.pointer_mut(pointer).unwrap() = value;
        report
    };
    for (pointer, value) in [
        ("/version", json!(2)),
        ("/started_ns", json!("now")),
        ("/target/kind", json!("tape")),
        ("/parts/0/part", json!("dance")),
        ("/parts/0/steps/3/bytes", json!(-1)),
        ("/verdict/judged/0/order", json!(null)),
        ("/verdict/mix", json!({})),
    ] {
        assert!(!validator.is_valid(&with(pointer, value.clone())), "{pointer}: {value}");
    }
    let mut more = whole.clone();
    more["later"] = json!(1);
    assert!(validator.is_valid(&more), "later programs may add fields");
}
