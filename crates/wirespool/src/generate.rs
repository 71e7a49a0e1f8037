//! `wirespool completions`, and what packages are made of.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;

use crate::failure::{Outcome, Verdict};
use crate::{Cli, stdout};

/// Print a completion script for a shell.
///
/// Packages install it already; this is for a binary that was copied by hand.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(wirespool completions bash)
  wirespool completions fish > ~/.config/fish/completions/wirespool.fish")]
pub(crate) struct CompletionsFlags {
    /// The shell
    pub(crate) shell: Shell,
}

/// Generate what a package contains
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Manual pages
    Man {
        /// A directory that exists
        directory: PathBuf,
    },
    /// A completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.what {
        What::Man { directory } => clap_mangen::generate_to(Cli::command(), directory)?,
        What::Completions { shell } => return completions(*shell),
    }
    Ok(Verdict::Clean)
}

pub(crate) fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wirespool", &mut script);
    let mut out = stdout::buffered();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Verdict::Clean)
}
