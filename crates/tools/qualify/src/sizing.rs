//! How many of which disks a traffic needs, with which parity.
//!
//! A volume gives each data disk the same share of what arrives, and of the pool. So K of them
//! guarantee K times what one guarantees with a K-th of the pool, and parity disks get what a data
//! disk gets. Rates become traffic by the same [`Mix`] as in a verdict.

use serde::Serialize;

use crate::judged::Order;
use crate::laps::{Laps, jump, plan_of};
use crate::number::{real, whole};
use crate::partial::{places, rebuild_ns, while_rebuilding};
use crate::plan::Plan;
use crate::report::{CurvePoint, Fill, PartResult, Qualification};
use crate::trace::Trace;
use crate::traffic::Mix;
use crate::verdict::order_of;

/// Of a member, what the ring uses at most, in thousandths: a slightly smaller replacement still
/// fits (docs/format.md).
const USABLE_PERMILLE: u64 = 995;
const DAY_NS: u64 = 86_400_000_000_000;
/// Members of a volume, at most.
pub const MEMBERS_MAX: u32 = 24;
/// Disks of data that are looked for, at most.
const ENOUGH_MAX: u32 = 2400;
const _: () = assert!(format::geometry::MEMBERS_MAX == 24, "as the format has it");

/// What is to be carried and kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need {
    /// Bits a second on the link that must never be lost.
    pub bits_per_s: u64,
    /// Bits a second over the days; at most the above.
    pub mean_bits_per_s: u64,
    /// How long packets are to be kept.
    pub days: u64,
    /// Frames of the traffic.
    pub mix: Mix,
    /// Bytes of memory between capture and disks.
    pub pool_bytes: u64,
}

/// A kind of disk.
#[derive(Clone, Debug, Serialize)]
pub struct Disk {
    /// What it is called.
    pub name: String,
    /// Where its rates come from.
    pub source: String,
    /// Size of one disk.
    pub size_bytes: u64,
    /// How it is written.
    #[serde(skip)]
    pub order: Order,
    /// Its rates come from reading: it may write more slowly.
    pub is_by_reading: bool,
    #[serde(skip)]
    mean_bytes_per_s: u64,
    #[serde(skip)]
    jump_ns: u64,
    #[serde(skip)]
    basis: Basis,
}

/// What a pool makes of a disk.
#[derive(Clone, Debug)]
enum Basis {
    /// As a run found it: by pool, the smallest first.
    Curve(Vec<CurvePoint>),
    /// As it follows from rates at places.
    Lap(Trace),
}

impl Disk {
    /// A disk that was qualified. `None` where no part says anything of its rate.
    pub fn qualified(name: &str, found: &Qualification) -> Option<Self> {
        let order = order_of(&found.target);
        let size_bytes = found.target.size_bytes;
        let plan = plan_of(&found.target);
        let laps = Laps { plan: &plan, jump: jump(&found.parts) };
        let run = found.parts.iter().find_map(|part| match (part, order) {
            (PartResult::Ring(fill), Order::ZoneLevelled)
            | (PartResult::Fill(fill), Order::FirstToLast) => Some(fill),
            (PartResult::Passes(passes), Order::FirstToLast) => Some(&passes.first),
            _ => None,
        });
        let measured = run.filter(|_| !found.is_interrupted).map(|fill| (believed(fill), fill));
        let measured = measured.filter(|(curve, _)| !curve.is_empty());
        let (basis, mean_bytes_per_s, is_by_reading) = if let Some((curve, fill)) = measured {
            (Basis::Curve(curve), fill.rate(), false)
        } else {
            let places = places(&found.parts)?;
            let lap = laps.lap(&places, size_bytes, order);
            let mean = whole(lap.mean());
            (Basis::Lap(lap), mean, !places.is_write)
        };
        let how = match &basis {
            Basis::Curve(_) => "measured",
            Basis::Lap(_) if is_by_reading => "computed from reading",
            Basis::Lap(_) => "computed from rates at places",
        };
        let source = format!("{}, {how}", found.target.path);
        let (name, jump_ns) = (name.to_owned(), laps.jump_ns(order));
        Some(Self {
            name,
            source,
            size_bytes,
            order,
            is_by_reading,
            mean_bytes_per_s,
            jump_ns,
            basis,
        })
    }

    /// The same with the words of its maker for where it comes from.
    #[must_use]
    pub fn with_source(self, source: &str) -> Self {
        Self { source: source.to_owned(), ..self }
    }

    /// Whether one guarantees so many bytes a second with so much of a pool.
    fn carries(&self, bytes_per_s: u64, pool_bytes: u64) -> bool {
        match &self.basis {
            Basis::Lap(lap) => lap.carries(bytes_per_s, pool_bytes),
            Basis::Curve(_) => bytes_per_s <= self.guaranteed(pool_bytes),
        }
    }

    /// Bytes a second that one guarantees with so much of a pool.
    fn guaranteed(&self, pool_bytes: u64) -> u64 {
        match &self.basis {
            Basis::Lap(lap) => lap.believed(pool_bytes).1,
            Basis::Curve(curve) => on_curve(curve, pool_bytes).min(self.mean_bytes_per_s),
        }
    }
}

/// Points of a curve that the run was long enough for.
fn believed(fill: &Fill) -> Vec<CurvePoint> {
    let most = fill.bytes() / crate::trace::POOLS_MIN;
    fill.curve.iter().copied().filter(|point| point.pool_bytes <= most).collect()
}

/// What a pool between two points guarantees is at least what lies on the straight line between
/// them: a minimum of straight lines is concave.
fn on_curve(curve: &[CurvePoint], pool_bytes: u64) -> u64 {
    let mut before = CurvePoint { pool_bytes: 0, bytes_per_s: 0 };
    for point in curve {
        if point.pool_bytes >= pool_bytes {
            let share = real(pool_bytes - before.pool_bytes)
                / real((point.pool_bytes - before.pool_bytes).max(1));
            let more = real(point.bytes_per_s.saturating_sub(before.bytes_per_s)) * share;
            return before.bytes_per_s + whole(more.floor());
        }
        before = *point;
    }
    before.bytes_per_s
}

/// Disks side by side as a volume. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Proposal {
    /// Which of the disks.
    #[serde(skip)]
    pub disk: usize,
    /// Its name.
    #[serde(rename = "disk")]
    pub name: String,
    /// Disks of data.
    #[serde(rename = "data_disks")]
    pub data: u32,
    /// Disks of parity: as many may be lost.
    #[serde(rename = "parity_disks")]
    pub parity: u8,
    /// Bytes of the ring.
    pub usable_bytes: u64,
    /// How long packets are kept at the mean rate.
    pub held_ns: u64,
    /// Bytes a second, all disks well.
    pub bytes_per_s: u64,
    /// The same as bits a second on the link.
    pub traffic_bit_per_s: u64,
    /// The same while one, and while two members are gone and replaced; `None` where that loses
    /// what is held.
    pub traffic_bit_per_s_lost: [Option<u64>; 2],
    /// Until new members hold everything, at the rate asked for; `None` where there is no time, or
    /// no parity.
    pub rebuild_ns: Option<u64>,
    /// The guaranteed rate over the one needed, less 1, in thousandths.
    pub margin_permille: i64,
    /// It is fast enough, members that may be lost or not.
    pub is_fast_enough: bool,
    /// It keeps packets long enough.
    pub is_large_enough: bool,
    /// It does all that is needed.
    pub fits: bool,
    /// How many such disks would do, where these do not; `None` where no number is known to.
    pub enough: Option<Enough>,
}

/// Disks of the same kind, with the same parity, that do all that is needed. Fields are keys in
/// JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Enough {
    /// Volumes that share the traffic and the pool.
    pub volumes: u32,
    /// Disks of data of each volume.
    #[serde(rename = "data_disks")]
    pub data: u32,
    /// Disks of parity of each volume.
    #[serde(rename = "parity_disks")]
    pub parity: u8,
    /// The disks of all volumes.
    pub disks: u32,
}

/// What each kind of disk comes to with each parity: the fewest that fit, or else as many as a
/// volume can have. With `members` that number, whether it fits or not.
pub fn proposals(
    need: &Need,
    disks: &[Disk],
    parities: &[u8],
    members: Option<u32>,
) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (number, disk) in disks.iter().enumerate() {
        for &parity in parities {
            let most = members.unwrap_or(MEMBERS_MAX).saturating_sub(u32::from(parity));
            if most == 0 {
                continue;
            }
            let least = if members.is_some() { most } else { fewest(need, disk).clamp(1, most) };
            let of = |data| propose(need, (number, disk), data, parity);
            let fitting = (least..=most).map(of).find(|proposal| proposal.fits);
            proposals.push(fitting.unwrap_or_else(|| {
                let enough = enough(need, disk, parity);
                Proposal { enough, ..of(most) }
            }));
        }
    }
    proposals
}

/// Data disks below which neither rate nor bytes can be enough.
fn fewest(need: &Need, disk: &Disk) -> u32 {
    let needed = need.mix.bytes_of(need.bits_per_s);
    let by_rate = needed.div_ceil(disk.mean_bytes_per_s.max(1));
    let kept = u128::from(need.mix.bytes_of(need.mean_bits_per_s)) * u128::from(need.days) * 86_400;
    let by_bytes = kept.div_ceil(u128::from(usable(disk.size_bytes).max(1)));
    let most = u128::from(by_rate).max(by_bytes);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The fewest disks of data that do, in as many volumes as that takes. More disks never carry less.
fn enough(need: &Need, disk: &Disk, parity: u8) -> Option<Enough> {
    let needed = need.mix.bytes_of(need.bits_per_s);
    let pool_bytes = if parity > 0 { while_rebuilding(need.pool_bytes) } else { need.pool_bytes };
    let carries = |data: u32| {
        let disks = u64::from(data);
        disk.carries(needed.div_ceil(disks), pool_bytes / disks)
    };
    // Whatever is below is too slow or too small.
    let (mut low, mut high) = (fewest(need, disk).max(1), ENOUGH_MAX);
    if low > high || !carries(high) {
        return None;
    }
    while low < high {
        let middle = u32::midpoint(low, high);
        if carries(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let volumes = high.div_ceil(MEMBERS_MAX - u32::from(parity));
    let data = high.div_ceil(volumes);
    Some(Enough { volumes, data, parity, disks: volumes * (data + u32::from(parity)) })
}

fn usable(bytes: u64) -> u64 {
    bytes / 1000 * USABLE_PERMILLE
}

fn propose(need: &Need, (number, disk): (usize, &Disk), data: u32, parity: u8) -> Proposal {
    let disks = u64::from(data);
    let needed = need.mix.bytes_of(need.bits_per_s);
    let guaranteed = |pool_bytes: u64| disks * disk.guaranteed(pool_bytes / disks);
    let bytes_per_s = guaranteed(need.pool_bytes);
    let rebuilding = guaranteed(while_rebuilding(need.pool_bytes));
    let lost = |members: u8| (members <= parity).then(|| need.mix.bits_of(rebuilding));
    let usable_bytes = disks * usable(disk.size_bytes);
    let mean = need.mix.bytes_of(need.mean_bits_per_s).max(1);
    let held_ns = u128::from(usable_bytes) * 1_000_000_000 / u128::from(mean);
    let spare = 1.0 - real(mean) / real((disks * disk.mean_bytes_per_s).max(1));
    let one = (disk.size_bytes, disk.mean_bytes_per_s);
    let ratio = whole(real(bytes_per_s) * 1000.0 / real(needed.max(1)));
    let worst = if parity > 0 { rebuilding } else { bytes_per_s };
    let is_fast_enough = worst >= needed;
    let is_large_enough = held_ns >= u128::from(need.days) * u128::from(DAY_NS);
    Proposal {
        disk: number,
        name: disk.name.clone(),
        data,
        parity,
        usable_bytes,
        held_ns: u64::try_from(held_ns).unwrap_or(u64::MAX),
        bytes_per_s,
        traffic_bit_per_s: need.mix.bits_of(bytes_per_s),
        traffic_bit_per_s_lost: [lost(1), lost(2)],
        rebuild_ns: (parity > 0).then(|| rebuild_ns(one, disk.jump_ns, spare)).flatten(),
        margin_permille: i64::try_from(ratio).unwrap_or(i64::MAX - 1000) - 1000,
        is_fast_enough,
        is_large_enough,
        fits: is_fast_enough && is_large_enough,
        enough: None,
    }
}

/// Kinds of disks whose rates were published, by name: profile of one disk, and who measured it.
const TYPICAL: [Typical; 2] = [
    Typical {
        name: "hdd-8tb",
        csv: include_str!("../profiles/single-8tb.csv"),
        size_bytes: 8_000_000_000_000,
        disks: 1,
        source: "one 8 TB disk, 264 to 133 MB/s, dd at five places, published by users of a \
                 recorder",
    },
    Typical {
        name: "hdd-4tb",
        csv: include_str!("../profiles/raid6-10x4tb.csv"),
        size_bytes: 32_001_801_322_496,
        disks: 8,
        source: "an eighth of a RAID 6 of 10 x 4 TB, 1.68 to 0.84 GB/s, dd at 21 places, published \
                 by users of a recorder",
    },
];

struct Typical {
    name: &'static str,
    csv: &'static str,
    /// Of what was measured.
    size_bytes: u64,
    /// Data disks of that.
    disks: u32,
    source: &'static str,
}

impl Typical {
    fn disk(&self) -> Disk {
        let places = crate::model::places(self.csv, self.size_bytes, self.disks);
        let size_bytes = self.size_bytes / u64::from(self.disks);
        let plan = Plan::of_model(size_bytes);
        let laps = Laps { plan: &plan, jump: jump(&[]) };
        let (order, jump_ns) = (Order::ZoneLevelled, laps.jump_ns(Order::ZoneLevelled));
        let lap = laps.lap(&places, size_bytes, order);
        let mean_bytes_per_s = whole(lap.mean());
        let (name, source) = (self.name.to_owned(), self.source.to_owned());
        let (is_by_reading, basis) = (false, Basis::Lap(lap));
        Disk { name, source, size_bytes, order, is_by_reading, mean_bytes_per_s, jump_ns, basis }
    }
}

/// Names of the typical disks.
pub fn typical_names() -> [&'static str; 2] {
    TYPICAL.map(|typical| typical.name)
}

/// The typical disk of a name.
pub fn typical(name: &str) -> Option<Disk> {
    TYPICAL.iter().find(|typical| typical.name == name).map(Typical::disk)
}

#[cfg(test)]
mod tests;
