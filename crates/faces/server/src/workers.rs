//! One process for each question, of which a bounded number runs and a bounded number waits.
//!
//! Who asks holds a [`Running`] worker. When that is dropped, because the client has left, the
//! process is killed at once, and its place is free when it is gone.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use questions::{Answered, Ending, Question};
use sandbox::{Child, Program, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::Problem;

/// So much is read of an answer at once.
const CHUNK_BYTES: usize = 64 << 10;
/// More than an ending has: a manifest and a statement, escaped.
const ENDING_BYTES_MAX: u64 = 32 << 20;
/// A worker that has written its answer ends.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);
/// A worker that was told when to end may take so long for it, on a machine that records.
const GRACE: Duration = Duration::from_secs(20);

/// Others that wait for a place come first.
const TRIAL_PATIENCE: Duration = Duration::from_millis(100);

/// How many may run and wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) patience: Duration,
}

/// Starts workers, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Workers {
    program: Program,
    /// What is handed on of this process' own environment: where caches and sockets are.
    environment: Vec<(&'static str, String)>,
    room: Room,
    places: Arc<Semaphore>,
    /// One who asks much leaves a place to others.
    by_name: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    waiting: AtomicUsize,
    /// The last one that was asked for could be started.
    can_start: AtomicBool,
}

/// A place, of all and of one's own.
#[derive(Debug)]
struct Place {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Workers {
    pub(crate) fn new(
        verb: &'static str,
        environment: Vec<(&'static str, String)>,
        room: Room,
    ) -> Self {
        Self {
            program: Program::Myself(vec![OsString::from(verb)]),
            environment,
            room,
            places: Arc::new(Semaphore::new(room.running)),
            by_name: Mutex::default(),
            waiting: AtomicUsize::new(0),
            can_start: AtomicBool::new(true),
        }
    }

    pub(crate) fn can_start(&self) -> bool {
        self.can_start.load(Ordering::Relaxed)
    }

    /// Starts one that ends at once, where the last one could not be started.
    pub(crate) async fn try_again(&self, question: &Question) {
        if !self.can_start() {
            // Whether it could is what [`Self::can_start`] says then.
            drop(self.start_within(TRIAL_PATIENCE, "trial", question).await);
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.room.running.saturating_sub(self.places.available_permits())
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Starts a worker for `name` once there is a place for it.
    pub(crate) async fn start(&self, name: &str, question: &Question) -> Result<Running, Problem> {
        self.start_within(self.room.patience, name, question).await
    }

    /// The same, where it is waited for the place for so long.
    pub(crate) async fn start_within(
        &self,
        patience: Duration,
        name: &str,
        question: &Question,
    ) -> Result<Running, Problem> {
        let place = self.place(name, patience).await?;
        let (control, worker_s_control) = StdStream::pair().map_err(|_| Problem::no_worker())?;
        let (data, worker_s_data) = StdStream::pair().map_err(|_| Problem::no_worker())?;
        let (program, environment) = (self.program.clone(), self.environment.clone());
        let spawned = tokio::task::spawn_blocking(move || {
            let descriptors = [worker_s_control.as_fd(), worker_s_data.as_fd()];
            let request =
                Request { environment: &environment, ..Request::new(&program, &descriptors) };
            sandbox::spawn(&request)
        });
        let child = spawned.await.ok().and_then(Result::ok);
        self.can_start.store(child.is_some(), Ordering::Relaxed);
        let child = child.ok_or_else(Problem::no_worker)?;
        let mut running = Running {
            held: Some((child, place)),
            control: asynchronous(control)?,
            data: asynchronous(data)?,
            until_ns: question.until_ns,
        };
        let line = page::safe::json_line(question);
        running.control.write_all(line.as_bytes()).await.map_err(|_| Problem::no_worker())?;
        Ok(running)
    }

    async fn place(&self, name: &str, patience: Duration) -> Result<Place, Problem> {
        let _waits = Waits::new(&self.waiting, self.room.waiting).ok_or_else(Problem::busy)?;
        let own = self.own(name);
        let places = Arc::clone(&self.places);
        let place = async move {
            let own = own.acquire_owned().await.ok()?;
            let of_all = places.acquire_owned().await.ok()?;
            Some(Place { _own: own, _of_all: of_all })
        };
        let place = timeout(patience, place).await;
        place.ok().flatten().ok_or_else(Problem::busy)
    }

    /// Half of the places, for each who asks.
    fn own(&self, name: &str) -> Arc<Semaphore> {
        let most = self.room.running.div_ceil(2);
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_name.entry(name.to_owned());
        Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(most))))
    }
}

/// One more who waits, until dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let waits = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < most).then_some(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn asynchronous(stream: StdStream) -> Result<UnixStream, Problem> {
    let made = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
    made.map_err(|_| Problem::no_worker())
}

/// A worker at work. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    /// `None` while it is dropped.
    held: Option<(Child, Place)>,
    control: UnixStream,
    data: UnixStream,
    until_ns: i64,
}

impl Running {
    /// The next bytes of the answer; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let mut bytes = bytes::BytesMut::with_capacity(CHUNK_BYTES);
        let left = crate::left(self.until_ns) + GRACE;
        match timeout(left, self.data.read_buf(&mut bytes)).await {
            Ok(Ok(0)) => Ok(None),
            Ok(Ok(_)) => Ok(Some(bytes.freeze())),
            Ok(Err(_)) => Err(Problem::worker_ended()),
            Err(_) => Err(Problem::too_late()),
        }
    }

    /// All of an answer that has so many bytes at most, and its end.
    pub(crate) async fn whole(mut self, most: usize) -> Result<(Vec<u8>, Box<Answered>), Problem> {
        let mut text = Vec::new();
        while let Some(bytes) = self.next().await? {
            if text.len().saturating_add(bytes.len()) > most {
                return Err(Problem::worker_ended());
            }
            text.extend_from_slice(&bytes);
        }
        match self.ending().await? {
            Ending::Refused(refused) => Err(Problem::refused(refused)),
            Ending::Answered(answered) => Ok((text, answered)),
        }
    }

    /// What it says behind its last byte.
    pub(crate) async fn ending(mut self) -> Result<Ending, Problem> {
        let mut text = String::new();
        let mut control = (&mut self.control).take(ENDING_BYTES_MAX);
        let read = timeout(ENDING_PATIENCE, control.read_to_string(&mut text)).await;
        match read {
            Ok(Ok(_)) => serde_json::from_str(&text).map_err(|_| Problem::worker_ended()),
            _ => Err(Problem::worker_ended()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some((mut child, place)) = self.held.take() else { return };
        child.kill();
        // Waiting for its end takes as long as the kernel needs.
        let reap = move || {
            drop(child);
            drop(place);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(reap)),
            Err(_) => reap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use questions::What;

    #[test]
    fn a_worker_that_could_not_be_started_is_tried_without_a_request() {
        let room = Room { running: 1, waiting: 1, patience: Duration::from_secs(1) };
        // This program runs no test of that name, and ends.
        let workers = Workers::new("none-of-this-name", Vec::new(), room);
        let question = Question {
            volume: PathBuf::new(),
            index_dir: None,
            identity: None,
            what: What::Status,
            sees_ns: None,
            until_ns: 0,
            memory_bytes: 0,
        };
        workers.can_start.store(false, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(workers.try_again(&question));
        assert!(workers.can_start());
    }
}
