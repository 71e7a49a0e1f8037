//! `wirespool inspect`.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Outcome, Verdict};
use crate::stdout;

/// Show what a volume holds, without writing to it.
///
/// Shape, time range, recordings by name with what the ring has left of them, index, how far back
/// the ring reaches, and whether the last recorder stopped in order. Takes no lock and never
/// writes, so it may run beside a recorder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool inspect /data/spool
  wirespool inspect /dev/sdb1 --json | jq .recordings")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// Another member, where it is not found by itself; may be given several times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let report = upkeep::inspect(&flags.volume, &flags.members)?;
    let text = if flags.json {
        view::inspection_json(&report)
    } else {
        view::inspection(&report, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}
