//! The rows of sessions that match, without joining them.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use format::head::StripeId;
use format::session_row::SessionRow;
use found::Event;
use index::Columns;
use units::{Clock, Times};

use crate::choice::look;
use crate::find::{FindReport, Opened, Sought};
use crate::identity::Identity;
use crate::known::Known;
use crate::scan::{Scan, Step};
use crate::walk::Notes;
use crate::wanted::{PIECES, Wanted};
use crate::{Error, Options};

/// Calls `visit` with the rows of the sessions that match, as far as they lie in the query's times,
/// in ring order: for what is summed over time and needs no session whole.
pub fn find_rows(
    options: &Options,
    sought: &Sought<'_>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(RowEvent<'_>) -> ControlFlow<()>,
) -> Result<FindReport, Error> {
    let Sought { query, .. } = *sought;
    let Opened { mut archive, mut notes, mut watch } = Opened::new(options, query, clock)?;
    let (from, to) = query.packet_time_range();
    let (mut known, mut flow) = (None, ControlFlow::Continue(()));
    if !query.is_of_rows(true) {
        let mut sessions = BTreeMap::new();
        flow = look(&mut archive, (query, None), &mut notes, &mut |event| match event {
            Event::Found(found) => {
                sessions.insert(Identity::of(&found.session), found.session.end);
                ControlFlow::Continue(())
            }
            Event::Searched { parts, of } => visit(RowEvent::Searched { parts, of }),
        })?;
        known = Some(Known::new(sessions));
    }
    let wanted = known.as_ref().map_or(Wanted::Query(query), Wanted::Sessions);
    if flow.is_continue() {
        let named = sought.columns.map(|columns| [columns, &[PIECES]].concat());
        let columns = named.as_deref().map_or(Columns::All, Columns::Named);
        let mut scan = Scan::new(&mut archive, wanted, columns, from..=to);
        flow = scan.run(&mut notes, &mut |step, _, _| {
            Ok(match step {
                Step::Part { .. } | Step::Before(_) => ControlFlow::Continue(()),
                Step::Row(id, row) => visit(RowEvent::Row(&row, id.segment)),
                Step::Progress { done: parts, of } => visit(RowEvent::Searched { parts, of }),
            })
        })?;
    }
    notes.explain.select_ns = watch.lap();
    let Notes { mut completeness, explain, met } = notes.settled(&archive);
    completeness.forget_but(&Times::of(from, to));
    completeness.stopped = flow.is_break();
    Ok(FindReport { sessions: 0, completeness, explain, met })
}

/// Events of a [`find_rows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowEvent<'a> {
    /// A row that matches, and the first stripe of its segment.
    Row(&'a SessionRow, StripeId),
    /// As [`Event::Searched`].
    Searched {
        /// Number of parts done.
        parts: usize,
        /// Number of all parts.
        of: usize,
    },
}
