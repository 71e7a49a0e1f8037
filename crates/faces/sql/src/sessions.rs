//! Sessions as columns: those of the Parquet files, and the computed fields of queries.

use core::fmt;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampNanosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};
use format::session_row::SessionRow;
use found::{Found, Held};
use query::{FIELDS, Field, Kind, Reading, cipher_name, tls_version_name};

/// Fields of queries that have two values in a row; their halves are columns.
const EITHER_END: [&str; 2] = ["host", "port"];
/// Columns that are as queries read them, and not as they are stored: ports of protocols that have
/// none, and the age of a session whose packets have times before its start.
const AS_READ: [&str; 3] = ["orig_port", "resp_port", "session_age_ns"];
/// Has several values.
const SEVERAL: &str = "name";
/// These come first.
const LEADING: [&str; 2] = ["session_id", "community_id"];
const OVERWRITTEN: &str = "packets_overwritten";
const PROVISIONAL: &str = "provisional";

/// What numbers of TLS are called: the column, and how it is read.
const NAMED: [(&str, ReadName); 2] = [
    ("tls_version_name", |row| row.names.tls_version.and_then(tls_version_name)),
    ("tls_cipher_name", |row| row.names.tls.as_ref()?.cipher.and_then(cipher_name)),
];
/// The stored columns by which they are read.
const NAMED_BY: [&str; 2] = ["tls_version", "tls_cipher"];

type ReadName = fn(&SessionRow) -> Option<&'static str>;

/// A column of the table.
#[derive(Clone, Copy)]
enum Source {
    /// Of the Parquet files.
    Stored(&'static str),
    /// A field that is computed.
    Computed(&'static Field),
    /// The name of a number.
    Named(ReadName),
    /// Whether packets of the session are overwritten: `some` or `all`.
    Overwritten,
    /// Its id may change: no index has its packets yet.
    Provisional,
}

/// The columns of the table `sessions`, or some of them.
#[derive(Clone)]
pub struct SessionColumns {
    sources: Vec<Source>,
    schema: SchemaRef,
}

impl fmt::Debug for SessionColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionColumns").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl SessionColumns {
    /// All columns of the table.
    pub fn all() -> Self {
        let stored = index::schema();
        let is_stored = |name: &str| stored.field_with_name(name).is_ok();
        let computed = FIELDS
            .iter()
            .filter(|field| !is_stored(field.name) && !EITHER_END.contains(&field.name))
            .filter(|field| !field.needs_atlas());
        let (leading, computed): (Vec<_>, Vec<_>) =
            computed.partition(|field| LEADING.contains(&field.name));
        let mut columns: Vec<(ArrowField, Source)> = Vec::new();
        let of = |field: &'static Field| {
            let arrow = ArrowField::new(field.name, type_of(field), true);
            (arrow, Source::Computed(field))
        };
        columns.extend(leading.into_iter().map(of));
        for name in index::column_names() {
            let field = stored.field_with_name(name).expect("the schema has every column");
            let source = match Field::find(name).filter(|_| AS_READ.contains(&name)) {
                Some(field) => Source::Computed(field),
                None => Source::Stored(name),
            };
            columns.push((of_source(field, &source), source));
        }
        columns.extend(computed.into_iter().map(of));
        columns.extend(NAMED.map(|(name, read)| {
            (ArrowField::new(name, DataType::Utf8, true), Source::Named(read))
        }));
        let overwritten = ArrowField::new(OVERWRITTEN, DataType::Utf8, true);
        let provisional = ArrowField::new(PROVISIONAL, DataType::Boolean, false);
        columns.push((overwritten, Source::Overwritten));
        columns.push((provisional, Source::Provisional));
        let (fields, sources): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        Self { sources, schema: Arc::new(Schema::new(fields)) }
    }

    /// Those at these places.
    #[must_use]
    pub fn project(&self, places: &[usize]) -> Self {
        let sources = places.iter().filter_map(|&at| self.sources.get(at).copied()).collect();
        let schema = self.schema.project(places).expect("the engine names columns that are there");
        Self { sources, schema: Arc::new(schema) }
    }

    /// Their names and types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The stored columns that they are made of.
    pub fn needed(&self) -> Vec<&'static str> {
        let mut needed: Vec<&'static str> = Vec::new();
        for source in &self.sources {
            match source {
                Source::Stored(name) => needed.push(name),
                Source::Computed(field) => needed.extend(field.columns()),
                Source::Named(_) => needed.extend(NAMED_BY),
                Source::Overwritten | Source::Provisional => {}
            }
        }
        // Pieces are read as a whole or not at all.
        if needed.iter().any(|name| name.starts_with("piece_")) {
            needed.extend(index::column_names().filter(|name| name.starts_with("piece_")));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    fn batch(&self, rows: &[Found]) -> Result<RecordBatch, ArrowError> {
        let slices: Vec<&SessionRow> = rows.iter().map(|row| &row.session).collect();
        let column = |source: &Source| match source {
            Source::Stored(name) => {
                index::column_of(name, &slices).expect("the schema has this column")
            }
            Source::Computed(field) => computed(field, rows),
            Source::Named(read) => {
                Arc::new(slices.iter().map(|row| read(row)).collect::<StringArray>())
            }
            Source::Overwritten => Arc::new(rows.iter().map(overwritten).collect::<StringArray>()),
            Source::Provisional => {
                let flags = rows.iter().map(|row| Some(row.is_provisional));
                Arc::new(flags.collect::<BooleanArray>())
            }
        };
        let columns = self.sources.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// A stored column as it is here.
fn of_source(field: &ArrowField, source: &Source) -> ArrowField {
    match source {
        Source::Computed(computed) => ArrowField::new(field.name(), type_of(computed), true),
        _ => field.clone(),
    }
}

fn type_of(field: &Field) -> DataType {
    match field.kind {
        _ if field.name == SEVERAL => {
            DataType::List(Arc::new(ArrowField::new_list_field(DataType::Utf8, true)))
        }
        Kind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Kind::Name | Kind::Text | Kind::Address | Kind::State | Kind::CommunityId => DataType::Utf8,
        Kind::Flag => DataType::Boolean,
        _ => DataType::Int64,
    }
}

/// All values of the field in each row.
fn lists(field: &'static Field, rows: &[Found]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        let mut before: Option<String> = None;
        field.each((&row.session, core::slice::from_ref(&row.id)), None, |reading| {
            let (Reading::Name(text) | Reading::Text(text)) = reading else { return };
            if before.as_deref() != Some(text) {
                lists.values().append_value(text);
                before = Some(text.to_owned());
            }
        });
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// The first value of the field in each row, or all where it is a list.
fn computed(field: &'static Field, rows: &[Found]) -> ArrayRef {
    match type_of(field) {
        DataType::List(_) => lists(field, rows),
        DataType::Int64 => {
            let read = |reading: Reading<'_>| match reading {
                Reading::Number(number) => Some(number.cast_signed()),
                _ => None,
            };
            Arc::new(firsts(field, rows, read).collect::<Int64Array>())
        }
        DataType::Boolean => {
            let read = |reading: Reading<'_>| match reading {
                Reading::Flag(flag) => Some(flag),
                _ => None,
            };
            Arc::new(firsts(field, rows, read).collect::<BooleanArray>())
        }
        DataType::Timestamp(..) => {
            let read = |reading: Reading<'_>| match reading {
                Reading::Time(time) => Some(time.0),
                _ => None,
            };
            let times = firsts(field, rows, read).collect::<TimestampNanosecondArray>();
            Arc::new(times.with_timezone("UTC"))
        }
        _ => {
            let read = |reading: Reading<'_>| match reading {
                Reading::Name(text) | Reading::Text(text) => Some(text.to_owned()),
                Reading::Address(address) => Some(address.to_string()),
                _ => None,
            };
            Arc::new(firsts(field, rows, read).collect::<StringArray>())
        }
    }
}

/// What `read` gives of the first value of the field in each row that it can read.
fn firsts<T>(
    field: &'static Field,
    rows: &[Found],
    read: impl Fn(Reading<'_>) -> Option<T>,
) -> impl Iterator<Item = Option<T>> {
    rows.iter().map(move |row| {
        let mut first = None;
        field.each((&row.session, core::slice::from_ref(&row.id)), None, |reading| {
            if first.is_none() {
                first = read(reading);
            }
        });
        first
    })
}

fn overwritten(row: &Found) -> Option<&'static str> {
    match row.packets {
        Held::Held => None,
        Held::Partly => Some("some"),
        Held::Retired => Some("all"),
    }
}

/// Gathers sessions into batches.
#[derive(Debug)]
pub struct SessionBatches {
    columns: SessionColumns,
    rows: Vec<Found>,
}

/// Sessions of a batch: each takes about a KiB while it waits.
const BATCH_ROWS: usize = 2048;

impl SessionBatches {
    /// A builder of batches with these columns.
    pub fn new(columns: SessionColumns) -> Self {
        Self { columns, rows: Vec::with_capacity(BATCH_ROWS) }
    }

    /// Takes a session; gives a batch that is full.
    pub fn push(&mut self, row: &Found) -> Result<Option<RecordBatch>, ArrowError> {
        self.rows.push(row.clone());
        if self.rows.len() < BATCH_ROWS { Ok(None) } else { self.take() }
    }

    /// The sessions that are left, if any.
    pub fn take(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let batch = self.columns.batch(&self.rows)?;
        self.rows.clear();
        Ok(Some(batch))
    }
}
