//! What objects are called: by what they cover, so that one that is stored again replaces itself.
//!
//! ```text
//! sessions/sensor=S/date=YYYY-MM-DD/hour=HH/VOLUME-FIRST-LAST-N.parquet
//! losses/sensor=S/date=YYYY-MM-DD/VOLUME-FIRST-LAST-N.parquet
//! _wirespool/manifests/sensor=S/VOLUME/FIRST-LAST.json    what a part has given; it is complete
//! _wirespool/pending/sensor=S/VOLUME.json                 what was about to be stored last
//! _wirespool/open/sensor=S/VOLUME/FIRST-LAST.rows         sessions that may go on
//! _wirespool/compacted/sensor=S/NAME.json                 which objects were merged into which
//! _wirespool/settled/sensor=S.json                        days that have nothing left to be merged
//! _wirespool/lease/sensor=S.json                          who merges
//! ```
//!
//! FIRST and LAST are stripes of the volume, with zeros in front, so that names sort as the ring.
//! Engines take folders that begin with `_` for no part of a table.

use core::fmt;
use core::str::FromStr;

use format::head::{StripeId, VolumeId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use units::Timestamp;

/// Letters of a sensor's name.
const SENSOR_LEN_MAX: usize = 64;

/// Name of a sensor: what a partition of a table may be called anywhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sensor(String);

/// The text is no name of a sensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSensor;

impl fmt::Display for NoSensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a sensor has a name of 1 to {SENSOR_LEN_MAX} letters, digits, '.', '_' and '-', a \
             letter or digit first"
        )
    }
}

impl core::error::Error for NoSensor {}

impl Sensor {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Sensor {
    type Err = NoSensor;

    fn from_str(text: &str) -> Result<Self, NoSensor> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let is_one = begins && text.len() <= SENSOR_LEN_MAX && text.bytes().all(is_plain);
        is_one.then(|| Self(text.to_owned())).ok_or(NoSensor)
    }
}

impl fmt::Display for Sensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an object holds rows of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Table {
    /// Sessions that are over, one row each.
    Sessions,
    /// Packets that are known to be missing.
    Losses,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 2] = [Self::Sessions, Self::Losses];

    /// Name of its folder, and of the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Losses => "losses",
        }
    }

    /// Folder of a sensor's objects.
    pub fn folder(self, sensor: &Sensor) -> String {
        format!("{}/sensor={sensor}", self.name())
    }

    /// Folder of the rows of this time.
    pub fn partition(self, sensor: &Sensor, time: Timestamp) -> String {
        let text = time.to_string();
        let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
        let hour = clock.split(':').next().unwrap_or_default();
        match self {
            Self::Sessions => format!("{}/date={date}/hour={hour}", self.folder(sensor)),
            Self::Losses => format!("{}/date={date}", self.folder(sensor)),
        }
    }
}

/// What is stored at once and named by it: a part of the ring, or the end of the sessions that were
/// open behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unit {
    /// First stripe.
    pub first: StripeId,
    /// Last stripe.
    pub last: StripeId,
    /// Behind `last` no recorder ran: sessions that were open are over.
    pub is_end: bool,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, is_end } = self;
        write!(f, "{}-{}", Padded(*first), Padded(*last))?;
        // Sorts behind the end of any name.
        f.write_str(if *is_end { "_end" } else { "" })
    }
}

/// A stripe's id whose text sorts as it does.
struct Padded(StripeId);

impl fmt::Display for Padded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:019}.{:05}", self.0.sequence, self.0.sub)
    }
}

/// From a text as `StripeId` writes it, or with zeros in front.
pub(crate) fn stripe(text: &str) -> Option<StripeId> {
    let (sequence, sub) = text.split_once('.')?;
    Some(StripeId { sequence: sequence.parse().ok()?, sub: sub.parse().ok()? })
}

const OWN: &str = "_wirespool";

/// Folder of everything that is no table.
pub(crate) fn manifests_of_all() -> String {
    format!("{OWN}/manifests")
}

pub(crate) fn manifests_of(sensor: &Sensor) -> String {
    format!("{OWN}/manifests/sensor={sensor}")
}

pub(crate) fn manifests(sensor: &Sensor, volume: VolumeId) -> String {
    format!("{}/{volume}", manifests_of(sensor))
}

pub(crate) fn manifest(sensor: &Sensor, volume: VolumeId, unit: Unit) -> String {
    format!("{}/{unit}.json", manifests(sensor, volume))
}

pub(crate) fn pending_of(sensor: &Sensor) -> String {
    format!("{OWN}/pending/sensor={sensor}")
}

pub(crate) fn pending(sensor: &Sensor, volume: VolumeId) -> String {
    format!("{}/{volume}.json", pending_of(sensor))
}

pub(crate) fn open_sessions_of(sensor: &Sensor, volume: VolumeId) -> String {
    format!("{OWN}/open/sensor={sensor}/{volume}")
}

pub(crate) fn open_sessions(sensor: &Sensor, volume: VolumeId, unit: Unit) -> String {
    format!("{}/{unit}.rows", open_sessions_of(sensor, volume))
}

pub(crate) fn compacted_of(sensor: &Sensor) -> String {
    format!("{OWN}/compacted/sensor={sensor}")
}

pub(crate) fn compacted(sensor: &Sensor, id: &str) -> String {
    format!("{}/{id}.json", compacted_of(sensor))
}

pub(crate) fn settled(sensor: &Sensor) -> String {
    format!("{OWN}/settled/sensor={sensor}.json")
}

/// Name of the manifest that has an object of sessions, by the object's name.
pub(crate) fn manifest_of_object(sensor: &Sensor, name: &str) -> Option<String> {
    let (unit, _) = name.rsplit('/').next()?.strip_suffix(".parquet")?.rsplit_once('-')?;
    let (volume, unit) = unit.split_once('-')?;
    if !volume.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(format!("{}/{volume}/{unit}.json", manifests_of(sensor)))
}

pub(crate) fn lease(sensor: &Sensor) -> String {
    format!("{OWN}/lease/sensor={sensor}.json")
}

/// Reads the name of an object that a manifest has: whoever wrote that may want a file elsewhere to
/// be read, written or removed.
///
/// # Errors
/// When it leads out of the store.
pub(crate) fn within<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    if name.split('/').all(is_plain) {
        Ok(name)
    } else {
        Err(D::Error::custom("it names an object outside of the store"))
    }
}

/// Reads several of them.
///
/// # Errors
/// When one leads out of the store.
pub(crate) fn all_within<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Name(#[serde(deserialize_with = "within")] String);
    let names: Vec<Name> = Deserialize::deserialize(from)?;
    Ok(names.into_iter().map(|Name(name)| name).collect())
}

/// The sensor that a name below [`manifests_of_all`] is of.
pub(crate) fn sensor_of(name: &str) -> Option<Sensor> {
    let behind = name.split_once("/sensor=")?.1;
    behind.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use super::*;

    #[test]
    fn a_sensor_is_a_plain_name() {
        for name in ["a", "dc-1.rack_7", "0", &"x".repeat(64)] {
            assert!(name.parse::<Sensor>().is_ok(), "{name}");
        }
        for name in ["", ".", "..", "_x", "-x", "a/b", "a b", "a=b", "\u{e9}", &"x".repeat(65)] {
            assert_eq!(name.parse::<Sensor>(), Err(NoSensor), "{name}");
        }
    }

    #[test]
    fn names_sort_as_the_ring() {
        let unit = |first, last, is_end| {
            let stripe = |sequence| StripeId { sequence, sub: 3 };
            let unit = Unit { first: stripe(first), last: stripe(last), is_end };
            manifest(&"s".parse().unwrap(), VolumeId([0; 16]), unit)
        };
        let units = [
            unit(Sequence(1), Sequence(9), false),
            unit(Sequence(9), Sequence(9), true),
            unit(Sequence(10), Sequence(10), false),
            unit(Sequence(10), Sequence(10), true),
        ];
        assert!(units.is_sorted(), "{units:?}");
    }

    #[test]
    fn a_partition_is_the_hour_in_utc() {
        let sensor: Sensor = "s".parse().unwrap();
        let time: Timestamp = "2026-11-20T23:59:59.9Z".parse().unwrap();
        let folder = Table::Sessions.partition(&sensor, time);
        assert_eq!(folder, "sessions/sensor=s/date=2026-11-20/hour=23");
        assert_eq!(Table::Losses.partition(&sensor, time), "losses/sensor=s/date=2026-11-20");
        assert_eq!(sensor_of("_wirespool/manifests/sensor=s/v/1.json"), Some(sensor));
    }
}
