//! What processors work at.

use findings::Unseen;
use page::text::plural;
use vitals::profile::{By, Missing, Row, Summary};

use super::{Cell, Sheet, SheetColumn, SheetLine};

/// Lines of what processors work at, put together as `by` says, most first.
pub fn profile_sheet(rows: &[Row], by: By, missing: &Missing, unseen: &[Unseen]) -> Sheet {
    let mut columns = Vec::new();
    if matches!(by, By::Process | By::All) {
        columns.push(SheetColumn::words("process", "PROCESS", 12, 0));
    }
    if by != By::Process {
        columns.push(SheetColumn::words("library", "LIBRARY", 12, 0));
    }
    if matches!(by, By::Function | By::All) {
        columns.push(SheetColumn::words("function", "FUNCTION", 24, 0));
    }
    columns.extend([
        SheetColumn::number("one_permille", "OF ONE", 0),
        SheetColumn::number("all_permille", "OF ALL", 1),
        SheetColumn::number("samples", "SAMPLES", 2),
    ]);
    let mut notes: Vec<String> = unseen.iter().map(super::unseen).collect();
    if missing.samples + missing.throttled > 0 {
        notes.push(format!(
            "{} did not fit into the buffer, {} sampling took too long",
            plural(missing.samples, "sample"),
            plural(missing.throttled, "time"),
        ));
    }
    Sheet { columns, lines: rows.iter().map(line).collect(), notes, ..Sheet::default() }
}

/// All of it in words.
pub fn profile_head(summary: &Summary) -> Vec<String> {
    let [one, all] = [summary.share_of_one, summary.share_of_all]
        .map(|share| Cell::Permille(permille(share)).shown());
    let samples = plural(summary.samples, "sample");
    // Without rights this is not the work of the machine.
    vec![format!("work that was seen: {one} of one processor, {all} of all; {samples}")]
}

fn line(row: &Row) -> SheetLine {
    let process = row.process.as_ref().map(|(number, name)| format!("{name} (process {number})"));
    let library = row.library.as_ref().map(ToString::to_string);
    let function = row.function.as_ref().map(ToString::to_string);
    let mut cells: Vec<Cell> =
        [process, library, function].into_iter().flatten().map(Cell::Text).collect();
    cells.extend([
        Cell::Permille(permille(row.share_of_one)),
        Cell::Permille(permille(row.share_of_all)),
        Cell::Count(row.samples),
    ]);
    SheetLine { cells, query: None }
}

fn permille(share: f64) -> u64 {
    units::number::whole(share * 1000.0)
}
