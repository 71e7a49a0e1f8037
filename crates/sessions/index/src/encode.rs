//! Rows into Parquet bytes.

use core::{fmt, mem};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use format::directory::{SegmentEntry, Summary};
use format::head::StripeId;
use format::session_row::{PieceSpan, SessionRow};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, TypePtr};
use units::Timestamp;
use units::number::to_u64;

use crate::columns::{Access, COLUMNS, Column, Layout, Presence, TIME_COLUMNS, Width};
use crate::error::Result;
use crate::filter;
use crate::meta::{KEY, SegmentMeta};

/// Rows in a row group: the unit that the filters of a file rule out, that a single row costs, and
/// that a thread encodes.
pub const GROUP_ROWS: usize = 8192;
/// Rows turned into arrays at a time. Every column walks over all of them, so they should stay in
/// the cache: a slice has about 400 bytes, and a core's cache at least 1 MiB.
const BLOCK_ROWS: usize = 1024;
/// The first column is the start.
const SORTED_BY: SortingColumn =
    SortingColumn { column_idx: 0, descending: false, nulls_first: false };
const CREATED_BY: &str = "wirespool";
/// Chosen by size and time: docs/sessions.md, Size.
const ZSTD_LEVEL: i32 = 1;

/// A segment's file, and what the directory says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The Parquet file.
    pub parquet: Vec<u8>,
    /// The directory's view of the segment.
    pub summary: Summary,
}

impl Encoded {
    /// The directory's entry, with the stripe of the INDEX part 0 and the number of its parts,
    /// where the ring has it.
    pub fn entry(&self, index: Option<(StripeId, u16)>) -> SegmentEntry {
        let (index, parts) = index.unwrap_or_default();
        let bytes = to_u64(self.parquet.len());
        SegmentEntry { summary: self.summary, index, parts, bytes }
    }
}

/// The Parquet file of a segment: `rows` in the order of their start.
pub fn encode(meta: &SegmentMeta, rows: &[SessionRow]) -> Result<Encoded> {
    let encoder = GroupEncoder::new()?;
    let order = by_start(rows).into_iter();
    let sorted: Vec<&SessionRow> = order.filter_map(|(_, at)| rows.get(at)).collect();
    let groups = sorted.chunks(GROUP_ROWS).enumerate();
    let groups = groups.map(|(number, rows)| encoder.encode(number, rows));
    encoder.file(meta, groups.collect::<Result<_>>()?)
}

/// The order of rows in a segment: their starts, and their places in `rows`. Rows of the same start
/// keep their order.
pub fn by_start(rows: &[SessionRow]) -> Vec<(Timestamp, usize)> {
    // The rows are far apart in memory: to be compared, their starts are put side by side.
    let mut order: Vec<(Timestamp, usize)> = rows.iter().map(|row| row.start).zip(0..).collect();
    order.sort_unstable();
    order
}

/// A row group on its way into the file.
pub struct EncodedGroup {
    chunks: Vec<ArrowColumnChunk>,
    /// The distinct keys of its rows, for the filter.
    keys: Vec<u64>,
    rows: usize,
    earliest: Timestamp,
    latest: Timestamp,
}

/// Makes the file of a segment out of row groups, which are encoded each for itself, on any thread.
pub struct GroupEncoder {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    root: TypePtr,
    properties: Arc<WriterProperties>,
}

impl fmt::Debug for EncodedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedGroup").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl fmt::Debug for GroupEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupEncoder").finish_non_exhaustive()
    }
}

impl GroupEncoder {
    /// For one file.
    pub fn new() -> Result<Self> {
        let schema = Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()));
        let root = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
        let properties = Arc::new(properties()?);
        let (of, with) = (Arc::clone(&root), Arc::clone(&properties));
        let file = SerializedFileWriter::new(Vec::new(), of, with)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&schema));
        Ok(Self { factory, schema, root, properties })
    }

    /// Row group `number`, from 0: [`GROUP_ROWS`] rows, or fewer in the last; they and the groups
    /// lie in the order of their start.
    pub fn encode(&self, number: usize, group: &[&SessionRow]) -> Result<EncodedGroup> {
        let mut writers = self.factory.create_column_writers(number)?;
        let mut keys = Vec::new();
        for rows in group.chunks(BLOCK_ROWS) {
            let fields = self.schema.fields().iter();
            for ((column, field), writer) in COLUMNS.iter().zip(fields).zip(&mut writers) {
                for leaf in compute_leaves(field, &array(column, rows))? {
                    writer.write(&leaf)?;
                }
            }
            filter::add_keys(rows, &mut keys);
        }
        let chunks =
            writers.into_iter().map(|writer| Ok(writer.close()?)).collect::<Result<_>>()?;
        Ok(EncodedGroup {
            chunks,
            keys: filter::distinct(keys),
            rows: group.len(),
            earliest: group.iter().fold(Timestamp::MAX, |time, row| time.min(row.start)),
            latest: group.iter().fold(Timestamp::MIN, |time, row| time.max(row.end)),
        })
    }

    /// The file of all `groups`, in their order. The bounds of `meta` grow to cover the rows: a
    /// slice may begin in the segment before.
    pub fn file(&self, meta: &SegmentMeta, groups: Vec<EncodedGroup>) -> Result<Encoded> {
        let mut meta = meta.clone();
        for group in &groups {
            meta.time_min = meta.time_min.min(group.earliest);
            meta.time_max = meta.time_max.max(group.latest);
        }
        let (root, properties) = (Arc::clone(&self.root), Arc::clone(&self.properties));
        let mut file = SerializedFileWriter::new(Vec::new(), root, properties)?;
        let rows: usize = groups.iter().map(|group| group.rows).sum();
        let mut keys = Vec::with_capacity(groups.len());
        for encoded in groups {
            let mut group = file.next_row_group()?;
            for chunk in encoded.chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
            keys.push(encoded.keys);
        }
        file.append_key_value_metadata(KeyValue::new(KEY.to_owned(), meta.to_text()));
        let metadata = file.finish()?;
        let parquet = filter::insert(mem::take(file.inner_mut()), &metadata, &meta, &keys);
        let sessions = to_u64(rows);
        Ok(Encoded { parquet, summary: meta.summary(sessions) })
    }
}

fn properties() -> Result<WriterProperties> {
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
            Layout::Zstd => properties.set_column_compression(path, zstd),
            Layout::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Layout::Delta => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    // Only the times of a file cover a narrow range; the bounds of other columns would prune
    // nothing.
    for name in TIME_COLUMNS {
        properties =
            properties.set_column_statistics_enabled(name.into(), EnabledStatistics::Chunk);
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

pub(crate) fn field(column: &Column) -> Field {
    let list = |element| DataType::List(Arc::new(element_field(element)));
    let (data_type, nullable) = match column.access {
        Access::Time(..) => (DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
        Access::Number(width, ..) => (integer(width), false),
        Access::MaybeNumber(width, ..) => (integer(width), true),
        Access::Flag(..) => (DataType::Boolean, false),
        Access::MaybeFlag(..) => (DataType::Boolean, true),
        Access::Text(..) => (DataType::Utf8, true),
        Access::Texts(..) => (list(DataType::Utf8), false),
        Access::Numbers(..) => (list(DataType::Int32), false),
        Access::Pieces(..) => (list(DataType::Int64), false),
    };
    Field::new(column.name, data_type, nullable)
}

/// `element` is the name that the Parquet format prescribes.
fn element_field(data_type: DataType) -> Field {
    Field::new("element", data_type, false)
}

fn integer(width: Width) -> DataType {
    match width {
        Width::Narrow => DataType::Int32,
        Width::Wide => DataType::Int64,
    }
}

pub(crate) fn array(column: &Column, rows: &[&SessionRow]) -> ArrayRef {
    match column.access {
        Access::Time(get, _) => {
            Arc::new(TimestampNanosecondArray::from(get(rows)).with_timezone("UTC"))
        }
        Access::Number(width, get, _) => match width {
            Width::Narrow => {
                Arc::new(Int32Array::from_iter_values(get(rows).into_iter().map(narrow)))
            }
            Width::Wide => Arc::new(Int64Array::from(get(rows))),
        },
        Access::MaybeNumber(width, get, _) => {
            let values = rows.iter().map(|row| get(row));
            match width {
                Width::Narrow => {
                    Arc::new(values.map(|value| value.map(narrow)).collect::<Int32Array>())
                }
                Width::Wide => Arc::new(values.collect::<Int64Array>()),
            }
        }
        Access::Flag(get, _) => {
            Arc::new(BooleanArray::from(rows.iter().map(|row| get(row)).collect::<Vec<bool>>()))
        }
        Access::MaybeFlag(get, _) => {
            Arc::new(rows.iter().map(|row| get(row)).collect::<BooleanArray>())
        }
        Access::Text(get, _) => {
            let mut texts = StringBuilder::with_capacity(rows.len(), 16 * rows.len());
            let mut buffer = String::new();
            for row in rows {
                texts.append_option(get(row, &mut buffer));
            }
            Arc::new(texts.finish())
        }
        Access::Texts(get, _) => {
            let mut lists =
                ListBuilder::new(StringBuilder::new()).with_field(element_field(DataType::Utf8));
            for row in rows {
                for text in get(row) {
                    lists.values().append_value(text);
                }
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
        Access::Numbers(get, _) => {
            let mut lists =
                ListBuilder::new(Int32Builder::new()).with_field(element_field(DataType::Int32));
            for row in rows {
                for &number in get(row) {
                    lists.values().append_value(number.into());
                }
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
        Access::Pieces(presence, get, _) => pieces(presence, get, rows),
    }
}

fn narrow(value: i64) -> i32 {
    i32::try_from(value).expect("a narrow column holds 16 bits")
}

fn pieces(presence: Presence, get: fn(&PieceSpan) -> i64, rows: &[&SessionRow]) -> ArrayRef {
    let mut lists =
        ListBuilder::new(Int64Builder::new()).with_field(element_field(DataType::Int64));
    for row in rows {
        if presence == Presence::Always || row.pieces.iter().any(|piece| get(piece) != 0) {
            for piece in &row.pieces {
                lists.values().append_value(get(piece));
            }
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
