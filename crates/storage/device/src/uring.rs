//! Writing through `io_uring`: any number of writes in flight from one thread.
//!
//! The kernel reads a buffer until its completion arrives; the slot of an operation holds a count
//! on it until then, whatever happens. If the ring itself fails, that can never be known, and the
//! buffers are leaked. Three things are left out on purpose. `SINGLE_ISSUER` binds the ring to one
//! thread, and a device may be handed to another. A registered file outlives its process: the
//! kernel tears rings down in the background, and a restarted recorder would find its member in
//! use. Registered buffers would all have to have their memory at the start, and their number is
//! bounded; finding the pages of a write of a whole piece costs next to nothing.

#![expect(
    unsafe_code,
    reason = "the kernel is given addresses, which only this module keeps alive"
)]

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;

use crate::bounce::Bounce;
use crate::clock::monotonic_ns;
use crate::discard::Discards;
use crate::guarded::Guarded;
use crate::patience::LEAVE;
use crate::rings::{COMPLETION_ENTRIES, RING_ENTRIES};
use crate::{Completion, Device, Error, ReadAt, Shared, assert_range, rings, to_u64, to_usize};

/// A device behind a ring.
pub(crate) struct Uring {
    /// There until it is dropped.
    ring: Option<IoUring>,
    target: Guarded,
    /// By user data of the ring; `None` is free.
    slots: Vec<Option<Slot>>,
    in_flight: usize,
    /// Not by the ring, and not in `in_flight`: older kernels have no command for it.
    discards: Discards,
    /// Operations that could not be handed to the ring.
    unsent: Vec<Completion>,
    broken: Option<Error>,
    notes: Vec<String>,
}

struct Slot {
    token: u64,
    submitted_ns: u64,
    operation: Operation,
}

enum Operation {
    /// `done` of `len` bytes are written.
    Write {
        offset: u64,
        data: Shared,
        len: usize,
        done: usize,
    },
    Flush,
    /// `done` of `len` bytes are there.
    Read {
        offset: u64,
        bytes: Bounce,
        len: usize,
        done: usize,
    },
}

impl Uring {
    pub(crate) fn start(ring: IoUring, target: Guarded, notes: Vec<String>) -> Self {
        let slots = Vec::with_capacity(to_usize(u64::from(RING_ENTRIES)));
        let (unsent, in_flight) = (Vec::new(), 0);
        let discards = Discards::new();
        Self { ring: Some(ring), target, slots, in_flight, discards, unsent, broken: None, notes }
    }

    fn ring(&mut self) -> &mut IoUring {
        self.ring.as_mut().expect("it is there until this is dropped")
    }

    fn submit(&mut self, token: u64, operation: Operation) {
        let room = to_usize(u64::from(COMPLETION_ENTRIES));
        assert!(self.in_flight < room, "at most {room} operations are in flight");
        self.in_flight += 1;
        if let Some(error) = &self.broken {
            let (result, read) = (Err(error.clone()), operation.into_read());
            self.unsent.push(Completion { token, result, latency_ns: 0, read });
            return;
        }
        let slot = Slot { token, submitted_ns: monotonic_ns(), operation };
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or(self.slots.len());
        match self.slots.get_mut(index) {
            Some(place) => *place = Some(slot),
            None => self.slots.push(Some(slot)),
        }
        self.send(index);
        self.enter(None);
    }

    /// Queues what is left to do in a slot.
    fn send(&mut self, index: usize) {
        let file = Fd(self.target.target().as_fd().as_raw_fd());
        let slot = self.slots.get_mut(index).and_then(Option::as_mut).expect("the slot is in use");
        let entry = slot.operation.entry(file).user_data(to_u64(index));
        loop {
            // SAFETY: the buffer that the entry points to is held by the slot until its completion.
            if unsafe { self.ring().submission().push(&entry) }.is_ok() {
                return;
            }
            if self.broken.is_some() {
                return;
            }
            self.enter(None);
        }
    }

    /// Whether the kernel has something to do for this ring that only a system call lets it do.
    fn needs_entering(&mut self) -> bool {
        let queue = self.ring().submission();
        queue.taskrun() || queue.cq_overflow() || !queue.is_empty()
    }

    /// Hands queued entries over and lets completions arrive, waiting for one up to `wait`.
    fn enter(&mut self, wait: Option<Duration>) {
        if self.broken.is_some() {
            return;
        }
        let timespec = Timespec::from(wait.unwrap_or_default());
        let arguments = SubmitArgs::new().timespec(&timespec);
        let least = usize::from(wait.is_some());
        match self.ring().submitter().submit_with_args(least, &arguments) {
            Ok(_) => {}
            // A signal, the time is over, or the kernel is short of memory for the moment: what is
            // queued stays queued.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY)
                ) => {}
            Err(error) => self.give_up(&error),
        }
    }

    /// The ring itself failed: every operation in flight has an unknown end, and the kernel may yet
    /// read their buffers.
    fn give_up(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let cause = Error::Io { operation: "submit to io_uring", offset: 0, errno };
        for slot in self.slots.drain(..).flatten() {
            let result = Err(cause.clone());
            let read = match slot.operation {
                Operation::Read { len, .. } => Some(vec![0; len]),
                Operation::Write { .. } | Operation::Flush => None,
            };
            self.unsent.push(Completion { token: slot.token, result, latency_ns: 0, read });
            core::mem::forget(slot.operation);
        }
        self.broken = Some(cause);
    }

    /// Takes what has arrived; a part of a write that was not done is sent again.
    fn collect(&mut self, out: &mut Vec<Completion>) {
        loop {
            let entry = self.ring().completion().next();
            let Some(entry) = entry else { return };
            let index = to_usize(entry.user_data());
            let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else {
                assert!(self.broken.is_some(), "a completion belongs to a slot");
                continue;
            };
            match slot.operation.advance(entry.result()) {
                None => {
                    self.send(index);
                    self.enter(None);
                }
                Some(result) => {
                    let slot = self.slots.get_mut(index).and_then(Option::take);
                    let Slot { token, submitted_ns, operation } = slot.expect("it was there");
                    let is_flush = matches!(operation, Operation::Flush);
                    let check =
                        || if is_flush { self.target.target().check_name() } else { Ok(()) };
                    let result = result.and_then(|()| check());
                    let latency_ns = monotonic_ns().saturating_sub(submitted_ns);
                    let read = operation.into_read();
                    out.push(Completion { token, result, latency_ns, read });
                    self.in_flight -= 1;
                }
            }
        }
    }
}

impl Operation {
    fn entry(&mut self, file: Fd) -> squeue::Entry {
        match self {
            Self::Write { offset, data, len, done } => {
                let rest = data.get(*done..*len).expect("checked at submission");
                let count = u32::try_from(rest.len()).unwrap_or(1 << 30);
                let offset = *offset + to_u64(*done);
                opcode::Write::new(file, rest.as_ptr(), count).offset(offset).build()
            }
            Self::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Self::Read { offset, bytes, len, done } => {
                let rest = bytes.aligned(*len).get_mut(*done..).expect("inside what is read");
                let count = u32::try_from(rest.len()).unwrap_or(1 << 30);
                let offset = *offset + to_u64(*done);
                opcode::Read::new(file, rest.as_mut_ptr(), count).offset(offset).build()
            }
        }
    }

    /// What a read has read.
    fn into_read(self) -> Option<Vec<u8>> {
        let Self::Read { mut bytes, len, .. } = self else { return None };
        Some(bytes.aligned(len).to_vec())
    }

    /// Takes the kernel's answer; `None` means that something is left to do.
    fn advance(&mut self, answer: i32) -> Option<Result<(), Error>> {
        let (name, at) = match self {
            Self::Write { offset, done, .. } => ("write", *offset + to_u64(*done)),
            Self::Flush => ("flush", 0),
            Self::Read { offset, done, .. } => ("read", *offset + to_u64(*done)),
        };
        let count = match usize::try_from(answer) {
            Ok(count) => count,
            Err(_) if matches!(-answer, libc::EINTR | libc::EAGAIN) => return None,
            Err(_) => return Some(Err(Error::Io { operation: name, offset: at, errno: -answer })),
        };
        match self {
            Self::Flush => Some(Ok(())),
            Self::Write { .. } | Self::Read { .. } if count == 0 => {
                Some(Err(Error::io(name, at, Errno::IO)))
            }
            Self::Write { len, done, .. } => {
                *done += count;
                assert!(*done <= *len, "the kernel wrote no more than it was given");
                (*done == *len).then_some(Ok(()))
            }
            Self::Read { len, done, .. } => {
                *done += count;
                assert!(*done <= *len, "the kernel read no more than it was asked for");
                (*done == *len).then_some(Ok(()))
            }
        }
    }
}

impl Device for Uring {
    fn size_bytes(&self) -> u64 {
        self.target.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        assert_range(offset, len, self.target.size_bytes());
        assert!(len <= data.len(), "the length lies in the buffer");
        self.submit(token, Operation::Write { offset, data, len, done: 0 });
    }

    fn submit_flush(&mut self, token: u64) {
        self.submit(token, Operation::Flush);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        assert_range(offset, to_usize(len), self.target.size_bytes());
        self.discards.submit(self.target.target(), token, (offset, len));
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        assert_range(offset, len, self.target.size_bytes());
        self.submit(token, Operation::Read { offset, bytes: Bounce::default(), len, done: 0 });
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let (before, start_ns) = (out.len(), monotonic_ns());
        self.collect(out);
        let alone = out.len() == before && self.in_flight == 0;
        self.discards.reap(wait.filter(|_| alone), out);
        // A short write or a signal ends a wait without finishing anything.
        while out.len() == before && self.unsent.is_empty() && self.in_flight > 0 {
            let waited = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
            let left = wait.and_then(|wait| wait.checked_sub(waited));
            if left.is_none() && !self.needs_entering() {
                break;
            }
            self.enter(left);
            self.collect(out);
            if left.is_none() {
                break;
            }
        }
        self.in_flight -= self.unsent.len();
        out.append(&mut self.unsent);
    }

    fn in_flight(&self) -> usize {
        self.in_flight + self.discards.under_way()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.target.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.target.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.target.sync()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for Uring {
    /// Waits for what is in flight, so that neither the buffers nor the lock are given up before.
    /// What takes too long keeps them both: the buffers are leaked, and the kernel has the file.
    fn drop(&mut self) {
        let (mut ignored, start_ns) = (Vec::new(), monotonic_ns());
        while self.in_flight > 0 {
            let waited = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
            let Some(left) = LEAVE.checked_sub(waited) else {
                core::mem::forget((core::mem::take(&mut self.slots), self.ring.take()));
                return;
            };
            self.reap(Some(left), &mut ignored);
            ignored.clear();
        }
        if let Some(ring) = self.ring.take().filter(|_| self.broken.is_none()) {
            rings::put_back(ring);
        }
    }
}

impl core::fmt::Debug for Uring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Uring")
            .field("target", &self.target)
            .field("in_flight", &self.in_flight)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a ring to one entry.
    fn answer(ring: &mut IoUring, entry: &squeue::Entry) -> i32 {
        // SAFETY: the entries of these tests have no addresses but of texts that stay.
        unsafe { ring.submission().push(entry) }.unwrap();
        ring.submit_and_wait(1).unwrap();
        ring.completion().next().unwrap().result()
    }

    #[test]
    fn a_ring_writes_and_flushes_and_does_nothing_else() {
        let Ok(mut ring) = rings::make_ring() else { return println!("not run: no io_uring here") };
        let file = tempfile::tempfile().unwrap();
        let fd = Fd(file.as_raw_fd());
        assert_eq!(
            answer(&mut ring, &opcode::Write::new(fd, c"text".as_ptr().cast(), 4).build()),
            4
        );
        assert_eq!(answer(&mut ring, &opcode::Fsync::new(fd).build()), 0);
        let here = Fd(libc::AT_FDCWD);
        let forbidden = [
            opcode::Nop::new().build(),
            opcode::OpenAt::new(here, c"/dev/null".as_ptr()).build(),
            opcode::UnlinkAt::new(here, c"/nonexistent".as_ptr()).build(),
            opcode::Socket::new(libc::AF_INET, libc::SOCK_STREAM, 0).build(),
            opcode::Write::new(fd, c"text".as_ptr().cast(), 4).build().flags(squeue::Flags::ASYNC),
        ];
        for entry in forbidden {
            assert_eq!(answer(&mut ring, &entry), -libc::EACCES);
        }
        assert!(ring.submitter().register_files(&[fd.0]).is_err(), "nothing is registered later");
    }

    #[test]
    fn rings_that_were_made_ahead_come_back() {
        rings::reserve_rings(1);
        let Some(ring) = rings::take() else { return println!("not run: no io_uring here") };
        assert!(rings::take().is_none());
        rings::put_back(ring);
        assert!(rings::take().is_some());
        rings::reserve_rings(0);
    }
}
