//! The clock that packets of an answer have their times from, as recorders knew it.

use serde::Serialize;
use units::{Epoch, Timestamp};

use crate::form;

/// Where packets have their times from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimesBy {
    /// The recorder's kernel, when it took them from the driver.
    Kernel,
    /// The clock of an adapter, of which nothing is known; the kernel for packets that the adapter
    /// did not stamp.
    Adapter,
    /// Of some interfaces the kernel, of others their adapters.
    #[serde(rename = "kernel and adapters")]
    Both,
    /// Files that were read: whoever wrote them.
    Files,
    /// Heads do not say it: they are of a recorder that did not know how.
    #[serde(rename = "unknown")]
    Unsaid,
}

/// What recorders said of the clock in the heads of some pieces: those of one opening of the
/// volume, with times from the same clock, which was synchronised for all of them or for none.
/// Fields are keys in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ClockUse {
    /// Number of the opening.
    pub epoch: Epoch,
    /// Where packets have their times from.
    pub times_by: TimesBy,
    /// Whether the kernel called its clock synchronised; `None` where it said nothing.
    #[serde(rename = "synchronised", skip_serializing_if = "Option::is_none")]
    pub is_synchronised: Option<bool>,
    /// Pieces.
    pub pieces: u64,
    /// Earliest and latest packet in their stripes; without packets the later one is first.
    #[serde(flatten, serialize_with = "form::hull")]
    pub times: (Timestamp, Timestamp),
    /// The largest error that the kernel estimated for its clock, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_error_us: Option<u64>,
    /// The largest error that it gave as possible, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_error_us: Option<u64>,
    /// How often its clock was set; `None` where the recorder did not take packets itself, and so
    /// has not looked.
    #[serde(flatten)]
    pub set: Option<ClockSteps>,
}

/// How often a recorder had seen its clock being set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ClockSteps {
    /// Up to the last of the pieces.
    pub steps: u16,
    /// Of these after the first of the pieces.
    pub steps_between: u16,
}
