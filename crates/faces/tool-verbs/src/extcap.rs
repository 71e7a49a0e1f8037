//! `wirespool extcap`: Wireshark's interface to a volume.
//!
//! Wireshark calls the program that lies in its folder of extcap programs: for its interfaces, for
//! their link types and settings, and to capture into a pipe (doc/extcap.adoc of Wireshark). It
//! shows whatever comes on standard error as an error, so nothing else goes there.

use std::path::{Path, PathBuf};

use ::extract::{Options, Request};
use ::packet_output::Target;
use clap::{Args, ValueEnum};
use host::{Output, StopFlag, SystemClock};
use units::Timestamp;

use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::{arguments, recorder, stdout};

/// Name of the program in Wireshark's folder; by it the binary knows what it is.
pub const PROGRAM: &str = "wirespool-extcap";

/// Give recorded packets to Wireshark, as an interface of it.
///
/// `wirespool extcap --install` once, and Wireshark has two interfaces more: the packets of a
/// volume that a query selects, and those that a recorder stores from now on. The settings of an
/// interface (the wheel beside its name) ask for the volume, the query and the times; tshark and
/// dumpcap take them as options. The second interface takes a capture filter; packets come about a
/// second after they were on the wire, because only what is durable is shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo wirespool extcap --install
  wirespool extcap --install ~/.local/lib/wireshark/extcap
  tshark -i wirespool -o extcap.wirespool.volume:/data/spool -o 'extcap.wirespool.query:port 53'
  tshark -i wirespool-live -o extcap.wirespool_live.volume:/data/spool -f 'tcp port 443'")]
#[expect(clippy::struct_excessive_bools, reason = "Wireshark's questions are flags")]
pub struct Flags {
    /// Install this program into Wireshark's extcap directory, or another one
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "a flag with or without a value")]
    install: Option<Option<PathBuf>>,
    /// List the interfaces
    #[arg(long)]
    extcap_interfaces: bool,
    /// Wireshark's version
    #[arg(long, value_name = "VERSION", num_args = 0..=1, hide = true)]
    extcap_version: Option<String>,
    /// The interface that the other options are about
    #[arg(long, value_name = "INTERFACE")]
    extcap_interface: Option<Interface>,
    /// List the interface's link types
    #[arg(long)]
    extcap_dlts: bool,
    /// List the interface's settings
    #[arg(long)]
    extcap_config: bool,
    /// Write packets to --fifo
    #[arg(long, requires = "fifo")]
    capture: bool,
    /// The pipe that gets the packets
    #[arg(long, value_name = "PIPE")]
    fifo: Option<PathBuf>,
    /// A filter in the syntax of pcap-filter
    #[arg(long, value_name = "FILTER")]
    extcap_capture_filter: Option<String>,
    /// Toolbar messages: there are none
    #[arg(long, value_name = "PIPE", hide = true)]
    extcap_control_in: Option<PathBuf>,
    /// Toolbar messages: there are none
    #[arg(long, value_name = "PIPE", hide = true)]
    extcap_control_out: Option<PathBuf>,
    /// Setting: the volume
    #[arg(long)]
    volume: Option<PathBuf>,
    /// Setting: which sessions
    #[arg(long)]
    query: Option<String>,
    /// Setting: packets from this time on, in seconds since 1970 or as in a query
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Setting: packets before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Setting: all packets of the sessions
    #[arg(long)]
    whole_sessions: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Interface {
    #[value(name = "wirespool")]
    Recorded,
    #[value(name = "wirespool-live")]
    Live,
}

const INTERFACES: &str = "\
extcap {version=1}{help=https://www.wireshark.org/docs/man-pages/extcap.html}
interface {value=wirespool}{display=wirespool: recorded packets}
interface {value=wirespool-live}{display=wirespool: packets as they are recorded}
";
/// What Wireshark expects; pcapng says by itself of which link type packets are.
const LINK_TYPES: &str = "dlt {number=1}{name=EN10MB}{display=Ethernet}\n";
const VOLUME: &str = "\
arg {number=0}{call=--volume}{display=Volume}{type=fileselect}{mustexist=true}{required=true}\
{tooltip=A member of the volume: a file or a block device}
";
const RECORDED: &str = "\
arg {number=1}{call=--query}{display=Query}{type=string}\
{tooltip=Which sessions; nothing for all}{placeholder=host 10.0.0.1 and port 443}
arg {number=2}{call=--since}{display=From}{type=timestamp}{tooltip=Packets from this time on}
arg {number=3}{call=--until}{display=Until}{type=timestamp}{tooltip=Packets before this time}
arg {number=4}{call=--whole-sessions}{display=Whole sessions}{type=boolflag}\
{tooltip=All packets of the sessions, whatever their time}
";

/// Answers Wireshark, or records for it.
pub fn run(flags: &Flags) -> Outcome {
    if let Some(folder) = &flags.install {
        return install(folder.as_deref());
    }
    if flags.extcap_interfaces {
        stdout::print(INTERFACES)?;
        return Ok(Verdict::Clean);
    }
    let Some(interface) = flags.extcap_interface else {
        let text =
            "--install makes this an interface of Wireshark; the rest is Wireshark's to call";
        return Err(Usage(text.to_owned()).into());
    };
    if flags.extcap_dlts {
        stdout::print(LINK_TYPES)?;
    } else if flags.extcap_config {
        let of_recorded = if interface == Interface::Recorded { RECORDED } else { "" };
        stdout::print(&format!("{VOLUME}{of_recorded}"))?;
    } else if let (true, Some(fifo)) = (flags.capture, &flags.fifo) {
        capture(flags, interface, fifo)?;
    }
    Ok(Verdict::Clean)
}

fn install(folder: Option<&Path>) -> Outcome {
    let folders = folder.map_or_else(host::wireshark_folders, |folder| vec![folder.to_path_buf()]);
    let mut failure = None;
    for folder in &folders {
        match host::install_link(folder, PROGRAM) {
            Ok(link) => {
                let link = page::safe::path(&link);
                let said = if host::is_wireshark_folder(folder) {
                    "Wireshark has its interfaces now"
                } else {
                    "made; Wireshark has its interfaces where `tshark -G folders` names this folder"
                };
                stdout::print(&format!("{link}: {said}\n"))?;
                return Ok(Verdict::Clean);
            }
            Err(error) => failure = Some(error),
        }
    }
    let why = failure.map_or_else(
        || "Wireshark has no folder for it".to_owned(),
        |error| crate::failure::line(&error.into()),
    );
    anyhow::bail!("{why}; name another folder: --install DIR (`tshark -G folders` lists them)")
}

/// What may be missing is said in the capture itself, as a comment of its last blocks.
fn capture(flags: &Flags, interface: Interface, fifo: &Path) -> anyhow::Result<()> {
    let no_volume = || Usage("the volume is not set: Wireshark asks for it in the settings".into());
    let volume = flags.volume.clone().ok_or_else(no_volume)?;
    let recorder = recorder::beginning(volume.clone(), Vec::new());
    let mut options = Options { volume: volume.clone(), recorder, ..Options::default() };
    let filter = flags.extcap_capture_filter.as_deref().filter(|text| !text.trim().is_empty());
    let packet_filter = filter.map(arguments::packet_filter).transpose()?;
    let text = match interface {
        Interface::Recorded => query_text(flags),
        Interface::Live => String::new(),
    };
    let query = arguments::query(&text)?;
    let request = Request {
        whole_sessions: flags.whole_sessions,
        packet_filter,
        ..Request::new(&query, &text)
    };
    let stop = StopFlag::install()?;
    let flow = || stop.flow();
    let mut output = Output::create(fifo, false)?;
    let target = Target::Pcapng(&mut output);
    let failed = match interface {
        Interface::Recorded => {
            options.is_recorded = recorder::catch_up(&volume, &[]);
            let go_on = &mut |_: &::extract::Progress| flow();
            ::extract::extract(&options, &request, target, &SystemClock, go_on).err()
        }
        Interface::Live => {
            ::extract::follow(&options, &request, target, &SystemClock, &mut || flow()).err()
        }
    };
    failed.map_or(Ok(()), |error| Err(of_extract(&volume, error)))?;
    Ok(output.finish()?)
}

/// The query with the times of the settings.
fn query_text(flags: &Flags) -> String {
    let query = flags.query.as_deref().unwrap_or_default().trim();
    let mut parts = Vec::new();
    if !query.is_empty() {
        parts.push(format!("({query})"));
    }
    for (word, setting) in [("after", &flags.since), ("before", &flags.until)] {
        let time = setting.as_deref().map(str::trim).filter(|time| !time.is_empty());
        parts.extend(time.map(|time| format!("{word} {}", time_text(time))));
    }
    parts.join(" and ")
}

/// Wireshark gives seconds since 1970; people may write a time of the query language.
fn time_text(text: &str) -> String {
    Timestamp::from_unix_text(text).map_or_else(|| text.to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use query::Query;

    use super::*;

    #[test]
    fn times_are_seconds_or_words() {
        for (text, expect) in [
            ("1795339353", "2026-11-22T09:22:33.000000000Z"),
            ("1795339353.25", "2026-11-22T09:22:33.250000000Z"),
            ("1h ago", "1h ago"),
            ("2026-11-22", "2026-11-22"),
        ] {
            assert_eq!(time_text(text), expect);
            let query = format!("after {}", time_text(text));
            assert!(Query::parse(&query, Timestamp(0)).is_ok(), "{query}");
        }
    }
}
