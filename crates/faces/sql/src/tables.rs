//! The tables of a volume as the engine sees them: each scan is a job of `extract` on a thread of
//! its own, which hands over batches and stops when the reader is gone.

use core::fmt;
use core::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use completeness::Completeness;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::SessionContext;
use extract::{Options, Sought, find_columns};
use found::Event;
use query::Query;
use units::{Clock, Timestamp};

use crate::expected::TABLES;
use crate::pushed;
use crate::sessions::{SessionBatches, SessionColumns};

/// Batches that wait for the engine.
const BATCHES_WAITING: usize = 4;
/// Pieces of a batch.
const PIECES_AT_ONCE: usize = 4096;

/// A volume that is asked.
#[derive(Clone)]
pub(crate) struct Tables {
    options: Options,
    clock: Arc<dyn Clock>,
    missing: Arc<Mutex<Completeness>>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tables {
    /// What is missing from what is read is added to `missing`.
    pub(crate) fn new(
        options: Options,
        clock: Arc<dyn Clock>,
        missing: Arc<Mutex<Completeness>>,
    ) -> Self {
        Self { options, clock, missing }
    }

    pub(crate) fn register(&self, context: &SessionContext) -> Result<()> {
        let [sessions, pieces, gaps] = TABLES;
        let all = SessionColumns::all();
        let of = |kind: Kind| Arc::new(Table { volume: self.clone(), kind });
        context.register_table(sessions, of(Kind::Sessions(all)))?;
        context.register_table(pieces, of(Kind::Pieces(Arc::new(pieces_schema()))))?;
        context.register_table(gaps, of(Kind::Gaps(Arc::new(gaps_schema()))))?;
        Ok(())
    }

    /// Adds what an answer lacks. That it was ended early is no lack: the engine had enough.
    fn note(&self, found: &Completeness) {
        let mut missing = stage::lock(&self.missing);
        missing.add(found);
        (missing.limited, missing.unsought, missing.stopped) = (false, false, false);
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Sessions(SessionColumns),
    Pieces(SchemaRef),
    Gaps(SchemaRef),
}

/// One table.
#[derive(Clone, Debug)]
struct Table {
    volume: Tables,
    kind: Kind,
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        match &self.kind {
            Kind::Sessions(columns) => Arc::clone(columns.schema()),
            Kind::Pieces(schema) | Kind::Gaps(schema) => Arc::clone(schema),
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// What is pushed down rules out rows that need not be read; the engine still looks at all
    /// that come.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let whole: Vec<usize> = (0..self.schema().fields().len()).collect();
        let places = projection.unwrap_or(&whole).clone();
        let schema = Arc::new(self.schema().project(&places)?);
        let (from, to) = filters
            .iter()
            .map(pushed::of_times)
            .fold((Timestamp::MIN, Timestamp::MAX), |a, b| (a.0.max(b.0), a.1.min(b.1)));
        let conditions: Vec<String> = filters.iter().filter_map(pushed::of_sessions).collect();
        let scan = Scan {
            table: self.clone(),
            query: conditions.join(" and "),
            times: from..=to,
            places,
            schema: Arc::clone(&schema),
        };
        let plan =
            StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// One reading of a table.
#[derive(Clone, Debug)]
struct Scan {
    table: Table,
    /// What every row of a session has that is wanted.
    query: String,
    times: RangeInclusive<Timestamp>,
    /// The columns wanted, by their places in the table.
    places: Vec<usize>,
    schema: SchemaRef,
}

impl PartitionStream for Scan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream =
            RecordBatchReceiverStream::builder(Arc::clone(&self.schema), BATCHES_WAITING);
        let (sender, scan) = (stream.tx(), self.clone());
        stream.spawn_blocking(move || {
            scan.run(&mut |batch| match sender.blocking_send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        stream.build()
    }
}

/// Takes a batch; a break ends the reading.
type Take<'t> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 't;

impl Scan {
    fn run(&self, take: &mut Take<'_>) -> Result<()> {
        match &self.table.kind {
            Kind::Sessions(columns) => self.sessions(columns, take),
            Kind::Pieces(_) => self.pieces(take),
            Kind::Gaps(_) => self.gaps(take),
        }
    }

    fn sessions(&self, columns: &SessionColumns, take: &mut Take<'_>) -> Result<()> {
        let Tables { options, clock, .. } = &self.table.volume;
        // A condition that cannot be said there only costs time.
        let query = Query::parse(&self.query, clock.realtime()).unwrap_or_else(|_| Query::all());
        let columns = columns.project(&self.places);
        let needed = columns.needed();
        let sought = Sought { columns: Some(&needed), ..Sought::new(&query) };
        let mut batches = SessionBatches::new(columns);
        let mut failed = None;
        let report = find_columns(options, &sought, clock.as_ref(), &mut |event| {
            let Event::Found(found) = event else { return ControlFlow::Continue(()) };
            match batches.push(found) {
                Ok(batch) => batch.map_or(ControlFlow::Continue(()), &mut *take),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        let report = report.map_err(of_volume)?;
        self.table.volume.note(&report.completeness);
        if let Some(error) = failed {
            return Err(error.into());
        }
        if let Some(batch) = batches.take()? {
            let _last = take(batch);
        }
        Ok(())
    }

    fn pieces(&self, take: &mut Take<'_>) -> Result<()> {
        let Tables { options, clock, .. } = &self.table.volume;
        // What has no head any more is no row.
        let missing = extract::gaps(options, &self.times, clock.as_ref()).map_err(of_volume)?;
        self.table.volume.note(&missing.completeness);
        let mut rows: Vec<extract::PieceRow> = Vec::new();
        let mut failed = None;
        extract::pieces(options, &self.times, clock.as_ref(), &mut |row| {
            rows.push(*row);
            if rows.len() < PIECES_AT_ONCE {
                return ControlFlow::Continue(());
            }
            match self.pieces_batch(&core::mem::take(&mut rows)) {
                Ok(batch) => take(batch),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
        .map_err(of_volume)?;
        if let Some(error) = failed {
            return Err(error);
        }
        let _last = take(self.pieces_batch(&rows)?);
        Ok(())
    }

    fn pieces_batch(&self, rows: &[extract::PieceRow]) -> Result<RecordBatch> {
        let signed = |number: Option<u64>| number.map(u64::cast_signed);
        let columns = vec![
            numbers(rows, |row| signed(Some(row.stripe.sequence.get()))),
            numbers(rows, |row| Some(row.stripe.sub.into())),
            numbers(rows, |row| Some(row.column.into())),
            numbers(rows, |row| Some(row.epoch.get().into())),
            times(rows, |row| row.time_min),
            times(rows, |row| row.time_max),
            times(rows, |row| row.sealed),
            numbers(rows, |row| Some(i64::from(row.rows) * 4096)),
            texts(rows, |row| format!("{:016x}", row.body_crc)),
            numbers(rows, |row| signed(row.stripe_packets)),
            numbers(rows, |row| signed(row.stripe_captured_bytes)),
        ];
        self.batch(columns)
    }

    fn gaps(&self, take: &mut Take<'_>) -> Result<()> {
        let Tables { options, clock, .. } = &self.table.volume;
        let report = extract::gaps(options, &self.times, clock.as_ref()).map_err(of_volume)?;
        self.table.volume.note(&report.completeness);
        let (rows, signed) = (&report.gaps, |number: Option<u64>| number.map(u64::cast_signed));
        let columns = vec![
            texts(rows, |gap| gap.cause.name().to_owned()),
            numbers(rows, |gap| gap.interface.map(|interface| interface.get().into())),
            numbers(rows, |gap| signed(gap.packets)),
            numbers(rows, |gap| signed(gap.bytes)),
            times(rows, |gap| gap.from),
            times(rows, |gap| gap.to),
        ];
        let _last = take(self.batch(columns)?);
        Ok(())
    }

    /// The columns wanted of a whole batch.
    fn batch(&self, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
        let whole = RecordBatch::try_new(self.table.schema(), columns)?;
        Ok(whole.project(&self.places)?)
    }
}

fn of_volume(error: extract::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true)
}

fn pieces_schema() -> Schema {
    Schema::new(vec![
        number("piece_sequence"),
        number("piece_sub"),
        number("piece_column"),
        number("epoch"),
        time("start_ns"),
        time("end_ns"),
        time("sealed_ns"),
        number("body_bytes"),
        Field::new("body_crc", DataType::Utf8, true),
        number("stripe_packets"),
        number("stripe_captured_bytes"),
    ])
}

fn gaps_schema() -> Schema {
    Schema::new(vec![
        Field::new("cause", DataType::Utf8, true),
        number("interface"),
        number("packets"),
        number("bytes"),
        time("from_ns"),
        time("to_ns"),
    ])
}

fn numbers<T>(rows: &[T], get: impl Fn(&T) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<Int64Array>())
}

/// Open ends are absent.
fn times<T>(rows: &[T], get: impl Fn(&T) -> Timestamp) -> ArrayRef {
    let is_known = |time: &Timestamp| *time != Timestamp::MIN && *time != Timestamp::MAX;
    let times = rows.iter().map(|row| Some(get(row)).filter(is_known).map(|time| time.0));
    Arc::new(times.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
}

fn texts<T>(rows: &[T], get: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(get(row))).collect::<StringArray>())
}
