//! Sessions for a tag, by the rules of `wirespool tag`: those that an event of a log names, within
//! a minute of it; or those that match a query.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use found::Event;
use host::SystemClock;
use logs::{LogEvent, LogReader, MARGIN_NS};
use page::text::plural;
use query::Query;
use questions::{Answered, Refused, TagBy, TagWanted, Why, narrowed};
use units::Timestamp;

use super::{Work, parse, refused};

impl Work<'_> {
    pub(super) fn tag(
        &self,
        wanted: &TagWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let (event, query) = asked(wanted)?;
        let (options, notes) = self.options()?;
        let limit = Some(wanted.sessions_max);
        let (mut lines, mut count) = (String::new(), 0);
        let report = extract::find(&options, &query, limit, &SystemClock, &mut |step| {
            if let Event::Found(found) = step {
                lines.push_str(&session_view::tag_line(&event, found));
                count += 1;
            }
            self.flow()
        });
        let completeness = report.map_err(|error| refused(&error))?.completeness;
        data.write_all(lines.as_bytes()).unwrap_or_default();
        let by_time = completeness.stopped.then_some("time");
        let cut_by = completeness.limited.then_some("limit").or(by_time);
        Ok(Answered {
            count,
            next: None,
            statement: self.statement(&plural(count, "session"), &completeness, (cut_by, notes)),
            manifest: None,
            hashes: None,
        })
    }
}

/// What is said of sessions, and which ones these are.
fn asked(wanted: &TagWanted) -> Result<(LogEvent, Query), Refused> {
    let (event, text) = match &wanted.by {
        TagBy::Event(line) => of_log(line)?,
        TagBy::Query { query, tag, severity } => {
            let event = LogEvent {
                label: tag.clone(),
                is_alert: true,
                severity: *severity,
                time: Timestamp(wanted.now_ns),
                until: Timestamp(wanted.now_ns),
                community_id: None,
                ends: None,
            };
            (event, query.clone())
        }
    };
    // By itself first: with a parenthesis too many it would get out of the filter.
    let query = parse(&text, wanted.now_ns)?;
    let Some(filter) = &wanted.filter else { return Ok((event, query)) };
    Ok((event, parse(&narrowed(Some(filter), &text), wanted.now_ns)?))
}

fn of_log(line: &str) -> Result<(LogEvent, String), Refused> {
    let wrong = |why: &str| Refused { why: Why::Wrong, ..Refused::because(&why) };
    let event = LogReader::default().line(line);
    let event = event.map_err(|_| wrong("the event is no line of Suricata or Zeek in JSON"))?;
    let event = event.ok_or_else(|| wrong("the event names no session"))?;
    let text = event.query(MARGIN_NS).ok_or_else(|| wrong("the event names no session"))?;
    Ok((event, text))
}
