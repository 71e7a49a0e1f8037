//! Why a query has no answer: in one line, with its place in the text.

use core::fmt;
use std::io;

use datafusion::common::{DataFusionError, SchemaError};

use units::{around, start_of};

use crate::expected;

/// Bytes that are shown of a line on each side of a mistake.
const SHOWN_BYTES: usize = 160;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query is wrong, or asks for what cannot be computed.
    #[error(transparent)]
    Query(Box<QueryError>),
    /// The volume could not be read.
    #[error(transparent)]
    Volume(extract::Error),
    /// A Parquet file could not be read or written, or the engine failed.
    #[error("{}", one_line(.0))]
    Engine(#[from] DataFusionError),
    /// Rows could not be written as Arrow.
    #[error("cannot write rows as Arrow: {0}")]
    Arrow(arrow_schema::ArrowError),
    /// What was to be rows in Arrow's form is none.
    #[error("its rows are no stream of Arrow: {0}")]
    Received(arrow_schema::ArrowError),
    /// The engine's threads could not be started.
    #[error("cannot start the threads of the query: {0}")]
    Runtime(#[source] io::Error),
}

/// What is wrong with a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryError {
    problem: String,
    /// Line and column from 1, where they are known.
    at: Option<(usize, usize)>,
    suggestion: Option<String>,
    /// The line of the query that it is in.
    line: String,
}

impl core::error::Error for QueryError {}

/// One line: the problem, its place, and what was probably meant.
impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some((line, column)) = self.at {
            write!(f, " (line {line}, column {column})")?;
        }
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean {word:?}?"),
            None => Ok(()),
        }
    }
}

impl QueryError {
    /// The error with its line of the query and a caret under the place.
    pub fn render(&self) -> String {
        let Some((_, column)) = self.at else { return self.to_string() };
        let pad = |letter: char| if letter == '\t' { '\t' } else { ' ' };
        let before: String = self.line.chars().take(column - 1).collect();
        let (line, at) = around(&self.line, before.len(), SHOWN_BYTES);
        let before: String = start_of(&line, at).chars().map(pad).collect();
        format!("{self}\n  {line}\n  {before}^")
    }
}

impl Error {
    /// The query's tree would be too deep for the engine.
    pub(crate) fn too_deep(operators: usize, operators_max: usize) -> Self {
        let problem = format!(
            "the query has {operators} operators, of at most {operators_max}; for many values \
             write IN (...)"
        );
        Self::Query(Box::new(QueryError {
            problem,
            at: None,
            suggestion: None,
            line: String::new(),
        }))
    }

    /// From what the engine says of the query `text`, which may name these tables.
    pub(crate) fn of(error: DataFusionError, text: &str, tables: &[String]) -> Self {
        let root = match error.find_root() {
            DataFusionError::External(_) => return Self::of_volume(error),
            root => root,
        };
        let found = place_named(&root.to_string());
        let (problem, at, suggestion) = match root {
            DataFusionError::SQL(problem, _) => {
                (strip_place(&sentence(&problem.to_string())), found, None)
            }
            DataFusionError::SchemaError(problem, _) => of_schema(problem, text),
            DataFusionError::Plan(problem) => {
                let (problem, suggestion) = expected::plan(problem, tables);
                (sentence(&problem), None, suggestion)
            }
            DataFusionError::ResourcesExhausted(_) => {
                let problem = "the query needs more memory than it may have; ask for less at once";
                (problem.to_owned(), None, None)
            }
            DataFusionError::ObjectStore(_)
            | DataFusionError::ParquetError(_)
            | DataFusionError::IoError(_) => return Self::Engine(error),
            root => (one_line(root), None, None),
        };
        let spanned = error.diagnostic().and_then(|diagnostic| diagnostic.span);
        let at = spanned.map(|span| (number(span.start.line), number(span.start.column))).or(at);
        let at = at.filter(|&(line, column)| line > 0 && column > 0);
        let line = at.and_then(|(line, _)| text.lines().nth(line - 1)).unwrap_or("").to_owned();
        // It quotes names of the query, whose ends of lines are not ours.
        let problem = problem.lines().collect::<Vec<_>>().join(" ");
        Self::Query(Box::new(QueryError { problem, at, suggestion, line }))
    }

    /// An error of our own that came through the engine.
    fn of_volume(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(source) => match source.downcast::<extract::Error>() {
                Ok(source) => Self::Volume(*source),
                Err(source) => Self::Engine(DataFusionError::External(source)),
            },
            DataFusionError::Context(_, source) => Self::of_volume(*source),
            DataFusionError::Shared(source) => match std::sync::Arc::try_unwrap(source) {
                Ok(source) => Self::of_volume(source),
                Err(source) => Self::Engine(DataFusionError::Shared(source)),
            },
            error => Self::Engine(error),
        }
    }
}

fn number(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

type Told = (String, Option<(usize, usize)>, Option<String>);

/// A column that is not there, or that two tables have.
fn of_schema(problem: &SchemaError, text: &str) -> Told {
    match problem {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let name = &field.name;
            let known = valid_fields.iter().map(|column| column.name.clone());
            let suggestion = expected::column(name, known);
            (format!("there is no column {name:?}"), place_of(text, name), suggestion)
        }
        SchemaError::AmbiguousReference { field } => {
            let name = &field.name;
            let problem = format!("the column {name:?} is in more than one table: write whose");
            (problem, place_of(text, name), None)
        }
        problem => (sentence(&problem.to_string()), None, None),
    }
}

/// Where a word stands in a text, from 1.
fn place_of(text: &str, word: &str) -> Option<(usize, usize)> {
    text.lines().enumerate().find_map(|(line, text)| {
        let at = text.to_ascii_lowercase().find(&word.to_ascii_lowercase())?;
        Some((line + 1, text.get(..at)?.chars().count() + 1))
    })
}

/// `Line: 1, Column: 8`, as the parser writes it.
fn place_named(message: &str) -> Option<(usize, usize)> {
    let (line, column) = message.rsplit_once("Line: ")?.1.split_once(", Column: ")?;
    let digits = |text: &str| {
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    Some((digits(line)?, digits(column)?))
}

fn strip_place(message: &str) -> String {
    message.split(" at Line: ").next().unwrap_or(message).to_owned()
}

/// Without the engine's own words for kinds of errors, beginning in lower case.
fn sentence(message: &str) -> String {
    let kinds = [
        "sql parser error: ",
        "Error during planning: ",
        "Schema error: ",
        "Execution error: ",
        "This feature is not implemented: ",
    ];
    let message = kinds
        .iter()
        .fold(message, |message, prefix| message.strip_prefix(prefix).unwrap_or(message));
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect::<String>().replace('\n', " ")
}

fn one_line(error: &DataFusionError) -> String {
    let text = error.find_root().strip_backtrace();
    let text = text.split_once(" error: ").map_or(&*text, |(_, text)| text);
    sentence(text.trim_end().trim_end_matches('.'))
}
