//! From a worker to a client: nothing is held back, little is held, and who leaves ends the work.
//!
//! The first bytes decide whether there is an answer. From then on a task of its own hands pieces
//! from the worker to the connection. It sees when the client has left or takes nothing any more,
//! and drops the worker, which kills it.

use core::time::Duration;
use std::io;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use hyper::header::{HeaderName, HeaderValue, LINK};
use questions::{Answered, Ending, Question, Statement, Walk, What};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

use crate::access::Caller;
use crate::answers::Progress;
use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::service::Service;
use crate::trail::{Outcome, Told};
use crate::validity::Validity;
use crate::workers::Running;

/// Pieces on their way to a connection, beside what the kernel holds.
const PIECES: usize = 2;
/// A client that takes nothing for so long has left.
const STALL: Duration = Duration::from_mins(1);
/// Says which answer this is.
const ANSWER_ID: HeaderName = HeaderName::from_static("wirespool-answer");

/// What is asked of a worker, and how its answer goes out.
pub(crate) struct Wanted {
    pub(crate) question: Question,
    pub(crate) volume_id: String,
    pub(crate) query: String,
    pub(crate) framing: Framing,
    pub(crate) media_type: &'static str,
}

/// How bytes of a worker become those of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    AsIs,
    /// Lines become the elements of an array of this name, with the statement behind it.
    Elements(&'static str),
    /// Members of an object, with the statement behind them.
    Members,
}

/// Starts a worker and its answer.
pub(crate) async fn begin(
    service: &Arc<Service>,
    caller: &Caller,
    wanted: Wanted,
) -> Result<Reply, Problem> {
    let workers = match wanted.question.what {
        What::Hold(_) => &service.hold_workers,
        _ => &service.workers,
    };
    let validity = Validity::of(service, caller);
    let mut running = workers.start(&caller.name, &wanted.question).await?;
    let first = tokio::select! {
        first = running.next() => first?,
        () = validity.lapse() => return Err(Problem::no_credential()),
    };
    let (running, ending) = match first {
        Some(_) => (Some(running), None),
        // Nothing was found, or nothing can be.
        None => match running.ending().await? {
            Ending::Refused(refused) => return Err(Problem::refused(refused)),
            Ending::Answered(answered) => (None, Some(answered)),
        },
    };
    let id =
        service.answers.begin(&caller.owner(), &wanted.query).ok_or_else(Problem::no_worker)?;
    let (sender, receiver) = channel(PIECES);
    let outcome = Arc::<Outcome>::default();
    let pump = Pump {
        service: Arc::clone(service),
        id: id.clone(),
        walk: Walk { volume_id: wanted.volume_id, query: wanted.query },
        validity,
        sender,
        object: Object::new(wanted.framing),
        filter: caller.filter.clone(),
        outcome: Arc::clone(&outcome),
    };
    tokio::spawn(pump.run(first, running, ending));
    let mut reply = reply(wanted.media_type, Body::stream(receiver, outcome));
    let headers = reply.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(ANSWER_ID, value);
    }
    let link = format!("</api/v1/answers/{id}>; rel=\"describedby\"");
    if let Ok(value) = HeaderValue::from_str(&link) {
        headers.insert(LINK, value);
    }
    Ok(reply)
}

struct Pump {
    service: Arc<Service>,
    id: String,
    walk: Walk,
    /// Whose answer it is, as long as they may have it.
    validity: Validity,
    sender: Sender<io::Result<Bytes>>,
    /// `None` where bytes go out as they are.
    object: Option<Object>,
    /// What the client sees at most.
    filter: Option<String>,
    outcome: Arc<Outcome>,
}

/// The client has left, or takes nothing.
struct Gone;

impl Pump {
    async fn run(
        mut self,
        first: Option<Bytes>,
        running: Option<Running>,
        ending: Option<Box<Answered>>,
    ) {
        let validity = self.validity.clone();
        let ending = match running {
            // What passes on is dropped with a credential that is revoked, and its worker with it.
            Some(running) => tokio::select! {
                ending = self.pass(first, running) => ending,
                () = validity.lapse() => Err(Problem::no_credential()),
            },
            None => Ok(ending),
        };
        let is_done = match ending {
            Ok(Some(answered)) => self.end(*answered).await.is_ok(),
            Ok(None) => false,
            Err(problem) => {
                // Broken off: whoever reads on sees that this is not the end.
                self.outcome.tell(Told { is_broken_off: true, ..Told::default() });
                let broken = io::Error::other(problem.text());
                drop(timeout(STALL, self.sender.send(Err(broken))).await);
                false
            }
        };
        if !is_done {
            self.service.answers.change(&self.id, |answer| answer.state = Progress::BrokenOff);
        }
    }

    /// Hands everything on; `None` where the client has left.
    async fn pass(
        &mut self,
        first: Option<Bytes>,
        mut running: Running,
    ) -> Result<Option<Box<Answered>>, Problem> {
        let mut next = first;
        while let Some(bytes) = next {
            let piece = self.framed(bytes);
            if self.send(piece).await.is_err() {
                return Ok(None);
            }
            let sender = self.sender.clone();
            next = tokio::select! {
                biased;
                () = sender.closed() => return Ok(None),
                next = running.next() => next?,
            };
        }
        match running.ending().await? {
            Ending::Answered(answered) => Ok(Some(answered)),
            Ending::Refused(refused) => Err(Problem::refused(refused)),
        }
    }

    fn framed(&mut self, bytes: Bytes) -> Bytes {
        match &mut self.object {
            None => bytes,
            Some(object) => object.take(&bytes),
        }
    }

    async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        match timeout(STALL, self.sender.send(Ok(bytes))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    /// What comes behind the last byte of the worker.
    async fn end(&mut self, mut answered: Answered) -> Result<(), Gone> {
        if let Some(filter) = &self.filter {
            let note = format!("this credential sees only what matches {filter}");
            answered.statement.notes.push(note);
        }
        let next_cursor = answered.next.as_ref().map(|next| next.to_text(&self.walk));
        let behind = self.object.as_mut().map(|object| {
            let (count, answer) = (answered.count, &self.id);
            let statement = &answered.statement;
            let next_cursor = next_cursor.as_deref();
            object.end(&page::safe::json_part(&Rest { next_cursor, count, answer, statement }))
        });
        self.outcome.tell(Told {
            cut_by: answered.statement.cut_by.clone(),
            sha256: answered.hashes.as_ref().map(|hashes| hashes.sha256.clone()),
            blake3: answered.hashes.as_ref().map(|hashes| hashes.blake3.clone()),
            is_broken_off: false,
        });
        // Whoever has read the last byte finds it.
        self.service.answers.change(&self.id, |answer| {
            answer.state = Progress::Done;
            answer.count = Some(answered.count);
            answer.statement = Some(answered.statement);
            answer.next_cursor = next_cursor;
            answer.manifest = answered.manifest;
        });
        match behind {
            Some(behind) => self.send(behind).await,
            None => Ok(()),
        }
    }
}

/// What an answer has behind what a worker writes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rest<'a> {
    /// Where to go on after an answer of sessions that was cut.
    next_cursor: Option<&'a str>,
    /// How many sessions, packets or rows there are.
    count: u64,
    /// Id of this answer.
    answer: &'a str,
    statement: &'a Statement,
}

/// What a worker writes on its way to be an object of JSON.
#[derive(Debug)]
struct Object {
    /// Name of the array that lines are elements of; `None` where members come as they are.
    array: Option<&'static str>,
    has_begun: bool,
    has_element: bool,
    is_in_line: bool,
}

impl Object {
    fn new(framing: Framing) -> Option<Self> {
        let array = match framing {
            Framing::AsIs => return None,
            Framing::Elements(name) => Some(name),
            Framing::Members => None,
        };
        Some(Self { array, has_begun: false, has_element: false, is_in_line: false })
    }

    fn take(&mut self, bytes: &[u8]) -> Bytes {
        let mut framed = BytesMut::with_capacity(bytes.len() + 64);
        self.begin(&mut framed);
        if self.array.is_none() {
            self.has_element |= !bytes.is_empty();
            framed.put_slice(bytes);
            return framed.freeze();
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_in_line && self.has_element {
                framed.put_slice(b",\n");
            }
            self.has_element = true;
            let line = part.strip_suffix(b"\n");
            framed.put_slice(line.unwrap_or(part));
            self.is_in_line = line.is_none();
        }
        framed.freeze()
    }

    /// With the members of another object behind it.
    fn end(&mut self, object: &str) -> Bytes {
        let mut framed = BytesMut::with_capacity(object.len() + 64);
        self.begin(&mut framed);
        if self.array.is_some() {
            framed.put_slice(b"],\n");
        } else if self.has_element {
            framed.put_slice(b",\n");
        }
        framed.put_slice(object.strip_prefix('{').unwrap_or(object).as_bytes());
        framed.put_slice(b"\n");
        framed.freeze()
    }

    fn begin(&mut self, framed: &mut BytesMut) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        framed.put_slice(b"{");
        if let Some(array) = self.array {
            framed.put_slice(format!("\"{array}\":[").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn framed(framing: Framing, written: &[u8], size: usize) -> Value {
        let mut object = Object::new(framing).unwrap();
        let mut text: Vec<u8> = Vec::new();
        for part in written.chunks(size) {
            text.extend(object.take(part));
        }
        text.extend(object.end("{\"n\":3}"));
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn lines_become_an_array_wherever_they_are_cut() {
        let lines = b"{\"a\":1}\n{\"b\":[2,3]}\n{\"c\":4}\n";
        let expected = json!({"rows": [{"a": 1}, {"b": [2, 3]}, {"c": 4}], "n": 3});
        for size in 1..=lines.len() {
            assert_eq!(framed(Framing::Elements("rows"), lines, size), expected, "{size}");
        }
        assert_eq!(framed(Framing::Elements("rows"), b"", 1), json!({"rows": [], "n": 3}));
    }

    #[test]
    fn members_of_an_object_get_others_behind_them() {
        let members = b"\"a\":{\"b\":1},\"c\":[]";
        let expected = json!({"a": {"b": 1}, "c": [], "n": 3});
        for size in 1..=members.len() {
            assert_eq!(framed(Framing::Members, members, size), expected, "{size}");
        }
        assert_eq!(framed(Framing::Members, b"", 1), json!({"n": 3}));
    }
}
