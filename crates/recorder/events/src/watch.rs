//! What the members do while they are written to, beside what they were qualified for.
//!
//! Every device is watched from its opening on ([`device::Watched`]). A few times a second the
//! progress reporter looks: slow writes get their time, member and zone. Each of them is an event,
//! and so is a member that gives less than was guaranteed, and traffic that comes near what all of
//! them guarantee. Of slow writes the newest are kept.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use device::{Cell, Device, Promise, WatchReader, Watched};
use format::geometry::{ExtentOrder, Geometry};
use format::superblock::{Qualified, Superblock};
use serde::{Deserialize, Serialize};
use units::{ByteSize, MemberId, Timestamp};

use crate::headroom::{Headroom, Level};
use crate::stream::{EventKind, Events};

/// Slow writes that are shown; of more, the newest.
const SLOW_SHOWN: usize = 64;
/// A write is slow that takes so many times as long as any that the qualification saw.
const TIMES_LONGEST: u64 = 2;
/// Without a qualification a write is slow from here on; with one, never below the second.
const SLOW_NS: u64 = 1_000_000_000;
const SLOW_NS_MIN: u64 = 100_000_000;

/// When a write is slow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlowLimit {
    /// Twice the longest that the volume's qualification saw, at least 100 ms; one second without.
    #[default]
    ByVolume,
    /// Above this.
    Above(core::time::Duration),
    /// No write is called slow.
    Off,
}

/// A write that took longer than the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowWrite {
    /// When it was done.
    #[serde(rename = "at_ns")]
    pub at: Timestamp,
    /// Member; `None` of a spare, before it took a place.
    pub member: Option<MemberId>,
    /// First byte on it.
    pub offset: u64,
    /// Length in bytes.
    #[serde(rename = "bytes")]
    pub len: u64,
    /// Zone of the ring; `None` outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<u16>,
    /// From submission to completion.
    pub latency_ns: u64,
    /// Writes of this member under way, itself included.
    pub depth: u32,
}

/// What one device did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskWatch {
    /// Member; `None` of a spare, before it took a place.
    pub member: Option<MemberId>,
    /// Path of the member.
    pub path: String,
    /// Writes that were done.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// Half of the writes took no longer.
    pub p50_ns: u64,
    /// 99 percent of them.
    pub p99_ns: u64,
    /// 99.9 percent of them.
    pub p99_9_ns: u64,
    /// The longest write.
    pub max_ns: u64,
    /// Most writes under way at once.
    pub depth_max: u32,
    /// Time at full load.
    pub loaded_ns: u64,
    /// Bytes done meanwhile.
    pub loaded_bytes: u64,
    /// Writes above the limit.
    pub slow_writes: u64,
    /// Stretches of full load in which it gave less than was guaranteed.
    pub slower_than_qualified: u64,
    /// The last one is not made up for.
    pub is_slower_than_qualified: bool,
    /// The most that would have waited in any stretch.
    pub backlog_bytes_max: u64,
    /// By 64ths of the surface: writes, bytes, mean and longest latency in nanoseconds.
    pub places: Vec<[u64; 4]>,
}

impl DiskWatch {
    fn new(Seen { member, path, reader }: Seen) -> Self {
        let watch = reader.read();
        let [p50_ns, p99_ns, p99_9_ns] =
            [500, 990, 999].map(|permille| watch.latency.quantile_ns(permille));
        let place = |cell: &Cell| {
            let mean_ns = cell.latency_ns_sum / cell.writes.max(1);
            [cell.writes, cell.bytes, mean_ns, cell.latency_ns_max]
        };
        Self {
            member,
            path,
            writes: watch.writes,
            bytes: watch.bytes,
            p50_ns,
            p99_ns,
            p99_9_ns,
            max_ns: watch.latency.max_ns(),
            depth_max: watch.depth_max,
            loaded_ns: watch.loaded_ns,
            loaded_bytes: watch.loaded_bytes,
            slow_writes: watch.slow,
            slower_than_qualified: watch.broken,
            is_slower_than_qualified: watch.is_broken,
            backlog_bytes_max: watch.backlog_bytes_max,
            places: watch.cells.iter().map(place).collect(),
        }
    }
}

/// What all members did so far.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Disks {
    /// What the volume's members were qualified for. Not read again.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub qualified: Option<Qualified>,
    /// Traffic beside what is guaranteed; `None` without a qualification, and of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
    /// Writes above it are slow; 0: none is.
    pub slow_limit_ns: u64,
    /// Number of slow writes.
    pub slow_writes: u64,
    /// The newest of them, the oldest first.
    pub slow: Vec<SlowWrite>,
    /// By device, in the order of opening.
    pub devices: Vec<DiskWatch>,
}

/// The devices that are watched; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Watches {
    seen: Arc<Mutex<Vec<Seen>>>,
    slow_limit_ns: u64,
    promise: Option<Promise>,
}

#[derive(Clone, Debug)]
struct Seen {
    member: Option<MemberId>,
    path: String,
    reader: WatchReader,
}

impl Watches {
    /// With this limit; promises are those of a qualification.
    pub fn new(limit: SlowLimit, qualified: Option<&Qualified>) -> Self {
        let slow_limit_ns = match (limit, qualified) {
            (SlowLimit::Off, _) => 0,
            (SlowLimit::Above(limit), _) => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            (SlowLimit::ByVolume, Some(qualified)) if qualified.longest_write_ns > 0 => {
                qualified.longest_write_ns.saturating_mul(TIMES_LONGEST).max(SLOW_NS_MIN)
            }
            (SlowLimit::ByVolume, _) => SLOW_NS,
        };
        let promise = qualified.map(|qualified| Promise {
            bytes_per_s: qualified.guaranteed_bytes_per_s,
            pool_bytes: qualified.pool_bytes,
        });
        Self { seen: Arc::default(), slow_limit_ns, promise }
    }

    /// Watches a device from now on.
    pub fn over(
        &self,
        device: Box<dyn Device>,
        member: Option<MemberId>,
        path: &Path,
    ) -> Box<dyn Device> {
        let device = Watched::new(device, self.slow_limit_ns, self.promise);
        let path = path.display().to_string();
        let new = Seen { member, path, reader: device.reader() };
        let mut seen = stage::lock(&self.seen);
        // One that came back is watched anew, in the place of what it was.
        seen.retain(|old| old.path != new.path);
        seen.push(new);
        Box::new(device)
    }

    fn seen(&self) -> Vec<Seen> {
        stage::lock(&self.seen).clone()
    }
}

/// Makes lines of what the watches see.
#[derive(Debug)]
pub struct Watching {
    watches: Watches,
    qualified: Option<Qualified>,
    geometry: Geometry,
    headroom: Option<Headroom>,
    slow: VecDeque<SlowWrite>,
    /// By path: how often it broke what was promised, and whether that goes on.
    broken: Vec<(String, u64, bool)>,
}

impl Watching {
    /// `is_live`: packets come at their own pace, so their rate means something.
    pub fn new(watches: Watches, superblock: &Superblock, is_live: bool) -> Self {
        let geometry = superblock.geometry;
        let headroom = superblock.qualified.filter(|_| is_live).map(|qualified| {
            let columns = u64::from(geometry.columns());
            Headroom::new(qualified.guaranteed_bytes_per_s.saturating_mul(columns))
        });
        Self {
            watches,
            qualified: superblock.qualified,
            geometry,
            headroom,
            slow: VecDeque::with_capacity(SLOW_SHOWN),
            broken: Vec::new(),
        }
    }

    /// Looks at all devices. `offered_bytes` is what was sent to all members so far, and what would
    /// have been if nothing had been lost on the way.
    pub fn look(
        &mut self,
        (now_ns, realtime): (i64, Timestamp),
        offered_bytes: u64,
        events: &Events,
    ) -> Disks {
        let seen = self.watches.seen();
        let mut taken = Vec::new();
        for seen in &seen {
            seen.reader.take_slow(&mut taken);
            for slow in taken.drain(..) {
                let ago_ns = i64::try_from(slow.ago_ns).unwrap_or(i64::MAX);
                self.slow(SlowWrite {
                    at: Timestamp(realtime.0.saturating_sub(ago_ns)),
                    member: seen.member,
                    offset: slow.offset,
                    len: slow.len,
                    zone: zone_of(&self.geometry, slow.offset),
                    latency_ns: slow.latency_ns,
                    depth: slow.depth,
                });
                let line = slow_line(self.slow.back(), &seen.path);
                events.say(EventKind::SlowWrite, &seen.path, line);
            }
        }
        let devices: Vec<DiskWatch> = seen.into_iter().map(DiskWatch::new).collect();
        for device in &devices {
            self.look_at_promise(device, events);
        }
        if let Some(headroom) = &mut self.headroom
            && let Some(level) = headroom.note(now_ns, offered_bytes)
        {
            events.say(EventKind::Headroom, "", headroom_line(headroom, level));
        }
        Disks {
            qualified: self.qualified,
            headroom: self.headroom.clone(),
            slow_limit_ns: self.watches.slow_limit_ns,
            slow_writes: devices.iter().map(|device| device.slow_writes).sum(),
            slow: self.slow.iter().copied().collect(),
            devices,
        }
    }

    fn slow(&mut self, slow: SlowWrite) {
        if self.slow.len() == SLOW_SHOWN {
            self.slow.pop_front();
        }
        self.slow.push_back(slow);
    }

    fn look_at_promise(&mut self, disk: &DiskWatch, events: &Events) {
        let Some(qualified) = &self.qualified else { return };
        let (count, is_on) = (disk.slower_than_qualified, disk.is_slower_than_qualified);
        let place = self.broken.iter().position(|(path, ..)| *path == disk.path);
        let known = place.and_then(|place| self.broken.get_mut(place));
        let before = known.as_ref().map_or((0, false), |known| (known.1, known.2));
        if before == (count, is_on) {
            return;
        }
        match known {
            Some(known) => (known.1, known.2) = (count, is_on),
            None => self.broken.push((disk.path.clone(), count, is_on)),
        }
        let promised = rate(qualified.guaranteed_bytes_per_s);
        if count > before.0 {
            let line = format!(
                "slower than qualified: {} gave less than the {promised} that were guaranteed \
                 with a pool of {}, in {count} stretches of full load so far; qualify it anew",
                disk.path,
                ByteSize(qualified.pool_bytes),
            );
            events.say(EventKind::Promise, &disk.path, line);
        } else if !is_on {
            let line = format!("{} gives what it was qualified for again: {promised}", disk.path);
            events.say(EventKind::Promise, &disk.path, line);
        }
    }
}

fn slow_line(slow: Option<&SlowWrite>, path: &str) -> String {
    let Some(slow) = slow else { return String::new() };
    let zone = slow.zone.map_or_else(String::new, |zone| format!(", zone {zone}"));
    format!(
        "slow write: {} ms at {} for {} at byte {} of {path}{zone}, {} under way",
        slow.latency_ns / 1_000_000,
        slow.at,
        ByteSize(slow.len),
        slow.offset,
        slow.depth,
    )
}

fn headroom_line(headroom: &Headroom, level: Level) -> String {
    let offered = rate(headroom.offered_bytes_per_s);
    let guaranteed = rate(headroom.guaranteed_bytes_per_s);
    match level {
        Level::Calm => format!("traffic is well below what the disks guarantee again: {offered}"),
        Level::Near => {
            format!("traffic comes near what the disks guarantee: {offered} of {guaranteed}")
        }
        Level::Above => format!(
            "traffic is above what the disks guarantee: {offered} of {guaranteed}; the pool \
             bridges what it can, then packets are lost"
        ),
    }
}

/// Rates of disks are given in powers of 1000, as their makers do.
fn rate(bytes_per_s: u64) -> String {
    format!("{}.{} MB/s", bytes_per_s / 1_000_000, bytes_per_s / 100_000 % 10)
}

/// The zone of a place on a member: the ring is cut into as many equal parts.
fn zone_of(geometry: &Geometry, offset: u64) -> Option<u16> {
    if geometry.order != ExtentOrder::ZoneLevelled {
        return None;
    }
    let ring_bytes = geometry.slots * u64::from(geometry.piece_bytes);
    let within = offset.checked_sub(geometry.slot0_offset).filter(|within| *within < ring_bytes)?;
    let zone = u128::from(within) * u128::from(geometry.zones) / u128::from(ring_bytes.max(1));
    u16::try_from(zone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_longest_write_of_the_qualification() {
        let limit = |limit, longest_write_ns| {
            let qualified = Qualified {
                by: format::superblock::QualifiedBy::Writing,
                at: Timestamp(0),
                guaranteed_bytes_per_s: 1,
                mean_bytes_per_s: 1,
                pool_bytes: 1,
                longest_write_ns,
                report: [0; 16],
            };
            Watches::new(limit, Some(&qualified)).slow_limit_ns
        };
        assert_eq!(limit(SlowLimit::ByVolume, 300_000_000), 600_000_000);
        assert_eq!(limit(SlowLimit::ByVolume, 1_000_000), SLOW_NS_MIN);
        assert_eq!(limit(SlowLimit::ByVolume, 0), SLOW_NS);
        assert_eq!(Watches::new(SlowLimit::ByVolume, None).slow_limit_ns, SLOW_NS);
        let above = SlowLimit::Above(core::time::Duration::from_millis(20));
        assert_eq!((limit(above, 5), limit(SlowLimit::Off, 5)), (20_000_000, 0));
    }

    #[test]
    fn a_place_is_in_one_of_the_zones_of_the_ring() {
        let geometry = Geometry {
            data_columns: 1,
            parity_columns: 0,
            order: ExtentOrder::ZoneLevelled,
            zones: 4,
            piece_bytes: 16 << 10,
            slots: 400,
            slot0_offset: 2 << 20,
            slots_per_extent: 2,
            usable_begin: 0,
            usable_end: 64 << 20,
        };
        let at = |slot: u64| zone_of(&geometry, (2 << 20) + slot * (16 << 10));
        assert_eq!([at(0), at(99), at(100), at(399)], [Some(0), Some(0), Some(1), Some(3)]);
        assert_eq!((at(400), zone_of(&geometry, 0)), (None, None));
        let straight = Geometry { order: ExtentOrder::FirstToLast, ..geometry };
        assert_eq!(zone_of(&straight, 4 << 20), None);
    }
}
