//! The end that asks.

use core::time::Duration;
use std::collections::BTreeSet;
use std::io;

use rustix::event::PollFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, connect, recv, socket_with};
use units::{Clock as _, NANOS_PER_SECOND, Sleep as _};

use super::place::Place;
use super::{after, send_all, wait};
use crate::{Error, SystemClock};

/// Between two attempts to connect to a program with too many who ask.
const AGAIN_NS: i64 = NANOS_PER_SECOND / 100;
/// A program with so many who ask is there all the same.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
/// More than any answer has.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Asks the program that has the socket of this name; `None` where there is none. All of it takes
/// no longer than `patience`, whatever the other end does.
///
/// # Errors
/// When it may not be asked, may not be believed, or does not answer in time.
pub fn ask(name: &str, question: &str, patience: Duration) -> Result<Option<String>, Error> {
    let until_ns = after(patience);
    first_there(name, |place| ask_in(place, name, (question, until_ns)))
}

/// What comes of it at the first place where a program has the socket of this name.
pub(super) fn first_there<T>(
    name: &str,
    at: impl Fn(&Place) -> io::Result<T>,
) -> Result<Option<T>, Error> {
    for place in Place::all() {
        match at(&place) {
            Ok(found) => return Ok(Some(found)),
            Err(error) if is_nobody(&error) => {}
            Err(error) => return Err(Error::path("ask", &place.path_of(name), error)),
        }
    }
    Ok(None)
}

/// The process that has the socket of this name, if one does and is seen here.
pub fn answering_process(name: &str) -> Option<u32> {
    let until_ns = after(CONNECT_PATIENCE);
    Place::all().iter().find_map(|place| {
        let peer = socket_peercred(&connected(place, name, until_ns).ok()?).ok()?;
        // 0 stands for one in another namespace.
        let process = u32::try_from(peer.pid.as_raw_pid()).ok().filter(|process| *process > 0);
        process.filter(|_| place.trusts(&peer))
    })
}

/// Names of the sockets that there are, our own and those of root and of services; who has one may
/// have ended.
pub fn control_sockets() -> Vec<String> {
    let names: BTreeSet<String> = Place::all().iter().flat_map(Place::sockets).collect();
    names.into_iter().collect()
}

pub(super) fn ask_in(
    place: &Place,
    name: &str,
    (question, until_ns): (&str, i64),
) -> io::Result<String> {
    let socket = trusted(place, name, until_ns)?;
    send_all(&socket, format!("{question}\n").as_bytes(), until_ns)?;
    let mut answer = Vec::new();
    let mut bytes = vec![0; 64 << 10];
    while answer.len() <= ANSWER_BYTES_MAX {
        if !wait(&socket, PollFlags::IN, until_ns) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match recv(&socket, &mut bytes[..], RecvFlags::empty()) {
            Ok((_, 0)) => return String::from_utf8(answer).map_err(io::Error::other),
            Ok((_, len)) => answer.extend(bytes.iter().take(len)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::other("the answer is too long"))
}

/// A connection to who may be believed.
pub(super) fn trusted(place: &Place, name: &str, until_ns: i64) -> io::Result<OwnedFd> {
    let socket = connected(place, name, until_ns)?;
    if !place.trusts(&socket_peercred(&socket)?) {
        return Err(io::Error::other("it is answered by another user than the folder's"));
    }
    Ok(socket)
}

fn connected(place: &Place, name: &str, until_ns: i64) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = place.address(name)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN) if SystemClock.boottime_ns() < until_ns => {
                SystemClock.sleep_until(SystemClock.boottime_ns() + AGAIN_NS);
            }
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
