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

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
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

fn timespec(nanos: i64) -> Timespec {
    Timespec { tv_sec: nanos / units::NANOS_PER_SECOND, tv_nsec: nanos % units::NANOS_PER_SECOND }
}

/// The moment since boot after so much time.
fn after(time: Duration) -> i64 {
    SystemClock.boottime_ns().saturating_add(units::nanos(time))
}

#[cfg(test)]
mod tests;
