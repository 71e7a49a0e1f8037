//! What a new volume takes from a qualification: zones, extents, the part of the surface, the pool,
//! and the rates that it keeps in its superblock.
//!
//! Levelling pays where the surface has faster and slower places, leaving out the slowest where a
//! rate was asked for that the whole does not carry, and memory only as far as it raises the rate.

use format::superblock::{Qualified, QualifiedBy};

use crate::fill::ring_order;
use crate::judged::{Judged, JumpBy, Order};
use crate::laps::{jump, lap, plan_of};
use crate::number::{real, whole};
use crate::plan::{Part, ZONES};
use crate::report::{Fill, PartResult, Qualification, Sweep, SweepStep};
use crate::seen::{Seen, seen};

/// A smaller gain of the guaranteed rate, in percent, is no reason for zones: rates differ so much
/// by chance.
const GAIN_PERCENT: u64 = 10;
/// A jump costs at most so many thousandths of the time of an extent.
const JUMP_PERMILLE: u64 = 15;
/// Extents within these bounds: below, rounding to the piece matters; above, levelling takes a
/// pool.
const EXTENT_BYTES: core::ops::RangeInclusive<u64> = 16 << 20..=1 << 30;
/// Extents of a zone, at least, where they need not be shorter than that.
const VISITS: u64 = 64;
/// Shares of the surface that are tried, in percent; a smaller one is no volume for this disk.
const SHARES: core::ops::RangeInclusive<u16> = 50..=99;
/// A pool is enough with which this much, in percent, of what the one asked for gives is reached.
const POOL_PERCENT: u64 = 99;
/// What waited in the part latency is seen for a minute, and recording goes on for years.
const BACKLOGS: u64 = 2;
/// Steps of a lap over a part of the surface.
const LAP_STEPS: u64 = 1 << 13;

/// What is decided already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    /// Zones chosen by hand.
    pub zones: Option<u16>,
    /// Extent chosen by hand.
    pub extent_bytes: Option<u64>,
    /// The part of the surface was chosen by hand.
    pub has_usable: bool,
    /// Members that share what arrives: the data columns.
    pub data_members: u8,
    /// Bytes of a member; `None` where it is as large as what was measured.
    pub member_bytes: Option<u64>,
}

/// What a volume on such members is to be, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Zones that the ring visits in turn.
    pub zones: u16,
    /// Bytes of an extent, a power of two; `None` leaves it to the size of the ring.
    pub extent_bytes: Option<u64>,
    /// The part of the surface from its begin, in percent; `None` for all of it, or as given.
    pub usable_percent: Option<u16>,
    /// What the superblock keeps.
    pub qualified: Qualified,
    /// Why, one for each decision.
    pub reasons: Vec<Reason>,
}

/// Why something was chosen. Rates are of one member, in bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Zones, by what both orders guarantee.
    Zones {
        /// Those chosen.
        zones: u16,
        /// With an extent of each zone in turn.
        levelled: u64,
        /// From the first byte to the last.
        straight: u64,
    },
    /// The rates are no guarantee: the verdict says why.
    Doubted,
    /// One zone, because only one order is known.
    OneOrder,
    /// One zone, because nothing turns: rates that differ by place do so by chance.
    NoArm {
        /// Of a random read.
        access_ns: u64,
    },
    /// Extents so long that a jump costs little.
    Extent {
        /// Its bytes.
        bytes: u64,
        /// Of a jump.
        jump_ns: u64,
        /// Between jumps.
        bytes_per_s: u64,
    },
    /// The slowest part is left out, because the whole does not carry what was asked for.
    Usable {
        /// The part from the begin, in percent.
        percent: u16,
        /// What it guarantees.
        guaranteed: u64,
        /// What the whole guarantees.
        whole: u64,
        /// What was asked for.
        needed: u64,
    },
    /// No part of the surface carries what was asked for.
    TooSlow {
        /// What the whole guarantees.
        whole: u64,
        /// What was asked for.
        needed: u64,
    },
    /// Memory for one member.
    Pool {
        /// Its bytes.
        bytes: u64,
        /// With it.
        guaranteed: u64,
        /// Over a lap.
        mean: u64,
    },
}

/// What a qualification says of a volume; `None` where it judged no rate. `report` is the identity
/// of its file.
pub fn choose(found: &Qualification, given: Given, report: [u8; 16]) -> Option<Choice> {
    let verdict = found.verdict.as_ref()?;
    let mut reasons = Vec::from_iter((!verdict.doubts.is_empty()).then_some(Reason::Doubted));
    let zones = zones(found, &verdict.judged, given, &mut reasons);
    let order = if zones > 1 { Order::ZoneLevelled } else { Order::FirstToLast };
    let judged = *of_order(&verdict.judged, order).or(verdict.judged.first())?;
    let extent_bytes = (zones > 1 && given.extent_bytes.is_none())
        .then(|| extent(found, (zones, given), judged.mean_bytes_per_s, &mut reasons))
        .flatten();
    let judged = match (zones, extent_bytes.or(given.extent_bytes)) {
        (2.., Some(bytes)) => charged(found, judged, bytes),
        _ => judged,
    };
    let (pool_bytes, guaranteed) = pool(found, judged, order);
    let needed = verdict
        .asked
        .map(|asked| asked.needed_bytes_per_s.div_ceil(u64::from(given.data_members.max(1))));
    let whole = Whole { found, order, zones, guaranteed, pool_bytes };
    let part = needed
        .filter(|needed| !given.has_usable && *needed > guaranteed)
        .and_then(|needed| whole.part(needed, &mut reasons));
    let (usable_percent, guaranteed) =
        part.map_or((None, guaranteed), |(percent, rate)| (Some(percent), rate));
    let mean = judged.mean_bytes_per_s.max(guaranteed);
    reasons.push(Reason::Pool { bytes: pool_bytes, guaranteed, mean });
    let qualified = Qualified {
        by: stands_on(judged, usable_percent.is_some(), order),
        at: found.started,
        guaranteed_bytes_per_s: guaranteed.max(1),
        mean_bytes_per_s: mean,
        pool_bytes,
        longest_write_ns: longest_write(&found.parts),
        report,
    };
    Some(Choice { zones, extent_bytes, usable_percent, qualified, reasons })
}

fn of_order(judged: &[Judged], order: Order) -> Option<&Judged> {
    judged.iter().find(|judged| judged.order == order)
}

/// Both orders as they follow from the same measurement, where there is one.
fn zones(found: &Qualification, judged: &[Judged], given: Given, reasons: &mut Vec<Reason>) -> u16 {
    if let Some(zones) = given.zones {
        return zones;
    }
    if let Seen { turns: Some(false), access_ns: Some(access_ns), .. } = seen(&found.parts)
        && given.extent_bytes.is_none()
    {
        reasons.push(Reason::NoArm { access_ns });
        return 1;
    }
    let alike = |order, is_computed| {
        let found = judged.iter().find(|it| it.order == order && it.is_computed == is_computed);
        found.map(|judged| judged.guaranteed_bytes_per_s)
    };
    let both = |is_computed| {
        alike(Order::ZoneLevelled, is_computed).zip(alike(Order::FirstToLast, is_computed))
    };
    let Some((levelled, straight)) = both(false).or_else(|| both(true)) else {
        let zones = if of_order(judged, Order::FirstToLast).is_some() { 1 } else { ZONES };
        reasons.extend((zones == 1).then_some(Reason::OneOrder));
        return zones;
    };
    let gains = real(levelled) * 100.0 >= real(straight) * real(100 + GAIN_PERCENT);
    let zones = if gains || given.extent_bytes.is_some() { ZONES } else { 1 };
    reasons.push(Reason::Zones { zones, levelled, straight });
    zones
}

/// A power of two, so that it is a multiple of the piece and the same for equal disks; short enough
/// for many visits to each zone.
fn extent(
    found: &Qualification,
    (zones, given): (u16, Given),
    mean_bytes_per_s: u64,
    reasons: &mut Vec<Reason>,
) -> Option<u64> {
    let jump = jump(&found.parts);
    if jump.by == JumpBy::Assumed {
        return None;
    }
    let without_jumps = found.parts.iter().find_map(|part| match part {
        PartResult::Extents(extents) => Some(extents.bytes_per_s),
        _ => None,
    });
    let (jump_ns, bytes_per_s) = (jump.ns, without_jumps.unwrap_or(mean_bytes_per_s));
    let seconds = real(jump_ns) / 1e9 * 1000.0 / real(JUMP_PERMILLE);
    let least = whole(seconds * real(bytes_per_s));
    let size_bytes = given.member_bytes.unwrap_or(found.target.size_bytes);
    let most = size_bytes / u64::from(zones) / VISITS;
    // A small ring has shorter ones, whatever its disk could do.
    if given.member_bytes.is_some() && most < *EXTENT_BYTES.start() {
        return None;
    }
    let most = 1_u64 << most.max(*EXTENT_BYTES.start()).ilog2();
    let least = least.clamp(*EXTENT_BYTES.start(), *EXTENT_BYTES.end());
    let bytes = least.next_power_of_two().min(most);
    reasons.push(Reason::Extent { bytes, jump_ns, bytes_per_s });
    Some(bytes)
}

/// Rates of a levelled ring whose extents are shorter than those it was judged with: the jumps that
/// come on top are charged as measured. Longer extents are given no credit.
fn charged(found: &Qualification, judged: Judged, extent_bytes: u64) -> Judged {
    let was_bytes = plan_of(&found.target).extent_bytes;
    let more = (1.0 / real(extent_bytes.max(1)) - 1.0 / real(was_bytes.max(1))).max(0.0);
    let jump_s = real(jump(&found.parts).ns) / 1e9;
    let less = |bytes_per_s: u64| whole(1.0 / (1.0 / real(bytes_per_s.max(1)) + jump_s * more));
    Judged {
        guaranteed_bytes_per_s: less(judged.guaranteed_bytes_per_s),
        mean_bytes_per_s: less(judged.mean_bytes_per_s),
        ..judged
    }
}

/// The fill in this order.
fn fill_of(parts: &[PartResult], order: Order) -> Option<&Fill> {
    parts.iter().find_map(|part| match (part, order) {
        (PartResult::Fill(fill), Order::FirstToLast)
        | (PartResult::Ring(fill), Order::ZoneLevelled) => Some(fill),
        (PartResult::Passes(passes), Order::FirstToLast) => Some(&passes.first),
        _ => None,
    })
}

/// The smallest pool that gives nearly all that the one asked for gives, and what it gives.
fn pool(found: &Qualification, judged: Judged, order: Order) -> (u64, u64) {
    let backlog = found.parts.iter().filter_map(|part| match part {
        PartResult::Latency(latency) => Some(latency.backlog_bytes_max.saturating_mul(BACKLOGS)),
        _ => None,
    });
    let backlog = backlog.max().unwrap_or(0);
    let enough = judged.guaranteed_bytes_per_s / 100 * POOL_PERCENT;
    let curve = fill_of(&found.parts, order).filter(|_| !judged.is_computed);
    let points = curve.map(|fill| fill.curve.as_slice()).unwrap_or_default();
    let fits =
        points.iter().find(|point| point.bytes_per_s >= enough && point.pool_bytes >= backlog);
    let asked = found.verdict.as_ref().map_or(0, |verdict| verdict.pool_bytes);
    match fits.filter(|point| point.pool_bytes <= asked) {
        Some(point) => (point.pool_bytes, point.bytes_per_s.min(judged.guaranteed_bytes_per_s)),
        None => (asked.max(backlog), judged.guaranteed_bytes_per_s),
    }
}

/// The whole surface, as a part of it is computed.
struct Whole<'a> {
    found: &'a Qualification,
    order: Order,
    zones: u16,
    guaranteed: u64,
    pool_bytes: u64,
}

impl Whole<'_> {
    /// The largest part that carries `needed`, in percent, and what it guarantees. What is computed
    /// of a part is lowered by what was measured of the whole below what is computed of it.
    fn part(&self, needed: u64, reasons: &mut Vec<Reason>) -> Option<(u16, u64)> {
        let whole = self.guaranteed;
        let rates = rates(&self.found.parts)?;
        let measured = real(whole) / real(self.computed(&rates, 100).max(1));
        let by_percent = SHARES.rev().map(|percent| {
            (percent, self::whole(real(self.computed(&rates, percent)) * measured.min(1.0)))
        });
        let part = by_percent.into_iter().find(|(_, guaranteed)| *guaranteed >= needed);
        reasons.push(match part {
            Some((percent, guaranteed)) => Reason::Usable { percent, guaranteed, whole, needed },
            None => Reason::TooSlow { whole, needed },
        });
        part
    }

    fn computed(&self, rates: &Sweep, percent: u16) -> u64 {
        let size = self.found.target.size_bytes / 100 * u64::from(percent);
        let step_bytes = (size / LAP_STEPS).max(1);
        let ranges = match self.order {
            Order::FirstToLast => core::iter::once(0..size).collect(),
            // Extents of a hundredth of a zone: how the rates mix, whatever the extents will be.
            Order::ZoneLevelled => {
                ring_order(size, (size / 100 / u64::from(self.zones)).max(1), self.zones)
            }
        };
        let jump_ns = if ranges.len() > 1 { jump(&self.found.parts).ns } else { 0 };
        lap(rates, ranges.into_iter(), step_bytes, jump_ns).guaranteed(self.pool_bytes)
    }
}

/// Rates by place: of a fill, which saw all of them, or else of a sweep.
fn rates(parts: &[PartResult]) -> Option<Sweep> {
    if let Some(fill) = fill_of(parts, Order::FirstToLast) {
        let begins = core::iter::once(0).chain(fill.windows.iter().map(|window| window.end_ns));
        let steps = fill.windows.iter().zip(begins).map(|(window, begin_ns)| SweepStep {
            offset: window.offset_low,
            bytes: window.bytes,
            ns: window.end_ns.saturating_sub(begin_ns),
        });
        return Some(Sweep {
            is_write: true,
            block_bytes: fill.block_bytes,
            steps: steps.collect(),
            jump_ns: None,
        });
    }
    parts.iter().find_map(|part| match part {
        PartResult::Sweep(sweep) => Some(sweep.clone()),
        _ => None,
    })
}

fn stands_on(judged: Judged, is_part: bool, order: Order) -> QualifiedBy {
    let is_same_order = matches!(
        (judged.basis, order),
        (Part::Fill | Part::Passes, Order::FirstToLast) | (Part::Ring, Order::ZoneLevelled)
    );
    match judged {
        Judged { is_by_reading: true, .. } => QualifiedBy::Reading,
        Judged { is_computed: false, .. } if is_same_order && !is_part => QualifiedBy::Writing,
        _ => QualifiedBy::Places,
    }
}

/// Of all writes that were timed.
fn longest_write(parts: &[PartResult]) -> u64 {
    let of_fill = |fill: &Fill| fill.windows.iter().map(|window| window.latency_ns_max).max();
    let longest = parts.iter().filter_map(|part| match part {
        PartResult::Fill(fill) | PartResult::Ring(fill) => of_fill(fill),
        PartResult::Passes(passes) => of_fill(&passes.first).max(of_fill(&passes.second)),
        PartResult::Latency(latency) => Some(latency.of_device.max_ns()),
        _ => None,
    });
    longest.max().unwrap_or(0)
}
