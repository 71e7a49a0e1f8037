//! One column of a row group on its way into the file.

use core::mem;
use std::io::Write;
use std::sync::OnceLock;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use bytes::Bytes;
use format::session_row::SessionRow;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::writer::SerializedRowGroupWriter;
use units::number::to_u64;

use crate::arrays::{array, is_blank};
use crate::columns::{self, COLUMNS, Column};
use crate::error::Result;
use crate::layout::{FileLayout, GROUP_ROWS};

/// Rows turned into arrays at a time. Every column walks over all of them, so they should stay in
/// the cache: a slice has about 400 bytes, and a core's cache at least 1 MiB.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// Writes a column of a row group. Half of the columns have no value in most groups: these are not
/// encoded but copied, so blocks without a value are only counted until one has some.
pub(crate) struct ColumnEncoder {
    writer: ArrowColumnWriter,
    blank_rows: usize,
    is_blank: bool,
}

/// A column, and its field of the schema.
pub(crate) type ColumnOf<'a> = (&'a Column, &'a FieldRef);

impl ColumnEncoder {
    pub(crate) fn new(writer: ArrowColumnWriter) -> Self {
        Self { writer, blank_rows: 0, is_blank: true }
    }

    pub(crate) fn write(
        &mut self,
        (column, field): ColumnOf<'_>,
        rows: &[&SessionRow],
    ) -> Result<()> {
        if self.is_blank {
            if is_blank(column, rows) {
                self.blank_rows += rows.len();
                return Ok(());
            }
            self.write_blank((column, field))?;
        }
        self.write_array(field, &array(column, rows))
    }

    /// Writes the rows that were only counted.
    fn write_blank(&mut self, (column, field): ColumnOf<'_>) -> Result<()> {
        self.is_blank = false;
        let blank = columns::blank();
        let rows = vec![&blank; self.blank_rows.min(BLOCK_ROWS)];
        while self.blank_rows > 0 {
            let rows = rows.get(..self.blank_rows.min(BLOCK_ROWS)).unwrap_or(&rows);
            self.blank_rows -= rows.len();
            self.write_array(field, &array(column, rows))?;
        }
        Ok(())
    }

    fn write_array(&mut self, field: &FieldRef, array: &ArrayRef) -> Result<()> {
        for leaf in compute_leaves(field, array)? {
            self.writer.write(&leaf)?;
        }
        Ok(())
    }

    /// The encoded column; `None` where every value is that of a blank row, and the group is full.
    pub(crate) fn close(
        mut self,
        column: ColumnOf<'_>,
        rows: usize,
    ) -> Result<Option<ArrowColumnChunk>> {
        if self.is_blank && rows == GROUP_ROWS {
            return Ok(None);
        }
        if self.is_blank {
            self.write_blank(column)?;
        }
        Ok(Some(self.writer.close()?))
    }
}

/// A full row group of blank rows, encoded once: its columns are copied into every group that has
/// none of their values.
pub(crate) struct BlankGroup {
    file: Bytes,
    columns: Vec<ColumnCloseResult>,
}

impl BlankGroup {
    pub(crate) fn get() -> Result<&'static Self> {
        static BLANK: OnceLock<BlankGroup> = OnceLock::new();
        if let Some(group) = BLANK.get() {
            return Ok(group);
        }
        let group = Self::encode()?;
        Ok(BLANK.get_or_init(|| group))
    }

    fn encode() -> Result<Self> {
        let layout = FileLayout::new()?;
        let writers = layout.factory.create_column_writers(0)?;
        let mut file = layout.file()?;
        let mut group = file.next_row_group()?;
        let fields = layout.schema.fields().iter();
        for (column, writer) in COLUMNS.iter().zip(fields).zip(writers) {
            let mut encoder =
                ColumnEncoder { blank_rows: GROUP_ROWS, ..ColumnEncoder::new(writer) };
            encoder.write_blank(column)?;
            encoder.writer.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        let metadata = file.finish()?;
        let chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        let columns = chunks.map(|chunk| ColumnCloseResult {
            bytes_written: chunk.compressed_size().cast_unsigned(),
            rows_written: to_u64(GROUP_ROWS),
            metadata: chunk.clone(),
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        });
        Ok(Self { columns: columns.collect(), file: mem::take(file.inner_mut()).into() })
    }

    /// Copies the column at this place.
    pub(crate) fn append<W: Write + Send>(
        &self,
        place: usize,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let close = self.columns.get(place).expect("a column for each place").clone();
        Ok(group.append_column(&self.file, close)?)
    }
}

#[cfg(test)]
impl ColumnEncoder {
    /// One that encodes blank rows, too.
    pub(crate) fn of_all(writer: ArrowColumnWriter) -> Self {
        Self { is_blank: false, ..Self::new(writer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_row_is_blank_in_every_column() {
        let blank = columns::blank();
        // Every row has a text in these, so they are never copied.
        let never = ["state", "history"];
        for column in COLUMNS.iter().filter(|column| !never.contains(&column.name)) {
            assert!(is_blank(column, &[&blank]), "{}", column.name);
        }
    }
}
