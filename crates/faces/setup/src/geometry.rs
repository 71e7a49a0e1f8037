//! The shape of the volume: what is proposed for so many members, and what it means.

use ::qualify::Choice;
use page::text::{bits, disk_rate, duration, plural};
use units::{ByteSize, NANOS_PER_SECOND};
use volume::{CreateOptions, Layout, columns_for, geometry_for};

const PIECE_BYTES: u32 = 2 << 20;
/// Zones on rotating disks, as `create` chooses them without a qualification.
const ZONES_OF_DISKS: u16 = 8;
/// So many members want a second parity column: the next one may fail while a lost one is replaced.
const MEMBERS_OF_TWO: usize = 6;
/// And so many want one that waits.
const MEMBERS_OF_SPARE: usize = 12;
/// A frame for rates in traffic, and the bytes that the disk takes for it (docs/format.md).
const FRAME_BYTES: u64 = 640;
const STORED_BYTES: u64 = 672;

/// Members that hold parity, for so many.
pub(crate) fn proposed_parity(members: usize) -> u8 {
    match members {
        0 | 1 => 0,
        few if few < MEMBERS_OF_TWO => 1,
        _ => 2,
    }
}

/// Members that wait, for so many.
pub(crate) fn proposed_spares(members: usize) -> u8 {
    u8::from(members >= MEMBERS_OF_SPARE)
}

/// A volume that could be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) data: u8,
    pub(crate) parity: u8,
    pub(crate) spares: u8,
    zones: u16,
    ring_bytes: u64,
    /// Bytes a second that all data columns take together.
    guaranteed_bytes_per_s: Option<u64>,
}

/// What is known of the members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    /// Spares among them.
    pub(crate) count: usize,
    /// Of the smallest.
    pub(crate) size_bytes: u64,
    /// One turns.
    pub(crate) is_rotating: bool,
    /// What their qualification advises.
    pub(crate) advice: Option<&'a Choice>,
}

/// The shape with so much parity and so many spares, or why there is none.
pub(crate) fn shape(members: &Members<'_>, parity: u8, spares: u8) -> Result<Shape, String> {
    let all = members.count.saturating_sub(usize::from(spares));
    let (data, _) = columns_for(all, parity).map_err(|error| error.to_string())?;
    let by_disk = if members.is_rotating { ZONES_OF_DISKS } else { 1 };
    let zones = members.advice.map_or(by_disk, |choice| choice.zones);
    let extent_bytes = members.advice.and_then(|choice| choice.extent_bytes);
    let options = CreateOptions {
        piece_bytes: PIECE_BYTES,
        parity_columns: parity,
        layout: Layout { zones, extent_bytes, ..Layout::default() },
        ..CreateOptions::default()
    };
    let found = geometry_for(members.size_bytes, all, &options);
    let (geometry, _) = found.map_err(|error| error.to_string())?;
    let ring_bytes = geometry.slots * u64::from(geometry.piece_bytes) * u64::from(data);
    let of_one = members.advice.map(|choice| choice.qualified.guaranteed_bytes_per_s);
    let guaranteed_bytes_per_s = of_one.map(|rate| rate.saturating_mul(u64::from(data)));
    Ok(Shape { data, parity, spares, zones, ring_bytes, guaranteed_bytes_per_s })
}

impl Shape {
    /// The shape in words, with how long it keeps what is stored at this rate.
    pub(crate) fn told(&self, stored_bytes_per_s: u64) -> String {
        let Self { data, parity, spares, zones, .. } = *self;
        let mut lines = vec![format!("  members     {data}+{parity}: {}", self.survives())];
        if spares > 0 {
            let spares = plural(u64::from(spares), "spare");
            lines.push(format!("  spares      {spares}: takes the place of a member that fails"));
        }
        if zones > 1 {
            let why = "the ring averages fast and slow tracks of rotating disks";
            lines.push(format!("  zones       {zones}: {why}"));
        }
        lines.push(format!("  size        {} for packets", ByteSize(self.ring_bytes)));
        lines.push(format!("  guaranteed  {}", self.guaranteed()));
        lines.push(format!("  reaches     {}", self.reaches(stored_bytes_per_s)));
        lines.join("\n")
    }

    fn survives(&self) -> String {
        match self.parity {
            0 => "a member that fails takes its packets with it".to_owned(),
            1 => "any one member may fail without loss".to_owned(),
            parity => format!("any {parity} members may fail without loss"),
        }
    }

    fn guaranteed(&self) -> String {
        let Some(rate) = self.guaranteed_bytes_per_s else {
            return "not known: it was not qualified".to_owned();
        };
        let frames = rate.saturating_mul(8) / STORED_BYTES * FRAME_BYTES;
        format!(
            "{} on the disks: {} in frames of {FRAME_BYTES} bytes",
            disk_rate(rate),
            bits(frames)
        )
    }

    fn reaches(&self, stored_bytes_per_s: u64) -> String {
        if stored_bytes_per_s == 0 {
            return "cannot tell: no traffic was seen".to_owned();
        }
        let seconds = self.ring_bytes / stored_bytes_per_s;
        let ns = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(NANOS_PER_SECOND);
        format!("back {} at the traffic seen just now", duration(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Members<'static> {
        Members { count, size_bytes: 1 << 40, is_rotating: true, advice: None }
    }

    #[test]
    fn more_members_get_more_parity_and_then_a_spare() {
        let proposed: Vec<(u8, u8)> = [1, 2, 3, 5, 6, 11, 12, 24]
            .into_iter()
            .map(|count| (proposed_parity(count), proposed_spares(count)))
            .collect();
        assert_eq!(proposed, [(0, 0), (1, 0), (1, 0), (1, 0), (2, 0), (2, 0), (2, 1), (2, 1)]);
    }

    #[test]
    fn a_shape_says_what_it_survives_and_how_far_it_reaches() {
        let found = shape(&members(4), 1, 0).unwrap();
        let told = found.told(100_000_000);
        assert!(told.contains("3+1: any one member may fail without loss"), "{told}");
        assert!(told.contains("zones       8"), "{told}");
        assert!(told.contains("not known: it was not qualified"), "{told}");
        assert!(told.contains("back 9 h"), "3 TiB less half a percent at 100 MB/s: {told}");
        assert!(found.told(0).contains("cannot tell"));
        let spared = shape(&members(12), 2, 1).unwrap();
        assert_eq!((spared.data, spared.parity, spared.spares), (9, 2, 1));
        assert!(spared.told(1).contains("1 spare: takes"));
    }

    #[test]
    fn what_no_volume_can_have_is_refused() {
        assert!(shape(&members(1), 1, 0).is_err());
        assert!(shape(&members(2), 0, 2).is_err());
        let small = Members { size_bytes: 1 << 20, ..members(1) };
        assert!(shape(&small, 0, 0).is_err());
    }
}
