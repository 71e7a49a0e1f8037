//! What sessions sum up to: their bytes over time, and the values of fields with the most.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use extract::{Event, Measure, SERIES_COLUMNS, Sought, Top, Traffic};
use host::SystemClock;
use page::text::plural;
use query::Field;
use questions::{Answered, Refused, SummaryWanted};

use super::{Work, parse, refused};

impl Work<'_> {
    /// The members of a JSON object, without its braces: a statement follows them.
    pub(super) fn summary(
        &self,
        wanted: &SummaryWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let fields = wanted.fields.iter().filter_map(|name| Field::find(name));
        let mut tops: Vec<(&Field, Top)> = fields.map(|field| (field, Top::new(field))).collect();
        let mut columns = SERIES_COLUMNS.to_vec();
        columns.extend(["orig_packets", "resp_packets"]);
        columns.extend(tops.iter().flat_map(|(_, top)| top.columns()));
        let sought = Sought { columns: Some(&columns), ..Sought::new(&query) };
        let mut traffic = Traffic::default();
        let mut total = Measure::default();
        let (options, notes) = self.options()?;
        let report = extract::find_columns(&options, &sought, &SystemClock, &mut |event| {
            if let Event::Found(found) = event {
                traffic.add(&found.session);
                total.add(&Measure::of(found));
                for (_, top) in &mut tops {
                    top.add(found);
                }
            }
            self.flow()
        });
        let completeness = report.map_err(|error| refused(&error))?.completeness;
        let object = session_view::summary_json(&total, &traffic, tops, (wanted.by, wanted.limit));
        let members = object.strip_prefix('{').and_then(|rest| rest.strip_suffix("}\n"));
        data.write_all(members.unwrap_or_default().as_bytes()).unwrap_or_default();
        let cut_by = completeness.stopped.then_some("time");
        Ok(Answered {
            count: total.sessions,
            next: None,
            statement: self.statement(
                &plural(total.sessions, "session"),
                &completeness,
                (cut_by, notes),
            ),
            manifest: None,
            hashes: None,
        })
    }
}
