//! What a process of ours begins with.

use core::time::Duration;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::deadline::Deadline;
use crate::message::Fields;
use crate::start::end_with;
use crate::{Error, socket};

/// It was sent before this process was started.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was handed to this process by the one that started it.
#[derive(Debug)]
pub struct Handed {
    /// The descriptors, in the order of the request.
    pub descriptors: Vec<OwnedFd>,
    parent: Option<Pid>,
}

/// Takes what was handed to this process, and ties its life to that of its parent. To be called
/// before anything else, once, on the main thread.
///
/// From here on signals that ask to end are for the one above, who says when this process ends:
/// a service is stopped by a signal to all of its processes.
///
/// # Errors
/// When this process was not started by [`Launcher`](crate::Launcher) or [`spawn`](crate::spawn),
/// or its parent is gone.
pub fn handed() -> Result<Handed, Error> {
    let input = rustix::stdio::stdin();
    let received = receive(input).ok_or(Error::NothingHanded)?;
    let mut fields = Fields(&received.bytes);
    let parent = fields.number().and_then(|number| i32::try_from(number).ok());
    let handed =
        Handed { descriptors: received.descriptors, parent: parent.and_then(Pid::from_raw) };
    handed.end_with_parent()?;
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // A handler and not "ignore", which commands of the user's would inherit.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| Error::system("install a signal handler", error))?;
    }
    let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    nothing
        .and_then(rustix::stdio::dup2_stdin)
        .map_err(|errno| Error::system("put nothing in place of the input", errno))?;
    Ok(handed)
}

/// Standard input is such a socket, or anything else, if a user tries.
fn receive(input: BorrowedFd<'_>) -> Option<socket::Received> {
    let is_there = socket::wait(input, Deadline::after(PATIENCE)).ok()?;
    if is_there { socket::receive(input).ok()? } else { None }
}

impl Handed {
    /// Bytes of the files among the descriptors: what mapping all of them takes.
    pub fn file_bytes(&self) -> u64 {
        let sizes = self.descriptors.iter().filter_map(|it| rustix::fs::fstat(it).ok());
        sizes.map(|stat| u64::try_from(stat.st_size).unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// Has the kernel kill this process when its parent is gone. To be called again after a change
    /// of user or capabilities, which undoes it.
    ///
    /// # Errors
    /// When the parent is gone already.
    pub fn end_with_parent(&self) -> Result<(), Error> {
        end_with(self.parent).map_err(|errno| match errno {
            Errno::SRCH => Error::NothingHanded,
            errno => Error::system("end with the parent", errno),
        })
    }
}
