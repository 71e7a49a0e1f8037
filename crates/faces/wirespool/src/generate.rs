//! `wirespool completions`, and what packages are made of.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::{Outcome, Verdict};
use crate::{serve, stdout};

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
    /// The keys of a configuration file, as docs/config.md has them
    Config,
    /// A completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Of the program's command line.
pub(crate) fn run(flags: &Flags, program: Command) -> Outcome {
    match &flags.what {
        What::Man { directory } => pages(directory, program)?,
        What::Config => stdout::print(&serve::reference())?,
        What::Completions { shell } => return completions(*shell, program),
    }
    Ok(Verdict::Clean)
}

/// A page for the program and one for each verb that is not hidden.
fn pages(directory: &Path, program: Command) -> anyhow::Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    for command in verbs.chain([program.clone()]) {
        let page = Man::new(command);
        let mut text = Vec::new();
        page.render(&mut text)?;
        // Examples and exit codes keep their lines: man(7) fills text otherwise.
        let text = String::from_utf8(text).context("a manual page is text")?;
        let text = text.replace("\n.SH EXTRA\n", "\n.SH EXAMPLES\n.nf\n");
        let text = text.replace("\n.SH VERSION\n", "\n.fi\n.SH VERSION\n");
        host::write_file(&directory.join(page.get_filename()), text.as_bytes())?;
    }
    Ok(())
}

pub(crate) fn completions(shell: Shell, mut program: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "wirespool", &mut script);
    let mut out = stdout::bytes();
    out.write_all(&script).and_then(|()| out.flush()).map_err(|error| stdout::named(&error))?;
    Ok(Verdict::Clean)
}
