//! The audit of a service: what becomes of a request has a line before the answer begins, and one
//! of its end where that is not known then.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use audit::{Audit, Credential, Ended, Event, FourEyes, Link, Request, Unwritten};
use host::SystemClock;
use hyper::{Method, StatusCode, Uri};
use tokio::sync::oneshot;
use tokio::time::timeout;
use units::Clock as _;

use crate::budget::Budget;

/// A disk that takes longer has the request refused.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of a path, and of what is behind its question mark, so many bytes are kept.
const PATH_MAX: usize = 512;
const PARAMETERS_MAX: usize = 1024;
/// Anybody who may connect can be refused: so many such lines at once, and a second beyond.
const REFUSED_BURST: u64 = 1000;
const REFUSED_PER_S: u64 = 10;

/// The audit, if there is one.
#[derive(Debug)]
pub(crate) struct Trail {
    audit: Option<Audit>,
    path: Option<PathBuf>,
    numbers: AtomicU64,
    refused: Mutex<Budget>,
    /// A line waits until it can be written.
    is_trying: AtomicBool,
}

impl Trail {
    /// With the file that it is written to.
    pub(crate) fn new(audit: Option<(Audit, PathBuf)>) -> Self {
        let (audit, path) = audit.unzip();
        let refused = Budget::new(REFUSED_BURST, REFUSED_PER_S, SystemClock.boottime_ns());
        Self {
            audit,
            path,
            numbers: AtomicU64::new(1),
            refused: Mutex::new(refused),
            is_trying: AtomicBool::new(false),
        }
    }

    /// Whether requests can be answered as far as it goes.
    pub(crate) fn is_well(&self) -> bool {
        self.audit.as_ref().is_none_or(Audit::is_well)
    }

    /// Has the audit write a line as soon as it can, where it could not write: the first line then
    /// is that it goes on. Else the service would stay unwell until a request with a credential
    /// comes, and none does past a load balancer that goes by its health.
    pub(crate) fn try_again(&self) {
        let Some(audit) = &self.audit else { return };
        let is_failing = !audit.is_well();
        let was_trying = self.is_trying.swap(is_failing, Ordering::Relaxed);
        if is_failing && !was_trying {
            // The audit tries this by itself until it is written.
            audit.write_end(Event::Unlisted { count: 0 });
        }
    }

    /// Lines that were written; none without an audit.
    pub(crate) fn lines(&self) -> Option<u64> {
        self.audit.as_ref().map(Audit::lines)
    }

    /// The file that is written.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The last line that is on the disk.
    pub(crate) fn end(&self) -> Link {
        self.audit.as_ref().map(Audit::end).unwrap_or_default()
    }

    /// The last line, for the log; none without an audit.
    pub(crate) fn head(&self) -> Option<String> {
        self.audit.as_ref().map(|audit| head(audit.end()))
    }

    /// Ends it; the last line.
    pub(crate) fn stop(&self) -> Option<String> {
        self.audit.as_ref().map(|audit| head(audit.stop()))
    }

    fn may_list_refused(&self) -> bool {
        let mut refused = stage::lock(&self.refused);
        refused.take(SystemClock.boottime_ns())
    }
}

fn head(end: Link) -> String {
    format!("the audit is at line {}, head {}", end.seq, units::hex(&end.hash))
}

/// What is known of a streamed answer when it ends.
#[derive(Debug, Default)]
pub(crate) struct Outcome(Mutex<Told>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) cut_by: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) blake3: Option<String>,
    pub(crate) is_broken_off: bool,
}

impl Outcome {
    pub(crate) fn tell(&self, told: Told) {
        *stage::lock(&self.0) = told;
    }

    fn told(&self) -> Told {
        stage::lock(&self.0).clone()
    }
}

/// How much of a request is in the audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No credential was asked for so far.
    Unchecked,
    /// Nothing yet.
    Checked,
    /// That it began.
    Begun,
    /// All of it.
    Done,
}

/// A request as the audit has it.
#[derive(Debug)]
pub(crate) struct Record {
    trail: Arc<Trail>,
    request: Request,
    began_ns: i64,
    state: State,
    /// It is answered although it cannot be put down.
    is_answered_anyway: bool,
    outcome: Option<Arc<Outcome>>,
}

impl Record {
    pub(crate) fn begin(trail: &Arc<Trail>, from: SocketAddr) -> Self {
        let number = trail.numbers.fetch_add(1, Ordering::Relaxed);
        let request = Request { number, from: from.to_string(), ..Request::default() };
        Self {
            trail: Arc::clone(trail),
            request,
            began_ns: SystemClock.boottime_ns(),
            state: State::Unchecked,
            is_answered_anyway: false,
            outcome: None,
        }
    }

    pub(crate) fn ask(&mut self, method: &Method, uri: &Uri) {
        self.request.method = bounded(method.as_str(), PATH_MAX);
        self.request.path = bounded(uri.path(), PATH_MAX);
        self.request.parameters = bounded(uri.query().unwrap_or_default(), PARAMETERS_MAX);
    }

    /// A credential is asked for: from now on it has a line, however it ends.
    pub(crate) fn is_checked(&mut self, shown: Option<Credential>) {
        self.request.kind = shown;
        if self.state == State::Unchecked {
            self.state = State::Checked;
        }
    }

    /// Whether the service is well is asked: it has a line where a credential is shown, and is
    /// answered without one, too.
    pub(crate) fn is_open(&mut self, shown: Option<Credential>) {
        self.is_answered_anyway = true;
        if shown.is_some() {
            self.is_checked(shown);
        }
    }

    fn took_ms(&self) -> u64 {
        let took_ns = SystemClock.boottime_ns().saturating_sub(self.began_ns);
        took_ns.max(0).unsigned_abs() / 1_000_000
    }

    pub(crate) fn is_by(&mut self, name: &str) {
        self.request.credential = Some(name.to_owned());
    }

    /// Whose account it is about.
    pub(crate) fn is_about(&mut self, name: &str) {
        self.request.about = Some(name.to_owned());
    }

    /// What is asked of a volume.
    pub(crate) fn asks(&mut self, query: &str, volume: Option<&str>, range: [Option<String>; 2]) {
        self.request.query = Some(query.to_owned());
        self.request.volume = volume.map(str::to_owned);
        let has_range = range.iter().any(Option::is_some);
        self.request.range = has_range.then_some(range);
    }

    /// Of which extract, that one asks for and another one approves.
    pub(crate) fn is_for(&mut self, asked: FourEyes) {
        self.request.four_eyes = Some(asked);
    }

    pub(crate) fn ends_as(&mut self, outcome: Arc<Outcome>) {
        self.outcome = Some(outcome);
    }

    /// Puts down what is answered: all of it where the bytes are ready, else that it begins. False
    /// where it must not be answered.
    pub(crate) async fn answer(&mut self, status: StatusCode, ready_bytes: Option<u64>) -> bool {
        let trail = Arc::clone(&self.trail);
        let Some(audit) = &trail.audit else { return true };
        if self.state != State::Checked {
            self.request.status = Some(status.as_u16());
            return true;
        }
        let is_anybodys = self.request.credential.is_none() && self.state == State::Checked;
        let is_refused = status.is_client_error() || status.is_server_error();
        if is_refused && is_anybodys && !trail.may_list_refused() {
            self.state = State::Done;
            audit.leave_out();
            return audit.is_well() || self.is_answered_anyway;
        }
        self.request.status = Some(status.as_u16());
        self.request.took_ms = self.took_ms();
        let mut request = Box::new(self.request.clone());
        let event = if let Some(bytes) = ready_bytes {
            let ended = if is_refused { Ended::Refused } else { Ended::Complete };
            (request.bytes, request.ended) = (bytes, Some(ended));
            self.state = State::Done;
            Event::Request(request)
        } else {
            self.state = State::Begun;
            Event::Begun(request)
        };
        let written = written(audit, event).await;
        self.is_written(written) || self.is_answered_anyway
    }

    /// Puts down that something is about to be changed. False where it must not be.
    pub(crate) async fn begin_change(&mut self) -> bool {
        let trail = Arc::clone(&self.trail);
        let Some(audit) = &trail.audit else { return true };
        self.state = State::Begun;
        let written = written(audit, Event::Begun(Box::new(self.request.clone()))).await;
        self.is_written(written)
    }

    /// It is put down that something is being changed.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.state, State::Begun)
    }

    fn is_written(&mut self, written: Option<Result<u64, Unwritten>>) -> bool {
        match written {
            Some(Ok(_)) => return true,
            Some(Err(Unwritten)) => self.state = State::Done,
            // The line may come yet: then another one says that nothing was answered.
            None => {
                self.request.status = Some(StatusCode::SERVICE_UNAVAILABLE.as_u16());
                self.request.ended = Some(Ended::Refused);
                self.state = State::Begun;
            }
        }
        false
    }

    /// Puts down how it ended, and says so for the log.
    pub(crate) fn end(&mut self, bytes: u64, is_whole: bool) -> String {
        let took_ms = self.took_ms();
        let told = self.outcome.as_ref().map(|outcome| outcome.told()).unwrap_or_default();
        let is_cut = told.cut_by.is_some();
        let is_refused = self.request.status.is_some_and(|status| status >= 400);
        let ended = match (is_whole, told.is_broken_off) {
            (true, _) if is_refused => Ended::Refused,
            (true, _) if is_cut => Ended::Cut,
            (true, _) => Ended::Complete,
            (false, true) => Ended::BrokenOff,
            (false, false) => Ended::ClientLeft,
        };
        let request = &mut self.request;
        (request.bytes, request.took_ms) = (bytes, took_ms);
        request.ended.get_or_insert(ended);
        if is_whole {
            (request.cut_by, request.sha256, request.blake3) =
                (told.cut_by, told.sha256, told.blake3);
        }
        let text = self.for_log(ended);
        let is_open = matches!(self.state, State::Checked | State::Begun);
        if let (Some(audit), true) = (&self.trail.audit, is_open) {
            self.state = State::Done;
            audit.write_end(Event::Request(Box::new(self.request.clone())));
        }
        text
    }

    /// What stands in the audit and not in the rest of a line of the log.
    fn for_log(&self, ended: Ended) -> String {
        let Request { number, kind, volume, range, cut_by, sha256, .. } = &self.request;
        let broken_off = match ended {
            Ended::ClientLeft | Ended::BrokenOff => Some("broken off".to_owned()),
            _ => None,
        };
        let range = range.as_ref().map(|[from, until]| {
            let word = |time: &Option<String>| time.clone().unwrap_or_default();
            format!("times {}..{}", word(from), word(until))
        });
        let parts = [
            broken_off,
            kind.map(|kind| kind.word().to_owned()),
            volume.as_ref().map(|volume| format!("volume {volume}")),
            range,
            cut_by.as_ref().map(|limit| format!("cut by {limit}")),
            sha256.as_ref().map(|hash| format!("sha256 {hash}")),
            self.trail.audit.is_some().then(|| format!("request {number}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let gap = if parts.is_empty() { "" } else { " " };
        format!("{gap}{}", parts.join(" "))
    }
}

/// Writes an event; none where that takes too long.
async fn written(audit: &Audit, event: Event) -> Option<Result<u64, Unwritten>> {
    let (tell, told) = oneshot::channel();
    audit.write(event, Box::new(move |written| tell.send(written).unwrap_or_default()));
    timeout(PATIENCE, told).await.ok().map(|told| told.unwrap_or(Err(Unwritten)))
}

/// The beginning of a text.
fn bounded(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}
