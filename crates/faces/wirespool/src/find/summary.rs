//! `find --plot` and `find --top`: what the sessions sum up to.

use ::extract::{FindReport, Options, RowEvent, Sought, find_columns, find_rows};
use ::flags::fields::field;
use ::found::{Event, Found, SERIES_COLUMNS, Top, Traffic, Weight};
use host::{StopFlag, SystemClock};
use page::PlotStyle;
use query::Query;

use super::flags::{By, Flags};
use super::remote::sessions;
use super::source::Source;
use crate::answered::Answered;
use crate::failure::of_extract;
use crate::progress::Progress;
use crate::stdout;
use ::remote::Wanted;

/// Values shown where no limit is given.
const VALUES: u64 = 20;
/// Width of a plot that does not go to a terminal.
const WIDTH: usize = 80;

/// Draws the traffic over time.
pub(super) fn plot(flags: &Flags, options: &Options, query: &Query) -> anyhow::Result<Answered> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("find");
    let mut traffic = Traffic::default();
    let sought = Sought { columns: Some(SERIES_COLUMNS), ..Sought::new(query) };
    let mut rows: u64 = 0;
    let report = find_rows(options, &sought, &SystemClock, &mut |event| {
        match event {
            RowEvent::Row(row, _) => {
                traffic.add(row);
                rows += 1;
            }
            RowEvent::Searched { parts, of } => progress.segments(parts, of),
        }
        stop.flow()
    });
    progress.finish();
    let report = report.map_err(|error| of_extract(&options.volume, error))?;
    let text = if flags.json {
        session_view::plot_json(&traffic)
    } else {
        let gaps = report.completeness.gaps.iter().map(|gap| (gap.from, gap.to));
        let style = PlotStyle {
            width: stdout::width().unwrap_or(WIDTH),
            is_terminal: stdout::is_drawn_on(),
        };
        session_view::plot(&traffic, &gaps.collect::<Vec<_>>(), style)
    };
    stdout::print_plot(&text)?;
    Ok(Answered::of_find(&FindReport { sessions: rows, ..report }, "row", query))
}

/// Ranks the values of a field.
pub(super) fn top(
    flags: &Flags,
    source: &Source,
    query: &Query,
    name: &str,
) -> anyhow::Result<Answered> {
    let field = field(name)?;
    let mut top = Top::new(field);
    let needing = field.needs_atlas().then_some(field);
    if let Some(atlas) = flags.atlas.read(needing)? {
        top = top.with_atlas(atlas);
    }
    let answered = match source {
        Source::Here(options) => {
            let columns = top.columns();
            let sought = Sought { columns: Some(&columns), ..Sought::new(query) };
            let report = sum_here(options, &sought, &mut |found| top.add(found))?;
            Answered::of_find(&report, "session", query)
        }
        Source::There(there) => sessions(there, &Wanted::default(), &mut |found| {
            top.add(found);
            Ok(())
        })?,
    };
    let limit = usize::try_from(flags.limit.unwrap_or(VALUES)).unwrap_or(usize::MAX);
    let weight = match flags.by {
        By::Bytes => Weight::Bytes,
        By::Packets => Weight::Packets,
        By::Sessions => Weight::Sessions,
    };
    let text = if flags.json {
        session_view::top_json(field, top, weight, limit)
    } else if flags.csv {
        session_view::top_csv(field, top, weight, limit)
    } else {
        session_view::top(field, top, (weight, limit), (stdout::width(), flags.zone()))
    };
    stdout::print_plot(&text)?;
    Ok(answered)
}

/// Calls `add` with the sessions of a volume of this machine.
fn sum_here(
    options: &Options,
    sought: &Sought<'_>,
    add: &mut dyn FnMut(&Found),
) -> anyhow::Result<FindReport> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("find");
    let report = find_columns(options, sought, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => add(found),
            Event::Searched { parts, of } => progress.segments(parts, of),
        }
        stop.flow()
    });
    progress.finish();
    report.map_err(|error| of_extract(&options.volume, error))
}
