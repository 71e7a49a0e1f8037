//! A program that runs beside us, is stopped in order, and whose processor time is reported.

#![expect(unsafe_code, reason = "a child sets before it runs with whom it ends")]

use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::process::children_cpu_time;
use crate::{CpuTime, Error, SystemClock};

/// Between two looks whether it has ended.
const LOOK_NS: i64 = NANOS_PER_SECOND / 50;

/// A program that runs. It ends with this value, whatever it does.
#[derive(Debug)]
pub struct Program {
    child: Child,
    said: [PathBuf; 2],
    /// How it ended, and its processor time.
    ended: Option<(ExitStatus, CpuTime)>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// Standard output of the program.
    pub output: String,
    /// Standard error of the program.
    pub errors: String,
    /// Processor time of all of its life.
    pub cpu: CpuTime,
}

impl Program {
    /// Starts a program without input, in a process group of its own: Ctrl-C at the terminal is
    /// ours to pass on. It is asked to end when this thread does. What it says is kept in files in
    /// `folder`.
    pub fn start(program: &Path, arguments: &[OsString], folder: &Path) -> Result<Self, Error> {
        let said = ["output", "errors"].map(|name| folder.join(name));
        let [output, errors] = said
            .each_ref()
            .map(|path| created(path).map_err(|error| Error::path("create", path, error)));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(output?).stderr(errors?);
        command.process_group(0);
        let end_with_us = || Ok(set_parent_process_death_signal(Some(Signal::INT))?);
        // SAFETY: between fork and exec there is one system call and nothing else.
        unsafe { command.pre_exec(end_with_us) };
        let child = command.spawn().map_err(|error| Error::path("start", program, error))?;
        Ok(Self { child, said, ended: None })
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        if self.ended.is_none() {
            // The kernel adds the time of a child to that of all when it is waited for.
            let before = children_cpu_time()?;
            let status = self.child.try_wait();
            let status = status.map_err(|error| Error::system("wait for a program", error))?;
            let cpu = children_cpu_time()?.since(before);
            self.ended = status.map(|status| (status, cpu));
        }
        Ok(self.ended.is_some())
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        // The signal fails when it has ended already: waiting for it says so.
        kill_process(Pid::from_child(&self.child), signal).unwrap_or_default();
    }

    /// Waits until it has ended; a program that takes longer than `patience` is killed.
    pub fn wait(mut self, patience: Duration) -> Result<Ended, Error> {
        let patience_ns = units::nanos(patience);
        let until_ns = SystemClock.boottime_ns().saturating_add(patience_ns);
        while !self.has_ended()? {
            let now_ns = SystemClock.boottime_ns();
            if now_ns >= until_ns {
                self.signal(Signal::KILL);
            }
            SystemClock.sleep_until(now_ns + LOOK_NS);
        }
        let (status, cpu) = self.ended.expect("it has ended");
        let read = |path: &PathBuf| {
            let text = fs::read(path).map_err(|error| Error::path("read", path, error));
            text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let [output, errors] = self.said.each_ref().map(read);
        Ok(Ended { code: status.code(), output: output?, errors: errors?, cpu })
    }
}

#[expect(clippy::disallowed_methods, reason = "a boundary crate may")]
fn created(path: &Path) -> std::io::Result<fs::File> {
    fs::File::create(path)
}

impl Drop for Program {
    fn drop(&mut self) {
        if !matches!(self.has_ended(), Ok(true)) {
            self.signal(Signal::KILL);
            drop(self.child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parent of the tests may have ignored the interrupt, and no shell traps it then.
    fn shell(script: &str, folder: &Path) -> Program {
        let arguments = ["--default-signal=INT", "sh", "-c", script].map(OsString::from);
        Program::start(Path::new("/usr/bin/env"), &arguments, folder).unwrap()
    }

    /// One test, because processor time is that of all children.
    #[test]
    fn a_program_is_stopped_in_order_and_its_time_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo said; echo no >&2";
        let ended = shell(&format!("{burn}; exit 7"), folder.path()).wait(Duration::MAX).unwrap();
        assert_eq!((ended.code, &*ended.output, &*ended.errors), (Some(7), "said\n", "no\n"));
        assert!(ended.cpu.user > Duration::from_millis(10), "{ended:?}");

        let trap = "trap 'echo stopping; exit 0' INT; echo ready; while :; do sleep 0.01; done";
        let mut program = shell(trap, folder.path());
        while fs::read(folder.path().join("output")).unwrap().is_empty() {}
        assert!(!program.has_ended().unwrap());
        program.interrupt();
        let ended = program.wait(Duration::from_secs(20)).unwrap();
        assert_eq!((ended.code, &*ended.output), (Some(0), "ready\nstopping\n"));

        let ended = shell("sleep 60", folder.path()).wait(Duration::from_millis(50)).unwrap();
        assert_eq!(ended.code, None);
        let absent = Program::start(Path::new("/nonexistent"), &[], folder.path());
        assert!(absent.unwrap_err().to_string().contains("cannot start /nonexistent"));
    }
}
