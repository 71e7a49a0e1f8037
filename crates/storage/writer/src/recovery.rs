//! What a mount says of the ring that it opened.

use format::directory::{Gap, GapCause};
use serde::Serialize;
use units::{Epoch, Timestamp};
use volume::MemberFailure;

/// What a mount found and did. The report of a recording has some of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Recovery {
    /// The last writer stopped in order.
    #[serde(rename = "recovered_clean")]
    pub clean: bool,
    /// Whole stripes above the watermark that were kept.
    #[serde(rename = "recovered_kept")]
    pub kept: u64,
    /// Of those, stripes of which some piece was computed from the others and written.
    #[serde(skip)]
    pub completed: u64,
    /// Slots closed because what followed was not whole.
    #[serde(rename = "recovered_voided")]
    pub voided: u64,
    /// Acknowledged stripes of which some row cannot be had, as far as a mount looks; left as they
    /// are.
    #[serde(skip)]
    pub damaged: u64,
    /// The newest sign of life before this mount; `None` on a new volume.
    #[serde(skip)]
    pub last_alive: Option<Timestamp>,
    /// Epoch of the newest head that was judged, and its time since boot.
    #[serde(skip)]
    pub last_boottime: Option<(Epoch, i64)>,
    /// Every slot was read, because the search contradicted itself.
    #[serde(skip)]
    pub scanned_all: bool,
    /// Members that failed while mounting and were left out.
    #[serde(skip)]
    pub failed: Vec<MemberFailure>,
}

impl Recovery {
    /// What a writer that did not stop in order may have lost: everything between its last sign of
    /// life and now.
    pub fn gap(&self, now: Timestamp) -> Option<Gap> {
        let from = self.last_alive.filter(|_| !self.clean)?;
        let cause = GapCause::Crash;
        Some(Gap { cause, interface: None, packets: None, bytes: None, from, to: now.max(from) })
    }
}
