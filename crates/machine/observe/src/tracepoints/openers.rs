//! Which process opens which socket, which processes it starts, and which end: known of those that
//! live for less than any look takes.
//!
//! The kernel reports each change of a TCP socket's state (`sock:inet_sock_set_state`): the process
//! that connects runs then, and the port that it gets is known when it is answered. Before the
//! first packet to an address it looks for a route (`fib:fib_table_lookup`, `fib6:...`), for the
//! process that sends, with the ports where the socket has one: so UDP is known, and TCP of IPv4
//! before an answer.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::event::IN_INTERRUPT;
use super::format::{Field, Format};
use super::not_traced::NotTraced;
use super::place::{format_of, tracefs};
use super::set::{Decode, Set, Traced};
use crate::perf::{ring_size, settled_ns};

const CHANGES: &str = "sock/inet_sock_set_state";
/// A socket is connected, or its connection is there or given up, or it listens.
const CHANGES_WANTED: &str = "protocol == 6 && ((oldstate == 7 && newstate == 2) || \
     (oldstate == 2 && (newstate == 1 || newstate == 7)) || (oldstate == 7 && newstate == 10))";
const ROUTES: [(&str, bool); 2] =
    [("fib/fib_table_lookup", true), ("fib6/fib6_table_lookup", false)];
const ROUTES_WANTED: &str = "(proto == 6 || proto == 17) && sport != 0";
const FORKS: &str = "sched/sched_process_fork";
const ENDS: &str = "sched/sched_process_exit";
/// `include/net/tcp_states.h`
const SYN_SENT: u64 = 2;
const LISTEN: u64 = 10;
/// `AF_INET`
const IPV4: u64 = 2;
/// At 20 000 connections a second on one processor, five records of 120 bytes each, 0.1 s.
const RING: usize = 1 << 20;
/// Connections that are being opened; with more than that all are forgotten.
const PENDING_MAX: usize = 1 << 16;

/// What processes did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened {
    /// It opened a TCP connection, or tried to.
    Connection {
        /// Who did.
        process: u32,
        /// Its own end, then the other one.
        ends: [SocketAddr; 2],
    },
    /// It sends from a port to an address.
    Sender {
        /// Who does.
        process: u32,
        /// TCP or UDP, by its number.
        protocol: u8,
        /// Its own port.
        port: u16,
        /// Where to.
        remote: SocketAddr,
    },
    /// It listens for TCP connections.
    Listener {
        /// Who does.
        process: u32,
        /// At this address, which may be any.
        at: SocketAddr,
    },
    /// It started a process, or a thread.
    Forked {
        /// Who did.
        parent: u32,
        /// What it started.
        child: u32,
    },
    /// It has ended.
    Ended {
        /// Which one.
        process: u32,
        /// The name that it had in the end.
        name: String,
    },
}

/// Listens to the whole machine.
#[derive(Debug)]
pub struct Openers {
    set: Set<Decoder>,
    waiting: Vec<Traced<Event>>,
    /// Who connects a socket, by its address in the kernel.
    pending: BTreeMap<u64, u32>,
}

impl Openers {
    /// Begins to listen.
    pub fn open() -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let needed = [
            Decoder::of(&place, CHANGES, Fields::changed)?,
            Decoder::of(&place, FORKS, |it| Some(Fields::Forked(it.field("child_pid")?)))?,
            Decoder::of(&place, ENDS, |it| Some(Fields::Ended(it.field("comm")?)))?,
        ];
        let routes = ROUTES.iter().filter_map(|(name, is_v4)| {
            Decoder::of(&place, name, |format| Fields::route(format, *is_v4)).ok()
        });
        let all = needed.into_iter().chain(routes).collect();
        let set = Set::open(all, "", ring_size(RING))?;
        Ok(Self { set, waiting: Vec::new(), pending: BTreeMap::new() })
    }

    /// What happened since the last time, until a few milliseconds ago, in the order of time.
    pub fn read(&mut self) -> Vec<Opened> {
        self.set.read(&mut self.waiting);
        self.waiting.sort_by_key(|event| event.time_ns);
        let until_ns = settled_ns();
        let ready = self.waiting.partition_point(|event| event.time_ns <= until_ns);
        let ready: Vec<Traced<Event>> = self.waiting.drain(..ready).collect();
        ready.into_iter().filter_map(|event| self.take(event)).collect()
    }

    fn take(&mut self, Traced { process, thread, happened, .. }: Traced<Event>) -> Option<Opened> {
        Some(match happened {
            Event::Asked { socket } => {
                if self.pending.len() >= PENDING_MAX {
                    self.pending.clear();
                }
                self.pending.insert(socket, process);
                return None;
            }
            Event::Connected { socket, ends } => {
                Opened::Connection { process: self.pending.remove(&socket)?, ends }
            }
            Event::Listens { at } => Opened::Listener { process, at },
            Event::Routed { protocol, port, remote } => {
                Opened::Sender { process, protocol, port, remote }
            }
            Event::Forked { child } => Opened::Forked { parent: process, child },
            // Threads have names of their own.
            Event::Ended { name } if process == thread => Opened::Ended { process, name },
            Event::Ended { .. } => return None,
        })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Event {
    Asked { socket: u64 },
    Connected { socket: u64, ends: [SocketAddr; 2] },
    Listens { at: SocketAddr },
    Routed { protocol: u8, port: u16, remote: SocketAddr },
    Forked { child: u32 },
    Ended { name: String },
}

/// Reads the records of one tracepoint.
#[derive(Clone, Debug)]
struct Decoder {
    id: u16,
    fields: Fields,
}

#[derive(Clone, Debug)]
enum Fields {
    Changed(Changed),
    Route { protocol: Field, ports: [Field; 2], target: Field, flags: Field, is_v4: bool },
    Forked(Field),
    Ended(Field),
}

#[derive(Clone, Debug)]
struct Changed {
    socket: Field,
    state: Field,
    before: Field,
    family: Field,
    ports: [Field; 2],
    ipv4: [Field; 2],
    ipv6: [Field; 2],
}

impl Decoder {
    fn of(
        place: &Path,
        name: &'static str,
        fields: impl Fn(&Format) -> Option<Fields>,
    ) -> Result<Self, NotTraced> {
        let format = format_of(place, name)?;
        let fields = fields(&format).ok_or(NotTraced::NoTracepoint(name))?;
        Ok(Self { id: format.id, fields })
    }
}

impl Fields {
    fn changed(format: &Format) -> Option<Self> {
        let both = |one: &str, other: &str| Some([format.field(one)?, format.field(other)?]);
        Some(Self::Changed(Changed {
            socket: format.field("skaddr")?,
            state: format.field("newstate")?,
            before: format.field("oldstate")?,
            family: format.field("family")?,
            ports: both("sport", "dport")?,
            ipv4: both("saddr", "daddr")?,
            ipv6: both("saddr_v6", "daddr_v6")?,
        }))
    }

    fn route(format: &Format, is_v4: bool) -> Option<Self> {
        Some(Self::Route {
            protocol: format.field("proto")?,
            ports: [format.field("sport")?, format.field("dport")?],
            target: format.field("dst")?,
            flags: format.field("common_flags")?,
            is_v4,
        })
    }
}

impl Changed {
    fn event(&self, record: &[u8]) -> Option<Event> {
        let socket = self.socket.number(record)?;
        match self.state.number(record)? {
            SYN_SENT => Some(Event::Asked { socket }),
            LISTEN => Some(Event::Listens { at: self.end(record, 0)? }),
            _ if self.before.number(record)? == SYN_SENT => {
                let ends = [self.end(record, 0)?, self.end(record, 1)?];
                Some(Event::Connected { socket, ends })
            }
            _ => None,
        }
    }

    /// Its own end, or the other one.
    fn end(&self, record: &[u8], which: usize) -> Option<SocketAddr> {
        let is_v4 = self.family.number(record)? == IPV4;
        let ip = *(if is_v4 { self.ipv4 } else { self.ipv6 }).get(which)?;
        let port = self.ports.get(which)?.number(record)?;
        Some(SocketAddr::new(address(ip, is_v4, record)?, u16::try_from(port).ok()?))
    }
}

pub(super) fn address(field: Field, is_v4: bool, record: &[u8]) -> Option<IpAddr> {
    let bytes = field.bytes(record)?;
    let ip = if is_v4 {
        IpAddr::from(*bytes.first_chunk::<4>()?)
    } else {
        IpAddr::from(*bytes.first_chunk::<16>()?)
    };
    Some(ip.to_canonical())
}

impl Decode for Decoder {
    type Happened = Event;

    fn id(&self) -> u16 {
        self.id
    }

    fn filter(&self) -> Option<&str> {
        match self.fields {
            Fields::Changed(_) => Some(CHANGES_WANTED),
            Fields::Route { .. } => Some(ROUTES_WANTED),
            Fields::Forked(_) | Fields::Ended(_) => None,
        }
    }

    fn decode(&self, record: &[u8], _processor: usize) -> Option<Event> {
        match &self.fields {
            Fields::Changed(changed) => changed.event(record),
            // What an answer or a timer looks for is no process's.
            Fields::Route { flags, .. } if flags.number(record)? & IN_INTERRUPT != 0 => None,
            Fields::Route { protocol, ports: [port, to], target, is_v4, .. } => {
                let [port, to] = [*port, *to].map(|it| it.short(record));
                let ip = address(*target, *is_v4, record)?;
                Some(Event::Routed {
                    protocol: u8::try_from(protocol.number(record)?).ok()?,
                    port: u16::try_from(port?).ok()?,
                    remote: SocketAddr::new(ip, u16::try_from(to?).ok()?),
                })
            }
            Fields::Forked(child) => Some(Event::Forked { child: child.short(record)? }),
            Fields::Ended(name) => {
                let name = String::from_utf8_lossy(name.text(record)?).into_owned();
                Some(Event::Ended { name })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::perf::monotonic_ns;

    /// What is read until it has something, for five seconds at most.
    fn until(openers: &mut Openers, has: impl Fn(&[Opened]) -> bool) -> Vec<Opened> {
        let until_ns = monotonic_ns() + 5_000_000_000;
        let mut found = Vec::new();
        while !has(&found) && monotonic_ns() < until_ns {
            found.extend(openers.read());
        }
        found
    }

    #[test]
    fn who_opens_sockets_and_starts_processes_is_seen() {
        let mut openers = match Openers::open() {
            Ok(openers) => openers,
            Err(error) => return println!("not run: it takes {error}"),
        };
        let process = std::process::id();
        for here in ["127.0.0.1", "::1"] {
            let Ok(listener) = TcpListener::bind((here, 0)) else {
                println!("not run: there is no address {here}");
                continue;
            };
            let at = listener.local_addr().unwrap();
            let ends = {
                let client = TcpStream::connect(at).unwrap();
                [client.local_addr().unwrap(), at]
            };
            let asks = UdpSocket::bind((here, 0)).unwrap();
            let port = asks.local_addr().unwrap().port();
            let remote = SocketAddr::new(at.ip(), 9);
            asks.send_to(b"x", remote).unwrap();
            let wanted = [
                Opened::Listener { process, at },
                Opened::Connection { process, ends },
                Opened::Sender { process, protocol: 17, port, remote },
            ];
            let has = |all: &[Opened]| wanted.iter().all(|it| all.contains(it));
            let found = until(&mut openers, has);
            let ours = |it: &&Opened| {
                matches!(it, Opened::Connection { process: by, .. }
                | Opened::Sender { process: by, .. } if *by == process)
            };
            let ours: Vec<_> = found.iter().filter(ours).collect();
            assert!(has(&found), "{wanted:?} is not in {ours:?}");
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait().unwrap();
        let ended = Opened::Ended { process: number, name: "true".to_owned() };
        let found = until(&mut openers, |all| all.contains(&ended));
        assert!(found.contains(&ended));
        assert!(found.contains(&Opened::Forked { parent: process, child: number }));
    }
}
