//! `wirespool find`.

mod summary;

use core::ops::ControlFlow;
use core::time::Duration;
use indexer::Workers;
use std::io::Write;
use std::path::PathBuf;
#[cfg(feature = "sql")]
use std::sync::Arc;

use ::extract::{Event, FindReport, Found, Options};
#[cfg(feature = "sql")]
use ::sql::{SessionBatches, SessionColumns};
use clap::{Args, ValueEnum};
#[cfg(feature = "sql")]
use host::Output;
use host::{StopFlag, SystemClock};
use query::Query;
#[cfg(feature = "sql")]
use view::ParquetFile;
use view::SessionTable;

use crate::arguments;
use crate::atlas::AtlasFlags;
use crate::failure::{Outcome, Verdict, of_extract, warn};
use crate::progress::{Progress, say_lines};
use crate::selection::NamingFlags;
use crate::{recorder, stdout};

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
  wirespool find /data/spool 'dns_names *.example.org' after 3h ago --json
  wirespool find /data/spool tcp --csv --limit 1000 > sessions.csv
  wirespool find /data/spool after 1h ago --plot
  wirespool find /data/spool 'port 443' --top sni --by sessions --limit 10
  wirespool find /data/spool --from-eve alert.json
  wirespool find /data/spool 'asn = 64500' --top country --mmdb asn.mmdb --mmdb country.mmdb

Exit code 1 when the answer is incomplete, 5 when nobody knows.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// One JSON object a line; times in nanoseconds since 1970, absent fields left out
    #[arg(long)]
    json: bool,
    /// Comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the sessions into this Parquet file, with the columns that `wirespool sql` has
    #[cfg(feature = "sql")]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "plot", "top"])]
    parquet: Option<PathBuf>,
    /// Replace an existing file
    #[cfg(feature = "sql")]
    #[arg(long, requires = "parquet")]
    force: bool,
    /// Draw the traffic of the sessions over time, by protocol
    #[arg(long, conflicts_with_all = ["csv", "top", "limit"])]
    plot: bool,
    /// Show the values of a field that have the most instead of sessions
    #[arg(long, value_name = "FIELD", conflicts_with = "csv")]
    top: Option<String>,
    /// What the most is of
    #[arg(long, value_enum, value_name = "WHAT", requires = "top", default_value_t = By::Bytes)]
    by: By,
    /// Stop after this many sessions; with --top, show so many values (20)
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    naming: NamingFlags,
    #[command(flatten)]
    atlas: AtlasFlags,
    /// Tell on standard error what the query cost; with --json as an object
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    reading: ReadingFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum By {
    Bytes,
    Packets,
    Sessions,
}

/// What find and extract share.
#[derive(Debug, Args)]
pub(crate) struct ReadingFlags {
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Where index files are cached
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Show rows whose packets are overwritten, as far back as this
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    keep_sessions: Option<Duration>,
    /// VLAN ids tell sessions apart in packets that no index has yet; an index knows by itself
    #[arg(long)]
    vlan_in_key: bool,
}

impl ReadingFlags {
    /// Members that were named and have a superblock.
    pub(crate) fn members(&self) -> Vec<PathBuf> {
        let is_usable = |path: &&PathBuf| !volume::lacks_superblock(path);
        self.members.iter().filter(is_usable).cloned().collect()
    }

    /// What a recorder of the volume has taken so far can be read, too.
    pub(crate) fn catch_up(&self, options: &mut Options) {
        options.is_recorded = recorder::catch_up(&options.volume, &self.members());
    }

    /// A member that was named and is none, half made or overwritten, is left to the others.
    pub(crate) fn options(&self, volume: PathBuf) -> Options {
        let members = self.members();
        for path in self.members.iter().filter(|path| !members.contains(path)) {
            let path = view::path(path);
            warn(&format!("{path} has no superblock of a volume: it was left out"));
        }
        Options {
            volume,
            members,
            index_dir: self.index_dir.clone(),
            keep_sessions: self.keep_sessions,
            vlan_in_key: self.vlan_in_key,
            workers: Workers::default(),
            is_recorded: false,
        }
    }
}

/// The forms of an answer that lists sessions.
enum Form {
    Table(SessionTable),
    Json,
    Csv,
    #[cfg(feature = "sql")]
    Parquet(SessionBatches, ParquetFile<Output>),
}

impl Form {
    #[cfg_attr(
        not(feature = "sql"),
        expect(clippy::unnecessary_wraps, reason = "only a file may fail to be created")
    )]
    fn new(flags: &Flags) -> anyhow::Result<Self> {
        #[cfg(feature = "sql")]
        if let Some(path) = &flags.parquet {
            let columns = SessionColumns::all();
            let file = Output::create(path, flags.force)?;
            let file = ParquetFile::new(file, Arc::clone(columns.schema()))?;
            return Ok(Self::Parquet(SessionBatches::new(columns), file));
        }
        Ok(match (flags.json, flags.csv) {
            (true, _) => Self::Json,
            (_, true) => Self::Csv,
            _ => Self::Table(SessionTable::new(stdout::width())),
        })
    }

    fn heading(&self) -> String {
        if let Self::Csv = self { view::csv_heading() } else { String::new() }
    }

    /// Takes a session; writes what is ready.
    fn take(&mut self, found: &Found, out: &mut dyn Write) -> anyhow::Result<()> {
        let text = match self {
            Self::Table(table) => table.push(found),
            Self::Json => view::json_line(found),
            Self::Csv => view::csv_line(found),
            #[cfg(feature = "sql")]
            Self::Parquet(batches, file) => {
                if let Some(batch) = batches.push(found)? {
                    file.write(&batch)?;
                }
                return Ok(());
            }
        };
        Ok(out.write_all(text.as_bytes())?)
    }

    fn finish(self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Table(table) => out.write_all(table.finish().as_bytes())?,
            #[cfg(feature = "sql")]
            Self::Parquet(mut batches, mut file) => {
                if let Some(batch) = batches.take()? {
                    file.write(&batch)?;
                }
                file.finish()?.finish()?;
            }
            Self::Json | Self::Csv => {}
        }
        Ok(())
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    let text = flags.naming.query_text(&flags.query)?;
    let query = arguments::query_with(&text, &flags.atlas)?;
    let mut options = flags.reading.options(flags.volume.clone());
    flags.reading.catch_up(&mut options);
    let report = match flags.top.as_deref() {
        Some(name) => summary::top(flags, &options, &query, name)?,
        None if flags.plot => summary::plot(flags, &options, &query)?,
        None => list(flags, &options, &query)?,
    };
    if flags.explain {
        let cost = &report.explain;
        let text = if flags.json { view::explain_json(cost) } else { view::explain(cost) };
        say_lines(&text);
    }
    let mut completeness = report.completeness;
    let is_erased = completeness.erased_through.is_some();
    if !completeness.is_complete() || is_erased || stdout::is_terminal() {
        let what = if flags.plot { "row" } else { "session" };
        say_lines(&format!("{}, {completeness}", view::plural(report.sessions, what)));
    }
    // A limit was asked for: reaching it is no verdict.
    completeness.limited &= flags.limit.is_none();
    Ok(Verdict::of(completeness.state()))
}

/// Shows the sessions themselves.
fn list(flags: &Flags, options: &Options, query: &Query) -> anyhow::Result<FindReport> {
    let stop = StopFlag::install()?;
    let mut form = Form::new(flags)?;
    let mut out = stdout::buffered();
    let mut written: anyhow::Result<()> = Ok(out.write_all(form.heading().as_bytes())?);
    let mut progress = Some(Progress::new("find"));
    let report = ::extract::find(options, query, flags.limit, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => {
                // A bar has no place among the lines of an answer.
                if let Some(progress) = progress.take_if(|_| stdout::is_terminal()) {
                    progress.finish();
                }
                if written.is_ok() {
                    written = form.take(found, &mut out);
                }
            }
            Event::Searched { parts, of } => {
                if let Some(progress) = &mut progress {
                    show(progress, parts, of);
                }
            }
        }
        if stop.is_set() || written.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let report = report.map_err(|error| of_extract(&flags.volume, error))?;
    written?;
    form.finish(&mut out)?;
    out.flush()?;
    Ok(report)
}

/// How much of the ring is searched.
pub(crate) fn show(progress: &mut Progress, parts: usize, of: usize) {
    let [done, total] = [parts, of].map(|parts| u64::try_from(parts).unwrap_or(u64::MAX));
    progress.share(done, total, &|_| format!("{done} of {}", view::plural(total, "segment")));
}
