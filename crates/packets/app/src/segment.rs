//! TCP: what a payload says of the names of its session.

use crate::Budget;
use crate::application::Application;
use crate::findings::Findings;
use crate::payload::Segment;
use crate::search::{Interest, LOOK_LEN_MAX};

/// Looks at a TCP payload.
pub fn segment(
    findings: &mut Findings,
    interest: &mut Interest,
    segment: &Segment<'_>,
    budget: &mut Budget,
) {
    let (payload, is_cut) = match segment.payload.get(..LOOK_LEN_MAX) {
        Some(start) => (start, segment.payload.len() > LOOK_LEN_MAX),
        None => (segment.payload, false),
    };
    let is_truncated = segment.is_truncated || is_cut;
    let segment = &Segment { payload, is_truncated, ..*segment };
    let is_looked_at = segment.is_ahead
        || Application::of_segment(segment.payload, segment.ports).is_some()
        || interest.has_search() && findings.is_open_and(|search| search.awaits(segment.side));
    if !is_looked_at {
        // What follows a hello or a request is seldom another one.
        if interest.has_search() {
            findings.rest(interest, budget);
        }
        return;
    }
    let is_complete = findings.with(interest, budget, |search, budget| {
        search.push(segment, budget);
        search.is_complete()
    });
    if is_complete == Some(true) {
        findings.rest(interest, budget);
        *interest = Interest::NONE;
    }
}
