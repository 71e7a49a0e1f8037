//! The vital signs of the host, each figure with its source.

use vitals::{Entry, Figure, Unit, Vitals};

use super::{Cell, Sheet, SheetColumn, SheetLine, unseen};

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VitalsGrouping {
    /// Memory and swap, as `free` computes them.
    Memory,
    /// Tasks, interrupts, load, swap and blocks, as vmstat computes them.
    System,
    /// Processors, all together and each.
    Processors,
    /// Time lost to waiting.
    Pressure,
    /// Each disk, as `iostat -x` computes them.
    Disks,
    /// Each interface.
    Network,
    /// All of them, a line for each.
    Everything,
}

/// Lines of vital signs.
pub fn vitals_sheet(vitals: &Vitals, grouping: VitalsGrouping) -> Sheet {
    let alone =
        [("memory", &vitals.memory), ("system", &vitals.system), ("paging", &vitals.paging)];
    let [memory, system, paging] = alone;
    let mut sheet = match grouping {
        VitalsGrouping::Memory => figures([memory].into_iter()),
        VitalsGrouping::System => figures([system, paging].into_iter()),
        VitalsGrouping::Processors => table(&vitals.processors, ("processor", "PROCESSOR")),
        VitalsGrouping::Pressure => table(&vitals.pressure, ("resource", "WAITING FOR")),
        VitalsGrouping::Disks => table(&vitals.disks, ("disk", "DISK")),
        VitalsGrouping::Network => table(&vitals.links, ("interface", "INTERFACE")),
        VitalsGrouping::Everything => {
            let entries = [&vitals.processors, &vitals.pressure, &vitals.disks, &vitals.links];
            let entries = entries.into_iter().flatten();
            let named = entries.map(|entry: &Entry| (&*entry.name, &entry.figures));
            figures(alone.into_iter().chain(named))
        }
    };
    sheet.notes.extend(vitals.unseen.iter().map(unseen));
    sheet
}

/// A line for each figure.
fn figures<'v>(of: impl Iterator<Item = (&'v str, &'v Vec<Figure>)>) -> Sheet {
    let columns = vec![
        SheetColumn::words("of", "OF", 6, 3),
        SheetColumn::words("figure", "FIGURE", 8, 0),
        SheetColumn::number("value", "VALUE", 0),
        SheetColumn::words("unit", "UNIT", 4, 1),
        SheetColumn::words("meaning", "MEANING", 16, 2),
        SheetColumn::words("source", "SOURCE", 16, 1),
    ];
    let lines = of.flat_map(|(name, figures)| {
        figures.iter().map(move |figure| SheetLine {
            cells: vec![
                Cell::Text(name.to_owned()),
                Cell::Text(figure.name.to_owned()),
                value(figure),
                Cell::text(unit(figure.unit)),
                Cell::Text(figure.meaning.to_owned()),
                Cell::Text(figure.source.to_owned()),
            ],
            query: None,
        })
    });
    Sheet { columns, lines: lines.collect(), ..Sheet::default() }
}

fn value(figure: &Figure) -> Cell {
    match figure.unit {
        Unit::Bytes => Cell::Bytes(units::number::whole(figure.value)),
        _ => Cell::Real(figure.value),
    }
}

/// Bytes are shown with theirs.
fn unit(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Bytes | Unit::Count => None,
        Unit::BytesPerSecond => Some("bytes/s"),
        Unit::KibibytesPerSecond => Some("KiB/s"),
        Unit::PerSecond => Some("a second"),
        Unit::Percent => Some("%"),
        Unit::Milliseconds => Some("ms"),
    }
}

/// A line for each entry, with a column for each figure that any of them has.
fn table(entries: &[Entry], (key, title): (&'static str, &'static str)) -> Sheet {
    let mut names: Vec<&'static str> = Vec::new();
    for figure in entries.iter().flat_map(|entry| &entry.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    let mut columns = vec![SheetColumn::words(key, title, 8, 0)];
    // The first figures matter most.
    let numbers = (1..).zip(&names).map(|(rank, name)| SheetColumn::number(name, name, rank));
    columns.extend(numbers);
    let line = |entry: &Entry| {
        let figure = |name: &&str| entry.figures.iter().find(|figure| figure.name == *name);
        let values = names.iter().map(|name| figure(name).map_or(Cell::Absent, value));
        let cells = core::iter::once(Cell::Text(entry.name.clone())).chain(values).collect();
        SheetLine { cells, query: None }
    };
    Sheet { columns, lines: entries.iter().map(line).collect(), ..Sheet::default() }
}
