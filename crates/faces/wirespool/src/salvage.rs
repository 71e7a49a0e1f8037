//! `wirespool salvage`.

use core::ops::ControlFlow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use ::extract::{SalvageReport, Salvaging};
use ::packet_output::Target;
use ::record::{Input, Options};
use anyhow::Context;
use clap::Args;
use host::{StopFlag, SystemClock};
use units::ByteSize;

use crate::arguments::KeyFlags;
use crate::failure::{Outcome, Usage, Verdict, of_extract, of_record};
use crate::output_file;
use crate::progress::{Progress, say_lines};
use crate::stdout;

/// Write everything that is left of a volume.
///
/// For volumes without superblocks, and for volumes with fewer members left than hold data. Finds
/// volume, shape and member from the heads of the pieces, restores what parity can restore, and
/// reads each surviving piece alone. Lists what is lost, stripe by stripe, with its number of
/// packets. Only reads the members, and takes no lock. A volume that opens needs no salvage:
/// extract reads it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool salvage /dev/sdb1 /dev/sdc1 /dev/sdd1 -w all.pcapng
  wirespool create /data/new --size 100G
  wirespool salvage /dev/sdb1 /dev/sdc1 --into /data/new

A member that fails or hangs when it is opened is left out.

Exit code 1 when something is lost or a member was left out, 4 when nothing of a volume was
found.")]
pub(crate) struct Flags {
    /// The members that are left, in any order
    #[arg(required = true, value_name = "VOLUME-MEMBER")]
    members: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    keys: KeyFlags,
    /// Replace an existing file
    #[arg(long, requires = "write")]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TargetFlags {
    /// Write the packets to this file as pcapng, or to standard output (-)
    #[arg(long, short, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Record them into this volume, which create has made
    #[arg(long, value_name = "VOLUME")]
    into: Option<PathBuf>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let is_stdout = flags.target.write.as_deref() == Some(Path::new("-"));
    if is_stdout && stdout::is_terminal() {
        return Err(Usage(stdout::NO_TEXT.to_owned()).into());
    }
    let report = match (&flags.target.write, &flags.target.into) {
        (Some(_), _) if is_stdout => salvage(flags, &mut stdout::bytes())?,
        (Some(path), _) => {
            let mut output = output_file::create(path, flags.force)?;
            let report = salvage(flags, &mut output)?;
            output.finish()?;
            report
        }
        (None, Some(volume)) => into(flags, volume)?,
        (None, None) => unreachable!("clap asks for one of them"),
    };
    let text = if flags.json {
        session_view::salvaged_json(&report)
    } else {
        session_view::salvaged(&report)
    };
    if is_stdout {
        say_lines(&text);
    } else {
        stdout::print(&text)?;
    }
    let is_complete = report.losses.is_empty()
        && report.unopened.is_empty()
        && !report.extract.manifest.completeness.stopped;
    Ok(Verdict::clean_if(is_complete || report.extract.reader_gone))
}

fn salvage(flags: &Flags, to: &mut dyn Write) -> anyhow::Result<SalvageReport> {
    let stop = StopFlag::install()?;
    let first = flags.members.first().cloned().unwrap_or_default();
    let named = |error| of_extract(&first, error);
    let mut progress = Progress::new("salvage");
    let flow = || stop.flow();
    let found = Salvaging::find(&flags.members, &mut |read_bytes| {
        progress.text(&|| format!("looking for heads: {} read", ByteSize(read_bytes)));
        flow()
    });
    let found = found.map_err(named)?.unlocked_by(flags.keys.identities()?);
    let report = ::extract::salvage(found, Target::Pcapng(to), &SystemClock, &mut |state| {
        progress.text(&|| {
            let pieces = page::text::plural(state.pieces, "piece");
            format!("{} from {pieces}", page::text::plural(state.packets, "packet"))
        });
        flow()
    });
    progress.finish();
    report.map_err(named)
}

/// A recorder at the other end of a pipe.
fn into(flags: &Flags, volume: &Path) -> anyhow::Result<SalvageReport> {
    if flags.members.iter().any(|member| member == volume) {
        let text = "--into names one of the members to be salvaged; it must be another volume";
        return Err(Usage(text.to_owned()).into());
    }
    let (end, mut writer) = host::pipe()?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("record".to_owned());
        let thread = thread.spawn_scoped(scope, move || {
            let mut options = Options::new(volume.to_path_buf(), Input::Files(vec![end.path()]));
            options.name = Some("salvage".to_owned());
            let go_on = &mut |_: &::record::Progress| ControlFlow::Continue(());
            let recorded = ::record::record(&options, &SystemClock, go_on);
            // A writer that still runs gets an error: there is no reader.
            drop(end);
            recorded.map_err(|error| of_record(volume, error))
        });
        let thread = thread.context("cannot start a thread")?;
        let report = salvage(flags, &mut writer);
        drop(writer);
        let recorded = thread.join().expect("a panic aborts")?;
        if !volume_view::is_clean(&recorded) {
            anyhow::bail!("not all packets were stored in {}", page::safe::path(volume));
        }
        report
    })
}
