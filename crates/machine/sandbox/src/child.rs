//! A child as the one sees it who asked for it.

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::deadline::Deadline;
use crate::ended::Ended;
use crate::start::Process;
use crate::{Error, socket};

/// What is said along a leash to end a child.
pub(crate) const KILL: &[u8] = b"kill";
/// How long a child that was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A child. It is killed with this value, but for a command of the user's, which goes on.
#[derive(Debug)]
pub struct Child {
    tie: Tie,
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Tie {
    /// A launcher is its parent.
    Leash { pid: u32, pidfd: OwnedFd, leash: OwnedFd },
    /// This process is its parent.
    Own { process: Process, is_ours: bool },
}

impl Child {
    pub(crate) fn of_launcher(pid: u32, (pidfd, leash): (OwnedFd, OwnedFd)) -> Self {
        Self { tie: Tie::Leash { pid, pidfd, leash }, ended: None }
    }

    pub(crate) fn of_this_process(process: Process, is_ours: bool) -> Self {
        Self { tie: Tie::Own { process, is_ours }, ended: None }
    }

    /// Process id of the child.
    pub fn pid(&self) -> u32 {
        match &self.tie {
            Tie::Leash { pid, .. } => *pid,
            Tie::Own { process, .. } => process.pid(),
        }
    }

    /// Can be polled together with other descriptors: it is readable once the child has ended, or
    /// is about to be reported as ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        match &self.tie {
            Tie::Leash { pidfd, .. } => pidfd.as_fd(),
            Tie::Own { process, .. } => process.pidfd(),
        }
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool, Error> {
        self.wait_timeout(Duration::ZERO).map(|ended| ended.is_none())
    }

    /// Ends it now, whatever it does. It does not wait for that.
    pub fn kill(&mut self) {
        if self.ended.is_some() {
            return;
        }
        match &mut self.tie {
            // A launcher that is gone has taken its children along.
            Tie::Leash { leash, .. } => socket::send(leash, KILL, &[]).unwrap_or_default(),
            Tie::Own { process, .. } => process.kill(),
        }
    }

    /// Waits so long for its end; `None` where it still runs.
    ///
    /// # Errors
    /// When the system does not permit to wait.
    pub fn wait_timeout(&mut self, patience: Duration) -> Result<Option<Ended>, Error> {
        if self.ended.is_none() {
            let ended = self.tie.wait(Deadline::after(patience));
            self.ended = ended.map_err(|error| Error::system("wait for a child", error))?;
        }
        Ok(self.ended)
    }
}

impl Tie {
    fn wait(&mut self, deadline: Deadline) -> io::Result<Option<Ended>> {
        match self {
            Self::Leash { leash, .. } => {
                if !socket::wait(&leash, deadline)? {
                    return Ok(None);
                }
                let said = socket::receive(&leash)?;
                let ended = said.and_then(|said| Ended::decode(&said.bytes));
                Ok(Some(ended.unwrap_or_else(Ended::unknown)))
            }
            Self::Own { process, .. } => {
                if !socket::wait(process.pidfd(), deadline)? {
                    return Ok(None);
                }
                process.reap()
            }
        }
    }
}

impl Drop for Child {
    /// A child of this process is waited for; a launcher waits for those that it started.
    fn drop(&mut self) {
        if let Tie::Own { is_ours: true, .. } = self.tie
            && self.ended.is_none()
        {
            self.kill();
            // Nothing is left to do with what the kernel does not end in this time.
            drop(self.wait_timeout(PATIENCE));
        }
    }
}
