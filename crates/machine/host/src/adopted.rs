//! A program that a supervisor left behind when it was killed.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::SPEAKS_AS;
use crate::processes::Stat;

/// A process that another one has started, such as a supervisor that has ended. It is not ended
/// with this value. How it ends is not known: only who has started it hears that.
#[derive(Debug)]
pub struct Adopted {
    process: u32,
    pidfd: OwnedFd,
}

impl Adopted {
    /// Watches a process until it ends; `None` where there is none of this number.
    pub fn watch(process: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(process).ok()?)?;
        Some(Self { process, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok()? })
    }

    /// Takes over a process that a supervisor has started by this name
    /// ([`Daemon::start`](crate::Daemon::start)), if that supervisor is there no more.
    pub fn take_over(process: u32, name: &str) -> Option<Self> {
        // What is read of it is of the process that the descriptor is of, if that has not ended.
        let adopted = Self::watch(process)?;
        let is_left = is_started_as(process, name) && !has_supervisor(process);
        (is_left && !adopted.has_ended()).then_some(adopted)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process
    }

    /// Its words behind the name of the program.
    pub fn words(&self) -> Vec<OsString> {
        let words = fs::read(place(self.process).join("cmdline")).unwrap_or_default();
        let words = words.strip_suffix(b"\0").unwrap_or(&words).split(|byte| *byte == 0);
        words.skip(1).map(|word| OsString::from_vec(word.to_vec())).collect()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Asks it to end in order, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Ends it at once.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // It may have ended by itself; waiting says so.
        pidfd_send_signal(&self.pidfd, signal).unwrap_or_default();
    }
}

fn place(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}"))
}

fn is_started_as(process: u32, name: &str) -> bool {
    let variables = fs::read(place(process).join("environ")).unwrap_or_default();
    let wanted = [SPEAKS_AS.as_bytes(), b"=", OsString::from(name).as_bytes()].concat();
    variables.split(|byte| *byte == 0).any(|variable| variable == wanted)
}

/// Who has started it is the same program, also after an upgrade; who takes over what is left
/// behind is another one.
fn has_supervisor(process: u32) -> bool {
    let program = |process: u32| fs::read_link(place(process).join("exe")).ok();
    let Some(stat) = Stat::of(process) else { return false };
    // One that is this very process is none that was left behind.
    stat.parent == std::process::id() || program(stat.parent) == program(process)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Starts a shell by a shell that ends, or goes on.
    fn left_behind(name: &str, then: &str) -> (std::process::Child, u32) {
        let script = format!("sh -c 'sleep 60 & echo $!; exec sleep 60' & {then}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env(SPEAKS_AS, name).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    #[test]
    fn what_was_left_behind_is_taken_over_by_its_name_and_what_is_kept_is_not() {
        // `sleep` is the child of a `sleep`: of one that is the same program.
        let (mut child, kept) = left_behind("recorder.a", "wait");
        let parent = Stat::of(kept).unwrap().parent;
        // The kernel shows words when all of a new program is there, its variables too.
        let is_sleep = |process: u32| {
            fs::read(place(process).join("cmdline")).is_ok_and(|words| words == b"sleep\x0060\0")
        };
        while !(is_sleep(parent) && is_sleep(kept)) {
            std::thread::yield_now();
        }
        assert!(Adopted::take_over(kept, "recorder.a").is_none());
        rustix::process::kill_process(
            Pid::from_raw(i32::try_from(parent).unwrap()).unwrap(),
            Signal::KILL,
        )
        .unwrap();
        while Stat::of(kept).unwrap().parent == parent {
            std::thread::yield_now();
        }
        assert!(Adopted::take_over(kept, "recorder.b").is_none());
        let adopted = Adopted::take_over(kept, "recorder.a").unwrap();
        assert_eq!((adopted.id(), adopted.words()), (kept, vec![OsString::from("60")]));
        assert!(!adopted.has_ended());
        adopted.kill();
        while !adopted.has_ended() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
