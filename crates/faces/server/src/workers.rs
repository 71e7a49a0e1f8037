//! One process for each question, of which a bounded number runs and a bounded number waits: of all
//! who ask, and of each.
//!
//! Who asks holds a [`Running`] worker. When that is dropped, because the client has left, the
//! process is killed at once, and its place is free when it is gone.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use questions::{Answered, Ending, Question};
use sandbox::{Child, Program, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use turns::{Full, Limits, Refusals, Ticket};

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
    pub(crate) limits: Limits,
    pub(crate) patience: Duration,
}

/// Starts workers, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Workers {
    program: Program,
    /// What is handed on of this process' own environment: where caches and sockets are.
    environment: Vec<(&'static str, String)>,
    patience: Duration,
    queue: Queue,
    /// The last one that was asked for could be started.
    can_start: AtomicBool,
}

/// Who waits is handed a place.
#[derive(Clone, Debug)]
struct Queue(Arc<Mutex<Turns>>);

type Turns = turns::Turns<oneshot::Sender<Place>>;

/// How full the queue is, and was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) limits: Limits,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Credentials that these are of.
    pub(crate) names: usize,
    pub(crate) refusals: Refusals,
}

/// A place of this name. Dropped, the next one has it.
#[derive(Debug)]
struct Place {
    queue: Queue,
    name: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.lock().end(&self.name);
        self.queue.hand_out();
    }
}

/// One who waits. Dropped, it waits no more.
struct Waits<'a>(&'a Queue, &'a str, Ticket);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.lock().leave(self.1, self.2);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        stage::lock(&self.0)
    }

    /// A place for `name`, when it is its turn.
    async fn place(&self, name: &str, patience: Duration) -> Result<Place, Problem> {
        let (handed, place) = oneshot::channel();
        let asked = self.lock().ask(name, handed);
        // Who is pushed out sees the end of its channel.
        let (ticket, _) = asked.map_err(|full| match full {
            Full::Own => Problem::own_queue_full(),
            Full::All => Problem::busy(),
        })?;
        let _waits = Waits(self, name, ticket);
        self.hand_out();
        timeout(patience, place).await.ok().and_then(Result::ok).ok_or_else(Problem::busy)
    }

    /// Hands all places out that somebody waits for and may have.
    fn hand_out(&self) {
        loop {
            let next = self.lock().grant();
            let Some((name, waiter)) = next else { break };
            // Where who waited has left, it is given back here, without the lock.
            drop(waiter.send(Place { queue: self.clone(), name }));
        }
    }
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
            patience: room.patience,
            queue: Queue(Arc::new(Mutex::new(Turns::new(room.limits)))),
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

    pub(crate) fn fill(&self) -> Fill {
        let turns = self.queue.lock();
        Fill {
            limits: turns.limits(),
            running: turns.running(),
            waiting: turns.waiting(),
            names: turns.names(),
            refusals: turns.refusals(),
        }
    }

    /// Starts a worker for `name` once there is a place for it.
    pub(crate) async fn start(&self, name: &str, question: &Question) -> Result<Running, Problem> {
        self.start_within(self.patience, name, question).await
    }

    /// The same, where it is waited for the place for so long.
    pub(crate) async fn start_within(
        &self,
        patience: Duration,
        name: &str,
        question: &Question,
    ) -> Result<Running, Problem> {
        let place = self.queue.place(name, patience).await?;
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

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
    }

    /// Places are given back by who left, whatever it got meanwhile.
    #[test]
    fn who_leaves_the_queue_takes_no_place_with_it() {
        let queue = Queue(Arc::new(Mutex::new(Turns::new(Limits::shared(2, 64)))));
        let short = Duration::from_millis(20);
        runtime().block_on(async {
            let held = queue.place("a", short).await.unwrap();
            let waits = (0..8).map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.place("a", short).await.map(drop).is_ok() })
            });
            for waited in waits.collect::<Vec<_>>() {
                assert!(!waited.await.unwrap());
            }
            drop(queue.place("b", short).await.unwrap());
            drop(held);
            drop(queue.place("a", short).await.unwrap());
        });
        let turns = queue.lock();
        assert_eq!((turns.running(), turns.waiting(), turns.names()), (0, 0, 0));
    }

    #[test]
    fn a_worker_that_could_not_be_started_is_tried_without_a_request() {
        let room = Room { limits: Limits::shared(1, 1), patience: Duration::from_secs(1) };
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
        runtime().block_on(workers.try_again(&question));
        assert!(workers.can_start());
    }
}
