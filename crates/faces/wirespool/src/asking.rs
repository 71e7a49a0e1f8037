//! The verbs that ask for sessions and their packets.

#[cfg(not(feature = "sql"))]
use std::ffi::OsString;

use clap::Subcommand;
use tool_verbs::fields;

#[cfg(not(feature = "sql"))]
use crate::failure::Usage;
#[cfg(feature = "sql")]
use crate::sql;
use crate::{extract, find, fleet, tag};

use crate::failure::Outcome;

#[cfg(not(feature = "sql"))]
const NO_SQL: &str = "this build has no SQL; the packages have it, and \
                      `cargo build --release -p wirespool --features sql` builds it";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Find(Box<find::Flags>),
    #[cfg(feature = "sql")]
    Sql(Box<sql::Flags>),
    #[cfg(not(feature = "sql"))]
    #[command(hide = true, disable_help_flag = true)]
    Sql {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    Extract(Box<extract::Flags>),
    Fleet(Box<fleet::Flags>),
    Tag(Box<tag::Flags>),
    Fields(fields::Flags),
}

pub(crate) fn run(verb: &Verb) -> Outcome {
    match verb {
        Verb::Find(flags) => find::run(flags),
        #[cfg(feature = "sql")]
        Verb::Sql(flags) => sql::run(flags),
        #[cfg(not(feature = "sql"))]
        Verb::Sql { .. } => Err(Usage(NO_SQL.to_owned()).into()),
        Verb::Extract(flags) => extract::run(flags),
        Verb::Fleet(flags) => fleet::run(flags),
        Verb::Tag(flags) => tag::run(flags),
        Verb::Fields(flags) => fields::run(flags),
    }
}
