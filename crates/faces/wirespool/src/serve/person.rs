//! `wirespool serve person`: accounts from the command line, also where nobody can log in.

use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use server::Order;

use crate::failure::{Outcome, Usage, Verdict};
use crate::stdout;

/// More than a password may have.
const LINE_BYTES_MAX: u64 = 4096;

/// People who log in at the page.
///
/// `add`, `remove`, `role`, `disable` (sessions end, too), `enable`, `password`,
/// `reset-second-factor` for who has lost it, and `list`. A running service notices within a
/// second. Without `--stdin` a password is made, printed once, and changed at the next login.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool serve person add anna --role administrator --people-file /data/people
  wirespool serve person password anna --people-file /data/people
  wirespool serve person reset-second-factor anna --people-file /data/people
  wirespool serve person list --people-file /data/people")]
pub(super) struct PersonFlags {
    /// What to do
    #[arg(value_parser = PossibleValuesParser::new(Order::WORDS), value_name = "ORDER")]
    order: String,
    /// Name of the person; list needs none
    name: Option<String>,
    /// Of add and role: administrator, analyst, viewer, or one of `serve --role`
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Of add and password: take the password from the first line of standard input
    #[arg(long)]
    stdin: bool,
    /// The file of people
    #[arg(long, value_name = "FILE")]
    people_file: PathBuf,
}

pub(super) fn run(flags: &PersonFlags) -> Outcome {
    let password = flags.stdin.then(first_line).transpose()?;
    let name = flags.name.as_deref().unwrap_or_default();
    let order = Order::of(&flags.order, flags.role.as_deref()).map_err(|it| Usage(it.into()))?;
    let done = server::manage_people(&flags.people_file, (name, &order, password.as_deref()));
    stdout::print(&done.map_err(|error| refused(error.into(), name))?)?;
    Ok(Verdict::Clean)
}

fn first_line() -> anyhow::Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line);
    read.context("cannot read standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// What was asked for this name cannot be done.
pub(super) fn refused(error: server::Error, name: &str) -> anyhow::Error {
    if error.is_usage() {
        return Usage(format!("{}: {error}", page::safe::printable(name))).into();
    }
    error.into()
}
