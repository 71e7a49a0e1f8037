//! A service, and the requests to it.

use core::fmt;
use core::future::Future;
use core::pin::{Pin, pin};
use core::time::Duration;

use host::SystemClock;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue};
use hyper::header::{LOCATION, TRANSFER_ENCODING, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use units::Clock as _;

use crate::answer::Answer;
use crate::connection::{open, send};
use crate::documents::{Said, Volumes, WhoAmI};
use crate::{Error, Origin, Problem, Trust};

/// A document of JSON.
pub const JSON: &str = "application/json";
/// Lines of JSON.
pub const NDJSON: &str = "application/x-ndjson";
/// Arrow's stream.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Packets.
pub const PCAPNG: &str = "application/x-pcapng";
const PROBLEM: &str = "application/problem+json";

/// How often it is looked whether the user has had enough.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// A service that is there takes a connection, and says whether it is well, within this.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so much silence it is asked whether it is well: a search that finds nothing is silent, too.
const QUIET: Duration = Duration::from_secs(30);
/// A shorter deadline is looked at in so many parts.
const QUIET_PARTS: u32 = 2;
/// A problem has at most so many bytes.
const PROBLEM_BYTES_MAX: usize = 64 << 10;
/// What a service says of itself, and of an answer: a statement names its gaps.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// How a service is asked.
pub struct Settings {
    /// Certificates and credentials.
    pub trust: Trust,
    /// Silence for so long is an end.
    pub silence: Duration,
    /// Name and version of the program that asks.
    pub program: &'static str,
    /// The user has had enough.
    pub is_stopped: Box<dyn Fn() -> bool>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("silence", &self.silence).finish_non_exhaustive()
    }
}

/// A service that is asked.
pub struct Service {
    pub(crate) origin: Origin,
    settings: Settings,
    tls: Option<TlsConnector>,
    bearer: Option<HeaderValue>,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Service {
    /// A service at this place; nothing is sent yet.
    ///
    /// # Errors
    /// When a file of credentials or certificates is none, or may be read by others.
    pub fn new(origin: Origin, settings: Settings) -> Result<Self, Error> {
        let tls = origin.has_tls.then(|| settings.trust.connector()).transpose()?;
        let bearer = settings.trust.bearer()?;
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(Error::System)?;
        Ok(Self { origin, settings, tls, bearer, runtime: Some(runtime) })
    }

    /// The user has had enough.
    pub fn is_stopped(&self) -> bool {
        (self.settings.is_stopped)()
    }

    /// Where it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Who asks, as the service knows it, and which volumes it has.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn whoami(&self) -> Result<WhoAmI, Error> {
        self.document("/api/v1/whoami", DOCUMENT_BYTES_MAX)
    }

    /// How the volume with this id stands, as `status --json` says it.
    ///
    /// # Errors
    /// When there is no answer, or the volume cannot be looked at.
    pub fn status(&self, id: &str) -> Result<Value, Error> {
        let Volumes { volumes } = self.document("/api/v1/volumes", DOCUMENT_BYTES_MAX)?;
        let is_it = |volume: &Map<String, Value>| {
            volume.get("volume_id").and_then(Value::as_str) == Some(id)
        };
        let volume = volumes.into_iter().find(is_it);
        let mut volume = volume.ok_or_else(|| self.unlike("it says nothing of the volume"))?;
        volume.remove("name");
        let Some(problem) = volume.remove("problem") else { return Ok(Value::Object(volume)) };
        let problem = Box::new(serde_json::from_value(problem).unwrap_or_default());
        Err(Error::Problem { origin: self.origin.clone(), problem })
    }

    /// What it says of an answer that it has given.
    ///
    /// # Errors
    /// When there is no answer, or the answer is not done.
    pub fn said(&self, answer: &str) -> Result<Said, Error> {
        let said: Said = self.document(&format!("/api/v1/answers/{answer}"), DOCUMENT_BYTES_MAX)?;
        if said.is_done() {
            Ok(said)
        } else {
            Err(self.broken(&"it says itself that it is not done"))
        }
    }

    /// The manifest of an extract that it has given.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn manifest(&self, answer: &str) -> Result<String, Error> {
        let path = format!("/api/v1/answers/{answer}/manifest");
        let text = self.get(&path, &[], JSON)?.whole(DOCUMENT_BYTES_MAX)?;
        String::from_utf8(text).map_err(|_| self.unlike("the manifest is no UTF-8"))
    }

    fn document<T: DeserializeOwned>(&self, path: &str, bytes_max: usize) -> Result<T, Error> {
        let text = self.get(path, &[], JSON)?.whole(bytes_max)?;
        let why = |error: serde_json::Error| format!("{path}: {error}");
        serde_json::from_slice(&text).map_err(|error| self.unlike(&why(error)))
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
        let request = self.request(path, parameters, media_type);
        let opened = self.within(PATIENCE, open(&self.origin, self.tls.as_ref()))?;
        let mut sent = pin!(send(opened?, request));
        let response = self.patiently(sent.as_mut())?;
        let response = response.map_err(|error| self.of_http(&error))?;
        self.checked(response, media_type)
    }

    fn request(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Request<String> {
        let mut target = path.to_owned();
        if !parameters.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(parameters);
            target = format!("{target}?{}", query.finish());
        }
        let mut request = Request::new(String::new());
        *request.uri_mut() = target.parse().expect("paths and what is encoded are parts of a URI");
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(&self.origin.authority());
        headers.insert(HOST, host.expect("the authority of a URI is a value"));
        headers.insert(USER_AGENT, HeaderValue::from_static(self.settings.program));
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        headers.extend(self.bearer.clone().map(|bearer| (AUTHORIZATION, bearer)));
        request
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
            return Err(Error::Redirected { origin: self.origin.clone(), to });
        }
        let mut answer = Answer::new(self, &head.headers, body);
        if kind == PROBLEM && !head.status.is_success() {
            let text = answer.whole(PROBLEM_BYTES_MAX)?;
            let problem: Problem = serde_json::from_slice(&text).unwrap_or_default();
            if problem.is_said() {
                let origin = self.origin.clone();
                return Err(Error::Problem { origin, problem: Box::new(problem) });
            }
        }
        if head.status != StatusCode::OK {
            return Err(self.unlike(&format!("its status is {}", head.status)));
        }
        if kind != media_type {
            let why = format!("{media_type} was asked for, and {kind:?} came");
            return Err(self.unlike(&why));
        }
        // Without a length the end of a connection would be that of an answer.
        let has_end = [TRANSFER_ENCODING, CONTENT_LENGTH];
        if !has_end.iter().any(|name| head.headers.contains_key(name)) {
            return Err(self.unlike("its answer has no length"));
        }
        Ok(answer)
    }

    /// Waits for what a service that is there does at once.
    fn within<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Result<T, Error> {
        let limit = limit.min(self.settings.silence);
        match self.wait(limit, pin!(future))? {
            Some(done) => Ok(done),
            None => Err(self.silent(limit)),
        }
    }

    /// Waits for the next of an answer: as long as the service says that it is well.
    pub(crate) fn patiently<F: Future>(&self, mut future: Pin<&mut F>) -> Result<F::Output, Error> {
        let silence = self.settings.silence;
        let quiet = QUIET.min(silence / QUIET_PARTS);
        let since_ns = SystemClock.boottime_ns();
        loop {
            if let Some(done) = self.wait(quiet, future.as_mut())? {
                return Ok(done);
            }
            let passed_ns = SystemClock.boottime_ns().saturating_sub(since_ns);
            let passed = Duration::from_nanos(u64::try_from(passed_ns).unwrap_or(0));
            if passed >= silence {
                return Err(self.silent(passed));
            }
            match self.is_well() {
                Ok(()) => {}
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(_) => return Err(self.silent(passed)),
            }
        }
    }

    /// Whether it answers at all.
    fn is_well(&self) -> Result<(), Error> {
        let request = self.request("/api/v1/health", &[], JSON);
        let opened = self.within(PATIENCE, open(&self.origin, self.tls.as_ref()))?;
        let sent = self.within(PATIENCE, send(opened?, request))?;
        sent.map(drop).map_err(|error| self.of_http(&error))
    }

    /// Waits for so long at most; the user ends it.
    fn wait<F: Future>(
        &self,
        limit: Duration,
        mut future: Pin<&mut F>,
    ) -> Result<Option<F::Output>, Error> {
        let runtime = self.runtime.as_ref().expect("it is there until it is dropped");
        runtime.block_on(async {
            let limited = timeout(limit, future.as_mut());
            let mut limited = pin!(limited);
            loop {
                match timeout(STOP_EVERY, limited.as_mut()).await {
                    _ if self.is_stopped() => return Err(Error::Stopped),
                    Ok(Ok(done)) => return Ok(Some(done)),
                    Ok(Err(_)) => return Ok(None),
                    Err(_) => {}
                }
            }
        })
    }

    pub(crate) fn unlike(&self, why: &str) -> Error {
        Error::Unlike { origin: self.origin.clone(), why: page::safe::printable(why) }
    }

    pub(crate) fn broken(&self, why: &dyn ToString) -> Error {
        let why = page::safe::printable(&why.to_string());
        Error::Broken { origin: self.origin.clone(), why }
    }

    fn silent(&self, passed: Duration) -> Error {
        Error::Silent { origin: self.origin.clone(), seconds: passed.as_secs().max(1) }
    }

    /// What hyper says: a heading that is none is no connection that broke.
    pub(crate) fn of_http(&self, error: &hyper::Error) -> Error {
        let why = core::error::Error::source(error);
        let why = why.map_or_else(|| error.to_string(), |why| format!("{error}: {why}"));
        if error.is_parse() || error.is_parse_too_large() {
            self.unlike(&why)
        } else {
            self.broken(&why)
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A name that is still looked up keeps a thread, which nobody waits for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
