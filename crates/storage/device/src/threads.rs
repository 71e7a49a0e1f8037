//! Writing with a few threads, where `io_uring` is switched off (sysctl, containers, old kernels).

use core::time::Duration;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::clock::monotonic_ns;
use crate::discard::discard_range;
use crate::guarded::Guarded;
use crate::jobs::Jobs;
use crate::patience::LEAVE;
use crate::target::Target;
use crate::{Completion, Device, Error, ReadAt, Shared, assert_range, to_usize};

/// Enough for several writes in flight and a flush beside them.
pub(crate) const THREAD_COUNT: usize = 4;

/// Hands submissions to threads with synchronous writes.
#[derive(Debug)]
pub(crate) struct Threads {
    target: Guarded,
    jobs: Arc<Jobs<Job, Completion>>,
    workers: Vec<JoinHandle<()>>,
    in_flight: usize,
    notes: Vec<String>,
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
        let jobs = Arc::new(Jobs::new());
        let mut threads =
            Self { target, jobs, workers: Vec::with_capacity(THREAD_COUNT), in_flight: 0, notes };
        for index in 0..THREAD_COUNT {
            let (target, jobs) = (Arc::clone(threads.target.target()), Arc::clone(&threads.jobs));
            let worker = std::thread::Builder::new()
                .name(format!("write-{index}"))
                .spawn(move || work(&target, &jobs))
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
        self.jobs.give(Job { token, submitted_ns: monotonic_ns(), work });
    }
}

fn work(target: &Target, jobs: &Jobs<Job, Completion>) {
    while let Some(Job { token, submitted_ns, work }) = jobs.next() {
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
        jobs.finish(Completion { token, result, latency_ns, read });
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
        self.in_flight -= self.jobs.reap(wait.filter(|_| self.in_flight > 0), out);
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
        if !self.jobs.end(self.in_flight, LEAVE) {
            return;
        }
        for worker in self.workers.drain(..) {
            assert!(worker.join().is_ok(), "a writer thread does not panic");
        }
    }
}
