//! A process that clears up when another one ends, however it ends.

#![expect(clippy::disallowed_methods, reason = "a boundary crate sleeps")]
#![expect(unsafe_code, reason = "a copy of this process is made, which waits for its end")]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use host::own_process;
use host::processes::{network_of, processes};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, setsid, waitpid};

/// Between two looks whether the processes of a namespace have ended, and how many looks there are.
const LOOK: core::time::Duration = core::time::Duration::from_millis(10);
const LOOKS: u32 = 200;

/// It works when this value is dropped, or the process with it is gone.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Its other end sees that this one is closed.
    alive: Option<OwnedFd>,
    process: Pid,
}

impl Guard {
    /// Starts it; it has a copy of everything that is there now.
    ///
    /// # Errors
    /// This process has another thread: `work` runs in a copy that has only this one, where what
    /// another one had locked or half done would stay so.
    pub(crate) fn start(work: impl FnOnce()) -> io::Result<Self> {
        let (ended, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        is_alone()?;
        // SAFETY: this process has one thread, this one, so none can come up between the look and
        // the copy. Of a process with one thread the copy may do all that the process may
        // (fork(2), POSIX): no lock is held and no state half changed.
        let process = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                drop(alive);
                stand_by(&ended, work);
                // SAFETY: ends this process without running what belongs to the other one.
                unsafe { libc::_exit(0) }
            }
            process => Pid::from_raw(process).expect("a process has a number above 0"),
        };
        Ok(Self { alive: Some(alive), process })
    }
}

impl Drop for Guard {
    /// Waits until everything is cleared up.
    fn drop(&mut self) {
        drop(self.alive.take());
        while matches!(waitpid(Some(self.process), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

/// That this process has one thread. One that was waited for may be there for a moment longer.
fn is_alone() -> io::Result<()> {
    for _ in 0..LOOKS {
        let status = fs::read_to_string("/proc/self/status")?;
        if threads_in(&status) == Some(1) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(io::Error::other("this process has several threads"))
}

/// `Threads` of `proc_pid_status(5)`.
fn threads_in(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

/// In the copy: sleeps until the other process is gone.
fn stand_by(ended: &OwnedFd, work: impl FnOnce()) {
    // Ctrl-C is for the other one.
    setsid().map(drop).unwrap_or_default();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler of ours is called.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // What is printed into a pipe would not end while it is open here.
    for fd in 0..3 {
        // SAFETY: nothing is printed from here on.
        unsafe { libc::close(fd) };
    }
    let mut byte = [0];
    while rustix::io::read(ended.as_fd(), &mut byte) == Err(Errno::INTR) {}
    work();
}

/// Processes in a network namespace but this one.
pub(crate) fn processes_in(namespace: u64) -> Vec<u32> {
    let is_inside = |process: &u32| {
        let found = || fs::metadata(network_of(*process));
        *process != own_process() && found().is_ok_and(|found| found.ino() == namespace)
    };
    processes().into_iter().filter(is_inside).collect()
}

/// Ends all that is in a network namespace, and waits for it.
pub(crate) fn end_all(namespace: u64) {
    for _ in 0..LOOKS {
        let left = processes_in(namespace);
        if left.is_empty() {
            return;
        }
        for process in left.into_iter().filter_map(|number| Pid::from_raw(number.cast_signed())) {
            // It may have ended by itself.
            kill_process(process, Signal::KILL).unwrap_or_default();
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_not_copied() {
        // Tests run beside the thread that waits for them.
        let refused = Guard::start(|| unreachable!("nothing was started")).unwrap_err();
        assert!(refused.to_string().contains("several threads"), "{refused}");
        assert_eq!(threads_in("Name:\tx\nThreads:\t17\n"), Some(17));
        assert_eq!(threads_in("Threads:\n"), None);
    }
}
