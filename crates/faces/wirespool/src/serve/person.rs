//! `wirespool serve person`: accounts from the command line, also where nobody can log in.

use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use server::{Order, Role, Roles};

use super::refused;
use crate::failure::{Outcome, Verdict};
use crate::stdout;

/// More than a password may have.
const LINE_BYTES_MAX: u64 = 4096;

/// People who log in at the page.
///
/// A running service notices within a second. Without `--stdin` a password is made, printed once,
/// and has to be changed at the next login.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  wirespool serve person add anna --role administrator --people-file /data/people
  wirespool serve person password anna --people-file /data/people
  wirespool serve person reset-second-factor anna --people-file /data/people
  wirespool serve person list --people-file /data/people")]
pub(super) enum PersonCommand {
    /// Add a person
    Add(AddFlags),
    /// List all, with roles and second factors
    List(FileFlags),
    /// Give a person another role
    Role(AddedFlags),
    /// Keep a person from logging in, and end their sessions
    Disable(OneFlags),
    /// Let a person log in again
    Enable(OneFlags),
    /// Give a person another password, and end their sessions
    Password(SecretFlags),
    /// Take the second factor away, for who has lost it
    ResetSecondFactor(OneFlags),
    /// Take an account out
    Remove(OneFlags),
}

#[derive(Debug, Args)]
pub(super) struct FileFlags {
    /// The file of people
    #[arg(long, value_name = "FILE")]
    people_file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct OneFlags {
    /// Name of the person
    name: String,
    #[command(flatten)]
    file: FileFlags,
}

#[derive(Debug, Args)]
pub(super) struct SecretFlags {
    #[command(flatten)]
    one: OneFlags,
    /// Take the password from the first line of standard input
    #[arg(long)]
    stdin: bool,
}

#[derive(Debug, Args)]
pub(super) struct AddedFlags {
    #[command(flatten)]
    one: OneFlags,
    /// administrator, analyst, viewer, or a role of the service
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// The roles of the service, as `serve --role` has them; may be given several times
    #[arg(long = "known", value_name = "NAME=SCOPES[ FILTER]")]
    known: Vec<Role>,
}

#[derive(Debug, Args)]
pub(super) struct AddFlags {
    #[command(flatten)]
    added: AddedFlags,
    /// Take the password from the first line of standard input
    #[arg(long)]
    stdin: bool,
}

pub(super) fn run(command: &PersonCommand) -> Outcome {
    use PersonCommand as Asked;
    match command {
        Asked::List(flags) => manage(flags, ("", &Order::List, None), &[]),
        Asked::Add(AddFlags { added, stdin }) => {
            let order = Order::Add(added.role.clone());
            manage(&added.one.file, (&added.one.name, &order, given(*stdin)?), &added.known)
        }
        Asked::Role(AddedFlags { one, role, known }) => {
            manage(&one.file, (&one.name, &Order::Role(role.clone()), None), known)
        }
        Asked::Password(SecretFlags { one, stdin }) => {
            manage(&one.file, (&one.name, &Order::Password, given(*stdin)?), &[])
        }
        Asked::Disable(one) => manage(&one.file, (&one.name, &Order::Disable, None), &[]),
        Asked::Enable(one) => manage(&one.file, (&one.name, &Order::Enable, None), &[]),
        Asked::ResetSecondFactor(one) => {
            manage(&one.file, (&one.name, &Order::ResetSecondFactor, None), &[])
        }
        Asked::Remove(one) => manage(&one.file, (&one.name, &Order::Remove, None), &[]),
    }
}

/// The first line of standard input, where it is wanted.
fn given(is_wanted: bool) -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    if !is_wanted {
        return Ok(None);
    }
    let read = std::io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line);
    read.context("cannot read standard input")?;
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn manage(
    file: &FileFlags,
    (name, order, password): (&str, &Order, Option<String>),
    known: &[Role],
) -> Outcome {
    let asked = (name, order, password.as_deref());
    let done = server::manage_people(&file.people_file, &Roles::new(known), asked);
    stdout::print(&done.map_err(|error| refused(error, name))?)?;
    Ok(Verdict::Clean)
}
