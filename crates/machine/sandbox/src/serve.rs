//! The launcher itself: it waits, starts, reports, and ends with the one that started it.

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::Error;
use crate::child::KILL;
use crate::confine::{EndedFirst, confine_launcher, hide_launcher};
use crate::deadline::Deadline;
use crate::ended::Ended;
use crate::handed::handed;
use crate::message::{Fields, Message};
use crate::program::Program;
use crate::socket::{self, Received};
use crate::start::{Process, start_program};

/// Answers to a request: pid, and with it a pidfd and a leash; or the system's reason.
pub(crate) const STARTED: u8 = 1;
pub(crate) const REFUSED: u8 = 2;

/// What a launcher starts is named at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long children that were killed may take to be gone.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// More children than a recorder ever wants at once: one that was taken over does not fill the
/// machine with processes.
const CHILDREN_MAX: usize = 16;
/// Variables that may be set for a command of the user's begin so.
const VARIABLE_PREFIX: &[u8] = b"WIRESPOOL_";

/// A child that has not been waited for.
struct Running {
    process: Process,
    /// The other end is with the one who asked for it; closed once that one has let go.
    leash: Option<OwnedFd>,
    is_ours: bool,
    /// It has been waited for.
    is_buried: bool,
}

/// What is ready.
#[derive(Clone, Copy)]
enum Ready {
    Asked,
    Leash(usize),
    Ended(usize),
}

/// Is a launcher, until the process that started it is gone. To be called first, on the main
/// thread.
///
/// # Errors
/// When no launcher started it, or a message makes no sense.
pub fn serve() -> Result<(), Error> {
    let mut handed = handed()?;
    let socket = handed.descriptors.pop().ok_or(Error::NothingHanded)?;
    let programs = programs(&socket).ok_or(Error::NothingHanded)?;
    // So `ps` and the kernel's messages distinguish them.
    rustix::thread::set_name(c"launcher").unwrap_or_default();
    let starter = Starter::confined(programs);
    let mut children = Vec::new();
    let served = serve_requests(&socket, &starter, &mut children);
    end(children);
    served.map_err(|error| Error::system("serve as launcher", error))
}

/// What may be started, and how.
struct Starter {
    programs: Vec<Program>,
    ended_first: Option<EndedFirst>,
}

impl Starter {
    /// Confines this process as far as these programs allow. A command of the user's inherits what
    /// its launcher gives up, and may need whatever its user has.
    fn confined(programs: Vec<Program>) -> Self {
        if !programs.iter().all(Program::is_ours) {
            hide_launcher();
            return Self { programs, ended_first: None };
        }
        let ended_first = EndedFirst::new().ok();
        // What the kernel lacks for it lacks for the recorder, too, which says so.
        confine_launcher();
        Self { programs, ended_first }
    }

    fn start(
        &self,
        program: &Program,
        descriptors: &[BorrowedFd<'_>],
        variables: &[(OsString, OsString)],
    ) -> io::Result<Process> {
        let start = || start_program(program, descriptors, variables);
        match &self.ended_first {
            Some(ended_first) => ended_first.during(start),
            None => start(),
        }
    }
}

fn programs(socket: &OwnedFd) -> Option<Vec<Program>> {
    socket::wait(socket, Deadline::after(PATIENCE)).ok().filter(|is_there| *is_there)?;
    let named = socket::receive(socket).ok()??;
    let mut fields = Fields(&named.bytes);
    let count = fields.number()?;
    let programs = (0..count).map(|_| Program::decode(&mut fields)).collect::<Option<_>>()?;
    fields.end()?;
    Some(programs)
}

fn serve_requests(
    socket: &OwnedFd,
    starter: &Starter,
    children: &mut Vec<Running>,
) -> io::Result<()> {
    loop {
        for ready in wait_for_any(socket, children)? {
            match ready {
                Ready::Ended(index) => children.get_mut(index).map_or(Ok(()), bury)?,
                Ready::Leash(index) => children.get_mut(index).map_or((), obey),
                Ready::Asked => {
                    let Some(request) = socket::receive(socket)? else { return Ok(()) };
                    answer(socket, starter, &request, children)?;
                }
            }
        }
        children.retain(|child| !child.is_buried);
    }
}

/// Waits until anything is to be done. Of one child its end comes behind its leash.
fn wait_for_any(socket: &OwnedFd, children: &[Running]) -> io::Result<Vec<Ready>> {
    let mut what = vec![Ready::Asked];
    let mut polled = vec![PollFd::new(socket, PollFlags::IN)];
    for (index, child) in children.iter().enumerate() {
        if let Some(leash) = &child.leash {
            what.push(Ready::Leash(index));
            polled.push(PollFd::new(leash, PollFlags::IN));
        }
        what.push(Ready::Ended(index));
        polled.push(PollFd::from_borrowed_fd(child.process.pidfd(), PollFlags::IN));
    }
    match poll(&mut polled, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    }
    let ready = what.into_iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
    Ok(ready.map(|(what, _)| what).collect())
}

/// Waits for a child that has ended, and says how.
fn bury(child: &mut Running) -> io::Result<()> {
    if let Some(ended) = child.process.reap()? {
        child.is_buried = true;
        report(child, &ended);
    }
    Ok(())
}

fn report(child: &Running, ended: &Ended) {
    if let Some(leash) = &child.leash {
        // The caller may have let go.
        socket::send(leash, ended.encode().as_bytes(), &[]).unwrap_or_default();
    }
}

/// Does what is said along a leash; one that is closed ends a process of ours.
fn obey(child: &mut Running) {
    let Some(leash) = &child.leash else { return };
    match socket::receive(leash) {
        Ok(Some(said)) if said.bytes == KILL => child.process.kill(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        _ => {
            child.leash = None;
            if child.is_ours {
                child.process.kill();
            }
        }
    }
}

fn answer(
    socket: &OwnedFd,
    starter: &Starter,
    request: &Received,
    children: &mut Vec<Running>,
) -> io::Result<()> {
    let mut fields = Fields(&request.bytes);
    let asked = fields.number().ok_or(io::ErrorKind::InvalidData)?;
    let head = Message::default().number(asked);
    match start_one(starter, &request.descriptors, fields, children.len()) {
        Ok((child, leash)) => {
            let message = head.byte(STARTED).number(u64::from(child.process.pid()));
            let sent =
                socket::send(socket, message.as_bytes(), &[child.process.pidfd(), leash.as_fd()]);
            children.push(child);
            sent
        }
        Err(error) => {
            let reason = u64::try_from(error.raw_os_error().unwrap_or(libc::EINVAL));
            let message = head.byte(REFUSED).number(reason.unwrap_or_default());
            socket::send(socket, message.as_bytes(), &[])
        }
    }
}

/// Gives the child with one end of its leash, and the other end.
fn start_one(
    starter: &Starter,
    descriptors: &[OwnedFd],
    mut fields: Fields<'_>,
    running: usize,
) -> io::Result<(Running, OwnedFd)> {
    let refused = || io::Error::from_raw_os_error(libc::EINVAL);
    let index = fields.number().and_then(|index| usize::try_from(index).ok());
    let program = index.and_then(|index| starter.programs.get(index)).ok_or_else(refused)?;
    let variables = fields.texts().as_deref().and_then(pairs).ok_or_else(refused)?;
    fields.end().ok_or_else(refused)?;
    if running >= CHILDREN_MAX {
        return Err(io::Error::from_raw_os_error(libc::EAGAIN));
    }
    let (here, there) = socket::pair()?;
    let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let process = starter.start(program, &descriptors, &variables)?;
    Ok((
        Running { process, leash: Some(here), is_ours: program.is_ours(), is_buried: false },
        there,
    ))
}

/// Names and values, in turn; a name that is not ours could make a shell run what it should not.
fn pairs(variables: &[OsString]) -> Option<Vec<(OsString, OsString)>> {
    let is_ours = |name: &OsStr| {
        let rest = name.as_bytes().strip_prefix(VARIABLE_PREFIX);
        rest.is_some_and(|rest| rest.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_')))
    };
    let (pairs, rest) = variables.as_chunks::<2>();
    let is_right = rest.is_empty() && pairs.iter().all(|[name, _]| is_ours(name));
    is_right.then(|| pairs.iter().map(|[name, value]| (name.clone(), value.clone())).collect())
}

/// Ends what must not outlive us.
fn end(mut children: Vec<Running>) {
    children.retain(|child| child.is_ours);
    for child in &mut children {
        child.process.kill();
    }
    let deadline = Deadline::after(END_PATIENCE);
    for child in &mut children {
        if let Ok(true) = socket::wait(child.process.pidfd(), deadline)
            && let Ok(Some(ended)) = child.process.reap()
        {
            report(child, &ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_of_ours_reach_a_command() {
        let take = |words: &[&str]| pairs(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(take(&[]), Some(Vec::new()));
        assert_eq!(take(&["WIRESPOOL_TEXT", "any $(thing)"]).unwrap().len(), 1);
        for name in ["PATH", "LD_PRELOAD", "WIRESPOOL_X=1", "xWIRESPOOL_A", ""] {
            assert_eq!(take(&[name, "value"]), None, "{name}");
        }
        assert_eq!(take(&["WIRESPOOL_TEXT"]), None);
    }
}
