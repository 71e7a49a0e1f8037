//! `wirespool trace`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ::trace::{Family, Report, Seen, Senders, Watch, loopback_services, refused_on_loopback};
use anyhow::{Context, bail};
use capture::{LiveOptions, LiveSource, Source as _};
use clap::Args;
use host::processes::has_process;
use host::{Launch, Output, StopFlag, SystemClock, User, not_started};
use network::sockets::{Namespace, Owner, Owners};
use network::{Enclosure, Way, interfaces};
use units::ByteSize;

use crate::failure::{Outcome, Usage, Verdict};
use crate::output_file;
use crate::progress::{say, say_lines};
use crate::stdout;

/// Kernel memory for packets of each interface.
const RING: ByteSize = ByteSize(16 << 20);
const LACKS_IPV6: &str = "the program had no IPv6: this machine forwards it by no interface; \
    Linux 6.17 can for single ones, others with net.ipv6.conf.all.forwarding=1";

/// Record the packets of one program.
///
/// Runs a program in a network namespace of its own, from which it reaches the world through this
/// machine, and writes its packets as pcapng; each has its process as a comment. Nothing of that
/// stays behind, even when it is killed. Ends when all processes that the program started have
/// ended, with the exit code of the program. The program sees another address; it has IPv6 where
/// this machine has it, and its kernel forwards it for single interfaces (Linux 6.17).
///
/// Of a program that runs already (--pid) the packets are recognised by its sockets; nothing
/// changes for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool trace -- curl https://example.com
  wirespool trace -o dns.pcapng --filter 'port 53' -- dig example.com
  sudo wirespool trace -- ./crawler --once             as who called sudo
  sudo wirespool trace --user root -- apt update       as root all the same
  wirespool trace -o - -- ./crawler | wireshark -k -i -
  wirespool trace --pid 4711 -o server.pcapng          until Ctrl-C, or until it ends

Needs root; --pid of one's own program needs the capability CAP_NET_RAW only.")]
pub struct Flags {
    /// Write to this file, or to standard output (-); the program's output goes to standard error
    /// then
    #[arg(short, long, value_name = "FILE", default_value = "trace.pcapng")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Keep only packets that match this filter, in the syntax of pcap-filter
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Most bytes kept of a packet [default: all]
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    snaplen: u32,
    /// Run the program as this user [default: who called sudo; else as oneself]
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    user: Option<String>,
    /// The interface by which its packets leave this machine [default: that of the default route]
    #[arg(long, value_name = "INTERFACE", conflicts_with = "pid")]
    via: Option<String>,
    /// The name server that the program asks [default: that of this machine]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "pid")]
    dns: Option<IpAddr>,
    /// A process that runs, with those that it started
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// Print what was captured as JSON, on standard error
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid")]
    command: Vec<OsString>,
}

/// Records the packets of one program.
pub fn run(flags: &Flags) -> Outcome {
    match flags.pid {
        Some(process) => of_running(flags, process),
        None => of_program(flags),
    }
}

/// Where packets go.
enum Sink {
    File(Output),
    Stdout(std::io::Stdout),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}

fn is_stdout(flags: &Flags) -> bool {
    flags.output == Path::new("-")
}

fn sink(flags: &Flags) -> anyhow::Result<Sink> {
    if is_stdout(flags) {
        if stdout::is_terminal() {
            let text = "packets are no text for a terminal; -o names a file";
            return Err(Usage(text.to_owned()).into());
        }
        return Ok(Sink::Stdout(stdout::shared()));
    }
    Ok(Sink::File(output_file::create(&flags.output, flags.force)?))
}

fn live(flags: &Flags, interfaces: Vec<String>) -> Result<LiveSource, capture::Error> {
    LiveSource::open(&LiveOptions {
        interfaces,
        filter: flags.filter.clone(),
        snaplen: flags.snaplen,
        promiscuous: false,
        ring_size: RING,
        ..LiveOptions::default()
    })
}

/// Captures until it is over, and prints the report.
fn capture(
    flags: &Flags,
    (source, of): (&mut LiveSource, &str),
    sink: Sink,
    watch: Watch<'_>,
    notes: impl FnOnce() -> Vec<String>,
) -> anyhow::Result<Report> {
    let output = ::trace::Output::new(sink, of, source.interfaces());
    let output = output.context("cannot write the packets")?;
    let (mut report, sink) = ::trace::watch(source, watch, output, &SystemClock)?;
    report.notes.extend(notes());
    if let Some(Sink::File(file)) = sink {
        file.finish()?;
    }
    let text = if flags.json {
        machine_view::traced_json(&report)
    } else {
        machine_view::traced(&report, (!is_stdout(flags)).then_some(&flags.output))
    };
    say_lines(&text);
    Ok(report)
}

fn of_program(flags: &Flags) -> Outcome {
    let [program, arguments @ ..] = flags.command.as_slice() else {
        return Err(Usage("no program is named behind --".to_owned()).into());
    };
    let user = runs_as(flags.user.as_deref())?;
    let way = way(flags)?;
    let resolver = resolver(flags.dns);
    let services = loopback_services();
    let sink = sink(flags)?;
    let stop = StopFlag::install()?;
    let enclosure = Enclosure::new(&way)?;
    let launch = Launch {
        program: Path::new(program),
        arguments,
        user: user.as_ref(),
        resolver: resolver.as_deref(),
        merges_output: is_stdout(flags),
    };
    let words: Vec<_> = flags.command.iter().map(|word| word.to_string_lossy()).collect();
    // The thread that starts the program stays as long as it: the program ends with it.
    let notes = || refused_on_loopback(&services);
    let inside = Inside { enclosure: &enclosure, stop: &stop, notes: &notes };
    enclosure.within(|| enclosed(flags, &inside, &launch, (sink, &words.join(" "))))?
}

/// What a program runs in.
struct Inside<'a> {
    enclosure: &'a Enclosure,
    stop: &'a StopFlag,
    /// What there is to say of its namespace in the end.
    notes: &'a (dyn Fn() -> Option<String> + Sync),
}

/// In the namespace: starts the program and captures what it sends and receives.
fn enclosed(
    flags: &Flags,
    Inside { enclosure, stop, notes }: &Inside<'_>,
    launch: &Launch<'_>,
    (sink, of): (Sink, &str),
) -> Outcome {
    let mut senders = Senders::open(enclosure.outer_interface());
    let mut source = live(flags, vec![enclosure.interface().to_owned()])?;
    let mut program = match launch.start() {
        Ok(program) => program,
        Err(error) => {
            let code = not_started(&error);
            say(&format!("wirespool: {}", crate::failure::line(&error.into())));
            return Ok(Verdict::Program(code));
        }
    };
    let mut owners = Owners::default();
    let mut processes = BTreeSet::new();
    let mut look = || {
        processes.extend(enclosure.processes());
        let only = (processes.len() == 1).then(|| processes.first().copied()).flatten();
        Seen::of_namespace(&mut owners, only)
    };
    let mut code = None;
    let mut is_asked_to_end = false;
    let mut is_over = || {
        code = match code {
            None => program.ended()?,
            known => known,
        };
        if stop.is_set() && !core::mem::replace(&mut is_asked_to_end, true) {
            program.terminate();
        }
        Ok(code.is_some() && enclosure.processes().is_empty())
    };
    let needs = senders.as_ref().err().map(ToString::to_string);
    let mut sent = || senders.as_mut().map(Senders::read).unwrap_or_default();
    let watch = Watch {
        look: &mut look,
        sent: &mut sent,
        opened: &mut Vec::new,
        is_over: &mut is_over,
        only_known: false,
    };
    let unnamed =
        needs.map(|needs| format!("processes that end at once have no name; it takes {needs}"));
    let lacks_ipv6 = enclosure.lacks_ipv6().then(|| LACKS_IPV6.to_owned());
    capture(flags, (&mut source, of), sink, watch, || {
        unnamed.into_iter().chain(lacks_ipv6).chain(notes()).collect()
    })?;
    // Without an exit code no reader of its packets is left, and it ends with us.
    Ok(code.map_or(Verdict::Clean, Verdict::Program))
}

/// The packets of a running process, without those of other processes.
fn of_running(flags: &Flags, process: u32) -> Outcome {
    let Some(family) = Family::of(process) else { bail!("there is no process {process}") };
    let namespace = Namespace::of_process(process)?;
    let sink = sink(flags)?;
    let stop = StopFlag::install()?;
    let of = Owner::of_process(process).to_string();
    let missing = family.needs().map(|needs| {
        format!(
            "connections that last for less than 0.2 s may be missing; to see them takes {needs}"
        )
    });
    namespace.within(move || {
        let family = RefCell::new(family);
        let mut source = live(flags, interfaces()?)?;
        let watch = Watch {
            look: &mut || family.borrow_mut().look(),
            sent: &mut Vec::new,
            opened: &mut || family.borrow_mut().opened(),
            is_over: &mut || Ok(stop.is_set() || !has_process(process)),
            only_known: true,
        };
        capture(flags, (&mut source, &of), sink, watch, || missing.into_iter().collect())?;
        Ok(Verdict::Clean)
    })?
}

/// Whom a program runs as: who is named, else who called sudo. Root's rights were lent for watching
/// it, and not for the program.
pub(crate) fn runs_as(name: Option<&str>) -> Result<Option<User>, host::Error> {
    match name {
        Some(name) => User::named(name).map(Some),
        None => Ok(User::caller()),
    }
}

fn way(flags: &Flags) -> anyhow::Result<Way> {
    if let Some(interface) = &flags.via {
        return Ok(Way::by(interface.clone())?);
    }
    let way = Way::default_route()?;
    way.context("this machine has no default route of IPv4; --via names an interface")
}

/// What the program finds in its `/etc/resolv.conf`; `None` for what is there.
fn resolver(asked: Option<IpAddr>) -> Option<String> {
    if let Some(address) = asked {
        return Some(format!("nameserver {address}\n"));
    }
    let found = ::trace::Resolver::of_machine();
    if found == ::trace::Resolver::Unknown {
        say(
            "note: the name server of this machine listens on its loopback, where the program does \
             not reach it, and does not say whom it asks: names will not be found; --dns names one",
        );
    }
    found.text()
}
