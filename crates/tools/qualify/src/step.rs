//! The place at which the rate of a run falls by a clear step: a cache in front is full, or an
//! allowance is used up. Zones of a disk fall bit by bit, and are none.

use crate::number::{rate, real, to_u64};
use crate::report::Fill;

/// A step is at least that of a half more, in hundredths.
const FALL: u64 = 150;
/// And from the windows just before it to those just behind it at least so much.
const FALL_NEAR: u64 = 130;
/// Windows on each side at least.
const SIDE_MIN: usize = 3;
/// Parts of a run: so long are the sides of a step that are compared.
const SIDES: usize = 24;
/// Windows on the wrong side of the middle of both rates, at most, in hundredths.
const WRONG: usize = 15;

/// A fall of the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// Bytes that were written before it.
    pub(crate) bytes: u64,
    /// Bytes a second before.
    pub(crate) before_bytes_per_s: u64,
    /// Bytes that were written behind it.
    pub(crate) behind_bytes: u64,
    /// Bytes a second behind it.
    pub(crate) after_bytes_per_s: u64,
}

impl Step {
    /// Behind the step as much was written as before it: the rate there is that of the device.
    pub(crate) fn is_passed(&self) -> bool {
        self.behind_bytes >= self.bytes
    }

    /// Bytes to write so that it is passed.
    pub(crate) fn needed_bytes(&self) -> u64 {
        self.bytes.saturating_mul(2)
    }
}

/// Bytes and time of windows together.
#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    ns: u64,
}

impl Sum {
    fn of(windows: &[(u64, u64)]) -> Self {
        let bytes = windows.iter().map(|(bytes, _)| *bytes).sum();
        Self { bytes, ns: windows.iter().map(|(_, ns)| *ns).sum() }
    }

    fn rate(self) -> u64 {
        rate(self.bytes, self.ns)
    }

    /// Time of a byte.
    fn slowness(self) -> f64 {
        real(self.ns) / real(self.bytes.max(1))
    }
}

/// The step of a run, if it has one.
pub(crate) fn step(fill: &Fill) -> Option<Step> {
    let begins = core::iter::once(0).chain(fill.windows.iter().map(|window| window.end_ns));
    let windows: Vec<(u64, u64)> = fill
        .windows
        .iter()
        .zip(begins)
        .map(|(window, begin_ns)| (window.bytes, window.end_ns.saturating_sub(begin_ns)))
        .collect();
    let at = split(&windows)?;
    let (before, behind) = windows.split_at_checked(at)?;
    let (first, second) = (Sum::of(before), Sum::of(behind));
    let side = (windows.len() / SIDES).max(SIDE_MIN);
    let near_before = Sum::of(before.get(at.saturating_sub(side)..)?);
    let near_behind = Sum::of(behind.get(..side.min(behind.len()))?);
    let falls = |before: Sum, behind: Sum, hundredths: u64| {
        real(before.rate()) * 100.0 >= real(behind.rate()) * real(hundredths)
    };
    let is_clear = is_apart(before, behind, (first, second));
    (falls(first, second, FALL) && falls(near_before, near_behind, FALL_NEAR) && is_clear)
        .then_some(Step {
            bytes: first.bytes,
            before_bytes_per_s: first.rate(),
            behind_bytes: second.bytes,
            after_bytes_per_s: second.rate(),
        })
}

/// The number of windows before the cut that explains most: where the times of a byte on both sides
/// differ most from that of all.
fn split(windows: &[(u64, u64)]) -> Option<usize> {
    let all = Sum::of(windows);
    let mut sum = Sum::default();
    let mut best: Option<(f64, usize)> = None;
    for (at, (bytes, ns)) in (1..).zip(windows) {
        sum = Sum { bytes: sum.bytes + bytes, ns: sum.ns + ns };
        if at < SIDE_MIN || at + SIDE_MIN > windows.len() {
            continue;
        }
        let rest = Sum { bytes: all.bytes - sum.bytes, ns: all.ns - sum.ns };
        let more = rest.slowness() - sum.slowness();
        let explained = real(sum.bytes) * real(rest.bytes) * more * more;
        if more > 0.0 && best.is_none_or(|(most, _)| explained > most) {
            best = Some((explained, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Nearly all windows of each side lie on their side of the middle.
fn is_apart(before: &[(u64, u64)], behind: &[(u64, u64)], (first, second): (Sum, Sum)) -> bool {
    let middle = (real(first.rate()) * real(second.rate())).sqrt();
    let few = |windows: &[(u64, u64)], is_wrong: &dyn Fn(f64) -> bool| {
        let wrong = windows.iter().filter(|(bytes, ns)| is_wrong(real(rate(*bytes, *ns)))).count();
        to_u64(wrong) * 100 <= to_u64(windows.len()) * to_u64(WRONG)
    };
    few(before, &|rate| rate < middle) && few(behind, &|rate| rate > middle)
}

#[cfg(test)]
mod tests {
    use units::Random;

    use super::*;
    use crate::number::whole;
    use crate::report::Window;

    /// A run of windows of 64 MiB at these rates in MB/s, up to a tenth off by chance.
    fn run(rates: impl Iterator<Item = f64>) -> Fill {
        let mut random = Random::new(5);
        let (mut end_ns, mut fill) = (0, Fill::default());
        for rate in rates {
            let bytes = 64 << 20;
            let chance = 0.9 + real(random.below(200)) / 1000.0;
            end_ns += whole(real(bytes) * 1e3 / (rate * chance));
            fill.windows.push(Window { end_ns, bytes, ..Window::default() });
        }
        fill
    }

    #[test]
    fn a_cache_that_fills_is_a_step() {
        let rates = (0..400).map(|at| if at < 300 { 2000.0 } else { 180.0 });
        let found = step(&run(rates)).unwrap();
        assert_eq!((found.bytes, found.behind_bytes), (300 * (64 << 20), 100 * (64 << 20)));
        assert!(found.before_bytes_per_s.abs_diff(2_000_000_000) < 40_000_000, "{found:?}");
        assert!(found.after_bytes_per_s.abs_diff(180_000_000) < 5_000_000, "{found:?}");
        assert_eq!((found.is_passed(), found.needed_bytes()), (false, 600 * (64 << 20)));
        let long = (0..400).map(|at| if at < 100 { 2000.0 } else { 180.0 });
        assert!(step(&run(long)).unwrap().is_passed());
    }

    #[test]
    fn zones_stalls_and_a_steady_rate_are_none() {
        assert_eq!(step(&run((0..500).map(|_| 200.0))), None);
        // The published disk: 264 to 133 MB/s.
        assert_eq!(step(&run((0..500_u32).map(|at| 264.0 - 131.0 * f64::from(at) / 500.0))), None);
        let stalls = (0..500).map(|at| if at % 50 == 49 { 10.0 } else { 400.0 });
        assert_eq!(step(&run(stalls)), None);
        let faster = (0..400).map(|at| if at < 200 { 100.0 } else { 300.0 });
        assert_eq!(step(&run(faster)), None);
        assert_eq!(step(&run([200.0, 100.0].into_iter())), None, "too short");
        assert_eq!(step(&Fill::default()), None);
    }
}
