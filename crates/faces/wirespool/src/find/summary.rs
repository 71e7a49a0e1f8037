//! `find --plot` and `find --top`: what the sessions sum up to.

use ::extract::{
    Event, FindReport, Options, RowEvent, SERIES_COLUMNS, Sought, Top, Traffic, Weight,
    find_columns, find_rows,
};
use host::{StopFlag, SystemClock};
use page::PlotStyle;
use query::Query;

use super::{By, Flags, field, show};
use crate::failure::of_extract;
use crate::progress::Progress;
use crate::stdout;

/// Values shown where no limit is given.
const VALUES: u64 = 20;
/// Width of a plot that does not go to a terminal.
const WIDTH: usize = 80;

/// Draws the traffic over time.
pub(super) fn plot(flags: &Flags, options: &Options, query: &Query) -> anyhow::Result<FindReport> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("find");
    let mut traffic = Traffic::default();
    let sought = Sought { columns: Some(SERIES_COLUMNS), ..Sought::new(query) };
    let mut rows: u64 = 0;
    let report = find_rows(options, &sought, &SystemClock, &mut |event| {
        match event {
            RowEvent::Row(row) => {
                traffic.add(row);
                rows += 1;
            }
            RowEvent::Searched { parts, of } => show(&mut progress, parts, of),
        }
        stop.flow()
    });
    progress.finish();
    let report = report.map_err(|error| of_extract(&flags.volume, error))?;
    let text = if flags.json {
        session_view::plot_json(&traffic)
    } else {
        let gaps = report.completeness.gaps.iter().map(|gap| (gap.from, gap.to));
        let style = PlotStyle {
            width: stdout::width().unwrap_or(WIDTH),
            is_terminal: stdout::is_terminal(),
        };
        session_view::plot(&traffic, &gaps.collect::<Vec<_>>(), style)
    };
    stdout::print_plot(&text)?;
    Ok(FindReport { sessions: rows, ..report })
}

/// Ranks the values of a field.
pub(super) fn top(
    flags: &Flags,
    options: &Options,
    query: &Query,
    name: &str,
) -> anyhow::Result<FindReport> {
    let field = field(name)?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("find");
    let mut top = Top::new(field);
    let needing = field.needs_atlas().then_some(field);
    if let Some(atlas) = flags.atlas.read(needing)? {
        top = top.with_atlas(atlas);
    }
    let columns = top.columns();
    let sought = Sought { columns: Some(&columns), ..Sought::new(query) };
    let report = find_columns(options, &sought, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => top.add(found),
            Event::Searched { parts, of } => show(&mut progress, parts, of),
        }
        stop.flow()
    });
    progress.finish();
    let report = report.map_err(|error| of_extract(&flags.volume, error))?;
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
    Ok(report)
}
