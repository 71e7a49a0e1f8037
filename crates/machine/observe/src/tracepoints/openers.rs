//! Which process opens which socket, which processes it starts, and which end: known of those that
//! live for less than any look takes.
//!
//! The kernel reports each change of a TCP socket's state (`sock:inet_sock_set_state`): the process
//! that connects runs then, and the port that it gets is known when it is answered. Before the
//! first packet to an address it looks for a route (`fib:fib_table_lookup`, `fib6:...`), for the
//! process that sends, with the ports where the socket has one: so UDP is known, and TCP of IPv4
//! before an answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use super::format::{Field, Format};
use super::not_traced::NotTraced;
use super::place::{format_of, tracefs};
use super::set::{Decode, Set, Traced, up_to};
use super::sockets::{CHANGES, Changed, LISTEN, ROUTES, Route, SYN_SENT};
use crate::perf::{ring_size, settled_ns};

/// A socket is connected, or its connection is there or given up, or it listens.
const CHANGES_WANTED: &str = "protocol == 6 && ((oldstate == 7 && newstate == 2) || \
     (oldstate == 2 && (newstate == 1 || newstate == 7)) || (oldstate == 7 && newstate == 10))";
const ROUTES_WANTED: &str = "(proto == 6 || proto == 17) && sport != 0";
const FORKS: &str = "sched/sched_process_fork";
const ENDS: &str = "sched/sched_process_exit";
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
            Decoder::of(&place, CHANGES, |it| Some(Fields::Changed(Changed::of(it)?)))?,
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
        let ready: Vec<Traced<Event>> = up_to(&mut self.waiting, settled_ns()).collect();
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
    Route { route: Route, protocol: Field, port: Field },
    Forked(Field),
    Ended(Field),
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
    fn route(format: &Format, is_v4: bool) -> Option<Self> {
        Some(Self::Route {
            route: Route::of(format, is_v4)?,
            protocol: format.field("proto")?,
            port: format.field("sport")?,
        })
    }
}

/// What a change says of who opens what.
fn event(changed: &Changed, record: &[u8]) -> Option<Event> {
    let socket = changed.socket(record)?;
    match changed.states(record)? {
        (_, SYN_SENT) => Some(Event::Asked { socket }),
        (_, LISTEN) => {
            let [at, _] = changed.ends(record)?;
            Some(Event::Listens { at })
        }
        (SYN_SENT, _) => Some(Event::Connected { socket, ends: changed.ends(record)? }),
        _ => None,
    }
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
            Fields::Changed(changed) => event(changed, record),
            Fields::Route { route, protocol, port } => Some(Event::Routed {
                remote: route.remote(record)?,
                protocol: u8::try_from(protocol.number(record)?).ok()?,
                port: u16::try_from(port.number(record)?).ok()?,
            }),
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
