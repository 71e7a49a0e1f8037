//! What a service says of itself and of its answers.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Who asks, and what there is.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct WhoAmI {
    /// The volumes that are served.
    pub volumes: Vec<Volume>,
    /// Version of the program.
    #[serde(default)]
    pub version: Option<String>,
    /// What time it has.
    #[serde(default)]
    pub now_ns: Option<i64>,
}

/// How the volumes stand.
#[derive(Debug, Deserialize)]
pub(crate) struct Volumes {
    pub(crate) volumes: Vec<Map<String, Value>>,
}

/// A volume of the service.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Volume {
    /// As the service names it.
    pub name: String,
    /// Its id.
    pub id: String,
}

/// What is known of an answer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Said {
    state: String,
    /// Sessions, packets or rows that were sent.
    pub count: Option<u64>,
    /// What is missing from it.
    pub statement: Option<Statement>,
    /// Where an answer of sessions goes on that was cut.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

impl Said {
    pub(crate) fn is_done(&self) -> bool {
        self.state == "done" && self.statement.is_some()
    }
}

/// What is missing from an answer.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Statement {
    /// `complete`, `incomplete` or `unknown`.
    pub state: String,
    /// The same where a limit that was asked for is no verdict.
    #[serde(default)]
    pub state_within_limit: Option<String>,
    /// The same in words.
    pub text: String,
    /// What the recorder did not do for it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Of an empty answer: which of the names asked for the volume does not know.
    #[serde(default)]
    pub hint: Option<String>,
    /// Sessions at the end of an order that did not fit into memory.
    #[serde(default)]
    pub left_out: Option<u64>,
    completeness: Missing,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
struct Missing {
    #[serde(default)]
    erased_through_ns: Option<i64>,
    #[serde(default)]
    not_known: Vec<Doubt>,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
struct Doubt {
    #[serde(default)]
    why: String,
}

/// The word for times that a recorder which runs has not reported yet.
const GOING: &str = "going";

impl Statement {
    /// Something was erased on purpose.
    pub fn is_erased(&self) -> bool {
        self.completeness.erased_through_ns.is_some()
    }

    /// Its recorder has not yet reported the newest packets.
    pub fn is_behind(&self) -> bool {
        self.completeness.not_known.iter().any(|doubt| doubt.why == GOING)
    }
}
