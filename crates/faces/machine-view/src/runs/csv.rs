//! Every run as a line of CSV.

use core::fmt::Write as _;

use ::runs::Contest;
use page::safe::csv_cell;
use statistics::Cell;

/// A heading, and a line for each run: name, number, turn, when it began, its value (seconds, bytes
/// a second, or a count a second), what it used, and everything that was recorded with it.
pub fn runs_csv(found: &Contest) -> String {
    let first = found.series.iter().find_map(|series| series.runs.first());
    let facts = first.map_or(&[][..], |run| &run.ran.facts[..]);
    let names: Vec<String> = facts.iter().map(|fact| csv_cell(&fact.name)).collect();
    let comma = if names.is_empty() { "" } else { "," };
    let mut text = format!(
        "name,run,turn,begin_s,value,exit_code,user_s,system_s,memory_bytes,\
         major_faults{comma}{}\n",
        names.join(",")
    );
    for series in &found.series {
        let scale = series.subject.unit.scale();
        for run in &series.runs {
            let used = run.ran.taken.map_or(",,,,".to_owned(), |taken| {
                let code = taken.code.map_or(String::new(), |code| code.to_string());
                let (user, system) = (taken.cpu.user.as_secs_f64(), taken.cpu.system.as_secs_f64());
                let memory = taken.known_memory_bytes();
                let memory = memory.map_or(String::new(), |bytes| bytes.to_string());
                let faults = taken.major_faults;
                format!("{code},{user},{system},{memory},{faults}")
            });
            let begin_s = core::time::Duration::from_nanos(run.begin_ns).as_secs_f64();
            let facts: Vec<String> =
                run.ran.facts.iter().map(|fact| cell(fact.value.as_ref())).collect();
            writeln!(
                text,
                "{},{},{},{begin_s},{},{used}{comma}{}",
                csv_cell(&series.subject.name),
                run.round + 1,
                run.turn + 1,
                run.ran.value * scale,
                facts.join(","),
            )
            .expect("a string takes all text");
        }
    }
    text
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        None => String::new(),
        Some(Cell::Number(number)) => number.to_string(),
        Some(Cell::Word(word)) => csv_cell(word),
    }
}
