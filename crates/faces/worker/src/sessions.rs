//! Sessions as lines of JSON, behind the place of a cursor.

use core::ops::ControlFlow;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::net::UnixStream;

use completeness::Completeness;
use extract::Sought;
use found::{Event, Found, SortBy, Sorted};
use host::SystemClock;
use page::text::plural;
use query::{Field, Query};
use questions::{Answered, Cursor, Order, Refused, SessionsWanted, Statement};
use units::Timestamp;

use super::{Work, parse, refused};

/// Rows wait for so many bytes, or until the search says how far it is.
const ROWS_BYTES: usize = 32 << 10;

impl Work<'_> {
    pub(super) fn sessions(
        &self,
        wanted: &SessionsWanted,
        data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let query = behind(wanted)?;
        let mut rows = Rows {
            wanted,
            out: BufWriter::with_capacity(ROWS_BYTES, data),
            count: 0,
            bytes: 0,
            last: None,
            cut_by: None,
        };
        let mut sorted = sorted(wanted);
        let already = wanted.after.as_ref().map_or(0, |cursor| cursor.of_start);
        let limit = wanted.limit.map(|limit| limit.saturating_add(already));
        let limit = limit.filter(|_| sorted.is_none());
        let newest_first = wanted.order == Order::Newest;
        let sought = Sought { limit, newest_first, ..Sought::new(&query) };
        let (options, notes) = self.options()?;
        let report = extract::find_columns(&options, &sought, &SystemClock, &mut |event| {
            if self.is_over() {
                rows.cut_by = Some("time");
                return ControlFlow::Break(());
            }
            match (&mut sorted, event) {
                (Some(sorted), Event::Found(found)) => sorted.push(found),
                (Some(_), Event::Searched { .. }) => {}
                (None, event) => return rows.take(event),
            }
            ControlFlow::Continue(())
        });
        let report = report.map_err(|error| refused(&error))?;
        let mut completeness = report.completeness;
        let is_sorted = sorted.is_some();
        let left_out = sorted.map(|sorted| rows.take_sorted(sorted, &mut completeness));
        rows.out.flush().unwrap_or_default();
        if rows.cut_by == Some("limit") {
            (completeness.limited, completeness.stopped) = (true, false);
        }
        let is_at_limit = completeness.limited || completeness.unsought;
        let cut_by = rows.cut_by.or(is_at_limit.then_some("limit"));
        let has_rest = !is_sorted && (is_at_limit || completeness.stopped);
        let said = self.statement(&plural(rows.count, "session"), &completeness, (cut_by, notes));
        let unmet = || self.hint(&query, &report.met);
        Ok(Answered {
            count: rows.count,
            statement: Statement {
                hint: if rows.count == 0 { unmet() } else { None },
                left_out: left_out.filter(|count| *count > 0),
                ..said
            },
            next: if has_rest { rows.last.or(wanted.after.clone()) } else { None },
            manifest: None,
            hashes: None,
        })
    }
}

/// Takes sessions for the order of a field, if one is wanted.
fn sorted(wanted: &SessionsWanted) -> Option<Sorted> {
    let sort = wanted.sort.as_ref()?;
    let by = SortBy { field: Field::find(&sort.field)?, is_descending: sort.is_descending };
    Some(Sorted::new(by, wanted.limit, None))
}

/// The query, with the place of a cursor as a bound, so that nothing before it is read.
fn behind(wanted: &SessionsWanted) -> Result<Query, Refused> {
    let Some(cursor) = &wanted.after else { return parse(&wanted.query, wanted.now_ns) };
    let side = match wanted.order {
        Order::Oldest => ">=",
        Order::Newest => "<=",
    };
    let bound = format!("start_ns {side} {}", Timestamp(cursor.start_ns));
    let text = match wanted.query.trim() {
        "" => bound,
        query => format!("({query}) and {bound}"),
    };
    parse(&text, wanted.now_ns)
}

/// Sessions on their way out.
struct Rows<'a> {
    wanted: &'a SessionsWanted,
    out: BufWriter<&'a UnixStream>,
    count: u64,
    bytes: u64,
    last: Option<Cursor>,
    cut_by: Option<&'static str>,
}

impl Rows<'_> {
    fn take(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let written = match event {
            Event::Searched { .. } => self.out.flush(),
            Event::Found(found) => {
                let is_shown = self
                    .wanted
                    .after
                    .as_ref()
                    .is_none_or(|cursor| cursor.is_before(found.session.start.0, &found.id));
                if !is_shown {
                    return ControlFlow::Continue(());
                }
                if self.wanted.limit == Some(self.count) {
                    self.cut_by = Some("limit");
                    return ControlFlow::Break(());
                }
                if self.bytes >= self.wanted.bytes_max {
                    self.cut_by = Some("bytes");
                    return ControlFlow::Break(());
                }
                self.write(found)
            }
        };
        // Where nobody reads there is nobody to be told.
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Those that come first in their order; how many others did not fit into memory.
    fn take_sorted(&mut self, sorted: Sorted, missing: &mut Completeness) -> u64 {
        let left_out = sorted.left_out;
        missing.stopped |= left_out > 0;
        missing.limited = sorted.is_limited;
        for found in sorted.finish() {
            if self.take(Event::Found(&found)).is_break() {
                missing.stopped |= self.cut_by == Some("bytes");
                break;
            }
        }
        left_out
    }

    fn write(&mut self, found: &Found) -> io::Result<()> {
        let line = session_view::json_line(found);
        self.out.write_all(line.as_bytes())?;
        // The first one shows that there is an answer.
        if self.count == 0 {
            self.out.flush()?;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(units::number::to_u64(line.len()));
        let start_ns = found.session.start.0;
        let before = self.last.as_ref().or(self.wanted.after.as_ref());
        let of_start = before.filter(|last| last.start_ns == start_ns).map_or(0, |it| it.of_start);
        self.last = Some(Cursor {
            start_ns,
            session_id: found.id.clone(),
            // It came from a client, who may have written anything.
            of_start: of_start.saturating_add(1),
            order: self.wanted.order,
            now_ns: self.wanted.now_ns,
        });
        Ok(())
    }
}
