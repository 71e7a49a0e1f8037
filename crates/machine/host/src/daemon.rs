//! A program that goes on without us: recorders under a supervisor that may end.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, HandedListener};

/// The variable in which a program finds what the lines of its log begin with.
pub const SPEAKS_AS: &str = "WIRESPOOL_SPEAKS_AS";

/// A program that runs, and is not ended with this value.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Daemon {
    /// Starts a program without input, in a process group of its own, so that Ctrl-C at a terminal
    /// does not reach it; what it says goes where our own words go, by this name if it has one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        arguments: &[OsString],
        name: Option<&str>,
    ) -> Result<Self, Error> {
        Self::start_with(program, arguments, (Stdio::null(), name))
    }

    /// The same, without a name, and with a socket that listens as its input ([`handed_listener`]
    /// takes it).
    ///
    /// [`handed_listener`]: crate::handed_listener
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_listening(
        program: &Path,
        arguments: &[OsString],
        listener: &HandedListener,
    ) -> Result<Self, Error> {
        let copied = listener.copied();
        let copied = copied.map_err(|error| Error::system("hand a socket over", error))?;
        Self::start_with(program, arguments, (Stdio::from(copied), None))
    }

    fn start_with(
        program: &Path,
        arguments: &[OsString],
        (input, name): (Stdio, Option<&str>),
    ) -> Result<Self, Error> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(input).process_group(0);
        // A manager of services hears us alone, and its sockets are ours.
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS"] {
            command.env_remove(name);
        }
        command.env_remove(SPEAKS_AS);
        command.envs(name.map(|name| (SPEAKS_AS, name)));
        let child = command.spawn().map_err(|error| Error::path("start", program, error))?;
        Ok(Self { child })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn ended(&mut self) -> Result<Option<Exit>, Error> {
        let status = self.child.try_wait();
        let status = status.map_err(|error| Error::system("wait for a program", error))?;
        Ok(status.map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        }))
    }

    /// Asks it to end in order, as Ctrl-C does.
    pub fn interrupt(&self) {
        // It may have ended by itself; waiting says so.
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap_or_default();
    }

    /// Ends it at once.
    pub fn kill(&self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap_or_default();
    }
}

/// Which program lies at a path, or is run by a process (`/proc/PID/exe`, also where its file was
/// replaced since): its inode and the time of its last change.
pub fn program_mark(path: &Path) -> Option<(u64, i64, i64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use units::Sleep as _;

    use super::*;
    use crate::SystemClock;

    fn ended(daemon: &mut Daemon) -> Exit {
        loop {
            if let Some(exit) = daemon.ended().unwrap() {
                return exit;
            }
            SystemClock.sleep_until(units::Clock::boottime_ns(&SystemClock) + 1_000_000);
        }
    }

    #[test]
    fn how_a_program_ended_is_told() {
        let shell = |script: &str| {
            let arguments = ["-c", script].map(OsString::from);
            Daemon::start(Path::new("/bin/sh"), &arguments, None).unwrap()
        };
        assert_eq!(ended(&mut shell("exit 3")), Exit::Code(3));
        let mut asleep = shell("exec sleep 60");
        assert_eq!(asleep.ended().unwrap(), None);
        asleep.kill();
        assert_eq!(ended(&mut asleep), Exit::Signal(9));
        assert!(Daemon::start(Path::new("/nonexistent"), &[], None).is_err());
    }
}
