//! Places of single things.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;

/// Dots that are not joined.
#[derive(Clone, Debug)]
pub struct Dots {
    name: String,
    colour: Colour,
    points: Vec<(f64, f64)>,
}

impl Dots {
    /// Dots of one series.
    pub fn new(name: &str, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), colour, points }
    }
}

impl Mark for Dots {
    fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&self.name)
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Dot
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, count) = (self.colour.class(), self.points.len());
        add(svg, format_args!("<path class=\"dots {class}\" data-points=\"{count}\" d=\""));
        for (x, y) in &self.points {
            // A stroke of no length with round ends is a dot.
            add(svg, format_args!("M{:.1} {:.1}h0", plane.x(*x), plane.y(*y)));
        }
        svg.push_str("\"/>\n");
    }
}
