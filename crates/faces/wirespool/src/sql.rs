//! `wirespool sql`.

use core::ops::ControlFlow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::extract::{Completeness, Options};
use ::sql::{Event, Source};
use anyhow::bail;
use clap::Args;
use host::{Output, StopFlag, SystemClock};
use page::{ParquetFile, RowTable};
use server::{RowForm, SqlRefused};

use crate::failure::{Outcome, Verdict, WrongQuery, of_extract};
use crate::find::ReadingFlags;
use crate::output_file;
use crate::progress::{Progress, say_lines};
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

Exit code 1 when the answer is incomplete, 5 when that is not known.")]
pub(crate) struct Flags {
    /// The volume; or a Parquet file, or a folder of them
    #[arg(value_name = "VOLUME|FILE.parquet|DIR")]
    source: PathBuf,
    /// The query; its words may be one argument or several
    #[arg(required = true)]
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
    let text = flags.query.join(" ");
    let source = source(flags)?;
    let mut form = Form::new(flags)?;
    let stop = StopFlag::install()?;
    let mut out = stdout::buffered();
    let mut written: anyhow::Result<()> = Ok(());
    let mut progress = Progress::new("sql");
    let mut count: u64 = 0;
    let report = ::sql::run(&source, &text, Arc::new(SystemClock), &mut |event| {
        written = form.take(&event, &mut out);
        if let Event::Rows(rows) = &event {
            count += u64::try_from(rows.num_rows()).unwrap_or(u64::MAX);
        }
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
    let report = report.map_err(|error| of_sql(&flags.source, error))?;
    if stop.is_set() {
        bail!("stopped: {} so far", page::text::plural(report.rows, "row"));
    }
    form.finish(&mut out)?;
    let completeness = &report.completeness;
    let is_whole = completeness.is_complete() && completeness.erased_through.is_none();
    if !is_whole || stdout::is_terminal() || flags.parquet.is_some() {
        let verdict = match source {
            Source::Volume(_) => format!(", {completeness}"),
            Source::Files(_) => String::new(),
        };
        say_lines(&format!("{}{verdict}", page::text::plural(report.rows, "row")));
    }
    Ok(Verdict::of(completeness.state()))
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
fn source(flags: &Flags) -> anyhow::Result<Source> {
    let path = &flags.source;
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    if !path.exists() {
        bail!("{} does not exist", page::safe::path(path));
    }
    Ok(if is_parquet || path.is_dir() {
        Source::Files(path.clone())
    } else {
        let mut options = flags.reading.options(path.clone())?;
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
