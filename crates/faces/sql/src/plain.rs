//! Answers in few types, so that who shows them needs to know these alone.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::compute::cast;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::DataFusionError;

/// The same columns in plain types.
pub(crate) fn schema(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| Field::new(field.name(), plain(field.data_type()), true);
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// The batch with the types of [`schema`].
pub(crate) fn batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, DataFusionError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| convert(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null => DataType::Null,
        DataType::Boolean => DataType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int32,
        DataType::Int64 => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            DataType::UInt64
        }
        DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DataType::Float64,
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Dictionary(_, values) => plain(values),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _) => {
            let element = Field::new("element", plain(element.data_type()), true);
            DataType::List(Arc::new(element))
        }
        _ => DataType::Utf8,
    }
}

fn convert(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, DataFusionError> {
    if column.data_type() == to {
        return Ok(Arc::clone(column));
    }
    if let Ok(converted) = cast(column, to) {
        return Ok(converted);
    }
    let options = FormatOptions::default();
    let texts = ArrayFormatter::try_new(column, &options)?;
    let text = |row| (!column.is_null(row)).then(|| texts.value(row).to_string());
    Ok(Arc::new((0..column.len()).map(text).collect::<StringArray>()))
}
