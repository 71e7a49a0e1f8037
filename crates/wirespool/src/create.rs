//! `wirespool create`.

use core::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use host::{StopFlag, SystemClock};
use upkeep::CreateOptions;

use crate::arguments;
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::stdout;

/// Make a volume out of a new file or a disk.
///
/// A file is written from end to end, so that recording never waits for the file system to find
/// space; a disk takes seconds whatever its size. Nothing is destroyed by mistake: a target that is
/// mounted, in use, or holds a file system, a partition table or another volume is refused, and the
/// message says what was found.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool create /data/spool --size 100G     a file, written completely
  wirespool create /dev/sdb                    a whole disk, with a partition table
  wirespool create /tmp/try --size 1G --sparse at once, for trying things out
  wirespool create /dev/sdb --member /dev/sdc --member /dev/sdd --member /dev/sde --parity 2
                                               four disks, of which any two may be lost")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// A new file, or a block device
    volume: PathBuf,
    /// A further member: a file or a block device of its own; may be given several times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// How many members may be lost: 0, 1 or 2 of them hold parity, in turn
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    parity: u8,
    /// Size of each file, such as 8G; a block device is used whole
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    size: Option<u64>,
    /// Do not write the file: made at once, but the first lap is slower and may find the disk full
    #[arg(long)]
    sparse: bool,
    /// Bytes of a piece, the unit of writing
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = piece)]
    piece: u32,
    /// Use a whole disk without a partition table; other tools will then show it as empty
    #[arg(long)]
    raw: bool,
    /// Destroy what a refusal names: a volume, or what another program left
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// A power of two from 16K to 2M.
fn piece(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(arguments::size(text)?).unwrap_or(u32::MAX);
    let is_valid = bytes.is_power_of_two() && (16 << 10..=2 << 20).contains(&bytes);
    is_valid.then_some(bytes).ok_or_else(|| "a power of two from 16K to 2M".to_owned())
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let options = CreateOptions {
        members: [std::slice::from_ref(&flags.volume), &flags.members].concat(),
        parity_columns: flags.parity,
        size_bytes: flags.size,
        piece_bytes: flags.piece,
        sparse: flags.sparse,
        raw: flags.raw,
        force: flags.force,
    };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("create");
    let created = upkeep::create(&options, &SystemClock, &mut |done, total| {
        progress.bytes(done, total);
        if stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.finish();
    let created = created?;
    let text = if flags.json { view::created_json(&created) } else { view::created(&created) };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}
