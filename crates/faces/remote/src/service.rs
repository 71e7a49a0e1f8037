//! A service, and the requests to it.

use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, TRANSFER_ENCODING};
use hyper::{Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::asker::{Asker, Settings};
use crate::documents::{Said, Volumes, WhoAmI};
use crate::{Error, Origin, Problem};

/// A document of JSON.
pub const JSON: &str = "application/json";
/// Text for a person.
pub const PLAIN: &str = "text/plain";
/// Lines of JSON.
pub const NDJSON: &str = "application/x-ndjson";
/// Arrow's stream.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Packets.
pub const PCAPNG: &str = "application/x-pcapng";
const PROBLEM: &str = "application/problem+json";

/// A problem has at most so many bytes.
const PROBLEM_BYTES_MAX: usize = 64 << 10;
/// What a service says of itself, and of an answer: a statement names its gaps.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// A service that is asked.
#[derive(Debug)]
pub struct Service(Asker);

impl Service {
    /// A service at this place; nothing is sent yet.
    ///
    /// # Errors
    /// When a file of credentials or certificates is none, or may be read by others.
    pub fn new(origin: Origin, settings: Settings) -> Result<Self, Error> {
        Asker::new(origin, settings).map(Self)
    }

    /// The user has had enough.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// Where it is.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Who asks, as the service knows it, and which volumes it has.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn whoami(&self) -> Result<WhoAmI, Error> {
        self.document("/api/v1/whoami")
    }

    /// How the volume with this id stands, as `status --json` says it.
    ///
    /// # Errors
    /// When there is no answer, or the volume cannot be looked at.
    pub fn status(&self, id: &str) -> Result<Value, Error> {
        let Volumes { volumes } = self.document("/api/v1/volumes")?;
        let is_it = |volume: &Map<String, Value>| {
            volume.get("volume_id").and_then(Value::as_str) == Some(id)
        };
        let volume = volumes.into_iter().find(is_it);
        let mut volume = volume.ok_or_else(|| self.0.unlike("it says nothing of the volume"))?;
        volume.remove("name");
        let Some(problem) = volume.remove("problem") else { return Ok(Value::Object(volume)) };
        let problem = Box::new(serde_json::from_value(problem).unwrap_or_default());
        Err(Error::Problem { origin: self.0.origin.clone(), problem })
    }

    /// What it says of an answer that it has given.
    ///
    /// # Errors
    /// When there is no answer, or the answer is not done.
    pub fn said(&self, answer: &str) -> Result<Said, Error> {
        let said: Said = self.document(&format!("/api/v1/answers/{answer}"))?;
        if said.is_done() {
            Ok(said)
        } else {
            Err(self.0.broken(&"it says itself that it is not done"))
        }
    }

    /// The manifest of an extract that it has given.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn manifest(&self, answer: &str) -> Result<String, Error> {
        let path = format!("/api/v1/answers/{answer}/manifest");
        let text = self.get(&path, &[], JSON)?.whole(DOCUMENT_BYTES_MAX)?;
        String::from_utf8(text).map_err(|_| self.0.unlike("the manifest is no UTF-8"))
    }

    fn document<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let text = self.get(path, &[], JSON)?.whole(DOCUMENT_BYTES_MAX)?;
        let why = |error: serde_json::Error| format!("{path}: {error}");
        serde_json::from_slice(&text).map_err(|error| self.0.unlike(&why(error)))
    }

    /// Asks for what stands at a path, and gives the answer as it comes, of this media type.
    ///
    /// # Errors
    /// When there is no answer; see [`Error`].
    pub fn get(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<Answer<'_>, Error> {
        let response = self.0.ask(path, parameters, media_type)?;
        self.checked(response, media_type)
    }

    /// What is no answer of ours is an error.
    fn checked(
        &self,
        response: Response<Incoming>,
        media_type: &'static str,
    ) -> Result<Answer<'_>, Error> {
        let (head, body) = response.into_parts();
        let text =
            |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let kind = text(CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if head.status.is_redirection() {
            let to = text(LOCATION).unwrap_or("nowhere").to_owned();
            return Err(Error::Redirected { origin: self.0.origin.clone(), to });
        }
        let mut answer = Answer::new(&self.0, &head.headers, body);
        if kind == PROBLEM && !head.status.is_success() {
            let text = answer.whole(PROBLEM_BYTES_MAX)?;
            let problem: Problem = serde_json::from_slice(&text).unwrap_or_default();
            if problem.is_said() {
                let origin = self.0.origin.clone();
                return Err(Error::Problem { origin, problem: Box::new(problem) });
            }
        }
        if head.status != StatusCode::OK {
            return Err(self.0.unlike(&format!("its status is {}", head.status)));
        }
        if kind != media_type {
            let why = format!("{media_type} was asked for, and {kind:?} came");
            return Err(self.0.unlike(&why));
        }
        // Without a length the end of a connection would be that of an answer.
        let has_end = [TRANSFER_ENCODING, CONTENT_LENGTH];
        if !has_end.iter().any(|name| head.headers.contains_key(name)) {
            return Err(self.0.unlike("its answer has no length"));
        }
        Ok(answer)
    }
}
