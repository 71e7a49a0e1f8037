//! Plots as SVG, and pages of HTML around them, without scripts and without anything to fetch.
//!
//! A [`Chart`] has two axes ([`scale`]) and marks on them, one module for each kind: [`Line`],
//! [`Bars`], [`Areas`], [`Dots`], [`Intervals`] and [`Rule`]. It knows nothing of what is plotted;
//! the reports choose quantities, names and colours. Colours are variables of the page ([`style`]),
//! for a light and a dark background and for paper; each series of a chart differs by more than its
//! colour.
//!
//! Each mark says in `data-points` how many of its values are drawn: tests count them.

mod areas;
mod bars;
mod chart;
mod document;
mod dots;
mod intervals;
mod line;
mod rule;
mod scale;
mod style;

pub use areas::Areas;
pub use bars::Bars;
pub use chart::{Axis, Chart, Shape};
pub use document::{Cell, Document};
pub use dots::Dots;
pub use intervals::{Interval, Intervals};
pub use line::Line;
pub use rule::Rule;
pub use scale::{Quantity, Scale};
pub use style::Colour;

/// Appends to a string, which takes all text.
pub fn add(text: &mut String, part: core::fmt::Arguments<'_>) {
    use core::fmt::Write as _;
    text.write_fmt(part).expect("a string takes all text");
}
