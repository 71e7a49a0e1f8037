//! Runs in the order in which they ran, as dots; how many lie at each height stands beside them.

use core::fmt::Write as _;

use ::runs::{Judged, Series};
use page::PlotStyle;

use super::value::measure;

/// Lines of a plot.
const HEIGHT: usize = 8;
/// Characters before and behind the dots.
const LABEL: usize = 11;
const COUNT: usize = 7;
/// The dots are at least so many columns.
const COLUMNS_MIN: usize = 20;
/// Runs in one place: one, two, more.
const MARKS: [char; 4] = [' ', '.', ':', '*'];
const DOTS: [char; 4] = [' ', '\u{b7}', '\u{2022}', '\u{25cf}'];

/// The largest value at the top. Those far outside are arrows at the edge: they would press the
/// others flat.
pub(super) fn dots(series: &Series, judged: &Judged, style: PlotStyle) -> String {
    let values = series.values();
    let far = |at: &usize| judged.outliers.contains(at);
    let near = values.iter().enumerate().filter(|(at, _)| !far(at)).map(|(_, value)| *value);
    let (low, high) =
        near.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if values.len() < 2 || low > high {
        return String::new();
    }
    let columns = style.width.saturating_sub(LABEL + COUNT + 3).max(COLUMNS_MIN).min(values.len());
    let mut plot = Plot { cells: vec![vec![0; columns]; HEIGHT], ..Plot::default() };
    for (at, value) in values.iter().enumerate() {
        let column = at * columns / values.len();
        if *value > high {
            plot.above.push(column);
        } else if *value < low {
            plot.below.push(column);
        } else {
            plot.add(line_of(*value, low, high), column);
        }
    }
    let middle = f64::midpoint(low, high);
    let labels = [(0, high), (HEIGHT / 2, middle), (HEIGHT - 1, low)];
    let label = |line: usize| {
        let found = labels.iter().find(|(at, _)| *at == line);
        found.map_or(String::new(), |(_, value)| measure(series.subject.unit, *value))
    };
    plot.text(label, style.is_terminal)
}

/// From the top.
fn line_of(value: f64, low: f64, high: f64) -> usize {
    let share = if high > low { (high - value) / (high - low) } else { 0.5 };
    // The last line is reached by the lowest value alone otherwise.
    (0..HEIGHT).rev().find(|line| share * steps() >= count(*line)).unwrap_or(0)
}

fn steps() -> f64 {
    count(HEIGHT) - 1e-9
}

fn count(line: usize) -> f64 {
    u32::try_from(line).map_or(0.0, f64::from)
}

#[derive(Default)]
struct Plot {
    cells: Vec<Vec<usize>>,
    above: Vec<usize>,
    below: Vec<usize>,
}

impl Plot {
    fn add(&mut self, line: usize, column: usize) {
        if let Some(cell) = self.cells.get_mut(line).and_then(|line| line.get_mut(column)) {
            *cell += 1;
        }
    }

    fn text(&self, label: impl Fn(usize) -> String, is_terminal: bool) -> String {
        let marks = if is_terminal { DOTS } else { MARKS };
        let mut text = arrows(&self.above, '^');
        for (at, line) in self.cells.iter().enumerate() {
            let mark = |count: &usize| marks.get(*count).or(marks.last()).copied().unwrap_or(' ');
            let row: String = line.iter().map(mark).collect();
            let runs: usize = line.iter().sum();
            let runs = if runs > 0 { format!("{runs:>COUNT$}") } else { String::new() };
            writeln!(text, "{:>LABEL$} |{row}|{runs}", label(at)).expect("a string takes all text");
        }
        text.push_str(&arrows(&self.below, 'v'));
        text
    }
}

/// A line with an arrow in each of these columns.
fn arrows(columns: &[usize], arrow: char) -> String {
    let Some(last) = columns.iter().max() else { return String::new() };
    let row: String =
        (0..=*last).map(|column| if columns.contains(&column) { arrow } else { ' ' }).collect();
    format!("{:>LABEL$}  {row}\n", "outliers")
}
