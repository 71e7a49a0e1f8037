//! Rows as Parquet: the columns, in which order rows lie, and what helps to find them.

use core::cmp::Ordering;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use format::head::{StripeId, VolumeId};
use found::Found;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use session_view::{FieldType, SessionField, Value};
use units::number::to_u64;
use units::{InterfaceId, Timestamp};

/// Of the columns of both tables, in the metadata of each file.
pub const SCHEMA_VERSION: u16 = 1;
/// Key of that in the footer.
pub(crate) const KEY: &str = "wirespool.archive";
/// Rows of a row group.
pub(crate) const GROUP_ROWS: usize = 1 << 16;
/// Rows of an object that is no merged one.
pub(crate) const OBJECT_ROWS: usize = 1 << 17;
const ZSTD_LEVEL: i32 = 3;
/// One in so many row groups without a value is looked into.
const FALSE_POSITIVES: f64 = 0.01;

/// Fields that say how the ring stood when somebody asked, which is nothing to keep.
const LEFT_OUT: [&str; 2] = ["packets_overwritten", "provisional"];
/// The one column of `sessions` that is no field: ids of sessions are those of a volume.
const VOLUME: &str = "volume";
/// What sessions are looked for by, where a value is rare.
const BLOOM: [&str; 13] = [
    "session_id",
    "community_id",
    "orig_ip",
    "resp_ip",
    "sni",
    "ja3",
    "ja3s",
    "ja4",
    "http_host",
    "dns_names",
    "dns_answers",
    "hassh",
    "hassh_server",
];
const ELEMENT: &str = "element";
/// Rows lie in the order of this column, then of the next.
const ORDER: [&str; 2] = ["start_ns", "session_id"];

/// A column of the table `sessions`.
#[derive(Clone, Copy, Debug)]
pub struct SessionColumn {
    /// Its name: that of the field.
    pub name: &'static str,
    /// Of its values.
    pub values: FieldType,
    /// What it means, where a query knows the field.
    pub meaning: &'static str,
    field: Option<SessionField>,
}

impl SessionColumn {
    /// Every column, in their order.
    pub fn all() -> impl Iterator<Item = Self> {
        let volume = Self {
            name: VOLUME,
            values: FieldType::Text,
            meaning: "id of the volume that has or had its packets",
            field: None,
        };
        let fields = SessionField::all().filter(|field| !LEFT_OUT.contains(&field.name));
        core::iter::once(volume).chain(fields.map(|field| Self {
            name: field.name,
            values: field.values,
            meaning: field.meaning().unwrap_or_default(),
            field: Some(field),
        }))
    }

    /// Its type in the words of SQL.
    pub fn sql_type(&self) -> &'static str {
        match self.values {
            FieldType::Integer => "BIGINT",
            FieldType::Integers => "ARRAY(BIGINT)",
            FieldType::Flag => "BOOLEAN",
            FieldType::Text => "VARCHAR",
            FieldType::Texts => "ARRAY(VARCHAR)",
        }
    }

    /// Whether row groups have a Bloom filter of it.
    pub fn has_bloom_filter(&self) -> bool {
        BLOOM.contains(&self.name)
    }

    fn arrow(&self) -> Field {
        Field::new(self.name, data_type(self.values), true)
    }

    fn array(&self, volume: &str, rows: &[Found]) -> ArrayRef {
        let value = |row| self.field.map_or_else(|| Value::Text(volume.into()), |it| it.of(row));
        let values = rows.iter().map(value);
        match self.values {
            FieldType::Integer => {
                let mut array = Int64Builder::with_capacity(rows.len());
                values.for_each(|value| array.append_option(number(&value)));
                Arc::new(array.finish())
            }
            FieldType::Flag => {
                let mut array = BooleanBuilder::with_capacity(rows.len());
                values.for_each(|value| {
                    array.append_option(if let Value::Flag(it) = value { Some(it) } else { None });
                });
                Arc::new(array.finish())
            }
            FieldType::Text => {
                let mut array = StringBuilder::new();
                values.for_each(|value| match value {
                    Value::Text(text) => array.append_value(text),
                    _ => array.append_null(),
                });
                Arc::new(array.finish())
            }
            FieldType::Texts => {
                let element = Field::new(ELEMENT, DataType::Utf8, true);
                let mut array = ListBuilder::new(StringBuilder::new()).with_field(element);
                values.for_each(|value| {
                    let texts = if let Value::Texts(texts) = value { texts } else { &[] };
                    for text in texts {
                        array.values().append_value(text);
                    }
                    array.append(!texts.is_empty());
                });
                Arc::new(array.finish())
            }
            FieldType::Integers => {
                let element = Field::new(ELEMENT, DataType::Int64, true);
                let mut array = ListBuilder::new(Int64Builder::new()).with_field(element);
                values.for_each(|value| {
                    let numbers = if let Value::Numbers(numbers) = value { numbers } else { &[] };
                    for number in numbers {
                        array.values().append_value((*number).into());
                    }
                    array.append(!numbers.is_empty());
                });
                Arc::new(array.finish())
            }
        }
    }
}

/// Counts are of 64 bits with a sign, because not every engine has others.
fn number(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Count(count) => Some(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Nanos(nanos) => Some(*nanos),
        _ => None,
    }
}

fn data_type(values: FieldType) -> DataType {
    let list = |of| DataType::List(Arc::new(Field::new(ELEMENT, of, true)));
    match values {
        FieldType::Integer => DataType::Int64,
        FieldType::Integers => list(DataType::Int64),
        FieldType::Flag => DataType::Boolean,
        FieldType::Text => DataType::Utf8,
        FieldType::Texts => list(DataType::Utf8),
    }
}

/// What a file says of itself in its footer.
pub(crate) struct About<'a> {
    pub(crate) table: &'a str,
    pub(crate) sensor: &'a str,
    /// Where its rows are from: stripes of volumes.
    pub(crate) covers: String,
}

impl About<'_> {
    fn text(&self) -> String {
        let Self { table, sensor, covers } = self;
        format!("version {SCHEMA_VERSION}\ntable {table}\nsensor {sensor}\n{covers}\n")
    }
}

/// The order in which sessions lie in a file.
pub(crate) fn by_start(one: &Found, other: &Found) -> Ordering {
    (one.session.start, &one.id).cmp(&(other.session.start, &other.id))
}

/// The columns of `sessions`.
pub fn session_schema() -> SchemaRef {
    Arc::new(Schema::new(SessionColumn::all().map(|column| column.arrow()).collect::<Vec<_>>()))
}

/// A file of sessions, which are in their order.
pub(crate) fn sessions_file(
    volume: VolumeId,
    rows: &[Found],
    about: &About<'_>,
) -> Result<Vec<u8>, ParquetError> {
    let volume = volume.to_string();
    let arrays = SessionColumn::all().map(|column| column.array(&volume, rows));
    let batch = RecordBatch::try_new(session_schema(), arrays.collect())?;
    file(&[batch], about)
}

/// A file of batches with one schema, whose rows are in their order.
pub(crate) fn file(batches: &[RecordBatch], about: &About<'_>) -> Result<Vec<u8>, ParquetError> {
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(Vec::new()) };
    let options = ArrowWriterOptions::new()
        .with_properties(properties(batches, about)?)
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.into_inner()
}

fn properties(
    batches: &[RecordBatch],
    about: &About<'_>,
) -> Result<WriterProperties, ParquetError> {
    let schema = batches.first().map(RecordBatch::schema);
    let leaves = schema.iter().flat_map(|schema| schema.fields().iter().map(|it| it.name()));
    // Only text and numbers stand in front of the columns of the order: one leaf each.
    let place = |name: &str| leaves.clone().position(|field| field == name);
    let order = ORDER.iter().filter_map(|name| i32::try_from(place(name)?).ok());
    let order: Vec<SortingColumn> = order
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: false })
        .collect();
    let text = KeyValue::new(KEY.to_owned(), about.text());
    let mut builder = WriterProperties::builder()
        .set_created_by("wirespool".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_sorting_columns((!order.is_empty()).then_some(order))
        .set_key_value_metadata(Some(vec![text]));
    for name in BLOOM {
        builder = with_bloom_filter(builder, batches, name);
    }
    Ok(builder.build())
}

/// As large as its values need, and none where there are none.
fn with_bloom_filter(
    builder: WriterPropertiesBuilder,
    batches: &[RecordBatch],
    name: &str,
) -> WriterPropertiesBuilder {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    let columns = batches.iter().filter_map(|batch| batch.column_by_name(name));
    let (mut values, mut is_list) = (0, false);
    for column in columns {
        if let Some(list) = column.as_list_opt::<i32>() {
            is_list = true;
            values += list.values().len();
        } else {
            values += column.len() - column.null_count();
        }
    }
    let path = if is_list { format!("{name}.list.{ELEMENT}") } else { name.to_owned() };
    let path = ColumnPath::from(path.split('.').map(str::to_owned).collect::<Vec<_>>());
    if values == 0 {
        return builder;
    }
    builder
        .set_column_bloom_filter_enabled(path.clone(), true)
        .set_column_bloom_filter_fpp(path.clone(), FALSE_POSITIVES)
        .set_column_bloom_filter_max_ndv(path, to_u64(values.min(GROUP_ROWS)))
}

/// Packets that are known to be missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    pub(crate) cause: &'static str,
    pub(crate) interface: Option<InterfaceId>,
    pub(crate) packets: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
    pub(crate) stripes: Option<(StripeId, StripeId)>,
    /// Slots of the ring.
    pub(crate) slots: Option<u64>,
}

impl Lost {
    pub(crate) fn new(cause: &'static str) -> Self {
        let (interface, packets, bytes, from, to) = (None, None, None, None, None);
        Self { cause, interface, packets, bytes, from, to, stripes: None, slots: None }
    }
}

type ReadLost = fn(&Lost) -> Option<i64>;

/// Columns of numbers of the table `losses`.
const NUMBERS: [(&str, ReadLost, &str); 6] = [
    (
        "interface",
        |lost| lost.interface.map(|interface| interface.get().into()),
        "interface, where it is laid to one",
    ),
    ("packets", |lost| count(lost.packets), "packets lost; absent is unknown, not zero"),
    ("bytes", |lost| count(lost.bytes), "bytes lost; absent is unknown, not zero"),
    ("from_ns", |lost| lost.from.map(|time| time.0), "not before this time"),
    ("to_ns", |lost| lost.to.map(|time| time.0), "not after this time"),
    ("slots", |lost| count(lost.slots), "slots of the ring that were overwritten"),
];
type ReadStripe = fn(&(StripeId, StripeId)) -> StripeId;
const STRIPES: [(&str, ReadStripe, &str); 2] = [
    ("first_stripe", |stripes| stripes.0, "first of the stripes that it is about"),
    ("last_stripe", |stripes| stripes.1, "last of them"),
];
const CAUSE: &str = "cause";

fn count(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

/// The columns of `losses`: name, type in the words of SQL, meaning.
pub fn loss_columns() -> Vec<(&'static str, &'static str, &'static str)> {
    let cause = "interface_drops, kernel_drops, writer_drops, crash, damage, left_out, overwritten";
    let texts = [(VOLUME, "VARCHAR", "id of the volume"), (CAUSE, "VARCHAR", cause)];
    let numbers = NUMBERS.iter().map(|(name, _, meaning)| (*name, "BIGINT", *meaning));
    let stripes = STRIPES.iter().map(|(name, _, meaning)| (*name, "VARCHAR", *meaning));
    texts.into_iter().chain(numbers).chain(stripes).collect()
}

/// A file of losses.
pub(crate) fn losses_file(
    volume: VolumeId,
    rows: &[&Lost],
    about: &About<'_>,
) -> Result<Vec<u8>, ParquetError> {
    let fields = loss_columns().into_iter().map(|(name, kind, _)| {
        let of = if kind == "BIGINT" { DataType::Int64 } else { DataType::Utf8 };
        Field::new(name, of, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let text = |read: &dyn Fn(&Lost) -> Option<String>| -> ArrayRef {
        let mut array = StringBuilder::new();
        for row in rows {
            array.append_option(read(row));
        }
        Arc::new(array.finish())
    };
    let volume = volume.to_string();
    let mut arrays = vec![text(&|_| Some(volume.clone())), text(&|row| Some(row.cause.to_owned()))];
    for (_, read, _) in NUMBERS {
        let mut array = Int64Builder::new();
        for row in rows {
            array.append_option(read(row));
        }
        arrays.push(Arc::new(array.finish()));
    }
    for (_, read, _) in STRIPES {
        arrays.push(text(&|row| row.stripes.as_ref().map(|it| read(it).to_string())));
    }
    file(&[RecordBatch::try_new(schema, arrays)?], about)
}
