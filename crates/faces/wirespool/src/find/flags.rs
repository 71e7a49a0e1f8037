//! What `wirespool find` is asked.

use std::path::PathBuf;

use ::flags::fields::{no_field, sort_by, zone_of};
use ::found::{SortBy, Sorted};
use clap::{Args, ValueEnum};
use page::text::Zone;
use session_view::SessionColumns;

use crate::atlas::AtlasFlags;
use crate::reading::ReadingFlags;
use crate::remote::{RemoteFlags, volume_or_word};
use crate::selection::NamingFlags;

/// So many of the newest sessions are held in memory while the ring is searched from its end.
const NEWEST_MAX: u64 = 10_000;

/// Find sessions.
///
/// Shows the sessions that match a query, oldest first; without a query all of them. The answer
/// ends with what is missing from it: gaps, damage, what the ring has overwritten. A query has the
/// words of pcap-filter, times, and comparisons of fields; `wirespool fields` lists them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool find /data/spool host 10.0.0.1 and port 443
  wirespool find /data/spool 'sni *.example.com and bytes > 1M'
  wirespool find /data/spool 'dns_names *.example.org and after 3h ago' --json
  wirespool find /data/spool tcp --csv --limit 1000 > sessions.csv
  wirespool find /data/spool after 1h ago --plot
  wirespool find /data/spool 'port 443' --top sni --by sessions --limit 10
  wirespool find /data/spool 'app tls' --columns start,resp_ip,sni,tls_cipher --local
  wirespool find /data/spool --sort bytes:desc --limit 10
  wirespool find /data/spool --from-eve alert.json
  wirespool find /data/spool 'asn = 64500' --top country --mmdb asn.mmdb --mmdb country.mmdb
  wirespool --remote https://sensor:8420 find spool 'port 53' --remote-token-file token

Exit code 1 when the answer is incomplete, 5 when that is not known; what --limit leaves out
does not count.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// The volume: a file or a block device; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    pub(super) volume: Option<PathBuf>,
    /// The query; its words may be one argument or several
    pub(super) query: Vec<String>,
    /// One JSON object a line; times in nanoseconds since 1970, absent fields left out
    #[arg(long)]
    pub(super) json: bool,
    /// Comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// Write the sessions into this Parquet file, with the columns that `wirespool sql` has
    #[cfg(feature = "sql")]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["json", "csv", "plot", "top", "columns", "local"]
    )]
    pub(super) parquet: Option<PathBuf>,
    /// Replace an existing file
    #[cfg(feature = "sql")]
    #[arg(long, requires = "parquet")]
    pub(super) force: bool,
    /// Show these fields, in this order; `wirespool fields` lists them
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub(super) columns: Vec<String>,
    /// Order sessions by a field, the smallest first, or with FIELD:desc the largest; those without
    /// a value come last. With --limit N the first N of this order. Holds at most 256 MiB of
    /// sessions
    #[arg(long, value_name = "FIELD[:desc]")]
    pub(super) sort: Option<String>,
    /// Show times in tables as the clocks of this machine do (TZ), with their offset
    #[arg(long, conflicts_with_all = ["json", "csv", "plot", "utc"])]
    pub(super) local: bool,
    /// Show times in UTC, as is usual
    #[arg(long)]
    pub(super) utc: bool,
    /// Draw the traffic of the sessions over time, by protocol
    #[arg(long, conflicts_with_all = ["csv", "top", "limit", "columns", "sort"])]
    pub(super) plot: bool,
    /// Show the values of a field with the largest sums, instead of sessions
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["columns", "sort"])]
    pub(super) top: Option<String>,
    /// What --top adds up
    #[arg(long, value_enum, value_name = "WHAT", requires = "top", default_value_t = By::Bytes)]
    pub(super) by: By,
    /// Stop after this many sessions; with --top, show so many values (20)
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,
    #[command(flatten)]
    pub(super) naming: NamingFlags,
    #[command(flatten)]
    pub(super) atlas: AtlasFlags,
    /// Print on standard error what the query cost; with --json as an object
    #[arg(long)]
    pub(super) explain: bool,
    #[command(flatten)]
    pub(super) reading: ReadingFlags,
    #[command(flatten)]
    pub(super) remote: RemoteFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum By {
    Bytes,
    Packets,
    Sessions,
}

impl Flags {
    pub(super) fn zone(&self) -> Zone {
        zone_of(self.local)
    }

    /// The columns that were chosen, if any were.
    pub(super) fn columns(&self) -> anyhow::Result<Option<SessionColumns>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let columns = SessionColumns::new(&self.columns).map_err(no_field)?;
        let atlas = self.atlas.read(columns.needing_atlas())?;
        Ok(Some(columns.with_atlas(atlas)))
    }

    /// The order that was asked for.
    pub(super) fn order(&self) -> anyhow::Result<Order> {
        let Some(text) = &self.sort else { return Ok(Order::OldestFirst) };
        let by @ SortBy { field, is_descending } = sort_by(text)?;
        let are_few = self.limit.is_some_and(|limit| limit <= NEWEST_MAX);
        if field.name == "start_ns" && is_descending && are_few {
            return Ok(Order::NewestFirst);
        }
        let atlas = self.atlas.read(field.needs_atlas().then_some(field))?;
        Ok(Order::Sorted(Sorted::new(by, self.limit, atlas)))
    }
}

/// In which order sessions are shown.
pub(super) enum Order {
    /// By their start, as they are found.
    OldestFirst,
    /// The same, searched from the newest back.
    NewestFirst,
    /// By another field: all are looked at before the first is shown.
    Sorted(Sorted),
}
