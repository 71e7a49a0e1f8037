//! Frames out by `AF_XDP`: what replays traffic, past the queueing discipline.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::xdp::XdpDescOptions;
use rustix::time::ClockId;
use units::number::to_u64;

use super::now_ns;
use super::socket::{Binding, CHUNKS, CopyMode, Sender};
use super::umem::Umem;
use crate::Error;
use crate::live::ethtool::Card;
use crate::live::port::LINK_HEADER_MAX;
use crate::live::transmit::{FrameLimits, LONGEST_WAIT, Outlet, Transmitter};

/// Chunks of a sender: enough for what a driver may hold.
const CHUNK_COUNT: u32 = 2048;
/// Between two looks whether the kernel has taken something.
const LOOK: Duration = Duration::from_millis(1);
/// For what the driver holds when the sender goes.
const SETTLE_NS: i64 = 1_000_000_000;

/// Sends Ethernet frames on one queue of an interface.
///
/// Frames that were put into the ring cannot be taken back. Those that the kernel has not taken
/// when the time is over are not reported as taken; they are the first that are offered again.
#[derive(Debug)]
pub struct XdpTransmitter {
    sender: Sender,
    /// Knows the interface; nothing is sent by it.
    link: Transmitter,
    free: Vec<u64>,
    /// Descriptors of each frame in the ring that was not reported as taken.
    open: VecDeque<u32>,
    /// Descriptors of the first of them that the kernel has taken.
    begun: u32,
    pending_before: u32,
    failed: Option<Errno>,
}

impl XdpTransmitter {
    /// Opens so many queues of an interface, which must be up and take Ethernet frames.
    ///
    /// # Errors
    /// [`Error::XdpQueues`] where it has fewer; [`Error::XdpPermission`] without the capability.
    pub fn open_queues(interface: &str, count: u32) -> Result<Vec<Self>, Error> {
        let link = Transmitter::open(interface)?;
        let queues = Card { socket: &link.socket, name: interface }.transmit_queues();
        if count > queues {
            return Err(Error::XdpQueues { name: interface.to_owned(), queues });
        }
        (0..count).map(|queue| Self::open(interface, queue)).collect()
    }

    fn open(interface: &str, queue: u32) -> Result<Self, Error> {
        let link = Transmitter::open(interface)?;
        let longest = link.limits().mtu + LINK_HEADER_MAX;
        let fitting = CHUNKS.into_iter().find(|&chunk| longest <= chunk);
        let (chunk_bytes, in_parts) = fitting.map_or((CHUNKS[1], true), |chunk| (chunk, false));
        let bind = |mode| {
            let umem = Umem::new(chunk_bytes, CHUNK_COUNT)?;
            let ifindex = link.socket.ifindex();
            Sender::open(umem, Binding { ifindex, queue, mode, in_parts })
        };
        let sender = bind(CopyMode::Zero).or_else(|_| bind(CopyMode::Copied));
        let sender = sender.map_err(|source| {
            let name = interface.to_owned();
            match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => Error::SendPermission { name },
                Some(libc::EBUSY) => Error::XdpQueueTaken { name, queue },
                _ => Error::System { name, operation: "binding an AF_XDP socket", source },
            }
        })?;
        let chunk = to_u64(chunk_bytes);
        Ok(Self {
            sender,
            link,
            free: (0..u64::from(CHUNK_COUNT)).map(|number| number * chunk).collect(),
            open: VecDeque::new(),
            begun: 0,
            pending_before: 0,
            failed: None,
        })
    }

    /// Lengths that the interface takes.
    pub fn limits(&self) -> FrameLimits {
        self.link.limits()
    }

    /// Takes back the chunks of frames that have left.
    fn collect(&mut self) {
        while let Some(chunk) = self.sender.collect() {
            self.free.push(chunk);
        }
    }

    /// Puts a frame into the ring; false where there is no space.
    fn put(&mut self, frame: &[u8]) -> bool {
        let parts = frame.chunks(self.sender.chunk_bytes());
        let count = parts.len();
        if self.free.len() < count {
            return false;
        }
        for (number, part) in (1..).zip(parts) {
            let chunk = self.free.pop().expect("there are enough");
            let options = match number {
                last if last == count => XdpDescOptions::empty(),
                _ => XdpDescOptions::XDP_PKT_CONTD,
            };
            self.sender.put(chunk, part, options);
        }
        self.open.push_back(u32::try_from(count).expect("frames are short"));
        true
    }

    /// Frames that the kernel has taken since it was asked last.
    fn taken(&mut self) -> usize {
        let pending = self.sender.pending();
        self.begun += self.pending_before - pending;
        self.pending_before = pending;
        let mut taken = 0;
        while let Some(&parts) = self.open.front().filter(|&&parts| parts <= self.begun) {
            self.begun -= parts;
            self.open.pop_front();
            taken += 1;
        }
        taken
    }

    /// Has the kernel take what is in the ring, for up to about 100 ms.
    fn push(&mut self) -> usize {
        let until_ns = now_ns(ClockId::Monotonic) + units::nanos(LONGEST_WAIT);
        let mut taken = 0;
        while !self.open.is_empty() {
            let kicked = if self.sender.needs_wakeup() { self.sender.kick() } else { Ok(()) };
            match kicked {
                // Busy: the frame was dropped, and the interface counts it.
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(error) => {
                    self.failed = Some(error);
                    return taken + self.taken();
                }
            }
            self.collect();
            let more = self.taken();
            taken += more;
            if more == 0 {
                if now_ns(ClockId::Monotonic) >= until_ns {
                    break;
                }
                wait_for_room(&self.sender);
            }
        }
        taken
    }
}

impl Outlet for XdpTransmitter {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        if let Some(error) = self.failed {
            return Err(self.link.refusal(error));
        }
        self.collect();
        // The first ones are in the ring already.
        for frame in frames.iter().skip(self.open.len()) {
            if !self.put(frame) {
                break;
            }
        }
        self.sender.publish();
        self.pending_before = self.sender.pending();
        let taken = self.push();
        match self.failed {
            Some(error) if taken == 0 => Err(self.link.refusal(error)),
            _ => Ok(taken),
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.link.check()
    }

    fn interface_drops(&self) -> Option<u64> {
        self.link.interface_drops()
    }
}

impl Drop for XdpTransmitter {
    /// What a driver holds of the memory it loses with the socket.
    fn drop(&mut self) {
        let until_ns = now_ns(ClockId::Monotonic) + SETTLE_NS;
        let all = usize::try_from(CHUNK_COUNT).expect("few chunks");
        self.collect();
        while self.free.len() < all
            && self.failed.is_none()
            && now_ns(ClockId::Monotonic) < until_ns
        {
            wait_for_room(&self.sender);
            self.collect();
        }
    }
}

/// Waits for a moment, or until the kernel has space.
fn wait_for_room(socket: &impl AsFd) {
    let time = Timespec::try_from(LOOK).expect("less than a second");
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    // Whatever it says, the rings are looked at next.
    poll(&mut fds, Some(&time)).unwrap_or_default();
}
