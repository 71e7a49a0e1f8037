//! `stenoread` and `stenocurl`: what people have in their fingers and scripts, with the arguments
//! of Stenographer's programs of these names. Both are second names of this binary.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::extract::{Options, Request};
use ::manifest::Limits;
use ::packet_output::Target;
use anyhow::{Context, bail};
use clap::Args;
use host::{Output, StopFlag, SystemClock};
use units::Clock as _;

use crate::failure::{Outcome, Usage, Verdict, of_extract, warn};
use crate::progress::say_lines;
use crate::{arguments, recorder, stdout};

/// A second name of the binary.
pub const READ: &str = "stenoread";
/// The other.
pub const CURL: &str = "stenocurl";

/// Where Stenographer has its settings, and the variable that names another place.
const CONFIG: &str = "/etc/stenographer/config";
const CONFIG_VARIABLE: &str = "STENOGRAPHER_CONFIG";
/// What curl ends with.
const TIMED_OUT: i32 = 28;

/// Show the packets of a Stenographer query with tcpdump.
///
/// Takes the arguments of Stenographer's stenoread: a query, then options for tcpdump, which gets
/// the packets. The volume is the one that `"Volume"` names in Stenographer's file of settings,
/// /etc/stenographer/config or `$STENOGRAPHER_CONFIG`. A link named stenoread to this program does
/// the same.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ln -s /usr/bin/wirespool /usr/local/bin/stenoread
  stenoread 'host 10.0.0.1 and port 53 and after 3h ago' -n -w dns.pcap
  stenoread --limit-packets 6 --limit-bytes 2048 'host 10.0.0.1' -n
  wirespool stenoread --volume /data/spool 'port 53' -n

An answer with several link types gets the link layer of its first packet.")]
pub struct ReadFlags {
    /// The volume
    #[arg(long)]
    volume: Option<PathBuf>,
    /// At most so many packets; 0 for no limit
    #[arg(long, value_name = "N")]
    limit_packets: Option<u64>,
    /// At most so many bytes, as the packets take in a pcap file; 0 for no limit
    #[arg(long, value_name = "N")]
    limit_bytes: Option<u64>,
    /// The query
    query: String,
    /// Options for tcpdump
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "TCPDUMP-OPTION")]
    tcpdump: Vec<OsString>,
}

/// Answer a Stenographer query with a pcap file.
///
/// Takes the arguments of Stenographer's stenocurl that concern a query: `/query -d QUERY`, with
/// -o, -s, -m, and the headers Steno-Limit-Packets and Steno-Limit-Bytes. There is no server behind
/// it: the volume, found as by stenoread, is read here. Stenographer's own script stenoread finds
/// it under this name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stenocurl /query -d 'host 10.0.0.1' > a.pcap
  stenocurl /query -s -d 'port 53' -H 'Steno-Limit-Packets: 100' -o dns.pcap
  wirespool stenocurl --volume /data/spool /query -d 'port 53' > dns.pcap

Exit code 28, as curl's, when --max-time has passed before the answer's end.")]
pub struct CurlFlags {
    /// The volume
    #[arg(long)]
    volume: Option<PathBuf>,
    /// The path that is asked for: /query
    path: String,
    /// The query
    #[arg(long, short, visible_aliases = ["data-binary", "data-raw"], value_name = "QUERY")]
    data: String,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A limit: `Steno-Limit-Packets: N` or `Steno-Limit-Bytes: N`, 0 for none; others are not
    /// looked at
    #[arg(long, short = 'H', value_name = "HEADER")]
    header: Vec<String>,
    /// End after this number of seconds
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    max_time: Option<Duration>,
    /// Print nothing but errors
    #[arg(long, short)]
    silent: bool,
    /// Print errors even with --silent
    #[arg(long, short = 'S')]
    show_error: bool,
}

/// Writes the packets that a query of Stenographer asks for.
pub fn read(flags: &ReadFlags) -> Outcome {
    let volume = volume(flags.volume.as_deref())?;
    let mut arguments: Vec<OsString> = ["-r", "-", "-s", "0"].map(OsString::from).to_vec();
    arguments.extend(flags.tcpdump.iter().cloned());
    // What is wrong with the query is said before a program starts.
    let query = arguments::query(&flags.query)?;
    let [packets, bytes] = [flags.limit_packets, flags.limit_bytes].map(limit);
    let limits = Limits { packets, bytes, ..Limits::default() };
    let request = Request { limits, ..Request::new(&query, &flags.query) };
    if let Some(path) = written(&flags.tcpdump) {
        host::check_output(path)?;
    }
    let mut piped = host::Piped::start(Path::new("tcpdump"), &arguments)?;
    let verdict = answer(&volume, &request, &mut piped, How { says: true, until: None });
    let code = piped.finish()?;
    let verdict = verdict?;
    match code {
        Some(0) => Ok(verdict),
        _ => bail!("tcpdump did not end well"),
    }
}

/// Letters of tcpdump(1) that the rest of the word, or else the next one, belongs to.
const WITH_VALUE: &[u8] = b"BCEFGMQTVWZcijmrsyz";

/// The file that tcpdump is told to write, by its last `-w`.
fn written(options: &[OsString]) -> Option<&Path> {
    let mut found = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let letters = option.as_bytes().strip_prefix(b"-").unwrap_or_default();
        let at = letters.iter().position(|it| *it == b'w' || WITH_VALUE.contains(it));
        let Some(at) = at.filter(|_| !letters.starts_with(b"-")) else { continue };
        let (letter, rest) = letters.split_at(at).1.split_first()?;
        let value = if rest.is_empty() { options.next()?.as_bytes() } else { rest };
        if *letter == b'w' {
            found = Some(Path::new(OsStr::from_bytes(value)));
        }
    }
    found
}

/// The same in the words of its `stenocurl`.
pub fn curl(flags: &CurlFlags) -> Outcome {
    if flags.path.trim_start_matches('/') != "query" {
        let text = format!("{} is nothing that is answered here: /query is", flags.path);
        return Err(Usage(text).into());
    }
    let began = since_boot();
    let volume = volume(flags.volume.as_deref())?;
    let mut limits = Limits::default();
    for header in &flags.header {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        let number = || {
            let text = format!("{header}: a number is missing");
            value.trim().parse().map(|number| limit(Some(number))).map_err(|_| Usage(text))
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "steno-limit-packets" => limits.packets = number()?,
            "steno-limit-bytes" => limits.bytes = number()?,
            _ => {}
        }
    }
    let query = arguments::query(&flags.data)?;
    let request = Request { limits, ..Request::new(&query, &flags.data) };
    let how =
        How { says: !flags.silent, until: flags.max_time.map(|time| began.saturating_add(time)) };
    match &flags.output {
        Some(path) => {
            let mut output = Output::create(path, true)?;
            let verdict = answer(&volume, &request, &mut output, how)?;
            output.finish()?;
            Ok(verdict)
        }
        None if stdout::is_terminal() => {
            let text = "packets are no text for a terminal; -o names a file";
            Err(Usage(text.to_owned()).into())
        }
        None => answer(&volume, &request, &mut stdout::bytes(), how),
    }
}

/// Of a limit 0 means none, as Stenographer has it.
fn limit(given: Option<u64>) -> Option<u64> {
    given.filter(|&limit| limit > 0)
}

/// As curl takes them: decimals are fine, 0 is no limit that anybody means.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| format!("{text} is no number of seconds above 0"))
}

fn since_boot() -> Duration {
    Duration::from_nanos(SystemClock.boottime_ns().unsigned_abs())
}

/// How an answer is given.
#[derive(Clone, Copy)]
struct How {
    /// Reports what is missing from the answer.
    says: bool,
    /// When it has to end, in time since boot.
    until: Option<Duration>,
}

/// Writes the packets of a query as pcap; says what is missing.
fn answer(
    volume: &Path,
    request: &Request<'_>,
    to: &mut dyn Write,
    how: How,
) -> anyhow::Result<Verdict> {
    let is_recorded = recorder::catch_up(volume, &[]);
    let options = Options {
        volume: volume.to_path_buf(),
        is_recorded,
        recorder: recorder::beginning(volume.to_path_buf(), Vec::new()),
        ..Options::default()
    };
    let stop = StopFlag::install()?;
    let is_over = || how.until.is_some_and(|until| since_boot() >= until);
    let go_on = &mut |_: &::extract::Progress| {
        if is_over() { ControlFlow::Break(()) } else { stop.flow() }
    };
    let report = ::extract::extract(&options, request, Target::Pcap(to), &SystemClock, go_on);
    let report = report.map_err(|error| of_extract(volume, error))?;
    let completeness = &report.manifest.completeness;
    // As Stenographer: a limit that was asked for is no verdict.
    let mut missing = completeness.clone();
    (missing.limited, missing.unsought) = (false, false);
    if how.says && !missing.is_complete() {
        say_lines(&format!("{}, {completeness}", page::text::plural(report.packets, "packet")));
    }
    if how.says && report.rewritten_packets > 0 {
        let packets = page::text::plural(report.rewritten_packets, "packet");
        say_lines(&format!("{packets} got the link layer of the first, as pcap holds one"));
    }
    if completeness.stopped && is_over() {
        warn("the time of --max-time is over before the answer's end");
        return Ok(Verdict::Program(TIMED_OUT));
    }
    Ok(Verdict::clean_if(missing.is_complete() || report.reader_gone))
}

/// The volume that is given, or set.
fn volume(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_path_buf());
    }
    let config = std::env::var_os(CONFIG_VARIABLE).map_or_else(|| CONFIG.into(), PathBuf::from);
    let text = host::read_input(&config).context("which volume? --volume names it; else")?;
    session_view::stenographer_volume(&text).map(PathBuf::from).ok_or_else(|| {
        let text = format!("{}: no \"Volume\" is named there", page::safe::path(&config));
        Usage(text).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_tcpdump_writes_is_found_among_its_options() {
        for (options, expected) in [
            (&["-n", "-w", "a.pcap"][..], Some("a.pcap")),
            (&["-nw", "a.pcap", "-c", "5"], Some("a.pcap")),
            (&["-wa.pcap", "-w", "b"], Some("b")),
            (&["-c", "-w"], None),
            (&["-c5", "-W", "2", "-nn", "tcp"], None),
            (&["--number", "-w"], None),
        ] {
            let options: Vec<OsString> = options.iter().map(OsString::from).collect();
            assert_eq!(written(&options), expected.map(Path::new), "{options:?}");
        }
    }
}
