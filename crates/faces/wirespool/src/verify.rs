//! `wirespool verify`.

use std::path::PathBuf;

use clap::Args;
use host::StopFlag;

use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::stdout;

/// Read a whole volume and check every byte.
///
/// Every acknowledged stripe is read and compared with its checksums, and every index is joined and
/// decoded. Damage is listed by stripe and byte offset; nothing is repaired or written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify /data/spool
  wirespool verify /dev/sdb1 --json

Exit code 1 when damage was found.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("verify");
    let report = upkeep::verify(&flags.volume, &flags.members, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let report = report?;
    let text = if flags.json {
        volume_view::verification_json(&report)
    } else {
        volume_view::verification(&report)
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean() && report.is_complete))
}
