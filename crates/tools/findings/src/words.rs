//! Numbers in words.

/// `5.2 Mbit/s`.
pub fn bits_per_second(bits: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1000, "kbit")];
    let unit = UNITS.iter().find(|(one, _)| bits >= *one);
    unit.map_or_else(
        || format!("{bits} bit/s"),
        |(one, name)| format!("{}/s", tenths(bits, *one, name)),
    )
}

/// `541 us`, `1.52 ms`, `100 ms`.
pub fn microseconds(us: u32) -> String {
    match us {
        0..1000 => format!("{us} us"),
        1000..10_000 => format!("{}.{:02} ms", us / 1000, us % 1000 / 10),
        us => format!("{} ms", us.saturating_add(500) / 1000),
    }
}

/// Nanoseconds in the same way.
pub fn time(nanos: u64) -> String {
    microseconds(u32::try_from(nanos / 1000).unwrap_or(u32::MAX))
}

fn tenths(count: u64, one: u64, name: &str) -> String {
    let tenths = (u128::from(count) * 10 + u128::from(one) / 2) / u128::from(one);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// `1 connection`, `12 000 connections`: [`units::plural`] of what was counted here.
pub fn plural(count: usize, noun: &str) -> String {
    units::plural(u64::try_from(count).unwrap_or(u64::MAX), noun)
}

/// `mapper (process 412)`.
pub fn process(name: &str, number: u32) -> String {
    format!("{name} (process {number})")
}

/// `1 process`, `12 processes`.
pub fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// `12 %`, rounded; of nothing 0.
pub fn percent(part: u64, of: u64) -> String {
    let share = (u128::from(part) * 1000).checked_div(u128::from(of)).unwrap_or(0);
    if share < 100 {
        format!("{}.{} %", share / 10, share % 10)
    } else {
        format!("{} %", (share + 5) / 10)
    }
}

/// The first few, and how many there are besides.
pub fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bits_per_second(5_242_800), "5.2 Mbit/s");
        assert_eq!(bits_per_second(18_700_000_000), "18.7 Gbit/s");
        assert_eq!(bits_per_second(999), "999 bit/s");
        let times = [541, 1525, 100_400].map(microseconds);
        assert_eq!(times, ["541 us", "1.52 ms", "100 ms"]);
        assert_eq!((percent(1, 40), percent(30, 40)), ("2.5 %".into(), "75 %".into()));
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(some((1..=7_u8).map(|one| one.to_string())), "1, 2, 3, 4, 5 and 2 more");
        assert_eq!([1, 12_000].map(|count| plural(count, "look")), ["1 look", "12 000 looks"]);
    }
}
