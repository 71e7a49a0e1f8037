//! Sending a request and waiting: for the service, for the user, for the end of patience.

use core::fmt;
use core::future::Future;
use core::pin::{Pin, pin};
use core::time::Duration;

use host::SystemClock;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use units::Clock as _;

use crate::connection::{open, send};
use crate::{Error, Origin, Trust};

/// Says whether a service is well.
const HEALTH: (&str, &str) = ("/api/v1/health", "application/json");

/// How often it is looked at whether the user has had enough.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// A service that is there takes a connection, and says whether it is well, within this.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so much silence it is asked whether it is well: a search that finds nothing says nothing.
const QUIET: Duration = Duration::from_secs(30);
/// A shorter deadline is looked at in so many parts.
const QUIET_PARTS: u32 = 2;

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

/// Asks a service.
pub(crate) struct Asker {
    pub(crate) origin: Origin,
    settings: Settings,
    tls: Option<TlsConnector>,
    bearer: Option<HeaderValue>,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Asker {
    pub(crate) fn new(origin: Origin, settings: Settings) -> Result<Self, Error> {
        let tls = origin.has_tls.then(|| settings.trust.connector()).transpose()?;
        let bearer = settings.trust.bearer()?;
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(Error::System)?;
        Ok(Self { origin, settings, tls, bearer, runtime: Some(runtime) })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        (self.settings.is_stopped)()
    }

    /// Sends a request over a new connection, and waits for the heading of its answer.
    pub(crate) fn ask(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<Response<Incoming>, Error> {
        self.send(self.request(path, parameters, media_type)?)
    }

    /// The same with a request that is made already.
    pub(crate) fn send(&self, request: Request<String>) -> Result<Response<Incoming>, Error> {
        let opened = self.within(PATIENCE, open(&self.origin, self.tls.as_ref()))?;
        let mut sent = pin!(send(opened?, request));
        self.patiently(sent.as_mut())?.map_err(|error| self.of_http(&error))
    }

    /// Silence for so long is an end.
    pub(crate) fn silence(&self) -> Duration {
        self.settings.silence
    }

    pub(crate) fn request(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<Request<String>, Error> {
        let mut target = path.to_owned();
        if !parameters.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(parameters);
            target = format!("{target}?{}", query.finish());
        }
        let mut request = Request::new(String::new());
        // What is encoded is part of a URI, unless there is too much of it.
        *request.uri_mut() = target.parse().map_err(|_| Error::TooLong)?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(&self.origin.authority());
        headers.insert(HOST, host.expect("the authority of a URI is a value"));
        headers.insert(USER_AGENT, HeaderValue::from_static(self.settings.program));
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        headers.extend(self.bearer.clone().map(|bearer| (AUTHORIZATION, bearer)));
        Ok(request)
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
        let request = self.request(HEALTH.0, &[], HEALTH.1)?;
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

impl Drop for Asker {
    fn drop(&mut self) {
        // A name that is still looked up keeps a thread, which nobody waits for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
