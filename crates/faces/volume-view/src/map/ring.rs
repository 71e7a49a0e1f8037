//! The ring in cells, with its members and what is held of it, for who draws it elsewhere.

use format::head::{StripeId, VolumeId};
use page::safe::{json_pretty, path_value};
use schemars::JsonSchema;
use serde::Serialize;
use units::number::to_u64;
use units::{MemberId, Sequence, Timestamp};
use upkeep::{Cell, Content, MemberState, RingMap, Status};

use super::look::age;

/// The ring of a volume over the surface of its members.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ring<'a> {
    volume_id: VolumeId,
    data_columns: u8,
    parity_columns: u8,
    zones: u16,
    /// Slots of the ring.
    slots: u64,
    /// Bytes of a slot on each member.
    piece_bytes: u32,
    /// Cells in a row; the last row of a zone may have fewer.
    columns: u64,
    /// Slots of a cell; the last cell of a zone may have fewer.
    slots_per_cell: u64,
    /// Every so many cells one slot was looked at: what heads alone say is known of these.
    sampled_every: u64,
    /// Oldest sequence that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_sequence: Option<Sequence>,
    /// Newest sequence on the ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_sequence: Option<Sequence>,
    /// Newest stripe that is durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<StripeId>,
    /// Segments whose index lies in the ring.
    segments: u64,
    /// When the ring wrote its parts, in equal steps from the newest stripe to the oldest one.
    written_ns: &'a [Option<Timestamp>],
    members: Vec<RingMember>,
    /// From outside to inside, zone by zone.
    cells: Vec<RingCell<'a>>,
}

/// A member of the volume.
#[derive(Debug, Serialize, JsonSchema)]
struct RingMember {
    number: MemberId,
    path: String,
    #[serde(flatten)]
    state: MemberState,
    /// Bytes that it lacks.
    stale_bytes: u64,
    /// Cells of which it does not show the slot that was looked at.
    damaged_cells: u64,
}

/// Neighbouring slots on the surface.
#[derive(Debug, Serialize, JsonSchema)]
struct RingCell<'a> {
    #[serde(flatten)]
    cell: &'a Cell,
    zone: u64,
    /// Of what is held the tenth that it lies in: 0 is the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<u8>,
    /// Holds that have packets of it.
    #[serde(default, skip_serializing_if = "is_none")]
    holds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The ring as a JSON object: of each cell how many holds have packets of it.
pub fn ring_json(map: &RingMap, status: &Status, holds: &[u64]) -> String {
    let geometry = &map.geometry;
    let zones = u64::from(geometry.zones).max(1);
    let zone_slots = (geometry.slots / zones).max(1);
    let holds = holds.iter().copied().chain(core::iter::repeat(0));
    let cells = map.cells.iter().zip(holds).map(|(cell, holds)| RingCell {
        cell,
        zone: cell.place / zone_slots,
        age: has_age(cell).then(|| age(map, cell)),
        holds,
    });
    json_pretty(&Ring {
        volume_id: status.volume_id,
        data_columns: geometry.data_columns,
        parity_columns: geometry.parity_columns,
        zones: geometry.zones,
        slots: geometry.slots,
        piece_bytes: geometry.piece_bytes,
        columns: map.columns,
        slots_per_cell: map.slots_per_cell,
        sampled_every: map.sampled_every,
        tail_sequence: map.span.map(|span| span.tail),
        newest_sequence: map.newest,
        acknowledged: map.span.map(|span| span.acknowledged),
        segments: to_u64(map.index_places.len()),
        written_ns: &map.written,
        members: members(map, status),
        cells: cells.collect(),
    })
}

fn has_age(cell: &Cell) -> bool {
    let is_held = !matches!(cell.content, Content::Unwritten | Content::AheadOfHead);
    is_held && cell.sequence.is_some()
}

fn members(map: &RingMap, status: &Status) -> Vec<RingMember> {
    let member = |(number, member): (MemberId, &upkeep::MemberStatus)| RingMember {
        number,
        path: path_value(&member.path),
        state: member.state,
        stale_bytes: member.stale_bytes,
        damaged_cells: to_u64(
            map.cells.iter().filter(|cell| cell.damaged.contains(&number)).count(),
        ),
    };
    MemberId::all().zip(&status.members).map(member).collect()
}
