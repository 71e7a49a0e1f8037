//! Values along the horizontal axis, joined.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;

/// Points that are drawn, at most: more than there are pixels. Of more, the highest and the lowest
/// of each stretch stay.
const POINTS_MAX: usize = 1200;

/// A line through points in ascending order.
#[derive(Clone, Debug)]
pub struct Line {
    name: String,
    colour: Colour,
    points: Vec<(f64, f64)>,
    kind: &'static str,
    has_markers: bool,
    /// A value holds from its place to the next.
    is_stepped: bool,
}

impl Line {
    /// A line of one series.
    pub fn new(name: &str, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let (kind, has_markers, is_stepped) = ("", false, false);
        Self {
            name: name.to_owned(),
            colour,
            points: thinned(points),
            kind,
            has_markers,
            is_stepped,
        }
    }

    /// With a ring at each point: places that were measured, and not what lies between.
    #[must_use]
    pub fn with_markers(self) -> Self {
        Self { has_markers: true, ..self }
    }

    /// In strokes: what is computed.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self { kind: "dashed", ..self }
    }

    /// Finely, behind others.
    #[must_use]
    pub fn thin(self) -> Self {
        Self { kind: "thin", ..self }
    }

    /// As steps.
    #[must_use]
    pub fn stepped(self) -> Self {
        Self { is_stepped: true, ..self }
    }
}

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let each = points.len().div_ceil(POINTS_MAX / 2);
    let ends = |stretch: &[(f64, f64)]| {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<(f64, f64)> = [stretch.iter().min_by(by_y), stretch.iter().max_by(by_y)]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends
    };
    points.chunks(each).flat_map(ends).collect()
}

impl Mark for Line {
    fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&self.name)
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Line(self.kind)
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, kind, count) = (self.colour.class(), self.kind, self.points.len());
        add(svg, format_args!("<path class=\"line {kind} {class}\" data-points=\"{count}\" d=\""));
        let mut letter = 'M';
        for (x, y) in &self.points {
            let (x, y) = (plane.x(*x), plane.y(*y));
            if self.is_stepped && letter == 'L' {
                add(svg, format_args!("H{x:.1}V{y:.1}"));
            } else {
                add(svg, format_args!("{letter}{x:.1} {y:.1}"));
            }
            letter = 'L';
        }
        svg.push_str("\"/>\n");
        if self.has_markers {
            for (x, y) in &self.points {
                let (x, y) = (plane.x(*x), plane.y(*y));
                add(
                    svg,
                    format_args!(
                        "<circle class=\"marker {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>\n"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::number::real;

    #[test]
    fn a_long_line_keeps_its_peaks_and_dips() {
        let value = |at: u64| match at {
            50_001 => 1000.0,
            70_007 => -1000.0,
            at => real(at % 7),
        };
        let points: Vec<(f64, f64)> = (0..100_000).map(|at| (real(at), value(at))).collect();
        let line = Line::new("x", Colour::First, points);
        assert!((1000..=POINTS_MAX).contains(&line.points.len()), "{}", line.points.len());
        assert!(line.points.is_sorted_by(|a, b| a.0 <= b.0));
        for kept in [(50_001.0, 1000.0), (70_007.0, -1000.0)] {
            assert!(line.points.contains(&kept));
        }
    }
}
