//! `wirespool diagnose`.

mod io;

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::thread;

use ::diagnose::io::{Live as LiveIo, Target};
use ::diagnose::recorder::{Recording, Thread};
use ::diagnose::tcp::{self, Handshakes, Live};
use ::diagnose::{Diagnosis, Unseen, machine};
use ::extract::Event;
use clap::{Args, Subcommand};
use host::facts::Facts;
use host::{Output, StopFlag, SystemClock};
use units::{Clock, NANOS_PER_SECOND, Sleep, Timestamp};

use crate::arguments::{self, duration};
use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::find::{self, ReadingFlags};
use crate::progress::Progress;
use crate::{recorder, stdout};

/// Between two looks whether to stop.
const LOOK_NS: i64 = NANOS_PER_SECOND / 10;

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
  wirespool diagnose io                       who reads and writes what on which disk
  wirespool diagnose host --save monday.json
  wirespool diagnose host --against monday.json   what has changed since?
  wirespool diagnose tcp --for 5m --interval 5s --json
  wirespool diagnose tcp /data/spool 'host 10.0.0.2 since 1h ago'
  wirespool diagnose recorder /data/spool     where did packets get lost, and what is near?

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
    Io(io::IoFlags),
    Host(HostFlags),
    Recorder(RecorderFlags),
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
    #[command(flatten)]
    reading: ReadingFlags,
}

/// Where a recording lost packets, and what it is near to.
///
/// Reads the gaps of the volume and, of a recorder that runs, what it says of its queues and disks:
/// whether packets were lost for want of processor, disk or memory, or in the card; whether disks
/// give less than they were qualified for; where slow writes lie; which of its threads has no time
/// left.
#[derive(Debug, Args)]
struct RecorderFlags {
    /// The volume
    volume: PathBuf,
    /// What `record --json` printed when it ended, instead of a recorder that runs
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How long to look at the threads of one that runs
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3s",
          conflicts_with = "report")]
    duration: Duration,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadingFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.what {
        Some(What::Tcp(flags)) => of_tcp(flags),
        Some(What::Io(flags)) => io::run(flags),
        Some(What::Host(flags)) => of_host(flags),
        Some(What::Recorder(flags)) => of_recorder(flags),
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
    let mut disks = LiveIo::new(Target::default());
    let (tcp, machine, io) = thread::scope(|scope| -> anyhow::Result<_> {
        let machine =
            scope.spawn(|| machine::watch(&SystemClock, duration_ns, &mut || stop.flow()));
        let io = scope.spawn(|| {
            ::diagnose::io::watch(&mut disks, &SystemClock, duration_ns, &mut |_| stop.flow())
        });
        let tcp =
            sockets(&mut Live::default(), (NANOS_PER_SECOND, duration_ns), &stop, &mut progress);
        let (machine, io) = (joined(machine), joined(io));
        Ok((tcp?, machine, io))
    })?;
    progress.finish();
    let parts = [tcp::diagnose(&tcp), ::diagnose::io::diagnose(&io), machine::diagnose(&machine)];
    show(&Diagnosis::joined(parts), flags.json)
}

/// What a thread found; its panic is ours.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn of_tcp(flags: &TcpFlags) -> Outcome {
    if let Some(volume) = &flags.volume {
        return show(&recorded(flags, volume)?, flags.json);
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
    // What cannot be read or written is said before anybody waits.
    let theirs = flags.against.as_deref().map(read_facts).transpose()?;
    let save = flags.save.as_deref().map(|path| Output::create(path, flags.force)).transpose()?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let watch = machine::watch(&SystemClock, nanos(flags.duration)?, &mut || {
        progress.text(&|| "looking".to_owned());
        stop.flow()
    });
    progress.finish();
    if let Some(output) = save {
        output.finish_with(view::facts_json(&watch.facts).as_bytes())?;
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

fn of_recorder(flags: &RecorderFlags) -> Outcome {
    let options = flags.reading.options(flags.volume.clone());
    let parse = |text: &str, from: &str| {
        view::parse_recorder(text)
            .map_err(|error| Usage(format!("{from}: not the report of a recording: {error}")))
    };
    let told = match &flags.report {
        Some(path) => Some(parse(&host::read_text(path)?, &path.display().to_string())?),
        None => recorder::state(&flags.volume, flags.reading.members())
            .map(|text| parse(&text, "the recorder"))
            .transpose()?,
    };
    let (state, process) = told.map_or((None, None), |(state, process)| (Some(state), process));
    let threads = match process {
        Some(process) => threads(process, nanos(flags.duration)?)?,
        None => Vec::new(),
    };
    flags.reading.catch_up(&flags.volume);
    let all = Timestamp(i64::MIN)..=Timestamp(i64::MAX);
    let found = ::extract::gaps(&options, &all, &SystemClock)
        .map_err(|error| of_extract(&flags.volume, error))?;
    let recording = Recording { gaps: found.gaps, state, threads };
    show(&::diagnose::recorder::diagnose(&recording), flags.json)
}

/// The threads of the recorder, the busiest first.
fn threads(process: u32, duration_ns: i64) -> anyhow::Result<Vec<Thread>> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let before = host::thread_times(process);
    let begin_ns = SystemClock.boottime_ns();
    let mut now_ns = begin_ns;
    while now_ns < begin_ns + duration_ns && !stop.is_set() {
        progress.text(&|| "looking".to_owned());
        SystemClock.sleep_until((now_ns + LOOK_NS).min(begin_ns + duration_ns));
        now_ns = SystemClock.boottime_ns();
    }
    progress.finish();
    let elapsed_ns = u64::try_from(now_ns - begin_ns)?.max(1);
    let thread = |(number, (name, ran_ns)): (u32, (String, u64))| {
        let (_, ran_before) = before.get(&number)?;
        let busy = ran_ns.saturating_sub(*ran_before).saturating_mul(1000) / elapsed_ns;
        Some(Thread { name, busy })
    };
    let mut threads: Vec<Thread> =
        host::thread_times(process).into_iter().filter_map(thread).collect();
    threads.sort_by_key(|thread| core::cmp::Reverse(thread.busy));
    Ok(threads)
}

fn read_facts(path: &Path) -> anyhow::Result<Facts> {
    let text = host::read_text(path)?;
    view::parse_facts(&text).map_err(|error| Usage(format!("{}: {error}", path.display())).into())
}

/// What the handshakes of recorded sessions say.
fn recorded(flags: &TcpFlags, volume: &Path) -> anyhow::Result<Diagnosis> {
    let text = flags.query.join(" ");
    let text = if text.is_empty() { "tcp".to_owned() } else { format!("tcp and ({text})") };
    let query = arguments::query(&text)?;
    let options = flags.reading.options(volume.to_path_buf());
    flags.reading.catch_up(volume);
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
