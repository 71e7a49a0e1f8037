//! The socket of a running program: one question and one answer a connection, a line and a text.
//!
//! Neither end trusts the other. A socket lies in a folder that only its owner can change, a
//! question is heard from the same user and from root, an answer is taken from the user that the
//! folder belongs to and from root. Each exchange as a whole has its time, however slowly bytes
//! come.

mod client;
mod place;
mod server;
mod talk;

use core::time::Duration;
use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use units::Clock as _;

use crate::SystemClock;

pub use client::{answering_process, ask, control_sockets};
pub(crate) use place::own_folders;
pub use place::{SYSTEM_FOLDER, make_system_folder};
pub use server::ControlSocket;
pub(crate) use server::read_any_question;
pub use talk::{Said, Talk};

/// Waits until a descriptor is ready for this, or until a moment since boot; false when it is not.
fn wait(descriptor: impl AsFd, what: PollFlags, until_ns: i64) -> bool {
    let left_ns = until_ns.saturating_sub(SystemClock.boottime_ns()).max(0);
    let mut ready = [PollFd::new(&descriptor, what)];
    matches!(poll(&mut ready, Some(&timespec(left_ns))), Ok(1..))
}

/// Sends all of it to who listens, until a moment since boot.
fn send_all(stream: impl AsFd + Copy, mut bytes: &[u8], until_ns: i64) -> io::Result<()> {
    while !bytes.is_empty() {
        if !wait(stream, PollFlags::OUT, until_ns) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match send(stream, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn timespec(nanos: i64) -> Timespec {
    Timespec { tv_sec: nanos / units::NANOS_PER_SECOND, tv_nsec: nanos % units::NANOS_PER_SECOND }
}

/// The moment since boot after so much time.
fn after(time: Duration) -> i64 {
    SystemClock.boottime_ns().saturating_add(units::nanos(time))
}

#[cfg(test)]
mod tests;
