//! The values of a column in some rows, as an Arrow array.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, TimeUnit};
use format::session_row::{PieceSpan, SessionRow};
use wire::Address;

use crate::columns::{Access, Column, Presence, Width};
use crate::names;

pub(crate) fn field(column: &Column) -> Field {
    let list = |element| DataType::List(Arc::new(element_field(element)));
    let (data_type, nullable) = match column.access {
        Access::Time(..) => (DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
        Access::Number(width, ..) => (integer(width), false),
        Access::MaybeNumber(width, ..) => (integer(width), true),
        Access::Flag(..) => (DataType::Boolean, false),
        Access::MaybeFlag(..) => (DataType::Boolean, true),
        Access::Address(..) | Access::Text(..) => (DataType::Utf8, true),
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
            Arc::new(TimestampNanosecondArray::from((get.of_all)(rows)).with_timezone("UTC"))
        }
        Access::Number(width, get, _) => match width {
            Width::Narrow => {
                Arc::new(Int32Array::from_iter_values((get.of_all)(rows).into_iter().map(narrow)))
            }
            Width::Wide => Arc::new(Int64Array::from((get.of_all)(rows))),
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
        Access::Address(get, _) => {
            let mut texts = StringBuilder::with_capacity(rows.len(), 16 * rows.len());
            let mut buffer = String::new();
            for row in rows {
                texts.append_option(names::address(get(row), &mut buffer));
            }
            Arc::new(texts.finish())
        }
        Access::Text(get, _) => {
            let mut texts = StringBuilder::with_capacity(rows.len(), 16 * rows.len());
            for row in rows {
                texts.append_option(get(row));
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
pub(crate) fn is_blank(column: &Column, rows: &[&SessionRow]) -> bool {
    match column.access {
        Access::Time(get, _) | Access::Number(_, get, _) => {
            (get.of_all)(rows).iter().all(|&value| value == 0)
        }
        Access::MaybeNumber(_, get, _) => rows.iter().all(|row| get(row).is_none()),
        Access::Flag(get, _) => rows.iter().all(|row| !get(row)),
        Access::MaybeFlag(get, _) => rows.iter().all(|row| get(row).is_none()),
        Access::Address(get, _) => rows.iter().all(|row| get(row) == Address::None),
        Access::Text(get, _) => rows.iter().all(|row| get(row).is_none()),
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
