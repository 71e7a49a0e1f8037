//! `wirespool diagnose`.

use core::time::Duration;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use ::diagnose::tcp::{self, Handshakes, Live};
use ::diagnose::{Diagnosis, Unseen, machine};
use ::extract::{Event, Options};
use clap::{Args, Subcommand};
use host::facts::Facts;
use host::{Output, StopFlag, SystemClock};
use units::NANOS_PER_SECOND;

use crate::arguments::{self, duration};
use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::progress::Progress;
use crate::{find, stdout};

/// Say why this machine is slow, and show the evidence.
///
/// Looks for a while and names what it found: the evidence, the cause, what helps (now, and for
/// good), and what it could not see and what that would take. Changes nothing. Without a part it
/// looks at all of them for thirty seconds.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  wirespool diagnose                          why is this machine slow?
  wirespool diagnose tcp                      ten seconds of every TCP socket
  wirespool diagnose host --save monday.json
  wirespool diagnose host --against monday.json   what has changed since?
  wirespool diagnose tcp --for 5m --interval 5s --json
  wirespool diagnose tcp /data/spool 'host 10.0.0.2 since 1h ago'

Exit code 1 when something is wrong."
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    all: AllFlags,
}

#[derive(Debug, Args)]
struct AllFlags {
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "30s")]
    duration: Duration,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    Tcp(TcpFlags),
    Host(HostFlags),
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

/// Why connections are slow, or fail.
///
/// Looks at every TCP socket of every network namespace: options that some connections lack and
/// the listener whose SYN cookies lost them; queues that overflow, losses, small windows, and who
/// holds a sender up. Without root it sees its own namespace, and names of its own processes only.
#[derive(Debug, Args)]
struct TcpFlags {
    /// Look at the handshakes in this volume instead of at this machine
    volume: Option<PathBuf>,
    /// Sessions of the volume to look at [default: all]
    #[arg(requires = "volume")]
    query: Vec<String>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "10s",
          conflicts_with = "volume")]
    duration: Duration,
    /// Between two looks
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s",
          conflicts_with = "volume")]
    interval: Duration,
    /// Look at this network namespace only
    #[arg(long, conflicts_with = "volume")]
    here: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.what {
        Some(What::Tcp(flags)) => of_tcp(flags),
        Some(What::Host(flags)) => of_host(flags),
        None => of_all(&flags.all),
    }
}

fn show(report: &Diagnosis, as_json: bool) -> Outcome {
    let text = if as_json {
        view::diagnosis_json(report)
    } else {
        view::diagnosis(report, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean()))
}

/// All parts at the same time.
fn of_all(flags: &AllFlags) -> Outcome {
    let duration_ns = nanos(flags.duration)?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let (tcp, machine) = thread::scope(|scope| -> anyhow::Result<_> {
        let machine =
            scope.spawn(|| machine::watch(&SystemClock, duration_ns, &mut || stop.flow()));
        let tcp =
            sockets(&mut Live::default(), (NANOS_PER_SECOND, duration_ns), &stop, &mut progress);
        let machine = machine.join();
        Ok((tcp?, machine.unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
    })?;
    progress.finish();
    show(&Diagnosis::joined([tcp::diagnose(&tcp), machine::diagnose(&machine)]), flags.json)
}

fn of_tcp(flags: &TcpFlags) -> Outcome {
    if let Some(volume) = &flags.volume {
        return show(&recorded(volume, &flags.query.join(" "))?, flags.json);
    }
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let times = (nanos(flags.interval)?, nanos(flags.duration)?);
    let mut live = if flags.here { Live::own() } else { Live::default() };
    let watch = sockets(&mut live, times, &stop, &mut progress)?;
    progress.finish();
    show(&tcp::diagnose(&watch), flags.json)
}

fn of_host(flags: &HostFlags) -> Outcome {
    // What cannot be read is said before anybody waits.
    let theirs = flags.against.as_deref().map(read_facts).transpose()?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let watch = machine::watch(&SystemClock, nanos(flags.duration)?, &mut || {
        progress.text(&|| "looking".to_owned());
        stop.flow()
    });
    progress.finish();
    if let Some(path) = &flags.save {
        let mut output = Output::create(path, flags.force)?;
        output.write_all(view::facts_json(&watch.facts).as_bytes())?;
        output.finish()?;
    }
    let Some(theirs) = theirs else { return show(&machine::diagnose(&watch), flags.json) };
    let differences = machine::compare(&theirs, &watch.facts);
    let text = if flags.json {
        view::differences_json(&differences)
    } else {
        view::differences(&differences, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(differences.is_empty()))
}

fn read_facts(path: &Path) -> anyhow::Result<Facts> {
    let text = host::read_text(path)?;
    view::parse_facts(&text).map_err(|error| Usage(format!("{}: {error}", path.display())).into())
}

/// What the handshakes of recorded sessions say.
fn recorded(volume: &Path, text: &str) -> anyhow::Result<Diagnosis> {
    let text = if text.is_empty() { "tcp".to_owned() } else { format!("tcp and ({text})") };
    let query = arguments::query(&text)?;
    let options = Options { volume: volume.to_path_buf(), ..Options::default() };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let mut handshakes = Handshakes::default();
    let found = ::extract::find(&options, &query, None, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => handshakes.take(&found.session),
            Event::Searched { parts, of } => find::show(&mut progress, parts, of),
        }
        stop.flow()
    });
    progress.finish();
    let found = found.map_err(|error| of_extract(volume, error))?;
    let mut report = handshakes.diagnose();
    if !found.completeness.is_complete() {
        let what = format!("a part of the volume: {}", found.completeness);
        let needs = "the packets that are missing".to_owned();
        report.unseen.push(Unseen { what, needs });
    }
    Ok(report)
}

fn nanos(time: Duration) -> Result<i64, Usage> {
    i64::try_from(time.as_nanos()).map_err(|_| Usage("no time is as long as that".to_owned()))
}

fn sockets(
    live: &mut Live,
    times: (i64, i64),
    stop: &StopFlag,
    progress: &mut Progress,
) -> anyhow::Result<tcp::Watch> {
    let go_on = &mut |looks| {
        progress.text(&|| view::plural(looks, "look"));
        stop.flow()
    };
    Ok(tcp::watch(live, &SystemClock, times, go_on)?)
}
