//! One run: what is run, how, and what was recorded with it. Fields are keys in JSON, in this
//! order.

use core::time::Duration;
use std::collections::BTreeMap;

use host::Taken;
use serde::{Deserialize, Serialize, Serializer};
use statistics::Cell;

/// Something that is run again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    /// What its runs give.
    pub unit: Unit,
    /// What makes it differ from others, where something was filled in.
    pub parameters: Vec<Parameter>,
}

/// Something that was filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Value of the parameter.
    pub value: String,
}

/// What a run gives; in files, what values are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unit {
    /// A time: less is better. In files, seconds.
    #[serde(rename = "s")]
    Nanoseconds,
    /// A rate of bytes: more is better.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Things a second: more is better.
    #[serde(rename = "1/s")]
    PerSecond,
}

impl Unit {
    /// Whether a larger value is the better one.
    pub fn more_is_better(self) -> bool {
        !matches!(self, Self::Nanoseconds)
    }

    /// What turns values into those of files.
    pub fn scale(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e-9,
            Self::BytesPerSecond | Self::PerSecond => 1.0,
        }
    }
}

/// Something that was recorded with a run, and may explain it.
#[derive(Clone, PartialEq, Debug)]
pub struct Fact {
    /// What it is called.
    pub name: String,
    /// What it was; `None` where that is not known.
    pub value: Option<Cell>,
}

/// How a run is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The place of the subject.
    pub subject: usize,
    /// Whether the run counts.
    pub counts: bool,
    /// The processor that it stays on.
    pub cpu: Option<usize>,
    /// Bytes that are added to its environment.
    pub padding_bytes: usize,
}

/// What a run gave.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Ran {
    /// In the unit of its subject.
    #[serde(skip)]
    pub value: f64,
    /// Of a program, what it used.
    #[serde(
        rename = "used",
        serialize_with = "serialize_used",
        skip_serializing_if = "Option::is_none"
    )]
    pub taken: Option<Taken>,
    /// What was recorded, with the same names each time.
    #[serde(serialize_with = "serialize_facts", skip_serializing_if = "has_no_known")]
    pub facts: Vec<Fact>,
}

/// Of what a program took, what is not beside the runs of its subject already.
#[expect(clippy::ref_option, reason = "serde hands over references")]
fn serialize_used<S: Serializer>(taken: &Option<Taken>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Used {
        user_ns: u64,
        system_ns: u64,
        major_faults: u64,
        minor_faults: u64,
        blocks_in: u64,
        blocks_out: u64,
        waits: u64,
        preemptions: u64,
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let used = taken.map(|taken| Used {
        user_ns: nanos(taken.cpu.user),
        system_ns: nanos(taken.cpu.system),
        major_faults: taken.major_faults,
        minor_faults: taken.minor_faults,
        blocks_in: taken.blocks_in,
        blocks_out: taken.blocks_out,
        waits: taken.waits,
        preemptions: taken.preemptions,
    });
    used.serialize(to)
}

fn known(facts: &[Fact]) -> impl Iterator<Item = (&str, &Cell)> {
    facts.iter().filter_map(|fact| Some((fact.name.as_str(), fact.value.as_ref()?)))
}

fn has_no_known(facts: &[Fact]) -> bool {
    known(facts).next().is_none()
}

/// Values of those that are known, by name.
fn serialize_facts<S: Serializer>(facts: &[Fact], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(known(facts).collect::<BTreeMap<_, _>>())
}

/// Runs subjects: programs, the machine, or made-up ones.
pub trait Runner {
    /// Why a run failed.
    type Error;

    /// Runs one of them once. `None` where it was stopped meanwhile.
    fn run(&mut self, setting: Setting) -> Result<Option<Ran>, Self::Error>;
}

/// A run that counts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// Number of the round, from 0.
    #[serde(skip)]
    pub round: u32,
    /// Its turn within the round, from 0 on.
    pub turn: u32,
    /// When it began, since the first round did.
    pub begin_ns: u64,
    /// Result of the run.
    #[serde(flatten)]
    pub ran: Ran,
}
