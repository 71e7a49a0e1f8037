//! `wirespool scrub` and `wirespool verify`, which read all of a volume.

use std::path::PathBuf;

use clap::Args;
use host::{StopFlag, SystemClock};

use crate::evidence::{self, AgainstFlags};
use crate::failure::{Outcome, Usage, Verdict};
use crate::members::VolumeFlags;
use crate::progress::Progress;
use crate::stdout;

/// Check a whole volume and repair from parity what is damaged.
///
/// Reads all members from the medium, several slots ahead on each, and compares heads, rows, parity
/// and superblock copies with their checksums and with each other. A damaged row, head or copy is
/// computed from the other members, written, flushed and read back. A member that lost all its
/// superblock copies is known by its heads, and gets them from the others. No keys are needed, and
/// nothing is decoded. No recorder may run on the volume meanwhile: --dry-run only reads, beside a
/// recorder, too, and a recorder scrubs by itself with --scrub-every. Ctrl-C stops between two
/// slots, and what was repaired stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool scrub /data/spool
  wirespool scrub /dev/sdb1 --dry-run --json

Exit code 0 when nothing is damaged any more, 1 when something could not be repaired, with
--dry-run when anything is damaged, and when it was stopped.")]
pub(crate) struct Flags {
    /// The volume: any of its members; one that lost its superblocks needs --member beside it
    volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Write nothing; may run beside a recorder
    #[arg(long)]
    dry_run: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("scrub");
    let report = upkeep::scrub(
        &flags.volume,
        &flags.members,
        flags.dry_run,
        &SystemClock,
        &mut |done, total| {
            progress.bytes(done, total);
            stop.flow()
        },
    );
    progress.finish();
    let report = report?;
    let text = if flags.json {
        volume_view::scrubbed_json(&report)
    } else {
        volume_view::scrubbed(&report)
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_sound && report.is_complete))
}

/// Read a whole volume and check every byte.
///
/// Every acknowledged stripe is read and compared with its checksums, and every index is joined and
/// decoded. Damage is listed by stripe and byte offset; nothing is repaired or written. With
/// --anchor or --witness the volume is compared with what was written down of it instead: whether
/// it was rolled back, cut off or rewritten since, which checksums of its own cannot tell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify /data/spool
  wirespool verify /dev/sdb1 --json
  wirespool verify /data/spool --anchor monday.anchor --public-key signing.key.pub

Exit code 1 when damage was found, or the volume is not the one that an anchor saw; 5 when nothing
is left of what an anchor saw, or some of it cannot be read.")]
pub(crate) struct VerifyFlags {
    #[command(flatten)]
    of: VolumeFlags,
    #[command(flatten)]
    against: AgainstFlags,
}

pub(crate) fn verify(flags: &VerifyFlags) -> Outcome {
    if !flags.against.anchors.is_empty() || flags.against.witness.is_some() {
        return evidence::verify_against(&flags.of, &flags.against);
    }
    if flags.against.trust.is_given() {
        let text = "--public-key and --tsa-ca are about an anchor: name it with --anchor";
        return Err(Usage(text.to_owned()).into());
    }
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("verify");
    let VolumeFlags { volume, members, json } = &flags.of;
    let report = upkeep::verify(volume, members, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let report = report?;
    let text = if *json {
        volume_view::verification_json(&report)
    } else {
        volume_view::verification(&report)
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean && report.is_complete))
}
