//! What a drive tells, by whichever way.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a drive tells.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Drive {
    /// In degrees Celsius.
    pub temperature_c: Option<i32>,
    /// Its health log.
    pub health: Option<Health>,
    /// Its link on the PCI bus, or that of its controller.
    pub link: Option<Link>,
    /// Turns a minute; 0 of one without platters.
    pub turns_per_min: Option<u32>,
    /// How it writes.
    pub recording: Option<Recording>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// The figures of a health log that tell of a drive's end. Of what a drive does not keep there is
/// none.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// The drive itself says that it fails, or may not be relied on.
    pub is_failing: bool,
    /// Of the life that its maker expects, in percent; may be above 100.
    pub used_percent: Option<u64>,
    /// Rows that were lost for good.
    pub media_errors: Option<u64>,
    /// Rows that were put elsewhere.
    pub reallocated: Option<u64>,
    /// Rows that wait for it.
    pub pending: Option<u64>,
    /// Since it was made.
    pub power_on_hours: Option<u64>,
    /// Bytes written to it since it was made.
    pub written_bytes: Option<u64>,
    /// Times that it lost its power without a warning.
    pub unsafe_shutdowns: Option<u64>,
}

/// A link of the PCI bus: what it runs at, and what the device could.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// As the kernel says it: `8.0 GT/s PCIe`.
    pub speed: String,
    /// The most of this device.
    pub speed_most: String,
    /// Lanes.
    pub width: u32,
    /// The most of this device.
    pub width_most: u32,
}

impl Link {
    /// The device could do more than its slot lets it.
    pub fn is_narrowed(&self) -> bool {
        self.width < self.width_most || self.speed != self.speed_most
    }
}

/// How the tracks of a drive with platters lie, as far as it tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recording {
    /// Shingled, and the drive hides it: it slows down without a warning.
    DriveManaged,
    /// Shingled, and it tells its zones; it takes random writes as well.
    HostAware,
    /// Shingled, and it refuses writes out of order.
    HostManaged,
    /// It does not say that it is shingled. Many that are do not.
    NotTold,
}

/// Something that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    /// What.
    pub what: String,
    /// Why, and what it would take.
    pub needs: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.needs)
    }
}
