//! Times of day in a named time zone.
//!
//! The zones are those of the IANA database as it was when the library was made; crates open no
//! files, so the machine's own copy is not asked.

use chrono::{DateTime, MappedLocalTime, TimeZone as _};
use chrono_tz::{TZ_VARIANTS, Tz};
use units::Timestamp;

use crate::nearest::nearest;

/// `2026-11-20T10:40[Europe/Berlin]` (RFC 9557), or with the name behind a blank; `None` for what
/// is no such time. A time that the clocks of the place showed twice is the earlier one, and one
/// that they never showed is none.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    let (clock, name) = split(text)?;
    let zone: Tz = name.parse().ok()?;
    let has_offset = clock.find(['T', 't', ' ']).is_some_and(|at| {
        clock.get(at + 1..).is_some_and(|clock| clock.contains(['Z', 'z', '+', '-']))
    });
    if has_offset {
        return None;
    }
    let Timestamp(local) = clock.parse().ok()?;
    let local = DateTime::from_timestamp_nanos(local).naive_utc();
    let earliest = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(time) | MappedLocalTime::Ambiguous(time, _) => time,
        MappedLocalTime::None => return None,
    };
    earliest.timestamp_nanos_opt().map(Timestamp)
}

/// The zone that was probably meant, written as in `text`.
pub(crate) fn suggestion(text: &str) -> Option<String> {
    let (_, name) = split(text)?;
    let zones = TZ_VARIANTS.iter().map(|zone| zone.name());
    let zone = nearest(name, zones).filter(|zone| *zone != name)?;
    Some(text.replace(name, zone))
}

/// What stands before the name of the zone, and the name.
fn split(text: &str) -> Option<(&str, &str)> {
    if let Some((clock, name)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        return Some((clock, name));
    }
    let (clock, name) = text.rsplit_once(' ')?;
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()).then_some((clock, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_offset_of_the_day() {
        for (text, utc) in [
            ("2026-11-20T10:40[Europe/Berlin]", Some("2026-11-20T09:40:00Z")),
            ("2026-07-20T10:40:05.5[Europe/Berlin]", Some("2026-07-20T08:40:05.5Z")),
            ("2026-11-20 10:40 America/New_York", Some("2026-11-20T15:40:00Z")),
            ("2026-11-20[Asia/Kolkata]", Some("2026-11-19T18:30:00Z")),
            ("2026-11-20 UTC", Some("2026-11-20T00:00:00Z")),
            // The clocks go back at three: of two such times the earlier one.
            ("2026-10-25T02:30[Europe/Berlin]", Some("2026-10-25T00:30:00Z")),
            // And forward at two: that time never was.
            ("2026-03-29T02:30[Europe/Berlin]", None),
            ("2026-11-20T10:40Z[Europe/Berlin]", None),
            ("2026-11-20T10:40+01:00[Europe/Berlin]", None),
            ("2026-11-20T10:40[Europe/Berlyn]", None),
            ("2026-11-20T10:40[]", None),
            ("[Europe/Berlin]", None),
        ] {
            let expected = utc.map(|utc| utc.parse::<Timestamp>().unwrap());
            assert_eq!(time(text), expected, "{text}");
        }
    }

    #[test]
    fn a_slip_in_a_zone_is_mended() {
        let mended = suggestion("2026-11-20T10:40[Europe/Berlyn]");
        assert_eq!(mended.as_deref(), Some("2026-11-20T10:40[Europe/Berlin]"));
        assert_eq!(suggestion("2026-11-20T10:99[Europe/Berlin]"), None, "the zone is right");
        assert_eq!(suggestion("2026-11-20"), None);
    }
}
