//! A job.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "JobKind")]
pub enum Kind {
    /// All of a volume is read and compared with its checksums.
    Verify,
    /// The same, and what is damaged is repaired.
    Scrub,
    /// Packets are put aside.
    Hold,
}

impl Kind {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Scrub, Self::Hold];

    /// As requests name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Scrub => "scrub",
            Self::Hold => "hold",
        }
    }
}

/// How a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "JobState")]
pub enum State {
    /// It waits for its turn.
    Waiting,
    /// It is being done.
    Running,
    /// It is done; what it found is its result.
    Done,
    /// It could not be done.
    Failed,
    /// It was ended early, by somebody or with the service.
    Cancelled,
}

impl State {
    /// Nothing changes any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// A job, and how it stands.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Job {
    /// Of this job.
    pub id: String,
    /// What it does.
    pub kind: Kind,
    /// Name of the volume.
    pub volume: String,
    /// Of a hold: which sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Who started it.
    pub by: String,
    /// How it stands.
    pub state: State,
    /// When it was started.
    pub made_ns: i64,
    /// When its turn came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun_ns: Option<i64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<i64>,
    /// So much is done: bytes that were read, or packets that were put aside.
    pub done: u64,
    /// Of so much, where that is known before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Of a job that is done: nothing is damaged, or missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_clean: Option<bool>,
    /// Of a job that is done: what the verb prints with `--json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub result: Option<Value>,
    /// Of one that failed or was cancelled: why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Job {
    /// One that waits for its turn.
    pub fn new(id: String, (kind, volume): (Kind, &str), by: &str, made_ns: i64) -> Self {
        Self {
            id,
            kind,
            volume: volume.to_owned(),
            query: None,
            by: by.to_owned(),
            state: State::Waiting,
            made_ns,
            begun_ns: None,
            ended_ns: None,
            done: 0,
            of: None,
            is_clean: None,
            result: None,
            reason: None,
        }
    }
}

/// Jobs of a service.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Jobs")]
pub struct JobList {
    /// The newest first, without their results.
    pub jobs: Vec<Job>,
}
