//! Repeated runs: a table, the runs in their order, and what they say; as JSON and CSV.

mod against;
mod csv;
mod dots;
mod findings;
mod json;
mod value;

use ::runs::{Contest, Order, Series};

pub use against::{Held, held};
pub use csv::runs_csv;
pub use json::runs_json;

use page::PlotStyle;
use page::safe::printable;
use page::table::{Column, render};
use page::text::plural;
use value::{measure, percent, took};

/// Names of commands may be shortened down to this.
const NAME_MIN: usize = 16;

/// Kind of the subjects that were run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// Commands, which are compared with each other.
    Commands,
    /// The machine, whose figures have nothing to do with each other.
    Machine,
}

/// A contest, in words.
pub fn runs(found: &Contest, ran: Ran, style: PlotStyle) -> String {
    let mut text = heading(found, ran);
    if found.series.iter().all(|series| series.judged.is_none()) {
        return text;
    }
    text.push('\n');
    text.push_str(&table(found, ran, style.width));
    for series in &found.series {
        let Some(judged) = &series.judged else { continue };
        // Of the machine there are too many to look at each.
        if ran == Ran::Commands || judged.has_findings() {
            text.extend(["\n", &printable(&series.subject.name), "\n"]);
            text.push_str(&dots::dots(series, judged, style));
        }
        text.push_str(&findings::findings(series, judged, style.width));
        if ran == Ran::Commands {
            text.push_str(&findings::effect(series, found, style.width));
        }
    }
    text
}

fn heading(found: &Contest, ran: Ran) -> String {
    let runs = found.series.iter().map(|series| series.runs.len()).max().unwrap_or(0);
    let runs = plural(u64::try_from(runs).unwrap_or(u64::MAX), "run");
    let order = match found.plan.order {
        _ if found.series.len() < 2 => "",
        Order::Turns => " of each, in turn, forth and back",
        Order::Random => " of each, in an order by chance",
    };
    let warm_ups = if found.plan.warm_ups > 0 && ran == Ran::Commands {
        let warm_ups = plural(u64::from(found.plan.warm_ups), "run");
        format!(", behind {warm_ups} that did not count")
    } else {
        String::new()
    };
    let end = if found.is_interrupted { "; stopped before the end" } else { "" };
    format!("{runs}{order}, in {}{warm_ups}{end}\n", took(found.ns))
}

fn table(found: &Contest, ran: Ran, width: usize) -> String {
    const COLUMNS: [Column<'_>; 9] = [
        Column { title: "NAME", is_number: false, least: NAME_MIN, rank: 0 },
        Column::whole("MEDIAN", true),
        Column { title: "SPREAD", is_number: true, least: 0, rank: 1 },
        Column { title: "MIN", is_number: true, least: 0, rank: 2 },
        Column { title: "MAX", is_number: true, least: 0, rank: 2 },
        Column { title: "USER", is_number: true, least: 0, rank: 4 },
        Column { title: "SYSTEM", is_number: true, least: 0, rank: 4 },
        Column { title: "MEMORY", is_number: true, least: 0, rank: 5 },
        Column::whole("RATIO", false),
    ];
    let rows: Vec<Vec<String>> = found.series.iter().filter_map(|it| row(it, ran)).collect();
    let has = |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|c| !c.is_empty()));
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|column| has(*column)).collect();
    let columns: Vec<Column<'_>> =
        shown.iter().filter_map(|column| COLUMNS.get(*column).copied()).collect();
    let cells = |row: &Vec<String>| -> Vec<String> {
        shown.iter().filter_map(|column| row.get(*column).cloned()).collect()
    };
    render(&columns, &rows.iter().map(cells).collect::<Vec<_>>(), Some(width))
}

fn row(series: &Series, ran: Ran) -> Option<Vec<String>> {
    let (judged, unit) = (series.judged.as_ref()?, series.subject.unit);
    let [median, min, max] = [judged.median, judged.min, judged.max].map(|it| measure(unit, it));
    let [user, system, memory] = value::used(series);
    let ratio = series
        .effect
        .filter(|_| ran == Ran::Commands)
        .map(|effect| format!("{:.3} ({:.3} to {:.3})", effect.ratio, effect.low, effect.high));
    Some(vec![
        printable(&series.subject.name),
        median,
        percent(judged.spread),
        min,
        max,
        user,
        system,
        memory,
        ratio.unwrap_or_default(),
    ])
}

#[cfg(test)]
mod tests;
