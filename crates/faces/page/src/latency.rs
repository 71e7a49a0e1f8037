//! Latencies as a plot: bars of one kind, and another as the outline over them.

use units::number::real;

use crate::plots::{Axis, Bars, Chart, Colour, Line, Quantity, Rule, Scale, Shape};
use crate::text::{nanos, plural};

/// One kind of latencies.
#[derive(Clone, Debug)]
pub struct Kind<'a> {
    /// In the legend.
    pub name: &'a str,
    /// From, to, count; in ascending order.
    pub ranges: Vec<(f64, f64, f64)>,
    /// How many.
    pub count: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// A plot of one kind, or of two; `marks` are latencies with names, in ascending order.
pub fn latency_chart(
    title: &str,
    bars: Kind<'_>,
    outline: Option<Kind<'_>>,
    marks: &[(&str, u64)],
) -> Chart {
    let of_outline = outline.as_ref().map_or(&[][..], |kind| &kind.ranges);
    let all = || bars.ranges.iter().chain(of_outline);
    let low = all().map(|(from, _, _)| *from).fold(f64::INFINITY, f64::min);
    let high = all().map(|(_, to, _)| *to).fold(1.0, f64::max);
    let most = all().map(|(_, _, count)| *count).fold(1.0, f64::max);
    let low = if low.is_finite() { low } else { 1.0 };
    let axes = (
        Axis::new("latency", Scale::within_decades(Quantity::Time, (low, high))),
        Axis::new("count", Scale::decades(Quantity::Count, (1.0, most * 1.1))),
    );
    let said = format!(
        "{}, the longest {}. Both scales are logarithmic.",
        plural(bars.count, "value"),
        nanos(bars.max_ns.max(outline.as_ref().map_or(0, |kind| kind.max_ns)))
    );
    let mut chart = Chart::new(title, &said, Shape::Half, axes);
    let name = if of_outline.is_empty() { "" } else { bars.name };
    chart.add(Bars::new(name, Colour::First, bars.ranges));
    if let Some(kind) = outline.filter(|kind| !kind.ranges.is_empty()) {
        chart.add(Line::new(kind.name, Colour::Second, edges(&kind.ranges)).stepped());
    }
    for (down, (name, ns)) in (0..).zip(marks) {
        chart.add(Rule::vertical(name, Colour::Quiet, real(*ns)).lower(down));
    }
    chart
}

/// The outline of steps; where none lies between two of them it goes down.
fn edges(steps: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut behind = None;
    for (from, to, count) in steps {
        if let Some(behind) = behind
            && behind < *from * 0.999
        {
            points.push((behind, 0.0));
        }
        points.push((*from, *count));
        behind = Some(*to);
    }
    points.extend(behind.map(|behind| (behind, 0.0)));
    points
}
