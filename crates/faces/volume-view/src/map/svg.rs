//! The ring over the surface as a drawing that stands by itself, on a light or a dark background.

use core::fmt::Write as _;

use page::safe::markup;
use page::text::{grouped, plural};
use units::number::{real, to_u64};
use units::{ByteSize, MemberId};
use upkeep::{Cell, Grid, MemberState, RingMap};

use super::look::{Look, ages, lacks, look, rows};

/// Width of a drawing.
const WIDTH: u64 = 960;
/// Left of the rows: zone and byte.
const LEFT: u64 = 150;
const RIGHT: u64 = 24;
/// Above the first row: title and two lines.
const TOP: u64 = 98;
/// Height of a row, and from one to the next.
const ROW: u64 = 14;
const STEP: u64 = 17;
/// Between two zones.
const ZONE_GAP: u64 = 5;

/// One hue from light to dark: the newest stands out on both backgrounds.
const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.title { font-size: 17px; font-weight: 600 }
.dim { fill: var(--dim) }
.axis { font-size: 11px; fill: var(--dim); font-variant-numeric: tabular-nums }
.mark { fill: none; stroke: var(--ink); stroke-width: 1.5 }
.edge { stroke: var(--ink); stroke-width: .75; stroke-opacity: .35 }
.index { fill: var(--ink) }
.unwritten { fill: var(--empty) }
.ahead { fill: url(#ahead) }
.opening { fill: #8f6fd1 }
.damaged { fill: #d8362b }
.missed { fill: #d08a00 }
svg { --ink: #1b2530; --dim: #566472; --paper: #fff; --empty: #e9edf1;
  --a0: #08458f; --a1: #1a5ba6; --a2: #2f70ba; --a3: #4785c9; --a4: #619ad5;
  --a5: #7daede; --a6: #98c0e6; --a7: #b2d1ed; --a8: #c9dff2; --a9: #dbeaf6 }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --dim: #9aa7b4; --paper: #0f1720; --empty: #1d2731;
  --a0: #cfe5fb; --a1: #aed3f6; --a2: #8cc0ef; --a3: #6cabe4; --a4: #5096d5;
  --a5: #3c82c2; --a6: #2f6fac; --a7: #275d94; --a8: #214e7c; --a9: #1d4167 }
}
";

/// How finely a drawing shows the ring.
pub(super) fn grid() -> Grid {
    Grid { columns: 260, rows: 24 }
}

/// The map as an SVG document.
pub fn map_svg(map: &RingMap, title: &str) -> String {
    let mut drawing = Drawing { body: String::new(), y: TOP };
    drawing.surface(map);
    drawing.members(map);
    drawing.legend(map);
    let height = drawing.y + 10;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n",
        markup(title)
    );
    text.push_str(STYLE);
    for age in 0..10 {
        add(&mut text, format_args!(".a{age} {{ fill: var(--a{age}) }}\n"));
    }
    text.push_str("</style>\n");
    text.push_str(
        "<defs><pattern id=\"ahead\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"unwritten\"/>\
         <rect width=\"2\" height=\"6\" fill=\"#d08a00\"/></pattern></defs>\n",
    );
    add(
        &mut text,
        format_args!("<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"var(--paper)\"/>\n"),
    );
    text.push_str(&heading(map, title));
    text.push_str(&drawing.body);
    text.push_str("</svg>\n");
    text
}

fn add(text: &mut String, part: core::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a string takes all text");
}

fn heading(map: &RingMap, title: &str) -> String {
    let geometry = &map.geometry;
    let piece = u64::from(geometry.piece_bytes);
    let shape = format!(
        "{} of {} on each of {}, {}",
        plural(geometry.slots, "slot"),
        ByteSize(piece),
        plural(u64::from(geometry.columns()), "member"),
        match geometry.zones {
            1 => "written from outside to inside".to_owned(),
            zones => format!(
                "{zones} zones in turn, extents of {}",
                ByteSize(u64::from(geometry.slots_per_extent) * piece)
            ),
        }
    );
    let held = match (map.span, ages(map)) {
        (Some(span), Some((oldest, newest))) => format!(
            "stripes {} to {}, written {oldest} to {newest} UTC",
            grouped(span.tail.max(geometry.first_sequence()).get()),
            grouped(span.acknowledged.sequence.get())
        ),
        _ => "never written".to_owned(),
    };
    format!(
        "<text x=\"24\" y=\"34\" class=\"title\">{}</text>\n\
         <text x=\"24\" y=\"56\" class=\"dim\">{shape}</text>\n\
         <text x=\"24\" y=\"74\" class=\"dim\">{held}</text>\n",
        markup(title)
    )
}

/// Class of a cell's colour.
fn class(map: &RingMap, cell: &Cell) -> String {
    match look(map, cell) {
        Look::Unwritten => "unwritten".to_owned(),
        Look::AheadOfHead => "ahead".to_owned(),
        Look::Opening => "opening".to_owned(),
        Look::Damaged => "damaged".to_owned(),
        Look::Age(age) => format!("a{age}"),
        Look::LeftEarly(age) => format!("a{age} left"),
    }
}

struct Drawing {
    body: String,
    /// Where the next line begins.
    y: u64,
}

impl Drawing {
    fn surface(&mut self, map: &RingMap) {
        let mut last_zone = 0;
        for (number, (zone, row)) in rows(map).into_iter().enumerate() {
            if zone != last_zone {
                self.y += ZONE_GAP;
            }
            let first_of_zone = zone != last_zone || number == 0;
            last_zone = zone;
            self.row(map, row, first_of_zone.then_some(zone));
            self.y += STEP;
        }
    }

    fn row(&mut self, map: &RingMap, row: &[Cell], zone: Option<usize>) {
        let text_y = self.y + ROW - 3;
        if let Some(zone) = zone.filter(|_| map.geometry.zones > 1) {
            add(&mut self.body, format_args!("<text x=\"24\" y=\"{text_y}\">zone {zone}</text>\n"));
        }
        let place = row.first().map_or(0, |cell| cell.place);
        let at = ByteSize(map.geometry.slot0_offset + place * u64::from(map.geometry.piece_bytes));
        let label_x = LEFT - 8;
        add(
            &mut self.body,
            format_args!(
                "<text x=\"{label_x}\" y=\"{text_y}\" class=\"axis\" text-anchor=\"end\">{at}\
                 </text>\n"
            ),
        );
        let mut from = 0;
        for run in row.chunk_by(|a, b| class(map, a) == class(map, b)) {
            let to = from + run.len();
            let class = run.first().map(|cell| class(map, cell)).unwrap_or_default();
            self.block(map, (from, to), &class);
            from = to;
        }
        for (number, cell) in row.iter().enumerate() {
            self.marks(map, number, cell);
        }
    }

    /// One run of cells that look alike. Slots left early are half as high: the rest is unused.
    fn block(&mut self, map: &RingMap, (from, to): (usize, usize), class: &str) {
        let (x, width) = (x(map, from), x(map, to) - x(map, from));
        let y = self.y;
        let (colour, height) = match class.strip_suffix(" left") {
            Some(colour) => (colour, ROW / 2),
            None => (class, ROW),
        };
        if height < ROW {
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{ROW}\" \
                     class=\"unwritten\"/>\n"
                ),
            );
        }
        let top = y + ROW - height;
        add(
            &mut self.body,
            format_args!(
                "<rect x=\"{x:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{height}\" \
                 class=\"{colour}\"/>\n"
            ),
        );
    }

    fn marks(&mut self, map: &RingMap, number: usize, cell: &Cell) {
        let (left, right) = (x(map, number), x(map, number + 1));
        let (middle, y) = (f64::midpoint(left, right), self.y);
        if cell.has_index {
            // Half below the row: it must be seen on the newest colour, too.
            let top = y + ROW - 3;
            let left = middle - 0.5;
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{left:.2}\" y=\"{top}\" width=\"1\" height=\"6\" class=\"index\"/>\n"
                ),
            );
        }
        for (is_here, name) in [(cell.is_head, "head"), (cell.is_tail, "tail")] {
            if is_here {
                self.flag(middle, name);
            }
        }
    }

    /// A frame around a cell and its name beside it.
    fn flag(&mut self, middle: f64, name: &str) {
        let (y, height, left) = (self.y - 2, ROW + 4, middle - 4.0);
        let is_left = middle > 850.0;
        let (anchor, text_x) =
            if is_left { ("end", middle - 9.0) } else { ("start", middle + 9.0) };
        let text_y = self.y + ROW - 3;
        add(
            &mut self.body,
            format_args!(
                "<rect x=\"{left:.2}\" y=\"{y}\" width=\"8\" height=\"{height}\" rx=\"2\" \
                 class=\"mark\"/>\n<text x=\"{text_x:.2}\" y=\"{text_y}\" text-anchor=\"{anchor}\" \
                 paint-order=\"stroke\" stroke=\"var(--paper)\" stroke-width=\"4\">{name}</text>\n"
            ),
        );
    }

    /// A strip for each member, where any is not whole.
    fn members(&mut self, map: &RingMap) {
        let any_damaged = map.cells.iter().any(|cell| !cell.damaged.is_empty());
        if !any_damaged && map.members.iter().all(|state| *state == MemberState::Whole) {
            return;
        }
        self.y += 12;
        for (member, state) in MemberId::all().zip(&map.members) {
            let text_y = self.y + ROW - 3;
            let condition = match state {
                MemberState::Whole => "",
                MemberState::Absent => " (absent)",
                MemberState::Vacant => " (an empty seat)",
                MemberState::Stale { .. } => " (missed some)",
            };
            add(
                &mut self.body,
                format_args!("<text x=\"24\" y=\"{text_y}\">member {member}{condition}</text>\n"),
            );
            self.strip(map, member, *state);
            self.y += STEP;
        }
    }

    fn strip(&mut self, map: &RingMap, member: MemberId, state: MemberState) {
        let class = |cell: &Cell| {
            if cell.damaged.contains(&member) {
                "damaged"
            } else if lacks(state, cell) {
                "missed"
            } else if cell.sequence.is_none() {
                "unwritten"
            } else {
                "a4"
            }
        };
        let (left, width) = (real(LEFT), real(WIDTH - LEFT - RIGHT));
        let scale = width / real(count(map.cells.len()).max(1));
        let (y, mut from) = (self.y, 0);
        for run in map.cells.chunk_by(|a, b| class(a) == class(b)) {
            let x = left + real(count(from)) * scale;
            let width = real(count(run.len())) * scale;
            let class = run.first().map(class).unwrap_or_default();
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{ROW}\" \
                     class=\"{class}\"/>\n"
                ),
            );
            from += run.len();
        }
    }

    fn legend(&mut self, map: &RingMap) {
        self.y += 22;
        let y = self.y;
        let text_y = y + 11;
        add(&mut self.body, format_args!("<text x=\"24\" y=\"{text_y}\">newest</text>\n"));
        for age in 0..10_u64 {
            let x = 76 + age * 16;
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"{ROW}\" class=\"a{age}\"/>\n"
                ),
            );
        }
        add(&mut self.body, format_args!("<text x=\"244\" y=\"{text_y}\">oldest held</text>\n"));
        let mut x = 336;
        for (class, name, width) in [
            ("ahead", "next to be overwritten", 172),
            ("unwritten", "never written", 118),
            ("opening", "opening", 84),
            ("damaged", "damaged", 90),
        ] {
            let text_x = x + 22;
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"{ROW}\" class=\"{class}\"/>\n\
                     <text x=\"{text_x}\" y=\"{text_y}\">{name}</text>\n"
                ),
            );
            x += width;
        }
        self.y += 34;
        let cell = plural(map.slots_per_cell, "slot");
        let segments = plural(count(map.index_places.len()), "segment");
        self.note(&format!(
            "a cell is {cell}; ticks: where the indexes of {segments} begin; half height: slot \
             left early, mostly unused"
        ));
        if map.sampled_every > 1 {
            let every = map.sampled_every;
            self.note(&format!(
                "openings, slots left early and damage: one slot in {every} cells was looked at"
            ));
        }
    }

    fn note(&mut self, text: &str) {
        let y = self.y;
        add(&mut self.body, format_args!("<text x=\"24\" y=\"{y}\" class=\"dim\">{text}</text>\n"));
        self.y += 18;
    }
}

/// Left edge of a cell.
fn x(map: &RingMap, number: usize) -> f64 {
    let width = real(WIDTH - LEFT - RIGHT);
    real(LEFT) + width * real(count(number)) / real(map.columns.max(1))
}

fn count(number: usize) -> u64 {
    to_u64(number)
}
