//! Connections that programs try to open and do not get: who asked, whom, and how it ended.
//!
//! A refused connection is gone within microseconds, so that no list of sockets ever has it. The
//! kernel reports each change of a socket's state (`sock:inet_sock_set_state`) and each reset that
//! it received (`tcp:tcp_receive_reset`). Changes are chosen by a filter in the kernel: one record
//! for each attempt, one more for each that fails, and for each open connection that ends without a
//! farewell, of which those count that a reset ended.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::format::{Field, Format};
use super::not_traced::NotTraced;
use super::place::{format_of, tracefs};
use super::set::{Decode, Set, Traced};
use crate::perf::{ring_size, settled_ns};

const CHANGES: &str = "sock/inet_sock_set_state";
const RESETS: &str = "tcp/tcp_receive_reset";
/// `include/net/tcp_states.h`
const ESTABLISHED: u64 = 1;
const SYN_SENT: u64 = 2;
const CLOSE: u64 = 7;
/// `AF_INET`
const IPV4: u64 = 2;
/// At 20 000 attempts a second on one processor, 120 bytes each, 0.1 s.
const RING: usize = 256 << 10;
/// Attempts that may be under way, and resets; with more than that all are forgotten.
const PENDING_MAX: usize = 1 << 16;
/// A failure follows its reset within so long.
const RESET_NS: u64 = 100_000_000;

/// How an attempt ended that did not succeed, or not for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptEnd {
    /// The other side sent a reset.
    Reset,
    /// It succeeded, and later the other side sent a reset.
    ResetOpen,
    /// Another way: the program gave up, the kernel did, or a router refused it.
    Closed,
}

/// An attempt that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedAttempt {
    /// The process that asked; 0 where it asked before the watch.
    pub process: u32,
    /// Our end.
    pub local: SocketAddr,
    /// Whom it asked.
    pub remote: SocketAddr,
    /// How long it waited, in nanoseconds; `None` where it asked before the watch.
    pub waited_ns: Option<u64>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// Listens to all attempts of the machine.
#[derive(Debug)]
pub struct ConnectAttempts {
    changes: Set<Decoder>,
    resets: Set<Decoder>,
    waiting: Vec<Traced<Change>>,
    /// When each socket asked, and whose it is.
    pending: BTreeMap<u64, (u64, u32)>,
    /// Sockets that received a reset, and when.
    reset: BTreeMap<u64, u64>,
}

impl ConnectAttempts {
    /// Begins to listen.
    pub fn open() -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let changes = Decoder::changes(&format_of(&place, CHANGES)?);
        let resets = Decoder::resets(&format_of(&place, RESETS)?);
        let changes = changes.ok_or(NotTraced::NoTracepoint(CHANGES))?;
        let resets = resets.ok_or(NotTraced::NoTracepoint(RESETS))?;
        let filter = "protocol == 6 && \
                      ((oldstate == 7 && newstate == 2) || (oldstate == 2 && newstate == 7) || \
                      (oldstate == 1 && newstate == 7))";
        Ok(Self {
            changes: Set::open(vec![changes], filter, ring_size(RING))?,
            resets: Set::open(vec![resets], "", ring_size(RING))?,
            waiting: Vec::new(),
            pending: BTreeMap::new(),
            reset: BTreeMap::new(),
        })
    }

    /// Attempts that failed since the last time, until a few milliseconds ago.
    pub fn failed(&mut self) -> Vec<FailedAttempt> {
        self.changes.read(&mut self.waiting);
        self.resets.read(&mut self.waiting);
        self.waiting.sort_by_key(|change| change.time_ns);
        let until_ns = settled_ns();
        let ready = self.waiting.partition_point(|change| change.time_ns <= until_ns);
        let ready: Vec<Traced<Change>> = self.waiting.drain(..ready).collect();
        let failed = ready.into_iter().filter_map(|change| self.take(change)).collect();
        // A reset comes just before the failure, which may be in the next batch; an old one has
        // ended another connection.
        self.reset.retain(|_, at_ns| until_ns.saturating_sub(*at_ns) < RESET_NS);
        failed
    }

    fn take(&mut self, change: Traced<Change>) -> Option<FailedAttempt> {
        let Traced { time_ns, process, happened, .. } = change;
        match happened {
            Change::Asked { socket } => {
                if self.pending.len() >= PENDING_MAX {
                    self.pending.clear();
                }
                self.pending.insert(socket, (time_ns, process));
                None
            }
            Change::Reset { socket } => {
                if self.reset.len() >= PENDING_MAX {
                    self.reset.clear();
                }
                self.reset.insert(socket, time_ns);
                None
            }
            Change::Failed { socket, ends: [local, remote], was_open } => {
                let asked = self.pending.remove(&socket);
                let is_reset = self.reset.remove(&socket).is_some();
                let end = match (was_open, is_reset) {
                    (true, true) => AttemptEnd::ResetOpen,
                    // The program has ended it.
                    (true, false) => return None,
                    (false, true) => AttemptEnd::Reset,
                    (false, false) => AttemptEnd::Closed,
                };
                let waited_ns = asked.map(|(at_ns, _)| time_ns.saturating_sub(at_ns));
                let process = asked.map_or(0, |(_, process)| process);
                Some(FailedAttempt { process, local, remote, waited_ns, end })
            }
        }
    }
}

/// What a record says; a socket is told by its address in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Asked { socket: u64 },
    Failed { socket: u64, ends: [SocketAddr; 2], was_open: bool },
    Reset { socket: u64 },
}

/// Reads the records of one of the two.
#[derive(Clone, Debug)]
struct Decoder {
    id: u16,
    socket: Field,
    changed: Option<Changed>,
}

#[derive(Clone, Copy, Debug)]
struct Changed {
    states: [Field; 2],
    family: Field,
    ports: [Field; 2],
    ipv4: [Field; 2],
    ipv6: [Field; 2],
}

impl Decoder {
    fn changes(format: &Format) -> Option<Self> {
        let both = |one: &str, other: &str| Some([format.field(one)?, format.field(other)?]);
        let changed = Changed {
            states: both("oldstate", "newstate")?,
            family: format.field("family")?,
            ports: both("sport", "dport")?,
            ipv4: both("saddr", "daddr")?,
            ipv6: both("saddr_v6", "daddr_v6")?,
        };
        Some(Self { id: format.id, socket: format.field("skaddr")?, changed: Some(changed) })
    }

    fn resets(format: &Format) -> Option<Self> {
        Some(Self { id: format.id, socket: format.field("skaddr")?, changed: None })
    }
}

impl Changed {
    fn ends(&self, record: &[u8]) -> Option<[SocketAddr; 2]> {
        let is_v4 = self.family.number(record)? == IPV4;
        let end = |ipv4: Field, ipv6: Field, port: Field| {
            let ip = if is_v4 {
                IpAddr::from(*ipv4.bytes(record)?.first_chunk::<4>()?)
            } else {
                IpAddr::from(*ipv6.bytes(record)?.first_chunk::<16>()?)
            };
            Some(SocketAddr::new(ip.to_canonical(), u16::try_from(port.number(record)?).ok()?))
        };
        let ([source4, target4], [source6, target6]) = (self.ipv4, self.ipv6);
        let [source_port, target_port] = self.ports;
        Some([end(source4, source6, source_port)?, end(target4, target6, target_port)?])
    }
}

impl Decode for Decoder {
    type Happened = Change;

    fn id(&self) -> u16 {
        self.id
    }

    fn decode(&self, record: &[u8], _processor: usize) -> Option<Change> {
        let socket = self.socket.number(record)?;
        let Some(changed) = &self.changed else { return Some(Change::Reset { socket }) };
        let [before, after] = changed.states;
        match (before.number(record)?, after.number(record)?) {
            (CLOSE, SYN_SENT) => Some(Change::Asked { socket }),
            (before @ (SYN_SENT | ESTABLISHED), CLOSE) => {
                let was_open = before == ESTABLISHED;
                Some(Change::Failed { socket, ends: changed.ends(record)?, was_open })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_is_reset_and_one_that_is_refused_are_seen_with_their_process() {
        let mut attempts = match ConnectAttempts::open() {
            Ok(attempts) => attempts,
            Err(error) => {
                println!("not run: it takes {error}");
                return;
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let opened = TcpStream::connect(at);
        // Nobody has accepted it, so that its other end resets it.
        drop(listener);
        let Ok(_opened) = opened else { return println!("not run: no loopback interface") };
        assert!(TcpStream::connect(at).is_err());
        let until_ns = crate::perf::monotonic_ns() + 5_000_000_000;
        let mut found = Vec::new();
        while found.len() < 2 && crate::perf::monotonic_ns() < until_ns {
            found.extend(attempts.failed());
            found.retain(|one| one.remote == at);
        }
        let ends: Vec<_> = found.iter().map(|one| (one.process, one.end)).collect();
        let own = std::process::id();
        assert_eq!(ends, [(own, AttemptEnd::ResetOpen), (own, AttemptEnd::Reset)]);
        let refused = found.last().unwrap();
        assert!(refused.waited_ns.is_some_and(|ns| ns < 1_000_000_000), "{refused:?}");
    }
}
