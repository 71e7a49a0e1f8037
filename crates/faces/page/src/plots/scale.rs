//! From values to places on an axis: even and logarithmic scales with round ticks.

/// What an axis measures: it decides units and which steps are round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Bytes a second, in powers of 1000.
    Rate,
    /// Bytes on a surface, in powers of 1000 as disks are sold.
    Place,
    /// Bytes in memory, in powers of 1024.
    Memory,
    /// Nanoseconds.
    Time,
    /// Things.
    Count,
    /// Percent.
    Percent,
}

/// Seconds in nanoseconds, and longer units.
const SECOND: f64 = 1e9;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
/// Steps of time that clocks have.
const CLOCK_STEPS: [f64; 19] = [
    SECOND,
    2.0 * SECOND,
    5.0 * SECOND,
    10.0 * SECOND,
    15.0 * SECOND,
    30.0 * SECOND,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
];
const KIB: f64 = 1024.0;
/// Values are one below this share of an axis.
const TINY: f64 = 1e-9;

type Unit = (f64, &'static str);

impl Quantity {
    /// The largest unit first; its size and name.
    fn units(self) -> &'static [Unit] {
        match self {
            Self::Rate => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
            Self::Place => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Self::Memory => &[
                (KIB * KIB * KIB * KIB, "TiB"),
                (KIB * KIB * KIB, "GiB"),
                (KIB * KIB, "MiB"),
                (KIB, "KiB"),
                (1.0, "B"),
            ],
            Self::Time => &[
                (DAY, "days"),
                (HOUR, "h"),
                (MINUTE, "min"),
                (SECOND, "s"),
                (1e6, "ms"),
                (1e3, "us"),
                (1.0, "ns"),
            ],
            Self::Count => &[(1.0, "")],
            Self::Percent => &[(1.0, "%")],
        }
    }

    /// The largest unit that is not above `value`.
    fn unit(self, value: f64) -> Unit {
        let units = self.units();
        let fits = units.iter().find(|(size, _)| value >= *size * (1.0 - TINY));
        fits.or(units.last()).copied().expect("each quantity has a unit")
    }

    /// A round step, at least `least`.
    fn step(self, least: f64, unit: f64) -> f64 {
        if self == Self::Time && least > SECOND / 2.0 {
            let fits = CLOCK_STEPS.into_iter().find(|step| *step >= least);
            return fits.unwrap_or_else(|| round_up(least / DAY) * DAY);
        }
        round_up(least / unit) * unit
    }
}

/// The next of 1, 2, 5, 10 and so on.
fn round_up(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let fits = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= least * (1.0 - TINY));
    fits.unwrap_or(10.0) * power
}

/// A place on an axis that is marked; small ones have no label.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// How values lie on an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<Tick>,
    /// What all labels are in; empty where each says its own.
    unit: &'static str,
}

impl Scale {
    /// From 0 to the round value above the largest, with about `ticks` steps.
    pub fn from_zero(quantity: Quantity, largest: f64, ticks: u32) -> Self {
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let step = quantity.step(largest / f64::from(ticks), quantity.unit(largest).0);
        let high = (largest / step - TINY).ceil() * step;
        Self::even(quantity, (0.0, high), step)
    }

    /// From `low` to `high` exactly, with about `ticks` round values between.
    pub fn between(quantity: Quantity, (low, high): (f64, f64), ticks: u32) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = quantity.step((high - low) / f64::from(ticks), quantity.unit(high).0);
        Self::even(quantity, (low, high), step)
    }

    /// From `low` to `high`, marked nowhere: for things that have names and no numbers.
    pub fn bare((low, high): (f64, f64)) -> Self {
        Self { low, high, is_log: false, ticks: Vec::new(), unit: "" }
    }

    fn even(quantity: Quantity, (low, high): (f64, f64), step: f64) -> Self {
        // Hours are counted in minutes where a step is less than one.
        let largest = if quantity == Quantity::Time { step } else { high };
        let (size, unit) = quantity.unit(largest);
        let decimals = decimals(step / size);
        let mut ticks = Vec::new();
        // Never -0.
        let mut value = (low / step - TINY).ceil() * step + 0.0;
        while value <= high + step * TINY {
            let label = grouped(value / size, decimals);
            ticks.push(Tick { value, label });
            value += step;
        }
        Self { low, high, is_log: false, ticks, unit }
    }

    /// Powers of ten that contain all values.
    pub fn decades(quantity: Quantity, (low, high): (f64, f64)) -> Self {
        let low = 10_f64.powf((low.max(1.0).log10() + TINY).floor());
        let high = 10_f64.powf((high.max(1.0).log10() - TINY).ceil()).max(low * 10.0);
        Self::within_decades(quantity, (low, high))
    }

    /// From `low` to `high` exactly, marked at powers of ten; where fewer than three lie between,
    /// at twice and five times them as well.
    pub fn within_decades(quantity: Quantity, (low, high): (f64, f64)) -> Self {
        let (low, high) = (low.max(1.0), high.max(low.max(1.0) * 2.0));
        let is_in = |value: &f64| *value >= low * (1.0 - TINY) && *value <= high * (1.0 + TINY);
        let mut power = 10_f64.powf((low.log10() + TINY).floor());
        let mut ticks: Vec<Tick> = Vec::new();
        let are_few = high / low < 300.0;
        while power <= high * (1.0 + TINY) {
            for digit in 1..10_u8 {
                let value = power * f64::from(digit);
                let is_named = digit == 1 || (are_few && matches!(digit, 2 | 5));
                let label = if is_named { text(quantity, value) } else { String::new() };
                if is_in(&value) {
                    ticks.push(Tick { value, label });
                }
            }
            power *= 10.0;
        }
        Self { low, high, is_log: true, ticks, unit: "" }
    }

    /// From `low` to `high`, marked at powers of two, of which at most `most` have a label.
    pub fn doublings(quantity: Quantity, (low, high): (f64, f64), most: u32) -> Self {
        let (low, high) = (low.max(1.0), high.max(low.max(1.0) * 2.0));
        let doublings = (high / low).log2().ceil();
        let every = (doublings / f64::from(most)).ceil().max(1.0);
        let mut power = (low.log2() - TINY).ceil();
        let mut ticks = Vec::new();
        while power <= high.log2() + TINY {
            let value = power.exp2();
            ticks.push(Tick { value, label: text(quantity, value) });
            power += every;
        }
        Self { low, high, is_log: true, ticks, unit: "" }
    }

    /// Where a value lies, from 0 to 1; what lies beyond an end is put there.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let (value, low, high) = if self.is_log {
            (value.max(self.low).log2(), self.low.log2(), self.high.log2())
        } else {
            (value, self.low, self.high)
        };
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    pub(crate) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    pub(crate) fn unit(&self) -> &'static str {
        self.unit
    }
}

/// Decimals that a step needs.
fn decimals(step: f64) -> usize {
    [1.0, 10.0, 100.0, 1000.0]
        .iter()
        .position(|scale| {
            let scaled = step * scale;
            scaled + TINY >= 1.0 && (scaled - scaled.round()).abs() < 1e-6
        })
        .unwrap_or(3)
}

/// A value with its unit.
fn text(quantity: Quantity, value: f64) -> String {
    let (size, unit) = quantity.unit(value);
    let number = grouped(value / size, decimals((value / size).min(1.0)));
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// Digits in groups of three.
fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut number = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && whole.len() > 4 && (whole.len() - place).is_multiple_of(3) {
            number.push('\u{202f}');
        }
        number.push(digit);
    }
    if fraction.is_empty() { number } else { format!("{number}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> String {
        let named = scale.ticks.iter().filter(|tick| !tick.label.is_empty());
        named.map(|tick| tick.label.as_str()).collect::<Vec<_>>().join(" | ")
    }

    #[track_caller]
    fn check(scale: &Scale, expected: &str, unit: &str) {
        assert_eq!((labels(scale).as_str(), scale.unit()), (expected, unit));
        for tick in scale.ticks() {
            assert!((0.0..=1.0).contains(&scale.share(tick.value)) && scale.contains(tick.value));
        }
    }

    #[test]
    fn even_ticks_are_round_in_their_unit() {
        let from_zero = Scale::from_zero;
        check(&from_zero(Quantity::Rate, 264e6, 5), "0 | 100 | 200 | 300", "MB/s");
        check(&from_zero(Quantity::Rate, 1.68e9, 5), "0.0 | 0.5 | 1.0 | 1.5 | 2.0", "GB/s");
        check(&from_zero(Quantity::Rate, 0.0, 5), "0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0", "B/s");
        check(
            &from_zero(Quantity::Count, 43_000.0, 4),
            "0 | 20\u{202f}000 | 40\u{202f}000 | \
            60\u{202f}000",
            "",
        );
        let between = Scale::between;
        check(&between(Quantity::Place, (0.0, 8e12), 8), "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8", "TB");
        check(&between(Quantity::Time, (0.0, 11.4 * HOUR), 8), "0 | 2 | 4 | 6 | 8 | 10", "h");
        check(&between(Quantity::Time, (0.0, 100.0 * SECOND), 6), "0 | 30 | 60 | 90", "s");
        check(&between(Quantity::Time, (0.0, 5e6), 5), "0 | 1 | 2 | 3 | 4 | 5", "ms");
        check(&between(Quantity::Time, (0.0, 40.0 * DAY), 5), "0 | 10 | 20 | 30 | 40", "days");
    }

    #[test]
    fn logarithmic_ticks_say_their_units() {
        let decades = Scale::decades(Quantity::Time, (15e3, 2e6));
        check(&decades, "10 us | 100 us | 1 ms | 10 ms", "");
        assert!((decades.share(100e3) - 1.0 / 3.0).abs() < 1e-6);
        check(&Scale::decades(Quantity::Count, (1.0, 900.0)), "1 | 10 | 100 | 1000", "");
        let few = Scale::within_decades(Quantity::Time, (15e3, 250e3));
        check(&few, "20 us | 50 us | 100 us | 200 us", "");
        let memory = (65536.0, 1_073_741_824.0);
        let doublings = Scale::doublings(Quantity::Memory, memory, 8);
        check(
            &doublings,
            "64 KiB | 256 KiB | 1 MiB | 4 MiB | 16 MiB | 64 MiB | 256 MiB | 1 GiB",
            "",
        );
    }

    #[test]
    fn values_beyond_an_axis_lie_at_its_end() {
        let scale = Scale::from_zero(Quantity::Count, 80.0, 4);
        assert!(scale.share(-5.0) < 1e-9 && scale.share(1e9) > 1.0 - 1e-9);
        let scale = Scale::decades(Quantity::Time, (0.0, 0.0));
        assert!(scale.share(0.0) < 1e-9 && scale.share(10.0) > 1.0 - 1e-9);
    }
}
