//! Starting a process of ours or a command, and waiting for its end.

#![expect(unsafe_code, reason = "what a child used, and its first steps, have no safe wrapper")]

use core::mem::MaybeUninit;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};

use crate::ended::{Ended, How};
use crate::message::Message;
use crate::program::Program;
use crate::socket;

/// The executable that runs, also when its file was replaced or removed since.
const MYSELF: &str = "/proc/self/exe";
const SHELL: &str = "/bin/sh";

/// A process that was started here and has not been waited for.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    pidfd: OwnedFd,
    is_killed: bool,
}

/// The environment that a process of ours begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Environment<'a> {
    /// These variables and no others.
    Only(&'a [(OsString, OsString)]),
    /// That of this process, for a launcher, which hands it on to commands of the user's.
    Same,
}

/// Starts the running executable again, and hands descriptors to it.
pub(crate) fn start_myself(
    arguments: &[OsString],
    descriptors: &[BorrowedFd<'_>],
    environment: Environment<'_>,
) -> io::Result<Process> {
    let (here, there) = socket::pair()?;
    let parent = Message::default().number(u64::from(std::process::id()));
    socket::send(&here, parent.as_bytes(), descriptors)?;
    let mut command = Command::new(MYSELF);
    command.arg0("wirespool").args(arguments).stdin(Stdio::from(there)).stdout(Stdio::null());
    if let Environment::Only(variables) = environment {
        command.env_clear().current_dir("/");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
    }
    let parent = getpid();
    // Here and not only in the program that it becomes: who is stopped before it gets there
    // would outlive this process.
    // SAFETY: between fork and exec there are system calls and nothing else.
    unsafe { command.pre_exec(move || end_before_it_begins(parent)) };
    start(command)
}

/// [`end_with`] in the copy of `parent` that has not become a program yet.
fn end_before_it_begins(parent: Pid) -> io::Result<()> {
    match end_with(Some(parent)) {
        // Nobody hears an error any more.
        // SAFETY: it ends this process and nothing else.
        Err(Errno::SRCH) => unsafe { libc::_exit(libc::EXIT_FAILURE) },
        result => Ok(result?),
    }
}

/// Has the kernel kill this process when the thread that started it has ended. A change of user
/// or capabilities undoes it; becoming an ordinary program does not.
///
/// # Errors
/// `ESRCH` when it is not a child of `parent` any more.
pub(crate) fn end_with(parent: Option<Pid>) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have gone before the kernel knew.
    if getppid() == parent { Ok(()) } else { Err(Errno::SRCH) }
}

/// Starts a command in a shell.
pub(crate) fn start_shell(
    command: &OsStr,
    environment: &[(OsString, OsString)],
) -> io::Result<Process> {
    let errors = io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = Command::new(SHELL);
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::from(errors));
    shell.envs(environment.iter().map(|(name, value)| (name, value)));
    start(shell)
}

/// Starts `program`, of which a command gets no descriptors.
pub(crate) fn start_program(
    program: &Program,
    descriptors: &[BorrowedFd<'_>],
    environment: &[(OsString, OsString)],
) -> io::Result<Process> {
    match program {
        Program::Myself(arguments) => {
            start_myself(arguments, descriptors, Environment::Only(environment))
        }
        Program::Shell(command) => start_shell(command, environment),
    }
}

/// In a process group of its own: Ctrl-C at the terminal is for the one that the user started.
fn start(mut command: Command) -> io::Result<Process> {
    keep_descriptors();
    let mut child = command.process_group(0).spawn()?;
    let pid = Pid::from_child(&child);
    // It cannot have been replaced by another process: only this process waits for it.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Process { pid, pidfd, is_killed: false }),
        Err(errno) => {
            // A confined launcher kills by pidfd only. Its child ends with the socket that was
            // handed to it: the one who asked is refused, and closes the other end.
            if child.kill().is_ok() {
                drop(child.wait());
            }
            Err(errno.into())
        }
    }
}

/// The parent of this process may have left descriptors open in it, which would go on to
/// children. From Linux 5.11.
fn keep_descriptors() {
    // Where the kernel is older what we opened ourselves is marked in any case.
    // SAFETY: it closes nothing here; numbers without a descriptor are passed over.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// It can be polled: readable once the process has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Ends it now.
    pub(crate) fn kill(&mut self) {
        self.is_killed = true;
        // It may have ended by itself.
        pidfd_send_signal(&self.pidfd, Signal::KILL).unwrap_or_default();
    }

    /// How it ended, if it has; it must not be asked again then.
    pub(crate) fn reap(&mut self) -> io::Result<Option<Ended>> {
        let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: both are written by the kernel as they are declared.
        let ended = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        match ended {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                let is_interrupted = error.kind() == io::ErrorKind::Interrupted;
                return if is_interrupted { Ok(None) } else { Err(error) };
            }
            _ => {}
        }
        // SAFETY: it was all zeros, which is a value of it, before the kernel wrote to it.
        let usage = unsafe { usage.assume_init() };
        let status = ExitStatus::from_raw(status);
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, Some(signal)) => {
                let by_us = self.is_killed && signal == libc::SIGKILL;
                How::Signalled { signal, by_us }
            }
            (None, None) => How::Unknown,
        };
        let peak = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
        let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
        Ok(Some(Ended { how, cpu, peak_bytes: peak }))
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
