//! Texts that others write: manifests of extracts, and logs of Suricata and Zeek. Whatever they
//! say, reading them ends with what they say or an error, and a query made of a log is one.

use view::{LogReader, log_events, parse_manifest};

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
    let events: Vec<_> = lines.chain(log_events(text).into_iter().flatten()).collect();
    for event in events {
        for margin_ns in [0, 1_000_000_000, i64::MAX] {
            if let Some(query) = event.query(margin_ns) {
                let parsed = query::Query::parse(&query, event.time);
                assert!(parsed.is_ok(), "{query}: {parsed:?}");
            }
        }
    }
}
