//! One end of a private stream between two of our processes that never blocks on the other.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What a wait for the other end brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// This number of bytes.
    Bytes(usize),
    /// Nothing, in the time that was given.
    Nothing,
    /// The other end is closed.
    Closed,
}

/// An end that queues what the other one does not take at once. Its user bounds what is
/// under way, by waiting for answers.
#[derive(Debug)]
pub struct Duplex {
    stream: UnixStream,
    unsent: VecDeque<u8>,
}

impl Duplex {
    /// A new stream: this end, and the one to hand over.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        Ok((Self { stream, unsent: VecDeque::new() }, other.into()))
    }

    /// Sends `bytes` behind all that was sent before, as far as the other end takes them now; the
    /// rest goes out while this one waits in [`Self::receive`].
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend(bytes);
        self.flush()
    }

    /// Bytes that the other end has not taken so far.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Appends to `into` at most `most` bytes of what has come, waiting up to `patience` for some.
    pub fn receive(
        &mut self,
        into: &mut Vec<u8>,
        most: usize,
        patience: Duration,
    ) -> io::Result<Heard> {
        let patience = Timespec::try_from(patience)
            .unwrap_or(Timespec { tv_sec: i64::from(u16::MAX), tv_nsec: 0 });
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, !self.unsent.is_empty());
        let mut ends = [PollFd::from_borrowed_fd(self.stream.as_fd(), wanted)];
        match poll(&mut ends, Some(&patience)) {
            Ok(_) => {}
            // A signal: the caller looks after it, and comes back.
            Err(Errno::INTR) => return Ok(Heard::Nothing),
            Err(errno) => return Err(errno.into()),
        }
        let found = ends[0].revents();
        if found.contains(PollFlags::OUT) {
            // Where the other end is gone, reading says so.
            self.flush().unwrap_or_default();
        }
        if !found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return Ok(Heard::Nothing);
        }
        self.read(into, most)
    }

    fn read(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<Heard> {
        let start = into.len();
        into.resize(start.saturating_add(most), 0);
        let read = self.stream.read(into.get_mut(start..).unwrap_or_default());
        into.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) if most > 0 => Ok(Heard::Closed),
            Ok(bytes) => Ok(Heard::Bytes(bytes)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Heard::Nothing),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Heard::Closed),
                _ => Err(error),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let (front, _) = self.unsent.as_slices();
            match self.stream.write(front) {
                Ok(0) => return Ok(()),
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_can_send_more_than_fits_between_them() {
        const BYTES: usize = 4 << 20;
        let (mut end, other) = Duplex::pair().unwrap();
        let mut other = UnixStream::from(other);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Sends everything before it reads anything.
                other.write_all(&vec![7; BYTES]).unwrap();
                let mut got = Vec::new();
                other.read_to_end(&mut got).unwrap();
                assert!(got.len() == BYTES && got.iter().all(|&byte| byte == 9));
            });
            end.send(&vec![9; BYTES]).unwrap();
            assert!(end.unsent_bytes() > 0);
            let mut got = Vec::new();
            while got.len() < BYTES || end.unsent_bytes() > 0 {
                end.receive(&mut got, 1 << 16, Duration::from_secs(10)).unwrap();
            }
            assert!(got.iter().all(|&byte| byte == 7));
            drop(end);
        });
    }

    #[test]
    fn silence_ends_with_the_patience_and_a_closed_end_is_noticed() {
        let (mut end, other) = Duplex::pair().unwrap();
        let mut got = Vec::new();
        let patience = Duration::from_millis(5);
        assert_eq!(end.receive(&mut got, 9, patience).unwrap(), Heard::Nothing);
        drop(other);
        // A child that another test is about to start has it for a moment longer.
        let patience = Duration::from_secs(10);
        assert_eq!(end.receive(&mut got, 9, patience).unwrap(), Heard::Closed);
        assert!(end.send(&[1]).is_err());
    }
}
