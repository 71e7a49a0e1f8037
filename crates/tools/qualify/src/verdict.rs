//! What follows from the parts: the rate that is guaranteed, and whether it is enough.

use crate::doubts::doubts;
use crate::judged::{Answer, Asked, Doubt, Judged, Order, Verdict, WithReaders};
use crate::laps::{Laps, jump, step_bytes};
use crate::number::{real, whole};
use crate::partial;
use crate::plan::{Ask, Part, Plan};
use crate::report::{Fill, Mixed, PartResult, Sweep, SweepStep, Target, TargetKind};
use crate::step::step;
use crate::trace::Trace;
use crate::traffic::Mix;

/// The verdict; `None` where no part says anything of a rate.
pub(crate) fn judge(
    (target, plan): (&Target, &Plan),
    parts: &[PartResult],
    is_interrupted: bool,
    ask: &Ask,
) -> Option<Verdict> {
    let needed = ask.bits_per_s.map(|bits| ask.mix.bytes_of(bits));
    let laps = Laps { plan, jump: jump(parts) };
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
    let doubts = doubts((target, plan), parts, &first);
    // Behind a limit the disk is as fast at least, and not known to be slow.
    let is_limited = doubts.iter().any(is_limit);
    let asked = ask.bits_per_s.zip(needed).map(|(bits_per_s, needed_bytes_per_s)| {
        let ratio = real(first.guaranteed_bytes_per_s) / real(needed_bytes_per_s.max(1));
        let permille = i64::try_from(whole(ratio * 1000.0)).unwrap_or(i64::MAX - 1000);
        let is_open = is_interrupted || !doubts.iter().all(is_limit);
        let is_unseen = is_interrupted || is_limited;
        let answer = answer(&first, needed_bytes_per_s, (is_unseen, is_open));
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
        doubts,
    })
}

fn is_limit(doubt: &Doubt) -> bool {
    matches!(doubt, Doubt::Limited { .. })
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

/// Reading proves nothing of writing but that it is hardly faster. What is too slow for a moment,
/// or in memory, is too slow for longer.
fn answer(judged: &Judged, needed: u64, (is_unseen, is_open): (bool, bool)) -> Answer {
    if judged.guaranteed_bytes_per_s < needed {
        return if is_unseen { Answer::CannotJudge } else { Answer::TooSlow };
    }
    if judged.is_by_reading || is_open { Answer::CannotJudge } else { Answer::Fits }
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
    // A cache that is full stays full under a recorder, and no pool bridges that.
    let behind = step(fill).map_or(u64::MAX, |step| step.after_bytes_per_s);
    let guaranteed_bytes_per_s = guaranteed_bytes_per_s.min(behind);
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
        jump: None,
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
        let (order, jump) = (Order::ZoneLevelled, Some(laps.jump));
        let rates = Judged { pool_bytes, guaranteed_bytes_per_s, mean_bytes_per_s, ..common };
        judged.push(Judged { order, slow_ns: None, fast_ns: None, jump, ..rates });
    }
    judged
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
        jump: None,
    }
}
