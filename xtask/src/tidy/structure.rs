//! The picture of the crates, `docs/structure.svg`: rows of the table from the ground up, columns
//! for the parts of the product. It is drawn from the table, so that no crate is missing.

use std::fmt::Write as _;

use super::file::File;
use super::rows::{self, BOUNDARY, PARTS, TOOLS};

pub(crate) const PATH: &str = "docs/structure.svg";

const STYLE: &str = r#"  <style>
    text { font-family: "DejaVu Sans", Verdana, Arial, sans-serif; fill: #1b222b; }
    .page, .odd { fill: #ffffff; } .even { fill: #f3f5f8; } .system { fill: #fff6e0; }
    .title { font-size: 17px; font-weight: bold; } .aside { font-size: 13px; text-anchor: end; }
    .number { font-size: 17px; } .folder { font-size: 14px; font-weight: bold; }
    .name { font-size: 12.5px; } .folder, .name { text-anchor: middle; }
    .note, .aside { fill: #4a5562; } .note { font-size: 11px; }
    .crate { stroke: #7d8896; } .line { stroke: #c3cad3; fill: none; }
    .beside { fill: #ffffff; stroke-dasharray: 4 3; }
    .base { fill: #d9dee5; } .packets { fill: #cfe3f7; } .storage { fill: #d5ecd4; }
    .sessions { fill: #e6dcf5; } .recorder { fill: #f9d9cf; } .machine { fill: #f6e3a8; }
    .tools { fill: #d3ecec; } .faces { fill: #f5d6e6; } .proof { fill: #e4e0d6; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6eaef; } .note, .aside { fill: #a9b3bf; }
      .page, .odd, .beside { fill: #12161b; } .even { fill: #191f26; } .system { fill: #2b2614; }
      .crate { stroke: #6b7684; } .line { stroke: #343d47; }
      .base { fill: #3a424d; } .packets { fill: #1f4566; } .storage { fill: #254d2b; }
      .sessions { fill: #43326b; } .recorder { fill: #6b3325; } .machine { fill: #5c4a10; }
      .tools { fill: #1d5050; } .faces { fill: #632846; } .proof { fill: #4b463a; }
    }
  </style>
"#;

/// Parts with so many crates that two stand beside each other.
const WIDE: [&str; 3] = ["tools", "faces", "proof"];
/// Where rows and columns begin.
const TOP: usize = 76;
const LEFT: usize = 114;
/// Around the boxes of a cell, and between two of them.
const MARGIN: (usize, usize) = (10, 8);
const GAP: (usize, usize) = (6, 5);
const BOX: (usize, usize) = (92, 22);

/// A part of the product with its place.
struct Column {
    part: &'static str,
    x: usize,
    boxes_across: usize,
}

impl Column {
    fn width(&self) -> usize {
        2 * MARGIN.0 + self.boxes_across * BOX.0 + (self.boxes_across - 1) * GAP.0
    }

    fn middle(&self) -> usize {
        self.x + self.width() / 2
    }
}

fn columns() -> Vec<Column> {
    let mut x = LEFT;
    let columns = PARTS.map(|part| {
        let boxes_across = if WIDE.contains(&part) { 2 } else { 1 };
        let column = Column { part, x, boxes_across };
        x += column.width();
        column
    });
    columns.into()
}

/// The picture differs from the table.
pub(crate) fn check(files: &[File], part_of: &dyn Fn(&str) -> Option<&'static str>) -> Vec<String> {
    let text = files.iter().find(|file| file.path == PATH).and_then(|file| file.text.as_deref());
    let is_drawn = text == Some(&*draw(part_of));
    let finding = || format!("{PATH} is not the table of rows: cargo xtask tidy --draw writes it");
    if is_drawn { Vec::new() } else { vec![finding()] }
}

/// The picture, as SVG. Crates without a part stand beside `crates/`.
pub(crate) fn draw(part_of: &dyn Fn(&str) -> Option<&'static str>) -> String {
    let columns = columns();
    let right = columns.last().map_or(LEFT, |column| column.x + column.width());
    let (mut below, mut boxes, mut y) = (String::new(), String::new(), TOP);
    for (number, crates) in rows::ROWS.iter().enumerate().rev() {
        let cells: Vec<Vec<&str>> = columns
            .iter()
            .map(|column| {
                let part = |name: &&&str| part_of(name).unwrap_or("proof") == column.part;
                crates.iter().filter(part).copied().collect()
            })
            .collect();
        let count =
            |(column, cell): (&Column, &Vec<&str>)| cell.len().div_ceil(column.boxes_across);
        let most = columns.iter().zip(&cells).map(count).max().unwrap_or_default();
        let height = 2 * MARGIN.1 + most * BOX.1 + most.saturating_sub(1) * GAP.1;
        draw_row(&mut below, number, (y, height), right);
        for (column, cell) in columns.iter().zip(&cells) {
            draw_cell(&mut boxes, column, y, cell, part_of);
        }
        y += height;
    }
    for column in &columns {
        line(&mut below, &format!("M{} 50 V{y}", column.x));
    }
    let (width, height) = (right + 12, y + 10);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\"\n     role=\"img\" aria-labelledby=\"title\">\n  \
         <title id=\"title\">Crates of wirespool by layer and folder; a crate depends only on \
         crates in lower layers</title>\n{STYLE}  <rect class=\"page\" width=\"{width}\" \
         height=\"{height}\"/>\n"
    );
    label(&mut text, "title", (18, 28), "A crate depends only on crates in lower layers");
    let aside = "rows: layers; columns: folders of crates/; dashed: beside crates/";
    label(&mut text, "aside", (right, 28), aside);
    label(&mut text, "note", (18, 66), "layer");
    for column in &columns {
        label(&mut text, "folder", (column.middle(), 66), column.part);
    }
    text + &below + &boxes + "</svg>\n"
}

fn draw_row(to: &mut String, number: usize, (y, height): (usize, usize), right: usize) {
    let class = match number {
        _ if BOUNDARY.contains(&number) => "system",
        _ if number.is_multiple_of(2) => "odd",
        _ => "even",
    };
    let width = right - 8;
    writeln!(to, r#"  <rect class="{class}" x="8" y="{y}" width="{width}" height="{height}"/>"#)
        .expect("a string takes all text");
    let middle = y + height / 2;
    label(to, "number", (18, middle + 6), &number.to_string());
    let note = match number {
        TOOLS => ["tools for", "developers"],
        rows::BINARY => ["the binary", ""],
        _ if BOUNDARY.contains(&number) => ["call the", "system"],
        _ => ["", ""],
    };
    let first = if note[1].is_empty() { middle + 4 } else { middle - 2 };
    for (place, words) in note.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
        label(to, "note", (46, first + place * 13), words);
    }
    if y > TOP {
        line(to, &format!("M8 {y} H{right}"));
    }
}

fn draw_cell(
    to: &mut String,
    column: &Column,
    y: usize,
    names: &[&str],
    part_of: &dyn Fn(&str) -> Option<&'static str>,
) {
    let is_alone = names.len() == 1;
    let width = if is_alone { column.width() - 2 * MARGIN.0 } else { BOX.0 };
    for (place, name) in names.iter().enumerate() {
        let (across, down) = (place % column.boxes_across, place / column.boxes_across);
        let x = column.x + MARGIN.0 + across * (BOX.0 + GAP.0);
        let y = y + MARGIN.1 + down * (BOX.1 + GAP.1);
        let class = part_of(name).unwrap_or("beside");
        let shape = format!(r#"width="{width}" height="{}" rx="4""#, BOX.1);
        writeln!(to, r#"  <rect class="crate {class}" x="{x}" y="{y}" {shape}/>"#)
            .expect("a string takes all text");
        label(to, "name", (x + width / 2, y + 15), name);
    }
}

fn label(to: &mut String, class: &str, (x, y): (usize, usize), words: &str) {
    writeln!(to, r#"  <text class="{class}" x="{x}" y="{y}">{words}</text>"#)
        .expect("a string takes all text");
}

fn line(to: &mut String, path: &str) {
    writeln!(to, r#"  <path class="line" d="{path}"/>"#).expect("a string takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_of(name: &str) -> Option<&'static str> {
        (name != "xtask").then_some("tools")
    }

    #[test]
    fn each_crate_of_the_table_has_a_box() {
        let picture = draw(&part_of);
        for name in rows::ROWS.iter().copied().flatten() {
            assert!(picture.contains(&format!(">{name}</text>")), "{name}");
        }
        assert_eq!(picture.matches("class=\"crate beside\"").count(), 1);
    }

    #[test]
    fn an_old_picture_is_a_finding() {
        let file = |text: String| File { path: PATH.to_owned(), text: Some(text), size_bytes: 0 };
        assert!(check(&[file(draw(&part_of))], &part_of).is_empty());
        assert_eq!(check(&[file(draw(&|_| Some("faces")))], &part_of).len(), 1);
        assert_eq!(check(&[], &part_of).len(), 1);
    }
}
