//! A program that is run once, and what it took.
//!
//! It is started as `posix_spawn(3)` does, without a copy of our memory, and is waited for by a
//! descriptor of the process, so that there is a moment between its end and its burial: then the
//! kernel still says which processor it was on last.

#![expect(unsafe_code, reason = "wait4 has no safe wrapper")]

use core::mem::MaybeUninit;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use units::Clock;

use crate::process::duration;
use crate::processes::{Scheduled, Stat};
use crate::{CpuTime, Error, SystemClock, allowed_cpus, keep_thread_on};

/// Between two looks whether to stop: seldom enough not to be noticed by what is timed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A program, and how it is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// A path, or a name that is looked for in `PATH`.
    pub program: &'a OsStr,
    /// What it is given.
    pub arguments: &'a [OsString],
    /// Variables that are set for it beside ours.
    pub environment: &'a [(&'a str, OsString)],
    /// Its standard input; nothing to read without.
    pub input: Option<&'a Path>,
    /// What it says goes to our standard error; else nowhere.
    pub is_heard: bool,
    /// It stays on this processor.
    pub cpu: Option<usize>,
}

/// Time and other costs of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// From before its start to its end.
    pub wall_ns: u64,
    /// Processor time of it and of those of its children that it waited for, as all below.
    pub cpu: CpuTime,
    /// The most memory that one of them had in use. A program that is started begins with what we
    /// had, so it is at least [`Taken::memory_floor_bytes`].
    pub memory_bytes_max: u64,
    /// Our own, when it was started.
    pub memory_floor_bytes: u64,
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The processor that it was on last.
    pub processor: Option<u32>,
    /// Time in which its first thread could have run, and others had the processors; `None` where
    /// the kernel does not count that.
    pub queued_ns: Option<u64>,
    /// Pages that had to be read from a disk.
    pub major_faults: u64,
    /// Pages that were there, or were made.
    pub minor_faults: u64,
    /// Blocks of 512 bytes that came from disks for it.
    pub blocks_in: u64,
    /// Blocks of 512 bytes that it made dirty.
    pub blocks_out: u64,
    /// Times that it waited for something.
    pub waits: u64,
    /// Times that something else was given its processor.
    pub preemptions: u64,
}

impl Taken {
    /// The most memory that one of them had in use, where it is told from what it began with: with
    /// as much as that nothing is known but that it had no more.
    pub fn known_memory_bytes(&self) -> Option<u64> {
        let unknown = self.memory_floor_bytes + self.memory_floor_bytes / 8;
        (self.memory_bytes_max > unknown).then_some(self.memory_bytes_max)
    }
}

impl Timed<'_> {
    /// Runs it to its end. When `is_stopped` says so it is interrupted as by Ctrl-C, and waited for
    /// all the same.
    pub fn run(&self, is_stopped: &dyn Fn() -> bool) -> Result<Taken, Error> {
        let mut command = self.command()?;
        let free = self.cpu.map(|_| allowed_cpus()).transpose()?;
        if let Some(cpu) = self.cpu {
            keep_thread_on(&[cpu])?;
        }
        let memory_floor_bytes = rusage(libc::RUSAGE_SELF).map_or(0, |ours| memory_bytes(&ours));
        let begin_ns = SystemClock.boottime_ns();
        let spawned = command.spawn();
        if let Some(cpus) = free {
            keep_thread_on(&cpus)?;
        }
        let child =
            spawned.map_err(|error| Error::path("start", Path::new(self.program), error))?;
        let id = Pid::from_child(&child);
        let end = pidfd_open(id, PidfdFlags::empty())
            .and_then(|process| until_its_end(&process, is_stopped));
        if let Err(errno) = end {
            return Err(abandoned(child, errno));
        }
        let wall_ns = SystemClock.boottime_ns().saturating_sub(begin_ns).max(0).unsigned_abs();
        // It has ended and was not waited for: it is there still.
        let number = child.id();
        let processor = Stat::of(number).map(|stat| stat.processor);
        let queued_ns = Scheduled::of(number).map(|scheduled| scheduled.queued_ns);
        let (status, usage) = buried(id)?;
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        Ok(Taken {
            wall_ns,
            cpu: CpuTime { user: duration(usage.ru_utime), system: duration(usage.ru_stime) },
            memory_bytes_max: memory_bytes(&usage),
            memory_floor_bytes,
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            processor,
            queued_ns,
            major_faults: count(usage.ru_majflt),
            minor_faults: count(usage.ru_minflt),
            blocks_in: count(usage.ru_inblock),
            blocks_out: count(usage.ru_oublock),
            waits: count(usage.ru_nvcsw),
            preemptions: count(usage.ru_nivcsw),
        })
    }

    #[expect(clippy::disallowed_methods, reason = "a boundary crate may")]
    fn command(&self) -> Result<Command, Error> {
        let mut command = Command::new(self.program);
        command.args(self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(match self.input {
            None => Stdio::null(),
            Some(path) => {
                let file = fs::File::open(path).map_err(|error| Error::path("open", path, error));
                Stdio::from(file?)
            }
        });
        let said = || if self.is_heard { Stdio::from(std::io::stderr()) } else { Stdio::null() };
        command.stdout(said()).stderr(said());
        Ok(command)
    }
}

/// Whether there is a program of that name, or at that path, to be started.
pub fn can_start(program: &OsStr) -> bool {
    let path = Path::new(program);
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if path.components().count() > 1 {
        return is_program(path);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(&folder.join(path)))
}

fn until_its_end(process: &OwnedFd, is_stopped: &dyn Fn() -> bool) -> Result<(), Errno> {
    let mut is_told = false;
    loop {
        let mut ends = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut ends, Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        if is_stopped() && !is_told {
            is_told = true;
            // One that has ended meanwhile is found so by the next look.
            pidfd_send_signal(process, Signal::INT).unwrap_or_default();
        }
    }
}

/// A program that cannot be waited for is not left behind.
fn abandoned(mut child: Child, errno: Errno) -> Error {
    drop(child.kill());
    drop(child.wait());
    Error::system("wait for a program", errno)
}

/// How it ended, and what it used. It is gone afterwards.
fn buried(id: Pid) -> Result<(libc::c_int, libc::rusage), Error> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::uninit());
    loop {
        // SAFETY: wait4 writes one status and one rusage to the addresses given.
        let answer = unsafe {
            libc::wait4(id.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr())
        };
        if answer > 0 {
            // SAFETY: wait4 succeeded, so it filled the structure.
            return Ok((status, unsafe { usage.assume_init() }));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Error::system("wait for a program", error));
        }
    }
}

fn rusage(whose: libc::c_int) -> Option<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage writes one rusage to the address given.
    let answer = unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    // SAFETY: getrusage succeeded, so it filled the structure.
    (answer == 0).then(|| unsafe { usage.assume_init() })
}

/// The kernel counts in KiB (`getrusage(2)`).
fn memory_bytes(usage: &libc::rusage) -> u64 {
    u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024)
}

impl Taken {
    /// The time in which neither it nor its children had a processor; 0 of a program that had
    /// several at a time.
    pub fn waiting(&self) -> Duration {
        Duration::from_nanos(self.wall_ns).saturating_sub(self.cpu.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, cpu: Option<usize>, is_stopped: &dyn Fn() -> bool) -> Taken {
        let arguments = ["-c", script].map(OsString::from);
        let timed = Timed {
            program: OsStr::new("sh"),
            arguments: &arguments,
            environment: &[("TIMED", OsString::from("7"))],
            input: None,
            is_heard: false,
            cpu,
        };
        timed.run(is_stopped).unwrap()
    }

    #[test]
    fn time_code_and_processor_are_told() {
        let last = *allowed_cpus().unwrap().last().unwrap();
        let before = allowed_cpus().unwrap();
        let burn = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; sleep 0.05; exit $TIMED";
        let taken = shell(burn, Some(last), &|| false);
        assert_eq!((taken.code, taken.processor), (Some(7), u32::try_from(last).ok()));
        assert!(taken.wall_ns >= 50_000_000 && taken.waiting() >= Duration::from_millis(40));
        assert!(taken.cpu.user > Duration::ZERO && taken.minor_faults > 0, "{taken:?}");
        assert_eq!(allowed_cpus().unwrap(), before, "we are as free as before");
    }

    /// Beside another program on the same processor it has half of that, and waits for it.
    #[test]
    fn time_in_the_queue_is_told() {
        let last = *allowed_cpus().unwrap().last().unwrap();
        let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done";
        let taken = shell(&format!("({burn}) & {burn}; wait"), Some(last), &|| false);
        let Some(queued_ns) = taken.queued_ns else {
            println!("not run: this kernel counts no time in queues");
            return;
        };
        assert!(queued_ns > taken.wall_ns / 10 && queued_ns < taken.wall_ns, "{taken:?}");
    }

    #[test]
    fn memory_is_that_of_the_largest() {
        let want = "head -c 100000000 /dev/zero | tail -c 90000000 > /dev/null";
        let taken = shell(want, None, &|| false);
        assert!(taken.memory_bytes_max > 80_000_000, "{taken:?}");
        assert!(taken.memory_floor_bytes > 0 && taken.memory_floor_bytes < 1 << 32);
    }

    #[test]
    fn a_stop_interrupts_it() {
        // The parent of the tests may have ignored the interrupt.
        let taken = shell("exec env --default-signal=INT sleep 60", None, &|| true);
        assert_eq!(taken.code, None);
        assert!(taken.wall_ns < 30_000_000_000, "{taken:?}");
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let timed = Timed {
            program: OsStr::new("/nonexistent/program"),
            arguments: &[],
            environment: &[],
            input: None,
            is_heard: false,
            cpu: None,
        };
        let error = timed.run(&|| false).unwrap_err().to_string();
        assert!(error.contains("cannot start /nonexistent/program"), "{error}");
        assert!(can_start(OsStr::new("sh")) && !can_start(OsStr::new("sh -c true")));
        assert!(!can_start(OsStr::new("/tmp")));
    }
}
