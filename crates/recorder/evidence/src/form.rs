//! Hashes and times as JSON has them.

use serde::Serializer;
use serde::ser::SerializeMap as _;
use units::Timestamp;

/// Bytes as hex digits.
pub mod hex_digits {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<const N: usize, S: Serializer>(
        bytes: &[u8; N],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&units::hex(bytes))
    }

    /// Reads so many.
    ///
    /// # Errors
    /// When it is another text.
    pub fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
        from: D,
    ) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(from)?;
        let wrong = "it has a hash that is not hex digits, so many of them";
        units::unhex(&text).ok_or_else(|| D::Error::custom(wrong))
    }
}

/// Earliest and latest time; nothing where there is none.
pub(crate) fn hull<S: Serializer>(
    (from, to): &(Timestamp, Timestamp),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut hull = serializer.serialize_map(None)?;
    if from <= to {
        hull.serialize_entry("from_ns", &from.0)?;
        hull.serialize_entry("to_ns", &to.0)?;
    }
    hull.end()
}
