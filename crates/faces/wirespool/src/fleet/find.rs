//! `wirespool fleet find`.

use core::time::Duration;
use std::io::Write;

use ::completeness::State;
use ::engine::Question;
use ::flags::fields::{field, no_field, sort_by, zone_of};
use ::fleet::{Event, Form, Marks, Taken, Whole};
use ::found::SortBy;
use ::sensors::Finding;
use clap::Args;
use session_view::SessionColumns;
use tool_verbs::engine::{EngineFlags, Search};

use super::asked::{FleetFlags, MEMORY_BYTES, ask, check_answered, ended, names};
use crate::failure::{Outcome, Usage};
use crate::progress::{Progress, say};
use crate::selection::NamingFlags;
use crate::{arguments, stdout};

/// So many of the newest sessions are held by a sensor while it searches from its end.
const NEWEST_MAX: u64 = 10_000;

/// Find sessions of all sensors.
///
/// Shows the sessions of all sensors that match a query, oldest first, each with the name of its
/// sensor; of one that two sensors saw the second names the first (SAME AS, `same_as`). The first
/// ones are shown as soon as no sensor can have an earlier one. The answer ends with what is
/// missing from it, sensor by sensor. At most 128 MiB of sessions wait in memory for their place.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet find host 10.0.0.1 and port 443
  wirespool fleet find 'sni *.example.com' --json --deadline 10s
  wirespool fleet find 'port 53 and after 1h ago' --patience 200ms
  wirespool fleet find --sort bytes:desc --limit 10 --sensor west --sensor east
  wirespool fleet find --engine trino --url http://127.0.0.1:8080 'sni *.example.com'

Exit code 1 when the answer is incomplete, or a sensor did not answer; 5 when that is not known; 3
when none answered. What --limit leaves out does not count.")]
pub(super) struct Flags {
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// One JSON object a line; times in nanoseconds since 1970, absent fields left out
    #[arg(long)]
    json: bool,
    /// Comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Show these fields, in this order; `wirespool fields` lists them
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Order sessions by a field, the smallest first, or with FIELD:desc the largest; those without
    /// a value come last
    #[arg(long, value_name = "FIELD[:desc]")]
    sort: Option<String>,
    /// Show times in tables as the clocks of this machine do (TZ), with their offset
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    local: bool,
    /// Stop after this many sessions
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait for a silent sensor no longer than this before later sessions of others are shown; its
    /// own come behind them then, and are counted at the end. Without it order waits for the
    /// sensor's deadline
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    patience: Option<Duration>,
    #[command(flatten)]
    naming: NamingFlags,
    #[command(flatten)]
    fleet: FleetFlags,
    #[command(flatten)]
    engine: EngineFlags,
}

/// In which order sensors are asked, and by what it is merged.
struct Order {
    by: SortBy,
    parameter: Option<(&'static str, String)>,
}

impl Flags {
    fn order(&self) -> anyhow::Result<Order> {
        let by_start = |is_descending| SortBy {
            field: field("start_ns").expect("it is a field"),
            is_descending,
        };
        let Some(text) = &self.sort else {
            return Ok(Order { by: by_start(false), parameter: None });
        };
        let by = sort_by(text)?;
        if by.field.needs_atlas() {
            let name = by.field.name;
            let text = format!("--sort {name} has no meaning here: a service has no --mmdb");
            return Err(Usage(text).into());
        }
        let are_few = self.limit.is_some_and(|limit| limit <= NEWEST_MAX);
        let parameter = match (by.field.name, by.is_descending) {
            ("start_ns", true) if are_few => ("order", "newest".to_owned()),
            _ => ("sort", text.clone()),
        };
        Ok(Order { by, parameter: Some(parameter) })
    }

    fn form(&self) -> anyhow::Result<Form> {
        let columns = match &*self.columns {
            [] => None,
            names => Some(SessionColumns::new(names).map_err(no_field)?),
        };
        if let Some(field) = columns.as_ref().and_then(SessionColumns::needing_atlas) {
            let text = format!("the column {} has no meaning here: it needs --mmdb", field.name);
            return Err(Usage(text).into());
        }
        Ok(match (self.json, self.csv) {
            (true, _) => Form::Json(columns),
            (_, true) => Form::Csv(columns),
            _ => Form::table(columns, stdout::width(), zone_of(self.local)),
        })
    }
}

pub(super) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    let query = flags.naming.query_text(&flags.query)?;
    let parsed = arguments::query(&query)?;
    let Order { by, parameter } = flags.order()?;
    let mut form = flags.form()?;
    if flags.engine.is_given() {
        let (sensors, silence) = (&*flags.fleet.sensors, flags.fleet.sensor_deadline);
        let order = parameter.map(|_| by);
        let question = Question { query: &parsed, sensors, order, limit: flags.limit };
        return flags.engine.find(Search { question, form, silence });
    }
    let network = flags.fleet.network()?;
    let names = names(&network);
    let finding = Finding {
        network: &network,
        query,
        by,
        order: parameter,
        limit: flags.limit,
        memory_bytes: MEMORY_BYTES / names.len(),
    };
    let mut out = stdout::buffered();
    out.write_all(form.heading().as_bytes())?;
    let mut progress = Some(Progress::new("fleet find"));
    let (mut marks, mut count, mut is_limited) = (Marks::default(), 0_u64, false);
    let parts = ask(&finding, (&names, &flags.fleet.limits(flags.patience)), &mut |event| {
        let Event::Item(sensor, row) = event else {
            let shown = || page::text::plural(count, "session");
            if let Some(progress) = &mut progress {
                progress.text(&shown);
            }
            out.flush()?;
            return Ok(Taken::More);
        };
        if flags.limit == Some(count) {
            is_limited = true;
            return Ok(Taken::Enough);
        }
        // A bar has no place among the lines of an answer.
        if stdout::is_terminal() {
            progress.take().into_iter().for_each(Progress::finish);
        }
        count += 1;
        let first = if names.len() > 1 { marks.mark(sensor, &row.found) } else { None };
        out.write_all(form.take(&names, sensor, (&row.found, first)).as_bytes())?;
        Ok(Taken::More)
    });
    progress.into_iter().for_each(Progress::finish);
    let parts = parts?;
    out.write_all(form.finish().as_bytes())?;
    out.flush()?;
    let has_limit = flags.limit.is_some();
    let whole = Whole { parts, of: "session", is_limited, has_limit };
    check_answered(&whole)?;
    if marks.forgotten > 0 {
        let forgotten = page::text::plural(marks.forgotten, "session");
        say(&format!(
            "{forgotten} were too many to remember: a session seen twice may be unmarked"
        ));
    }
    let verdict = ended(&whole, stdout::is_terminal());
    if whole.count() == 0 && whole.state() == State::Complete && !stdout::is_terminal() {
        say("no session matches");
    }
    Ok(verdict)
}
