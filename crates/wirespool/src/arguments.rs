//! Values of flags.

use core::time::Duration;

use units::{ByteSize, Timestamp};

use crate::atlas::{self, AtlasFlags};
use crate::progress::say;

/// `8G`, `256M`, `1.5T`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    text.parse().map(|ByteSize(bytes)| bytes).map_err(|error| error.to_string())
}

/// `300s`, `5m`, `12h`, `180d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let millis = UNITS.iter().find(|(name, _)| *name == unit).and_then(|(_, millis)| {
        let number: u64 = number.parse().ok()?;
        number.checked_mul(*millis)
    });
    let millis = millis.filter(|&millis| millis > 0).map(Duration::from_millis);
    millis.ok_or_else(|| "write a number with ms, s, m, h or d, such as 300s or 180d".to_owned())
}

/// What `ether host` does not cover.
const STATIONS: &str = "ether host covers sessions without IP (ARP and the like): \
                        stations of IP sessions are not kept";

/// Words of a query as one text, read as of now; what it does not cover is said.
pub(crate) fn query(
    words: &[String],
    now: Timestamp,
) -> Result<query::Query, crate::failure::Usage> {
    let query = parse(words, now)?;
    query.needs_atlas().map_or(Ok(query), |field| Err(atlas::missing(field)))
}

/// The same, of whom it may ask about addresses.
pub(crate) fn query_with(
    words: &[String],
    now: Timestamp,
    flags: &AtlasFlags,
) -> anyhow::Result<query::Query> {
    let query = parse(words, now)?;
    let atlas = flags.read(query.needs_atlas())?;
    Ok(match atlas {
        Some(atlas) => query.with_atlas(atlas),
        None => query,
    })
}

fn parse(words: &[String], now: Timestamp) -> Result<query::Query, crate::failure::Usage> {
    let text = words.join(" ");
    let query = query::Query::parse(&text, now);
    let query = query.map_err(|error| crate::failure::Usage(error.render(&text)))?;
    if query.asks_for_stations() {
        say(STATIONS);
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        for (text, seconds) in [("300s", 300), ("5m", 300), ("2h", 7200), ("180d", 15_552_000)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "5", "s", "0s", "1.5h", "-1s", "5 m", "99999999999999999999d", "1w"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
