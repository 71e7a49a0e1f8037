//! What is put together from look to look besides TCP sockets: UDP sockets, questions to DNS
//! servers, and connections that could not be opened.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use network::sockets::{DatagramSocket, Owner};
use observe::tracepoints::{AttemptEnd, FailedAttempt, NoRoute};

/// Who tried to open a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptBy {
    /// The process; without a name where it had ended.
    pub owner: Arc<Owner>,
    /// Number of its namespace; `None` where it had ended.
    pub namespace: Option<u64>,
}

/// Pairs of a process and whom it asks that are told apart.
const FAILURES_MAX: usize = 4096;
/// Without a reset: an attempt that ends so soon was refused by a router or a firewall.
const REFUSED_NS: u64 = 50_000_000;
/// One that ends later was given up.
const GIVEN_UP_NS: u64 = 200_000_000;

/// A UDP socket through the watch.
#[derive(Clone, Debug)]
pub struct UdpTrack {
    /// Datagrams that had been dropped when it was seen first.
    pub drops_before: u32,
    /// As it was seen last.
    pub last: DatagramSocket,
    /// Process that owns the socket.
    pub owner: Option<Arc<Owner>>,
    /// Most bytes that waited to be read at a look.
    pub queue_max: u32,
}

impl UdpTrack {
    pub(super) fn new(socket: DatagramSocket, owner: Option<&Arc<Owner>>) -> Self {
        Self {
            drops_before: socket.drops.unwrap_or(0),
            queue_max: socket.receive_queue,
            last: socket,
            owner: owner.cloned(),
        }
    }

    pub(super) fn take(&mut self, socket: DatagramSocket, owner: Option<&Arc<Owner>>) {
        self.owner = self.owner.take().or_else(|| owner.cloned());
        self.queue_max = self.queue_max.max(socket.receive_queue);
        self.last = socket;
    }

    /// Datagrams dropped during the watch.
    pub fn drops(&self) -> u32 {
        self.last.drops.map_or(0, |drops| drops.wrapping_sub(self.drops_before))
    }
}

/// A socket that asks a DNS server.
#[derive(Clone, Debug)]
pub struct Question {
    /// The socket.
    pub socket: DatagramSocket,
    /// Process that owns it, where it was still there at a look.
    pub owner: Option<Arc<Owner>>,
    /// When it was seen first, in nanoseconds since the first look.
    pub first_ns: i64,
    /// And last before something had come for it.
    pub last_ns: i64,
    /// Something has come for it: it no longer waits, and may be kept for other questions.
    pub is_answered: bool,
}

impl Question {
    pub(super) fn new(socket: DatagramSocket, at_ns: i64, owner: Option<&Arc<Owner>>) -> Self {
        let is_answered = socket.has_received;
        Self { socket, owner: owner.cloned(), first_ns: at_ns, last_ns: at_ns, is_answered }
    }

    pub(super) fn take(&mut self, socket: &DatagramSocket, at_ns: i64, owner: Option<&Arc<Owner>>) {
        self.owner = self.owner.take().or_else(|| owner.cloned());
        self.is_answered |= socket.has_received;
        if !self.is_answered {
            self.last_ns = self.last_ns.max(at_ns);
        }
    }

    /// How long it was there at least without an answer, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        u64::try_from(self.last_ns.saturating_sub(self.first_ns)).unwrap_or(0)
    }
}

/// Connections that a process could not open to one place.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// Who asked; `None` where it had asked before the watch.
    pub by: Option<AttemptBy>,
    /// The address that it asked from, the last time.
    pub from: Option<IpAddr>,
    /// Times that it was refused.
    pub refused: u64,
    /// Of these, those that a reset refused.
    pub resets: u64,
    /// Times that nothing came back until it was given up.
    pub given_up: u64,
    /// Longest wait of these, in nanoseconds.
    pub longest_ns: u64,
    /// Times that there was no local port for it.
    pub without_port: u64,
    /// Times that it was opened, and then reset by the other side.
    pub reset_open: u64,
    /// Times that no route led there.
    pub unrouted: u64,
    /// Why, the last time.
    pub no_route: Option<NoRoute>,
}

/// All of them, by process and whom it asked.
#[derive(Clone, Debug, Default)]
pub struct Failures(BTreeMap<(u32, SocketAddr), Failed>);

impl Failures {
    /// Each with the process, 0 where it is not known, and whom it asked.
    pub fn iter(&self) -> impl Iterator<Item = (u32, SocketAddr, &Failed)> {
        self.0.iter().map(|((process, remote), failed)| (*process, *remote, failed))
    }

    pub(super) fn take(&mut self, attempt: &FailedAttempt, by: Option<AttemptBy>) {
        let key = (attempt.process, attempt.remote);
        // A program that gives up a connection has no more port there.
        let is_gone = attempt.remote.port() == 0;
        // Of one that came here each client has a port of its own.
        let is_accepted = attempt.end == AttemptEnd::ResetOpen && attempt.process == 0;
        if is_gone || is_accepted || (self.0.len() >= FAILURES_MAX && !self.0.contains_key(&key)) {
            return;
        }
        let failed = self.0.entry(key).or_default();
        failed.from = Some(attempt.local.ip());
        failed.by = by.or_else(|| failed.by.take());
        let waited_ns = attempt.waited_ns.unwrap_or(0);
        match attempt.end {
            AttemptEnd::Reset => {
                failed.refused = failed.refused.saturating_add(1);
                failed.resets = failed.resets.saturating_add(1);
            }
            AttemptEnd::ResetOpen => failed.reset_open = failed.reset_open.saturating_add(1),
            AttemptEnd::NoRoute(why) => {
                failed.unrouted = failed.unrouted.saturating_add(1);
                failed.no_route = Some(why);
            }
            // It had no port yet: nothing was sent.
            AttemptEnd::Closed if attempt.local.port() == 0 => {
                failed.without_port = failed.without_port.saturating_add(1);
            }
            AttemptEnd::Closed if attempt.waited_ns.is_none() => {}
            AttemptEnd::Closed if waited_ns < REFUSED_NS => {
                failed.refused = failed.refused.saturating_add(1);
            }
            AttemptEnd::Closed if waited_ns >= GIVEN_UP_NS => {
                failed.given_up = failed.given_up.saturating_add(1);
                failed.longest_ns = failed.longest_ns.max(waited_ns);
            }
            AttemptEnd::Closed => {}
        }
    }
}
