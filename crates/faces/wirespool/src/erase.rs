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
/// removes the index files that hold copies. First it notes in the volume, durably, that expired
/// packets are not given out any more. It erases slots in the order of the ring, each when its
/// newest packet has expired. A recorder with --erase does this by itself; this command is for a
/// volume without a running recorder. Ctrl-C stops in order, and the next run goes on there.
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
    /// Give up a member for ever, by number: the command does not wait for it, its seat stays
    /// empty, and a member that comes back is refused; replace puts a new device into the seat
    #[arg(long, value_name = "NUMBER")]
    without: Vec<u8>,
    /// Erase what is older than this now; the volume's own maximum age stays as it is
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    max_age: Option<Duration>,
    /// State that the clock is right, although neither the last recording nor the time since boot
    /// explains it
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
