//! Counts of ranges of values: a histogram.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;

/// Bars from the lower edge of the plane.
#[derive(Clone, Debug)]
pub struct Bars {
    name: String,
    colour: Colour,
    /// From, to, height.
    ranges: Vec<(f64, f64, f64)>,
}

impl Bars {
    /// Bars of one series: from, to, height.
    pub fn new(name: &str, colour: Colour, ranges: Vec<(f64, f64, f64)>) -> Self {
        Self { name: name.to_owned(), colour, ranges }
    }
}

impl Mark for Bars {
    fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&self.name)
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Box
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, count, bottom) = (self.colour.class(), self.ranges.len(), plane.bottom());
        add(svg, format_args!("<path class=\"bar {class}\" data-points=\"{count}\" d=\""));
        for (from, to, height) in &self.ranges {
            let (left, right) = (plane.x(*from), plane.x(*to));
            // The rarest is seen, too: on a logarithmic axis one has no height.
            let top = plane.y(*height).min(bottom - 1.5);
            let width = (right - left - 0.75).max(0.75);
            add(svg, format_args!("M{left:.1} {bottom}V{top:.1}h{width:.1}V{bottom}z"));
        }
        svg.push_str("\"/>\n");
    }
}
