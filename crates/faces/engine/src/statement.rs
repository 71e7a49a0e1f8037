//! A statement and its answer, by Trino's protocol: the statement is sent once, and each answer
//! names where the next one is, until one names none.
//! <https://trino.io/docs/current/develop/client-protocol.html>

use serde::Deserialize;
use serde_json::Value;

/// One exchange with the engine, whose answer is the body of one that succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<'a> {
    /// `POST` this statement to [`Call::path`].
    Begin(&'a str),
    /// `GET` this path.
    Next(&'a str),
    /// `DELETE` this path: the answer is not wanted any more. Its body is nobody's.
    Cancel(&'a str),
}

impl Call<'_> {
    /// Of the request.
    pub fn path(&self) -> &str {
        match self {
            Self::Begin(_) => "/v1/statement",
            Self::Next(path) | Self::Cancel(path) => path,
        }
    }
}

/// The values of a row.
pub type Values = Vec<Value>;

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// They are.
    More,
    /// The answer is enough.
    Enough,
}

/// What the engine says is no answer, or that there is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// In its words.
    #[error("the engine says: {0}")]
    Said(String),
    /// It speaks another protocol.
    #[error("what it says is no answer of Trino: {0}")]
    Unlike(String),
}

/// Why not all rows were taken.
#[derive(Debug)]
pub enum Ended<E> {
    /// The engine.
    Engine(Error),
    /// The way to it, or who takes the rows.
    Other(E),
}

impl<E> From<Error> for Ended<E> {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// What is read of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    next_uri: Option<String>,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    data: Vec<Vec<Value>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
}

/// Takes a row, with the names of its columns.
pub type Take<'t, E> = dyn FnMut(&[String], Values) -> Result<Taken, E> + 't;

/// Asks a statement, and calls `take` with each row and the names of its columns.
///
/// # Errors
/// When the engine refuses, its answer is none, or `exchange` or `take` fails.
pub fn run<E>(
    statement: &str,
    exchange: &mut dyn FnMut(Call<'_>) -> Result<Vec<u8>, E>,
    take: &mut Take<'_, E>,
) -> Result<(), Ended<E>> {
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let call = next.as_deref().map_or(Call::Begin(statement), Call::Next);
        let answer = read(&exchange(call).map_err(Ended::Other)?)?;
        if let Some(Failure { message }) = answer.error {
            return Err(Error::Said(page::safe::printable(&message)).into());
        }
        if !answer.columns.is_empty() {
            names = answer.columns.into_iter().map(|column| column.name).collect();
        }
        next = answer.next_uri.as_deref().map(path_of).transpose()?;
        for values in answer.data {
            let taken = take(&names, values);
            if !matches!(taken, Ok(Taken::More)) {
                if let Some(path) = &next {
                    // It would end by itself, some minutes later.
                    drop(exchange(Call::Cancel(path)));
                }
                return taken.map(|_| ()).map_err(Ended::Other);
            }
        }
        if next.is_none() {
            return Ok(());
        }
    }
}

fn read(body: &[u8]) -> Result<Answer, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Unlike(page::safe::printable(&error.to_string())))
}

/// The path of the next answer. Whatever host it names: the one that is asked is asked on.
fn path_of(uri: &str) -> Result<String, Error> {
    let rest =
        uri.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest.split_at(at)));
    match rest {
        Some((_, path)) if path.starts_with("/v1/statement/") => Ok(path.to_owned()),
        _ => Err(Error::Unlike(format!("its next address is {}", page::safe::printable(uri)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Asks an engine that gives these answers, and takes so many rows. Gives the calls and rows.
    fn asked(answers: &[Value], wanted: usize) -> (Vec<String>, Vec<Value>, Option<String>) {
        let (mut calls, mut rows) = (Vec::new(), Vec::new());
        let mut answers = answers.iter();
        let ended = run(
            "SELECT 1",
            &mut |call| {
                calls.push(format!("{call:?}"));
                answers.next().map(|it| it.to_string().into_bytes()).ok_or("no answer is left")
            },
            &mut |names, values| {
                rows.push(json!({"names": names, "values": values}));
                Ok(if rows.len() < wanted { Taken::More } else { Taken::Enough })
            },
        );
        let error = ended.err().map(|ended| match ended {
            Ended::Engine(error) => error.to_string(),
            Ended::Other(text) => text.to_owned(),
        });
        (calls, rows, error)
    }

    const NEXT: &str = "http://elsewhere:1/v1/statement/queued/q/1";

    #[test]
    fn an_answer_is_followed_to_its_end_at_the_host_that_was_asked() {
        let columns = json!([{"name": "a", "type": "bigint"}, {"name": "b"}]);
        let answers = [
            json!({"id": "q", "nextUri": NEXT, "stats": {"state": "QUEUED"}}),
            json!({"nextUri": NEXT, "columns": columns}),
            json!({"nextUri": NEXT, "columns": columns, "data": [[1, null], [2, ["x"]]]}),
            json!({"data": [[3, "y"]]}),
        ];
        let (calls, rows, error) = asked(&answers, 9);
        assert_eq!(error, None);
        let next = "Next(\"/v1/statement/queued/q/1\")";
        assert_eq!(calls, ["Begin(\"SELECT 1\")", next, next, next]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[1], json!({"names": ["a", "b"], "values": [2, ["x"]]}));
    }

    #[test]
    fn an_answer_that_is_enough_is_given_up() {
        let answers = [json!({"nextUri": NEXT, "columns": [{"name": "a"}], "data": [[1], [2]]})];
        let (calls, rows, error) = asked(&answers, 1);
        assert_eq!((rows.len(), error), (1, None));
        assert_eq!(calls.last().unwrap(), "Cancel(\"/v1/statement/queued/q/1\")");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (answers, why) in [
            (vec![json!({"error": {"message": "line 1:8: no\u{1b}"}})], "line 1:8: no\\u{1b}"),
            (vec![json!({"error": {}})], "the engine says: "),
            (vec![json!([])], "no answer of Trino"),
            (vec![json!({"nextUri": "http://h/etc"})], "its next address is http://h/etc"),
            (vec![json!({"nextUri": "/v1/statement/x"})], "its next address"),
            (vec![json!({"nextUri": NEXT})], "no answer is left"),
        ] {
            let (_, rows, error) = asked(&answers, 9);
            assert!(rows.is_empty());
            let error = error.unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}
