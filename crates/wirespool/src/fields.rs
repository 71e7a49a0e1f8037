//! `wirespool fields`.

use clap::Args;

use crate::failure::{Outcome, Verdict};
use crate::stdout;

/// List the fields that queries can ask for.
///
/// The same names are used in queries, in JSON and CSV, and in the Parquet files of the index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fields
  wirespool fields | grep dns")]
pub(crate) struct Flags {}

pub(crate) fn run(_: &Flags) -> Outcome {
    let line = |field: &query::Field| {
        let also = match field.aliases {
            [] => String::new(),
            aliases => format!(" (also {})", aliases.join(", ")),
        };
        format!("{:<26}  {:<9}  {}{also}\n", field.name, field.kind, field.meaning)
    };
    stdout::print(&query::FIELDS.iter().map(line).collect::<Vec<_>>().concat())?;
    Ok(Verdict::Clean)
}
