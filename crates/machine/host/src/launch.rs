//! A program that talks to the user itself, started inside of a namespace, and ended with us.

#![expect(unsafe_code, reason = "a child changes its mounts and its user before it runs")]

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr;

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Error;
use crate::user::User;

/// Signals count on from here in the exit code of a shell.
const SIGNALLED: i32 = 128;
/// The exit code of a shell for a program that is not there, and for one that cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;
const RESOLVER: &CStr = c"/etc/resolv.conf";
/// A folder that is there everywhere, covered while the file is made.
const COVERED: &CStr = c"/tmp";
const COVERED_RESOLVER: &CStr = c"/tmp/resolv.conf";

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The program, by name or path.
    pub program: &'a Path,
    /// Arguments of the program.
    pub arguments: &'a [OsString],
    /// As whom, with that user's home; as ourselves where none is named.
    pub user: Option<&'a User>,
    /// What it finds in `/etc/resolv.conf`; what is there where nothing is given. Others do not
    /// see it, and nothing of it stays.
    pub resolver: Option<&'a str>,
    /// Its output goes where its errors go.
    pub merges_output: bool,
}

/// A program that runs; it is killed when the thread ends that started it.
#[derive(Debug)]
pub struct Launched {
    child: Child,
}

impl Launch<'_> {
    /// Starts it, in the namespaces that this thread is in.
    pub fn start(&self) -> Result<Launched, Error> {
        let mut command = Command::new(self.program);
        command.args(self.arguments);
        if self.merges_output {
            let errors = io::stderr().as_fd().try_clone_to_owned();
            let errors = errors.map_err(|error| Error::system("copy a descriptor", error))?;
            command.stdout(Stdio::from(errors));
        }
        if let Some(user) = self.user {
            command.envs(user.environment());
        }
        let (user, resolver) = (self.user.cloned(), self.resolver.map(str::to_owned));
        let prepare = move || {
            if let Some(resolver) = &resolver {
                cover_resolver(resolver.as_bytes())?;
            }
            if let Some(user) = &user {
                user.take_on()?;
            }
            // Behind the change of user, which takes it back.
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        };
        // SAFETY: between fork and exec there are system calls and nothing else; what they need was
        // made before.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(|error| Error::path("start", self.program, error))?;
        Ok(Launched { child })
    }
}

impl Launched {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code as a shell reports it, once it has ended.
    pub fn ended(&mut self) -> Result<Option<i32>, Error> {
        let status = self.child.try_wait();
        let status = status.map_err(|error| Error::system("wait for a program", error))?;
        Ok(status.map(|status| {
            let signalled = status.signal().map(|signal| SIGNALLED + signal);
            status.code().or(signalled).unwrap_or(NOT_RUNNABLE)
        }))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        // It may have ended by itself.
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap_or_default();
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !matches!(self.ended(), Ok(Some(_))) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// The exit code with which a shell reports that a program could not be started.
pub fn not_started(error: &Error) -> i32 {
    let absent =
        matches!(error, Error::Path { source, .. } if source.kind() == io::ErrorKind::NotFound);
    if absent { NOT_FOUND } else { NOT_RUNNABLE }
}

/// Gives this process mounts of its own, and in them a file over that of the resolver. The file
/// lies in memory which goes with the mounts.
fn cover_resolver(text: &[u8]) -> io::Result<()> {
    // SAFETY: the table of descriptors stays shared; mounts are those of this process alone.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    let none: *const libc::c_char = ptr::null();
    let mount = |from: *const libc::c_char, to: &CStr, kind: *const libc::c_char, flags| {
        // SAFETY: texts end with 0 and live as long as the call.
        let failed = unsafe { libc::mount(from, to.as_ptr(), kind, flags, ptr::null()) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    mount(none, c"/", none, libc::MS_REC | libc::MS_SLAVE)?;
    mount(c"tmpfs".as_ptr(), COVERED, c"tmpfs".as_ptr(), 0)?;
    write_file(COVERED_RESOLVER, text)?;
    mount(COVERED_RESOLVER.as_ptr(), RESOLVER, none, libc::MS_BIND)?;
    // SAFETY: the text ends with 0.
    let failed = unsafe { libc::umount2(COVERED.as_ptr(), libc::MNT_DETACH) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn write_file(path: &CStr, text: &[u8]) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::from_raw_mode(0o644))?;
    let mut rest = text;
    while !rest.is_empty() {
        let len = rustix::io::write(&file, rest)?;
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch<'a>(arguments: &'a [OsString], resolver: Option<&'a str>) -> Launch<'a> {
        let program = Path::new("sh");
        Launch { program, arguments, user: None, resolver, merges_output: false }
    }

    fn code_of(mut program: Launched) -> i32 {
        loop {
            if let Some(code) = program.ended().unwrap() {
                return code;
            }
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let run = |script: &str| {
            let arguments = ["-c", script].map(OsString::from);
            code_of(launch(&arguments, None).start().unwrap())
        };
        assert_eq!((run("exit 7"), run("kill -9 $$")), (7, 137));
        let absent = Launch { program: Path::new("/nonexistent"), ..launch(&[], None) };
        let error = absent.start().unwrap_err();
        assert_eq!((not_started(&error), not_started(&Error::NoSocketFolder)), (127, 126));
    }

    #[test]
    fn a_program_sees_a_resolver_of_its_own_and_nobody_else_does() {
        let before = std::fs::read("/etc/resolv.conf");
        let text = "nameserver 192.0.2.1\n";
        let arguments = ["-c", "grep -q 192.0.2.1 /etc/resolv.conf"].map(OsString::from);
        match launch(&arguments, Some(text)).start() {
            Ok(program) => assert_eq!(code_of(program), 0),
            Err(error) => return println!("not run: {error}"),
        }
        assert_eq!(std::fs::read("/etc/resolv.conf").ok(), before.ok());
        assert!(!Path::new("/tmp/resolv.conf").exists());
    }
}
