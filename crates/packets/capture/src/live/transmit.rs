//! Frames out, many at a time: what replays traffic.
//!
//! One packet socket, past the queueing discipline. Frames are handed over by `sendmmsg`, up to 64
//! a call: the kernel copies each into a buffer of its own. What the driver does not take is
//! offered again by the caller, never lost in here.

use core::array;
use std::fs;
use std::io::{self, IoSlice};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, send, sendmmsg};
use wire::LinkType;

use super::socket::{Link, PacketSocket};
use super::{Error, link_type, open_socket};

/// Frames of one call. Enough that the call costs nothing against them (1 us a frame).
const BATCH: usize = 64;
/// Bytes that may wait in a driver's queue. The kernel grants what `net.core.wmem_max` allows.
const SEND_BUFFER_BYTES: usize = 4 << 20;
/// Longest wait for space, so that a caller can look at other things.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Two addresses and a type (IEEE 802.3, 3.1.1).
const ETHERNET_HEADER: usize = 14;
/// Type and size of an 802.1Q tag.
const TAG_SIZE: usize = 4;
const TAG_TYPE: [u8; 2] = [0x81, 0x00];

/// A way out for frames.
pub trait Outlet: Send {
    /// Hands frames over in their order and returns how many were taken: fewer than all when there
    /// is no more space, and 0 after about 100 ms in which none could be. The others are to be
    /// offered again.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error>;

    /// Why nothing is taken, where the interface itself says.
    fn check(&self) -> Result<(), Error>;

    /// Packets that the interface dropped although it had taken them, of whatever sender, since it
    /// came up; `None` where that is not known.
    fn interface_drops(&self) -> Option<u64>;
}

/// Why a frame cannot be sent, by its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It ends inside the Ethernet header.
    TooShort,
    /// It is longer than the interface's MTU allows.
    TooLong,
}

/// Lengths that an interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameLimits {
    /// Most bytes behind the Ethernet header; an 802.1Q tag may come on top.
    pub mtu: usize,
}

impl FrameLimits {
    /// Whether the kernel takes a frame of `len` bytes with this type behind its addresses; `None`
    /// where it ends before. The rule is that of `packet_snd` in `net/packet/af_packet.c`.
    pub fn judge(self, ether_type: Option<[u8; 2]>, len: usize) -> Result<(), Unfit> {
        let Some(ether_type) = ether_type else { return Err(Unfit::TooShort) };
        let tag = if ether_type == TAG_TYPE { TAG_SIZE } else { 0 };
        if len > ETHERNET_HEADER + self.mtu + tag { Err(Unfit::TooLong) } else { Ok(()) }
    }
}

/// Sends Ethernet frames on one interface.
#[derive(Debug)]
pub struct Transmitter {
    pub(super) socket: PacketSocket,
    name: String,
    limits: FrameLimits,
}

impl Transmitter {
    /// Opens the interface, which must be up and take Ethernet frames. Nothing is received here.
    pub fn open(interface: &str) -> Result<Self, Error> {
        let socket = open_socket(interface).map_err(|error| match error {
            Error::Permission { name } => Error::SendPermission { name },
            error => error,
        })?;
        let mut transmitter =
            Self { socket, name: interface.to_owned(), limits: FrameLimits { mtu: 0 } };
        transmitter.set_up()?;
        transmitter.check()?;
        Ok(transmitter)
    }

    fn set_up(&mut self) -> Result<(), Error> {
        let hardware_type =
            self.socket.hardware_type().map_err(|source| self.error("getsockname", source))?;
        let name = self.name.clone();
        match hardware_type {
            None => return Err(Error::NoInterface { name }),
            Some(known) if link_type(known) == Some(LinkType::ETHERNET) => {}
            Some(hardware_type) => return Err(Error::NotEthernet { name, hardware_type }),
        }
        let bypass = self.socket.bypass_queueing();
        bypass.map_err(|source| self.error("PACKET_QDISC_BYPASS", source))?;
        let buffer = sockopt::set_socket_send_buffer_size(&self.socket, SEND_BUFFER_BYTES);
        buffer.map_err(|source| self.error("SO_SNDBUF", source.into()))?;
        let timeout = sockopt::set_socket_timeout(&self.socket, Timeout::Send, Some(LONGEST_WAIT));
        timeout.map_err(|source| self.error("SO_SNDTIMEO", source.into()))?;
        self.limits.mtu = self.link()?.mtu;
        Ok(())
    }

    /// Lengths that the interface takes.
    pub fn limits(&self) -> FrameLimits {
        self.limits
    }

    fn link(&self) -> Result<Link, Error> {
        self.socket.link(&self.name).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Error::NoInterface { name: self.name.clone() },
            _ => self.error("asking for its state", source),
        })
    }

    fn error(&self, operation: &'static str, source: io::Error) -> Error {
        Error::System { name: self.name.clone(), operation, source }
    }

    pub(super) fn refusal(&self, error: Errno) -> Error {
        let name = self.name.clone();
        match error {
            Errno::NETDOWN => Error::Down { name },
            Errno::NODEV | Errno::NXIO => Error::NoInterface { name },
            error => self.error("sending", error.into()),
        }
    }
}

impl Outlet for Transmitter {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        let sent = match *frames {
            [] => Ok(0),
            [frame] => retry_on_intr(|| send(&self.socket, frame, SendFlags::empty())).map(|_| 1),
            _ => send_batch(&self.socket, frames),
        };
        match sent {
            // The driver's queue is full, or the socket's buffer still after the wait.
            Err(Errno::NOBUFS | Errno::AGAIN) => Ok(0),
            Err(error) => Err(self.refusal(error)),
            Ok(count) => Ok(count),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let name = self.name.clone();
        match self.link()? {
            Link { is_up: false, .. } => Err(Error::Down { name }),
            Link { has_carrier: false, .. } => Err(Error::NoCarrier { name }),
            _ => Ok(()),
        }
    }

    fn interface_drops(&self) -> Option<u64> {
        let path = format!("/sys/class/net/{}/statistics/tx_dropped", self.name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }
}

fn send_batch(socket: &PacketSocket, frames: &[&[u8]]) -> Result<usize, Errno> {
    let frames = frames.get(..BATCH).unwrap_or(frames);
    let slices: [[IoSlice<'_>; 1]; BATCH] =
        array::from_fn(|at| [IoSlice::new(frames.get(at).copied().unwrap_or_default())]);
    let mut no_control: [SendAncillaryBuffer<'_, '_, '_>; BATCH] =
        array::from_fn(|_| SendAncillaryBuffer::default());
    let mut parts = slices.iter().zip(&mut no_control);
    let mut messages: [MMsgHdr<'_>; BATCH] = array::from_fn(|_| {
        let (slice, control) = parts.next().expect("all three have the same length");
        MMsgHdr::new(slice, control)
    });
    let messages = messages.get_mut(..frames.len()).expect("no more frames than a batch has");
    retry_on_intr(|| sendmmsg(socket, messages, SendFlags::empty()))
}
