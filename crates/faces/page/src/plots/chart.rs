//! A plot: a frame, two axes, a legend, and marks in it.

use super::add;
use super::scale::Scale;
use super::style::{self, Colour};
use crate::safe::markup;

/// Pixels of a drawing.
const WIDE: f64 = 960.0;
const HALF: f64 = 468.0;
const THIRD: f64 = 304.0;
const HEIGHT: f64 = 260.0;
const LOW: f64 = 200.0;
/// Left of the plane: labels of the vertical axis.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 24.0;
/// Above it: the unit, and the legend.
const TOP: f64 = 44.0;
/// Where a plot is too narrow for both in a line: the legend above the unit.
const LEGEND: f64 = 20.0;
/// Below it: labels and the name of the horizontal axis.
const BOTTOM: f64 = 44.0;
/// Above everything, where the drawing stands by itself.
const TITLE: f64 = 34.0;
/// Mean width of a letter of the legend.
const LETTER: f64 = 6.5;

/// An axis: what it measures, in words without the unit.
#[derive(Clone, Debug)]
pub struct Axis {
    /// In words, without the unit.
    pub name: String,
    /// How values lie on it.
    pub scale: Scale,
}

impl Axis {
    /// An axis of this name.
    pub fn new(name: &str, scale: Scale) -> Self {
        Self { name: name.to_owned(), scale }
    }

    fn label(&self) -> String {
        match self.scale.unit() {
            "" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

/// How large a plot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// As wide as a page.
    Wide,
    /// Half of that, for two side by side.
    Half,
    /// A third, for small plots that are alike.
    Third,
}

/// How a series looks in the legend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Swatch {
    Line(&'static str),
    Box,
    Dot,
}

/// Something drawn between the axes.
pub(super) trait Mark: core::fmt::Debug {
    /// Its name in the legend; `None` where it needs none.
    fn name(&self) -> Option<&str>;
    fn colour(&self) -> Colour;
    fn swatch(&self) -> Swatch;
    /// Appends its elements.
    fn draw(&self, plane: &Plane<'_>, svg: &mut String);
}

/// The rectangle between the axes, in pixels.
#[derive(Debug)]
pub(super) struct Plane<'a> {
    pub(super) x: &'a Scale,
    pub(super) y: &'a Scale,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Plane<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.x.share(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom() - self.height * self.y.share(value)
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A plot.
#[derive(Debug)]
pub struct Chart {
    title: String,
    /// What is to be seen in it, for those who cannot.
    description: String,
    shape: Shape,
    x: Axis,
    y: Axis,
    marks: Vec<Box<dyn Mark>>,
}

impl Chart {
    /// A plot without marks, with what it shows in words for those who do not see it.
    pub fn new(title: &str, description: &str, shape: Shape, (x, y): (Axis, Axis)) -> Self {
        let (title, description) = (title.to_owned(), description.to_owned());
        Self { title, description, shape, x, y, marks: Vec::new() }
    }

    /// Draws a mark above those that are there.
    #[expect(private_bounds, reason = "the marks of this module are all there are")]
    pub fn add(&mut self, mark: impl Mark + 'static) {
        self.marks.push(Box::new(mark));
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// Its title as the name of a file.
    pub fn slug(&self) -> String {
        let words = self.title.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.join("-").to_ascii_lowercase()
    }

    /// As part of a page that has the styles; `id` is that of no other plot on it.
    pub(super) fn inline(&self, id: &str) -> String {
        self.svg(id, 0.0, "")
    }

    /// As a drawing by itself, with its title to be seen.
    pub fn document(&self) -> String {
        let style = format!(
            "<style>\n{}{}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n",
            style::colours("svg"),
            style::PLOT
        );
        self.svg("plot", TITLE, &style) + "\n"
    }

    fn svg(&self, id: &str, title_height: f64, style: &str) -> String {
        let (width, own_height, legend) = match self.shape {
            Shape::Wide => (WIDE, HEIGHT, 0.0),
            Shape::Half => (HALF, HEIGHT, LEGEND),
            // One that is so small has a single series, and no legend.
            Shape::Third => (THIRD, LOW, 0.0),
        };
        let height = own_height + legend + title_height;
        let plane = Plane {
            x: &self.x.scale,
            y: &self.y.scale,
            left: LEFT,
            top: TOP + legend + title_height,
            width: width - LEFT - RIGHT,
            height: own_height - TOP - BOTTOM,
        };
        let (title, description) = (markup(&self.title), markup(&self.description));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{title}</title>\n\
             <desc id=\"{id}-desc\">{description}</desc>\n\
             {style}"
        );
        if title_height > 0.0 {
            add(&mut svg, format_args!("<text x=\"14\" y=\"26\" class=\"title\">{title}</text>\n"));
        }
        self.axes(&plane, &mut svg);
        self.legend(&plane, &mut svg);
        for mark in &self.marks {
            mark.draw(&plane, &mut svg);
        }
        svg.push_str("</svg>");
        svg
    }

    fn axes(&self, plane: &Plane<'_>, svg: &mut String) {
        let (left, right, bottom) = (plane.left, plane.right(), plane.bottom());
        for tick in plane.y.ticks().iter().filter(|tick| !tick.label.is_empty()) {
            let (y, label) = (plane.y(tick.value), &tick.label);
            let (text_x, text_y) = (left - 8.0, y + 4.0);
            add(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" \
                     y2=\"{y:.1}\"/>\n<text x=\"{text_x}\" y=\"{text_y:.1}\" \
                     text-anchor=\"end\">{label}</text>\n"
                ),
            );
        }
        for tick in plane.x.ticks() {
            let (x, label) = (plane.x(tick.value), &tick.label);
            let length = if label.is_empty() { 3.0 } else { 6.0 };
            let (end, text_y) = (bottom + length, bottom + 19.0);
            add(
                svg,
                format_args!(
                    "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" \
                     y2=\"{end}\"/>\n"
                ),
            );
            if !label.is_empty() {
                add(
                    svg,
                    format_args!(
                        "<text x=\"{x:.1}\" y=\"{text_y}\" text-anchor=\"middle\">{label}</text>\n"
                    ),
                );
            }
        }
        add(
            svg,
            format_args!(
                "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" \
                 y2=\"{bottom}\"/>\n<text x=\"{right}\" y=\"{}\" text-anchor=\"end\" \
                 class=\"name\">{}</text>\n<text x=\"14\" y=\"{}\" class=\"name\">{}</text>\n",
                bottom + 37.0,
                markup(&self.x.label()),
                plane.top - 14.0,
                markup(&self.y.label())
            ),
        );
    }

    /// Names from the right end on, above the plane.
    fn legend(&self, plane: &Plane<'_>, svg: &mut String) {
        let named = self.marks.iter().filter_map(|mark| Some((mark.name()?, mark)));
        let mut x = plane.right();
        let y = plane.top - if self.shape == Shape::Half { 14.0 + LEGEND } else { 14.0 };
        for (name, mark) in named.collect::<Vec<_>>().into_iter().rev() {
            let class = mark.colour().class();
            let letters = u32::try_from(name.chars().count()).unwrap_or(0);
            x -= f64::from(letters) * LETTER;
            let text_x = x;
            x -= 26.0;
            let (middle, end) = (y - 4.0, x + 20.0);
            let swatch = match mark.swatch() {
                Swatch::Line(kind) => format!(
                    "<line class=\"line {kind} {class}\" x1=\"{x:.1}\" x2=\"{end:.1}\" \
                     y1=\"{middle}\" y2=\"{middle}\"/>"
                ),
                Swatch::Box => format!(
                    "<rect class=\"bar {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"12\" \
                     height=\"10\"/>",
                    x + 8.0,
                    y - 9.0
                ),
                Swatch::Dot => {
                    format!("<path class=\"dots {class}\" d=\"M{:.1} {middle}h0\"/>", x + 14.0)
                }
            };
            let name = markup(name);
            add(
                svg,
                format_args!(
                    "{swatch}<text class=\"name\" x=\"{text_x:.1}\" y=\"{y}\">{name}</text>\n"
                ),
            );
            x -= 16.0;
        }
    }
}
