//! What sessions sum up to: their traffic over time, and the values of fields with the most.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use extract::{FindReport, Sought};
use found::{Event, Found, Measure, SERIES_COLUMNS, Top};
use host::SystemClock;
use page::text::plural;
use query::{Field, Query};
use questions::{Answered, Refused, SummaryWanted};
use session_view::OverTime;

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
        let mut over_time = self.series(wanted, &query)?;
        let mut columns = SERIES_COLUMNS.to_vec();
        columns.extend(["orig_packets", "resp_packets"]);
        columns.extend(tops.iter().flat_map(|(_, top)| top.columns()));
        let series = wanted.series.as_deref().and_then(Field::find);
        columns.extend(series.map_or(&[][..], Field::columns));
        let mut total = Measure::default();
        let (report, notes) = self.each(&query, &columns, &mut |found| {
            over_time.add(found);
            total.add(&Measure::of(found));
            for (_, top) in &mut tops {
                top.add(found);
            }
        })?;
        let completeness = report.completeness;
        let order = (wanted.by, wanted.limit);
        let object = session_view::summary_json(&total, &over_time, tops, order);
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

    /// What tells traffic over time apart. The largest values of a field are known when all
    /// sessions were seen once, so that they are read twice.
    fn series(&self, wanted: &SummaryWanted, query: &Query) -> Result<OverTime, Refused> {
        let weight = wanted.over_time;
        let Some(field) = wanted.series.as_deref().and_then(Field::find) else {
            return Ok(OverTime::by_protocol(weight));
        };
        let mut top = Top::new(field);
        self.each(query, &top.columns(), &mut |found| top.add(found))?;
        Ok(OverTime::by_value(field, top, weight))
    }

    /// Shows each session that matches, of which these columns are read.
    fn each(
        &self,
        query: &Query,
        columns: &[&'static str],
        visit: &mut dyn FnMut(&Found),
    ) -> Result<(FindReport, Vec<String>), Refused> {
        let sought = Sought { columns: Some(columns), ..Sought::new(query) };
        let (options, notes) = self.options()?;
        let report = extract::find_columns(&options, &sought, &SystemClock, &mut |event| {
            if let Event::Found(found) = event {
                visit(found);
            }
            self.flow()
        });
        Ok((report.map_err(|error| refused(&error))?, notes))
    }
}
