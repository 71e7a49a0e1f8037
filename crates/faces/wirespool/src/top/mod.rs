//! `wirespool top`.

mod once;
mod pages;
mod saved;
mod tabs;

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::tui::{Pages as _, State};
use anyhow::bail;
use capture::{FileOptions, FileSource, LiveOptions, Source as _};
use clap::Args;
use host::{StopFlag, SystemClock};
use host::{Target, target};
use network::interfaces;
use talkers::Limits;
use units::ByteSize;

use self::pages::TopPages;
use self::tabs::TABS;
use crate::arguments;
use crate::failure::{Outcome, Usage, Verdict};
use crate::find::ReadingFlags;
use crate::{recorder, stdout};
use verbs::top::feed::Origin;

/// Kernel memory for packets of each interface.
const RING: ByteSize = ByteSize(32 << 20);
/// Lines that the user can scroll through; a query finds what is beyond.
const LINES_MAX: usize = 1000;

/// Show who uses network, DNS, disks and processors.
///
/// Shows the traffic of interfaces, of a volume or of a capture file by session, pair of hosts,
/// host, port and protocol over 2, 10 and 40 seconds; questions to DNS with what is slow or fails;
/// requests to disks by process and file; processors by process, library and function; sockets; the
/// machine; and recorders that run. Over a volume or a file one can go back in time. ? shows the
/// keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool top                                  all interfaces that are up
  wirespool top eth0 --query 'not port 22'
  wirespool top /data/spool --at '2026-11-20T10:40'
  wirespool top traffic.pcapng
  wirespool top eth0 --once --json --for 10s | jq '.tabs.talkers.host.lines[0]'
  wirespool top --once --tab disk --by file

Without root it shows what this user may see, and says what is missing and what it would take.")]
pub(crate) struct Flags {
    /// An interface, a volume or a capture file [default: all interfaces that are up]
    #[arg(value_name = "INTERFACE|VOLUME|FILE")]
    source: Option<PathBuf>,
    /// Begin with this tab; with --once it alone
    #[arg(long, value_name = "TAB", value_parser = tab)]
    tab: Option<&'static str>,
    /// Group its lines by this
    #[arg(long, value_name = "WHAT", requires = "tab")]
    by: Option<String>,
    /// Begin with this filter of sessions
    #[arg(long, value_name = "QUERY", default_value = "", hide_default_value = true)]
    query: String,
    /// Look at packets that match this filter, in the syntax of pcap-filter; the kernel applies it
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Begin with this moment of a volume or a file
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Look for a while, print and end
    #[arg(long)]
    once: bool,
    /// How long to look with --once
    #[arg(long = "for", value_name = "TIME", value_parser = arguments::duration,
          default_value = "5s", requires = "once")]
    duration: Duration,
    /// With --once: as JSON, all groupings
    #[arg(long, requires = "once")]
    json: bool,
    /// Memory for packets that can be written out
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = arguments::size)]
    memory: u64,
    #[command(flatten)]
    reading: ReadingFlags,
}

fn tab(text: &str) -> Result<&'static str, String> {
    let names = TABS.map(|tab| tab.name);
    let found = names.into_iter().find(|name| *name == text);
    found.ok_or_else(|| format!("one of {}", names.join(", ")))
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    arguments::query(&flags.query)?;
    if let (Some(tab), Some(by)) = (flags.tab, &flags.by) {
        check_grouping(tab, by)?;
    }
    if !flags.once && !stdout::is_terminal() {
        let text = "top needs a terminal; --once prints what there is, with --json for programs";
        return Err(Usage(text.to_owned()).into());
    }
    let (title, origin) = origin(flags)?;
    if flags.at.is_some() && matches!(origin, Origin::Interfaces(_)) {
        let text = "--at is a moment of a volume or a file: an interface has no past";
        return Err(Usage(text.to_owned()).into());
    }
    let stop = StopFlag::install()?;
    let limits = Limits {
        packet_bytes: usize::try_from(flags.memory).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let lines_max = if flags.once { usize::MAX } else { LINES_MAX };
    let mut pages = TopPages::new(title, origin, limits, lines_max)?;
    let at = flags.at.as_deref().map(|text| pages.second(text)).transpose().map_err(Usage)?;
    if flags.once {
        return once::run(flags, &mut pages, at, &stop);
    }
    let mut state = State::new(&pages);
    state.begin_with(flags.tab, flags.by.as_deref(), flags.query.trim());
    if let Some(second) = at {
        state.go_back_to(second);
    }
    ::tui::run(&mut pages, &mut state, &SystemClock, &|| stop.is_set())?;
    Ok(Verdict::Clean)
}

fn check_grouping(tab: &str, by: &str) -> Result<(), Usage> {
    let tab = TABS.iter().find(|it| it.name == tab).expect("a tab was checked when it was read");
    if tab.groupings.contains(&by) {
        return Ok(());
    }
    Err(Usage(format!("--by: lines of {} go by {}", tab.name, tab.groupings.join(", "))))
}

/// Where packets come from, and what that is called.
fn origin(flags: &Flags) -> anyhow::Result<(String, Origin)> {
    let live = |interfaces: Vec<String>| {
        let options = LiveOptions {
            interfaces,
            filter: flags.filter.clone(),
            ring_size: RING,
            ..LiveOptions::default()
        };
        (options.interfaces.join(", "), Origin::Interfaces(options))
    };
    let Some(source) = &flags.source else { return Ok(live(interfaces()?)) };
    let name = source.to_string_lossy().into_owned();
    let is_interface = !name.contains('/') && interfaces()?.contains(&name);
    if is_interface && !source.exists() {
        return Ok(live(vec![name]));
    }
    if flags.filter.is_some() {
        let text = "--filter is for interfaces: of what was recorded, --query selects";
        return Err(Usage(text.to_owned()).into());
    }
    if matches!(target(source)?, Target::Absent) {
        bail!("{name}: neither an interface nor a file");
    }
    if is_volume(source, flags) {
        let mut options = flags.reading.options(source.clone())?;
        let is_growing = recorder::state(source, &flags.reading.members()).is_some();
        options.is_recorded = is_growing;
        return Ok((name, Origin::Volume { options, is_growing }));
    }
    // What is no capture is said before anything is shown.
    let mut file = FileSource::open(source, FileOptions::default())?;
    let _packets = file.next_batch(Duration::ZERO)?;
    Ok((name, Origin::File(source.clone())))
}

fn is_volume(path: &Path, flags: &Flags) -> bool {
    ::volume::open_superblocks(path, &flags.reading.members()).is_ok()
}
