//! Traffic over time by protocol as a plot of characters, and as JSON lines.
//!
//! The bars are stacked: each column of characters is a stretch of time, its height the mean rate
//! in it. On a terminal protocols have colours; elsewhere each has a letter of its own.

use core::fmt::Write as _;

use found::Traffic;
use page::safe::{json_line, printable};
use page::text::{duration, time};
use page::{BLOCK, EIGHTHS, PlotStyle};
use serde::Serialize;
use units::{ByteSize, NANOS_PER_SECOND, Timestamp};

/// Protocols with a band of their own; the others share one.
pub(crate) const BANDS_MAX: usize = 7;
/// Lines of the plot.
const HEIGHT: usize = 16;
/// Characters of the vertical axis with its labels.
const AXIS: usize = 12;
const MARKS: [char; BANDS_MAX + 1] = ['#', 'o', '*', '+', 'x', '%', '=', '.'];
/// Colours of terminals (ECMA-48, SGR) that differ on dark and light ones.
const COLOURS: [u8; BANDS_MAX + 1] = [34, 32, 33, 35, 36, 31, 94, 90];

/// A protocol's band, or that of all others.
pub(crate) struct Band {
    pub(crate) name: String,
    /// Its place among the series; of what several share, none.
    pub(crate) series: Option<usize>,
    bytes: u64,
    /// Bytes in each column.
    pub(crate) columns: Vec<u64>,
}

/// What is drawn: bands over columns of time.
pub(crate) struct Chart {
    /// That with the most bytes first; that of others is the last one.
    pub(crate) bands: Vec<Band>,
    /// So many protocols share the last band; `None` where each has its own.
    pub(crate) others: Option<usize>,
    pub(crate) from: Timestamp,
    /// Nanoseconds of a column.
    pub(crate) column_ns: i64,
    pub(crate) columns: usize,
}

/// The plot; `gaps` are stretches of time in which packets are missing.
pub fn plot(traffic: &Traffic, gaps: &[(Timestamp, Timestamp)], style: PlotStyle) -> String {
    let Some(chart) = Chart::new(traffic, style.width.saturating_sub(AXIS).max(10)) else {
        return "no traffic\n".to_owned();
    };
    let mut text = chart.area(style.is_terminal);
    text.push_str(&chart.axis());
    if let Some(line) = chart.gaps(gaps) {
        text.push_str(&line);
    }
    text.push_str(&chart.legend(style.is_terminal));
    text
}

impl Chart {
    /// At most so many columns; `None` where there is no traffic.
    pub(crate) fn new(traffic: &Traffic, columns_max: usize) -> Option<Self> {
        let first = traffic.buckets().next()?.0;
        let last = traffic.buckets().last()?.0;
        let width_ns = traffic.width_ns();
        let far = |time: Timestamp| i128::from(time.0) - i128::from(first.0);
        let buckets = usize::try_from(far(last) / i128::from(width_ns) + 1).ok()?;
        // A column holds whole buckets, so that none is drawn twice.
        let per_column = buckets.div_ceil(columns_max);
        let columns = buckets.div_ceil(per_column);
        let column_ns = width_ns.saturating_mul(i64::try_from(per_column).ok()?);
        let of_series = |series: usize, name: &str| {
            let mut counts = vec![0_u64; columns];
            for (begin, bytes) in traffic.buckets() {
                let column = usize::try_from(far(begin) / i128::from(column_ns)).unwrap_or(0);
                if let (Some(count), Some(bytes)) = (counts.get_mut(column), bytes.get(series)) {
                    *count = count.saturating_add(*bytes);
                }
            }
            let (name, bytes) = (name.to_owned(), sum_of(counts.iter()));
            Band { name, series: Some(series), bytes, columns: counts }
        };
        let names = traffic.series().iter().enumerate();
        let mut bands: Vec<Band> = names.map(|(at, name)| of_series(at, name)).collect();
        bands.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        let mut shared = None;
        if bands.len() > BANDS_MAX + 1 {
            let rest = bands.split_off(BANDS_MAX);
            shared = Some(rest.len());
            let name = format!("{} others", rest.len());
            let mut others = Band { name, series: None, bytes: 0, columns: vec![0; columns] };
            for band in rest {
                others.bytes = others.bytes.saturating_add(band.bytes);
                for (sum, more) in others.columns.iter_mut().zip(band.columns) {
                    *sum = sum.saturating_add(more);
                }
            }
            bands.push(others);
        }
        Some(Self { bands, others: shared, from: first, column_ns, columns })
    }

    /// Bytes of the highest column.
    fn peak(&self) -> u64 {
        let sum =
            |column: usize| sum_of(self.bands.iter().filter_map(|band| band.columns.get(column)));
        (0..self.columns).map(sum).max().unwrap_or(0).max(1)
    }

    /// The lines of the plot, the highest first, with their rates.
    fn area(&self, is_terminal: bool) -> String {
        let peak = self.peak();
        let mut text = String::new();
        for line in (0..HEIGHT).rev() {
            let label = match line {
                _ if line + 1 == HEIGHT => rate(peak, self.column_ns),
                _ if line + 1 == HEIGHT / 2 => rate(peak / 2, self.column_ns),
                _ => String::new(),
            };
            write!(text, "{label:>10} |").expect("a string takes all text");
            let mut colour = None;
            let mut row = String::new();
            for column in 0..self.columns {
                let (mark, band) = self.cell(column, line, peak, is_terminal);
                let wanted = band.filter(|_| is_terminal).and_then(|band| COLOURS.get(band));
                if wanted != colour {
                    row.push_str(&sgr(wanted));
                    colour = wanted;
                }
                row.push(mark);
            }
            if colour.is_some() {
                row.push_str(&sgr(None));
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }

    /// What stands at a place: a mark and its band.
    fn cell(&self, column: usize, line: usize, peak: u64, blocks: bool) -> (char, Option<usize>) {
        // In eighths of a line, and never less than one where there is any traffic.
        let full = u128::try_from(HEIGHT * 8).expect("small");
        let height = |bytes: u64| {
            let eighths = (u128::from(bytes) * full).div_ceil(u128::from(peak));
            usize::try_from(eighths).unwrap_or(usize::MAX)
        };
        let (begin, end) = (line * 8, line * 8 + 8);
        let mut sum = 0;
        let mut widest = (0, None);
        for (at, band) in self.bands.iter().enumerate() {
            let below = height(sum);
            sum = band.columns.get(column).copied().unwrap_or(0).saturating_add(sum);
            let part = height(sum).min(end).saturating_sub(below.max(begin));
            if part > widest.0 {
                widest = (part, Some(at));
            }
        }
        let filled = height(sum).min(end).saturating_sub(begin);
        let Some(band) = widest.1 else { return (' ', None) };
        let mark = match (blocks, filled) {
            (true, 8) => BLOCK,
            (true, part) => EIGHTHS.get(part).copied().unwrap_or(' '),
            // Half a line and more is a mark; the lowest line shows all there is.
            (false, part) if part >= 4 || line == 0 => MARKS.get(band).copied().unwrap_or('?'),
            (false, _) => ' ',
        };
        (mark, Some(band))
    }

    fn end(&self) -> Timestamp {
        let columns = i64::try_from(self.columns).expect("a line is short");
        self.from.plus_nanos(self.column_ns.saturating_mul(columns))
    }

    /// The horizontal axis: both ends of the time, and how much of it a column is.
    fn axis(&self) -> String {
        let (from, to) = (time(self.from), time(self.end()));
        let column = format!("a column is {}", duration(self.column_ns));
        let mut line = format!("{:>10} +{}\n", 0, "-".repeat(self.columns));
        let ends = from.len() + to.len() + 2;
        if ends <= self.columns {
            let gap = self.columns - from.len() - to.len();
            writeln!(line, "{:AXIS$}{from}{:gap$}{to}", "", "").expect("a string takes all text");
        } else {
            writeln!(line, "{:AXIS$}{from} to {to}", "").expect("a string takes all text");
        }
        writeln!(line, "{:AXIS$}{column}, UTC", "").expect("a string takes all text");
        line
    }

    /// A line with a mark below each column in which packets are missing.
    fn gaps(&self, gaps: &[(Timestamp, Timestamp)]) -> Option<String> {
        let is_missing = |column: usize| {
            let column = i64::try_from(column).unwrap_or(i64::MAX);
            let begin = self.from.plus_nanos(self.column_ns.saturating_mul(column));
            let end = begin.plus_nanos(self.column_ns);
            gaps.iter().any(|&(from, to)| from < end && to >= begin)
        };
        let line: String =
            (0..self.columns).map(|column| if is_missing(column) { '!' } else { ' ' }).collect();
        let line = line.trim_end();
        (!line.is_empty()).then(|| format!("{:>10}  {line}\n", "missing"))
    }

    fn legend(&self, is_terminal: bool) -> String {
        let total = sum_of(self.bands.iter().map(|band| &band.bytes));
        let mut text = String::new();
        for (at, band) in self.bands.iter().enumerate() {
            let mark = if is_terminal {
                format!("{}{BLOCK}{}", sgr(COLOURS.get(at)), sgr(None))
            } else {
                MARKS.get(at).copied().unwrap_or('?').to_string()
            };
            let tenths = u128::from(band.bytes) * 1000 / u128::from(total.max(1));
            let (name, bytes) = (printable(&band.name), ByteSize(band.bytes).to_string());
            let share = format!("{}.{} %", tenths / 10, tenths % 10);
            writeln!(text, "{:AXIS$}{mark} {name:<14} {bytes:>10} {share:>8}", "")
                .expect("a string takes all text");
        }
        text
    }
}

/// An index may say anything of bytes.
fn sum_of<'n>(numbers: impl Iterator<Item = &'n u64>) -> u64 {
    numbers.fold(0, |sum, number| sum.saturating_add(*number))
}

/// The sequence that sets a colour, or none again.
fn sgr(colour: Option<&u8>) -> String {
    colour.map_or_else(|| "\u{1b}[0m".to_owned(), |colour| format!("\u{1b}[{colour}m"))
}

/// Bytes in so many nanoseconds as bits a second.
fn rate(bytes: u64, nanos: i64) -> String {
    const UNITS: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let nanos = u128::try_from(nanos).unwrap_or(1).max(1);
    let per_second = u128::try_from(NANOS_PER_SECOND).expect("positive");
    let mut tenths = u128::from(bytes) * 80 * per_second / nanos;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1000, unit + 1);
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    if tenths < 100 && unit != "bit/s" {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    } else {
        format!("{} {unit}", tenths / 10)
    }
}

#[derive(Serialize)]
struct Stretch {
    start_ns: i64,
    end_ns: i64,
    bytes: serde_json::Map<String, serde_json::Value>,
}

/// One object a line for each stretch of time with traffic: its ends, and bytes by protocol.
pub fn plot_json(traffic: &Traffic) -> String {
    let line = |(begin, counts): (Timestamp, &[u64])| {
        let bytes = traffic.series().iter().zip(counts).filter(|(_, bytes)| **bytes > 0);
        let json = Stretch {
            start_ns: begin.0,
            end_ns: begin.plus_nanos(traffic.width_ns()).0,
            bytes: bytes.map(|(name, bytes)| (name.clone(), (*bytes).into())).collect(),
        };
        json_line(&json)
    };
    traffic.buckets().map(line).collect()
}

#[cfg(test)]
mod tests;
