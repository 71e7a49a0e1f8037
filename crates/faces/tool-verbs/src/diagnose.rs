//! `wirespool diagnose`.

mod calls;
mod io;
mod recorder;
mod report;
mod tcp;

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::thread;

use ::connections::Live;
use ::diagnose::io::{Live as LiveIo, Target};
use ::diagnose::machine;
use ::findings::Diagnosis;
use clap::{Args, Subcommand};
use host::{StopFlag, SystemClock};
use machine_view::Followed;
use observe::facts::Facts;
use units::NANOS_PER_SECOND;

use crate::arguments::duration;
use crate::failure::{Outcome, Usage, Verdict};
use crate::output_file;
use crate::progress::Progress;
use crate::stdout;
use report::{PageFlags, nanos, show, write_page};

/// Show why this machine is slow, with the evidence.
///
/// Looks for a while and prints its findings: the evidence, the cause, what helps (now, and for
/// good), and what it could not see and what that would take. Changes nothing. Without a part it
/// looks at connections, disks and the machine for thirty seconds.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  wirespool diagnose                          why is this machine slow?
  wirespool diagnose --for 5m --html monday.html
  wirespool diagnose tcp                      ten seconds of every TCP socket
  wirespool diagnose io                       who reads and writes what on which disk
  wirespool diagnose calls --pid 4711         what does it wait for?
  wirespool diagnose host --save monday.json
  wirespool diagnose host --against monday.json   what has changed since?
  wirespool diagnose tcp --for 5m --interval 5s --json
  wirespool diagnose tcp /data/spool 'host 10.0.0.2 and since 1h ago'
  wirespool diagnose recorder /data/spool     where did packets get lost, and what is near?

Exit code 1 when something is wrong."
)]
pub struct Flags {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    all: AllFlags,
}

#[derive(Debug, Args)]
struct AllFlags {
    #[command(flatten)]
    page: PageFlags,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "30s")]
    duration: Duration,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    Tcp(Box<tcp::Flags>),
    Io(io::IoFlags),
    Calls(calls::CallsFlags),
    Host(HostFlags),
    Recorder(recorder::Flags),
}

/// How this machine is set up, what it is short of, and how it differs from another.
///
/// Looks at the disks and their schedulers, pressure, memory, clocks, governors, mounts and dropped
/// packets. With --against it shows what differs from the facts of another machine, or another
/// day, that --save wrote: the kernel and its configuration, command line, settings, mitigations,
/// disks, interfaces; what costs most by experience first.
#[derive(Debug, Args)]
struct HostFlags {
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3s")]
    duration: Duration,
    /// Write the facts to this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Show what differs from the facts in this file
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Replace the file of --save
    #[arg(long, requires = "save")]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Looks for causes of slowness, and prints what was found.
pub fn run(flags: &Flags) -> Outcome {
    match &flags.what {
        Some(What::Tcp(flags)) => tcp::run(flags),
        Some(What::Io(flags)) => io::run(flags),
        Some(What::Calls(flags)) => calls::run(flags),
        Some(What::Host(flags)) => of_host(flags),
        Some(What::Recorder(flags)) => recorder::run(flags),
        None => of_all(&flags.all),
    }
}

/// All parts at the same time.
fn of_all(flags: &AllFlags) -> Outcome {
    let duration_ns = nanos(flags.duration)?;
    let page = flags.page.begin()?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let mut disks = LiveIo::new(Target::default());
    let mut followed = Followed::new(Live::default(), &SystemClock, page.is_some());
    let (sockets, machine, io) = thread::scope(|scope| -> anyhow::Result<_> {
        let machine =
            scope.spawn(|| machine::watch(&SystemClock, duration_ns, &mut || stop.flow()));
        let io = scope.spawn(|| {
            ::diagnose::io::watch(&mut disks, &SystemClock, duration_ns, &mut |_| stop.flow())
        });
        let times = (NANOS_PER_SECOND, duration_ns);
        let tcp = tcp::sockets(&mut followed, times, &stop, &mut progress);
        let (machine, io) = (joined(machine), joined(io));
        Ok((tcp?, machine, io))
    })?;
    progress.finish();
    let parts = [
        ::connections::diagnose(&sockets),
        ::diagnose::io::diagnose(&io),
        machine::diagnose(&machine),
    ];
    let report = Diagnosis::joined(parts);
    if let Some(page) = page {
        let sockets = followed.chosen(&sockets).unwrap_or_default();
        write_page(page, &report, (Some(&sockets), Some(&io), None))?;
    }
    show(&report, flags.json)
}

/// What a thread found; its panic is ours.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn of_host(flags: &HostFlags) -> Outcome {
    // The command reports what cannot be read or written before the user waits.
    let theirs = flags.against.as_deref().map(read_facts).transpose()?;
    let save = output_file::create_named(flags.save.as_ref(), flags.force)?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let watch = machine::watch(&SystemClock, nanos(flags.duration)?, &mut || {
        progress.text(&|| "looking".to_owned());
        stop.flow()
    });
    progress.finish();
    if let Some(output) = save {
        output.finish_with(machine_view::facts_json(&watch.facts).as_bytes())?;
    }
    let Some(theirs) = theirs else { return show(&machine::diagnose(&watch), flags.json) };
    let differences = machine::compare(&theirs, &watch.facts);
    let text = if flags.json {
        machine_view::differences_json(&differences)
    } else {
        machine_view::differences(&differences, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(differences.is_empty()))
}

fn read_facts(path: &Path) -> anyhow::Result<Facts> {
    let text = host::read_input(path)?;
    ::diagnose::machine::parse_facts(&text)
        .map_err(|error| Usage(format!("{}: {error}", page::safe::path(path))).into())
}
