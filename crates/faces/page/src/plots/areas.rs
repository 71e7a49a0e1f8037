//! Where and when: areas of the plane.

use super::add;
use super::chart::{Mark, Plane, Swatch};
use super::style::Colour;

/// From and to.
type Range = (f64, f64);

/// Rectangles, each with its ranges on both axes.
#[derive(Clone, Debug)]
pub struct Areas {
    colour: Colour,
    areas: Vec<(Range, Range)>,
}

impl Areas {
    /// Those that stand beside each other in their order, on the same range of the vertical axis,
    /// are drawn as one.
    pub fn new(colour: Colour, areas: Vec<(Range, Range)>) -> Self {
        let mut joined: Vec<(Range, Range)> = Vec::new();
        for (x, y) in areas {
            match joined.last_mut() {
                Some((before, row)) if *row == y && is_same(before.1, x.0) => before.1 = x.1,
                _ => joined.push((x, y)),
            }
        }
        Self { colour, areas: joined }
    }
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs().max(other.abs()) * 1e-9
}

impl Mark for Areas {
    fn name(&self) -> Option<&str> {
        None
    }

    fn colour(&self) -> Colour {
        self.colour
    }

    fn swatch(&self) -> Swatch {
        Swatch::Box
    }

    fn draw(&self, plane: &Plane<'_>, svg: &mut String) {
        let (class, count) = (self.colour.class(), self.areas.len());
        add(svg, format_args!("<path class=\"point {class}\" data-points=\"{count}\" d=\""));
        for ((from, to), (low, high)) in &self.areas {
            let (left, top) = (plane.x(*from), plane.y(*high));
            // The shortest is seen, too.
            let width = (plane.x(*to) - left).max(1.5);
            let height = (plane.y(*low) - top).max(1.5);
            add(svg, format_args!("M{left:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z"));
        }
        svg.push_str("\"/>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_area_and_gaps_are_kept() {
        let row = (0.0, 10.0);
        let areas = vec![
            ((0.0, 1.0), row),
            ((1.0, 2.0), row),
            ((3.0, 4.0), row),
            ((4.0, 5.0), (10.0, 20.0)),
        ];
        let joined = Areas::new(Colour::First, areas).areas;
        let expected = [((0.0, 2.0), row), ((3.0, 4.0), row), ((4.0, 5.0), (10.0, 20.0))];
        assert_eq!(joined, expected);
    }
}
