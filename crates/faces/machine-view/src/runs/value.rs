//! Numbers of runs with their unit, to four digits.

use core::time::Duration;

use ::runs::{Series, Taken, Unit};
use page::text;
use units::ByteSize;

/// A value in its unit: `10.23 ms`, `1.234 GB/s`, `812.3 k/s`.
pub(super) fn measure(unit: Unit, value: f64) -> String {
    const TIMES: [(f64, &str); 4] = [(1e3, "ns"), (1e6, "us"), (1e9, "ms"), (f64::MAX, "s")];
    const RATES: [(f64, &str); 5] =
        [(1e3, ""), (1e6, "k"), (1e9, "M"), (1e12, "G"), (f64::MAX, "T")];
    let (steps, ending): (&[(f64, &str)], &str) = match unit {
        Unit::Nanoseconds => (&TIMES, ""),
        Unit::BytesPerSecond => (&RATES, "B/s"),
        Unit::PerSecond => (&RATES, "/s"),
    };
    let at = steps.iter().position(|(end, _)| value.abs() < *end).unwrap_or(steps.len() - 1);
    let name = steps.get(at).map_or("", |(_, name)| name);
    let scale = at.checked_sub(1).and_then(|below| steps.get(below)).map_or(1.0, |(end, _)| *end);
    let blank = if name.is_empty() && ending == "/s" { "" } else { " " };
    format!("{}{blank}{name}{ending}", digits(value / scale))
}

/// Four digits that count.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share: `1.3 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A length of time that was measured once.
pub(super) fn took(ns: u64) -> String {
    text::duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Medians of what programs used: their code, the kernel, memory; nothing of others.
pub(super) fn used(series: &Series) -> [String; 3] {
    let taken: Vec<&Taken> = series.runs.iter().filter_map(|run| run.ran.taken.as_ref()).collect();
    let median = |of: &dyn Fn(&Taken) -> u64| {
        let mut values: Vec<u64> = taken.iter().map(|taken| of(taken)).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let time = |ns: Option<u64>| {
        ns.map_or(String::new(), |ns| {
            measure(Unit::Nanoseconds, Duration::from_nanos(ns).as_secs_f64() * 1e9)
        })
    };
    let memory = median(&|taken| taken.memory_bytes_max).map_or(String::new(), |bytes| {
        // A program that is started begins with what we had: less than that cannot be measured.
        let floor = median(&|taken| taken.memory_floor_bytes).unwrap_or(0);
        let sign = if bytes <= floor + floor / 8 { "< " } else { "" };
        format!("{sign}{}", ByteSize(bytes))
    });
    [
        time(median(&|taken| nanos(taken.cpu.user))),
        time(median(&|taken| nanos(taken.cpu.system))),
        memory,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits_and_the_unit_that_suits_them() {
        for (unit, value, text) in [
            (Unit::Nanoseconds, 812.34, "812.3 ns"),
            (Unit::Nanoseconds, 10_234_567.0, "10.23 ms"),
            (Unit::Nanoseconds, 1.5e9, "1.500 s"),
            (Unit::Nanoseconds, 5.4321e12, "5432 s"),
            (Unit::BytesPerSecond, 1.2345e9, "1.234 GB/s"),
            (Unit::BytesPerSecond, 12.0, "12.00 B/s"),
            (Unit::PerSecond, 812_345.0, "812.3 k/s"),
            (Unit::Nanoseconds, 0.0, "0 ns"),
            (Unit::PerSecond, 99.5, "99.50/s"),
        ] {
            assert_eq!(measure(unit, value), text);
        }
    }
}
