//! What clap says of flags, for where they stand in a file.

use clap::error::{ContextKind, ErrorKind};

/// What is wrong with a value; nothing where something else is.
pub(super) fn why_of_value(error: &clap::Error) -> Option<String> {
    let words = |kind| error.get(kind).map(ToString::to_string);
    let why = match error.kind() {
        ErrorKind::ValueValidation => core::error::Error::source(error)?.to_string(),
        ErrorKind::InvalidValue => format!("one of {}", words(ContextKind::ValidValue)?),
        _ => return None,
    };
    let value = words(ContextKind::InvalidValue).unwrap_or_default();
    Some(format!("{value:?} is not right: {why}"))
}

/// The first part of what clap says.
pub(super) fn why_of(error: &clap::Error) -> String {
    let error = error.to_string();
    let lines = error.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let why = lines.join(" ");
    why.strip_prefix("error: ").unwrap_or(&why).to_owned()
}
