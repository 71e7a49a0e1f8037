//! Rows of a query in SQL: a table for people, JSON lines and CSV for programs.
//!
//! Values have the few types that `sql` gives out. Times are nanoseconds since 1970 for programs;
//! what is absent is left out of the JSON and empty in the CSV.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use units::Timestamp;

use crate::safe::{csv_cell, json_line, printable};
use crate::table::{Column, LongTable};
use crate::text::time;

/// The rows as JSON objects, one a line.
pub fn rows_json(rows: &RecordBatch) -> String {
    let line = |row| json_line(&Row { rows, row });
    (0..rows.num_rows()).map(line).collect()
}

/// In the order of the query; of two columns with one name, both.
struct Row<'a> {
    rows: &'a RecordBatch,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, column) in self.rows.schema().fields().iter().zip(self.rows.columns()) {
            let value = value(column.as_ref(), self.row);
            if !is_absent(&value) {
                map.serialize_entry(field.name(), &value)?;
            }
        }
        map.end()
    }
}

/// The names of the columns as a line of CSV.
pub fn rows_csv_heading(columns: &Schema) -> String {
    let names = columns.fields().iter().map(|field| csv_cell(field.name()));
    names.collect::<Vec<_>>().join(",") + "\n"
}

/// The rows as lines of CSV (RFC 4180); lists are joined by blanks.
pub fn rows_csv(rows: &RecordBatch) -> String {
    let line = |row| {
        let cells = rows.columns().iter().map(|column| csv(&value(column, row)));
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    (0..rows.num_rows()).map(line).collect()
}

/// What is absent is no value, and no empty list.
fn is_absent(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn value(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Timestamp(..) => {
            column.as_primitive::<TimestampNanosecondType>().value(row).into()
        }
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            (0..list.len()).map(|at| value(list.as_ref(), at)).collect()
        }
        _ => Value::Null,
    }
}

/// A cell: what is text may be anybody's.
fn csv(value: &Value) -> String {
    let text = plain(value);
    let is_text = value.is_string() || value.is_array();
    if is_text { csv_cell(&text) } else { text }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

/// A column of text is never made narrower than this.
const LEAST: usize = 8;

/// Rows as a table of any length, in constant memory.
#[derive(Debug)]
pub struct RowTable(LongTable);

impl RowTable {
    /// A table with these columns, at most `width` characters wide.
    pub fn new(columns: &Schema, width: Option<usize>) -> Self {
        let titles = columns.fields().iter().map(|field| printable(field.name()));
        let titles: Vec<String> = titles.collect();
        let columns = titles.iter().zip(columns.fields()).map(|(title, field)| {
            let is_number = matches!(
                field.data_type(),
                DataType::Int32 | DataType::Int64 | DataType::UInt64 | DataType::Float64
            );
            Column { title, is_number, least: if is_number { 0 } else { LEAST }, rank: 0 }
        });
        Self(LongTable::new(&columns.collect::<Vec<_>>(), width))
    }

    /// Takes rows; gives the text that is ready to be shown.
    #[must_use]
    pub fn push(&mut self, rows: &RecordBatch) -> String {
        let cells = |row| rows.columns().iter().map(|column| cell(column, row)).collect();
        (0..rows.num_rows()).map(|row| self.0.push(cells(row))).collect()
    }

    /// The rest of the text: of no rows, the heading.
    #[must_use]
    pub fn finish(self) -> String {
        self.0.finish()
    }
}

fn cell(column: &dyn Array, row: usize) -> String {
    match (column.data_type(), value(column, row)) {
        (DataType::Timestamp(..), Value::Number(nanos)) => {
            nanos.as_i64().map_or_else(String::new, |nanos| time(Timestamp(nanos)))
        }
        (_, value) => printable(&plain(&value)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray};
    use arrow_schema::{Field, TimeUnit};

    use super::*;

    fn rows() -> RecordBatch {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), Some("b c")]);
        lists.append_null();
        let lists: ArrayRef = Arc::new(lists.finish());
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let fields = vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("count(*)", DataType::Int64, true),
            Field::new("start_ns", time, true),
            Field::new("list", lists.data_type().clone(), true),
        ];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("x,\u{1b}[31m"), None])),
            Arc::new(Int64Array::from(vec![1, 200])),
            Arc::new(TimestampNanosecondArray::from(vec![0, 1_500_000_000]).with_timezone("UTC")),
            lists,
        ];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    #[test]
    fn json_leaves_out_what_is_absent() {
        let text = rows_json(&rows());
        assert!(text.starts_with(r#"{"name":"x,\u001b[31m","count(*)":1,"start_ns":0,"list""#));
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["list"], serde_json::json!(["a", "b c"]));
        assert_eq!(
            (&lines[1]["count(*)"], &lines[1]["start_ns"]),
            (&200.into(), &1_500_000_000.into())
        );
        assert_eq!((lines[1].get("name"), lines[1].get("list")), (None, None));
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(rows_csv_heading(&rows().schema()), "name,count(*),start_ns,list\n");
        assert_eq!(rows_csv(&rows()), "\"x,\\u{1b}[31m\",1,0,a b c\n,200,1500000000,\n");
    }

    #[test]
    fn a_table_is_harmless_and_aligned() {
        let mut table = RowTable::new(&rows().schema(), None);
        let mut text = table.push(&rows());
        text.push_str(&table.finish());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("name"), "{text}");
        assert!(
            lines[1].contains("x,\\u{1b}[31m         1  1970-01-01 00:00:00.000  a b c"),
            "{text}"
        );
        assert!(lines[2].contains("200  1970-01-01 00:00:01.500"), "{text}");
        assert_eq!(
            RowTable::new(&rows().schema(), None).finish(),
            "name  count(*)  start_ns  list\n"
        );
    }
}
