//! Rows into Parquet bytes.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use format::slice::{PieceId, Slice};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::columns::{
    ADDRESS_COLUMNS, Access, COLUMNS, Column, Layout, Presence, TIME_COLUMNS, Width,
};
use crate::error::Result;
use crate::meta::{KEY, SegmentMeta};

/// Rows in a row group: the unit that the filters of a file rule out, and that a single row costs.
const GROUP_ROWS: usize = 8192;
/// The same for the filters, which shrink to what a group has.
const GROUP_VALUES: u64 = 8192;
/// Rows turned into arrays at a time. Every column walks over all of them, so they should stay in
/// the cache: a slice has about 700 bytes, and a core's cache at least 1 MiB.
const BLOCK_ROWS: usize = 1024;
/// The first column is the start.
const SORTED_BY: SortingColumn =
    SortingColumn { column_idx: 0, descending: false, nulls_first: false };
const CREATED_BY: &str = "wirespool";
/// Chosen by size and time: docs/sessions.md, Size.
const ZSTD_LEVEL: i32 = 3;

/// The Parquet file of a segment: `rows` in the order of their start.
pub fn encode(meta: &SegmentMeta, rows: &[Slice]) -> Result<Vec<u8>> {
    let mut sorted: Vec<&Slice> = rows.iter().collect();
    sorted.sort_by_key(|slice| slice.start);
    let schema = Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()));
    let options = ArrowWriterOptions::new()
        .with_properties(properties(&meta.covering(rows))?)
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options)?;
    for block in sorted.chunks(BLOCK_ROWS) {
        let arrays = COLUMNS.iter().map(|column| array(column, block)).collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
    }
    Ok(writer.into_inner()?)
}

fn properties(meta: &SegmentMeta) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true)
        .set_sorting_columns(Some(vec![SORTED_BY]))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), meta.to_text())]));
    for column in COLUMNS {
        properties = match column.layout {
            Layout::Plain => properties,
            Layout::Dictionary => properties.set_column_dictionary_enabled(path(column), true),
            Layout::Delta => {
                properties.set_column_encoding(path(column), Encoding::DELTA_BINARY_PACKED)
            }
        };
    }
    for name in ADDRESS_COLUMNS {
        properties = properties.set_column_bloom_filter_max_ndv(name.into(), GROUP_VALUES);
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

fn field(column: &Column) -> Field {
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

fn array(column: &Column, rows: &[&Slice]) -> ArrayRef {
    match column.access {
        Access::Time(get, _) => {
            let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|row| get(row)));
            Arc::new(times.with_timezone("UTC"))
        }
        Access::Number(width, get, _) => integers(width, rows.iter().map(|row| Some(get(row)))),
        Access::MaybeNumber(width, get, _) => integers(width, rows.iter().map(|row| get(row))),
        Access::Flag(get, _) => {
            Arc::new(rows.iter().map(|row| Some(get(row))).collect::<BooleanArray>())
        }
        Access::MaybeFlag(get, _) => {
            Arc::new(rows.iter().map(|row| get(row)).collect::<BooleanArray>())
        }
        Access::Text(get, _) => Arc::new(rows.iter().map(|row| get(row)).collect::<StringArray>()),
        Access::Texts(get, _) => {
            let mut lists =
                ListBuilder::new(StringBuilder::new()).with_field(element_field(DataType::Utf8));
            for row in rows {
                lists.append_value(get(row).iter().map(Some));
            }
            Arc::new(lists.finish())
        }
        Access::Numbers(get, _) => {
            let mut lists =
                ListBuilder::new(Int32Builder::new()).with_field(element_field(DataType::Int32));
            for row in rows {
                lists.append_value(get(row).iter().map(|&number| Some(i32::from(number))));
            }
            Arc::new(lists.finish())
        }
        Access::Pieces(presence, get, _) => pieces(presence, get, rows),
    }
}

fn integers(width: Width, values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    match width {
        Width::Narrow => {
            let narrow = |value| i32::try_from(value).expect("a narrow column holds 16 bits");
            Arc::new(values.map(|value| value.map(narrow)).collect::<Int32Array>())
        }
        Width::Wide => Arc::new(values.collect::<Int64Array>()),
    }
}

fn pieces(presence: Presence, get: fn(&PieceId) -> i64, rows: &[&Slice]) -> ArrayRef {
    let mut lists =
        ListBuilder::new(Int64Builder::new()).with_field(element_field(DataType::Int64));
    for row in rows {
        let stored = presence == Presence::Always || row.pieces.iter().any(|piece| get(piece) != 0);
        let listed = if stored { row.pieces.as_slice() } else { &[] };
        lists.append_value(listed.iter().map(|piece| Some(get(piece))));
    }
    Arc::new(lists.finish())
}
