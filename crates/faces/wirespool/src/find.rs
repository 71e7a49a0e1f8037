//! `wirespool find`.

mod form;
mod remote;
mod summary;

use core::ops::ControlFlow;
use core::time::Duration;
use std::io::Write;
use std::path::PathBuf;

use ::extract::{Event, FindReport, Found, MergeMemory, Options, SortBy, Sorted, Sought};
use ::remote::{There, Wanted};
use clap::{Args, ValueEnum};
use host::{StopFlag, SystemClock};
use page::text::Zone;
use query::{Field, Query};
use session_view::SessionColumns;

use self::form::Form;
use crate::answered::Answered;
use crate::arguments::KeyFlags;
use crate::atlas::AtlasFlags;
use crate::failure::{Outcome, Usage, Verdict, of_extract, warn};
use crate::progress::{Progress, say_lines};
use crate::remote::{Asked, Place, RemoteFlags, first_given, refused, volume_or_word};
use crate::selection::NamingFlags;
use crate::{answered, arguments, recorder, stdout};
use indexer::Workers;

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

Exit code 1 when the answer is incomplete, 5 when that is not known.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// The volume: a file or a block device; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    volume: Option<PathBuf>,
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
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["json", "csv", "plot", "top", "columns", "local"]
    )]
    parquet: Option<PathBuf>,
    /// Replace an existing file
    #[cfg(feature = "sql")]
    #[arg(long, requires = "parquet")]
    force: bool,
    /// Show these fields, in this order; `wirespool fields` lists them
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Order sessions by a field, the smallest first, or with FIELD:desc the largest; those without
    /// a value come last. With --limit N the first N of this order. Holds at most 256 MiB of
    /// sessions
    #[arg(long, value_name = "FIELD[:desc]")]
    sort: Option<String>,
    /// Show times in tables as the clocks of this machine do (TZ), with their offset
    #[arg(long, conflicts_with_all = ["json", "csv", "plot", "utc"])]
    local: bool,
    /// Show times in UTC, as is usual
    #[arg(long)]
    utc: bool,
    /// Draw the traffic of the sessions over time, by protocol
    #[arg(long, conflicts_with_all = ["csv", "top", "limit", "columns", "sort"])]
    plot: bool,
    /// Show the values of a field with the largest sums, instead of sessions
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["columns", "sort"])]
    top: Option<String>,
    /// What --top adds up
    #[arg(long, value_enum, value_name = "WHAT", requires = "top", default_value_t = By::Bytes)]
    by: By,
    /// Stop after this many sessions; with --top, show so many values (20)
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    naming: NamingFlags,
    #[command(flatten)]
    atlas: AtlasFlags,
    /// Print on standard error what the query cost; with --json as an object
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    reading: ReadingFlags,
    #[command(flatten)]
    remote: RemoteFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum By {
    Bytes,
    Packets,
    Sessions,
}

/// Flags that find and extract share.
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
    /// Take the VLAN id as part of a session's key in packets without an index; an index has its
    /// own key
    #[arg(long)]
    vlan_in_key: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

impl Flags {
    fn zone(&self) -> Zone {
        if self.local { Zone::Local(host::local_offset_s) } else { Zone::Utc }
    }

    /// The columns that were chosen, if any were.
    fn columns(&self) -> anyhow::Result<Option<SessionColumns>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let columns = SessionColumns::new(&self.columns).map_err(no_field)?;
        let atlas = self.atlas.read(columns.needing_atlas())?;
        Ok(Some(columns.with_atlas(atlas)))
    }

    /// The order that was asked for.
    fn order(&self) -> anyhow::Result<Order> {
        let Some(text) = &self.sort else { return Ok(Order::OldestFirst) };
        let (name, is_descending) = match text.rsplit_once(':') {
            Some((name, "desc")) => (name, true),
            Some((name, "asc")) => (name, false),
            Some((_, order)) => {
                return Err(Usage(format!("{order:?} is no order; write asc or desc")).into());
            }
            None => (text.as_str(), false),
        };
        let field = field(name)?;
        let are_few = self.limit.is_some_and(|limit| limit <= NEWEST_MAX);
        if field.name == "start_ns" && is_descending && are_few {
            return Ok(Order::NewestFirst);
        }
        let atlas = self.atlas.read(field.needs_atlas().then_some(field))?;
        Ok(Order::Sorted(Sorted::new(SortBy { field, is_descending }, self.limit, atlas)))
    }
}

/// In which order sessions are shown.
enum Order {
    /// By their start, as they are found.
    OldestFirst,
    /// The same, searched from the newest back.
    NewestFirst,
    /// By another field: all are looked at before the first is shown.
    Sorted(Sorted),
}

/// The field of this name, or what was probably meant.
fn field(name: &str) -> Result<&'static Field, Usage> {
    Field::find(name).ok_or_else(|| no_field(name))
}

fn no_field(name: &str) -> Usage {
    let meant = Field::meant_by(name);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
    Usage(format!("there is no field {name:?}{meant} (wirespool fields lists them)"))
}

impl ReadingFlags {
    /// The first of them that was given: they are about files of this machine.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            (!self.members.is_empty(), "--member"),
            (self.index_dir.is_some(), "--index-dir"),
            (self.keep_sessions.is_some(), "--keep-sessions"),
            (self.vlan_in_key, "--vlan-in-key"),
            (self.keys.is_given(), "--identity"),
        ];
        first_given(&flags)
    }

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
    pub(crate) fn options(&self, volume: PathBuf) -> anyhow::Result<Options> {
        let members = self.members();
        for path in self.members.iter().filter(|path| !members.contains(path)) {
            let path = page::safe::path(path);
            warn(&format!("{path} has no superblock of a volume: it was left out"));
        }
        Ok(Options {
            recorder: recorder::beginning(volume.clone(), members.clone()),
            volume,
            members,
            index_dir: self.index_dir.clone(),
            keep_sessions: self.keep_sessions,
            vlan_in_key: self.vlan_in_key,
            workers: Workers::default(),
            is_recorded: false,
            merge: MergeMemory::default(),
            identities: self.keys.identities()?,
        })
    }
}

/// Where sessions are sought.
enum Source {
    Here(Options),
    There(Box<There>),
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    if flags.remote.is_given() {
        check_remote(flags)?;
    }
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &flags.query)?;
    let text = flags.naming.query_text(&words)?;
    let query = arguments::query_with(&text, &flags.atlas)?;
    let source = match place {
        Place::Here(volume) => {
            let mut options = flags.reading.options(volume)?;
            flags.reading.catch_up(&mut options);
            Source::Here(options)
        }
        Place::There(there) => {
            check_query(&query)?;
            Source::There(Box::new(there.with_query(text)))
        }
    };
    let answered = match (flags.top.as_deref(), &source) {
        (Some(name), source) => summary::top(flags, source, &query, name)?,
        (None, Source::Here(options)) if flags.plot => summary::plot(flags, options, &query)?,
        (None, source) => list(flags, source, &query)?,
    };
    if let Some(cost) = answered.explain.as_ref().filter(|_| flags.explain) {
        let text =
            if flags.json { session_view::explain_json(cost) } else { session_view::explain(cost) };
        say_lines(&text);
    }
    if !answered.is_whole || stdout::is_terminal() {
        say_lines(&answered.said);
    }
    if let Some(hint) = &answered.hint {
        say_lines(hint);
    }
    // A limit was asked for: reaching it is no verdict.
    let is_limited = flags.limit.is_some();
    Ok(Verdict::of(if is_limited { answered.state_within_limit } else { answered.state }))
}

/// Refuses what a service cannot do.
fn check_remote(flags: &Flags) -> anyhow::Result<()> {
    let own = [(flags.plot, "--plot"), (flags.explain, "--explain")];
    if let Some(flag) = first_given(&own).or_else(|| flags.reading.given()) {
        return Err(refused(flag).into());
    }
    if let Order::Sorted(_) = flags.order()?
        && let Some(name) = flags.sort.as_deref().and_then(|sort| sort.split(':').next())
        && field(name)?.needs_atlas()
    {
        let text = format!("--sort {name} has no meaning with --remote: a service has no --mmdb");
        return Err(Usage(text).into());
    }
    Ok(())
}

/// The same of what is asked.
fn check_query(query: &Query) -> Result<(), Usage> {
    match query.all_needing_atlas().into_iter().next() {
        None => Ok(()),
        Some(field) => Err(Usage(format!(
            "the field {} has no meaning with --remote: a service has neither --mmdb nor --tags",
            field.name
        ))),
    }
}

/// Shows the sessions themselves.
fn list(flags: &Flags, source: &Source, query: &Query) -> anyhow::Result<Answered> {
    let columns = flags.columns()?;
    let order = flags.order()?;
    let mut form = Form::new(flags, columns)?;
    let mut out = stdout::buffered();
    out.write_all(form.heading().as_bytes())?;
    let mut take = |found: &Found| form.take(found, &mut out);
    let answered = match source {
        Source::Here(options) => list_here(flags, options, (query, order), &mut take)?,
        Source::There(there) => {
            let order = match order {
                Order::OldestFirst => None,
                Order::NewestFirst => Some(("order", "newest".to_owned())),
                Order::Sorted(_) => flags.sort.clone().map(|sort| ("sort", sort)),
            };
            let wanted = Wanted { limit: flags.limit, order };
            remote::sessions(there, &wanted, &mut take)?
        }
    };
    form.finish(&mut out)?;
    out.flush()?;
    Ok(answered)
}

/// Calls `take` with the sessions of a volume of this machine in their order.
fn list_here(
    flags: &Flags,
    options: &Options,
    (query, mut order): (&Query, Order),
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let newest_first = matches!(order, Order::NewestFirst);
    let mut report = if let Order::Sorted(sorted) = &mut order {
        search(flags, options, &Sought::new(query), &mut |found| {
            sorted.push(found);
            Ok(())
        })?
    } else {
        let sought = Sought { limit: flags.limit, newest_first, ..Sought::new(query) };
        search(flags, options, &sought, take)?
    };
    if let Order::Sorted(sorted) = order {
        if sorted.left_out > 0 {
            answered::warn_of_left_out(sorted.left_out);
            report.completeness.stopped = true;
        }
        report.completeness.limited = sorted.is_limited;
        report.sessions = 0;
        for found in sorted.finish() {
            take(&found)?;
            report.sessions += 1;
        }
    }
    Ok(Answered::of_find(&report, "session", query))
}

/// Calls `take` with the sessions of the answer.
fn search(
    flags: &Flags,
    options: &Options,
    sought: &Sought<'_>,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<FindReport> {
    let stop = StopFlag::install()?;
    let mut taken: anyhow::Result<()> = Ok(());
    let mut progress = Some(Progress::new("find"));
    // A bar has no place among the lines of an answer.
    let ends_at_first = stdout::is_terminal() && flags.sort.is_none();
    let report = ::extract::find_columns(options, sought, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => {
                if let Some(progress) = progress.take_if(|_| ends_at_first) {
                    progress.finish();
                }
                if taken.is_ok() {
                    taken = take(found);
                }
            }
            Event::Searched { parts, of } => {
                if let Some(progress) = &mut progress {
                    show(progress, parts, of);
                }
            }
        }
        if stop.is_set() || taken.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let report = report.map_err(|error| of_extract(&options.volume, error))?;
    taken?;
    Ok(report)
}

/// How much of the ring is searched.
pub(crate) fn show(progress: &mut Progress, parts: usize, of: usize) {
    let [done, total] = [parts, of].map(|parts| u64::try_from(parts).unwrap_or(u64::MAX));
    progress.share(done, total, &|_| format!("{done} of {}", page::text::plural(total, "segment")));
}
