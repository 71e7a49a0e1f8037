//! Discards: a block device hears that the content of a range is needed no more.
//!
//! BLKDISCARD returns when the disk has answered, so a thread of its own waits for it where the
//! others must not. Files are left alone: what is given back to a file system has to be allocated
//! again.

#![expect(unsafe_code, reason = "BLKDISCARD is an ioctl without a safe wrapper")]

use core::time::Duration;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::io::Errno;

use crate::clock::monotonic_ns;
use crate::patience::{Callee, LEAVE};
use crate::target::{Access, Target};
use crate::{Completion, Error, to_u64};

/// Of a whole disk so much is discarded at a time: a stop is heard between two parts.
const PART_BYTES: usize = 32 << 30;
/// Discards that may wait for the disk; a volume has one under way.
const WAITING_MAX: usize = 4;

/// Tells a block device that none of its content is needed any more. `false` when it does not care;
/// its content is undefined afterwards.
///
/// # Errors
/// When it cannot be opened or fails; [`Error::Silent`] where a part takes longer than a minute.
pub fn discard(path: &Path) -> Result<bool, Error> {
    let (callee, own) = (Callee::at(path), path.to_path_buf());
    let target = callee.call_long(move || Target::open(&own, Access::Exclusive, true))??;
    let size_bytes = target.size_bytes();
    let target = Arc::new(target);
    for offset in (0..size_bytes).step_by(PART_BYTES) {
        let len = (size_bytes - offset).min(to_u64(PART_BYTES));
        let target = Arc::clone(&target);
        match callee.call_long(move || request(&target, offset, len))? {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => return Ok(false),
            Err(errno) => return Err(Error::path("discard", path, errno)),
        }
    }
    Ok(true)
}

/// The same for a range of an open device; fails on a file.
pub(crate) fn discard_range(target: &Target, offset: u64, len: u64) -> Result<(), Error> {
    request(target, offset, len).map_err(|errno| Error::io("discard", offset, errno))
}

fn request(target: &Target, offset: u64, len: u64) -> Result<(), Errno> {
    let range: [u64; 2] = [offset, len];
    // SAFETY: BLKDISCARD reads two u64, offset and length, from the address given: linux/fs.h.
    let request = unsafe {
        rustix::ioctl::Setter::<{ rustix::ioctl::opcode::none(0x12, 119) }, [u64; 2]>::new(range)
    };
    // SAFETY: the request is BLKDISCARD with its argument.
    unsafe { rustix::ioctl::ioctl(target.as_fd(), request) }
}

/// Discards of one device, carried out one after the other by a thread.
#[derive(Debug)]
pub(crate) struct Discards {
    /// `None` before the first one.
    thread: Option<Running>,
    /// Those that could not be handed to it.
    refused: Vec<Completion>,
    under_way: usize,
}

#[derive(Debug)]
struct Running {
    jobs: SyncSender<Job>,
    done: Receiver<Completion>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Job {
    token: u64,
    offset: u64,
    len: u64,
    submitted_ns: u64,
}

impl Discards {
    pub(crate) fn new() -> Self {
        Self { thread: None, refused: Vec::new(), under_way: 0 }
    }

    pub(crate) fn submit(&mut self, target: &Arc<Target>, token: u64, (offset, len): (u64, u64)) {
        self.under_way += 1;
        if self.thread.is_none() {
            self.thread = Running::start(Arc::clone(target)).ok();
        }
        let job = Job { token, offset, len, submitted_ns: monotonic_ns() };
        let sent = self.thread.as_ref().is_some_and(|it| it.jobs.try_send(job).is_ok());
        if !sent {
            let result = Err(Error::io("discard", offset, Errno::AGAIN));
            self.refused.push(Completion::new(token, result, 0));
        }
    }

    /// Takes what has ended; waits for one only if asked to.
    pub(crate) fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let before = out.len();
        out.append(&mut self.refused);
        if let Some(Running { done, .. }) = &self.thread {
            out.extend(done.try_iter());
            if let (true, Some(wait)) = (out.len() == before && self.under_way > 0, wait) {
                out.extend(done.recv_timeout(wait));
            }
        }
        self.under_way -= out.len() - before;
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }
}

impl Running {
    fn start(target: Arc<Target>) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel::<Job>(WAITING_MAX);
        // As many as may wait, the one under way, and one that was not taken yet.
        let (finished, done) = sync_channel(WAITING_MAX + 2);
        let work = move || {
            for Job { token, offset, len, submitted_ns } in queue {
                let result = discard_range(&target, offset, len);
                let latency_ns = monotonic_ns().saturating_sub(submitted_ns);
                if finished.send(Completion::new(token, result, latency_ns)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("discard".to_owned()).spawn(work)?;
        Ok(Self { jobs, done, thread })
    }
}

impl Drop for Discards {
    /// Nothing is given up, the lock of the device included, before the disk has answered. A thread
    /// that waits for it too long is left behind, and the lock with it.
    fn drop(&mut self) {
        let Some(Running { jobs, done, thread }) = self.thread.take() else { return };
        drop(jobs);
        loop {
            match done.recv_timeout(LEAVE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        assert!(thread.join().is_ok(), "a thread that discards does not panic");
    }
}
