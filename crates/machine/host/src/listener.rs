//! A listening socket that whoever started this program has opened for it: a manager of services by
//! its protocol (`sd_listen_fds(3)`), a supervisor of ours as the standard input. So who connects
//! while the program is not there waits for it, and is not refused.

#![expect(unsafe_code, reason = "a descriptor that was inherited is taken by its number")]

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::sockopt::socket_acceptconn;

use crate::{Error, own_process};

/// Where such sockets begin (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;
/// For whom they are, and how many.
const FOR: &str = "LISTEN_PID";
const COUNT: &str = "LISTEN_FDS";
const WHAT: &str = "take the socket that was handed over";

/// A TCP socket that listens, and was open before this program began.
#[derive(Clone, Debug)]
pub struct HandedListener {
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

impl HandedListener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The socket, for who does not wait in it.
    ///
    /// # Errors
    /// When there is no descriptor for it.
    pub fn nonblocking(&self) -> Result<TcpListener, Error> {
        let copied = self.listener.try_clone().and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        copied.map_err(|error| Error::system(WHAT, error))
    }

    /// The socket, for a program that is started with it.
    ///
    /// # Errors
    /// When there is no descriptor for it.
    pub(crate) fn copied(&self) -> io::Result<OwnedFd> {
        self.listener.try_clone().map(OwnedFd::from)
    }
}

/// The socket that was handed to this process, if there is one. To be called once.
///
/// # Errors
/// When it is none that listens for TCP, or there are several.
pub fn handed_listener() -> Result<Option<HandedListener>, Error> {
    let taken = match by_manager()? {
        None => as_input()?,
        Some(descriptor) => Some(descriptor),
    };
    let wrong = |error| Error::system(WHAT, error);
    taken
        .map(|descriptor| {
            let is_listening = socket_acceptconn(&descriptor).is_ok_and(|listens| listens);
            if !is_listening {
                return Err(wrong(io::Error::other("it does not listen")));
            }
            let listener = TcpListener::from(descriptor);
            let address = listener.local_addr().map_err(wrong)?;
            Ok(HandedListener { listener: Arc::new(listener), address })
        })
        .transpose()
}

/// What a manager of services has opened for this process, and not for one above it.
fn by_manager() -> Result<Option<OwnedFd>, Error> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let is_ours = number(FOR) == Some(own_process());
    match number(COUNT).filter(|_| is_ours) {
        None | Some(0) => Ok(None),
        Some(1) => take_first().map(Some),
        Some(count) => {
            let why = format!("there are {count} of them, and one is served");
            Err(Error::system(WHAT, io::Error::other(why)))
        }
    }
}

fn take_first() -> Result<OwnedFd, Error> {
    // SAFETY: the call takes numbers alone; of a descriptor that is not open it returns -1.
    let marked = unsafe { libc::fcntl(FIRST, libc::F_SETFD, libc::FD_CLOEXEC) };
    if marked == -1 {
        return Err(Error::system(WHAT, io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is open, and LISTEN_PID says that it was opened for this process
    // before it began; nothing else here takes it, for this is called once.
    Ok(unsafe { OwnedFd::from_raw_fd(FIRST) })
}

/// The standard input, where it is a socket that listens. Nothing stands in its place then.
fn as_input() -> Result<Option<OwnedFd>, Error> {
    let input = rustix::stdio::stdin();
    if !socket_acceptconn(input).is_ok_and(|listens| listens) {
        return Ok(None);
    }
    let wrong = |errno: rustix::io::Errno| Error::system(WHAT, errno);
    let copied = fcntl_dupfd_cloexec(input, FIRST).map_err(wrong)?;
    let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    nothing.and_then(rustix::stdio::dup2_stdin).map_err(wrong)?;
    Ok(Some(copied))
}
