//! Tables into a Parquet file.

use core::fmt;
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

/// Why a table could not be written.
#[derive(Debug)]
pub struct TableNotWritten(ParquetError);

impl fmt::Display for TableNotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write the table: ")?;
        match &self.0 {
            // The file's own words, which name it.
            ParquetError::External(source) => source.fmt(f),
            error => error.fmt(f),
        }
    }
}

impl core::error::Error for TableNotWritten {}

impl From<ParquetError> for TableNotWritten {
    fn from(error: ParquetError) -> Self {
        Self(error)
    }
}

impl From<ArrowError> for TableNotWritten {
    fn from(error: ArrowError) -> Self {
        Self(error.into())
    }
}

/// A file that is being written.
pub struct ParquetFile<W: Write + Send> {
    /// Apart, for it is large.
    writer: Box<ArrowWriter<W>>,
}

impl<W: Write + Send> fmt::Debug for ParquetFile<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file with these columns.
    pub fn new(file: W, columns: SchemaRef) -> Result<Self, TableNotWritten> {
        let properties = WriterProperties::builder()
            .set_created_by("wirespool".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::Page)
            .build();
        let writer = ArrowWriter::try_new(file, columns, Some(properties))?;
        Ok(Self { writer: Box::new(writer) })
    }

    /// Appends rows.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), TableNotWritten> {
        Ok(self.writer.write(rows)?)
    }

    /// Writes the rest; gives the file back.
    pub fn finish(self) -> Result<W, TableNotWritten> {
        Ok(self.writer.into_inner()?)
    }
}
