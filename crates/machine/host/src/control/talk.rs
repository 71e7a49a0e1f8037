//! A connection on which both ends say lines, one after the other, until one of them goes.

use core::time::Duration;

use rustix::event::PollFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};

use super::{after, client, send_all, wait};
use crate::Error;

/// More than any line has.
const LINE_BYTES_MAX: usize = 4096;
/// A line is taken as soon as the other end looks.
const SAY_PATIENCE: Duration = Duration::from_secs(1);

/// What a wait for a line brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// A line.
    Line(String),
    /// Nothing, in the time that was given.
    Nothing,
    /// The other end is closed, or has sent what is no line: its process has ended, for one.
    Gone,
}

/// One end of such a connection.
#[derive(Debug)]
pub struct Talk {
    stream: OwnedFd,
    unread: Vec<u8>,
}

impl Talk {
    pub(super) fn new(stream: OwnedFd) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// Begins one with the program that has the socket of this name; `None` where there is none.
    ///
    /// # Errors
    /// When it may not be asked, or may not be believed.
    pub fn begin(name: &str, line: &str, patience: Duration) -> Result<Option<Self>, Error> {
        let until_ns = after(patience);
        let stream = client::first_there(name, |place| client::trusted(place, name, until_ns))?;
        Ok(stream.map(|stream| {
            let mut talk = Self::new(stream);
            // Who has gone is noticed at the answer.
            talk.say(line);
            talk
        }))
    }

    pub(super) fn stream(&self) -> &OwnedFd {
        &self.stream
    }

    /// The process at the other end; `None` where it is of another namespace.
    pub fn process(&self) -> Option<u32> {
        let peer = socket_peercred(&self.stream).ok()?;
        // 0 stands for one in another namespace.
        u32::try_from(peer.pid.as_raw_pid()).ok().filter(|process| *process > 0)
    }

    /// Says a line; false where the other end does not take it.
    pub fn say(&mut self, line: &str) -> bool {
        let line = format!("{line}\n");
        send_all(&self.stream, line.as_bytes(), after(SAY_PATIENCE)).is_ok()
    }

    /// Waits for a line.
    pub fn hear(&mut self, patience: Duration) -> Said {
        let until_ns = after(patience);
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8(line).map(|line| line.trim_end().to_owned());
                return line.map_or(Said::Gone, Said::Line);
            }
            if self.unread.len() > LINE_BYTES_MAX {
                return Said::Gone;
            }
            if !wait(&self.stream, PollFlags::IN, until_ns) {
                return Said::Nothing;
            }
            let mut bytes = [0; 512];
            match recv(&self.stream, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Said::Gone,
                Ok((_, len)) => self.unread.extend(bytes.iter().take(len)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Said::Gone,
            }
        }
    }
}
