//! Indexers as processes of their own, and what such a process does.

use core::time::Duration;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use device::Pool;
use indexer::{Ended, Launch, Memory, Process, Workers};
use sandbox::{Child, How, IndexerLimits, Launcher, Program, Request};

use crate::failure::{Outcome, Verdict};

/// The hidden verb of an indexer.
pub const VERB: &str = "indexer";
/// Kills a process without asking it.
const SIGKILL: i32 = 9;

/// What an indexer is, for who starts it.
pub fn program() -> Program {
    Program::Myself(vec![OsString::from(VERB)])
}

/// From now on all indexers of this program are processes.
pub fn be_processes() {
    Workers::of_program(Arc::new(Starter { program: program(), launcher: None }));
}

/// Indexers of a process that will not be allowed to start any itself.
pub fn by_launcher(launcher: Arc<Launcher>) -> Workers {
    Workers::new(Arc::new(Starter { program: program(), launcher: Some(launcher) }))
}

#[derive(Debug)]
struct Starter {
    program: Program,
    launcher: Option<Arc<Launcher>>,
}

impl Launch for Starter {
    fn start(&self, stream: OwnedFd, memories: &[Pool]) -> io::Result<Box<dyn Process>> {
        let memories: Option<Vec<BorrowedFd<'_>>> = memories.iter().map(Pool::memory_fd).collect();
        let Some(memories) = memories else {
            return Err(io::Error::other("this system has no memory that two processes can share"));
        };
        let handed: Vec<BorrowedFd<'_>> = [stream.as_fd()].into_iter().chain(memories).collect();
        let request = Request::new(&self.program, &handed);
        let child = match &self.launcher {
            Some(launcher) => launcher.spawn(&request),
            None => sandbox::spawn(&request),
        };
        let child = child.map_err(io::Error::other)?;
        Ok(Box::new(Indexer(child)))
    }
}

/// An indexer that runs.
#[derive(Debug)]
struct Indexer(Child);

impl Process for Indexer {
    fn kill(&mut self) {
        self.0.kill();
    }

    fn ended(&mut self, patience: Duration) -> Option<Ended> {
        let ended = match self.0.wait_timeout(patience) {
            Ok(ended) => ended?,
            Err(error) => {
                let (how, cpu) = (error.to_string(), Duration::ZERO);
                return Some(Ended { by_itself: false, how, cpu });
            }
        };
        let (by_itself, how) = match ended.how {
            How::Exited(code) => (code != 0, format!("it ended with exit code {code}")),
            // A kill by a user, or by a machine that is out of memory, says nothing about what
            // this one was given.
            How::Signalled { signal, by_us } => {
                (signal != SIGKILL && !by_us, format!("signal {signal} ended it"))
            }
            How::Unknown => (false, "its launcher was killed".to_owned()),
        };
        Some(Ended { by_itself, how, cpu: ended.cpu })
    }
}

/// Serves the process that started this one, after giving up everything but that.
pub fn serve() -> Outcome {
    let handed = sandbox::handed()?;
    // Address space is more than memory: what an allocator sets aside for each thread, and the
    // program itself.
    let own = indexer::memory_bytes_max(&session::Config::default()).saturating_mul(2);
    let memory_bytes = handed.file_bytes().saturating_mul(2).saturating_add(own);
    let notes = sandbox::confine_indexer(IndexerLimits { memory_bytes }, &handed);
    let mut descriptors = handed.descriptors.into_iter();
    let Some(stream) = descriptors.next() else {
        return Err(sandbox::Error::NothingHanded.into());
    };
    let memories = descriptors.map(Memory::OfAnother).collect();
    indexer::serve(UnixStream::from(stream), memories, notes)?;
    Ok(Verdict::Clean)
}
