//! The launcher as the one sees it who started it.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, ErrorKind::NotFound};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;

use crate::child::Child;
use crate::deadline::Deadline;
use crate::message::{Fields, Message};
use crate::program::{Program, Request};
use crate::serve::{REFUSED, STARTED};
use crate::start::{Environment, Process, start_myself};
use crate::{Error, program, socket};

/// Starting a process takes milliseconds; a machine that has to read the executable from a busy
/// disk may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Ending it takes as long as the kernel needs to end its children.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// What a start takes besides the program, and a bare chroot does not have.
const TAKES: [&str; 2] = ["/proc/self/exe", "/dev/null"];

/// Names what is missing: the program itself is there, for it runs.
fn of_machine(error: io::Error) -> io::Error {
    let is_missing = |path: &&&str| error.kind() == NotFound && !Path::new(path).exists();
    match TAKES.iter().find(is_missing) {
        Some(path) => io::Error::new(NotFound, format!("there is no {path} here")),
        None => error,
    }
}

/// A process that starts children for this one, also when this one may no longer, and another one
/// in reserve, which takes its place when it has ended.
#[derive(Debug)]
pub struct Launcher {
    connection: Mutex<Connection>,
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Connection {
    /// The one that is asked.
    own: Started,
    reserve: Option<Started>,
    asked: u64,
}

/// A launcher that was started.
#[derive(Debug)]
struct Started {
    /// Closed to end it.
    socket: Option<OwnedFd>,
    process: Process,
}

impl Launcher {
    /// Starts it: the running executable with `verb`, which calls [`serve`](crate::serve()).
    ///
    /// It starts nothing but `programs`, each as it stands here: who takes this process over gets
    /// no further through it. It ends with the thread that calls this, so that is the main thread.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(verb: &str, programs: Vec<Program>) -> Result<Self, Error> {
        let own = Started::new(verb, &programs)?;
        // Without one in reserve children are started all the same.
        let reserve = Started::new(verb, &programs).ok();
        Ok(Self { connection: Mutex::new(Connection { own, reserve, asked: 0 }), programs })
    }

    /// The number of the process that is asked.
    pub fn pid(&self) -> u32 {
        stage::lock(&self.connection).own.process.pid()
    }

    /// Starts a child. Where the launcher has ended, or was stopped and says nothing, the one in
    /// reserve starts it, and the other one ends.
    ///
    /// # Errors
    /// When both are gone or silent, or could not start it.
    pub fn spawn(&self, request: &Request<'_>) -> Result<Child, Error> {
        let is_it = |program: &Program| program == request.program;
        let index = self.programs.iter().position(is_it).ok_or(Error::NotNamed)?;
        let mut connection = stage::lock(&self.connection);
        match connection.spawn(index, request) {
            Err(Error::LauncherGone | Error::LauncherSilent) if connection.use_reserve() => {
                connection.spawn(index, request)
            }
            result => result,
        }
    }
}

impl Connection {
    fn spawn(&mut self, index: usize, request: &Request<'_>) -> Result<Child, Error> {
        let environment = program::environment(request.environment);
        let variables: Vec<OsString> =
            environment.into_iter().flat_map(|(name, value)| [name, value]).collect();
        self.asked += 1;
        let message = Message::default()
            .number(self.asked)
            .number(u64::try_from(index).expect("a length fits u64"))
            .texts(variables.iter());
        let socket = self.own.socket.as_ref().expect("it is closed at the end");
        socket::send(socket, message.as_bytes(), request.descriptors)
            .map_err(|_| Error::LauncherGone)?;
        answer(socket, self.asked)
    }

    /// Whether there was one.
    fn use_reserve(&mut self) -> bool {
        let Some(reserve) = self.reserve.take() else { return false };
        self.own = reserve;
        true
    }
}

impl Started {
    fn new(verb: &str, programs: &[Program]) -> Result<Self, Error> {
        let started = |error| Error::system("start the launcher", error);
        let (here, there) = socket::pair().map_err(started)?;
        let has_commands = programs.iter().any(|program| !program.is_ours());
        let environment = if has_commands { Environment::Same } else { Environment::Only(&[]) };
        let process = start_myself(&[OsString::from(verb)], &[there.as_fd()], environment);
        let process = process.map_err(of_machine).map_err(started)?;
        let count = u64::try_from(programs.len()).expect("a length fits u64");
        let counted = Message::default().number(count);
        let named = programs.iter().fold(counted, |message, program| program.encode(message));
        socket::send(&here, named.as_bytes(), &[]).map_err(started)?;
        Ok(Self { socket: Some(here), process })
    }
}

/// The answer to this question; earlier ones that no caller waited for any more are passed over,
/// and what they brought is dropped, which ends those children.
fn answer(socket: &OwnedFd, asked: u64) -> Result<Child, Error> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        if !socket::wait(socket, deadline).map_err(|_| Error::LauncherGone)? {
            return Err(Error::LauncherSilent);
        }
        let received = socket::receive(socket).ok().flatten().ok_or(Error::LauncherGone)?;
        let mut fields = Fields(&received.bytes);
        if fields.number() != Some(asked) {
            continue;
        }
        let (kind, number) = (fields.byte(), fields.number());
        let mut descriptors = received.descriptors.into_iter();
        return match (kind, number, descriptors.next(), descriptors.next()) {
            (Some(STARTED), Some(pid), Some(pidfd), Some(leash)) => {
                let pid = u32::try_from(pid).map_err(|_| Error::LauncherGone)?;
                Ok(Child::of_launcher(pid, (pidfd, leash)))
            }
            (Some(REFUSED), Some(reason), ..) => {
                let reason = i32::try_from(reason).unwrap_or(libc::EIO);
                Err(Error::NotStarted { source: io::Error::from_raw_os_error(reason) })
            }
            _ => Err(Error::LauncherGone),
        };
    }
}

impl Drop for Started {
    /// Ends it, and with it its children; commands of the user's go on.
    fn drop(&mut self) {
        self.socket = None;
        let deadline = Deadline::after(END_PATIENCE);
        // The kernel ends with this process what does not end here.
        if let Ok(true) = socket::wait(self.process.pidfd(), deadline) {
            drop(self.process.reap());
        }
    }
}
