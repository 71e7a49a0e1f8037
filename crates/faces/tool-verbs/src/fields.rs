//! `wirespool fields`.

use clap::Args;

use crate::failure::{Outcome, Verdict};
use crate::stdout;

/// List the fields that queries can ask for.
///
/// The same names are used in queries, in JSON and CSV, in SQL, and in the Parquet files of the
/// index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fields
  wirespool fields | grep dns
  wirespool fields --json | jq '.[] | select(.kind == \"size\")'")]
pub struct Flags {
    /// A JSON array of objects with name, aliases, kind and meaning
    #[arg(long)]
    json: bool,
}

/// Prints them.
pub fn run(flags: &Flags) -> Outcome {
    let fields = &*query::FIELDS;
    stdout::print(&if flags.json {
        session_view::fields_json(fields)
    } else {
        session_view::fields(fields)
    })?;
    Ok(Verdict::Clean)
}
