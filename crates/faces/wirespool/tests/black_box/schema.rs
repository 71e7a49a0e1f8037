//! Reports of `qualify` against their schema.

use serde_json::{Value, json};

use crate::machine::{run, text};

const SCHEMA: &str = include_str!("../../../../../docs/qualification.schema.json");
const COMPARISON: &str = include_str!("../../../../../docs/comparison.schema.json");
const PROFILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles/single-8tb.csv");

/// The schema allows fields that it does not know, for later programs; here each must be known.
fn strict(schema: &str) -> Value {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                object.values_mut().for_each(close);
                // The properties of an object may themselves be called so.
                if object.get("properties").is_some_and(Value::is_object) {
                    object.insert("additionalProperties".to_owned(), false.into());
                }
            }
            Value::Array(array) => array.iter_mut().for_each(close),
            _ => {}
        }
    }
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
    std::fs::write(&file, vec![1; 16 << 20]).unwrap();
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
    assert!(!validator.is_valid(&serde_json::json!({ "version": 1, "comparison": {} })));
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
