//! The ring over the surface of its members: what lies where, from the first byte to the last.
//!
//! Where each sequence lies, and so its age, is computed; the directories of the index say where
//! INDEX stripes begin. What only heads say (slots left early, openings, damage) is looked up in a
//! sample of slots: two or three rows of each on every member.

use std::path::{Path, PathBuf};

use format::geometry::Geometry;
use format::head::Kind;
use schemars::JsonSchema;
use serde::Serialize;
use units::number::to_u64;
use units::{EachSequence, MemberId, Sequence, Timestamp};
use volume::{Look, Reader, Span};

use crate::inspect::{MemberState, member_state};
use crate::{Error, segments};

/// Slots that are looked at: at 10 ms a row on each member some ten seconds.
const SAMPLES: u64 = 512;
/// Heads that say how old each part of the ring is.
const AGES: u64 = 10;
/// Sequences that are tried where a head cannot be read.
const NEIGHBOURS: u64 = 16;

/// How finely a map is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Cells in a row, at most.
    pub columns: u64,
    /// Rows, about: every zone has its own.
    pub rows: u64,
}

/// A ring over the surface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RingMap {
    /// Cells in a row; the last row of a zone may have fewer.
    pub columns: u64,
    /// Slots of a cell; the last cell of a zone may have fewer.
    pub slots_per_cell: u64,
    /// Every so many cells one slot was looked at.
    pub sampled_every: u64,
    /// When the ring wrote its parts, in equal steps from the newest stripe to the oldest one
    /// held.
    #[serde(rename = "written_ns")]
    pub written: Vec<Option<Timestamp>>,
    /// Places of slots in which the index of a segment begins.
    pub index_places: Vec<u64>,
    /// Cells by place: outside to inside, row by row.
    pub cells: Vec<Cell>,
    /// Shape of the volume.
    #[serde(skip)]
    pub geometry: Geometry,
    /// What may be read; `None` while nothing is acknowledged.
    #[serde(skip)]
    pub span: Option<Span>,
    /// Newest sequence on the ring.
    #[serde(skip)]
    pub newest: Option<Sequence>,
    /// State of the slots, by member.
    #[serde(skip)]
    pub members: Vec<MemberState>,
}

/// Neighbouring slots on the surface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Cell {
    /// Place of its first slot, counted from the first slot of the surface.
    pub place: u64,
    /// Number of slots of the cell.
    pub slots: u64,
    /// Sequence in its middle slot, if that was ever written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Sequence>,
    /// What the middle slot holds.
    #[serde(flatten)]
    pub content: Content,
    /// The newest stripe lies in it.
    #[serde(rename = "head", skip_serializing_if = "core::ops::Not::not")]
    pub is_head: bool,
    /// The oldest stripe that is shown lies in it.
    #[serde(rename = "tail", skip_serializing_if = "core::ops::Not::not")]
    pub is_tail: bool,
    /// The index of a segment begins in it.
    #[serde(rename = "index", skip_serializing_if = "core::ops::Not::not")]
    pub has_index: bool,
    /// Members that do not show the middle slot, though they should.
    #[serde(rename = "damaged_members", skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<MemberId>,
}

/// What a slot holds, as far as it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "content", rename_all = "snake_case")]
pub enum Content {
    /// Nothing: the first lap has not come here.
    Unwritten,
    /// A slot with stripes.
    Written,
    /// Stripes, then nothing: the slot was left early.
    LeftEarly {
        /// Share of it that is unused.
        unused_percent: u8,
    },
    /// An opening of the volume.
    Opening,
    /// Something old or half new: ahead of the head, where a crash may have left anything.
    AheadOfHead,
    /// No member shows it.
    Damaged,
}

/// Draws the ring of a volume; writes nothing, takes no lock.
pub fn map(path: &Path, members: &[PathBuf], grid: Grid) -> Result<RingMap, Error> {
    let reader = crate::open(path, members)?;
    let geometry = *reader.geometry();
    let (columns, slots_per_cell) = divide(&geometry, grid);
    let newest = reader.newest().map(|newest| newest.sequence);
    let place = |sequence: Sequence| place_of(&geometry, sequence);
    let entries = segments::read(&reader).entries;
    let mut index_places: Vec<u64> =
        entries.iter().map(|entry| place(entry.index.sequence)).collect();
    index_places.sort_unstable();
    let mut map = RingMap {
        geometry,
        span: reader.span(),
        newest,
        columns,
        slots_per_cell,
        cells: cells(&geometry, slots_per_cell),
        index_places,
        written: reader.span().map_or_else(Vec::new, |span| written(&reader, span)),
        sampled_every: 1,
        members: reader
            .membership()
            .numbers()
            .map(|member| member_state(&reader, member))
            .collect(),
    };
    map.fill(&reader);
    Ok(map)
}

/// Cells of a row and slots of a cell, so that every zone fills whole rows.
fn divide(geometry: &Geometry, grid: Grid) -> (u64, u64) {
    let zones = u64::from(geometry.zones);
    let zone_slots = geometry.slots / zones;
    let rows = (grid.rows / zones).max(1);
    let slots_per_cell = zone_slots.div_ceil(rows * grid.columns.max(1));
    let zone_cells = zone_slots.div_ceil(slots_per_cell);
    (grid.columns.clamp(1, zone_cells), slots_per_cell)
}

/// Place of a sequence's slot, counted from the first slot of the surface.
fn place_of(geometry: &Geometry, sequence: Sequence) -> u64 {
    (geometry.slot_offset(sequence) - geometry.slot0_offset) / u64::from(geometry.piece_bytes)
}

/// The cells, still empty.
fn cells(geometry: &Geometry, slots_per_cell: u64) -> Vec<Cell> {
    let zones = u64::from(geometry.zones);
    let zone_slots = geometry.slots / zones;
    let step = usize::try_from(slots_per_cell).unwrap_or(usize::MAX);
    let places = (0..zones).flat_map(|zone| {
        let first = zone * zone_slots;
        let places = (0..zone_slots).step_by(step);
        places.map(move |place| (first + place, slots_per_cell.min(zone_slots - place)))
    });
    let cell = |(place, slots)| Cell {
        place,
        slots,
        sequence: None,
        content: Content::Unwritten,
        is_head: false,
        is_tail: false,
        has_index: false,
        damaged: Vec::new(),
    };
    places.map(cell).collect()
}

/// When the parts of the ring were written, newest first.
fn written(reader: &Reader, span: Span) -> Vec<Option<Timestamp>> {
    let (first, last) = (span.tail, span.acknowledged.sequence);
    let at = |step: u64| {
        let middle = last - (last - first) / AGES * step;
        let near =
            (middle..=last).each().take(usize::try_from(NEIGHBOURS).expect("a small number"));
        near.into_iter().find_map(|sequence| reader.head(sequence))
    };
    (0..=AGES).map(|step| at(step).map(|head| head.stripe.realtime)).collect()
}

impl RingMap {
    /// Place among the cells of the one with this sequence; `None` where the ring does not show it,
    /// or any more.
    pub fn cell_of(&self, sequence: Sequence) -> Option<usize> {
        let is_shown = self.span.is_some_and(|span| sequence >= span.tail)
            && self.newest.is_some_and(|newest| sequence <= newest);
        let place = is_shown.then(|| place_of(&self.geometry, sequence))?;
        self.cells.partition_point(|cell| cell.place <= place).checked_sub(1)
    }

    fn fill(&mut self, reader: &Reader) {
        let Some(newest) = self.newest else { return };
        let (geometry, tail) = (self.geometry, self.span.map(|span| span.tail));
        let count = to_u64(self.cells.len());
        self.sampled_every = count.div_ceil(SAMPLES).max(1);
        let (head_place, tail_place) =
            (place_of(&geometry, newest), tail.map(|tail| place_of(&geometry, tail)));
        for (number, cell) in (0_u64..).zip(&mut self.cells) {
            let places = cell.place..cell.place + cell.slots;
            cell.is_head = places.contains(&head_place);
            cell.is_tail = tail_place.is_some_and(|place| places.contains(&place));
            let first_index = self.index_places.partition_point(|place| *place < places.start);
            cell.has_index =
                self.index_places.get(first_index).is_some_and(|place| places.contains(place));
            let middle = cell.place + cell.slots / 2;
            cell.sequence = sequence_at(&geometry, middle, newest);
            let Some(sequence) = cell.sequence else { continue };
            cell.content = if tail.is_none_or(|tail| sequence < tail) {
                Content::AheadOfHead
            } else if number.is_multiple_of(self.sampled_every) {
                let look = reader.look(sequence);
                cell.damaged.clone_from(&look.damaged);
                content(&look, geometry.rows_per_slot())
            } else {
                Content::Written
            };
        }
    }
}

/// The sequence that the ring wrote last at a place; `None` when it was never there.
fn sequence_at(geometry: &Geometry, place: u64, newest: Sequence) -> Option<Sequence> {
    let offset = geometry.slot0_offset + place * u64::from(geometry.piece_bytes);
    let written = geometry.last_of_slot(geometry.slot_at(offset)?, newest);
    (written >= geometry.first_sequence()).then_some(written)
}

fn content(look: &Look, rows: u16) -> Content {
    let Some(first) = &look.first else { return Content::Damaged };
    match (first.stripe.kind, look.left_at) {
        (Kind::Epoch, _) => Content::Opening,
        (_, Some(row)) => {
            let unused = u32::from(rows - row) * 100 / u32::from(rows);
            let unused_percent = u8::try_from(unused).expect("at most 100 percent");
            Content::LeftEarly { unused_percent }
        }
        _ => Content::Written,
    }
}
