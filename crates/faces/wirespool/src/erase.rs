//! `wirespool erase`.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;
use host::{StopFlag, SystemClock};
use upkeep::{Erasing, Target};

use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::{arguments, stdout};

/// Erase what is older than the maximum age.
///
/// Overwrites the slots of expired packets with zeros on every member, their index included, and
/// removes the index files that hold copies. First the volume notes that nothing of it is given out
/// any more, durably. Slots go in the order of the ring, each when the newest packet in it has
/// expired. A recorder with --erase does this by itself; here it is for a volume that nobody
/// records into. Ctrl-C stops in order, and the next run goes on there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool erase /data/spool                 what is older than the volume's maximum age
  wirespool erase /data/spool --max-age 7d    what is older than a week

Exit code 1 when it was stopped.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Give up a member for ever, by number: it is not waited for, its seat is empty from then on,
    /// and it is refused should it come back; replace puts a new device into the seat
    #[arg(long, value_name = "NUMBER")]
    without: Vec<u8>,
    /// Erase what is older than this now; the volume's own maximum age stays as it is
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    max_age: Option<Duration>,
    /// The clock is right, although neither what was recorded last nor the time since boot explains
    /// how late it is
    #[arg(long)]
    clock_is_right: bool,
    /// Where index files are cached
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    let Flags { volume, members, without, max_age, clock_is_right, index_dir, json } = flags;
    let target = Target { volume, members, without };
    let erasing = Erasing { target, max_age, clock_is_right, index_dir };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("erase");
    let erased = upkeep::erase(&erasing, &SystemClock, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let erased = erased?;
    stdout::print(&if json {
        volume_view::erased_json(&erased)
    } else {
        volume_view::erased(&erased)
    })?;
    Ok(Verdict::clean_if(!erased.is_stopped))
}
