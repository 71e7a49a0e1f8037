//! Children of a process that gives up nothing.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::child::Child;
use crate::program::{Program, Request};
use crate::start::{Process, start_program};
use crate::{Error, program};

/// The thread that starts them all. The kernel ends a child with the *thread* that started it, and
/// this one lives as long as the process.
static STARTER: Mutex<Option<SyncSender<Job>>> = Mutex::new(None);

struct Job {
    program: Program,
    descriptors: Vec<OwnedFd>,
    environment: Vec<(OsString, OsString)>,
    answer: SyncSender<std::io::Result<Process>>,
}

/// Starts a child of this process, without a launcher.
///
/// # Errors
/// When the system refuses.
pub fn spawn(request: &Request<'_>) -> Result<Child, Error> {
    let not_started = |source| Error::NotStarted { source };
    let copies = request.descriptors.iter().map(BorrowedFd::try_clone_to_owned);
    let (answer, started) = sync_channel(1);
    let job = Job {
        program: request.program.clone(),
        descriptors: copies.collect::<Result<_, _>>().map_err(not_started)?,
        environment: program::environment(request.environment),
        answer,
    };
    let mut known = STARTER.lock().expect("a panic aborts");
    let jobs = match &mut *known {
        Some(jobs) => jobs,
        none => none.insert(new_starter().map_err(not_started)?),
    };
    jobs.send(job).expect("the starter waits for jobs as long as the process lives");
    let process = started.recv().expect("the starter answers").map_err(not_started)?;
    Ok(Child::of_this_process(process, request.program.is_ours()))
}

fn new_starter() -> std::io::Result<SyncSender<Job>> {
    let (jobs, queue) = sync_channel::<Job>(0);
    let body = move || {
        for Job { program, descriptors, environment, answer } in queue {
            let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            // The caller waits for the answer.
            drop(answer.send(start_program(&program, &descriptors, &environment)));
        }
    };
    thread::Builder::new().name("start".to_owned()).spawn(body)?;
    Ok(jobs)
}
