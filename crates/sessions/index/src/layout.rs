//! How the file of a segment is laid out: schema, encodings, row groups.

use core::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, TypePtr};

use crate::arrays::field;
use crate::bounds;
use crate::columns::{Access, COLUMNS, Column, Layout};
use crate::error::Result;

/// Rows in a row group: the unit that the filters of a file rule out, that a single row costs, and
/// that a thread encodes.
pub const GROUP_ROWS: usize = 8192;
/// The first column is the start.
const SORTED_BY: SortingColumn =
    SortingColumn { column_idx: 0, descending: false, nulls_first: false };
const CREATED_BY: &str = "wirespool";
/// Chosen by size and time: docs/sessions.md, Size.
const ZSTD_LEVEL: i32 = 1;

/// What every file has in common.
pub(crate) struct FileLayout {
    pub(crate) schema: SchemaRef,
    /// Makes the writers of a row group's columns.
    pub(crate) factory: ArrowRowGroupWriterFactory,
    root: TypePtr,
    properties: Arc<WriterProperties>,
}

impl fmt::Debug for FileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLayout").finish_non_exhaustive()
    }
}

impl FileLayout {
    pub(crate) fn new() -> Result<Self> {
        Self::with_bounds(bounds::are_stored)
    }

    /// One with bounds of these columns.
    pub(crate) fn with_bounds(has_bounds: fn(&Column) -> bool) -> Result<Self> {
        let schema = Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()));
        let root = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
        let properties = Arc::new(properties(has_bounds)?);
        let (of, with) = (Arc::clone(&root), Arc::clone(&properties));
        let file = SerializedFileWriter::new(Vec::new(), of, with)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&schema));
        Ok(Self { schema, factory, root, properties })
    }

    /// A file without a row group.
    pub(crate) fn file(&self) -> Result<SerializedFileWriter<Vec<u8>>> {
        let (root, properties) = (Arc::clone(&self.root), Arc::clone(&self.properties));
        Ok(SerializedFileWriter::new(Vec::new(), root, properties)?)
    }
}

/// A page of a compressed column ends with the batch of rows in which it reaches so many bytes: the
/// addresses of about a thousand rows.
const PAGE_BYTES: usize = 12 << 10;

fn properties(has_bounds: fn(&Column) -> bool) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true)
        .set_sorting_columns(Some(vec![SORTED_BY]));
    let zstd = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?);
    for column in COLUMNS {
        let path = path(column);
        properties = match column.layout {
            Layout::Plain => properties,
            // Unpacking is most of what a single row costs.
            Layout::Zstd => properties
                .set_column_compression(path.clone(), zstd)
                .set_column_data_page_size_limit(path, PAGE_BYTES),
            Layout::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Layout::Delta => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    for column in COLUMNS.iter().filter(|column| has_bounds(column)) {
        let (path, of_chunks) = (path(column), EnabledStatistics::Chunk);
        properties = properties.set_column_statistics_enabled(path, of_chunks);
    }
    Ok(properties.build())
}

fn path(column: &Column) -> ColumnPath {
    let mut parts = vec![column.name.to_owned()];
    if matches!(column.access, Access::Texts(..) | Access::Numbers(..) | Access::Pieces(..)) {
        parts.extend(["list".to_owned(), "element".to_owned()]);
    }
    ColumnPath::new(parts)
}
