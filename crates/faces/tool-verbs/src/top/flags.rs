//! What `wirespool top` is asked.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::tabs::TABS;
use crate::arguments;
use crate::reading::ReadingFlags;

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
pub struct Flags {
    /// An interface, a volume or a capture file [default: all interfaces that are up]
    #[arg(value_name = "INTERFACE|VOLUME|FILE")]
    pub(super) source: Option<PathBuf>,
    /// Begin with this tab; with --once it alone
    #[arg(long, value_name = "TAB",
        value_parser = arguments::word(TABS.map(|tab| tab.name), tab))]
    pub(super) tab: Option<&'static str>,
    /// Group its lines by this
    #[arg(long, value_name = "WHAT", requires = "tab",
        value_parser = PossibleValuesParser::new(groupings()))]
    pub(super) by: Option<String>,
    /// Begin with this filter of sessions
    #[arg(long, value_name = "QUERY", default_value = "", hide_default_value = true)]
    pub(super) query: String,
    /// Look at packets that match this filter, in the syntax of pcap-filter; the kernel applies it
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) filter: Option<String>,
    /// Begin with this moment of a volume or a file
    #[arg(long, value_name = "TIME")]
    pub(super) at: Option<String>,
    /// Look for a while, print and end
    #[arg(long)]
    pub(super) once: bool,
    /// How long to look with --once
    #[arg(long = "for", value_name = "TIME", value_parser = arguments::duration,
          default_value = "5s", requires = "once")]
    pub(super) duration: Duration,
    /// With --once: as JSON, all groupings
    #[arg(long, requires = "once")]
    pub(super) json: bool,
    /// Memory for packets that can be written out
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = arguments::size)]
    pub(super) memory: u64,
    #[command(flatten)]
    pub(super) reading: ReadingFlags,
}

/// By what lines of any tab go, each once.
fn groupings() -> BTreeSet<&'static str> {
    TABS.iter().flat_map(|tab| tab.groupings).copied().collect()
}

fn tab(text: &str) -> Result<&'static str, String> {
    let names = TABS.map(|tab| tab.name);
    let found = names.into_iter().find(|name| *name == text);
    found.ok_or_else(|| format!("one of {}", names.join(", ")))
}
