//! A disk in memory that is as fast as a published profile says, on virtual time.

use std::path::Path;

use device::{Modelled, Timeline, Timing, ZoneProfile};
use units::Timestamp;

use crate::error::Error;
use crate::number::{real, whole};
use crate::report::{Sweep, SweepStep, Target, TargetKind};

/// Disks are sold by this; of a smaller one, by a thousandth.
const TERABYTE: u64 = 1_000_000_000_000;
/// Places that a profile is looked at.
const PLACES: u64 = 100;

/// Half a turn at 7200 a minute. It is part of every jump, because a disk that reads ahead and
/// caches writes loses none while it goes on where it was.
const HALF_TURN_NS: u64 = 4_166_667;

/// The disk of a profile: `csv` as `ZoneProfile::parse` reads it, from the file `path`. Without a
/// size it is as large as the last offset, rounded up as disks are sold. Several of them side by
/// side are one of as many times the bytes and the rate: the data disks of an array. Its time
/// begins at `started`.
pub fn modelled(
    path: &Path,
    csv: &str,
    (size_bytes, disks): (Option<u64>, u32),
    started: Timestamp,
) -> Result<(Modelled, Timeline, Target), Error> {
    let profile = |source| Error::Profile { path: path.to_path_buf(), source };
    let one = size_bytes.unwrap_or_else(|| size_of(csv));
    let rows = one / 4096 * 4096;
    let size = rows.max(4096).saturating_mul(u64::from(disks));
    let profile = ZoneProfile::parse(csv, rows.max(4096)).map_err(profile)?;
    let profile = profile.scaled(size, f64::from(disks));
    let whole = Timing::hard_disk(profile);
    let timing = Timing {
        seek_shortest_ns: whole.seek_shortest_ns + HALF_TURN_NS,
        seek_longest_ns: whole.seek_longest_ns + HALF_TURN_NS,
        revolution_ns: 0,
        cache_bytes: whole.cache_bytes * u64::from(disks),
        // Links are faster than any zone.
        cache_bytes_per_s: 4.0 * whole.profile.rate_at(0),
        ..whole
    };
    let timeline = Timeline::new(started);
    let disk = Modelled::new(size, timing, &timeline, 0).forgetting(0..size);
    let target = Target {
        kind: TargetKind::Model,
        path: path.display().to_string(),
        size_bytes: size,
        layers: Vec::new(),
        is_in_memory: false,
        limits: Vec::new(),
    };
    Ok((disk, timeline, target))
}

/// The rates of a profile at its places, of one of so many disks side by side. The profile is of
/// this program: it can be read.
pub(crate) fn places(csv: &str, size_bytes: u64, disks: u32) -> Sweep {
    let profile = ZoneProfile::parse(csv, size_bytes).expect("a profile of this program");
    let size = size_bytes / u64::from(disks);
    let profile = profile.scaled(size, 1.0 / f64::from(disks));
    let step = |place: u64| {
        let offset = size / PLACES * place;
        let bytes = size / PLACES;
        let rate = profile.rate_at(offset + bytes / 2);
        SweepStep { offset, bytes, ns: whole(real(bytes) * 1e9 / rate) }
    };
    Sweep {
        is_write: true,
        block_bytes: 2 << 20,
        steps: (0..PLACES).map(step).collect(),
        jump_ns: None,
    }
}

/// The last offset of a profile, rounded up to a whole terabyte or gigabyte.
fn size_of(csv: &str) -> u64 {
    let offsets = csv.lines().filter_map(|line| line.split(',').next()?.trim().parse::<u64>().ok());
    let last = offsets.max().unwrap_or(0);
    let unit = if last >= TERABYTE { TERABYTE } else { TERABYTE / 1000 };
    (last + 1).next_multiple_of(unit)
}
