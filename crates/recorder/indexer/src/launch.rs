//! How a worker comes to run.

use core::fmt;
use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use device::Pool;
use host::{Duplex, Heard};

use crate::worker::{Memory, serve};

/// Between two looks whether a thread has ended.
const LOOK: Duration = Duration::from_millis(1);

/// Starts workers: as confined child processes in the product, as threads in tests and simulations.
pub trait Launch: fmt::Debug + Send + Sync {
    /// Starts one that calls [`serve`] with its end of the stream and the memories, in their order:
    /// in another process by the descriptors of [`Pool::memory_fd`].
    fn start(&self, stream: OwnedFd, memories: &[Pool]) -> io::Result<Box<dyn Process>>;

    /// Starts one, and gives the owner's end of the stream.
    fn connect(&self, memories: &[Pool]) -> io::Result<(Box<dyn Line>, Box<dyn Process>)> {
        let (stream, other) = Duplex::pair()?;
        Ok((Box::new(stream), self.start(other, memories)?))
    }
}

/// The owner's end of the stream to a worker: [`Duplex`], or played.
pub trait Line: fmt::Debug + Send {
    /// As [`Duplex::send`].
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// As [`Duplex::receive`].
    fn receive(&mut self, into: &mut Vec<u8>, most: usize, patience: Duration)
    -> io::Result<Heard>;
}

impl Line for Duplex {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        Self::send(self, bytes)
    }

    fn receive(
        &mut self,
        into: &mut Vec<u8>,
        most: usize,
        patience: Duration,
    ) -> io::Result<Heard> {
        Self::receive(self, into, most, patience)
    }
}

/// A worker that was started. Dropped, it is ended.
pub trait Process: fmt::Debug + Send {
    /// Ends it at once.
    fn kill(&mut self);

    /// How it ended, waiting up to `patience`; `None` while it runs.
    fn ended(&mut self, patience: Duration) -> Option<Ended>;
}

/// Who starts the workers of a recording or of a reader.
#[derive(Clone, Debug)]
pub struct Workers(Arc<dyn Launch>);

/// The argument of [`Workers::of_program`].
static OF_PROGRAM: OnceLock<Workers> = OnceLock::new();

impl Workers {
    /// Workers that `launch` starts.
    pub fn new(launch: Arc<dyn Launch>) -> Self {
        Self(launch)
    }

    /// From now on all workers that are not started otherwise are started by this: a program whose
    /// workers are processes says so once, before anything else, and cannot forget it in one place.
    /// The first call decides.
    pub fn of_program(launch: Arc<dyn Launch>) {
        OF_PROGRAM.get_or_init(|| Self(launch));
    }

    pub(crate) fn connect(
        &self,
        memories: &[Pool],
    ) -> io::Result<(Box<dyn Line>, Box<dyn Process>)> {
        self.0.connect(memories)
    }
}

/// Those of the program, or threads where it has none.
impl Default for Workers {
    fn default() -> Self {
        OF_PROGRAM.get().cloned().unwrap_or_else(|| Self(Arc::new(InThread)))
    }
}

/// Who starts a worker makes no difference to what is asked for.
impl PartialEq for Workers {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Workers {}

/// How a worker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The worker itself, or what it was given, is to blame: it gave up, crashed, or broke a rule.
    /// Otherwise another process killed it.
    pub by_itself: bool,
    /// How, in a few words.
    pub how: String,
    /// Processor time that it used, where that is not this process's own.
    pub cpu: Duration,
}

impl Ended {
    fn of_thread(by_itself: bool, how: &str) -> Self {
        Self { by_itself, how: how.to_owned(), cpu: Duration::ZERO }
    }
}

/// Workers that are threads of this process: they share its fate, and cannot be killed.
#[derive(Clone, Copy, Debug, Default)]
pub struct InThread;

impl Launch for InThread {
    fn start(&self, stream: OwnedFd, memories: &[Pool]) -> io::Result<Box<dyn Process>> {
        let memories = memories.iter().cloned().map(Memory::OfThisProcess).collect();
        let stream = UnixStream::from(stream);
        let body = move || serve(stream, memories, Vec::new()).map_err(|error| error.to_string());
        let thread = thread::Builder::new().name("sessions".to_owned()).spawn(body)?;
        Ok(Box::new(Thread(Some(thread))))
    }
}

/// Ends when its stream does.
#[derive(Debug)]
struct Thread(Option<JoinHandle<Result<(), String>>>);

impl Process for Thread {
    fn kill(&mut self) {}

    fn ended(&mut self, patience: Duration) -> Option<Ended> {
        // A thread that waits for another is not unparked: it looks again and again.
        let looks = patience.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if self.0.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            thread::park_timeout(LOOK);
        }
        let thread = self.0.take_if(|thread| thread.is_finished())?;
        let how = match thread.join() {
            Ok(Ok(())) => return Some(Ended::of_thread(false, "ended")),
            Ok(Err(error)) => error,
            Err(_) => "panicked".to_owned(),
        };
        Some(Ended::of_thread(true, &how))
    }
}
