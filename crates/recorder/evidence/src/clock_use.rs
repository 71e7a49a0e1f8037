//! The clock that packets of an answer have their times from, as recorders knew it.

use units::Timestamp;

/// Where packets have their times from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimesBy {
    /// The recorder's kernel, when it took them from the driver.
    Kernel,
    /// The clock of an adapter, of which nothing is known; the kernel for packets that the adapter
    /// did not stamp.
    Adapter,
    /// Of some interfaces the kernel, of others their adapters.
    Both,
    /// Files that were read: whoever wrote them.
    Files,
    /// Heads do not say it: they are of a recorder that did not know how.
    Unsaid,
}

impl TimesBy {
    /// As manifests say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Adapter => "adapter",
            Self::Both => "kernel and adapters",
            Self::Files => "files",
            Self::Unsaid => "unknown",
        }
    }
}

/// What recorders said of the clock in the heads of some pieces: those of one opening of the
/// volume, with times from the same clock, which was synchronised for all of them or for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockUse {
    /// Number of the opening.
    pub epoch: u32,
    /// Where packets have their times from.
    pub times_by: TimesBy,
    /// Whether the kernel called its clock synchronised; `None` where it said nothing.
    pub is_synchronised: Option<bool>,
    /// Pieces.
    pub pieces: u64,
    /// Earliest packet in their stripes.
    pub from: Timestamp,
    /// Latest packet there.
    pub to: Timestamp,
    /// The largest error that the kernel estimated for its clock, us.
    pub estimated_error_us: Option<u64>,
    /// The largest error that it gave as possible, us.
    pub largest_error_us: Option<u64>,
    /// How often the recorder had seen its clock being set up to the last of the pieces ...
    pub steps: u16,
    /// ... and how often after the first of them.
    pub steps_between: u16,
}
