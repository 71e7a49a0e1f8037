//! Texts that others write: manifests of extracts, logs of Suricata and Zeek, and what a recorder
//! says of itself. Whatever they say, reading them ends with what they say or an error, and a query
//! made of a log is one.

use diagnose::recorder::{Recording, diagnose, parse_recorder};
use logs::{LogReader, log_events};
use machine_view::RecorderGrouping;
use manifest::parse_manifest;

/// # Panics
/// Reading does.
pub fn manifest(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    if let Ok(manifest) = parse_manifest(text) {
        assert!(manifest.outputs.len() <= text.len(), "an output takes some text");
        if let Some((sealed, _)) = manifest.sealed {
            assert!(text.starts_with(sealed), "what is sealed is the text in front of the seal");
        }
    }
}

/// # Panics
/// Reading does, or what is asked for is no query.
pub fn log(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let mut reader = LogReader::default();
    let lines = text.lines().filter_map(|line| reader.line(line).ok().flatten());
    let events: Vec<_> =
        lines.chain(log_events(text).into_iter().flat_map(|(events, _)| events)).collect();
    for event in events {
        for margin_ns in [0, 1_000_000_000, i64::MAX] {
            if let Some(query) = event.query(margin_ns) {
                let parsed = query::Query::parse(&query, event.time);
                assert!(parsed.is_ok(), "{query}: {parsed:?}");
            }
        }
    }
}

/// The state of a recorder, and a blank line and its state a moment before; whether it is one.
///
/// # Panics
/// Reading it does, or what is made of it.
pub fn recorder(input: &[u8]) -> bool {
    let Ok(text) = core::str::from_utf8(input) else { return false };
    let (now, before) = text.split_once("\n\n").unwrap_or((text, text));
    let state = parse_recorder(now).ok();
    let is_state = state.is_some();
    if state.is_some() {
        let report = diagnose(&Recording { state, ..Recording::default() });
        assert!(!machine_view::diagnosis(&report, Some(80)).is_empty());
        assert!(machine_view::diagnosis_json(&report).starts_with('{'));
    }
    let of = |state: &str| [("0".to_owned(), state.to_owned())];
    for grouping in
        [RecorderGrouping::Recorder, RecorderGrouping::Interface, RecorderGrouping::Disk]
    {
        let sheet = machine_view::recorders_sheet(&of(now), &of(before), grouping);
        assert!(sheet.lines.len() <= text.len(), "a line takes some text");
    }
    is_state
}
