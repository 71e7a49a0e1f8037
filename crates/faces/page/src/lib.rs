//! What every report is made of: pages with plots, tables, text, and the one place that makes text
//! from outside safe.
//!
//! Nothing here knows a job. What a job found is worded by the crate for its family beside this
//! one; what two of them say alike is here. Text from outside goes through [`safe`], whatever it
//! goes to, and nothing else writes JSON.

pub mod forms;
pub mod latency;
mod parquet_file;
mod plots;
mod rows;
pub mod safe;
pub mod schema;
mod spark;
pub mod table;
pub mod text;

pub use parquet_file::{ParquetFile, TableNotWritten};
pub use plots::{
    Areas, Axis, Bars, Cell, Chart, Colour, Document, Dots, Interval, Intervals, Line, Quantity,
    Rule, Scale, Shape, add,
};
pub use rows::{RowTable, rows_csv, rows_csv_heading, rows_json};
pub use spark::{BLOCK, EIGHTHS, PlotStyle, sparkline};
