//! Writing with a few threads, where `io_uring` is switched off (sysctl, containers, old kernels).

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::clock::monotonic_ns;
use crate::discard::discard_range;
use crate::guarded::Guarded;
use crate::patience::LEAVE;
use crate::target::Target;
use crate::{Completion, Device, Error, ReadAt, Shared, assert_range, to_usize};

/// Enough for several writes in flight and a flush beside them.
pub(crate) const THREAD_COUNT: usize = 4;

/// Hands submissions to threads with synchronous writes.
#[derive(Debug)]
pub(crate) struct Threads {
    target: Guarded,
    queues: Arc<Queues>,
    workers: Vec<JoinHandle<()>>,
    in_flight: usize,
    notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Queues {
    state: Mutex<State>,
    submitted: Condvar,
    finished: Condvar,
}

/// Both lists are bounded by what the caller has in flight, and so by its pool.
#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    done: Vec<Completion>,
    stopping: bool,
}

#[derive(Debug)]
struct Job {
    token: u64,
    submitted_ns: u64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Write { offset: u64, data: Shared, len: usize },
    Flush,
    Discard { offset: u64, len: u64 },
    Read { offset: u64, len: usize },
}

impl Threads {
    pub(crate) fn start(target: Guarded, notes: Vec<String>) -> Result<Self, Error> {
        let queues = Arc::new(Queues::default());
        let mut threads =
            Self { target, queues, workers: Vec::with_capacity(THREAD_COUNT), in_flight: 0, notes };
        for index in 0..THREAD_COUNT {
            let (target, queues) =
                (Arc::clone(threads.target.target()), Arc::clone(&threads.queues));
            let worker = std::thread::Builder::new()
                .name(format!("write-{index}"))
                .spawn(move || work(&target, &queues))
                .map_err(|error| Error::Io {
                    operation: "start a thread for writing",
                    offset: 0,
                    errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
                })?;
            threads.workers.push(worker);
        }
        Ok(threads)
    }

    fn submit(&mut self, token: u64, work: Work) {
        self.in_flight += 1;
        self.queues.lock().jobs.push_back(Job { token, submitted_ns: monotonic_ns(), work });
        self.queues.submitted.notify_one();
    }
}

impl Queues {
    /// A worker that panicked has aborted the process; the state is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        stage::lock(&self.state)
    }

    /// The next job, or `None` once stopping and empty.
    fn next(&self) -> Option<Job> {
        self.submitted
            .wait_while(self.lock(), |state| state.jobs.is_empty() && !state.stopping)
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .pop_front()
    }
}

fn work(target: &Target, queues: &Queues) {
    while let Some(Job { token, submitted_ns, work }) = queues.next() {
        let mut read = None;
        let result = match work {
            Work::Write { offset, data, len } => {
                target.write_at(offset, data.get(..len).expect("checked at submission"))
            }
            // Covers what was completed at submission, and possibly more.
            Work::Flush => target.sync(),
            Work::Discard { offset, len } => discard_range(target, offset, len),
            Work::Read { offset, len } => target.read_at(offset, read.insert(vec![0; len])),
        };
        let latency_ns = monotonic_ns().saturating_sub(submitted_ns);
        queues.lock().done.push(Completion { token, result, latency_ns, read });
        queues.finished.notify_one();
    }
}

impl Device for Threads {
    fn size_bytes(&self) -> u64 {
        self.target.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        assert_range(offset, len, self.target.size_bytes());
        assert!(len <= data.len(), "the length lies in the buffer");
        self.submit(token, Work::Write { offset, data, len });
    }

    fn submit_flush(&mut self, token: u64) {
        self.submit(token, Work::Flush);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        assert_range(offset, to_usize(len), self.target.size_bytes());
        self.submit(token, Work::Discard { offset, len });
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        assert_range(offset, len, self.target.size_bytes());
        self.submit(token, Work::Read { offset, len });
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let mut state = self.queues.lock();
        if let (Some(wait), true) = (wait, self.in_flight > 0) {
            (state, _) = self
                .queues
                .finished
                .wait_timeout_while(state, wait, |state| state.done.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.in_flight -= state.done.len();
        out.append(&mut state.done);
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.target.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.target.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.target.sync()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for Threads {
    /// Writes what was submitted, then ends the threads, so that the lock is not given up before.
    /// A thread whose write takes too long is left behind, and the lock with it.
    fn drop(&mut self) {
        let mut state = self.queues.lock();
        state.stopping = true;
        self.queues.submitted.notify_all();
        let in_flight = self.in_flight;
        let is_under_way = |state: &mut State| state.done.len() < in_flight;
        let (mut state, waited) = self
            .queues
            .finished
            .wait_timeout_while(state, LEAVE, is_under_way)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            state.jobs.clear();
            return;
        }
        drop(state);
        for worker in self.workers.drain(..) {
            assert!(worker.join().is_ok(), "a writer thread does not panic");
        }
    }
}
