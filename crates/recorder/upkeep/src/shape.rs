//! The shape of a volume, as reports say it.

use format::geometry::{ExtentOrder, Geometry};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Order and place of the ring on each member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RingLayout {
    /// Zones of the surface that the ring visits in turn.
    pub zones: u16,
    /// Bytes of one visit to a zone; `None` where the ring goes from the first byte to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extent_bytes: Option<u64>,
    /// First byte of the ring.
    pub ring_begin: u64,
    /// First byte behind it.
    pub ring_end: u64,
    /// First byte of the part of a member that the ring may use.
    pub usable_begin: u64,
    /// First byte behind that.
    pub usable_end: u64,
}

impl From<&Geometry> for RingLayout {
    fn from(geometry: &Geometry) -> Self {
        let piece_bytes = u64::from(geometry.piece_bytes);
        let is_levelled = geometry.order == ExtentOrder::ZoneLevelled;
        Self {
            zones: geometry.zones,
            extent_bytes: is_levelled.then(|| u64::from(geometry.slots_per_extent) * piece_bytes),
            ring_begin: geometry.slot0_offset,
            ring_end: geometry.slot0_offset + geometry.slots * piece_bytes,
            usable_begin: geometry.usable_begin,
            usable_end: geometry.usable_end,
        }
    }
}

/// A shape as it stands among the members of a report.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShapeForm {
    data_columns: u8,
    parity_columns: u8,
    piece_bytes: u32,
    layout: RingLayout,
}

/// A shape among the members of a report, for serde.
pub(crate) fn shape<S: Serializer>(geometry: &Geometry, to: S) -> Result<S::Ok, S::Error> {
    let Geometry { data_columns, parity_columns, piece_bytes, .. } = *geometry;
    ShapeForm { data_columns, parity_columns, piece_bytes, layout: geometry.into() }.serialize(to)
}
