//! Sessions that an event of a log tagged.

use found::Found;
use logs::LogEvent;
use page::safe::json_line;
use serde::Serialize;

#[derive(Serialize)]
struct TagJson<'a> {
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    community_id: Option<&'a str>,
    tag: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<u8>,
    event_ns: i64,
    start_ns: i64,
    /// The id holds until something else is recorded.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    provisional: bool,
}

/// A line that says which session an event tagged.
pub fn tag_line(event: &LogEvent, found: &Found) -> String {
    let tag = TagJson {
        session_id: &found.id,
        community_id: found.community_id.as_ref().map(|id| &*id.0),
        tag: &event.label,
        severity: event.severity,
        event_ns: event.time.0,
        start_ns: found.session.start.0,
        provisional: found.is_provisional,
    };
    json_line(&tag)
}
