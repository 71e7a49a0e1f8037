//! One variant per rule: the model with that rule taken away.

use crate::model::Scenario;

/// A rule left out. Every one but `None` must make some run fail, or be `harmless`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    VoidBeatsData,
    NoEpochStripe,
    NoQuorum,
    VoidOverAcknowledged,
    NoVoid,
    NoFlushBeforeJudging,
    NoIdentity,
    NoEpochNumber,
    SequenceReused,
    AcknowledgeBeforeFlush,
    NoPlaceCheck,
    StaleMembersTrusted,
    NoWindowLimit,
    LaterSubAfterMissing,
    StaleSubAccepted,
    TrailerNotRewritten,
    WatermarkBySequence,
    UnreadableProbeTrusted,
    SuperblockAtOnce,
    VoidLeavesRest,
    JoinBeforeEpochFlush,
    ReaderTrustsUnjoined,
    TailWithoutWindow,
    NoRowScan,
    NoStartAsWatermark,
    VoidNotAcknowledged,
    NoFinalVoid,
    FirstRowsOnly,
    WindowInSlots,
}

/// A mutant, and where it is caught soonest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) mutant: Mutant,
    pub(crate) name: &'static str,
    /// K, P, slots, W.
    pub(crate) geometry: (usize, usize, usize, usize),
    pub(crate) scenario: Scenario,
    /// The search begins here: near a failure where failures are rare.
    pub(crate) seed: u64,
}

/// Each must be caught.
pub(crate) const MUTANTS: &[Entry] = &[
    Entry {
        mutant: Mutant::VoidBeatsData,
        name: "newer VOID beats whole data",
        geometry: (3, 2, 40, 3),
        scenario: Scenario::Honest,
        seed: 810,
    },
    Entry {
        mutant: Mutant::NoEpochStripe,
        name: "no EPOCH stripe",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoQuorum,
        name: "no quorum of fresh members",
        geometry: (1, 1, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::VoidOverAcknowledged,
        name: "VOID written over acknowledged",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Rot,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoVoid,
        name: "no VOID heads",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoFlushBeforeJudging,
        name: "no flush before judging",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoIdentity,
        name: "match by sequence only, no identity",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoEpochNumber,
        name: "epoch number not raised",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::SequenceReused,
        name: "sequence reused after the acknowledged one",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::AcknowledgeBeforeFlush,
        name: "acknowledge before flush",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoPlaceCheck,
        name: "no check of slot and row",
        geometry: (2, 1, 24, 3),
        scenario: Scenario::Faulty,
        seed: 50,
    },
    Entry {
        mutant: Mutant::NoWindowLimit,
        name: "no limit in flight",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::LaterSubAfterMissing,
        name: "later sub after a missing one is read",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::StaleSubAccepted,
        name: "stale sub of an older lap accepted",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::TrailerNotRewritten,
        name: "VOID trailer not rewritten when torn",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::WatermarkBySequence,
        name: "watermark compared by sequence only",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::UnreadableProbeTrusted,
        name: "bisection trusts one unreadable probe",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Rot,
        seed: 0,
    },
    Entry {
        mutant: Mutant::SuperblockAtOnce,
        name: "superblock copies written at once, no flush",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::VoidLeavesRest,
        name: "VOID of a mount leaves the rest of the slot",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Rot,
        seed: 0,
    },
    Entry {
        mutant: Mutant::JoinBeforeEpochFlush,
        name: "JOIN before the EPOCH stripe is flushed",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::ReaderTrustsUnjoined,
        name: "reader takes a watermark of an unjoined epoch",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::TailWithoutWindow,
        name: "reader's tail without the window",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoRowScan,
        name: "rows of an unreadable slot not searched",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Rot,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoStartAsWatermark,
        name: "start of the epoch not taken as watermark",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Rot,
        seed: 2_790,
    },
    Entry {
        mutant: Mutant::VoidNotAcknowledged,
        name: "closing VOID outside the order of acknowledgement",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::NoFinalVoid,
        name: "clean stop without the final VOID",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
    Entry {
        mutant: Mutant::FirstRowsOnly,
        name: "head by first rows only, epoch of later subs not checked",
        geometry: (1, 0, 34, 8),
        scenario: Scenario::Honest,
        seed: 8_105,
    },
];

/// Rules that no promise of the model needs; they bound time and memory.
pub(crate) const HARMLESS: &[Entry] = &[
    Entry {
        mutant: Mutant::StaleMembersTrusted,
        name: "stale members trusted",
        geometry: (3, 2, 40, 3),
        scenario: Scenario::Faulty,
        seed: 0,
    },
    Entry {
        mutant: Mutant::WindowInSlots,
        name: "W counted in slots only",
        geometry: (1, 0, 24, 3),
        scenario: Scenario::Honest,
        seed: 0,
    },
];
