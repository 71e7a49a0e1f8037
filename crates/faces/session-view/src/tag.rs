//! Sessions that an event of a log tagged.

use found::Found;
use logs::LogEvent;
use page::safe::json_line;
use serde::Serialize;

#[derive(Serialize)]
struct Tagged<'a> {
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
    let tag = Tagged {
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

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;

    #[test]
    fn a_line_says_everything_under_names_that_stay() {
        let mut found = crate::session::tests::found("/");
        found.community_id = found.session.community_ids().next();
        found.is_provisional = true;
        let event = LogEvent {
            label: "ET SCAN".to_owned(),
            is_alert: true,
            severity: Some(1),
            time: Timestamp(7),
            until: Timestamp(8),
            community_id: None,
            ends: None,
        };
        let line = concat!(
            r#"{"session_id":"9.0-1","community_id":"1:62cu0uxFAvnY7Tg3u3uFj0zrwAU=","#,
            r#""tag":"ET SCAN","severity":1,"event_ns":7,"start_ns":0,"provisional":true}"#,
            "\n"
        );
        assert_eq!(tag_line(&event, &found), line);
    }
}
