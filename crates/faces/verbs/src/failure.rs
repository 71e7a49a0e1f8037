//! From errors to one line on standard error and an exit code.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use ::completeness::State;

use crate::progress::{say, say_lines};

/// Done, with a negative verdict.
pub const NEGATIVE: u8 = 1;
/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// The environment, or refused for safety.
const ENVIRONMENT: u8 = 3;
/// Data too damaged.
const DAMAGED: u8 = 4;

/// Done, and there is no saying.
pub const UNKNOWN: u8 = 5;

/// What a job that was done says of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All is well.
    Clean,
    /// Something is missing, damaged or wrong.
    Negative,
    /// Nothing was found that speaks against it, and too little for it.
    Unknown,
    /// Done; a program that was run for the user ended with this exit code, as a shell reports it.
    Program(i32),
}

impl Verdict {
    /// Clean, or negative.
    pub fn clean_if(is_clean: bool) -> Self {
        if is_clean { Self::Clean } else { Self::Negative }
    }

    /// Of an answer.
    pub fn of(state: State) -> Self {
        match state {
            State::Complete => Self::Clean,
            State::Incomplete => Self::Negative,
            State::Unknown => Self::Unknown,
        }
    }
}

/// Something was said by [`warn`].
static IS_WARNED: AtomicBool = AtomicBool::new(false);

/// Tells what is wrong beside that which was asked for: what is done is no clean verdict then.
pub fn warn(text: &str) {
    say(text);
    IS_WARNED.store(true, Ordering::Relaxed);
}

impl Verdict {
    /// The verdict of a verb, with what was warned of.
    #[must_use]
    pub fn with_warnings(self) -> Self {
        let is_negative = self == Self::Clean && IS_WARNED.load(Ordering::Relaxed);
        if is_negative { Self::Negative } else { self }
    }
}

/// What every verb returns.
pub type Outcome = anyhow::Result<Verdict>;

/// Flags that make no sense together, or a value that is none.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Usage {}

/// A query that is none, with lines that show where.
#[derive(Debug)]
pub struct WrongQuery(pub String);

impl fmt::Display for WrongQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for WrongQuery {}

/// Several things that are wrong with one file, a line for each.
#[derive(Debug)]
pub struct Faults(pub String);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Faults {}

/// Prints the error and its causes in one line, a wrong query with a line that shows where, each of
/// several faults in its own, and gives its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let (code, text) = (code(error), format!("wirespool: {}", line(error)));
    if error.chain().any(|cause| cause.is::<WrongQuery>() || cause.is::<Faults>()) {
        say_lines(&text);
    } else {
        say(&text);
    }
    ExitCode::from(code)
}

/// The causes joined, those that only repeat the one before left out.
pub fn line(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text.is_empty() {
            true => cause,
            false if text.ends_with(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let root = error.root_cause().downcast_ref::<io::Error>();
    root.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> u8 {
    let is_usage = |cause: &(dyn core::error::Error + 'static)| {
        cause.is::<Usage>() || cause.is::<WrongQuery>() || cause.is::<Faults>()
    };
    if error.chain().any(is_usage) {
        return USAGE;
    }
    if matches!(error.downcast_ref(), Some(::qualify::Error::Words(_))) || is_wrong_filter(error) {
        return USAGE;
    }
    let is_damage = match error.downcast_ref() {
        Some(upkeep::Error::Volume { source, .. }) => is_damaged(source),
        _ if matches!(
            error.downcast_ref(),
            Some(::archive::Error::Damaged { .. } | ::archive::Error::PutBack { .. })
        ) =>
        {
            true
        }
        _ if is_damage_there(error) => true,
        _ if matches!(error.downcast_ref(), Some(::raw::Error::CutOff(_) | ::raw::Error::Hash)) => {
            true
        }
        _ => match error.downcast_ref() {
            Some(::extract::Error::Index(_)) => true,
            Some(::extract::Error::Volume(source)) => is_damaged(source),
            _ => false,
        },
    };
    if is_damage { DAMAGED } else { ENVIRONMENT }
}

/// A filter that libpcap does not understand, or not in time.
fn is_wrong_filter(error: &anyhow::Error) -> bool {
    use ::filters::Error::{TooSlow, Wrong};
    let capture = match error.downcast_ref() {
        Some(::record::Error::Capture(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    let filter = match capture {
        Some(::capture::Error::Filter(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    matches!(filter, Some(Wrong { .. } | TooSlow { .. }))
}

/// A service says that its volume is too damaged.
fn is_damage_there(error: &anyhow::Error) -> bool {
    let error: Option<&::remote::Error> = error.downcast_ref();
    error.and_then(::remote::Error::problem).is_some_and(|problem| problem.word() == "damaged")
}

fn is_damaged(error: &volume::Error) -> bool {
    matches!(
        error,
        volume::Error::NoSuperblock(_)
            | volume::Error::NothingFound
            | volume::Error::Shrunk { .. }
            | volume::Error::Damaged(_)
            | volume::Error::Inconsistent { .. }
    )
}

/// An error of the recorder, with the volume it concerns.
pub fn of_record(path: &Path, error: ::record::Error) -> anyhow::Error {
    match error {
        ::record::Error::Volume(source) => upkeep::Error::of_volume(path, source).into(),
        error => error.into(),
    }
}

/// An error of who puts packets aside, with the volume they are of.
pub fn of_hold(path: &Path, error: ::hold::Error) -> anyhow::Error {
    match error {
        ::hold::Error::Extract(source) => of_extract(path, source),
        error => error.into(),
    }
}

/// An error of a statement: what was given may be wrong, or a volume.
pub fn of_attest(error: attest::Error) -> anyhow::Error {
    match error {
        attest::Error::Upkeep(source) => source.into(),
        error if error.is_usage() => Usage(error.to_string()).into(),
        error => error.into(),
    }
}

/// An error of a reader, with the volume it concerns.
pub fn of_extract(path: &Path, error: ::extract::Error) -> anyhow::Error {
    match error {
        ::extract::Error::Volume(source) => upkeep::Error::of_volume(path, source).into(),
        error => error.into(),
    }
}
