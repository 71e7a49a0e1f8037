//! In which form an answer lists sessions.

use std::io::Write;
#[cfg(feature = "sql")]
use std::sync::Arc;

use ::found::Found;
#[cfg(feature = "sql")]
use ::sql::SessionBatches;
#[cfg(feature = "sql")]
use host::Output;
#[cfg(feature = "sql")]
use page::ParquetFile;
use session_view::{ChosenTable, SessionColumns, SessionTable};

use super::flags::Flags;
#[cfg(feature = "sql")]
use crate::output_file;
use crate::stdout;

/// The forms of an answer that lists sessions.
pub(super) enum Form {
    Table(SessionTable),
    ChosenTable(ChosenTable),
    Json(Option<SessionColumns>),
    Csv(Option<SessionColumns>),
    #[cfg(feature = "sql")]
    Parquet(SessionBatches, ParquetFile<Output>),
}

impl Form {
    #[cfg_attr(
        not(feature = "sql"),
        expect(clippy::unnecessary_wraps, reason = "only a file may fail to be created")
    )]
    pub(super) fn new(flags: &Flags, columns: Option<SessionColumns>) -> anyhow::Result<Self> {
        #[cfg(feature = "sql")]
        if let Some(path) = &flags.parquet {
            let columns = ::sql::SessionColumns::all();
            let file = output_file::create(path, flags.force)?;
            let file = ParquetFile::new(file, Arc::clone(columns.schema()))?;
            return Ok(Self::Parquet(SessionBatches::new(columns), file));
        }
        let (width, zone) = (stdout::width(), || flags.zone());
        Ok(match (flags.json, flags.csv, columns) {
            (true, _, columns) => Self::Json(columns),
            (_, true, columns) => Self::Csv(columns),
            (.., Some(columns)) => Self::ChosenTable(ChosenTable::new(columns, width, zone())),
            _ => Self::Table(SessionTable::new(width, zone())),
        })
    }

    pub(super) fn heading(&self) -> String {
        match self {
            Self::Csv(Some(columns)) => columns.csv_heading(),
            Self::Csv(None) => session_view::csv_heading(),
            _ => String::new(),
        }
    }

    /// Takes a session; writes what is ready.
    pub(super) fn take(&mut self, found: &Found, out: &mut dyn Write) -> anyhow::Result<()> {
        let text = match self {
            Self::Table(table) => table.push(found),
            Self::ChosenTable(table) => table.push(found),
            Self::Json(Some(columns)) => columns.json_line(found),
            Self::Json(None) => session_view::json_line(found),
            Self::Csv(Some(columns)) => columns.csv_line(found),
            Self::Csv(None) => session_view::csv_line(found),
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

    pub(super) fn finish(self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Table(table) => out.write_all(table.finish().as_bytes())?,
            Self::ChosenTable(table) => out.write_all(table.finish().as_bytes())?,
            #[cfg(feature = "sql")]
            Self::Parquet(mut batches, mut file) => {
                if let Some(batch) = batches.take()? {
                    file.write(&batch)?;
                }
                file.finish()?.finish()?;
            }
            Self::Json(_) | Self::Csv(_) => {}
        }
        Ok(())
    }
}
