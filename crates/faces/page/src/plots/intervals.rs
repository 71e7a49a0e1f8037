//! Estimates with what they may be off by.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;
use crate::safe::markup;

/// An estimate.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Of what.
    pub name: String,
    /// The lower bound.
    pub low: f64,
    /// The estimate itself.
    pub middle: f64,
    /// The upper bound.
    pub high: f64,
}

/// One below the other along the horizontal axis, the first at the top. The vertical axis of the
/// chart has one step for each.
#[derive(Clone, Debug)]
pub struct Intervals {
    colour: Colour,
    intervals: Vec<Interval>,
}

impl Intervals {
    /// Estimates in their order from the top.
    pub fn new(colour: Colour, intervals: Vec<Interval>) -> Self {
        Self { colour, intervals }
    }
}

impl Mark for Intervals {
    fn name(&self) -> Option<&str> {
        None
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Dot
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, count) = (self.colour.class(), self.intervals.len());
        let step = plane.height / f64::from(u32::try_from(count).unwrap_or(u32::MAX).max(1));
        add(svg, format_args!("<g class=\"{class}\" data-points=\"{count}\">\n"));
        let mut y = plane.top + step / 2.0;
        for Interval { name, low, middle, high } in &self.intervals {
            let (low, middle, high) = (plane.x(*low), plane.x(*middle), plane.x(*high));
            let (name, text_y) = (markup(name), y - 8.0);
            add(
                svg,
                format_args!(
                    "<line class=\"whisker\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" \
                     y2=\"{y:.1}\"/><circle class=\"point\" cx=\"{middle:.1}\" cy=\"{y:.1}\" \
                     r=\"4\"/><text class=\"name halo\" x=\"{middle:.1}\" y=\"{text_y:.1}\" \
                     text-anchor=\"middle\">{name}</text>\n"
                ),
            );
            y += step;
        }
        svg.push_str("</g>\n");
    }
}
