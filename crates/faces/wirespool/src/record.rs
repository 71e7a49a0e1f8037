//! `wirespool record`.

use core::num::NonZeroUsize;
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ::hold::{Order, Standing};
use ::record::{Discard, Input, MaxAge, Options, Queues, Settled, SlowLimit, Way};
use capture::Timestamps;
use clap::{ArgMatches, Args, FromArgMatches as _};
use format::piece::RECORDING_BYTES_MAX;
use host::{StopFlag, SystemClock};
use session::Config;

use crate::arguments::{self, Cpus, cpus};
use crate::failure::{Outcome, Usage, Verdict, of_hold, of_record};
use crate::progress::{Progress, say, say_lines};
use crate::recorder::{self, Answering};
use crate::{any, confinement, evidence, stdout, workers};

/// Record packets into a volume.
///
/// Every packet offered is in exactly one counter: stored, cut, dropped by the kernel or dropped by
/// the writer; each loss is stored as a gap and named in every extract that touches it. What is
/// acknowledged survives a crash and a power cut. Ctrl-C stops in order: what was accepted is
/// stored, and the account is printed. Recording from an interface needs root, or the capability to
/// open raw sockets; recording from files needs no privilege.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool record /data/spool --interface eth0 --interface eth1
  wirespool record /data/spool --interface eth0 --filter 'not port 22' --name office
  wirespool record /data/spool --read old/captures/ --session-timeout off
  tcpdump -i eth0 -U -w - | wirespool record /data/spool --read -

Exit code 1 when a packet was lost, an input broke off or a file was not read to its end.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    #[command(flatten)]
    input: InputFlags,
    /// Record only what matches, in the words of pcap-filter(7); on interfaces the kernel filters
    #[arg(long, value_name = "BPF")]
    filter: Option<String>,
    /// Most bytes kept of a packet; 0 keeps all
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    snaplen: u32,
    /// Leave the interfaces in their mode: only packets for this machine
    #[arg(long, conflicts_with = "read")]
    no_promiscuous: bool,
    /// Memory between capture and disk, to cover its longest stall [default: what the volume was
    /// qualified with, up to half of the free memory, else 256M; for files 16M]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pool: Option<u64>,
    /// Warn about writes slower than TIME, or `off` [default: twice the longest that the volume's
    /// qualification saw, at least 100ms; without one 1s]
    #[arg(long, value_name = "TIME", value_parser = slow_write)]
    slow_write: Option<SlowLimit>,
    /// Memory of the kernel's ring, for each interface and queue
    #[arg(
        long, value_name = "SIZE", default_value = "64M", conflicts_with = "read",
        value_parser = arguments::size
    )]
    kernel_ring: u64,
    #[command(flatten)]
    queues: QueueFlags,
    /// Silence that ends a session, or `off`: tcp=5m,udp=60s,icmp=60s,other=60s
    #[arg(long, value_name = "SPEC", value_parser = session_timeout)]
    session_timeout: Option<Timeouts>,
    /// Take the VLAN id as part of a session's key
    #[arg(long)]
    vlan_in_key: bool,
    /// Record packets only; queries then read the packets themselves
    #[arg(long, conflicts_with_all = ["session_timeout", "keep_sessions", "vlan_in_key"])]
    no_index: bool,
    /// Name of the recording, which inspect lists
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Take over from the recorder of this volume that runs, without a gap: it goes on until this
    /// one sees the same packets, and ends. For packet sockets with the kernel's time
    #[arg(long, conflicts_with = "read")]
    take_over: bool,
    /// Where index files are cached, best on a fast disk
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Keep rows this long after the ring has taken their packets, such as 180d
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    keep_sessions: Option<Duration>,
    /// What to keep of the packets that FILTER chooses: all, the first bytes or packets of each
    /// session (64k, 20p), headers, all but encrypted payload (handshake) or nothing. The first
    /// class that fits decides; may be given several times, as in --class 'port 443=64k' --class
    /// 'host 10.0.0.9=nothing'
    #[arg(long = "class", value_name = "FILTER=WHAT")]
    classes: Vec<record::Class>,
    /// Leave out packets that come again with the same bytes within this time, as a mirror port
    /// gives them; real packets may be alike, too: acknowledgements without a timestamp
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    drop_duplicates: Option<Duration>,
    /// Check everything this often beside recording and repair it from parity, such as 7d
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    scrub_every: Option<Duration>,
    /// Longest time that packets wait before they are written and flushed, 10ms to 60s; a crash
    /// loses the packets of this time, and up to 0.1 s more in the kernel and on the way
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = flush_interval)]
    flush_interval: Duration,
    /// Give out no packet older than this, or `off`; the volume remembers it
    #[arg(long, value_name = "TIME", value_parser = max_age)]
    max_age: Option<MaxAge>,
    /// Overwrite on the disks, too, what is older than the maximum age: `on` or `off`; the volume
    /// remembers it
    #[arg(
        long, value_name = "WHEN",
        value_parser = arguments::word(["on", "off"], |text| Ok(text == "on")),
        num_args = 0..=1, require_equals = true, default_missing_value = "on"
    )]
    erase: Option<bool>,
    /// State that the clock is right, although neither the last recording nor the time since boot
    /// explains it: packets expire by it, and packets that expired beyond it are given out again
    #[arg(long)]
    clock_is_right: bool,
    /// Give up a member for ever, by number: the recorder does not wait for it, its seat stays
    /// empty, and a member that comes back is refused; replace puts a new device into the seat
    #[arg(long, value_name = "NUMBER")]
    without: Vec<units::MemberId>,
    /// Run this in a shell when a member's state changes; `WIRESPOOL_CHANGE` and other variables
    /// of its environment describe the change
    #[arg(long, value_name = "COMMAND")]
    on_member_change: Option<String>,
    /// Discard (trim) blocks ahead of the ring's head: auto does so on flash that supports it
    #[arg(
        long, value_name = "WHEN", default_value = "auto",
        value_parser = arguments::word(["auto", "on", "off"], discard)
    )]
    discard: Discard,
    #[command(flatten)]
    standing: StandingFlags,
    /// Keep the rights that recording does not need once everything is open: capabilities, files,
    /// system calls, core files; for debuggers, and where confinement fails
    #[arg(long)]
    no_sandbox: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct QueueFlags {
    /// How packets reach the recorder: packet (a packet socket, beside the host), xdp (`AF_XDP`,
    /// which takes them from the host), or auto: xdp where the driver copies nothing and the host
    /// does not use the interface, else packet
    #[arg(
        long, value_name = "WAY", default_value = "auto", conflicts_with = "read",
        value_parser = arguments::word(["auto", "packet", "xdp"], way)
    )]
    source: Way,
    /// Look at an empty queue for so many microseconds before sleeping, in the driver itself: a
    /// processor for each queue, and less delay; with --source xdp
    #[arg(
        long, value_name = "MICROSECONDS", conflicts_with = "read",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    busy_poll: Option<u32>,
    /// Threads that share the packets of the interfaces, both directions of a session on one: a
    /// number up to 64, or auto, by receive queues and processors
    #[arg(
        long, value_name = "NUMBER", default_value = "auto", value_parser = queues,
        conflicts_with = "read"
    )]
    queues: Queues,
    /// Keep those threads on these processors, in turn, such as 2-5,8
    #[arg(long, value_name = "LIST", value_parser = cpus, conflicts_with = "read")]
    cpus: Option<Cpus>,
    /// Clock of the packet times: kernel, or adapter, where the interface has a clock and a program
    /// (phc2sys) keeps it at UTC; else the kernel's, with a note
    #[arg(
        long, value_name = "CLOCK", default_value = "kernel", conflicts_with = "read",
        value_parser = arguments::word(["kernel", "adapter"], timestamps)
    )]
    timestamps: Timestamps,
}

#[derive(Debug, Args, Clone)]
struct StandingFlags {
    /// Put aside what matches before the ring overwrites it
    #[arg(long, value_name = "QUERY", requires = "hold_dir")]
    hold: Option<String>,
    /// Directory of the holds, best on another disk; `hold --list` shows them
    #[arg(long, value_name = "DIR", requires = "hold")]
    hold_dir: Option<PathBuf>,
    /// Most bytes of all holds there; the recorder warns of what does not fit, and the ring then
    /// overwrites it
    #[arg(
        long, value_name = "SIZE", default_value = "10G", requires = "hold",
        value_parser = arguments::size
    )]
    hold_budget: u64,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct InputFlags {
    /// Record from this interface; may be given several times. `any`: from each that is up now, by
    /// its own name; one that comes later is not recorded
    #[arg(long, short, value_name = "INTERFACE", conflicts_with = "read")]
    interface: Vec<String>,
    /// Record a capture file (pcap, pcapng, snoop; also compressed by gzip or zstd), all captures
    /// below a directory, or standard input (-); may be given several times
    #[arg(long, short, value_name = "FILE")]
    read: Vec<PathBuf>,
}

/// Timeouts that were given; the others stay as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Timeouts {
    Off,
    Some(Vec<(Kind, i64)>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tcp,
    Udp,
    Icmp,
    Other,
}

fn max_age(text: &str) -> Result<MaxAge, String> {
    match text {
        "off" => Ok(MaxAge::Off),
        text => arguments::duration(text).map(MaxAge::Age),
    }
}

fn slow_write(text: &str) -> Result<SlowLimit, String> {
    match text {
        "off" => Ok(SlowLimit::Off),
        text => arguments::duration(text).map(SlowLimit::Above),
    }
}

fn discard(text: &str) -> Result<Discard, String> {
    match text {
        "auto" => Ok(Discard::Auto),
        "on" => Ok(Discard::On),
        "off" => Ok(Discard::Off),
        _ => Err("auto, on or off".to_owned()),
    }
}

fn queues(text: &str) -> Result<Queues, String> {
    if text == "auto" {
        return Ok(Queues::Auto);
    }
    let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= 64);
    count.map(Queues::Count).ok_or_else(|| "auto, or 1 to 64".to_owned())
}

fn way(text: &str) -> Result<Way, String> {
    match text {
        "auto" => Ok(Way::Auto),
        "packet" => Ok(Way::Packet),
        "xdp" => Ok(Way::Xdp),
        _ => Err("auto, packet or xdp".to_owned()),
    }
}

fn timestamps(text: &str) -> Result<Timestamps, String> {
    match text {
        "kernel" => Ok(Timestamps::Kernel),
        "adapter" => Ok(Timestamps::Adapter),
        _ => Err("kernel or adapter".to_owned()),
    }
}

/// Below 10 ms the disks would do nothing but flush; above a minute a crash loses too much.
fn flush_interval(text: &str) -> Result<Duration, String> {
    let interval = arguments::duration(text)?;
    let bounds = Duration::from_millis(10)..=Duration::from_mins(1);
    bounds.contains(&interval).then_some(interval).ok_or_else(|| "10ms to 60s".to_owned())
}

fn session_timeout(text: &str) -> Result<Timeouts, String> {
    if text == "off" {
        return Ok(Timeouts::Off);
    }
    let one = |item: &str| {
        let (name, time) = item.split_once('=').ok_or_else(|| format!("{item:?} has no ="))?;
        let kind = match name {
            "tcp" => Kind::Tcp,
            "udp" => Kind::Udp,
            "icmp" => Kind::Icmp,
            "other" => Kind::Other,
            _ => return Err(format!("{name:?} is none of tcp, udp, icmp, other")),
        };
        let nanos = i64::try_from(arguments::duration(time)?.as_nanos());
        Ok((kind, nanos.map_err(|_| "longer than 292 years".to_owned())?))
    };
    text.split(',').map(one).collect::<Result<_, _>>().map(Timeouts::Some)
}

fn sessions(flags: &Flags) -> Option<Config> {
    if flags.no_index {
        return None;
    }
    let mut config = Config { vlan_in_key: flags.vlan_in_key, ..Config::default() };
    match &flags.session_timeout {
        None => {}
        Some(Timeouts::Off) => {
            config = Config {
                tcp_timeout_ns: None,
                udp_timeout_ns: None,
                icmp_timeout_ns: None,
                other_timeout_ns: None,
                ..config
            };
        }
        Some(Timeouts::Some(given)) => {
            for &(kind, nanos) in given {
                let timeout = match kind {
                    Kind::Tcp => &mut config.tcp_timeout_ns,
                    Kind::Udp => &mut config.udp_timeout_ns,
                    Kind::Icmp => &mut config.icmp_timeout_ns,
                    Kind::Other => &mut config.other_timeout_ns,
                };
                *timeout = Some(nanos);
            }
        }
    }
    Some(config)
}

/// The options of the job, from the flags.
fn options(flags: Flags) -> Result<Options, Usage> {
    if flags.name.as_ref().is_some_and(String::is_empty) {
        return Err(Usage("--name needs a name".to_owned()));
    }
    if flags.name.as_ref().is_some_and(|name| name.len() > RECORDING_BYTES_MAX) {
        return Err(Usage(format!("--name takes at most {RECORDING_BYTES_MAX} bytes")));
    }
    if flags.queues.busy_poll.is_some() && flags.queues.source != Way::Xdp {
        return Err(Usage(
            "--busy-poll needs --source xdp: a packet socket does not know its queue".to_owned(),
        ));
    }
    let mut named = BTreeSet::new();
    if let Some(twice) = flags.input.interface.iter().find(|name| !named.insert(*name)) {
        return Err(Usage(format!("--interface {twice} is given twice")));
    }
    let mut named = BTreeSet::new();
    if let Some(twice) = flags.input.read.iter().find(|path| !named.insert(*path)) {
        let path = page::safe::path_value(twice);
        return Err(Usage(format!("--read {path} is given twice: its packets would be, too")));
    }
    let sessions = sessions(&flags);
    let input = if flags.input.read.is_empty() {
        Input::Interfaces(flags.input.interface)
    } else {
        Input::Files(flags.input.read)
    };
    let defaults = Options::new(flags.volume, input);
    Ok(Options {
        members: flags.members,
        filter: flags.filter,
        snaplen: flags.snaplen,
        promiscuous: !flags.no_promiscuous,
        pool_bytes: flags.pool,
        slow: flags.slow_write.unwrap_or_default(),
        kernel_ring_bytes: flags.kernel_ring,
        queues: flags.queues.queues,
        way: flags.queues.source,
        busy_poll: flags.queues.busy_poll.map(|micros| Duration::from_micros(micros.into())),
        timestamps: flags.queues.timestamps,
        cpus: flags.queues.cpus.map(|Cpus(cpus)| cpus).unwrap_or_default(),
        sessions,
        index_dir: flags.index_dir,
        keep_sessions: flags.keep_sessions,
        scrub_every: flags.scrub_every,
        classes: flags.classes,
        drop_duplicates: flags.drop_duplicates,
        cut_after: flags.flush_interval,
        max_age: flags.max_age.unwrap_or(defaults.max_age),
        erase: flags.erase,
        clock_is_right: flags.clock_is_right,
        without: flags.without,
        on_member_change: flags.on_member_change,
        discard: flags.discard,
        name: flags.name,
        ..defaults
    })
}

/// The standing hold, if the flags ask for one.
fn standing(
    flags: StandingFlags,
    options: &Options,
    vlan_in_key: bool,
) -> anyhow::Result<Option<Standing>> {
    let StandingFlags { hold, hold_dir, hold_budget } = flags;
    let (Some(query_text), Some(folder)) = (hold, hold_dir) else { return Ok(None) };
    options.index_dir.iter().for_each(|folder| host::keep_folder(folder));
    host::check_folder(&folder)?;
    let opened = volume::open_superblocks(&options.volume, &options.members);
    if opened.is_ok_and(|reader| reader.superblock().is_encrypted) {
        let path = page::safe::path(&options.volume);
        let text = format!("{path} is encrypted, and its recorder cannot read what it is to hold");
        return Err(Usage(format!("{text}: use wirespool hold --identity FILE")).into());
    }
    // Asked before rights are given up, and a query that is none before packets are taken.
    evidence::maker();
    arguments::query(&query_text)?;
    let reading = ::extract::Options {
        volume: options.volume.clone(),
        members: options.members.clone(),
        index_dir: options.index_dir.clone(),
        keep_sessions: None,
        vlan_in_key,
        workers: options.workers.clone(),
        is_recorded: true,
        ..::extract::Options::default()
    };
    let order = Order {
        query_text,
        folder,
        budget: hold_budget,
        options: reading,
        is_live: matches!(options.input, Input::Interfaces(_)),
        say: Box::new(say_lines),
        manifest: Box::new(evidence::manifest_with(None)),
    };
    Standing::start(order).map(Some).map_err(|error| of_hold(&options.volume, error))
}

/// Size of the input files; `None` where it is not known.
fn input_bytes(input: &Input) -> Option<u64> {
    let Input::Files(paths) = input else { return None };
    let sizes = paths.iter().map(|path| match host::target(path) {
        Ok(host::Target::File { size_bytes }) => Some(size_bytes),
        _ => None,
    });
    sizes.sum()
}

/// Says what is wrong with these flags, as far as neither volume nor interfaces are needed for it.
pub(crate) fn check(given: &ArgMatches) -> anyhow::Result<()> {
    let flags = Flags::from_arg_matches(given)?;
    if let Some(query) = &flags.standing.hold {
        arguments::query(query)?;
    }
    let options = options(flags)?;
    options.check_filters()?;
    Ok(())
}

/// What the recorder does once it has the volume and everything is open: it answers queries from
/// now on, and gives up the rights that it needs no more.
fn settled(
    options: &Options,
    answering: &Arc<OnceLock<Option<Answering>>>,
    (is_confined, hold_dir): (bool, Option<PathBuf>),
) -> Settled {
    let (volume, members) = (options.volume.clone(), options.members.clone());
    let (control, answering) = (options.control.clone(), Arc::clone(answering));
    Settled::new(move |held| {
        let start = || Answering::start(&volume, &members, control.clone());
        let socket = answering.get_or_init(start).as_ref().map(Answering::socket);
        if !is_confined {
            return Vec::new();
        }
        let further = hold_dir.as_slice();
        sandbox::confine_recorder(&confinement::rights(held, further, socket))
    })
}

pub(crate) fn run(mut flags: Flags) -> Outcome {
    let mut note = any::is_asked(&flags.input.interface).then_some(any::NOTE);
    flags.input.interface = any::interfaces(flags.input.interface)?;
    let json = flags.json;
    let (hold, vlan_in_key) = (flags.standing.clone(), flags.vlan_in_key);
    let (is_confined, hold_dir) = (!flags.no_sandbox, flags.standing.hold_dir.clone());
    let takes_over = flags.take_over;
    let mut options = options(flags)?;
    if takes_over {
        let (volume, members) = (options.volume.clone(), options.members.clone());
        let control = options.control.clone();
        options.take_over = Some(recorder::take_over(volume, members, control));
    }
    if is_confined {
        // Before anything is opened: it has nothing that a child should not have.
        let launcher = Arc::new(confinement::launcher(&options)?);
        options.workers = workers::by_launcher(Arc::clone(&launcher));
        options.launcher = Some(launcher);
        sandbox::prevent_dumps(&mut Vec::new());
    }
    let answering = Arc::new(OnceLock::new());
    options.settled = settled(&options, &answering, (is_confined, hold_dir));
    let holding = standing(hold, &options, vlan_in_key)?;
    let stop = StopFlag::install()?;
    let input_bytes = input_bytes(&options.input);
    let mut progress = Progress::new("record");
    let mut is_told = false;
    let report = ::record::record(&options, &SystemClock, &mut |state| {
        if let Some(holding) = &holding {
            holding.tell(state);
        }
        if let Some(Some(answering)) = answering.get() {
            answering.note(state);
        }
        let text = || volume_view::recording_progress(state);
        match input_bytes {
            // What goes to the member is a little more than what came in: good enough for a guess.
            Some(total) if state.member_bytes < total => {
                progress.share(state.member_bytes, total, &|_| format!("{}, about", text()));
            }
            _ => progress.text(&text),
        }
        note.take().iter().for_each(|note| progress.say(note));
        state.news.iter().for_each(|event| progress.say(&event.text));
        if stop.is_set() {
            if !core::mem::replace(&mut is_told, true) {
                progress.say("stopping: storing the accepted packets; Ctrl-C again gives up");
            }
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    progress.finish();
    let mut report = report.map_err(|error| of_record(&options.volume, error))?;
    report.news.iter().for_each(|event| say(&event.text));
    let aside = holding.map(|holding| holding.finish(report.acknowledged.sequence));
    let aside = aside.unwrap_or_default();
    report.notes.extend(aside.lines());
    let text = if json {
        volume_view::recording_json(&report)
    } else {
        volume_view::recording(&report, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(volume_view::is_clean(&report) && aside.is_complete()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_auto_or_a_number() {
        assert_eq!(queues("auto"), Ok(Queues::Auto));
        assert_eq!(queues("4"), Ok(Queues::Count(NonZeroUsize::new(4).unwrap())));
        for text in ["", "0", "65", "-1", "all"] {
            assert!(queues(text).is_err(), "{text}");
        }
    }

    #[test]
    fn session_timeouts_are_off_or_a_list() {
        assert_eq!(session_timeout("off"), Ok(Timeouts::Off));
        let two = vec![(Kind::Tcp, 300_000_000_000), (Kind::Udp, 500_000_000)];
        assert_eq!(session_timeout("tcp=5m,udp=500ms"), Ok(Timeouts::Some(two)));
        for text in ["", "on", "tcp", "tcp=", "sctp=5m", "tcp=5m,", "tcp=300000d"] {
            assert!(session_timeout(text).is_err(), "{text}");
        }
    }
}
