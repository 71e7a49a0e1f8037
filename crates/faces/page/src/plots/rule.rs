//! A value that the others are held against.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;
use crate::safe::markup;

/// A line across the plane with its name at it.
#[derive(Clone, Debug)]
pub struct Rule {
    name: String,
    colour: Colour,
    value: f64,
    is_vertical: bool,
    /// Lines of text that the name is moved down by, for names that would lie on each other.
    down: u8,
}

impl Rule {
    /// At a height.
    pub fn horizontal(name: &str, colour: Colour, value: f64) -> Self {
        Self { name: name.to_owned(), colour, value, is_vertical: false, down: 0 }
    }

    /// At a place of the horizontal axis.
    pub fn vertical(name: &str, colour: Colour, value: f64) -> Self {
        Self { name: name.to_owned(), colour, value, is_vertical: true, down: 0 }
    }

    /// With its name so many lines lower.
    #[must_use]
    pub fn lower(self, lines: u8) -> Self {
        Self { down: lines, ..self }
    }
}

impl Mark for Rule {
    fn name(&self) -> Option<&str> {
        None
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Line("dotted")
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, name) = (self.colour.class(), markup(&self.name));
        let scale = if self.is_vertical { plane.x } else { plane.y };
        if !scale.contains(self.value) {
            return;
        }
        let down = f64::from(self.down) * 15.0;
        let (from, to, text, anchor) = if self.is_vertical {
            let x = plane.x(self.value);
            let is_right = x > plane.right() - 90.0;
            let text_x = if is_right { x - 5.0 } else { x + 5.0 };
            let anchor = if is_right { "end" } else { "start" };
            ((x, plane.top), (x, plane.bottom()), (text_x, plane.top + 12.0 + down), anchor)
        } else {
            let y = plane.y(self.value);
            let text_y = if y - plane.top < 16.0 { y + 15.0 } else { y - 5.0 } + down;
            ((plane.left, y), (plane.right(), y), (plane.right() - 4.0, text_y), "end")
        };
        add(
            svg,
            format_args!(
                "<line class=\"line thin dotted {class}\" data-points=\"1\" x1=\"{:.1}\" \
                 y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n<text class=\"name halo\" x=\"{:.1}\" \
                 y=\"{:.1}\" text-anchor=\"{anchor}\">{name}</text>\n",
                from.0, from.1, to.0, to.1, text.0, text.1
            ),
        );
    }
}
