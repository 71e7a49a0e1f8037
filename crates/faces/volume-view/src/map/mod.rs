//! The ring over the surface: as text for a terminal, as JSON, and as a drawing.

mod look;
mod ring;
mod svg;

use core::fmt::Write as _;

use page::text::grouped;
use units::{ByteSize, MemberId};
use upkeep::{Cell, Grid, MemberState, RingMap};

use look::{Look, ages, lacks, look, rows};
pub use ring::{Ring, ring_json};
pub use svg::map_svg;

/// Cells of a row where standard output is no terminal.
const WIDTH: usize = 100;
/// In front of each row.
const LABEL: usize = 18;
/// Rows of a text.
const ROWS: u64 = 24;

/// How finely [`map`] can draw on a terminal of this width.
pub fn map_grid(width: Option<usize>) -> Grid {
    let columns = width.unwrap_or(WIDTH).saturating_sub(LABEL).max(10);
    Grid { columns: u64::try_from(columns).expect("a terminal is narrow"), rows: ROWS }
}

/// How finely [`map_svg`] draws.
pub fn map_svg_grid() -> Grid {
    svg::grid()
}

/// Where indexes begin shows only while it distinguishes cells.
fn shows_index(map: &RingMap) -> bool {
    let with_index = map.cells.iter().filter(|cell| cell.has_index).count();
    with_index * 3 < map.cells.len()
}

/// The map as text, and what its letters mean.
pub fn map(map: &RingMap) -> String {
    let mut text = heading(map);
    let shows_index = shows_index(map);
    let mut seen = Vec::new();
    for (zone, row) in rows(map) {
        text.push_str(&label(map, zone, row));
        for cell in row {
            let letter = letter(map, cell, shows_index);
            text.push(letter);
            seen.push(letter);
        }
        text.push('\n');
    }
    for (member, state) in MemberId::all().zip(&map.members) {
        text.push_str(&strip(map, member, *state));
    }
    text.push('\n');
    text.push_str(&legend(map, &seen));
    text
}

fn heading(map: &RingMap) -> String {
    let piece = u64::from(map.geometry.piece_bytes);
    let cell = match map.slots_per_cell {
        1 => format!("one slot, {}", ByteSize(piece)),
        slots => format!("{} slots, {}", grouped(slots), ByteSize(slots * piece)),
    };
    format!("\nsurface of each member, outside to inside; a letter is {cell}\n")
}

fn label(map: &RingMap, zone: usize, row: &[Cell]) -> String {
    let place = row.first().map_or(0, |cell| cell.place);
    let at = map.geometry.slot0_offset + place * u64::from(map.geometry.piece_bytes);
    let zone = if map.geometry.zones > 1 { format!("zone {zone}") } else { String::new() };
    format!("{zone:<7} {:>9} ", ByteSize(at).to_string())
}

fn letter(map: &RingMap, cell: &Cell, shows_index: bool) -> char {
    match look(map, cell) {
        _ if cell.is_head => '>',
        _ if cell.is_tail => '<',
        Look::Damaged => '!',
        Look::Unwritten => '.',
        Look::AheadOfHead => '=',
        Look::Opening => 'e',
        _ if shows_index && cell.has_index => 'i',
        Look::LeftEarly(_) => 'v',
        Look::Age(age) => char::from(b'0' + age),
    }
}

/// What a member lacks of the surface, squeezed into one row; nothing for one that is whole.
fn strip(map: &RingMap, member: MemberId, state: MemberState) -> String {
    let damaged = map.cells.iter().any(|cell| cell.damaged.contains(&member));
    if state == MemberState::Whole && !damaged {
        return String::new();
    }
    let columns = usize::try_from(map.columns).expect("as many as a screen has");
    let per_letter = map.cells.len().div_ceil(columns).max(1);
    let letters = map.cells.chunks(per_letter).map(|cells| {
        let lacks = |cell: &&Cell| lacks(state, cell);
        if cells.iter().any(|cell| cell.damaged.contains(&member)) {
            '!'
        } else if cells.iter().any(|cell| lacks(&cell)) {
            'x'
        } else {
            '-'
        }
    });
    let name = format!("member {member}");
    format!("{name:<17} {}\n", letters.collect::<String>())
}

const MEANINGS: [(char, &str); 8] = [
    ('>', "head: the newest stripe"),
    ('<', "tail: the oldest stripe shown"),
    ('=', "next to be overwritten, not shown any more"),
    ('.', "never written"),
    ('i', "a segment's index begins"),
    ('e', "an opening of the volume"),
    ('v', "slot left early, more than half unused"),
    ('!', "damaged: a member does not show what it should"),
];

fn legend(map: &RingMap, seen: &[char]) -> String {
    let mut text = String::new();
    let mut line = |letter: &str, meaning: &str| {
        writeln!(text, "{letter:<5} {meaning}").expect("a string takes all text");
    };
    if let Some((from, to)) = ages(map) {
        line("9..0", &format!("oldest to newest tenth, written {from} to {to} UTC"));
    }
    for (letter, meaning) in MEANINGS.iter().filter(|(letter, _)| seen.contains(letter)) {
        line(&letter.to_string(), meaning);
    }
    if map.members.iter().any(|state| *state != MemberState::Whole) {
        line("x", "the member is absent or missed it");
    }
    if !shows_index(map) {
        let count = map.index_places.len();
        line("", &format!("indexes of {count} segments lie all over the ring"));
    }
    if map.sampled_every > 1 {
        let every = map.sampled_every;
        line("", &format!("e, v and !: one slot in {every} letters was looked at"));
    }
    text
}
