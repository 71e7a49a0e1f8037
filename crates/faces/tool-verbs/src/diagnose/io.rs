//! `wirespool diagnose io`.

use core::ops::ControlFlow;
use core::time::Duration;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use ::diagnose::io::{self, Live, Target, Touch, TouchFilter, TouchKind, Who};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use host::{Launch, Launched, StopFlag, SystemClock};
use units::Clock as _;

use super::report::{PageFlags, nanos, write_page};
use crate::arguments::duration;
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::stdout;
use crate::trace::runs_as;

/// Show who reads and writes what on which disk, and how long it takes.
///
/// Listens to the kernel's tracepoints for block devices: each request with the time that it waited
/// and the time at the disk, its process and its file. Finds reads that no program asked for, with
/// their file and writer; journals, flushes and discards that cost; disks that are slow, and
/// requests that wait. Without root it shows what the kernel counts, and says what is missing. With
/// --files it shows who opens, reads and writes which file instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool diagnose io                            thirty seconds of every disk
  wirespool diagnose io /data --for 5m --json      files below a folder, and their disk
  wirespool diagnose io -- fio job.fio             as long as a command runs
  wirespool diagnose io --files --log /data        each touch of a file as it happens
  wirespool diagnose io --files --kind write --exclude recorder

Exit code 1 when something is wrong.")]
pub(super) struct IoFlags {
    /// A folder, a file or a block device [default: all disks]
    target: Option<PathBuf>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "30s",
          conflicts_with = "command")]
    duration: Duration,
    /// Show who touches which file, by fanotify(7)
    #[arg(long, conflicts_with = "html")]
    files: bool,
    /// With --files: show these kinds of touches only
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = kind(),
          requires = "files")]
    kinds: Vec<TouchKind>,
    /// With --files: those of this process, or of processes of this name; may be given several
    /// times
    #[arg(long = "process", value_name = "NUMBER|NAME", requires = "files")]
    only: Vec<String>,
    /// With --files: not those of this process, or of processes of this name; may be given several
    /// times
    #[arg(long, value_name = "NUMBER|NAME", requires = "files")]
    exclude: Vec<String>,
    /// With --files: a line for each touch as it happens, with --json an object, and no table
    #[arg(long, requires = "files")]
    log: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    page: PageFlags,
    /// Run the command as this user [default: who called sudo; else as oneself]
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,
    /// A command that is run meanwhile; the watch ends with it
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// By the names that are shown.
fn kind() -> impl TypedValueParser<Value = TouchKind> {
    let of = |name: String| TouchKind::ALL.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(TouchKind::ALL.map(TouchKind::name))
        .try_map(move |name| of(name).ok_or("there is no such kind"))
}

pub(super) fn run(flags: &IoFlags) -> Outcome {
    let target = flags.target.as_deref().map(Target::of).transpose()?.unwrap_or_default();
    let stop = StopFlag::install()?;
    if flags.files {
        return touches(flags, &target, &stop);
    }
    let page = flags.page.begin()?;
    let below = target.below.clone();
    // Listening begins before the command.
    let mut machine = Live::new(target);
    let mut command = started(&flags.command, flags.user.as_deref())?;
    let duration_ns = if command.is_some() { i64::MAX } else { nanos(flags.duration)? };
    let mut progress = Progress::new("diagnose");
    let mut watch = io::watch(&mut machine, &SystemClock, duration_ns, &mut |events| {
        go_on(events, &mut command, (&stop, &mut progress))
    });
    progress.finish();
    drop(command);
    if let Some(below) = below {
        watch.keep_below(&below);
    }
    let report = io::diagnose(&watch);
    if let Some(page) = page {
        write_page(page, &report, (None, Some(&watch), None))?;
    }
    let text = if flags.json {
        machine_view::io_json(&watch, &report)
    } else {
        let width = stdout::width();
        machine_view::io(&watch, width) + &machine_view::diagnosis(&report, width)
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean()))
}

/// Its output goes where its errors go: standard output is for the report.
pub(super) fn started(
    command: &[OsString],
    user: Option<&str>,
) -> anyhow::Result<Option<Launched>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let user = runs_as(user)?;
    let launch = Launch {
        program: Path::new(program),
        arguments,
        user: user.as_ref(),
        resolver: None,
        merges_output: true,
    };
    Ok(Some(launch.start()?))
}

/// Whether a watch that has had so many records goes on, which it shows.
pub(super) fn go_on(
    events: u64,
    command: &mut Option<Launched>,
    (stop, progress): (&StopFlag, &mut Progress),
) -> ControlFlow<()> {
    // A command has the terminal to itself.
    if command.is_none() {
        progress.text(&|| page::text::plural(events, "record"));
    }
    flow(stop, command.as_mut())
}

fn flow(stop: &StopFlag, command: Option<&mut Launched>) -> ControlFlow<()> {
    // One that cannot be waited for is gone.
    if command.is_some_and(|command| !matches!(command.ended(), Ok(None))) {
        return ControlFlow::Break(());
    }
    stop.flow()
}

fn who(text: &str) -> Who {
    text.parse().map_or_else(|_| Who::Name(text.to_owned()), Who::Process)
}

fn line(touch: &Touch, as_json: bool) -> String {
    let now = SystemClock.realtime();
    if as_json { machine_view::touch_json(touch, now) } else { machine_view::touch(touch, now) }
}

fn touches(flags: &IoFlags, target: &Target, stop: &StopFlag) -> Outcome {
    let filter = TouchFilter {
        kinds: flags.kinds.clone(),
        only: flags.only.iter().map(|text| who(text)).collect(),
        without: flags.exclude.iter().map(|text| who(text)).collect(),
        below: target.below.clone(),
    };
    let is_log = flags.log || flags.json;
    let mut out = stdout::buffered();
    let mut written = Ok(());
    // Watching begins before the command.
    let mut watched = io::watch_files(target.below.as_deref())?;
    let mut command = started(&flags.command, flags.user.as_deref())?;
    let duration_ns = if command.is_some() { i64::MAX } else { nanos(flags.duration)? };
    let all = io::touches(&mut watched, &filter, &SystemClock, duration_ns, &mut |touch| {
        written = match touch {
            None => out.flush(),
            Some(touch) if is_log => out.write_all(line(touch, flags.json).as_bytes()),
            Some(_) => Ok(()),
        };
        match (&written, touch) {
            (Err(_), _) => ControlFlow::Break(()),
            (Ok(()), Some(_)) => ControlFlow::Continue(()),
            (Ok(()), None) => flow(stop, command.as_mut()),
        }
    });
    written?;
    out.flush()?;
    drop(out);
    if !is_log {
        stdout::print(&machine_view::touches(&all, stdout::width()))?;
    } else if all.overflows > 0 {
        let times = page::text::plural(all.overflows, "time");
        crate::progress::say(&format!(
            "the kernel's queue was full {times}; touches of those moments are missing"
        ));
    }
    Ok(Verdict::Clean)
}
