//! SQL over the tables of a volume (`sessions`, `pieces`, `gaps`) and over exported Parquet files:
//! the only crate that uses the engine.
//!
//! The engine plans and computes; what it reads of a volume comes from the jobs of `extract`, so
//! it sees verified bytes alone, in batches, and learns what is missing from them. Nothing can be
//! written by a query. The engine is asynchronous inside: a runtime lives as long as one query,
//! and callers see plain calls.
//!
//! Columns are those of the Parquet files and the computed fields of queries, by the same names
//! (docs/sql.md). One row of `sessions` is a session as `find` shows it, its slices joined.

mod error;
mod expected;
mod files;
mod plain;
mod pushed;
mod received;
mod sessions;
mod stream;
mod tables;

use core::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use completeness::Completeness;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use units::Clock;

pub use error::{Error, QueryError};
pub use received::Received;
pub use sessions::{SessionBatches, SessionColumns};
pub use stream::{Form, send};

use tables::Tables;
use units::number::to_u64;

/// What the engine may hold of sorts, joins and groups; beyond it spills into temporary files.
const MEMORY_BYTES: usize = 1 << 30;
/// Of the engine's threads: it takes some 16 KiB of it for each level of a query's tree.
const STACK_BYTES: usize = 256 << 20;
/// Operators of a query: `a = 1 or a = 2 or ...` is as deep as it has terms.
const OPERATORS_MAX: usize = 4000;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// A query over a volume or over Parquet files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A volume, with the tables `sessions`, `pieces` and `gaps`.
    Volume(extract::Options),
    /// A Parquet file or a folder of such files, as the table `sessions`.
    Files(PathBuf),
}

/// Events of a [`run`].
#[derive(Clone, Debug)]
pub enum Event {
    /// The columns of the answer; comes once, before any rows.
    Columns(SchemaRef),
    /// Rows of the answer: of plain types only, as [`RecordBatch`]es of integers, floats,
    /// booleans, texts, times in nanoseconds, and lists of these.
    Rows(RecordBatch),
}

/// Result of a [`run`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Rows of the answer.
    pub rows: u64,
    /// What is missing from the tables that were read.
    pub completeness: Completeness,
}

/// Answers a query. A break ends it early.
pub fn run(
    source: &Source,
    text: &str,
    clock: Arc<dyn Clock>,
    visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let operators = operators(text);
    if operators > OPERATORS_MAX {
        return Err(Error::too_deep(operators, OPERATORS_MAX));
    }
    let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("sql")
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(Error::Runtime)?;
    let missing = Arc::new(Mutex::new(Completeness::default()));
    let (events, mut received) = mpsc::channel(1);
    let told = (clock, Arc::clone(&missing));
    let answering = runtime.spawn(answer(source.clone(), text.to_owned(), told, events));
    let mut rows = 0;
    let answered = runtime.block_on(async {
        while let Some(event) = received.recv().await {
            if let Event::Rows(batch) = &event {
                rows += to_u64(batch.num_rows());
            }
            if visit(event).is_break() {
                return Ok(());
            }
        }
        answering.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    });
    // What still reads for an answer without a reader is not waited for.
    runtime.shutdown_background();
    let completeness = stage::lock(&missing).clone();
    answered.map(|()| Report { rows, completeness })
}

/// Operators of a query: about as deep the engine's trees are.
fn operators(text: &str) -> usize {
    // Between quotes are texts; a doubled quote ends one and begins the next.
    let text: String = text.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
    let signs = text.chars().filter(|sign| "+-*/%|&^".contains(*sign)).count();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_join = |word: &&str| ["and", "or"].iter().any(|join| word.eq_ignore_ascii_case(join));
    signs + words.filter(is_join).count()
}

fn context() -> Result<SessionContext, Error> {
    let mut config = SessionConfig::new().with_batch_size(BATCH_ROWS);
    let options = config.options_mut();
    // Errors name their place in the query.
    options.sql_parser.collect_spans = true;
    options.execution.parquet.pushdown_filters = true;
    // Texts as the files have them.
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    let pool = Arc::new(FairSpillPool::new(MEMORY_BYTES));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    Ok(SessionContext::new_with_config_rt(config, runtime))
}

/// Answers on threads of the runtime, whose stacks bear what the engine does by recursion.
async fn answer(
    source: Source,
    text: String,
    (clock, missing): (Arc<dyn Clock>, Arc<Mutex<Completeness>>),
    events: mpsc::Sender<Event>,
) -> Result<(), Error> {
    let context = context()?;
    match source {
        Source::Volume(options) => {
            // A query need not read any table, and yet the volume should be one.
            extract::check(&options, clock.as_ref()).map_err(Error::Volume)?;
            Tables::new(options, clock, missing).register(&context)?;
        }
        Source::Files(path) => files::register(&context, &path).await?,
    }
    let tables = context.catalog("datafusion").and_then(|catalog| catalog.schema("public"));
    let mut tables = tables.map(|schema| schema.table_names()).unwrap_or_default();
    tables.sort_unstable();
    let of_text = |error| Error::of(error, &text, &tables);
    let reading =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let table = context.sql_with_options(&text, reading).await.map_err(of_text)?;
    let mut rows = table.execute_stream().await.map_err(of_text)?;
    let columns = plain::schema(&rows.schema());
    let mut is_heard = events.send(Event::Columns(Arc::clone(&columns))).await.is_ok();
    while is_heard {
        let Some(batch) = rows.next().await else { break };
        let batch = plain::batch(&batch.map_err(of_text)?, &columns).map_err(of_text)?;
        is_heard = events.send(Event::Rows(batch)).await.is_ok();
    }
    Ok(())
}
