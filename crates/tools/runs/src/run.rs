//! One run: what is run, how, and what was recorded with it.

use host::Taken;
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

/// What a run gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A time: less is better.
    Nanoseconds,
    /// A rate of bytes: more is better.
    BytesPerSecond,
    /// Things a second: more is better.
    PerSecond,
}

impl Unit {
    /// Whether a larger value is the better one.
    pub fn more_is_better(self) -> bool {
        !matches!(self, Self::Nanoseconds)
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
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ran {
    /// In the unit of its subject.
    pub value: f64,
    /// Of a program, what it used.
    pub taken: Option<Taken>,
    /// What was recorded, with the same names each time.
    pub facts: Vec<Fact>,
}

/// Runs subjects: programs, the machine, or made-up ones.
pub trait Runner {
    /// Why a run failed.
    type Error;

    /// Runs one of them once. `None` where it was stopped meanwhile.
    fn run(&mut self, setting: Setting) -> Result<Option<Ran>, Self::Error>;
}

/// A run that counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Number of the round, from 0.
    pub round: u32,
    /// Its turn within the round, from 0 on.
    pub turn: u32,
    /// When it began, since the first round did.
    pub begin_ns: u64,
    /// Result of the run.
    pub ran: Ran,
}
