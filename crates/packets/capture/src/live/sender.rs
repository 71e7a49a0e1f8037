//! Frames out, as they are: for replaying traffic and for proving what a recorder stores.

use std::os::fd::AsFd;

use rustix::io::{Errno, retry_on_intr, write};

use super::socket::PacketSocket;
use super::{Error, open_socket};

/// Sends frames on one interface, link-level header included.
#[derive(Debug)]
pub struct FrameSender {
    socket: PacketSocket,
    name: String,
}

impl FrameSender {
    /// Opens the interface. The sender receives nothing.
    pub fn open(interface: &str) -> Result<Self, Error> {
        Ok(Self { socket: open_socket(interface)?, name: interface.to_owned() })
    }

    /// Sends one frame; waits while the interface's queue is full.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        let refused = |source: Errno| {
            let (name, source) = (self.name.clone(), source.into());
            Error::System { name, operation: "sending a frame", source }
        };
        let sent = retry_on_intr(|| write(self.socket.as_fd(), frame)).map_err(refused)?;
        // A packet socket takes a frame whole or not at all.
        assert_eq!(sent, frame.len(), "frames are sent whole");
        Ok(())
    }
}
