//! Pairs of sockets that carry whole messages, and descriptors with them.

use core::mem::MaybeUninit;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

use crate::deadline::Deadline;
use crate::program::DESCRIPTORS_MAX;

/// Longest message; more than one of these fits into the memory that a socket has by default.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Space for the descriptors of a message.
const ANCILLARY_BYTES: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Two sockets that are connected with each other, and with no other socket.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends one message; it does not wait for space.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    assert!(!bytes.is_empty() && descriptors.len() <= DESCRIPTORS_MAX, "it is a message");
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut room = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    if !descriptors.is_empty() {
        let is_in = beside.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(is_in, "there is space for as many descriptors as are allowed");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, flags)?;
    assert_eq!(sent, bytes.len(), "a message is sent whole");
    Ok(())
}

/// Waits until something can be received, or the other end is closed; `false` when the time is
/// over.
pub(crate) fn wait(socket: impl AsFd, deadline: Deadline) -> io::Result<bool> {
    let mut ready = [PollFd::new(&socket, PollFlags::IN)];
    loop {
        match poll(&mut ready, Some(&deadline.left())) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) if deadline.is_over() => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Receives a message that is there; `None` where the other end is closed.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Received>> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut room = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags) {
        // A process that died with messages unread resets the connection.
        Err(Errno::CONNRESET) => return Ok(None),
        received => received?,
    };
    let mut descriptors = Vec::new();
    for part in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(these) = part {
            descriptors.extend(these);
        }
    }
    if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    bytes.truncate(message.bytes);
    Ok((message.bytes > 0).then_some(Received { bytes, descriptors }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn messages_stay_whole_and_descriptors_come_with_theirs() {
        let (here, there) = pair().unwrap();
        let (left, right) = pair().unwrap();
        send(&here, b"first", &[left.as_fd()]).unwrap();
        send(&here, &vec![7; MESSAGE_BYTES_MAX], &[]).unwrap();
        drop(left);
        let first = receive(&there).unwrap().unwrap();
        assert_eq!((&*first.bytes, first.descriptors.len()), (&b"first"[..], 1));
        assert_eq!(receive(&there).unwrap().unwrap().bytes.len(), MESSAGE_BYTES_MAX);
        // The descriptor is the one that was sent.
        send(&first.descriptors[0], b"through", &[]).unwrap();
        assert_eq!(receive(&right).unwrap().unwrap().bytes, b"through");
        assert!(send(&here, &vec![7; MESSAGE_BYTES_MAX + 1], &[]).is_err());
    }

    #[test]
    fn a_wait_ends_with_its_time_or_with_the_other_end() {
        let (here, there) = pair().unwrap();
        let soon = || Deadline::after(Duration::from_millis(5));
        assert!(!wait(&here, soon()).unwrap());
        drop(there);
        assert!(wait(&here, soon()).unwrap());
        assert!(receive(&here).unwrap().is_none());
        assert!(send(&here, b"nobody", &[]).is_err());
    }
}
