//! What follows from the parts: the rate that is guaranteed, and whether it is enough.

use serde::{Deserialize, Serialize};

use core::ops::Range;

use crate::fill::ring_order;
use crate::mixed::Mixed;
use crate::number::{real, whole};
use crate::partial::{self, Array, Lost, Share};
use crate::plan::{Part, Plan};
use crate::report::{Fill, PartResult, Sweep, SweepStep, Target, TargetKind};
use crate::trace::Trace;
use crate::traffic::Mix;

/// Steps of a lap that is computed from places.
const LAP_STEPS: u64 = 1 << 18;
/// A jump from zone to zone, where none was measured.
const JUMP_NS: u64 = 15_000_000;

/// What is asked of the parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Bytes of memory between capture and disk.
    pub pool_bytes: u64,
    /// Frames of the traffic.
    pub mix: Mix,
    /// Bits a second on the link that the target is to carry.
    pub bits_per_s: Option<u64>,
    /// The disks that the target is made of, where it is known.
    pub array: Option<Array>,
}

/// The order in which the surface is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the first byte to the last: files, flash.
    FirstToLast,
    /// An extent of each zone in turn: disks with platters.
    ZoneLevelled,
}

/// Rates of one order of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The part that it follows from.
    pub basis: Part,
    /// How the surface is written.
    pub order: Order,
    /// Computed from rates at places, and not measured over all of the surface.
    pub is_computed: bool,
    /// Whether it follows from reading only.
    pub is_by_reading: bool,
    /// The pool it was judged with: the one asked for, or less where little was written.
    pub pool_bytes: u64,
    /// The highest constant arrival that never overflows the pool.
    pub guaranteed_bytes_per_s: u64,
    /// Over all of it.
    pub mean_bytes_per_s: u64,
    /// In its slowest stretch.
    pub minimum_bytes_per_s: u64,
    /// Of a lap at the rate asked for, the time in which the disk is slower than that.
    pub slow_ns: Option<u64>,
    /// The rest of that lap.
    pub fast_ns: Option<u64>,
}

/// Whether a rate is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The target carries the traffic.
    Fits,
    /// The target is too slow for the traffic.
    TooSlow,
    /// What was measured does not say.
    CannotJudge,
}

/// Verdict of a qualification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// By order and part; the first is the one that the answer stands on.
    pub judged: Vec<Judged>,
    /// The pool asked for.
    pub pool_bytes: u64,
    /// Frames of the traffic.
    pub mix: Mix,
    /// The guaranteed rate as bits a second on the link.
    pub guaranteed_traffic_bit_per_s: u64,
    /// The same with reads beside it, where that was measured.
    pub with_readers: Option<WithReaders>,
    /// The rate asked for, if any.
    pub asked: Option<Asked>,
    /// What it comes to where less of the surface is used; empty where no rate has a place.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// What it comes to with one and two members gone; empty where members are not known.
    #[serde(default)]
    pub lost: Vec<Lost>,
}

/// The guarantee with reads beside the writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithReaders {
    /// The pool that what readers cost was found with.
    pub pool_bytes: u64,
    /// What is read by streams meanwhile.
    pub read_bytes_per_s: u64,
    /// Reads at random places meanwhile, a second.
    pub reads_per_s: u64,
    /// The guaranteed rate, less the share that readers cost where that was measured.
    pub guaranteed_bytes_per_s: u64,
    /// The same as bits a second on the link.
    pub guaranteed_traffic_bit_per_s: u64,
}

/// A rate that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// Bits a second on the link.
    pub bits_per_s: u64,
    /// What they are on the disk.
    pub needed_bytes_per_s: u64,
    /// The guaranteed rate over that, less 1, in thousandths.
    pub margin_permille: i64,
    /// Whether it is carried.
    pub answer: Answer,
}

/// The verdict; `None` where no part says anything of a rate.
pub(crate) fn judge(
    (target, plan): (&Target, &Plan),
    parts: &[PartResult],
    is_interrupted: bool,
    ask: &Ask,
) -> Option<Verdict> {
    let needed = ask.bits_per_s.map(|bits| ask.mix.bytes_of(bits));
    let jump_ns = parts.iter().find_map(|part| match part {
        PartResult::Extents(extents) => Some(extents.jump_ns),
        _ => None,
    });
    let laps = Laps { plan, jump_ns };
    let mut judged: Vec<Judged> = Vec::new();
    for part in parts {
        let order = Order::FirstToLast;
        match part {
            PartResult::Fill(fill) => judged.push(of_fill(Part::Fill, order, fill, ask)),
            PartResult::Passes(passes) => {
                judged.push(of_fill(Part::Passes, order, &passes.first, ask));
            }
            PartResult::Ring(fill) => {
                judged.push(of_fill(Part::Ring, Order::ZoneLevelled, fill, ask));
            }
            PartResult::Sweep(sweep) => {
                judged.extend(of_sweep(sweep, target.size_bytes, &laps, ask));
            }
            _ => {}
        }
    }
    let order = order_of(target);
    judged.sort_by_key(|judged| (judged.is_computed, judged.order != order));
    let first = *judged.first()?;
    let asked = ask.bits_per_s.zip(needed).map(|(bits_per_s, needed_bytes_per_s)| {
        let ratio = real(first.guaranteed_bytes_per_s) / real(needed_bytes_per_s.max(1));
        let permille = i64::try_from(whole(ratio * 1000.0)).unwrap_or(i64::MAX - 1000);
        let answer = answer(&first, needed_bytes_per_s, is_interrupted);
        Asked { bits_per_s, needed_bytes_per_s, margin_permille: permille - 1000, answer }
    });
    let guaranteed_traffic_bit_per_s = ask.mix.bits_of(first.guaranteed_bytes_per_s);
    let with_readers = parts.iter().find_map(|part| match part {
        PartResult::Mixed(mixed) => Some(with_readers(mixed, &first, &ask.mix)),
        _ => None,
    });
    let shares = partial::shares((target, &laps), parts, &first, ask.pool_bytes);
    let lost = partial::lost((target, &laps), parts, &first, ask);
    Some(Verdict {
        judged,
        pool_bytes: ask.pool_bytes,
        mix: ask.mix.clone(),
        guaranteed_traffic_bit_per_s,
        with_readers,
        asked,
        shares,
        lost,
    })
}

/// The share that readers cost on some stretches is taken for that of the whole.
fn with_readers(mixed: &Mixed, first: &Judged, mix: &Mix) -> WithReaders {
    let share = real(mixed.beside_bytes_per_s) / real(mixed.alone_bytes_per_s.max(1));
    let guaranteed_bytes_per_s = whole(real(first.guaranteed_bytes_per_s) * share.min(1.0));
    WithReaders {
        pool_bytes: mixed.pool_bytes,
        read_bytes_per_s: mixed.reads.stream_rate(),
        reads_per_s: crate::number::rate(mixed.reads.random.count(), mixed.reads.ns),
        guaranteed_bytes_per_s,
        guaranteed_traffic_bit_per_s: mix.bits_of(guaranteed_bytes_per_s),
    }
}

/// How `create` lays a ring on such a target.
pub(crate) fn order_of(target: &Target) -> Order {
    let turns = target.layers.first().is_some_and(|layer| layer.is_rotational);
    match target.kind {
        TargetKind::Model => Order::ZoneLevelled,
        TargetKind::Device if turns => Order::ZoneLevelled,
        TargetKind::Device | TargetKind::OwnFile | TargetKind::File => Order::FirstToLast,
    }
}

/// Reading proves nothing of writing but that it is hardly faster.
fn answer(judged: &Judged, needed: u64, is_interrupted: bool) -> Answer {
    if judged.guaranteed_bytes_per_s < needed {
        return if is_interrupted { Answer::CannotJudge } else { Answer::TooSlow };
    }
    if judged.is_by_reading || is_interrupted { Answer::CannotJudge } else { Answer::Fits }
}

fn of_fill(basis: Part, order: Order, fill: &Fill, ask: &Ask) -> Judged {
    let needed = ask.bits_per_s.map(|bits| ask.mix.bytes_of(bits));
    let slow_and_fast = needed.map(|needed| {
        let windows = fill.windows.iter().map(|window| window.bytes).zip(fill.rates());
        slow_and_fast(windows, needed)
    });
    let (slow_ns, fast_ns) = slow_and_fast.unzip();
    let minimum_bytes_per_s = fill.rates().min().unwrap_or(0);
    let (pool_bytes, guaranteed_bytes_per_s) = fill.believed(ask.pool_bytes);
    Judged {
        basis,
        order,
        is_computed: false,
        is_by_reading: false,
        pool_bytes,
        guaranteed_bytes_per_s,
        mean_bytes_per_s: fill.rate(),
        minimum_bytes_per_s,
        slow_ns,
        fast_ns,
    }
}

/// At an arrival of `needed` bytes a second: the time in which the disk is slower than that, and
/// the time in which it waits for what arrives.
fn slow_and_fast(windows: impl Iterator<Item = (u64, u64)>, needed: u64) -> (u64, u64) {
    let (mut slow_ns, mut fast_ns) = (0.0, 0.0);
    for (bytes, rate) in windows {
        if rate < needed {
            slow_ns += real(bytes) * 1e9 / real(rate.max(1));
        } else {
            fast_ns += real(bytes) * 1e9 / real(needed.max(1));
        }
    }
    (whole(slow_ns), whole(fast_ns))
}

/// Both orders, as they follow from the rates at places.
fn of_sweep(sweep: &Sweep, size: u64, laps: &Laps<'_>, ask: &Ask) -> Vec<Judged> {
    if sweep.steps.is_empty() {
        return Vec::new();
    }
    let minimum_bytes_per_s = sweep.steps.iter().map(SweepStep::rate).min().unwrap_or(0);
    let needed = ask.bits_per_s.map(|bits| ask.mix.bytes_of(bits));
    let step_bytes = step_bytes(size);
    let places = (0..size / step_bytes).map(|step| step * step_bytes + step_bytes / 2);
    let rates = places.map(|place| (step_bytes, whole(sweep.rate_at(place))));
    let (slow_ns, fast_ns) = needed.map(|needed| slow_and_fast(rates, needed)).unzip();
    let common = Judged {
        is_computed: true,
        is_by_reading: !sweep.is_write,
        minimum_bytes_per_s,
        slow_ns,
        fast_ns,
        ..of_trace(&laps.lap(sweep, size, Order::FirstToLast), ask)
    };
    let mut judged = vec![common];
    if laps.plan.zones > 1 && size >= laps.plan.extent_bytes * u64::from(laps.plan.zones) {
        let ring = laps.lap(sweep, size, Order::ZoneLevelled);
        let Judged { pool_bytes, guaranteed_bytes_per_s, mean_bytes_per_s, .. } =
            of_trace(&ring, ask);
        let order = Order::ZoneLevelled;
        let rates = Judged { pool_bytes, guaranteed_bytes_per_s, mean_bytes_per_s, ..common };
        judged.push(Judged { order, slow_ns: None, fast_ns: None, ..rates });
    }
    judged
}

fn step_bytes(size: u64) -> u64 {
    (size / LAP_STEPS).max(1)
}

/// Laps that are computed from rates at places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laps<'a> {
    pub(crate) plan: &'a Plan,
    /// Time of a jump, if it was measured.
    pub(crate) jump_ns: Option<u64>,
}

impl Laps<'_> {
    /// What a jump costs a disk that is written in this order. Where nothing turns and nothing was
    /// measured it costs nothing.
    pub(crate) fn jump_ns(&self, order: Order) -> u64 {
        self.jump_ns.unwrap_or(if order == Order::ZoneLevelled { JUMP_NS } else { 0 })
    }

    /// One lap over the first `size` bytes of the surface.
    pub(crate) fn lap(&self, sweep: &Sweep, size: u64, order: Order) -> Trace {
        let step_bytes = step_bytes(size);
        if order == Order::FirstToLast {
            return lap(sweep, core::iter::once(0..size), step_bytes, 0);
        }
        let Plan { extent_bytes, zones, .. } = *self.plan;
        let extents = ring_order(size, extent_bytes, zones).into_iter();
        lap(sweep, extents, step_bytes.min(extent_bytes), self.jump_ns(order))
    }
}

/// One lap over ranges of the surface at the rates of a sweep, with a jump to each but the first.
pub(crate) fn lap(
    sweep: &Sweep,
    ranges: impl Iterator<Item = Range<u64>>,
    step_bytes: u64,
    jump_ns: u64,
) -> Trace {
    let mut trace = Trace::default();
    let mut behind = 0;
    for range in ranges {
        let mut jump = if range.start == behind { 0 } else { jump_ns };
        let mut begin = range.start;
        while begin < range.end {
            let end = range.end.min(begin + step_bytes);
            let rate = sweep.rate_at(begin + (end - begin) / 2).max(1.0);
            trace.push(whole(real(end - begin) * 1e9 / rate) + jump, end - begin);
            (begin, jump) = (end, 0);
        }
        behind = range.end;
    }
    trace
}

/// A measured run from first to last; what differs is put in its place.
fn of_trace(trace: &Trace, ask: &Ask) -> Judged {
    let (pool_bytes, guaranteed_bytes_per_s) = trace.believed(ask.pool_bytes);
    Judged {
        basis: Part::Sweep,
        order: Order::FirstToLast,
        is_computed: false,
        is_by_reading: false,
        pool_bytes,
        guaranteed_bytes_per_s,
        mean_bytes_per_s: whole(trace.mean()),
        minimum_bytes_per_s: 0,
        slow_ns: None,
        fast_ns: None,
    }
}
