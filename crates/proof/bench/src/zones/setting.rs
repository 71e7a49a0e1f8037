//! The disks of the table, and the shape of a ring on them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use device::{Modelled, Timeline, Timing, ZoneProfile};
use format::geometry::{ExtentOrder, Geometry, PIECE_BYTES_MIN, RESERVED_BYTES};
use units::Timestamp;

use units::number::real;

/// Bytes of a piece on the modelled disk.
pub(super) const PIECE_BYTES: u32 = PIECE_BYTES_MIN;
const WINDOW_BYTES_PER_DISK: u64 = 64 << 20;

/// A published profile with the sizes that the table is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) file: &'static str,
    capacity_bytes: u64,
    /// 256 MB on one disk, 2048 MB on an array of ten.
    pub(super) extent_bytes: u64,
    /// A jump from extent to extent, turn of the platter included.
    pub(super) jump_ns: u64,
    /// Disks behind it, each with a pool of its own.
    pub(super) disks: u64,
}

pub(super) const PUBLISHED: [Published; 2] = [
    Published {
        file: "single-8tb.csv",
        capacity_bytes: 8_000_000_000_000,
        extent_bytes: 256_000_000,
        jump_ns: 15_000_000,
        disks: 1,
    },
    Published {
        file: "raid6-10x4tb.csv",
        capacity_bytes: 32_001_801_322_496,
        extent_bytes: 2_048_000_000,
        jump_ns: 20_000_000,
        disks: 10,
    },
];

impl Published {
    /// Extents of the whole disk, a number that every count of zones divides.
    pub(super) fn extents(&self) -> u64 {
        self.capacity_bytes / self.extent_bytes / 64 * 64
    }

    pub(super) fn profile(&self, directory: &Path) -> Result<ZoneProfile> {
        let path = directory.join(self.file);
        let csv = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        ZoneProfile::parse(&csv, self.capacity_bytes)
            .with_context(|| format!("{} is no zone profile", path.display()))
    }
}

/// A ring of so many extents of a published disk in an order of so many zones; 1 zone is first to
/// last. Its pieces are small and stand for larger ones, on a disk of as much less of everything,
/// bytes and rates: all takes the same time, and less computing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'a> {
    pub(super) published: &'a Published,
    pub(super) profile: &'a ZoneProfile,
    pub(super) extents: u64,
    pub(super) zones: u16,
    pub(super) slots_per_extent: u32,
}

impl Ring<'_> {
    /// Bytes of the published disk that a piece stands for.
    pub(super) fn bytes_per_piece(&self) -> u64 {
        self.published.extent_bytes / u64::from(self.slots_per_extent)
    }

    /// Bytes of the published disk behind each byte of this one.
    fn scale(&self) -> f64 {
        real(self.bytes_per_piece()) / f64::from(PIECE_BYTES)
    }

    /// Bytes of an extent on this disk.
    pub(super) fn extent_bytes(&self) -> u64 {
        u64::from(self.slots_per_extent) * u64::from(PIECE_BYTES)
    }

    /// Most stripes in flight: 64 MiB a disk.
    pub(super) fn window(&self) -> u16 {
        let stripes = WINDOW_BYTES_PER_DISK * self.published.disks / self.bytes_per_piece();
        u16::try_from(stripes.clamp(2, 64)).expect("at most 64")
    }

    pub(super) fn geometry(&self) -> Geometry {
        let order =
            if self.zones == 1 { ExtentOrder::FirstToLast } else { ExtentOrder::ZoneLevelled };
        Geometry {
            data_columns: 1,
            parity_columns: 0,
            order,
            zones: self.zones,
            piece_bytes: PIECE_BYTES,
            slots: self.extents * u64::from(self.slots_per_extent),
            slot0_offset: RESERVED_BYTES,
            slots_per_extent: self.slots_per_extent,
            usable_begin: 0,
            usable_end: self.size_bytes(),
        }
    }

    fn ring_bytes(&self) -> u64 {
        self.extents * self.extent_bytes()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.ring_bytes() + 2 * RESERVED_BYTES
    }

    /// The published profile on this disk.
    pub(super) fn scaled_profile(&self) -> ZoneProfile {
        self.profile.scaled(self.size_bytes(), 1.0 / self.scale())
    }

    /// The disk. Its contents are forgotten but for the superblocks.
    pub(super) fn disk(&self) -> (Modelled, Timeline) {
        let timeline = Timeline::new(Timestamp(0));
        let whole = Timing::hard_disk(self.scaled_profile());
        let cache_pieces = whole.cache_bytes * self.published.disks / self.bytes_per_piece();
        let timing = Timing {
            seek_shortest_ns: self.published.jump_ns,
            seek_longest_ns: self.published.jump_ns,
            revolution_ns: 0,
            cache_bytes: cache_pieces * u64::from(PIECE_BYTES),
            cache_bytes_per_s: whole.cache_bytes_per_s * real(self.published.disks) / self.scale(),
            ..whole
        };
        let ring = RESERVED_BYTES..RESERVED_BYTES + self.ring_bytes();
        (Modelled::new(self.size_bytes(), timing, &timeline, 0).forgetting(ring), timeline)
    }
}
