//! What happens in a namespace between two looks: neighbours that change, and questions to DNS
//! servers that wait. Its sockets were made inside and are read from anywhere.

use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::neighbours::{Neighbour, RTM_NEWNEIGH, neighbour};
use crate::Error;
use crate::netlink::messages;
use crate::sockets::{DatagramSocket, DnsAsker};

/// `RTMGRP_NEIGH` of `linux/rtnetlink.h`.
const NEIGHBOURS: u32 = 4;
const DATAGRAM_BYTES: usize = 32 << 10;
/// A storm of changes is left in the kernel's buffer, which drops what is too much.
const DATAGRAMS_MAX: usize = 256;

/// Listens in one namespace. It keeps the namespace alive as long as it lives itself.
#[derive(Debug)]
pub struct Monitor {
    changes: OwnedFd,
    asker: DnsAsker,
}

impl Monitor {
    /// In the namespace that this thread is in.
    pub(crate) fn open() -> Result<Self, Error> {
        let fail = |errno| Error::system("listen to changes of neighbours", errno);
        let (family, raw) = (AddressFamily::NETLINK, SocketType::RAW);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let changes = socket_with(family, raw, flags, None).map_err(fail)?;
        bind(&changes, &SocketAddrNetlink::new(0, NEIGHBOURS)).map_err(fail)?;
        Ok(Self { changes, asker: DnsAsker::open()? })
    }

    /// Neighbours that have changed since the last time, in their order.
    pub fn changes(&self) -> Vec<Neighbour> {
        let mut found = Vec::new();
        let mut datagram = vec![0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            // Nothing is left, or some were lost: the next look has what is so then.
            let Ok((len, _)) = recv(&self.changes, &mut *datagram, RecvFlags::DONTWAIT) else {
                break;
            };
            let messages = messages(datagram.get(..len).unwrap_or_default());
            let changed = messages.filter(|message| message.kind == RTM_NEWNEIGH);
            found.extend(changed.filter_map(|message| neighbour(message.body)));
        }
        found
    }

    /// UDP sockets that are connected to port 53 now.
    pub fn questions(&self) -> Vec<DatagramSocket> {
        self.asker.ask()
    }
}
