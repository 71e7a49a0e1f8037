//! `wirespool diagnose recorder`.

use core::time::Duration;
use std::path::PathBuf;

use ::diagnose::recorder::{Functions, Recording, Thread, diagnose, watch};
use clap::Args;
use host::{StopFlag, SystemClock};
use units::Timestamp;

use super::report::{nanos, show};
use crate::arguments::duration;
use crate::failure::{Outcome, Usage, of_extract};
use crate::progress::Progress;
use crate::reading::ReadingFlags;
use crate::recorder;

/// Show where a recording lost packets, and which limits it is near to.
///
/// Reads the gaps of the volume and, from a running recorder, the state of its queues and disks:
/// whether packets were lost because processor, disk or memory fell short, or in the card; whether
/// disks give less than they were qualified for; where slow writes lie; which of its threads has no
/// time left, and in which functions they work.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The volume
    volume: PathBuf,
    /// Read what `record --json` printed when it ended, instead of asking a running recorder
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How long to look at the threads of a running recorder
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3s",
          conflicts_with = "report")]
    duration: Duration,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadingFlags,
}

pub(super) fn run(flags: &Flags) -> Outcome {
    let mut options = flags.reading.options(flags.volume.clone())?;
    let parse = |text: &str, from: &str| {
        ::diagnose::recorder::parse_recorder(text)
            .map_err(|error| Usage(format!("{from}: not the report of a recording: {error}")))
    };
    let state = match &flags.report {
        Some(path) => Some(parse(&host::read_input(path)?, &page::safe::path_value(path))?),
        None => recorder::state(&flags.volume, &flags.reading.members())
            .map(|text| parse(&text, "the recorder"))
            .transpose()?,
    };
    let process = state.as_ref().and_then(|state| state.process);
    let (threads, functions) = match process {
        Some(process) => {
            let (threads, functions) = look(process, nanos(flags.duration)?)?;
            (threads, Some(functions))
        }
        None => (Vec::new(), None),
    };
    flags.reading.catch_up(&mut options);
    let all = Timestamp(i64::MIN)..=Timestamp(i64::MAX);
    let found = ::extract::gaps(&options, &all, &SystemClock)
        .map_err(|error| of_extract(&flags.volume, error))?;
    let gaps = found.completeness.with_crashes(found.gaps);
    let recording = Recording { gaps, state, threads, functions };
    show(&diagnose(&recording), flags.json)
}

/// The threads of the recorder, and in which functions they work.
fn look(process: u32, duration_ns: i64) -> anyhow::Result<(Vec<Thread>, Functions)> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let found = watch(process, &SystemClock, duration_ns, &mut || {
        progress.text(&|| "looking".to_owned());
        stop.flow()
    });
    progress.finish();
    Ok(found)
}
