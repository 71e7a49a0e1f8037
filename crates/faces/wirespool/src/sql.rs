//! `wirespool sql`.

mod remote;

use core::ops::ControlFlow;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::completeness::Completeness;
use ::extract::Options;
use ::remote::There;
use ::sql::{Event, Source};
use anyhow::bail;
use clap::Args;
use host::{Output, StopFlag, SystemClock};
use page::{ParquetFile, RowTable};
use worker::{RowForm, SqlRefused};

use crate::answered::Answered;
use crate::failure::{Outcome, Usage, Verdict, WrongQuery, of_extract};
use crate::output_file;
use crate::progress::{Progress, say_lines};
use crate::reading::ReadingFlags;
use crate::remote::{Asked, Place, RemoteFlags, answered, of_remote, refused, volume_or_word};
use crate::stdout;

/// Query sessions, pieces and gaps in SQL.
///
/// The tables of a volume are `sessions` (as find shows them), `pieces` and `gaps`; of a Parquet
/// file or a folder of them it is `sessions`. Columns have the names of `wirespool fields`; fields
/// with several values are lists: `array_has(dns_names, 'example.org')`. A query only reads. The
/// answer ends with what is missing from it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool sql /data/spool 'SELECT app, count(*) FROM sessions GROUP BY app'
  wirespool sql /data/spool \"SELECT orig_ip, count(*) AS n FROM sessions
      WHERE start_ns >= now() - INTERVAL '1 hour' GROUP BY orig_ip ORDER BY n DESC LIMIT 10\"
  wirespool sql /data/spool 'SELECT * FROM gaps' --json
  wirespool sql /data/spool 'SELECT * FROM sessions' --parquet sessions.parquet
  wirespool sql sessions.parquet 'SELECT sni, count(*) FROM sessions GROUP BY sni' --csv
  wirespool sql /data/spool 'DESCRIBE sessions'           the columns and their types
  wirespool --remote https://sensor:8420 sql spool 'SELECT count(*) FROM sessions'

Exit code 1 when the answer is incomplete, 5 when that is not known.")]
pub(crate) struct Flags {
    /// The volume; or a Parquet file, or a folder of them; with --remote the name of a volume
    #[arg(value_name = "VOLUME|FILE.parquet|DIR", required_unless_present = "remote",
        value_parser = volume_or_word())]
    source: Option<PathBuf>,
    /// The query; its words may be one argument or several
    #[arg(required_unless_present = "remote")]
    query: Vec<String>,
    /// One JSON object a line; times in nanoseconds since 1970, absent values left out
    #[arg(long)]
    json: bool,
    /// Comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the rows into this Parquet file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv"])]
    parquet: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "parquet")]
    force: bool,
    #[command(flatten)]
    reading: ReadingFlags,
    #[command(flatten)]
    remote: RemoteFlags,
}

/// Where the rows go.
enum Form {
    /// Once its columns are known.
    Table(Option<RowTable>),
    Json,
    Csv,
    /// Likewise.
    Parquet(Option<Output>, Option<ParquetFile<Output>>),
}

impl Form {
    fn new(flags: &Flags) -> anyhow::Result<Self> {
        Ok(match (&flags.parquet, flags.json, flags.csv) {
            (Some(path), ..) => Self::Parquet(Some(output_file::create(path, flags.force)?), None),
            (_, true, _) => Self::Json,
            (_, _, true) => Self::Csv,
            _ => Self::Table(None),
        })
    }

    /// Takes a part of the answer; writes what is ready.
    fn take(&mut self, event: &Event, out: &mut dyn Write) -> anyhow::Result<()> {
        let text = match (self, event) {
            (Self::Table(table), Event::Columns(columns)) => {
                *table = Some(RowTable::new(columns, stdout::width()));
                return Ok(());
            }
            (Self::Table(table), Event::Rows(rows)) => {
                table.as_mut().map_or_else(String::new, |table| table.push(rows))
            }
            (Self::Csv, Event::Columns(columns)) => page::rows_csv_heading(columns),
            (Self::Csv, Event::Rows(rows)) => page::rows_csv(rows),
            (Self::Json, Event::Columns(_)) => return Ok(()),
            (Self::Json, Event::Rows(rows)) => page::rows_json(rows),
            (Self::Parquet(file, open), Event::Columns(columns)) => {
                let file = file.take().expect("columns come once");
                *open = Some(ParquetFile::new(file, Arc::clone(columns))?);
                return Ok(());
            }
            (Self::Parquet(_, open), Event::Rows(rows)) => {
                open.as_mut().expect("columns come first").write(rows)?;
                return Ok(());
            }
        };
        Ok(out.write_all(text.as_bytes())?)
    }

    fn finish(self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Table(Some(table)) => out.write_all(table.finish().as_bytes())?,
            Self::Parquet(_, Some(file)) => file.finish()?.finish()?,
            _ => {}
        }
        Ok(out.flush()?)
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    if let Some(flag) = flags.reading.given().filter(|_| flags.remote.is_given()) {
        return Err(refused(flag).into());
    }
    let Asked { place, words } = flags.remote.asked(flags.source.as_deref(), &flags.query)?;
    let text = words.join(" ");
    if text.trim().is_empty() && flags.remote.is_given() {
        return Err(Usage("which rows? Give a query in SQL".to_owned()).into());
    }
    let (answered, has_verdict) = match place {
        Place::Here(path) => {
            let source = source(flags, &path)?;
            let has_verdict = matches!(source, Source::Volume(_));
            (run_here(flags, (&path, &source), &text)?, has_verdict)
        }
        Place::There(there) => (run_there(flags, &there.with_query(text))?, true),
    };
    if !answered.is_whole || stdout::is_terminal() || flags.parquet.is_some() {
        let (rows, _) = answered.said.split_once(", ").unwrap_or((&answered.said, ""));
        say_lines(if has_verdict { &answered.said } else { rows });
    }
    Ok(Verdict::of(answered.state))
}

fn run_here(
    flags: &Flags,
    (path, source): (&Path, &Source),
    text: &str,
) -> anyhow::Result<Answered> {
    let mut form = Form::new(flags)?;
    let stop = StopFlag::install()?;
    let mut out = stdout::buffered();
    let mut written: anyhow::Result<()> = Ok(());
    let mut progress = Progress::new("sql");
    let mut count: u64 = 0;
    let report = ::sql::run(source, text, Arc::new(SystemClock), &mut |event| {
        written = form.take(&event, &mut out);
        count += rows_of(&event);
        if !stdout::is_terminal() {
            progress.text(&|| page::text::plural(count, "row"));
        }
        if stop.is_set() || written.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    progress.finish();
    written?;
    let report = report.map_err(|error| of_sql(path, error))?;
    if stop.is_set() {
        bail!("stopped: {} so far", page::text::plural(report.rows, "row"));
    }
    form.finish(&mut out)?;
    Ok(Answered::new(report.rows, "row", &report.completeness))
}

/// Shows the rows that a service answers with.
fn run_there(flags: &Flags, there: &There) -> anyhow::Result<Answered> {
    let mut form = Form::new(flags)?;
    let mut out = stdout::buffered();
    let mut progress = Progress::new("sql");
    let mut count = 0;
    let id = remote::receive(there, &mut |event| {
        count += rows_of(&event);
        if !stdout::is_terminal() {
            progress.text(&|| page::text::plural(count, "row"));
        }
        form.take(&event, &mut out)
    });
    progress.finish();
    let id = match id {
        Err(error) if matches!(error.downcast_ref(), Some(::remote::Error::Stopped)) => {
            bail!("stopped: {} so far", page::text::plural(count, "row"));
        }
        other => other?,
    };
    let said = there.said(&id, Some(count)).map_err(of_remote)?;
    let answered = answered(there, said)?;
    form.finish(&mut out)?;
    Ok(answered)
}

fn rows_of(event: &Event) -> u64 {
    match event {
        Event::Rows(rows) => units::number::to_u64(rows.num_rows()),
        Event::Columns(_) => 0,
    }
}

/// Answers for a request over the network.
pub(crate) fn ask(
    options: &Options,
    (text, form, rows_max): (&str, RowForm, Option<u64>),
    take: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
) -> Result<Completeness, SqlRefused> {
    let form = match form {
        RowForm::Lines => ::sql::Form::Lines(page::rows_json),
        RowForm::Arrow => ::sql::Form::Arrow,
    };
    let (source, clock) = (Source::Volume(options.clone()), Arc::new(SystemClock));
    let report = ::sql::send(&source, text, (form, rows_max), clock, take);
    let report = report.map_err(|error| match error {
        ::sql::Error::Query(error) => SqlRefused::Query(error.render()),
        ::sql::Error::Volume(error) => SqlRefused::Volume(error),
        error => SqlRefused::Other(error.to_string()),
    })?;
    Ok(report.completeness)
}

/// A folder, or a file with the ending of Parquet, is one of those; all else is a volume.
fn source(flags: &Flags, path: &Path) -> anyhow::Result<Source> {
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    let own = path.to_path_buf();
    let is_folder = match device::patiently(path, move || own.metadata()) {
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
            bail!("{} does not exist", page::safe::path(path));
        }
        Err(error @ device::Error::Interrupted) => return Err(error.into()),
        // Another member of the volume may answer.
        answer => answer.ok().and_then(Result::ok).is_some_and(|found| found.is_dir()),
    };
    Ok(if is_parquet || is_folder {
        if flags.parquet.is_some() {
            host::keep_inputs(path, "parquet")?;
        }
        Source::Files(path.to_path_buf())
    } else {
        let mut options = flags.reading.options(path.to_path_buf())?;
        flags.reading.catch_up(&mut options);
        Source::Volume(options)
    })
}

fn of_sql(path: &Path, error: ::sql::Error) -> anyhow::Error {
    match error {
        ::sql::Error::Query(error) => WrongQuery(error.render()).into(),
        ::sql::Error::Volume(error) => of_extract(path, error),
        error => {
            anyhow::Error::new(error).context(format!("cannot read {}", page::safe::path(path)))
        }
    }
}
