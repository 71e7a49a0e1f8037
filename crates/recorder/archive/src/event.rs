//! What a run says while it goes on, and at its end.

use completeness::{Completeness, State};
use serde::Serialize;

/// How far the archive is behind the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Behind {
    /// Since when the oldest stripe that is not archived is there, in nanoseconds.
    pub lag_ns: i64,
    /// Slots of the ring that are not archived.
    pub lag_slots: u64,
    /// Slots of the ring: at so many it overwrites what is not archived.
    pub ring_slots: u64,
}

/// Something happened. Fields are keys in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Where it goes on.
    Begun {
        /// The volume.
        volume: String,
        /// Last stripe that was archived before, if any was.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind: Option<String>,
        /// Sessions that were open there.
        open_sessions: u64,
    },
    /// A part of the ring is archived.
    Archived {
        /// Its first stripe.
        first: String,
        /// Its last stripe.
        last: String,
        /// Sessions that are over.
        sessions: u64,
        /// Objects stored.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// Sessions that go on.
        open_sessions: u64,
        /// How far behind the archive is.
        #[serde(flatten)]
        behind: Behind,
    },
    /// Everything that is closed is archived; the recorder goes on.
    Waiting {
        /// How far behind the archive is.
        #[serde(flatten)]
        behind: Behind,
    },
    /// The ring has overwritten what was not archived.
    Overwritten {
        /// First stripe that is lost.
        first: String,
        /// Last one.
        last: String,
        /// Slots of the ring.
        slots: u64,
    },
    /// The store cannot be reached; it is tried again and again.
    Away {
        /// What it said.
        why: String,
        /// Since when, in nanoseconds.
        for_ns: i64,
    },
    /// The store is reached again.
    Back {
        /// How long it was away, in nanoseconds.
        after_ns: i64,
    },
    /// Something in the store is not as it was left.
    Remark {
        /// What, and what follows.
        text: String,
    },
}

/// What a run has archived. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// Parts of the ring.
    pub parts: u64,
    /// Sessions that are over.
    pub sessions: u64,
    /// Objects stored.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sessions that go on: they are archived when they are over.
    pub open_sessions: u64,
    /// Sessions given out before their end, because too many were open.
    pub cut_sessions: u64,
    /// Slots that were overwritten before they were archived.
    pub overwritten_slots: u64,
    /// What was known of sessions that were open is lost in the store.
    #[serde(skip)]
    pub has_lost_open: bool,
    /// How far behind the archive is.
    #[serde(flatten)]
    pub behind: Behind,
    /// It was stopped.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
    /// What is missing from what was archived.
    #[serde(skip)]
    pub completeness: Completeness,
    /// What can be said of all that is archived of the volume, by this run and those before.
    #[serde(skip)]
    pub archive_state: State,
}

/// So many gaps and damaged stripes are listed: a run may go on for years.
const LISTED_MAX: usize = 4096;

impl Report {
    /// Adds what a part lacks.
    pub(crate) fn add(&mut self, part: &Completeness) {
        let own = &self.completeness;
        if own.gaps.len() + own.damage.len() < LISTED_MAX {
            self.completeness.add(part);
            return;
        }
        // The state stays what it was: there are gaps or damage.
        let counts = Completeness { gaps: Vec::new(), damage: Vec::new(), ..part.clone() };
        self.completeness.add(&counts);
    }
}
