//! Rows into Parquet bytes.

use core::{fmt, mem};
use std::io::Write;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use format::directory::{SegmentEntry, Summary};
use format::head::StripeId;
use format::session_row::{PieceSpan, SessionRow};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{KeyValue, RowGroupMetaData, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, TypePtr};
use units::Timestamp;
use units::number::to_u64;

use crate::columns::{self, Access, COLUMNS, Column, Layout, Presence, TIME_COLUMNS, Width};
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
    chunks: Vec<Chunk>,
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

/// A column of a row group.
enum Chunk {
    Encoded(ArrowColumnChunk),
    /// All its values are those of a blank row, and the group is full.
    Blank,
}

/// Writes a column of a row group. Half of the columns have no value in most groups: these are not
/// encoded but copied, so blocks without a value are only counted until one has some.
struct Writer {
    writer: ArrowColumnWriter,
    blank_rows: usize,
    is_blank: bool,
}

type ColumnOf<'a> = (&'a Column, &'a FieldRef);

impl Writer {
    fn new(writer: ArrowColumnWriter) -> Self {
        Self { writer, blank_rows: 0, is_blank: true }
    }

    fn write(&mut self, (column, field): ColumnOf<'_>, rows: &[&SessionRow]) -> Result<()> {
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

    fn close(mut self, column: ColumnOf<'_>, rows: usize) -> Result<Chunk> {
        if self.is_blank && rows == GROUP_ROWS {
            return Ok(Chunk::Blank);
        }
        if self.is_blank {
            self.write_blank(column)?;
        }
        Ok(Chunk::Encoded(self.writer.close()?))
    }
}

/// A full row group of blank rows, encoded once: its columns are copied into every group that has
/// none of their values.
struct BlankGroup {
    file: Bytes,
    columns: Vec<ColumnCloseResult>,
}

impl BlankGroup {
    fn get() -> Result<&'static Self> {
        static BLANK: OnceLock<BlankGroup> = OnceLock::new();
        if let Some(group) = BLANK.get() {
            return Ok(group);
        }
        let group = Self::encode()?;
        Ok(BLANK.get_or_init(|| group))
    }

    fn encode() -> Result<Self> {
        let encoder = GroupEncoder::new()?;
        let writers = encoder.factory.create_column_writers(0)?;
        let (root, properties) = (Arc::clone(&encoder.root), Arc::clone(&encoder.properties));
        let mut file = SerializedFileWriter::new(Vec::new(), root, properties)?;
        let mut group = file.next_row_group()?;
        let fields = encoder.schema.fields().iter();
        for (column, writer) in COLUMNS.iter().zip(fields).zip(writers) {
            let mut writer = Writer { blank_rows: GROUP_ROWS, ..Writer::new(writer) };
            writer.write_blank(column)?;
            writer.writer.close()?.append_to_row_group(&mut group)?;
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
    fn append<W: Write + Send>(
        &self,
        place: usize,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let close = self.columns.get(place).expect("a column for each place").clone();
        Ok(group.append_column(&self.file, close)?)
    }
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
        let writers = self.factory.create_column_writers(number)?;
        let mut writers: Vec<Writer> = writers.into_iter().map(Writer::new).collect();
        let mut keys = Vec::new();
        for rows in group.chunks(BLOCK_ROWS) {
            let fields = self.schema.fields().iter();
            for ((column, field), writer) in COLUMNS.iter().zip(fields).zip(&mut writers) {
                writer.write((column, field), rows)?;
            }
            filter::add_keys(rows, &mut keys);
        }
        let fields = self.schema.fields().iter();
        let columns = COLUMNS.iter().zip(fields).zip(writers);
        let chunks = columns.map(|(column, writer)| writer.close(column, group.len()));
        Ok(EncodedGroup {
            chunks: chunks.collect::<Result<_>>()?,
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
            for (place, chunk) in encoded.chunks.into_iter().enumerate() {
                match chunk {
                    Chunk::Encoded(chunk) => chunk.append_to_row_group(&mut group)?,
                    Chunk::Blank => BlankGroup::get()?.append(place, &mut group)?,
                }
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

/// Whether a column has the value of a blank row in all of these.
fn is_blank(column: &Column, rows: &[&SessionRow]) -> bool {
    match column.access {
        Access::Time(get, _) | Access::Number(_, get, _) => {
            get(rows).iter().all(|&value| value == 0)
        }
        Access::MaybeNumber(_, get, _) => rows.iter().all(|row| get(row).is_none()),
        Access::Flag(get, _) => rows.iter().all(|row| !get(row)),
        Access::MaybeFlag(get, _) => rows.iter().all(|row| get(row).is_none()),
        Access::Text(get, _) => {
            let mut buffer = String::new();
            rows.iter().all(|row| get(row, &mut buffer).is_none())
        }
        Access::Texts(get, _) => rows.iter().all(|row| get(row).is_empty()),
        Access::Numbers(get, _) => rows.iter().all(|row| get(row).is_empty()),
        // A blank row has no pieces, others have.
        Access::Pieces(Presence::Always, ..) => rows.iter().all(|row| row.pieces.is_empty()),
        Access::Pieces(Presence::UnlessZero, get, _) => {
            rows.iter().all(|row| row.pieces.iter().all(|piece| get(piece) == 0))
        }
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

#[cfg(test)]
mod tests {
    use format::head::VolumeId;

    use super::*;

    /// The same row group, every column of it encoded.
    fn encode_all(encoder: &GroupEncoder, group: &[&SessionRow]) -> Vec<Chunk> {
        let writers = encoder.factory.create_column_writers(0).unwrap();
        let columns = COLUMNS.iter().zip(encoder.schema.fields().iter()).zip(writers);
        let encode = |((column, field), writer): (ColumnOf<'_>, ArrowColumnWriter)| {
            let mut writer = Writer { is_blank: false, ..Writer::new(writer) };
            for rows in group.chunks(BLOCK_ROWS) {
                writer.write((column, field), rows).unwrap();
            }
            Chunk::Encoded(writer.writer.close().unwrap())
        };
        columns.map(encode).collect()
    }

    #[test]
    fn a_file_has_the_same_bytes_whether_a_blank_column_was_copied_or_encoded() {
        let rows: Vec<SessionRow> = (0..to_u64(GROUP_ROWS))
            .map(|number| {
                let start = Timestamp(i64::try_from(number).unwrap());
                let mut row = SessionRow { start, ..columns::blank() };
                // Columns that have their first value in one of the last blocks, or in the first.
                row.orig.resets = number / 8000;
                row.icmp = (number == 5000).then_some((8, 0));
                row.names.dns_types.extend((number == 0).then_some(28));
                row.names.sni = (number == 8191).then(|| "last.example".to_owned());
                row
            })
            .collect();
        let group: Vec<&SessionRow> = rows.iter().collect();
        let encoder = GroupEncoder::new().unwrap();
        let copied = encoder.encode(0, &group).unwrap();
        let copied_count =
            copied.chunks.iter().filter(|chunk| matches!(chunk, Chunk::Blank)).count();
        assert_eq!(copied_count, COLUMNS.len() - 10, "times, state, history, and what was set");
        let encoded = EncodedGroup { chunks: encode_all(&encoder, &group), ..copied };
        let copied = encoder.encode(0, &group).unwrap();
        let stripe = |sequence| StripeId { sequence, sub: 0 };
        let meta = SegmentMeta::new(VolumeId([1; 16]), 1, stripe(1), stripe(2));
        let [copied, encoded] =
            [copied, encoded].map(|group| encoder.file(&meta, vec![group]).unwrap());
        assert_eq!(copied, encoded);
    }

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
